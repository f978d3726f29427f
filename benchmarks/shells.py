"""How fast the environment is in each framework, against PettingZoo's own games: `python benchmarks/shells.py`.

Everything is measured in turn in one run, repeat by repeat, so that the noise of the machine hits all alike.
"""

import argparse
import importlib
import random
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from engine import machine, save, summary

from montecristo_env import montecristo_v0
from montecristo_env.sb3 import MonteCristoVecEnv

warnings.filterwarnings("ignore", category=DeprecationWarning)

CLASSIC = ("tictactoe_v3", "connect_four_v3", "rps_v2", "leduc_holdem_v4", "texas_holdem_v4", "go_v5", "chess_v6")
NUM_ENVS = 256


def aec_rate(env: Any, seconds: float) -> float:
    """Agent steps per second of random legal play: the loop of PettingZoo's `performance_benchmark`."""
    env.reset(seed=0)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for agent in env.agent_iter(100):
            seen, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                action = None
            elif isinstance(seen, dict):
                action = random.choice(np.flatnonzero(seen["action_mask"]).tolist())
            else:
                action = env.action_space(agent).sample()
            env.step(action)
            steps += 1
            if all(env.terminations.values()) or all(env.truncations.values()):
                env.reset()
    return steps / (time.perf_counter() - start)


def random_choices(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (masks * rng.random(masks.shape, dtype=np.float32)).argmax(axis=1)


def vector_rate(env: Any, seconds: float) -> float:
    """Learner steps per second; choosing the actions is not counted."""
    rng = np.random.default_rng(0)
    _, infos = env.reset(seed=0)
    steps, spent = 0, 0.0
    while spent < seconds:
        actions = random_choices(infos["action_mask"], rng)
        start = time.perf_counter()
        *_, infos = env.step(actions)
        spent += time.perf_counter() - start
        steps += env.num_envs
    return steps / spent


def sb3_rate(env: Any, seconds: float) -> float:
    """Learner steps per second, with masks; choosing the actions is not counted."""
    rng = np.random.default_rng(0)
    env.seed(0)
    env.reset()
    masks = env.action_masks()
    steps, spent = 0, 0.0
    while spent < seconds:
        actions = random_choices(masks, rng)
        start = time.perf_counter()
        env.step(actions)
        masks = env.action_masks()
        spent += time.perf_counter() - start
        steps += env.num_envs
    return steps / spent


def openspiel_rate(game: Any, seconds: float) -> float:
    """Decisions per second of random legal play in OpenSpiel; chance plays in between."""
    decisions, start = 0, time.perf_counter()
    state = game.new_initial_state()
    while time.perf_counter() - start < seconds:
        if state.is_terminal():
            state = game.new_initial_state()
        elif state.is_chance_node():
            outcomes, odds = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(random.choices(outcomes, odds)[0])
        else:
            state.apply_action(random.choice(state.legal_actions()))
            decisions += 1
    return decisions / (time.perf_counter() - start)


def clone_rate(game: Any, seconds: float) -> float:
    """Clones per second of a state of OpenSpiel after 100 moves, or before the end."""
    state = game.new_initial_state()
    while len(state.history()) < 100 and not state.is_terminal():
        last = state
        state = state.child(random.choice(state.legal_actions()))
    clones, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(100):
            last.clone()
        clones += 100
    return clones / (time.perf_counter() - start)


def openspiel_games() -> dict[str, Any]:
    """The game in OpenSpiel, and a small one of its own that is written in Python, too."""
    try:
        import pyspiel
        from open_spiel.python.games import tic_tac_toe  # noqa: F401 (it registers the game)
    except ImportError as error:
        print(f"skipped OpenSpiel: {error}")
        return {}
    import montecristo_env.openspiel  # noqa: F401 (likewise)

    names = [*(f"python_montecristo(players={players})" for players in (2, 3, 4)), "python_tic_tac_toe"]
    return {name: pyspiel.load_game(name) for name in names}


def ppo_share(repeats: int) -> dict[str, Any]:
    """The share of MaskablePPO's training time that is spent in the environment, at 256 envs."""
    from sb3_contrib import MaskablePPO

    class Timed(MonteCristoVecEnv):
        spent = 0.0

        def _timed(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **kwargs)
            self.spent += time.perf_counter() - start
            return result

        def step(self, actions: np.ndarray) -> Any:
            return self._timed(super().step, actions)

        def env_method(self, *args: Any, **kwargs: Any) -> Any:
            return self._timed(super().env_method, *args, **kwargs)

    env = Timed(NUM_ENVS, opponents="random")
    model = MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=1024, n_epochs=4, seed=0, device="cpu")
    model.learn(NUM_ENVS * 32)
    shares, rates = [], []
    for _ in range(repeats):
        env.spent, start = 0.0, time.perf_counter()
        model.learn(NUM_ENVS * 64, reset_num_timesteps=False)
        total = time.perf_counter() - start
        shares.append(env.spent / total)
        rates.append(NUM_ENVS * 64 / total)
    return {"share": summary(shares), "steps_per_second": summary(rates)}


def classic_envs() -> dict[str, Any]:
    """PettingZoo's classic games, as far as what they need is installed."""
    found = {}
    for name in CLASSIC:
        try:
            module = importlib.import_module(f"pettingzoo.classic.{name}")
            found[f"{name} env"] = module.env()
            found[f"{name} raw_env"] = module.raw_env()
        except Exception as error:
            print(f"skipped {name}: {str(error).splitlines()[0]}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="per measurement")
    options = parser.parse_args()

    works: dict[str, Callable[[], float]] = {}
    for players in (2, 3, 4):
        for kind in ("env", "raw_env"):
            env = getattr(montecristo_v0, kind)(num_players=players)
            works[f"montecristo_v0 {kind}, {players} players"] = lambda env=env: aec_rate(env, options.seconds)
    for name, env in classic_envs().items():
        works[name] = lambda env=env: aec_rate(env, options.seconds)
    for players in (2, 3, 4):
        vector = gymnasium.make_vec("montecristo_env:MonteCristo-v0", num_envs=NUM_ENVS, num_players=players)
        works[f"VectorEnv x{NUM_ENVS}, {players} players"] = lambda env=vector: vector_rate(env, options.seconds)
        venv = MonteCristoVecEnv(NUM_ENVS, num_players=players)
        works[f"SB3 VecEnv x{NUM_ENVS}, {players} players"] = lambda env=venv: sb3_rate(env, options.seconds)

    for name, game in openspiel_games().items():
        works[f"{name} decisions"] = lambda game=game: openspiel_rate(game, options.seconds)
        works[f"{name} clones"] = lambda game=game: clone_rate(game, options.seconds)

    rates: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(options.repeats):
        for name, work in works.items():
            rates[name].append(work())
    results: dict[str, Any] = {
        "machine": machine(),
        "repeats": options.repeats,
        "steps_per_second": {name: summary(values) for name, values in rates.items()},
        "maskable_ppo": ppo_share(options.repeats),
    }
    print(f"\n{results['machine']['cpu']}, medians of {options.repeats} repeats (lowest to highest)")
    for name, values in rates.items():
        print(f"  {name:44s}{statistics.median(values):10,.0f} steps/s ({min(values):,.0f} to {max(values):,.0f})")
    share = results["maskable_ppo"]["share"]
    print(
        f"  MaskablePPO x{NUM_ENVS}: {100 * share['median']:.1f} % of the time in the environment "
        f"({100 * share['lowest']:.1f} to {100 * share['highest']:.1f})"
    )
    if options.json:
        save(options.json, results)


if __name__ == "__main__":
    main()
