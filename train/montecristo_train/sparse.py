"""A linear layer for inputs that are mostly zeros, as observations are: only the others are worked out.

Of what a network sees, six numbers of seven are zeros, with advice nine of ten, and its first layer is the largest one.
They are passed over in both directions. What comes out does not depend on the number of threads.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from montecristo_env.core._jit import Library, kernel
from montecristo_env.threads import share

LEAST_ROWS = 32  # that are worth a thread

library = Library("layers for mostly zeros", __file__)


class Entries(NamedTuple):
    """What is not zero in a matrix, row by row."""

    starts: NDArray[np.int64]
    """Where each row begins, and the end of the last one."""
    columns: NDArray[np.int32]
    values: NDArray[np.float32]


@library.entry_point
def count_entries(matrix: np.ndarray, counts: np.ndarray, begin: int, end: int) -> None:
    """How many numbers in each row are not zero."""
    for row in range(begin, end):
        counts[row] = 0
        for column in range(matrix.shape[1]):
            counts[row] += matrix[row, column] != 0


@library.entry_point
def list_entries(
    matrix: np.ndarray,
    scale: np.ndarray,
    places: np.ndarray,
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Writes what is not zero in some rows, each column multiplied by its scale, as one in the place of the column."""
    for row in range(begin, end):
        place = starts[row]
        for column in range(matrix.shape[1]):
            if matrix[row, column] != 0:
                columns[place] = places[column]
                values[place] = matrix[row, column] * scale[column]
                place += 1


@library.entry_point
def transpose_entries(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    free: np.ndarray,
    to_columns: np.ndarray,
    to_values: np.ndarray,
) -> None:
    """Writes the entries column by column; `free` says where each column begins, and is moved on."""
    for row in range(starts.size - 1):
        for place in range(starts[row], starts[row + 1]):
            to = free[columns[place]]
            free[columns[place]] += 1
            to_columns[to] = row
            to_values[to] = values[place]


@library.entry_point
def multiply(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    matrix: np.ndarray,
    bias: np.ndarray,
    out: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Writes some rows of the product of the entries and a matrix, with a bias added.

    Four entries are taken at a time, to load and store `out` less often.
    """
    for row in range(begin, end):
        out[row] = bias
        place, last = starts[row], starts[row + 1]
        while place + 4 <= last:
            _add_four(columns[place : place + 4], values[place : place + 4], matrix, out[row])
            place += 4
        for rest in range(place, last):
            line, value, sums = matrix[columns[rest]], values[rest], out[row]
            for k in range(sums.size):
                sums[k] += value * line[k]


@kernel
def _add_four(columns: np.ndarray, values: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    a, b, c, d = matrix[columns[0]], matrix[columns[1]], matrix[columns[2]], matrix[columns[3]]
    va, vb, vc, vd = values[0], values[1], values[2], values[3]
    for k in range(out.size):
        out[k] += (va * a[k] + vb * b[k]) + (vc * c[k] + vd * d[k])


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)])


def _entries(matrix: NDArray[np.int8], scale: NDArray[np.float32], places: NDArray[np.int64]) -> Entries:
    counts = np.empty(len(matrix), np.int64)
    _share(count_entries, matrix, counts, rows=len(matrix))
    starts = _starts(counts)
    found = Entries(starts, np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32))
    _share(list_entries, matrix, scale, places, *found, rows=len(matrix))
    return found


def _transposed(entries: Entries, rows: int) -> Entries:
    starts = _starts(np.bincount(entries.columns, minlength=rows))
    found = Entries(starts, np.empty_like(entries.columns), np.empty_like(entries.values))
    transpose_entries(*entries, starts.copy(), found.columns, found.values)
    return found


def _product(entries: Entries, matrix: NDArray[np.float32], bias: NDArray[np.float32]) -> torch.Tensor:
    rows = entries.starts.size - 1
    out = np.empty((rows, bias.size), np.float32)
    _share(multiply, *entries, matrix, bias, out, rows=rows)
    return torch.from_numpy(out)


def _share(function: Any, *args: Any, rows: int) -> None:
    share(function, *args, size=rows, threads=torch.get_num_threads(), least=LEAST_ROWS)


class _SparseLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        counts: torch.Tensor,
        scale: torch.Tensor,
        places: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
    ) -> torch.Tensor:
        ctx.entries = _entries(counts.numpy(), scale.numpy(), places.numpy())
        ctx.inputs = len(weight)
        return _product(ctx.entries, weight.numpy(), bias.numpy())

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, None, None, torch.Tensor, torch.Tensor]:
        gradient = gradients[0].contiguous()
        none = np.zeros(gradient.shape[1], np.float32)
        of_weight = _product(_transposed(ctx.entries, ctx.inputs), gradient.numpy(), none)
        return None, None, None, of_weight, gradient.sum(dim=0)


def sparse_linear(
    counts: torch.Tensor,
    scale: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    places: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same as `(counts * scale) @ weight[places] + bias`, for inputs that are mostly zeros.

    Args:
        counts: the inputs, (K, inputs), int8.
        scale: what each of them is multiplied by.
        weight: (inputs, outputs), float32.
        bias: of the outputs.
        places: which of the lines of `weight` each input has; its own, if None.
    """
    if places is None:
        places = torch.arange(counts.shape[1])
    library.compile_once(_call_every_entry_point)
    result: torch.Tensor = _SparseLinear.apply(  # type: ignore[no-untyped-call]
        counts.contiguous(), scale, places, weight.contiguous(), bias
    )
    return result


def _call_every_entry_point() -> None:
    nothing = Entries(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    counts, matrix = np.zeros((0, 0), np.int8), np.zeros((0, 0), np.float32)
    count_entries(counts, nothing.starts, 0, 0)
    list_entries(counts, nothing.values, nothing.starts, *nothing, 0, 0)
    transpose_entries(*nothing, nothing.starts, nothing.columns, nothing.values)
    multiply(*nothing, matrix, nothing.values, matrix.copy(), 0, 0)
