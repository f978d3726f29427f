"""The scoring round (§8), the end of the game (§9) and the rewards."""

import numpy as np

from montecristo_env.core.chance import put_under_pile
from montecristo_env.core.constants import (
    CARD_TYPES,
    DUNGEONS,
    KINDS,
    MAX_PLAYERS,
    MOST_CARDS_HELD,
    NONE,
    SIZES,
    TOKEN_TYPES,
    TREASURE_PLACES,
    WILD_BAG,
    ZONES,
    Decision,
)
from montecristo_env.core.jit import kernel
from montecristo_env.core.layout import Row
from montecristo_env.core.legal import NOTHING, ask, takeable

REWARDS = ("win", "rank", "margin")
WIN, RANK, MARGIN = range(len(REWARDS))


# --- paying


@kernel
def lose_card(s: Row, player: int, card: int) -> None:
    """A card leaves the hand: face up to the discards, the oldest wild bag unseen under the pile (§4.5, §4.6, §8.5)."""
    s.hand_size[player] -= 1
    if card < CARD_TYPES:
        s.hands[player, card] -= 1
        s.card_discard[card] += 1
        return
    put_under_pile(s, s.wild_slots[player, 0])
    s.wilds[player] -= 1
    for i in range(MOST_CARDS_HELD - 1):
        s.wild_slots[player, i] = s.wild_slots[player, i + 1]
    s.wild_slots[player, MOST_CARDS_HELD - 1] = NONE


@kernel
def pay_with_card(s: Row, card: int) -> None:
    """A card is spent whole (§8.4); a wild bag is one bag of any kind (§8.3)."""
    lose_card(s, s.current_player, card)
    bags = 1 if card == WILD_BAG else card % SIZES + 1
    s.left_over_bags[s.current_player, s.taking // SIZES] += bags
    settle(s)


@kernel
def take(s: Row, token: int) -> None:
    """A player takes a token: left-over bags are used first, the rest is asked for (§8.4, §11.2)."""
    s.taking = token
    settle(s)


@kernel
def settle(s: Row) -> None:
    """Token and adventurer move when the price is met (§8.3)."""
    kind, value = s.taking // SIZES, s.taking % SIZES + 1
    player = s.current_player
    if s.left_over_bags[player, kind] < value:
        ask(s, player, Decision.PAY)
        return
    s.left_over_bags[player, kind] -= value
    s.dungeon_tokens[s.gather_dungeon, s.taking] -= 1
    s.gathered[player, s.taking] += 1
    s.taking = NONE
    send_foremost_to_marseille(s, player, s.gather_dungeon)
    gather(s)


@kernel
def send_foremost_to_marseille(s: Row, player: int, dungeon: int) -> None:
    """The player's foremost adventurer leaves, and the queue closes up (§8.3)."""
    left = s.places[player, dungeon, 0]
    s.crew[player, dungeon] -= 1
    for i in range(s.crew[player, dungeon]):
        s.places[player, dungeon, i] = s.places[player, dungeon, i + 1]
    s.places[player, dungeon, s.crew[player, dungeon]] = 0
    s.queue_length[dungeon] -= 1
    for other in range(s.num_players):
        for i in range(s.crew[other, dungeon]):
            s.places[other, dungeon, i] -= s.places[other, dungeon, i] > left
    s.marseille[player] += 1


# --- gathering


@kernel
def begin_scoring_round(s: Row) -> None:
    """Gathering goes through all dungeons, A to F (§8.1)."""
    s.gather_dungeon = 0
    order_gatherers(s)
    gather(s)


@kernel
def order_gatherers(s: Row) -> None:
    """Most adventurers first, ties to the foremost adventurer further up the queue (§8.2)."""
    dungeon = s.gather_dungeon
    turns = 0
    for player in range(s.num_players):
        if s.crew[player, dungeon] == 0:
            continue
        place = turns
        while place > 0 and _goes_before(s, player, s.gather_order[place - 1], dungeon):
            s.gather_order[place] = s.gather_order[place - 1]
            place -= 1
        s.gather_order[place] = player
        turns += 1


@kernel
def _goes_before(s: Row, player: int, other: int, dungeon: int) -> bool:
    if s.crew[player, dungeon] != s.crew[other, dungeon]:
        return bool(s.crew[player, dungeon] > s.crew[other, dungeon])
    return bool(s.places[player, dungeon, 0] < s.places[other, dungeon, 0])


@kernel
def gather(s: Row) -> None:
    """Asks the next player who can take a token; after F the scoring round is finished."""
    while s.gather_dungeon < DUNGEONS:
        while s.gather_order[0] != NONE:
            if takeable(s) != NOTHING:
                ask(s, s.gather_order[0], Decision.TAKE)
                return
            end_turn(s)
        s.gather_dungeon += 1
        if s.gather_dungeon < DUNGEONS:
            order_gatherers(s)
    finish_scoring_round(s)


@kernel
def stop_taking(s: Row) -> None:
    """A player takes no more tokens from this dungeon."""
    end_turn(s)
    gather(s)


@kernel
def end_turn(s: Row) -> None:
    """Each player has one turn (§8.2); left-over bags are lost, unless they last for the round (§8.4)."""
    if not s.left_over_bags_last_a_round:
        lose_left_over_bags(s, s.gather_order[0])
    for i in range(MAX_PLAYERS - 1):
        s.gather_order[i] = s.gather_order[i + 1]
    s.gather_order[MAX_PLAYERS - 1] = NONE


@kernel
def lose_left_over_bags(s: Row, player: int) -> None:
    """What a player has paid and not used up is gone (§8.4)."""
    for kind in range(KINDS):
        s.left_over_bags[player, kind] = 0


@kernel
def finish_scoring_round(s: Row) -> None:
    """Full dungeons are emptied, bonus zones too; then points are scored (§8.6, §8.7)."""
    s.gather_dungeon = NONE
    for dungeon in range(DUNGEONS):
        if tokens_in(s, dungeon) == TREASURE_PLACES:
            for token in range(TOKEN_TYPES):
                s.token_discard[token] += s.dungeon_tokens[dungeon, token]
                s.dungeon_tokens[dungeon, token] = 0
    for player in range(s.num_players):
        lose_left_over_bags(s, player)
        for zone in range(ZONES):
            s.marseille[player] += s.zones[player, zone]
            s.zones[player, zone] = 0
        s.score[player] += gathered_points(s, player)
        for token in range(TOKEN_TYPES):
            s.token_discard[token] += s.gathered[player, token]
            s.gathered[player, token] = 0
    finish_chest(s, True)


@kernel
def finish_chest(s: Row, may_end: bool) -> None:
    """The used marble goes on, unless somebody has reached the target where that ends the game (§9.1, §3.2)."""
    reached = False
    for player in range(s.num_players):
        reached |= s.score[player] >= s.target
    if reached and may_end:
        s.terminated = True
        end_game(s)
    else:
        ask(s, s.active_player, Decision.RETURN_MARBLE)


@kernel
def tokens_in(s: Row, dungeon: int) -> int:
    """How many tokens a dungeon holds."""
    total = 0
    for token in range(TOKEN_TYPES):
        total += s.dungeon_tokens[dungeon, token]
    return total


@kernel
def gathered_points(s: Row, player: int) -> int:
    """What the tokens in front of a player are worth: value times market value (§8.7)."""
    points = 0
    for space in range(KINDS):
        kind = int(s.market[space])
        total = 0
        for size in range(SIZES):
            total += (size + 1) * int(s.gathered[player, kind * SIZES + size])
        points += total * int(s.market_values[space])
    return points


# --- the end


@kernel
def end_game(s: Row) -> None:
    """Names the winners: most points, then most adventurers in dungeons, then shared (§9.2, §9.3)."""
    for player in range(s.num_players):
        s.winners[player] = 1
        for other in range(s.num_players):
            if standing(s, other) > standing(s, player):
                s.winners[player] = 0
    ask(s, NONE, Decision.OVER)


@kernel
def standing(s: Row, player: int) -> int:
    """A number that orders players by §9.2."""
    crew = 0
    for dungeon in range(DUNGEONS):
        crew += int(s.crew[player, dungeon])
    return int(s.score[player]) * 64 + crew


@kernel
def write_rewards(s: Row, kind: int, out: np.ndarray) -> None:
    """The rewards at the end of a game; they sum to zero."""
    players = int(s.num_players)
    for player in range(players):
        if kind == WIN:
            winners = 0
            for other in range(players):
                winners += s.winners[other]
            share = 1.0 / winners if s.winners[player] else 0.0
            out[player] = (players * share - 1.0) / (players - 1)
        elif kind == RANK:
            balance = 0
            for other in range(players):
                balance += standing(s, player) > standing(s, other)
                balance -= standing(s, player) < standing(s, other)
            out[player] = balance / (players - 1)
        else:
            others = 0
            for other in range(players):
                if other != player:
                    others += int(s.score[other])
            out[player] = (int(s.score[player]) - others / (players - 1)) / int(s.target)
