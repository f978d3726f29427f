"""What changes places when kinds of treasure do: rows of observations, and the actions that name a kind."""

import numpy as np

from montecristo_env.core import actions, observation
from montecristo_env.core._jit import Library, kernel
from montecristo_env.core.constants import DUNGEONS, KINDS, LONGEST_MOVE, NONE, SIZES

library = Library("the symmetry of kinds")


def _kind_of(action: actions.Action) -> int:
    match action:
        case actions.Deal(piece) | actions.Discard(piece) | actions.Take(piece) | actions.Pay(piece):
            return int(piece.kind)
        case actions.MoveMarker(kind):
            return int(kind)
    return NONE


_actions = [actions.decode(code) for code in range(actions.COUNT)]
KIND_OF_ACTION = np.array([_kind_of(action) for action in _actions])
"""The kind that each action names, or NONE."""
_STEP = np.array(  # from an action to the same of the next kind
    [LONGEST_MOVE if isinstance(action, actions.MoveMarker) else SIZES for action in _actions]
)

_groups = observation.GROUPS
_KINDS, _KIND_WIDTH = _groups["kinds"].slice.start, _groups["kinds"].width
_PAIRS, _PAIR_WIDTH = _groups["pairs"].slice.start, _groups["pairs"].width
_KINDS_END = _groups["kinds"].slice.stop
_MARKET = _KINDS + observation.FIELDS["market"].columns.start


@kernel
def _permuted(action: int, permutation: np.ndarray) -> int:
    kind = int(KIND_OF_ACTION[action])
    return action if kind == NONE else action + (int(permutation[kind]) - kind) * int(_STEP[action])


@library.entry_point
def permute_observations(
    observations: np.ndarray, permutations: np.ndarray, out: np.ndarray, begin: int, end: int
) -> None:
    """Writes observations with their kinds permuted; `permutations` has one line for all, or one per observation."""
    for k in range(begin, end):
        permutation = permutations[k if permutations.shape[0] > 1 else 0]
        seen, to = observations[k], out[k]
        for i in range(_KINDS):
            to[i] = seen[i]
        for i in range(_KINDS_END, _PAIRS):
            to[i] = seen[i]
        for kind in range(KINDS):
            into = int(permutation[kind])
            for i in range(_KIND_WIDTH):
                to[_KINDS + into * _KIND_WIDTH + i] = seen[_KINDS + kind * _KIND_WIDTH + i]
            for dungeon in range(DUNGEONS):
                row = _PAIRS + dungeon * KINDS * _PAIR_WIDTH
                for i in range(_PAIR_WIDTH):
                    to[row + into * _PAIR_WIDTH + i] = seen[row + kind * _PAIR_WIDTH + i]


@library.entry_point
def permute_masks(masks: np.ndarray, permutations: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """Writes masks, or anything else that there is of every action, with the kinds permuted."""
    for k in range(begin, end):
        permutation = permutations[k if permutations.shape[0] > 1 else 0]
        for action in range(actions.COUNT):
            out[k, _permuted(action, permutation)] = masks[k, action]


@library.entry_point
def permute_actions(codes: np.ndarray, permutations: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """Writes the codes of the same actions after the kinds were permuted."""
    for k in range(begin, end):
        out[k] = _permuted(codes[k], permutations[k if permutations.shape[0] > 1 else 0])


@library.entry_point
def write_market_order(observations: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """Writes for each kind its space in the market."""
    for k in range(begin, end):
        for kind in range(KINDS):
            for space in range(KINDS):
                if observations[k, _MARKET + kind * _KIND_WIDTH + space] > 0:
                    out[k, kind] = space


def compile_all() -> None:
    """Compiles, or loads, every entry point; the first use in a process calls this."""
    library.compile_once(_call_every_entry_point)


def _call_every_entry_point() -> None:
    order = np.arange(KINDS)[None]
    codes = np.zeros(1, np.int64)
    permute_actions(codes, order, codes.copy(), 0, 1)
    for dtype in (np.int8, np.float32):
        seen = np.zeros((1, observation.SIZE), dtype)
        permute_observations(seen, order, seen.copy(), 0, 1)
        write_market_order(seen, order.copy(), 0, 1)
    for kind in (np.int8, np.bool_, np.float32):
        masks = np.zeros((1, actions.COUNT), kind)
        permute_masks(masks, order, masks.copy(), 0, 1)
