"""An exact symmetry of the game: the kinds of treasure are interchangeable.

If kinds change places in a position, the choices that name them change places too, and nothing else does. So one
position tells about 120: to learn from, permute a batch at random; to play, bring every position into the canonical
order, in which kinds stand as in the market, and bring the chosen actions back.

```python
from montecristo_env import GameBatch, symmetry

games = GameBatch(64, num_players=2, seed=0)
seen, masks = games.observe(), games.action_mask()
order = symmetry.market_order(seen)
seen, masks = symmetry.permute_observations(seen, order), symmetry.permute_masks(masks, order)
chosen = masks.argmax(axis=1)  # by a network that looks at `seen`
games.step(symmetry.permute_actions(chosen, symmetry.inverse(order)))
```

A permutation is an array `p` of the five kinds: what was of kind `k` is of kind `p[k]` afterwards. Functions that take
permutations take one, (5,), or one for each row of the batch, (N, 5).

With a rule set whose cards or tokens differ from kind to kind, the permuted position is one of the game in which these
settings are permuted as well.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from montecristo_env.core import actions, observation
from montecristo_env.core import symmetry as kernels
from montecristo_env.core.constants import KINDS
from montecristo_env.errors import InvalidArgument
from montecristo_env.util.threads import ALL_CORES, parallel_for

_ROWS_PER_THREAD = 4096  # that are worth a thread
_OBSERVATIONS = ("int8", "float32")
_MASKS = ("int8", "bool", "float32")


def market_order(observations: NDArray[Any]) -> NDArray[np.int64]:
    """The canonical permutations, (N, 5): the kind in the best space of the market becomes kind 0, and so on.

    Args:
        observations: (N, observation.SIZE), int8 or float32.
    """
    seen = _batch("observations", observations, observation.SIZE, _OBSERVATIONS)
    order = np.zeros((len(seen), KINDS), np.int64)
    scaled = seen.dtype == np.float32
    _run(kernels.write_market_order_of_scaled if scaled else kernels.write_market_order, seen, order)
    return order


def permute_observations(observations: NDArray[Any], permutations: ArrayLike) -> NDArray[Any]:
    """Observations with their kinds permuted, a new array.

    Args:
        observations: (N, observation.SIZE), int8 or float32.
        permutations: one, or one for each of them.
    """
    seen = _batch("observations", observations, observation.SIZE, _OBSERVATIONS)
    out = np.empty_like(seen)
    scaled = seen.dtype == np.float32
    _run(
        kernels.permute_scaled if scaled else kernels.permute_counts, seen, _permutations(permutations, len(seen)), out
    )
    return out


def permute_masks(masks: NDArray[Any], permutations: ArrayLike) -> NDArray[Any]:
    """Action masks with the kinds permuted, a new array; also logits or anything else that there is of every action.

    Args:
        masks: (N, actions.COUNT), int8, bool or float32.
        permutations: one, or one for each of them.
    """
    given = _batch("masks", masks, actions.COUNT, _MASKS)
    out = np.empty_like(given)
    order = _permutations(permutations, len(given))
    if given.dtype == np.float32:
        _run(kernels.permute_numbers, given, order, out)
    else:
        _run(kernels.permute_flags, given.view(np.int8), order, out.view(np.int8))
    return out


def permute_actions(codes: ArrayLike, permutations: ArrayLike) -> NDArray[np.int64]:
    """The codes of the same actions after the kinds were permuted, (N,).

    Args:
        codes: action codes, (N,).
        permutations: one, or one for each of them.
    """
    given = np.asarray(codes)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise InvalidArgument(f"actions must be whole numbers, (N,), but are {given.dtype} of shape {given.shape}")
    if given.size and not (given.min() >= 0 and given.max() < actions.COUNT):
        raise InvalidArgument(f"actions must be from 0 to {actions.COUNT - 1}, but are {given.min()} to {given.max()}")
    out = np.empty(given.size, np.int64)
    _run(kernels.permute_actions, given.astype(np.int64), _permutations(permutations, given.size), out)
    return out


def inverse(permutations: ArrayLike) -> NDArray[np.int64]:
    """The permutations that undo these."""
    undone: NDArray[np.int64] = np.argsort(_all_permutations(permutations), axis=-1)
    return undone


def _run(kernel: Any, *arrays: NDArray[Any]) -> None:
    parallel_for(kernel, *arrays, size=len(arrays[0]), threads=ALL_CORES, least=_ROWS_PER_THREAD)


def _batch(name: str, array: NDArray[Any], width: int, dtypes: tuple[str, ...]) -> NDArray[Any]:
    found = np.asarray(array)
    if found.ndim != 2 or found.shape[1] != width or found.dtype.name not in dtypes:
        raise InvalidArgument(
            f"{name} must be {' or '.join(dtypes)} of shape (N, {width}), but are {found.dtype} of shape {found.shape}"
        )
    return np.require(found, requirements=["C", "A", "W"])


def _all_permutations(permutations: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(permutations)
    if not np.issubdtype(given.dtype, np.integer) or not 1 <= given.ndim <= 2 or given.shape[-1] != KINDS:
        raise InvalidArgument(
            f"permutations must be whole numbers of shape ({KINDS},) or (N, {KINDS}), "
            f"but are {given.dtype} of shape {given.shape}"
        )
    if (np.sort(given, axis=-1) != np.arange(KINDS)).any():
        raise InvalidArgument(f"a permutation must have each of the kinds 0 to {KINDS - 1} once, but got {given}")
    return given.astype(np.int64)


def _permutations(permutations: ArrayLike, size: int) -> NDArray[np.int64]:
    given = np.atleast_2d(_all_permutations(permutations))
    if len(given) not in (1, size):
        raise InvalidArgument(
            f"there must be one permutation, or one for each of {size} rows, but there are {len(given)}"
        )
    return np.ascontiguousarray(given)
