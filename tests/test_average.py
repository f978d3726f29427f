"""The mean of networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from montecristo_agents.policy import Network
from montecristo_env import InvalidArgument, actions, observation
from montecristo_train.average import average, main


def network(seed: int, hidden: tuple[int, ...] = (8,)) -> Network:
    rng = np.random.default_rng(seed)
    sizes = [observation.SIZE, *hidden]
    layers = {f"trunk.{i}": (sizes[i + 1], sizes[i]) for i in range(len(hidden))}
    layers |= {"policy": (actions.COUNT, hidden[-1]), "value": (1, hidden[-1])}
    tensors = {}
    for name, shape in layers.items():
        tensors[f"{name}.weight"] = rng.normal(size=shape).astype(np.float32)
        tensors[f"{name}.bias"] = rng.normal(size=shape[0]).astype(np.float32)
    return Network(hidden, tensors, training={"seed": seed})


def test_every_weight_is_the_mean_and_what_was_averaged_is_told(tmp_path: Path) -> None:
    networks = [network(seed) for seed in range(3)]
    paths = [tmp_path / f"{seed}.safetensors" for seed in range(3)]
    for one, path in zip(networks, paths, strict=True):
        one.save(path)
    main([*map(str, paths), "--out", str(tmp_path / "mean.safetensors")])
    found = Network.load(tmp_path / "mean.safetensors")
    assert found.hidden == (8,) and found.training == {"mean of": [{"seed": 0}, {"seed": 1}, {"seed": 2}]}
    for name, tensor in found.tensors.items():
        expected = (networks[0].tensors[name] + networks[1].tensors[name] + networks[2].tensors[name]) / 3
        np.testing.assert_allclose(tensor, expected, rtol=1e-3, atol=1e-3)  # half precision


def test_networks_of_different_shapes_and_single_ones_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"same hidden layers.*\(8,\).*\(8, 8\)"):
        average([network(0), network(1, (8, 8))])
    with pytest.raises(InvalidArgument, match="two networks or more, not 1"):
        average([network(0)])
