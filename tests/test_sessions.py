"""Tables: what can be done at them, what is refused, what is sent to a browser, and that nothing gets lost."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra `web` is not installed")
import uvicorn
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from montecristo_env import GameBatch, GameRecord, InvalidArgument, actions
from montecristo_env.agent import make_agent
from montecristo_env.core import batch
from montecristo_env.core.constants import Decision
from montecristo_env.errors import MonteCristoError
from montecristo_env.play import LONGEST_FRAME, configure, listen
from montecristo_env.render.board import draw_board
from montecristo_env.render.targets import target
from montecristo_env.ruleset import Ruleset
from montecristo_env.web.move_log import move_log
from montecristo_env.web.reasons import reasons
from montecristo_env.web.server import HINTS_AT_ONCE, LONGEST_MESSAGE, MOST_HINTS, make_app
from montecristo_env.web.sessions import MOST_TABLES, Refused, Session, SessionStore

ADDRESS = "http://localhost"
OURS = {"origin": ADDRESS}
PATIENCE = 300  # seconds: machines can be busy
HIDDEN = {"slot_card", "bag_order", "seed"}


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return loaded(tmp_path / "tables")


def loaded(folder: Path) -> SessionStore:
    """A store with the tables of a folder."""
    store = SessionStore(folder, ["greedy", "random"])
    store.load()
    return store


@pytest.fixture
def client(store: SessionStore) -> Iterator[TestClient]:
    with TestClient(make_app(store), ADDRESS) as client:
        yield client


def opened(store: SessionStore, *players: str, seed: int = 1) -> tuple[str, Session]:
    """A new table at which bots do not move by themselves."""
    identity = store.open_table(players, seed)
    table = store.tables[identity]
    table.pace = None
    return identity, table


@contextmanager
def connected(client: TestClient, identity: str, *tokens: str) -> Iterator[WebSocketTestSession]:
    """A page that shows a table and holds the seats of these tokens."""
    with client.websocket_connect(f"ws://localhost/tables/{identity}/socket", headers=OURS) as socket:
        socket.send_json({"do": "resume", "tokens": tokens})
        yield socket


def asked(socket: WebSocketTestSession, message: Any, kind: str) -> dict[str, Any]:
    """The first answer of this type to a message."""
    socket.send_text(message if isinstance(message, str) else json.dumps(message))
    return awaited(socket, kind)


def awaited(socket: WebSocketTestSession, kind: str) -> dict[str, Any]:
    while (answer := socket.receive_json())["type"] != kind:
        pass
    return dict(answer)


def refused(socket: WebSocketTestSession, message: Any) -> str:
    """The reason why a message is refused; empty if it is not."""
    socket.send_text(message if isinstance(message, str) else json.dumps(message))
    socket.send_json({"do": "the next thing"})
    reason = awaited(socket, "error")["message"]
    if "the next thing" in reason:
        return ""
    assert "the next thing" in awaited(socket, "error")["message"]
    return str(reason)


def play_on(table: Session, decisions: int, seed: int = 0) -> None:
    """Random moves of whoever is on turn."""
    rng = np.random.default_rng(seed)
    for _ in range(decisions):
        if table.turn >= 0:
            legal = table.games.legal_actions(0)
            table.move([table.turn], str(legal[rng.integers(len(legal))]), len(table.record.events))


# --- The board as a way to answer ------------------------------------------------------------------------------------


def test_every_action_has_a_place_on_the_board_or_declines_something() -> None:
    declining = {"stop placing", "stop reinforcing", "stop taking", "keep order"}
    met: set[str] = set()
    for n in (2, 3, 4):
        games = GameBatch(30, n, seed=n)
        for _ in range(250):
            for game in range(0, len(games), 3):
                state, legal = games.public_state(game), games.legal_actions(game)
                fresh = [action for action in legal if str(action) not in met]
                places = {group.target for group in draw_board(state).groups()} - {""} if fresh else set()
                for action in fresh:
                    place = target(action, state)
                    assert place in places if str(action) not in declining else place == "", str(action)
                    met.add(str(action))
            games.step(games.sample_actions())
            games.reset()
    missed = {str(actions.decode(code)) for code in range(actions.COUNT)} - met
    assert len(missed) < 15, missed  # marbles seldom lie that high
    assert all(move.startswith("marble") for move in missed), missed


# --- Play ------------------------------------------------------------------------------------------------------------


def test_a_person_plays_a_whole_game_against_bots_over_the_wire(client: TestClient, store: SessionStore) -> None:
    identity = store.open_table(["greedy", "human", "random"], 3)
    table = store.tables[identity]
    table.pace = 0.0
    with connected(client, identity) as socket:
        asked(socket, {"do": "sit", "seat": 1}, "seat")
        view: dict[str, Any] = {"player": 0}
        while view["player"] >= 0:
            view = awaited(socket, "table")
            if view["legal"] and view["at"] == len(table.record.events):
                socket.send_json({"do": "move", "action": view["legal"][0]["action"], "at": view["at"]})
    assert table.record.result is not None
    assert GameRecord.load(store.folder / f"{identity}.json").result == table.record.result
    assert {player for player, _ in table.moves} == {0, 1, 2}


def test_bots_play_each_other_while_somebody_watches(client: TestClient, store: SessionStore) -> None:
    identity, table = opened(store, "random", "greedy")
    with connected(client, identity) as socket:
        assert awaited(socket, "table")["you"] == []
        socket.send_json({"do": "pace", "seconds": 0.0})
        while awaited(socket, "table")["player"] >= 0:
            pass
    assert table.record.result is not None


def test_the_log_written_move_by_move_is_that_of_the_whole_game(store: SessionStore) -> None:
    for n in (2, 3, 4):
        _, table = opened(store, *["human"] * n, seed=n)
        play_on(table, 400)
        told = table.log
        moments = [(index, games.public_state()) for index, games in table.record.replay()]
        whole = move_log(moments, table.record.events, table.names, table.ruleset)
        assert told == list(chain.from_iterable(whole))
        assert {entry.kind for entry in told} == {"move", "forced", "chance", "score"}


def test_a_move_runs_the_rules_once_and_reads_its_message_once(
    client: TestClient, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity, table = opened(store, "human", "human")
    runs: list[str] = []
    texts: list[str] = []
    rules, loads = batch.proceed, json.loads
    monkeypatch.setattr("montecristo_env.record.batch.proceed", lambda *args: runs.append("proceed") or rules(*args))
    for name in ("step_games", "play_random"):
        monkeypatch.setattr(f"montecristo_env.core.batch.{name}", lambda *args, name=name: runs.append(name))
    with connected(client, identity, table.sit(0), table.sit(1)) as socket:
        view = awaited(socket, "table")
        for _ in range(20):
            move = {"do": "move", "action": view["legal"][-1]["action"], "at": view["at"]}
            before = sum("move" in event for event in table.record.events)
            runs.clear()
            with monkeypatch.context() as counting:
                counting.setattr(
                    "montecristo_env.web.server.json.loads", lambda text: texts.append(text) or loads(text)
                )
                socket.send_text(json.dumps(move))
                view = loads(socket.receive_text())
            assert texts.pop() == json.dumps(move) and texts == []
            made = sum("move" in event for event in table.record.events) - before
            assert runs == ["proceed"] * made and made > 0


def test_a_slow_disk_holds_up_its_own_table_alone(
    client: TestClient, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity, table = opened(store, "human", "human")
    other, _ = opened(store, "human", "human")
    may_write, written = threading.Event(), []

    def write(path: Path, content: bytes, **settings: Any) -> None:
        assert may_write.wait(PATIENCE)
        written.append(content)

    with connected(client, identity, table.sit(0), table.sit(1)) as socket, connected(client, other) as watcher:
        view = awaited(socket, "table")
        monkeypatch.setattr("montecristo_env.web.sessions.atomic_write", write)
        socket.send_json({"do": "move", "action": view["legal"][0]["action"], "at": view["at"]})
        assert "fly" in refused(watcher, {"do": "fly"})  # is answered meanwhile
        with connected(client, identity) as late:
            assert "fly" in refused(late, {"do": "fly"})  # no table is among what it gets before
            assert written == []
            may_write.set()
            assert awaited(late, "table")["at"] > view["at"]
        assert awaited(socket, "table")["at"] > view["at"]
    assert len(written) == 1


def test_what_is_new_begins_after_ones_last_move(store: SessionStore) -> None:
    _, table = opened(store, "human", "human", "human")
    play_on(table, 60)
    for seat in range(3):
        view = table.view([seat])
        assert view["log"][view["since"] - 1]["player"] == seat
        assert not [e for e in view["log"][view["since"] :] if e["player"] == seat and e["kind"] == "move"]


def test_undo_takes_back_the_persons_last_decision(store: SessionStore) -> None:
    _, table = opened(store, "human", "greedy")
    assert not table.view([0])["can_undo"]
    while [player for player, _ in table.moves].count(0) < 5 or table.turn != 0:
        table.step(table.ask_bot()()) if table.turn else play_on(table, 1)
    before = table.moves
    assert table.view([0])["can_undo"]
    table.undo([0])
    assert table.turn == 0
    assert table.moves == before[: len(table.moves)] and before[len(table.moves)][0] == 0
    assert 0 not in [player for player, _ in before[len(table.moves) + 1 :]]


def test_undo_is_for_those_who_play_against_bots_alone(store: SessionStore) -> None:
    for players, seats in ((("human", "human", "greedy"), [0]), (("human", "greedy"), []), (("greedy", "random"), [])):
        _, table = opened(store, *players)
        play_on(table, 40)
        assert {player for player, _ in table.moves} == set(range(len(players)))
        before = list(table.record.events)
        assert not table.view(seats)["can_undo"]
        with pytest.raises(Refused, match="against bots alone"):
            table.undo(seats)
        assert table.record.events == before


def test_a_hint_says_what_an_agent_would_do_and_how_sure_it_is(client: TestClient, store: SessionStore) -> None:
    identity, table = opened(store, "human", "greedy")
    while table.turn != 0:
        table.step(table.ask_bot()())
    with connected(client, identity) as socket:
        before = table.games.states.tobytes()
        hint = asked(socket, {"do": "hint", "agent": "greedy"}, "hint")
    assert hint["agent"] == "greedy" and hint["value"] is None
    assert hint["choices"][0]["probability"] == 1
    assert sum(choice["probability"] for choice in hint["choices"]) == pytest.approx(1)
    assert {choice["action"] for choice in hint["choices"]} == {str(a) for a in table.games.legal_actions(0)}
    assert len(hint["choices"]) == len(table.games.legal_actions(0))
    assert table.games.states.tobytes() == before


def test_an_agent_that_fails_is_named_and_the_server_goes_on(client: TestClient, store: SessionStore) -> None:
    class Broken:
        name = "broken"

        def act(self, games: Any, rows: Any) -> Any:
            raise RuntimeError("no idea")

    identity, table = opened(store, "random", "greedy")
    table.agents = [Broken, Broken]
    store._made["broken"] = Broken()
    with connected(client, identity) as socket:
        assert "no idea" in asked(socket, {"do": "hint", "agent": "broken"}, "error")["message"]
        view = asked(socket, {"do": "pace", "seconds": 0.2}, "table")
        while not view["problem"]:
            view = awaited(socket, "table")
        assert re.search("could not move: no idea", view["problem"])
    assert table.moves == []


class Slow:
    """Thinks until it may stop."""

    name = "slow"

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.may_stop = threading.Event()

    def act(self, games: Any, rows: Any) -> Any:
        self.begun.release()
        self.may_stop.wait()
        return games.action_mask(rows=rows).argmax(axis=1)


@pytest.fixture
def slow(store: SessionStore) -> Iterator[Slow]:
    """An agent of the store; it stops thinking at the end of the test, if not before."""
    slow = store._made["slow"] = Slow()
    yield slow
    slow.may_stop.set()


def test_bots_move_while_as_many_hints_as_there_can_be_are_thought_about(
    client: TestClient, store: SessionStore, slow: Slow
) -> None:
    watched, _ = opened(store, "human", "human")
    played, table = opened(store, "random", "greedy")
    with ExitStack() as stack:
        for _ in range(MOST_HINTS):
            socket = stack.enter_context(connected(client, watched))
            socket.send_json({"do": "hint", "agent": "slow"})
            assert "one at a time" in refused(socket, {"do": "hint", "agent": "slow"})
        for _ in range(HINTS_AT_ONCE):
            slow.begun.acquire()
        with connected(client, watched) as late, connected(client, played) as socket:
            assert f"{MOST_HINTS} hints are being thought" in refused(late, {"do": "hint", "agent": "greedy"})
            socket.send_json({"do": "pace", "seconds": 0.0})
            while awaited(socket, "table")["player"] >= 0:
                pass
            assert table.record.result is not None and not slow.begun.acquire(blocking=False)
            slow.may_stop.set()
    with connected(client, watched) as socket:  # those who went away have left no request behind
        assert asked(socket, {"do": "hint", "agent": "greedy"}, "hint")["agent"] == "greedy"


def test_a_page_gets_one_hint_at_a_time_and_can_play_meanwhile(
    client: TestClient, store: SessionStore, slow: Slow
) -> None:
    identity, table = opened(store, "human", "human")
    tokens = [table.sit(0), table.sit(1)]
    with connected(client, identity, *tokens) as socket:
        socket.send_json({"do": "hint", "agent": "slow"})
        assert "one at a time" in refused(socket, {"do": "hint", "agent": "greedy"})
        view = table.view([0, 1])
        at = view["at"]
        socket.send_json({"do": "move", "action": view["legal"][0]["action"], "at": at})
        while awaited(socket, "table")["at"] == at:
            pass
        slow.may_stop.set()
        assert awaited(socket, "hint")["at"] == at, "it tells of which moment it is"
        assert asked(socket, {"do": "hint", "agent": "greedy"}, "hint")["at"] > at


# --- Seats -----------------------------------------------------------------------------------------------------------


def test_a_seat_is_held_by_its_token_until_it_is_left(client: TestClient, store: SessionStore) -> None:
    identity, table = opened(store, "human", "human")
    with connected(client, identity) as socket, connected(client, identity) as other:
        token = asked(socket, {"do": "sit", "seat": 0}, "seat")["token"]
        assert len(token) >= 32
        assert "taken" in refused(other, {"do": "sit", "seat": 0})
        for wrong in ("", token[:-1], token + "A", "\ud800", table.holders[0]):
            assert "holds no seat" in refused(other, {"do": "resume", "tokens": [wrong]})
    with connected(client, identity, token) as socket:
        assert awaited(socket, "table")["you"] == [0]
        with connected(client, identity, token) as other:  # the same person in another window
            assert awaited(other, "table")["you"] == [0]
            other.send_json({"do": "leave"})
            while awaited(socket, "table")["you"]:
                pass
        assert "holds no seat" in refused(socket, {"do": "resume", "tokens": [token]})
    assert table.holders == [None, None]


def test_tokens_are_neither_repeated_nor_kept_on_disk(store: SessionStore) -> None:
    identity, table = opened(store, "human", "human")
    tokens = {table.sit(0), table.sit(1)}
    store.save(identity, table)()
    kept = "".join(path.read_text() for path in store.folder.iterdir())
    assert len(tokens) == 2
    assert not [token for token in tokens if token in kept or token in json.dumps(table.view([0, 1]))]


def test_people_have_names_of_their_own_and_they_are_kept(client: TestClient, store: SessionStore) -> None:
    identity, table = opened(store, "human", "human", "greedy")
    play_on(table, 30)
    store.save(identity, table)()
    moves = table.moves
    with connected(client, identity) as socket:
        asked(socket, {"do": "sit", "seat": 1, "name": "  Ann   of Arles "}, "seat")
        assert "name must be given as str" in refused(socket, {"do": "sit", "seat": 0, "name": 7})
    assert table.names == ["human", "Ann of Arles", "greedy"] and table.moves == moves
    again = loaded(store.folder).tables[identity]
    assert again.names == table.names and again.log == table.log
    assert table.public_record().players == table.names
    table.leave(1)
    assert table.names == ["Red human", "Blue human", "greedy"]


def test_a_table_is_deleted_by_those_who_sit_there_or_when_nobody_does(client: TestClient, store: SessionStore) -> None:
    taken, table = opened(store, "human", "human")
    free, _ = opened(store, "human", "greedy")
    token = table.sit(0)
    with connected(client, free) as socket:
        awaited(socket, "table")
        answer = client.request("DELETE", f"/tables/{free}", json={"tokens": []}, headers=OURS)
        assert answer.status_code == 200
        assert "deleted" in awaited(socket, "gone")["message"]
    for tokens in ([], ["x"], [7]):
        answer = client.request("DELETE", f"/tables/{taken}", json={"tokens": tokens}, headers=OURS)
        assert answer.status_code == 400 and "sits at this table" in answer.json()["error"]
    assert client.request("DELETE", f"/tables/{taken}", json={"tokens": [token]}).status_code == 403  # no origin
    assert list(store.tables) == [taken]
    assert client.request("DELETE", f"/tables/{taken}", json={"tokens": [token]}, headers=OURS).status_code == 200
    assert store.tables == {} and files(store) == {}
    assert client.request("DELETE", f"/tables/{taken}", json={"tokens": []}, headers=OURS).status_code == 400


def test_a_rematch_is_for_those_who_sat_there_once_the_game_is_over(client: TestClient, store: SessionStore) -> None:
    identity, table = opened(store, "human", "random")
    token = table.sit(0)
    with connected(client, identity, token) as socket, connected(client, identity) as watcher:
        assert "when the game is over" in refused(socket, {"do": "rematch"})
        play_on(table, 2000)
        assert "only those who sit" in refused(watcher, {"do": "rematch"})
        view = asked(socket, {"do": "rematch"}, "table")
        while not view["next_table"]:
            view = awaited(socket, "table")
        asked(socket, {"do": "rematch"}, "table")
    assert len(store.tables) == 2 and store.tables[view["next_table"]].players == ["human", "random"]


def test_points_of_scoring_rounds_and_bonuses_add_up(store: SessionStore) -> None:
    for n in (2, 4):
        _, table = opened(store, *["human"] * n, seed=n)
        play_on(table, 2000)
        gains = np.array([scoring["gains"] for scoring in table.scorings])
        assert gains.sum(axis=0).tolist() == table.games.public_state()["scores"]
        assert {scoring["bonus"] for scoring in table.scorings} == {True, False}
        assert all(sum(s["gains"]) == 2 for s in table.scorings if s["bonus"])


def test_the_winner_is_spoken_to(store: SessionStore) -> None:
    _, table = opened(store, "human", "human")
    play_on(table, 2000)
    winners = table.games.public_state()["winners"]
    for seat in range(2):
        title = table.view([seat])["title"]
        assert title.startswith("You win with" if winners == [seat] else "You and" if seat in winners else "")
        assert ("You" in title) == (seat in winners)
    assert "You" not in table.view()["title"] and "You" not in table.view([0, 1])["title"]


def test_reasons_are_given_for_what_is_not_legal_and_prices_are_those_of_the_rules() -> None:
    met: set[str] = set()
    for n in (2, 3, 4):
        games = GameBatch(1, n, seed=n)
        for _ in range(1500):
            state, legal = games.public_state(), games.legal_actions(0)
            places = {target(action, state) for action in legal}
            found = reasons(games)
            drawn = {group.target for group in draw_board(state).groups()}
            assert not places & set(found) and set(found) <= drawn
            for place, reason in found.items():
                met.add(re.sub(r"\d+|gold|ruby|sapphire|emerald|diamond", "X", reason))
                if price := re.fullmatch(r"needs (\d) \w+ bags?; you have (\d+)", reason):
                    assert int(price[2]) < int(price[1]) == int(place[-1])
            if state["phase"] == "take":  # every token that is there can be taken, or it is said why not
                letter = "ABCDEF"[state["gather_dungeon"]]
                tokens = {f"token-{letter}-{token}" for token in state["dungeons"][state["gather_dungeon"]]["tokens"]}
                assert tokens == {place for place in places | set(found) if place.startswith("token")}
            games.step(games.sample_actions())
            games.reset(games.over.nonzero()[0])
    assert len(met) >= 10, met


# --- Nothing gets lost -----------------------------------------------------------------------------------------------


def test_tables_survive_a_restart_to_the_last_byte(store: SessionStore) -> None:
    identity, table = opened(store, "human", "greedy", "human")
    token = table.sit(2)
    play_on(table, 70)
    store.save(identity, table)()
    restarted = loaded(store.folder)
    again = restarted.tables[identity]
    assert restarted.problems == []
    assert again.view([2]) == table.view([2])
    assert again.seat_of(token) == 2 and again.pace is None
    names = [name for name in table.games.states.dtype.names or () if name not in ("play_key", "bytes", "scratch")]
    for name in names:  # hidden things, too: the game goes on as it would have
        assert again.games.states[name].tobytes() == table.games.states[name].tobytes(), name


def test_every_move_is_on_disk_before_anybody_sees_it(client: TestClient, store: SessionStore) -> None:
    identity, _ = opened(store, "human", "human")
    with connected(client, identity) as socket:
        for seat in (0, 1):
            asked(socket, {"do": "sit", "seat": seat}, "seat")
        view = awaited(socket, "table")
        while view["you"] != [0, 1]:
            view = awaited(socket, "table")
        for _ in range(5):
            at = view["at"]
            socket.send_json({"do": "move", "action": view["legal"][0]["action"], "at": at})
            while view["at"] == at:
                view = awaited(socket, "table")
            stored = GameRecord.load(store.folder / f"{identity}.json")
            assert len(stored.events) >= view["at"]


def test_only_what_changed_is_sent_and_it_adds_up(client: TestClient, store: SessionStore) -> None:
    identity, table = opened(store, "human", "greedy")
    token = table.sit(0)
    parts: dict[str, str] = {}
    log: list[Any] = []
    sent = []
    undone = False
    with connected(client, identity, token) as socket:
        socket.send_json({"do": "pace", "seconds": 0.0})
        while True:
            view = awaited(socket, "table")
            parts |= view["parts"]
            log = log[: view["log_from"]] + view["log"]
            sent.append(len(view["parts"]))
            if not view["legal"] or view["at"] != len(table.record.events):
                continue
            if len(table.moves) > 40:
                break
            if len(table.moves) > 20 and not undone:
                undone = True
                socket.send_json({"do": "undo"})
            else:
                socket.send_json({"do": "move", "action": view["legal"][-1]["action"], "at": view["at"]})
    whole = table.view([0])
    assert undone
    assert parts == whole["parts"]
    assert log == whole["log"]
    assert np.mean(sent) < len(parts) / 2


def test_a_full_disk_is_told_and_the_game_goes_on(client: TestClient, store: SessionStore, monkeypatch: Any) -> None:
    identity, table = opened(store, "human", "human")
    tokens = [table.sit(0), table.sit(1)]
    before = files(store)

    def fail(*args: Any, **settings: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("montecristo_env.web.sessions.atomic_write", fail)
    with connected(client, identity, *tokens) as socket:
        view = awaited(socket, "table")
        for _ in range(2):
            move = {"do": "move", "action": view["legal"][0]["action"], "at": view["at"]}
            view = asked(socket, move, "table")
            assert "could not be saved: no space left" in view["problem"]
    answer = client.post("/tables", json={"players": ["human", "greedy"]}, headers=OURS)
    assert answer.status_code == 500 and "no space left" in answer.json()["error"]
    assert len(table.moves) == 2 and list(store.tables) == [identity] and files(store) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text("{"),
        lambda path: path.write_bytes(b"\xff\xfe"),
        lambda path: path.with_suffix(".seats").unlink(),
        lambda path: path.with_suffix(".seats").write_text("[]"),
        lambda path: path.with_suffix(".seats").write_text(
            '{"players": ["human", "nobody"], "holders": [], "pace": 0}'
        ),
        lambda path: path.with_suffix(".seats").write_text(
            '{"players": ["human", "greedy"], "holders": [], "pace": 0}'
        ),
        lambda path: path.write_text(re.sub(r'"seed": \d+', '"seed": null', path.read_text())),
        lambda path: path.write_text(re.sub(r'"seed": \d+', '"seed": 12345', path.read_text())),
    ],
)
def test_a_damaged_table_is_left_alone_and_named(store: SessionStore, damage: Any) -> None:
    good, _ = opened(store, "human", "greedy")
    bad, table = opened(store, "human", "greedy")
    play_on(table, 20)
    store.save(bad, table)()
    damage(store.folder / f"{bad}.json")
    left = {path: path.read_bytes() for path in store.folder.iterdir()}
    restarted = loaded(store.folder)
    assert list(restarted.tables) == [good]
    assert len(restarted.problems) == 1 and f"{bad}.json" in restarted.problems[0]
    assert {path: path.read_bytes() for path in store.folder.iterdir()} == left


def test_no_change_of_a_value_in_a_saved_table_stops_the_server_or_goes_unnamed(store: SessionStore) -> None:
    identity, table = opened(store, "human", "greedy")
    token = table.sit(0)
    play_on(table, 12)
    store.save(identity, table)()
    path = store.folder / f"{identity}.json"
    rng = np.random.default_rng(0)
    for file in (path, path.with_suffix(".seats")):
        sound = file.read_text()
        document = json.loads(sound)
        for place in sorted(places_in(document), key=str):
            for change in rng.choice(len(CHANGES), 4, replace=False) if len(place) > 1 else range(len(CHANGES)):
                file.write_text(changed(sound, place, CHANGES[change]))
                with suppress(MonteCristoError):  # the rest may be as good as before
                    again = store._restored(path)
                    assert again.moves == table.moves and again.view([0])["you"] == [0], (place, CHANGES[change])
                    assert again.holds(0, token) == (again.holders[0] is not None), (place, CHANGES[change])
        file.write_text(sound)
    assert store._restored(path).view([0]) == table.view([0])


CHANGES = [
    *("null", "true", "false", "-1", "0", "1.5", "1" + "0" * 400, "1e400", "NaN", "-Infinity", '""', '"x"'),
    *('"\\ud800"', '"\\u0000"', "[]", "{}", "[[1]]", '[{"x": [null]}]', '{"move": 1}', "REMOVED"),
    "[" * 900 + "]" * 900,
    "[" * 100_000 + "]" * 100_000,
    "1" * 5000,
]
"""What a value in a saved table may have become, as JSON."""


def places_in(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there are values in a JSON document."""
    yield place
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places_in(inner, (*place, key))


def changed(text: str, place: tuple[Any, ...], change: str) -> str:
    """A JSON document with one value changed."""
    if not place:
        return change
    document = value = json.loads(text)
    for key in place[:-1]:
        value = value[key]
    if change == "REMOVED":
        del value[place[-1]]
    else:
        value[place[-1]] = "THE CHANGE"
    return json.dumps(document).replace('"THE CHANGE"', change)


def test_an_error_of_any_kind_in_one_table_leaves_the_others(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = sorted(opened(store, "human", "greedy")[0] for _ in range(2))
    restored = SessionStore._restored

    def fail(self: SessionStore, path: Path) -> Session:
        if path.stem == bad:
            raise RecursionError
        return restored(self, path)

    monkeypatch.setattr(SessionStore, "_restored", fail)
    again = loaded(store.folder)
    assert list(again.tables) == [good]
    assert again.problems == [f"{store.folder / bad}.json: RecursionError"]


def test_a_table_plays_by_the_rule_set_of_its_room_and_says_so(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, ["greedy"], Ruleset(target=30, refill="short"))
    _, table = opened(store, "human", "greedy")
    assert table.games.ruleset == store.ruleset
    assert table.view()["rules"] == "target=30,refill=short"
    assert [one.games.ruleset for one in loaded(tmp_path).tables.values()] == [store.ruleset]


@pytest.mark.skipif(os.name == "nt", reason="this system has other rights")
def test_files_of_tables_are_for_their_owner_alone(client: TestClient, store: SessionStore) -> None:
    identity, table = opened(store, "human", "human")
    with connected(client, identity) as socket:
        for seat in (0, 1):
            asked(socket, {"do": "sit", "seat": seat}, "seat")
        view = table.view([0, 1])
        socket.send_json({"do": "move", "action": view["legal"][0]["action"], "at": view["at"]})
        while awaited(socket, "table")["at"] == view["at"]:
            pass
    modes = {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in (store.folder, *store.folder.iterdir())}
    assert modes == {"": 0o700, ".json": 0o600, ".seats": 0o600}


def test_files_that_were_never_finished_are_removed_once_they_are_old(store: SessionStore) -> None:
    identity, _ = opened(store, "human", "greedy")
    left = [store.folder / f".{identity}.{kind}.0a1b2c3d.montecristo-tmp" for kind in ("json", "seats")]
    fresh = store.folder / f".{identity}.json.12345678.montecristo-tmp"
    others = [fresh, store.folder / ".hidden", store.folder / f"{identity}.txt"]
    for path in (*left, *others):
        path.touch()
        if path != others[0]:
            os.utime(path, (0, 0))
    before = files(store)
    loaded(store.folder)
    assert set(before) - set(files(store)) == {path.name for path in left}


# --- What is hidden --------------------------------------------------------------------------------------------------


def test_games_that_differ_only_in_what_is_hidden_look_the_same_on_the_wire(
    client: TestClient, store: SessionStore
) -> None:
    rng = np.random.default_rng(0)
    differing: set[str] = set()
    for n, decisions in ((2, 0), (2, 90), (3, 40), (4, 120)):
        identity, table = opened(store, *["human"] * n, seed=decisions)
        play_on(table, decisions)
        seat = max(table.turn, 0)
        token = table.sit(seat)
        first = everything_sent(client, identity, token)
        secret = table.games
        for _ in range(2 if decisions < 50 else 1):
            table.games = secret.resample_hidden(rng)
            table.record = copy.deepcopy(table.record)
            table.record.seed = table.seed = int(table.games.seeds[0])
            differing |= {name for name in HIDDEN if (table.games.states[name] != secret.states[name]).any()}
            assert everything_sent(client, identity, token) == first
        assert str(table.record.seed) not in first
        assert identity in first  # so that something would be found
    assert differing == HIDDEN


def everything_sent(client: TestClient, identity: str, token: str) -> str:
    """All that a browser can get about a table."""
    pages = [
        client.get(f"/tables{path}").text for path in ("", f"/{identity}", f"/{identity}/record", f"/{identity}/replay")
    ]
    messages = []
    for tokens in ([], [token]):
        with connected(client, identity, *tokens) as socket:
            messages.append(awaited(socket, "table"))
            messages.append(asked(socket, {"do": "hint", "agent": "greedy"}, "hint"))
    return json.dumps([pages, messages])


# --- What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", "JSON object"),
        ("nonsense", "JSON object"),
        ("[1, 2]", "JSON object"),
        ("null", "JSON object"),
        ('"sit"', "JSON object"),
        ("[" * 4000, "JSON object"),
        ("{}", "do must be given"),
        ({"do": 7}, "do must be given"),
        ({"do": "fly"}, "nothing that can be done"),
        ({"do": "\ud800"}, "nothing that can be done"),
        ({"do": "sit"}, "seat must be given"),
        ({"do": "sit", "seat": "0"}, "seat must be given"),
        ({"do": "sit", "seat": True}, "seat must be given"),
        ({"do": "sit", "seat": -1}, "seat -1 is none for a person: these are 0"),
        ({"do": "sit", "seat": 1}, "seat 1 is none for a person"),
        ({"do": "sit", "seat": 10**30}, "is none for a person"),
        ({"do": "resume"}, "tokens must be given"),
        ({"do": "resume", "tokens": "x"}, "tokens must be given"),
        ({"do": "resume", "tokens": [7]}, "tokens must be texts"),
        ({"do": "resume", "tokens": ["x"]}, "holds no seat"),
        ({"do": "move", "action": "enter A", "at": 0}, "not your turn"),
        ({"do": "move", "action": "enter A"}, "at must be given"),
        ({"do": "move", "action": 3, "at": 0}, "action must be given"),
        ({"do": "undo"}, "against bots alone"),
        ({"do": "hint", "agent": "mcts"}, "no agent here is called 'mcts': there are greedy, random"),
        ({"do": "hint", "agent": "policy:/etc/passwd"}, "no agent here"),
        ({"do": "hint", "agent": "human"}, "no agent here"),
        ({"do": "hint"}, "agent must be given"),
        ({"do": "pace", "seconds": 0}, "only those who sit"),
        ({"do": "pace", "seconds": "fast"}, "seconds must be given"),
        ({"do": "move", "action": "x" * LONGEST_MESSAGE, "at": 0}, f"may have {LONGEST_MESSAGE} characters"),
    ],
)
def test_a_bad_message_gets_a_reason_and_changes_nothing(
    client: TestClient, store: SessionStore, message: Any, reason: str
) -> None:
    identity, table = opened(store, "human", "greedy", seed=5)
    before = (table.games.states.tobytes(), list(table.holders), table.pace, files(store))
    with connected(client, identity) as socket:
        assert reason in refused(socket, message)
        assert reason in refused(socket, message), "the connection lives on"
    assert (table.games.states.tobytes(), list(table.holders), table.pace, files(store)) == before


def files(store: SessionStore) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.folder.iterdir()}


def test_bytes_are_refused(client: TestClient, store: SessionStore) -> None:
    identity, _ = opened(store, "human", "greedy")
    with connected(client, identity) as socket:
        socket.send_bytes(b"\x00\xff")
        assert "JSON object" in awaited(socket, "error")["message"]


def test_moves_that_are_illegal_late_or_not_ones_own_are_refused(client: TestClient, store: SessionStore) -> None:
    identity, table = opened(store, "human", "human", seed=5)
    with connected(client, identity) as socket, connected(client, identity) as other:
        asked(socket, {"do": "sit", "seat": table.turn}, "seat")
        asked(other, {"do": "sit", "seat": 1 - table.turn}, "seat")
        at, legal = len(table.record.events), [str(action) for action in table.games.legal_actions(0)]
        before = table.games.states.tobytes(), files(store)
        for action in ("return chest", "", "deal Z9", "ENTER A", "../../etc/passwd"):
            answer = refused(socket, {"do": "move", "action": action, "at": at})
            assert "is not legal now: allowed are" in answer and legal[0] in answer
        late = {"do": "move", "action": legal[0], "at": at - 1}
        assert "has gone on" in refused(socket, late)
        assert "must decide" in refused(other, late | {"at": at})
        assert "pace must be one of" in refused(socket, {"do": "pace", "seconds": 0.3})
        assert (table.games.states.tobytes(), files(store)) == before
        twice = json.dumps({"do": "move", "action": legal[0], "at": at})
        socket.send_text(twice)
        assert "gone on" in refused(socket, twice) or table.turn < 0
    assert len(table.moves) == 1


def test_a_game_that_is_over_takes_no_moves_and_gives_no_hints(client: TestClient, store: SessionStore) -> None:
    identity, table = opened(store, "human", "human")
    play_on(table, 2000)
    assert table.games.states["decision"][0] == Decision.OVER
    with connected(client, identity) as socket:
        move = {"do": "move", "action": "enter A", "at": len(table.record.events)}
        assert "over" in refused(socket, move)
        assert "over" in refused(socket, {"do": "hint", "agent": "greedy"})


BAD_SEEDS = (b"-1", b"0.5", b"true", b'"7"', b"[7]", b"9007199254740992")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "JSON object"),
        (b"\xff\xfe", "JSON object"),
        (b"[]", "JSON object"),
        (b'{"players": "human"}', "players must be given as list"),
        (b'{"players": [1, 2]}', "list of names"),
        (b'{"players": ["human"]}', "2 to 4 players, not 1"),
        (b'{"players": ["human", "human", "human", "human", "human"]}', "2 to 4 players, not 5"),
        (b'{"players": ["human", "policy:/etc/passwd"]}', "no agent here is called 'policy:/etc/passwd'"),
        (b'{"players": ["human", "../x"]}', "no agent here"),
        *((b'{"players": ["human", "greedy"], "seed": ' + seed + b"}", "seed must be") for seed in BAD_SEEDS),
        (b'{"players": ["' + b"x" * 5000 + b'"]}', f"{LONGEST_MESSAGE} bytes"),
    ],
)
def test_a_bad_table_is_refused(client: TestClient, store: SessionStore, body: bytes, reason: str) -> None:
    answer = client.post("/tables", content=body, headers=OURS)
    assert answer.status_code == (413 if len(body) > LONGEST_MESSAGE else 400)
    assert reason in answer.json()["error"]
    assert store.tables == {} and files(store) == {}


def test_there_is_room_for_so_many_tables(client: TestClient, store: SessionStore) -> None:
    _, table = opened(store, "human", "greedy")
    store.tables |= {f"copy{number}": table for number in range(MOST_TABLES)}
    answer = client.post("/tables", json={"players": ["human", "greedy"]}, headers=OURS)
    assert answer.status_code == 400 and f"{MOST_TABLES} tables already" in answer.json()["error"]


@pytest.mark.parametrize("path", ["", "/record", "/replay"])
def test_unknown_tables_are_refused(client: TestClient, store: SessionStore, path: str) -> None:
    for identity in ("nothing", "..%2F..%2Fetc%2Fpasswd", "%00", "x" * 3000):
        answer = client.get(f"/tables/{identity}{path}")
        assert answer.status_code == 404 and answer.json()["error"]
    with connected(client, "nothing") as socket:
        assert "there is no table 'nothing'" in awaited(socket, "gone")["message"]
        with pytest.raises(WebSocketDisconnect):
            socket.receive_json()


@pytest.mark.parametrize(
    "path",
    [
        "/static/../store.py",
        "/static/..%2fsessions.py",
        "/static/%2e%2e/%2e%2e/record.py",
        "/static//etc/passwd",
        "/static/replay.html",
        "/static/",
        "/etc/passwd",
        "/tables/../static/x",
    ],
)
def test_paths_outside_are_refused(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404 and set(answer.json()) == {"error"}


def test_other_methods_are_refused(client: TestClient, store: SessionStore) -> None:
    identity, _ = opened(store, "human", "greedy")
    for method, path in (("PUT", "/tables"), ("DELETE", "/tables"), ("PUT", f"/tables/{identity}"), ("POST", "/")):
        assert client.request(method, path, headers=OURS).status_code == 405


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost:81",
        "null",
        "",
        "https://localhost.evil",
        "http://[",
        "http://[::1",
        None,
    ],
)
def test_other_origins_are_refused(client: TestClient, store: SessionStore, origin: str | None) -> None:
    identity, table = opened(store, "human", "greedy")
    headers = {} if origin is None else {"origin": origin}
    answer = client.post("/tables", json={"players": ["human", "greedy"]}, headers=headers)
    assert answer.status_code == 403 and answer.json()["error"]
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect(f"ws://localhost/tables/{identity}/socket", headers=headers),
    ):
        pass
    if origin is not None:
        assert client.get("/tables", headers=headers).status_code == 403
    assert list(store.tables) == [identity] and table.holders == [None, None]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "", "[::1", "127.0.0.1.evil"]
)
def test_other_names_that_lead_here_are_refused(client: TestClient, store: SessionStore, host: str) -> None:
    identity, _ = opened(store, "human", "greedy")
    headers = {"host": host, "origin": f"http://{host}"}
    for path in ("/", "/tables", f"/tables/{identity}"):
        assert client.get(path, headers=headers).status_code == 403
    assert client.post("/tables", json={"players": ["human", "greedy"]}, headers=headers).status_code == 403
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect(f"ws://localhost/tables/{identity}/socket", headers=headers),
    ):
        pass
    assert list(store.tables) == [identity]


def test_names_that_are_allowed_and_addresses_are_answered(store: SessionStore) -> None:
    with TestClient(make_app(store, ["Castle.local"])) as client:
        for host in ("localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "192.168.0.7", "castle.local:80"):
            assert client.get("/", headers={"host": host, "origin": f"http://{host}"}).status_code == 200


def test_pages_may_load_nothing_from_elsewhere(client: TestClient, store: SessionStore) -> None:
    identity, _ = opened(store, "human", "greedy")
    for path in ("/", f"/tables/{identity}", f"/tables/{identity}/replay", "/static/table.js", "/tables"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


@contextmanager
def serving(store: SessionStore) -> Iterator[str]:
    """A real server in a thread; its host and port."""
    server = uvicorn.Server(configure(store))
    listening = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"  # whoever comes early waits
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


@contextmanager
def joined(host: str, identity: str) -> Iterator[ClientConnection]:
    """A page that shows a table of a real server."""
    address, origin = f"ws://{host}/tables/{identity}/socket", Origin(f"http://{host}")
    with connect(address, origin=origin, open_timeout=PATIENCE) as page:
        page.send('{"do": "resume", "tokens": []}')
        yield page


def awaited_frames(page: ClientConnection) -> list[Any]:
    """All that comes until the connection ends, which raises."""
    return [page.recv(PATIENCE) for _ in range(1000)]


def test_a_frame_that_is_far_too_long_ends_only_its_own_connection(store: SessionStore) -> None:
    identity, table = opened(store, "human", "greedy")
    with serving(store) as host, joined(host, identity) as bad, joined(host, identity) as good:
        bad.send("x" * (LONGEST_FRAME + 1))
        with pytest.raises(ConnectionClosed) as closed:
            awaited_frames(bad)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
        assert json.loads(good.recv(PATIENCE))["type"] == "table"
    assert table.moves == []


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: HOST\r\nX-Slow: ",
        b"POST /tables HTTP/1.1\r\nHost: HOST\r\nOrigin: http://HOST\r\nContent-Length: 100\r\n\r\n{",
        b"GET /missing HTTP/1.1\r\nHost: HOST\r\n\r\nGET / HTTP/1.1\r\n",
    ],
    ids=["nothing", "headers", "body", "second request"],
)
def test_who_sends_a_request_slowly_is_cut_off_and_who_plays_is_not(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], sent: bytes
) -> None:
    monkeypatch.setattr("montecristo_env.play.SECONDS_FOR_A_REQUEST", 2)
    identity, _ = opened(store, "human", "greedy")
    with serving(store) as host, joined(host, identity) as page:
        assert json.loads(page.recv(PATIENCE))["type"] == "table"
        name, _, port = host.partition(":")
        with socket.create_connection((name, int(port)), timeout=PATIENCE) as slow:
            slow.sendall(sent.replace(b"HOST", host.encode()))
            while slow.recv(4096):
                pass
        page.send('{"do": "fly"}')
        assert "fly" in json.loads(page.recv(PATIENCE))["message"]
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "message",
    [
        '{"do": "resume", "tokens": []}',
        '{"do": "sit", "seat": 0}',
        '{"do": "fly"}',
        '{"do": "hint", "agent": "greedy"}',
    ],
)
def test_a_page_that_goes_away_while_it_is_answered_causes_no_error(store: SessionStore, message: str) -> None:
    identity, _ = opened(store, "human", "human")
    assert errors_of_a_page_that_is_gone(store, identity, message) == []
    assert errors_of_a_page_that_is_gone(store, "nothing", message) == []


def errors_of_a_page_that_is_gone(store: SessionStore, identity: str, message: str) -> list[Any]:
    """Errors that nobody has caught when nothing can be sent to a page any more, as servers tell it."""
    coming = [{"type": "websocket.connect"}, *[{"type": "websocket.receive", "text": message}] * 2]
    errors: list[Any] = []

    async def receive() -> Any:
        for _ in range(20):  # time for answers
            await asyncio.sleep(0.001)
        return coming.pop(0) if coming else {"type": "websocket.disconnect", "code": 1006}

    async def send(answer: Any) -> None:
        if answer["type"] == "websocket.send":
            raise OSError("the connection is lost")

    async def visit() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
        headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
        scope = {"type": "websocket", "path": f"/tables/{identity}/socket", "headers": headers, "query_string": b""}
        try:
            await make_app(store)(scope, receive, send)
        except Exception as error:
            errors.append(error)
        gc.collect()  # tasks that have failed complain when they are forgotten

    asyncio.run(visit())
    return errors


# --- By name ---------------------------------------------------------------------------------------------------------


def test_agents_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no agent is called 'nobody'"):
        SessionStore(tmp_path, ["nobody"])


def test_all_installed_agents_that_need_no_settings_are_offered_and_made_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make(name: str) -> Any:
        made.append(name)
        return make_agent(name)

    monkeypatch.setattr("montecristo_env.web.sessions.make_agent", make)
    store = SessionStore(tmp_path)
    assert {"greedy", "random", "mcts", "ppo", "alphazero"} <= set(store.agents)
    assert not {"human", "policy", "policy+mcts"} & set(store.agents)
    _, table = opened(store, "human", "random", "greedy")
    store.load()
    assert made == []
    while table.turn != 1:
        play_on(table, 1)
    table.ask_bot()()
    table.ask_for_hint(store.agent("random"))()
    assert made == ["random"]


def test_an_agent_that_cannot_be_made_says_why_when_it_is_asked(client: TestClient, store: SessionStore) -> None:
    store.admit("policy:missing.safetensors")
    identity, _ = opened(store, "human", "human")
    with connected(client, identity) as socket:
        answer = asked(socket, {"do": "hint", "agent": "policy:missing.safetensors"}, "error")
        assert "there is no such file" in answer["message"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--players", "human", "nobody"], "no agent is called 'nobody'"),
        (["--players", "human"], "2 to 4 players, not 1"),
        (["--agents", "policy"], "policy needs the path"),
        (["--port", "70000"], "port must be from 0 to 65535, but is 70000"),
        (["--seed", "7"], "a seed is that of a new table: give --players"),
        (["--seed", "-1", "--players", "human", "greedy"], "seed"),
        (["--host", "256.1.1.1"], "cannot listen on port 8000 of 256.1.1.1"),
        (["--agents", "mcts:many", "--port", "0"], "number of simulations must be"),
    ],
)
def test_the_command_line_refuses_what_it_cannot_do(tmp_path: Path, arguments: list[str], reason: str) -> None:
    command = [sys.executable, "-m", "montecristo_env.play", "--no-browser", "--folder", str(tmp_path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2 and reason in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "montecristo_env.play", "--folder", str(tmp_path), "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"play: cannot listen on port {port} of 127.0.0.1: Address already in use")
    assert "--port 0" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("module", ["play", "replay"])
def test_help_of_which_nobody_reads_the_end_ends_quietly(module: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", f"montecristo_env.{module}", "--help"]
    with open(writing, "wb") as gone:
        done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_killed_server_goes_on_with_all_games(tmp_path: Path) -> None:
    with started(tmp_path, "--players", "random", "greedy") as (_, address):
        page = urllib.request.urlopen(address, timeout=PATIENCE)
        assert page.status == 200 and page.url.startswith("http://127.0.0.1:")
    with started(tmp_path, "--players") as (server, address):
        listed = json.load(urllib.request.urlopen(f"{address}tables", timeout=PATIENCE))
        assert [table["players"] for table in listed["tables"]] == [["random", "greedy"]]
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=PATIENCE)
        assert "Traceback" not in errors


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server, which is killed in the end, and the address of the page that it opens."""
    command = [sys.executable, "-m", "montecristo_env.play", "--no-browser", "--port", "0", "--folder", str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, *arguments], stdout=pipe, stderr=pipe, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None
            yield server, address[0]
        finally:
            server.kill()


def test_without_the_extra_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['starlette'] = None; import montecristo_env.play"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert "pip install 'montecristo-env[web]'" in done.stderr
