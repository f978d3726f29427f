"""The player that follows a trained network, without torch, and the file that keeps such a network."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from montecristo_agents import advice
from montecristo_env import GameBatch, actions, observation
from montecristo_env.agent import Evaluation, PublicView
from montecristo_env.commands import missing
from montecristo_env.core._jit import Library, kernel
from montecristo_env.core.chance import stream
from montecristo_env.errors import InvalidArgument, MonteCristoError
from montecristo_env.files import write_whole
from montecristo_env.threads import ALL_CORES, share

try:
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import save as safetensors_bytes
except ImportError as error:
    raise missing("a network player", error.name, "arena") from error

if TYPE_CHECKING:
    from montecristo_agents.entity import EntityNetwork

T = TypeVar("T")
N = TypeVar("N", int, float)

FORMAT = "1"
"""The version of the files that this module writes and reads."""

ACTIVATIONS = ("relu", "tanh")
VALUE = 1  # outputs of the value head
MOST_COUNT = 128.0  # how far from 0 an observation can be, being int8
VALUE_WEIGHT = 10.0  # what looking ahead adds to a logit, for each unit of reward
WEIGHTS_PER_THREAD = 15_000_000  # to go through; that is worth a thread
ROWS_AT_ONCE = 1024  # when looking ahead, so that the clones of all legal actions do not fill the memory
_STORED = {"F16", "F32"}  # what a file may hold, as safetensors calls it
_HEADER = ("format", "layout", "hidden", "activation", "residual", "advised", "training", "checksum")


class InvalidModel(MonteCristoError):
    """A model file or a network that cannot play this game: missing, damaged, or made for something else."""


def layout_hash(advised: bool = False) -> str:
    """A hash of what the numbers that a network looks at and the codes of actions stand for, in this version."""
    digest = hashlib.sha256()
    for name, part in observation.FIELDS.items():
        digest.update(f"{name} {part.group} {part.columns} {part.shape} {part.highest} {part.scale}\n".encode())
    for name, codes in actions.BLOCKS.items():
        digest.update(f"{name} {codes.start} {codes.stop}\n".encode())
    for code in range(actions.COUNT):
        digest.update(f"{actions.decode(code)}\n".encode())
    if advised:
        digest.update(f"advice {advice.LAYOUT}\n".encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Network:
    """A perceptron that gives a logit for every action and the value of the position for the observer.

    Its input is `observation * observation.SCALE`, or, if it is advised, `observe_with_advice(…) * advice.SCALE` of the
    module `advice`. Hidden layers follow each other, then come two linear heads.
    Weights are as in torch's `Linear`, (outputs, inputs), and are called `trunk.0.weight`, `trunk.0.bias`, …,
    `policy.weight`, `policy.bias`, `value.weight` and `value.bias`.

    Every row is worked out by itself, in the same order: what comes out does not depend on what else is in the batch,
    nor on the number of threads.

    Args:
        hidden: the sizes of the hidden layers.
        tensors: the weights by name.
        activation: "relu" or "tanh", after every hidden layer.
        residual: whether a hidden layer after the first, if it has as many outputs as inputs, adds its input to them.
        advised: whether it looks at advice, too.
        training: how the network was made: settings, seed, steps …; anything that JSON can tell.
    """

    hidden: tuple[int, ...]
    tensors: Mapping[str, NDArray[Any]] = field(repr=False)
    activation: str = "relu"
    residual: bool = False
    advised: bool = False
    training: Mapping[str, Any] = field(default_factory=dict)
    _weights: NDArray[np.float32] = field(init=False, repr=False)
    _layers: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise InvalidModel(f"the activation must be {' or '.join(ACTIVATIONS)}, but is {self.activation!r}")
        _check_tensors(self.tensors, _shapes(self.hidden, self.inputs))
        weights, layers = _pack(self.hidden, self.tensors, self.residual, self.scale)
        _check_range(weights, layers, self.activation == "tanh")
        object.__setattr__(self, "_weights", weights)
        object.__setattr__(self, "_layers", layers)
        _library.compile_once(_call_every_entry_point)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy from another process needs the compiled code here, too, and arrays of its own: Ray's are read-only."""
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def inputs(self) -> int:
        """How many numbers it looks at."""
        return advice.SIZE if self.advised else observation.SIZE

    @property
    def scale(self) -> NDArray[np.float32]:
        """What each of them is multiplied by."""
        return advice.SCALE if self.advised else observation.SCALE

    def look(
        self,
        games: PublicView | GameBatch,
        rows: NDArray[np.int64] | None = None,
        masks: NDArray[np.int8] | None = None,
    ) -> NDArray[np.int8]:
        """What it must look at to play these rows, (K, inputs); writes their action masks, too, if given room."""
        return advice.observe_with_advice(games, rows, masks) if self.advised else games.observe(rows=rows, masks=masks)

    def evaluate(self, observations: NDArray[np.int8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The logits of all actions, (K, actions.COUNT), and the expected reward of the observer, (K,).

        Args:
            observations: K of them as `look` gives them, (K, inputs) int8.
        """
        seen = np.require(observations, requirements=["C", "W"])
        if seen.dtype != np.int8 or seen.ndim != 2 or seen.shape[1] != self.inputs:
            raise InvalidArgument(
                f"observations must be int8, (K, {self.inputs}), but are {seen.dtype} of shape {seen.shape}"
            )
        out = np.empty((len(seen), actions.COUNT + VALUE), np.float32)
        share(
            evaluate_rows,
            seen,
            self._weights,
            self._layers,
            self.activation == "tanh",
            out,
            size=len(seen),
            threads=ALL_CORES,
            least=max(1, WEIGHTS_PER_THREAD // self._weights.size),
        )
        return out[:, : actions.COUNT].copy(), out[:, actions.COUNT].copy()

    def save(self, path: str | Path, dtype: DTypeLike = np.float32) -> None:
        """Writes a safetensors file: all of it or, if something fails, nothing.

        Args:
            path: where to; a file that is there already is replaced.
            dtype: float32, or float16 for a file of half the size.
        """
        with np.errstate(over="ignore"):  # what does not fit is refused below
            tensors = {name: np.ascontiguousarray(tensor, dtype) for name, tensor in self.tensors.items()}
        _check_tensors(tensors, _shapes(self.hidden, self.inputs))
        header = {
            "format": FORMAT,
            "architecture": "perceptron",
            "layout": layout_hash(self.advised),
            "hidden": json.dumps(self.hidden),
            "activation": self.activation,
            "residual": json.dumps(self.residual),
            "advised": json.dumps(self.advised),
            "training": json.dumps(self.training),
        }
        header["checksum"] = checksum(header, tensors)
        write_whole(path, safetensors_bytes(tensors, header))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a file that `save` has written; one that is damaged or does not fit this game is refused."""
        try:
            header, tensors = _read(Path(path))
            _check_header(header, tensors)
            return cls(
                hidden=tuple(_from_json(header, "hidden", list)),
                tensors=tensors,
                activation=header["activation"],
                residual=_from_json(header, "residual", bool),
                advised=_from_json(header, "advised", bool),
                training=_from_json(header, "training", dict),
            )
        except InvalidModel as problem:
            raise InvalidModel(f"model {path}: {problem}") from None
        except RecursionError:
            raise InvalidModel(f"model {path}: its header is nested too deeply") from None


def load_network(path: str | Path) -> "Network | EntityNetwork":
    """Reads a model file of either architecture."""
    from montecristo_agents.entity import ARCHITECTURE, EntityNetwork  # which is made from parts of this module

    try:
        header, _ = _read(Path(path))
    except InvalidModel as problem:
        raise InvalidModel(f"model {path}: {problem}") from None
    return (EntityNetwork if header.get("architecture") == ARCHITECTURE else Network).load(path)


class PolicyAgent:
    """Plays what a network says: `policy:PATH`, with settings behind it `policy:PATH:temperature=0.5:lookahead=4`.

    It plays the action with the highest logit; with a temperature it draws from softmax(logits / temperature), from the
    random stream of each game. Looking ahead it tries every legal action in so many clones with redrawn hidden parts,
    and adds to its logit `VALUE_WEIGHT` times the mean value of what follows, or the reward where the game is over.
    Networks know the value for the player on turn; if that is another one, his loss is shared by the rest: rewards sum
    to zero.

    Args:
        settings: the path of a model file with or without settings behind it, or a network.
        temperature: 0 plays the best action, 1 as often as the network says.
        lookahead: clones for each action; 0 does not look ahead.
    """

    def __init__(
        self, settings: "str | Path | Network | EntityNetwork" = "", temperature: float = 0.0, lookahead: int = 0
    ) -> None:
        options: dict[str, str] = {}
        if isinstance(settings, str):
            settings, options = _split(settings)
        if settings == "":
            raise InvalidArgument("policy needs the path of a model file: policy:PATH")
        self.path = Path(settings) if isinstance(settings, str | Path) else None
        """The model file, if the network comes from one."""
        self.temperature = _number("temperature", options.get("temperature", temperature), float)
        self.lookahead = _number("lookahead", options.get("lookahead", lookahead), int)
        self.network = load_network(settings) if isinstance(settings, str | Path) else settings
        self.name = self._name("policy" if self.path is None else f"policy:{self.path.stem}")

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        scores, masks, _ = self._scores(games, rows)
        if self.temperature:
            noise = np.empty(scores.shape)
            draw_noise(games.random_keys(rows), noise, 0, rows.size)
            scores += self.temperature * noise
        best: NDArray[np.int64] = np.where(masks, scores, -np.inf).argmax(axis=1)
        return best

    def evaluate(self, games: PublicView, rows: NDArray[np.int64]) -> Evaluation:
        """What it thinks of every legal action, at its temperature or, if that is 0, as the network says."""
        scores, masks, values = self._scores(games, rows)
        scores = np.where(masks, scores, -np.inf)
        weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / (self.temperature or 1.0))
        return Evaluation(weights / weights.sum(axis=1, keepdims=True), values.astype(np.float64))

    def _scores(
        self, games: PublicView, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.float32]]:
        """How good the actions are, which ones are legal, and what the position is worth."""
        masks = np.empty((rows.size, actions.COUNT), np.int8)
        logits, values = self.network.evaluate(self.network.look(games, rows, masks))
        scores = logits.astype(np.float64)
        if self.lookahead:
            for begin in range(0, rows.size, ROWS_AT_ONCE):
                part = slice(begin, begin + ROWS_AT_ONCE)
                scores[part] += VALUE_WEIGHT * self._values_ahead(games, rows[part], masks[part])
        return scores, masks, values

    def _values_ahead(self, games: PublicView, rows: NDArray[np.int64], masks: NDArray[np.int8]) -> NDArray[np.float64]:
        """The mean value of every legal action for the player on turn, 0 for others, (K, actions.COUNT)."""
        values = np.zeros(masks.shape)
        places, codes = np.nonzero(masks)
        seats = games.current_player[rows][places].astype(np.int64)
        for _ in range(self.lookahead):
            after = games.resample_hidden(games.random_keys(rows), rows)[places]
            after.step(codes)
            _, expected = self.network.evaluate(self.network.look(after))
            expected = np.where(after.current_player == seats, expected, -expected / (after.num_players - 1))
            rewards = np.take_along_axis(after.rewards, seats[:, None], axis=1)[:, 0]
            values[places, codes] += np.where(after.over, rewards, expected)
        return values / self.lookahead

    def _name(self, model: str) -> str:
        temperature = f":temperature={self.temperature:g}" if self.temperature else ""
        return model + temperature + (f":lookahead={self.lookahead}" if self.lookahead else "")


def ppo(settings: str = "") -> PolicyAgent:
    """The network that this package brings along, trained by PPO: `ppo`, `ppo:temperature=0.5`, `ppo:lookahead=4`."""
    if settings and _split(f":{settings}")[0]:
        raise InvalidArgument(f"{settings!r} is no setting of a network player: these are {_OPTIONS}")
    with shipped_model() as path:
        agent = PolicyAgent(f"{path}:{settings}" if settings else path)
    agent.name = agent._name("ppo")
    return agent


@contextmanager
def shipped_model() -> Iterator[Path]:
    """The model file that this package brings along."""
    with as_file(files("montecristo_agents") / "models" / "ppo.safetensors") as path:
        if not path.is_file():
            raise InvalidModel("this installation brings no network along: train one and play it as policy:PATH")
        yield path


_OPTIONS = "temperature=NUMBER and lookahead=NUMBER"


def _split(settings: str) -> tuple[str, dict[str, str]]:
    """A path and the settings behind it; a path may have colons of its own."""
    path = settings
    options: dict[str, str] = {}
    while found := re.fullmatch(r"(.*):([a-z]+)=([^:/\\]*)", path, re.DOTALL):
        path, option, value = found.groups()
        if option not in ("temperature", "lookahead"):
            raise InvalidArgument(f"'{option}={value}' is no setting of a network player: these are {_OPTIONS}")
        options.setdefault(option, value)  # the last one given counts
    return path, options


def _number(name: str, value: str | float, kind: type[N]) -> N:
    """A setting that is a number from 0."""
    try:
        number = kind(str(value))
        if number >= 0 and math.isfinite(number):
            return number
    except ValueError:
        pass
    whole = "a whole number" if kind is int else "a number"
    raise InvalidArgument(f"{name} must be {whole} from 0, but is {value!r}")


# --- Files -----------------------------------------------------------------------------------------------------------


def checksum(header: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]) -> str:
    """A hash of everything in a model file but for itself."""
    digest = hashlib.sha256()
    for name, text in sorted(header.items()):
        if name != "checksum":
            digest.update(f"{name}={text}\0".encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tensor.shape}\0".encode() + tensor.tobytes())
    return digest.hexdigest()


def _read(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """The header and the tensors of a safetensors file."""
    try:
        with safe_open(path, framework="np") as file:
            kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118, not a mapping
            if others := [f"{name} ({kind})" for name, kind in kinds.items() if kind not in _STORED]:
                raise InvalidModel(f"weights must be float16 or float32, but there are {', '.join(others)}")
            return file.metadata() or {}, {name: file.get_tensor(name) for name in kinds}
    except InvalidModel:
        raise
    except FileNotFoundError:
        raise InvalidModel("there is no such file; give the path of a .safetensors file") from None
    except (OSError, SafetensorError, TypeError, ValueError) as problem:  # the last two from NumPy
        raise InvalidModel(f"cannot be read ({problem}): get it anew, or train it again") from None


def _check_header(header: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]) -> None:
    """The file is one of ours, whole, and made for this version of the game."""
    if "format" in header and header["format"] != FORMAT:
        raise InvalidModel(f"has format {header['format']}, but this version of montecristo-env reads format {FORMAT}")
    if missing := [name for name in _HEADER if name not in header]:
        raise InvalidModel(f"is no model for this game: its header lacks {', '.join(missing)}")
    if header["checksum"] != checksum(header, tensors):
        raise InvalidModel("is damaged, its checksum is not that of its content: get it anew, or train it again")
    expected = layout_hash(_from_json(header, "advised", bool))
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


# --- Tensors ---------------------------------------------------------------------------------------------------------


def _shapes(hidden: tuple[int, ...], inputs: int) -> dict[str, tuple[int, ...]]:
    """What tensors a network has, and of what shape."""
    if not hidden or not all(type(size) is int and size > 0 for size in hidden):
        raise InvalidModel(f"hidden must be the sizes of one or more layers, but is {hidden!r}")
    layers = {f"trunk.{number}": sizes for number, sizes in enumerate(pairwise((inputs, *hidden)))}
    layers |= {"policy": (hidden[-1], actions.COUNT), "value": (hidden[-1], VALUE)}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, (before, after) in layers.items():
        shapes |= {f"{name}.weight": (after, before), f"{name}.bias": (after,)}
    return shapes


def _check_tensors(tensors: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> None:
    if missing := sorted(shapes.keys() - tensors.keys()):
        raise InvalidModel(f"lacks the weights {', '.join(missing)}")
    if extra := sorted(tensors.keys() - shapes.keys()):
        raise InvalidModel(f"has weights that do not belong to it: {', '.join(extra)}")
    for name, shape in shapes.items():
        if tensors[name].shape != shape:
            raise InvalidModel(f"{name} must have the shape {shape}, but has {tensors[name].shape}")
        if not np.isfinite(tensors[name]).all():
            raise InvalidModel(f"{name} has weights that are not finite {tensors[name].dtype} numbers")


def _pack(
    hidden: tuple[int, ...], tensors: Mapping[str, NDArray[Any]], residual: bool, scale: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """All weights in a row, and a line for every layer that says where they are: START, INPUTS, OUTPUTS, RESIDUAL.

    Matrices are transposed, so that the weights of one input lie together; the biases follow. The scale of the input
    becomes part of the first layer, and the two heads become one.
    """
    single = {name: np.asarray(tensor, np.float32) for name, tensor in tensors.items()}
    layers = [(single[f"trunk.{number}.weight"], single[f"trunk.{number}.bias"]) for number in range(len(hidden))]
    with np.errstate(over="ignore"):  # what becomes infinite is refused by name
        layers[0] = (layers[0][0] * scale, layers[0][1])
    heads = [np.concatenate([single[f"policy.{part}"], single[f"value.{part}"]]) for part in ("weight", "bias")]
    layers.append((heads[0], heads[1]))
    lines, pieces, start = [], [], 0
    for number, (weight, bias) in enumerate(layers):
        outputs, inputs = weight.shape
        lines.append((start, inputs, outputs, residual and inputs == outputs and 0 < number < len(hidden)))
        pieces += [weight.T.ravel(), bias]
        start += weight.size + bias.size
    return np.concatenate(pieces), np.array(lines, np.int64)


def _check_range(weights: NDArray[np.float32], layers: NDArray[np.int64], tanh: bool) -> None:
    """Whatever it looks at, no number in it becomes infinite: all inputs and weights at their worst."""
    heads = len(layers) - 1
    bounds = np.full(int(layers[0, INPUTS]), MOST_COUNT)
    for number, (start, inputs, outputs, residual) in enumerate(layers.tolist()):
        bias = start + inputs * outputs
        matrix = np.abs(weights[start:bias].reshape(inputs, outputs), dtype=np.float64)
        after = bounds @ matrix + np.abs(weights[bias : bias + outputs], dtype=np.float64)
        if not after.max() < np.finfo(np.float32).max:
            name = "the heads" if number == heads else f"trunk.{number}"
            raise InvalidModel(f"the weights of {name} are so large that what it gives may be infinite")
        bounds = (np.minimum(after, 1.0) if tanh else after) + (bounds if residual else 0.0)


# --- Compiled --------------------------------------------------------------------------------------------------------

START, INPUTS, OUTPUTS, RESIDUAL = range(4)  # of a layer
_ZERO = np.float32(0)
_SPARE_BITS = np.uint64(12)  # 52 bits and a half are exact in a float, and never 0 or 1
_STEPS = 2.0**52
_library = Library("the network player", __file__)


@_library.entry_point
def evaluate_rows(
    observations: np.ndarray,
    weights: np.ndarray,
    layers: np.ndarray,
    tanh: bool,
    out: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Logits and value of every row."""
    heads = len(layers) - 1
    widest = int(layers[:, OUTPUTS].max())
    inputs, outputs = np.empty(widest, np.float32), np.empty(widest, np.float32)
    active = np.empty(int(layers[:, INPUTS].max()), np.int64)
    for k in range(begin, end):
        for number in range(heads):
            inputs, outputs = outputs, inputs
            size = layers[number, OUTPUTS]
            if number == 0:
                _multiply(observations[k], weights, layers[0], active, outputs[:size])
            else:
                _multiply(inputs[: layers[number, INPUTS]], weights, layers[number], active, outputs[:size])
            _activate(outputs[:size], inputs, tanh, layers[number, RESIDUAL] == 1)
        _multiply(outputs[: layers[heads, INPUTS]], weights, layers[heads], active, out[k])


@kernel
def _multiply(x: np.ndarray, weights: np.ndarray, layer: np.ndarray, active: np.ndarray, out: np.ndarray) -> None:
    """What a layer gives for x, before activation.

    Most inputs are 0 and are passed over; the others are taken four at a time, to load and store `out` less often.
    """
    first_bias = layer[START] + layer[INPUTS] * layer[OUTPUTS]
    matrix = weights[layer[START] : first_bias].reshape((layer[INPUTS], layer[OUTPUTS]))
    out[:] = weights[first_bias : first_bias + layer[OUTPUTS]]
    count = 0
    for i in range(x.size):
        if x[i] != 0:
            active[count] = i
            count += 1
    done = 0
    while done + 4 <= count:
        a, b, c, d = active[done], active[done + 1], active[done + 2], active[done + 3]
        xa, xb, xc, xd = np.float32(x[a]), np.float32(x[b]), np.float32(x[c]), np.float32(x[d])
        wa, wb, wc, wd = matrix[a], matrix[b], matrix[c], matrix[d]
        for j in range(out.size):
            out[j] = (((out[j] + xa * wa[j]) + xb * wb[j]) + xc * wc[j]) + xd * wd[j]
        done += 4
    for rest in range(done, count):
        xa, wa = np.float32(x[active[rest]]), matrix[active[rest]]
        for j in range(out.size):
            out[j] += xa * wa[j]


@kernel
def _activate(out: np.ndarray, inputs: np.ndarray, tanh: bool, residual: bool) -> None:
    for j in range(out.size):
        out[j] = np.tanh(out[j]) if tanh else max(out[j], _ZERO)
        if residual:
            out[j] += inputs[j]


@_library.entry_point
def draw_noise(keys: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """Gumbel noise for every action of every row: the highest of logits with noise is a draw from their softmax."""
    for k in range(begin, end):
        for action in range(out.shape[1]):
            uniform = (float(stream(keys[k], action) >> _SPARE_BITS) + 0.5) / _STEPS
            out[k, action] = -np.log(-np.log(uniform))


def _call_every_entry_point() -> None:
    layers = np.array([(0, 1, 1, 0), (2, 1, 1, 0)])
    weights, out = np.zeros(4, np.float32), np.zeros((1, 1), np.float32)
    evaluate_rows(np.zeros((1, 1), np.int8), weights, layers, False, out, 0, 1)
    draw_noise(np.zeros(1, np.uint64), np.zeros((1, 1)), 0, 1)
