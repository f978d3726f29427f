"""The player that searches with a network at its side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import CODE, DIAMOND, EMERALD, GOLD, RUBY, SAPPHIRE, F, Table
from montecristo_agents import guided
from montecristo_agents.guided import GuidedAgent
from montecristo_agents.policy import InvalidModel, Network, PolicyAgent
from montecristo_env import GameBatch, InvalidArgument, Lane, PublicView, actions, observation
from montecristo_env.agent import Agent
from shell_helpers import run_python

HIDDEN = (16, 16)


def tensors(seed: int | None = 0) -> dict[str, NDArray[np.float32]]:
    """Random weights, or none but zeros."""
    rng = np.random.default_rng(seed)
    sizes = [observation.SIZE, *HIDDEN]
    layers = {f"trunk.{i}": (sizes[i + 1], sizes[i]) for i in range(len(HIDDEN))}
    layers |= {"policy": (actions.COUNT, HIDDEN[-1]), "value": (1, HIDDEN[-1])}
    weights = {}
    for name, (outputs, inputs) in layers.items():
        spread = 0.0 if seed is None else np.sqrt(2 / inputs)
        weights[f"{name}.weight"] = rng.normal(0, spread, (outputs, inputs)).astype(np.float32)
        weights[f"{name}.bias"] = np.zeros(outputs, np.float32)
    return weights


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model file."""
    Network(HIDDEN, tensors()).save(tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


def network_that_likes(move: str, folder: Path) -> Path:
    """A model file of a network that is nearly sure of one move, and gives every position the value 0."""
    weights = tensors(seed=None)
    weights["policy.bias"][CODE[move]] = 4.0
    Network(HIDDEN, weights).save(folder / "likes.safetensors")
    return folder / "likes.safetensors"


def middle_games(num_games: int, decisions: int = 60) -> GameBatch:
    """Games in the middle, with 2, 3 and 4 players."""
    games = GameBatch(num_games, np.resize([2, 3, 4], num_games), seed=1)
    games.play_random(decisions)
    return games


def answers(agent: Agent, games: GameBatch) -> NDArray[np.int64]:
    """What an agent does in every game, which stays as it is."""
    return agent.act(PublicView(games.copy()), np.arange(len(games)))


def test_plays_whole_games_of_all_sizes(path: Path) -> None:
    games = GameBatch(9, np.resize([2, 3, 4], 9), seed=0)
    agent = GuidedAgent(f"{path}:6")
    while not games.over.all():
        rows = np.flatnonzero(~games.over)
        games.step(agent.act(PublicView(games), rows), rows)
    assert games.violations() == {}


def test_same_seeds_give_same_play_whatever_else_is_in_the_batch(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    games = middle_games(12)
    agent = GuidedAgent(f"{path}:40")
    together = answers(agent, games)
    np.testing.assert_array_equal(answers(agent, games), together)
    rows = np.array([2, 3, 7])
    np.testing.assert_array_equal(agent.act(PublicView(games.copy()), rows), together[rows])
    monkeypatch.setattr(guided, "GAMES_AT_ONCE", 5)
    monkeypatch.setattr(guided, "GAMES_PER_THREAD", 1)
    np.testing.assert_array_equal(answers(agent, games), together)


def test_games_that_differ_only_in_what_is_hidden_get_the_same_action(path: Path) -> None:
    agent = GuidedAgent(f"{path}:40")
    for decisions in (0, 60, 120):
        games = middle_games(20, decisions)
        others = games.resample_hidden(np.random.default_rng(decisions))
        others.states["play_key"] = games.states["play_key"]
        assert (games.states["slot_card"] != others.states["slot_card"]).any()
        np.testing.assert_array_equal(answers(agent, games), answers(agent, others))


def test_one_simulation_plays_as_the_network_says(path: Path) -> None:
    games = middle_games(30)
    np.testing.assert_array_equal(answers(GuidedAgent(f"{path}:1"), games), answers(PolicyAgent(path), games))


def test_finds_the_move_that_wins_at_once_though_the_network_likes_another(tmp_path: Path) -> None:
    table = Table(2)
    table.lanes([1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0])
    table.market(RUBY, GOLD, SAPPHIRE, EMERALD, DIAMOND)
    table.put(F, (RUBY, 3), (DIAMOND, 1), (EMERALD, 1))
    table.enter(F, 0)
    table.give(0, (RUBY, 3), (DIAMOND, 1), (EMERALD, 1))
    table.row["score"][:2] = 38, 39
    table.draw_tokens_next((SAPPHIRE, 1), (SAPPHIRE, 1), (SAPPHIRE, 2))
    table.begin(Lane.CHEST)
    table.play("put F", "put A", "put B")
    path = network_that_likes("stop taking", tmp_path)
    assert answers(PolicyAgent(path), table.games)[0] == CODE["stop taking"]
    assert answers(GuidedAgent(f"{path}:300"), table.games)[0] == CODE["take R3"]


def test_compiled_and_interpreted_search_agree(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = answers(GuidedAgent(f"{path}:6"), middle_games(3))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = run_python(
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_guided import GuidedAgent, answers, middle_games\n"
        f"print(*answers(GuidedAgent('{path}:6'), middle_games(3)))\n"
    )
    assert done.stdout.split() == [str(action) for action in compiled], done.stderr


def test_is_called_by_its_model_and_simulations(path: Path) -> None:
    agent = GuidedAgent(f"{path}:20")
    assert (agent.name, agent.simulations) == ("policy+mcts:net:20", 20)


@pytest.mark.parametrize("settings", ["", "200", ":200"])
def test_a_path_is_asked_for(settings: str) -> None:
    with pytest.raises(InvalidArgument, match="needs a model file and a number of simulations"):
        GuidedAgent(settings)


@pytest.mark.parametrize("simulations", ["", "0", "many", "20:rounds=2"])
def test_a_number_of_simulations_is_asked_for(path: Path, simulations: str) -> None:
    with pytest.raises(InvalidArgument, match="the number of simulations must be a whole number from 1"):
        GuidedAgent(f"{path}:{simulations}")


def test_a_missing_model_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="missing"):
        GuidedAgent(f"{tmp_path / 'missing'}:20")
