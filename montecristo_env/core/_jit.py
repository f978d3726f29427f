"""How the rules are compiled, and where the compiled code is kept.

Numba's own cache goes stale when a constant or a callee in another file changes, and two processes that fill it
together can overwrite each other's index. So the cache folder is named by a hash of everything the machine code
depends on, is filled in a private folder first, and appears under its name in one atomic rename.
"""

import atexit
import ctypes
import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numba
import numba.core.config
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.caching import NullCache
from numba.extending import intrinsic

P = ParamSpec("P")
R = TypeVar("R")

CACHE_VARIABLE = "MONTECRISTO_CACHE_DIR"
_KEPT_SECONDS = 60 * 24 * 3600  # how long compiled code is kept that nobody uses
_PREFIX = "montecristo-"
_OWN_FOLDER = re.compile(_PREFIX + r"[0-9a-f]{16}(\.[a-z0-9_]+)?")  # finished; with a suffix, being filled
# Parts of Numba that its type hints do not cover.
_config: Any = numba.core.config
_cgutils: Any = cgutils
_njit: Any = numba.njit
_carray: Any = cast(Any, numba).carray
INTERPRETED = bool(_config.DISABLE_JIT)
WORD = 64  # bits


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A piece of the rules, compiled into the entry points that use it."""
    return _kernel(function, inline=False)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that becomes a part of each of its callers, whatever its size; those that it calls should be such, too.

    Around a call, what was loaded from memory must be loaded again, since the kernel might have changed it, and arrays
    are passed in seven words each: observations take half the time without any. Everywhere, it would make compiling
    slow.
    """
    return _kernel(function, inline=True)


def _kernel(function: Callable[P, R], inline: bool) -> Callable[P, R]:
    if INTERPRETED:
        return _interpreted(function)
    compiled: Callable[P, R] = _njit(
        function, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=inline
    )
    return compiled


class Library:
    """Functions that Python calls, compiled and kept on disk together.

    Args:
        content: what they are, for the message that they are being compiled.
        sources: the files they are made from, besides the rules.
    """

    def __init__(self, content: str, *sources: str) -> None:
        self.content = content
        self._sources = [*sorted(Path(__file__).parent.glob("*.py")), *map(Path, sources)]
        self._entry_points: list[Any] = []
        self._lock = threading.RLock()
        self._ready = INTERPRETED
        if hasattr(os, "register_at_fork"):
            # A fork waits until compiling is over: the child could not end what a thread of its parent has begun, nor
            # release its locks, of which the compiler has more.
            release = self._lock.release
            os.register_at_fork(before=self._lock.acquire, after_in_parent=release, after_in_child=release)

    def entry_point(self, function: Callable[P, R]) -> Callable[P, R]:
        """A kernel that Python calls, after `compile_once`."""
        if INTERPRETED:
            return _interpreted(function)
        compiled: Callable[P, R] = _njit(function, nogil=True, error_model="numpy")
        self._entry_points.append(compiled)
        return compiled

    def compile_once(self, call_every_entry_point: Callable[[], None]) -> None:
        """Compiles or loads everything at the first call in this process; compiling is announced and its result kept.

        Every entry point must be called, with the types it will always get: no others are compiled later.
        """
        with self._lock:
            if self._ready:
                return
            finished, building = _find_cache(_fingerprint(self.content, self._sources))
            if building or not finished:
                _say(f"compiling {self.content}, once…")
            try:
                if finished:
                    self._cache_in(building or finished)
                call_every_entry_point()
                if building and finished:
                    _publish(building, finished)
            except Exception as problem:  # the disk is full, or something has damaged the cache: do without it
                why = f"no cache in {finished} ({type(problem).__name__})"
                _say(f"{why}: compiling {self.content} for this process only…")
                for compiled in self._entry_points:
                    compiled._cache = NullCache()
                if finished and not building:
                    shutil.rmtree(finished, ignore_errors=True)
                call_every_entry_point()
            for compiled in self._entry_points:
                compiled.disable_compile()
            self._ready = True

    def _cache_in(self, folder: Path) -> None:
        """Lets Numba keep the entry points in this folder; it reads its name from a global setting."""
        before = _config.CACHE_DIR
        _config.CACHE_DIR = str(folder)
        try:
            for compiled in self._entry_points:
                compiled.enable_caching()
                if not Path(compiled._cache.cache_path).is_relative_to(folder):  # Numba has found another place
                    raise OSError(f"{folder} cannot be written")
        finally:
            _config.CACHE_DIR = before


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


if INTERPRETED:

    def copy_bytes(target: np.ndarray, at: int, source: np.ndarray, start: int, size: int) -> None:
        """target[at : at + size] = source[start : start + size], of int8 arrays in one dimension."""
        target[at : at + size] = source[start : start + size]

    def mark_equal_bytes(target: np.ndarray, at: int, source: np.ndarray, start: int, size: int, wanted: int) -> None:
        """target[at : at + size] = source[start : start + size] == wanted, of int8 arrays; the size is a constant."""
        target[at : at + size] = source[start : start + size] == wanted

    def dot_bytes(one: np.ndarray, at: int, other: np.ndarray, start: int) -> int:
        """The sum of the products of 16 bytes of two int8 arrays; they must not be negative."""
        return int(one[at : at + 16].astype(np.int16) @ other[start : start + 16].astype(np.int16))

    def load_bytes(source: np.ndarray, start: int, size: int) -> int:
        """The number whose bytes are source[start : start + size], lowest first; the size is 1, 2, 4 or 8."""
        return int.from_bytes(source[start : start + size].tobytes(), "little")

    def store_bytes(target: np.ndarray, at: int, size: int, number: int) -> None:
        """target[at : at + size] = the lowest bytes of a number, lowest first; the size is 1, 2, 4 or 8."""
        low = int(number) & ((1 << 8 * size) - 1)
        target[at : at + size] = np.frombuffer(low.to_bytes(size, "little"), np.int8)

    def spread_bits(target: np.ndarray, at: int, bits: np.uint64) -> None:
        """target[at + i] = bit i, for an int8 array and all bits of a word."""
        target[at : at + WORD] = bits >> np.arange(WORD, dtype=np.uint64) & np.uint64(1)

    # One thread alone uses these.

    def load_shared(array: Any, at: int) -> int:
        """array[at]."""
        return int(array[at])

    def store_shared(array: Any, at: int, value: int) -> None:
        """array[at] = value."""
        array[at] = value

    def add_shared(array: Any, at: int, value: int) -> None:
        """array[at] += value."""
        array[at] += value

    def swap_shared(array: Any, at: int, expected: int, value: int) -> bool:
        """array[at] = value, if it is what was expected; whether it was."""
        found = bool(array[at] == expected)
        array[at] = value if found else array[at]
        return found

    def relax() -> None:
        """Nobody else is there."""

    def array_at(address: int, shape: Any, dtype: Any) -> Any:
        """The contiguous array at `array.ctypes.data`, for as long as somebody else keeps it."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.frombuffer((ctypes.c_char * size).from_address(int(address)), dtype).reshape(shape)

else:  # pragma: no cover (coverage is measured without compilation)
    # A loop over bytes is not vectorised, and slices are slow to set up: these are ten times faster than either.

    def _addresses(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, Any]:
        """Of target[at] and source[start]."""
        arrays = [context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 2)]
        into, out_of = (builder.gep(array.data, [args[i]]) for array, i in zip(arrays, (1, 3), strict=True))
        return into, out_of

    @intrinsic
    def copy_bytes(typing: Any, target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:
        """target[at : at + size] = source[start : start + size], of int8 arrays in one dimension."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _cgutils.raw_memcpy(builder, *_addresses(context, builder, signature, args), args[4], 1)
            return context.get_dummy_value()

        return types.void(target, types.intp, source, types.intp, types.intp), codegen

    @intrinsic(prefer_literal=True)
    def mark_equal_bytes(typing: Any, target: Any, at: Any, source: Any, start: Any, size: Any, wanted: Any) -> Any:
        """target[at : at + size] = source[start : start + size] == wanted, of int8 arrays; the size is a constant."""
        byte = ir.IntType(8)
        vector = ir.VectorType(byte, size.literal_value)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            into, out_of = (
                builder.bitcast(address, vector.as_pointer())
                for address in _addresses(context, builder, signature, args)
            )
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), args[5], ir.IntType(32)(0))
            all_alike = builder.shuffle_vector(
                one, one, ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
            )
            equal = builder.icmp_signed("==", builder.load(out_of, align=1), all_alike)
            builder.store(builder.zext(equal, vector), into, align=1)
            return context.get_dummy_value()

        return types.void(target, types.intp, source, types.intp, size, types.int8), codegen

    @intrinsic
    def dot_bytes(typing: Any, one: Any, at: Any, other: Any, start: Any) -> Any:
        """The sum of the products of 16 bytes of two int8 arrays; they must not be negative."""
        wide = ir.VectorType(ir.IntType(16), 16)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            bytes_16 = ir.VectorType(ir.IntType(8), 16)
            pointers = (
                builder.bitcast(address, bytes_16.as_pointer())
                for address in _addresses(context, builder, signature, args)
            )
            product = builder.mul(*(builder.zext(builder.load(pointer, align=1), wide) for pointer in pointers))
            add = _cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(wide.element, [wide]), "llvm.vector.reduce.add.v16i16"
            )
            return builder.zext(builder.call(add, [product]), ir.IntType(64))

        return types.int64(one, types.intp, other, types.intp), codegen

    @intrinsic(prefer_literal=True)
    def load_bytes(typing: Any, source: Any, start: Any, size: Any) -> Any:
        """The number whose bytes are source[start : start + size], lowest first; the size is 1, 2, 4 or 8."""
        word = ir.IntType(8 * size.literal_value)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            out_of = builder.bitcast(builder.gep(array.data, [args[1]]), word.as_pointer())
            found = builder.load(out_of, align=1)
            return builder.zext(found, ir.IntType(64)) if word.width < 64 else found

        return types.int64(source, types.intp, size), codegen

    @intrinsic(prefer_literal=True)
    def store_bytes(typing: Any, target: Any, at: Any, size: Any, number: Any) -> Any:
        """target[at : at + size] = the lowest bytes of a number, lowest first; the size is 1, 2, 4 or 8."""
        word = ir.IntType(8 * size.literal_value)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            into = builder.bitcast(builder.gep(array.data, [args[1]]), word.as_pointer())
            builder.store(builder.trunc(args[3], word) if word.width < 64 else args[3], into, align=1)
            return context.get_dummy_value()

        return types.void(target, types.intp, size, types.int64), codegen

    @intrinsic
    def spread_bits(typing: Any, target: Any, at: Any, bits: Any) -> Any:
        """target[at + i] = bit i, for an int8 array and all bits of a word."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            vector = ir.VectorType(ir.IntType(8), WORD)
            into = builder.bitcast(builder.gep(array.data, [args[1]]), vector.as_pointer())
            flags = builder.bitcast(args[2], ir.VectorType(ir.IntType(1), WORD))
            builder.store(builder.zext(flags, vector), into, align=1)
            return context.get_dummy_value()

        return types.void(target, types.intp, types.uint64), codegen

    # What threads tell each other: words of an int64 array, read and written at once and in order.

    def _word(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.gep(array.data, [args[1]])

    @intrinsic
    def load_shared(typing: Any, array: Any, at: Any) -> Any:
        """array[at]."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load_atomic(_word(context, builder, signature, args), "seq_cst", 8)

        return types.int64(array, types.intp), codegen

    @intrinsic
    def store_shared(typing: Any, array: Any, at: Any, value: Any) -> Any:
        """array[at] = value."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store_atomic(args[2], _word(context, builder, signature, args), "seq_cst", 8)
            return context.get_dummy_value()

        return types.void(array, types.intp, types.int64), codegen

    @intrinsic
    def add_shared(typing: Any, array: Any, at: Any, value: Any) -> Any:
        """array[at] += value."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.atomic_rmw("add", _word(context, builder, signature, args), args[2], "seq_cst")
            return context.get_dummy_value()

        return types.void(array, types.intp, types.int64), codegen

    @intrinsic
    def swap_shared(typing: Any, array: Any, at: Any, expected: Any, value: Any) -> Any:
        """array[at] = value, if it is what was expected; whether it was."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = _word(context, builder, signature, args)
            return builder.extract_value(builder.cmpxchg(word, args[2], args[3], "seq_cst", "seq_cst"), 1)

        return types.boolean(array, types.intp, types.int64, types.int64), codegen

    @intrinsic
    def relax(typing: Any) -> Any:
        """Lets another thread of the same core go first, for some tens of cycles, where processors can do that."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if platform.machine().lower() in ("x86_64", "amd64"):
                pause = ir.FunctionType(ir.VoidType(), [])
                builder.call(_cgutils.get_or_insert_function(builder.module, pause, "llvm.x86.sse2.pause"), [])
            return context.get_dummy_value()

        return types.void(), codegen

    @intrinsic
    def _as_pointer(typing: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], _cgutils.voidptr_t)

        return types.voidptr(types.int64), codegen

    _pointer: Any = _as_pointer

    @kernel
    def array_at(address: int, shape: Any, dtype: Any) -> Any:
        """The contiguous array at `array.ctypes.data`, for as long as somebody else keeps it."""
        return _carray(_pointer(address), shape, dtype)


rules = Library("the rules")
entry_point = rules.entry_point
compile_once = rules.compile_once


def _say(message: str) -> None:
    print(f"montecristo_env: {message}", file=sys.stderr, flush=True)


def _publish(building: Path, finished: Path) -> None:
    """Gives a filled cache its name; if another process was first, its cache is as good as ours."""
    try:
        building.rename(finished)
    except OSError:
        if not finished.is_dir():
            raise
    for folder in finished.parent.iterdir():  # what older versions left behind; whatever else is there is not ours
        with suppress(OSError):
            if _OWN_FOLDER.fullmatch(folder.name) and time.time() - folder.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(folder)


def _fingerprint(content: str, sources: Iterable[Path]) -> str:
    """A folder name: a hash of what the machine code is and all that it depends on."""
    digest = hashlib.sha256(content.encode())
    for source in sources:
        digest.update(f"{source} {source.stat().st_mtime_ns}\0".encode() + source.read_bytes())
    settings = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_")]
    versions = [importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    cpu = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    digest.update("\0".join([platform.python_version(), platform.machine(), *versions, *cpu, *settings]).encode())
    return _PREFIX + digest.hexdigest()[:16]


def _cache_roots() -> Iterator[Path]:
    """Where compiled code may be kept, best first; a read-only or missing home falls through to the next."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        yield Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    with suppress(RuntimeError):  # no home directory
        yield Path(base).expanduser() / "montecristo-env"
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    yield Path(tempfile.gettempdir()) / f"montecristo-env-{user}"


def _find_cache(name: str) -> tuple[Path | None, Path | None]:
    """(the folder of finished code, a private folder to fill first), each None where there is none."""
    chosen = os.environ.get(CACHE_VARIABLE)
    for root in _cache_roots():
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            _check_is_mine(root)
            if (root / name).is_dir():
                with suppress(OSError):
                    os.utime(root / name)  # still in use
                return root / name, None
            building = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=root))
        except OSError as problem:
            if chosen and root == Path(chosen):
                _say(f"{CACHE_VARIABLE} is not used: {problem}")
            continue
        atexit.register(shutil.rmtree, building, ignore_errors=True)
        return root / name, building
    return None, None


def _check_is_mine(folder: Path) -> None:
    """Code is only loaded from a folder that no other user could have filled, nor led elsewhere by a link."""
    facts = folder.lstat()
    if stat.S_ISLNK(facts.st_mode):
        raise OSError(f"{folder} is a symbolic link; name the folder itself")
    if hasattr(os, "getuid") and facts.st_uid not in (os.getuid(), 0):
        raise OSError(f"{folder} belongs to another user")
    if hasattr(os, "getuid") and facts.st_mode & 0o022:
        raise OSError(f"{folder} can be written by other users; chmod go-w would help")
