"""Matches that stop when they know enough: a sequential test, and intervals that hold at every look.

The test is a generalised sequential probability ratio test (GSPRT) in its normal approximation, as Fishtest uses it for
the chess engine Stockfish, on the results of deals: the games of a deal are not independent of each other, deals are.
Two means are compared, that of equals and that of the claimed difference, with the variance that the deals themselves
show. With 2 players a deal is a pair of games with seats exchanged, and its results are the pentanomial ones of chess.

The intervals are a confidence sequence: the true mean is in all of them at once with the promised probability, however
often one looks and whenever one stops (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
betting", 2024: the predictable plug-in empirical Bernstein sequence of Theorem 2).
"""

import math
import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.ratings import ELO_PER_FACTOR_10
from montecristo_env import InvalidArgument

ALPHA = 0.05
FEWEST_DEALS = 16  # before the first look: the variance must be known a little
PRIOR_DEALS = (
    4  # imaginary ones with the greatest variance there is, so that the first few do not seem to agree too well
)
MOST_BET = 0.5  # of the confidence sequence; any number below 1 is valid
MOST_ELO = 2000.0  # that a claim may speak of, and that an interval names
_CLAIM = re.compile(r"(?P<agent>\S.*?) beats (?P<opponent>\S.*?) by (?P<elo>[0-9]+(\.[0-9]+)?) elo", re.IGNORECASE)


@dataclass(frozen=True)
class Claim:
    """That an agent is better than another by some points of Elo."""

    agent: str
    opponent: str
    elo: float

    def __str__(self) -> str:
        return f"{self.agent} beats {self.opponent} by {self.elo:g} Elo"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `A beats B by 10 Elo`."""
        found = _CLAIM.fullmatch(text.strip())
        if found is None:
            raise InvalidArgument(f'a claim reads "A beats B by 10 Elo", not {text!r}')
        elo = float(found["elo"])
        if not 0 < elo <= MOST_ELO:
            raise InvalidArgument(f"a claim must be about more than 0 and up to {MOST_ELO:g} Elo, not {elo:g}")
        return cls(found["agent"], found["opponent"], elo)


@dataclass(frozen=True)
class Verdict:
    """What a sequential test says after a number of deals."""

    decision: str  # "accepted", "rejected" or "open"
    deals: int
    ratio: float  # logarithm of the likelihood ratio
    rejected_below: float
    accepted_above: float

    def __str__(self) -> str:
        return f"{self.decision} at {self.ratio:+.2f} in {self.rejected_below:.2f}…{self.accepted_above:+.2f}"


class SequentialTest:
    """Decides between a claim and that the agents are equals.

    Args:
        claim: what is tested.
        players: at a table.
        alpha: how often, at most, equals are taken for better, and how often a true claim is rejected.
    """

    def __init__(self, claim: Claim, players: int, alpha: float = ALPHA) -> None:
        if not isinstance(alpha, float) or not 0 < alpha < 0.5:
            raise InvalidArgument(f"alpha must be a number above 0 and below 0.5, but is {alpha!r}")
        self.claim, self.players, self.alpha = claim, players, alpha
        self._null, self._claimed = expected_result(np.array([0.0, claim.elo]), players)
        self._bound = math.log((1 - alpha) / alpha)

    def ratios(self, results: NDArray[np.float64]) -> NDArray[np.float64]:
        """The logarithms of the likelihood ratio after each deal, along the last axis."""
        deals = np.arange(1, results.shape[-1] + 1)
        means = np.cumsum(results, axis=-1) / deals
        squares = np.cumsum(results**2, axis=-1) - deals * means**2
        variances = (np.maximum(squares, 0) + PRIOR_DEALS / 4) / (deals + PRIOR_DEALS)
        middle = (self._null + self._claimed) / 2
        found: NDArray[np.float64] = deals * (self._claimed - self._null) * (means - middle) / variances
        return found

    def verdict(self, results: NDArray[np.float64]) -> Verdict:
        """What the results of deals, in order, say: those after the first decision count no more."""
        ratios = self.ratios(results)
        decided = np.abs(ratios) >= self._bound
        decided[: FEWEST_DEALS - 1] = False
        deals = int(decided.argmax()) + 1 if decided.any() else len(results)
        ratio = float(ratios[deals - 1]) if deals else 0.0
        decision = "open" if not decided.any() else "accepted" if ratio > 0 else "rejected"
        return Verdict(decision, deals, ratio, -self._bound, self._bound)

    def describe(self, results: NDArray[np.float64], bounded: NDArray[np.float64]) -> dict[str, Any]:
        """The outcome, for reports.

        Args:
            results: of the deals up to the verdict.
            bounded: the same from 0 to 1: for the confidence sequence, which needs that.
        """
        low, high = (float(bounds[-1]) for bounds in confidence_sequence(bounded, self.alpha))
        elo = [float(x) for x in elo_of_result(np.array([low, high]), self.players)]
        verdict = self.verdict(results)
        return {"claim": str(self.claim), "alpha": self.alpha, **vars(verdict), "low": low, "high": high, "elo": elo}


# --- results of deals and Elo


def expected_result(elo: NDArray[np.float64], players: int) -> NDArray[np.float64]:
    """The mean result of a deal between two agents that are so far apart, from 0 to 1; equals have 1/2.

    The result is (1 + a - b) / 2, a and b being the shares of the win of either when alone among the other's; with 2
    players, that is a. Elo is that of Bradley and Terry, as in `ratings`.
    """

    def alone(difference: NDArray[np.float64]) -> NDArray[np.float64]:
        share: NDArray[np.float64] = 1 / (1 + (players - 1) * 10 ** (-difference / ELO_PER_FACTOR_10))
        return share

    return (1 + alone(elo) - alone(-elo)) / 2


def elo_of_result(results: NDArray[np.float64], players: int) -> NDArray[np.float64]:
    """The other way round, to a tenth of a point; at most MOST_ELO either way."""
    grid = np.linspace(-MOST_ELO, MOST_ELO, 40_001)
    found: NDArray[np.float64] = np.interp(results, expected_result(grid, players), grid)
    return found


# --- confidence sequences


def confidence_sequence(
    values: NDArray[np.float64], alpha: float = ALPHA
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper bounds of the mean of values from 0 to 1 after each of them, along the last axis.

    With a probability of 1 - alpha the mean is within all of them. Values must be independent of each other, or at
    least have the same mean whatever came before.
    """
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise InvalidArgument("a confidence sequence is for values from 0 to 1")
    number = np.arange(1, values.shape[-1] + 1)
    means = (0.5 + np.cumsum(values, axis=-1)) / (number + 1)
    variances = (0.25 + np.cumsum((values - means) ** 2, axis=-1)) / (number + 1)
    known_means = _shifted(means, 0.5)  # before each value: what is bet must not depend on it
    penalty = math.log(2 / alpha)
    bets = np.minimum(np.sqrt(2 * penalty / (_shifted(variances, 0.25) * number * np.log1p(number))), MOST_BET)
    weights = np.cumsum(bets, axis=-1)
    centres = np.cumsum(bets * values, axis=-1) / weights
    spread = np.cumsum((values - known_means) ** 2 * (-np.log1p(-bets) - bets), axis=-1)
    reach = (penalty + spread) / weights
    low = np.maximum.accumulate(np.maximum(centres - reach, 0), axis=-1)
    high = np.minimum.accumulate(np.minimum(centres + reach, 1), axis=-1)
    return low, high


def _shifted(values: NDArray[np.float64], first: float) -> NDArray[np.float64]:
    """Each value one place later."""
    return np.concatenate([np.full((*values.shape[:-1], 1), first), values[..., :-1]], axis=-1)
