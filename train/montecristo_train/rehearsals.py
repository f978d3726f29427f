"""Lessons in which the network itself plays on: what its likely choices are worth to a player who plays as it does.

What a choice is worth depends on what follows. In `lessons` the greedy player follows, which is quick, and right for a
beginner; a network that has outgrown greedy must try out its choices by its own play. That takes far
longer, so only likely choices are tried, in one imagined game each, which is the same for all choices of a position.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from torch.nn import functional

from montecristo_env import actions
from montecristo_env.agent import PublicView
from montecristo_train.lessons import NO_CHOICE, Kind, Lesson
from montecristo_train.network import Frozen, export
from montecristo_train.selfplay import LEARNER, SelfPlayVecEnv

LIKELY = 0.02  # choices that the network makes less often are not tried
CURIOUS = 0.1  # the share of positions in which any one choice is tried besides
ROUNDS = 2  # that are played on
WORTH = 0.005  # a choice that brings this much more of a win, with two players, is e times as likely in the end
CAUTION = 1.0  # what it costs to change the network's mind, compared with the worth of randomness
STAKE = 0.05  # so much of a win counts as much as a squared error of one in the values


def play_rehearsal(model: MaskablePPO, env: SelfPlayVecEnv) -> Lesson:
    """A rollout: what was seen, legal actions, those tried, their shares of the win, logits, value, and players."""
    player = Frozen(export(model, {}))
    players = env.games.num_players.astype(np.float32)
    parts: list[tuple[NDArray[Any], ...]] = []
    seen: Any = env.reset()
    for _ in range(model.n_steps):
        masks = env.action_masks()
        logits, values = player.evaluate(seen)
        logits = np.where(masks, logits, np.float32(NO_CHOICE))
        tried = choose_tries(logits, masks, env.rng)
        parts.append((seen, masks, tried, try_on(player, env, tried), logits, values, players))
        seen, *_ = env.step((logits + env.rng.gumbel(size=logits.shape)).argmax(axis=1))
    return tuple(torch.from_numpy(np.concatenate(part)) for part in zip(*parts, strict=True))


def choose_tries(logits: NDArray[np.float32], masks: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which actions to try: likely ones, and now and then any; none where that is only one."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    tried: NDArray[np.bool_] = weights > LIKELY * weights.sum(axis=1, keepdims=True)
    curious = np.flatnonzero(rng.random(len(masks)) < CURIOUS)
    tried[curious, (rng.random((curious.size, masks.shape[1])) * masks[curious]).argmax(axis=1)] = True
    tried[tried.sum(axis=1) < 2] = False
    return tried


def try_on(player: Frozen, env: SelfPlayVecEnv, tried: NDArray[np.bool_]) -> NDArray[np.float32]:
    """What share of the win the actions to be tried bring the players on turn, 0 for others, (N, actions.COUNT).

    All of a position are tried in the same imagined game. It goes on until enough rounds have begun and it is the same
    player's turn again, for the network knows what the player on turn may hope for. The pool plays its own seats.
    """
    rows, codes = np.nonzero(tried)
    view, everywhere = PublicView(env.games), np.arange(len(env.games))
    imagined = view.resample_hidden(view.random_keys(everywhere), everywhere)[rows]
    seen_by_all, holders, seats = PublicView(imagined), env.holders[rows], env.deciders[rows]
    imagined.step(codes)
    rounds: NDArray[Any] = imagined.states["round_number"]
    last_rounds, waiting = rounds + ROUNDS, np.arange(rows.size)
    while True:
        on_turn = imagined.current_player[waiting]
        too_early = (rounds[waiting] < last_rounds[waiting]) | (on_turn != seats[waiting])
        going_on = too_early & ~imagined.over[waiting]
        waiting, on_turn = waiting[going_on], on_turn[going_on]
        if waiting.size == 0:
            break
        held_by = holders[waiting, on_turn]
        own, others = waiting[held_by == LEARNER], waiting[held_by != LEARNER]
        if own.size:
            masks = np.empty((own.size, actions.COUNT), np.int8)
            logits, _ = player.evaluate(player.network.look(imagined, own, masks))
            imagined.step(np.where(masks, logits, -np.inf).argmax(axis=1), own)
        if others.size:
            imagined.step(env.pool.act(seen_by_all, others, held_by[held_by != LEARNER]), others)
    _, expected = player.evaluate(player.network.look(imagined))
    players, wins = imagined.num_players, imagined.winners
    hoped = np.clip((1 + (players - 1) * expected) / players, 0, 1)
    won = np.take_along_axis(wins, seats[:, None], axis=1)[:, 0] / np.maximum(wins.sum(axis=1), 1)
    shares = np.zeros(tried.shape, np.float32)
    shares[rows, codes] = np.where(imagined.over, won, hoped)
    return shares


def loss_of(
    model: MaskablePPO,
    seen: torch.Tensor,
    masks: torch.Tensor,
    tried: torch.Tensor,
    shares: torch.Tensor,
    logits: torch.Tensor,
    values: torch.Tensor,
    players: torch.Tensor,
) -> torch.Tensor:
    """As in `lessons`, but among the actions that were tried; the network shall keep its mind about all others."""
    features = model.policy.extract_features(seen.float())
    outputs = model.policy.action_net(features)
    before = torch.log_softmax(logits, dim=1)
    after = torch.log_softmax(outputs.masked_fill(~masks, NO_CHOICE), dim=1)
    changed = (before.exp() * (before - after)).sum(dim=1)
    some = tried.any(dim=1)
    logs = torch.log_softmax(outputs.masked_fill(~tried, NO_CHOICE), dim=1)
    chosen = logs.exp() * tried
    expected = (chosen * shares).sum(dim=1)
    usual = shares.sum(dim=1) / tried.sum(dim=1).clamp(min=1)
    gain = (expected - usual) * players / 2
    entropy = -(chosen * logs).sum(dim=1)
    rewards = torch.where(some, (players * expected.detach() - 1) / (players - 1), values)
    error = functional.mse_loss(model.policy.value_net(features)[:, 0], rewards)
    return error - (gain + WORTH * (entropy - CAUTION * changed)).mean() / STAKE


REHEARSALS = Kind(play_rehearsal, loss_of)
