"""The network that learns: a shared trunk on scaled observations, and two linear heads."""

from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from montecristo_agents.policy import Network
from montecristo_env import InvalidArgument, observation


class Trunk(BaseFeaturesExtractor):
    """Hidden layers with ReLU, on observations scaled to [0, 1]."""

    def __init__(self, observation_space: spaces.Box, hidden: tuple[int, ...]) -> None:
        super().__init__(observation_space, features_dim=hidden[-1])
        sizes = (observation.SIZE, *hidden)
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in zip(sizes, hidden, strict=False))
        self.scale: torch.Tensor
        self.register_buffer("scale", torch.from_numpy(observation.SCALE), persistent=False)

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
    if (network.hidden, network.activation, network.residual) != (hidden, "relu", False):
        raise InvalidArgument(
            f"cannot start from a network with hidden layers {network.hidden} ({network.activation}"
            f"{', residual' if network.residual else ''}): here they are {hidden} (relu)"
        )
    with torch.no_grad():
        for name, layer in _named_layers(model).items():
            layer.weight.copy_(torch.from_numpy(np.asarray(network.tensors[f"{name}.weight"], np.float32)))
            layer.bias.copy_(torch.from_numpy(np.asarray(network.tensors[f"{name}.bias"], np.float32)))


def _hidden(model: MaskablePPO) -> tuple[int, ...]:
    return tuple(len(layer.bias) for layer in cast(Any, model.policy.features_extractor).layers)


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
    return Network(_hidden(model), tensors, training=training)
