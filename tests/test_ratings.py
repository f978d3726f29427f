"""Intervals cover what they should, and ratings find strengths that are known."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from montecristo_agents import ratings
from montecristo_agents.matches import Table, schedule
from montecristo_agents.ratings import bradley_terry, elo, mean_by_deal, openskill, rate_by_deal

TRIALS = 2000


def clustered_shares(
    rng: np.random.Generator, rate: float, deals: int, games: int, alike: float
) -> NDArray[np.float64]:
    """Shares of wins by deal, where all games of a deal end the same way with the probability `alike`."""
    common = rng.random((deals, 1)) < rate
    own = rng.random((deals, games)) < rate
    return np.where(rng.random((deals, 1)) < alike, common, own).mean(axis=1)


@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("players", "rate"), [(2, 0.5), (2, 0.9), (3, 1 / 3), (4, 0.25), (4, 0.95)])
def test_intervals_of_rates_cover_the_true_rate_however_much_the_games_of_a_deal_agree(
    players: int, rate: float, alike: float
) -> None:
    rng = np.random.default_rng(0)
    estimates = [rate_by_deal(clustered_shares(rng, rate, 150, players, alike)) for _ in range(TRIALS)]
    covered = np.mean([estimate.low <= rate <= estimate.high for estimate in estimates])
    assert 0.93 <= covered <= 0.98
    assert np.mean([estimate.value for estimate in estimates]) == pytest.approx(rate, abs=0.01)


def test_intervals_of_means_cover_the_true_mean() -> None:
    rng = np.random.default_rng(1)
    estimates = [mean_by_deal(rng.exponential(3.0, 200)) for _ in range(TRIALS)]
    assert 0.92 <= np.mean([estimate.low <= 3.0 <= estimate.high for estimate in estimates]) <= 0.97


def test_opposite_games_of_a_deal_make_the_interval_narrow() -> None:
    rng = np.random.default_rng(2)
    independent = rate_by_deal(clustered_shares(rng, 0.5, 1000, 2, 0.0))
    mirrored = rate_by_deal(np.full(1000, 0.5))
    assert mirrored.low < 0.5 < mirrored.high
    assert mirrored.high - mirrored.low < (independent.high - independent.low) / 5


@pytest.mark.parametrize("deals", [1, 2, 10, 500])
def test_deals_that_were_all_won_leave_some_doubt(deals: int) -> None:
    estimate = rate_by_deal(np.ones(deals))
    assert estimate.value == estimate.high == 1 and 1 - 5 / deals < estimate.low < 1 - 1 / (deals + 5)


def test_one_deal_says_nothing_about_the_spread_of_a_mean() -> None:
    estimate = mean_by_deal(np.array([7.0]))
    assert estimate.value == 7 and math.isnan(estimate.low) and math.isnan(estimate.high)


# --- Bradley-Terry

STRENGTHS = np.array([0.0, 0.7, -1.2, 2.5])


def chances(tables: list[Table], players: int) -> NDArray[np.float64]:
    """The lone player's, by the definition: their strength as a part of all strengths at the table."""
    strengths = np.exp(STRENGTHS)
    own = strengths[[table.lone for table in tables]]
    return own / (own + (players - 1) * strengths[[table.rest for table in tables]])


@pytest.mark.parametrize("players", [2, 3, 4])
def test_bradley_terry_finds_the_strengths_that_made_the_wins(players: int) -> None:
    tables = schedule(len(STRENGTHS), players)
    games = np.full(len(tables), 1e9)
    found = bradley_terry(games * chances(tables, players), games, tables, players)
    np.testing.assert_allclose(found - found[0], STRENGTHS, atol=1e-6)


def test_bradley_terry_finds_the_strengths_of_those_who_only_met_one() -> None:
    tables = schedule(len(STRENGTHS), 3, focus=2)
    games = np.full(len(tables), 1e9)
    found = bradley_terry(games * chances(tables, 3), games, tables, 3)
    np.testing.assert_allclose(found - found[0], STRENGTHS, atol=1e-6)


@pytest.mark.parametrize("players", [2, 4])
def test_elo_intervals_cover_the_true_ratings(players: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratings, "BOOTSTRAPS", 200)
    tables = schedule(len(STRENGTHS), players)
    rng = np.random.default_rng(3)
    truth = STRENGTHS[1:] * 400 / math.log(10)
    covered = []
    for _ in range(100):
        shares = rng.binomial(players, chances(tables, players), (200, len(tables))).astype(np.float64)
        estimates = elo(shares, tables, players, anchor=0)
        assert estimates[0] == ratings.Estimate(0, 0, 0)
        covered += [guess.low <= true <= guess.high for guess, true in zip(estimates[1:], truth, strict=True)]
    assert 0.9 <= np.mean(covered) <= 0.98


def test_elo_of_400_points_more_means_ten_times_the_odds() -> None:
    shares = np.full((100_000, 1), 2 * 10 / 11)
    assert elo(shares, [Table(0, 1)], 2, anchor=1)[0].value == pytest.approx(400, abs=0.1)


def test_elo_stays_finite_when_somebody_wins_everything() -> None:
    estimates = elo(np.full((500, 3), 2.0), schedule(3, 2), 2, anchor=0)
    values = [estimate.value for estimate in estimates]
    assert 500 < values[0] - values[1] < 2000 and 500 < values[1] - values[2] < 2000
    assert estimates[2].low < values[2] - 100 and estimates[2].high > values[2] + 100


def test_many_deals_are_drawn_in_blocks_with_about_the_same_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = np.random.default_rng(4).binomial(2, 0.6, (3001, 1)).astype(np.float64)
    in_blocks = elo(shares, [Table(0, 1)], 2, anchor=1)[0]
    monkeypatch.setattr(ratings, "BOOTSTRAP_BLOCKS", 10_000)
    one_by_one = elo(shares, [Table(0, 1)], 2, anchor=1)[0]
    assert in_blocks.value == one_by_one.value
    assert in_blocks.high - in_blocks.low == pytest.approx(one_by_one.high - one_by_one.low, rel=0.15)


# --- openskill


def test_openskill_rates_who_wins_above_who_loses() -> None:
    seats = np.tile([[0, 1, 1], [1, 1, 2], [2, 0, 2]], (50, 1))
    ranks = (np.argsort(np.argsort(-seats, kind="stable"), kind="stable") + 1).astype(np.float64)
    first, second, third = openskill(seats, ranks, 3)
    assert first.mu < second.mu < third.mu and max(first.sigma, second.sigma, third.sigma) < 8


def test_openskill_leaves_equals_equal() -> None:
    a, b = openskill(np.array([[0, 1], [1, 0]]), np.full((2, 2), 1.5), 2)
    assert a.mu == pytest.approx(b.mu)


def test_openskill_sees_no_more_games_than_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    seats, ranks = np.tile([0, 1], (1000, 1)), np.tile([1.0, 2.0], (1000, 1))
    few = openskill(seats[:10], ranks[:10], 2)
    assert openskill(seats, ranks, 2) != few
    monkeypatch.setattr(ratings, "RATED_GAMES", 10)
    assert openskill(seats, ranks, 2) == few


# --- maximal lotteries


def test_who_beats_everybody_gets_the_whole_lottery() -> None:
    margins = np.array([[0, 0.1, 0.2], [-0.1, 0, 0.3], [-0.2, -0.3, 0]])
    assert ratings.maximal_lottery(margins).tolist() == [1, 0, 0]


def test_a_cycle_shares_the_lottery_by_its_margins_and_who_loses_to_it_gets_nothing() -> None:
    """Rock, paper, scissors with stakes: the part of each is the margin between the other two."""
    margins = np.zeros((4, 4))
    for row, column, margin in ((0, 1, 0.1), (1, 2, 0.2), (2, 0, 0.3), (0, 3, 0.4), (1, 3, 0.4), (2, 3, 0.4)):
        margins[row, column], margins[column, row] = margin, -margin
    assert ratings.maximal_lottery(margins) == pytest.approx([0.2 / 0.6, 0.3 / 0.6, 0.1 / 0.6, 0])


def test_no_agent_beats_the_lottery_of_random_tournaments() -> None:
    linprog = pytest.importorskip("scipy.optimize").linprog
    rng = np.random.default_rng(0)
    for number in range(80):
        agents, ties = int(rng.integers(1, 13)), number % 2
        drawn = rng.integers(-1, 2, (agents, agents)) if ties else rng.normal(size=(agents, agents))
        margins = drawn.astype(np.float64)
        margins = np.triu(margins, 1) - np.triu(margins, 1).T
        found = ratings.maximal_lottery(margins)
        assert found.sum() == pytest.approx(1) and found.min() >= 0 and (margins @ found).max() < 1e-9
        if not ties:  # there the optimum of the linear programme is the only one
            best = linprog(
                found * 0, A_ub=margins, b_ub=np.zeros(agents), A_eq=np.ones((1, agents)), b_eq=[1], method="highs"
            )
            np.testing.assert_allclose(found, best.x, atol=1e-6)


def test_equals_have_equal_parts_and_many_agents_take_no_time() -> None:
    assert ratings.maximal_lottery(np.zeros((2, 2))).tolist() == [0.5, 0.5]
    margins = np.random.default_rng(0).normal(size=(40, 40))
    found = ratings.maximal_lottery(margins - margins.T)
    assert (found > 0).sum() > 9 and ((margins - margins.T) @ found).max() < 1e-9


def test_intervals_of_lotteries_tell_what_few_deals_leave_open() -> None:
    rng = np.random.default_rng(0)
    results = np.full((30, 2, 2), 0.5)
    results[:, 0, 1] = rng.random(30) + 0.02
    results[:, 1, 0] = 1 - results[:, 0, 1]
    first, second = ratings.lottery(results)
    assert {first.value, second.value} == {0, 1} and (first.low, first.high) == (0, 1)
    results[:, 0, 1], results[:, 1, 0] = 0.9, 0.1
    assert ratings.lottery(results)[0] == ratings.Estimate(1, 1, 1)
