"""Advice for networks: greedy's choice and everybody's outlook, from what all can see."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from montecristo_agents import advice
from montecristo_agents.greedy import LANE_WORTH, WAITING
from montecristo_agents.guided import GuidedAgent
from montecristo_agents.judgement import chances
from montecristo_agents.policy import InvalidModel, Network, PolicyAgent
from montecristo_env import GameBatch, InvalidArgument, PublicView, actions, make_agent, observation
from montecristo_env.core.constants import Decision

CHOICE = slice(observation.SIZE, observation.SIZE + actions.COUNT)
OUTLOOKS = slice(CHOICE.stop, CHOICE.stop + 8)
LIKINGS = slice(OUTLOOKS.stop, OUTLOOKS.stop + actions.COUNT)
JUDGED = slice(LIKINGS.stop, advice.SIZE)
CHEST = Decision.PUT_TOKEN, Decision.TAKE, Decision.PAY


def obedient() -> Network:
    """A network that does what greedy would do."""
    first = np.zeros((actions.COUNT, advice.SIZE), np.float32)
    first[:, CHOICE] = np.eye(actions.COUNT)
    tensors = {
        "trunk.0.weight": first,
        "trunk.0.bias": np.zeros(actions.COUNT, np.float32),
        "policy.weight": 20 * np.eye(actions.COUNT, dtype=np.float32),
        "policy.bias": np.zeros(actions.COUNT, np.float32),
        "value.weight": np.zeros((1, actions.COUNT), np.float32),
        "value.bias": np.zeros(1, np.float32),
    }
    return Network((actions.COUNT,), tensors, advised=True)


def middle_games(num_games: int = 90, decisions: int = 60) -> GameBatch:
    games = GameBatch(num_games, np.resize([2, 3, 4], num_games), seed=1)
    games.play_random(decisions)
    return games


def test_it_is_greedys_choice_behind_the_observation() -> None:
    games = middle_games()
    masks = np.zeros((len(games), actions.COUNT), np.int8)
    seen = advice.observe_with_advice(PublicView(games), masks=masks)
    assert (seen[:, : observation.SIZE] == games.observe()).all()
    assert (masks == games.action_mask()).all()
    assert (seen[:, CHOICE].sum(axis=1) == 1).all()
    choices = make_agent("greedy").act(PublicView(games), np.arange(len(games)))
    assert (seen[:, CHOICE].argmax(axis=1) == choices).all()


def test_the_choice_is_liked_best_and_others_that_were_judged_less() -> None:
    games = middle_games(20_000)
    seen = advice.observe_with_advice(games)
    likings, legal = seen[:, LIKINGS], games.action_mask() == 1
    assert likings.shape[1] == actions.COUNT
    assert (likings[~legal] == 0).all()
    of_choice = likings[seen[:, CHOICE] == 1]
    paying = games.states["decision"] == Decision.PAY
    assert (of_choice[~paying] == advice.BEST_LIKED).all()
    assert (likings[paying] == 0).all()
    assert ((likings >= 0) & (likings <= advice.BEST_LIKED)).all()
    for decision in set(Decision) - {Decision.PAY, Decision.OVER, Decision.DISCARD}:
        here = games.states["decision"] == decision
        judged = likings[here][legal[here]]
        assert len(np.unique(judged)) > 3, decision  # told apart; discards are rare


def test_a_lane_that_is_worth_a_point_less_is_liked_half_as_much() -> None:
    games = middle_games(900)
    rows = np.flatnonzero((games.states["decision"] == Decision.RETURN_MARBLE) & (games.num_players > 2))
    assert rows.size > 50
    block = list(actions.BLOCKS["return_marble"])
    likings = advice.observe_with_advice(games, rows)[:, LIKINGS][:, block]
    for legal, s, liked in zip(games.action_mask(rows=rows)[:, block], games.states[rows], likings, strict=True):
        waits = [4 * int(s["lane_size"][lane]) + (lane - int(s["cylinder"])) % 4 for lane in range(4)]
        worths = np.array(LANE_WORTH) - WAITING * np.array(waits)
        behind = worths[legal == 1].max() - worths
        np.testing.assert_array_equal(liked, np.where(legal, 100 * 100 // (100 + behind), 0))


def test_outlooks_are_those_of_the_players_on_and_after_turn_and_sum_to_nothing() -> None:
    games = middle_games(300)
    outlooks = advice.observe_with_advice(games)[:, OUTLOOKS].reshape(-1, 2, 4)
    for players in (2, 3, 4):
        of_these = outlooks[games.num_players == players]
        assert (of_these[:, :, players:] == 0).all()
        uncut = (np.abs(of_these[:, 0]) < advice.MOST_POINTS).all(axis=1)
        assert np.abs(of_these[uncut, 0].sum(axis=1)).max() <= players  # but for rounding
        assert np.ptp(of_these[:, 0, 0]) > 5


def test_the_judge_is_asked_about_chests_and_scoring_rounds_alone() -> None:
    games = middle_games(20_000)
    judged, legal = advice.observe_with_advice(games)[:, JUDGED], games.action_mask()[:, list(advice.JUDGED)] == 1
    assert ((judged > 0) <= legal).all()
    for decision in Decision:
        here = games.states["decision"] == decision
        if decision in CHEST:
            assert (judged[here].max(axis=1) == advice.BEST_LIKED).all(), decision
            assert len(np.unique(judged[here][legal[here]])) > 3, decision
        else:
            assert (judged[here] == 0).all(), decision


def test_he_says_what_it_leads_to_if_greedy_finishes_the_chest_and_the_scoring_round() -> None:
    """As the games' own rules have it, where the marble that was used is not moved before he is asked."""
    games = middle_games(3000)
    games = games[np.isin(games.states["decision"], CHEST)]
    judged = advice.observe_with_advice(games)[:, JUDGED]
    rows, codes = np.nonzero(games.action_mask()[:, list(advice.JUDGED)])
    seats = games.current_player[rows]
    active = games.states["active_player"][rows]
    tried = games.resample_hidden(np.random.default_rng(0))[rows]
    tried.step(codes + advice.JUDGED.start)
    view, greedy = PublicView(tried), make_agent("greedy")
    while (going_on := np.flatnonzero(np.isin(tried.states["decision"], CHEST) & ~tried.over)).size:
        tried.step(greedy.act(view, going_on), going_on)
    shares = chances(view, np.arange(len(tried)))[np.arange(len(tried)), seats]
    waits = (tried.states["decision"] == Decision.RETURN_MARBLE) & (tried.current_player == active)
    compared = 0
    for game in range(len(games)):
        of_game = rows == game
        if (waits | tried.over)[of_game].all():  # else a forced move has been made
            behind = shares[of_game].max() - shares[of_game]
            expected = np.floor(advice.BEST_LIKED * advice.WORTH / (advice.WORTH + behind) + 1e-9)
            np.testing.assert_array_equal(judged[game, codes[of_game]], expected)
            compared += 1
    assert compared > 200


def test_hidden_things_change_nothing() -> None:
    games = middle_games(3000)
    other = games.resample_hidden(np.random.default_rng(0))
    assert (advice.observe_with_advice(games) == advice.observe_with_advice(other)).all()


def test_a_finished_game_gets_none() -> None:
    games = GameBatch(3, 2, seed=0)
    games.play_random(10_000)
    assert (advice.observe_with_advice(games)[:, observation.SIZE :] == 0).all()


@pytest.mark.parametrize("lookahead", [0, 1])
def test_a_network_that_obeys_plays_as_greedy_does(tmp_path: Path, lookahead: int) -> None:
    obedient().save(tmp_path / "obedient.safetensors", np.float16)
    games, rows = middle_games(), np.arange(90)
    agent = PolicyAgent(tmp_path / "obedient.safetensors", lookahead=lookahead)
    assert agent.network.advised
    assert _same(agent.act(PublicView(games.copy()), rows), games)


def test_the_search_asks_an_advised_network_with_advice(tmp_path: Path) -> None:
    """It values all positions alike, so the move that it is nearly sure of is visited most."""
    obedient().save(tmp_path / "obedient.safetensors")
    games, rows = middle_games(), np.arange(90)
    agent = GuidedAgent(f"{tmp_path / 'obedient.safetensors'}:8")
    assert _same(agent.act(PublicView(games.copy()), rows), games)


def _same(choices: NDArray[np.int64], games: GameBatch) -> bool:
    return bool((choices == make_agent("greedy").act(PublicView(games), np.arange(len(games)))).all())


def test_a_network_for_advice_does_without_none() -> None:
    with pytest.raises(InvalidArgument, match=f"must be int8, \\(K, {advice.SIZE}\\)"):
        obedient().evaluate(GameBatch(1, 2, seed=0).observe())
    with pytest.raises(InvalidModel, match=r"trunk\.0\.weight must have the shape"):
        Network((actions.COUNT,), dict(obedient().tensors), advised=False)
