"""The comparison with other projects, as far as it needs no network."""

import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from montecristo_env import actions, observation

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def peers() -> Iterator[ModuleType]:
    pytest.importorskip("matplotlib")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("peers")


def row(project: str, game: str, median: float, **more: Any) -> dict[str, Any]:
    rate = {"median": median, "lowest": 0.8 * median, "highest": 1.3 * median}
    plain = {"interface": "AEC", "players": 2, "batch": 1, "threads": 1, "observation": 18, "actions": 9}
    return {"project": project, "game": game, **plain, **more, "rate": rate}


RESULTS: dict[str, Any] = {
    "machine": {"cpu": "A processor", "cores": 2, "load": 0.04, "python": "3.11.7"},
    "rounds": 3,
    "seconds": 0.5,
    "versions": {"montecristo-env": {"montecristo-env": "0.1.0"}, "PettingZoo classic": {"pettingzoo": "1.27.0"}},
    "rows": [
        row("montecristo-env", "Monte Cristo", 2_345_678.0, interface="GameBatch", batch=1024, threads=2),
        row("PettingZoo classic", "tictactoe_v3", 8152.0),
    ],
    "skipped": [{"what": "Pgx", "reason": "pip: ERROR: No matching distribution found for pgx==0"}],
}


def test_our_own_games_are_measured(peers: ModuleType) -> None:
    results = peers.measure(["montecristo"], rounds=1, seconds=0.02)
    assert not results["skipped"]
    found = {(row["interface"], row["players"], row["batch"], row["threads"]) for row in results["rows"]}
    assert found == {
        (interface, players, batch, threads)
        for interface, batch, threads in (
            ("AEC", 1, 1),
            ("VectorEnv", 256, 1),
            *(("GameBatch", 1024, n) for n in (1, 2)),
        )
        for players in (2, 4)
    }
    for line in results["rows"]:
        assert (line["observation"], line["actions"]) == (observation.SIZE, actions.COUNT)
        assert 0 < line["rate"]["lowest"] <= line["rate"]["median"] <= line["rate"]["highest"]
    json.dumps(results)


def test_the_page_has_every_figure_and_every_reason(peers: ModuleType, tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs" / "benchmarks.md", tmp_path)
    peers.write(tmp_path / "benchmarks.md", RESULTS)
    text = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert "| montecristo-env | Monte Cristo | GameBatch | 2 | 1024 | 2 | 18 | 9 | 2,350,000 |" in text
    assert "| PettingZoo classic | tictactoe_v3 | AEC | 2 | 1 | 1 | 18 | 9 | 8,150 | 6,520 to 10,600 |" in text
    assert "- Pgx: `pip: ERROR: No matching distribution found for pgx==0`" in text
    assert "A processor, 2 cores, of which other programs kept 0.0 busy" in text and "pettingzoo 1.27.0" in text
    assert "3 rounds of 0.5 s" in text
    assert (tmp_path / "images" / "peers.png").read_bytes().startswith(b"\x89PNG")


def test_the_terminal_tells_what_is_skipped(peers: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    peers.report(RESULTS)
    shown = capsys.readouterr().out
    assert "2,350,000" in shown and "skipped Pgx: pip: ERROR: No matching" in shown


def test_what_does_not_install_is_skipped(peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    monkeypatch.setattr(peers.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(peers.subprocess, "run", lambda *_, **__: Failed())
    skipped: list[dict[str, str]] = []
    assert peers.start(["rlcard"], skipped) == []
    assert skipped == [{"what": "RLCard", "reason": "pip: ERROR: no such package"}]


class Failed:
    returncode = 1
    stderr = "WARNING: a warning\nERROR: no such package\n\n[notice] a notice\n"


def test_what_does_not_import_is_skipped(peers: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "environment", lambda _: Path(sys.executable))
    skipped: list[dict[str, str]] = []
    assert peers.start(["catanatron"], skipped) == []
    assert skipped == [{"what": "Catanatron", "reason": "ModuleNotFoundError: No module named 'catanatron'"}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "0"], "--rounds must be at least 1"),
        (["--seconds", "0"], "--seconds must be more than 0"),
        (["--seconds", "nan"], "--seconds must be more than 0"),
        (["--only", "monopoly"], "invalid choice: 'monopoly'"),
        (["--read", "nowhere.json"], "there is no file nowhere.json"),
    ],
)
def test_bad_options(peers: ModuleType, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        peers.read_options(arguments)
    assert message in capsys.readouterr().err
