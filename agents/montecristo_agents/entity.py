"""The entity network, without torch: layers that dungeons, kinds and pairs of both share, and a trunk for all of it.

Kinds stand in the order of the market (see `montecristo_env.symmetry`); logits come back for the actions as they are.
Counts go in as they are observed, their scale is part of the weights, and zeros are passed over, in compiled code; the
trunk is a product of matrices for the whole batch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from montecristo_agents.models import InvalidModel, check_tensors, read_model, write_model
from montecristo_env import PublicView, actions, observation
from montecristo_env.core.constants import DUNGEONS, KINDS, MAX_PLAYERS
from montecristo_env.core.jit import entry_point, kernel, local_array
from montecristo_env.core.layout import Float32s, Float32Table, Int8Table, States
from montecristo_env.core.observation import observe
from montecristo_env.core.symmetry import KIND_OF_ACTION
from montecristo_env.errors import InvalidArgument
from montecristo_env.util.threads import ALL_CORES, parallel_for

SIZES = ("pair", "entity", "hidden")  # of the layers, in the header of a file
ROWS_PER_THREAD = 256  # that are worth a thread
MOST_COUNT = 128.0  # how far from 0 an observation can be, being int8

KIND_CODES = np.array([np.flatnonzero(kind == KIND_OF_ACTION) for kind in range(KINDS)])
"""The actions that name each kind, (5, 14): those in a column differ in nothing but the kind."""
DUNGEON_CODES = np.array([actions.BLOCKS[name][:DUNGEONS] for name in ("place", "reinforce", "put_token")]).T
"""The actions that name each dungeon, (6, 3)."""

GROUPS = ("global", "players", "kinds", "dungeons", "pairs")
"""The groups of an observation that the network has layers for; it takes every column of each."""
_groups = observation.GROUPS
CONTEXT: int = _groups["players"].slice.stop
"""Entries of the observation that belong to no dungeon and no kind; they come first."""
_KINDS, _KIND_WIDTH = _groups["kinds"].slice.start, _groups["kinds"].width
_DUNGEONS, _DUNGEON_WIDTH = _groups["dungeons"].slice.start, _groups["dungeons"].width
_PAIRS, _PAIR_WIDTH = _groups["pairs"].slice.start, _groups["pairs"].width
_MARKET = _KINDS + observation.FIELDS["market"].columns.start
_PRESENT = _groups["players"].slice.start + observation.FIELDS["present"].columns.start
_PLAYER_WIDTH = _groups["players"].width
ENTITIES = DUNGEONS + KINDS
_DUNGEON_ACTIONS, _KIND_ACTIONS = DUNGEON_CODES.shape[1], KIND_CODES.shape[1]
_VALUE, _WIN = actions.COUNT, actions.COUNT + MAX_PLAYERS
_ZERO = np.float32(0)
MOST_UNITS = 2048  # of a layer: compiled code works on the stack


def check_groups(groups: Iterable[str]) -> None:
    """Refuses observations with a group that the network would not look at, or that stands elsewhere."""
    if tuple(groups) != GROUPS:
        raise InvalidArgument(f"the entity network knows observations of {', '.join(GROUPS)}, not {', '.join(groups)}")


check_groups(_groups)


class Sizes(NamedTuple):
    """How many units the layers have."""

    pair: int = 32
    """Of each pair of a dungeon and a kind."""
    entity: int = 48
    """Of each dungeon and each kind."""
    hidden: int = 256
    """Of both layers of the trunk."""


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """The tensors of an entity network as it plays; weights are as in torch's `Linear`, (outputs, inputs)."""
    pair, entity, hidden = sizes
    outputs = {"policy": actions.COUNT, "value": MAX_PLAYERS, "win": MAX_PLAYERS}
    found: dict[str, tuple[int, ...]] = {
        "pair.weight": (pair, _PAIR_WIDTH),
        "pair.bias": (pair,),
        "pair_dungeon.weight": (pair, _DUNGEON_WIDTH),
        "pair_kind.weight": (pair, _KIND_WIDTH),
        "pair_context.weight": (pair, CONTEXT),
        "trunk.0.weight": (hidden, ENTITIES * entity + CONTEXT),
        "trunk.1.weight": (hidden, hidden),
    }
    for name, width, count, codes in (
        ("dungeon", _DUNGEON_WIDTH, DUNGEONS, DUNGEON_CODES),
        ("kind", _KIND_WIDTH, KINDS, KIND_CODES),
    ):
        found |= {
            f"{name}.weight": (entity, width),
            f"{name}_pairs.weight": (entity, pair),
            f"{name}_context.weight": (entity, CONTEXT),
            f"{name}_place": (count, entity),
            f"to_{name}s.weight": (entity, hidden),
            f"of_{name}s.weight": (codes.shape[1], entity),
        }
    found |= {f"{name}.weight": (size, hidden) for name, size in outputs.items()}
    biased = ("trunk.0", "trunk.1", "to_dungeons", "to_kinds", "of_dungeons", "of_kinds", *outputs)
    return found | {f"{name}.bias": found[f"{name}.weight"][:1] for name in biased}


class _Packed(NamedTuple):
    """The weights as the kernels want them: (inputs, outputs), what has the same inputs side by side, scales inside."""

    context: NDArray[np.float32]  # (CONTEXT, pair + entity + entity)
    dungeons: NDArray[np.float32]  # (width, pair + entity)
    kinds: NDArray[np.float32]  # (width, pair + entity)
    pairs: NDArray[np.float32]  # (width, pair)
    pair_bias: NDArray[np.float32]
    dungeon_place: NDArray[np.float32]
    kind_place: NDArray[np.float32]
    dungeon_pairs: NDArray[np.float32]  # (pair, entity)
    kind_pairs: NDArray[np.float32]  # (pair, entity)


class _Heads(NamedTuple):
    """What dungeons and kinds say of the actions that name them."""

    dungeons: NDArray[np.float32]  # (entity, 3)
    dungeon_bias: NDArray[np.float32]
    kinds: NDArray[np.float32]  # (entity, 14)
    kind_bias: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EntityNetwork:
    """Gives logits for all actions, and for every player a share of the utility and of the win.

    Args:
        sizes: of its layers.
        tensors: the weights by name (see `shapes`).
        training: how the network was made: settings, seed, steps …; anything that JSON can tell.
    """

    sizes: Sizes
    tensors: Mapping[str, NDArray[Any]] = field(repr=False)
    training: Mapping[str, Any] = field(default_factory=dict)
    _packed: _Packed = field(init=False, repr=False)
    _trunk: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = field(init=False, repr=False)
    _heads: _Heads = field(init=False, repr=False)

    inputs = observation.SIZE

    def __post_init__(self) -> None:
        if max(self.sizes) > MOST_UNITS:
            raise InvalidModel(f"layers have {MOST_UNITS} units at most, but sizes are {tuple(self.sizes)}")
        check_tensors(self.tensors, shapes(self.sizes))
        with np.errstate(over="ignore"):  # what is too large is refused
            packed, trunk, heads = _pack(self.tensors)
        _check_range(packed, trunk, heads)
        for name, value in (("_packed", packed), ("_trunk", trunk), ("_heads", heads)):
            object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy from another process needs arrays of its own: Ray's are read-only."""
        self.__dict__.update(state)
        self.__post_init__()

    def evaluate(self, observations: NDArray[np.int8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The logits of all actions, (K, actions.COUNT), and the observer's expected reward "win", (K,).

        Args:
            observations: K of them, (K, inputs) int8.
        """
        logits, _, wins = self.forward(observations, ALL_CORES)
        players = np.count_nonzero(observation.view(observations, "present"), axis=-1)
        return logits, ((players * wins[:, 0] - 1) / (players - 1)).astype(np.float32)

    def win_probabilities(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of the win that every seat of these games may expect, (K, 4); seats that nobody holds have 0."""
        wins = self.forward(games.observe(rows=rows), ALL_CORES)[2].astype(np.float64)
        players, deciders = games.num_players[rows, None], games.current_player[rows, None]
        seats = np.arange(MAX_PLAYERS)
        return np.where(seats < players, np.take_along_axis(wins, (seats - deciders) % players, axis=1), 0.0)

    def forward(
        self, observations: NDArray[np.int8], threads: int = 1, workspace: "Workspace | None" = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Logits, (K, actions.COUNT), and shares of the utility and of the win, (K, 4), the observer's first.

        Args:
            observations: K of them, (K, inputs) int8.
            threads: that may share what is compiled.
            workspace: for K rows, which holds the results until it is used again; a new one if there is none.
        """
        seen = np.require(observations, requirements=["C", "W"])
        if seen.dtype != np.int8 or seen.ndim != 2 or seen.shape[1] != self.inputs:
            raise InvalidArgument(
                f"observations must be int8, (K, {self.inputs}), but are {seen.dtype} of shape {seen.shape}"
            )
        size = len(seen)
        room = workspace or Workspace(size, self.sizes)
        part: dict[str, int] = {"size": size, "threads": threads, "least": ROWS_PER_THREAD}
        parallel_for(embed, seen, *self._packed[:7], room.dungeon_sums, room.kind_sums, room.features, **part)
        np.matmul(room.dungeon_sums, self._packed.dungeon_pairs, out=room.of_dungeons)
        np.matmul(room.kind_sums, self._packed.kind_pairs, out=room.of_kinds)
        parallel_for(activate, room.of_dungeons, room.of_kinds, room.features, **part)
        self._multiply_trunk(room)
        last = room.hidden[-1]
        parallel_for(add_context, room.features, last, room.of_dungeons, room.of_kinds, **part)
        np.matmul(room.of_dungeons, self._heads.dungeons, out=room.dungeon_scores)
        np.matmul(room.of_kinds, self._heads.kinds, out=room.kind_scores)
        biases = self._heads.dungeon_bias, self._heads.kind_bias
        parallel_for(write_outputs, seen, last, room.dungeon_scores, room.kind_scores, *biases, *room.outputs, **part)
        return room.outputs

    def _multiply_trunk(self, room: "Workspace") -> None:
        """From the features to the outputs of the dense heads, the last of `room.hidden`."""
        before = room.features
        for (weight, bias), after in zip(self._trunk, room.hidden, strict=True):
            np.matmul(before, weight, out=after)
            after += bias
            if after is not room.hidden[-1]:
                np.maximum(after, _ZERO, out=after)
            before = after

    def save(self, path: str | Path, dtype: DTypeLike = np.float32) -> None:
        """Writes a safetensors file: all of it or, if something fails, nothing.

        Args:
            path: where to; a file that is there already is replaced.
            dtype: float32, or float16 for a file of half the size.
        """
        write_model(path, self.sizes, self.tensors, self.training, dtype)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a file that `save` has written; one that is damaged or does not fit this game is refused."""
        sizes, tensors, training = read_model(path)
        try:
            if len(sizes) != len(SIZES) or not all(isinstance(size, int) and size > 0 for size in sizes):
                raise InvalidModel(f"sizes must be those of {', '.join(SIZES)}, but are {sizes}")
            return cls(Sizes(*sizes), tensors, training)
        except InvalidModel as problem:
            raise InvalidModel(f"model {path}: {problem}") from None


class Workspace:
    """Arrays for the activations of a number of rows: to allocate them anew takes as long as to fill them."""

    def __init__(self, rows: int, sizes: Sizes) -> None:
        pair, entity, hidden = sizes

        def room(*shape: int) -> NDArray[np.float32]:
            return np.empty(shape, np.float32)

        self.seen = np.empty((rows, observation.SIZE), np.int8)
        self.dungeon_sums, self.kind_sums = room(rows * DUNGEONS, pair), room(rows * KINDS, pair)
        self.of_dungeons, self.of_kinds = room(rows * DUNGEONS, entity), room(rows * KINDS, entity)
        self.dungeon_scores, self.kind_scores = (
            room(rows * DUNGEONS, _DUNGEON_ACTIONS),
            room(rows * KINDS, _KIND_ACTIONS),
        )
        self.features = room(rows, ENTITIES * entity + CONTEXT)
        self.hidden = room(rows, hidden), room(rows, hidden), room(rows, _WIN + MAX_PLAYERS + 2 * entity)
        self.outputs = room(rows, actions.COUNT), room(rows, MAX_PLAYERS), room(rows, MAX_PLAYERS)
        self.shares = room(rows, MAX_PLAYERS)


class EntityEvaluator:
    """A network as the evaluator of a search: it looks at public things only, and gives every seat its share."""

    def __init__(self, network: EntityNetwork, threads: int = 1) -> None:
        self.network, self.threads = network, threads
        self._workspace = Workspace(0, network.sizes)

    def evaluate(self, rows: States) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The logits of all actions, and the share of the utility of each seat; both until the next call."""
        if len(self._workspace.seen) != rows.size:
            self._workspace = Workspace(rows.size, self.network.sizes)
        room = self._workspace
        part: dict[str, int] = {"size": rows.size, "threads": self.threads, "least": ROWS_PER_THREAD}
        parallel_for(observe_deciders, rows, room.seen, **part)
        logits, values, _ = self.network.forward(room.seen, self.threads, room)
        parallel_for(by_seat, rows, values, room.shares, **part)
        return logits, room.shares


def _pack(
    tensors: Mapping[str, NDArray[Any]],
) -> tuple[_Packed, list[tuple[NDArray[np.float32], NDArray[np.float32]]], _Heads]:
    """Weights of the entity part, of the trunk with the dense heads as its last layer, and of the other heads."""
    single = {name: np.array(tensor, np.float32) for name, tensor in tensors.items()}  # copies: Ray's are read-only
    scale = observation.SCALE

    def joined(names: tuple[str, ...], scales: NDArray[np.float32]) -> NDArray[np.float32]:
        columns = [single[f"{name}.weight"].T for name in names]
        return np.ascontiguousarray(np.hstack(columns) * scales[:, None], np.float32)

    def transposed(name: str) -> NDArray[np.float32]:
        return np.ascontiguousarray(single[name].T)

    packed = _Packed(
        context=joined(("pair_context", "dungeon_context", "kind_context"), scale[:CONTEXT]),
        dungeons=joined(("pair_dungeon", "dungeon"), scale[_DUNGEONS : _DUNGEONS + _DUNGEON_WIDTH]),
        kinds=joined(("pair_kind", "kind"), scale[_KINDS : _KINDS + _KIND_WIDTH]),
        pairs=joined(("pair",), scale[_PAIRS : _PAIRS + _PAIR_WIDTH]),
        pair_bias=np.ascontiguousarray(single["pair.bias"]),
        dungeon_place=np.ascontiguousarray(single["dungeon_place"]),
        kind_place=np.ascontiguousarray(single["kind_place"]),
        dungeon_pairs=transposed("dungeon_pairs.weight"),
        kind_pairs=transposed("kind_pairs.weight"),
    )
    first = transposed("trunk.0.weight")
    first[-CONTEXT:] *= scale[:CONTEXT, None]
    last = ("policy", "value", "win", "to_dungeons", "to_kinds")
    trunk = [
        (first, single["trunk.0.bias"]),
        (transposed("trunk.1.weight"), single["trunk.1.bias"]),
        (
            np.ascontiguousarray(np.concatenate([single[f"{name}.weight"] for name in last]).T),
            np.concatenate([single[f"{name}.bias"] for name in last]),
        ),
    ]
    heads = _Heads(
        transposed("of_dungeons.weight"),
        np.ascontiguousarray(single["of_dungeons.bias"]),
        transposed("of_kinds.weight"),
        np.ascontiguousarray(single["of_kinds.bias"]),
    )
    return packed, trunk, heads


def _check_range(packed: _Packed, trunk: list[tuple[NDArray[np.float32], NDArray[np.float32]]], heads: _Heads) -> None:
    """Whatever it looks at, no number in it becomes infinite: all inputs and weights at their worst."""
    pair, entity = packed.pair_bias.size, packed.dungeon_place.shape[1]

    def worst(inputs: Any, weights: NDArray[np.float32], what: str) -> NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            found: NDArray[np.float64] = np.broadcast_to(inputs, len(weights)) @ np.abs(weights, dtype=np.float64)
        if not found.max(initial=0.0) < np.finfo(np.float32).max:
            raise InvalidModel(f"the weights of {what} are so large that what it gives may be infinite")
        return found

    context = worst(MOST_COUNT, packed.context, "the context")
    dungeons, kinds = worst(MOST_COUNT, packed.dungeons, "dungeons"), worst(MOST_COUNT, packed.kinds, "kinds")
    pairs = worst(MOST_COUNT, packed.pairs, "pairs") + dungeons[:pair] + kinds[:pair] + context[:pair]
    pairs += np.abs(packed.pair_bias)
    of_dungeons = worst(KINDS * pairs, packed.dungeon_pairs, "dungeon_pairs") + dungeons[pair:]
    of_dungeons += context[pair : pair + entity] + np.abs(packed.dungeon_place).max(axis=0)
    of_kinds = worst(DUNGEONS * pairs, packed.kind_pairs, "kind_pairs") + kinds[pair:]
    of_kinds += context[pair + entity :] + np.abs(packed.kind_place).max(axis=0)
    after = np.concatenate([np.tile(of_dungeons, DUNGEONS), np.tile(of_kinds, KINDS), np.full(CONTEXT, MOST_COUNT)])
    for number, (weight, bias) in enumerate(trunk):
        after = worst(after, weight, "the heads" if number == len(trunk) - 1 else f"trunk.{number}") + np.abs(bias)
    to_dungeons, to_kinds = after[-2 * entity : -entity], after[-entity:]
    worst(of_dungeons + to_dungeons, heads.dungeons, "the heads")
    worst(of_kinds + to_kinds, heads.kinds, "the heads")


# --- Compiled --------------------------------------------------------------------------------------------------------


@entry_point
def observe_deciders(rows: States, seen: Int8Table, begin: int, end: int) -> None:
    """What the decider of each row sees; where the game is over, the first player."""
    for k in range(begin, end):
        observe(rows[k], max(int(rows[k].current_player), 0), seen[k])


@entry_point
def by_seat(rows: States, values: Float32Table, out: Float32Table, begin: int, end: int) -> None:
    """What was given from the decider on, clockwise, by seat."""
    for k in range(begin, end):
        out[k, :] = _ZERO
        first, players = max(int(rows[k].current_player), 0), int(rows[k].num_players)
        for ego in range(players):
            seat = first + ego if first + ego < players else first + ego - players
            out[k, seat] = values[k, ego]


@kernel
def write_kinds_in_market_order(seen: np.ndarray, order: np.ndarray) -> None:
    """The kinds as they stand in the market, the best first."""
    for kind in range(KINDS):
        for space in range(KINDS):
            if seen[_MARKET + kind * _KIND_WIDTH + space] > 0:
                order[space] = kind


@entry_point
def embed(
    observations: Int8Table,
    context: Float32Table,
    dungeons: Float32Table,
    kinds: Float32Table,
    pairs: Float32Table,
    pair_bias: Float32s,
    dungeon_place: Float32Table,
    kind_place: Float32Table,
    dungeon_sums: Float32Table,
    kind_sums: Float32Table,
    out: Float32Table,
    begin: int,
    end: int,
) -> None:
    """Writes what dungeons and kinds, in market order, get besides their pairs; the sums of these; the context."""
    pair, entity = pair_bias.size, dungeon_place.shape[1]
    of_context = local_array(pair + 2 * entity, np.float32)
    of_dungeon = local_array(pair + entity, np.float32)
    of_kinds = local_array((KINDS, pair + entity), np.float32)
    of_pair = local_array(pair, np.float32)
    order, active = local_array(KINDS, np.int64), local_array(max(CONTEXT, _KIND_WIDTH, _DUNGEON_WIDTH), np.int64)
    order[:] = 0  # where nothing is in the market, too
    for k in range(begin, end):
        seen, to = observations[k], out[k]
        write_kinds_in_market_order(seen, order)
        of_context[:] = _ZERO
        add_product(seen, 0, CONTEXT, context, active, of_context)
        for i in range(CONTEXT):
            to[ENTITIES * entity + i] = np.float32(seen[i])
        for place in range(KINDS):
            of_kind = of_kinds[place]
            kind_sums[k * KINDS + place, :] = _ZERO
            for j in range(pair):
                of_kind[j] = pair_bias[j] + of_context[j]
            for j in range(entity):
                of_kind[pair + j] = kind_place[place, j] + of_context[pair + entity + j]
            add_product(seen, _KINDS + order[place] * _KIND_WIDTH, _KIND_WIDTH, kinds, active, of_kind)
            for j in range(entity):
                to[(DUNGEONS + place) * entity + j] = of_kind[pair + j]
        for dungeon in range(DUNGEONS):
            of_dungeon[:pair] = _ZERO
            dungeon_sum = dungeon_sums[k * DUNGEONS + dungeon]
            dungeon_sum[:] = _ZERO
            for j in range(entity):
                of_dungeon[pair + j] = dungeon_place[dungeon, j] + of_context[pair + j]
            add_product(seen, _DUNGEONS + dungeon * _DUNGEON_WIDTH, _DUNGEON_WIDTH, dungeons, active, of_dungeon)
            for place in range(KINDS):
                for j in range(pair):
                    of_pair[j] = of_dungeon[j] + of_kinds[place, j]
                start = _PAIRS + (dungeon * KINDS + order[place]) * _PAIR_WIDTH
                for i in range(_PAIR_WIDTH):
                    if seen[start + i] != 0:
                        count = np.float32(seen[start + i])
                        for j in range(pair):
                            of_pair[j] += count * pairs[i, j]
                kind_sum = kind_sums[k * KINDS + place]
                for j in range(pair):
                    positive = max(of_pair[j], _ZERO)
                    dungeon_sum[j] += positive
                    kind_sum[j] += positive
            for j in range(entity):
                to[dungeon * entity + j] = of_dungeon[pair + j]


@entry_point
def activate(of_dungeons: Float32Table, of_kinds: Float32Table, out: Float32Table, begin: int, end: int) -> None:
    """Adds to dungeons and kinds what they get from their pairs, and cuts off what is negative."""
    entity = of_dungeons.shape[1]
    for k in range(begin, end):
        for dungeon in range(DUNGEONS):
            to = out[k, dungeon * entity : (dungeon + 1) * entity]
            for j in range(entity):
                to[j] = max(to[j] + of_dungeons[k * DUNGEONS + dungeon, j], _ZERO)
        for place in range(KINDS):
            to = out[k, (DUNGEONS + place) * entity : (DUNGEONS + place + 1) * entity]
            for j in range(entity):
                to[j] = max(to[j] + of_kinds[k * KINDS + place, j], _ZERO)


@kernel
def add_product(
    x: np.ndarray, start: int, width: int, weights: np.ndarray, active: np.ndarray, out: np.ndarray
) -> None:
    """Adds x[start : start + width] @ weights.

    Zeros are passed over; the others are taken four at a time, to load and store `out` less often.
    """
    count = 0
    for i in range(width):
        active[count] = i
        count += x[start + i] != 0
    done = 0
    while done + 4 <= count:
        a, b, c, d = active[done], active[done + 1], active[done + 2], active[done + 3]
        xa, xb = np.float32(x[start + a]), np.float32(x[start + b])
        xc, xd = np.float32(x[start + c]), np.float32(x[start + d])
        wa, wb, wc, wd = weights[a], weights[b], weights[c], weights[d]
        for j in range(out.size):
            out[j] = (((out[j] + xa * wa[j]) + xb * wb[j]) + xc * wc[j]) + xd * wd[j]
        done += 4
    for rest in range(done, count):
        xa, wa = np.float32(x[start + active[rest]]), weights[active[rest]]
        for j in range(out.size):
            out[j] += xa * wa[j]


@entry_point
def add_context(
    features: Float32Table, dense: Float32Table, of_dungeons: Float32Table, of_kinds: Float32Table, begin: int, end: int
) -> None:
    """Dungeons and kinds in the light of everything."""
    entity = of_dungeons.shape[1]
    to_dungeons = _WIN + MAX_PLAYERS
    for k in range(begin, end):
        for dungeon in range(DUNGEONS):
            for j in range(entity):
                x = features[k, dungeon * entity + j] + dense[k, to_dungeons + j]
                of_dungeons[k * DUNGEONS + dungeon, j] = max(x, _ZERO)
        for place in range(KINDS):
            for j in range(entity):
                x = features[k, (DUNGEONS + place) * entity + j] + dense[k, to_dungeons + entity + j]
                of_kinds[k * KINDS + place, j] = max(x, _ZERO)


@entry_point
def write_outputs(
    observations: Int8Table,
    dense: Float32Table,
    dungeon_scores: Float32Table,
    kind_scores: Float32Table,
    dungeon_bias: Float32s,
    kind_bias: Float32s,
    logits: Float32Table,
    values: Float32Table,
    wins: Float32Table,
    begin: int,
    end: int,
) -> None:
    """The heads: what every dungeon and every kind says of the actions that name it is added to the dense logits."""
    order = local_array(KINDS, np.int64)
    order[:] = 0  # where nothing is in the market, too
    for k in range(begin, end):
        write_kinds_in_market_order(observations[k], order)
        for action in range(actions.COUNT):
            logits[k, action] = dense[k, action]
        for dungeon in range(DUNGEONS):
            for i in range(_DUNGEON_ACTIONS):
                logits[k, DUNGEON_CODES[dungeon, i]] += dungeon_scores[k * DUNGEONS + dungeon, i] + dungeon_bias[i]
        for place in range(KINDS):
            for i in range(_KIND_ACTIONS):
                found = dense[k, KIND_CODES[place, i]] + kind_scores[k * KINDS + place, i] + kind_bias[i]
                logits[k, KIND_CODES[order[place], i]] = found
        players = 0
        for ego in range(MAX_PLAYERS):
            players += observations[k, _PRESENT + ego * _PLAYER_WIDTH] > 0
        softmax(dense[k, _VALUE:_WIN], players, values[k])
        softmax(dense[k, _WIN : _WIN + MAX_PLAYERS], players, wins[k])


@kernel
def softmax(logits: np.ndarray, size: int, out: np.ndarray) -> None:
    """Of the first few; the others get 0."""
    highest, total = -np.inf, 0.0
    for i in range(size):
        highest = max(highest, float(logits[i]))
    for i in range(size):
        total += np.exp(float(logits[i]) - highest)
    out[:] = _ZERO
    for i in range(size):
        out[i] = np.float32(np.exp(float(logits[i]) - highest) / total)
