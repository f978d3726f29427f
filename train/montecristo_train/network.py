"""The network that learns: a shared trunk on scaled observations, and two linear heads."""

from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from montecristo_agents import advice
from montecristo_agents.policy import Network
from montecristo_env import InvalidArgument, observation

FIRST = "trunk.0.weight"  # the layer that sees the inputs


def magnifier(advised: bool) -> NDArray[np.float32]:
    """By how much inputs are magnified while a network learns, since counts seldom come near their highest values.

    About by the root of the highest; it is a power of two, so that weights can be changed for it without a trace.
    """
    roots = np.exp2(np.rint(-np.log2(observation.SCALE) / 2)).astype(np.float32)
    rest = advice.SIZE - observation.SIZE if advised else 0
    return np.concatenate([roots, np.ones(rest, np.float32)])


class Trunk(BaseFeaturesExtractor):
    """Hidden layers with ReLU, on scaled observations, with or without advice."""

    def __init__(self, observation_space: spaces.Box, hidden: tuple[int, ...]) -> None:
        super().__init__(observation_space, features_dim=hidden[-1])
        advised = observation_space.shape == (advice.SIZE,)
        sizes = (advice.SIZE if advised else observation.SIZE, *hidden)
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in zip(sizes, hidden, strict=False))
        self.scale: torch.Tensor
        self.register_buffer(
            "scale",
            torch.from_numpy(magnifier(advised) * (advice.SCALE if advised else observation.SCALE)),
            persistent=False,
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The features of a batch of observations, as counts."""
        features = observations * self.scale
        for layer in self.layers:
            features = torch.relu(layer(features))
        return features


def policy_kwargs(hidden: tuple[int, ...]) -> dict[str, Any]:
    """What makes the policy of Stable-Baselines3 this network."""
    return {"features_extractor_class": Trunk, "features_extractor_kwargs": {"hidden": hidden}, "net_arch": []}


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
    tensors[FIRST] = tensors[FIRST] / magnifier(network.advised)
    with torch.no_grad():
        for name, layer in _named_layers(model).items():
            layer.weight.copy_(torch.from_numpy(tensors[f"{name}.weight"]))
            layer.bias.copy_(torch.from_numpy(tensors[f"{name}.bias"]))


def _hidden(model: MaskablePPO) -> tuple[int, ...]:
    return tuple(len(layer.bias) for layer in cast(Any, model.policy.features_extractor).layers)


def _is_advised(model: MaskablePPO) -> bool:
    return model.observation_space.shape == (advice.SIZE,)


def _named_layers(model: MaskablePPO) -> dict[str, nn.Linear]:
    """All layers by the names that they have in an exported network."""
    trunk = cast(Trunk, model.policy.features_extractor).layers
    named = {f"trunk.{place}": layer for place, layer in enumerate(trunk)}
    return cast(dict[str, nn.Linear], named | {"policy": model.policy.action_net, "value": model.policy.value_net})


def export(model: MaskablePPO, training: dict[str, Any]) -> Network:
    """The network without torch, as `policy:PATH` plays it."""
    tensors = {
        f"{name}.{kind}": getattr(layer, kind).detach().numpy().astype(np.float32)
        for name, layer in _named_layers(model).items()
        for kind in ("weight", "bias")
    }
    advised = _is_advised(model)
    tensors[FIRST] = tensors[FIRST] * magnifier(advised)
    return Network(_hidden(model), tensors, advised=advised, training=training)
