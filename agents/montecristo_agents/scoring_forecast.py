"""A forecast of the scoring round: what the scoring round would bring if it came now.

By what everybody can see: each player takes the best tokens they can pay for, and what they
keep is worth something too. Everything is counted in hundredths of a point. Cards and tokens are kept in words of
bits, which fit in registers, since every decision needs many forecasts.
"""

import itertools
from typing import TypeAlias

import numpy as np

from montecristo_env.core.chance import lowest_bit
from montecristo_env.core.constants import (
    CARD_TYPES,
    DUNGEONS,
    KINDS,
    MAX_PLAYERS,
    NONE,
    SIZES,
    TOKEN_TYPES,
    TREASURE_PLACES,
)
from montecristo_env.core.jit import kernel
from montecristo_env.core.layout import Row
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.scoring import gathered_points

Hands: TypeAlias = tuple[int, int, int, int]
Tokens: TypeAlias = tuple[int, int]
Balance: TypeAlias = tuple[int, int, int, int]
"""How a player stands: lead over the others in points gained and in things kept, score, and the best other score."""
Round: TypeAlias = tuple[Hands, int, int]
"""How far a scoring round has come: the hands, and words with each player's points and the adventurers it took."""

POINT = PERCENT = 100

# --- weights, found by matches between versions
BAG = 52  # a bag that is kept, times the market value of its kind
WILD = 190  # a wild bag that is kept: it fits every token
WASTE = 50  # a bag that a payment loses, times its market value: tokens that suit the cards are taken first
CREW = 42  # an adventurer who waits in a dungeon
FOOTHOLD = 40  # a dungeon with an adventurer in it: what comes there can be taken
SUPPLY = 19  # an adventurer in the personal supply, who has yet to be placed
KEPT_AT_THE_END = 50  # percent: what counts of things kept for later if the next scoring round ends the game
GAME = 10_000  # the end of the game, won or lost


# --- words of bits

# A hand: two bits for the number of each card (three is enough for any token), above them the wild bags.
CARD_BITS = 2
MOST_ALIKE = (1 << CARD_BITS) - 1
_KIND_BITS = SIZES * CARD_BITS
_CARDS_OF_A_KIND = (1 << _KIND_BITS) - 1
WILDS_AT = CARD_TYPES * CARD_BITS
# A token: its kind above its value. The tokens of a dungeon: a list of them. The tokens of half the dungeons: a word.
VALUE_BITS = 2
VALUE = (1 << VALUE_BITS) - 1
TOKEN_BITS = VALUE_BITS + 3
TOKEN = (1 << TOKEN_BITS) - 1
_DUNGEON_BITS = TREASURE_PLACES * TOKEN_BITS
_ALL_TOKENS = (1 << _DUNGEON_BITS) - 1
_HALF = DUNGEONS // 2
# A payment: its cards and wild bags, then the bags left over, or -1.
LEFT_OVER_AT = _KIND_BITS + CARD_BITS
_LEFT_OVER_BITS = 2
_WILD_COST, _WASTE_COST, _CARD_COST = 12, 8, 1  # a wild bag fits everything; a waste is lost; small cards go first
# Something of each player, and the market value of each kind.
_PLAYER_BITS = 16
_PLAYER = (1 << _PLAYER_BITS) - 1
_MARKET_BITS = 2
_QUEUE_BITS = 6  # for a place in a queue


def _count(cards: int, size: int) -> int:
    return cards >> (size * CARD_BITS) & MOST_ALIKE


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
            paid = ones | twos << CARD_BITS | threes << 2 * CARD_BITS | wild << _KIND_BITS
            best, lowest = paid | left << LEFT_OVER_AT, cost
    return best


_BAGS = np.array([_bags(cards) for cards in range(_CARDS_OF_A_KIND + 1)])
_PAYMENT = np.array(
    [
        [[_best_payment(cards, wilds, owed) for cards in range(_CARDS_OF_A_KIND + 1)] for wilds in range(SIZES + 1)]
        for owed in range(SIZES + 1)
    ],
    np.int16,
)


@kernel
def hand_word(s: Row, player: int) -> int:
    """The cards of a player."""
    word = int(s.wilds[player]) << WILDS_AT
    for card in range(CARD_TYPES):
        word |= min(int(s.hands[player, card]), MOST_ALIKE) << (card * CARD_BITS)
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
    return token // SIZES << VALUE_BITS | token % SIZES + 1


@kernel
def half_of_the_tokens(s: Row, first: int) -> int:
    """The tokens of three dungeons."""
    word = 0
    for dungeon in range(_HALF):
        there = NOTHING
        for token in range(TOKEN_TYPES):
            there |= bit(token) if s.dungeon_tokens[first + dungeon, token] > 0 else NOTHING
        place = dungeon * _DUNGEON_BITS
        while there != NOTHING:
            token = lowest_bit(there)
            there &= ~bit(token)
            for _ in range(s.dungeon_tokens[first + dungeon, token]):
                word |= token_word(token) << place
                place += TOKEN_BITS
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
    return there >> (place + TOKEN_BITS) << place | there & ((1 << place) - 1)


@kernel
def some_dungeon_holds(tokens: Tokens, number: int) -> bool:
    """Whether a dungeon holds at least this number of tokens."""
    found = False
    for dungeon in range(DUNGEONS):
        found |= tokens_of(tokens, dungeon) >> ((number - 1) * TOKEN_BITS) != 0
    return found


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
    return market >> (kind * _MARKET_BITS) & VALUE


@kernel
def payment(hand: int, kind: int, price: int, left_over: int) -> int:
    """How a hand pays a price in bags of a kind, with `left_over` bags; -1 if it cannot."""
    if left_over >= price:
        return (left_over - price) << LEFT_OVER_AT
    wilds = min(hand >> WILDS_AT, SIZES)
    return int(_PAYMENT[price - left_over, wilds, hand >> (kind * _KIND_BITS) & _CARDS_OF_A_KIND])


@kernel
def after_payment(hand: int, kind: int, paid: int) -> int:
    """The hand without what it has paid."""
    wilds = paid >> _KIND_BITS & MOST_ALIKE
    return hand - ((paid & _CARDS_OF_A_KIND) << (kind * _KIND_BITS)) - (wilds << WILDS_AT)


# --- the forecast


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
def left_over_word(s: Row, player: int) -> int:
    """The bags of each kind that a player has left over."""
    word = 0
    for kind in range(KINDS):
        word |= int(s.left_over_bags[player, kind]) << (kind * _LEFT_OVER_BITS)
    return word


@kernel
def gather(hand: int, there: int, market: int, crew: int, left_over: int) -> tuple[int, int, int, int]:
    """One turn in a dungeon: a player takes the best token they can pay, and again.

    Returns their hand, the tokens that stay, their points and the adventurers it took.
    """
    points, spent = 0, 0
    while spent < crew:
        best, best_paid, best_place = 0, 0, 0
        rest, place = there, 0
        while rest:
            kind, value = (rest & TOKEN) >> VALUE_BITS, rest & VALUE
            paid = payment(hand, kind, value, left_over >> (kind * _LEFT_OVER_BITS) & MOST_ALIKE)
            gain = (POINT * value - WASTE * (paid >> LEFT_OVER_AT)) * market_value(market, kind)
            if paid != NONE and gain > best:
                best, best_paid, best_place = gain, paid, place
            rest >>= TOKEN_BITS
            place += TOKEN_BITS
        if best == 0:
            break
        token = there >> best_place & TOKEN
        kind = token >> VALUE_BITS
        hand = after_payment(hand, kind, best_paid)
        left_over &= ~(MOST_ALIKE << (kind * _LEFT_OVER_BITS))
        left_over |= best_paid >> LEFT_OVER_AT << (kind * _LEFT_OVER_BITS)
        there = without_token(there, best_place)
        points += (token & VALUE) * market_value(market, kind)
        spent += 1
    return hand, there, points, spent


@kernel
def kept_value(s: Row, player: int, hand: int, market: int, spent: int) -> int:
    """What a player keeps for later: bags, wild bags and adventurers."""
    value = WILD * (hand >> WILDS_AT) - CREW * spent
    for kind in range(KINDS):
        value += BAG * market_value(market, kind) * int(_BAGS[hand >> (kind * _KIND_BITS) & _CARDS_OF_A_KIND])
    for dungeon in range(DUNGEONS):
        value += CREW * int(s.crew[player, dungeon]) + FOOTHOLD * (s.crew[player, dungeon] > 0)
    return value + SUPPLY * int(s.supply[player])


@kernel
def gather_in(s: Row, market: int, tokens: Tokens, dungeon: int, so_far: Round) -> Round:
    """The turns of one dungeon, or what is left of them: all take the best they can pay."""
    there = tokens_of(tokens, dungeon)
    if there == 0:
        return so_far
    hands, points, spent = so_far
    waiting = turns(s, dungeon)
    while there and waiting:
        gatherer = next_gatherer(waiting)
        waiting &= ~(_PLAYER << (gatherer * _PLAYER_BITS))
        usable = s.left_over_bags_last_a_round or (dungeon == s.gather_dungeon and gatherer == s.current_player)
        hand, there, gained, gone = gather(
            hand_of(hands, gatherer),
            there,
            market,
            int(s.crew[gatherer, dungeon]),
            left_over_word(s, gatherer) if usable else 0,
        )
        hands = with_hand(hands, gatherer, hand)
        points += gained << (gatherer * _PLAYER_BITS)
        spent += gone << (gatherer * _PLAYER_BITS)
    return hands, points, spent


@kernel
def gather_from(s: Row, market: int, tokens: Tokens, dungeon: int, so_far: Round) -> Round:
    """The rest of a scoring round, from this dungeon on."""
    for later in range(dungeon, DUNGEONS):
        so_far = gather_in(s, market, tokens, later, so_far)
    return so_far


@kernel
def scoring_round(s: Row, market: int, hands: Hands, tokens: Tokens) -> Round:
    """A scoring round now; during one, what is left of it."""
    return gather_from(s, market, tokens, max(int(s.gather_dungeon), 0), (hands, 0, 0))


@kernel
def gained_by(s: Row, points: int, player: int) -> int:
    """What a player gains in a scoring round that brings these points, with what they have gathered in it already."""
    gained = points >> (player * _PLAYER_BITS) & _PLAYER
    if s.gather_dungeon != NONE:
        gained += gathered_points(s, player)
    return gained


@kernel
def balance(s: Row, market: int, after: Round, player: int) -> Balance:
    """How a player stands after a scoring round."""
    rivals = int(s.num_players) - 1
    hands, points, spent = after
    lead, kept, final, best_other = 0, 0, 0, 0
    for seat in range(rivals + 1):
        gained = gained_by(s, points, seat)
        gone = spent >> (seat * _PLAYER_BITS) & _PLAYER
        total = int(s.score[seat]) + gained
        weight = rivals if seat == player else -1
        lead += POINT * gained * weight
        kept += kept_value(s, seat, hand_of(hands, seat), market, gone) * weight
        if seat == player:
            final = total
        else:
            best_other = max(best_other, total)
    return lead, kept, final, best_other


@kernel
def lead_by(s: Row, balance: Balance, certain: bool) -> int:
    """The lead of a player over the others' mean; if the scoring round is certain, it may end the game."""
    lead, kept, final, best_other = balance
    ends = max(final, best_other) >= s.target
    if certain and ends:
        return POINT * (final - best_other) + (GAME if final > best_other else -GAME)
    return (lead + (kept * KEPT_AT_THE_END // PERCENT if ends else kept)) // (int(s.num_players) - 1)


@kernel
def scoring_forecast(s: Row, hands: Hands, tokens: Tokens, player: int, certain: bool) -> int:
    """The lead of a player if a scoring round came now; during one it is what is left of it."""
    market = market_word(s)
    return lead_by(s, balance(s, market, scoring_round(s, market, hands, tokens), player), certain)
