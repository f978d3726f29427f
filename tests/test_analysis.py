"""Luck and skill of a game: what is measured, its mean, and how records and replays tell it."""

from __future__ import annotations

import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from montecristo_agents.policy import PolicyAgent
from montecristo_env import DamagedRecord, GameBatch, GameRecord, PublicView, Ruleset
from montecristo_env.agent import Evaluation, WinEstimator
from montecristo_env.analysis import analyse, balances, estimate
from montecristo_env.replay import main
from montecristo_env.web.replay_page import ReplayPage
from test_luck import network


class Treasurer:
    """Prefers the last legal action; thinks that adventurers and points help, and gold in the offer the first seat."""

    name = "treasurer"

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        mask = games.action_mask(rows=rows)
        return mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)

    def evaluate(self, games: PublicView, rows: NDArray[np.int64]) -> Evaluation:
        likely = np.zeros((rows.size, games.action_mask(rows=rows).shape[1]))
        likely[np.arange(rows.size), self.act(games, rows)] = 1
        return Evaluation(likely, np.zeros(rows.size))

    def win_probabilities(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        weights = 10.0 + games["score"][rows] + games["supply"][rows]
        weights[:, 0] += games["offer"][rows][:, :3].sum(axis=1)
        weights *= np.arange(4) < games.num_players[rows, None]
        return weights / weights.sum(axis=1, keepdims=True)


def some_decisions(size: int, players: int, seed: int = 0) -> tuple[GameBatch, NDArray[np.int64], GameBatch]:
    """Positions of random games, a random action in each, and what came."""
    before = GameBatch(size, players, seed=seed)
    for begin in range(0, size, 8):  # of every length up to the end of the shortest games
        before.play_random(5 + begin // 8 % 90, np.arange(begin, min(begin + 8, size)))
    before = before[~before.over]
    codes, after = before.copy().sample_actions(), before.copy()
    after.step(codes)
    return before, codes, after


def played(players: int = 2) -> GameRecord:
    games = GameBatch(1, players, seed=players, ruleset=Ruleset(target=12))
    record = GameRecord.record(games)
    games.play_random(10_000)
    return record


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_loss_is_what_the_agents_own_action_is_worth_more(players: int) -> None:
    before, codes, after = some_decisions(240, players)
    agent, all_rows = Treasurer(), np.arange(len(before))
    assert isinstance(agent, WinEstimator)
    preferred = agent.act(PublicView(before), all_rows)
    found = analyse(agent, before, codes, preferred, after.states)
    own = before.current_player[:, None].astype(np.int64)

    def value_of(actions: NDArray[np.int64]) -> NDArray[np.float64]:
        tried = before.copy()
        tried.step(actions)
        return np.take_along_axis(estimate(agent, tried.states, before), own, axis=1)[:, 0]

    sure = ~before.draws(codes) & ~before.draws(preferred)
    expected = np.maximum(value_of(preferred) - value_of(codes), 0)
    np.testing.assert_allclose(found.losses[sure], expected[sure], atol=1e-12)
    assert (found.losses >= 0).all() and (found.losses[codes == preferred] == 0).all()
    assert (found.losses[sure] > 0).any() and (codes != preferred).any()


@pytest.mark.parametrize("players", [2, 3, 4])
def test_luck_is_of_draws_alone_and_its_mean_is_zero(players: int) -> None:
    before, codes, after = some_decisions(4000, players, seed=1)
    found = analyse(Treasurer(), before, codes, codes, after.states, redraws=4)
    draws = before.draws(codes)
    assert (found.luck[~draws] == 0).all() and np.abs(found.luck[draws]).max() > 0.01
    np.testing.assert_allclose(found.luck.sum(axis=1), 0, atol=1e-12)
    first = found.luck[draws, 0]
    assert draws.sum() > 200 and abs(first.mean() / first.std() * np.sqrt(first.size)) < 3


def test_the_same_decisions_have_the_same_luck() -> None:
    before, codes, after = some_decisions(200, 3)
    ours, again = (analyse(Treasurer(), before, codes, codes, after.states, seed=4) for _ in range(2))
    np.testing.assert_array_equal(ours.luck, again.luck)


def test_a_network_estimates_who_wins_by_seat() -> None:
    before, *_ = some_decisions(300, 3)
    agent = PolicyAgent(network())
    rows = np.arange(len(before))
    assert isinstance(agent, WinEstimator)
    shares = agent.win_probabilities(PublicView(before), rows)
    wins = network().forward(before.observe())[2]
    np.testing.assert_allclose(shares[rows, before.current_player], wins[:, 0], atol=1e-6)
    np.testing.assert_allclose(shares[rows, (before.current_player + 1) % 3], wins[:, 1], atol=1e-6)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    assert (shares[:, 3] == 0).all()


@pytest.mark.parametrize("players", [2, 3])
def test_records_tell_loss_and_luck_of_every_decision(players: int) -> None:
    record = played(players)
    record.annotate(Treasurer())
    assert GameRecord.from_json(record.to_json()) == record
    decided = [event for event in record.events if "probabilities" in event]
    assert decided and all(event["loss"] >= 0 and len(event["luck"]) == players for event in decided)
    assert any(event["loss"] for event in decided) and any(any(event["luck"]) for event in decided)
    found = record.balances()
    assert found is not None
    for seat, balance in enumerate(found):
        assert balance.loss == pytest.approx(sum(event["loss"] for event in decided if event["player"] == seat))
        assert balance.luck == pytest.approx(sum(event["luck"][seat] for event in decided))
    assert sum(balance.luck for balance in found) == pytest.approx(0, abs=0.05)
    unit = players / (players - 1)
    positions = list(record.replay())
    for before, after in pairwise(positions):
        event = record.events[after.event]
        if event.get("forced"):
            assert "luck" not in event and "loss" not in event
        elif not any(event["luck"]) or event["loss"] == 0:
            continue
        else:
            assert event["loss"] <= unit and before.games.num_players[0] == players


def test_who_does_not_estimate_wins_leaves_no_loss_behind() -> None:
    record = played()
    assert record.balances() is None
    record.annotate(Treasurer())
    record.annotate("random")
    assert record.balances() is None and not any("loss" in event or "luck" in event for event in record.events)


@pytest.mark.parametrize(
    "annotation",
    [{"loss": -0.1}, {"loss": "much"}, {"loss": float("nan")}, {"luck": 0.1}, {"luck": [0.1]}, {"luck": [0.1, True]}],
)
def test_wrong_losses_and_lucks_are_refused_and_named(annotation: dict[str, Any]) -> None:
    record = copy.deepcopy(played())
    index = next(i for i, e in enumerate(record.events) if "move" in e and not e.get("forced"))
    record.events[index] |= annotation
    with pytest.raises(DamagedRecord, match=f"event {index}: (loss must be a|luck must be 2) finite number"):
        GameRecord.from_json(record.to_json())


def test_replays_and_the_command_line_sum_luck_and_play_by_player(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert balances([{"player": 1, "loss": 0.31, "luck": [-0.22, 0.22]}], 2) == [(0.0, -0.22), (0.31, 0.22)]
    record = played()
    page = ReplayPage()
    page.add(record)
    assert page.data()["games"][0]["balances"] == []
    record.save(tmp_path / "game.json")
    network().save(tmp_path / "net.safetensors")
    monkeypatch.setattr(
        "sys.argv", ["replay", str(tmp_path / "game.json"), "--annotate", f"policy:{tmp_path}/net.safetensors"]
    )
    main()
    told = capsys.readouterr().out
    record.annotate(PolicyAgent(network()))
    page = ReplayPage()
    page.add(record)
    (data,) = page.data()["games"]
    assert [f"{name} lost " in told for name in record.players] == [True, True] and "by luck" in told
    assert len(data["balances"]) == 2 and all(sentence in told for sentence in data["balances"])
    shown = [step["opinion"] for step in data["steps"] if "opinion" in step]
    assert {tuple(one) for one in shown} == {("choices", "moved", "value", "loss", "luck")}
