"""The greedy player: for every decision it asks what the scoring round would bring if it came now.

`outlook` plays that scoring round in its head, on what everybody can see: each player takes the best tokens he can
pay for. Most decisions try every choice on the row, look at the outlook and take the change back. Everything is
counted in hundredths of a point.
"""

import itertools
from typing import TypeAlias

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
from montecristo_env.threads import ALL_CORES, share

Hands: TypeAlias = tuple[int, int, int, int]
Tokens: TypeAlias = tuple[int, int]

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
# A token: its kind above its value. The tokens of a dungeon: a list of them. The tokens of half the dungeons: a word.
_VALUE_BITS = 2
_VALUE = (1 << _VALUE_BITS) - 1
_TOKEN_BITS = _VALUE_BITS + 3
_TOKEN = (1 << _TOKEN_BITS) - 1
_DUNGEON_BITS = TREASURE_PLACES * _TOKEN_BITS
_ALL_TOKENS = (1 << _DUNGEON_BITS) - 1
_HALF = DUNGEONS // 2
# A payment: its cards and wild bags, then the bags left over, or -1.
_LEFT_OVER_AT = _KIND_BITS + _CARD_BITS
_LEFT_OVER_BITS = 2
_WILD_COST, _WASTE_COST, _CARD_COST = 12, 8, 1  # a wild bag fits everything; a waste is lost; small cards go first
# Anything for each of four players, or of five kinds.
_PLAYER_BITS = 16
_PLAYER = (1 << _PLAYER_BITS) - 1
_MARKET_BITS = 2
_QUEUE_BITS = 6  # for a place in a queue


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
    """The cards of a player."""
    word = int(s.wilds[player]) << _WILDS_AT
    for card in range(CARD_TYPES):
        word |= min(int(s.hands[player, card]), _MOST_ALIKE) << (card * _CARD_BITS)
    return word


@kernel
def all_hands(s: Row) -> Hands:
    """The cards of all players; those of absent ones are none."""
    return hand_word(s, 0), hand_word(s, 1), hand_word(s, 2), hand_word(s, 3)


@kernel
def hand_of(hands: Hands, player: int) -> int:
    """The cards of one player."""
    return hands[0] if player == 0 else hands[1] if player == 1 else hands[2] if player == 2 else hands[3]


@kernel
def with_hand(hands: Hands, player: int, hand: int) -> Hands:
    """The same hands but for one player."""
    return (
        hand if player == 0 else hands[0],
        hand if player == 1 else hands[1],
        hand if player == 2 else hands[2],
        hand if player == 3 else hands[3],
    )


@kernel
def token_word(token: int) -> int:
    """One token."""
    return token // SIZES << _VALUE_BITS | token % SIZES + 1


@kernel
def half_of_the_tokens(s: Row, first: int) -> int:
    """The tokens of three dungeons."""
    word = 0
    for dungeon in range(_HALF):
        place = dungeon * _DUNGEON_BITS
        for token in range(TOKEN_TYPES):
            for _ in range(s.dungeon_tokens[first + dungeon, token]):
                word |= token_word(token) << place
                place += _TOKEN_BITS
    return word


@kernel
def all_tokens(s: Row) -> Tokens:
    """The tokens of all dungeons."""
    return half_of_the_tokens(s, 0), half_of_the_tokens(s, _HALF)


@kernel
def tokens_of(tokens: Tokens, dungeon: int) -> int:
    """The tokens of one dungeon."""
    if dungeon < _HALF:
        return tokens[0] >> (dungeon * _DUNGEON_BITS) & _ALL_TOKENS
    return tokens[1] >> ((dungeon - _HALF) * _DUNGEON_BITS) & _ALL_TOKENS


@kernel
def with_tokens(tokens: Tokens, dungeon: int, there: int) -> Tokens:
    """The same tokens but for one dungeon."""
    change = tokens_of(tokens, dungeon) ^ there
    if dungeon < _HALF:
        return tokens[0] ^ change << (dungeon * _DUNGEON_BITS), tokens[1]
    return tokens[0], tokens[1] ^ change << ((dungeon - _HALF) * _DUNGEON_BITS)


@kernel
def without_token(there: int, place: int) -> int:
    """The list of a dungeon's tokens without the one that begins at this bit."""
    return there >> (place + _TOKEN_BITS) << place | there & ((1 << place) - 1)


@kernel
def market_word(s: Row) -> int:
    """The market value of every kind."""
    word = 0
    for space in range(KINDS):
        word |= int(s.market_values[space]) << (int(s.market[space]) * _MARKET_BITS)
    return word


@kernel
def market_value(market: int, kind: int) -> int:
    """The market value of one kind."""
    return market >> (kind * _MARKET_BITS) & _VALUE


@kernel
def payment(hand: int, kind: int, price: int, left_over: int) -> int:
    """How a hand pays a price in bags of a kind, if so many are left over; -1 if it cannot."""
    if left_over >= price:
        return (left_over - price) << _LEFT_OVER_AT
    wilds = min(hand >> _WILDS_AT, SIZES)
    return int(_PAYMENT[price - left_over, wilds, hand >> (kind * _KIND_BITS) & _CARDS_OF_A_KIND])


@kernel
def after_payment(hand: int, kind: int, paid: int) -> int:
    """The hand without what it has paid."""
    wilds = paid >> _KIND_BITS & _MOST_ALIKE
    return hand - ((paid & _CARDS_OF_A_KIND) << (kind * _KIND_BITS)) - (wilds << _WILDS_AT)


# --- the outlook


@kernel
def turns(s: Row, dungeon: int) -> int:
    """For each player a number that orders the turns of a dungeon (§8.2): highest first, 0 for no turn."""
    word = 0
    if dungeon == s.gather_dungeon:
        for turn in range(s.num_players):
            if s.gather_order[turn] != NONE:
                word |= (int(s.num_players) - turn) << (int(s.gather_order[turn]) * _PLAYER_BITS)
        return word
    for player in range(s.num_players):
        key = (int(s.crew[player, dungeon]) << _QUEUE_BITS) - int(s.places[player, dungeon, 0])
        word |= key << (player * _PLAYER_BITS)
    return word


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
def outlook(s: Row, hands: Hands, tokens: Tokens, player: int, scoring: bool) -> int:
    """The lead of a player over the others' mean after a scoring round in which all take the best they can pay.

    With `scoring` that round is certain, so that it may end the game. During a scoring round: what is left of it.
    """
    players = int(s.num_players)
    market = market_word(s)
    points = 0  # of each player
    spent = 0  # the adventurers of each player who went to Marseille
    left_over = 0  # the bags of each kind
    if s.gather_dungeon != NONE:
        for kind in range(KINDS):
            left_over |= int(s.left_over_bags[kind]) << (kind * _LEFT_OVER_BITS)
    for dungeon in range(max(int(s.gather_dungeon), 0), DUNGEONS):
        there = tokens_of(tokens, dungeon)
        waiting = turns(s, dungeon)
        while there and waiting:
            gatherer, first = 0, 0
            for other in range(players):
                turn = waiting >> (other * _PLAYER_BITS) & _PLAYER
                if turn > first:
                    gatherer, first = other, turn
            waiting ^= first << (gatherer * _PLAYER_BITS)
            hand = hand_of(hands, gatherer)
            for _ in range(s.crew[gatherer, dungeon]):
                best, best_paid, best_place = 0, 0, 0
                rest, place = there, 0
                while rest:
                    kind, value = (rest & _TOKEN) >> _VALUE_BITS, rest & _VALUE
                    gain = value * market_value(market, kind)
                    if gain > best:
                        paid = payment(hand, kind, value, left_over >> (kind * _LEFT_OVER_BITS) & _MOST_ALIKE)
                        if paid != NONE:
                            best, best_paid, best_place = gain, paid, place
                    rest >>= _TOKEN_BITS
                    place += _TOKEN_BITS
                if best == 0:
                    break
                kind = (there >> best_place & _TOKEN) >> _VALUE_BITS
                hand = after_payment(hand, kind, best_paid)
                left_over &= ~(_MOST_ALIKE << (kind * _LEFT_OVER_BITS))
                left_over |= best_paid >> _LEFT_OVER_AT << (kind * _LEFT_OVER_BITS)
                there = without_token(there, best_place)
                points += best << (_PLAYER_BITS * gatherer)
                spent += 1 << (_PLAYER_BITS * gatherer)
            left_over = 0
            hands = with_hand(hands, gatherer, hand)
        left_over = 0
    own, others, final, best_other = 0, 0, 0, 0
    for seat in range(players):
        gained = points >> (_PLAYER_BITS * seat) & _PLAYER
        lost = spent >> (_PLAYER_BITS * seat) & _PLAYER
        worth = POINT * gained + kept_worth(s, seat, hand_of(hands, seat), market, lost)
        total = int(s.score[seat]) + gained
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
    hands, tokens = all_hands(s), all_tokens(s)
    recipient = int(s.recipient)
    later = int(s.offer_size) - 1
    best, choice = 0, NONE
    for card in range(CARD_TYPES):
        if s.offer[card] == 0:
            continue
        gain = later * outlook_with_card(s, hands, tokens, player, recipient, card)
        other = recipient
        for _ in range(later):
            other = other + 1 if other + 1 < s.num_players else 0
            gain -= outlook_with_card(s, hands, tokens, player, other, card)
        if choice == NONE or gain > best:
            best, choice = gain, card
    return choice


@kernel
def outlook_with_card(s: Row, hands: Hands, tokens: Tokens, player: int, recipient: int, card: int) -> int:
    """The outlook if this card goes to a recipient."""
    hand = hand_of(hands, recipient)
    if s.hands[recipient, card] < _MOST_ALIKE:
        hand += 1 << (card * _CARD_BITS)
    moved = min(int(s.card_adventurers[card % SIZES]), int(s.marseille[recipient]))
    s.supply[recipient] += moved
    found = outlook(s, with_hand(hands, recipient, hand), tokens, player, False)
    s.supply[recipient] -= moved
    return found


@kernel
def choose_discard(s: Row) -> int:
    """The card that will be missed least."""
    player = int(s.current_player)
    hands, tokens = all_hands(s), all_tokens(s)
    best, choice = 0, NONE
    for card in range(WILD_BAG + 1):
        if s.legal & bit(card) == NOTHING:
            continue
        hand = hand_of(hands, player) - (1 << (card * _CARD_BITS))
        found = outlook(s, with_hand(hands, player, hand), tokens, player, False)
        if choice == NONE or found > best:
            best, choice = found, card
    return choice


# --- Adventurers


@kernel
def outlook_with_crew(s: Row, hands: Hands, tokens: Tokens, player: int, dungeon: int, more: int) -> int:
    """The outlook if so many adventurers enter a dungeon."""
    crew = s.crew[player, dungeon]
    first = s.places[player, dungeon, 0]
    if crew == 0:
        s.places[player, dungeon, 0] = s.queue_length[dungeon] + 1
    s.crew[player, dungeon] += more
    s.supply[player] -= more
    found = outlook(s, hands, tokens, player, False)
    s.supply[player] += more
    s.crew[player, dungeon] = crew
    s.places[player, dungeon, 0] = first
    return found


@kernel
def to_overtake(s: Row, player: int, dungeon: int) -> int:
    """How many more adventurers than one it takes to have most in a dungeon; 1 if one is enough."""
    most = 0
    for other in range(s.num_players):
        if other != player:
            most = max(most, int(s.crew[other, dungeon]))
    return max(1, most + 1 - int(s.crew[player, dungeon]))


@kernel
def best_entry(s: Row, player: int, left: int) -> tuple[int, int]:
    """The dungeon where an adventurer brings most, and what; or several who together overtake the others."""
    hands, tokens = all_hands(s), all_tokens(s)
    now = outlook(s, hands, tokens, player, False)
    best, choice = 0, NONE
    for dungeon in range(DUNGEONS):
        gain = outlook_with_crew(s, hands, tokens, player, dungeon, 1) - now
        crowd = to_overtake(s, player, dungeon)
        if 1 < crowd <= left:
            gain = max(gain, (outlook_with_crew(s, hands, tokens, player, dungeon, crowd) - now) // crowd)
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
    hands, tokens = all_hands(s), all_tokens(s)
    token = token_word(int(s.drawn_tokens[0]))
    last_place = (TREASURE_PLACES - 1) * _TOKEN_BITS
    full_already = False
    for dungeon in range(DUNGEONS):
        full_already |= tokens_of(tokens, dungeon) >> last_place != 0
    best, choice = 0, NONE
    for dungeon in range(DUNGEONS):
        if s.chest_dungeons[dungeon]:
            continue
        there = tokens_of(tokens, dungeon) << _TOKEN_BITS | token
        full = full_already or there >> last_place != 0
        found = outlook(s, hands, with_tokens(tokens, dungeon, there), player, full)
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
    hands, tokens = all_hands(s), all_tokens(s)
    market = market_word(s)
    hand, there = hand_of(hands, player), tokens_of(tokens, dungeon)
    s.gather_order[0] = NONE
    best, choice = outlook(s, hands, tokens, player, False), STOP_TAKING
    s.gather_order[0] = player
    s.crew[player, dungeon] -= 1
    place = 0
    while there >> place:
        token = there >> place & _TOKEN
        kind, value = token >> _VALUE_BITS, token & _VALUE
        left_over = int(s.left_over_bags[kind])
        paid = payment(hand, kind, value, left_over)
        if paid != NONE:
            s.left_over_bags[kind] = paid >> _LEFT_OVER_AT
            hands_then = with_hand(hands, player, after_payment(hand, kind, paid))
            tokens_then = with_tokens(tokens, dungeon, without_token(there, place))
            found = outlook(s, hands_then, tokens_then, player, False) + POINT * value * market_value(market, kind)
            s.left_over_bags[kind] = left_over
            if found > best:
                best, choice = found, kind * SIZES + value - 1
        place += _TOKEN_BITS
    s.crew[player, dungeon] += 1
    return choice


@kernel
def choose_pay(s: Row) -> int:
    """A card of the cheapest payment."""
    kind, value = int(s.taking) // SIZES, int(s.taking) % SIZES + 1
    paid = payment(hand_word(s, int(s.current_player)), kind, value, int(s.left_over_bags[kind]))
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
    hands, tokens = all_hands(s), all_tokens(s)
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
    now = outlook(s, hands, tokens, player, False)
    for space in range(1, KINDS):
        kind = int(s.market[space])
        for by in range(1, min(space, LONGEST_MOVE) + 1):
            move_marker(s, kind, by)
            gain = (outlook(s, hands, tokens, player, False) - now) * MARKET // 100
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
