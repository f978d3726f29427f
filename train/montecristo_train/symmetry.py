"""Layers that treat all kinds of treasure alike, and all dungeons: weights are shared by what is alike.

If the kinds change places in a position, nothing else does, and the choices that name them change places with them: an
exact symmetry of the game. Dungeons are alike, too, but for their order in a scoring round. A network that knows this
learns from one position about many. Its units belong to a dungeon, a kind, both or neither; the weight between two of
them depends only on their roles, and on whether they belong to the same kind, and to the same dungeon, an earlier or a
later one. To those who play it, it is a network like any other, since the shared weights are written out in full.

While it learns they are not. To a unit all kinds but its own look alike, so what the units of all kinds tell is added
up, once for all; only what the own kind tells differently is worked out kind by kind. That is less than half the work.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from montecristo_agents import advice
from montecristo_env import actions, observation
from montecristo_env.core._jit import Library
from montecristo_env.core.constants import DUNGEONS, KINDS, NONE
from montecristo_env.threads import share
from montecristo_train.sparse import sparse_linear

UNITS_PER_CHANNEL = 80  # of a layer: there is a channel of every dungeon and kind for each so many units


class Unit(NamedTuple):
    """A number that goes into a layer, or comes out of it."""

    role: str
    dungeon: int = NONE
    kind: int = NONE


_AXES = {"global": "", "players": ".", "kinds": "k", "dungeons": "d", "pairs": "dk"}
"""Which axes of the groups of an observation are dungeons (d) and kinds (k)."""


def observation_units() -> list[Unit]:
    """What an observation consists of."""
    units: list[Unit | None] = [None] * observation.SIZE
    entries = np.arange(observation.SIZE)
    for name, field in observation.FIELDS.items():
        axes = _AXES[field.group].ljust(len(field.shape), ".")
        for place, entry in np.ndenumerate(observation.view(entries, name)):
            at = dict(zip(axes, place, strict=True))
            rest = [index for axis, index in zip(axes, place, strict=True) if axis == "."]
            units[int(entry)] = Unit(f"{name} {rest}", at.get("d", NONE), at.get("k", NONE))
    return [unit for unit in units if unit is not None]


def action_units(what: str) -> list[Unit]:
    """Something that there is of every action."""
    units = []
    for code in range(actions.COUNT):
        match actions.decode(code):
            case (
                actions.Deal((kind, size))
                | actions.Discard((kind, size))
                | actions.Take((kind, size))
                | actions.Pay((kind, size))
                | actions.MoveMarker(kind, size)
            ) as action if kind != NONE:
                unit = Unit(f"{what} {type(action).__name__} {size}", kind=kind)
            case actions.Enter(dungeon) | actions.Reinforce(dungeon) | actions.PutToken(dungeon) as action:
                unit = Unit(f"{what} {type(action).__name__}", dungeon=dungeon)
            case action:
                unit = Unit(f"{what} {action}")
        units.append(unit)
    return units


def input_units(advised: bool) -> list[Unit]:
    """What a network looks at, with or without advice."""
    units = observation_units()
    if advised:
        units += action_units("greedy's")
        units += [Unit(f"outlook {place}") for place in range(advice.OUTLOOKS)]
        units += action_units("liked")
        for look in advice.LOOKS:
            units += action_units(f"judged {look}")
        units += [Unit(f"hope {look}") for look in advice.LOOKS]
    return units


def hidden_units(size: int) -> list[Unit]:
    """The units of a hidden layer of this size: some for pairs of dungeon and kind, for either, and for neither."""
    channels = size // UNITS_PER_CHANNEL
    units = []
    for channel in range(channels):
        units += [Unit(f"both {channel}", dungeon, kind) for dungeon in range(DUNGEONS) for kind in range(KINDS)]
    for channel in range(2 * channels):
        units += [Unit(f"dungeon {channel}", dungeon=dungeon) for dungeon in range(DUNGEONS)]
        units += [Unit(f"kind {channel}", kind=kind) for kind in range(KINDS)]
    return units + [Unit(f"plain {place}") for place in range(size - len(units))]


def _number(things: list[str]) -> NDArray[np.int64]:
    """Equal things get equal numbers."""
    return np.unique(things, return_inverse=True)[1].astype(np.int64)


class ByKind:
    """The order of units that layers work in: those without a kind, then the same ones of each kind.

    Args:
        units: in any order.
    """

    def __init__(self, units: list[Unit]) -> None:
        self.order = np.argsort([unit.kind for unit in units], kind="stable")
        self.without = sum(unit.kind == NONE for unit in units)
        self.of_each = (len(units) - self.without) // KINDS
        self.kinds = self.order[self.without :].reshape(KINDS, self.of_each)

    @property
    def sizes(self) -> list[int]:
        """How many have no kind, and how many have one."""
        return [self.without, self.kinds.size]

    @property
    def common(self) -> int:
        """How many are left if all kinds are taken for one."""
        return self.without + self.of_each

    def without_and(self, kind: int) -> NDArray[np.int64]:
        """The places of those that have no kind, or this one."""
        return np.concatenate([self.order[: self.without], self.kinds[kind]])


def _shared_weights(before: list[Unit], after: list[Unit]) -> NDArray[np.int32]:
    """For every pair of units, (after, before), which of the shared weights is theirs."""

    def places(units: list[Unit]) -> NDArray[np.int64]:
        return np.array([(unit.dungeon, unit.kind) for unit in units]).T

    (dungeons, kinds), (to_dungeons, to_kinds) = places(before), places(after)
    order = np.sign(dungeons - to_dungeons[:, None])
    order[(dungeons == NONE) | (to_dungeons == NONE)[:, None]] = 0  # they stand in no order
    other = (kinds != to_kinds[:, None]) & (kinds != NONE) & (to_kinds != NONE)[:, None]
    roles, to_roles = _number([unit.role for unit in before]), _number([unit.role for unit in after])
    keys = ((to_roles[:, None] * len(before) + roles) * 3 + order + 1) * 2 + other
    return np.unique(keys, return_inverse=True)[1].reshape(keys.shape).astype(np.int32)


library = Library("shared weights", __file__)
PARTS = 2  # of the weights, each with sums of its own, whatever the number of threads: so sums are always the same


@library.entry_point
def write_weights(
    shared: np.ndarray, places: np.ndarray, scale: np.ndarray, out: np.ndarray, begin: int, end: int
) -> None:
    """Writes out some parts of the weights."""
    for k in range(begin * places.size // PARTS, end * places.size // PARTS):
        out[k] = shared[places[k]] * scale[k]


@library.entry_point
def sum_gradients(
    gradients: np.ndarray, places: np.ndarray, scale: np.ndarray, sums: np.ndarray, begin: int, end: int
) -> None:
    """The reverse: adds up what some parts of the weights would change, by part and shared weight."""
    for part in range(begin, end):
        sums[part] = 0
        for k in range(part * places.size // PARTS, (part + 1) * places.size // PARTS):
            sums[part, places[k]] += gradients[k] * scale[k]


class _WriteOut(torch.autograd.Function):
    """Torch does the same by `index_select`, and a product, in three times the time."""

    @staticmethod
    def forward(ctx: Any, shared: torch.Tensor, places: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        ctx.arrays = places.numpy(), scale.numpy()
        ctx.size = len(shared)
        out = np.empty(len(places), np.float32)
        share(write_weights, shared.numpy(), *ctx.arrays, out, size=PARTS, threads=torch.get_num_threads())
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        sums = np.empty((PARTS, ctx.size), np.float32)
        changes = gradients[0].contiguous().numpy()
        share(sum_gradients, changes, *ctx.arrays, sums, size=PARTS, threads=torch.get_num_threads())
        return torch.from_numpy(sums.sum(axis=0)), None, None


def _call_every_entry_point() -> None:
    places, scale, numbers = np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.float32)
    write_weights(numbers, places, scale, numbers.copy(), 0, 0)
    sum_gradients(numbers, places, scale, np.zeros((PARTS, 0), np.float32), 0, 0)


class SharedLinear(nn.Module):
    """A linear layer between units that shares its weights; they come and go by kind (see `ByKind`).

    Args:
        before: the units that it looks at.
        after: those that it gives.
        gain: how large the weights are at first.
    """

    def __init__(self, before: list[Unit], after: list[Unit], gain: float = 2**0.5) -> None:
        super().__init__()
        self.before, self.after = ByKind(before), ByKind(after)
        places = _shared_weights(before, after)
        alike = np.array([np.bincount(line, minlength=places.max() + 1)[line] for line in places])
        scale = alike.astype(np.float32) ** -0.5  # many that are alike add up to more, by the root of their number
        biases = _number([f"{unit.role} {unit.dungeon}" for unit in after])  # so that dungeons can differ
        distinct = float(np.mean([len(np.unique(line)) for line in places]))
        self.shared = nn.Parameter(torch.randn(int(places.max()) + 1) * (gain / distinct**0.5))
        self.shared_bias = nn.Parameter(torch.zeros(int(biases.max()) + 1))
        self.places, self.scale, self.bias_places = (torch.from_numpy(array) for array in (places, scale, biases))

        from_one, to_another = self.before.without_and(0), self.after.without_and(1)
        needed = [np.ix_(to_another, from_one), np.ix_(self.after.kinds[0], self.before.kinds[0])]
        self._needed_places, self._needed_scale = (
            torch.from_numpy(np.concatenate([table[part].T.ravel() for part in needed])) for table in (places, scale)
        )
        self._common_bias_places = torch.from_numpy(biases[to_another])
        lines = np.empty(len(before), np.int64)  # of the common weights
        lines[from_one] = np.arange(len(from_one))
        lines[self.before.kinds] = lines[self.before.kinds[0]]
        self._lines = torch.from_numpy(lines)
        self._kept: tuple[torch.Tensor, torch.Tensor] | None = None  # the weights, while nothing is learnt
        self._kept_version = 0

    @property
    def weight(self) -> torch.Tensor:
        """All weights, (after, before), with the units in the order in which they were given."""
        return self.shared[self.places] * self.scale

    @property
    def bias(self) -> torch.Tensor:
        """All biases, in that order."""
        return self.shared_bias[self.bias_places]

    def load(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        """Takes over weights that were written out."""
        with torch.no_grad():
            _take_means(self.shared, self.places.ravel(), (weight / self.scale).ravel())
            _take_means(self.shared_bias, self.bias_places, bias)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """What the layer gives."""
        common, own = self._weights()
        without, kinds = features.split_with_sizes(self.before.sizes, dim=1)
        kinds = kinds.view(len(features), *self.before.kinds.shape)
        sums = torch.cat([without, kinds.sum(dim=1)], dim=1)
        return self._give(torch.addmm(self._common_bias(), sums, common), kinds.flatten(0, 1) @ own)

    def see(self, counts: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """What it gives for observations as they are, int8 and mostly zeros, if each number is multiplied by its scale.

        What is alike must have the same scale.
        """
        common, own = self._weights()
        kinds = counts.numpy().take(self.before.kinds.ravel(), axis=1).reshape(-1, self.before.of_each)
        own_scale = scale[self.before.kinds[0]]
        return self._give(
            sparse_linear(counts, scale, common, self._common_bias(), self._lines),
            sparse_linear(torch.from_numpy(kinds), own_scale, own, torch.zeros(self.after.of_each)),
        )

    def _give(self, common: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """Adds what is the same for all kinds, (K, common), to what is not, (K * KINDS, of each)."""
        without, kinds = common.split_with_sizes([self.after.without, self.after.of_each], dim=1)
        kinds = own.view(len(common), *self.after.kinds.shape) + kinds[:, None]
        return torch.cat([without, kinds.flatten(1)], dim=1)

    def _common_bias(self) -> torch.Tensor:
        return self.shared_bias[self._common_bias_places]

    def _weights(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights if all kinds are taken for one, and what the own kind adds to them, both (before, after)."""
        if torch.is_grad_enabled():
            return self._write_out()
        if self._kept is None or self._kept_version != self.shared._version:  # something has been learnt since
            self._kept, self._kept_version = self._write_out(), self.shared._version
        return self._kept

    def _write_out(self) -> tuple[torch.Tensor, torch.Tensor]:
        library.compile_once(_call_every_entry_point)
        written: torch.Tensor = _WriteOut.apply(  # type: ignore[no-untyped-call]
            self.shared, self._needed_places, self._needed_scale
        )
        before, after = self.before, self.after
        common, own = written.split_with_sizes([before.common * after.common, before.of_each * after.of_each])
        common = common.view(before.common, after.common)
        return common, own.view(before.of_each, after.of_each) - common[before.without :, after.without :]


class SharedHead(SharedLinear):
    """The same, but what it gives is in the order in which its units were given."""

    def __init__(self, before: list[Unit], after: list[Unit], gain: float = 2**0.5) -> None:
        super().__init__(before, after, gain)
        self._back = torch.from_numpy(np.argsort(self.after.order))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """What the layer gives."""
        return super().forward(features).index_select(1, self._back)


def _take_means(shared: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> None:
    shared.zero_().index_add_(0, places, values)
    shared /= torch.bincount(places, minlength=len(shared))
