"""Luck: its mean is 0, it changes no game and depends on no company, and what is subtracted was fitted elsewhere."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from montecristo_agents import arena, ladder, luck
from montecristo_agents.arena import Run
from montecristo_agents.entity import EntityNetwork, Sizes, shapes
from montecristo_agents.luck import FEWEST_DEALS, FOLDS, SIGNALS, LuckMeter, cross_fit, fit_ahead, fit_coefficients
from montecristo_agents.matches import Match, Results, deal_seeds
from montecristo_agents.models import InvalidModel
from montecristo_agents.policy import PolicyAgent
from montecristo_agents.random import RandomAgent
from montecristo_agents.report import make_report
from montecristo_env import GameBatch, InvalidArgument, PublicView
from montecristo_env.core.layout import States

SIZES = Sizes(4, 6, 8)
WIN = SIGNALS.index("win")


class First:
    """Plays the first legal action."""

    name = "first"

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return games.action_mask(rows=rows).argmax(axis=1)


class Twin:
    """As strong as the random agent, with other chance."""

    name = "twin"

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        games.random_keys(rows)
        return games.sample_actions(rows)


def network(seed: int = 0) -> EntityNetwork:
    rng = np.random.default_rng(seed)
    weights = {
        name: rng.normal(0, shape[-1] ** -0.5, shape).astype(np.float32) for name, shape in shapes(SIZES).items()
    }
    return EntityNetwork(SIZES, weights)


# --- the luck of games


def test_luck_is_of_draws_alone_and_sums_to_zero_and_uses_no_stream_of_the_game() -> None:
    meter = LuckMeter(network(), redraws=3)
    games = GameBatch(60, np.resize([2, 3, 4], 60), seed=4)
    other = games.copy()
    drawn_at_all = 0
    for _ in range(80):
        rows = np.flatnonzero(~games.over)
        acts = games.sample_actions(rows=rows)
        assert other.sample_actions(rows=rows).tolist() == acts.tolist()
        draws = other.draws(acts, rows)
        drawn, lucks, losses = meter.step(games, acts, rows)
        other.step(acts, rows)
        assert losses.shape == rows.shape and losses.min(initial=0) >= 0
        assert games.states.tobytes() == other.states.tobytes()
        assert drawn.tolist() == rows[draws].tolist() and lucks.shape == (drawn.size, 4, len(SIGNALS))
        np.testing.assert_allclose(lucks.sum(axis=1), 0, atol=1e-6)
        assert (lucks[np.arange(4) >= games.num_players[drawn, None]] == 0).all()
        drawn_at_all += drawn.size
    assert 0.05 < drawn_at_all / (80 * 60) < 0.2


def test_luck_is_what_came_minus_the_mean_of_what_might_have_come() -> None:
    """Redraws by `resample_hidden` find the same mean."""
    games = GameBatch(200, 2, seed=1)
    games.play_random(40)
    rows, redraws = np.arange(200), 100
    acts = games.sample_actions()
    before, meter = games.copy(), LuckMeter(network(), redraws=redraws, plays_on=False)
    drawn, lucks, _ = meter.step(games, acts, rows)
    clone = before[drawn.repeat(redraws)].resample_hidden(np.random.default_rng(0))
    clone.step(acts[drawn].repeat(redraws))
    again = meter.value(clone.states).reshape(drawn.size, redraws, 4, len(SIGNALS))[:, :, 0, WIN]
    expected = meter.value(games.states[drawn])[:, 0, WIN] - again.mean(axis=1)
    z = (lucks[:, 0, WIN] - expected) / (again.std(axis=1) * np.sqrt(2 / redraws))
    assert drawn.size > 10 and np.abs(z).max() < 4 and np.abs(lucks).max() > 0.01


@pytest.mark.parametrize("players", [2, 3, 4])
def test_values_are_those_where_the_network_would_draw_next_if_it_played_on(players: int) -> None:
    games = GameBatch(60, players, seed=5)
    for row in range(60):
        games.play_random(6 * row, [row])
    meter, agent = LuckMeter(network(), redraws=3), PolicyAgent(network())
    found, before = meter._values(games, games.states, True), games.states.copy()
    ended = 0
    for row in range(60):
        game = games[[row]]
        for _ in range(luck.PLAYED_ON - 1):
            if game.over[0] or game.draws(act := agent.act(PublicView(game), np.arange(1)))[0]:
                break
            game.step(act)
        ended += int(game.over[0])
        np.testing.assert_array_equal(found[row], meter.value(game.states)[0])
        assert (found[row] != meter.value(games.states[[row]])[0]).any() or (game.states == games.states[[row]]).all()
    assert 0 < ended < 60 and (before == games.states).all()
    rows = np.flatnonzero(~games.over).repeat(50)
    many = games[rows].resample_hidden(np.random.default_rng(0))
    lucks = meter.step(many, games.sample_actions()[rows], np.arange(rows.size)).luck[:, 0, WIN]
    assert lucks.size > 100 and abs(lucks.mean() / lucks.std() * np.sqrt(lucks.size)) < 3


@pytest.mark.parametrize("players", [2, 3])
def test_a_decision_loses_what_the_networks_own_choice_is_worth_more(players: int) -> None:
    games = GameBatch(300, players, seed=2)
    games.play_random(30)
    rows, agent = np.arange(300), PolicyAgent(network())
    meter = LuckMeter(network(), redraws=3, plays_on=False)
    preferred = agent.act(PublicView(games), rows)
    assert (meter.step(games.copy(), preferred, rows).losses == 0).all(), "who plays like the network loses nothing"
    acts, before, seats = games.sample_actions(), games.copy(), games.current_player.copy()
    found = meter.step(games, acts, rows).losses
    sure = ~before.draws(acts) & ~before.draws(preferred)
    better = before.copy()
    better.step(preferred)
    came, might = (meter.value(states)[rows, seats, WIN] for states in (games.states, better.states))
    np.testing.assert_allclose(found[sure], np.maximum(might - came, 0)[sure], atol=1e-6)
    assert (found[sure] > 0.001).any() and (found[acts == preferred] == 0).all()


def test_finished_games_are_worth_what_they_brought() -> None:
    games = GameBatch(30, np.resize([2, 3, 4], 30), seed=2)
    games.play_random(100_000)
    values = LuckMeter(network()).value(games.states)
    np.testing.assert_allclose(values[..., WIN], games.winners / games.winners.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(values.sum(axis=1), 1)
    alone = games.winners.sum(axis=1) == 1
    assert (values[alone].argmax(axis=1) == games.winners[alone].argmax(axis=1)[:, None]).all()


def test_values_are_those_of_the_network_and_depend_on_no_company() -> None:
    games = GameBatch(700, np.resize([2, 3, 4], 700), seed=3)
    games.play_random(60)
    games = games[~games.over]
    values, logits = LuckMeter(network()).value.evaluate(games.states)
    expected_logits, utilities, wins = network().forward(games.observe())
    np.testing.assert_allclose(logits, expected_logits, atol=1e-4)
    for seat in range(4):
        present = seat < games.num_players
        ego = (seat - games.current_player) % games.num_players
        for signal, expected in enumerate((utilities, wins)):
            np.testing.assert_allclose(values[present, seat, signal], expected[present, ego[present]], atol=1e-5)
        assert (values[~present, seat] == 0).all()
    rng = np.random.default_rng(0)
    for size in (1, 2, 100, 500):
        some = rng.permutation(len(games))[:size]
        np.testing.assert_array_equal(LuckMeter(network()).value(games.states[some]), values[some])


AUDITED_GAMES = 20_000


@pytest.mark.parametrize("players", [2, 3, 4])
def test_mean_luck_is_zero_whatever_the_values_are(players: int) -> None:
    """The audit: two standard errors for the first seat, and more for the others and the counts, being many."""
    z = audited(players, AUDITED_GAMES)
    assert abs(z[0, WIN]) < 2 and np.abs(z).max() < 3.5


def audited(players: int, size: int) -> NDArray[np.float64]:
    """How many standard errors mean luck is from 0 in random games, (4, signals): the share of the win that a random
    network expects of every seat, and four counts of what draws have turned up."""
    meter = LuckMeter(network(), redraws=1, plays_on=False)
    values, bags = meter.value, np.resize([1, 2, 3], 15)

    def values_and_counts(rows: States) -> NDArray[np.float64]:
        found, offer, drawn = values(rows), rows["offer"], rows["drawn_tokens"]
        tokens = np.where(drawn >= 0, np.resize([1, 2, 3], 15)[drawn], 0).sum(axis=1)
        gold = ((drawn >= 0) & (drawn < 3)).sum(axis=1)
        found[:, :, 1 - WIN] = np.stack([offer[:, :3].sum(axis=1), offer @ bags, tokens, gold], axis=1)
        return found

    meter.value = values_and_counts  # type: ignore[assignment]
    total = luck_of_random_games(meter, players, size, seed=100 + players)
    assert (total[:, :players].std(axis=0) > 0.05).all()
    with np.errstate(invalid="ignore"):  # of seats that nobody holds
        return np.nan_to_num(total.mean(axis=0) / (total.std(axis=0, ddof=1) / np.sqrt(size)))


def luck_of_random_games(meter: LuckMeter, players: int, size: int, seed: int) -> NDArray[np.float64]:
    games = GameBatch(size, players, seed=seed)
    total = np.zeros((size, 4, len(SIGNALS)))
    active = np.arange(size)
    while active.size:
        drawn, lucks, _ = meter.step(games, games.sample_actions(rows=active), active, losses=False)
        total[drawn] += lucks
        active = active[~games.over[active]]
    return total


def test_a_redraw_that_does_not_fit_what_is_known_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit can fail: here every tenth of what might have come is a game in which the bag is in a fixed order."""
    honest = luck.play_redrawn

    def cheat(states: States, rows: Any, acts: Any, redraws: int, out: States, begin: int, end: int) -> None:
        honest(states, rows, acts, redraws, out, begin, end)
        tenth = np.arange(begin, end, 10)
        clone = GameBatch(1, 3, seed=0)[np.zeros(tenth.size, np.int64)]
        clone.states[:] = states[rows[tenth]]
        for row in clone.states:
            row["bag_order"][: row["bag_size"]].sort()
        clone.step(acts[tenth])
        out[tenth] = clone.states

    assert np.abs(audited(3, 2000)).max() < 3.5
    monkeypatch.setattr(luck, "play_redrawn", cheat)
    assert np.abs(audited(3, 2000)).max() > 5


# --- matches


def test_a_meter_changes_no_game_and_luck_does_not_depend_on_what_is_played_together() -> None:
    agents = [RandomAgent(), First(), RandomAgent()]
    plain = Match(agents, 3, deal_seeds(2, 2))
    metered = Match(agents, 3, deal_seeds(2, 2), meter=LuckMeter(network(), redraws=2))
    without, whole = plain.play(0, plain.rounds)[0], metered.play(0, metered.rounds)[0]
    bounds = [0, 1, 3, metered.rounds]
    pieces = Results.join([metered.play(first, end)[0] for first, end in pairwise(bounds)])
    for name in ("winners", "ranks", "scores"):
        np.testing.assert_array_equal(getattr(without, name), getattr(whole, name))
    for name in ("winners", "ranks", "scores", "decisions", "luck", "losses"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))
    assert without.luck.shape == (plain.rounds, 3, 3, 0) and not without.losses.any()
    assert whole.losses.shape == (plain.rounds, 3, 3) and whole.losses.max() > 0.01
    assert whole.luck.shape == (plain.rounds, 3, 3, len(SIGNALS)) and np.abs(whole.luck).max() > 0.01


@pytest.mark.parametrize("players", [2, 3])
def test_adjusted_results_are_raw_ones_minus_luck_as_other_deals_weigh_it(players: int) -> None:
    meter = LuckMeter(network(), redraws=2, plays_on=False)
    run = Run([RandomAgent(), Twin()], players, 40, seed=3, adjust=meter)
    run.play(progress=False)
    report = run.report()
    results = Results.join(run.results)
    tables = len(run.match.tables)

    def lone(values: NDArray[Any], table: int) -> NDArray[Any]:
        return np.stack([values[table::tables, seat, seat] for seat in range(players)]).mean(axis=0)

    raw = lone(results.winners / results.winners.sum(axis=-1, keepdims=True), 0)
    lucks, expected = lone(results.luck, 0), raw.copy()
    for deal in range(40):
        others = np.arange(40) % FOLDS != deal % FOLDS
        expected[deal] -= lucks[deal] @ fit_coefficients(raw[others], lucks[others])
    line = report.pair("random", "twin")
    assert line is not None and line.adjusted_win_rate is not None and report.coefficients is not None
    assert line.adjusted_win_rate.value == pytest.approx(expected.mean())
    assert line.variance_left == pytest.approx(expected.var() / raw.var())
    coefficients = cross_fit(raw, lucks).mean(axis=0)
    assert list(report.coefficients[0]["win_rate"].values()) == pytest.approx(coefficients.tolist())
    assert line.luck is not None and line.luck.value == pytest.approx(lucks[:, WIN].mean())
    assert line.loss is not None and line.loss.value == pytest.approx(lone(results.losses, 0).mean()) != 0
    agent = report.agent("random")
    assert agent.loss == line.loss and agent.luck == line.luck
    if players == 2:
        other = report.pair("twin", "random")
        assert other is not None and other.adjusted_win_rate is not None
        assert other.adjusted_win_rate.value == pytest.approx(1 - expected.mean())
    shown = str(report)
    assert "without the luck of draws" in shown and "lost by play" in shown
    assert "Raw, and without" in report._repr_markdown_() and "Luck of draws and losses" in report._repr_markdown_()


def test_luck_that_explains_results_makes_intervals_narrower_and_moves_no_mean() -> None:
    match = Match([RandomAgent(), Twin()], 2, deal_seeds(0, 400), meter=LuckMeter(network(), redraws=1, plays_on=False))
    results = match.play(0, match.rounds)[0]
    noise = np.random.default_rng(0).normal(0, 0.2, results.luck.shape)
    explained = (results.winners - 0.5) / 4
    results.luck = explained[..., None] - explained.mean() + noise - noise[:, :, ::-1]
    results.luck -= results.luck.mean(axis=(0, 1, 2))
    report = make_report({"players": 2, "ruleset": {}}, ["a", "b"], match, results)
    for pair in report.pairs:
        assert pair.adjusted_win_rate is not None and pair.adjusted_score_margin is not None
        assert pair.variance_left is not None and 0.3 < pair.variance_left < 0.85
        assert pair.adjusted_win_rate.high - pair.adjusted_win_rate.low < pair.win_rate.high - pair.win_rate.low


def test_who_wins_every_deal_is_as_doubtful_without_luck() -> None:
    match = Match([RandomAgent(), Twin()], 2, deal_seeds(0, 30), meter=LuckMeter(network(), redraws=1, plays_on=False))
    results = match.play(0, match.rounds)[0]
    results.winners[:] = np.eye(2, dtype=np.bool_)  # the lone one
    pair = make_report({"players": 2, "ruleset": {}}, ["a", "b"], match, results).pair("a", "b")
    assert pair is not None and pair.adjusted_win_rate == pair.win_rate and pair.win_rate.low < 0.95


def test_coefficients_are_found_and_nothing_is_subtracted_where_they_cannot_be() -> None:
    rng = np.random.default_rng(0)
    lucks = rng.normal(size=(5000, 2))
    results = 0.5 + lucks @ [0.7, -0.2] + rng.normal(size=5000) / 10
    assert fit_coefficients(results, lucks) == pytest.approx([0.7, -0.2], abs=0.01)
    assert fit_coefficients(results[:5], lucks[:5]).tolist() == [0, 0]
    assert fit_coefficients(results, np.zeros((5000, 2))).tolist() == [0, 0]
    unrelated = np.mean([np.abs(fit_coefficients(rng.normal(size=100), lucks[:100])) for _ in range(100)])
    assert unrelated < 0.05, "least squares finds 0.08"


def test_coefficients_of_a_deal_know_nothing_of_it_or_of_later_ones() -> None:
    rng = np.random.default_rng(0)
    lucks = rng.normal(size=(200, 2))
    results = 0.5 + lucks @ [0.7, -0.2] + rng.normal(size=200) / 10
    other = results.copy()
    other[90] += 5
    crossed, again = cross_fit(results, lucks), cross_fit(other, lucks)
    np.testing.assert_array_equal(crossed[90], again[90])
    assert (crossed[91] != again[91]).all() and crossed.mean(axis=0) == pytest.approx([0.7, -0.2], abs=0.05)
    ahead, again = fit_ahead(results, lucks), fit_ahead(other, lucks)
    np.testing.assert_array_equal(ahead[:91], again[:91])
    assert (ahead[:FEWEST_DEALS] == 0).all() and (ahead[199] != again[199]).all()
    for deals in (3, 16, 17, 90):  # what is known does not change when more is played
        np.testing.assert_array_equal(fit_ahead(results[:deals], lucks[:deals]), ahead[:deals])


@pytest.mark.parametrize("fit", [cross_fit, fit_ahead])
def test_adjusted_means_are_unbiased_and_their_spread_is_known(fit: Any) -> None:
    """2,000 matches of 60 deals in which luck explains half, and in which it explains nothing."""
    rng = np.random.default_rng(1)
    for weight in (0.3, 0.0):
        means, errors = np.empty(2000), np.empty(2000)
        for match in range(2000):
            lucks = rng.normal(size=(60, 2))
            results = 0.5 + weight * lucks[:, 0] + rng.normal(size=60) * 0.3
            adjusted = results - np.einsum("ds,ds->d", lucks, fit(results, lucks))
            means[match], errors[match] = adjusted.mean(), adjusted.std(ddof=1) / np.sqrt(60)
        assert abs(means.mean() - 0.5) < 3 * means.std() / np.sqrt(2000)
        assert 0.93 < means.std() / np.sqrt((errors**2).mean()) < 1.07
        assert means.std() < (0.9 if weight else 1.05) * np.sqrt((0.09 + weight**2) / 60)


# --- runs


def test_the_value_model_is_pinned_before_the_match(tmp_path: Path) -> None:
    first, second = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    network(0).save(first)
    network(1).save(second)
    agents = ["random", First()]
    run = Run(agents, deals=4, folder=tmp_path / "run", adjust=LuckMeter.load(first, 2))
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())
    assert settings["adjust"] == {"sha256": LuckMeter.load(first).sha256, "redraws": 2, "plays_on": True}
    with pytest.raises(InvalidArgument, match="holds another run: its adjust"):
        Run(agents, deals=4, folder=tmp_path / "run", adjust=LuckMeter.load(second, 2))
    with pytest.raises(InvalidArgument, match="holds another run: its adjust"):
        Run(agents, deals=4, folder=tmp_path / "run")
    run.play(progress=False)
    again = Run(agents, deals=4, folder=tmp_path / "run", adjust=LuckMeter.load(first, 2))
    assert again.deals == 4
    assert again.report().to_dict() == run.report().to_dict()


def test_bad_settings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgument, match="redraws must be a whole number from 1"):
        LuckMeter(network(), redraws=0)
    with pytest.raises(InvalidModel, match="there is no such file"):
        LuckMeter.load(tmp_path / "absent.safetensors")
    monkeypatch.setattr(arena, "LuckMeter", LuckMeter)
    monkeypatch.setattr("montecristo_agents.luck.VALUE_MODEL", "absent")
    with pytest.raises(InvalidModel, match="brings no network absent along"):
        Run(["random", "random"], deals=2, adjust=True)


def test_adjusted_results_are_those_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    network().save(tmp_path / "net.safetensors")
    monkeypatch.chdir(tmp_path)
    command = ["arena", "random", "greedy", "--deals", "20", "--adjust", "--folder", "run"]
    monkeypatch.setattr("sys.argv", [*command, "--value-model", "net.safetensors"])
    arena.main()
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    pair = report["pairs"][0]
    assert pair["adjusted_score_margin"]["value"] != pair["score_margin"]["value"]
    assert "without the luck of draws" in capsys.readouterr().out
    assert "adjusted_win_rate_low" in (tmp_path / "run" / "pairs.csv").read_text()


def test_figures_of_an_adjusted_ladder_are_filled_in_on_other_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LuckMeter, "shipped", classmethod(lambda cls: cls(network(), redraws=2)))
    begin, end = "<!-- ladder: greedy against random with 2, random against greedy with 3 -->", "<!-- end of ladder -->"
    (tmp_path / "docs").mkdir()
    readme, card, page = tmp_path / "README.md", tmp_path / "docs" / "greedy.md", tmp_path / "docs" / "ladder.md"
    for path in (readme, card):
        path.write_text(f"Above\n\n{begin}\n{end}\n\nBelow\n")
    command = ["ladder", "--page", str(page), "--folder", str(tmp_path / "runs")]
    monkeypatch.setattr("sys.argv", [*command, "--agents", "random", "greedy", "--players", "2", "3", "--deals", "20"])
    ladder.main()
    figures = json.loads((tmp_path / "docs" / "ladder.json").read_text())
    pair = next(pair for pair in figures[0]["pairs"] if pair["agent"] == "greedy")
    rates = [
        f"{100 * pair[name]['value']:.1f} ({100 * pair[name]['low']:.1f} to {100 * pair[name]['high']:.1f})"
        for name in ("win_rate", "adjusted_win_rate")
    ]
    text = readme.read_text()
    assert f"| `greedy` | `random` | 2 | 40 | {rates[0]} | {rates[1]} | 50.0 |" in text
    assert "| `random` | two `greedy` | 3 | 60 |" in text and text.startswith("Above") and text.endswith("Below\n")
    assert card.read_text() == text and "Raw, and without the luck of draws" in page.read_text()
    readme.write_text(text.replace(rates[0], "99.9 (99.8 to 100.0)"))
    monkeypatch.setattr("sys.argv", [*command, "--fill"])
    ladder.main()
    assert readme.read_text() == text and f"filled in on {readme}" in capsys.readouterr().out
    unknown = text.replace("against random with 2", "against mcts:9 with 2").replace(rates[0], "50.0")
    readme.write_text(unknown)
    ladder.main()
    assert readme.read_text() == unknown, "who has not met keeps the figures that are there"
    readme.write_text(text.replace(begin, "<!-- ladder: greedy -->"))
    with pytest.raises(SystemExit):
        ladder.main()
    assert "must be AGENT against OPPONENT with PLAYERS" in capsys.readouterr().err


def test_pages_have_tables_of_the_ladder_with_its_figures() -> None:
    """`python -m montecristo_agents.ladder --fill` writes them."""
    docs = Path(__file__).resolve().parent.parent / "docs"
    played = (docs / ladder.FIGURES).exists()
    figures = ladder.read_figures(docs / "ladder.md") if played else []
    for path in (docs.parent / "README.md", docs / "alphazero.md", docs / "ppo.md"):
        text = path.read_text(encoding="utf-8")
        assert "<!-- ladder: " in text and ladder.fill(text, figures) == text, path
