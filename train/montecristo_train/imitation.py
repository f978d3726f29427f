"""A head start: the network learns to do what a scripted player does, before it plays itself."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from montecristo_env.agent import Agent, PublicView
from montecristo_train.selfplay import SelfPlayVecEnv

SLIPS = 0.1  # the share of decisions that are made at random: the network must know what to do after a mistake, too


def imitate(
    model: MaskablePPO,
    env: SelfPlayVecEnv,
    teacher: Agent,
    steps: int,
    learning_rate: float,
    report: Callable[[int, float], None],
) -> None:
    """Lets the teacher play all seats, and the network learn his choices and what they lead to.

    Args:
        model: whose network learns.
        env: where the teacher plays; its pool must be empty.
        teacher: an agent.
        steps: how many of his decisions.
        learning_rate: of Adam at the beginning; it falls linearly to zero.
        report: is told after each rollout the steps done and the share of choices that the network got right.
    """
    optimiser = torch.optim.Adam(model.policy.parameters(), lr=learning_rate)
    view = PublicView(env.games)
    rows = np.arange(env.num_envs)
    seen: Any = env.reset()
    done = 0
    while done < steps:
        optimiser.param_groups[0]["lr"] = learning_rate * (1 - done / steps)
        model.rollout_buffer.reset()
        for _ in range(model.n_steps):
            masks = env.action_masks()
            choices = teacher.act(view, rows)
            with torch.no_grad():
                values = model.policy.predict_values(torch.as_tensor(seen))
            made = np.where(env.rng.random(rows.size) < SLIPS, env.games.sample_actions(), choices)
            following, rewards, ended, _ = env.step(made)
            no_log_probs = torch.zeros(rows.size)
            model.rollout_buffer.add(seen, choices[:, None], rewards, ended, values, no_log_probs, action_masks=masks)
            seen = following
        with torch.no_grad():
            values = model.policy.predict_values(torch.as_tensor(seen))
        model.rollout_buffer.compute_returns_and_advantage(values, ended)
        right = []
        for batch in model.rollout_buffer.get(model.batch_size):  # once: a new one costs less than it teaches
            values, log_probs, _ = model.policy.evaluate_actions(
                batch.observations, batch.actions.long().flatten(), action_masks=batch.action_masks
            )
            loss = -log_probs.mean() + torch.nn.functional.mse_loss(values.flatten(), batch.returns)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            right.append(float((log_probs > np.log(0.5)).float().mean()))
        done += model.n_steps * env.num_envs
        report(done, float(np.mean(right)))
