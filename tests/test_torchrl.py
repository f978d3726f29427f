"""The TorchRL interface: specs, one truth with the batch, resets, seats' rewards, wrappers; and the recipe on it."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("torchrl")

import torch
from torchrl.collectors import Collector
from torchrl.envs import (
    ActionMask,
    Compose,
    GymWrapper,
    OpenSpielWrapper,
    ParallelEnv,
    RewardSum,
    SerialEnv,
    TransformedEnv,
)
from torchrl.envs.utils import check_env_specs

from montecristo_env import (
    GameBatch,
    IllegalAction,
    InvalidArgument,
    InvalidPlayerCount,
    Ruleset,
    UnplayableRuleset,
    actions,
    observation,
)
from montecristo_env.torchrl import MonteCristoTorchEnv
from shell_helpers import ENV_ID, SHORT, choose, run_python

PLAYERS = pytest.mark.parametrize("num_players", [2, 3, 4])


@PLAYERS
@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
def test_torchrls_check_finds_nothing(num_players: int, obs_dtype: str) -> None:
    env = MonteCristoTorchEnv(5, num_players, obs_dtype=obs_dtype, ruleset=Ruleset(round_limit=1))
    check_env_specs(env, break_when_any_done="both", seed=0)


def test_specs() -> None:
    env = MonteCristoTorchEnv(5, 3)
    assert env.batch_size == (5,)
    assert env.observation_spec["observation"].shape == (5, observation.SIZE)
    assert env.observation_spec["action_mask"].shape == (5, actions.COUNT)
    assert env.action_spec.n == actions.COUNT and env.action_spec.shape == (5,)
    assert env.full_reward_spec["agents", "reward"].shape == (5, 3, 1)
    assert env.reward_keys == [("agents", "reward")]


@PLAYERS
@pytest.mark.parametrize("ruleset", [Ruleset(target=8), SHORT], ids=["terminated", "truncated"])
@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
def test_it_plays_the_games_of_the_batch(num_players: int, ruleset: Ruleset, obs_dtype: str) -> None:
    games = GameBatch(6, num_players, seed=3, ruleset=ruleset, reward="rank")
    env = MonteCristoTorchEnv(6, num_players, 3, ruleset, "rank", obs_dtype)
    td = env.reset()
    ended = 0
    for _ in range(250):
        counts, masks = games.observe(), games.action_mask()
        seen = counts * observation.SCALE if obs_dtype == "float32" else counts
        np.testing.assert_array_equal(td["observation"].numpy(), seen)
        np.testing.assert_array_equal(td["action_mask"].numpy(), masks == 1)
        assert td["current_player"].squeeze(-1).tolist() == games.current_player.tolist()
        acts = choose(counts, masks)
        games.step(acts)
        td["action"] = torch.from_numpy(acts)
        stepped, td = env.step_and_maybe_reset(td)
        after = stepped["next"]
        np.testing.assert_array_equal(after["agents", "reward"].squeeze(-1).numpy(), games.rewards[:, :num_players])
        assert after["terminated"].squeeze(-1).tolist() == games.terminated.tolist()
        assert after["truncated"].squeeze(-1).tolist() == games.truncated.tolist()
        over = games.over
        assert after["done"].squeeze(-1).tolist() == over.tolist()
        last = games.observe()
        np.testing.assert_array_equal(
            after["observation"].numpy(), last * observation.SCALE if obs_dtype == "float32" else last
        )
        assert not after["action_mask"][torch.from_numpy(over)].any()
        assert (after["current_player"].squeeze(-1).numpy()[over] == 0).all()
        ended += int(over.sum())
        games.reset()
    assert ended > 6


def test_rewards_reach_every_seat_and_sum_to_zero() -> None:
    torch.manual_seed(0)  # of random actions
    env = TransformedEnv(MonteCristoTorchEnv(8, 3, seed=0, ruleset=SHORT), Compose(ActionMask(), RewardSum()))
    data = env.rollout(150, break_when_any_done=False)
    over = data["next", "done"].squeeze(-1)
    assert over.sum() > 8
    paid, total = data["next", "agents", "reward"], data["next", "agents", "episode_reward"]
    assert not paid[~over].any() and paid[over].any(0).all()
    assert paid.sum(-2).abs().max() < 1e-6
    assert torch.equal(paid[over], total[over])


def test_earlier_tensors_stay_as_they_were() -> None:
    env = MonteCristoTorchEnv(3, seed=0)
    first = env.reset()
    kept = first.clone()
    env.rollout(10)
    assert (first == kept).all()


def test_seeds() -> None:
    def first(env: Any) -> torch.Tensor:
        return env.reset()["observation"]

    env, twin = MonteCristoTorchEnv(4, 3), MonteCristoTorchEnv(4, 3, seed=5)
    env.set_seed(5)
    opening = first(env)
    assert torch.equal(opening, first(twin))
    assert env.games.seeds.tolist() == GameBatch(4, 3, seed=5).seeds.tolist()
    second = first(env)
    assert not torch.equal(second, opening)  # a seed is used once
    assert torch.equal(second, first(twin))
    env.set_seed(5)
    assert torch.equal(first(env), opening)


def test_a_reset_mask_restarts_these_games_only() -> None:
    env = MonteCristoTorchEnv(4, seed=0)
    td = env.rollout(5)[:, -1]["next"]
    before = env.games.states.copy()
    td["_reset"] = torch.tensor([[True], [False], [True], [False]])
    again = env.reset(td)
    assert env.games.states[1::2].tobytes() == before[1::2].tobytes()
    assert (env.games.seeds[::2] != before["seed"][::2]).all()
    np.testing.assert_array_equal(again["observation"].numpy(), env.games.observe() * observation.SCALE)


def test_an_illegal_action_is_refused_and_changes_nothing() -> None:
    env = MonteCristoTorchEnv(3, seed=0)
    td = env.reset()
    before = env.games.states.tobytes()
    td["action"] = td["action_mask"].int().argmin(-1)
    with pytest.raises(IllegalAction, match=r"game 0: player \d may not deal"):
        env.step(td)
    assert env.games.states.tobytes() == before


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_collector_gathers_random_games(wrapped: bool) -> None:
    torch.manual_seed(0)
    env: Any = MonteCristoTorchEnv(4, 2, seed=0, ruleset=SHORT)
    if wrapped:
        env = TransformedEnv(env, ActionMask())
    collector = Collector(env, env.rand_action, frames_per_batch=400, total_frames=800)
    batches = list(collector)
    collector.shutdown()
    assert [batch.shape for batch in batches] == [(4, 100)] * 2
    for batch in batches:
        assert batch["action_mask"].gather(-1, batch["action"].unsqueeze(-1)).all()
        assert batch["next", "done"].any()


@pytest.mark.parametrize("kind", [SerialEnv, ParallelEnv])
def test_several_of_them_are_one(kind: Any) -> None:
    env = TransformedEnv(kind(2, partial(MonteCristoTorchEnv, 3, 3)), ActionMask())
    check_env_specs(env)
    assert env.rollout(8)["observation"].shape == (2, 3, 8, observation.SIZE)
    env.close()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_envs": 0}, InvalidArgument, "whole number from 1"),
        ({"num_players": 5}, InvalidPlayerCount, "2 to 4 players can play, not 5"),
        ({"num_players": [2, 3], "num_envs": 2}, InvalidArgument, "the same in all games"),
        ({"seed": -1}, InvalidArgument, "must not be negative"),
        ({"ruleset": 40}, UnplayableRuleset, "40"),
        ({"reward": "money"}, InvalidArgument, "win, rank, margin"),
        ({"obs_dtype": "float64"}, InvalidArgument, "float32, int8"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        MonteCristoTorchEnv(**arguments)


def test_without_torchrl_the_import_says_what_to_install() -> None:
    done = run_python(
        "import sys\n"
        "sys.modules['torchrl'] = None\n"
        "try:\n"
        "    import montecristo_env.torchrl\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    assert done.returncode == 0, done.stderr
    assert "pip install 'montecristo-env[torchrl]'" in done.stdout


# --- Gymnasium's environments in TorchRL's wrapper --------------------------------------------------------------------


def test_torchrls_wrapper_accepts_the_native_vector_env() -> None:
    torch.manual_seed(0)
    settings: dict[str, Any] = {"mask_in_observation": True, "num_players": 3, "autoreset_mode": "Disabled"}

    def made(**more: Any) -> TransformedEnv:
        vector = gymnasium.make_vec(ENV_ID, num_envs=4, **settings, **more)
        return TransformedEnv(GymWrapper(vector, categorical_action_encoding=True), ActionMask())

    check_env_specs(made())  # in whole games, none of which ends meanwhile: a random action of one that is over is none
    env = made(ruleset=SHORT)
    env.set_seed(0)
    data = env.rollout(120, break_when_any_done=False)
    over = data["next", "done"].squeeze(-1)
    assert over.sum() > 4
    assert data["next", "reward"][over].any() and not data["next", "reward"][~over].any()
    chosen = data["action_mask"].gather(-1, data["action"].unsqueeze(-1))
    assert chosen.all()
    begins, ends = data["observation"][:, 1:][over[:, :-1]], data["next", "observation"][:, :-1][over[:, :-1]]
    assert (begins != ends).any(-1).all()  # the last observation is of the game that ended, not of the next


def test_torchrls_wrapper_accepts_the_game_of_openspiel() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    import montecristo_env.openspiel  # noqa: F401 - it registers the game

    torch.manual_seed(0)
    game = pyspiel.load_game("python_montecristo(players=3,round_limit=2)")
    env = OpenSpielWrapper(game.new_initial_state(), categorical_actions=True)
    check_env_specs(env)
    data = env.rollout(1000)
    rewards = data["next", "agents", "reward"].squeeze(-1)
    assert data["next", "done"][-1] and rewards[-1].any() and not rewards[:-1].any()
    assert rewards[-1].sum() == pytest.approx(0, abs=1e-6)


# --- The recipe -------------------------------------------------------------------------------------------------------


def test_the_critic_gives_every_seat_its_value() -> None:
    from montecristo_train.torchrl import Critic, Settings

    torch.manual_seed(0)
    critic = Critic(Settings(players=3, hidden_units=8))
    seen = torch.rand(1, observation.SIZE).expand(3, -1)
    values = critic(seen, torch.tensor([[0], [1], [2]])).squeeze(-1)
    own = critic.layers(seen[:1])[0]  # the player to decide first, then clockwise
    for seat in range(3):
        torch.testing.assert_close(values[seat].roll(-seat), own)


def test_the_recipe_runs_from_the_command_line() -> None:
    options = ["--total-timesteps", "256", "--n-envs", "8", "--n-steps", "16", "--batch-size", "64", "--players", "3"]
    command = [sys.executable, "-m", "montecristo_train.torchrl", *options, "--evaluate-deals", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "256 of 256 decisions" in done.stdout and "3 players, rules: default, 2 deals" in done.stdout
