"""Chance: shuffles of the cards, mixings of the bag, and the redrawing of what is hidden.

Every shuffle is a fixed permutation of all 30 cards (or tokens) that follows from the game's key and the number of
the shuffle, restricted to those present. So the deal does not depend on what players decide, as far as the rules allow.
"""

import numpy as np

from montecristo_env.core.constants import CARD_TYPES, HIDDEN_SLOTS, NONE, TOKEN_TYPES
from montecristo_env.core.jit import WORD, kernel
from montecristo_env.core.layout import Row

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the constants of SplitMix64
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_SIP_0 = np.uint64(0x736F6D6570736575)  # the constants of SipHash
_SIP_1 = np.uint64(0x646F72616E646F6D)
_SIP_2 = np.uint64(0x6C7967656E657261)
_SIP_3 = np.uint64(0x7465646279746573)
_SIP_END = np.uint64(0xFF)
_SLOT_MASK = HIDDEN_SLOTS - 1


@kernel
def mix(x: np.uint64) -> np.uint64:
    """Scrambles 64 bits (the output function of SplitMix64)."""
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@kernel
def stream(key: np.uint64, number: int) -> np.uint64:
    """The start of stream `number` of a key."""
    return mix(key + _GOLDEN * np.uint64(number + 1))


@kernel
def below(state: np.uint64, bound: int) -> int:
    """A number in range(bound) from the generator state; the caller advances the state with `advance`."""
    return int(np.int64(((mix(state) >> _S32) * np.uint64(bound)) >> _S32))  # else it would stay unsigned


@kernel
def advance(state: np.uint64) -> np.uint64:
    """The next state of a generator."""
    return state + _GOLDEN


@kernel
def one_way(key: np.uint64, other: np.uint64) -> np.uint64:
    """64 bits that follow from a key of two words but do not lead back to it: SipHash-2-4 of the empty message.

    For what players may see. All other functions here can be undone, so that their results lead back to the seed.
    """
    v0, v1, v2, v3 = key ^ _SIP_0, other ^ _SIP_1, key ^ _SIP_2, other ^ _SIP_3
    for turn in range(6):
        if turn == 2:
            v2 ^= _SIP_END
        v0, v2 = v0 + v1, v2 + v3
        v1, v3 = _rotated(v1, 13) ^ v0, _rotated(v3, 16) ^ v2
        v0 = _rotated(v0, 32)
        v2, v0 = v2 + v1, v0 + v3
        v1, v3 = _rotated(v1, 17) ^ v2, _rotated(v3, 21) ^ v0
        v2 = _rotated(v2, 32)
    return v0 ^ v1 ^ v2 ^ v3


@kernel
def _rotated(x: np.uint64, by: int) -> np.uint64:
    return (x << np.uint64(by)) | (x >> np.uint64(WORD - by))


@kernel
def permute(items: np.ndarray, size: int, state: np.uint64) -> None:
    """Fisher-Yates on the first `size` items."""
    for last in range(size - 1, 0, -1):
        state = advance(state)
        other = below(state, last + 1)
        items[last], items[other] = items[other], items[last]


@kernel
def shuffled(s: Row, copies: np.ndarray, present: np.ndarray, types: int, state: np.uint64) -> int:
    """Fills `scratch` with a shuffle of the items present, and returns their number.

    All copies that exist are permuted, absent ones as blanks that are then dropped: the order of two items is the same
    whatever else is there.
    """
    total = 0
    for item in range(types):
        for copy in range(copies[item]):
            s.scratch[total] = item if copy < present[item] else NONE
            total += 1
    permute(s.scratch, total, state)
    size = 0
    for i in range(total):
        if s.scratch[i] != NONE:
            s.scratch[size] = s.scratch[i]
            size += 1
    return size


@kernel
def shuffle_discards_under_pile(s: Row) -> None:
    """The discard pile becomes a new pile, under what is left of the old one (nothing, when a draw needs it: §4.3)."""
    tag = 0
    while _in_use(s, tag):
        tag += 1
    size = shuffled(s, s.deck, s.card_discard, CARD_TYPES, stream(s.cards_key, s.shuffles))
    if size > 0:
        s.shuffles += 1
    slot = 0
    for i in range(size):
        while s.slot_shuffle[slot] != NONE:
            slot += 1
        s.slot_shuffle[slot] = tag
        s.slot_card[slot] = s.scratch[i]
        put_under_pile(s, slot)
    for card in range(CARD_TYPES):
        s.unseen_cards[card] += s.card_discard[card]
        s.card_discard[card] = 0


@kernel
def _in_use(s: Row, tag: int) -> bool:
    for slot in range(HIDDEN_SLOTS):  # noqa: SIM110 (a generator would not compile)
        if s.slot_shuffle[slot] == tag:
            return True
    return False


@kernel
def put_under_pile(s: Row, slot: int) -> None:
    """A hidden card goes to the very bottom of the pile (§4.6)."""
    s.pile[(s.pile_top + s.pile_size) & _SLOT_MASK] = slot
    s.pile_size += 1


@kernel
def draw_hidden(s: Row) -> int:
    """Takes the top card of the pile unseen: its slot, or NONE if pile and discards are empty (§4.3)."""
    if s.pile_size == 0:
        shuffle_discards_under_pile(s)
        if s.pile_size == 0:
            return NONE
    slot = int(s.pile[s.pile_top])
    s.pile_top = (s.pile_top + 1) & _SLOT_MASK
    s.pile_size -= 1
    if s.pile_size == 0 and s.reshuffle_when_empty:
        shuffle_discards_under_pile(s)
    return slot


@kernel
def draw_card(s: Row) -> int:
    """Draws the top card of the pile face up, or NONE."""
    slot = draw_hidden(s)
    if slot == NONE:
        return NONE
    card = int(s.slot_card[slot])
    s.slot_shuffle[slot] = NONE
    s.slot_card[slot] = 0
    s.unseen_cards[card] -= 1
    return card


@kernel
def fill_bag(s: Row) -> None:
    """All discarded tokens go back into the bag, which is mixed anew (§6.2)."""
    for token in range(TOKEN_TYPES):
        s.bag[token] += s.token_discard[token]
        s.token_discard[token] = 0
    s.bag_size = shuffled(s, s.tokens, s.bag, TOKEN_TYPES, stream(s.tokens_key, s.refills))
    s.refills += 1
    for i in range(s.bag_size):
        s.bag_order[i] = s.scratch[i]


@kernel
def draw_token(s: Row) -> int:
    """Draws one token from the bag."""
    s.bag_size -= 1
    token = int(s.bag_order[s.bag_size])
    s.bag[token] -= 1
    return token


@kernel
def random_choice(s: Row) -> int:
    """The place in its block of a uniformly random legal action; advances the stream of random play."""
    s.play_key = advance(s.play_key)
    return _nth_bit(s.legal, below(s.play_key, count_bits(s.legal)))


_B1, _B2, _B4, _B7, _B8, _B56, _BFF = (np.uint64(n) for n in (1, 2, 4, 7, 8, 56, 0xFF))
_M1 = np.uint64(0x5555555555555555)
_M2 = np.uint64(0x3333333333333333)
_M4 = np.uint64(0x0F0F0F0F0F0F0F0F)
_M7 = np.uint64(0x7F7F7F7F7F7F7F7F)
_MSUM = np.uint64(0x0101010101010101)
_MHIGH = np.uint64(0x8080808080808080)
_MDIAGONAL = np.uint64(0x8040201008040201)  # bit i of byte i


@kernel
def count_bits(bits: np.uint64) -> int:
    """How many bits are set; LLVM knows this pattern as one instruction."""
    return int(np.int64(_sums_of_bits(bits) >> _B56))


@kernel
def _sums_of_bits(bits: np.uint64) -> np.uint64:
    """Byte i: how many bits are set in the bytes up to this one."""
    bits = bits - ((bits >> _B1) & _M1)
    bits = (bits & _M2) + ((bits >> _B2) & _M2)
    bits = (bits + (bits >> _B4)) & _M4
    return bits * _MSUM


@kernel
def _nth_bit(bits: np.uint64, n: int) -> int:
    """The place of the n-th set bit, from 0: first its byte, then its place there. Loops would be mispredicted."""
    rest = np.uint64(n)
    sums = _sums_of_bits(bits)
    at = _bytes_up_to(sums, rest) * _B8
    rest -= sums << _B8 >> at & _BFF
    flags = ((bits >> at & _BFF) * _MSUM & _MDIAGONAL) + _M7 >> _B7 & _MSUM  # byte i: bit i of that byte
    return int(np.int64(at + _bytes_up_to(flags * _MSUM, rest)))


@kernel
def _bytes_up_to(sums: np.uint64, most: np.uint64) -> np.uint64:
    """How many bytes of a word are at most this; all are below 128."""
    return ((most * _MSUM | _MHIGH) - sums >> _B7 & _MSUM) * _MSUM >> _B56


@kernel
def lowest_bit(bits: np.uint64) -> int:
    """The place of the lowest set bit."""
    return count_bits((bits & (~bits + _B1)) - _B1)


@kernel
def resample_hidden(s: Row, key: np.uint64) -> None:
    """Redraws everything that no player knows, consistent with everything that all players know (§10.1)."""
    s.seed = key
    s.cards_key = stream(key, 0)
    s.tokens_key = stream(key, 1)
    s.play_key = stream(key, 2)
    permute(s.bag_order, s.bag_size, stream(key, 3))
    state = stream(key, 4)
    for last in range(HIDDEN_SLOTS - 1, 0, -1):  # Fisher-Yates among the slots of the same shuffle
        tag = s.slot_shuffle[last]
        if tag == NONE:
            continue
        alike = 0
        for slot in range(last + 1):
            alike += s.slot_shuffle[slot] == tag
        state = advance(state)
        skip = below(state, alike)
        other = 0
        while s.slot_shuffle[other] != tag or skip > 0:
            skip -= s.slot_shuffle[other] == tag
            other += 1
        s.slot_card[last], s.slot_card[other] = s.slot_card[other], s.slot_card[last]
