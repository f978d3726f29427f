"""How fast the environment is in each framework, against PettingZoo's own games: `python benchmarks/shells.py`.

Everything is measured in turn in one run, repeat by repeat, so that the noise of the machine hits all alike.
"""

import importlib
import random
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tyro
from engine import JsonFile, machine, save, summary

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


def learner_rate(masks: np.ndarray, step: Callable[[np.ndarray], np.ndarray], seconds: float) -> float:
    """Learner steps per second, from actions to the next masks; choosing the actions is not counted."""
    rng = np.random.default_rng(0)
    steps, spent = 0, 0.0
    while spent < seconds:
        actions = (masks * rng.random(masks.shape, dtype=np.float32)).argmax(axis=1)
        start = time.perf_counter()
        masks = step(actions)
        spent += time.perf_counter() - start
        steps += len(masks)
    return steps / spent


def vector_rate(env: Any, seconds: float) -> float:
    _, infos = env.reset(seed=0)
    return learner_rate(infos["action_mask"], lambda actions: env.step(actions)[-1]["action_mask"], seconds)


def sb3_rate(env: Any, seconds: float) -> float:
    def step(actions: np.ndarray) -> np.ndarray:
        env.step(actions)
        return env.action_masks()

    env.seed(0)
    env.reset()
    return learner_rate(env.action_masks(), step, seconds)


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


def main(json: JsonFile = None, repeats: int = 5, seconds: float = 1.0) -> None:
    works: dict[str, tuple[Callable[[Any, float], float], Any]] = {}
    for players in (2, 3, 4):
        for kind in ("env", "raw_env"):
            env = getattr(montecristo_v0, kind)(num_players=players)
            works[f"montecristo_v0 {kind}, {players} players"] = aec_rate, env
    for name, env in classic_envs().items():
        works[name] = aec_rate, env
    for players in (2, 3, 4):
        vector = gymnasium.make_vec("montecristo_env:MonteCristo-v0", num_envs=NUM_ENVS, num_players=players)
        works[f"VectorEnv x{NUM_ENVS}, {players} players"] = vector_rate, vector
        works[f"SB3 VecEnv x{NUM_ENVS}, {players} players"] = sb3_rate, MonteCristoVecEnv(NUM_ENVS, num_players=players)
    for name, game in openspiel_games().items():
        works[f"{name} decisions"] = openspiel_rate, game
        works[f"{name} clones"] = clone_rate, game

    rates: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, (rate, env) in works.items():
            rates[name].append(rate(env, seconds))
    results: dict[str, Any] = {
        "machine": machine(),
        "repeats": repeats,
        "steps_per_second": {name: summary(values) for name, values in rates.items()},
        "maskable_ppo": ppo_share(repeats),
    }
    print(f"\n{results['machine']['cpu']}, medians of {repeats} repeats (lowest to highest)")
    for name, values in rates.items():
        print(f"  {name:44s}{statistics.median(values):10,.0f} steps/s ({min(values):,.0f} to {max(values):,.0f})")
    share = results["maskable_ppo"]["share"]
    print(
        f"  MaskablePPO x{NUM_ENVS}: {100 * share['median']:.1f} % of the time in the environment "
        f"({100 * share['lowest']:.1f} to {100 * share['highest']:.1f})"
    )
    save(json, results)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
