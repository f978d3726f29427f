"""Self-play training: the tables, the pool, runs that are killed and go on, and the agents that come out."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import os
import re
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
from safetensors import safe_open
from safetensors.numpy import save
from sb3_contrib import MaskablePPO

from montecristo_agents.entity import EntityNetwork
from montecristo_agents.models import checksum
from montecristo_agents.policy import PolicyAgent
from montecristo_env import GameBatch, InvalidArgument, Ruleset, make_agent, observation, symmetry
from montecristo_env.agent import PublicView
from montecristo_env.core.constants import KINDS
from montecristo_env.core.layout import STATE
from montecristo_env.util.commands import CANNOT_WRITE, USAGE, run_command
from montecristo_env.util.files import LOCK, locked
from montecristo_train import curve, ppo, runs
from montecristo_train.checkpoint import past_self, read_checkpoint, write_checkpoint
from montecristo_train.pool import Opponent, Pool
from montecristo_train.ppo import PRESETS, SelfPlayCallback, Settings, make_model, module_of
from montecristo_train.runs import (
    AGENT,
    CHECKPOINT,
    CURVE,
    METRICS,
    SETTINGS,
    TENSORBOARD,
    CannotWrite,
    Metrics,
    ProgressLines,
    new_folder,
    read_settings,
)
from montecristo_train.selfplay import LEARNER, SelfPlayVecEnv, make_env
from test_entity import random_module

ROLLOUT = 8 * 16
TINY = dataclasses.replace(
    PRESETS["smoke"][1],
    total_timesteps=4 * ROLLOUT,
    n_envs=8,
    n_steps=16,
    pair_units=4,
    entity_units=4,
    hidden_units=8,
    batch_size=64,
    past_share=0.3,
    opponents_share=0.3,
    opponents=("random",),
    snapshot_every=ROLLOUT,
    evaluate_every=2 * ROLLOUT,
    evaluate_against=("random",),
    evaluate_deals=2,
    checkpoint_every=ROLLOUT,
    n_threads=1,
)


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


class Steady:
    """A player for tests that plays at random."""

    name = "steady"

    def act(self, games: PublicView, rows: np.ndarray) -> np.ndarray:
        return games.sample_actions(rows)


def tables(pool: Pool, num_games: int = 12) -> SelfPlayVecEnv:
    return SelfPlayVecEnv(np.resize([2, 3, 4], num_games), pool, seed=0)


def legal_actions(env: SelfPlayVecEnv) -> np.ndarray:
    """One for every game, at random, with kinds in market order."""
    return symmetry.permute_actions(env.games.sample_actions(), symmetry.market_order(env.games.observe()))


# --- the tables


def test_a_run_plays_by_its_rule_set() -> None:
    settings = dataclasses.replace(TINY, ruleset="target=5,game_end=chest")
    assert make_env(settings).games.ruleset == Ruleset(target=5, game_end="chest")


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
        _, rewards, ended, infos = env.step(legal_actions(env))
        step = infos[0]["seats"]
        assert (step.seats == before).all() and (step.next_seats == env.deciders).all()
        np.testing.assert_array_equal(rewards, step.rewards[rows, before])
        np.testing.assert_array_equal(np.array(["episode" in info for info in infos]), ended)
        np.testing.assert_array_equal(step.ended, ended)
        assert not step.rewards[~ended].any()
        np.testing.assert_allclose(step.rewards.sum(axis=1), 0, atol=1e-6)
        ends += int(ended.sum())
        paid_out += int(step.rewards[ended].any(axis=1).sum())
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


def test_tables_show_kinds_in_market_order_and_bring_actions_back() -> None:
    env, games = tables(Pool(0.0, 0.0), 30), GameBatch(30, np.resize([2, 3, 4], 30), seed=0, reward="win")
    rng = np.random.default_rng(0)
    seen = env.reset()
    moved = ends = 0
    for _ in range(300):
        theirs, masks = games.observe(), games.action_mask()
        order = symmetry.market_order(theirs)
        np.testing.assert_array_equal(seen, symmetry.permute_observations(theirs, order))
        np.testing.assert_array_equal(symmetry.market_order(seen), np.tile(np.arange(KINDS), (30, 1)))
        np.testing.assert_array_equal(env.action_masks(), symmetry.permute_masks(masks, order) == 1)
        chosen = np.where(masks, rng.random(masks.shape), -1).argmax(axis=1)
        in_market_order = symmetry.permute_actions(chosen, order)
        moved += int((in_market_order != chosen).sum())
        seen, _, ended, _ = env.step(in_market_order)
        games.step(chosen)
        np.testing.assert_array_equal(games.over, ended)
        ends += int(ended.sum())
        games.reset(np.flatnonzero(games.over))
        assert games.states.tobytes() == env.games.states.tobytes()
    assert moved > 300 and ends > 10


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


def test_other_agents_hold_all_seats_but_one_and_past_selves_any_number() -> None:
    members = [Opponent(Steady(), past_self=False), Opponent(Steady(), past_self=True)]
    env = tables(Pool(0.5, 0.5, members=members), 300)
    held = (env.holders != LEARNER).sum(axis=1)
    places = env.holders.max(axis=1)
    np.testing.assert_array_equal(held[places == 0], env.games.num_players[places == 0] - 1)
    assert set(held[(places == 1) & (env.games.num_players == 4)]) == {1, 2, 3}


class PolicyLike(Steady):
    def __init__(self, name: str) -> None:
        self.name = name


def test_the_members_of_a_pool_play_together_as_each_would_alone() -> None:
    env = tables(Pool(0.0, 0.0), 60)
    members = [Opponent(make_agent("greedy"), past_self=False)]
    for _ in range(3):
        model = make_model(TINY, env)
        for parameter in model.policy.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        members.append(Opponent(past_self(ppo.export(model, {})), past_self=True))
    games, alone = env.games, env.games.copy()
    rows = np.arange(3, 60, 2)
    places = np.random.default_rng(0).integers(0, len(members), rows.size)
    together = Pool(0.5, 0.5, members=members).act(PublicView(games), rows, places)
    for place, member in enumerate(members):
        theirs = places == place
        np.testing.assert_array_equal(together[theirs], member.agent.act(PublicView(alone), rows[theirs]))
    assert len(set(together.tolist())) > 3


def test_shares_of_games_are_as_set() -> None:
    pool = Pool(0.2, 0.1, members=[Opponent(Steady(), past_self=False), Opponent(Steady(), past_self=True)])
    rng = np.random.default_rng(0)
    drawn = [pool.draw(rng) for _ in range(5000)]
    assert drawn.count(1) / 5000 == pytest.approx(0.2, abs=0.03)
    assert drawn.count(0) / 5000 == pytest.approx(0.1, abs=0.03)
    assert Pool(1.0, 0.0).draw(rng) is None  # nobody there yet


# --- the network


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("decisions", [0, 40, 90])
def test_the_exported_network_gives_the_logits_and_values_of_the_policy(players: int, decisions: int) -> None:
    """The policy sees kinds in market order, the network without torch sees them as they are."""
    model = make_model(TINY, tables(Pool(0.0, 0.0)))
    module_of(model).load_state_dict(random_module(TINY.sizes).state_dict())
    network = ppo.export(model, {"note": "test"})
    assert network.training == {"note": "test"} and network.sizes == TINY.sizes
    games = GameBatch(60, players, seed=1)
    games.play_random(decisions)
    games.reset()
    seen, masks = games.observe(), games.action_mask()
    order = symmetry.market_order(seen)
    assert decisions == 0 or (order != np.arange(KINDS)).any()
    canonical = torch.as_tensor(symmetry.permute_observations(seen, order))
    with torch.no_grad():
        features = model.policy.extract_features(canonical)
        expected = model.policy.action_net(model.policy.mlp_extractor.forward_actor(features)).numpy()
        expected_values = model.policy.predict_values(canonical).numpy().flatten()
    logits, values = network.evaluate(seen)
    np.testing.assert_allclose(logits, symmetry.permute_masks(expected, symmetry.inverse(order)), atol=1e-4)
    np.testing.assert_allclose(values, expected_values, atol=1e-4)
    assert values.std() > 0.01  # not all the same
    chosen, _ = model.predict(canonical.numpy(), action_masks=symmetry.permute_masks(masks, order), deterministic=True)
    brought_back = symmetry.permute_actions(chosen, symmetry.inverse(order))
    np.testing.assert_array_equal(PolicyAgent(network).act(PublicView(games), np.arange(60)), brought_back)


def test_a_search_with_an_exported_network_takes_shares_of_the_win_for_the_utility() -> None:
    model = make_model(TINY, tables(Pool(0.0, 0.0)))
    module_of(model).load_state_dict(random_module(TINY.sizes).state_dict())
    _, values, wins = ppo.export(model, {}).forward(GameBatch(9, [2, 3, 4] * 3, seed=0).observe())
    np.testing.assert_array_equal(values, wins)


def test_heads_that_are_not_used_are_not_trained(tmp_path: Path) -> None:
    settings = dataclasses.replace(TINY, total_timesteps=20 * ROLLOUT)  # until games have ended: before, nobody learns
    env = make_env(settings)
    model = make_model(settings, env)
    module = module_of(model)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with Metrics(tmp_path, 0) as metrics, ProgressLines() as progress:
        model.learn(settings.total_timesteps, SelfPlayCallback(settings, tmp_path, env, metrics, progress))
    unused = {name for name in before if name.startswith(("value.", "auxiliary."))}
    assert len(unused) == 4
    assert {name for name, tensor in module.state_dict().items() if torch.equal(tensor, before[name])} == unused
    learning = {id(parameter) for group in model.policy.optimizer.param_groups for parameter in group["params"]}
    assert {name for name, parameter in module.named_parameters() if id(parameter) not in learning} == unused


def test_a_start_is_where_training_begins_and_must_have_the_sizes_of_the_run(tmp_path: Path) -> None:
    start = tmp_path / "start.safetensors"
    model = make_model(TINY, make_env(TINY))
    module_of(model).load_state_dict(random_module(TINY.sizes).state_dict())
    ppo.export(model, {}).save(start)
    warm = dataclasses.replace(TINY, start=str(start))
    found = ppo.export(make_model(warm, make_env(warm)), {})
    for name, tensor in EntityNetwork.load(start).tensors.items():
        np.testing.assert_array_equal(found.tensors[name], tensor, err_msg=name)
    wider = dataclasses.replace(warm, hidden_units=7)
    with pytest.raises(InvalidArgument, match=r"cannot start from a network with sizes .*hidden=8.*hidden=7"):
        make_model(wider, make_env(wider))


# --- runs


def run(folder: Path, settings: Settings = TINY, **options: Any) -> EntityNetwork:
    if not options.get("resume"):
        new_folder(folder, settings)
    return ppo.train(settings, folder, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing interrupted; it must not be changed."""
    folder = tmp_path_factory.mktemp("whole")
    run(folder)
    return folder


def weights(folder: Path) -> dict[str, np.ndarray]:
    return {name: np.asarray(tensor) for name, tensor in EntityNetwork.load(folder / AGENT).tensors.items()}


def test_a_run_leaves_an_agent_metrics_and_a_curve(tmp_path: Path) -> None:
    settings = dataclasses.replace(TINY, total_timesteps=4 * TINY.total_timesteps)  # until games have ended
    run(tmp_path, settings)
    lines = [json.loads(line) for line in (tmp_path / METRICS).read_text().splitlines()]
    assert [line["steps"] for line in lines] == sorted(line["steps"] for line in lines)
    assert lines[-1]["steps"] == settings.total_timesteps
    for name in ("win_rate/random", "train/entropy_loss", "train/approx_kl", "train/explained_variance", "game/margin"):
        assert name in lines[-1], name
    assert "game/margin" not in lines[0]  # nobody knows it yet
    evaluated = ["win_rate/random" in line for line in lines]  # and not said again while nothing new was measured
    assert evaluated == [line["steps"] % settings.evaluate_every == 0 for line in lines[:-1]] + [True]
    assert not all(evaluated)
    assert (tmp_path / CURVE).read_bytes().startswith(b"\x89PNG")
    facts = json.loads((tmp_path / SETTINGS).read_text())
    assert facts["settings"]["seed"] == TINY.seed and "torch" in facts["made_with"]
    assert read_settings(tmp_path, Settings) == settings
    agent = make_agent(f"policy:{tmp_path / AGENT}")
    games = GameBatch(3, [2, 3, 4], seed=0)
    games.step(agent.act(PublicView(games), np.arange(3)))
    assert list((tmp_path / TENSORBOARD).iterdir())


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


def test_a_killed_run_goes_on_to_the_same_result(tmp_path: Path) -> None:
    """A real kill -9, at whatever moment it hits, after the first checkpoint."""
    settings = dataclasses.replace(TINY, total_timesteps=10 * ROLLOUT)
    run(tmp_path / "whole", settings)
    program = (
        "import sys; from pathlib import Path; from montecristo_train import ppo, runs\n"
        "folder = Path(sys.argv[1]); ppo.train(runs.read_settings(folder, ppo.Settings), folder)"
    )
    new_folder(tmp_path / "killed", settings)
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
    checkpoint = tmp_path / "killed" / CHECKPOINT
    while not checkpoint.exists():
        assert process.poll() is None or checkpoint.exists()  # on a busy machine it may end between the two questions
        time.sleep(0.01)
    process.kill()
    process.wait()
    run(tmp_path / "killed", settings, resume=True)
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    for name, tensor in expected.items():
        np.testing.assert_array_equal(found[name], tensor, err_msg=name)
    steps = [json.loads(line)["steps"] for line in (tmp_path / "killed" / METRICS).read_text().splitlines()]
    whole = [json.loads(line)["steps"] for line in (tmp_path / "whole" / METRICS).read_text().splitlines()]
    assert steps == whole


def test_a_run_that_was_stopped_before_its_first_checkpoint_begins_again(tmp_path: Path, whole: Path) -> None:
    new_folder(tmp_path / "stopped", TINY)
    (tmp_path / "stopped" / METRICS).write_text('{"steps": 128}\n')
    run(tmp_path / "stopped", resume=True)
    expected, found = weights(whole), weights(tmp_path / "stopped")
    for name, tensor in expected.items():
        np.testing.assert_array_equal(found[name], tensor, err_msg=name)
    files = [folder / METRICS for folder in (whole, tmp_path / "stopped")]
    assert len({tuple(json.loads(line)["steps"] for line in file.read_text().splitlines()) for file in files}) == 1


def test_learning_never_goes_backwards_though_the_last_rollout_goes_beyond_the_steps(tmp_path: Path) -> None:
    settings = dataclasses.replace(TINY, total_timesteps=1, learning_rate=1e-3, final_learning_rate=1e-4)
    run(tmp_path, settings)
    last = json.loads((tmp_path / METRICS).read_text().splitlines()[-1])
    assert last["steps"] == ROLLOUT and last["train/learning_rate"] == 1e-4


def test_a_checkpoint_that_cannot_be_written_leaves_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    before = (tmp_path / CHECKPOINT).read_bytes()
    env = make_env(TINY)
    model = make_model(TINY, env)

    def no_room(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_room)
    with pytest.raises(OSError, match="No space left"):
        write_checkpoint(tmp_path / CHECKPOINT, model, env, {})
    assert (tmp_path / CHECKPOINT).read_bytes() == before


Going = tuple[MaskablePPO, SelfPlayVecEnv]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in the middle of a run, with past selves in its pool and at its tables."""
    folder = tmp_path_factory.mktemp("run") / "run"
    run(folder, dataclasses.replace(TINY, total_timesteps=20 * ROLLOUT, past_share=0.6))
    return folder / CHECKPOINT


def beginning(settings: Settings = TINY) -> Going:
    env = make_env(settings)
    return make_model(settings, env), env


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
    (folder / CHECKPOINT).write_bytes(save(tensors, header | {"checksum": checksum(header, tensors)}))
    return folder / CHECKPOINT


def test_every_flipped_bit_of_a_checkpoint_is_refused_and_nothing_changes(checkpoint: Path, tmp_path: Path) -> None:
    content = checkpoint.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    rng = np.random.default_rng(0)
    places = [*range(8), *rng.integers(8, header, 150).tolist(), *rng.integers(header, len(content), 250).tolist()]
    going = beginning()
    before = everything(*going)
    path = tmp_path / CHECKPOINT
    for place in places:
        flipped = bytes([content[place] ^ 1 << int(rng.integers(8))])
        path.write_bytes(content[:place] + flipped + content[place + 1 :])
        with pytest.raises(InvalidArgument, match=f"{path} is no checkpoint that this run can go on from"):
            read_checkpoint(path, *going, TINY.sizes)
    assert everything(*going) == before
    path.write_bytes(content)
    read_checkpoint(path, *going, TINY.sizes)
    assert everything(*going) != before


WIN_BIAS = "policy.features_extractor.module.win.bias"


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
        (_put("format", 2), "it has the format 2, but this version reads 3"),
        (_put("steps", -1), "steps must be a whole number from 0, but is -1"),
        (_put("steps", "x"), "steps must be a whole number from 0, but is 'x'"),
        (_put("latest", {"win_rate/random": None}), "win rates must be finite numbers"),
        (_put("pool", []), r"its opponents are \[\], but this run's are \['random'\]"),
        (_put("env_random", {}), "KeyError|ValueError"),
        (_put("numpy_random", ["MT19937", "x", 0, 0.0]), "ValueError|TypeError"),
        (_spoil_a_game("num_players"), "its games have another num_players than those of this run"),
        (_spoil_a_game("target"), "its games have another target than those of this run"),
        (_spoil_a_game("supply"), r"1 of its games are not sane; in game 3 these are not: \['adventurers'"),
        (lambda _, t: t.update(holders=t["holders"] * 0), "must leave a seat of every game to the learner"),
        (lambda _, t: t["holders"].put(0, 99), "leave a seat|places of the pool"),
        (lambda _, t: t.update(games=t["games"][:-1]), r"games must be uint8 of shape \(8, \d+\)"),
        (lambda _, t: t.pop(WIN_BIAS), "its policy has not the parts of this run's"),
        (lambda _, t: t.pop("optimiser.0.step"), "its optimiser has not the parts of this run's"),
        (lambda _, t: t[WIN_BIAS].fill(np.nan), r"win\.bias has values that are not finite"),
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
        read_checkpoint(rewritten(checkpoint, tmp_path, change), *going, TINY.sizes)
    assert everything(*going) == before


def test_a_checkpoint_of_other_settings_is_refused_by_what_differs(checkpoint: Path) -> None:
    for change, message in (
        ({"hidden_units": 17}, r"must be float32 of shape \(17, \d+\), as this run's settings have it, but is"),
        ({"n_envs": 9}, r"games must be uint8 of shape \(9"),
        ({"players": (0.0, 0.5, 0.5)}, "its games have another num_players"),
        ({"opponents": ("greedy",)}, r"its opponents are \['random'\], but this run's are \['greedy'\]"),
    ):
        settings = dataclasses.replace(TINY, **change)
        with pytest.raises(InvalidArgument, match=message):
            read_checkpoint(checkpoint, *beginning(settings), settings.sizes)


@pytest.mark.parametrize(("name", "failing"), [(CHECKPOINT, 2), (AGENT, 2), (CURVE, 1)])
def test_a_full_disk_stops_the_run_by_name_and_the_older_checkpoint_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path, name: str, failing: int
) -> None:
    """There is no room for the file when it is written that time; later there is, and all ends as if nothing was."""
    folder, replace = tmp_path / "run", os.replace
    moves: list[Path] = []

    def full(source: Path, target: Path) -> None:
        moves.append(target)
        if moves.count(folder / name) == failing and target == folder / name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    new_folder(folder, TINY)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)  # with it every file that must be whole gets its name
        with pytest.raises(CannotWrite, match=f"cannot write .*{name}: No space left .* --resume") as caught:
            ppo.train(TINY, folder)
    assert moves.count(folder / name) == failing and moves[-1] == folder / name
    assert caught.value.__suppress_context__
    assert not list(folder.glob(".*.montecristo-tmp"))
    run(folder, resume=True)
    expected = weights(whole)
    for tensor, values in weights(folder).items():
        np.testing.assert_array_equal(values, expected[tensor], err_msg=tensor)


def test_metrics_that_cannot_be_written_stop_the_run_and_half_a_line_is_forgotten(tmp_path: Path) -> None:
    run(tmp_path)
    whole = (tmp_path / METRICS).read_text()
    with (tmp_path / METRICS).open("a") as file:
        file.write('{"steps": 51')
    runs.forget_metrics_after(tmp_path / METRICS, TINY.total_timesteps)
    assert (tmp_path / METRICS).read_text() == whole
    with Metrics(tmp_path, TINY.total_timesteps) as metrics:
        (tmp_path / METRICS).unlink()
        (tmp_path / METRICS).mkdir()
        with pytest.raises(CannotWrite, match=f"cannot write .*{METRICS}: Is a directory"):
            metrics.log(TINY.total_timesteps, {})


@pytest.mark.parametrize("arguments", [["--resume"], ["--resume", "one", "two"], ["--resume", "nowhere"]])
def test_a_bad_resume_is_refused_without_a_traceback(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run_command(ppo.main, arguments)
    assert stopped.value.code == USAGE
    assert ("--resume RUN" if len(arguments) != 2 else "is no folder of a training run") in capsys.readouterr().err


def test_a_full_disk_has_an_exit_status_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    def command(arguments: list[str]) -> None:
        with runs.writing(Path("run") / CHECKPOINT):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(SystemExit) as stopped:
        run_command(command, [])
    assert stopped.value.code == CANNOT_WRITE
    assert "cannot write run/checkpoint.safetensors" in capsys.readouterr().err


def test_bad_folders_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    with pytest.raises(InvalidArgument, match="is not empty"):
        new_folder(tmp_path / "full", TINY)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match="cannot write to"):
        new_folder(tmp_path / "file" / "run", TINY)
    with pytest.raises(InvalidArgument, match="is no folder of a training run"):
        read_settings(tmp_path, Settings)
    (tmp_path / CHECKPOINT).write_bytes(b"damaged")
    env = make_env(TINY)
    with pytest.raises(InvalidArgument, match="is no checkpoint that this run can go on from: it cannot be read"):
        read_checkpoint(tmp_path / CHECKPOINT, make_model(TINY, env), env, TINY.sizes)


def test_observations_are_what_the_network_was_made_for() -> None:
    assert make_env(TINY).observation_space.shape == (observation.SIZE,)


# --- what people see


def test_progress_at_80_columns_shows_speed_and_time_left_and_wins_on_a_line_of_their_own() -> None:
    console = Console(width=80, force_terminal=True, file=io.StringIO())
    progress = ProgressLines(console)
    bar = progress.add_task("training", total=50_000_000, fps=0.0, results="")
    assert len(list(progress.get_renderables())) == 1
    rates = {f"win_rate/{name}": 1.0 for name in ("random", "greedy", "past_self", "greedy_3p", "greedy_4p")}
    progress.update(bar, completed=49_999_999, fps=123_456.0, results=runs.wins(rates))
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
    runs.start_or_resume("ppo", Settings, presets, ppo.train, ["smoke"])
    told = f"it wins 40% against random, so it has learnt nothing yet: {TINY.total_timesteps} steps are too few to"
    assert (told in capsys.readouterr().out) == says


def test_a_folder_in_which_another_process_trains_is_refused(tmp_path: Path) -> None:
    new_folder(tmp_path / "run", TINY)
    with locked(tmp_path / "run"):
        with pytest.raises(InvalidArgument, match="another process works in"):
            ppo.train(TINY, tmp_path / "run", resume=True)
        assert {path.name for path in (tmp_path / "run").iterdir()} == {SETTINGS, LOCK}
    (tmp_path / "new").mkdir()
    with locked(tmp_path / "new"), pytest.raises(InvalidArgument, match="another process works in"):
        new_folder(tmp_path / "new", TINY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_envs": 0}, "n_envs must be a whole number from 1"),
        ({"total_timesteps": 1e6}, "total_timesteps must be a whole number from 1"),
        ({"batch_size": 1}, "batch_size must be a whole number from 2"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4294967295, but is -1"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number from 0"),
        ({"learning_rate": 10**400}, "learning_rate must be a number from 0"),
        ({"past_share": 1.5}, "past_share must be a number from 0 to 1, but is 1.5"),
        ({"players": (1.0, 0.0)}, "players must be a list of 3"),
        ({"players": (0.0, 0.0, 0.0)}, "players must have a share that is not 0"),
        ({"hidden_units": 0}, "hidden_units must be a whole number from 1"),
        ({"pair_units": "x"}, "pair_units must be a whole number from 1"),
        ({"evaluate_against": ()}, "evaluate_against must not be empty"),
        ({"opponents": "greedy"}, "opponents must be a list, but is 'greedy'"),
        ({"opponents": ("greedy", 1)}, "opponents must be a list, each of it a str"),
        ({"start": 1}, "start must be a str, but is 1"),
    ],
)
def test_settings_that_nothing_can_be_trained_with_are_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        dataclasses.replace(TINY, **change)


def test_a_bad_setting_on_the_command_line_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run_command(ppo.main, ["smoke", "--n-envs", "0"])
    assert stopped.value.code == 2
    assert "n_envs must be a whole number from 1" in capsys.readouterr().err
