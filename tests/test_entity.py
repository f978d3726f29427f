"""The entity network as it plays: against torch, without a trace of what is hidden, and in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch")

import torch
from safetensors.numpy import load_file

from montecristo_agents.entity import (
    DUNGEON_CODES,
    KIND_CODES,
    EntityEvaluator,
    EntityNetwork,
    Sizes,
    check_groups,
    shapes,
)
from montecristo_agents.models import InvalidModel
from montecristo_agents.policy import PolicyAgent
from montecristo_env import GameBatch, InvalidArgument, PublicView, actions, observation, symmetry
from montecristo_train.entity import EntityModule, export, load

SMALL = Sizes(8, 12, 16)


def random_module(sizes: Sizes = SMALL, seed: int = 0) -> EntityModule:
    """All weights random, also those that training begins with as zeros."""
    torch.manual_seed(seed)
    module = EntityModule(sizes)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) / parameter.shape[-1] ** 0.5)
    return module


@pytest.fixture(scope="module")
def network() -> EntityNetwork:
    return export(random_module(), {"seed": 0})


@pytest.fixture
def path(tmp_path: Path, network: EntityNetwork) -> Path:
    network.save(tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


def middle_games(num_games: int, decisions: int = 60) -> GameBatch:
    """Games in the middle, with 2, 3 and 4 players."""
    games = GameBatch(num_games, np.resize([2, 3, 4], num_games), seed=1)
    games.play_random(decisions)
    return games


def shares(logits: torch.Tensor, players: NDArray[np.int8]) -> NDArray[np.float32]:
    absent = torch.arange(4) >= torch.from_numpy(players.astype(np.int64))[:, None]
    found: NDArray[np.float32] = torch.softmax(logits.masked_fill(absent, -1e9), 1).numpy()
    return found


@pytest.mark.parametrize("sizes", [SMALL, Sizes()])
@pytest.mark.parametrize("decisions", [0, 60, 120])
def test_agrees_with_the_torch_module(sizes: Sizes, decisions: int) -> None:
    module = random_module(sizes)
    games = middle_games(30, decisions)
    seen = games.observe()
    logits, values, wins = export(module, {}).forward(seen)
    order = symmetry.market_order(seen)
    with torch.no_grad():
        expected = module(torch.from_numpy(symmetry.permute_observations(seen, order)))
    back = symmetry.permute_masks(expected.logits.numpy(), symmetry.inverse(order))
    np.testing.assert_allclose(logits, back, atol=1e-4)
    np.testing.assert_allclose(values, shares(expected.value, games.num_players), atol=1e-4)
    np.testing.assert_allclose(wins, shares(expected.win, games.num_players), atol=1e-4)


def test_load_is_the_reverse_of_export_but_for_the_auxiliary_head() -> None:
    module, other, before = random_module(seed=1), random_module(seed=2), random_module(seed=2).state_dict()
    load(other, export(module, {}))
    wanted = module.state_dict()
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, (before if name.startswith("auxiliary.") else wanted)[name]), name
        assert not torch.equal(before[name], wanted[name]), name


@pytest.mark.parametrize("more", [Sizes(3, 0, 0), Sizes(0, 3, 0), Sizes(0, 0, 3), Sizes(4, 5, 6)])
def test_a_larger_module_starts_as_the_network_plays(more: Sizes) -> None:
    module = random_module(seed=1)
    larger = random_module(Sizes(*(own + further for own, further in zip(SMALL, more, strict=True))), seed=2)
    load(larger, export(module, {}))
    seen = torch.from_numpy(middle_games(6).observe())
    with torch.no_grad():
        found, expected = larger(seen), module(seen)
    for part in ("logits", "value", "win"):
        torch.testing.assert_close(getattr(found, part), getattr(expected, part), rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", SMALL._fields)
def test_a_smaller_module_cannot_start_from_a_network(size: str) -> None:
    smaller = SMALL._replace(**{size: getattr(SMALL, size) - 1})
    with pytest.raises(InvalidArgument, match="cannot start from a network with sizes"):
        load(random_module(smaller), export(random_module(), {}))


def test_an_observation_with_a_group_that_no_layer_takes_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"knows observations of global, players, .*, not .*pairs, weather"):
        check_groups({**observation.GROUPS, "weather": observation.GROUPS["global"]})
    taken = [observation.GROUPS[name].slice for name in observation.GROUPS]  # one after the other, to the end
    assert [part.start for part in taken[1:]] + [observation.SIZE] == [part.stop for part in taken]


def test_permuted_kinds_permute_the_logits_and_nothing_else(network: EntityNetwork) -> None:
    seen = middle_games(30).observe()
    rng = np.random.default_rng(0)
    permutations = rng.permuted(np.tile(np.arange(5), (30, 1)), axis=1)
    logits, values, wins = network.forward(seen)
    permuted = network.forward(symmetry.permute_observations(seen, permutations))
    np.testing.assert_allclose(permuted[0], symmetry.permute_masks(logits, permutations), atol=1e-5)
    np.testing.assert_allclose(permuted[1], values, atol=1e-5)
    np.testing.assert_allclose(permuted[2], wins, atol=1e-5)


def test_codes_name_each_dungeon_and_kind_once() -> None:
    for dungeon, codes in enumerate(DUNGEON_CODES):
        assert {actions.decode(int(code)).dungeon for code in codes} == {dungeon}  # type: ignore[union-attr]
    for kind, codes in enumerate(KIND_CODES):
        swap = np.arange(5)
        swap[[0, kind]] = kind, 0
        np.testing.assert_array_equal(symmetry.permute_actions(KIND_CODES[0], swap), codes)


def test_default_sizes_stay_below_half_a_million_multiply_adds() -> None:
    total = 0

    def count(layer: torch.nn.Linear, inputs: tuple[torch.Tensor], _: torch.Tensor) -> None:
        nonlocal total
        total += inputs[0].numel() * layer.out_features

    module = EntityModule()
    del module.auxiliary
    module.auxiliary = torch.nn.Identity()  # type: ignore[assignment]
    for layer in module.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_hook(count)  # type: ignore[arg-type]
    module(torch.zeros(1, observation.SIZE, dtype=torch.int8))
    assert 100_000 < total < 500_000


def test_evaluator_gives_shares_by_seat_and_looks_at_nothing_hidden(network: EntityNetwork) -> None:
    games = middle_games(30)
    logits, values = EntityEvaluator(network).evaluate(games.states)
    np.testing.assert_allclose(values.sum(axis=1), 1, atol=1e-5)
    _, by_ego, _ = network.forward(games.observe())
    for game in range(30):
        players, first = int(games.num_players[game]), int(games.current_player[game])
        rotated = [by_ego[game, (seat - first) % players] for seat in range(players)]
        np.testing.assert_array_equal(values[game], rotated + [0] * (4 - players))
    others = games.resample_hidden(np.random.default_rng(0))
    assert (games.states["slot_card"] != others.states["slot_card"]).any()
    np.testing.assert_array_equal(EntityEvaluator(network).evaluate(others.states)[0], logits)


def test_a_file_gives_the_same_network_back(path: Path, network: EntityNetwork) -> None:
    loaded = EntityNetwork.load(path)
    assert loaded.sizes == SMALL and loaded.training == {"seed": 0}
    seen = middle_games(5).observe()
    for ours, theirs in zip(loaded.forward(seen), network.forward(seen), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_weights_that_are_missing_are_named(network: EntityNetwork) -> None:
    tensors = dict(network.tensors)
    del tensors["win.bias"]
    with pytest.raises(InvalidModel, match=r"lacks the weights win\.bias"):
        EntityNetwork(SMALL, tensors)


def test_observations_of_another_shape_are_refused(network: EntityNetwork) -> None:
    with pytest.raises(InvalidArgument, match="observations must be int8"):
        network.forward(np.zeros((2, 3), np.int8))


def test_policy_agent_plays_entity_files(path: Path, network: EntityNetwork) -> None:
    agent = PolicyAgent(str(path))
    games = middle_games(30)
    logits, _, wins = network.forward(games.observe())
    best = np.where(games.action_mask(), logits, -np.inf).argmax(axis=1)
    np.testing.assert_array_equal(agent.act(PublicView(games), np.arange(30)), best)
    rewards = agent.evaluate(PublicView(games), np.arange(30)).values
    np.testing.assert_allclose(rewards, (games.num_players * wins[:, 0] - 1) / (games.num_players - 1), atol=1e-5)


def test_files_hold_the_tensors_of_the_playing_network_only(path: Path) -> None:
    assert set(load_file(path)) == set(shapes(SMALL))
