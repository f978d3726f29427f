"""The entity network as it plays: against torch, in files, as an agent, and with search."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from montecristo_agents import guided
from montecristo_agents.entity import (
    DUNGEON_CODES,
    KIND_CODES,
    EntityEvaluator,
    EntityNetwork,
    Sizes,
    multiply_adds,
    shapes,
)
from montecristo_agents.guided import GuidedAgent, SearchAgent, policy_mcts
from montecristo_agents.policy import InvalidModel, Network, PolicyAgent, load_network
from montecristo_env import GameBatch, InvalidArgument, PublicView, actions, observation, symmetry
from montecristo_train.entity import EntityModule, export

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
    assert multiply_adds(Sizes()) < 500_000
    exact = 0

    def count(layer: torch.nn.Linear, inputs: tuple[torch.Tensor], _: torch.Tensor) -> None:
        nonlocal exact
        exact += inputs[0].numel() * layer.out_features

    module = EntityModule()
    del module.auxiliary
    module.auxiliary = torch.nn.Identity()  # type: ignore[assignment]
    for layer in module.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_hook(count)  # type: ignore[arg-type]
    module(torch.zeros(1, observation.SIZE, dtype=torch.int8))
    assert multiply_adds(Sizes()) == exact


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
    loaded = load_network(path)
    assert isinstance(loaded, EntityNetwork)
    assert loaded.sizes == SMALL and loaded.training == {"seed": 0}
    seen = middle_games(5).observe()
    for ours, theirs in zip(loaded.forward(seen), network.forward(seen), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def change_header(path: Path, **entries: str) -> None:
    """Writes a file anew with other entries in its header, and a checksum that fits."""
    from montecristo_agents.policy import _read, checksum

    header, tensors = _read(path)
    header |= entries
    header["checksum"] = checksum(header, tensors)
    save_file(tensors, path, header)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"format": "99"}, "has format 99"),
        ({"layout": "0123"}, "layout 0123"),
        ({"sizes": json.dumps([8, 12])}, "sizes must be those of pair, entity, hidden"),
        ({"sizes": json.dumps([8, 12, 17])}, "must have the shape"),
        ({"sizes": "x"}, "must give sizes as a JSON list"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(path: Path, entries: dict[str, str], message: str) -> None:
    change_header(path, **entries)
    with pytest.raises(InvalidModel, match=message):
        load_network(path)


def test_a_damaged_file_is_refused(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(InvalidModel, match="checksum"):
        load_network(path)


def test_weights_that_are_missing_are_named(network: EntityNetwork) -> None:
    tensors = dict(network.tensors)
    del tensors["win.bias"]
    with pytest.raises(InvalidModel, match=r"lacks the weights win\.bias"):
        EntityNetwork(SMALL, tensors)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"nowhere.*there is no such file"):
        load_network(tmp_path / "nowhere")


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


def test_policy_mcts_searches_by_gumbel_with_entity_files_only(path: Path, tmp_path: Path) -> None:
    agent = policy_mcts(f"{path}:12")
    assert isinstance(agent, SearchAgent) and agent.name == "policy+mcts:net:12"
    weights = {"trunk.0": (4, observation.SIZE), "policy": (actions.COUNT, 4), "value": (1, 4)}
    tensors = {f"{name}.weight": np.zeros(shape, np.float32) for name, shape in weights.items()}
    tensors |= {f"{name}.bias": np.zeros(shape[0], np.float32) for name, shape in weights.items()}
    Network((4,), tensors).save(tmp_path / "mlp.safetensors")
    assert isinstance(policy_mcts(f"{tmp_path / 'mlp.safetensors'}:12"), GuidedAgent)
    with pytest.raises(InvalidArgument, match="the number of simulations must be a whole number from 1"):
        policy_mcts(f"{path}:0")
    with pytest.raises(InvalidArgument, match="needs a model file and a number of simulations"):
        policy_mcts("")


def test_search_agent_plays_whole_games_of_all_sizes(network: EntityNetwork) -> None:
    games = GameBatch(9, np.resize([2, 3, 4], 9), seed=0)
    agent = SearchAgent(network, 4)
    while not games.over.all():
        rows = np.flatnonzero(~games.over)
        games.step(agent.act(PublicView(games), rows), rows)
    assert games.violations() == {}


def test_search_agent_plays_the_same_whatever_else_is_in_the_batch(
    network: EntityNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    games = middle_games(12)
    agent = SearchAgent(network, 40)
    together = agent.act(PublicView(games.copy()), np.arange(12))
    rows = np.array([2, 3, 7])
    np.testing.assert_array_equal(agent.act(PublicView(games.copy()), rows), together[rows])
    monkeypatch.setattr(guided, "GAMES_AT_ONCE", 5)
    np.testing.assert_array_equal(agent.act(PublicView(games.copy()), np.arange(12)), together)


def test_search_agent_says_how_likely_legal_actions_are(network: EntityNetwork) -> None:
    games = middle_games(12)
    found = SearchAgent(network, 8).evaluate(PublicView(games), np.arange(12))
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    assert (found.probabilities[games.action_mask() == 0] == 0).all()
    assert (np.abs(found.values) <= 1).all()


def test_files_hold_the_tensors_of_the_playing_network_only(path: Path) -> None:
    assert set(load_file(path)) == set(shapes(SMALL))
