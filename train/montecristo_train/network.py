"""The network that learns: a shared trunk on scaled observations, and two linear heads."""

from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from montecristo_agents import advice
from montecristo_agents.policy import Network
from montecristo_env import InvalidArgument, actions, observation
from montecristo_train.choice import LegalChoice
from montecristo_train.sparse import sparse_linear
from montecristo_train.symmetry import SharedHead, SharedLinear, Unit, action_units, hidden_units, input_units

ROUNDING = 0.01  # more than what half precision changes in a weight
FIRST_LOGITS = 0.01  # how far logits are from zero before anything is learnt


class Trunk(BaseFeaturesExtractor):
    """Hidden layers with ReLU, on scaled observations, with or without advice."""

    def __init__(self, observation_space: spaces.Box, hidden: tuple[int, ...], symmetric: bool, bfloat16: bool) -> None:
        super().__init__(observation_space, features_dim=hidden[-1])
        self.in_bfloat16 = bfloat16
        advised = observation_space.shape == (advice.SIZE,)
        if symmetric:
            units = [input_units(advised), *(hidden_units(size) for size in hidden)]
            layers: list[nn.Module] = [SharedLinear(*pair) for pair in pairwise(units)]
        else:
            sizes = advice.SIZE if advised else observation.SIZE, *hidden
            layers = [nn.Linear(*pair) for pair in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)
        self.scale: torch.Tensor
        scale = advice.SCALE if advised else observation.SCALE
        self.register_buffer("scale", torch.tensor(scale), persistent=False)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The features of a batch of observations, as counts."""
        first: Any = self.layers[0]
        counts = observations.to(torch.int8)  # some ways through Stable-Baselines3 make floats of them
        if isinstance(first, SharedLinear):
            features = torch.relu_(first.see(counts, self.scale))
        else:
            features = torch.relu_(sparse_linear(counts, self.scale, first.weight.t(), first.bias))
        with torch.autocast("cpu", torch.bfloat16, enabled=self.in_bfloat16):
            for layer in list(self.layers)[1:]:
                features = torch.relu_(layer(features))
        return features.float()


class CountingPolicy(MaskableActorCriticPolicy):
    """The policy of Stable-Baselines3, which leaves observations to the trunk as they are: as counts."""

    def _build(self, lr_schedule: Schedule) -> None:
        self.action_dist = LegalChoice(actions.COUNT)
        super()._build(lr_schedule)

    def extract_features(self, obs: Any, features_extractor: BaseFeaturesExtractor | None = None) -> torch.Tensor:
        """What the trunk makes of observations."""
        features: torch.Tensor = self.features_extractor(obs)
        return features


class SymmetricPolicy(CountingPolicy):
    """The same with heads that share their weights, too."""

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        last = hidden_units(self.features_dim)
        heads: Any = SharedHead(last, action_units("logit"), FIRST_LOGITS), SharedHead(last, [Unit("value")], 1.0)
        self.action_net, self.value_net = heads
        optimizer: Any = self.optimizer_class
        self.optimizer = optimizer(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


def make_policy(hidden: tuple[int, ...], symmetric: bool, bfloat16: bool) -> dict[str, Any]:
    """What makes the policy of Stable-Baselines3 this network."""
    return {
        "policy": SymmetricPolicy if symmetric else CountingPolicy,
        "policy_kwargs": {
            "features_extractor_class": Trunk,
            "features_extractor_kwargs": {"hidden": hidden, "symmetric": symmetric, "bfloat16": bfloat16},
            "net_arch": [],
        },
    }


def load(model: MaskablePPO, network: Network) -> None:
    """Gives the model the weights of an exported network: the reverse of `export`."""
    hidden = _hidden(model)
    found = network.hidden, network.activation, network.residual, network.advised
    wanted = hidden, "relu", False, _is_advised(model)
    if found != wanted:
        raise InvalidArgument(
            f"cannot start from a network with hidden layers, activation, residual, advised = {found}: "
            f"here they are {wanted}"
        )
    tensors = {name: np.asarray(tensor, np.float32) for name, tensor in network.tensors.items()}
    with torch.no_grad():
        for name, layer in _named_layers(model).items():
            weight, bias = (torch.from_numpy(tensors[f"{name}.{kind}"]) for kind in ("weight", "bias"))
            if isinstance(layer, SharedLinear):
                layer.load(weight, bias)
                if not torch.allclose(layer.weight, weight, rtol=ROUNDING, atol=ROUNDING):
                    raise InvalidArgument(
                        "cannot start from a network that is not symmetric: start with --no-symmetric"
                    )
            else:
                layer.weight.copy_(weight)
                layer.bias.copy_(bias)


def _hidden(model: MaskablePPO) -> tuple[int, ...]:
    return tuple(len(layer.bias) for layer in cast(Any, model.policy.features_extractor).layers)


def _is_advised(model: MaskablePPO) -> bool:
    return model.observation_space.shape == (advice.SIZE,)


def _named_layers(model: MaskablePPO) -> dict[str, nn.Linear | SharedLinear]:
    """All layers by the names that they have in an exported network."""
    trunk = cast(Trunk, model.policy.features_extractor).layers
    named = {f"trunk.{place}": layer for place, layer in enumerate(trunk)}
    heads = {"policy": model.policy.action_net, "value": model.policy.value_net}
    return cast(dict[str, nn.Linear | SharedLinear], named | heads)


def export(model: MaskablePPO, training: dict[str, Any]) -> Network:
    """The network without torch, as `policy:PATH` plays it."""
    tensors = {
        f"{name}.{kind}": getattr(layer, kind).detach().numpy().astype(np.float32)
        for name, layer in _named_layers(model).items()
        for kind in ("weight", "bias")
    }
    return Network(_hidden(model), tensors, advised=_is_advised(model), training=training)
