"""The network that learns: a shared trunk on scaled observations, and two linear heads."""

from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from montecristo_agents import advice
from montecristo_agents.policy import Network
from montecristo_env import observation
from montecristo_env.errors import InvalidArgument


class Trunk(BaseFeaturesExtractor):
    """Hidden layers with ReLU, on scaled observations, with or without advice."""

    def __init__(self, observation_space: spaces.Box, hidden: tuple[int, ...]) -> None:
        super().__init__(observation_space, features_dim=hidden[-1])
        advised = observation_space.shape == (advice.SIZE,)
        sizes = (advice.SIZE if advised else observation.SIZE, *hidden)
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in zip(sizes, hidden, strict=False))
        self.scale: torch.Tensor
        self.register_buffer(
            "scale", torch.from_numpy(advice.SCALE if advised else observation.SCALE), persistent=False
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


def export(model: MaskablePPO, training: dict[str, Any]) -> Network:
    """The network without torch, as `policy:PATH` plays it."""
    trunk = cast(Trunk, model.policy.features_extractor).layers
    named = {f"trunk.{place}": layer for place, layer in enumerate(trunk)}
    named |= {"policy": model.policy.action_net, "value": model.policy.value_net}
    tensors = {
        f"{name}.{kind}": getattr(layer, kind).detach().numpy().astype(np.float32)
        for name, layer in named.items()
        for kind in ("weight", "bias")
    }
    return Network(
        hidden=tuple(len(tensors[f"trunk.{place}.bias"]) for place in range(len(trunk))),
        tensors=tensors,
        advised=model.observation_space.shape == (advice.SIZE,),
        training=training,
    )


def load(model: MaskablePPO, network: Network) -> None:
    """Gives the model the weights of a network of the same shape."""
    renamed = {"policy": "action_net", "value": "value_net"}
    weights = {}
    for name, tensor in network.tensors.items():
        layer, _, kind = name.rpartition(".")
        place = renamed.get(layer) or layer.replace("trunk", "features_extractor.layers")
        weights[f"{place}.{kind}"] = torch.from_numpy(tensor.astype(np.float32))
    state = model.policy.state_dict()
    if {name: tensor.shape for name, tensor in weights.items()} != {
        name: state[name].shape for name in state if not name.startswith(("pi_features", "vf_features"))
    }:
        raise InvalidArgument(f"a network with hidden layers {network.hidden} is no start for this one")
    model.policy.load_state_dict(state | weights)
