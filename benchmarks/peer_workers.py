"""Random legal play in one project: what `peers.py` runs inside that project's own environment.

`python benchmarks/peer_workers.py NAME` prints what it can play, then reads lines `{"case": 0, "seconds": 2.0}` and
answers each with one line. It needs NumPy and the project NAME, nothing else. Every project is used in the fastest of
its documented ways that gives, for every decision, the observation of the player to move and the mask as arrays.
"""

import json
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

CHUNK = 64  # decisions between two looks at the clock, where games are played one by one


@dataclass
class Work:
    """Games that go on for ever: a call plays on and returns the number of decisions made."""

    play: Callable[[], int]
    observation: int  # numbers in an observation
    actions: int


@dataclass
class Case:
    game: str
    interface: str
    players: int
    make: Callable[[], Work]
    batch: int = 1
    threads: int = 1


def as_mask(legal: Any, count: int) -> np.ndarray:
    mask = np.zeros(count, np.int8)
    mask[legal] = 1
    return mask


# --- this project


def montecristo() -> Iterator[Case]:
    from montecristo_env import montecristo_v0

    for players in (2, 4):
        case = partial(Case, "Monte Cristo", players=players)
        yield case("AEC", make=lambda n=players: aec(montecristo_v0.env(num_players=n)))
        yield case("VectorEnv", make=partial(vector_env, 256, players), batch=256)
        for threads in (1, 2):
            yield case("GameBatch", make=partial(game_batch, 1024, players, threads), batch=1024, threads=threads)


def aec(env: Any) -> Work:
    """The loop of PettingZoo's documentation. Steps of players for whom the game is over are not counted."""

    def play() -> int:
        for _ in range(CHUNK):
            seen, *_ = env.last()
            env.step(random.choice(np.flatnonzero(seen["action_mask"]).tolist()))
            if not env.agents or any(env.terminations.values()) or any(env.truncations.values()):
                env.reset()
        return CHUNK

    env.reset(seed=0)
    seen, *_ = env.last()
    return Work(play, seen["observation"].size, len(seen["action_mask"]))


def vector_env(num_envs: int, players: int) -> Work:
    """Decisions of the learner; those of its random opponents are made, but not counted."""
    import gymnasium

    env = gymnasium.make_vec(
        "montecristo_env:MonteCristo-v0", num_envs=num_envs, num_players=players, autoreset_mode="SameStep"
    )
    rng = np.random.default_rng(0)
    seen, infos = env.reset(seed=0)
    mask = infos["action_mask"]

    def play() -> int:
        nonlocal mask
        *_, infos = env.step((mask * rng.random(mask.shape, dtype=np.float32)).argmax(axis=1))
        mask = infos["action_mask"]
        return num_envs

    return Work(play, seen[0].size, mask.shape[1])


def game_batch(num_games: int, players: int, threads: int) -> Work:
    from engine import Loop

    loop = Loop(num_games, players, threads)
    return Work(lambda: loop.run(1), loop.observations.shape[1], loop.masks.shape[1])


# --- others


def pettingzoo() -> Iterator[Case]:
    def make(name: str) -> Work:
        from importlib import import_module

        return aec(import_module(f"pettingzoo.classic.{name}").env())

    for name in ("tictactoe_v3", "connect_four_v3", "leduc_holdem_v4", "chess_v6", "hanabi_v5"):
        yield Case(name, "AEC", 2, partial(make, name))


def openspiel() -> Iterator[Case]:
    import pyspiel
    from open_spiel.python.observation import make_observation

    def make(name: str) -> Work:
        game = pyspiel.load_game(name)
        count = game.num_distinct_actions()
        # Some games can only show all that a player has seen so far.
        past = not game.get_type().provides_observation_tensor
        observer = make_observation(game, pyspiel.IIGObservationType(perfect_recall=past))
        state = game.new_initial_state()

        def play() -> int:
            nonlocal state
            done = 0
            while done < CHUNK:
                if state.is_terminal():
                    state = game.new_initial_state()
                elif state.is_chance_node():
                    outcomes, weights = zip(*state.chance_outcomes(), strict=True)
                    state.apply_action(random.choices(outcomes, weights)[0])
                else:
                    observer.set_from(state, state.current_player())
                    legal = state.legal_actions()
                    as_mask(legal, count)  # `legal_actions_mask` would list all actions once more
                    state.apply_action(random.choice(legal))
                    done += 1
            return done

        return Work(play, observer.tensor.size, count)

    for name in ("connect_four", "backgammon", "leduc_poker", "gin_rummy", "hearts", "chess"):
        yield Case(name, "State", pyspiel.load_game(name).num_players(), partial(make, name))


def rlcard() -> Iterator[Case]:
    import rlcard

    def make(name: str) -> Work:
        env = rlcard.make(name)
        state, _ = env.reset()

        def play() -> int:
            nonlocal state
            for _ in range(CHUNK):
                legal = list(state["legal_actions"])
                as_mask(legal, env.num_actions)
                state, _ = env.step(random.choice(legal))
                if env.is_over():
                    state, _ = env.reset()
            return CHUNK

        sizes = [math.prod(shape) for shape in env.state_shape]
        return Work(play, max(sizes), env.num_actions)  # of the player who sees most

    for name, players in {"leduc-holdem": 2, "limit-holdem": 2, "uno": 2, "doudizhu": 3}.items():
        yield Case(name, "Env", players, partial(make, name))


def catanatron() -> Iterator[Case]:
    from catanatron import Color, Game, Player
    from catanatron.game import TURNS_LIMIT
    from catanatron_gym.envs.catanatron_env import ACTION_SPACE_SIZE, to_action_space
    from catanatron_gym.features import create_sample_vector

    def make(players: int) -> Work:
        colours = list(Color)[:players]

        def new_game() -> Game:
            return Game([Player(colour) for colour in colours])

        def observe() -> np.ndarray:
            return np.array(create_sample_vector(game, game.state.current_color()))

        game = new_game()

        def play() -> int:
            nonlocal game
            for _ in range(CHUNK):
                observe()
                legal = game.state.playable_actions
                as_mask([to_action_space(action) for action in legal], ACTION_SPACE_SIZE)
                game.execute(random.choice(legal))
                if game.winning_color() is not None or game.state.num_turns >= TURNS_LIMIT:
                    game = new_game()
            return CHUNK

        return Work(play, observe().size, ACTION_SPACE_SIZE)

    for players in (2, 4):
        yield Case("Catan", "Game and features", players, partial(make, players))


def pgx(threads: int) -> Iterator[Case]:
    if hasattr(os, "sched_setaffinity"):  # before JAX starts its threads, one for every core it may use
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    def make(name: str, batch: int) -> Work:
        env = pgx.make(name)
        step = jax.vmap(auto_reset(env.step, env.init))

        @jax.jit
        def decide(state: Any, key: Any) -> tuple[Any, Any]:
            key, to_choose, to_step = jax.random.split(key, 3)
            chances = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
            chosen = jax.random.categorical(to_choose, chances)
            return step(state, chosen, jax.random.split(to_step, batch)), key

        key = jax.random.PRNGKey(0)
        state = jax.jit(jax.vmap(env.init))(jax.random.split(key, batch))

        def play() -> int:
            nonlocal state, key
            state, key = jax.block_until_ready(decide(state, key))
            return batch

        return Work(play, state.observation[0].size, state.legal_action_mask.shape[1])

    sizes = {"connect_four": (1024, 8192), "backgammon": (1024, 8192), "sparrow_mahjong": (1024,), "go_9x9": (1024,)}
    for name, batches in sizes.items():
        for batch in batches:
            yield Case(name, "vmap", pgx.make(name).num_players, partial(make, name, batch), batch, threads)


# What knows the games, and the packages whose versions are told.
WORKERS: dict[str, tuple[Callable[[], Iterator[Case]], tuple[str, ...]]] = {
    "montecristo": (montecristo, ("montecristo-env", "numpy", "gymnasium", "pettingzoo")),
    "pettingzoo": (pettingzoo, ("pettingzoo", "numpy")),
    "openspiel": (openspiel, ("open_spiel", "numpy")),
    "rlcard": (rlcard, ("rlcard", "numpy")),
    "catanatron": (catanatron, ("catanatron", "catanatron_gym", "numpy")),
    "pgx": (partial(pgx, 1), ("pgx", "jax", "numpy")),
    "pgx-2-threads": (partial(pgx, 2), ("pgx", "jax", "numpy")),
}


def reason(error: BaseException) -> str:
    """The last line of what Python would say."""
    return f"{type(error).__name__}: {error}".strip().splitlines()[-1]


def rate(work: Work, seconds: float) -> float:
    """Decisions per second."""
    done, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        done += work.play()
    return done / spent


def serve(name: str) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is not for `peers.py`

    def answer(**values: Any) -> None:
        print(json.dumps(values), file=answers)

    find_cases, packages = WORKERS[name]
    try:
        cases = list(find_cases())
    except Exception as error:
        return answer(error=reason(error))
    answer(
        versions={package: version(package) for package in packages},
        cases=[{key: value for key, value in vars(case).items() if key != "make"} for case in cases],
    )
    works: dict[int, Work] = {}
    for line in sys.stdin:
        request = json.loads(line)
        number = request["case"]
        try:
            if number not in works:
                works[number] = cases[number].make()
                works[number].play()  # compiles, where there is something to compile
            work = works[number]
            answer(rate=rate(work, request["seconds"]), observation=work.observation, actions=work.actions)
        except Exception as error:
            answer(error=reason(error))


if __name__ == "__main__":
    serve(sys.argv[1])
