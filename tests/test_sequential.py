"""Matches that stop early: error rates of simulated ones, intervals that hold at every look, and runs that end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from montecristo_agents import arena
from montecristo_agents.arena import Run
from montecristo_agents.matches import Match, deal_seeds
from montecristo_agents.random import RandomAgent
from montecristo_agents.report import deal_results
from montecristo_agents.sequential import (
    Claim,
    SequentialTest,
    confidence_sequence,
    elo_of_result,
    expected_result,
)
from montecristo_env import InvalidArgument, PublicView

MATCHES = 2000
RESULTS = np.array([0, 0.25, 0.5, 0.75, 1])  # of a pair of games, one of which may be shared
ERROR = 3 * np.sqrt(0.05 * 0.95 / MATCHES)  # three standard errors of a rate of 5 %


class First:
    """Plays the first legal action."""

    name = "first"

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return games.action_mask(rows=rows).argmax(axis=1)


def simulated(elo: float, deals: int, rng: np.random.Generator, matches: int = MATCHES) -> NDArray[np.float64]:
    """Results of deals with the mean of this difference: a typical distribution, tilted."""
    wanted = float(expected_result(np.array([elo]), 2)[0])
    low, high = -9.0, 9.0
    for _ in range(60):
        tilt = (low + high) / 2
        likely = np.array([0.2, 0.04, 0.52, 0.04, 0.2]) * np.exp(tilt * RESULTS)
        likely /= likely.sum()
        low, high = (tilt, high) if likely @ RESULTS < wanted else (low, tilt)
    return RESULTS[rng.choice(len(RESULTS), p=likely, size=(matches, deals)).astype(np.int8)]


def decisions(test: SequentialTest, results: NDArray[np.float64]) -> tuple[float, float, float]:
    """How often the claim was accepted and rejected, and after how many deals on average."""
    verdicts = [test.verdict(match) for match in results]
    accepted, rejected = (np.mean([v.decision == name for v in verdicts]) for name in ("accepted", "rejected"))
    return float(accepted), float(rejected), float(np.mean([v.deals for v in verdicts]))


@pytest.mark.parametrize("elo", [30.0, 100.0])
def test_error_rates_are_within_their_bounds_and_deals_are_saved(elo: float) -> None:
    rng = np.random.default_rng(int(elo))
    test = SequentialTest(Claim("a", "b", elo), 2, 0.05)
    deals = int(2_000_000 / elo**2)
    equals, claimed = simulated(0, deals, rng), simulated(elo, deals, rng)
    wrongly_accepted, rejected, used = decisions(test, equals)
    accepted, wrongly_rejected, used_too = decisions(test, claimed)
    assert wrongly_accepted < 0.05 + ERROR and wrongly_rejected < 0.05 + ERROR
    assert rejected > 0.94 and accepted > 0.94
    distance = float(expected_result(np.array([elo]), 2)[0]) - 0.5
    fixed = (2 * 1.645 / distance) ** 2 * claimed.var()  # deals that a test of fixed size with these errors takes
    assert max(used, used_too) < 0.75 * fixed


def test_looking_at_a_fixed_test_again_and_again_is_wrong_far_too_often() -> None:
    """What the sequential test is for: the usual interval, looked at after each deal, leaves out equals in the end."""
    results = simulated(0, 1000, np.random.default_rng(1), 500)
    number = np.arange(1, 1001)
    means = np.cumsum(results, axis=1) / number
    reach = 1.96 * np.sqrt(np.maximum(np.cumsum(results**2, axis=1) / number - means**2, 1e-9) / number)
    assert ((np.abs(means - 0.5) > reach)[:, 29:].any(axis=1)).mean() > 0.2
    assert np.mean([SequentialTest(Claim("a", "b", 30.0), 2).verdict(r).decision == "accepted" for r in results]) < 0.09


@pytest.mark.parametrize("mean", [0.5, 0.05, 0.9])
def test_confidence_sequences_hold_at_every_look(mean: float) -> None:
    rng = np.random.default_rng(0)
    values = (rng.random((MATCHES, 1000)) < mean).astype(float)
    low, high = confidence_sequence(values, 0.05)
    missed = ((low > mean) | (high < mean)).any(axis=1).mean()
    assert missed < 0.05 and (np.diff(low, axis=1) >= 0).all() and (np.diff(high, axis=1) <= 0).all()
    assert (high - low)[:, -1].mean() < 0.16


def test_a_confidence_sequence_is_narrow_where_the_spread_is_small() -> None:
    rng = np.random.default_rng(0)
    low, high = confidence_sequence(np.clip(rng.normal(0.5, 0.05, 2000), 0, 1))
    assert low[-1] < 0.5 < high[-1] and high[-1] - low[-1] < 0.03
    with pytest.raises(InvalidArgument, match="values from 0 to 1"):
        confidence_sequence(np.array([0.5, 1.1]))


@pytest.mark.parametrize("players", [2, 3, 4])
def test_elo_and_results_of_deals_are_those_of_the_ratings(players: int) -> None:
    elo = np.array([-300.0, -10.0, 0.0, 10.0, 300.0])
    means = expected_result(elo, players)
    odds = 10 ** (elo / 400)
    alone, others = odds / (odds + players - 1), (1 / odds) / (1 / odds + players - 1)
    np.testing.assert_allclose(means, (1 + alone - others) / 2)
    np.testing.assert_allclose(elo_of_result(means, players), elo, atol=0.1)
    assert means[2] == 0.5


@pytest.mark.parametrize("players", [2, 3])
def test_the_result_of_a_deal_counts_both_tables_alike(players: int) -> None:
    match = Match([RandomAgent(), First()], players, deal_seeds(0, 5))
    results = match.play(0, match.rounds)[0]
    ours, theirs = (deal_results(match, results, pair) for pair in ((0, 1), (1, 0)))
    np.testing.assert_allclose(ours + theirs, 1)
    assert ours.min() >= 0 and ours.max() <= 1
    if players == 2:
        shares = results.winners / results.winners.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(ours, shares.diagonal(axis1=1, axis2=2).mean(axis=1))


# --- runs

CLAIM = "random beats first by 50 Elo"


def test_a_run_ends_with_the_deal_that_decides_however_it_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = []
    for size in (1, 7, 64):
        monkeypatch.setattr(arena, "_next_size", lambda *_, size=size: size)
        run = Run(["random", First()], deals=500, folder=tmp_path / str(size), until=CLAIM)
        run.play(progress=True)
        assert run.deals < 500 and run.is_done
        again = Run(["random", First()], deals=500, folder=tmp_path / str(size), until=CLAIM)
        rounds = again.rounds
        again.play(progress=False)
        assert again.rounds == rounds
        plain = again.report().to_dict()
        for line in plain["agents"]:
            del line["seconds_per_decision"]
        reports.append(plain)
    assert reports[0] == reports[1] == reports[2]
    test = reports[0]["test"]
    assert test["decision"] == "accepted" and test["deals"] == reports[0]["deals"] >= 16
    assert test["elo"][0] < 0 < test["elo"][1] and abs(test["ratio"]) >= test["accepted_above"]


def test_equals_are_found_to_be_no_better_and_the_end_of_the_deals_decides_nothing() -> None:
    run = Run([First(), First()], 3, deals=200, until="first beats first (2) by 200 Elo")
    run.play(progress=False)
    verdict = run.verdict()
    assert verdict is not None and verdict.decision == "rejected" and "rejected after" in str(run.report())
    run = Run([First(), First()], deals=20, until="first beats first (2) by 5 Elo")
    run.play(progress=False)
    verdict = run.verdict()
    assert verdict is not None and verdict.decision == "open" and verdict.deals == 20
    assert "undecided after 20 deals" in str(run.report())


def test_a_fixed_match_that_is_stopped_early_is_warned_of() -> None:
    run = Run(["random", First()], deals=50)
    run.results.append(run.match.play(0, 10)[0])
    assert "Stopped after 10 of 50 deals" in str(run.report())
    run.results.append(run.match.play(10, 50)[0])
    assert "Stopped" not in str(run.report())


@pytest.mark.parametrize(
    ("until", "message"),
    [
        ("random is best", 'a claim reads "A beats B by 10 Elo", not'),
        ("random beats first by 0 Elo", "more than 0 and up to 2000 Elo"),
        ("random beats nobody by 10 Elo", "about 'nobody', but these play: random, first"),
        ("random beats random by 10 Elo", "do not meet"),
    ],
)
def test_claims_that_make_no_sense_are_refused(until: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Run(["random", First()], deals=20, until=until)


def test_the_error_rate_must_be_one() -> None:
    with pytest.raises(InvalidArgument, match=r"alpha must be a number above 0 and below 0.5, but is 0.7"):
        Run(["random", First()], deals=20, until=CLAIM, alpha=0.7)


def test_the_command_line_stops_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["arena", "random", "greedy", "--until", "greedy beats random by 20 Elo", "--folder", str(tmp_path / "r")]
    monkeypatch.setattr("sys.argv", command)
    arena.main()
    shown = " ".join(capsys.readouterr().out.split())
    assert "greedy beats random by 20 Elo: accepted after" in shown
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    assert report["settings"]["until"] == {"claim": "greedy beats random by 20 Elo", "alpha": 0.05}
    assert report["deals"] == report["test"]["deals"] < 500
