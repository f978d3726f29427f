"""The minimal PettingZoo recipe: every agent of every game is credited with what it got, and the network learns."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")

import torch

from montecristo_env import montecristo_v0, observation
from montecristo_train.pettingzoo_minimal import ActorCritic, Settings, Trajectory, learn, play, train


class Watched:
    """An environment that notes who acts, and what all agents are paid in each step, before anybody collects it."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, seed: int) -> None:
        self.env.reset(seed=seed)
        self.paid = dict.fromkeys(self.env.possible_agents, 0.0)
        self.acted: list[str] = []

    def step(self, action: int | None) -> None:
        if action is not None:
            self.acted.append(self.env.agent_selection)
        self.env.step(action)
        if action is not None:
            for agent, reward in self.env.rewards.items():
                self.paid[agent] += reward


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("reward", ["win", "margin"])
def test_every_agent_collects_what_the_game_paid_it(players: int, reward: str) -> None:
    env = Watched(montecristo_v0.env(num_players=players, reward=reward))
    rng = np.random.default_rng(0)
    for _ in range(5):
        game = play(env, dict.fromkeys(env.possible_agents), rng)
        assert env.agents == []  # everybody has made the last step, with None
        final = env.unwrapped.games.rewards[0]
        assert final[:players].any()
        for seat, agent in enumerate(env.possible_agents):
            own = game[agent]
            assert len(own.steps) == len(own.rewards) == env.acted.count(agent) > 0
            assert sum(own.rewards) == pytest.approx(env.paid[agent]) == pytest.approx(float(final[seat]))
            assert own.rewards[-1] == pytest.approx(
                float(final[seat])
            )  # on its own last action, whoever ended the game
            for seen, mask, action in own.steps:
                assert seen.shape == (observation.SIZE,) and mask[action] == 1


def test_an_update_makes_what_paid_more_likely_and_expects_each_agents_own_return() -> None:
    torch.manual_seed(0)
    network = ActorCritic(2, 3)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    winner, loser = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    mask = np.array([1, 1, 0], np.int8)
    batch = [
        Trajectory([(winner, mask, 0), (winner, mask, 0)], [0.0, 1.0]),
        Trajectory([(loser, mask, 0)], [-1.0]),
    ]
    seen, masks = torch.from_numpy(np.stack([winner, loser])), torch.from_numpy(np.stack([mask, mask]))
    with torch.no_grad():
        before, _ = network(seen, masks)
        before_probs = before.probs
    for _ in range(5):  # while both returns still surprise
        learn(network, optimiser, batch, ent_coef=0.0)
    with torch.no_grad():
        after, _ = network(seen, masks)
    assert after.probs[0, 0] > before_probs[0, 0] + 0.01  # it has won
    assert after.probs[1, 0] < before_probs[1, 0] - 0.01  # it has lost
    assert after.probs[:, 2].tolist() == [0.0, 0.0]  # never legal
    for _ in range(200):
        learn(network, optimiser, batch, ent_coef=0.0)
    with torch.no_grad():
        _, values = network(seen, masks)
    assert values.tolist() == pytest.approx([1.0, -1.0], abs=0.05)


def test_it_learns_to_beat_random_players() -> None:
    before, after = train(Settings(episodes=200, n_eval_episodes=100))
    assert after > max(before, 0.5) + 0.1  # more than twice the spread of that number of games


def test_it_runs_from_the_command_line() -> None:
    command = [sys.executable, "-m", "montecristo_train.pettingzoo_minimal"]
    options = ["--episodes", "2", "--batch-size", "2", "--players", "3", "--n-eval-episodes", "3"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    assert "wins against random players" in done.stdout and "3 games each" in done.stdout
