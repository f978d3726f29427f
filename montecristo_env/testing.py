"""A conformance kit for turn-based environments, for this one and for others.

PettingZoo's own tests look at the API; these look at what research relies on: copies that are independent, games that
can be repeated, observations that tell nothing they must not tell, and seats that are treated alike. Every check takes
a function that makes an AEC environment, raises `AssertionError` with what went wrong, and needs only the hooks that
it names:

* `check_determinism`: `reset(seed=…)`.
* `check_clones`: `copy.deepcopy(env)`, or `env.clone()` where it exists.
* `check_pickle`: `pickle`.
* `check_saved_states`: `env.get_state()` and `env.set_state(state)`.
* `check_hidden_information`: a function that returns a copy of the environment with other hidden parts.
* `check_seat_symmetry`: a function that returns a copy with the seats rotated by one.
"""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

Env: TypeAlias = Any  # pettingzoo.AECEnv, which has no type hints
MakeEnv: TypeAlias = Callable[[], Env]

STEPS = 400


def check_determinism(make_env: MakeEnv, seed: int = 0, steps: int = STEPS) -> None:
    """Same seed and same actions, same game; after `reset(seed)` nothing of an earlier game is left."""
    first, second = make_env(), make_env()
    second.reset(seed=seed + 1)
    for _ in _play(second, seed + 1, 25):
        pass
    first.reset(seed=seed)
    second.reset(seed=seed)
    _compare_games(first, second, seed, steps, "two environments with the same seed")


def check_clones(make_env: MakeEnv, seed: int = 0, steps: int = STEPS) -> None:
    """A copy made in the middle of a game goes on exactly as the original, and neither changes the other."""
    _check_copies(make_env, seed, steps, lambda env: env.clone() if hasattr(env, "clone") else copy.deepcopy(env))


def check_pickle(make_env: MakeEnv, seed: int = 0, steps: int = STEPS) -> None:
    """The same of a copy that went through `pickle`."""
    _check_copies(make_env, seed, steps, lambda env: pickle.loads(pickle.dumps(env)))


def check_saved_states(make_env: MakeEnv, seed: int = 0, steps: int = STEPS) -> None:
    """`set_state` brings back the moment of `get_state`, here and in another environment."""

    def into_another(env: Env) -> Env:
        other = make_env()
        other.reset(seed=seed + 7)
        other.set_state(env.get_state())
        return other

    _check_copies(make_env, seed, steps, into_another)
    env = make_env()
    env.reset(seed=seed)
    for _ in _play(env, seed, 20):
        pass
    state, before = env.get_state(), _facts(env)
    for _ in _play(env, seed, 20):
        pass
    env.set_state(state)
    _assert_same(before, _facts(env), "the moment of get_state, after set_state")


def check_hidden_information(
    make_env: MakeEnv, redraw: Callable[[Env, int], Env], seed: int = 0, steps: int = STEPS
) -> None:
    """Nothing hidden leaks: environments that differ only in hidden parts look the same to every agent.

    Args:
        make_env: makes the environment.
        redraw: (environment, seed) -> a copy whose hidden parts (of which nobody may learn) are drawn anew.
        seed: of the game and of the redrawing.
        steps: decisions to look at.
    """
    env = make_env()
    env.reset(seed=seed)
    for step in _play(env, seed, steps):
        if step % 10 == 0:
            _assert_same(_facts(env), _facts(redraw(env, seed + step)), f"a copy with other hidden parts (step {step})")


def check_seat_symmetry(make_env: MakeEnv, rotate: Callable[[Env], Env], seed: int = 0, steps: int = STEPS) -> None:
    """Seats are treated alike: after moving every agent one seat on, each sees what its neighbour saw, to the end.

    Args:
        make_env: makes the environment.
        rotate: environment -> a copy in which agent k + 1 stands where agent k stood.
        seed: of the game.
        steps: decisions to look at.
    """
    env = make_env()
    env.reset(seed=seed)
    for _ in _play(env, seed, 15):
        pass
    rotated = rotate(env)
    following = dict(zip(env.possible_agents, [*env.possible_agents[1:], env.possible_agents[0]], strict=True))
    choose = np.random.default_rng(seed)
    for step in range(steps):
        facts, turned = _facts(env), _facts(rotated)
        expected = {
            "agent": following[facts["agent"]],
            **{name: {following[a]: value for a, value in facts[name].items()} for name in facts if name != "agent"},
        }
        _assert_same(expected, turned, f"the game with its seats rotated (step {step})")
        if _is_over(env):
            return
        action = _choose(env, choose)
        env.step(action)
        rotated.step(action)


def _check_copies(make_env: MakeEnv, seed: int, steps: int, make_copy: Callable[[Env], Env]) -> None:
    env = make_env()
    env.reset(seed=seed)
    for _ in _play(env, seed, 30):
        pass
    before = _facts(env)
    ahead = make_copy(env)
    _assert_same(before, _facts(ahead), "a fresh copy")
    for _ in _play(ahead, seed + 1, 30):
        pass
    _assert_same(before, _facts(env), "the original, after its copy was played")
    _compare_games(make_copy(env), env, seed, steps, "a copy and its original")


def _compare_games(first: Env, second: Env, seed: int, steps: int, what: str) -> None:
    choose = np.random.default_rng(seed)
    for step in range(steps):
        _assert_same(_facts(first), _facts(second), f"{what} (step {step})")
        if _is_over(first):
            return
        action = _choose(first, choose)
        first.step(action)
        second.step(action)


def _play(env: Env, seed: int, steps: int) -> Iterator[int]:
    """Plays random legal actions, and yields before each; stops at the end of the game."""
    choose = np.random.default_rng(seed)
    for step in range(steps):
        if _is_over(env):
            return
        yield step
        env.step(_choose(env, choose))


def _is_over(env: Env) -> bool:
    return not env.agents or any(env.terminations.values()) or any(env.truncations.values())


def _choose(env: Env, choose: np.random.Generator) -> int:
    seen = env.observe(env.agent_selection)
    mask = seen["action_mask"] if isinstance(seen, dict) else env.infos[env.agent_selection].get("action_mask")
    legal = np.arange(env.action_space(env.agent_selection).n) if mask is None else np.flatnonzero(mask)
    return int(choose.choice(legal))


def _facts(env: Env) -> dict[str, Any]:
    """Everything that an environment shows."""
    return {
        "agent": env.agent_selection,
        "observation": {agent: env.observe(agent) for agent in env.agents},
        "reward": dict(env.rewards),
        "terminated": dict(env.terminations),
        "truncated": dict(env.truncations),
        "info": {agent: dict(info) for agent, info in env.infos.items()},
    }


def _assert_same(expected: Any, found: Any, what: str, path: str = "") -> None:
    if isinstance(expected, dict) and isinstance(found, dict):
        assert expected.keys() == found.keys(), f"{what}: {path or 'the facts'} has other keys"
        for key in expected:
            _assert_same(expected[key], found[key], what, f"{path}[{key!r}]")
    elif isinstance(expected, np.ndarray):
        assert expected.dtype == found.dtype, f"{what}: {path} has another dtype"
        assert np.array_equal(expected, found), (
            f"{what}: {path} differs at {np.argwhere(expected != found)[:5].tolist()}"
        )
    else:
        assert expected == found, f"{what}: {path} is {found!r} instead of {expected!r}"
