"""The heuristic value: what it looks at, that it is blind to what is hidden, and that its fit finds weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from helpers import DIAMOND, EMERALD, GOLD, RUBY, SAPPHIRE, A, B, Table
from montecristo_agents.heuristic_value import FEATURES, features_of, win_probabilities
from montecristo_env import GameBatch, Lane, PublicView
from montecristo_train import heuristic_value
from montecristo_train.heuristic_value import Positions, fit, play_games


def middle_games(num_games: int = 30, decisions: int = 60) -> GameBatch:
    games = GameBatch(num_games, np.resize([2, 3, 4], num_games), seed=3)
    games.play_random(decisions)
    assert not games.over.any()
    return games


def probabilities_in(games: GameBatch) -> np.ndarray:
    return win_probabilities(PublicView(games), np.arange(len(games)))


def test_win_probabilities_are_shares_of_those_who_play() -> None:
    games = middle_games()
    found = probabilities_in(games)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    seated = np.arange(4) < games.num_players[:, None]
    assert (found[seated] > 0).all() and not found[~seated].any()


def test_a_game_that_is_over_has_its_result_as_value() -> None:
    games = GameBatch(60, np.resize([2, 3, 4], 60), seed=0)
    games.play_random(10_000)
    assert games.over.all()
    np.testing.assert_allclose(probabilities_in(games), games.winners / games.winners.sum(axis=1, keepdims=True))


def test_games_that_differ_only_in_what_is_hidden_have_the_same_value() -> None:
    games = middle_games()
    others = games.resample_hidden(np.random.default_rng(0))
    assert (games.states["slot_card"] != others.states["slot_card"]).any()
    np.testing.assert_array_equal(probabilities_in(games), probabilities_in(others))


def test_features_say_what_a_player_has() -> None:
    table = Table(2)
    table.lanes([1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0])
    table.market(RUBY, GOLD, SAPPHIRE, EMERALD, DIAMOND)  # worth 3, 2, 2, 1, 1
    table.enter(A, 0, 0, 1)
    table.enter(B, 0)
    table.give(0, (RUBY, 3), (DIAMOND, 1))
    table.put(B, (RUBY, 2), (DIAMOND, 1))  # red has one adventurer there: they take the ruby
    table.row["score"][:2] = 10, 20
    table.begin(Lane.REARRANGE)
    features, late = features_of(PublicView(table.games), np.arange(1))
    red = dict(zip(FEATURES, features[0, 0], strict=True))
    assert late[0] == 0.5
    assert red["points"] == 10
    assert (red["points in a scoring round now"], red["the same if a chest may bring it"]) == (6, 0)
    assert (red["adventurers in dungeons"], red["dungeons with adventurers"]) == (3, 2)
    assert sum(red[name] for name in FEATURES if name.startswith("adventurers in")) == 9
    assert (red["cards"], red["wild bags"], red["bags"], red["bags times market value"]) == (2, 0, 4, 10)
    marbles = {name for name in FEATURES if name.startswith("marble") and red[name]}
    assert marbles == {
        "marble 1 in lane supply",
        "marble 0 in lane adventurers",
        "marble 2 in lane adventurers",
        "marble 0 in lane chest",
        "marble 1 in lane rearrange",
        "marble 2 in lane rearrange",
    }
    assert features[0, 1, 0] == 20 and not features[0, 2:].any()


def test_points_help() -> None:
    games = middle_games()
    before = probabilities_in(games)
    games.states["score"][:, 0] += 10
    assert (probabilities_in(games)[:, 0] > before[:, 0]).all()


def test_the_fit_finds_the_weights_that_made_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heuristic_value, "L2", 0.0)
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.normal(size=(30_000, 3, len(FEATURES))))
    late = torch.from_numpy(rng.random((30_000, 1, 1)))
    true = torch.from_numpy(rng.normal(size=(2, len(FEATURES))) / 5)
    logits = (features * (true[0] + late * true[1])).sum(dim=2).numpy()
    winners = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    positions = Positions(features, late, torch.eye(3, dtype=torch.float64)[winners], np.arange(30_000))
    weights, log_loss, equal = fit(positions)
    assert np.corrcoef(weights.ravel(), true.numpy().ravel())[0, 1] > 0.95
    assert log_loss < equal - 0.1 and equal == pytest.approx(np.log(3))


def test_the_beginnings_of_rounds_of_whole_games_are_described() -> None:
    positions = play_games("random", 3, games=20, seed=0)
    assert positions.features.shape[1:] == (3, len(FEATURES))
    assert set(positions.games) == set(range(20))
    np.testing.assert_allclose(positions.shares.sum(dim=1), 1)
    whole = GameBatch(20, 3, seed=0)  # the first decision of each game is one of them
    first, _ = features_of(PublicView(whole), np.arange(20))
    np.testing.assert_array_equal(positions.features[:20], first[:, :3])


def test_the_command_writes_weights_that_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "weights.json"
    heuristic_value.main(["--agent", "random", "--games", "30", "--out", str(out)])
    kept = json.loads(out.read_text())
    assert set(kept) == {"2", "3", "4"} and all(list(weights) == list(FEATURES) for weights in kept.values())
    assert capsys.readouterr().out.count("log_loss at games left out") == 3
