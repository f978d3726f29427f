"""The arena: duplicate deals, seats, resuming, reports, and the ways to bring a policy of one's own."""

import csv
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import montecristo_env
from montecristo_agents import arena, ladder, matches
from montecristo_agents.arena import Run, play
from montecristo_agents.benchmark import benchmark
from montecristo_agents.matches import Match, Results, Table, deal_seeds, schedule
from montecristo_agents.random import RandomAgent
from montecristo_agents.ratings import Estimate
from montecristo_agents.report import FILES, Report
from montecristo_env import GameBatch, GameRecord, IllegalAction, InvalidArgument, PublicView, Ruleset, actions
from montecristo_env.core.constants import NONE
from montecristo_env.util.files import locked

Arrays = dict[str, NDArray[Any]]
LONG = 600  # seconds; only to end what would never end by itself
RESULTS = ("winners", "ranks", "scores", "decisions")  # all but the seconds, which no seed determines


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


def first_legal(obs: NDArray[np.float32], mask: NDArray[np.int8]) -> NDArray[np.integer]:
    return mask.argmax(axis=1)


def without_seconds(report: Report) -> dict[str, Any]:
    plain = report.to_dict()
    for line in plain["agents"]:
        del line["seconds_per_decision"]
    return plain


# --- who meets whom, where and on which deals


def test_a_rule_set_given_as_text_is_played_and_reported(tmp_path: Path) -> None:
    report = play(["random", First()], deals=3, ruleset="target=5,refill=short", progress=False, folder=tmp_path)
    assert report.rules == "target=5,refill=short" and "rules: target=5,refill=short" in str(report)
    assert Ruleset.from_dict(report.settings["ruleset"]) == Ruleset(target=5, refill="short")
    with pytest.raises(InvalidArgument, match="another run"):
        play(["random", First()], deals=3, ruleset="target=6", progress=False, folder=tmp_path)


def test_two_ways_to_write_a_rule_set_share_a_folder() -> None:
    def folder(rules: str) -> Path:
        return arena._default_folder(arena.Options(("random", "greedy"), ruleset=rules))

    assert (
        folder("target=5,refill=short") == folder('{"refill": "short", "target": 5}') != folder("") == folder("default")
    )


def test_two_players_meet_at_one_table_and_more_at_two() -> None:
    assert schedule(3, 2) == [Table(0, 1), Table(0, 2), Table(1, 2)]
    assert schedule(2, 3) == [Table(0, 1), Table(1, 0)]
    assert sorted(schedule(3, 4)) == [Table(a, b) for a in range(3) for b in range(3) if a != b]
    assert schedule(3, 2, focus=2) == [Table(0, 2), Table(1, 2)]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_deal_has_one_seed_at_all_tables_and_the_lone_player_sits_everywhere(
    players: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dealt: list[NDArray[np.uint64]] = []

    class Spied(GameBatch):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            dealt.append(self.seeds.copy())

    class Spy(First):
        def __init__(self) -> None:
            self.sat: set[tuple[int, int]] = set()

        def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
            self.sat |= set(zip(rows.tolist(), games.current_player[rows].tolist(), strict=True))
            return super().act(games, rows)

    monkeypatch.setattr(matches, "GameBatch", Spied)
    agents = [Spy(), Spy(), Spy()]
    seeds = deal_seeds(0, 4)
    match = Match(agents, players, seeds)
    match.play(0, match.rounds)
    tables = len(match.tables)
    np.testing.assert_array_equal(dealt[0].reshape(4, tables * players), np.repeat(seeds[:, None], tables * players, 1))
    seats = match.seats(np.arange(match.rounds)).reshape(-1, players)
    for number, agent in enumerate(agents):
        assert agent.sat == {(int(game), int(seat)) for game, seat in np.argwhere(seats == number)}
    for table, (lone, rest) in enumerate(match.tables):
        sitting = match.seats(np.array([table]))[0].tolist()
        assert sorted(sitting) == sorted(
            [lone if seat == place else rest for seat in range(players)] for place in range(players)
        )


def test_deals_are_those_of_a_batch_and_more_deals_begin_with_the_same() -> None:
    np.testing.assert_array_equal(deal_seeds(7, 20), GameBatch(20, 2, seed=7).seeds)
    np.testing.assert_array_equal(deal_seeds(7, 20)[:5], deal_seeds(7, 5))


# --- what comes out of games


@pytest.mark.parametrize("players", [2, 3, 4])
def test_results_are_those_of_games_played_one_by_one(players: int) -> None:
    """Every game again by itself, each decision asked: also those that the engine makes for random agents."""
    agents = [RandomAgent(), First(), Twin()]
    match = Match(agents, players, deal_seeds(1, 2))
    results = match.play(0, match.rounds).results
    for number in range(match.rounds):
        for lone, sitting in enumerate(match.seats(np.array([number]))[0]):
            games = GameBatch(1, players, seed=match.seeds[[number // len(match.tables)]])
            decisions = np.zeros(players)
            while not games.over[0]:
                seat = games.current_player[0]
                decisions[seat] += 1
                games.step(agents[sitting[seat]].act(PublicView(games), np.zeros(1, np.int64)))
            crew = games.states["crew"][0].sum(axis=1)
            standing = [(int(games.scores[0, seat]), int(crew[seat])) for seat in range(players)]
            ranks = [1 + np.mean([i for i, x in enumerate(sorted(standing)[::-1]) if x == own]) for own in standing]
            np.testing.assert_array_equal(results.winners[number, lone], games.winners[0, :players])
            np.testing.assert_array_equal(results.scores[number, lone], games.scores[0, :players])
            np.testing.assert_allclose(results.ranks[number, lone], ranks)
            for agent in range(3):  # of random players that the engine moves, only the mean is known
                at = sitting == agent
                assert results.decisions[number, lone, at].sum() == pytest.approx(decisions[at].sum(), rel=1e-5)


def test_results_do_not_depend_on_what_is_played_together() -> None:
    match = Match([RandomAgent(), First(), Twin()], 3, deal_seeds(2, 5))
    whole = match.play(0, match.rounds).results
    bounds = [0, 1, 2, 9, 10, 17, match.rounds]
    pieces = [match.play(first, end)[0] for first, end in pairwise(bounds)]
    joined = Results.join(pieces)
    for name in RESULTS:
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
    assert joined.seconds.shape == (3,) and (joined.seconds > 0).all()


def test_shared_wins_count_as_shares() -> None:
    rules = Ruleset(round_limit=1)  # nobody has points yet, so that many wins are shared
    match = Match([RandomAgent(), Twin()], 2, deal_seeds(0, 200), rules)
    results = match.play(0, match.rounds).results
    shared = results.winners.all(axis=-1)
    assert shared.mean() > 0.1 and (results.ranks[shared] == 1.5).all()
    report = play(["random", Twin()], deals=200, ruleset=rules, progress=False)
    rates = [line.win_rate.value for line in report.agents]
    assert sum(rates) == pytest.approx(1) and rates[0] > shared.mean() / 2


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_mirror_match_stays_within_the_interval_of_equals(players: int) -> None:
    for pair in (["random", "random"], [First(), First()], ["random", Twin()]):
        report = play(pair, players, deals=300, progress=False)
        assert report.null_rate == 1 / players
        for line in (*report.agents, *report.pairs):
            assert line.win_rate.low <= 1 / players <= line.win_rate.high
            assert line.mean_rank.low - 1e-9 <= (players + 1) / 2 <= line.mean_rank.high + 1e-9
            assert line.score_margin.low - 1e-9 <= 0 <= line.score_margin.high + 1e-9


def test_an_agent_against_itself_wins_exactly_as_often_as_equals() -> None:
    report = play([First(), First()], 3, deals=50, progress=False)
    assert [line.win_rate.value for line in report.agents] == pytest.approx([1 / 3, 1 / 3])
    assert [line.agent for line in report.agents] == ["first", "first (2)"]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_bad_player_is_found_to_be_bad(players: int) -> None:
    report = play(["random", First(), Twin()], players, deals=100, progress=False)
    worst = report.agents[-1]
    assert worst.agent == "first" and report.anchor == "random"
    assert worst.win_rate.high < 1 / players and worst.elo.high < 0 and worst.score_margin.high < 0
    assert worst.mean_rank.low > (players + 1) / 2
    assert worst.openskill.mu < min(line.openskill.mu for line in report.agents[:-1])
    pair = report.pair("first", "random")
    assert pair is not None and pair.games == 100 * players and pair.win_rate.high < 1 / players


def test_same_seed_same_report_and_another_seed_another() -> None:
    one, same, other = (play(["random", First()], 3, 30, seed, progress=False) for seed in (5, 5, 6))
    assert without_seconds(one) == without_seconds(same)
    assert without_seconds(one) != without_seconds(other) | {"settings": one.settings}


# --- a folder to resume from


@pytest.fixture
def growing_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 1, 4, 16 … rounds, however slow the machine is."""
    monkeypatch.setattr(arena, "CHUNK_SECONDS", 1e9)


class Stopping(Run):
    """Stops with Ctrl-C after some chunks."""

    def stop_after(self, chunks: int) -> None:
        plain, left = self.match.play, iter(range(chunks))

        def interrupted(*args: Any) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return plain(*args)

        self.match.play = interrupted  # type: ignore[method-assign]


@pytest.mark.usefixtures("growing_chunks")
def test_a_run_that_is_stopped_again_and_again_ends_like_any_other(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"agents": ["random", First(), Twin()], "players": 2, "deals": 40, "seed": 3}
    whole = play(**settings, progress=False)
    rounds = []
    for chunks in (1, 2, 3):
        run = Stopping(**settings, folder=tmp_path / "run")
        run.stop_after(chunks)
        with pytest.raises(KeyboardInterrupt):
            run.play(progress=False)
        rounds.append(run.rounds)
    assert 0 < rounds[0] < rounds[1] < rounds[2] < 120
    assert without_seconds(play(**settings, folder=tmp_path / "run", progress=False)) == without_seconds(whole)


@pytest.mark.usefixtures("growing_chunks")
def test_a_stopped_run_reports_the_deals_that_are_complete(tmp_path: Path) -> None:
    run = Stopping(["random", First(), Twin()], deals=40, folder=tmp_path / "run")
    run.stop_after(2)
    with pytest.raises(KeyboardInterrupt):
        run.play(progress=False)
    assert run.rounds == 5 and run.deals == 1
    report = run.report()
    assert report.deals == 1 and report.games == 6 and report.agents[0].elo.low != report.agents[0].elo.low  # NaN


def test_chunks_grow_until_they_take_seconds_and_shrink_when_they_take_longer() -> None:
    assert arena._next_size(rounds=1, seconds=0.01, most=4096) == 4
    assert arena._next_size(rounds=1000, seconds=0.5, most=4096) == 4000
    assert arena._next_size(rounds=4000, seconds=0.5, most=4096) == 4096
    assert arena._next_size(rounds=16, seconds=120.0, most=4096) == 4
    assert arena._next_size(rounds=1, seconds=360.0, most=4096) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"agents": ["random", "random", "random"]}, "its agents is"),
        ({"players": 3}, "its players is 2, not 3"),
        ({"deals": 21}, "its deals is 20, not 21"),
        ({"seed": 1}, "its seed is 0, not 1"),
        ({"ruleset": Ruleset(target=20)}, "its ruleset is"),
        ({"records": 1}, "its records is 0, not 1"),
        ({"focus": 0}, "its focus is null, not 0"),
    ],
)
def test_a_folder_of_another_run_is_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"agents": ["random", "random"], "deals": 20, "folder": tmp_path / "run"}
    play(**settings, progress=False)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(InvalidArgument, match=message):
        Run(**settings | changed)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_a_folder_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(["random", "random"], deals=5, folder=tmp_path, progress=False)
    monkeypatch.setattr(montecristo_env, "__version__", "99.0")
    with pytest.raises(InvalidArgument, match="holds another run: its version is"):
        Run(["random", "random"], deals=5, folder=tmp_path)


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidArgument, match="neither empty nor the folder of an arena run"):
        Run(["random", "random"], folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.usefixtures("growing_chunks")
def test_a_folder_that_lacks_a_part_is_refused(tmp_path: Path) -> None:
    play(["random", "random"], deals=50, folder=tmp_path, progress=False)
    chunk = sorted((tmp_path / "chunks").iterdir())[1]
    chunk.write_bytes(chunk.read_bytes()[:100])
    with pytest.raises(InvalidArgument, match=f"{chunk.name} is damaged"):
        Run(["random", "random"], deals=50, folder=tmp_path)
    chunk.unlink()
    with pytest.raises(InvalidArgument, match="is damaged: rounds 1 to 5 do not follow"):
        Run(["random", "random"], deals=50, folder=tmp_path)


# --- the command line


def run_main(monkeypatch: pytest.MonkeyPatch, main: Callable[[], None], *args: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["program", *map(str, args)])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["random", "nobody"], "no agent is called 'nobody'"),
        (["random"], "two agents or more"),
        (["random", "random", "--players", "5"], "players must be a whole number from 2 to 4, but is 5"),
        (["random", "random", "--players", "1"], "players must be a whole number from 2 to 4, but is 1"),
        (["random", "random", "--deals", "0"], "deals must be a whole number from 1"),
        (["random", "random", "--deals", "-3"], "deals must be a whole number from 1"),
        (["random", "random", "--seed", "-1"], "seed must be a whole number from 0"),
        (["random", "random", "--deals", "5", "--records", "6"], "records must be a whole number from 0 to 5"),
        (["random", "random", "--folder", "file/run"], "cannot write to file/run: Not a directory"),
    ],
)
def test_bad_input_is_one_clear_line_and_status_2(
    args: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert run_main(monkeypatch, arena.main, *args) == 2
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.count("\n") == 1 and shown.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_tables_and_files_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_main(monkeypatch, arena.main, "random", "random", "random", "--deals", "40", "--players", "3") == 0
    (folder,) = (tmp_path / "runs" / "arena").iterdir()
    shown = capsys.readouterr().out
    assert "3 players, rules: default, 40 deals, 720 games; equals win 33.3 %" in shown and "random (3)" in shown

    report = json.loads((folder / "report.json").read_text())
    assert report["deals"] == 40 and report["null_rate"] == 1 / 3 and report["settings"]["seed"] == 0
    for kind in ("agents", "pairs"):
        rows = list(csv.DictReader((folder / f"{kind}.csv").open()))
        assert len(rows) == len(report[kind]) == (3 if kind == "agents" else 6)
        for row, line in zip(rows, report[kind], strict=True):
            assert row["agent"] == line["agent"] and row["agent"] in shown
            for name in ("win_rate", "score_margin", "mean_rank"):
                assert float(row[name]) == line[name]["value"]
                assert float(row[f"{name}_low"]) == line[name]["low"] <= line[name]["value"]
                assert float(row[f"{name}_high"]) == line[name]["high"] >= line[name]["value"]
            if kind == "agents":
                assert f"{100 * line['win_rate']['value']:.1f}" in shown
                assert float(row["openskill_mu"]) == line["openskill"]["mu"]
    from matplotlib.image import imread

    for name in ("ratings.png", "pairs.png"):
        picture = imread(folder / name)
        assert min(picture.shape[:2]) > 300 and len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 50
    assert {path.name for path in folder.iterdir()} == {*FILES, "settings.json", "chunks"}


def test_names_are_shown_as_they_are() -> None:
    agents = First(), First()
    agents[0].name, agents[1].name = "a:100:b", "c[red]d"
    shown = str(arena.play(agents, 2, 2, 0, progress=False))
    assert shown.count("a:100:b") == shown.count("c[red]d") == 3


def test_records_on_request_replay_and_tell_who_sat_where(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"agents": ["random", First()], "players": 3, "deals": 3}
    run = Run(**settings, folder=tmp_path, records=1)
    run.play(progress=False)
    files = sorted((tmp_path / "records").iterdir())
    assert len(files) == 2 * 3
    results = Results.join(run.results)
    for table, (lone, rest) in enumerate(run.match.tables):
        for seat in range(3):
            record = GameRecord.load(tmp_path / "records" / f"deal0-table{table}-seat{seat}.json")
            assert record.players == [run.names[lone if place == seat else rest] for place in range(3)]
            assert record.seed == run.match.seeds[0]
            assert record.result is not None
            assert record.result["scores"] == results.scores[table, seat].tolist()
    unrecorded = Run(**settings)
    unrecorded.play(progress=False)
    assert without_seconds(run.report()) == without_seconds(unrecorded.report()) | {"settings": run.settings}


# --- agents of other packages, in processes of their own

PACKAGE = {
    "pyproject.toml": """
        [build-system]
        requires = ["setuptools"]
        build-backend = "setuptools.build_meta"

        [project]
        name = "dumas"
        version = "1.0"

        [project.entry-points."montecristo_env.agents"]
        dantes = "dumas:Dantes"
        model = "dumas:Model"

        [tool.setuptools]
        py-modules = ["dumas"]
    """,
    "dumas.py": """
        import os
        import time
        from pathlib import Path


        class Dantes:
            '''Draws its chance from the games; after three chunks it waits in its cell, if it is told to.'''

            name = "dantes"

            def act(self, games, rows):
                while len(list(Path(os.environ.get("CELL", "nowhere")).glob("chunks/*.npz"))) >= 3:
                    time.sleep(0.01)
                return games.sample_actions(rows)


        class Model(Dantes):
            def __init__(self, path):
                self.name, self.path = f"model:{path}", path
    """,
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where somebody's package with an agent is installed."""
    sources, target = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("target")
    for name, text in PACKAGE.items():
        (sources / name).write_text(textwrap.dedent(text))
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", target, sources]
    subprocess.run([sys.executable, *map(str, install)], check=True, capture_output=True, timeout=LONG)
    return target


COMMAND = ("random", "dantes", "--deals", "60")


def start(package: Path, folder: Path, waits: bool = False) -> subprocess.Popen[str]:
    python_path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-m", "montecristo_agents.arena", *COMMAND, "--folder", str(folder)],
        env=os.environ | {"PYTHONPATH": python_path} | ({"CELL": str(folder)} if waits else {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs inherit that it is ignored
    )


@pytest.mark.skipif(os.name != "posix", reason="this system has other signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_a_process_that_is_stopped_loses_at_most_a_chunk_and_resumes(
    name: str, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blow = signal.Signals[name]
    folder = tmp_path / "run"
    process = start(package, folder, waits=True)
    while len(list(folder.glob("chunks/*.npz"))) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.send_signal(blow)
    out, messages = process.communicate(timeout=LONG)
    kept = {path.name for path in folder.glob("chunks/*.npz")}
    if blow == signal.SIGINT:
        assert process.returncode == 130 and "the same command goes on" in messages and "dantes" in out
        assert json.loads((folder / "report.json").read_text())["deals"] < 60
    else:
        assert process.returncode == -signal.SIGKILL and not (folder / "report.json").exists()

    again = start(package, folder)
    out, messages = again.communicate(timeout=LONG)
    assert again.returncode == 0, messages
    assert kept < {path.name for path in folder.glob("chunks/*.npz")}

    monkeypatch.syspath_prepend(str(package))
    whole = play(COMMAND[:2], deals=60, progress=False)
    resumed = json.loads((folder / "report.json").read_text())
    for line in resumed["agents"]:
        del line["seconds_per_decision"]
    assert resumed == without_seconds(whole)


def test_a_run_knows_its_model_files_by_their_content(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(package))
    model = tmp_path / "model"
    model.write_bytes(b"weights")
    settings: dict[str, Any] = {"agents": ["random", f"model:{model}"], "deals": 3, "folder": tmp_path / "run"}
    report = play(**settings, progress=False)
    assert report.settings["agents"][1]["sha256"] == hashlib.sha256(b"weights").hexdigest()
    model.write_bytes(b"other weights")
    with pytest.raises(InvalidArgument, match="holds another run: its agents"):
        Run(**settings)


def test_the_ladder_page_names_agents_hashes_and_what_is_missing(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(package))
    model = tmp_path / "model"
    model.write_bytes(b"weights")
    page = tmp_path / "docs" / "ladder.md"
    args = ["--agents", "random", f"model:{model}", "nobody:9", "--deals", "20", "--page", page]
    args += ["--folder", tmp_path / "runs", "--no-adjust"]
    assert run_main(monkeypatch, ladder.main, *map(str, args)) == 0
    text = page.read_text()
    assert "Not installed, so not played: nobody:9." in text
    assert hashlib.sha256(b"weights").hexdigest() in text
    for players in (2, 3, 4):
        assert f"## {players} players" in text and (page.parent / f"images/ladder-{players}.png").is_file()
        report = json.loads((tmp_path / "runs" / f"{players}-players" / "settings.json").read_text())
        assert report["players"] == players and report["deals"] == 20
    assert text.index("| agent | win rate %") < 100 < text.index("SHA-256"), "it opens with the ladder"
    page.unlink()
    assert run_main(monkeypatch, ladder.main, *map(str, args)) == 0
    assert page.read_text() == text


def test_the_standard_ladder_begins_with_the_random_agent_and_lists_no_agent_twice() -> None:
    assert ladder.LADDER[0] == "random" and len(set(ladder.LADDER)) == len(ladder.LADDER)
    assert set(ladder.STANDARD) < set(ladder.LADDER) and tuple(ladder.DEALS) == (2, 3, 4)
    assert ladder.Options().deals is None


# --- policies of researchers


def test_benchmark_takes_agents_names_and_callables_alike() -> None:
    against = ["random", Twin()]
    as_agent = benchmark(First(), deals=20, against=against, progress=False)
    as_callable = benchmark(first_legal, deals=20, name="first", against=against, progress=False)
    assert without_seconds(as_agent) == without_seconds(as_callable)
    assert as_agent.pair("random", "twin") is None  # the others do not meet
    assert {(line.agent, line.opponent) for line in as_agent.pairs if line.agent == "first"} == {
        ("first", "random"),
        ("first", "twin"),
    }
    assert benchmark("random", deals=5, against=["random"], progress=False).agent("random (2)").win_rate.value == 0.5


@pytest.mark.parametrize("players", [2, 3])
def test_benchmark_gives_callables_what_the_shells_give(players: int) -> None:
    def check(obs: NDArray[np.float32], mask: NDArray[np.int8]) -> NDArray[np.integer]:
        assert obs.dtype == np.float32 and obs.shape == (len(mask), montecristo_env.observation.SIZE)
        assert obs.min() >= 0 and (obs <= montecristo_env.observation.HIGHEST * montecristo_env.observation.SCALE).all()
        assert mask.dtype == np.int8 and mask.shape[1] == actions.COUNT and (mask.sum(axis=1) >= 2).all()
        return mask.argmax(axis=1)

    report = benchmark(check, players, deals=3, against=["random"], progress=False)
    assert report.agent("check").decisions_per_game > 20


def test_benchmark_names_the_policy_that_plays_illegally() -> None:
    def stubborn(obs: NDArray[np.float32], mask: NDArray[np.int8]) -> NDArray[np.integer]:
        return np.zeros(len(mask), np.int64)

    with pytest.raises(IllegalAction, match="agent stubborn: game"):
        benchmark(stubborn, deals=5, against=["random"], progress=False)
    with pytest.raises(InvalidArgument, match="a policy is an agent"):
        benchmark(7, progress=False)  # type: ignore[arg-type]


def test_benchmark_leaves_out_with_a_warning_who_is_not_installed() -> None:
    with pytest.warns(UserWarning, match="not installed, so not played against: nobody"):
        report = benchmark(First(), deals=3, against=["random", "nobody"], progress=False)
    assert {line.agent for line in report.agents} == {"first", "random"}


@pytest.fixture
def one_torch_thread() -> Iterator[None]:
    """Networks as small as these only wait for each other's threads."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_torch_thread")
def test_benchmark_takes_models_of_stable_baselines3_with_and_without_masks() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    contrib = pytest.importorskip("sb3_contrib")
    from montecristo_env.sb3 import MonteCristoVecEnv

    env = MonteCristoVecEnv(2)
    maskable = contrib.MaskablePPO("MlpPolicy", env, n_steps=2, batch_size=4, seed=0, device="cpu")
    report = benchmark(maskable, deals=2, against=["random"], progress=False)
    assert report.agent("MaskablePPO").decisions_per_game > 20

    counts = contrib.MaskablePPO(
        "MlpPolicy", MonteCristoVecEnv(2, obs_dtype="int8"), n_steps=2, batch_size=4, seed=0, device="cpu"
    )
    seen = []
    plain = counts.predict
    counts.predict = lambda observation, action_masks=None, deterministic=False: (  # type: ignore[method-assign]
        seen.append(observation.dtype) or plain(observation, None, None, deterministic, action_masks)
    )
    benchmark(counts, deals=1, against=["random"], progress=False)
    assert set(seen) == {np.dtype(np.int8)}

    unmasked = sb3.PPO("MlpPolicy", env, n_steps=2, batch_size=4, seed=0, device="cpu")
    with pytest.warns(UserWarning, match="of the decisions of PPO were illegal and replaced by random ones"):
        report = benchmark(unmasked, deals=2, against=["random"], progress=False)
    assert report.agent("PPO").decisions_per_game > 20


def test_a_missing_package_is_named_with_its_extra() -> None:
    program = (
        "import sys; sys.modules['openskill.models'] = None\n"
        "try:\n    import montecristo_agents.extras\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert re.search(r"the arena needs openskill.*pip install 'montecristo-env\[arena\]'", done.stdout)


def test_finished_games_are_never_stepped_again() -> None:
    class Watchful(First):
        def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
            assert (games.current_player[rows] != NONE).all()
            return super().act(games, rows)

    match = Match([Watchful(), RandomAgent(), Twin()], 4, deal_seeds(0, 10))
    results = match.play(0, match.rounds).results
    assert results.winners.any(axis=-1).all()


# --- two processes, and folders that are damaged


def test_a_folder_in_which_another_process_plays_is_refused(tmp_path: Path) -> None:
    run = Run(["random", First()], deals=20, folder=tmp_path)
    with locked(tmp_path):
        for refused in (lambda: Run(["random", First()], deals=20, folder=tmp_path), lambda: run.play(progress=False)):
            with pytest.raises(InvalidArgument, match=f"another process works in {tmp_path}"):
                refused()
    run.play(progress=False)
    assert run.deals == 20


@pytest.mark.usefixtures("growing_chunks")
def test_two_runs_in_turn_in_one_folder_play_every_round_once(tmp_path: Path) -> None:
    """Both have seen an empty folder; the second one takes up what the first has done since."""
    settings: dict[str, Any] = {"agents": ["random", First()], "deals": 20, "folder": tmp_path}
    first, second = Stopping(**settings), Run(**settings)
    first.stop_after(2)
    with pytest.raises(KeyboardInterrupt):
        first.play(progress=False)
    second.play(progress=False)
    assert second.rounds == Run(**settings).rounds == 20
    assert without_seconds(second.report()) == without_seconds(play(**settings | {"folder": None}, progress=False))


def test_two_processes_at_once_leave_a_sound_folder(package: Path, tmp_path: Path) -> None:
    processes = [start(package, tmp_path / "run") for _ in range(2)]
    ends = [(process.communicate(timeout=LONG)[1], process.returncode) for process in processes]
    assert sorted(code for _, code in ends) in ([0, 2], [0, 0]), ends
    assert all(code == 0 or "another process works in" in messages for messages, code in ends)
    again = start(package, tmp_path / "run")
    messages = again.communicate(timeout=LONG)[1]
    assert again.returncode == 0, messages


def _shorten(saved: Arrays) -> Arrays:
    return {name: values[:-1] if name != "seconds" else values for name, values in saved.items()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_shorten, r"winners must be bool of shape \(5, 2, 2\), but are bool of shape \(4, 2, 2\)"),
        (lambda saved: saved | {"ranks": saved["ranks"].astype(np.float64)}, "ranks must be float32"),
        (lambda saved: saved | {"winners": saved["winners"] & False}, "every game must have a winner"),
        (lambda saved: saved | {"seconds": saved["seconds"] * np.nan}, "seconds must be finite numbers from 0"),
        (lambda saved: saved | {"more": saved["seconds"]}, "unexpected keyword argument 'more'"),
        (lambda saved: {}, "missing 7 required positional arguments"),
    ],
)
def test_a_chunk_that_is_not_what_its_name_says_is_refused(
    tmp_path: Path, change: Callable[[Arrays], Arrays], message: str
) -> None:
    settings: dict[str, Any] = {"agents": ["random", First()], "deals": 5, "folder": tmp_path}
    run = Run(**settings)
    assert run.folder is not None
    results = run.match.play(0, 5).results
    run.folder.save(0, results)
    (chunk,) = (tmp_path / "chunks").iterdir()
    assert Run(**settings).rounds == 5
    np.savez(chunk, **change(vars(results)))
    with pytest.raises(InvalidArgument, match=f"{chunk.name} is damaged .*{message}"):
        Run(**settings)


@pytest.mark.parametrize("name", ["one-two.npz", "0000000000.npz", "0000000000-0000000009.npz", "-1-0000000001.npz"])
def test_a_chunk_with_a_name_that_no_chunk_has_is_refused(tmp_path: Path, name: str) -> None:
    Run(["random", "random"], deals=5, folder=tmp_path)
    (tmp_path / "chunks" / name).touch()
    with pytest.raises(InvalidArgument, match=r"is no chunk of an arena run|this run has the rounds 0 to 5"):
        Run(["random", "random"], deals=5, folder=tmp_path)


# --- notebooks


def test_a_report_shows_its_tables_in_a_notebook_and_is_short_in_a_shell() -> None:
    odd = First()
    odd.name = "a|b"
    report = play(["random", odd], deals=3, progress=False)
    assert re.fullmatch(r"<Report: 2 players, 3 deals; win rates: random [\d.]+ %, a\|b [\d.]+ %>", repr(report))
    shown = report._repr_markdown_()
    assert shown.startswith("**2 players, rules: default, 3 deals, 6 games; equals win 50.0 %**")
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert [line.count("|") for line in rows] == [10] * 4 + [4] * 4
    assert "a&#124;b" in shown and f"{100 * report.agents[0].win_rate.value:.1f}" in shown
    assert all(note in shown for note in report.explanations() + report.caveats())


def test_a_report_names_who_beats_each_other_in_a_circle() -> None:
    report = play(["random", First(), Twin()], deals=4, progress=False)
    assert all(line.lottery is not None for line in report.agents)
    assert sum(line.lottery.value for line in report.agents if line.lottery) == pytest.approx(1)
    surely, never = Estimate(0.7, 0.6, 0.8), Estimate(0.3, 0.2, 0.4)
    circle = [("random", "first"), ("first", "twin"), ("twin", "random")]
    pairs = [
        replace(line, win_rate=surely if (line.agent, line.opponent) in circle else never) for line in report.pairs
    ]
    found = replace(report, pairs=pairs)
    assert len(found.cycles()) == 1 and set(pairwise(found.cycles()[0])) == set(circle)
    assert any("no order of strength" in note for note in found.caveats())
    assert not replace(report, pairs=[replace(line, win_rate=never) for line in report.pairs]).cycles()


def test_a_report_of_one_deal_has_no_interval_to_show() -> None:
    assert "(?)" in play(["random", First()], deals=1, progress=False)._repr_markdown_()
