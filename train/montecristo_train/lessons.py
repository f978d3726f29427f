"""A head start: the network learns what every choice is worth, tried out in imagined games, before it plays for wins.

A game tells little of one decision: luck and all the other decisions hide what it was worth. So, as in the vine method
of TRPO, every legal choice of a position is played on from, all with the same luck (see `montecristo_agents.trials`).
That is an estimate for every choice, not only for the one that was made, and a far less noisy one. Its price is a bias:
it is the greedy player who plays on, and a judge who says how it will end. Learning from wins comes after it.

A network that plays well already may be taught some kinds of decision only. In the others it is held to what it did.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from torch.nn import functional

from montecristo_agents.policy import Network
from montecristo_agents.trials import try_out
from montecristo_env.agent import PublicView
from montecristo_env.core.constants import Decision
from montecristo_env.errors import InvalidArgument
from montecristo_train.selfplay import SelfPlayVecEnv

WORTH = 0.02  # a choice that brings this much more of a win, with two players, is e times as likely in the end
HASTE = 2.0  # how much more decidedly than it should in the end the network plays meanwhile
NO_CHOICE = -1e8

Lesson = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
Held = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Subject:
    """What lessons are about.

    Args:
        tries: of every choice.
        rounds: for how many greedy plays on when a choice is tried out.
        kinds: of decision; none for all.
        network: what the learner is held to in the others: how likely each choice is, and what it expects.
    """

    tries: int = 1
    rounds: int = 1
    kinds: tuple[Decision, ...] = ()
    network: Network | None = None


def subject(tries: int, rounds: int, kinds: Sequence[str], start: str) -> Subject:
    """The subject of lessons on these kinds of decision, or on all, for a learner that starts from a model file."""
    if min(tries, rounds) < 1:
        raise InvalidArgument(f"lessons need at least one try and one round, not {tries} and {rounds}")
    if not kinds:
        return Subject(tries, rounds)
    names = [decision.name.lower() for decision in Decision if decision != Decision.OVER]
    if unknown := [kind for kind in kinds if kind not in names]:
        raise InvalidArgument(f"no kind of decision is called {', '.join(unknown)}: these are {', '.join(names)}")
    if not start:
        raise InvalidArgument(
            "lessons on some kinds of decision need a network to --start from, which is kept in the rest"
        )
    return Subject(tries, rounds, tuple(Decision[kind.upper()] for kind in kinds), Network.load(start))


def give_lessons(
    model: MaskablePPO,
    env: SelfPlayVecEnv,
    steps: int,
    after_each: Callable[[], None],
    subject: Subject,
) -> None:
    """Lets the network play, and learn from every decision, until so many steps have been made.

    Args:
        model: whose network learns; its steps are counted, and its rates are those of the schedule.
        env: where it plays.
        steps: of the model.
        after_each: is called after each rollout that was learnt from.
        subject: what they are about.
    """
    total = model._total_timesteps
    while model.num_timesteps < steps:
        lesson, held = play_lesson(model, env, subject)
        model.num_timesteps += len(lesson[0])
        model._update_current_progress_remaining(model.num_timesteps, total)
        model._update_learning_rate(model.policy.optimizer)
        learn(model, lesson, held, env.rng)
        after_each()


def play_lesson(model: MaskablePPO, env: SelfPlayVecEnv, subject: Subject) -> tuple[Lesson, Held | None]:
    """A rollout: what was seen, the legal actions, what share of the win each brings, and the number of players.

    If some decisions are held to what they were, also which ones, the logits of the choices, and what was expected.
    """
    view, rows = PublicView(env.games), np.arange(env.num_envs)
    players = env.games.num_players.astype(np.float32)
    lessons: list[tuple[np.ndarray, ...]] = []
    helds: list[tuple[np.ndarray, ...]] = []
    seen: Any = env.reset()
    for _ in range(model.n_steps):
        masks = env.action_masks()
        shares = np.zeros(masks.shape, np.float32)
        taught = rows
        if subject.network is not None:
            held = ~np.isin(env.games.states["decision"], subject.kinds)
            helds.append((held, *subject.network.evaluate(seen)))
            taught = np.flatnonzero(~held)
        shares[taught] = try_out(view, taught, subject.tries, subject.rounds)
        lessons.append((seen, masks, shares, players))
        with torch.no_grad():
            features = model.policy.extract_features(torch.from_numpy(seen))
            logits = model.policy.action_net(features).numpy()
        noise = env.rng.gumbel(size=logits.shape)
        seen, *_ = env.step(np.where(masks, HASTE * logits + noise, -np.inf).argmax(axis=1))
    lesson: Any = _joined(lessons)
    return lesson, _joined(helds) if helds else None


def _joined(steps: list[tuple[np.ndarray, ...]]) -> Any:
    return tuple(torch.from_numpy(np.concatenate(part)) for part in zip(*steps, strict=True))


def learn(model: MaskablePPO, lesson: Lesson, held: Held | None, rng: np.random.Generator) -> None:
    """Goes through a lesson once."""
    order = torch.from_numpy(rng.permutation(len(lesson[0])))
    size = model.batch_size or len(order)
    for begin in range(0, len(order), size):
        some = order[begin : begin + size]
        seen, masks, shares, players = (part[some] for part in lesson)
        kept: Any = None if held is None else tuple(part[some] for part in held)
        loss = loss_of(model, seen, masks, shares, players, kept)
        model.policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.policy.parameters(), model.max_grad_norm)
        model.policy.optimizer.step()


def loss_of(
    model: MaskablePPO,
    seen: torch.Tensor,
    masks: torch.Tensor,
    shares: torch.Tensor,
    players: torch.Tensor,
    held: Held | None = None,
) -> torch.Tensor:
    """What the choices of the network cost, less what their randomness is worth, and the error of its values.

    It is linear in the shares of the win, whose errors have a mean of zero: so they cancel out. Decisions that are held
    cost how much they differ from what they were.
    """
    features = model.policy.extract_features(seen)
    logs = torch.log_softmax(model.policy.action_net(features).masked_fill(~masks, NO_CHOICE), dim=1)
    chosen = logs.exp()
    expected = (chosen * shares).sum(dim=1)
    usual = (shares * masks).sum(dim=1) / masks.sum(dim=1)
    gain = (expected - usual) * players / 2  # with more players, shares are smaller
    entropy = -(chosen * logs).sum(dim=1)
    rewards = (players * expected.detach() - 1) / (players - 1)
    cost = -(gain / WORTH + entropy)
    if held is not None:
        is_held, logits, values = held
        likely = torch.softmax(logits.masked_fill(~masks, NO_CHOICE), dim=1)
        cost = torch.where(is_held, -(likely * logs).sum(dim=1), cost)
        rewards = values
    error = functional.mse_loss(model.policy.value_net(features)[:, 0], rewards)
    return error * model.vf_coef + cost.mean()
