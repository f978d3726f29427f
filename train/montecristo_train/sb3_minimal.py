"""Self-play with plain PettingZoo and MaskablePPO: `python -m montecristo_train.sb3_minimal`.

An AEC environment becomes a Gymnasium one by giving the learner one seat and letting the policy itself play the others.
Then every reward is the learner's own, whoever made the last move, and `MaskablePPO` needs no change. For a faster and
stronger recipe, see `montecristo_train.ppo`.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import tyro
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env

from montecristo_agents.benchmark import benchmark
from montecristo_env import montecristo_v0
from montecristo_env.util.commands import run_command

Seen: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.int8]


class SelfPlayEnv(gymnasium.Env[Seen, np.int64]):
    """One seat of an AEC game, a new one in every game; others are played by a policy, such as the learner's own.

    Args:
        env: a PettingZoo AEC environment whose observations have an `observation` and an `action_mask`.
        policy: from these two to an action, for the other seats.
    """

    def __init__(self, env: Any, policy: Callable[[Seen, Mask], int]) -> None:
        self.env, self.policy = env, policy
        self.observation_space = env.observation_space(env.possible_agents[0])["observation"]
        self.action_space = env.action_space(env.possible_agents[0])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Seen, dict[str, Any]]:
        """Starts a game and lets the others play until it is the learner's turn."""
        super().reset(seed=seed)
        self.env.reset(seed=seed)
        self.learner = str(self.np_random.choice(self.env.possible_agents))
        return self._play_on()[0], {}

    def step(self, action: np.int64) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """The learner's decision, and everybody else's until the learner's next one or the end of the game."""
        self.env.step(int(action))
        return self._play_on()

    def _play_on(self) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        for agent in self.env.agent_iter():
            # What the agent got since its own last action. When the game is over, every agent comes up once more.
            seen, reward, termination, truncation, _ = self.env.last()
            if agent == self.learner:
                self.mask: Mask = seen["action_mask"]
                return seen["observation"], float(reward), termination, truncation, {}
            over = termination or truncation
            self.env.step(None if over else self.policy(seen["observation"], seen["action_mask"]))
        raise AssertionError("the learner comes up again before the game has gone")

    def action_masks(self) -> Mask:
        """The learner's legal actions; `MaskablePPO` asks for them by this name."""
        return self.mask


@dataclass
class Settings:
    """MaskablePPO self-play on the AEC environment."""

    total_timesteps: int = 200_000
    """Decisions to learn from."""
    players: int = 2
    """2, 3 or 4 at a table."""
    n_envs: int = 8
    """Games at the same time."""
    learning_rate: float = 5e-4
    """Of Adam."""
    evaluate_deals: int = 250
    """Deals against random players at the end, each played in all seats."""
    seed: int = 0
    """Same seed, same run, on the same machine."""


def train(settings: Settings) -> MaskablePPO:
    """Trains a model that plays all seats."""

    def own_policy(seen: Seen, mask: Mask) -> int:
        return int(model.predict(seen, action_masks=mask)[0])

    def make_env() -> SelfPlayEnv:  # the margin tells more than who has won
        return SelfPlayEnv(montecristo_v0.env(num_players=settings.players, reward="margin"), own_policy)

    model = MaskablePPO(
        "MlpPolicy",
        make_vec_env(make_env, settings.n_envs, settings.seed),
        n_steps=2048 // settings.n_envs,
        batch_size=256,
        learning_rate=settings.learning_rate,
        gamma=1.0,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [128, 128]},
        seed=settings.seed,
        verbose=1,
    )
    return model.learn(settings.total_timesteps)


def main(arguments: list[str]) -> None:
    """The command line."""
    settings = tyro.cli(Settings, args=arguments, prog="python -m montecristo_train.sb3_minimal")
    model = train(settings)
    print(benchmark(model, settings.players, settings.evaluate_deals, name="sb3", against=("random",)))


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
