"""The greedy player: for every decision it asks what the scoring round would bring if it came now.

`outlook` plays that scoring round in its head, on what everybody can see: each player takes the best tokens he can
pay for. Most decisions try every choice on the row, look at the outlook and take the change back. Everything is
counted in hundredths of a point.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from montecristo_env.agent import PublicView
from montecristo_env.core._jit import Library, kernel
from montecristo_env.core.actions import (
    FIRST,
    FIRST_MOVE,
    KEEP_ORDER,
    MOVE_MARKER,
    MOVES_PER_LANE,
    STOP_PLACING,
    STOP_REINFORCING,
    STOP_TAKING,
    VISIT,
)
from montecristo_env.core.constants import (
    CARD_TYPES,
    DISEMBARKING,
    DUNGEONS,
    KINDS,
    LANES,
    LONGEST_MOVE,
    MIN_PLAYERS,
    NONE,
    REINFORCEMENTS,
    SIZES,
    TOKEN_TYPES,
    TREASURE_PLACES,
    WILD_BAG,
    ZONES,
    Decision,
    Lane,
    Zone,
)
from montecristo_env.core.layout import STATE, Row, States
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import move_marker
from montecristo_env.core.scoring import gathered_points, tokens_in
from montecristo_env.threads import ALL_CORES, share

POINT = 100

# --- weights, found by matches between versions
BAG = 40  # a bag that is kept, times the market value of its kind
WILD = 120  # a wild bag that is kept: it fits every token
CREW = 60  # an adventurer who waits in a dungeon: he holds a place in the queue
SUPPLY = 45  # one of the first adventurers in the personal supply
SUPPLY_MORE = 15  # one of the others, who wait longer for their turn
SUPPLY_SOON = 3  # how many will be placed soon
BONUS = 200  # bonus points
SCORING_LEAD = 50  # the lead from which a scoring round is welcome
GAME = 10_000  # the end of the game, won or lost
MARKET = 60  # percent of what a market move brings: others can move the markers back
LANE_SUPPLY = 150  # what it is worth to be active in a lane
LANE_ADVENTURERS = 300
LANE_CHEST = 200
LANE_REARRANGE = 150
WAITING = 60  # what it costs a marble to wait for a round


# --- cards and tokens in words of bits: a word fits in a register

# A hand: two bits for the number of each card (three is enough for any token), above them the wild bags.
_CARD_BITS = 2
_MOST_ALIKE = (1 << _CARD_BITS) - 1
_KIND_BITS = SIZES * _CARD_BITS
_CARDS_OF_A_KIND = (1 << _KIND_BITS) - 1
_WILDS_AT = CARD_TYPES * _CARD_BITS
# The tokens of a dungeon: a list, four bits for each.
_TOKEN_BITS = 4
_ONE_TOKEN = (1 << _TOKEN_BITS) - 1
# A payment: its cards and wild bags, then the bags left over, or -1.
_LEFT_OVER_AT = _KIND_BITS + _CARD_BITS
_LEFT_OVER_BITS = 2
_WILD_COST, _WASTE_COST, _CARD_COST = 12, 8, 1  # a wild bag fits everything; a waste is lost; small cards go first


def _count(cards: int, size: int) -> int:
    return cards >> (size * _CARD_BITS) & _MOST_ALIKE


def _bags(cards: int) -> int:
    return sum((size + 1) * _count(cards, size) for size in range(SIZES))


def _best_payment(cards: int, wilds: int, owed: int) -> int:
    """The cheapest cards of one kind and wild bags that are worth the bags owed."""
    best, lowest = NONE, 0
    options = [range(_count(cards, size) + 1) for size in range(SIZES)]
    for ones, twos, threes, wild in itertools.product(*options, range(wilds + 1)):
        left = ones + 2 * twos + 3 * threes + wild - owed
        if not 0 <= left < SIZES:
            continue
        cost = wild * _WILD_COST + left * _WASTE_COST - (ones + twos + threes) * _CARD_COST
        if best == NONE or cost < lowest:
            paid = ones | twos << _CARD_BITS | threes << 2 * _CARD_BITS | wild << _KIND_BITS
            best, lowest = paid | left << _LEFT_OVER_AT, cost
    return best


_BAGS = np.array([_bags(cards) for cards in range(_CARDS_OF_A_KIND + 1)])
_PAYMENT = np.array(
    [
        [[_best_payment(cards, wilds, owed) for cards in range(_CARDS_OF_A_KIND + 1)] for wilds in range(SIZES + 1)]
        for owed in range(SIZES + 1)
    ]
)


@kernel
def hand_word(s: Row, player: int) -> int:
    """The cards of a player as a word."""
    word = int(s.wilds[player]) << _WILDS_AT
    for card in range(CARD_TYPES):
        word |= min(int(s.hands[player, card]), _MOST_ALIKE) << (card * _CARD_BITS)
    return word


@kernel
def token_word(s: Row, dungeon: int) -> int:
    """The tokens of a dungeon as a word; each is numbered from 1, so that 0 is the end."""
    word = 0
    for token in range(TOKEN_TYPES):
        for _ in range(s.dungeon_tokens[dungeon, token]):
            word = word << _TOKEN_BITS | token + 1
    return word


@kernel
def market_word(s: Row) -> int:
    """The market value of every kind as a word."""
    word = 0
    for space in range(KINDS):
        word |= int(s.market_values[space]) << (int(s.market[space]) * _TOKEN_BITS)
    return word


@kernel
def market_value(market: int, kind: int) -> int:
    """The market value of a kind."""
    return market >> (kind * _TOKEN_BITS) & _ONE_TOKEN


@kernel
def payment(hand: int, kind: int, owed: int) -> int:
    """How this hand pays so many bags of a kind."""
    wilds = min(hand >> _WILDS_AT, SIZES)
    return int(_PAYMENT[owed, wilds, hand >> (kind * _KIND_BITS) & _CARDS_OF_A_KIND])


@kernel
def after_payment(hand: int, kind: int, paid: int) -> int:
    """The hand without what it has paid."""
    wilds = paid >> _KIND_BITS & _MOST_ALIKE
    return hand - ((paid & _CARDS_OF_A_KIND) << (kind * _KIND_BITS)) - (wilds << _WILDS_AT)


# --- the outlook


@kernel
def turn_key(s: Row, player: int, dungeon: int) -> int:
    """A number that orders the players of a dungeon (§8.2), the first has the highest; 0 without a turn."""
    if dungeon == s.gather_dungeon:
        key = 0
        for turn in range(s.num_players):
            if s.gather_order[turn] == player:
                key = int(s.num_players) - turn
        return key
    crew = int(s.crew[player, dungeon])
    return (crew << 6) - int(s.places[player, dungeon, 0])


@kernel
def kept_worth(s: Row, player: int, hand: int, market: int, spent: int) -> int:
    """What a player keeps for later: bags, wild bags and adventurers."""
    worth = (hand >> _WILDS_AT) * WILD
    for kind in range(KINDS):
        worth += BAG * market_value(market, kind) * int(_BAGS[hand >> (kind * _KIND_BITS) & _CARDS_OF_A_KIND])
    crew = -spent
    for dungeon in range(DUNGEONS):
        crew += int(s.crew[player, dungeon])
    supply = int(s.supply[player])
    soon = min(supply, SUPPLY_SOON)
    return worth + CREW * crew + SUPPLY * soon + SUPPLY_MORE * (supply - soon)


@kernel
def outlook(s: Row, player: int, scoring: bool) -> int:
    """The lead of a player over the others' mean after a scoring round in which all take the best they can pay.

    With `scoring` that round is certain, so that it may end the game. During a scoring round: what is left of it.
    """
    players = int(s.num_players)
    market = market_word(s)
    hand_0, hand_1 = hand_word(s, 0), hand_word(s, 1)
    hand_2 = hand_word(s, 2) if players > 2 else 0
    hand_3 = hand_word(s, 3) if players > 3 else 0
    points = 0  # a word: 16 bits for each player
    spent = 0  # a word: the adventurers who went to Marseille
    left_over = 0  # a word: 2 bits for each kind
    if s.gather_dungeon != NONE:
        for kind in range(KINDS):
            left_over |= int(s.left_over_bags[kind]) << (kind * _LEFT_OVER_BITS)
    for dungeon in range(max(int(s.gather_dungeon), 0), DUNGEONS):
        tokens = token_word(s, dungeon)
        last_key = 1 << 16
        while tokens:
            gatherer, key = 0, 0
            for other in range(players):
                other_key = turn_key(s, other, dungeon)
                if key < other_key < last_key:
                    gatherer, key = other, other_key
            if key == 0:
                break
            last_key = key
            hand = hand_0 if gatherer == 0 else hand_1 if gatherer == 1 else hand_2 if gatherer == 2 else hand_3
            for _ in range(s.crew[gatherer, dungeon]):
                best, best_paid, best_place = 0, 0, 0
                rest, place = tokens, 0
                while rest:
                    token = (rest & _ONE_TOKEN) - 1
                    kind, value = token // SIZES, token % SIZES + 1
                    left = left_over >> (kind * _LEFT_OVER_BITS) & _MOST_ALIKE
                    paid = payment(hand, kind, value - left) if value > left else (left - value) << _LEFT_OVER_AT
                    gain = value * market_value(market, kind)
                    if paid != NONE and gain > best:
                        best, best_paid, best_place = gain, paid, place
                    rest >>= _TOKEN_BITS
                    place += _TOKEN_BITS
                if best == 0:
                    break
                kind = ((tokens >> best_place & _ONE_TOKEN) - 1) // SIZES
                hand = after_payment(hand, kind, best_paid)
                left_over &= ~(_MOST_ALIKE << (kind * _LEFT_OVER_BITS))
                left_over |= best_paid >> _LEFT_OVER_AT << (kind * _LEFT_OVER_BITS)
                tokens = (tokens >> (best_place + _TOKEN_BITS) << best_place) | tokens & ((1 << best_place) - 1)
                points += best << (16 * gatherer)
                spent += 1 << (16 * gatherer)
            left_over = 0
            if gatherer == 0:
                hand_0 = hand
            elif gatherer == 1:
                hand_1 = hand
            elif gatherer == 2:
                hand_2 = hand
            else:
                hand_3 = hand
        left_over = 0
    own, others, final, best_other = 0, 0, 0, 0
    for seat in range(players):
        hand = hand_0 if seat == 0 else hand_1 if seat == 1 else hand_2 if seat == 2 else hand_3
        gained = points >> (16 * seat) & 0xFFFF
        worth = POINT * gained + kept_worth(s, seat, hand, market, spent >> (16 * seat) & 0xFFFF)
        total = int(s.score[seat]) + gained
        if scoring:
            total += gathered_points(s, seat)
        if seat == player:
            own, final = worth, total
        else:
            others += worth
            best_other = max(best_other, total)
    lead = own - others // (players - 1)
    if scoring and max(final, best_other) >= s.target:
        lead += GAME if final > best_other else -GAME
    return lead


# --- Supply


@kernel
def choose_deal(s: Row) -> int:
    """The card that is worth most here, compared with where else it can go."""
    player = int(s.current_player)
    recipient = int(s.recipient)
    later = int(s.offer_size) - 1
    best, choice = 0, NONE
    for card in range(CARD_TYPES):
        if s.offer[card] == 0:
            continue
        gain = later * outlook_with_card(s, player, recipient, card)
        other = recipient
        for _ in range(later):
            other = other + 1 if other + 1 < s.num_players else 0
            gain -= outlook_with_card(s, player, other, card)
        if choice == NONE or gain > best:
            best, choice = gain, card
    return choice


@kernel
def outlook_with_card(s: Row, player: int, recipient: int, card: int) -> int:
    """The outlook if this card goes to a recipient."""
    moved = min(int(s.card_adventurers[card % SIZES]), int(s.marseille[recipient]))
    s.hands[recipient, card] += 1
    s.supply[recipient] += moved
    found = outlook(s, player, False)
    s.supply[recipient] -= moved
    s.hands[recipient, card] -= 1
    return found


@kernel
def choose_discard(s: Row) -> int:
    """The card that will be missed least."""
    player = int(s.current_player)
    best, choice = 0, NONE
    for card in range(WILD_BAG):
        if s.hands[player, card] == 0:
            continue
        s.hands[player, card] -= 1
        found = outlook(s, player, False)
        s.hands[player, card] += 1
        if choice == NONE or found > best:
            best, choice = found, card
    if s.wilds[player] > 0:
        s.wilds[player] -= 1
        found = outlook(s, player, False)
        s.wilds[player] += 1
        if choice == NONE or found > best:
            choice = WILD_BAG
    return choice


# --- Adventurers


@kernel
def outlook_with_crew(s: Row, player: int, dungeon: int, more: int) -> int:
    """The outlook if so many adventurers enter a dungeon."""
    crew = s.crew[player, dungeon]
    first = s.places[player, dungeon, 0]
    if crew == 0:
        s.places[player, dungeon, 0] = s.queue_length[dungeon] + 1
    s.crew[player, dungeon] += more
    s.supply[player] -= more
    found = outlook(s, player, False)
    s.supply[player] += more
    s.crew[player, dungeon] = crew
    s.places[player, dungeon, 0] = first
    return found


@kernel
def best_entry(s: Row, player: int, left: int) -> tuple[int, int]:
    """The dungeon where an adventurer brings most, and what; several together may bring more than one."""
    now = outlook(s, player, False)
    best, choice = 0, NONE
    for dungeon in range(DUNGEONS):
        for more in range(1, left + 1):
            gain = (outlook_with_crew(s, player, dungeon, more) - now) // more
            if gain > best:
                best, choice = gain, dungeon
    return choice, best


@kernel
def choose_place(s: Row) -> int:
    """A dungeon or a bonus zone, whichever brings most, or nothing."""
    player = int(s.current_player)
    supply = int(s.supply[player])
    left = min(int(s.placements_left), supply)
    choice, best = best_entry(s, player, left)
    entry = best
    if choice == NONE:
        choice = STOP_PLACING
    if s.zone_used:
        return choice
    spent = SUPPLY if supply <= SUPPLY_SOON else SUPPLY_MORE
    for zone in range(ZONES):
        if s.zones[player, zone]:
            continue
        match zone:
            case Zone.WILD:
                gain = WILD
            case Zone.DISEMBARK:
                arriving = min(DISEMBARKING, int(s.marseille[player]))
                gain = SUPPLY * arriving + max(0, int(s.placements_left) - supply) * entry
            case Zone.POINTS:
                gain = BONUS
            case _:
                placed = min(supply - 1, int(s.placements_left) - 1 + REINFORCEMENTS)
                gain = (placed - left + 1) * entry
        if gain - spent > best:
            best, choice = gain - spent, VISIT + zone
    return choice


@kernel
def choose_reinforce(s: Row) -> int:
    """The dungeon where a reinforcement brings most, or nothing."""
    player = int(s.current_player)
    choice, _ = best_entry(s, player, min(int(s.reinforcements_left), int(s.supply[player])))
    return STOP_REINFORCING if choice == NONE else choice


# --- Treasure chest


@kernel
def choose_put_token(s: Row) -> int:
    """The dungeon where the token helps most; a full one starts a scoring round, which is good for who leads."""
    player = int(s.current_player)
    token = int(s.drawn_tokens[0])
    full_already = False
    for dungeon in range(DUNGEONS):
        full_already |= tokens_in(s, dungeon) == TREASURE_PLACES
    best, choice = 0, NONE
    for dungeon in range(DUNGEONS):
        if s.chest_dungeons[dungeon]:
            continue
        s.dungeon_tokens[dungeon, token] += 1
        full = full_already or tokens_in(s, dungeon) == TREASURE_PLACES
        found = outlook(s, player, full)
        s.dungeon_tokens[dungeon, token] -= 1
        if not full:
            found = found // 2 + SCORING_LEAD
        if choice == NONE or found > best:
            best, choice = found, dungeon
    return choice


# --- Scoring


@kernel
def choose_take(s: Row) -> int:
    """The token that leaves the best outlook for the rest of the scoring round, or none."""
    player = int(s.current_player)
    dungeon = int(s.gather_dungeon)
    market = market_word(s)
    hand = hand_word(s, player)
    s.gather_order[0] = NONE
    best, choice = outlook(s, player, False), STOP_TAKING
    s.gather_order[0] = player
    for token in range(TOKEN_TYPES):
        if s.legal & bit(token) == NOTHING:
            continue
        kind, value = token // SIZES, token % SIZES + 1
        left = int(s.left_over_bags[kind])
        paid = payment(hand, kind, value - left) if value > left else (left - value) << _LEFT_OVER_AT
        pay_in_mind(s, player, kind, paid, -1)
        s.left_over_bags[kind] = paid >> _LEFT_OVER_AT
        s.dungeon_tokens[dungeon, token] -= 1
        s.crew[player, dungeon] -= 1
        found = outlook(s, player, False) + POINT * value * market_value(market, kind)
        s.crew[player, dungeon] += 1
        s.dungeon_tokens[dungeon, token] += 1
        s.left_over_bags[kind] = left
        pay_in_mind(s, player, kind, paid, 1)
        if found > best:
            best, choice = found, token
    return choice


@kernel
def pay_in_mind(s: Row, player: int, kind: int, paid: int, sign: int) -> None:
    """Takes what is paid out of the hand, or puts it back."""
    for size in range(SIZES):
        s.hands[player, kind * SIZES + size] += sign * (paid >> (size * _CARD_BITS) & _MOST_ALIKE)
    s.wilds[player] += sign * (paid >> _KIND_BITS & _MOST_ALIKE)


@kernel
def choose_pay(s: Row) -> int:
    """A card of the cheapest payment."""
    kind, value = int(s.taking) // SIZES, int(s.taking) % SIZES + 1
    paid = payment(hand_word(s, int(s.current_player)), kind, value - int(s.left_over_bags[kind]))
    for size in range(SIZES):
        if paid >> (size * _CARD_BITS) & _MOST_ALIKE:
            return kind * SIZES + size
    return WILD_BAG


# --- Rearrange and the action slide


@kernel
def lane_worth(lane: int) -> int:
    """What it is worth to be active in a lane."""
    match lane:
        case Lane.SUPPLY:
            return LANE_SUPPLY
        case Lane.ADVENTURERS:
            return LANE_ADVENTURERS
        case Lane.CHEST:
            return LANE_CHEST
        case _:
            return LANE_REARRANGE


@kernel
def choose_rearrange(s: Row) -> int:
    """A marble that gets its turn sooner, or a market marker that helps most."""
    player = int(s.current_player)
    best, choice = 0, KEEP_ORDER
    for lane in range(LANES):
        for position in range(1, s.lane_size[lane]):
            if s.lanes[lane, position] != player + 1:
                continue
            gain = 0
            for by in range(1, min(position, LONGEST_MOVE) + 1):
                if s.lanes[lane, position - by] != player + 1:
                    gain += WAITING
                if gain > best:
                    best, choice = gain, lane * MOVES_PER_LANE + FIRST_MOVE[position] + by - 1
    now = outlook(s, player, False)
    for space in range(1, KINDS):
        kind = int(s.market[space])
        for by in range(1, min(space, LONGEST_MOVE) + 1):
            move_marker(s, kind, by)
            gain = (outlook(s, player, False) - now) * MARKET // 100
            for place in range(space - by, space):
                s.market[place], s.market[place + 1] = s.market[place + 1], s.market[place]
            if gain > best:
                best, choice = gain, MOVE_MARKER + kind * LONGEST_MOVE + by - 1
    return choice


@kernel
def choose_return_marble(s: Row) -> int:
    """The lane with the best action that does not let the marble wait too long."""
    best, choice = 0, NONE
    for lane in range(LANES):
        if s.legal & bit(lane) == NOTHING:
            continue
        wait = int(s.lane_size[lane]) + (lane < s.cylinder)
        gain = lane_worth(lane) - WAITING * wait
        if choice == NONE or gain > best:
            best, choice = gain, lane
    return choice


# --- all together


@kernel
def greedy_choice(s: Row) -> int:
    """What the greedy player does in this position, as the place in the decision's block.

    Looks at public fields only; changes it makes to the row to try them out are taken back.
    """
    match s.decision:
        case Decision.DEAL:
            return choose_deal(s)
        case Decision.DISCARD:
            return choose_discard(s)
        case Decision.PLACE:
            return choose_place(s)
        case Decision.REINFORCE:
            return choose_reinforce(s)
        case Decision.PUT_TOKEN:
            return choose_put_token(s)
        case Decision.TAKE:
            return choose_take(s)
        case Decision.PAY:
            return choose_pay(s)
        case Decision.REARRANGE:
            return choose_rearrange(s)
        case _:
            return choose_return_marble(s)


library = Library("the greedy player", __file__)


@library.entry_point
def choose_actions(states: States, out: np.ndarray, begin: int, end: int) -> None:
    """The greedy action of every row."""
    for k in range(begin, end):
        s = states[k]
        out[k] = FIRST[s.decision] + greedy_choice(s) if s.legal != NOTHING else NONE


def _call_every_entry_point() -> None:
    states = np.zeros(1, STATE)
    states["num_players"] = MIN_PLAYERS
    choose_actions(states, np.zeros(1, np.int64), 0, 1)


ROWS_PER_THREAD = 512  # rows that are worth a thread


class GreedyAgent:
    """Plays by rules of thumb on what everybody can see; the same position always gets the same action."""

    name = "greedy"

    def __init__(self) -> None:
        library.compile_once(_call_every_entry_point)

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        positions = games.public_rows(rows)
        actions = np.empty(positions.size, np.int64)
        share(choose_actions, positions, actions, size=positions.size, threads=ALL_CORES, least=ROWS_PER_THREAD)
        return actions
