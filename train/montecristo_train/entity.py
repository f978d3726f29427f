"""The entity network in torch, as it learns; `export` makes of it the one that plays (`montecristo_agents.entity`)."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from montecristo_agents.entity import (
    CONTEXT,
    DUNGEON_CODES,
    ENTITIES,
    KIND_CODES,
    EntityNetwork,
    Sizes,
    Workspace,
    shapes,
)
from montecristo_env import actions, observation
from montecristo_env.core.constants import DUNGEONS, KINDS, MAX_PLAYERS
from montecristo_env.errors import InvalidArgument

AUXILIARY = 1 + MAX_PLAYERS
"""The final margin of the decider, and the points of each player in the coming rounds."""
ILLEGAL = -1e9


class Outputs(NamedTuple):
    """What the network says of K positions; players are counted from the decider on, clockwise."""

    logits: torch.Tensor
    """Of all actions, (K, actions.COUNT), kinds in market order."""
    value: torch.Tensor
    """Logits of the players' shares of the utility, (K, 4)."""
    win: torch.Tensor
    """Logits of their shares of the win, (K, 4)."""
    auxiliary: torch.Tensor
    """(K, AUXILIARY)"""


class EntityModule(nn.Module):
    """One layer for all pairs of a dungeon and a kind, summed into dungeons and kinds; then two layers for all of it.

    Every dungeon and every kind also scores the actions that name it.
    """

    def __init__(self, sizes: Sizes = Sizes()) -> None:  # noqa: B008 (it cannot change)
        super().__init__()
        self.sizes = sizes
        pair, entity, hidden = sizes
        widths = {name: group.width for name, group in observation.GROUPS.items()}
        self.pair = nn.Linear(widths["pairs"], pair)
        self.pair_dungeon = nn.Linear(widths["dungeons"], pair, bias=False)
        self.pair_kind = nn.Linear(widths["kinds"], pair, bias=False)
        self.pair_context = nn.Linear(CONTEXT, pair, bias=False)
        self.dungeon = nn.Linear(widths["dungeons"], entity, bias=False)
        self.dungeon_pairs = nn.Linear(pair, entity, bias=False)
        self.dungeon_context = nn.Linear(CONTEXT, entity, bias=False)
        self.dungeon_place = nn.Parameter(torch.zeros(DUNGEONS, entity))
        self.kind = nn.Linear(widths["kinds"], entity, bias=False)
        self.kind_pairs = nn.Linear(pair, entity, bias=False)
        self.kind_context = nn.Linear(CONTEXT, entity, bias=False)
        self.kind_place = nn.Parameter(torch.zeros(KINDS, entity))
        self.trunk = nn.ModuleList([nn.Linear(ENTITIES * entity + CONTEXT, hidden), nn.Linear(hidden, hidden)])
        self.policy = nn.Linear(hidden, actions.COUNT)
        self.value = nn.Linear(hidden, MAX_PLAYERS)
        self.win = nn.Linear(hidden, MAX_PLAYERS)
        self.auxiliary = nn.Linear(hidden, AUXILIARY)
        self.to_dungeons = nn.Linear(hidden, entity)
        self.to_kinds = nn.Linear(hidden, entity)
        self.of_dungeons = nn.Linear(entity, DUNGEON_CODES.shape[1])
        self.of_kinds = nn.Linear(entity, KIND_CODES.shape[1])
        for head in (self.policy, self.value, self.win, self.auxiliary, self.of_dungeons, self.of_kinds):
            nn.init.zeros_(head.weight)  # to begin with, all actions and players are alike
            nn.init.zeros_(head.bias)
        named = np.concatenate([DUNGEON_CODES.ravel(), KIND_CODES.ravel()])
        own = np.full(actions.COUNT, named.size)
        own[named] = np.arange(named.size)
        self._own = torch.from_numpy(own)  # a gather is faster than a scatter
        self._scale = torch.from_numpy(observation.SCALE.copy())

    def forward(self, counts: torch.Tensor) -> Outputs:
        """For int8 observations with the kinds in market order, (K, observation.SIZE)."""
        seen = counts * self._scale
        context, group = seen[:, :CONTEXT], observation.entities(seen)
        of_kinds = self.pair_kind(group.kinds) + self.pair_context(context)[:, None]
        pairs = self.pair(group.pairs)  # the largest tensor by far: all else happens in its place
        pairs = pairs.add_(self.pair_dungeon(group.dungeons)[:, :, None]).add_(of_kinds[:, None]).relu_()
        dungeons = self.dungeon(group.dungeons).add_(self.dungeon_pairs(pairs.sum(2)))
        dungeons = dungeons.add_(self.dungeon_context(context)[:, None]).add_(self.dungeon_place).relu_()
        kinds = self.kind(group.kinds).add_(self.kind_pairs(pairs.sum(1)))
        kinds = kinds.add_(self.kind_context(context)[:, None]).add_(self.kind_place).relu_()
        hidden = torch.cat([dungeons.flatten(1), kinds.flatten(1), context], 1)
        for layer in self.trunk:
            hidden = torch.relu_(layer(hidden))
        dungeon_scores = self.of_dungeons(torch.relu_(dungeons + self.to_dungeons(hidden)[:, None])).flatten(1)
        kind_scores = self.of_kinds(torch.relu_(kinds + self.to_kinds(hidden)[:, None])).flatten(1)
        own = torch.cat([dungeon_scores, kind_scores, torch.zeros_like(kind_scores[:, :1])], 1)
        logits = self.policy(hidden) + own[:, self._own]
        return Outputs(logits, self.value(hidden), self.win(hidden), self.auxiliary(hidden))


def expected_rewards(outputs: Outputs, counts: torch.Tensor) -> torch.Tensor:
    """The reward "win" that deciders may expect by the shares of the win, (K, 1): from -1 / (n - 1) to 1."""
    found: Any = observation.view(cast(Any, counts), "present")  # of a tensor, too
    present: torch.Tensor = found == 1
    players = present.sum(1, keepdim=True)
    shares = outputs.win.masked_fill(~present, ILLEGAL).softmax(1)[:, :1]
    return (players * shares - 1) / (players - 1)


def load(module: EntityModule, network: EntityNetwork) -> None:
    """Gives the module the weights of an exported network: the reverse of `export`, but for the auxiliary head.

    A larger module plays as the network does at first: its further units have random weights, and nothing depends on
    them yet.
    """
    if any(ours < theirs for ours, theirs in zip(module.sizes, network.sizes, strict=True)):
        raise InvalidArgument(f"cannot start from a network with sizes {network.sizes}: here they are {module.sizes}")
    state = module.state_dict()
    for name, tensor in network.tensors.items():
        weights = torch.tensor(np.asarray(tensor, np.float32))
        if name == "trunk.0.weight":  # its inputs are the units of all dungeons and kinds, then the context
            rows, inputs = len(weights), np.arange(state[name].shape[1])
            units = inputs[: ENTITIES * module.sizes.entity].reshape(ENTITIES, -1)[:, : network.sizes.entity]
            columns = np.concatenate([units.ravel(), inputs[ENTITIES * module.sizes.entity :]])
            state[name][:rows] = 0.0
            state[name][:rows, torch.from_numpy(columns)] = weights
        else:
            state[name][: len(weights)] = 0.0
            state[name][tuple(slice(size) for size in weights.shape)] = weights
    module.load_state_dict(state)


def tensors(module: EntityModule) -> dict[str, np.ndarray]:
    """A copy of the weights that the playing network has; the auxiliary head is for learning only."""
    state = module.state_dict()
    return {name: state[name].detach().cpu().numpy().copy() for name in shapes(module.sizes)}


def export(module: EntityModule, training: Mapping[str, Any]) -> EntityNetwork:
    """The network as it plays, without torch."""
    return EntityNetwork(module.sizes, tensors(module), training)


def export_wins(module: EntityModule, training: Mapping[str, Any]) -> EntityNetwork:
    """The same of a module that has learnt shares of the win alone: to a search, these are the utility, too."""
    weights = tensors(module)
    weights |= {f"value.{part}": weights[f"win.{part}"] for part in ("weight", "bias")}
    return EntityNetwork(module.sizes, weights, training)


# --- Half precision --------------------------------------------------------------------------------------------------


def has_bfloat16() -> bool:
    """Whether this processor multiplies matrices of bfloat16 faster than others, as far as torch says."""
    found: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # older ones do not tell
    return bool(found.get("avx512_bf16") or found.get("amx_bf16"))


class Bfloat16Network(EntityNetwork):
    """Plays with a trunk of bfloat16, for self-play: where the processor has that, it is three times as fast."""

    _halves: list[tuple[torch.Tensor, torch.Tensor]]

    def __post_init__(self) -> None:
        super().__post_init__()
        halves = [tuple(torch.from_numpy(part.T.copy()).bfloat16() for part in layer) for layer in self._trunk]
        object.__setattr__(self, "_halves", halves)

    @torch.inference_mode()
    def _multiply_trunk(self, room: Workspace) -> None:
        hidden = torch.from_numpy(room.features).bfloat16()
        for weight, bias in self._halves[:-1]:
            hidden = functional.linear(hidden, weight, bias).relu_()
        torch.from_numpy(room.hidden[-1]).copy_(functional.linear(hidden, *self._halves[-1]))
