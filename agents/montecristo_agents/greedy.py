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
    MAX_PLAYERS,
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
from montecristo_env.core.scoring import gathered_points
from montecristo_env.threads import ALL_CORES, share

Hands: TypeAlias = tuple[int, int, int, int]
Tokens: TypeAlias = tuple[int, int]

POINT = 100

# --- weights, found by matches between versions
BAG = 52  # a bag that is kept, times the market value of its kind
WILD = 156  # a wild bag that is kept: it fits every token
WASTE = 30  # a bag that a payment loses, times its market value: such tokens are taken last
CREW = 42  # an adventurer who waits in a dungeon
FOOTHOLD = 30  # a dungeon with an own adventurer
FOREMOST = 20  # the first turn in a dungeon
SUPPLY = 19  # an adventurer in the personal supply
BONUS = 260  # bonus points: they cannot be lost
NEXT_ENTRY = 60  # percent: what a further adventurer brings, compared with the best one
KEPT_AT_THE_END = 70  # percent: what is kept for later counts less if the next scoring round ends the game
WAIT_SHARE = 60  # percent: what a lead is worth if the scoring round does not come at once
READY_SHARE = 30  # percent: how likely the next chest starts the scoring round, if its player wants it
GAME = 10000  # the end of the game, won or lost
WAITING = 15  # what it costs a marble to wait while the cylinder moves by one lane
TWO_SUPPLY = 84
TWO_ADVENTURERS = 22
TWO_REARRANGE = 159
MORE_SUPPLY = 26
MORE_ADVENTURERS = -22
MORE_REARRANGE = 26


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
def number_of(there: int) -> int:
    """How many tokens a dungeon holds."""
    number = 0
    while there:
        there >>= _TOKEN_BITS
        number += 1
    return number


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
def next_gatherer(waiting: int) -> int:
    """The player whose turn comes first."""
    player, first = 0, 0
    for other in range(MAX_PLAYERS):
        turn = waiting >> (other * _PLAYER_BITS) & _PLAYER
        if turn > first:
            player, first = other, turn
    return player


@kernel
def left_over_word(s: Row) -> int:
    """The bags of each kind that are left over in this turn."""
    word = 0
    for kind in range(KINDS):
        word |= int(s.left_over_bags[kind]) << (kind * _LEFT_OVER_BITS)
    return word


@kernel
def gather(hand: int, there: int, market: int, crew: int, left_over: int) -> tuple[int, int, int, int]:
    """One turn in a dungeon: a player takes the best token he can pay, and again.

    Returns his hand, the tokens that stay, his points and the adventurers it took.
    """
    points, spent = 0, 0
    while spent < crew:
        best, best_paid, best_place = 0, 0, 0
        rest, place = there, 0
        while rest:
            kind, value = (rest & _TOKEN) >> _VALUE_BITS, rest & _VALUE
            paid = payment(hand, kind, value, left_over >> (kind * _LEFT_OVER_BITS) & _MOST_ALIKE)
            gain = (POINT * value - WASTE * (paid >> _LEFT_OVER_AT)) * market_value(market, kind)
            if paid != NONE and gain > best:
                best, best_paid, best_place = gain, paid, place
            rest >>= _TOKEN_BITS
            place += _TOKEN_BITS
        if best == 0:
            break
        token = there >> best_place & _TOKEN
        kind = token >> _VALUE_BITS
        hand = after_payment(hand, kind, best_paid)
        left_over &= ~(_MOST_ALIKE << (kind * _LEFT_OVER_BITS))
        left_over |= best_paid >> _LEFT_OVER_AT << (kind * _LEFT_OVER_BITS)
        there = without_token(there, best_place)
        points += (token & _VALUE) * market_value(market, kind)
        spent += 1
    return hand, there, points, spent


@kernel
def kept_worth(s: Row, player: int, hand: int, market: int, spent: int) -> int:
    """What a player keeps for later: bags, wild bags and adventurers."""
    worth = WILD * (hand >> _WILDS_AT) - CREW * spent
    for kind in range(KINDS):
        worth += BAG * market_value(market, kind) * int(_BAGS[hand >> (kind * _KIND_BITS) & _CARDS_OF_A_KIND])
    for dungeon in range(DUNGEONS):
        worth += CREW * int(s.crew[player, dungeon]) + FOOTHOLD * (s.crew[player, dungeon] > 0)
    return worth + SUPPLY * int(s.supply[player])


@kernel
def outlook(s: Row, hands: Hands, tokens: Tokens, player: int, certain: bool, sure: int) -> int:
    """The lead of a player over the others' mean if a scoring round came now, in which all take the best they can pay.

    With `certain` that round does come, so it may end the game; `sure` points are then the player's already. During a
    scoring round: what is left of it.
    """
    rivals = int(s.num_players) - 1
    market = market_word(s)
    points, spent = 0, 0  # of each player
    ahead = 0
    for dungeon in range(max(int(s.gather_dungeon), 0), DUNGEONS):
        there = tokens_of(tokens, dungeon)
        waiting = turns(s, dungeon)
        if waiting == 0:
            continue
        gatherer = next_gatherer(waiting)
        ahead += FOREMOST * (rivals if gatherer == player else -1)
        while there and waiting:
            now = dungeon == s.gather_dungeon and gatherer == s.current_player
            left_over = left_over_word(s) if now else 0
            hand, there, gained, gone = gather(
                hand_of(hands, gatherer), there, market, int(s.crew[gatherer, dungeon]), left_over
            )
            hands = with_hand(hands, gatherer, hand)
            points += gained << (gatherer * _PLAYER_BITS)
            spent += gone << (gatherer * _PLAYER_BITS)
            waiting &= ~(_PLAYER << (gatherer * _PLAYER_BITS))
            gatherer = next_gatherer(waiting)
    kept, final, best_other = 0, 0, 0
    lead = POINT * rivals * sure
    for seat in range(rivals + 1):
        gained = points >> (seat * _PLAYER_BITS) & _PLAYER
        gone = spent >> (seat * _PLAYER_BITS) & _PLAYER
        weight = rivals if seat == player else -1
        lead += POINT * gained * weight
        kept += kept_worth(s, seat, hand_of(hands, seat), market, gone) * weight
        total = int(s.score[seat]) + gathered_points(s, seat) + gained
        if seat == player:
            final = total + sure
        else:
            best_other = max(best_other, total)
    ends = max(final, best_other) >= s.target
    if certain and ends:
        return POINT * (final - best_other) + (GAME if final > best_other else -GAME)
    return (lead + ahead + (kept * KEPT_AT_THE_END // 100 if ends else kept)) // rivals


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
    found = outlook(s, with_hand(hands, recipient, hand), tokens, player, False, 0)
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
        found = outlook(s, with_hand(hands, player, hand), tokens, player, False, 0)
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
    found = outlook(s, hands, tokens, player, False, 0)
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
def best_entry(s: Row, hands: Hands, tokens: Tokens, now: int, left: int) -> tuple[int, int]:
    """The dungeon where an adventurer brings most, NONE if nowhere, and how much.

    A crowd that overtakes all others counts as much as its adventurers bring on average.
    """
    player = int(s.current_player)
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
    hands, tokens = all_hands(s), all_tokens(s)
    now = outlook(s, hands, tokens, player, False, 0)
    choice, entry = best_entry(s, hands, tokens, now, min(int(s.placements_left), int(s.supply[player])))
    best = entry
    if choice == NONE:
        choice = STOP_PLACING
    for zone in range(ZONES):
        if s.legal & bit(VISIT + zone) == NOTHING:
            continue
        if zone == Zone.WILD:
            richer = with_hand(hands, player, hand_of(hands, player) + (1 << _WILDS_AT))
            gain = outlook(s, richer, tokens, player, False, 0) - now
        else:
            gain = bonus_gain(s, player, zone, entry)
        if gain - SUPPLY > best:
            best, choice = gain - SUPPLY, VISIT + zone
    return choice


@kernel
def bonus_gain(s: Row, player: int, zone: int, entry: int) -> int:
    """What a bonus brings, if the best entry into a dungeon brings `entry`."""
    supply, left = int(s.supply[player]), int(s.placements_left)
    match zone:
        case Zone.DISEMBARK:
            arriving = min(DISEMBARKING, int(s.marseille[player]))
            return SUPPLY * arriving + entry * max(0, left - supply) * NEXT_ENTRY // 100
        case Zone.REINFORCEMENT:
            more = min(supply - 1, left - 1 + REINFORCEMENTS) - (min(supply, left) - 1)
            return entry * more * NEXT_ENTRY // 100
        case _:
            return BONUS


@kernel
def choose_reinforce(s: Row) -> int:
    """The dungeon where a reinforcement brings most, or nothing."""
    player = int(s.current_player)
    hands, tokens = all_hands(s), all_tokens(s)
    now = outlook(s, hands, tokens, player, False, 0)
    choice, _ = best_entry(s, hands, tokens, now, min(int(s.reinforcements_left), int(s.supply[player])))
    return STOP_REINFORCING if choice == NONE else choice


# --- Treasure chest


@kernel
def put_worth(s: Row, hands: Hands, tokens: Tokens, player: int) -> int:
    """The outlook with these tokens; a full dungeon starts a scoring round, which is good for who leads."""
    most = 0
    for dungeon in range(DUNGEONS):
        most = max(most, number_of(tokens_of(tokens, dungeon)))
    if most == TREASURE_PLACES:
        return outlook(s, hands, tokens, player, True, 0)
    later = outlook(s, hands, tokens, player, False, 0) * WAIT_SHARE // 100
    if most == TREASURE_PLACES - 1 and s.lane_size[Lane.CHEST] > 1:
        then = outlook(s, hands, tokens, player, True, 0)
        own = s.lanes[Lane.CHEST, 1] == player + 1
        if own == (then > later):
            later += (then - later) * READY_SHARE // 100
    return later


@kernel
def best_put(s: Row, hands: Hands, tokens: Tokens, drawn: int, taken: int) -> tuple[int, int]:
    """The best dungeon for one of the drawn tokens, but for the one already taken, and its worth."""
    best, choice = 0, NONE
    token = token_word(int(s.drawn_tokens[drawn]))
    for dungeon in range(DUNGEONS):
        if s.chest_dungeons[dungeon] or dungeon == taken:
            continue
        there = tokens_of(tokens, dungeon) << _TOKEN_BITS | token
        found = put_worth(s, hands, with_tokens(tokens, dungeon, there), int(s.current_player))
        if choice == NONE or found > best:
            best, choice = found, dungeon
    return choice, best


@kernel
def choose_put_token(s: Row) -> int:
    """The dungeon where the token helps most, with the next token in mind."""
    hands, tokens = all_hands(s), all_tokens(s)
    if s.drawn_tokens[1] == NONE:
        choice, _ = best_put(s, hands, tokens, 0, NONE)
        return choice
    best, choice = 0, NONE
    token = token_word(int(s.drawn_tokens[0]))
    for dungeon in range(DUNGEONS):
        if s.chest_dungeons[dungeon]:
            continue
        there = tokens_of(tokens, dungeon) << _TOKEN_BITS | token
        _, found = best_put(s, hands, with_tokens(tokens, dungeon, there), 1, dungeon)
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
    best, choice = outlook(s, hands, tokens, player, True, 0), STOP_TAKING
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
            found = outlook(s, hands_then, tokens_then, player, True, value * market_value(market, kind))
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
def lane_worth(lane: int, two: bool) -> int:
    """What it is worth to be active in a lane."""
    match lane:
        case Lane.SUPPLY:
            return TWO_SUPPLY if two else MORE_SUPPLY
        case Lane.ADVENTURERS:
            return TWO_ADVENTURERS if two else MORE_ADVENTURERS
        case Lane.REARRANGE:
            return TWO_REARRANGE if two else MORE_REARRANGE
        case _:
            return 0


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
                    gain += LANES * WAITING
                if gain > best:
                    best, choice = gain, lane * MOVES_PER_LANE + FIRST_MOVE[position] + by - 1
    now = outlook(s, hands, tokens, player, False, 0)
    for space in range(1, KINDS):
        kind = int(s.market[space])
        for by in range(1, min(space, LONGEST_MOVE) + 1):
            move_marker(s, kind, by)
            gain = outlook(s, hands, tokens, player, False, 0) - now
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
        wait = int(s.lane_size[lane]) * LANES + (lane - int(s.cylinder)) % LANES
        gain = lane_worth(lane, s.num_players == 2) - WAITING * wait
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
