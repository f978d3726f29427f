"""The PettingZoo interface: wrappers, order of play, rewards, copies, and PettingZoo's own tests."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import api_test, performance_benchmark, render_test, seed_test, state_test
from pettingzoo.test import test_save_obs as save_obs_test
from pettingzoo.test.state_test import test_state_space as check_state_space
from pettingzoo.utils import turn_based_aec_to_parallel, wrappers
from pettingzoo.utils.env_logger import EnvLogger

from montecristo_env import (
    GameBatch,
    IllegalAction,
    InvalidArgument,
    InvalidPlayerCount,
    Ruleset,
    UnplayableRuleset,
    actions,
    montecristo_v0,
    observation,
)
from shell_helpers import AEC_ID, NO_MASK, SHORT, assert_same, choose, illegal_one, run_python, scaled, transcripts

PLAYERS = pytest.mark.parametrize("num_players", [2, 3, 4])
EITHER = pytest.mark.parametrize("make", [montecristo_v0.raw_env, montecristo_v0.env])
Make = Callable[..., Any]


def batch_like(env: Any, seed: int, **settings: Any) -> GameBatch:
    """The game that `env` deals for this seed."""
    return GameBatch(1, env.max_num_agents, seed, **settings)


def play(env: Any, decisions: int | None = None) -> list[int]:
    """Plays by checksum, to the end or for some decisions."""
    made: list[int] = []
    while env.agents and (decisions is None or len(made) < decisions):
        seat = env.possible_agents.index(env.agent_selection)
        if env.terminations[env.agent_selection] or env.truncations[env.agent_selection]:
            break
        games = env.unwrapped.games
        made.append(int(choose(games.observe(player=seat), games.action_mask())[0]))
        env.step(made[-1])
    return made


def moment(env: Any) -> dict[str, Any]:
    """Everything that can be seen of an environment."""
    return {
        "agents": list(env.agents),
        "selected": env.agent_selection,
        "observations": {agent: env.observe(agent) for agent in env.possible_agents},
        "rewards": dict(env.rewards),
        "cumulative": dict(env._cumulative_rewards),
        "terminations": dict(env.terminations),
        "truncations": dict(env.truncations),
        "infos": copy.deepcopy(env.infos),
        "state": env.state(),
    }


@pytest.fixture
def hasty_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows that nobody sees and that wait for nobody."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr("montecristo_env.render.renderer.RENDER_FPS", 1000.0)


# --- Making one ------------------------------------------------------------------------------------------------------


@PLAYERS
def test_env_has_the_conventional_wrappers_in_the_conventional_order(num_players: int) -> None:
    env = montecristo_v0.env(num_players=num_players)
    assert isinstance(env, wrappers.OrderEnforcingWrapper)
    assert isinstance(env.env, wrappers.AssertOutOfBoundsWrapper)
    assert isinstance(env.env.env, wrappers.TerminateIllegalWrapper)
    assert type(env.env.env.env) is montecristo_v0.raw_env
    assert env.unwrapped is env.env.env.env
    assert env.possible_agents == [f"player_{seat}" for seat in range(num_players)]
    assert env.max_num_agents == num_players


@PLAYERS
def test_pettingzoo_makes_it_by_name(num_players: int) -> None:
    with warnings.catch_warnings(action="error"):
        env = pettingzoo.make("aec", AEC_ID, num_players=num_players, reward="rank", obs_dtype="int8")
    assert isinstance(env, wrappers.OrderEnforcingWrapper)
    assert isinstance(env.unwrapped, montecristo_v0.raw_env)
    assert env.max_num_agents == num_players
    assert env.unwrapped.games.reward == "rank"
    assert env.observation_space("player_0")["observation"].dtype == np.int8


def test_it_works_where_pettingzoo_has_no_registry() -> None:
    done = run_python(
        "import pettingzoo\n"
        "for name in ('register', 'make', 'spec', 'aec_registry'):\n"
        "    vars(pettingzoo).pop(name, None)\n"
        "from montecristo_env import montecristo_v0\n"
        "env = montecristo_v0.env(num_players=3)\n"
        "env.reset(seed=1)\n"
        "print(env.agents, env.unwrapped)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "['player_0', 'player_1', 'player_2'] montecristo_v0"


@EITHER
def test_metadata(make: Make) -> None:
    env = make()
    assert env.metadata["name"] == "montecristo_v0"
    assert set(env.metadata["render_modes"]) == {"human", "rgb_array", "ansi"}
    assert env.metadata["render_fps"] > 0
    assert env.metadata["is_parallelizable"] is False
    assert env.render_mode is None
    assert str(env.unwrapped) == "montecristo_v0"


@EITHER
@pytest.mark.parametrize(
    ("arguments", "error", "allowed"),
    [
        ({"render_mode": "video"}, InvalidArgument, "human, rgb_array, ansi"),
        ({"num_players": 1}, InvalidPlayerCount, "2 to 4"),
        ({"num_players": 5}, InvalidPlayerCount, "2 to 4"),
        ({"num_players": 2.5}, InvalidPlayerCount, "whole number"),
        ({"num_players": "three"}, InvalidPlayerCount, "whole number"),
        ({"obs_dtype": "float64"}, InvalidArgument, "float32, int8"),
        ({"reward": "money"}, InvalidArgument, "win, rank, margin"),
        ({"ruleset": {"targets": 30}}, UnplayableRuleset, "a rule set is a mapping with some of"),
    ],
)
def test_bad_arguments_are_refused_saying_what_is_allowed(
    make: Make, arguments: dict[str, Any], error: type[Exception], allowed: str
) -> None:
    with pytest.raises(error, match=allowed) as refusal:
        make(**arguments)
    assert repr(next(iter(arguments.values()))) in str(refusal.value)


# --- What is seen ----------------------------------------------------------------------------------------------------


@EITHER
@PLAYERS
@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
def test_observations_masks_and_infos_of_a_whole_game(make: Make, num_players: int, obs_dtype: str) -> None:
    env = make(num_players=num_players, obs_dtype=obs_dtype)
    env.reset(seed=5)
    games = batch_like(env, 5)
    while not games.over[0]:
        decider = int(games.current_player[0])
        assert env.agent_selection == f"player_{decider}"
        for seat, agent in enumerate(env.possible_agents):
            seen = env.observe(agent)
            mask = games.action_mask()[0] if seat == decider else NO_MASK
            view = games.observe(player=seat)[0]
            expected = {"observation": view if obs_dtype == "int8" else scaled(view), "action_mask": mask}
            assert_same(seen, expected, agent)
            assert_same(env.infos[agent], {"action_mask": mask}, agent)
            assert env.observation_space(agent).contains(seen)
        assert_same(env.last()[0], env.observe(env.agent_selection))
        action = choose(games.observe(), games.action_mask())
        games.step(action)
        env.step(int(action[0]))
    for seat, agent in enumerate(env.possible_agents):
        view = games.observe(player=seat)[0]
        expected = {"observation": view if obs_dtype == "int8" else scaled(view), "action_mask": NO_MASK}
        assert_same(env.observe(agent), expected, agent)
        assert_same(env.infos[agent], {"action_mask": NO_MASK}, agent)


def test_the_bounds_of_the_space_are_what_can_occur() -> None:
    space = montecristo_v0.raw_env().observation_space("player_0")
    scaled_space = space["observation"]
    assert scaled_space.dtype == np.float32 and (scaled_space.low == 0).all()
    assert_same(scaled_space.high, observation.HIGHEST * observation.SCALE)
    assert space["action_mask"] == gymnasium.spaces.Box(0, 1, (actions.COUNT,), np.int8)
    count = montecristo_v0.raw_env(obs_dtype="int8").observation_space("player_0")["observation"]
    assert count.dtype == np.int8 and (count.high == observation.HIGHEST).all() and (count.low == 0).all()


def test_an_observation_is_not_changed_by_what_follows() -> None:
    env = montecristo_v0.env(num_players=2)
    env.reset(seed=3)
    seen, _, _, _, info = env.last()
    kept = copy.deepcopy((seen, info))
    play(env, 20)
    env.reset(seed=4)
    assert_same(seen, kept[0])
    assert_same(info, kept[1])


@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
def test_writing_into_what_was_given_changes_nothing_in_the_env(obs_dtype: str) -> None:
    env, twin = (montecristo_v0.env(num_players=3, obs_dtype=obs_dtype) for _ in range(2))
    env.reset(seed=3)
    twin.reset(seed=3)
    for _ in range(5):
        seen, *_ = env.last()
        seen["observation"][:] = 0
        seen["action_mask"][:] = 1 - seen["action_mask"]
        for info in env.infos.values():
            try:
                info["action_mask"][:] = 1 - info["action_mask"]
            except ValueError:  # read-only is fine, too
                continue
        for agent in env.agents:
            assert_same(env.observe(agent), twin.observe(agent), agent)
        assert play(env, 1) == play(twin, 1)
        assert_same(env.last()[4], twin.last()[4])


@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
@EITHER
def test_state_is_the_view_of_seat_0_and_lies_in_the_state_space(make: Make, obs_dtype: str) -> None:
    env = make(num_players=3, obs_dtype=obs_dtype)
    env.reset(seed=8)
    with warnings.catch_warnings(action="error"):
        check_state_space(env)
    for _ in range(60):
        play(env, 1)
        assert env.state_space.contains(env.state())
        assert_same(env.state(), env.observe("player_0")["observation"])


# --- Who decides -----------------------------------------------------------------------------------------------------


@PLAYERS
def test_agents_come_in_the_order_of_the_game(num_players: int) -> None:
    """Compared with `GameBatch`; the order holds several decisions in a row and decisions out of turn."""
    in_a_row = out_of_turn = 0
    env = montecristo_v0.env(num_players=num_players)
    for seed in range(4):
        games = batch_like(env, seed)
        env.reset(seed=seed)
        last = None
        for agent in env.agent_iter():
            if games.over[0]:
                break
            decider = int(games.current_player[0])
            assert agent == f"player_{decider}"
            in_a_row += decider == last
            out_of_turn += decider != games.public_state()["active_player"]
            last = decider
            action = choose(games.observe(), games.action_mask())
            games.step(action)
            env.step(int(action[0]))
    assert in_a_row > 0 and out_of_turn > 0


@PLAYERS
def test_after_the_end_every_agent_is_asked_once_more_for_none(num_players: int) -> None:
    env = montecristo_v0.env(num_players=num_players, ruleset=SHORT)
    env.reset(seed=0)
    play(env)
    asked = []
    for agent in env.agent_iter():
        seen, _, terminated, truncated, info = env.last()
        assert terminated or truncated
        assert_same(info, {"action_mask": NO_MASK})
        assert_same(seen["action_mask"], NO_MASK)
        with pytest.raises(ValueError, match="the only valid action is None"):
            copy.deepcopy(env.unwrapped).step(0)
        asked.append(agent)
        env.step(None)
    assert sorted(asked) == env.possible_agents
    assert env.agents == []


# --- Rewards and ends ------------------------------------------------------------------------------------------------


@EITHER
@PLAYERS
@pytest.mark.parametrize("reward", ["win", "rank", "margin"])
def test_everybody_gets_the_reward_of_the_game_at_its_end_and_nothing_before(
    make: Make, num_players: int, reward: str
) -> None:
    env = make(num_players=num_players, reward=reward)
    for seed, (told,) in enumerate(transcripts(num_players, [0, 1], reward=reward)):
        env.reset(seed=seed)
        for turn in told.moments[:-1]:
            assert set(env.rewards.values()) == {0.0} == set(env._cumulative_rewards.values())
            assert not any(env.terminations.values()) and not any(env.truncations.values())
            env.step(turn.action)
        expected = dict(zip(env.possible_agents, told.rewards, strict=True))
        assert any(expected.values()) and sum(expected.values()) == pytest.approx(0, abs=1e-6)
        assert env.rewards == expected
        assert all(env.terminations.values()) and not any(env.truncations.values())
        got = {}
        for agent in env.agent_iter():
            got[agent] = env.last()[1]
            env.step(None)
        assert got == expected


@PLAYERS
def test_a_game_at_its_round_limit_is_truncated_not_terminated(num_players: int) -> None:
    env = montecristo_v0.env(num_players=num_players, ruleset=SHORT, reward="margin")
    ((told,),) = transcripts(num_players, [7], ruleset=SHORT, reward="margin")
    env.reset(seed=7)
    play(env)
    assert told.truncated and not told.terminated
    assert all(env.truncations.values()) and not any(env.terminations.values())
    assert list(env.rewards.values()) == told.rewards
    assert env.unwrapped.games.public_state()["round"] == 2


def test_the_same_seed_deals_the_same_game_and_another_seed_another() -> None:
    env, twin = montecristo_v0.env(num_players=3), montecristo_v0.env(num_players=3)
    env.reset(seed=11)
    first = env.state()
    env.reset(seed=12)
    assert not np.array_equal(env.state(), first)
    play(env, 30)
    env.reset(seed=11)
    twin.reset(seed=11)
    for _ in range(2):  # the game of the seed, and the one that follows it
        assert_same(moment(env), moment(twin))
        assert play(env) == play(twin)
        assert_same(moment(env), moment(twin))
        env.reset()
        twin.reset()


# --- The stock wrappers' behaviour -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda env: env.step(0), "reset() needs to be called before step."),
        (lambda env: env.observe("player_0"), "reset() needs to be called before observe."),
        (lambda env: env.state(), "reset() needs to be called before state."),
        (lambda env: env.render(), "reset() needs to be called before render."),
        (lambda env: env.agent_iter(), "reset() needs to be called before agent_iter()."),
    ],
    ids=["step", "observe", "state", "render", "agent_iter"],
)
def test_calls_before_reset_fail_as_in_every_pettingzoo_env(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(AssertionError) as failure:
        call(montecristo_v0.env())
    assert str(failure.value) == message


@pytest.mark.parametrize(
    "name", ["rewards", "terminations", "truncations", "infos", "agent_selection", "num_agents", "agents"]
)
def test_attributes_before_reset_fail_as_in_every_pettingzoo_env(name: str) -> None:
    env = montecristo_v0.env()
    with pytest.raises(AttributeError, match=f"{name} cannot be accessed before reset"):
        getattr(env, name)
    assert not hasattr(env, name)
    env.reset()
    assert hasattr(env, name)


@pytest.mark.parametrize("action", [-1, actions.COUNT, 10**9, 1.5, None, "deal"])
def test_an_action_outside_the_space_is_an_assertion_error(action: Any) -> None:
    env = montecristo_v0.env()
    env.reset(seed=0)
    before = moment(env)
    with pytest.raises(AssertionError, match="action is not in action space"):
        env.step(action)
    assert_same(moment(env), before)


@pytest.mark.parametrize("kind", [int, np.int8, np.int32, np.int64, np.uint8])
def test_any_kind_of_whole_number_is_an_action(kind: Any) -> None:
    env, twin = montecristo_v0.env(), montecristo_v0.env()
    env.reset(seed=1)
    twin.reset(seed=1)
    action = int(np.flatnonzero(env.last()[0]["action_mask"])[0])
    env.step(kind(action))
    twin.step(action)
    assert_same(moment(env), moment(twin))


@PLAYERS
@pytest.mark.parametrize("look_first", [False, True])
@pytest.mark.parametrize("decisions", [0, 33])
def test_an_illegal_action_ends_the_game_with_a_warning_and_minus_1(
    num_players: int, look_first: bool, decisions: int
) -> None:
    env = montecristo_v0.env(num_players=num_players)
    env.reset(seed=6)
    play(env, decisions)
    culprit = env.agent_selection
    mask = env.infos[culprit]["action_mask"]
    if look_first:
        env.last()
    EnvLogger.flush()
    EnvLogger.suppress_output()
    try:
        env.step(illegal_one(mask))
    finally:
        EnvLogger.unsuppress_output()
    assert any("Illegal move made, game terminating with current player losing" in text for text in EnvLogger.mqueue)
    assert all(env.terminations.values()) and all(env.truncations.values())
    expected = {agent: -1.0 if agent == culprit else 0.0 for agent in env.possible_agents}
    assert env.rewards == expected
    got = {}
    for agent in env.agent_iter():
        got[agent] = env.last()[1]
        env.step(None)
    assert got == expected and env.agents == []
    env.reset(seed=6)  # and the next game is a game again
    assert play(env)
    assert env.rewards == pytest.approx(dict(zip(env.agents, env.unwrapped.games.rewards[0].tolist(), strict=False)))


@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
def test_after_an_illegal_action_everybody_has_their_own_view_and_no_legal_actions(obs_dtype: str) -> None:
    env = montecristo_v0.env(num_players=3, obs_dtype=obs_dtype)
    env.reset(seed=6)
    while env.agent_selection == "player_0":  # whom PettingZoo asks first when the game has ended
        play(env, 1)
    views = {agent: env.observe(agent)["observation"] for agent in env.agents}
    env.step(illegal_one(env.last()[0]["action_mask"]))
    for agent in env.possible_agents:
        assert_same(env.observe(agent), {"observation": views[agent], "action_mask": NO_MASK}, agent)
        assert_same(env.infos[agent], {"action_mask": NO_MASK}, agent)


def test_the_raw_env_refuses_an_illegal_action_and_changes_nothing() -> None:
    env = montecristo_v0.raw_env(num_players=3)
    env.reset(seed=2)
    play(env, 15)
    before = moment(env)
    with pytest.raises(IllegalAction, match="legal are"):
        env.step(illegal_one(env.last()[0]["action_mask"]))
    assert_same(moment(env), before)


def test_a_step_after_the_end_warns_and_does_nothing() -> None:
    env = montecristo_v0.env(ruleset=SHORT)
    env.reset(seed=2)
    play(env)
    for _ in env.agent_iter():
        env.step(None)
    EnvLogger.flush()
    env.step(0)
    assert any("step() called after all agents are terminated or truncated" in text for text in EnvLogger.mqueue)
    assert env.agents == []


def test_agent_iter_wants_a_step_in_every_round() -> None:
    env = montecristo_v0.env()
    env.reset()
    turns = iter(env.agent_iter())
    next(turns)
    with pytest.raises(AssertionError, match="need to call step"):
        next(turns)


# --- Copies ----------------------------------------------------------------------------------------------------------


COPY = pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env)), lambda env: env.clone()],
    ids=["deepcopy", "pickle", "clone"],
)


@COPY
@EITHER
@PLAYERS
def test_a_copy_in_mid_game_goes_on_as_the_original_and_apart_from_it(
    make: Make, num_players: int, duplicate: Callable[[Any], Any]
) -> None:
    env = make(num_players=num_players)
    env.reset(seed=9)
    play(env, 40)
    env.last()  # what the wrappers remember of it is copied too
    before = moment(env)
    twin = duplicate(env)
    assert type(twin) is type(env) and twin.unwrapped is not env.unwrapped
    assert_same(moment(twin), before)
    rest = play(twin)
    assert_same(moment(env), before)
    assert play(env) == rest
    assert_same(moment(env), moment(twin))
    env.reset()
    twin.reset()
    assert_same(moment(env), moment(twin))


@COPY
def test_a_copy_before_reset_or_after_the_end_is_alike_too(duplicate: Callable[[Any], Any]) -> None:
    env = montecristo_v0.env(ruleset=SHORT)
    fresh = duplicate(env)
    with pytest.raises(AssertionError, match="reset"):
        fresh.step(0)
    env.reset(seed=1)
    play(env)
    env.step(None)
    twin = duplicate(env)
    assert twin.agents == env.agents and len(twin.agents) == 1
    twin.step(None)
    assert twin.agents == [] and len(env.agents) == 1


@COPY
def test_a_copy_of_a_wrapped_env_ends_by_its_own_illegal_action_only(duplicate: Callable[[Any], Any]) -> None:
    env = montecristo_v0.env(num_players=3)
    env.reset(seed=9)
    play(env, 10)
    twin = duplicate(env)
    twin.step(illegal_one(twin.last()[0]["action_mask"]))
    assert all(twin.terminations.values())
    assert not any(env.terminations.values())
    assert play(env)


@EITHER
@PLAYERS
def test_set_state_goes_back_to_what_get_state_has_kept(make: Make, num_players: int) -> None:
    env, other = make(num_players=num_players), make(num_players=num_players)
    env.reset(seed=10)
    play(env, 25)
    kept, before = env.get_state(), moment(env)
    rest = play(env)
    ending = moment(env)
    for _ in range(2):  # a state may be used again and again
        env.set_state(kept)
        assert_same(moment(env), before)
        assert play(env) == rest
        assert_same(moment(env), ending)
    other.set_state(kept)  # serves as a reset
    assert_same(moment(other), before)
    assert play(other) == rest
    assert_same(moment(other), ending)


@EITHER
def test_set_state_brings_back_an_ended_game_too(make: Make) -> None:
    env = make(num_players=3, ruleset=SHORT)
    env.reset(seed=10)
    play(env)
    env.step(None)
    kept, before = env.get_state(), moment(env)
    env.reset(seed=11)
    env.set_state(kept)
    assert_same(moment(env), before)
    for _ in env.agent_iter():
        env.step(None)
    assert env.agents == []


def test_after_set_state_the_mask_of_that_moment_counts() -> None:
    """The wrapper that ends the game at an illegal action must not judge by an observation of another moment."""
    env = montecristo_v0.env(num_players=2)
    env.reset(seed=13)
    kept, mask_then = env.get_state(), env.last()[0]["action_mask"]
    while True:  # until something was legal then that is not now
        play(env, 1)
        mask_now = env.last()[0]["action_mask"]  # remembered by the wrapper
        if (mask_then > mask_now).any() and (mask_now > mask_then).any():
            break
    legal_then, legal_now = int((mask_then > mask_now).argmax()), int((mask_now > mask_then).argmax())
    env.set_state(kept)
    env.step(legal_then)
    assert not any(env.terminations.values())
    env.set_state(kept)
    env.last()
    env.set_state(kept)
    env.step(legal_now)
    assert all(env.terminations.values())
    env.set_state(kept)  # from an ended game back into one that lives
    twin = montecristo_v0.env(num_players=2)
    twin.reset(seed=13)
    for _ in range(3):
        assert_same(moment(env), moment(twin))
        action = int(env.last()[0]["action_mask"].argmax())
        env.step(action)
        twin.step(action)
    assert play(env) == play(twin)
    assert_same(moment(env), moment(twin))


def test_set_state_refuses_a_game_of_another_number_of_players() -> None:
    env, other = montecristo_v0.env(num_players=2), montecristo_v0.env(num_players=3)
    env.reset()
    other.reset()
    before = moment(other)
    with pytest.raises(InvalidArgument, match="2 players, but this environment has 3"):
        other.set_state(env.get_state())
    assert_same(moment(other), before)


# --- PettingZoo's own tests ------------------------------------------------------------------------------------------


@EITHER
@PLAYERS
@pytest.mark.parametrize("obs_dtype", ["float32", "int8"])
def test_api_test(make: Make, num_players: int, obs_dtype: str) -> None:
    """Only those warnings are allowed that api_test gives for every env with dict observations outside PettingZoo."""
    with warnings.catch_warnings(action="error"):
        warnings.filterwarnings("ignore", "Observation is not a NumPy array")
        warnings.filterwarnings("ignore", "Observation space for each agent probably should be")
        api_test(make(num_players=num_players, obs_dtype=obs_dtype), num_cycles=200)
        api_test(make(num_players=num_players, obs_dtype=obs_dtype, ruleset=SHORT), num_cycles=60)


@EITHER
@PLAYERS
def test_seed_test(make: Make, num_players: int) -> None:
    with warnings.catch_warnings(action="error"):
        seed_test(lambda: make(num_players=num_players), num_cycles=100)


def test_state_test() -> None:
    """It plays any action, so the wrapped env ends at once; whole games are looked at above."""
    EnvLogger.suppress_output()
    try:
        with warnings.catch_warnings(action="error"):
            env = montecristo_v0.env(num_players=3)
            state_test(env, turn_based_aec_to_parallel(montecristo_v0.env(num_players=3)))
    finally:
        EnvLogger.unsuppress_output()


def test_performance_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = count(step=0.01)  # the benchmark runs for 5 seconds of it
    module = sys.modules["pettingzoo.test.performance_benchmark"]
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: next(clock)))
    with warnings.catch_warnings(action="error"):
        performance_benchmark(montecristo_v0.env(num_players=3))
    assert "Finished performance benchmark" in capsys.readouterr().out


def test_save_obs_finds_nothing_to_save(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save_obs_test(montecristo_v0.env())
    assert "did not save the observations" in capsys.readouterr().out  # they are no pictures
    assert not list(tmp_path.iterdir())


@EITHER
@pytest.mark.usefixtures("hasty_window")
def test_render_test(make: Make) -> None:
    with warnings.catch_warnings(action="error"):
        render_test(lambda render_mode: make(num_players=3, render_mode=render_mode))


def test_render_without_a_mode_warns() -> None:
    env = montecristo_v0.env()
    env.reset()
    with pytest.warns(UserWarning, match="without specifying any render mode"):
        assert env.render() is None


@pytest.mark.parametrize(("mode", "kind"), [("ansi", str), ("rgb_array", np.ndarray)])
def test_a_rendered_env_can_be_copied_and_its_picture_follows_the_game(mode: str, kind: type) -> None:
    env = montecristo_v0.env(num_players=2, render_mode=mode)
    env.reset(seed=1)
    first = env.render()
    twin = env.clone()
    assert isinstance(first, kind) and np.array_equal(first, twin.render())
    play(env, 20)
    assert not np.array_equal(first, env.render())
    assert np.array_equal(first, twin.render())
    env.close()
    twin.close()


@pytest.mark.usefixtures("hasty_window")
def test_a_window_survives_copies_of_the_env() -> None:
    env = montecristo_v0.env(num_players=2, render_mode="human")
    env.reset(seed=1)
    assert env.render() is None
    twin = pickle.loads(pickle.dumps(env))
    kept = env.get_state()
    play(env, 3)
    env.set_state(kept)
    play(env, 3)
    env.close()
    play(twin, 3)
    twin.close()
    twin.close()  # twice does no harm


# --- Parallel --------------------------------------------------------------------------------------------------------


@PLAYERS
def test_turn_based_aec_to_parallel_plays_a_whole_game(num_players: int) -> None:
    ((told,),) = transcripts(num_players, [3])
    with warnings.catch_warnings(action="error"):
        env = turn_based_aec_to_parallel(montecristo_v0.env(num_players=num_players))
        seen, infos = env.reset(seed=3)
        for turn in told.moments[:-1]:
            decider = f"player_{turn.player}"
            for seat, agent in enumerate(env.possible_agents):
                assert_same(seen[agent]["observation"], scaled(turn.seen[seat]))
                assert_same(seen[agent]["action_mask"], turn.mask if agent == decider else NO_MASK)
                assert_same(infos[agent]["action_mask"], seen[agent]["action_mask"])
            assert env.agents == env.possible_agents
            seen, rewards, terminated, truncated, infos = env.step(
                {agent: turn.action if agent == decider else None for agent in env.agents}
            )
    assert list(rewards.values()) == told.rewards
    assert all(terminated.values()) and not any(truncated.values())
    assert env.agents == []


def test_a_ruleset_reaches_the_game() -> None:
    env = montecristo_v0.env(num_players=2, ruleset=Ruleset(target=5))
    env.reset(seed=0)
    play(env)
    assert env.unwrapped.games.ruleset.target == 5
    assert all(env.terminations.values())
    assert env.unwrapped.games.scores[0].max() >= 5


def test_there_is_no_state_before_the_first_reset() -> None:
    with pytest.raises(InvalidArgument, match="before the first reset"):
        montecristo_v0.raw_env().get_state()
