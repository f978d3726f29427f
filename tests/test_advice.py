"""Advice for networks: greedy's choice and everybody's outlook, from what all can see."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import DIAMOND, EMERALD, GOLD, RUBY, SAPPHIRE, F, Table
from montecristo_agents import advice
from montecristo_agents.greedy import LANE_WORTH, WAITING, greedy_choice
from montecristo_agents.guided import GuidedAgent
from montecristo_agents.judgement import chances
from montecristo_agents.policy import InvalidModel, Network, PolicyAgent
from montecristo_env import GameBatch, InvalidArgument, Lane, PublicView, actions, make_agent, observation
from montecristo_env.core._jit import Library
from montecristo_env.core.actions import FIRST
from montecristo_env.core.chance import lowest_bit
from montecristo_env.core.constants import Decision
from montecristo_env.core.layout import STATE, States
from montecristo_env.core.legal import NOTHING

CHOICE = slice(observation.SIZE, observation.SIZE + actions.COUNT)
OUTLOOKS = slice(CHOICE.stop, CHOICE.stop + 8)
LIKINGS = slice(OUTLOOKS.stop, OUTLOOKS.stop + actions.COUNT)
HOPES = slice(LIKINGS.stop + 4 * actions.COUNT, advice.SIZE)
CHEST = Decision.PUT_TOKEN, Decision.TAKE, Decision.PAY
test_library = Library("the advice's tests", __file__, *advice.SOURCES)


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


def test_the_judge_is_asked_about_every_choice_at_every_look() -> None:
    games = middle_games(20_000)
    seen, legal = advice.observe_with_advice(games), games.action_mask() == 1
    going_on = ~games.over
    for look, hopes in enumerate(seen[:, HOPES].T):
        liked = advice.judged(seen, look)
        assert (liked[~legal] == 0).all() and (liked >= 0).all()
        assert (liked[going_on].max(axis=1) == advice.BEST_LIKED).all()
        assert (hopes >= 0).all() and (hopes <= 100).all() and np.ptp(hopes[going_on]) > 50
        for decision in set(Decision) - {Decision.OVER}:
            here = games.states["decision"] == decision
            assert len(np.unique(liked[here][legal[here]])) > 3, decision


def test_he_says_what_it_leads_to_if_greedy_finishes_the_chest_and_the_scoring_round() -> None:
    """As the games' own rules have it, where the marble that was used is not moved before he is asked."""
    games = middle_games(3000)
    games = games[np.isin(games.states["decision"], CHEST)]
    seen = advice.observe_with_advice(games)
    rows, codes = np.nonzero(games.action_mask())
    seats = games.current_player[rows]
    active = games.states["active_player"][rows]
    tried = games.resample_hidden(np.random.default_rng(0))[rows]
    tried.step(codes)
    view, greedy = PublicView(tried), make_agent("greedy")
    while (going_on := np.flatnonzero(np.isin(tried.states["decision"], CHEST) & ~tried.over)).size:
        tried.step(greedy.act(view, going_on), going_on)
    shares = chances(view, np.arange(len(tried)))[np.arange(len(tried)), seats]
    waits = (tried.states["decision"] == Decision.RETURN_MARBLE) & (tried.current_player == active)
    compared = 0
    for game in range(len(games)):
        of_game = rows == game
        if (waits | tried.over)[of_game].all():  # else a forced move has been made
            for look in (0, 1):  # after a chest there is no second scoring round
                found = advice.judged(seen, look)[game, codes[of_game]]
                np.testing.assert_array_equal(found, liked(shares[of_game]))
            assert seen[game, HOPES][0] == int(100 * shares[of_game].max() + 1e-6)
            compared += 1
    assert compared > 200


def liked(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much the judge likes choices that leave these shares of the win."""
    return np.floor(advice.BEST_LIKED * advice.WORTH / (advice.WORTH + (shares.max() - shares)) + 1e-6)


@test_library.entry_point
def play_on_without_chance(states: States, codes: np.ndarray, last_rounds: np.ndarray) -> None:
    """A choice in every game, and then greedy's until this round begins or the game is over."""
    for k in range(len(states)):
        s = states[k]
        advice.play_without_chance(s, codes[k] - FIRST[s.decision])
        while s.legal != NOTHING and s.round_number < last_rounds[k]:
            forced = s.legal & (s.legal - np.uint64(1)) == NOTHING
            advice.play_without_chance(s, lowest_bit(s.legal) if forced else greedy_choice(s, None))


def _compile() -> None:
    numbers = np.zeros(0, np.int64)
    play_on_without_chance(np.zeros(0, STATE), numbers, numbers)


def test_he_says_what_the_next_rounds_lead_to_if_nothing_is_drawn() -> None:
    test_library.compile_once(_compile)
    games = middle_games(300, decisions=50)
    games = games[~games.over]
    seen = advice.observe_with_advice(games)
    rows, codes = (np.ascontiguousarray(part) for part in np.nonzero(games.action_mask()))
    numbers = np.arange(rows.size)
    for more in (0, 1):
        judged = advice.judged(seen, 2 + more)
        tried = games[rows]
        before = tried.copy().states
        last_rounds = before["round_number"].astype(np.int64) + 1 + more
        play_on_without_chance(tried.states, codes, last_rounds)
        after = tried.states
        assert ((after["round_number"] == last_rounds) | tried.over).all()
        assert all(failed == ["decision"] for failed in tried.violations().values())  # forced ones are asked, too
        np.testing.assert_array_equal(after["bag"], before["bag"])
        shown = before["hands"].sum(axis=(1, 2)) + before["offer_size"]  # a choice of Supply deals what was drawn
        assert (after["hands"].sum(axis=(1, 2)) <= shown).all()
        shares = chances(PublicView(tried), numbers)[numbers, games.current_player[rows]]
        for game in range(len(games)):
            of_game = rows == game
            np.testing.assert_array_equal(judged[game, codes[of_game]], liked(shares[of_game]))
            assert seen[game, HOPES][2 + more] == int(100 * shares[of_game].max() + 1e-6)


@pytest.mark.parametrize(("tokens", "ends"), [(2, False), (3, True)])
def test_a_chest_without_tokens_brings_a_scoring_round_if_a_dungeon_lacks_one(tokens: int, ends: bool) -> None:
    """Red returns the marble of Adventurers; he has 31 points and can take 9 more if there is a scoring round."""
    table = Table(2)
    table.lanes([1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0])
    table.market(RUBY, GOLD, SAPPHIRE, EMERALD, DIAMOND)
    table.put(F, *[(RUBY, 3), (DIAMOND, 1), (EMERALD, 1)][:tokens])
    table.enter(F, 0)
    table.give(0, (RUBY, 3))
    table.adventurers(0, 0)
    table.adventurers(1, 0)
    table.row["score"][0] = 31
    table.begin(Lane.ADVENTURERS)
    assert table.row["decision"] == Decision.RETURN_MARBLE
    hopes = advice.observe_with_advice(table.games)[0, HOPES]
    assert hopes[1] == 100  # if a scoring round came in any case
    assert (hopes[2] == 100) == ends


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
