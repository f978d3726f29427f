"""A head start: the network learns to do what another player does, before it plays itself."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO

from montecristo_env import actions
from montecristo_env.agent import Agent, Evaluator, PublicView
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
        teacher: an agent; one that says how sure it is of each choice (`Evaluator`) teaches that.
        steps: how many decisions.
        passes: how often each is learnt from, on average: more than once where the teacher takes long.
        learning_rate: of Adam at the beginning; it falls linearly to zero.
        report: is told after each rollout the steps done and the share of choices that the network got right.
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
        wanted = np.empty((model.n_steps, rows.size, actions.COUNT), np.float16)
        for step in range(model.n_steps):
            masks = env.action_masks()
            wanted[step] = advice_of(teacher, view, rows)
            with torch.no_grad():
                own, values, _ = model.policy(torch.as_tensor(seen), action_masks=masks)
            made = np.where(env.rng.random(rows.size) < OWN_SHARE, own.numpy(), wanted[step].argmax(axis=1))
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
        right = []
        for _ in range(passes):
            lesson = lessons[env.rng.integers(len(lessons))] if passes > 1 else lessons[-1]
            right.append(learn(model, optimiser, lesson, env.rng))
        report(done, float(np.mean(right)))


def advice_of(teacher: Agent, view: PublicView, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much the teacher wants each action to be chosen, (K, actions.COUNT)."""
    if isinstance(teacher, Evaluator):
        return teacher.evaluate(view, rows).probabilities
    wanted = np.zeros((rows.size, actions.COUNT))
    wanted[np.arange(rows.size), teacher.act(view, rows)] = 1.0
    return wanted


def learn(
    model: MaskablePPO, optimiser: torch.optim.Optimizer, lesson: tuple[torch.Tensor, ...], rng: np.random.Generator
) -> float:
    """Goes through a lesson once; the share of choices that were right before."""
    right = []
    order = torch.from_numpy(rng.permutation(len(lesson[0])))
    size = model.batch_size or len(order)
    for begin in range(0, len(order), size):
        batch = order[begin : begin + size]
        seen, masks, wanted, returns = (part[batch] for part in lesson)
        features = model.policy.extract_features(seen.float())
        logits = model.policy.action_net(features).masked_fill(masks == 0, NO_CHOICE)
        values = model.policy.value_net(features)
        unlikely = -(wanted.float() * logits.log_softmax(dim=1)).sum(dim=1)
        loss = unlikely.mean() + torch.nn.functional.mse_loss(values, returns)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        right.append(float((logits.argmax(dim=1) == wanted.argmax(dim=1)).float().mean()))
    return float(np.mean(right))
