"""A head start: the network learns to do what another player does, before it plays itself."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from torch.nn import functional

from montecristo_env.agent import Agent, PublicView
from montecristo_train.selfplay import SelfPlayVecEnv

OWN_SHARE = 0.5  # of the decisions that the network makes itself: it must know what to do after its mistakes, too
ROLLOUTS_KEPT = 32  # to learn from again
NO_CHOICE = -1e8


def imitate(
    model: MaskablePPO,
    env: SelfPlayVecEnv,
    teacher: Agent,
    steps: int,
    passes: int,
    learning_rate: float,
    report: Callable[[int, float], None],
) -> None:
    """Lets the teacher and the network take turns at the learner's seats; it learns his choices and their results.

    Args:
        model: whose network learns.
        env: where they play.
        teacher: an agent.
        steps: how many decisions.
        passes: how often each is learnt from, on average: more than once where the teacher takes long.
        learning_rate: of Adam at the beginning; it falls linearly to zero.
        report: is told after each rollout the steps done and how often the network's own choices were the teacher's.
    """
    optimiser = torch.optim.Adam(model.policy.parameters(), lr=learning_rate)
    view = PublicView(env.games)
    rows = np.arange(env.num_envs)
    buffer = model.rollout_buffer
    lessons: deque[tuple[torch.Tensor, ...]] = deque(maxlen=ROLLOUTS_KEPT if passes > 1 else 1)
    seen: Any = env.reset()
    done = 0
    while done < steps:
        optimiser.param_groups[0]["lr"] = learning_rate * (1 - done / steps)
        buffer.reset()
        right = 0.0
        wanted = np.empty((model.n_steps, rows.size), np.int64)
        for step in range(model.n_steps):
            masks = env.action_masks()
            wanted[step] = teacher.act(view, rows)
            with torch.no_grad():
                own, values, _ = model.policy(torch.as_tensor(seen), action_masks=masks)
            right += float((own.numpy() == wanted[step]).mean()) / model.n_steps
            made = np.where(env.rng.random(rows.size) < OWN_SHARE, own.numpy(), wanted[step])
            following, rewards, ended, _ = env.step(made)
            buffer.add(seen, made[:, None], rewards, ended, values, torch.zeros(rows.size), action_masks=masks)
            seen = following
        with torch.no_grad():
            values = model.policy.predict_values(torch.as_tensor(seen))
        buffer.compute_returns_and_advantage(values, ended)
        lessons.append(
            tuple(
                torch.from_numpy(part.reshape(buffer.buffer_size * rows.size, -1))
                for part in (buffer.observations.copy(), buffer.action_masks.copy(), wanted, buffer.returns.copy())
            )
        )
        done += model.n_steps * rows.size
        for _ in range(passes):
            learn(model, optimiser, lessons[env.rng.integers(len(lessons))], env.rng)
        report(done, right)


def learn(
    model: MaskablePPO, optimiser: torch.optim.Optimizer, lesson: tuple[torch.Tensor, ...], rng: np.random.Generator
) -> None:
    """Goes through a lesson once."""
    order = torch.from_numpy(rng.permutation(len(lesson[0])))
    size = model.batch_size or len(order)
    for begin in range(0, len(order), size):
        batch = order[begin : begin + size]
        seen, masks, wanted, returns = (part[batch] for part in lesson)
        features = model.policy.extract_features(seen.float())
        logits = model.policy.action_net(features).masked_fill(masks == 0, NO_CHOICE)
        values = model.policy.value_net(features)
        loss = functional.cross_entropy(logits, wanted[:, 0]) + functional.mse_loss(values, returns)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
