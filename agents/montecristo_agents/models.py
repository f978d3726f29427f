"""Model files: the weights of a network in safetensors, which carry no code, and what there is to know of them."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from montecristo_env import actions, observation
from montecristo_env.errors import MonteCristoError
from montecristo_env.util.commands import missing
from montecristo_env.util.files import atomic_write

T = TypeVar("T")

FORMAT = "2"
"""The version of the files that this module writes and reads."""

_STORED = {"F16", "F32"}  # what a file may hold, as safetensors calls it
_HEADER = ("format", "layout", "sizes", "training", "checksum")


class InvalidModel(MonteCristoError):
    """A model file or a network that cannot play this game: missing, damaged, or made for something else."""


def layout_hash() -> str:
    """A hash of what the numbers of an observation and the codes of actions stand for, in this version."""
    digest = hashlib.sha256()
    for name, part in observation.FIELDS.items():
        digest.update(f"{name} {part.group} {part.columns} {part.shape} {part.highest} {part.scale}\n".encode())
    for name, codes in actions.BLOCKS.items():
        digest.update(f"{name} {codes.start} {codes.stop}\n".encode())
    for code in range(actions.COUNT):
        digest.update(f"{actions.decode(code)}\n".encode())
    return digest.hexdigest()[:16]


@contextmanager
def shipped_model(name: str) -> Iterator[Path]:
    """A model file that comes with this package."""
    with as_file(files("montecristo_agents") / "models" / f"{name}.safetensors") as path:
        if not path.is_file():
            raise InvalidModel(
                f"this installation brings no network {name} along: train one and play it as policy:PATH"
            )
        yield path


def write_model(
    path: str | Path,
    sizes: tuple[int, ...],
    tensors: Mapping[str, NDArray[Any]],
    training: Mapping[str, Any],
    dtype: DTypeLike = np.float32,
) -> None:
    """Writes a model file: all of it or, if something fails, nothing.

    Args:
        path: where to; a file that is there already is replaced.
        sizes: of the layers.
        tensors: the weights by name.
        training: how the network was made: anything that JSON can tell.
        dtype: float32, or float16 for a file of half the size.
    """
    with np.errstate(over="ignore"):  # what does not fit is refused
        stored = {name: np.ascontiguousarray(tensor, dtype) for name, tensor in tensors.items()}
    check_tensors(stored, {name: tensor.shape for name, tensor in tensors.items()})
    header = {
        "format": FORMAT,
        "layout": layout_hash(),
        "sizes": json.dumps(sizes),
        "training": json.dumps(training),
    }
    header["checksum"] = checksum(header, stored)
    atomic_write(path, _safetensors().numpy.save(stored, header))


def read_model(path: str | Path) -> tuple[list[Any], dict[str, NDArray[Any]], dict[str, Any]]:
    """Sizes, tensors and training of a file that `write_model` has written.

    One that is damaged or does not fit this game is refused.
    """
    try:
        header, tensors = _read(Path(path))
        _check_header(header, tensors)
        return _from_json(header, "sizes", list), tensors, _from_json(header, "training", dict)
    except InvalidModel as problem:
        raise InvalidModel(f"model {path}: {problem}") from None
    except RecursionError:
        raise InvalidModel(f"model {path}: its header is nested too deeply") from None


def check_tensors(tensors: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """All tensors are there, of these shapes, and finite; else one of them is named."""
    if missing := sorted(shapes.keys() - tensors.keys()):
        raise InvalidModel(f"lacks the weights {', '.join(missing)}")
    if extra := sorted(tensors.keys() - shapes.keys()):
        raise InvalidModel(f"has weights that do not belong to it: {', '.join(extra)}")
    for name, shape in shapes.items():
        if tensors[name].shape != shape:
            raise InvalidModel(f"{name} must have the shape {shape}, but has {tensors[name].shape}")
        if not np.isfinite(tensors[name]).all():
            raise InvalidModel(f"{name} has weights that are not finite {tensors[name].dtype} numbers")


def checksum(header: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]) -> str:
    """A hash of everything in a model file but for itself."""
    digest = hashlib.sha256()
    for name, text in sorted(header.items()):
        if name != "checksum":
            digest.update(f"{name}={text}\0".encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tensor.shape}\0".encode() + tensor.tobytes())
    return digest.hexdigest()


def _safetensors() -> ModuleType:
    """The package, imported when a network is read or written: everything else works without it."""
    try:
        import safetensors.numpy
    except ImportError as error:
        raise missing("a network player", "safetensors", "arena") from error
    return safetensors


def _read(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """The header and the tensors of a safetensors file."""
    safetensors = _safetensors()
    try:
        with safetensors.safe_open(path, framework="np") as file:
            kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118, not a mapping
            if others := [f"{name} ({kind})" for name, kind in kinds.items() if kind not in _STORED]:
                raise InvalidModel(f"weights must be float16 or float32, but there are {', '.join(others)}")
            return file.metadata() or {}, {name: file.get_tensor(name) for name in kinds}
    except InvalidModel:
        raise
    except FileNotFoundError:
        raise InvalidModel("there is no such file; give the path of a .safetensors file") from None
    except (OSError, safetensors.SafetensorError, TypeError, ValueError) as problem:  # the last two from NumPy
        raise InvalidModel(f"cannot be read ({problem}): get it anew, or train it again") from None


def _check_header(header: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]) -> None:
    """The file is one of ours, whole, and made for this version of the game."""
    if "format" in header and header["format"] != FORMAT:
        raise InvalidModel(f"has format {header['format']}, but this version of montecristo-env reads format {FORMAT}")
    if missing := [name for name in _HEADER if name not in header]:
        raise InvalidModel(f"is no model for this game: its header lacks {', '.join(missing)}")
    if header["checksum"] != checksum(header, tensors):
        raise InvalidModel("is damaged, its checksum is not that of its content: get it anew, or train it again")
    expected = layout_hash()
    if header["layout"] != expected:
        raise InvalidModel(
            f"was trained on observations and actions with the layout {header['layout']}, but this version of "
            f"montecristo-env has {expected}: train it again, or install the version it was made with"
        )


def _from_json(header: Mapping[str, str], name: str, kind: type[T]) -> T:
    """What an entry of the header says."""
    try:
        value = json.loads(header[name])
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise InvalidModel(f"its header must give {name} as a JSON {kind.__name__}, but says {header[name]!r}")
    return value
