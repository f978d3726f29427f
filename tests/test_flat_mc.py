"""Flat Monte Carlo: with the same luck, blind to what is hidden, and right about what is certain."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import CODE, public_part
from montecristo_agents import flat_mc
from montecristo_agents.flat_mc import rollout_values
from montecristo_agents.heuristic_value import win_probabilities
from montecristo_env import GameBatch, InvalidArgument, PublicView, make_agent
from test_mcts import middle_games, on_the_brink, wins, with_the_same_keys


def shares(games: GameBatch, rollouts: int = 2, rounds: int = 1) -> np.ndarray:
    """What every action is worth in every game, which stays as it is."""
    return rollout_values(PublicView(games.copy()), np.arange(len(games)), rollouts, rounds)


def test_every_legal_action_has_a_share_and_no_other() -> None:
    games = middle_games(12)
    found = shares(games)
    legal = games.action_mask() != 0
    assert (found[legal] > 0).all() and (found[legal] <= 1).all() and not found[~legal].any()


def test_games_that_differ_only_in_what_is_hidden_get_the_same_shares() -> None:
    for decisions in (0, 30, 90):
        games = middle_games(20, decisions)
        others = games.resample_hidden(np.random.default_rng(decisions))
        with_the_same_keys(games, others)
        assert (games.states["slot_card"] != others.states["slot_card"]).any()
        np.testing.assert_array_equal(shares(games), shares(others))


def test_neither_threads_nor_other_games_change_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    games = middle_games(11)
    found = shares(games)
    monkeypatch.setattr(flat_mc, "ALL_CORES", 1)
    np.testing.assert_array_equal(shares(games), found)
    rows = np.array([2, 3, 7])
    np.testing.assert_array_equal(rollout_values(PublicView(games.copy()), rows, 2, 1), found[rows])


def test_games_stay_as_they_are_and_those_that_are_over_get_nothing() -> None:
    games = GameBatch(6, 2, seed=0)
    games.play_random(10_000)
    games.reset(np.arange(3), seed=1)
    before = public_part(games.states).copy()
    found = rollout_values(PublicView(games), np.arange(6), 1, 1)
    np.testing.assert_array_equal(public_part(games.states), before)
    assert found[:3].any(axis=1).all() and not found[3:].any()


def test_a_move_that_wins_at_once_brings_the_whole_win() -> None:
    found = shares(on_the_brink(), rollouts=3)
    np.testing.assert_allclose(found[:, CODE["take R3"]], 1)
    others = [CODE[text] for text in ("stop taking", "take D1", "take E1")]
    assert (found[:, others] < 1).all()


def test_greedy_plays_on_and_the_heuristic_value_counts() -> None:
    """Without chance in between, the same comes out move by move."""
    games = on_the_brink()[:1]
    found = shares(games, rollouts=1, rounds=1)[0]
    greedy = make_agent("greedy")
    for text in ("stop taking", "take D1"):
        played = games.copy()
        played.step([CODE[text]])
        start = int(played.states["round_number"][0])
        while not played.over[0] and played.states["round_number"][0] == start:
            played.step(greedy.act(PublicView(played), np.arange(1)))
        expected = win_probabilities(PublicView(played), np.arange(1))[0, 0]
        assert found[CODE[text]] == pytest.approx(expected, rel=1e-5), text


def test_the_agent_makes_the_choice_that_did_best() -> None:
    games = middle_games(12)
    agent = make_agent("flat-mc:2")
    assert agent.name == "flat-mc:2" and make_agent("flat-mc").name == "flat-mc:8"
    found = agent.act(PublicView(games.copy()), np.arange(12))
    np.testing.assert_array_equal(found, shares(games).argmax(axis=1))
    assert wins(agent, make_agent("greedy"), deals=30, seed=0) > 0.6


@pytest.mark.parametrize("settings", ["0", "many", "-1", "", "100001"])
def test_settings_that_make_no_sense_are_refused(settings: str) -> None:
    with pytest.raises(InvalidArgument, match="the number of rollouts must be a whole number from 1 to 100000"):
        make_agent(f"flat-mc:{settings}")


def test_the_luck_of_all_choices_is_the_same() -> None:
    """Single rollouts of two choices vary together: their difference varies less than it would by chance."""
    games = middle_games(1, decisions=40, seed=2)[np.zeros(300, np.int64)]
    games.states["play_key"] = np.arange(300)
    found = shares(games, rollouts=1)
    first, second = np.flatnonzero(games.action_mask()[0])[:2]
    assert np.corrcoef(found[:, first], found[:, second])[0, 1] > 0.3
