"""What changes places when kinds of treasure do: rows of observations, and the actions that name a kind."""

import numpy as np

from montecristo_env.core import actions, observation
from montecristo_env.core.constants import DUNGEONS, KINDS, LONGEST_MOVE, NONE, SIZES
from montecristo_env.core.jit import entry_point, kernel
from montecristo_env.core.layout import Float32Table, Int8Table, Int64s, Int64Table


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


@entry_point
def permute_counts(observations: Int8Table, permutations: Int64Table, out: Int8Table, begin: int, end: int) -> None:
    """Writes observations with their kinds permuted; `permutations` has one line for all, or one per observation."""
    for k in range(begin, end):
        _permute_observation(observations[k], permutations[k if permutations.shape[0] > 1 else 0], out[k])


@entry_point
def permute_scaled(
    observations: Float32Table, permutations: Int64Table, out: Float32Table, begin: int, end: int
) -> None:
    """The same for scaled observations."""
    for k in range(begin, end):
        _permute_observation(observations[k], permutations[k if permutations.shape[0] > 1 else 0], out[k])


@kernel
def _permute_observation(seen: np.ndarray, permutation: np.ndarray, to: np.ndarray) -> None:
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


@entry_point
def permute_flags(masks: Int8Table, permutations: Int64Table, out: Int8Table, begin: int, end: int) -> None:
    """Writes masks with the kinds permuted."""
    for k in range(begin, end):
        _permute_actions_of(masks[k], permutations[k if permutations.shape[0] > 1 else 0], out[k])


@entry_point
def permute_numbers(masks: Float32Table, permutations: Int64Table, out: Float32Table, begin: int, end: int) -> None:
    """The same for anything else that there is of every action."""
    for k in range(begin, end):
        _permute_actions_of(masks[k], permutations[k if permutations.shape[0] > 1 else 0], out[k])


@kernel
def _permute_actions_of(numbers: np.ndarray, permutation: np.ndarray, to: np.ndarray) -> None:
    for action in range(actions.COUNT):
        to[_permuted(action, permutation)] = numbers[action]


@entry_point
def permute_actions(codes: Int64s, permutations: Int64Table, out: Int64s, begin: int, end: int) -> None:
    """Writes the codes of the same actions after the kinds were permuted."""
    for k in range(begin, end):
        out[k] = _permuted(codes[k], permutations[k if permutations.shape[0] > 1 else 0])


@entry_point
def write_market_order(observations: Int8Table, out: Int64Table, begin: int, end: int) -> None:
    """Writes for each kind its space in the market."""
    for k in range(begin, end):
        _write_market_order(observations[k], out[k])


@entry_point
def write_market_order_of_scaled(observations: Float32Table, out: Int64Table, begin: int, end: int) -> None:
    """The same from scaled observations."""
    for k in range(begin, end):
        _write_market_order(observations[k], out[k])


@kernel
def _write_market_order(seen: np.ndarray, out: np.ndarray) -> None:
    for kind in range(KINDS):
        for space in range(KINDS):
            if seen[_MARKET + kind * _KIND_WIDTH + space] > 0:
                out[kind] = space
