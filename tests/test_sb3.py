"""The Stable-Baselines3 interface: MaskablePPO on the native VecEnv, its infos, and equality with SB3's own VecEnv."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from montecristo_env import InvalidArgument, Ruleset, actions, observation
from montecristo_env.gym_env import MonteCristoEnv
from shell_helpers import (
    SHORT,
    ChecksumAgent,
    LowestAgent,
    RecordingAgent,
    assert_same,
    illegal_one,
    legal_ones,
    run_python,
)

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, VecNormalize
from stable_baselines3.common.vec_env.vec_check_nan import VecCheckNan

from montecristo_env.sb3 import MonteCristoVecEnv

PLAYERS = pytest.mark.parametrize("num_players", [2, 3, 4])
STRICT = pytest.mark.filterwarnings("error")


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Any:
    """Small nets train fastest on one core."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def learner(env: Any) -> MaskablePPO:
    """A small PPO."""
    return MaskablePPO(
        "MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=1, seed=0, device="cpu", policy_kwargs={"net_arch": [8]}
    )


def play_until_an_end(env: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Any]]:
    """The step at which some game ends."""
    while True:
        step = env.step(legal_ones(get_action_masks(env), rng))
        if step[2].any():
            return step  # type: ignore[no-any-return]


# --- Training --------------------------------------------------------------------------------------------------------


@STRICT
@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
def test_maskable_ppo_trains_on_it_as_it_is_and_predicts_legal_actions(obs_dtype: str) -> None:
    env = MonteCristoVecEnv(8, "random", num_players=3, ruleset=SHORT, obs_dtype=obs_dtype)
    model = learner(env)
    assert model.get_env() is env  # nothing was wrapped around it
    before = [weights.clone() for weights in model.policy.parameters()]
    model.learn(512)
    assert any((one != other).any() for one, other in zip(before, model.policy.parameters(), strict=True))
    assert model.ep_info_buffer and {"r", "l", "t", "win"} <= model.ep_info_buffer[0].keys()
    assert not any(episode["illegal_action"] for episode in model.ep_info_buffer)
    seen = env.reset()
    for deterministic in (True, False):
        masks = env.action_masks()
        acts, _ = model.predict(seen, action_masks=masks, deterministic=deterministic)
        assert masks[np.arange(8), acts].all()
        seen, _, _, _ = env.step(acts)


@STRICT
def test_evaluate_policy_needs_no_monitor() -> None:
    env = MonteCristoVecEnv(4, "random", ruleset=SHORT)
    model = learner(env)
    rewards, lengths = evaluate_policy(model, env, n_eval_episodes=8, return_episode_rewards=True)
    assert len(rewards) == len(lengths) == 8
    assert set(np.round(rewards, 3)) <= {-1.0, 0.0, 1.0} and min(lengths) > 1


@STRICT
def test_a_saved_model_plays_on_a_new_env(tmp_path: Path) -> None:
    env = MonteCristoVecEnv(2, "random", ruleset=SHORT)
    model = learner(env)
    model.save(tmp_path / "model")
    again = MaskablePPO.load(tmp_path / "model", env=MonteCristoVecEnv(2, "random", ruleset=SHORT))
    env.seed(0)
    seen, masks = env.reset(), env.action_masks()
    assert_same(*(one.predict(seen, action_masks=masks, deterministic=True)[0] for one in (model, again)))


def test_it_is_a_vec_env_with_masks() -> None:
    env = MonteCristoVecEnv(3)
    assert isinstance(env, VecEnv) and env.unwrapped is env
    assert env.num_envs == 3
    assert env.observation_space == MonteCristoEnv().observation_space
    assert env.action_space == MonteCristoEnv().action_space
    assert is_masking_supported(env)
    env.seed(0)
    env.reset()
    masks = get_action_masks(env)
    assert masks.dtype == np.bool_ and masks.shape == (3, actions.COUNT)
    assert_same(masks, env.action_masks())
    assert_same(masks, env.games.action_mask().astype(bool))


def test_masks_come_in_observations_if_asked_for() -> None:
    env = MonteCristoVecEnv(3, ruleset=SHORT, mask_in_observation=True)
    assert env.observation_space == MonteCristoEnv(mask_in_observation=True).observation_space
    env.seed(0)
    seen = env.reset()
    for _ in range(60):
        assert_same(seen["action_mask"], env.action_masks().astype(np.int8))
        assert seen["observation"].shape == (3, observation.SIZE)
        seen, _, dones, infos = env.step(env.action_masks().argmax(axis=1))
        for info in np.array(infos)[dones]:
            assert env.observation_space.contains(info["terminal_observation"])
            assert not info["terminal_observation"]["action_mask"].any()
    MaskablePPO("MultiInputPolicy", env, n_steps=8, batch_size=8, n_epochs=1).learn(24)


# --- A step ----------------------------------------------------------------------------------------------------------


VARIANTS: dict[str, dict[str, Any]] = {
    "2 random": {"opponents": "random"},
    "3 checksum": {"opponents": (ChecksumAgent(1), ChecksumAgent(2)), "reward": "rank"},
    "4 mixed": {"opponents": ("random", LowestAgent(), "random"), "reward": "margin"},
    "fixed seat": {"opponents": ("random", "random"), "seat": 1},
    "int8": {"opponents": "random", "obs_dtype": "int8"},
}


@STRICT
@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("ruleset", [Ruleset(target=8), SHORT], ids=["terminated", "truncated"])
def test_it_equals_sb3s_own_vec_env_of_single_envs(settings: dict[str, Any], ruleset: Ruleset) -> None:
    settings = settings | {"ruleset": ruleset}
    native = MonteCristoVecEnv(5, **settings)
    dummy = DummyVecEnv([lambda: MonteCristoEnv(**settings)] * 5)
    rng = np.random.default_rng(3)
    assert native.seed(9) == dummy.seed(9)
    assert_same(native.reset(), dummy.reset())
    ended = mistakes = 0
    for _ in range(120):
        masks = get_action_masks(native)
        assert_same(native.get_attr("seat"), dummy.get_attr("seat"))
        assert_same(masks, get_action_masks(dummy).astype(bool))
        acts = legal_ones(masks, rng)
        for row in np.flatnonzero(rng.random(5) < 0.01):
            acts[row] = illegal_one(masks[row])
            mistakes += 1
        found, expected = native.step(acts), dummy.step(acts)
        for one, other in zip(found[:3], expected[:3], strict=True):
            assert_same(one, other)
        for row in np.flatnonzero(found[2]):
            info, expected_info = found[3][row], expected[3][row]
            for name in ("terminal_observation", "TimeLimit.truncated", "score_margin", "decisions", "illegal_action"):
                assert_same(info[name], expected_info[name], name)
            assert info["win"] == expected_info["win"]
            assert_same(native.reset_infos[row], dummy.reset_infos[row])
            ended += 1
    assert ended > 8 and mistakes > 2


@PLAYERS
def test_what_a_step_returns(num_players: int) -> None:
    env = MonteCristoVecEnv(6, "random", num_players, ruleset=SHORT, reward="margin")
    rng = np.random.default_rng(0)
    env.seed(0)
    seen = env.reset()
    ended = 0
    for _ in range(60):
        assert seen.dtype == np.float32 and seen.shape == (6, observation.SIZE)
        assert all(env.observation_space.contains(row) for row in seen)
        seen, rewards, dones, infos = env.step(legal_ones(env.action_masks(), rng))
        assert rewards.dtype == np.float32 and rewards.shape == (6,)
        assert dones.dtype == np.bool_ and dones.shape == (6,)
        assert len(infos) == 6 and all(type(info) is dict for info in infos)
        assert not rewards[~dones].any()
        assert all("episode" not in info and "terminal_observation" not in info for info in np.array(infos)[~dones])
        ended += int(dones.sum())
    assert ended > 6


def test_the_info_of_an_ended_game_has_monitors_keys_and_how_it_went() -> None:
    env = MonteCristoVecEnv(4, "random", num_players=3, ruleset=Ruleset(target=8), reward="rank")
    rng = np.random.default_rng(0)
    env.seed(1)
    env.reset()
    lengths, times = np.zeros(4, int), []
    for _ in range(150):
        before = env.games.copy()
        _, rewards, dones, infos = env.step(legal_ones(env.action_masks(), rng))
        lengths += 1
        for row in np.flatnonzero(dones):
            info, episode = infos[row], infos[row]["episode"]
            assert episode.keys() == {"r", "l", "t", "win", "score_margin", "decisions", "illegal_action"}
            assert type(episode["r"]) is float and episode["r"] == rewards[row]
            assert type(episode["l"]) is int and episode["l"] == lengths[row]
            assert type(episode["win"]) is float and 0 <= episode["win"] <= 1
            assert type(episode["score_margin"]) is int and (episode["win"] == 0 or episode["score_margin"] >= 0)
            assert type(episode["decisions"]) is int and episode["decisions"] > before.states["decisions"][row]
            assert episode["illegal_action"] is False and info["TimeLimit.truncated"] is False
            assert all(info[name] == episode[name] for name in ("win", "score_margin", "decisions", "illegal_action"))
            times.append(episode["t"])
        lengths[dones] = 0
    assert len(times) > 4 and times == sorted(times) and times[0] > 0


def test_a_cut_off_game_is_marked_for_bootstrapping_and_a_finished_one_is_not() -> None:
    rng = np.random.default_rng(0)
    for ruleset, cut_off in ((SHORT, True), (Ruleset(target=5), False)):
        env = MonteCristoVecEnv(3, "random", ruleset=ruleset)
        env.reset()
        _, _, dones, infos = play_until_an_end(env, rng)
        for row in np.flatnonzero(dones):
            assert infos[row]["TimeLimit.truncated"] is cut_off


def test_the_terminal_observation_is_of_the_game_that_ended_not_of_the_next() -> None:
    env, twin = MonteCristoVecEnv(1, "random", seat=0, ruleset=SHORT), MonteCristoEnv("random", seat=0, ruleset=SHORT)
    env.seed(5)
    env.reset()
    twin.reset(seed=5)
    done, first = False, None
    while not done:
        acts = env.action_masks().argmax(axis=1)
        seen, _, (done,), (info,) = env.step(acts)
        last, _, _, truncated, _ = twin.step(acts[0])
    first, _ = twin.reset()
    assert truncated
    assert_same(info["terminal_observation"], last)
    assert_same(seen[0], first)
    assert not np.array_equal(first, last)


def test_an_illegal_action_ends_its_own_game_only() -> None:
    env = MonteCristoVecEnv(3, "random")
    env.seed(0)
    env.reset()
    masks = env.action_masks()
    acts = masks.argmax(axis=1)
    acts[1] = illegal_one(masks[1])
    _, rewards, dones, infos = env.step(acts)
    assert dones.tolist() == [False, True, False] and rewards.tolist() == [0, -1, 0]
    assert infos[1]["episode"]["illegal_action"] is True and infos[1]["episode"]["r"] == -1.0
    assert infos[1]["episode"]["l"] == 1 and infos[1]["TimeLimit.truncated"] is False
    assert env.action_masks().any(axis=1).all()


@pytest.mark.parametrize("acts", [np.zeros(2, int), np.zeros((3, 1), int), 0, [[0, 0, 0]], []], ids=repr)
def test_actions_of_another_shape_are_refused(acts: Any) -> None:
    env = MonteCristoVecEnv(3)
    env.reset()
    before = env.games.states.tobytes()
    with pytest.raises(InvalidArgument, match=r"must have the shape \(3,\)"):
        env.step(acts)
    assert env.games.states.tobytes() == before


@pytest.mark.parametrize("acts", [[0.5, 1.5, 2.5], ["a", "b", "c"]], ids=repr)
def test_actions_that_are_no_whole_numbers_are_refused(acts: Any) -> None:
    env = MonteCristoVecEnv(3)
    env.reset()
    with pytest.raises(InvalidArgument, match="whole numbers"):
        env.step(acts)


# --- Seeds and resets ------------------------------------------------------------------------------------------------


def test_seeds_make_the_next_reset_deterministic_and_are_used_once() -> None:
    env, twin = MonteCristoVecEnv(3, "random", 3), MonteCristoVecEnv(3, "random", 3)
    assert env.seed(4) == [4, 5, 6]
    twin.seed(4)
    first = env.reset()
    assert_same(twin.reset(), first)
    assert len({row.tobytes() for row in first}) == 3
    second = env.reset()
    assert not np.array_equal(second, first)
    assert_same(twin.reset(), second)
    env.seed(4)
    assert_same(env.reset(), first)
    for row in range(3):
        assert_same(first[row], MonteCristoEnv("random", 3).reset(seed=4 + row)[0])


def test_reset_infos_hold_the_masks_of_the_first_decisions() -> None:
    env = MonteCristoVecEnv(4, "random", ruleset=SHORT)
    env.reset()
    assert_same([info["action_mask"] for info in env.reset_infos], list(env.games.action_mask()))
    first = [info["action_mask"].copy() for info in env.reset_infos]
    _, _, dones, _ = play_until_an_end(env, np.random.default_rng(0))
    assert not dones.all()
    for row, info in enumerate(env.reset_infos):
        assert_same(info["action_mask"], env.games.action_mask()[row] if dones[row] else first[row])


def test_an_opponent_is_asked_for_all_waiting_games_at_once() -> None:
    opponent = RecordingAgent()
    env = MonteCristoVecEnv(64, opponent)
    env.reset()
    for _ in range(5):
        env.step(env.action_masks().argmax(axis=1))
    assert max(map(len, opponent.calls)) > 20


# --- One table of many -----------------------------------------------------------------------------------------------


def test_get_attr_and_has_attr() -> None:
    env = MonteCristoVecEnv(3, "random", num_players=4)
    env.reset()
    assert env.get_attr("num_players") == [4, 4, 4]
    assert env.get_attr("num_players", indices=[0, 2]) == [4, 4]
    assert env.get_attr("render_mode", indices=1) == [None]
    assert env.get_attr("seat") == env.games.current_player.tolist()
    assert env.get_attr("action_space") == [env.action_space] * 3
    assert env.get_attr("spec") == [None] * 3
    assert env.has_attr("action_masks") and env.has_attr("seat")
    assert not env.has_attr("wings")
    with pytest.raises(AttributeError):
        env.get_attr("wings")


def test_set_attr_changes_the_seats_of_the_games_to_come() -> None:
    env = MonteCristoVecEnv(3, "random", num_players=3, seat=0)
    env.reset()
    env.set_attr("seat", 2)
    assert env.get_attr("seat") == [0, 0, 0]
    env.reset()
    assert env.get_attr("seat") == [2, 2, 2]
    env.set_attr("seat", 1, indices=[0])
    env.set_attr("seat", np.int64(0), indices=2)
    env.reset()
    assert env.get_attr("seat") == [1, 2, 0]
    env.set_attr("seat", "random")
    drawn = set()
    for _ in range(20):
        env.reset()
        drawn |= set(env.get_attr("seat"))
    assert drawn == {0, 1, 2}
    for seat in (3, -1, "first", None):
        with pytest.raises(InvalidArgument, match='0 to 2 or "random"'):
            env.set_attr("seat", seat)


def test_set_attr_keeps_what_users_want_to_keep() -> None:
    env = MonteCristoVecEnv(3)
    env.set_attr("level", 7, indices=[1])
    assert env.get_attr("level", indices=1) == [7]
    assert not env.has_attr("level")  # not at every table


def test_env_method() -> None:
    env = MonteCristoVecEnv(3, "random", num_players=3)
    env.reset()
    masks = env.action_masks()
    assert_same(env.env_method("action_masks"), list(masks))
    assert_same(env.env_method("action_masks", indices=[2, 0]), [masks[2], masks[0]])
    assert_same(env.env_method("action_masks", indices=1), [masks[1]])
    assert env.env_method("public_state", indices=1) == [env.games.public_state(1)]
    with pytest.raises(AttributeError):
        env.env_method("fly")


def test_env_is_wrapped_by_nothing_but_what_does_monitors_work() -> None:
    env = MonteCristoVecEnv(3)
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert env.env_is_wrapped(Monitor, indices=[1]) == [True]
    assert env.env_is_wrapped(VecNormalize) == [False] * 3


# --- SB3's wrappers and checks ---------------------------------------------------------------------------------------


def test_vec_monitor_counts_the_same(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The environment is already wrapped with a `Monitor`")
        env = VecMonitor(
            MonteCristoVecEnv(3, "random", ruleset=SHORT), str(tmp_path / "log"), ("win", "score_margin", "decisions")
        )
    plain = MonteCristoVecEnv(3, "random", ruleset=SHORT)
    rng = np.random.default_rng(0)
    for one in (env, plain):
        one.seed(0)
        one.reset()
    for _ in range(60):
        acts = legal_ones(plain.action_masks(), rng)
        *_, dones, infos = env.step(acts)
        *_, expected = plain.step(acts)
        for row in np.flatnonzero(dones):
            found, wanted = infos[row]["episode"], expected[row]["episode"]
            assert all(found[key] == wanted[key] for key in ("r", "l", "win", "score_margin", "decisions"))
    env.close()
    assert len((tmp_path / "log.monitor.csv").read_text().splitlines()) > 4


@STRICT
def test_vec_normalize_and_training_on_it() -> None:
    env = VecNormalize(MonteCristoVecEnv(4, "random", ruleset=SHORT))
    assert is_masking_supported(env)
    learner(env).learn(128)
    seen = env.normalize_obs(env.venv.reset())
    assert seen.shape == (4, observation.SIZE) and np.isfinite(seen).all()
    assert env.ret_rms.count > 100


@STRICT
def test_vec_check_nan_finds_nothing() -> None:
    env = VecCheckNan(MonteCristoVecEnv(4, "random", ruleset=SHORT), raise_exception=True)
    env.reset()
    play_until_an_end(env, np.random.default_rng(0))


@STRICT
@PLAYERS
def test_sb3s_check_env_finds_nothing_in_the_single_env(num_players: int) -> None:
    check_env(MonteCristoEnv("random", num_players), warn=True)


@STRICT
def test_maskable_ppo_trains_on_the_single_env_too() -> None:
    learner(MonteCristoEnv("random", ruleset=SHORT)).learn(64)


@STRICT
def test_pictures_of_all_tables_are_tiled() -> None:
    env = MonteCristoVecEnv(3, render_mode="rgb_array")
    env.reset()
    one, *_ = images = env.get_images()
    assert len(images) == 3 and one is not None and one.dtype == np.uint8
    picture = env.render()
    assert picture is not None and picture.shape == (2 * one.shape[0], 2 * one.shape[1], 3)
    env.close()


@STRICT
def test_text_of_all_tables() -> None:
    env = MonteCristoVecEnv(2, render_mode="ansi")
    env.reset()
    assert all(isinstance(text, str) for text in env.env_method("render"))
    env.close()


# --- Bad arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "whole number from 1"),
        ({"num_envs": 2.0}, "whole number from 1"),
        ({"seat": 2}, '0 to 1 or "random"'),
        ({"opponents": "nobody"}, "no agent is called 'nobody': there are .*random"),
        ({"num_players": 5}, "2 to 4 players"),
        ({"reward": "money"}, "win, rank, margin"),
        ({"obs_dtype": "float64"}, "float32, int8"),
        ({"render_mode": "video"}, "human, rgb_array, ansi"),
    ],
)
def test_bad_arguments_are_refused_saying_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        MonteCristoVecEnv(**arguments)


def test_without_sb3_the_import_says_what_to_install() -> None:
    done = run_python(
        "import sys\n"
        "sys.modules['stable_baselines3'] = None\n"
        "import montecristo_env\n"  # everything else needs no SB3
        "try:\n"
        "    import montecristo_env.sb3\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    assert done.returncode == 0, done.stderr
    assert "pip install 'montecristo-env[sb3]'" in done.stdout


def test_a_step_before_the_first_reset_is_refused() -> None:
    with pytest.raises(ResetNeeded, match="call reset"):
        MonteCristoVecEnv(2).step(np.zeros(2, np.int64))
