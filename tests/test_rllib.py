"""Training on Ray RLlib: what a seat is credited with, the agents that come out, and machines that die."""

from __future__ import annotations

import dataclasses
import json
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.rllib", reason="needs pip install 'montecristo-env[rllib]'")

import ray
import torch
from ray.cluster_utils import Cluster
from ray.rllib.core import Columns

from montecristo_agents import arena
from montecristo_agents.arena import Run, play
from montecristo_agents.dataset import Dataset
from montecristo_agents.entity import EntityNetwork
from montecristo_agents.luck import LuckMeter
from montecristo_agents.matches import Results
from montecristo_agents.policy import PolicyAgent
from montecristo_env import GameBatch, InvalidArgument, make_agent, symmetry
from montecristo_env.agent import PublicView
from montecristo_env.util.files import locked
from montecristo_train import ppo, rllib, rllib_sweep
from montecristo_train.rllib_runner import MASK, SEEN, MaskedNetwork, RllibSettings, SelfPlayRunner, export, spaces
from montecristo_train.runs import AGENT, METRICS, new_folder, read_settings
from montecristo_train.seat_gae import seat_advantages
from montecristo_train.seat_trajectories import SeatTrajectories
from montecristo_train.settings import SelfPlaySettings
from test_luck import network

ROLLOUT = 12 * 16
TINY = dataclasses.replace(
    rllib.PRESETS["smoke"][1],
    n_runners=0,
    total_timesteps=3 * ROLLOUT,
    n_envs=12,
    n_steps=16,
    pair_units=4,
    entity_units=4,
    hidden_units=8,
    batch_size=64,
    past_share=0.4,
    opponents_share=0.2,
    opponents=("random",),
    pool_size=2,
    snapshot_every=ROLLOUT,
    evaluate_every=1000 * ROLLOUT,
    evaluate_against=("random",),
    evaluate_deals=2,
    checkpoint_every=ROLLOUT,
)
LONG = 600  # seconds until a runner is started again, at most
# Enough to learn that some moves are better than others.
SHORT = dataclasses.replace(
    TINY,
    total_timesteps=80_000,
    n_envs=64,
    n_steps=64,
    players=(1.0, 0.0, 0.0),
    pair_units=16,
    entity_units=24,
    hidden_units=64,
    learning_rate=1e-3,  # with 2e-3 seed 0 learnt nothing on an Intel Xeon
    final_learning_rate=5e-4,
    batch_size=512,
    n_epochs=4,
    ent_coef=0.01,
    past_share=0.1,
    opponents_share=0.0,
    snapshot_every=5 * 64 * 64,
    checkpoint_every=1000 * 64 * 64,
)
SMALL = 150_000_000  # bytes for Ray's object store


@pytest.fixture(scope="module")
def _ray() -> Iterator[None]:
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=SMALL)
    yield
    ray.shutdown()


# --- credit


def rollouts(number: int, steps: int, games: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Turns in no particular order, rewards and ends, as no game has them but any game could."""
    rng = np.random.default_rng(3)
    for _ in range(number):
        seats = rng.integers(0, 4, (steps, games))
        yield seats, rng.normal(size=(steps, games, 4)).astype(np.float32), rng.random((steps, games)) < 0.1


def test_every_decision_is_handed_over_once_with_what_its_seat_got_until_the_next() -> None:
    steps, games = 20, 5
    cutter = SeatTrajectories()
    played = list(rollouts(4, steps, games))
    got: dict[int, tuple[float, int, bool]] = {}  # by decision: reward, the decision after it, whether the game is over
    for number, (seats, paid, ended) in enumerate(played):
        name = number * steps * games + np.arange(steps * games).reshape(steps, games)
        for part in cutter.cut(seats, paid, ended, {"name": name}):
            names = part.columns["name"].tolist()
            assert len(names) == len(part.rewards) + (not part.ended)
            for place, reward in enumerate(part.rewards.tolist()):
                after = names[place + 1] if place + 1 < len(names) else -1
                assert names[place] not in got
                got[names[place]] = reward, after, part.ended and after == -1

    seats, paid, ended = (np.concatenate(parts) for parts in zip(*played, strict=True))
    expected = {}
    for moment, game in np.ndindex(seats.shape):  # the same, decision by decision
        seat, reward = seats[moment, game], 0.0
        for later in range(moment, len(seats)):
            if later > moment and seats[later, game] == seat:
                expected[moment * games + game] = reward, later * games + game, False
                break
            reward += paid[later, game, seat]
            if ended[later, game]:
                expected[moment * games + game] = reward, -1, True
                break
    assert got.keys() == expected.keys() and len(got) > 0.9 * seats.size
    for name, (reward, *rest) in expected.items():
        assert got[name][0] == pytest.approx(reward, abs=1e-4) and list(got[name][1:]) == rest


def test_credit_is_that_of_the_other_recipe() -> None:
    """The rewards of a seat's trajectory give the advantages that `seat_gae` works out for the whole table."""
    ((seats, paid, ended),) = rollouts(1, 30, 4)
    ended[-1] = True  # so that every outcome is known
    values = np.random.default_rng(1).normal(size=seats.shape).astype(np.float32)
    name = np.arange(seats.size).reshape(seats.shape)
    nobody = np.zeros(4, np.int64), np.zeros(4, np.float32)
    expected = seat_advantages(seats, paid, ended, values, *nobody, 0.99, 0.9).ravel()
    found = np.full(seats.size, np.nan)
    for part in SeatTrajectories().cut(seats, paid, ended, {"name": name, "value": values}):
        advantage = 0.0
        after = np.append(part.columns["value"][1:], 0.0)
        for place in reversed(range(len(part.rewards))):
            error = part.rewards[place] + 0.99 * after[place] - part.columns["value"][place]
            advantage = error + 0.99 * 0.9 * advantage
            found[part.columns["name"][place]] = advantage
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.usefixtures("_ray")
def test_a_runner_pays_every_seat_what_the_game_pays() -> None:
    settings = dataclasses.replace(TINY, past_share=0.0, opponents_share=0.0, n_steps=200)
    runner = SelfPlayRunner(config=rllib.make_config(settings), worker_index=0)
    ends: list[float] = []
    for _ in range(3):
        for episode in runner.sample():
            rewards = episode.get_rewards()
            assert not rewards[:-1].any() and (episode.is_terminated or rewards[-1] == 0)
            seen = episode.get_observations()
            assert len(seen[SEEN]) == len(episode) + 1
            chosen = np.take_along_axis(seen[MASK][:-1], episode.get_actions()[:, None], axis=1)
            assert chosen.all()  # legal
            ends += [float(rewards[-1])] if episode.is_terminated else []
    assert len(ends) > 20 and abs(sum(ends)) < 1e-3 and any(ends)  # zero-sum, all seats of a game at the same time


# --- the network


def new_network() -> MaskedNetwork:
    observations, choices = spaces()
    return MaskedNetwork(
        observation_space=observations, action_space=choices, model_config={"sizes": (4, 6, 8)}, inference_only=False
    )


def test_the_exported_network_plays_as_the_module_does(tmp_path: Path) -> None:
    """The module sees kinds in market order, the agent sees them as they are."""
    module = new_network()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    export(module, {"steps": 1}).save(tmp_path / "agent.safetensors")
    agent = make_agent(f"policy:{tmp_path / 'agent.safetensors'}")
    assert isinstance(agent, PolicyAgent)
    games = GameBatch(300, np.resize([2, 3, 4], 300), seed=0)
    games.play_random(40)
    games.reset()
    seen, order = games.observe(), symmetry.market_order(games.observe())
    masks = symmetry.permute_masks(games.action_mask(), order)
    canonical = symmetry.permute_observations(seen, order)
    batch = {Columns.OBS: {SEEN: torch.from_numpy(canonical), MASK: torch.from_numpy(masks)}}
    with torch.no_grad():
        output = module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS]
        values = module.compute_values(batch)
    best = output.argmax(dim=1).numpy()
    assert (masks[np.arange(300), best] == 1).all()
    brought_back = symmetry.permute_actions(best, symmetry.inverse(order))
    np.testing.assert_array_equal(agent.act(PublicView(games), np.arange(300)), brought_back)
    np.testing.assert_allclose(agent.network.evaluate(seen)[1], values.numpy(), atol=1e-3)


def test_heads_that_are_not_used_are_not_trained() -> None:
    module = new_network().module
    frozen = {name for name, parameter in module.named_parameters() if not parameter.requires_grad}
    assert frozen == {f"{head}.{part}" for head in ("value", "auxiliary") for part in ("weight", "bias")}


def test_presets_are_those_of_the_other_recipe() -> None:
    shared = {field.name for field in dataclasses.fields(SelfPlaySettings)}
    assert rllib.PRESETS.keys() == ppo.PRESETS.keys()
    for name, (_, preset) in rllib.PRESETS.items():
        theirs = ppo.PRESETS[name][1]
        assert all(getattr(preset, field) == getattr(theirs, field) for field in shared), name


# --- runs


@pytest.mark.usefixtures("_ray")
def test_a_short_training_beats_random(tmp_path: Path) -> None:
    network = rllib.train(SHORT, tmp_path)
    agent = PolicyAgent(network)
    agent.name = "learner"
    pair = play(["random", agent], 2, 100, seed=5, progress=False).pair("learner", "random")
    assert pair is not None and pair.win_rate.value > 0.62


@pytest.mark.usefixtures("_ray")
def test_a_run_goes_on_from_its_checkpoint_with_weights_and_league(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    new_folder(folder, TINY)
    first = rllib.train(dataclasses.replace(TINY, total_timesteps=2 * ROLLOUT), folder)
    settings = read_settings(folder, RllibSettings)
    assert settings == TINY
    training = rllib.Training(settings, folder)
    training.resume()
    assert training.steps == 2 * ROLLOUT and training.algorithm.iteration == 2
    for name, tensor in training.network().tensors.items():
        np.testing.assert_allclose(tensor, np.asarray(first.tensors[name], np.float32), atol=2e-3)  # saved as float16
    pool = training.algorithm.env_runner.env.pool
    assert sum(member.past_self for member in pool.members) == TINY.pool_size
    training.algorithm.stop()

    rllib.main(["--resume", str(folder)])
    assert EntityNetwork.load(folder / AGENT).training["steps"] == TINY.total_timesteps
    lines = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
    assert [line["steps"] for line in lines] == [192, 384, 576]
    assert len(list((folder / rllib.CHECKPOINTS).iterdir())) == 1


@pytest.mark.usefixtures("_ray")
def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="5 runners cannot share 12 games equally"):
        rllib.make_config(dataclasses.replace(TINY, n_runners=5))
    new_folder(tmp_path / "run", TINY)
    with locked(tmp_path / "run"), pytest.raises(InvalidArgument, match="another process works in"):
        rllib.main(["--resume", str(tmp_path / "run")])


@pytest.mark.usefixtures("_ray")
def test_a_run_that_was_stopped_before_its_first_checkpoint_begins_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    new_folder(folder, dataclasses.replace(TINY, total_timesteps=ROLLOUT))
    (folder / METRICS).write_text('{"steps": 99}\n')
    rllib.main(["--resume", str(folder)])
    assert [json.loads(line)["steps"] for line in (folder / METRICS).read_text().splitlines()] == [ROLLOUT]
    (checkpoint,) = (folder / rllib.CHECKPOINTS).iterdir()
    rllib.check(checkpoint)
    for path in [path for path in checkpoint.rglob("*") if path.is_file()]:
        content = path.read_bytes()
        place = len(content) // 2
        for damaged in (content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :], content[:-1], None):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            with pytest.raises(InvalidArgument, match=f"{checkpoint} is damaged, its checksum is not that"):
                rllib.check(checkpoint)
        path.write_bytes(content)
    rllib.check(checkpoint)
    (checkpoint / rllib.CHECKSUM).unlink()
    with pytest.raises(InvalidArgument, match="is damaged"):
        rllib.main(["--resume", str(folder)])


@pytest.mark.usefixtures("_ray")
def test_tune_sweeps_over_settings(tmp_path: Path) -> None:
    results = rllib_sweep.sweep(TINY, {"learning_rate": [1e-3, 1e-4]}, tmp_path)
    assert sorted(result.config["learning_rate"] for result in results) == [1e-4, 1e-3]
    assert all(0 <= result.metrics["win_rate"] <= 1 for result in results)


@pytest.mark.parametrize("module", ["montecristo_train.rllib", "montecristo_train.rllib_sweep"])
def test_without_ray_it_says_what_to_install(module: str) -> None:
    code = f"import sys; sys.modules['ray'] = None\nimport {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode and "training on Ray needs ray: pip install 'montecristo-env[rllib]'" in done.stderr


# --- the arena


@pytest.mark.usefixtures("_ray")
def test_a_tournament_on_ray_is_the_one_played_here(tmp_path: Path) -> None:
    agents = ["random", "greedy", "mcts:4", PolicyAgent(export(new_network(), {}), temperature=1.0)]
    runs = []
    for ray_too in (False, True):
        run = Run(agents, 3, 4, seed=7, folder=tmp_path / str(ray_too), records=1)
        run.play(progress=False, ray=ray_too)
        runs.append((run, Results.join(run.results)))
    (_, here), (there, on_ray) = runs
    for name in ("winners", "ranks", "scores", "decisions"):
        np.testing.assert_array_equal(getattr(on_ray, name), getattr(here, name))
    assert len(there.results) > 4  # many tasks
    records = [
        {path.name: path.read_bytes() for path in (tmp_path / str(ray_too) / "records").iterdir()}
        for ray_too in (False, True)
    ]
    assert records[0] == records[1] and len(records[0]) == 36


@pytest.mark.usefixtures("_ray")
def test_luck_tests_and_datasets_on_ray_are_those_made_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "GAMES_PER_SHARD", 16)
    made = []
    for ray_too in (False, True):
        run = Run(
            ["random", "greedy"],
            deals=200,
            adjust=LuckMeter(network(), redraws=2),
            until="greedy beats random by 50 Elo",
            dataset=tmp_path / str(ray_too),
        )
        run.play(progress=False, ray=ray_too)
        report = run.report().to_dict()
        for line in report["agents"]:
            del line["seconds_per_decision"]
        made.append(report)
    assert made[0] == made[1] and made[0]["test"]["decision"] == "accepted"
    here, there = (Dataset(tmp_path / str(ray_too)) for ray_too in (False, True))
    assert [path.name for path in here.paths] == [path.name for path in there.paths] and len(here) > 1
    for number in range(len(here)):
        ours, theirs = here.shard(number), there.shard(number)
        assert ours.keys() == theirs.keys() >= {"luck", "rows", "actions"}
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.usefixtures("_ray")
def test_a_tournament_begun_here_can_end_on_ray(tmp_path: Path) -> None:
    agents, whole = ["random", "greedy"], Run(["random", "greedy"], 2, 40, seed=1)
    whole.play(progress=False)
    begun = Run(agents, 2, 40, seed=1, folder=tmp_path)
    first = next(begun._play_here())
    assert begun.folder is not None
    begun.folder.save(0, first[0])
    rest = Run(agents, 2, 40, seed=1, folder=tmp_path)
    assert 0 < rest.rounds < rest.match.rounds
    rest.play(progress=False, ray=True)
    np.testing.assert_array_equal(Results.join(rest.results).scores, Results.join(whole.results).scores)


def test_without_ray_the_arena_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['ray'] = None\nfrom montecristo_agents import arena; arena.main()"
    arguments = ["random", "random", "--deals", "1", "--ray", "--folder", str(tmp_path / "run")]
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == "arena: tournaments on Ray need ray: pip install 'montecristo-env[rllib]'"


def test_an_agent_from_another_process_plays_without_the_compiler() -> None:
    """It was not made there, and yet its process compiles nothing: it may have no Numba."""
    agents = [make_agent("greedy"), make_agent("mcts:2"), make_agent("ppo")]
    code = """
import pickle, sys
import numpy as np
from montecristo_env import GameBatch, PublicView
for agent in pickle.loads(sys.stdin.buffer.read()):
    print(agent.act(PublicView(GameBatch(2, 2, seed=0)), np.arange(2)).size)
print("numba" in sys.modules)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=pickle.dumps(agents), capture_output=True, check=True)
    assert done.stdout.split() == [b"2", b"2", b"2", b"False"]


# --- many machines


def test_training_goes_on_when_a_machine_dies_and_the_checkpoint_restores(tmp_path: Path) -> None:
    ray.shutdown()
    settings = dataclasses.replace(TINY, n_runners=2)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": SMALL})
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=SMALL) for _ in range(2)]
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        training = rllib.Training(settings, tmp_path)
        training.update()
        group = training.algorithm.env_runner_group
        where = group.foreach_env_runner(lambda _: ray.get_runtime_context().get_node_id(), local_env_runner=False)
        dying = next(node for node in nodes if node.node_id in where)
        cluster.remove_node(dying, allow_graceful=False)
        before = training.steps
        for _ in range(4):
            training.update()
        assert training.steps >= before + 4 * settings.n_envs * settings.n_steps
        until = time.monotonic() + LONG
        while group.num_healthy_remote_workers() < 2 and time.monotonic() < until:
            training.update()  # the lost runner starts again on the machine that is left
        where = group.foreach_env_runner(lambda _: ray.get_runtime_context().get_node_id(), local_env_runner=False)
        assert len(where) == 2 and dying.node_id not in where
        trained = training.network().tensors
        training.algorithm.stop()

        again = rllib.Training(settings, tmp_path)
        again.resume()
        assert again.steps == training.steps
        for name, tensor in again.network().tensors.items():
            np.testing.assert_array_equal(tensor, trained[name])
        leagues: list[Any] = again.algorithm.env_runner_group.foreach_env_runner(
            lambda runner: [member.past_self for member in runner.env.pool.members].count(True), local_env_runner=False
        )
        assert leagues and set(leagues) == {settings.pool_size}
        again.update()
        again.algorithm.stop()
    finally:
        ray.shutdown()
        cluster.shutdown()
