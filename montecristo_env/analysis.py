"""Luck and skill: what draws brought to the players of a game, and what their decisions cost them.

An agent's estimate of the win measures both. The value of an action is the mean estimate after it, over redraws of what
the players do not know. A decision loses the value of what the agent would have done less that of what was done; it
loses nothing if that is below 0. The luck of every seat is the estimate of what came less the value of what was done.
Luck has the mean 0, whoever plays and whatever the estimate is; losses depend on how good the agent is.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from montecristo_env.agent import PublicView, WinEstimator
from montecristo_env.core.constants import MAX_PLAYERS
from montecristo_env.core.layout import States
from montecristo_env.games import SEED_BITS, GameBatch, action_codes

REDRAWS = 16


class Analysis(NamedTuple):
    """Of some decisions, in shares of the win."""

    losses: NDArray[np.float64]
    """(K,), what each decision cost the player who made it, from 0."""
    luck: NDArray[np.float64]
    """(K, 4), what the draws that followed brought to every seat; its sum over the seats is 0."""


def analyse(
    agent: WinEstimator,
    before: GameBatch,
    actions: ArrayLike,
    preferred: ArrayLike,
    after: States,
    redraws: int = REDRAWS,
    seed: int = 0,
) -> Analysis:
    """The loss and the luck of these decisions, as an agent estimates them.

    Args:
        agent: estimates how likely every seat is to win.
        before: the positions, none of which is over.
        actions: the code of the action that was chosen in each.
        preferred: the code of what the agent would have done.
        after: what came: where the next player must choose, or the game is over.
        redraws: how often an action that draws something is tried.
        seed: of the redraws; both actions of a decision have the same ones.
    """
    codes, better = action_codes(actions, len(before)), action_codes(preferred, len(before))
    keys = np.random.default_rng(seed).integers(2**SEED_BITS, size=(len(before), redraws), dtype=np.uint64)
    values = _values(agent, before, codes, keys)
    luck = estimate(agent, after, before) - values
    luck[~before.draws(codes)] = 0.0
    losses = np.zeros(len(before))
    if (other := np.flatnonzero(codes != better)).size:
        gained = _values(agent, before[other], better[other], keys[other]) - values[other]
        losses[other] = np.maximum(gained[np.arange(other.size), before.current_player[other]], 0.0)
    return Analysis(losses, luck)


def estimate(agent: WinEstimator, rows: States, like: GameBatch) -> NDArray[np.float64]:
    """The share of the win that every seat may expect, (K, 4), or has got where the game is over."""
    games = like[np.zeros(rows.size, np.int64)]
    games.states[:] = rows
    shares = np.zeros((rows.size, MAX_PLAYERS))
    over = games.over
    shares[over] = games.winners[over] / np.maximum(games.winners[over].sum(axis=1, keepdims=True), 1)
    if (left := np.flatnonzero(~over)).size:
        shares[left] = agent.win_probabilities(PublicView(games), left)
    return shares


class Balance(NamedTuple):
    """What the decisions of a player cost them in a game, and what draws brought them, in the reward "win"."""

    loss: float
    luck: float

    def describe(self, name: str) -> str:
        """A sentence about the player of this name."""
        by_luck = f"{'won' if self.luck >= 0 else 'lost'} {abs(self.luck):.2f} by luck"
        return f"{name} lost {self.loss:.2f} by play and {by_luck}"


def balances(events: Iterable[Mapping[str, Any]], num_players: int) -> list[Balance] | None:
    """The sums over the events of a record, by seat; None if they do not tell loss and luck."""
    losses, lucks = np.zeros(num_players), np.zeros(num_players)
    told = [event for event in events if "loss" in event and "luck" in event]
    for event in told:
        losses[event["player"]] += event["loss"]
        lucks += event["luck"]
    return [Balance(float(loss), float(luck)) for loss, luck in zip(losses, lucks, strict=True)] if told else None


def _values(
    agent: WinEstimator, before: GameBatch, codes: NDArray[np.int64], keys: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """The values of these actions for every seat, (K, 4)."""
    values = np.zeros((len(before), MAX_PLAYERS))
    draws = before.draws(codes)
    for some, times in ((np.flatnonzero(~draws), 1), (np.flatnonzero(draws), keys.shape[1])):
        if some.size:
            tried = before[some.repeat(times)].resample_hidden(keys[some, :times].ravel())
            tried.step(codes[some].repeat(times))
            values[some] = estimate(agent, tried.states, before).reshape(some.size, times, -1).mean(axis=1)
    return values
