"""Self-play training: the tables, the pool, runs that are killed and go on, and the agents that come out."""

from __future__ import annotations

import dataclasses
import errno
import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch
from rich.console import Console
from rich.progress import Progress
from safetensors import safe_open
from safetensors.numpy import save
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import Logger

from montecristo_agents.policy import Network, PolicyAgent, checksum
from montecristo_env import GameBatch, GameRecord, InvalidArgument, Ruleset, actions, make_agent, observation
from montecristo_env.agent import PublicView
from montecristo_env.core.constants import MAX_PLAYERS, Decision
from montecristo_env.core.layout import STATE
from montecristo_env.files import LOCK, locked
from montecristo_train import curve, demo, lessons, ppo
from montecristo_train.checkpoint import past_self
from montecristo_train.network import export
from montecristo_train.pool import Opponent, Pool
from montecristo_train.selfplay import LEARNER, SelfPlayVecEnv, make_env
from montecristo_train.settings import SMOKE, Settings

TINY = dataclasses.replace(
    SMOKE,
    steps=4 * 8 * 16,
    tables=8,
    rollout=16,
    hidden=(16,),
    batch=64,
    past_share=0.3,
    scripted_share=0.3,
    scripted=("random",),
    snapshot_every=1,
    evaluate_every=2,
    evaluate_against=("random",),
    evaluate_deals=2,
    checkpoint_every=1,
    threads=1,
)


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


class Steady:
    """A scripted player for tests that plays at random, but not by the engine."""

    name = "steady"

    def act(self, games: PublicView, rows: np.ndarray) -> np.ndarray:
        return games.sample_actions(rows)


class Steadfast:
    """A teacher for tests that always takes the last legal action."""

    name = "steadfast"

    def act(self, games: PublicView, rows: np.ndarray) -> np.ndarray:
        masks = games.action_mask(rows=rows)
        return masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)


def tables(pool: Pool, num_games: int = 12) -> SelfPlayVecEnv:
    return SelfPlayVecEnv(np.resize([2, 3, 4], num_games), pool, seed=0)


# --- the tables


def test_a_run_plays_by_its_rule_set() -> None:
    settings = dataclasses.replace(TINY, ruleset="target=5,game_end=chest")
    assert ppo.make_env(settings).games.ruleset == Ruleset(target=5, game_end="chest")


@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.5, 0.5)])
def test_it_is_always_a_turn_of_the_learner_and_every_seat_gets_what_the_game_pays(
    shares: tuple[float, float],
) -> None:
    members = [Opponent(Steady(), past_self=True), Opponent(Steady(), past_self=False)]
    env = tables(Pool(*shares, members=members))
    env.reset()
    rows = np.arange(env.num_envs)
    ends = paid_out = 0
    for _ in range(600):
        assert (env.holders[rows, env.deciders] == LEARNER).all()
        before = env.deciders
        _, rewards, ended, infos = env.step(env.games.sample_actions())
        assert (env.acted == before).all()
        np.testing.assert_array_equal(rewards, env.paid[rows, before])
        np.testing.assert_array_equal(np.array(["episode" in info for info in infos]), ended)
        assert not env.paid[~ended].any()
        np.testing.assert_allclose(env.paid.sum(axis=1), 0, atol=1e-6)
        ends += int(ended.sum())
        paid_out += int(env.paid[ended].any(axis=1).sum())
    assert paid_out > 0.8 * ends  # a win that all share pays nothing
    assert ends > 10
    held = (env.holders != LEARNER).any()
    assert held == (sum(shares) > 0)


def test_the_pool_never_holds_all_seats_and_all_kinds_of_tables_occur() -> None:
    pool = Pool(0.5, 0.5, members=[Opponent(Steady(), past_self=True), Opponent(Steady(), past_self=False)])
    env = tables(pool, 300)
    players = env.games.num_players
    held = (env.holders != LEARNER).sum(axis=1)
    assert (held < players).all() and (held > 0).all()
    assert set(held[players == 4]) == {1, 2, 3}
    assert set(env.holders[env.holders != LEARNER]) == {0, 1}


def test_shaping_pays_the_change_of_the_margin_and_sums_to_the_potential_of_the_start() -> None:
    """Over a whole game the shaping is minus the potential at its first decision: it changes nothing that matters."""
    shaped, plain = tables(Pool(0.0, 0.0), 30), tables(Pool(0.0, 0.0), 30)
    shaped.shaping = 0.5
    totals = np.zeros((30, MAX_PLAYERS))
    plain_totals = totals.copy()
    finished = np.zeros(30, np.bool_)
    begun = shaped._potentials()
    for _ in range(700):
        acts = shaped.games.sample_actions()
        assert (plain.games.sample_actions() == acts).all()
        for env, sums in ((shaped, totals), (plain, plain_totals)):
            env.step(acts)
            sums[~finished] += env.paid[~finished]
        finished |= shaped.ended
    assert finished.mean() > 0.9
    np.testing.assert_allclose((totals - plain_totals)[finished], -begun[finished], atol=1e-4)


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
    assert (folder / ppo.CURVE).is_file() and Network.load(folder / ppo.AGENT).hidden == TINY.hidden
    assert GameRecord.load(folder / demo.GAME).result is not None
    assert "yours" in (folder / demo.REPLAY).read_text()
    with pytest.raises(InvalidArgument, match="give one of smoke, quick, full, not 'fast'"):
        demo.main(["fast"])


# --- lessons

PUPIL = dataclasses.replace(
    TINY, steps=40 * 64 * 32, tables=64, rollout=32, batch=256, hidden=(64,), learning_rate=5e-3
)


def pupil() -> tuple[MaskablePPO, SelfPlayVecEnv]:
    """A new network that can be taught, and its tables."""
    env = make_env(PUPIL)
    model = ppo.make_model(PUPIL, env)
    model._total_timesteps = PUPIL.steps
    model.set_logger(Logger(None, []))
    return model, env


def test_lessons_teach_what_is_worth_most_though_every_single_try_is_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    model, env, teacher = *pupil(), Steadfast()
    rng = np.random.default_rng(0)

    def try_out(games: PublicView, rows: np.ndarray, *_: int) -> np.ndarray:
        best = np.arange(actions.COUNT) == teacher.act(games, rows)[:, None]
        noisy = 0.5 + 0.1 * best + rng.normal(scale=0.1, size=best.shape)
        return np.where(games.action_mask(rows=rows), noisy, 0).astype(np.float32)

    monkeypatch.setattr(lessons, "try_out", try_out)
    told: list[int] = []
    lessons.give_lessons(model, env, PUPIL.steps, lambda: told.append(model.num_timesteps), lessons.Subject())
    assert told == [64 * 32 * number for number in range(1, 41)]
    games = GameBatch(30, np.resize([2, 3, 4], 30), seed=1)
    games.play_random(40)
    rows = np.arange(30)
    view = PublicView(games)
    assert (PolicyAgent(export(model, {})).act(view, rows) == teacher.act(view, rows)).mean() > 0.9


def test_what_a_lesson_costs_is_worked_out_by_hand() -> None:
    settings = dataclasses.replace(TINY, value_weight=0.5)
    env = make_env(settings)
    model = ppo.make_model(settings, env)
    with torch.no_grad():
        for layer in (model.policy.action_net, model.policy.value_net):
            layer.weight.zero_()
            layer.bias.zero_()
        model.policy.action_net.bias[0] = np.log(3)  # chosen three times as often as the other
    seen, masks = torch.as_tensor(env.reset()[:1]), torch.zeros(1, actions.COUNT, dtype=torch.bool)
    masks[0, :2] = True
    shares = torch.zeros(1, actions.COUNT)
    shares[0, :2] = torch.tensor([0.5, 0.3])
    loss = lessons.loss_of(model, seen, masks, shares, torch.tensor([3.0]))
    expected = 0.75 * 0.5 + 0.25 * 0.3  # of the win
    gain = (expected - 0.4) * 3 / 2
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    value = (3 * expected - 1) / 2  # as the reward of a game with three players
    assert loss.item() == pytest.approx(0.5 * value**2 - gain / lessons.WORTH - entropy, rel=1e-4)


def test_lessons_on_some_kinds_of_decision_leave_the_others_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, env, teacher = *pupil(), Steadfast()
    with torch.no_grad():
        model.policy.action_net.weight.mul_(20)  # so that it has something to hold on to
        model.policy.value_net.weight.mul_(0.2)
        model.policy.value_net.bias.fill_(0.5)
    export(model, {}).save(tmp_path / "start.safetensors")
    asked: set[int] = set()

    def try_out(games: PublicView, rows: np.ndarray, tries: int, rounds: int) -> np.ndarray:
        assert (tries, rounds) == (3, 2)
        asked.update(games["decision"][rows].tolist())
        best = np.arange(actions.COUNT) == teacher.act(games, rows)[:, None]
        return np.where(games.action_mask(rows=rows), 0.5 + 0.1 * best, 0).astype(np.float32)

    monkeypatch.setattr(lessons, "try_out", try_out)
    about = lessons.subject(3, 2, ("put_token", "deal"), str(tmp_path / "start.safetensors"))
    lessons.give_lessons(model, env, PUPIL.steps, lambda: None, about)
    assert asked == {Decision.PUT_TOKEN, Decision.DEAL}

    games = GameBatch(1000, np.resize([2, 3, 4], 1000), seed=1)
    games.play_random(40)
    view, rows = PublicView(games), np.arange(1000)
    before, after = PolicyAgent(tmp_path / "start.safetensors"), PolicyAgent(export(model, {}))
    was, became = before.evaluate(view, rows), after.evaluate(view, rows)
    moved = np.abs(was.probabilities - became.probabilities).sum(axis=1) / 2  # from some choices to others
    taught = np.isin(games.states["decision"], list(asked))
    assert (after.act(view, rows) == teacher.act(view, rows))[taught].mean() > 0.9
    assert moved[taught].mean() > 0.5
    assert moved[~taught].mean() < 0.1
    assert np.abs(was.values - became.values).mean() < 0.1


def test_a_subject_that_cannot_be_taught_is_refused(tmp_path: Path) -> None:
    assert lessons.subject(4, 2, (), "") == lessons.Subject(tries=4, rounds=2)
    with pytest.raises(InvalidArgument, match="at least one try and one round, not 1 and 0"):
        lessons.subject(1, 0, (), "")
    with pytest.raises(InvalidArgument, match="no kind of decision is called putting: these are deal, discard, place"):
        lessons.subject(1, 1, ("deal", "putting"), "start.safetensors")
    with pytest.raises(InvalidArgument, match="need a network to --start from"):
        lessons.subject(1, 1, ("deal",), "")


def test_half_precision_learns_nearly_the_same(tmp_path: Path) -> None:
    games = GameBatch(200, 2, seed=1)
    games.play_random(40)
    seen = torch.as_tensor(games.observe())
    logits = []
    for bfloat16 in (False, True):
        settings = dataclasses.replace(TINY, bfloat16=bfloat16, hidden=(64, 64))
        model = ppo.make_model(settings, make_env(settings))
        features = model.policy.extract_features(seen)
        assert features.dtype == torch.float32
        logits.append(model.policy.action_net(features).detach())
    assert not torch.equal(*logits)
    assert torch.allclose(*logits, rtol=0.05, atol=0.05 * logits[0].abs().max().item())


# --- the pool


def test_opponents_that_still_win_are_favoured_and_the_weakest_goes_first() -> None:
    pool = Pool(1.0, 0.0, size=2)
    weak, strong = PolicyLike("weak"), PolicyLike("strong")
    assert pool.add_past_self(weak) is None and pool.add_past_self(strong) is None
    for _ in range(50):
        pool.count(0, 0.1)
        pool.count(1, 0.9)
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(500):
        drawn.append(pool.draw(rng))
        pool.guest = None
    assert drawn.count(1) > 10 * drawn.count(0) > 0
    assert pool.add_past_self(PolicyLike("new")) == 0
    assert [member.agent.name for member in pool.members] == ["new", "strong"]


def test_games_that_begin_in_the_same_rollout_meet_the_same_past_self() -> None:
    pool = Pool(1.0, 0.0, size=10)
    for number in range(10):
        pool.add_past_self(PolicyLike(str(number)))
    rng = np.random.default_rng(0)
    guests = []
    for _ in range(30):
        drawn = {pool.draw(rng) for _ in range(20)}
        assert len(drawn) == 1
        guests += drawn
        pool.forget()
    assert len(set(guests)) > 5


def test_alone_means_against_scripted_players() -> None:
    members = [Opponent(Steady(), past_self=False), Opponent(Steady(), past_self=True)]
    env = tables(Pool(0.5, 0.5, alone=True, members=members), 300)
    held = (env.holders != LEARNER).sum(axis=1)
    places = env.holders.max(axis=1)
    np.testing.assert_array_equal(held[places == 0], env.games.num_players[places == 0] - 1)
    assert set(held[(places == 1) & (env.games.num_players == 4)]) == {1, 2, 3}


def test_the_rating_grows_by_what_the_results_against_past_selves_say() -> None:
    pool = Pool(1.0, 0.0, size=3)
    assert pool.rating == 0
    pool.add_past_self(PolicyLike("first"))
    for _ in range(10_000):
        pool.count(0, 1 / 11)  # ten wins to one are 400 points
    assert pool.rating == pytest.approx(400, abs=2)
    pool.add_past_self(PolicyLike("second"))
    assert pool.members[1].rating == pytest.approx(400, abs=2)
    for _ in range(2_000):
        pool.forget()
    for _ in range(10_000):
        pool.count(1, 1 / 11)
        pool.count(0, 1 / 101)
    assert pool.rating == pytest.approx(800, abs=5)


class PolicyLike(Steady):
    def __init__(self, name: str) -> None:
        self.name = name


def test_the_members_of_a_pool_play_together_as_each_would_alone() -> None:
    env = tables(Pool(0.0, 0.0), 60)
    members = [Opponent(make_agent("greedy"), past_self=False)]
    for _ in range(3):
        model = ppo.make_model(TINY, env)
        for parameter in model.policy.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        members.append(Opponent(past_self(export(model, {})), past_self=True))
    games, alone = env.games, env.games.copy()
    rows = np.arange(3, 60, 2)
    places = np.random.default_rng(0).integers(0, len(members), rows.size)
    together = Pool(0.5, 0.5, members=members).act(PublicView(games), rows, places)
    for place, member in enumerate(members):
        his = places == place
        np.testing.assert_array_equal(together[his], member.agent.act(PublicView(alone), rows[his]))
    assert len(set(together.tolist())) > 3


def test_shares_of_games_are_as_set() -> None:
    pool = Pool(0.2, 0.1, members=[Opponent(Steady(), past_self=False), Opponent(Steady(), past_self=True)])
    rng = np.random.default_rng(0)
    drawn = [pool.draw(rng) for _ in range(5000)]
    assert drawn.count(1) / 5000 == pytest.approx(0.2, abs=0.03)
    assert drawn.count(0) / 5000 == pytest.approx(0.1, abs=0.03)
    assert Pool(1.0, 0.0).draw(rng) is None  # nobody there yet


# --- the network


def test_the_exported_agent_plays_as_the_torch_model() -> None:
    env = tables(Pool(0.0, 0.0), 60)
    model = ppo.make_model(TINY, env)
    for parameter in model.policy.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    env.games.play_random(30)
    env.games.reset()
    network = export(model, {"note": "test"})
    seen, masks = env.games.observe(), env.games.action_mask()
    expected, _ = model.predict(seen, action_masks=masks, deterministic=True)
    np.testing.assert_array_equal(PolicyAgent(network).act(PublicView(env.games), np.arange(60)), expected)
    _, values = network.evaluate(seen)
    with torch.no_grad():
        wanted = model.policy.predict_values(torch.as_tensor(seen)).numpy().flatten()
    np.testing.assert_allclose(values, wanted, rtol=1e-3, atol=1e-4)


# --- runs


def run(folder: Path, settings: Settings = TINY, **options: Any) -> Network:
    if not options.get("resume"):
        ppo.new_folder(folder, settings)
    return ppo.train(settings, folder, **options)


def weights(folder: Path) -> dict[str, np.ndarray]:
    return {name: np.asarray(tensor) for name, tensor in Network.load(folder / ppo.AGENT).tensors.items()}


def test_a_run_leaves_an_agent_metrics_and_a_curve(tmp_path: Path) -> None:
    settings = dataclasses.replace(TINY, steps=4 * TINY.steps)  # until games have ended
    run(tmp_path, settings)
    lines = [json.loads(line) for line in (tmp_path / ppo.METRICS).read_text().splitlines()]
    assert [line["steps"] for line in lines] == sorted(line["steps"] for line in lines)
    assert lines[-1]["steps"] == settings.steps
    for name in ("win_rate/random", "train/entropy_loss", "train/approx_kl", "train/explained_variance", "game/margin"):
        assert name in lines[-1], name
    assert "game/margin" not in lines[0]  # nobody knows it yet
    evaluated = ["win_rate/random" in line for line in lines]  # and not said again while nothing new was measured
    assert evaluated == [line["rollouts"] % settings.evaluate_every == 0 for line in lines[:-1]] + [True]
    assert not all(evaluated)
    assert (tmp_path / ppo.CURVE).read_bytes().startswith(b"\x89PNG")
    facts = json.loads((tmp_path / ppo.SETTINGS).read_text())
    assert facts["settings"]["seed"] == TINY.seed and "torch" in facts["made_with"]
    assert ppo.read_settings(tmp_path, Settings) == settings
    agent = make_agent(f"policy:{tmp_path / ppo.AGENT}")
    games = GameBatch(3, [2, 3, 4], seed=0)
    games.step(agent.act(PublicView(games), np.arange(3)))
    assert list((tmp_path / "tensorboard").iterdir())


def test_a_curve_shows_what_was_measured_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(curve, "png", lambda figure: drawn.append(figure) or b"")
    lines = [{"steps": step, "train/entropy_loss": -0.1} for step in range(100)]
    lines.append({"steps": 100, "win_rate/greedy": 0.9})
    (tmp_path / "metrics").write_text("".join(json.dumps(line) + "\n" for line in lines))
    curve.draw_curve(tmp_path / "metrics", tmp_path / "picture")
    once, often = (axis.lines[0] for axis in drawn[0].axes[:2])
    assert len(once.get_xdata()) == 1 and once.get_marker() == "o"
    assert len(often.get_xdata()) == 100 and often.get_marker() == "None"


@pytest.mark.parametrize("taught", [0, 6])
def test_a_killed_run_goes_on_to_the_same_result(tmp_path: Path, taught: int) -> None:
    """A real kill -9, at whatever moment it hits, after the first checkpoint; with lessons most likely during these."""
    settings = dataclasses.replace(TINY, steps=10 * 8 * 16, lessons=taught * 8 * 16)
    run(tmp_path / "whole", settings)
    program = (
        "import sys, json; from pathlib import Path; from montecristo_train import ppo\n"
        "folder = Path(sys.argv[1]); ppo.train(ppo.read_settings(folder, ppo.Settings), folder)"
    )
    ppo.new_folder(tmp_path / "killed", settings)
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
    checkpoint = tmp_path / "killed" / ppo.CHECKPOINT
    while not checkpoint.exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    run(tmp_path / "killed", settings, resume=True)
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    for name, tensor in expected.items():
        np.testing.assert_array_equal(found[name], tensor, err_msg=name)
    steps = [json.loads(line)["steps"] for line in (tmp_path / "killed" / ppo.METRICS).read_text().splitlines()]
    whole = [json.loads(line)["steps"] for line in (tmp_path / "whole" / ppo.METRICS).read_text().splitlines()]
    assert steps == whole


def test_a_run_that_was_stopped_before_its_first_checkpoint_begins_again(tmp_path: Path) -> None:
    ppo.new_folder(tmp_path / "stopped", TINY)
    (tmp_path / "stopped" / ppo.METRICS).write_text('{"steps": 128}\n')
    run(tmp_path / "stopped", resume=True)
    run(tmp_path / "whole")
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "stopped")
    for name, tensor in expected.items():
        np.testing.assert_array_equal(found[name], tensor, err_msg=name)
    files = [tmp_path / name / ppo.METRICS for name in ("whole", "stopped")]
    assert len({tuple(json.loads(line)["steps"] for line in file.read_text().splitlines()) for file in files}) == 1


def test_learning_never_goes_backwards_though_the_last_rollout_goes_beyond_the_steps(tmp_path: Path) -> None:
    settings = dataclasses.replace(TINY, steps=1, learning_rate=1e-3, final_learning_rate=1e-4)
    run(tmp_path, settings)
    last = json.loads((tmp_path / ppo.METRICS).read_text().splitlines()[-1])
    assert last["steps"] == 8 * 16 and last["train/learning_rate"] == 1e-4


def test_a_checkpoint_that_cannot_be_written_leaves_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    before = (tmp_path / ppo.CHECKPOINT).read_bytes()
    env = ppo.make_env(TINY)
    model = ppo.make_model(TINY, env)

    def no_room(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_room)
    with pytest.raises(OSError, match="No space left"):
        ppo.write_checkpoint(tmp_path / ppo.CHECKPOINT, model, env, {})
    assert (tmp_path / ppo.CHECKPOINT).read_bytes() == before


Going = tuple[MaskablePPO, SelfPlayVecEnv]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in the middle of a run, with past selves in its pool and at its tables."""
    folder = tmp_path_factory.mktemp("run") / "run"
    run(folder, dataclasses.replace(TINY, steps=20 * 8 * 16, past_share=0.6))
    return folder / ppo.CHECKPOINT


def beginning(settings: Settings = TINY) -> Going:
    env = make_env(settings)
    return ppo.make_model(settings, env), env


def everything(model: MaskablePPO, env: SelfPlayVecEnv) -> list[Any]:
    """All that a checkpoint could change, in plain values."""
    weights = {name: tensor.tolist() for name, tensor in model.policy.state_dict().items()}
    counters = model.num_timesteps, model._n_updates, str(model.policy.optimizer.state_dict()["state"])
    tables = env.games.states.tobytes(), env.holders.tolist(), str(env.rng.bit_generator.state)
    pool = [(id(member.agent), member.games, member.wins) for member in env.pool.members]
    chance = torch.get_rng_state().tolist(), str(np.random.get_state())  # noqa: NPY002 (Stable-Baselines3 uses it)
    return [weights, counters, tables, pool, chance]


def rewritten(path: Path, folder: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> Path:
    """A copy of a checkpoint with something else in it, and a true checksum."""
    with safe_open(path, framework="np") as file:
        facts = json.loads(file.metadata()["facts"])
        tensors = {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    change(facts, tensors)
    header = {"facts": json.dumps(facts)}
    (folder / ppo.CHECKPOINT).write_bytes(save(tensors, header | {"checksum": checksum(header, tensors)}))
    return folder / ppo.CHECKPOINT


def test_every_flipped_bit_of_a_checkpoint_is_refused_and_nothing_changes(checkpoint: Path, tmp_path: Path) -> None:
    content = checkpoint.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    rng = np.random.default_rng(0)
    places = [*range(8), *rng.integers(8, header, 150).tolist(), *rng.integers(header, len(content), 250).tolist()]
    going = beginning()
    before = everything(*going)
    path = tmp_path / ppo.CHECKPOINT
    for place in places:
        flipped = bytes([content[place] ^ 1 << int(rng.integers(8))])
        path.write_bytes(content[:place] + flipped + content[place + 1 :])
        with pytest.raises(InvalidArgument, match=f"{path} is no checkpoint that this run can go on from"):
            ppo.read_checkpoint(path, *going, TINY.hidden)
    assert everything(*going) == before
    path.write_bytes(content)
    ppo.read_checkpoint(path, *going, TINY.hidden)
    assert everything(*going) != before


def _put(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(facts: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        facts[name] = value

    return change


def _spoil_a_game(field: str) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(facts: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        tensors["games"].view(STATE)[field][3] += 1

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_put("format", 1), "it has the format 1, but this version reads 2"),
        (_put("steps", -1), "steps must be a whole number from 0, but is -1"),
        (_put("rollouts", "x"), "rollouts must be a whole number from 0, but is 'x'"),
        (_put("latest", {"win_rate/random": None}), "win rates must be finite numbers"),
        (_put("pool", []), r"its scripted players are \[\], but this run's are \['random'\]"),
        (_put("env_random", {}), "KeyError|ValueError"),
        (_put("numpy_random", ["MT19937", "x", 0, 0.0]), "ValueError|TypeError"),
        (_spoil_a_game("num_players"), "its games have another num_players than those of this run"),
        (_spoil_a_game("target"), "its games have another target than those of this run"),
        (_spoil_a_game("supply"), r"1 of its games are not sane; in game 3 these are not: \['adventurers'"),
        (lambda _, t: t.update(holders=t["holders"] * 0), "must leave a seat of every game to the learner"),
        (lambda _, t: t["holders"].put(0, 99), "leave a seat|places of the pool"),
        (lambda _, t: t.update(games=t["games"][:-1]), r"games must be uint8 of shape \(8, \d+\)"),
        (lambda _, t: t.pop("policy.value_net.bias"), "its policy has not the parts of this run's"),
        (lambda _, t: t.pop("optimiser.0.step"), "its optimiser has not the parts of this run's"),
        (lambda _, t: t["policy.value_net.bias"].fill(np.nan), "value_net.bias has values that are not finite"),
        (lambda _, t: t.update({"optimiser.0.step": np.zeros(1, np.float32)}), r"must be float32 of shape \(\)"),
        (lambda _, t: t.pop("torch_random"), "KeyError: 'torch_random'"),
        (lambda _, t: t.update(torch_random=t["torch_random"][:9]), "RuntimeError"),
    ],
)
def test_a_checkpoint_that_makes_no_sense_is_refused_and_nothing_changes(
    checkpoint: Path, tmp_path: Path, change: Callable[..., None], message: str
) -> None:
    """Even if its checksum is right."""
    going = beginning()
    before = everything(*going)
    with pytest.raises(InvalidArgument, match=message):
        ppo.read_checkpoint(rewritten(checkpoint, tmp_path, change), *going, TINY.hidden)
    assert everything(*going) == before


def test_a_checkpoint_of_other_settings_is_refused_by_what_differs(checkpoint: Path) -> None:
    for change, message in (
        ({"hidden": (17,)}, r"must be float32 of shape \(17, \d+\), as this run's settings have it, but is"),
        ({"tables": 9}, r"games must be uint8 of shape \(9"),
        ({"players": (0.0, 0.5, 0.5)}, "its games have another num_players"),
        ({"scripted": ("greedy",)}, r"its scripted players are \['random'\], but this run's are \['greedy'\]"),
    ):
        settings = dataclasses.replace(TINY, **change)
        with pytest.raises(InvalidArgument, match=message):
            ppo.read_checkpoint(checkpoint, *beginning(settings), settings.hidden)


@pytest.mark.parametrize(
    ("name", "written", "failing"),
    [
        (ppo.CHECKPOINT, "montecristo_train.checkpoint.write_whole", 2),
        (ppo.AGENT, "montecristo_agents.policy.write_whole", 2),
        (ppo.CURVE, "montecristo_train.curve.write_whole", 1),
    ],
)
def test_a_full_disk_stops_the_run_by_name_and_the_older_checkpoint_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, written: str, failing: int
) -> None:
    """There is no room for the file when it is written that time; later there is, and all ends as if nothing was."""
    run(tmp_path / "whole")
    module, _, function = written.rpartition(".")
    write = getattr(importlib.import_module(module), function)
    calls: list[Path] = []

    def full(path: Path, content: bytes) -> None:
        calls.append(path)
        if len(calls) == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content)

    folder = tmp_path / "full"
    ppo.new_folder(folder, TINY)
    monkeypatch.setattr(written, full)
    with pytest.raises(ppo.CannotWrite, match=f"cannot write .*{name}: No space left .* --resume") as caught:
        ppo.train(TINY, folder)
    assert caught.value.__suppress_context__
    run(folder, resume=True)
    expected = weights(tmp_path / "whole")
    for tensor, values in weights(folder).items():
        np.testing.assert_array_equal(values, expected[tensor], err_msg=tensor)


def test_metrics_that_cannot_be_written_stop_the_run_and_half_a_line_is_forgotten(tmp_path: Path) -> None:
    run(tmp_path)
    whole = (tmp_path / ppo.METRICS).read_text()
    with (tmp_path / ppo.METRICS).open("a") as file:
        file.write('{"steps": 51')
    ppo.forget_metrics_after(tmp_path / ppo.METRICS, TINY.steps)
    assert (tmp_path / ppo.METRICS).read_text() == whole
    (tmp_path / ppo.METRICS).unlink()
    (tmp_path / ppo.METRICS).mkdir()
    coach = ppo.Coach(TINY, tmp_path, ppo.make_env(TINY), Progress())
    coach.model = ppo.make_model(TINY, coach.env)
    coach.model.set_logger(Logger(None, []))
    with pytest.raises(ppo.CannotWrite, match=f"cannot write .*{ppo.METRICS}: Is a directory"):
        coach._log(0.0)


@pytest.mark.parametrize("arguments", [["--resume"], ["--resume", "one", "two"], ["--resume", "nowhere"]])
def test_a_bad_resume_is_refused_without_a_traceback(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        ppo.run_command(ppo.main, arguments)
    assert stopped.value.code == os.EX_USAGE
    assert ("--resume RUN" if len(arguments) != 2 else "is no folder of a training run") in capsys.readouterr().err


def test_a_full_disk_has_an_exit_status_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    def command(arguments: list[str]) -> None:
        with ppo.writing(Path("run") / ppo.CHECKPOINT):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(SystemExit) as stopped:
        ppo.run_command(command, [])
    assert stopped.value.code == os.EX_IOERR
    assert "cannot write run/checkpoint.safetensors" in capsys.readouterr().err


def test_bad_folders_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    with pytest.raises(InvalidArgument, match="is not empty"):
        ppo.new_folder(tmp_path / "full", TINY)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match="cannot write to"):
        ppo.new_folder(tmp_path / "file" / "run", TINY)
    with pytest.raises(InvalidArgument, match="is no folder of a training run"):
        ppo.read_settings(tmp_path, Settings)
    (tmp_path / ppo.CHECKPOINT).write_bytes(b"damaged")
    env = ppo.make_env(TINY)
    with pytest.raises(InvalidArgument, match="is no checkpoint that this run can go on from: it cannot be read"):
        ppo.read_checkpoint(tmp_path / ppo.CHECKPOINT, ppo.make_model(TINY, env), env, TINY.hidden)


def test_observations_are_what_the_network_was_made_for() -> None:
    assert ppo.make_env(TINY).observation_space.shape == (observation.SIZE,)


# --- what people see


def test_progress_at_80_columns_shows_speed_and_time_left_and_wins_on_a_line_of_their_own() -> None:
    console = Console(width=80, force_terminal=True, file=io.StringIO())
    progress = ppo.TwoLines(console)
    bar = progress.add_task("training", total=50_000_000, fps=0.0, results="")
    assert len(list(progress.get_renderables())) == 1
    rates = {f"win_rate/{name}": 1.0 for name in ("random", "greedy", "past_self", "greedy_3p", "greedy_4p")}
    progress.update(bar, completed=49_999_999, fps=123_456.0, results=ppo.wins(rates))
    with console.capture() as captured:
        for part in progress.get_renderables():
            console.print(part)
    lines = [re.sub("\x1b[^m]*m", "", line).rstrip() for line in captured.get().splitlines()]
    assert len(lines) == 2 and max(map(len, lines)) <= 80 and "…" not in lines[0]
    assert re.fullmatch(r"training ━+ 100 %, 123,456 steps/s, 0:00:\d\d gone, .:..:.. left", lines[0].replace("╸", "━"))
    assert lines[1] == "wins: random 100%, greedy 100%, past_self 100%, greedy_3p 100%, greedy_4p 100%"


@pytest.mark.parametrize(("rate", "says"), [(0.4, True), (0.9, False)])
def test_a_run_that_has_learnt_nothing_says_that_it_is_too_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rate: float, says: bool
) -> None:
    monkeypatch.setattr(ppo, "win_rates", lambda *_: {"win_rate/random": rate})
    presets = {"smoke": ("tiny", ppo.Run(**vars(TINY) | {"run": tmp_path / "run"}))}
    ppo.start_or_resume("ppo", Settings, presets, ppo.train, ["smoke"])
    told = f"it wins 40% against random, so it has learnt nothing yet: {TINY.steps} steps are too few to"
    assert (told in capsys.readouterr().out) == says


def test_a_folder_in_which_another_process_trains_is_refused(tmp_path: Path) -> None:
    ppo.new_folder(tmp_path / "run", TINY)
    with locked(tmp_path / "run"):
        with pytest.raises(InvalidArgument, match="another process works in"):
            ppo.train(TINY, tmp_path / "run", resume=True)
        assert {path.name for path in (tmp_path / "run").iterdir()} == {ppo.SETTINGS, LOCK}
    (tmp_path / "new").mkdir()
    with locked(tmp_path / "new"), pytest.raises(InvalidArgument, match="another process works in"):
        ppo.new_folder(tmp_path / "new", TINY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": 0}, "tables must be a whole number from 1"),
        ({"steps": 1e6}, "steps must be a whole number from 1"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4294967295, but is -1"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number from 0"),
        ({"learning_rate": 10**400}, "learning_rate must be a number from 0"),
        ({"past_share": 1.5}, "past_share must be a number from 0 to 1, but is 1.5"),
        ({"players": (1.0, 0.0)}, "players must be a list of 3"),
        ({"players": (0.0, 0.0, 0.0)}, "players must have a share that is not 0"),
        ({"hidden": ()}, "hidden must not be empty"),
        ({"hidden": (16, "x")}, "hidden must be a list, each of it a whole number from 1"),
        ({"advised": 1}, "advised must be a bool, but is 1"),
        ({"scripted": "greedy"}, "scripted must be a list, but is 'greedy'"),
    ],
)
def test_settings_that_nothing_can_be_trained_with_are_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        dataclasses.replace(TINY, **change)


def test_a_bad_setting_on_the_command_line_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        ppo.run_command(ppo.main, ["smoke", "--tables", "0"])
    assert stopped.value.code == 2
    assert "tables must be a whole number from 1" in capsys.readouterr().err
