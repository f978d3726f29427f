"""The rulebook's own examples, and the clauses that are easy to get wrong, on the engine in situations made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import CODE, DIAMOND, EMERALD, GOLD, RUBY, SAPPHIRE, A, B, C, D, F, Table, all_pieces
from montecristo_env import GameBatch, Lane, Ruleset, Zone
from montecristo_env.core.jit import INTERPRETED

pytestmark = [pytest.mark.engine, pytest.mark.interpreted]

YELLOW = 3  # §1.1: colours by seat
GREEN = 2
DUNGEONS = "ABCDEF"
PUTS = [f"put {letter}" for letter in DUNGEONS]
ENTERS = [f"enter {letter}" for letter in DUNGEONS]
LEFT = [(GOLD, 1), (GOLD, 2), (GOLD, 3)]  # tokens to draw where it does not matter which


def by(**variants: str) -> Ruleset:
    """The usual rules with these variants (§1.10)."""
    return Ruleset.from_dict(variants)


def chest(table: Table, *puts: str) -> None:
    """The chest is opened, three gold tokens are drawn; they go where the test says."""
    table.draw_tokens_next(*LEFT)
    table.begin(Lane.CHEST)
    table.play(*puts)


def points_of(*tokens: tuple[int, int], market: tuple[int, ...] = (RUBY, SAPPHIRE, GOLD, EMERALD, DIAMOND)) -> int:
    """The points that Yellow scores for these tokens, up to four, each in a dungeon of its own."""
    table = Table(4)
    table.market(*market)
    for dungeon, token in enumerate(tokens):
        table.put(dungeon, token)
        table.enter(dungeon, YELLOW)
        table.give(YELLOW, (token[0], 3))
    table.put(F, (DIAMOND, 1), (DIAMOND, 2), (DIAMOND, 3))
    chest(table, "put F", "put E", "put D", *(f"take {'GRSED'[kind]}{value}" for kind, value in tokens))
    assert table.state["phase"] == "return_marble"
    return int(table.games.scores[0, YELLOW])


# --- The rulebook's examples -----------------------------------------------------------------------------------------


def test_ruby_3_at_market_value_3_is_9_points() -> None:
    """The rulebook, "Scoring points" (§8.7)."""
    assert points_of((RUBY, 3)) == 9


def test_the_yellow_players_four_treasures_are_17_points() -> None:
    """§8.7: Ruby-3 at 3, Sapphire-1 and Sapphire-2 at 2, Emerald-2 at 1."""
    assert points_of((RUBY, 3), (SAPPHIRE, 1), (SAPPHIRE, 2), (EMERALD, 2)) == 17


@pytest.mark.parametrize(("space", "points"), [(0, 9), (1, 6), (2, 6), (3, 3), (4, 3)])
def test_the_market_space_gives_the_value(space: int, points: int) -> None:
    """§1.8: 3, 2, 2, 1, 1, best first."""
    market = [GOLD, SAPPHIRE, EMERALD, DIAMOND]
    market.insert(space, RUBY)
    assert points_of((RUBY, 3), market=tuple(market)) == points


def test_yellow_takes_three_treasures_from_dungeon_d_and_leaves_a_fourth_adventurer() -> None:
    """The rulebook, "Treasure gathering": Ruby-3, Emerald-2 and Emerald-1 for a 2-bag ruby card, a wild bag and a 3-bag
    emerald card; their three highest adventurers go to Marseille, the fourth stays (§8.3, §8.4, §8.5)."""
    table = Table(4)
    table.market(RUBY, SAPPHIRE, GOLD, EMERALD, DIAMOND)
    table.put(D, (RUBY, 3), (EMERALD, 2), (EMERALD, 1))
    table.enter(D, YELLOW, GREEN, YELLOW, YELLOW, GREEN, YELLOW)
    table.give(YELLOW, (RUBY, 2), (EMERALD, 3))
    table.give_wild(YELLOW)
    wild = table.pile_cards(), table.wild_cards(YELLOW)
    chest(table, "put D", "put E", "put F")

    assert table.facts("phase", "current_player", "gather_order") == ["take", YELLOW, [YELLOW, GREEN]]
    assert table.legal == ["stop taking", "take E1", "take E2", "take G1", "take R3"]
    marseille = table.state["marseille"][YELLOW]
    table.play("take R3")
    assert table.legal == ["pay R2", "pay W"]
    table.play("pay R2")
    assert table.forced[-1] == "pay W"  # only the wild bag is left for the third ruby bag
    table.play("take E2")  # with the emerald card, which is the only way
    assert table.forced[-1] == "pay E3" and table.state["left_over_bags"][YELLOW] == [0, 0, 0, 1, 0]
    table.play("take E1")  # with the left-over bag: nothing to pay
    assert table.forced[-1] == "pay E3" and len(table.forced) == 2

    assert table.state["dungeons"][D]["queue"] == [GREEN, GREEN, YELLOW]  # it closed up
    assert table.state["marseille"][YELLOW] == marseille + 3
    assert table.state["hands"][YELLOW] == [] and table.state["wilds"][YELLOW] == 0
    assert table.state["card_discard"] == [(RUBY, 2), (EMERALD, 3)]  # face up (§8.5)
    assert table.pile_cards() == wild[0] + wild[1]  # the wild bag unseen under the pile (§8.5)
    assert table.state["dungeons"][D]["tokens"] == [(GOLD, 1)]
    assert table.games.scores[0].tolist() == [0, 0, 0, 9 + 2 + 1]
    assert table.state["token_discard"] == [(RUBY, 3), (EMERALD, 1), (EMERALD, 2)]  # scored, then discarded (§8.7)


def test_setup_is_that_of_the_rulebook() -> None:
    """§2: 2 adventurers each, 7 in Marseille, a token in each dungeon, no points; the cylinder at Supply."""
    for n in (2, 3, 4):
        state = GameBatch(1, n, seed=n).public_state(0)
        assert (state["round"], state["cylinder"], state["scores"]) == (1, Lane.SUPPLY, [0] * n)
        assert [len(dungeon["tokens"]) for dungeon in state["dungeons"]] == [1] * 6
        assert len(state["bag"]) == 24 and len(state["offer"]) == n and state["pile_size"] == 30 - n
        assert state["supply"] == [2] * n and state["marseille"] == [7] * n
        assert [len(lane) for lane in state["lanes"]] == [3 if n == 2 else n] * 4


# --- The action slide (§3) -------------------------------------------------------------------------------------------


def test_the_used_marble_goes_on_top_and_the_rest_of_its_lane_slides_down() -> None:
    """§3.2, §3.4."""
    table = Table(3)
    table.lanes([0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1])
    table.begin(Lane.REARRANGE)
    table.play("keep order")
    assert table.legal == ["return adventurers", "return chest", "return supply"]  # not the lane it comes from
    table.play("return chest")
    state = table.state
    assert state["lanes"] == [[0, 1, 2], [1, 2, 0], [2, 0, 1, 0], [2, 1]]
    assert (state["cylinder"], state["round"], state["active_player"]) == (Lane.SUPPLY, 2, 0)


def test_the_marble_stays_when_a_scoring_round_ended_the_game() -> None:
    """§3.2, §9.1."""
    table = Table(2)
    table.row["score"][0] = 39
    table.lanes([0, 1, 0], [1, 0, 1], [1, 0, 1], [0, 1, 0])
    table.put(A, (RUBY, 1), (EMERALD, 2), (EMERALD, 1))
    table.enter(A, 0)
    table.give(0, (RUBY, 1))
    chest(table, "put A", "put B", "put C", "take R1")
    assert table.games.terminated[0] and not table.games.truncated[0]
    assert table.facts("phase", "current_player", "cylinder") == ["over", -1, Lane.CHEST]
    assert table.state["lanes"][Lane.CHEST] == [1, 0, 1]
    assert table.state["active_player"] == 1 and table.legal == []


def test_a_lane_takes_at_most_seven_marbles_and_three_of_a_colour() -> None:
    """§3.3."""
    table = Table(4)
    table.lanes([0], [1, 1, 1, 2, 2, 2, 3], [0, 0, 0, 1], [2, 3, 3, 3])
    table.begin(Lane.SUPPLY)
    while "return" not in " ".join(table.legal + table.forced):
        table.play(table.legal[0])
    assert table.forced[-1] == "return rearrange"  # adventurers is full, chest has three of the colour
    assert table.state["lanes"] == [[], [1, 1, 1, 2, 2, 2, 3], [0, 0, 0, 1], [2, 3, 3, 3, 0]]


def test_a_lane_with_room_for_one_takes_it() -> None:
    """§3.3: the seventh marble, the third of a colour."""
    table = Table(4)
    table.lanes([0, 3], [1, 1, 1, 2, 2, 2], [0, 0, 1, 2], [3, 3, 3, 0])
    table.begin(Lane.SUPPLY)
    while table.state["phase"] == "deal":
        table.play(table.legal[0])
    assert table.legal == ["return adventurers", "return chest", "return rearrange"]


def test_an_empty_lane_is_skipped_and_may_be_given_a_marble() -> None:
    """§3.5."""
    table = Table(3)
    table.lanes([0, 1, 2, 0], [], [1, 2, 1, 2], [0, 1, 2, 0])
    table.draw_tokens_next(*LEFT)
    table.begin(Lane.ADVENTURERS)
    assert table.facts("cylinder", "phase", "active_player") == [Lane.CHEST, "put_token", 1]
    table.play("put A", "put B", "put C")
    assert "return adventurers" in table.legal
    table.play("return adventurers")
    assert table.state["lanes"][Lane.ADVENTURERS] == [1]


def test_a_marble_on_the_empty_next_lane_makes_its_owner_active_again() -> None:
    """§3.5."""
    table = Table(3)
    table.lanes([0, 1, 2, 0, 1, 2], [1, 2, 1, 2, 0], [0], [])
    chest(table, "put A", "put B", "put C", "return rearrange")
    assert table.facts("phase", "active_player", "round") == ["rearrange", 0, 1]
    assert table.state["lanes"][Lane.REARRANGE] == [0]


def test_a_round_with_skipped_lanes_counts() -> None:
    """§3.5: from Treasure chest over the empty Rearrange lane and the empty Supply lane of the next round."""
    table = Table(3)
    table.lanes([], [1, 2, 2, 0, 0, 0], [1, 0, 1, 2, 2, 1], [])
    chest(table, "put A", "put B", "put C")
    assert table.legal == ["return adventurers", "return rearrange", "return supply"]
    table.play("return adventurers")
    assert table.facts("cylinder", "round", "phase") == [Lane.ADVENTURERS, 2, "place"]


# --- Supply (§4) -----------------------------------------------------------------------------------------------------


def test_the_active_player_serves_themselves_first_then_clockwise() -> None:
    """§4.1, §4.2, §11.4."""
    table = Table(3)
    table.lanes([1, 0, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1])
    table.draw_next((GOLD, 1), (RUBY, 2), (SAPPHIRE, 3))
    table.begin()
    table.play("deal G1")
    assert table.facts("supply", "current_player") == [[2, 5, 2], 1]  # at once, before the next card
    table.play("deal S3")
    assert table.state["hands"] == [[(RUBY, 2)], [(GOLD, 1)], [(SAPPHIRE, 3)]]
    assert table.facts("supply", "marseille") == [[4, 5, 3], [5, 4, 6]]
    assert table.forced == ["deal R2"]


def test_marseille_gives_only_what_it_has() -> None:
    """§4.2."""
    table = Table(2)
    table.lanes([0, 1, 0], [1, 0, 1], [1, 0, 1], [0, 1, 0])
    table.enter(A, *[0] * 6)
    table.draw_next((GOLD, 1), (RUBY, 1))
    table.begin()
    table.play("deal G1")
    assert (table.state["supply"][0], table.state["marseille"][0]) == (3, 0)


def test_a_short_pile_is_drawn_first_then_the_discards_are_shuffled() -> None:
    """§4.3."""
    table = Table(2)
    table.lanes([0, 1, 0], [1, 0, 1], [1, 0, 1], [0, 1, 0])
    table.discard(*[card for card in all_pieces(table.games.ruleset.deck) if card != (DIAMOND, 3)])
    table.give_wild(1)
    assert table.pile_cards() == [(DIAMOND, 3)]
    table.begin()
    drawn = [*table.state["offer"], *table.state["hands"][0], *table.state["hands"][1]]  # dealt already, if both alike
    assert (DIAMOND, 3) in drawn and len(drawn) == 2
    assert table.facts("pile_size", "card_discard") == [27, []]
    assert table.row["shuffles"] == 2


@pytest.mark.parametrize("reshuffle", ["needed", "empty"])
def test_a_draw_that_empties_the_pile_shuffles_the_discards_in_a_variant_only(reshuffle: str) -> None:
    """§4.3: the two last cards are drawn, no other is needed."""
    table = Table(2, by(reshuffle=reshuffle))
    table.discard(*[card for card in all_pieces(table.games.ruleset.deck) if card[0] != DIAMOND or card[1] == 1])
    table.discard((DIAMOND, 2), (DIAMOND, 3))
    table.begin()
    assert table.state["offer"] == [(DIAMOND, 2), (DIAMOND, 3)]
    shuffled = reshuffle == "empty"
    assert (table.state["pile_size"], len(table.state["card_discard"])) == ((28, 0) if shuffled else (0, 28))
    assert table.row["shuffles"] == 1 + shuffled


def test_in_that_variant_a_pile_that_runs_out_within_a_deal_is_shuffled_once() -> None:
    """§4.3: between the two draws; the second takes no last card."""
    table = Table(2, by(reshuffle="empty"))
    table.discard(*[card for card in all_pieces(table.games.ruleset.deck) if card != (DIAMOND, 3)])
    table.give_wild(1)
    table.begin()
    assert table.facts("pile_size", "card_discard") == [27, []] and table.row["shuffles"] == 2


def test_in_that_variant_a_wild_bag_that_is_the_last_card_shuffles_the_discards() -> None:
    """§4.3, §5.3: before its owner discards an eighth card, so without that card."""
    table = Table(2, by(reshuffle="empty"))
    table.give_any(0, 7)
    table.discard(*sorted(table.pile_cards())[:22])
    placing(table, 3, 2)
    table.play("visit wild")
    assert table.facts("phase", "pile_size", "card_discard") == ["discard", 22, []] and table.row["shuffles"] == 2
    card = next(move for move in table.legal if move != "discard W")
    table.play(card)
    assert table.state["pile_size"] == 22 and len(table.state["card_discard"]) == 1 and table.row["shuffles"] == 2


@pytest.mark.parametrize("reshuffle", ["needed", "empty"])
def test_a_returned_wild_bag_that_alone_is_the_pile_is_a_last_card_too(reshuffle: str) -> None:
    """§4.3, §4.6: player 0 returns it to the empty pile, player 1 takes it beside a card that was discarded."""
    table = Table(4, by(reshuffle=reshuffle))
    table.lanes([0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2])
    table.give_wild(0)
    table.give_any(0, 6)
    for player in (1, 2, 3):
        table.give_any(player, 7)
    table.begin()  # two cards are left, for players 0 and 1
    while table.state["phase"] != "return_marble":
        table.play("discard W" if "discard W" in table.legal else table.legal[0])
    assert table.state["pile_size"] == 1 and len(table.state["card_discard"]) == 1 and table.row["shuffles"] == 1
    table.play("return chest", "visit wild")
    assert table.facts("phase", "current_player", "wilds") == ["discard", 1, [0, 1, 0, 0]]
    shuffled = reshuffle == "empty"
    assert (table.state["pile_size"], len(table.state["card_discard"])) == ((1, 0) if shuffled else (0, 1))
    assert table.row["shuffles"] == 1 + shuffled


def test_in_that_variant_without_discards_a_new_pile_waits_until_a_card_is_needed() -> None:
    """§4.3: nothing was discarded when the last card was drawn; what is discarded later makes no pile by itself."""
    table = Table(4, by(reshuffle="empty"))
    table.lanes([0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2])
    for player in range(4):
        table.give_any(player, 7)
    table.begin()  # two cards are left to deal, to players 0 and 1
    while table.state["phase"] in ("deal", "discard"):
        table.play(table.legal[0])
    assert table.state["pile_size"] == 0 and len(table.state["card_discard"]) == 2 and table.row["shuffles"] == 1
    table.play("return chest")
    assert table.facts("phase", "current_player") == ["place", 1]
    table.play("visit wild")
    assert table.facts("phase", "pile_size", "card_discard") == ["discard", 1, []] and table.row["shuffles"] == 2


@pytest.mark.parametrize("discarding", ["at_once", "after_deal"])
@pytest.mark.parametrize(("sizes", "served"), [((7, 7, 7, 7), [2, 3]), ((7, 7, 7, 6), [2, 3, 0])])
def test_too_few_cards_serve_the_active_player_first(
    sizes: tuple[int, ...], served: list[int], discarding: str
) -> None:
    """§4.4; who is served with an eighth card discards one (§4.5)."""
    table = Table(4, by(discard=discarding))
    table.lanes([2, 0, 1, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2])
    for player, size in enumerate(sizes):
        table.give_any(player, size)
    table.begin()
    asked = []
    while table.state["phase"] in ("deal", "discard"):
        asked.append((table.state["phase"], table.state["current_player"]))
        table.play(table.legal[0])
    discarded = [player for phase, player in asked if phase == "discard"]
    assert discarded == [player for player in served if sizes[player] == 7]  # clockwise from the active player
    if discarding == "after_deal":
        assert asked == sorted(asked, key=lambda one: one[0] == "discard")
    assert [len(hand) for hand in table.state["hands"]] == [7, 7, 7, 7]
    assert len(table.state["card_discard"]) == len(discarded)


def with_full_hands(discarding: str) -> Table:
    """Player 1 deals; players 2 and 0 have seven cards, two of player 0's being wild bags."""
    table = Table(3, by(discard=discarding))
    table.lanes([1, 0, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1])
    table.give(0, (GOLD, 1), (GOLD, 1), (GOLD, 2), (GOLD, 2), (GOLD, 3))
    table.give_wild(0, (EMERALD, 1))
    table.give_wild(0, (EMERALD, 2))
    table.give(2, (RUBY, 1), (RUBY, 1), (RUBY, 2), (RUBY, 2), (RUBY, 3), (RUBY, 3), (SAPPHIRE, 1))
    table.draw_next((DIAMOND, 1), (DIAMOND, 2), (DIAMOND, 3))
    table.begin()
    return table


def test_an_eighth_card_is_discarded_before_the_next_one_is_dealt() -> None:
    """§4.5: at once, but after its adventurers came (§4.2); the new card may go, and wild bags count."""
    table = with_full_hands("at_once")
    table.play("deal D1")
    before = table.state["supply"]
    table.play("deal D2")
    assert table.facts("phase", "active_player", "current_player") == ["discard", 1, 2]
    assert table.facts("offer", "recipient") == [[(DIAMOND, 3)], 0]  # whose card comes next
    assert table.state["supply"] == [before[0], before[1], before[2] + 2]
    assert table.legal == ["discard D2", "discard R1", "discard R2", "discard R3", "discard S1"]
    assert table.forced == []  # the last card waits too
    table.play("discard R3")
    assert table.forced == ["deal D3"] and table.state["card_discard"] == [(RUBY, 3)]
    assert table.facts("phase", "current_player", "offer", "recipient") == ["discard", 0, [], -1]
    assert table.legal == ["discard D3", "discard G1", "discard G2", "discard G3", "discard W"]
    pile = table.pile_cards()
    table.play("discard W")
    assert table.pile_cards() == [*pile, (EMERALD, 1)]  # the one held longest, unseen under the pile (§4.6)
    assert table.wild_cards(0) == [(EMERALD, 2)] and table.state["wilds"] == [1, 0, 0]
    assert table.state["card_discard"] == [(RUBY, 3)] and table.state["phase"] == "return_marble"


def test_the_active_player_discards_an_eighth_card_before_they_choose_for_the_others() -> None:
    """§4.5."""
    table = Table(3)
    table.lanes([1, 0, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1])
    table.give(1, *[(RUBY, bags) for bags in (1, 2, 3) for _ in range(2)], (GOLD, 1))
    table.draw_next((DIAMOND, 1), (DIAMOND, 2), (DIAMOND, 3))
    table.begin()
    table.play("deal D3")
    assert table.facts("phase", "current_player", "recipient") == ["discard", 1, 2]
    assert table.state["offer"] == [(DIAMOND, 1), (DIAMOND, 2)]
    table.play("discard D3")
    assert table.facts("phase", "current_player", "recipient") == ["deal", 1, 2]
    assert table.legal == ["deal D1", "deal D2"] and table.state["card_discard"] == [(DIAMOND, 3)]


def test_in_a_variant_eighth_cards_are_discarded_after_the_whole_deal_clockwise_from_the_active_player() -> None:
    """§4.5."""
    table = with_full_hands("after_deal")
    table.play("deal D1", "deal D2")
    assert table.forced == ["deal D3"] and table.facts("offer", "recipient") == [[], -1]
    assert table.facts("phase", "active_player", "current_player") == ["discard", 1, 2]
    assert table.legal == ["discard D2", "discard R1", "discard R2", "discard R3", "discard S1"]
    table.play("discard D2")
    assert table.facts("card_discard", "current_player") == [[(DIAMOND, 2)], 0]
    assert table.legal == ["discard D3", "discard G1", "discard G2", "discard G3", "discard W"]
    table.play("discard W")
    assert table.wild_cards(0) == [(EMERALD, 2)] and table.state["phase"] == "return_marble"


def test_seven_cards_are_no_reason_to_discard() -> None:
    """§4.5."""
    table = Table(2)
    table.give_any(0, 6)
    table.give_any(1, 5)
    table.give_wild(1)
    table.begin()
    while table.state["phase"] == "deal":
        table.play(table.legal[0])
    assert table.state["phase"] == "return_marble"


def test_a_wild_bag_under_an_empty_pile_is_the_whole_pile() -> None:
    """§4.6: it is the next card drawn, before the discards are shuffled (§4.3)."""
    table = Table(2)
    table.lanes([0, 1, 0], [1, 0, 1], [1, 0, 1], [0, 1, 0])
    table.give_wild(0, (EMERALD, 1))
    table.give(0, *[(RUBY, 1), (RUBY, 1), (RUBY, 2), (RUBY, 2), (RUBY, 3), (RUBY, 3)])
    held = {(EMERALD, 1): 1, **{(RUBY, bags): 2 for bags in (1, 2, 3)}, (DIAMOND, 1): 1, (DIAMOND, 2): 1}
    for card in set(all_pieces(table.games.ruleset.deck)):
        table.discard(*[card] * (2 - held.get(card, 0)))
    table.draw_next((DIAMOND, 1), (DIAMOND, 2))
    table.begin()
    table.play("deal D1", "discard W")
    assert table.pile_cards() == [(EMERALD, 1)] and table.row["shuffles"] == 1
    table.play("return chest")
    table.adventurers(1, 3)
    while table.state["phase"] == "place" and table.state["current_player"] != 0:
        table.play("visit wild" if "visit wild" in table.legal else "stop placing")
    assert table.wild_cards(1) == [(EMERALD, 1)] and table.state["pile_size"] == 0


# --- Adventurers (§5) ------------------------------------------------------------------------------------------------


def placing(table: Table, *supplies: int, active: int = 0) -> Table:
    """The Adventurers action of a player, everybody with the same number of adventurers to place."""
    n = table.n
    others = [seat for seat in range(n) if seat != active]
    lanes = {2: [[0, 1, 0], [1, 0, 1]], 3: [[0, 1, 2], [1, 2, 0]], 4: [[0, 1, 2, 3], [1, 2, 3, 0]]}[n]
    first = [active, *others] if n > 2 else [active, others[0], active]
    rest = lanes[1] if n > 2 else [others[0], active, others[0]]
    table.lanes(rest, first, rest, first)
    for player, supply in enumerate(supplies):
        table.adventurers(player, supply)
    table.begin(Lane.ADVENTURERS)
    return table


def test_three_placements_one_in_a_zone_then_one_for_each_other_player() -> None:
    """§5.1, §5.2; who has nobody to place is not asked (§11.4)."""
    table = placing(Table(3), 2, 0, 4, active=2)
    assert table.legal == sorted([*ENTERS, *(f"visit {zone.name.lower()}" for zone in Zone), "stop placing"])
    table.play("enter A", "visit points")
    assert table.facts("placements_left", "zone_used", "scores") == [1, True, [0, 0, 2]]
    assert table.legal == sorted([*ENTERS, "stop placing"])
    table.play("enter A")
    assert table.facts("current_player", "placements_left", "zone_used") == [0, 1, False]
    table.play("visit points")
    assert table.state["phase"] == "return_marble"
    assert table.state["dungeons"][A]["queue"] == [2, 2] and table.state["zones"][Zone.POINTS] == [0, 2]


def test_a_zone_holds_one_adventurer_of_each_colour() -> None:
    """§5.2."""
    table = Table(2)
    table.visit(Zone.POINTS, 0)
    table.visit(Zone.WILD, 0)
    placing(table, 2, 2)
    assert [move for move in table.legal if "visit" in move] == ["visit disembark", "visit reinforcement"]
    table.play("stop placing")
    assert len([move for move in table.legal if "visit" in move]) == 4  # the zones of the other colour are free


def test_a_wild_bag_comes_unseen_and_its_adventurers_do_not_count() -> None:
    """§5.3."""
    table = Table(2)
    table.draw_next((GOLD, 1))
    placing(table, 2, 2)
    table.play("visit wild")
    assert table.wild_cards(0) == [(GOLD, 1)]
    assert table.facts("wilds", "hands", "supply", "pile_size") == [[1, 0], [[], []], [1, 2], 29]


def test_with_eight_cards_after_a_wild_bag_they_discard_at_once_and_go_on_placing() -> None:
    """§5.3, §4.5."""
    table = Table(2)
    table.give_any(0, 7)
    placing(table, 3, 2)
    table.play("visit wild")
    assert table.facts("phase", "current_player", "placements_left", "zone_used") == ["discard", 0, 2, True]
    assert "discard W" in table.legal
    table.play("discard W")
    assert table.facts("phase", "current_player", "placements_left", "zone_used") == ["place", 0, 2, True]
    assert table.facts("pile_size", "wilds") == [23, [0, 0]]


def test_a_wild_bag_of_another_player_over_the_limit_is_discarded_before_the_next_player_places() -> None:
    """§5.3: they discard at once; the turn then passes on."""
    table = Table(3)
    table.give_any(1, 7)
    placing(table, 1, 1, 1)
    table.play("stop placing", "visit wild")
    assert table.facts("phase", "current_player", "active_player") == ["discard", 1, 0]
    table.play("discard W")
    assert table.facts("phase", "current_player") == ["place", 2]


def test_a_wild_bag_from_an_empty_pile_comes_from_the_reshuffled_discards() -> None:
    """§5.3, §4.3."""
    table = Table(2)
    table.give_wild(1, (GOLD, 1))
    cards = all_pieces(table.games.ruleset.deck)
    cards.remove((GOLD, 1))
    table.discard(*cards)
    placing(table, 2, 2)
    table.play("visit wild")
    assert table.facts("pile_size", "card_discard", "wilds") == [28, [], [1, 1]]
    tags = table.row["slot_shuffle"][table.row["wild_slots"][:2, 0]]
    assert tags[0] != tags[1]  # §10.1: the one held over the reshuffle is known


@pytest.mark.parametrize(("in_marseille", "coming"), [(7, 3), (2, 2), (0, 0)])
def test_disembark_brings_three_or_as_many_as_there_are(in_marseille: int, coming: int) -> None:
    """§5.4; a zone may be entered even if it brings nothing (§5.2)."""
    table = Table(2)
    table.enter(F, *[0] * (7 - in_marseille))
    placing(table, 2, 2)
    table.play("visit disembark")
    assert (table.state["supply"][0], table.state["marseille"][0]) == (1 + coming, in_marseille - coming)


def test_disembarked_adventurers_can_be_placed_in_the_same_action() -> None:
    """§5.2."""
    table = placing(Table(2), 1, 2)
    table.play("visit disembark", "enter A", "enter A")
    assert table.facts("supply", "current_player") == [[1, 2], 1]


def test_bonus_points_count_at_once_and_do_not_end_the_game() -> None:
    """§5.5, §9.1."""
    table = Table(2)
    table.row["score"][0] = 39
    placing(table, 2, 2)
    table.play("visit points")
    assert table.facts("scores", "phase") == [[41, 0], "place"] and not table.games.over[0]


def test_the_next_scoring_round_ends_a_game_in_which_bonus_points_reached_the_target() -> None:
    """§9.1: though nobody scores in it."""
    table = Table(2)
    table.row["score"][1] = 41
    table.put(A, (RUBY, 1), (EMERALD, 2), (EMERALD, 1))
    chest(table, "put A", "put B", "put C")
    assert table.games.terminated[0] and table.state["winners"] == [1]


def test_reinforcements_come_before_the_next_placement_and_do_not_count() -> None:
    """§5.6: the same dungeon twice is fine, never a bonus zone."""
    table = placing(Table(2), 6, 2)
    table.play("visit reinforcement")
    assert table.facts("phase", "placements_left", "reinforcements_left") == ["reinforce", 2, 2]
    assert table.legal == sorted([*(f"reinforce {letter}" for letter in DUNGEONS), "stop reinforcing"])
    table.play("reinforce A", "reinforce A", "enter B", "enter B")
    assert table.facts("supply", "current_player") == [[1, 2], 1]
    assert [table.state["dungeons"][dungeon]["queue"] for dungeon in (A, B)] == [[0, 0], [0, 0]]


def test_unused_reinforcements_are_lost() -> None:
    """§5.6."""
    table = placing(Table(2), 5, 2)
    table.play("visit reinforcement", "reinforce C", "stop reinforcing")
    assert table.facts("phase", "reinforcements_left", "placements_left") == ["place", 0, 2]
    assert not [move for move in table.legal if "reinforce " in move or "visit" in move]


def test_reinforcement_with_nobody_to_place_asks_nothing() -> None:
    """§5.6, §11.4; it may be entered all the same (§5.2)."""
    table = placing(Table(2), 1, 2)
    table.play("visit reinforcement")
    assert table.facts("phase", "current_player", "reinforcements_left") == ["place", 1, 0]


def test_another_player_may_reinforce_too() -> None:
    """§5.6 with §5.1: one placement, then two more into dungeons."""
    table = placing(Table(2), 1, 3)
    table.play("stop placing", "visit reinforcement", "reinforce E", "reinforce F")
    assert table.facts("phase", "supply") == ["return_marble", [1, 0]]


# --- Treasure chest (§6) ---------------------------------------------------------------------------------------------


def test_three_tokens_go_into_three_dungeons_in_the_order_drawn() -> None:
    """§6.1."""
    table = Table(2)
    table.draw_tokens_next((RUBY, 3), (GOLD, 1), (RUBY, 2))
    table.begin(Lane.CHEST)
    assert table.facts("drawn_tokens", "chest_dungeons") == [[(RUBY, 3), (GOLD, 1), (RUBY, 2)], []]
    assert table.legal == PUTS
    table.play("put C")
    assert table.facts("drawn_tokens", "chest_dungeons") == [[(GOLD, 1), (RUBY, 2)], [C]]
    assert table.legal == [put for put in PUTS if put != "put C"]
    table.play("put A", "put F")
    found = [table.state["dungeons"][dungeon]["tokens"] for dungeon in (A, C, F)]
    assert found == [[(GOLD, 1)], [(RUBY, 3)], [(RUBY, 2)]]
    assert table.facts("phase", "drawn_tokens", "chest_dungeons") == ["return_marble", [], []]


def test_scoring_waits_for_the_third_token() -> None:
    """§6.1, §6.3."""
    table = Table(2)
    table.put(A, (RUBY, 1), (EMERALD, 2), (EMERALD, 1))
    table.enter(A, 0)
    table.give(0, (RUBY, 1))
    lanes = table.state["lanes"]
    chest(table, "put A", "put B")
    assert table.facts("phase", "gather_dungeon") == ["put_token", -1]
    table.play("put C")
    assert table.facts("phase", "gather_dungeon", "lanes") == ["take", A, lanes]  # before the marble moves


@pytest.mark.parametrize("refill", ["empty", "short"])
@pytest.mark.parametrize("left", [0, 2, 3, 4])
def test_the_bag_is_refilled_when_three_cannot_be_drawn_and_by_default_when_a_draw_empties_it(
    left: int, refill: str
) -> None:
    """§6.2: the discards go back first and all three come from the mix; or the last three are drawn first, and what
    lies discarded goes back before they are placed."""
    table = Table(2, by(refill=refill))
    tokens = all_pieces(table.games.ruleset.tokens)
    table.discard_tokens(*tokens[left:])
    table.begin(Lane.CHEST)
    refilled = left < 3 or (left == 3 and refill == "empty")
    state = table.state
    assert state["phase"] == "put_token"
    if left == 3:
        assert sorted(state["drawn_tokens"]) == tokens[:3]
    if refilled:
        assert len(state["bag"]) == 27 and state["token_discard"] == []
    else:
        assert len(state["bag"]) == left - 3 and state["token_discard"] == tokens[left:]
    assert table.row["refills"] == 1 + refilled


def test_tokens_that_are_scored_after_the_bag_was_refilled_stay_out_of_it() -> None:
    """§6.2: only what lies discarded when the draw empties the bag goes back."""
    table = Table(2)
    table.put(A, (RUBY, 1), (RUBY, 2), (RUBY, 3))
    left = [token for token in all_pieces(table.games.ruleset.tokens) if token not in LEFT]
    for token in [(RUBY, 1), (RUBY, 2), (RUBY, 3)]:
        left.remove(token)
    table.discard_tokens(*left, *LEFT)  # of each gold token one is left in the bag
    chest(table, "put A", "put B", "put C")
    assert table.state["token_discard"] == [(GOLD, 1), (RUBY, 1), (RUBY, 2), (RUBY, 3)]  # dungeon A was emptied
    assert table.state["bag"] == sorted([*left, *LEFT])


def test_the_two_tokens_left_in_the_bag_may_stay_there_when_it_is_refilled() -> None:
    """§6.2: all three come from the mix, so what was left is drawn no sooner than the rest."""
    kept = 0
    for seed in range(60):
        table = Table(2)
        table.row["tokens_key"] = seed
        table.discard_tokens(*all_pieces(table.games.ruleset.tokens)[2:])
        table.begin(Lane.CHEST)
        kept += table.state["bag"].count((GOLD, 1)) == 2
    assert 35 < kept < 60  # 27/30 * 26/29 of them, 48.4


# --- Rearrange (§7) --------------------------------------------------------------------------------------------------


def rearranging() -> Table:
    table = Table(2)
    table.lanes([0, 1, 1, 0], [1, 0], [1, 1, 0], [0, 1, 0])
    table.market(GOLD, RUBY, SAPPHIRE, EMERALD, DIAMOND)
    table.begin(Lane.REARRANGE)
    return table


def test_the_rearrangements_of_a_player() -> None:
    """§7.1: own marbles with room below, in any lane, and any marker with room above."""
    table = rearranging()
    assert table.legal == sorted(
        [
            "keep order",
            "marble supply 3 down 1",
            "marble supply 3 down 2",
            "marble adventurers 1 down 1",
            "marble chest 2 down 1",
            "marble chest 2 down 2",
            "marble rearrange 2 down 1",
            "marble rearrange 2 down 2",  # past the bottom it could not go; at the bottom is room
            "market R up 1",
            *(f"market {kind} up {by}" for kind in "SED" for by in (1, 2)),
        ]
    )


@pytest.mark.parametrize(
    ("move", "lane", "marbles"),
    [
        ("marble supply 3 down 1", Lane.SUPPLY, [0, 1, 0, 1]),
        ("marble supply 3 down 2", Lane.SUPPLY, [0, 0, 1, 1]),
        ("marble adventurers 1 down 1", Lane.ADVENTURERS, [0, 1]),
        ("marble chest 2 down 2", Lane.CHEST, [0, 1, 1]),
        ("marble rearrange 2 down 1", Lane.REARRANGE, [0, 0, 1]),
        ("marble rearrange 2 down 2", Lane.REARRANGE, [0, 0, 1]),
    ],
)
def test_a_marble_moves_down_and_those_it_passes_move_up(move: str, lane: int, marbles: list[int]) -> None:
    """§7.1; the marble in use is included (the last case)."""
    table = rearranging()
    before = table.state["lanes"]
    table.play(move)
    after = table.state["lanes"]
    assert after[lane] == marbles
    assert [after[i] for i in range(4) if i != lane] == [before[i] for i in range(4) if i != lane]
    assert table.facts("phase", "market") == ["return_marble", [GOLD, RUBY, SAPPHIRE, EMERALD, DIAMOND]]


@pytest.mark.parametrize(
    ("move", "market"),
    [
        ("market R up 1", [RUBY, GOLD, SAPPHIRE, EMERALD, DIAMOND]),
        ("market S up 2", [SAPPHIRE, GOLD, RUBY, EMERALD, DIAMOND]),
        ("market D up 1", [GOLD, RUBY, SAPPHIRE, DIAMOND, EMERALD]),
        ("market D up 2", [GOLD, RUBY, DIAMOND, SAPPHIRE, EMERALD]),
    ],
)
def test_a_marker_moves_up_and_those_it_passes_move_down(move: str, market: list[int]) -> None:
    """§7.1."""
    table = rearranging()
    before = table.state["lanes"]
    table.play(move)
    assert table.facts("market", "lanes", "phase") == [market, before, "return_marble"]


def test_a_move_past_ones_own_marble_has_no_effect_but_is_legal() -> None:
    """§7.1."""
    table = Table(2)
    table.lanes([1, 0, 0, 1], [1, 0], [1, 1, 0], [0, 1, 0])
    table.begin(Lane.REARRANGE)
    before = table.state["lanes"]
    assert "marble supply 2 down 1" in table.legal
    table.play("marble supply 2 down 1")
    assert table.state["lanes"] == before


def test_after_the_marble_in_use_was_passed_the_bottom_marble_is_the_one_returned() -> None:
    """§3.2, §7.1: another marble of theirs moved below it, so the lane's new bottom marble is theirs too."""
    table = rearranging()
    table.play("marble rearrange 2 down 2", "return adventurers")
    assert table.state["lanes"][Lane.ADVENTURERS] == [1, 0, 0] and table.state["lanes"][Lane.REARRANGE] == [0, 1]


# --- Scoring round (§8) ----------------------------------------------------------------------------------------------


def gatherers(*queue: int, n: int = 4) -> list[int]:
    """The order in which players gather in a dungeon with this queue."""
    table = Table(n)
    table.put(B, (RUBY, 1), (RUBY, 2), (SAPPHIRE, 1))
    table.enter(B, *queue)
    for player in range(n):
        table.give_wild(player)
    chest(table, "put B", "put C", "put D")
    assert table.state["gather_dungeon"] == B
    order = table.state["gather_order"]
    asked = []
    while table.state["phase"] == "take":
        asked.append(table.state["current_player"])
        table.play("stop taking")
    assert asked == order  # each has one turn
    return [int(seat) for seat in order]


@pytest.mark.parametrize(
    ("queue", "order"),
    [
        ([0, 1, 1], [1, 0]),  # most adventurers first
        ([1, 0], [1, 0]),  # a tie: the foremost stands further up
        ([2, 0, 0, 2], [2, 0]),
        ([3, 2, 1, 0], [3, 2, 1, 0]),
        ([0, 3, 3, 1, 2, 2], [3, 2, 0, 1]),  # two ties
        ([1, 0, 0, 0, 1, 1, 2, 2, 2, 2], [2, 1, 0]),
    ],
)
def test_most_adventurers_first_and_ties_to_the_foremost(queue: list[int], order: list[int]) -> None:
    """§8.2."""
    assert gatherers(*queue) == order


def test_the_order_is_counted_when_the_dungeons_turn_begins() -> None:
    """§8.2: losing adventurers during the gathering changes nothing any more."""
    table = Table(2)
    table.put(A, (RUBY, 1), (RUBY, 1), (RUBY, 2))
    table.enter(A, 0, 0, 1)
    table.give(0, (RUBY, 3))
    table.give(1, (RUBY, 3))
    chest(table, "put A", "put C", "put D", "take R1")
    assert table.facts("current_player", "gather_order") == [0, [0, 1]]
    table.play("take R1")
    assert table.facts("current_player", "gather_order") == [1, [1]]


def test_gathering_goes_through_all_dungeons_from_a_to_f() -> None:
    """§8.1: also those with fewer than four tokens."""
    table = Table(2)
    table.put(D, (RUBY, 1), (RUBY, 1), (RUBY, 2))
    for dungeon, token in ((A, (SAPPHIRE, 1)), (F, (EMERALD, 1))):
        table.put(dungeon, token)
        table.enter(dungeon, 1)
    table.enter(D, 1)
    table.give_wild(1)
    chest(table, "put D", "put B", "put C")
    visited = []
    while table.state["phase"] == "take":
        visited.append(table.state["gather_dungeon"])
        table.play("stop taking")
    assert visited == [A, D, F]


def test_who_cannot_pay_or_has_no_adventurer_is_not_asked() -> None:
    """§8.3, §11.4: with nothing to take there is no decision."""
    table = Table(3)
    table.put(A, (RUBY, 3), (RUBY, 2), (SAPPHIRE, 2))
    table.enter(A, 0, 2)
    table.give(0, (SAPPHIRE, 1), (EMERALD, 3))  # too few bags of each kind
    table.give(1, (RUBY, 3))  # nobody there
    table.give(2, (RUBY, 1), (RUBY, 1))
    chest(table, "put A", "put C", "put D")
    assert table.facts("phase", "current_player") == ["take", 2]
    assert table.legal == ["stop taking", "take R2"]


def test_any_card_of_the_kind_may_be_chosen_while_something_is_owed() -> None:
    """§11.2, §11.3: equal cards are one action."""
    table = Table(2)
    table.put(A, (RUBY, 3), (RUBY, 2), (SAPPHIRE, 2))
    table.enter(A, 0)
    table.give(0, (RUBY, 1), (RUBY, 1), (RUBY, 2), (RUBY, 3), (SAPPHIRE, 3))
    table.give_wild(0)
    chest(table, "put A", "put C", "put D", "take R3")
    assert table.legal == ["pay R1", "pay R2", "pay R3", "pay W"]
    table.play("pay R1")
    assert table.facts("taking", "left_over_bags", "phase") == [(RUBY, 3), [[0, 1, 0, 0, 0], [0] * 5], "pay"]
    assert table.state["dungeons"][A]["queue"] == [0]  # the adventurer moves when the price is met (§8.3)
    table.play("pay W")
    assert table.state["left_over_bags"][0] == [0, 2, 0, 0, 0] and table.legal == ["pay R1", "pay R2", "pay R3"]
    table.play("pay R3")
    assert table.state["dungeons"][A]["queue"] == [] and table.state["scores"][0] > 0


def test_left_over_bags_stay_usable_for_the_kind_in_the_same_turn_only() -> None:
    """§8.4: used first for a further token; lost in the next dungeon."""
    table = Table(2)
    table.put(A, (RUBY, 1), (RUBY, 2), (RUBY, 1))
    table.put(B, (RUBY, 2))
    table.enter(A, 0, 0)
    table.enter(B, 0)
    table.give(0, (RUBY, 3), (RUBY, 1))
    chest(table, "put A", "put C", "put D", "take R1", "pay R3")
    assert table.state["left_over_bags"][0] == [0, 2, 0, 0, 0]
    assert table.legal == ["stop taking", "take R1", "take R2"]
    table.play("take R1")  # with the left-over bags: the 1-bag card is not asked for
    assert table.state["hands"][0] == [(RUBY, 1)]
    assert table.state["phase"] == "return_marble"  # the last left-over bag is lost: no Ruby-2 in B for one bag


def test_left_over_bags_are_lost_at_the_end_of_the_turn() -> None:
    """§8.4: also before the same player's turn in the next dungeon."""
    table = Table(2)
    table.put(A, (RUBY, 1), (RUBY, 2), (RUBY, 1))
    table.put(B, (RUBY, 2))
    table.enter(A, 0, 0)
    table.enter(B, 0)
    table.give(0, (RUBY, 3), (RUBY, 2))
    chest(table, "put A", "put C", "put D", "take R1", "pay R3", "stop taking")
    assert table.facts("gather_dungeon", "left_over_bags", "phase") == [B, [[0] * 5] * 2, "take"]
    table.play("take R2")
    assert table.forced[-1] == "pay R2"


def test_left_over_bags_are_used_first_and_then_cards_are_asked() -> None:
    """§8.4, §11.2: 1 left over, so a value of 3 needs 2 more."""
    table = Table(2)
    table.put(A, (RUBY, 1), (RUBY, 3), (SAPPHIRE, 1))
    table.enter(A, 0, 0)
    table.give(0, (RUBY, 2), (RUBY, 1))
    table.give_wild(0)
    chest(table, "put A", "put C", "put D", "take R1", "pay R2", "take R3")
    assert table.facts("left_over_bags", "phase") == [[[0, 1, 0, 0, 0], [0] * 5], "pay"]
    table.play("pay R1")
    assert table.forced[-1] == "pay W" and table.state["hands"][0] == []


def test_in_a_variant_left_over_bags_last_until_the_scoring_round_ends() -> None:
    """§8.4: also after their player stopped in a dungeon and others had their turns; everybody sees them."""
    table = Table(2, by(left_over_bags="round"))
    table.market(RUBY, SAPPHIRE, GOLD, EMERALD, DIAMOND)
    table.put(A, (RUBY, 1), (RUBY, 1), (SAPPHIRE, 3))
    table.put(B, (RUBY, 3))
    table.put(F, (RUBY, 2))
    table.enter(A, 0, 0, 1)
    table.enter(B, 0)
    table.enter(F, 0)
    table.give(0, (RUBY, 3))
    table.give(1, (RUBY, 2))
    chest(table, "put A", "put C", "put D", "take R1", "stop taking")
    assert table.facts("gather_dungeon", "current_player") == [A, 1]
    assert table.state["left_over_bags"] == [[0, 2, 0, 0, 0], [0] * 5]
    table.play("take R1")  # in B two bags are too few for a Ruby-3: player 0 is not asked
    assert table.facts("gather_dungeon", "current_player", "phase") == [F, 0, "take"]
    assert table.state["left_over_bags"] == [[0, 2, 0, 0, 0], [0, 1, 0, 0, 0]]
    forced = list(table.forced)
    table.play("take R2")  # with the bags left over in A
    assert table.forced == forced and table.facts("phase", "scores") == ["return_marble", [3 + 6, 3]]
    assert table.state["left_over_bags"] == [[0] * 5] * 2


def test_in_that_variant_left_over_bags_of_an_earlier_dungeon_are_used_before_a_card() -> None:
    """§8.4: one is left over in A, so a Ruby-2 in B costs one more."""
    table = Table(2, by(left_over_bags="round"))
    table.put(A, (RUBY, 1), (SAPPHIRE, 1), (SAPPHIRE, 3))
    table.put(B, (RUBY, 2))
    table.enter(A, 0)
    table.enter(B, 0)
    table.give(0, (RUBY, 2))
    table.give_wild(0)
    chest(table, "put A", "put C", "put D", "take R1", "pay R2")
    assert table.facts("gather_dungeon", "left_over_bags") == [B, [[0, 1, 0, 0, 0], [0] * 5]]
    table.play("take R2")
    assert table.forced[-1] == "pay W" and table.state["phase"] == "return_marble"


def test_left_over_bags_of_one_kind_pay_for_no_other() -> None:
    """§8.4."""
    table = Table(2)
    table.put(A, (RUBY, 1), (SAPPHIRE, 1), (EMERALD, 1))
    table.enter(A, 0, 0, 0)
    table.give(0, (RUBY, 3))
    chest(table, "put A", "put C", "put D", "take R1")
    assert table.state["phase"] == "return_marble"  # no ruby is left, nothing else can be paid


def test_after_gathering_full_dungeons_and_bonus_zones_are_emptied() -> None:
    """§8.6: a dungeon that still holds four tokens; others keep theirs; adventurers in dungeons stay."""
    table = Table(3)
    table.put(A, (RUBY, 1), (RUBY, 2), (SAPPHIRE, 3))
    table.put(B, (EMERALD, 1), (EMERALD, 2), (EMERALD, 3))
    table.put(C, (DIAMOND, 1))
    table.enter(A, 1)
    table.enter(B, 0, 1)
    table.visit(Zone.POINTS, 0)
    table.visit(Zone.WILD, 0)
    table.visit(Zone.WILD, 2)
    table.give(0, (EMERALD, 1))
    marseille = table.state["marseille"]
    chest(table, "put A", "put B", "put D", "take E1")
    state = table.state
    assert [len(dungeon["tokens"]) for dungeon in state["dungeons"]] == [0, 3, 1, 1, 0, 0]
    assert state["token_discard"] == sorted([(GOLD, 1), (RUBY, 1), (RUBY, 2), (SAPPHIRE, 3), (EMERALD, 1)])
    assert state["zones"] == [[], [], [], []]
    assert state["marseille"] == [marseille[0] + 3, marseille[1], marseille[2] + 1]
    assert [dungeon["queue"] for dungeon in state["dungeons"]][:2] == [[1], [1]]


def test_scores_do_not_change_before_gathering_is_over() -> None:
    """§8.7: until then gathered tokens lie in front of their player."""
    table = Table(2)
    table.market(RUBY, SAPPHIRE, GOLD, EMERALD, DIAMOND)
    table.put(A, (RUBY, 3), (SAPPHIRE, 2), (SAPPHIRE, 3))
    table.put(F, (EMERALD, 2))
    table.enter(A, 0, 1)
    table.enter(F, 0)
    table.give(0, (RUBY, 3), (EMERALD, 2))
    table.give(1, (SAPPHIRE, 2))
    chest(table, "put A", "put C", "put D", "take R3", "take S2")
    assert table.facts("gathered", "scores") == [[[(RUBY, 3)], [(SAPPHIRE, 2)]], [0, 0]]
    table.play("take E2")
    assert table.facts("gathered", "scores") == [[[], []], [9 + 2, 4]]


def test_a_player_may_refuse_to_take() -> None:
    """§8.3; the rulebook's note."""
    table = Table(2)
    table.put(A, (RUBY, 1), (RUBY, 2), (RUBY, 3))
    table.enter(A, 0)
    table.give(0, (RUBY, 3))
    chest(table, "put A", "put C", "put D", "stop taking")
    assert table.facts("scores", "phase") == [[0, 0], "return_marble"]
    assert table.state["hands"][0] == [(RUBY, 3)] and table.state["dungeons"][A]["queue"] == [0]


# --- The end (§9) ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("score", "over"), [(38, False), (39, True), (40, True)])
def test_the_target_reached_at_the_end_of_a_scoring_round_ends_the_game(score: int, over: bool) -> None:
    """§9.1: 40 points or more; the last point comes from a Ruby-1 at 1."""
    table = Table(2)
    table.market(GOLD, SAPPHIRE, EMERALD, DIAMOND, RUBY)
    table.row["score"][1] = score
    table.put(A, (RUBY, 1), (RUBY, 2), (RUBY, 3))
    table.enter(A, 1)
    table.give(1, (RUBY, 1))
    chest(table, "put A", "put C", "put D", "take R1")
    assert table.games.terminated[0] == over and not table.games.truncated[0]
    assert table.state["scores"][1] == score + 1


@pytest.mark.parametrize(
    ("game_end", "score", "over"), [("scoring", 41, False), ("chest", 39, False), ("chest", 40, True)]
)
def test_in_a_variant_a_chest_action_without_scoring_ends_the_game(game_end: str, score: int, over: bool) -> None:
    """§9.1: after the third token; the marble stays (§3.2), and so do adventurers in bonus zones."""
    table = Table(2, by(game_end=game_end))
    table.row["score"][1] = score
    table.visit(Zone.POINTS, 1)
    lanes = table.state["lanes"]
    chest(table, "put A", "put B")
    assert not table.games.over[0]
    table.play("put C")
    assert table.games.terminated[0] == over and not table.games.truncated[0]
    assert table.facts("phase", "winners") == (["over", [1]] if over else ["return_marble", []])
    assert table.state["lanes"] == lanes and table.state["zones"][Zone.POINTS] == [1]


def test_in_that_variant_a_full_dungeon_is_scored_first() -> None:
    """§9.1: who leads may change."""
    table = Table(2, by(game_end="chest"))
    table.market(RUBY, SAPPHIRE, GOLD, EMERALD, DIAMOND)
    table.row["score"][:2] = [35, 40]
    table.put(A, (RUBY, 1), (RUBY, 2), (RUBY, 3))
    table.enter(A, 0)
    table.give(0, (RUBY, 3))
    chest(table, "put A", "put B", "put C")
    assert table.state["phase"] == "take" and not table.games.over[0]
    table.play("take R3")
    assert table.games.terminated[0] and table.facts("scores", "winners") == [[44, 40], [0]]


def test_in_that_variant_a_skipped_chest_lane_ends_nothing() -> None:
    """§9.1 with §3.5."""
    table = Table(3, by(game_end="chest"))
    table.row["score"][0] = 40
    table.lanes([0, 1, 2, 0], [1, 2, 1, 2], [], [0, 1, 2, 0])
    table.begin(Lane.CHEST)
    assert table.facts("phase", "cylinder") == ["rearrange", Lane.REARRANGE] and not table.games.over[0]


@pytest.mark.parametrize(
    ("scores", "crews", "winners", "win", "rank"),
    [
        ([50, 41, 41], [0, 3, 3], [0], [1, -0.5, -0.5], [1, -0.5, -0.5]),  # most points
        ([41, 50, 50], [3, 1, 2], [2], [-0.5, -0.5, 1], [-1, 0, 1]),  # most adventurers in dungeons
        ([50, 50, 41], [2, 2, 3], [0, 1], [0.25, 0.25, -0.5], [0.5, 0.5, -1]),  # shared
        ([50, 50, 50], [0, 0, 0], [0, 1, 2], [0, 0, 0], [0, 0, 0]),
    ],
)
def test_winners_and_rewards(
    scores: list[int], crews: list[int], winners: list[int], win: list[float], rank: list[float]
) -> None:
    """§9.2, §9.3; adventurers of all dungeons count."""
    table = Table(3)
    table.row["score"][:3] = scores
    for player, crew in enumerate(crews):
        for i in range(crew):
            table.enter((player + i) % 6, player)
    table.put(A, (RUBY, 1), (RUBY, 2), (RUBY, 3))
    table.draw_tokens_next(*LEFT)
    table.begin(Lane.CHEST)
    table.play("put A", "put B")
    margin = [(own - (sum(scores) - own) / 2) / 40 for own in scores]
    for reward, expected in (("win", win), ("rank", rank), ("margin", margin)):
        games = table.games.copy()
        games.reward, games.reward_kind = reward, ("win", "rank", "margin").index(reward)
        games.step([CODE["put C"]])
        assert games.terminated[0] and np.flatnonzero(games.winners[0]).tolist() == winners
        np.testing.assert_allclose(games.rewards[0], [*expected, 0], atol=1e-6)


def test_a_game_is_cut_off_when_the_cylinder_would_begin_the_round_after_the_limit() -> None:
    """§9.4: nothing is drawn, the round number stays; a lead decides as usual (§9.2)."""
    table = Table(2, Ruleset(round_limit=7))
    table.row["round_number"] = 7
    table.row["score"][:2] = [3, 5]
    table.begin(Lane.REARRANGE)
    pile = table.pile_cards()
    table.play("keep order")
    assert not table.games.over[0]
    table.play("return chest")
    assert table.games.truncated[0] and not table.games.terminated[0]
    assert table.facts("round", "phase", "winners", "offer") == [7, "over", [1], []]
    assert table.pile_cards() == pile and table.state["cylinder"] == Lane.REARRANGE


def test_the_round_before_the_limit_is_followed_by_another() -> None:
    """§9.4."""
    table = Table(2, Ruleset(round_limit=7))
    table.row["round_number"] = 6
    table.begin(Lane.REARRANGE)
    table.play("keep order", "return chest")
    assert table.facts("round", "cylinder") == [7, Lane.SUPPLY] and not table.games.over[0]


def test_a_game_is_cut_off_though_its_last_lane_is_empty() -> None:
    """§9.4 with §3.5."""
    table = Table(3, Ruleset(round_limit=2))
    table.row["round_number"] = 2
    table.lanes([0, 1, 2, 0], [0, 1, 2, 0], [1, 2, 1, 2], [])
    chest(table, "put A", "put B", "put C", "return supply")
    assert table.games.truncated[0] and table.facts("round", "phase") == [2, "over"]


def test_a_game_that_ends_by_points_in_the_last_round_is_a_termination() -> None:
    """§9.4."""
    table = Table(2, Ruleset(round_limit=2))
    table.row["round_number"] = 2
    table.row["score"][0] = 45
    table.put(A, (RUBY, 1), (RUBY, 2), (RUBY, 3))
    chest(table, "put A", "put B", "put C")
    assert table.games.terminated[0] and not table.games.truncated[0]


# --- Decisions (§11) -------------------------------------------------------------------------------------------------


def test_equal_cards_are_one_action_and_so_forced() -> None:
    """§11.3, §11.4: at the start of a game too."""
    table = Table(2)
    table.draw_next((GOLD, 1), (GOLD, 1))
    table.begin()
    assert table.forced == ["deal G1", "deal G1"] and table.state["phase"] == "return_marble"


def test_the_engine_plays_forced_moves_by_itself() -> None:
    """§11.4: `GameBatch` always stands at a real choice, at reset too."""
    ruleset = Ruleset(deck=((30, 0, 0), *((0, 0, 0),) * 4))  # every deal is forced
    games = GameBatch(2 if INTERPRETED else 50, 3, seed=0, ruleset=ruleset)
    while not games.over.all():
        living = ~games.over
        assert (games.action_mask()[living].sum(axis=1) >= 2).all()
        assert not (games.states["decision"][living] == 0).any()  # never a deal
        games.step(games.sample_actions())
