"""What is compiled: kernels, which are parts of it, and entry points, which Python calls.

The compiled code is a library that is built ahead of time (see `core.build`) and loaded at the first call (see
`core.library`); Numba is needed to build it, and not to use it. With NUMBA_DISABLE_JIT=1 everything runs as plain
Python. Functions that users compile with Numba can call kernels.
"""

import ctypes
import functools
import importlib
import inspect
import itertools
import os
import struct
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, ParamSpec, TypeVar, cast, get_args

import numpy as np

from montecristo_env.core import library

P = ParamSpec("P")
R = TypeVar("R")

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
WORD = 64  # bits
FAILED = -(2**63)
"""What an entry point returns if an index is out of bounds, where these are checked."""


class Array(NamedTuple):
    """In the annotation of an entry point: a contiguous array of this number of dimensions."""

    dtype: np.dtype[Any]
    ndim: int = 1


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A piece of the rules, compiled into the entry points that use it."""
    return _interpreted(function) if INTERPRETED else Kernel(function)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that becomes a part of each of its callers, whatever its size; those that it calls should be such, too.

    Around a call, what was loaded from memory must be loaded again, since the kernel might have changed it, and arrays
    are passed in seven words each: observations take half the time without any. Everywhere, it would make compiling
    slow.
    """
    return _interpreted(function) if INTERPRETED else Kernel(function, inline=True)


def intrinsic(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that has an implementation of its own for the compiler, in `core.intrinsics`."""
    return function if INTERPRETED else Intrinsic(function)


def entry_point(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that Python calls. All parameters have annotations: int, bool, float, np.uint64, or arrays (`Array`)."""
    return _interpreted(function) if INTERPRETED else EntryPoint(function)


class Kernel(Generic[P, R]):
    """A function in Numba's language, for compiled code to call."""

    MODULES: ClassVar[set[str]] = set()
    """Where kernels come from."""

    def __init__(self, function: Callable[P, R], inline: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.MODULES.add(function.__module__)
        self.function, self.inline = function, inline

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Only compiled code can."""
        raise TypeError(f"{self.function.__name__} is a kernel: compiled code can call it, Python cannot")

    @cached_property
    def dispatcher(self) -> Any:
        """The function as Numba knows it."""
        numba = importlib.import_module("numba")
        return numba.njit(
            self.function,
            nogil=True,
            error_model="numpy",
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            forceinline=self.inline,
            _nrt=False,  # no memory is allocated
        )

    @property
    def _numba_type_(self) -> Any:
        """Numba asks for this when it compiles a function that calls the kernel."""
        return importlib.import_module("numba").types.Dispatcher(self.dispatcher)


class Intrinsic(Kernel[P, R]):
    """A kernel whose compiled form is made by hand."""

    @property
    def _numba_type_(self) -> Any:
        own = getattr(importlib.import_module("montecristo_env.core.intrinsics"), self.function.__name__)
        context = importlib.import_module("numba.core.registry").cpu_target.typing_context
        context.refresh()
        return context.resolve_value_type(own)


class EntryPoint(Kernel[P, R]):
    """A function of the library that Python calls: `int64_t name(const int64_t *arguments)`.

    Every argument is one word, or for an array its address and its sizes.
    """

    ALL: ClassVar[dict[str, "EntryPoint[Any, Any]"]] = {}
    """By the name of the function in the library."""

    def __init__(self, function: Callable[P, R]) -> None:
        super().__init__(function)
        self.symbol = f"{function.__module__.rpartition('.')[2]}_{function.__name__}"
        assert self.ALL.setdefault(self.symbol, self) is self, f"two entry points are called {self.symbol}"
        signature = inspect.signature(function)
        self.parameters = {name: _kind(parameter.annotation) for name, parameter in signature.parameters.items()}
        self._arrays = [kind if isinstance(kind, Array) else None for kind in self.parameters.values()]
        words = [
            "q" * (1 + kind.ndim) if isinstance(kind, Array) else _FORMATS[kind] for kind in self.parameters.values()
        ]
        self._pack = {skip: struct.Struct("=" + "".join(words[skip:])).pack for skip in (0, _GAMES_AND_ROWS)}
        starts = itertools.accumulate(map(len, words), initial=0)
        self.places = dict(zip(self.parameters, starts, strict=False))
        """The word where each argument begins."""
        self._is_bool = signature.return_annotation is bool

    @cached_property
    def native(self) -> Callable[[Any], int]:
        """The function of the library."""
        return library.function(self.symbol)

    @cached_property
    def address(self) -> int:
        """Where that function is."""
        return ctypes.cast(cast(Any, self.native), ctypes.c_void_p).value or 0

    def arguments(self, *args: Any, head: bytes = b"") -> bytes:
        """These arguments as the library wants them; it does not keep the arrays alive.

        Args:
            args: all of them, or those after the first two.
            head: the first two, games and rows, if they are laid out already.
        """
        words: list[Any] = []
        skip = _GAMES_AND_ROWS if head else 0
        for array, arg in zip(self._arrays[skip:] if skip else self._arrays, args, strict=True):
            if array is None:
                words.append(arg)
                continue
            if not isinstance(arg, np.ndarray) or arg.ndim != array.ndim:
                raise self._wrong(args)
            if arg.dtype is not array.dtype and arg.dtype != array.dtype:
                raise self._wrong(args)
            if arg.size:
                try:
                    words.append(address(arg))
                except (TypeError, ValueError, BufferError):
                    raise self._wrong(args) from None
            else:
                words.append(0)
            words += arg.shape
        try:
            return head + self._pack[skip](*words)
        except struct.error:
            raise self._wrong(args) from None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function of the library."""
        return self.result(self.native(self.arguments(*args)))

    def result(self, found: int) -> R:
        """What the function of the library has returned, as Python has it."""
        if found == FAILED:
            raise IndexError(f"an index is out of bounds in {self.symbol}")
        return cast(R, found != 0 if self._is_bool else found)

    def _wrong(self, args: tuple[Any, ...]) -> TypeError:
        wanted = ", ".join(
            f"{name}: " + (f"{kind.dtype.name} in {kind.ndim}D" if isinstance(kind, Array) else kind.__name__)
            for name, kind in self.parameters.items()
        )
        found = ", ".join(
            f"{arg.dtype.name} in {arg.ndim}D{'' if arg.flags.carray else ', not contiguous or read-only'}"
            if isinstance(arg, np.ndarray)
            else repr(arg)
            for arg in args
        )
        return TypeError(f"{self.symbol} takes ({wanted}), arrays contiguous and writeable, but got ({found})")


class Bound(Generic[R]):
    """An entry point with all arguments but the last two, a range of rows; they are laid out once."""

    def __init__(self, function: EntryPoint[Any, R], *args: Any) -> None:
        self.words = function.arguments(*args, 0, 0)[: -_RANGE.size]
        self.native, self.address, self.result = function.native, function.address, function.result
        self._arrays = args  # are kept alive

    def __call__(self, begin: int, end: int) -> R:
        """Calls the function of the library for these rows."""
        return self.result(self.native(self.words + _RANGE.pack(begin, end)))


def bind(function: Callable[..., R], *args: Any) -> Callable[[int, int], R]:
    """A function with all arguments but the last two, a range of rows."""
    return Bound(function, *args) if isinstance(function, EntryPoint) else functools.partial(function, *args)


def _kind(annotation: Any) -> Any:
    """What an annotation says to the compiler: an `Array`, or a type of numbers."""
    return next((extra for extra in get_args(annotation) if isinstance(extra, Array)), annotation)


_FORMATS = {int: "q", bool: "q", float: "d", np.uint64: "Q"}
_RANGE = struct.Struct("=qq")
_GAMES_AND_ROWS = 2  # arguments, with which many entry points begin
_byte_of: Any = ctypes.c_char.from_buffer
_address_of: Callable[[Any], int] = ctypes.addressof


def address(array: np.ndarray) -> int:
    """Where a contiguous array begins, if it may be written to; others are refused. Empty ones are nowhere, at 0."""
    try:
        return _address_of(_byte_of(array))
    except ValueError:  # arrays with fields that overlap are not given away as they are
        return _address_of(_byte_of(array.view(np.uint8))) if array.size else 0


def _interpreted(function: Callable[P, R]) -> Callable[P, R]:
    """The same function in Python, made to agree with compiled code.

    64-bit arithmetic wraps around without a warning, and rows of a batch have attributes.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> R:
        views = (x.view(np.recarray) if isinstance(x, np.ndarray) and x.dtype.names else x for x in args)
        with np.errstate(over="ignore"):
            return function(*cast(Any, views), **kwargs)

    return wrapper


# --- Vectors of bytes: a loop over bytes is not vectorised, and slices are slow to set up; these are ten times faster.


@intrinsic
def copy_bytes(target: np.ndarray, at: int, source: np.ndarray, start: int, size: int) -> None:
    """target[at : at + size] = source[start : start + size], of int8 arrays in one dimension."""
    target[at : at + size] = source[start : start + size]


@intrinsic
def zero_bytes(target: np.ndarray, at: int, size: int) -> None:
    """target[at : at + size] = 0, for an int8 array."""
    target[at : at + size] = 0


@intrinsic
def mark_equal_bytes(target: np.ndarray, at: int, source: np.ndarray, start: int, size: int, wanted: int) -> None:
    """target[at : at + size] = source[start : start + size] == wanted, of int8 arrays; the size is a constant."""
    target[at : at + size] = source[start : start + size] == wanted


@intrinsic
def dot_bytes(one: np.ndarray, at: int, other: np.ndarray, start: int) -> int:
    """The sum of the products of 16 bytes of two int8 arrays; they must not be negative."""
    return int(one[at : at + 16].astype(np.int16) @ other[start : start + 16].astype(np.int16))


@intrinsic
def dot_two(one: np.ndarray, at: int, other: np.ndarray, start: int) -> int:
    """`dot_bytes` of 16 bytes of `one` with 16 of `other`, and in the next byte with the 16 after them; below 256."""
    return dot_bytes(one, at, other, start) | dot_bytes(one, at, other, start + 16) << 8


@intrinsic
def nonzero_bytes(source: np.ndarray, start: int) -> np.uint64:
    """Bit i: whether source[start + i] is not 0, of 16 bytes of an int8 array."""
    return np.uint64(sum(1 << i for i in range(16) if source[start + i]))


@intrinsic
def load_bytes(source: np.ndarray, start: int, size: int) -> int:
    """The number whose bytes are source[start : start + size], lowest first; the size is 1, 2, 4 or 8."""
    return int.from_bytes(source[start : start + size].tobytes(), "little")


@intrinsic
def store_bytes(target: np.ndarray, at: int, size: int, number: int) -> None:
    """target[at : at + size] = the lowest bytes of a number, lowest first; the size is 1, 2, 4 or 8."""
    low = int(number) & ((1 << 8 * size) - 1)
    target[at : at + size] = np.frombuffer(low.to_bytes(size, "little"), np.int8)


@intrinsic
def spread_bits(target: np.ndarray, at: int, bits: np.uint64) -> None:
    """target[at + i] = bit i, for an int8 array and all bits of a word."""
    target[at : at + WORD] = bits >> np.arange(WORD, dtype=np.uint64) & np.uint64(1)


@intrinsic
def local_array(shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array on the stack of an entry point, not initialised: small, outside of loops, and gone when it returns."""
    return np.empty(shape, dtype)
