"""The players that search: in batches, repeatable, with any evaluator; and those with a network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import CODE, winning_position
from montecristo_agents import models, search, search_agent
from montecristo_agents.arena import play
from montecristo_agents.entity import EntityNetwork, Sizes, shapes
from montecristo_agents.models import InvalidModel
from montecristo_agents.policy import PolicyAgent
from montecristo_agents.search_agent import NetworkSearchAgent, SearchAgent, alphazero, policy_mcts
from montecristo_env import GameBatch, InvalidArgument, PublicView
from montecristo_env.agent import Agent
from montecristo_env.core.actions import COUNT
from montecristo_env.core.layout import States
from shell_helpers import run_python

SIZES = Sizes(8, 12, 16)


def network(seed: int | None = 0) -> EntityNetwork:
    """With random weights, or none but zeros."""
    rng = np.random.default_rng(seed)
    spread = 0.0 if seed is None else 1.0
    weights = {
        name: rng.normal(0, spread * shape[-1] ** -0.5, shape).astype(np.float32)
        for name, shape in shapes(SIZES).items()
    }
    return EntityNetwork(SIZES, weights)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model file."""
    network().save(tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


@pytest.fixture
def _shipped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if that model were the one that the package brings along."""
    (path.parent / "models").mkdir()
    path.rename(path.parent / "models" / "alphazero.safetensors")
    monkeypatch.setattr(models, "files", lambda _: path.parent)


def network_that_likes(move: str) -> EntityNetwork:
    """A network that is nearly sure of one move, and gives every position the value 0."""
    likes = network(seed=None)
    likes.tensors["policy.bias"][CODE[move]] = 4.0
    return EntityNetwork(SIZES, likes.tensors)


def middle_games(num_games: int, decisions: int = 60) -> GameBatch:
    """Games in the middle, with 2, 3 and 4 players."""
    games = GameBatch(num_games, np.resize([2, 3, 4], num_games), seed=1)
    games.play_random(decisions)
    return games


def answers(agent: Agent, games: GameBatch) -> NDArray[np.int64]:
    """What an agent does in every game, which stays as it is."""
    return agent.act(PublicView(games.copy()), np.arange(len(games)))


def test_plays_whole_games_of_all_sizes() -> None:
    games = GameBatch(9, np.resize([2, 3, 4], 9), seed=0)
    agent = NetworkSearchAgent(network(), 6)
    while not games.over.all():
        rows = np.flatnonzero(~games.over)
        games.step(agent.act(PublicView(games), rows), rows)
    assert games.violations() == {}


def test_same_seeds_give_same_play_whatever_else_is_in_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    games = middle_games(12)
    agent = NetworkSearchAgent(network(), 40)
    together = answers(agent, games)
    np.testing.assert_array_equal(answers(agent, games), together)
    rows = np.array([2, 3, 7])
    np.testing.assert_array_equal(agent.act(PublicView(games.copy()), rows), together[rows])
    agent.games_at_once = 5
    monkeypatch.setattr(search_agent, "ALL_CORES", 3)
    np.testing.assert_array_equal(answers(agent, games), together)
    agent.games_at_once = 12
    monkeypatch.setattr(search, "GAMES_PER_THREAD", 1)
    np.testing.assert_array_equal(answers(agent, games), together)


def test_games_that_differ_only_in_what_is_hidden_get_the_same_action() -> None:
    agent = NetworkSearchAgent(network(), 40)
    for decisions in (0, 60, 120):
        games = middle_games(20, decisions)
        others = games.resample_hidden(np.random.default_rng(decisions))
        others.states["play_key"] = games.states["play_key"]
        assert (games.states["slot_card"] != others.states["slot_card"]).any()
        np.testing.assert_array_equal(answers(agent, games), answers(agent, others))


def test_one_simulation_plays_as_the_network_says() -> None:
    games = middle_games(30)
    np.testing.assert_array_equal(
        answers(NetworkSearchAgent(network(), 1), games), answers(PolicyAgent(network()), games)
    )


def test_finds_the_move_that_wins_at_once_though_the_network_likes_another() -> None:
    table = winning_position()
    likes = network_that_likes("stop taking")
    assert answers(PolicyAgent(likes), table.games)[0] == CODE["stop taking"]
    assert answers(NetworkSearchAgent(likes, 300), table.games)[0] == CODE["take R3"]


class LowCodes:
    """An evaluator of its own kind: it likes low codes, and everybody may expect the same."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def evaluate(self, rows: States) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        seated = np.arange(4) < rows["num_players"][:, None]
        logits = np.tile(-np.arange(COUNT, dtype=np.float32), (len(rows), 1))
        return logits, (seated / seated.sum(axis=1, keepdims=True)).astype(np.float32)


def test_any_evaluator_plugs_in() -> None:
    games = middle_games(9)
    agent = SearchAgent(LowCodes, 10, "lowest")
    np.testing.assert_array_equal(answers(agent, games), games.action_mask().argmax(axis=1))
    found = agent.evaluate(PublicView(games), np.arange(9))
    np.testing.assert_allclose(found.values, 0, atol=1e-6)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)


def test_says_how_likely_legal_actions_are() -> None:
    games = middle_games(12)
    found = NetworkSearchAgent(network(), 8).evaluate(PublicView(games), np.arange(12))
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    assert (found.probabilities[games.action_mask() == 0] == 0).all()
    assert (np.abs(found.values) <= 1).all()


def test_compiled_and_interpreted_search_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = answers(NetworkSearchAgent(network(), 6), middle_games(3))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = run_python(
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_search_agent import NetworkSearchAgent, answers, middle_games, network\n"
        "print(*answers(NetworkSearchAgent(network(), 6), middle_games(3)))\n"
    )
    assert done.stdout.split() == [str(action) for action in compiled], done.stderr


# --- by name


def test_is_called_by_its_model_and_simulations(path: Path) -> None:
    agent = policy_mcts(f"{path}:20")
    assert (agent.name, agent.simulations) == ("policy+mcts:net:20", 20)


@pytest.mark.parametrize("settings", ["", "200", ":200"])
def test_a_path_is_asked_for(settings: str) -> None:
    with pytest.raises(InvalidArgument, match="needs a model file and a number of simulations"):
        policy_mcts(settings)


@pytest.mark.parametrize("simulations", ["", "0", "many", "20:rounds=2"])
def test_a_number_of_simulations_is_asked_for(path: Path, simulations: str) -> None:
    with pytest.raises(InvalidArgument, match="the number of simulations must be a whole number from 1"):
        policy_mcts(f"{path}:{simulations}")


def test_a_missing_model_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="missing"):
        policy_mcts(f"{tmp_path / 'missing'}:20")


@pytest.mark.parametrize("players", [2, 4])
@pytest.mark.parametrize("name", ["alphazero", "ppo"])
def test_a_shipped_network_was_trained_on_this_game(name: str, players: int) -> None:
    """One that does not fit the encoding any more, or was never trained, would play about as random does."""
    pair = play(["random", name], players, deals=50, focus=1, progress=False).pair(name, "random")
    assert pair is not None and pair.win_rate.low > 0.8


@pytest.mark.usefixtures("_shipped")
def test_alphazero_plays_the_shipped_network_with_and_without_search() -> None:
    games = middle_games(6)
    alone, searching = alphazero(), alphazero("64")
    assert isinstance(alone, PolicyAgent) and alone.name == "alphazero"
    assert isinstance(searching, NetworkSearchAgent) and (searching.name, searching.simulations) == ("alphazero:64", 64)
    for agent, same in ((alone, PolicyAgent(network())), (searching, NetworkSearchAgent(network(), 64))):
        np.testing.assert_array_equal(answers(agent, games), answers(same, games))
    warm = alphazero("temperature=0.5:lookahead=2")
    assert isinstance(warm, PolicyAgent) and (warm.temperature, warm.lookahead) == (0.5, 2)
    assert warm.name == "alphazero:temperature=0.5:lookahead=2"


@pytest.mark.usefixtures("_shipped")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("0", "the number of simulations must be a whole number from 1"),
        ("-3", "the number of simulations must be a whole number from 1"),
        ("1.5", "the number of simulations must be a whole number from 1"),
        ("many", "the number of simulations must be a whole number from 1"),
        ("64:", "the number of simulations must be a whole number from 1"),
        ("9" * 30, "the number of simulations must be a whole number from 1"),
        ("speed=3", "'speed=3' is no setting of a network player: these are temperature=NUMBER and lookahead=NUMBER"),
        ("64:temperature=1", "'64:temperature=1' is no setting of a network player"),
        ("temperature=hot", "temperature must be a number from 0, but is 'hot'"),
        ("lookahead=1.5", "lookahead must be a whole number from 0, but is '1.5'"),
    ],
)
def test_settings_of_alphazero_that_make_no_sense_are_refused(settings: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        alphazero(settings)


@pytest.mark.parametrize("settings", ["", "64"])
def test_without_the_shipped_network_alphazero_says_what_to_do(
    settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "files", lambda _: tmp_path)
    with pytest.raises(InvalidModel, match="brings no network alphazero along: train one and play it as policy:PATH"):
        alphazero(settings)
