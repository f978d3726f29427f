"""Self-play with the plain PettingZoo environment and torch: `python -m montecristo_train.pettingzoo_minimal`.

An actor-critic in one file, for readers of PettingZoo's tutorials: one network plays all agents, and learns from what
each of them did and got. It shows how to do that right, not how to do it fast; for that, see `montecristo_train.ppo`.
"""

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import tyro
from torch import nn
from torch.distributions import Categorical

from montecristo_env import montecristo_v0
from montecristo_env.util.commands import run_command


@dataclass
class Settings:
    """Actor-critic self-play on the AEC environment."""

    episodes: int = 400
    """Games to learn from."""
    batch_size: int = 2
    """Games per update."""
    players: int = 2
    """2, 3 or 4 at a table."""
    learning_rate: float = 3e-3
    """Of Adam."""
    ent_coef: float = 0.01
    """What randomness is worth."""
    n_eval_episodes: int = 200
    """Games against random players, before and after."""
    seed: int = 0
    """Same seed, same run, on the same machine."""


class ActorCritic(nn.Module):
    """What to do, legal actions only, and what return to expect."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, 128), nn.ReLU())
        self.actor, self.critic = nn.Linear(128, outputs), nn.Linear(128, 1)

    def forward(self, seen: torch.Tensor, mask: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        """For a batch of observations and action masks, or one."""
        features = self.trunk(seen)
        logits = self.actor(features).masked_fill(mask == 0, -1e9)
        return Categorical(logits=logits, validate_args=False), self.critic(features).squeeze(-1)


@dataclass
class Trajectory:
    """What one agent did in one game, and what it got: `rewards[i]` is all it got between its turns i and i + 1."""

    steps: list[tuple[np.ndarray, np.ndarray, int]] = field(default_factory=list)  # observation, mask, action
    rewards: list[float] = field(default_factory=list)


def play(env: Any, policies: dict[str, ActorCritic | None], rng: np.random.Generator) -> dict[str, Trajectory]:
    """One game; an agent without a policy plays at random."""
    env.reset(seed=int(rng.integers(2**31)))
    trajectories = {agent: Trajectory() for agent in env.possible_agents}
    for agent in env.agent_iter():
        # This is what the agent got since its own last action, whoever moved in between. When the game is over every
        # agent comes up once more, not only the one who moved last: to collect its final reward and step with None.
        seen, reward, termination, truncation, _ = env.last()
        own, policy = trajectories[agent], policies[agent]
        if own.steps:
            own.rewards.append(float(reward))
        if termination or truncation:
            env.step(None)
            continue
        mask = seen["action_mask"]
        if policy is None:
            action = int(rng.choice(np.flatnonzero(mask)))
        else:
            with torch.no_grad():
                action = int(policy(torch.from_numpy(seen["observation"]), torch.from_numpy(mask))[0].sample())
        own.steps.append((seen["observation"], mask, action))
        env.step(action)
    return trajectories


def learn(network: ActorCritic, optimiser: torch.optim.Optimizer, batch: list[Trajectory], ent_coef: float) -> None:
    """One update from trajectories of all agents: to each of its steps, an agent's own rewards from there on."""
    steps = [step for own in batch for step in own.steps]
    seen, masks, actions = (torch.from_numpy(np.array(part)) for part in zip(*steps, strict=True))
    returns = torch.from_numpy(np.concatenate([np.cumsum(own.rewards[::-1])[::-1] for own in batch])).float()
    choices, values = network(seen, masks)
    advantages = returns - values.detach()
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    loss = -(choices.log_prob(actions) * advantages).mean() - ent_coef * choices.entropy().mean()
    loss = loss + 0.5 * nn.functional.mse_loss(values, returns)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def win_rate(env: Any, network: ActorCritic, episodes: int, rng: np.random.Generator) -> float:
    """How often the network wins alone against random players, in every seat equally often."""
    wins = 0
    for episode in range(episodes):
        learner = env.possible_agents[episode % len(env.possible_agents)]
        policies = {agent: network if agent == learner else None for agent in env.possible_agents}
        wins += sum(play(env, policies, rng)[learner].rewards) > 0  # rewards sum to zero: only winners get more
    return wins / episodes


def train(settings: Settings) -> tuple[float, float]:
    """Trains a network; its win rates against random players before and after."""
    torch.manual_seed(settings.seed)
    rng = np.random.default_rng(settings.seed)
    env = montecristo_v0.env(num_players=settings.players, reward="margin")  # tells more than who has won
    test_env = montecristo_v0.env(num_players=settings.players)
    agents = env.possible_agents
    inputs = env.observation_space(agents[0])["observation"].shape[0]
    network = ActorCritic(inputs, int(env.action_space(agents[0]).n))
    optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    before = win_rate(test_env, network, settings.n_eval_episodes, rng)
    for episode in range(0, settings.episodes, settings.batch_size):
        games = [play(env, dict.fromkeys(agents, network), rng) for _ in range(settings.batch_size)]
        learn(network, optimiser, [own for game in games for own in game.values()], settings.ent_coef)
        print(f"\r{episode + settings.batch_size} of {settings.episodes} games", end="", flush=True)
    print()
    return before, win_rate(test_env, network, settings.n_eval_episodes, rng)


def main(arguments: list[str]) -> None:
    """The command line."""
    chosen = tyro.cli(Settings, args=arguments, prog="python -m montecristo_train.pettingzoo_minimal")
    before, after = train(chosen)
    print(f"wins against random players: {before:.0%} before, {after:.0%} after, {chosen.n_eval_episodes} games each")


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
