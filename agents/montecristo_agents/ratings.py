"""Intervals and ratings. The games of one deal are not independent of each other, so all statistics are by deal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.extras import PlackettLuce
from montecristo_agents.matches import Table

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)

ELO_PER_FACTOR_10 = 400  # points that make the odds of winning ten times as good
IMAGINARY_GAMES = 1.0  # at every table, shared by all its players: they keep the rating of who wins everything finite
BOOTSTRAPS = 1000
BOOTSTRAP_BLOCKS = 1000  # more deals than these are drawn in blocks, so that memory stays small
BOOTSTRAP_SEED = 0
_NEWTON_STEPS = 100
_NEWTON_FARTHEST = 2.0  # per step, in powers of e; full steps can overshoot when somebody wins nearly everything
_NEWTON_CLOSE = 1e-9

LOTTERY_BOOTSTRAPS = 200
_LOTTERY_CLOSE = 1e-12

RATED_GAMES = 10_000  # openskill takes them one by one
_ORDER_SEED = 0


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval; NaN where there is too little to tell."""

    value: float
    low: float
    high: float


# --- intervals


def mean_by_deal(values: NDArray[np.floating]) -> Estimate:
    """The mean of one value per deal, with the interval that follows from their spread."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, math.nan, math.nan)
    reach = Z * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Estimate(mean, mean - reach, mean + reach)


def rate_by_deal(shares: NDArray[np.floating]) -> Estimate:
    """The mean of one share of wins per deal, with Agresti and Coull's interval, its trials being deals.

    Z² imaginary deals, half of them won outright and half lost, join those that were played. Without them, few deals,
    or deals that all went the same way, would seem to leave no doubt. Shares that are adjusted may lie beyond 0 and 1.
    """
    imaginary = Z**2
    weight = len(shares) + imaginary
    centre = (float(np.sum(shares)) + imaginary / 2) / weight
    squares = float(np.sum((shares - centre) ** 2)) + imaginary * (centre**2 + (1 - centre) ** 2) / 2
    reach = Z * math.sqrt(squares) / weight
    mean = float(np.mean(shares))
    return Estimate(mean, min(mean, max(0.0, centre - reach)), max(mean, min(1.0, centre + reach)))


# --- Bradley-Terry


def bradley_terry(
    wins: NDArray[np.floating], games: NDArray[np.floating], tables: Sequence[Table], players: int
) -> NDArray[np.float64]:
    """Logarithms of strengths s, with mean 0, such that the lone player wins with s_lone / (sum of s at the table).

    Args:
        wins: of the lone player at each table, shared ones as shares, (..., tables).
        games: at each table, (..., tables).
        tables: who sits there.
        players: how many.

    This is a logistic regression, solved by Newton's method, for all leading axes at once. Every side of a table must
    have won something, or there is no solution.
    """
    agents = 1 + max(max(table) for table in tables)
    sides = np.zeros((len(tables), agents))
    for row, table in zip(sides, tables, strict=True):
        row[table.lone], row[table.rest] = 1, -1
    strengths = np.zeros((*np.broadcast_shapes(wins.shape, games.shape)[:-1], agents))
    for _ in range(_NEWTON_STEPS):
        chances = 1 / (1 + (players - 1) * np.exp(-strengths @ sides.T))
        slope = (wins - games * chances) @ sides
        curvature = np.einsum("...t,ti,tj->...ij", games * chances * (1 - chances), sides, sides) + 1  # + 1: mean 0
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        longest = np.abs(step).max(axis=-1, keepdims=True)
        strengths += step * np.minimum(1, _NEWTON_FARTHEST / np.maximum(longest, _NEWTON_CLOSE))
        if longest.max() < _NEWTON_CLOSE:
            break
    return strengths


def elo(shares: NDArray[np.floating], tables: Sequence[Table], players: int, anchor: int) -> list[Estimate]:
    """Bradley-Terry ratings on the scale of Elo, with bootstrap intervals over deals.

    Args:
        shares: of the wins, what the lone player got in all games of a deal at a table, (deals, tables).
        tables: who sits there.
        players: how many, which is also the number of games of a deal at a table.
        anchor: the agent whose rating is 0.
    """

    def fit(wins: NDArray[Any], deals: NDArray[Any], imaginary: NDArray[Any]) -> NDArray[Any]:
        games = deals[..., None] * players + imaginary
        strengths = bradley_terry(wins + imaginary / players, games, tables, players)
        return ELO_PER_FACTOR_10 / math.log(10) * (strengths - strengths[..., anchor : anchor + 1])

    deals = len(shares)
    best = fit(shares.sum(axis=0), np.array(deals), np.full(len(tables), IMAGINARY_GAMES))
    if deals < 2:
        return [Estimate(float(value), math.nan, math.nan) for value in best]
    starts = np.linspace(0, deals, min(deals, BOOTSTRAP_BLOCKS), endpoint=False).astype(np.int64)
    blocks, sizes = np.add.reduceat(shares, starts, axis=0), np.diff(starts, append=deals)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = rng.multinomial(len(starts), np.full(len(starts), 1 / len(starts)), size=BOOTSTRAPS)
    # Their weight is drawn too, or the rating of who wins everything, which hangs on them, would seem certain.
    imaginary = rng.exponential(IMAGINARY_GAMES, (BOOTSTRAPS, len(tables)))
    again = fit(drawn @ blocks, drawn @ sizes, imaginary)
    low, high = np.quantile(again, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return [Estimate(*map(float, bounds)) for bounds in zip(best, low, high, strict=True)]


# --- maximal lotteries


def maximal_lottery(margins: NDArray[np.floating]) -> NDArray[np.float64]:
    """How often to choose each agent so that no other choice beats this one on average, (agents,).

    It is the optimal mixed strategy of the symmetric zero-sum game in which both sides choose an agent (Fishburn, 1984;
    as Nash averaging in Balduzzi et al., 2018). Who beats all others gets everything; in a cycle, each gets a part, and
    who only beats agents outside of it nothing.

    Args:
        margins: by how much the row beats the column, (agents, agents); the opposite of its transpose.

    It is found by the simplex method. Where ties leave a choice, it is the mean of what two orders of the agents find.
    """
    found: NDArray[np.float64] = (_optimal_strategy(margins) + _optimal_strategy(margins[::-1, ::-1])[::-1]) / 2
    return found


def _optimal_strategy(margins: NDArray[np.floating]) -> NDArray[np.float64]:
    """Weights x with the greatest sum such that (margins + c) x <= 1, divided by that sum.

    With c the entries are positive, so that no sum is infinite. Bland's rule: the first column that gains enters, and
    of the rows that bound it most the one whose own column is first leaves, so that it ends.
    """
    agents = len(margins)
    positive = margins + 1 + np.abs(margins).max()
    table = np.block([[positive, np.eye(agents), np.ones((agents, 1))], [-np.ones(agents), np.zeros(agents + 1)]])
    basis = np.arange(agents, 2 * agents)
    while (gains := table[-1, :-1] < -_LOTTERY_CLOSE).any():
        enters = int(gains.argmax())
        column = table[:-1, enters]
        bounds = np.where(column > _LOTTERY_CLOSE, table[:-1, -1] / np.maximum(column, _LOTTERY_CLOSE), np.inf)
        tight = np.flatnonzero(bounds <= bounds.min() + _LOTTERY_CLOSE)
        leaves = int(tight[basis[tight].argmin()])
        table[leaves] /= table[leaves, enters]
        others = np.arange(agents + 1) != leaves
        table[others] -= np.outer(table[others, enters], table[leaves])
        basis[leaves] = enters
    weights = np.zeros(2 * agents)
    weights[basis] = np.maximum(table[:-1, -1], 0)
    found: NDArray[np.float64] = weights[:agents] / weights[:agents].sum()
    return found


def lottery(results: NDArray[np.floating]) -> list[Estimate]:
    """The maximal lottery of a tournament, with bootstrap intervals over deals.

    Args:
        results: of each deal between every two agents, from 0 to 1, and 1/2 for an agent and itself,
            (deals, agents, agents).
    """
    best = maximal_lottery(results.mean(axis=0) - 0.5)
    deals = len(results)
    if deals < 2:
        return [Estimate(float(value), math.nan, math.nan) for value in best]
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = rng.multinomial(deals, np.full(deals, 1 / deals), size=LOTTERY_BOOTSTRAPS) / deals
    again = np.array([maximal_lottery(np.tensordot(weights, results, 1) - 0.5) for weights in drawn])
    low, high = np.quantile(again, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return [Estimate(*map(float, bounds)) for bounds in zip(best, low, high, strict=True)]


# --- openskill


@dataclass(frozen=True)
class Skill:
    """An openskill rating: what it believes, and how unsure it is."""

    mu: float
    sigma: float


def openskill(seats: NDArray[np.integer], ranks: NDArray[np.floating], agents: int) -> list[Skill]:
    """Plackett-Luce ratings after these games, at most RATED_GAMES of them, taken in a fixed random order.

    An agent that has several seats is rated in each of them and gets the mean.

    Args:
        seats: which agent sits where, (games, players).
        ranks: how the seats came out, (games, players).
        agents: how many there are.
    """
    model = PlackettLuce()
    ratings = [model.rating() for _ in range(agents)]
    order = np.random.default_rng(_ORDER_SEED).permutation(len(seats))[:RATED_GAMES]
    for sitting, places in zip(seats[order].tolist(), ranks[order].tolist(), strict=True):
        rated = model.rate([[ratings[agent]] for agent in sitting], ranks=places)
        for agent in set(sitting):
            own = [rating for other, (rating,) in zip(sitting, rated, strict=True) if other == agent]
            mu, sigma = (sum(getattr(rating, name) for rating in own) / len(own) for name in ("mu", "sigma"))
            ratings[agent] = model.rating(mu, sigma)
    return [Skill(rating.mu, rating.sigma) for rating in ratings]
