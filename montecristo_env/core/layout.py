"""The state of one game: one packed row, declared here and nowhere else.

A batch is an array of such rows; `states["score"]` is the (N, 4) view of all scores. All fields that have a
seat axis are 4 seats wide, whatever the number of players. Seats in `lanes` are stored as seat + 1, so that 0 is empty.
"""

import math
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from montecristo_env.core.constants import (
    ADVENTURERS,
    CARD_TYPES,
    DUNGEONS,
    HIDDEN_SLOTS,
    KINDS,
    LANE_ROOM,
    LANES,
    MAX_PLAYERS,
    MOST_CARDS_HELD,
    SIZES,
    TOKEN_TYPES,
    TOKENS,
    TOKENS_DRAWN,
    ZONES,
)
from montecristo_env.core.jit import Array

CACHE_LINE = 64

_fields: list[tuple[Any, ...]] = [
    # --- randomness: three streams (§2), derived from the seed, and one for random play
    ("seed", np.uint64),  # of this game's deal
    ("cards_key", np.uint64),  # every shuffle of the supply cards follows from this key and its number
    ("tokens_key", np.uint64),  # every mixing of the bag likewise
    ("play_key", np.uint64),  # state of the generator of random play; no part of the game
    # --- the decision at hand
    ("legal", np.uint64),  # bit i: action i of the block of `decision` is legal; 0 when over
    ("decisions", np.int32),  # decisions asked and taken so far, forced ones not counted
    ("round_number", np.int16),  # from 1
    ("score", np.int16, (MAX_PLAYERS,)),
    ("shuffles", np.int16),  # shuffles of the supply cards so far
    ("refills", np.int16),  # mixings of the bag so far
    # --- whose turn
    ("decision", np.int8),  # constants.Decision
    ("current_player", np.int8),  # who must decide, -1 when over
    ("active_player", np.int8),  # owner of the marble in use (§3.1)
    ("cylinder", np.int8),  # current lane
    ("terminated", np.bool_),  # over by §9.1
    ("truncated", np.bool_),  # cut off by §9.4
    ("winners", np.int8, (MAX_PLAYERS,)),  # 1 for each winner, once over
    # --- the action slide and the market
    ("lanes", np.int8, (LANES, LANE_ROOM)),  # seat + 1 of each marble, bottom first
    ("lane_size", np.int8, (LANES,)),
    ("market", np.int8, (KINDS,)),  # kinds, best space first
    # --- the players
    ("supply", np.int8, (MAX_PLAYERS,)),  # adventurers in the personal supply
    ("marseille", np.int8, (MAX_PLAYERS,)),  # adventurers in the general supply
    ("zones", np.int8, (MAX_PLAYERS, ZONES)),  # 1 where the player has an adventurer
    ("crew", np.int8, (MAX_PLAYERS, DUNGEONS)),  # adventurers of each player in each dungeon
    ("places", np.int8, (MAX_PLAYERS, DUNGEONS, ADVENTURERS)),  # in the queue, foremost first, from 1; 0 none
    ("hands", np.int8, (MAX_PLAYERS, CARD_TYPES)),  # number of each face-up card
    ("wilds", np.int8, (MAX_PLAYERS,)),  # number of wild bags
    ("left_over_bags", np.int8, (MAX_PLAYERS, KINDS)),  # bags paid and not used up (§8.4); prices are met from here
    ("wild_slots", np.int8, (MAX_PLAYERS, MOST_CARDS_HELD)),  # where their cards are hidden, held longest first
    ("hand_size", np.int8, (MAX_PLAYERS,)),  # wild bags included
    ("gathered", np.int8, (MAX_PLAYERS, TOKEN_TYPES)),  # tokens in front of each player (§8.7)
    # --- what observations show as it is: from here to chest_dungeons in one piece
    ("dungeon_tokens", np.int8, (DUNGEONS, TOKEN_TYPES)),  # number of each token
    ("unseen_cards", np.int8, (CARD_TYPES,)),  # number of each card among pile and wild bags: known to all
    ("card_discard", np.int8, (CARD_TYPES,)),
    ("pile_size", np.int8),
    ("bag", np.int8, (TOKEN_TYPES,)),  # number of each token in the bag
    ("token_discard", np.int8, (TOKEN_TYPES,)),
    ("offer", np.int8, (CARD_TYPES,)),  # Supply: number of each card drawn and not yet dealt
    ("placements_left", np.int8),  # Adventurers: of the player now placing
    ("zone_used", np.int8),
    ("reinforcements_left", np.int8),
    ("chest_dungeons", np.int8, (DUNGEONS,)),  # Treasure chest: 1 where this chest has put a token
    # --- other parts of the phase at hand
    ("offer_size", np.int8),
    ("recipient", np.int8),  # who gets the next card, -1 outside the deal
    ("drawn_tokens", np.int8, (TOKENS_DRAWN,)),  # not yet placed, in order; -1 none
    ("gather_dungeon", np.int8),  # -1 outside a scoring round
    ("gather_order", np.int8, (MAX_PLAYERS,)),  # seats whose turn in this dungeon is not over, current first; -1 none
    ("taking", np.int8),  # the token being paid for, -1 none
    ("queue_length", np.int8, (DUNGEONS,)),
    # --- pile and bag
    ("pile", np.int8, (HIDDEN_SLOTS,)),  # ring of slots, from pile_top downwards
    ("pile_top", np.int8),
    ("slot_shuffle", np.int8, (HIDDEN_SLOTS,)),  # which shuffle a hidden card comes from (§10.1), -1 for a free slot
    ("slot_card", np.int8, (HIDDEN_SLOTS,)),  # HIDDEN: the card in the slot
    ("bag_order", np.int8, (TOKENS,)),  # HIDDEN: the order in which tokens will be drawn, last first
    ("bag_size", np.int8),
    ("scratch", np.int8, (HIDDEN_SLOTS,)),  # room for a permutation, or odds of chance; no part of the game
    # --- settings (§1.9), which a new game in the same row keeps
    ("num_players", np.int8),
    ("deck", np.int8, (CARD_TYPES,)),  # copies of each card
    ("tokens", np.int8, (TOKEN_TYPES,)),  # copies of each token
    ("card_adventurers", np.int8, (SIZES,)),  # adventurers on a card with 1, 2, 3 bags
    ("market_values", np.int8, (KINDS,)),  # of the five spaces, best first
    ("target", np.int16),
    ("round_limit", np.int16),
    # --- variants (§1.10): whether each is played instead of the default
    ("discard_after_deal", np.bool_),  # §4.5
    ("refill_when_short", np.bool_),  # §6.2
    ("reshuffle_when_empty", np.bool_),  # §4.3
    ("left_over_bags_last_a_round", np.bool_),  # §8.4
    ("chest_ends_game", np.bool_),  # §9.1
]
_packed = np.dtype(_fields)
_size = -(-_packed.itemsize // CACHE_LINE) * CACHE_LINE
OFFSET = {name: int(field[1]) for name, field in (_packed.fields or {}).items()}
"""Where each field begins in a row."""

STATE = np.dtype(
    {
        "names": [*OFFSET, "bytes"],
        "formats": [*(_packed[name] for name in OFFSET), np.dtype((np.int8, (_size,)))],
        "offsets": [*OFFSET.values(), 0],
        "itemsize": _size,
    }
)
"""The dtype of a game: the fields above, and `bytes`, the whole row at once."""

HIDDEN_FIELDS = ("seed", "cards_key", "tokens_key", "play_key", "slot_card", "bag_order", "scratch", "bytes")
"""What no player may learn: two rows that differ only here are the same information state (§10.2)."""

Row: TypeAlias = Any  # a Numba record, or a np.record where nothing is compiled

# What entry points take: contiguous arrays, with one dimension, as a table with two, or with three.
States: TypeAlias = Annotated[NDArray[np.void], Array(STATE)]
StateTable: TypeAlias = Annotated[NDArray[np.void], Array(STATE, 2)]
Int8s: TypeAlias = Annotated[NDArray[np.int8], Array(np.dtype(np.int8))]
Int64s: TypeAlias = Annotated[NDArray[np.int64], Array(np.dtype(np.int64))]
UInt64s: TypeAlias = Annotated[NDArray[np.uint64], Array(np.dtype(np.uint64))]
Bools: TypeAlias = Annotated[NDArray[np.bool_], Array(np.dtype(np.bool_))]
Float32s: TypeAlias = Annotated[NDArray[np.float32], Array(np.dtype(np.float32))]
Float64s: TypeAlias = Annotated[NDArray[np.float64], Array(np.dtype(np.float64))]
Int8Table: TypeAlias = Annotated[NDArray[np.int8], Array(np.dtype(np.int8), 2)]
Int64Table: TypeAlias = Annotated[NDArray[np.int64], Array(np.dtype(np.int64), 2)]
BoolTable: TypeAlias = Annotated[NDArray[np.bool_], Array(np.dtype(np.bool_), 2)]
Float32Table: TypeAlias = Annotated[NDArray[np.float32], Array(np.dtype(np.float32), 2)]
Float64Table: TypeAlias = Annotated[NDArray[np.float64], Array(np.dtype(np.float64), 2)]
Float32Cube: TypeAlias = Annotated[NDArray[np.float32], Array(np.dtype(np.float32), 3)]
Float64Cube: TypeAlias = Annotated[NDArray[np.float64], Array(np.dtype(np.float64), 3)]


def aligned_empty(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """A new array that starts on a cache line: misaligned batch buffers can be several times slower."""
    dtype = np.dtype(dtype)
    size = dtype.itemsize * (shape if isinstance(shape, int) else math.prod(shape))
    memory = np.empty(size + CACHE_LINE, np.uint8)
    return np.ndarray(shape, dtype, memory, -memory.ctypes.data % CACHE_LINE)


def aligned_zeros(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """The same, filled with zeros."""
    array = aligned_empty(shape, dtype)
    array.view(np.uint8)[...] = 0
    return array
