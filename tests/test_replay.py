"""Replays: one file that needs nothing else, shows every step, and tells what agents thought where the record does."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
import time
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from montecristo_env import DamagedRecord, GameBatch, GameRecord, InvalidArgument, PublicView, Ruleset
from montecristo_env.agent import Evaluation, evaluate_position
from montecristo_env.render import Drawing
from montecristo_env.render.board import board_parts, draw_board
from montecristo_env.render.markup import to_svg
from montecristo_env.render.primitives import Group
from montecristo_env.replay import write_replay
from montecristo_env.web.move_log import display_names
from montecristo_env.web.replay_page import ReplayPage

ODD_NAMES = ["</script><b>&", "Ünal\x00\ud800", "{{data}}"]


class Thinker:
    """Likes the first legal action most, and expects little."""

    name = "thinker"

    def act(self, games: PublicView, rows: Any) -> Any:
        return games.action_mask(rows=rows).argmax(axis=1)

    def evaluate(self, games: PublicView, rows: Any) -> Evaluation:
        likely = games.action_mask(rows=rows).astype(np.float64)
        likely[np.arange(len(rows)), self.act(games, rows)] += 1
        return Evaluation(likely / likely.sum(axis=1, keepdims=True), np.full(len(rows), -0.25))


@cache
def _played(n: int, limit: int | None) -> GameRecord:
    games = GameBatch(1, n, seed=n, ruleset=Ruleset(target=12))
    record = GameRecord.record(games, players=ODD_NAMES[:n] if n == 3 else None)
    games.play_random(limit or 10_000)
    return record


def played(n: int = 2, limit: int | None = None) -> GameRecord:
    return copy.deepcopy(_played(n, limit))


def shown(data: dict[str, Any], step: int) -> dict[str, str]:
    """The parts of the board at a step, put together as the page does."""
    indices = data["steps"][step]["parts"]
    parts = ["".join(data["lines"][line] for line in data["parts"][index]) for index in indices]
    return dict(zip(data["places"], parts, strict=True))


def shown_data(record: GameRecord) -> dict[str, Any]:
    """All that a page with this game alone holds of it."""
    page = ReplayPage()
    page.add(record)
    data = page.data()
    return data | data["games"][0]


def data_of(html: str) -> Any:
    (text,) = re.findall(r'<script id="replays" type="application/json">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


# --- The data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4])
def test_every_step_shows_the_board_that_the_other_outputs_draw(n: int) -> None:
    record = played(n, 120)
    data = json.loads(json.dumps(shown_data(record)))
    positions = list(record.replay())
    assert len(data["steps"]) == len(positions)
    for step in range(0, len(positions), 3):
        rules, state = record.ruleset, positions[step].games.public_state()
        names = display_names(record.players)
        whole = to_svg(draw_board(state, names=names, target=rules.target)).replace("\n", "")
        for name, part in shown(data, step).items():
            assert part.removesuffix("</g>") in whole, name  # the castle goes on with its dungeons
        assert data["steps"][step]["scores"] == state["scores"]
        assert data["steps"][step]["player"] == state["current_player"]


def test_the_parts_are_the_whole_board_but_for_its_header() -> None:
    for n in (2, 3, 4):
        state = GameBatch(1, n, seed=0).public_state()
        (whole,) = draw_board(state).items
        assert isinstance(whole, Group)
        _, header, *rest = whole.items
        drawn = [shape for part in board_parts(state).values() for shape in Drawing(0, 0, "", (part.draw(),)).shapes()]
        expected = list(Drawing(0, 0, "", tuple(rest)).shapes())
        assert header.box[3] < 60
        assert sorted(map(repr, drawn)) == sorted(map(repr, expected))


def test_moves_are_told_in_order_with_forced_ones_and_chance() -> None:
    record = played(3)
    data = shown_data(record)
    told = [entry for entry in data["moves"] if entry["kind"] != "score"]
    assert len(told) == len(record.events)
    for entry, event in zip(told, record.events, strict=True):
        expected = "chance" if "move" not in event else "forced" if event.get("forced") else "move"
        assert entry["kind"] == expected
        assert entry["player"] == event.get("player", -1)
    assert [entry["step"] for entry in data["moves"]] == sorted(entry["step"] for entry in data["moves"])
    gains = [entry for entry in data["moves"] if entry["kind"] == "score"]
    changes = [i for i in range(1, len(data["steps"])) if data["steps"][i]["scores"] != data["steps"][i - 1]["scores"]]
    assert [entry["step"] for entry in gains] == changes != []


def test_players_who_share_a_name_are_told_apart() -> None:
    assert display_names(["greedy", "human", "greedy"]) == ["Red greedy", "human", "Green greedy"]
    assert display_names(["x" * 40, "x" * 40])[0].startswith("Red x")


# --- The file --------------------------------------------------------------------------------------------------------


def test_the_file_needs_nothing_else_and_is_small(tmp_path: Path) -> None:
    write_replay(played(3), tmp_path / "game.html")
    html = (tmp_path / "game.html").read_text(encoding="utf-8")
    assert len(html) < 1_000_000
    assert "default-src 'none'" in html
    addresses = set(re.findall(r"https?://[^\"'\s]*", html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of SVG, which nobody visits
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?!data:)", html)


def test_no_name_can_break_the_page(tmp_path: Path) -> None:
    record = played(3)
    page = ReplayPage()
    page.add(record)
    html = page.html()
    assert html.count("</script>") == 2  # those of the page
    assert "<b>" not in html
    (data,) = data_of(html)["games"]
    assert [player["name"] for player in data["players"]] == ["</script><b>&", "Ünal", "{{data}}"]


def test_several_records_share_a_page(tmp_path: Path) -> None:
    write_replay([played(2), played(4)], tmp_path / "games.html")
    replays = data_of((tmp_path / "games.html").read_text(encoding="utf-8"))["games"]
    assert [len(data["players"]) for data in replays] == [2, 4]
    with pytest.raises(InvalidArgument, match="at least one record"):
        write_replay([], tmp_path / "none.html")


def test_fifty_games_share_what_they_have_in_common(tmp_path: Path) -> None:
    records = []
    for seed in range(50):
        games = GameBatch(1, 3, seed=seed)
        records.append(GameRecord.record(games))
        games.play_random(10_000)
    start = time.process_time()
    write_replay(records, tmp_path / "games.html")
    assert time.process_time() - start < 30  # less than 10 on a quiet machine
    write_replay(records[:1], tmp_path / "game.html")
    assert (tmp_path / "games.html").stat().st_size < 10_000_000
    assert len(data_of((tmp_path / "game.html").read_text(encoding="utf-8"))["games"]) == 1


def test_an_unfinished_game_can_be_shown(tmp_path: Path) -> None:
    record = played(2, 10)
    assert record.result is None
    write_replay(record, tmp_path / "game.html")
    assert len(data_of((tmp_path / "game.html").read_text())["games"][0]["steps"]) > 10


def test_the_replay_does_not_depend_on_what_is_hidden() -> None:
    games = GameBatch(1, 3, seed=7)
    record = GameRecord.record(games)
    games.play_random(60)
    other = copy.deepcopy(record)
    other.seed = 1
    data = json.dumps(shown_data(record))
    assert data == json.dumps(shown_data(other))
    assert str(record.seed) not in data


# --- What agents think -----------------------------------------------------------------------------------------------


def test_a_record_can_be_annotated_by_an_agent_and_stays_sound() -> None:
    record = played(2)
    plain = record.to_json()
    record.annotate(Thinker())
    again = GameRecord.from_json(record.to_json())
    assert again == record
    for event in record.events:
        assert ("probabilities" in event) == ("move" in event and not event.get("forced"))
        if "probabilities" in event:
            assert sum(event["probabilities"].values()) == pytest.approx(1, abs=0.01)
            assert event["move"] in event["probabilities"]
            assert event["value"] == -0.25
    assert record.evaluator == "thinker"
    record.evaluator = None
    for event in record.events:
        event.pop("probabilities", None)
        event.pop("value", None)
    assert record.to_json() == plain


def test_what_an_agent_thinks_is_shown_at_the_decision() -> None:
    record = played(2)
    assert not [step for step in shown_data(record)["steps"] if "opinion" in step]
    record.annotate(Thinker())
    data = shown_data(record)
    for step, position in zip(data["steps"], record.replay(), strict=True):
        legal = position.games.legal_actions(0)
        assert ("opinion" in step) == (len(legal) > 1)
        if "opinion" in step:
            words = [choice["words"] for choice in step["opinion"]["choices"]]
            chances = [choice["probability"] for choice in step["opinion"]["choices"]]
            assert len(set(words)) == len(legal)
            assert chances == sorted(chances, reverse=True)
            assert step["opinion"]["moved"] in words
            assert step["opinion"]["value"] == -0.25


def test_an_agent_that_only_acts_is_asked_several_times() -> None:
    games = GameBatch(1, 2, seed=0)
    games.play_random(20)
    before = games.states.tobytes()

    class Fickle:
        name = "fickle"
        asked = 0

        def act(self, games: PublicView, rows: Any) -> Any:
            self.asked += 1
            legal = np.flatnonzero(games.action_mask(rows=rows)[0])
            return legal[[int(self.asked == 1)]]

    thought = evaluate_position(Fickle(), games)
    first, second = games.legal_actions(0)[:2]
    assert thought.value is None
    assert thought.probabilities[first] == pytest.approx(0.8)
    assert thought.probabilities[second] == pytest.approx(0.2)
    assert games.states.tobytes() == before


@pytest.mark.parametrize(
    "annotation",
    [
        {"probabilities": []},
        {"probabilities": {"fly": 1.0}},
        {"probabilities": {"return chest": 1.0, "enter A": 0.0, "deal R1": 0.0}},
        {"probabilities": {"MOVE": 1.5}},
        {"probabilities": {"MOVE": -0.1}},
        {"probabilities": {"MOVE": "much"}},
        {"probabilities": {"MOVE": True}},
        {"probabilities": {"MOVE": float("nan")}},
        {"probabilities": None},
        {"value": "high"},
        {"value": None},
        {"value": float("inf")},
        {"value": 10**400},
        {"probabilities": {"MOVE": 10**400}},
    ],
)
def test_wrong_annotations_are_refused_and_named(annotation: dict[str, Any]) -> None:
    record = played(2, 30)
    index = next(i for i, e in enumerate(record.events) if "move" in e and not e.get("forced") and i > 10)
    event = record.events[index]
    event |= json.loads(json.dumps(annotation).replace("MOVE", event["move"]))
    with pytest.raises(DamagedRecord, match=f"event {index}: (probabilities|value) must be"):
        GameRecord.from_json(record.to_json())


def test_probabilities_above_one_in_all_are_refused() -> None:
    record = played(2, 30)
    position, index = next((p, i) for p, i in decisions(record) if len(p.games.legal_actions(0)) > 2)
    legal = [str(action) for action in position.games.legal_actions(0)]
    record.events[index]["probabilities"] = dict.fromkeys(legal, 0.5)
    with pytest.raises(DamagedRecord, match="1 in all"):
        record.check()
    record.events[index]["probabilities"] = {legal[0]: 0.5}  # those of some actions are fine
    record.check()


def decisions(record: GameRecord) -> list[tuple[Any, int]]:
    positions = list(record.replay())
    return [
        (before, after.event) for before, after in pairwise(positions) if not record.events[after.event].get("forced")
    ]


# --- The command line ------------------------------------------------------------------------------------------------


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "montecristo_env.replay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_the_command_line_writes_a_page_beside_the_record(tmp_path: Path) -> None:
    played(2).save(tmp_path / "a.json")
    played(3).save(tmp_path / "b.json")
    done = run(tmp_path / "a.json", tmp_path / "b.json", "--annotate", "greedy")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "a.html")
    replays = data_of((tmp_path / "a.html").read_text(encoding="utf-8"))["games"]
    assert len(replays) == 2 and any("opinion" in step for step in replays[1]["steps"])


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    for path, reason in ((tmp_path / "bad.json", "not a game record"), (tmp_path / "none.json", "No such file")):
        done = run(path, "--output", tmp_path / "out.html")
        assert done.returncode == 2 and reason in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.html").exists()
