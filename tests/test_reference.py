"""The twin itself on situations made by hand, and random games in which nothing may get lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

import reference
from reference import Card, Game, Rules, Setup, Token

GOLD, RUBY, SAPPHIRE, EMERALD, DIAMOND = range(5)
A, B, C, D, E, F = range(6)
WILD, DISEMBARK, POINTS, REINFORCEMENT = range(4)

LANES = {
    2: [[0, 1, 0], [1, 0, 1], [0, 0, 1], [1, 1, 0]],
    3: [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]],
    4: [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]],
}
SETUPS: dict[int, Setup] = {
    n: {
        "lanes": LANES[n],
        "market": [RUBY, SAPPHIRE, GOLD, EMERALD, DIAMOND],
        "dungeons": [(GOLD, 1), (RUBY, 1), (SAPPHIRE, 1), (EMERALD, 1), (DIAMOND, 1), (GOLD, 2)],
    }
    for n in (2, 3, 4)
}
FIRST_CARDS: list[Card] = [(GOLD, 1), (RUBY, 2), (SAPPHIRE, 3), (EMERALD, 2)]


class ScriptedChance:
    """Brings what the test says, in that order."""

    def __init__(self, cards: Sequence[Card] = (), tokens: Sequence[Sequence[Token]] = ()) -> None:
        self.cards = list(cards)
        self.tokens = list(tokens)

    def draw_card(self) -> Card:
        return self.cards.pop(0)

    def draw_tokens(self) -> Sequence[Token]:
        return self.tokens.pop(0)


class RandomChance:
    """Brings anything that can be, each hidden place of a shuffle being equally likely (§10.1)."""

    def __init__(self, game: Game, rng: random.Random) -> None:
        self.game = game
        self.rng = rng

    def draw_card(self) -> Card:
        return self.rng.choice(sorted(self.game.unseen[self.game.pile[0]].elements()))

    def draw_tokens(self) -> Sequence[Token]:
        return self.rng.sample(sorted(self.game.bag.elements()), 3)


class RandomGame(Game):
    """A game whose setup and chance are random."""

    def __init__(self, num_players: int, seed: int, rules: Rules = reference.STANDARD) -> None:
        self.rng = random.Random(seed)
        super().__init__(num_players, random_setup(num_players, rules, self.rng), rules, RandomChance(self, self.rng))

    def play_at_random(self) -> None:
        self.play(self.rng.choice(self.legal()))


def random_setup(num_players: int, rules: Rules, rng: random.Random) -> Setup:
    lanes = [list(range(num_players)) for _ in range(4)]
    if num_players == 2:  # §2.1: two lanes with a second red, two with a second blue
        for lane, extra in zip(lanes, rng.sample([0, 0, 1, 1], 4), strict=True):
            lane.append(extra)
    for lane in lanes:
        rng.shuffle(lane)
    tokens = sorted(reference.pieces(rules.tokens).elements())
    return {"lanes": lanes, "market": rng.sample(range(5), 5), "dungeons": rng.sample(tokens, 6)}


# --- Making situations by hand ---------------------------------------------------------------------------------------


def new_game(
    n: int,
    cards: Sequence[Card] = (),
    tokens: Sequence[Sequence[Token]] = (),
    rules: Rules = reference.STANDARD,
) -> Game:
    """A game before its first deal; `cards` and `tokens` are what will be drawn."""
    game = Game(n, SETUPS[n], rules, ScriptedChance(FIRST_CARDS[:n]))
    game.unseen[0] += Counter(game.offer)
    game.pile += [0] * len(game.offer)
    game.offer.clear()
    game.recipients.clear()
    game.log.clear()
    game.chance = ScriptedChance(cards, tokens)
    assert_conserved(game)
    return game


def give(game: Game, player: int, *cards: Card) -> None:
    """Put unseen cards of the pile's first shuffle into a hand."""
    for card in cards:
        take_unseen(game, card)
        game.hands[player].append(card)


def discard(game: Game, *cards: Card) -> None:
    for card in cards:
        take_unseen(game, card)
        game.card_discard.append(card)


def take_unseen(game: Game, card: Card) -> None:
    assert game.unseen[0][card], f"{card} is not there"
    game.unseen[0] -= Counter([card])
    game.pile.remove(0)


def give_wild(game: Game, player: int, number: int = 1) -> None:
    for _ in range(number):
        game.wilds[player].append(game.pile.pop(0))


def enter(game: Game, dungeon: int, *seats: int) -> None:
    for seat in seats:
        game.marseille[seat] -= 1
        game.queues[dungeon].append(seat)


def put(game: Game, dungeon: int, *tokens: Token) -> None:
    for token in tokens:
        assert game.bag[token], f"{token} is not there"
        game.bag -= Counter([token])
        game.treasures[dungeon].append(token)


def rest(game: Game) -> list[Card]:
    return sorted(game.unseen[0].elements())


def play(game: Game, *actions: str) -> None:
    for action in actions:
        game.play(action)
        assert_conserved(game)


def moves(game: Game) -> list[str]:
    return [event[2] for event in game.log if event[0] == "move"]


def forced_moves(game: Game) -> list[str]:
    return [event[2] for event in game.log if event[0] == "move" and event[3]]


def assert_conserved(game: Game) -> None:
    """§1.4 to §1.7, §3.3, §4.5: every piece is somewhere, once."""
    state = game.public_state()
    for seat in range(game.n):
        in_queues = sum(dungeon["queue"].count(seat) for dungeon in state["dungeons"])
        in_zones = sum(zone.count(seat) for zone in state["zones"])
        assert state["supply"][seat] >= 0 and state["marseille"][seat] >= 0
        assert state["supply"][seat] + state["marseille"][seat] + in_queues + in_zones == 9

    seen = Counter(card for hand in state["hands"] for card in hand)
    seen.update(state["offer"])
    seen.update(state["card_discard"])
    for unseen in game.unseen:
        seen.update(unseen)
    assert seen == reference.pieces(game.rules.deck)
    places = Counter(game.pile)
    for wilds in game.wilds:
        places.update(wilds)
    assert places == +Counter({shuffle: unseen.total() for shuffle, unseen in enumerate(game.unseen)})
    assert sum(map(len, state["hands"])) + sum(state["wilds"]) + len(state["offer"]) + state["pile_size"] + len(
        state["card_discard"]
    ) == sum(map(sum, game.rules.deck))

    tokens = Counter(state["bag"] + state["token_discard"] + state["drawn_tokens"])
    for holder in [dungeon["tokens"] for dungeon in state["dungeons"]] + state["gathered"]:
        tokens.update(holder)
    assert tokens == reference.pieces(game.rules.tokens)

    assert Counter(seat for lane in state["lanes"] for seat in lane) == dict.fromkeys(
        range(game.n), 6 if game.n == 2 else 4
    )
    assert all(len(lane) <= 7 and max(Counter(lane).values(), default=0) <= 3 for lane in state["lanes"])


# --- Rules and setup -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        {"deck": ((2, 2, 2),) * 4 + ((2, 2, 1),)},
        {"tokens": ((2, 2, 2),) * 4},
        {"market": (1, 2, 2, 1, 1)},
        {"target": 0},
        {"round_limit": 0},
        *({name: "sometimes"} for name in reference.VARIANTS),  # §1.10
    ],
)
def test_rules_that_cannot_be_played_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Rules(**broken)


def test_the_first_decision_is_the_first_deal() -> None:
    game = Game(3, SETUPS[3], chance=ScriptedChance(FIRST_CARDS))
    state = game.public_state()
    assert game.legal() == ["deal G1", "deal R2", "deal S3"]
    assert (state["round"], state["cylinder"], state["phase"]) == (1, 0, "deal")
    assert state["active_player"] == state["current_player"] == 0
    assert state["supply"] == [2, 2, 2] and state["marseille"] == [7, 7, 7]
    assert state["offer"] == [(GOLD, 1), (RUBY, 2), (SAPPHIRE, 3)] and state["pile_size"] == 27
    assert len(state["bag"]) == 24 and [len(dungeon["tokens"]) for dungeon in state["dungeons"]] == [1] * 6
    assert_conserved(game)


def test_setup_with_a_token_too_many_is_refused() -> None:
    setup = SETUPS[2].copy()
    setup["dungeons"] = [(GOLD, 1)] * 3 + [(RUBY, 1)] * 3
    with pytest.raises(AssertionError, match="no such tokens"):
        Game(2, setup, chance=ScriptedChance(FIRST_CARDS))


def test_illegal_action_names_the_legal_ones() -> None:
    game = Game(2, SETUPS[2], chance=ScriptedChance(FIRST_CARDS))
    with pytest.raises(ValueError, match="deal G1, deal R2"):
        game.play("deal S3")


def test_impossible_draws_are_refused() -> None:
    with pytest.raises(AssertionError, match="cannot be drawn"):
        Game(3, SETUPS[3], chance=ScriptedChance([(GOLD, 1)] * 3))
    game = new_game(2, tokens=[[(GOLD, 1), (GOLD, 1), (RUBY, 2)]])  # one Gold-1 lies in dungeon A
    with pytest.raises(AssertionError, match="the bag holds"):
        game.follow(game.treasure_chest_action())


# --- The slide (§3) --------------------------------------------------------------------------------------------------


def test_lanes_with_seven_marbles_or_three_of_a_colour_take_no_marble() -> None:
    game = new_game(4)
    game.lanes = [[0], [1, 1, 1, 2, 2, 2, 3], [0, 0, 0, 1], [2, 3, 3, 3]]
    game.active_player = 0
    game.follow(game.return_marble())
    assert forced_moves(game) == ["return rearrange"]  # §3.3
    assert game.lanes == [[], [1, 1, 1, 2, 2, 2, 3], [0, 0, 0, 1], [2, 3, 3, 3, 0]]
    assert game.corners["lane full"] == 1


def test_an_empty_lane_is_skipped_and_can_be_given_a_marble() -> None:
    game = new_game(3)
    game.lanes = [[0, 1, 2, 0], [], [1, 2, 1, 2], [0, 1, 2, 0]]
    game.cylinder = reference.ADVENTURERS
    game.active_player = 0
    game.chance = ScriptedChance(tokens=[[(GOLD, 3), (RUBY, 3), (EMERALD, 3)]])
    game.follow(game.rounds())
    state = game.public_state()
    assert game.corners["empty lane"] == 1  # §3.5
    assert (state["cylinder"], state["phase"], state["active_player"]) == (2, "put_token", 1)
    play(game, "put A", "put B", "put C")
    assert game.legal() == ["return adventurers", "return rearrange", "return supply"]
    play(game, "return adventurers")
    assert game.lanes[reference.ADVENTURERS] == [1]


def test_a_used_marble_on_the_empty_next_lane_makes_its_owner_active_again() -> None:
    game = new_game(3)
    game.lanes = [[0, 1, 2, 0, 1, 2], [1, 2, 1, 2, 0], [0], []]
    game.cylinder = reference.CHEST
    game.chance = ScriptedChance(tokens=[[(GOLD, 3), (RUBY, 3), (EMERALD, 3)]])
    game.follow(game.rounds())
    play(game, "put A", "put B", "put C", "return rearrange")  # §3.5
    state = game.public_state()
    assert (state["phase"], state["active_player"], state["lanes"][3]) == ("rearrange", 0, [0])


# --- Supply (§4) -----------------------------------------------------------------------------------------------------


def test_the_active_player_serves_themselves_first_then_clockwise() -> None:
    game = new_game(3, cards=[(GOLD, 1), (RUBY, 2), (SAPPHIRE, 3)])
    game.active_player = 1
    game.follow(game.supply_action())
    play(game, "deal G1")
    assert game.supply == [2, 5, 2]  # §4.2: before the next card is dealt
    assert game.public_state()["current_player"] == 1
    play(game, "deal S3")
    assert game.hands == [[(RUBY, 2)], [(GOLD, 1)], [(SAPPHIRE, 3)]]
    assert game.supply == [4, 5, 3] and game.marseille == [5, 4, 6]
    assert forced_moves(game) == ["deal R2"]  # §11.4
    assert game.log[0] == ("draw", (GOLD, 1)) and game.log[-1] == ("move", 1, "deal R2", True)


def test_equal_cards_are_one_action() -> None:
    game = new_game(2, cards=[(GOLD, 1), (GOLD, 1)])
    game.active_player = 0
    game.follow(game.supply_action())
    assert game.legal() == [] and forced_moves(game) == ["deal G1", "deal G1"]  # §11.3, §11.4


def test_marseille_gives_only_what_it_has() -> None:
    game = new_game(2, cards=[(GOLD, 1), (RUBY, 1)])
    game.active_player = 0
    enter(game, A, *[0] * 6)
    game.follow(game.supply_action())
    play(game, "deal G1")
    assert game.supply[0] == 3 and game.marseille[0] == 0


def test_a_short_pile_is_drawn_before_the_discards_are_shuffled() -> None:
    game = new_game(2)
    give_wild(game, 0, 2)
    discard(game, *rest(game)[:27])
    assert len(game.pile) == 1
    first = rest(game)[0]
    second = game.card_discard[0]
    game.chance = ScriptedChance([first, second])
    game.active_player = 1
    game.follow(game.supply_action())
    assert [event[0] for event in game.log[:3]] == ["draw", "shuffle", "draw"]  # §4.3
    assert game.public_state()["pile_size"] == 26 and game.card_discard == []
    assert game.unseen[0].total() == 2 and game.unseen[1].total() == 26  # §10.1
    assert game.corners["reshuffle within a deal"] == 1
    assert_conserved(game)


def test_the_pile_is_not_shuffled_before_a_card_is_needed() -> None:
    game = new_game(2)
    discard(game, *rest(game)[:28])
    game.chance = ScriptedChance(rest(game))
    game.active_player = 0
    game.follow(game.supply_action())
    assert ("shuffle",) not in game.log and game.pile == [] and len(game.card_discard) == 28


def last_cards_drawn(reshuffle: str, cards_left: int, discards: int) -> Game:
    """A deal to two players from a pile of cards, beside discards; the other cards are wild bags."""
    game = new_game(2, rules=Rules(reshuffle=reshuffle))
    discard(game, *rest(game)[:discards])
    give_wild(game, 0, 5)
    give_wild(game, 1, len(game.pile) - cards_left)
    drawn = [*rest(game)[:cards_left], *game.card_discard][:2]
    game.chance = ScriptedChance(drawn)
    game.active_player = 0
    game.follow(game.supply_action())
    assert_conserved(game)
    return game


@pytest.mark.parametrize(
    ("reshuffle", "cards_left", "events"),
    [
        ("needed", 1, ["draw", "shuffle", "draw"]),
        ("needed", 2, ["draw", "draw"]),
        ("needed", 3, ["draw", "draw"]),
        ("empty", 1, ["draw", "shuffle", "draw"]),
        ("empty", 2, ["draw", "draw", "shuffle"]),  # though no card is needed
        ("empty", 3, ["draw", "draw"]),
    ],
)
def test_the_discards_are_shuffled_when_needed_or_on_the_last_card(
    reshuffle: str, cards_left: int, events: list[str]
) -> None:
    """§4.3."""
    game = last_cards_drawn(reshuffle, cards_left, discards=20)
    assert [event[0] for event in game.log][: len(events)] == events
    assert len([event for event in game.log if event[0] == "shuffle"]) == events.count("shuffle")
    assert len(game.pile) + len(game.card_discard) == 20 + cards_left - 2
    assert game.corners["reshuffle on the last card"] == (reshuffle == "empty" and cards_left < 3)


def test_without_discards_the_last_card_makes_no_new_pile_and_later_discards_wait_for_a_draw() -> None:
    """§4.3 in the variant "empty": a card discarded beside the empty pile is no draw."""
    game = new_game(4, cards=[(DIAMOND, 1), (DIAMOND, 2)], rules=Rules(reshuffle="empty"))
    for bags in (1, 2):
        take_unseen(game, (DIAMOND, bags))  # to be drawn, so in nobody's hand
    for player in range(4):
        give(game, player, *rest(game)[:7])
    game.unseen[0] += Counter([(DIAMOND, 1), (DIAMOND, 2)])
    game.pile += [0, 0]
    game.active_player = 0
    game.follow(game.supply_action())
    assert ("shuffle",) not in game.log and game.pile == [] and game.corners["last card, no discards"] == 1
    play(game, "deal D1", "discard D1")
    assert ("shuffle",) not in game.log and game.pile == [] and game.card_discard == [(DIAMOND, 1)]
    play(game, "discard D2")  # it went to player 1
    game.follow(game.take_wild_bag(0))
    assert game.log[-2:] == [("shuffle",), ("wild", 0)]  # as by default


def test_a_wild_bag_that_was_the_last_card_makes_a_new_pile_before_anything_is_discarded() -> None:
    """§4.3 in the variant "empty", §5.3: with the discards of that moment, so not with the card discarded next."""
    game = new_game(2, rules=Rules(reshuffle="empty"))
    give(game, 0, *rest(game)[:7])
    give_wild(game, 1, 3)
    discard(game, *rest(game)[: len(game.pile) - 1])
    discards = len(game.card_discard)
    game.follow(game.take_wild_bag(0))
    assert game.log == [("wild", 0), ("shuffle",)] and len(game.pile) == discards and game.card_discard == []
    play(game, next(action for action in game.legal() if action != "discard W"))
    assert len(game.card_discard) == 1 and len(game.pile) == discards


def test_a_returned_wild_bag_is_the_last_card_of_a_pile_too() -> None:
    """§4.3 in the variant "empty", §4.6: it alone is the pile; whoever takes it makes a new one."""
    game = new_game(2, rules=Rules(reshuffle="empty"))
    give_wild(game, 0)
    discard(game, *rest(game)[1:])
    assert game.pile == []
    game.give_up(0, None)
    assert game.pile == [0] and len(game.card_discard) == 29 and game.log == []
    game.follow(game.take_wild_bag(1))
    assert game.log == [("wild", 1), ("shuffle",)] and game.wilds == [[], [0]] and game.pile == [1] * 29


@pytest.mark.parametrize("discarding", reference.VARIANTS["discard"])
@pytest.mark.parametrize(("sizes", "served"), [((7, 7, 7, 7), [2, 3]), ((7, 7, 7, 6), [2, 3, 0])])
def test_too_few_cards_serve_the_active_player_first(
    sizes: tuple[int, ...], served: list[int], discarding: str
) -> None:
    """§4.4; the players who are served discard their eighth card (§4.5)."""
    game = new_game(4, rules=Rules(discard=discarding))
    for player, size in enumerate(sizes):
        give(game, player, *rest(game)[:size])
    cards = rest(game)
    assert len(cards) == len(served)
    game.chance = ScriptedChance(cards)
    game.active_player = 2
    game.follow(game.supply_action())
    while game.legal():
        play(game, game.legal()[0])
    done = [(move.split()[0], player) for _, player, move, _ in (event for event in game.log if event[0] == "move")]
    assert done.count(("deal", 2)) == len(served) and game.corners["cards exhausted"] == 1
    assert [player for verb, player in done if verb == "discard"] == [player for player in served if sizes[player] == 7]
    assert list(map(len, game.hands)) == [7, 7, 7, 7]


def full_hands(discarding: str) -> Game:
    """Player 1 deals; players 2 and 0 have seven cards, two of player 0's being wild bags."""
    game = new_game(3, cards=[(DIAMOND, 1), (DIAMOND, 2), (DIAMOND, 3)], rules=Rules(discard=discarding))
    give(game, 0, *[(GOLD, 1)] * 2, *[(GOLD, 2)] * 2, (GOLD, 3))
    give_wild(game, 0, 2)
    give(game, 2, *[(RUBY, 1)] * 2, *[(RUBY, 2)] * 2, *[(RUBY, 3)] * 2, (SAPPHIRE, 1))
    game.active_player = 1
    game.follow(game.supply_action())
    return game


def test_an_eighth_card_is_discarded_before_the_next_one_is_dealt() -> None:
    """§4.5: after its adventurers came (§4.2), the new card included; wild bags count."""
    game = full_hands("at_once")
    play(game, "deal D1")
    assert (game.phase, game.current_player) == ("deal", 1)  # player 1 has one card: nothing to discard
    before = game.supply[2]
    play(game, "deal D2")
    state = game.public_state()
    assert (state["phase"], state["active_player"], state["current_player"]) == ("discard", 1, 2)
    assert state["supply"][2] == before + 2
    assert (state["offer"], state["recipient"]) == ([(DIAMOND, 3)], 0)  # whose card comes next
    assert game.legal() == ["discard D2", "discard R1", "discard R2", "discard R3", "discard S1"]
    assert game.corners["discard within a deal"] == 1
    play(game, "discard D2")
    assert moves(game)[-2:] == ["discard D2", "deal D3"] and forced_moves(game) == ["deal D3"]
    state = game.public_state()
    assert (state["phase"], state["current_player"]) == ("discard", 0)
    assert (state["offer"], state["recipient"]) == ([], -1)  # the deal is over
    assert game.legal() == ["discard D3", "discard G1", "discard G2", "discard G3", "discard W"]
    pile = len(game.pile)
    play(game, "discard W")
    assert game.legal() == [] and game.wilds[0] == [0] and len(game.pile) == pile + 1
    assert game.card_discard == [(DIAMOND, 2)] and game.corners["discard within a deal"] == 1


def test_the_active_player_discards_an_eighth_card_before_they_choose_for_the_others() -> None:
    """§4.5: two cards are still to be dealt."""
    game = new_game(3, cards=[(DIAMOND, 1), (DIAMOND, 2), (DIAMOND, 3)])
    give(game, 1, *rest(game)[:7])
    game.active_player = 1
    game.follow(game.supply_action())
    play(game, "deal D3")
    state = game.public_state()
    assert (state["phase"], state["current_player"], state["recipient"]) == ("discard", 1, 2)
    assert state["offer"] == [(DIAMOND, 1), (DIAMOND, 2)]
    play(game, "discard D3")
    assert game.public_state()["phase"] == "deal" and game.legal() == ["deal D1", "deal D2"]


def test_in_a_variant_eighth_cards_are_discarded_after_the_deal_clockwise_from_the_active_player() -> None:
    """§4.5."""
    game = full_hands("after_deal")
    play(game, "deal D1", "deal D2")  # the last, D3, goes to player 0
    state = game.public_state()
    assert (state["phase"], state["active_player"], state["current_player"]) == ("discard", 1, 2)
    assert (state["offer"], state["recipient"]) == ([], -1)
    assert game.legal() == ["discard D2", "discard R1", "discard R2", "discard R3", "discard S1"]
    play(game, "discard D2")
    assert game.card_discard == [(DIAMOND, 2)]
    assert game.public_state()["current_player"] == 0
    assert game.legal() == ["discard D3", "discard G1", "discard G2", "discard G3", "discard W"]
    pile = len(game.pile)
    play(game, "discard W")
    assert game.legal() == [] and game.public_state()["wilds"] == [1, 0, 0] and len(game.pile) == pile + 1
    assert game.corners["wild over the limit"] == 1 and game.corners["discard within a deal"] == 0


def test_the_wild_bag_held_longest_goes_under_the_pile() -> None:
    game = new_game(2)
    game.wilds[0] = [0, 1]
    game.pile = [1, 1]
    game.give_up(0, None)
    assert game.wilds[0] == [1] and game.pile == [1, 1, 0]  # §4.6
    assert game.corners["wild is the whole pile"] == 0


def test_a_wild_bag_under_an_empty_pile_is_the_whole_pile() -> None:
    game = new_game(2)
    game.wilds[0] = [0, 1]
    game.pile = []
    game.give_up(0, None)
    assert game.wilds[0] == [1] and game.pile == [0]  # §4.6
    assert game.corners["wild is the whole pile"] == 1


# --- Adventurers (§5) ------------------------------------------------------------------------------------------------


def test_three_placements_then_one_for_each_other_player() -> None:
    game = new_game(3)
    game.active_player = 2
    game.marseille[2] -= 2
    game.supply[2] += 2
    game.marseille[1] += 2
    game.supply[1] = 0
    game.follow(game.adventurers_action())
    assert game.public_state()["placements_left"] == 3
    assert len(game.legal()) == 6 + 4 + 1
    play(game, "enter A", "visit points")
    state = game.public_state()
    assert (state["placements_left"], state["zone_used"], state["scores"]) == (1, True, [0, 0, 2])
    assert game.legal() == [*(f"enter {d}" for d in "ABCDEF"), "stop placing"]  # §5.1: one in a bonus zone
    play(game, "enter A")
    state = game.public_state()
    assert (state["current_player"], state["placements_left"], state["zone_used"]) == (0, 1, False)
    play(game, "visit points")
    assert game.legal() == []  # player 1 has nobody to place: no decision, no entry (§11.4)
    assert [event[1] for event in game.log if event[0] == "move"] == [2, 2, 2, 0]
    assert game.queues[A] == [2, 2] and sorted(game.zones[POINTS]) == [0, 2]


def test_stop_placing_ends_the_turn_of_one_player_only() -> None:
    game = new_game(2)
    game.active_player = 0
    game.follow(game.adventurers_action())
    play(game, "stop placing")
    assert game.public_state()["current_player"] == 1
    play(game, "stop placing")
    assert game.legal() == []


def test_a_zone_holds_one_adventurer_of_each_colour() -> None:
    game = new_game(2)
    game.active_player = 0
    game.marseille[0] -= 2
    game.zones[POINTS].append(0)
    game.zones[WILD].append(0)
    game.follow(game.adventurers_action())
    assert [action for action in game.legal() if "visit" in action] == ["visit disembark", "visit reinforcement"]


@pytest.mark.parametrize(("marseille", "coming"), [(7, 3), (2, 2), (0, 0)])
def test_disembark_brings_three_or_as_many_as_there_are(marseille: int, coming: int) -> None:
    game = new_game(2)
    game.active_player = 0
    enter(game, F, *[0] * (7 - marseille))
    game.follow(game.adventurers_action())
    play(game, "visit disembark")
    assert game.supply[0] == 2 - 1 + coming and game.marseille[0] == marseille - coming  # §5.4
    assert game.public_state()["current_player"] == 0


def test_disembarked_adventurers_can_be_placed_in_the_same_action() -> None:
    game = new_game(2)
    game.active_player = 0
    game.supply[0], game.marseille[0] = 1, 8
    game.follow(game.adventurers_action())
    play(game, "visit disembark", "enter A", "enter A")  # §5.2
    assert game.supply[0] == 1 and game.public_state()["current_player"] == 1


def test_reinforcements_come_before_the_next_placement_and_do_not_count() -> None:
    game = new_game(2)
    game.active_player = 0
    game.supply[0], game.marseille[0] = 6, 3
    game.follow(game.adventurers_action())
    play(game, "visit reinforcement")
    state = game.public_state()
    assert (state["phase"], state["placements_left"], state["reinforcements_left"]) == ("reinforce", 2, 2)
    assert game.legal() == [*(f"reinforce {d}" for d in "ABCDEF"), "stop reinforcing"]
    play(game, "reinforce A")
    assert game.public_state()["reinforcements_left"] == 1
    play(game, "reinforce A", "enter B", "enter B")
    assert game.queues[A] == [0, 0] and game.queues[B] == [0, 0] and game.supply[0] == 1
    assert game.public_state()["current_player"] == 1


def test_unused_reinforcements_are_lost() -> None:
    game = new_game(2)
    game.active_player = 0
    game.supply[0], game.marseille[0] = 3, 6
    game.follow(game.adventurers_action())
    play(game, "visit reinforcement", "stop reinforcing")
    state = game.public_state()
    assert (state["phase"], state["reinforcements_left"], state["placements_left"]) == ("place", 0, 2)


def test_reinforcement_without_adventurers_asks_nothing() -> None:
    game = new_game(2)
    game.active_player = 0
    game.supply[0], game.marseille[0] = 1, 8
    game.follow(game.adventurers_action())
    play(game, "visit reinforcement")  # §5.2: may be entered although it brings nothing
    state = game.public_state()
    assert (state["phase"], state["current_player"], state["reinforcements_left"]) == ("place", 1, 0)


def test_wild_bag_comes_unseen_and_over_the_limit_its_owner_discards_at_once() -> None:
    game = new_game(2)
    game.active_player = 0
    give(game, 0, *rest(game)[:7])
    game.follow(game.adventurers_action())
    play(game, "visit wild")
    state = game.public_state()
    assert ("wild", 0) in game.log and state["wilds"] == [1, 0] and state["pile_size"] == 22
    assert (state["phase"], state["placements_left"], state["zone_used"]) == ("discard", 2, True)  # §5.3
    assert state["supply"][0] == 1  # the adventurers on it do not count
    play(game, "discard W")
    assert game.public_state()["pile_size"] == 23 and game.public_state()["phase"] == "place"


def test_wild_bag_from_an_empty_pile_is_a_card_of_the_reshuffle() -> None:
    game = new_game(2)
    game.active_player = 0
    give_wild(game, 1)
    discard(game, *rest(game)[1:])
    assert game.pile == []
    game.follow(game.adventurers_action())
    play(game, "visit wild")
    assert game.wilds == [[1], [0]] and game.corners["wild from reshuffle"] == 1
    assert game.unseen[0].total() == 1 and game.unseen[1].total() == 29  # §10.1: player 1's wild bag is known


def test_bonus_points_do_not_end_the_game() -> None:
    game = new_game(2)
    game.active_player = 0
    game.scores = [39, 0]
    game.follow(game.adventurers_action())
    play(game, "visit points")
    assert game.scores == [41, 0] and not game.over  # §9.1
    assert game.corners["target passed by bonus points"] == 1


# --- Treasure chest (§6) ---------------------------------------------------------------------------------------------


def test_three_tokens_go_into_three_dungeons_in_the_order_drawn() -> None:
    game = new_game(2, tokens=[[(RUBY, 3), (GOLD, 1), (RUBY, 2)]])
    game.active_player = 0
    game.follow(game.treasure_chest_action())
    assert game.legal() == [f"put {d}" for d in "ABCDEF"]
    play(game, "put F")
    state = game.public_state()
    assert state["drawn_tokens"] == [(GOLD, 1), (RUBY, 2)] and state["chest_dungeons"] == [F]
    play(game, "put B")
    assert game.public_state()["chest_dungeons"] == [B, F]
    assert game.legal() == ["put A", "put C", "put D", "put E"]
    play(game, "put A")
    assert game.legal() == [] and game.public_state()["chest_dungeons"] == []
    assert game.treasures[F] == [(GOLD, 2), (RUBY, 3)] and game.treasures[A] == [(GOLD, 1), (RUBY, 2)]


@pytest.mark.parametrize(
    ("refill", "left", "events"),
    [
        ("empty", 2, ["refill", "tokens"]),
        ("empty", 3, ["tokens", "refill"]),
        ("empty", 4, ["tokens"]),
        ("short", 2, ["refill", "tokens"]),
        ("short", 3, ["tokens"]),
        ("short", 0, ["refill", "tokens"]),
    ],
)
def test_the_bag_is_refilled_when_it_is_too_short_or_a_draw_emptied_it(
    refill: str, left: int, events: list[str]
) -> None:
    """§6.2: before anything is placed, with what lies discarded at that moment."""
    game = new_game(2, rules=Rules(refill=refill))
    tokens = sorted(game.bag.elements())
    game.token_discard = tokens[left:]
    game.bag = Counter(tokens[:left])
    first = events[0] == "refill"
    game.chance = ScriptedChance(tokens=[tokens[-3:] if first else tokens[:3]])
    game.active_player = 0
    game.follow(game.treasure_chest_action())
    assert [event[0] for event in game.log] == events and game.phase == "put_token"
    assert game.bag.total() == (21 if "refill" in events else left - 3)
    assert len(game.token_discard) == (0 if "refill" in events else 24 - left)
    assert game.corners["refill of an emptied bag"] == (events == ["tokens", "refill"])
    assert_conserved(game)


def test_tokens_that_are_scored_after_the_refill_stay_out_of_the_bag() -> None:
    """§6.2: the refill comes before the drawn tokens are placed or scored."""
    game = new_game(2)
    last = [(RUBY, 3), (GOLD, 3), (RUBY, 2)]
    put(game, A, (SAPPHIRE, 1), (SAPPHIRE, 2))
    game.token_discard = sorted((game.bag - Counter(last)).elements())
    game.bag = Counter(last)
    game.chance = ScriptedChance(tokens=[last])
    game.active_player = 0
    game.follow(game.treasure_chest_action())
    play(game, "put A", "put C", "put D")
    assert sorted(game.token_discard) == [(GOLD, 1), (RUBY, 3), (SAPPHIRE, 1), (SAPPHIRE, 2)]  # those of dungeon A
    assert game.bag.total() == 30 - len(game.token_discard) - sum(map(len, game.treasures))


def test_scoring_waits_for_the_third_token_and_comes_before_the_marble() -> None:
    game = new_game(2, tokens=[[(RUBY, 3), (GOLD, 3), (RUBY, 2)]])
    put(game, A, (SAPPHIRE, 1), (SAPPHIRE, 2))
    enter(game, B, 1)
    give(game, 1, (RUBY, 1))
    game.cylinder = reference.CHEST
    game.follow(game.rounds())
    play(game, "put A")
    assert game.public_state()["phase"] == "put_token" and len(game.treasures[A]) == 4
    play(game, "put C", "put D")
    state = game.public_state()
    assert (state["phase"], state["current_player"], state["gather_dungeon"]) == ("take", 1, B)  # §6.3, §8.1
    assert game.legal() == ["stop taking", "take R1"]
    play(game, "take R1")
    assert forced_moves(game) == ["pay R1"]
    state = game.public_state()
    assert state["phase"] == "return_marble" and state["scores"] == [0, 3]
    assert game.treasures[A] == [] and game.corners["dungeon emptied"] == 1  # §8.6


# --- Rearrange (§7) --------------------------------------------------------------------------------------------------


def test_rearrange_moves_own_marbles_down_and_any_marker_up() -> None:
    game = new_game(2)
    game.lanes = [[0, 1, 0], [1, 0, 1], [0, 0, 1], [1, 1, 0]]
    game.active_player = 1
    game.follow(game.rearrange_action())
    assert game.legal() == [
        "keep order",
        "marble adventurers 2 down 1",
        "marble adventurers 2 down 2",
        "marble chest 2 down 1",
        "marble chest 2 down 2",
        "marble rearrange 1 down 1",
        "marble supply 1 down 1",
        "market D up 1",
        "market D up 2",
        "market E up 1",
        "market E up 2",
        "market G up 1",
        "market G up 2",
        "market S up 1",
    ]
    play(game, "marble chest 2 down 2")
    assert game.lanes[reference.CHEST] == [1, 0, 0]


def test_a_marker_moving_up_pushes_the_passed_ones_down() -> None:
    game = new_game(2)
    game.active_player = 1
    game.follow(game.rearrange_action())
    play(game, "market E up 2")
    assert game.market == [RUBY, EMERALD, SAPPHIRE, GOLD, DIAMOND]


def test_keep_order_changes_nothing() -> None:
    game = new_game(2)
    before = game.public_state()
    game.active_player = 0
    game.follow(game.rearrange_action())
    play(game, "keep order")
    assert game.public_state()["lanes"] == before["lanes"] and game.public_state()["market"] == before["market"]


# --- Scoring round (§8) ----------------------------------------------------------------------------------------------


def test_the_seventeen_points_of_the_rulebook() -> None:
    game = new_game(2)
    game.gathered[0] = [(RUBY, 3), (SAPPHIRE, 1), (SAPPHIRE, 2), (EMERALD, 2)]
    game.bag -= Counter(game.gathered[0])
    game.treasures[C].remove((SAPPHIRE, 1))
    game.treasures[C].append((SAPPHIRE, 2))
    game.bag += Counter([(SAPPHIRE, 1)])
    game.bag -= Counter([(SAPPHIRE, 2)])
    assert_conserved(game)
    game.score_gathered_tokens()
    assert game.scores == [17, 0] and game.gathered == [[], []] and len(game.token_discard) == 4  # §8.7
    assert_conserved(game)


def test_the_worked_example_of_dungeon_d() -> None:
    """Ruby-3, Emerald-2 and Emerald-1 for a red card, a wild bag and a green card; the fourth adventurer stays."""
    game = new_game(2)
    put(game, D, (RUBY, 3), (EMERALD, 2))  # beside the Emerald-1 of the setup
    enter(game, D, 0, 1, 0, 0, 0)
    give(game, 0, (RUBY, 2), (EMERALD, 3))
    give_wild(game, 0)
    pile = len(game.pile)
    game.follow(game.scoring_round())
    assert game.public_state()["gather_order"] == [0, 1]
    assert game.legal() == ["stop taking", "take E1", "take E2", "take R3"]
    play(game, "take R3")
    state = game.public_state()
    assert state["phase"] == "pay" and state["taking"] == (RUBY, 3) and game.legal() == ["pay R2", "pay W"]
    assert state["dungeons"][D]["queue"] == [0, 1, 0, 0, 0]  # §8.3: token and adventurer move when the price is met
    play(game, "pay R2")  # the wild bag is then forced
    assert forced_moves(game) == ["pay W"] and len(game.pile) == pile + 1
    state = game.public_state()
    assert state["dungeons"][D] == {"tokens": [(EMERALD, 1), (EMERALD, 2)], "queue": [1, 0, 0, 0]}
    assert state["gathered"] == [[(RUBY, 3)], []] and state["taking"] is None and state["scores"] == [0, 0]
    play(game, "take E2")
    assert forced_moves(game) == ["pay W", "pay E3"]
    assert game.public_state()["left_over_bags"] == [[0, 0, 0, 1, 0], [0] * 5]
    assert game.legal() == ["stop taking", "take E1"]
    play(game, "take E1")  # with the bag left over; nothing to pay
    assert moves(game) == ["take R3", "pay R2", "pay W", "take E2", "pay E3", "take E1"]
    assert game.corners["left-over bags used"] == 1
    assert game.queues[D] == [1, 0] and game.marseille[0] == 6  # the fourth adventurer stays
    assert game.legal() == [] and game.gather_dungeon == -1
    assert game.scores == [3 * 3 + 2 * 1 + 1 * 1, 0]
    assert sorted(game.card_discard) == [(RUBY, 2), (EMERALD, 3)] and game.left_over_bags == [[0] * 5] * 2


def test_cards_may_be_paid_while_something_is_owed() -> None:
    game = new_game(2)
    put(game, A, (GOLD, 3))
    enter(game, A, 0, 0)
    give(game, 0, (GOLD, 1), (GOLD, 2), (GOLD, 2), (GOLD, 3), (RUBY, 3))
    give_wild(game, 0)
    game.follow(game.scoring_round())
    play(game, "take G3")
    assert game.legal() == ["pay G1", "pay G2", "pay G3", "pay W"]
    play(game, "pay G2")
    assert game.public_state()["left_over_bags"][0][GOLD] == 2
    assert game.legal() == ["pay G1", "pay G2", "pay G3", "pay W"]
    play(game, "pay G3")
    assert game.public_state()["left_over_bags"][0][GOLD] == 2 and game.legal() == ["stop taking", "take G1"]
    play(game, "take G1")
    assert game.gathered[0] == [] and game.scores[0] == 4 * 2  # round over: player 1 has nobody, Gold stands at 2
    assert game.corners["left-over bags suffice"] == 1


def test_left_over_bags_are_lost_in_the_next_dungeon() -> None:
    game = new_game(2)
    enter(game, A, 0)
    enter(game, F, 0)
    give(game, 0, (GOLD, 3))
    game.follow(game.scoring_round())
    play(game, "take G1")  # Gold-2 in F would cost the two bags left over
    assert game.legal() == [] and game.treasures[F] == [(GOLD, 2)]  # §8.4


def test_in_a_variant_left_over_bags_last_until_the_scoring_round_ends() -> None:
    """§8.4: in any dungeon, also after their player stopped in one; everybody sees them."""
    game = new_game(2, rules=Rules(left_over_bags="round"))
    put(game, A, (GOLD, 1), (GOLD, 3))
    put(game, B, (GOLD, 3))
    enter(game, A, 0, 0, 1)
    enter(game, B, 0)
    enter(game, F, 0, 1)
    give(game, 0, (GOLD, 3))
    give(game, 1, (GOLD, 2))
    game.follow(game.scoring_round())
    play(game, "take G1")
    assert game.legal() == ["stop taking", "take G1"]
    play(game, "stop taking")
    state = game.public_state()
    assert (state["gather_dungeon"], state["current_player"]) == (A, 1)
    assert state["left_over_bags"] == [[2, 0, 0, 0, 0], [0] * 5]
    assert game.legal() == ["stop taking", "take G1"]
    play(game, "take G1")  # in B, two bags are too few for a Gold-3: player 0 is not asked
    state = game.public_state()
    assert (state["gather_dungeon"], state["current_player"], game.legal()) == (F, 0, ["stop taking", "take G2"])
    assert state["left_over_bags"] == [[2, 0, 0, 0, 0], [1, 0, 0, 0, 0]]
    play(game, "take G2")  # with the bags left over in A: nothing to pay
    assert moves(game)[-1] == "take G2" and game.corners["left-over bags of an earlier dungeon used"] == 1
    assert game.legal() == [] and game.scores == [2 + 4, 2]
    assert game.left_over_bags == [[0] * 5] * 2  # player 1's last one is lost now


def test_in_a_variant_left_over_bags_of_an_earlier_dungeon_are_used_before_a_card() -> None:
    """§8.4: one bag left over and a card pay for a Gold-2; a paid wild bag is of the kind it paid for."""
    game = new_game(2, rules=Rules(left_over_bags="round"))
    enter(game, A, 0)
    enter(game, F, 0)
    give(game, 0, (GOLD, 2))
    give_wild(game, 0)
    game.follow(game.scoring_round())
    play(game, "take G1", "pay G2", "take G2")
    assert moves(game) == ["take G1", "pay G2", "take G2", "pay W"] and forced_moves(game) == ["pay W"]


def test_a_partly_affordable_token_cannot_be_taken() -> None:
    game = new_game(2)
    enter(game, F, 0, 1)
    give(game, 0, (GOLD, 1), (RUBY, 3))
    give_wild(game, 1, 2)
    game.follow(game.scoring_round())
    assert game.public_state()["current_player"] == 1  # player 0 has nothing to take: no decision (§11.4)
    play(game, "take G2")
    assert moves(game) == ["take G2", "pay W", "pay W"] and forced_moves(game) == ["pay W", "pay W"]


def test_one_adventurer_for_each_token() -> None:
    game = new_game(2)
    put(game, A, (GOLD, 1))
    enter(game, A, 0)
    give(game, 0, (GOLD, 3))
    game.follow(game.scoring_round())
    assert game.legal() == ["stop taking", "take G1"]  # §11.3: equal tokens are one action
    play(game, "take G1")
    assert game.legal() == [] and game.treasures[A] == [(GOLD, 1)]


@pytest.mark.parametrize(
    ("queue", "order"),
    [
        ([0, 1, 2, 2], [2, 0, 1]),
        ([1, 0, 0, 1, 2], [1, 0, 2]),
        ([2, 0, 1], [2, 0, 1]),
        ([0, 2, 2, 2, 1, 1], [2, 1, 0]),
        ([], []),
    ],
)
def test_order_inside_a_dungeon(queue: list[int], order: list[int]) -> None:
    game = new_game(3)
    enter(game, C, *queue)
    assert game.order_in_dungeon(C) == order  # §8.2


def test_stop_taking_ends_the_turn_in_this_dungeon_only() -> None:
    game = new_game(2)
    enter(game, A, 0, 1)
    enter(game, F, 0)
    give(game, 0, (GOLD, 3))
    give(game, 1, (GOLD, 3))
    game.follow(game.scoring_round())
    play(game, "stop taking")
    assert game.public_state()["gather_order"] == [1]
    play(game, "stop taking")
    state = game.public_state()
    assert (state["gather_dungeon"], state["gather_order"]) == (F, [0])


def test_zones_are_cleared_and_only_full_dungeons_emptied_after_f() -> None:
    game = new_game(2)
    game.zones[WILD] += [0, 1]
    game.zones[POINTS] += [1]
    game.marseille = [6, 5]
    put(game, A, (RUBY, 2), (RUBY, 2), (RUBY, 3))
    put(game, B, (GOLD, 3), (GOLD, 3))
    enter(game, A, 0)
    game.follow(game.scoring_round())
    assert game.zones == [[], [], [], []] and game.marseille == [6, 7]
    assert game.treasures[A] == [] and len(game.treasures[B]) == 3 and game.queues[A] == [0]  # §8.6
    assert len(game.token_discard) == 4
    assert_conserved(game)


# --- The end (§9) ----------------------------------------------------------------------------------------------------


def end_by_scoring(scores: list[int], queues: Sequence[tuple[int, Sequence[int]]] = ()) -> Game:
    """A chest action that fills dungeon A and ends the game, nobody being able to take anything."""
    game = new_game(len(scores), tokens=[[(RUBY, 3), (GOLD, 3), (RUBY, 2)]])
    put(game, A, (SAPPHIRE, 1), (SAPPHIRE, 2))
    for dungeon, seats in queues:
        enter(game, dungeon, *seats)
    game.scores = scores
    game.cylinder = reference.CHEST
    game.follow(game.rounds())
    play(game, "put A", "put C", "put D")
    return game


def test_the_game_ends_after_the_scoring_round_and_the_marble_stays() -> None:
    game = end_by_scoring([12, 40, 3])
    state = game.public_state()
    assert game.over and game.terminated and not game.truncated and game.legal() == []
    assert (state["phase"], state["current_player"], state["cylinder"], state["active_player"]) == ("over", -1, 2, 2)
    assert state["lanes"] == LANES[3] and state["winners"] == [1]  # §3.2
    assert game.rewards("win") == pytest.approx([-0.5, 1.0, -0.5])
    assert game.rewards("rank") == pytest.approx([0.0, 1.0, -1.0])
    assert game.rewards("margin") == pytest.approx([(12 - 21.5) / 40, (40 - 7.5) / 40, (3 - 26) / 40])


@pytest.mark.parametrize(
    ("game_end", "score", "over"), [("scoring", 40, False), ("chest", 39, False), ("chest", 40, True)]
)
def test_in_a_variant_a_chest_action_without_scoring_ends_the_game(game_end: str, score: int, over: bool) -> None:
    """§9.1: the marble stays (§3.2), and so do adventurers in bonus zones, for nothing is scored."""
    game = new_game(2, tokens=[[(RUBY, 3), (GOLD, 3), (RUBY, 2)]], rules=Rules(game_end=game_end))
    game.zones[POINTS] += [1]
    game.marseille[1] -= 1
    game.scores = [7, score]
    game.cylinder = reference.CHEST
    game.follow(game.rounds())
    play(game, "put A", "put B")
    assert not game.over
    play(game, "put C")
    assert game.terminated == over and not game.truncated and game.corners["end by a chest"] == over
    assert game.public_state()["winners"] == [1] * over and game.zones[POINTS] == [1]
    assert game.lanes[reference.CHEST] == LANES[2][reference.CHEST]
    assert game.phase == ("over" if over else "return_marble")


def test_in_that_variant_a_full_dungeon_is_scored_first() -> None:
    """§9.1: who leads may change."""
    game = new_game(2, tokens=[[(RUBY, 3), (GOLD, 3), (RUBY, 2)]], rules=Rules(game_end="chest"))
    put(game, A, (SAPPHIRE, 1), (SAPPHIRE, 2))
    enter(game, A, 0)
    give(game, 0, (RUBY, 3))
    game.scores = [35, 40]
    game.cylinder = reference.CHEST
    game.follow(game.rounds())
    play(game, "put A", "put C", "put D")
    assert game.phase == "take" and not game.over
    play(game, "take R3")
    assert game.terminated and game.scores == [44, 40] and game.winners == [0] and game.corners["end by a chest"] == 0


def test_in_that_variant_a_skipped_chest_ends_nothing() -> None:
    """§9.1 with §3.5."""
    game = new_game(3, rules=Rules(game_end="chest"))
    game.lanes = [[0, 1, 2, 0], [1, 2, 1, 2], [], [0, 1, 2, 0]]
    game.scores = [40, 0, 0]
    game.cylinder = reference.CHEST
    game.follow(game.rounds())
    assert not game.over and game.phase == "rearrange"


def test_below_the_target_the_game_goes_on() -> None:
    game = end_by_scoring([39, 39])
    assert not game.over and game.public_state()["phase"] == "return_marble"
    assert game.rewards("win") == [0.0, 0.0]


def test_a_tie_is_broken_by_adventurers_in_dungeons() -> None:
    game = end_by_scoring([41, 41, 20], [(B, [0]), (C, [1]), (E, [1]), (F, [2, 2, 2])])
    assert game.winners == [1] and game.corners["tie broken by adventurers"] == 1  # §9.2
    assert game.corners["shared win"] == 0
    assert game.rewards("rank") == pytest.approx([0.0, 1.0, -1.0])


def test_a_full_tie_shares_the_win() -> None:
    game = end_by_scoring([41, 7, 41, 7], [(B, [0, 2]), (C, [1])])
    assert game.winners == [0, 2] and game.corners["shared win"] == 1  # §9.3
    assert game.rewards("win") == pytest.approx([1 / 3, -1 / 3, 1 / 3, -1 / 3])
    assert game.rewards("rank") == pytest.approx([2 / 3, -1 / 3, 2 / 3, -1])


def test_three_tied_two_of_them_still_after_the_adventurers() -> None:
    game = end_by_scoring([41, 41, 41], [(B, [0, 2])])
    assert game.winners == [0, 2]
    assert game.corners["tie broken by adventurers"] == game.corners["shared win"] == 1
    assert game.rewards("rank") == pytest.approx([0.5, -1.0, 0.5])


def test_the_round_limit_cuts_the_game_off() -> None:
    game = new_game(2, rules=Rules(round_limit=7))
    game.round = 7
    game.cylinder = reference.REARRANGE
    game.scores = [4, 50]  # through bonus points: no scoring round, no end by §9.1
    game.follow(game.rounds())
    play(game, "keep order")
    play(game, game.legal()[0])
    state = game.public_state()
    assert game.over and game.truncated and not game.terminated and game.corners["truncated"] == 1  # §9.4
    assert (state["round"], state["cylinder"], state["active_player"], state["phase"]) == (7, 3, 1, "over")
    assert state["winners"] == [1] and state["pile_size"] == 30 and state["offer"] == []


def test_an_empty_last_lane_ends_the_last_round_too() -> None:
    game = new_game(2, rules=Rules(round_limit=1))
    game.lanes = [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], []]
    game.active_player = 1
    game.cylinder = reference.REARRANGE
    game.follow(game.rounds())
    state = game.public_state()
    assert game.truncated and game.corners["empty lane"] == 1
    assert (state["active_player"], state["current_player"], state["cylinder"]) == (1, -1, 3)


def test_ending_in_the_last_round_is_a_termination() -> None:
    game = new_game(2, tokens=[[(RUBY, 3), (GOLD, 3), (RUBY, 2)]], rules=Rules(round_limit=1))
    put(game, A, (SAPPHIRE, 1), (SAPPHIRE, 2))
    game.scores = [40, 0]
    game.cylinder = reference.CHEST
    game.follow(game.rounds())
    play(game, "put A", "put C", "put D")
    assert game.terminated and not game.truncated


# --- Random games ----------------------------------------------------------------------------------------------------


def assert_phase_fields(game: Game) -> None:
    """What is under way shows only in its own phase."""
    state = game.public_state()
    phase = state["phase"]
    placing = phase in ("place", "reinforce") or (phase == "discard" and state["cylinder"] == reference.ADVENTURERS)
    within_a_deal = phase == "deal" or (phase == "discard" and bool(state["offer"]))
    assert (state["recipient"] >= 0) == bool(state["offer"]) == within_a_deal
    assert not (phase == "discard" and state["offer"]) or game.rules.discard == "at_once"
    assert bool(state["drawn_tokens"]) == (phase == "put_token")
    assert len(state["chest_dungeons"]) + len(state["drawn_tokens"]) in (0, 3)
    assert (state["taking"] is not None) == (phase == "pay")
    assert bool(state["gather_order"]) == (state["gather_dungeon"] >= 0) == (phase in ("take", "pay"))
    assert placing or (state["placements_left"], state["zone_used"]) == (0, False)
    assert (state["reinforcements_left"] > 0) == (phase == "reinforce")
    left_over = [seat for seat, bags in enumerate(state["left_over_bags"]) if any(bags)]
    assert phase in ("take", "pay") or not (left_over or any(state["gathered"]))
    assert game.rules.left_over_bags == "round" or left_over in ([], [state["current_player"]])
    if phase == "pay":
        kind, value = state["taking"]
        assert 0 <= state["left_over_bags"][state["current_player"]][kind] < value
    holding = [len(hand) + wilds for hand, wilds in zip(state["hands"], state["wilds"], strict=True)]
    eight = [seat for seat, held in enumerate(holding) if held > reference.HAND_LIMIT]
    assert max(holding) <= 8 and (not eight or phase in ("deal", "discard"))
    assert game.rules.discard == "after_deal" or eight == [state["current_player"]] * (phase == "discard")
    assert game.rules.refill == "short" or state["bag"]  # §6.2
    assert (phase == "over") == game.over == (state["current_player"] == -1) == bool(state["winners"])
    assert (len(game.legal()) >= 2) == (not game.over) and game.legal() == sorted(set(game.legal()))


ALL_VARIANTS = [dict(zip(reference.VARIANTS, choice, strict=True)) for choice in product(*reference.VARIANTS.values())]


def play_checked(game: RandomGame) -> Counter[str]:
    while not game.over:
        assert_conserved(game)
        assert_phase_fields(game)
        game.play_at_random()
    assert_conserved(game)
    assert_phase_fields(game)
    assert game.terminated != game.truncated
    for kind in ("win", "rank", "margin"):
        assert sum(game.rewards(kind)) == pytest.approx(0)
    return game.corners


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_nothing_gets_lost_in_random_games(num_players: int) -> None:
    corners = sum((play_checked(RandomGame(num_players, seed)) for seed in range(20)), Counter())
    assert corners["reshuffle"] and corners["refill of a short bag"] and corners["left-over bags used"]


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_nothing_gets_lost_in_random_games_with_any_variants(num_players: int) -> None:
    """§1.10: all 32 combinations."""
    assert len(ALL_VARIANTS) == 32
    for seed, variants in enumerate(ALL_VARIANTS):
        play_checked(RandomGame(num_players, seed, Rules(**variants)))


def test_random_games_repeat() -> None:
    games = [RandomGame(3, seed=7) for _ in range(2)]
    for game in games:
        while not game.over:
            game.play_at_random()
    assert games[0].log == games[1].log and games[0].public_state() == games[1].public_state()
