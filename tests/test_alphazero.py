"""AlphaZero: self-play with search, targets, learning, runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("sb3_contrib")

from montecristo_agents.entity import EntityNetwork
from montecristo_agents.policy import PolicyAgent
from montecristo_agents.search_agent import policy_mcts
from montecristo_env import GameBatch, GameRecord, PublicView, Ruleset, symmetry
from montecristo_env.core.actions import FIRST
from montecristo_env.errors import InvalidArgument
from montecristo_train import alphazero, demo
from montecristo_train.alphazero import Learner, train
from montecristo_train.alphazero_settings import PRESETS, Settings
from montecristo_train.entity import export, tensors
from montecristo_train.episodes import MARGIN, VALUE, WIN, Positions, prepare
from montecristo_train.runs import AGENT, CHECKPOINT, CURVE, METRICS, TENSORBOARD, new_folder, read_settings
from montecristo_train.workers import WorkerDied, Workers, make_self_play
from test_entity import random_module
from test_layers import imports

TINY = Settings(
    total_timesteps=1200,
    n_workers=0,
    n_envs=12,
    n_steps=300,
    max_considered=2,
    min_simulations=2,
    max_simulations=3,
    pair_units=4,
    entity_units=4,
    hidden_units=8,
    buffer_size=1500,
    learning_starts=300,
    batch_size=64,
    warmup=600,
    evaluate_every=10_000,
    evaluate_against=("random",),
    evaluate_deals=2,
    evaluate_simulations=2,
    checkpoint_every=500,
)


def weights() -> dict[str, NDArray[np.float32]]:
    return tensors(random_module(TINY.sizes))


def collect(size: int, td_lambda: float = 1.0, **changes: object) -> Positions:
    settings = replace(TINY, **changes)  # type: ignore[arg-type]
    return make_self_play(settings, 0, 0).collect(weights(), size, td_lambda, settings.budgets(0))[0]


def by_seat(positions: Positions, part: slice) -> NDArray[np.float32]:
    """Targets that are given from the decider on, by seat."""
    found = np.zeros((len(positions.states), 4), np.float32)
    for row, (state, targets) in enumerate(zip(positions.states, positions.targets[:, part], strict=True)):
        players = int(state["num_players"])
        for ego in range(players):
            found[row, (int(state["current_player"]) + ego) % players] = targets[ego]
    return found


def games_of(positions: Positions) -> list[NDArray[np.int64]]:
    """The places of the positions of each game."""
    begins = np.flatnonzero(np.diff(positions.states["decisions"], prepend=1 << 20) < 0)
    return np.split(np.arange(len(positions.states)), begins[1:])


def test_games_of_all_sizes_give_shares_and_policies_that_sum_to_one() -> None:
    positions = collect(4000)
    assert set(positions.states["num_players"]) == {2, 3, 4}
    np.testing.assert_allclose(positions.policies.sum(axis=1), 1, atol=1e-5)
    for part in (VALUE, WIN):
        targets = positions.targets[:, part]
        np.testing.assert_allclose(targets.sum(axis=1), 1, atol=1e-5)
        assert (targets[np.arange(4) >= positions.states["num_players"][:, None]] == 0).all()


def test_with_lambda_one_values_are_the_utility_of_the_end_of_the_game() -> None:
    positions = collect(600)
    values, wins = by_seat(positions, VALUE), by_seat(positions, WIN)
    points = by_seat(positions, slice(MARGIN + 1, MARGIN + 5)) * 10
    assert len(games_of(positions)) > 1
    for places in games_of(positions):
        np.testing.assert_allclose(values[places], np.tile(values[places[-1]], (places.size, 1)), atol=1e-6)
        last = places[-1]  # points of the coming rounds are those of the rest of the game
        players = int(positions.states["num_players"][last])
        scores = positions.states["score"][last, :players] + points[last, :players]
        assert (scores[wins[last, :players] > 0] == scores.max()).all()
        softmax = np.exp(scores / 6) / np.exp(scores / 6).sum()
        np.testing.assert_allclose(values[last, :players], (wins[last, :players] + softmax) / 2, atol=1e-5)
        seat = int(positions.states["current_player"][last])
        margin = scores[seat] - np.delete(scores, seat).max()
        np.testing.assert_allclose(positions.targets[last, MARGIN] * 20, margin, atol=1e-4)


def test_points_are_those_of_the_next_two_rounds() -> None:
    positions = collect(600)
    points = by_seat(positions, slice(MARGIN + 1, MARGIN + 5)) * 10
    for places in games_of(positions):
        states = positions.states[places]
        for place, state in zip(places, states, strict=True):
            later = np.flatnonzero(states["round_number"] >= state["round_number"] + 2)
            if later.size:
                np.testing.assert_allclose(points[place], states["score"][later[0]] - state["score"], atol=1e-4)


def test_subtracting_luck_changes_values_where_something_was_drawn_and_nothing_else() -> None:
    plain, adjusted = collect(2500), collect(2500, redraws=3)
    np.testing.assert_array_equal(adjusted.states, plain.states)
    np.testing.assert_array_equal(adjusted.policies, plain.policies)
    others = np.delete(np.arange(plain.targets.shape[1]), np.arange(VALUE.start, VALUE.stop))
    np.testing.assert_array_equal(adjusted.targets[:, others], plain.targets[:, others])
    luck = by_seat(plain, VALUE) - by_seat(adjusted, VALUE)  # of all later draws
    np.testing.assert_allclose(luck.sum(axis=1), 0, atol=1e-5)
    changes, drawn = 0, 0
    for places in games_of(plain):
        of_step = np.diff(luck[places], axis=0, append=0.0)
        cards = plain.states[places]["pile_size"]
        tokens = plain.states[places]["bag"].sum(axis=1)
        unseen = np.append((np.diff(cards) != 0) | (np.diff(tokens) != 0), True)
        lucky = np.abs(of_step).max(axis=1) > 1e-5
        assert not (lucky & ~unseen).any()
        changes, drawn = changes + lucky.sum(), drawn + unseen.sum()
    assert changes > 0.5 * drawn > 50


def test_luck_is_zero_in_the_mean() -> None:
    positions = collect(30_000, redraws=2)
    plain = collect(30_000)
    luck = (by_seat(plain, VALUE) - by_seat(positions, VALUE)).astype(np.float64)
    of_games = np.array([luck[places[0]] for places in games_of(plain)])  # of all draws of a game
    error = of_games.std(axis=0, ddof=1) / np.sqrt(len(of_games))
    assert len(of_games) > 100 and (error[:2] > 0).all()
    assert (np.abs(of_games.mean(axis=0)) < 4 * error + 1e-9).all()


def test_with_less_lambda_values_follow_later_searches() -> None:
    self_play = make_self_play(replace(TINY, n_envs=1), 0, 0)
    positions, _ = self_play.collect(weights(), 1, 0.75, TINY.budgets(0))
    searched = self_play._values[0, : len(positions.states)]
    values = by_seat(positions, VALUE)
    np.testing.assert_allclose(values[:-1], 0.75 * values[1:] + 0.25 * searched[1:], atol=1e-5)


def test_a_batch_has_the_kinds_in_market_order() -> None:
    positions = collect(300)
    batch = prepare(positions, np.arange(50))
    np.testing.assert_array_equal(symmetry.market_order(batch.seen), np.tile(np.arange(5), (50, 1)))
    assert (batch.policies[~batch.masks] == 0).all()
    np.testing.assert_allclose(batch.policies.sum(axis=1), 1, atol=1e-5)
    for row in range(50):
        first = FIRST[positions.states["decision"][row]]
        likely = positions.policies[row]
        np.testing.assert_allclose(np.sort(batch.policies[row])[-likely.size :], np.sort(likely))
        real = GameBatch(1, int(positions.states["num_players"][row]))
        real.states[0] = positions.states[row]
        mapped = symmetry.permute_actions([first + likely.argmax()], symmetry.market_order(real.observe()))
        assert batch.policies[row, mapped[0]] == likely.max()


def test_a_learner_learns_what_it_is_shown() -> None:
    learner = Learner(replace(TINY, learning_rate=1e-2, final_learning_rate=1e-2, learning_starts=0, replay_ratio=4))
    positions = collect(300)
    learner.add(positions)
    first = learner.learn()
    learner.add(positions)
    second = learner.learn()
    for name in ("train/policy_kl", "train/value_loss", "train/aux_loss"):
        assert second[name] < first[name]


def test_the_buffer_keeps_the_newest_positions() -> None:
    learner = Learner(replace(TINY, buffer_size=100))
    positions = collect(300)
    learner.add(positions)
    kept = {row.tobytes() for row in learner.buffer.states}
    assert kept == {row.tobytes() for row in positions.states[-100:]}


def test_search_network_and_self_play_know_no_hand_made_play() -> None:
    written_by_hand = {"greedy", "heuristic_value", "mcts", "scoring_forecast", "flat-mc"}
    for module in ("search", "search_agent", "entity", "tree"):
        assert not {name.rpartition(".")[2] for name in imports(f"montecristo_agents.{module}")} & written_by_hand
    for module in ("alphazero", "alphazero_settings", "entity", "episodes", "workers"):
        assert not {name.rpartition(".")[2] for name in imports(f"montecristo_train.{module}")} & written_by_hand


def test_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    networks = []
    for name in ("a", "b", "c"):
        settings = replace(TINY, seed=int(name == "c"))
        new_folder(tmp_path / name, settings)
        networks.append(train(settings, tmp_path / name))
    for name, tensor in networks[0].tensors.items():
        np.testing.assert_array_equal(tensor, networks[1].tensors[name])
    assert any((tensor != networks[2].tensors[name]).any() for name, tensor in networks[0].tensors.items())
    lines = [json.loads(line) for line in (tmp_path / "a" / METRICS).read_text().splitlines()]
    assert lines[-1]["steps"] >= TINY.total_timesteps and "win_rate/random_search_2" in lines[-1]
    assert any("train/policy_loss" in line for line in lines)
    assert (tmp_path / "a" / CURVE).exists() and list((tmp_path / "a" / TENSORBOARD).iterdir())
    games = GameBatch(3, seed=0)
    for agent in (PolicyAgent(tmp_path / "a" / AGENT), policy_mcts(f"{tmp_path}/a/agent.safetensors:4")):
        assert games.copy().step(agent.act(PublicView(games), np.arange(3))) is None


def test_a_checkpoint_brings_everything_back(tmp_path: Path) -> None:
    learner = Learner(TINY)
    learner.add(collect(600))
    learner.learn()
    learner.save(tmp_path / "checkpoint", {"latest": {}})
    other = Learner(TINY)
    assert other.load(tmp_path / "checkpoint")["latest"] == {}
    assert other.positions == learner.positions and other.rng.integers(1 << 60) == learner.rng.integers(1 << 60)
    other.buffer, other.filled = learner.buffer, learner.filled
    learner._due = other._due = 200.0
    assert learner.learn() == other.learn()


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    Learner(TINY).save(path, {})
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(InvalidArgument, match="damaged"):
        Learner(TINY).load(path)


def test_a_run_goes_on_after_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = replace(TINY, n_workers=2, total_timesteps=2000)
    new_folder(folder, settings)
    command = [sys.executable, "-m", "montecristo_train.alphazero", "--resume", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (folder / CHECKPOINT).exists():
        assert process.poll() is None or (folder / CHECKPOINT).exists()  # on a busy machine it may end between the two
        time.sleep(0.05)
    process.kill()
    process.wait()
    learner = Learner(settings)
    learner.load(folder / CHECKPOINT)
    assert learner.positions >= settings.checkpoint_every
    network = train(read_settings(folder, Settings), folder, resume=True)
    assert network.training["steps"] >= 2000
    steps = [json.loads(line)["steps"] for line in (folder / METRICS).read_text().splitlines()]
    assert steps == sorted(steps)


def test_the_death_of_a_worker_is_noticed() -> None:
    workers = Workers(replace(TINY, n_workers=1), 0)
    workers.collect(weights(), 0)
    workers.processes[0].kill()
    workers.processes[0].join()
    with pytest.raises(WorkerDied, match="--resume"):
        workers.collect(weights(), 0)
    workers.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_envs": 0}, "n_envs must be a whole number from 1 to .*, but is 0"),
        ({"n_workers": 13}, "n_envs must be at least n_workers, 13, but is 12"),
        ({"n_workers": -1}, "n_workers must be a whole number from 0 to .*, but is -1"),
        ({"td_lambda": 1.5}, "td_lambda must be a number from 0 to 1, but is 1.5"),
        ({"average_rate": -0.1}, "average_rate must be a number from 0 to 1, but is -0.1"),
        ({"max_simulations": 1}, "max_simulations must be at least min_simulations, 2, but is 1"),
        ({"players": (0, 0, 0)}, "players must have a share that is not 0"),
        ({"buffer_size": 10}, "buffer_size must be at least batch_size, 64, but is 10"),
        ({"evaluate_against": ()}, "evaluate_against must not be empty"),
        ({"ray": 1}, "ray must be a bool, but is 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        replace(TINY, **change)


def test_simulations_follow_the_number_of_moves() -> None:
    settings = PRESETS["full"][1]
    assert settings.budgets(settings.total_timesteps - 1) == [8, 10, 14, 18, 22, 26, 30, 34]


def test_there_are_fewer_simulations_at_first() -> None:
    settings = PRESETS["full"][1]
    fewer, more = [8, 8, 8, 10, 12, 14, 16, 18], settings.budgets(settings.total_timesteps)
    switch = int(settings.fewer_until * settings.total_timesteps)
    assert settings.budgets(0) == settings.budgets(switch - 1) == fewer
    assert settings.budgets(switch) == more > fewer


def test_play_goes_on_when_the_number_of_simulations_changes() -> None:
    self_play = make_self_play(TINY, 0, 0)
    self_play.collect(weights(), 4000, 1.0, [2] * 2)  # so that games are of all ages
    evaluations = [self_play.collect(weights(), 4000, 1.0, [budget] * 2)[1]["evaluations"] for budget in (2, 6, 2)]
    assert evaluations[1] > 1.5 * max(evaluations[0], evaluations[2])


def test_settings_survive_a_run_folder(tmp_path: Path) -> None:
    new_folder(tmp_path / "run", TINY)
    assert asdict(read_settings(tmp_path / "run", Settings)) == asdict(TINY)


def test_presets_are_subcommands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = []

    def fake_train(settings: Settings, folder: Path, resume: bool) -> EntityNetwork:
        seen.append((settings, folder, resume))
        return export(random_module(), {"win_rates": {}, "steps": 0})

    monkeypatch.setattr(alphazero, "train", fake_train)
    alphazero.main(["smoke", "--run", str(tmp_path / "run"), "--n-envs", "7"])
    expected = replace(PRESETS["smoke"][1], n_envs=7, ruleset=str(Ruleset()))
    assert seen == [(expected, tmp_path / "run", False)]


def test_the_newest_positions_are_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(TINY, min_window=100, window=0.2, buffer_size=400, learning_starts=1, replay_ratio=3.0)
    learner, learnt = Learner(settings), []

    def see(buffer: Positions, picked: NDArray[np.int64]) -> Any:
        learnt.extend(buffer.targets[picked, 0].tolist())
        return prepare(buffer, picked)

    monkeypatch.setattr(alphazero, "prepare", see)
    given = collect(400).first(300)
    for played, oldest in ((300, 200), (600, 480), (900, 720), (2700, 2300)):
        while learner.positions < played:
            given.targets[:, 0] = learner.positions + np.arange(300)  # their number; only the last are looked at
            learner.add(given)
        learnt.clear()
        learner.learn()
        assert oldest <= min(learnt) < oldest + 20 and played - 20 < max(learnt) < played


# --- make run


def test_the_demo_trains_measures_and_shows_a_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(demo.PRESETS, "quick", ("in no time", TINY))
    monkeypatch.setattr(demo, "DEALS", 3)
    monkeypatch.setattr(demo, "OPPONENTS", ("random", "greedy"))
    demo.main([])
    shown = capsys.readouterr().out
    (folder,) = (tmp_path / "runs" / "demo").iterdir()
    assert "yours" in shown and "Win rate %" in shown and str(folder.relative_to(tmp_path)) in shown
    assert (folder / CURVE).is_file() and EntityNetwork.load(folder / AGENT).sizes == TINY.sizes
    assert GameRecord.load(folder / demo.GAME).result is not None
    assert "yours" in (folder / demo.REPLAY).read_text()
    with pytest.raises(InvalidArgument, match="give one of smoke, quick, full, not 'fast'"):
        demo.main(["fast"])
