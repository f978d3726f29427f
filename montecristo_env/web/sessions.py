"""Sessions: games between people and agents at tables in the browser, kept on disk so that they outlive the server."""

import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from importlib.metadata import entry_points
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from montecristo_env.agent import GROUP, Agent, PublicView, evaluate_position, make_agent
from montecristo_env.core import actions
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS, NONE, Lane
from montecristo_env.errors import DamagedRecord, InvalidArgument, MonteCristoError
from montecristo_env.games import SEED_BITS, seed_of_game
from montecristo_env.record import GameRecord, RecordedGame
from montecristo_env.render.markup import fragment
from montecristo_env.render.players import hand_strip
from montecristo_env.render.targets import target
from montecristo_env.render.words import describe
from montecristo_env.ruleset import Ruleset
from montecristo_env.util.files import atomic_write, sweep
from montecristo_env.web.move_log import Entry, display_names, move_log
from montecristo_env.web.reasons import reasons
from montecristo_env.web.replay_page import describe_players, parts_of, places, summary

HUMAN = "human"
PACES = (None, 2.0, 0.7, 0.2, 0.0)
"""Seconds that a bot waits before it moves; None pauses all bots."""
MOST_TABLES = 200
NEED_SETTINGS = ("policy", "policy+mcts")
"""Installed agents that cannot play by their names alone."""
LONGEST_PROBLEM = 300  # characters
FILES = ("json", "seats")
"""The endings of the files of a table: its game record, and who sits there."""
_ID = re.compile(r"[A-Za-z0-9_-]{8,32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")

MakeAgent = Callable[[], Agent]
"""Gives an agent, which may take a while at the first call: it is made then."""


class Refused(MonteCristoError):
    """Something that cannot be done at a table; the message says why, and nothing was changed."""


class Session:
    """One game, its seats and its log; people see it as a table.

    Args:
        players: by seat, "human" or the name of an agent.
        agents: who gives the agents of the other seats, None for people.
        seed: of the deal.
        ruleset: of the game.
    """

    def __init__(self, players: Sequence[str], agents: Sequence[MakeAgent | None], seed: int, ruleset: Ruleset) -> None:
        self.players = list(players)
        self.agents = list(agents)
        self.seed = seed
        self.ruleset = ruleset
        self.pace: float | None = PACES[2]
        self.holders: list[str | None] = [None] * len(players)
        """A hash of the token that holds each seat; None where nobody sits."""
        self.people = [""] * len(players)
        """What the people call themselves, by seat."""
        self.problem = ""
        """Why an agent could not move, if so."""
        self.next_table = ""
        """Where the rematch is played, if there is one."""
        self.changed_at = time.time()
        self.changes = 0
        """Grows whenever the game does anything."""
        self._play([])

    def _play(self, moves: Iterable[str]) -> None:
        """Starts over and makes these moves."""
        self.names = display_names([own or name for own, name in zip(self.people, self.players, strict=True)])
        self.scorings: list[dict[str, Any]] = []
        """What everybody got in each scoring round, and for bonus points between them."""
        self.game = RecordedGame(self.players, self.seed, self.ruleset)
        self.games, self.record = self.game.games, self.game.record
        self.log = list(chain.from_iterable(self._told()))
        for move in moves:
            self.step(actions.encode(actions.parse(move)))
        self.changes += 1

    # --- what there is

    @property
    def turn(self) -> int:
        """Whose decision it is, -1 if the game is over."""
        return int(self.games.current_player[0])

    @property
    def bot_is_due(self) -> bool:
        """Whether an agent must decide and is not held back."""
        return self.turn != NONE and self.agents[self.turn] is not None and self.pace is not None

    @property
    def moves(self) -> list[tuple[int, str]]:
        """Who decided what so far; forced moves are not among them."""
        return [(e["player"], e["move"]) for e in self.record.events if "move" in e and not e.get("forced")]

    def view(self, seats: Iterable[int] = ()) -> dict[str, Any]:
        """All that is sent to somebody who holds these seats: everything public, and what they may do."""
        mine, state = sorted(seats), self.games.public_state()
        parts = parts_of(state, self.names, self.ruleset)
        last = max(
            (i for i, entry in enumerate(self.log) if entry.kind == "move" and entry.player in mine), default=NONE
        )
        sitting = [
            agent is not None or holder is not None for agent, holder in zip(self.agents, self.holders, strict=True)
        ]
        return {
            "type": "table",
            "at": len(self.record.events),
            "players": [
                {**player, "human": agent is None, "present": present}
                for player, agent, present in zip(describe_players(self.names), self.agents, sitting, strict=True)
            ],
            "you": mine,
            **summary(state, self.names, mine),
            "target": self.ruleset.target,
            "rules": str(self.ruleset),
            "places": places(parts),
            "parts": {name: "".join(fragment(part.draw())) for name, part in parts.items()},
            "log": [entry._asdict() for entry in self.log],
            "since": last + 1,
            "legal": self._legal(state) if self.turn in mine else [],
            "blocked": reasons(self.games) if self.turn in mine else {},
            "used": f"marble-{Lane(state['cylinder']).name.lower()}-0" if state["phase"] == "return_marble" else "",
            "phase": state["phase"],
            "hands": {seat: "".join(fragment(hand_strip(state, seat))) for seat in mine},
            "winners": state["winners"],
            "scorings": self.scorings,
            "next_table": self.next_table,
            "can_undo": self._undone(mine) is not None,
            "can_pace": bool(mine) or None not in self.agents,
            "pace": self.pace,
            "problem": self.problem,
        }

    def _legal(self, state: dict[str, Any]) -> list[dict[str, str]]:
        return [
            {"action": str(action), "words": self._words(action, state), "target": target(action, state)}
            for action in self.games.legal_actions(0)
        ]

    def _words(self, action: actions.Action, state: dict[str, Any]) -> str:
        return describe(action, state, self.names, self.ruleset.market, self.ruleset.card_adventurers)

    def ask_for_hint(self, make_adviser: MakeAgent) -> Callable[[], dict[str, Any]]:
        """A function that says what an agent would do now, and how sure it is.

        It looks at a copy, so it may take its time in a thread while the game goes on.
        """
        if self.turn == NONE:
            raise Refused("the game is over: there is nothing to decide")
        games, at = self.games.copy(), len(self.record.events)

        def hint() -> dict[str, Any]:
            agent = make_adviser()
            thought, state = evaluate_position(agent, games), games.public_state()
            likely = sorted(thought.probabilities.items(), key=lambda item: -item[1])
            return {
                "type": "hint",
                "at": at,
                "agent": agent.name,
                "choices": [
                    {"action": str(action), "words": self._words(action, state), "probability": probability}
                    for action, probability in likely
                ],
                "target": target(likely[0][0], state),
                "value": thought.value,
            }

        return hint

    def public_record(self) -> GameRecord:
        """A copy of the record without the seed: who knows it, knows the order of the pile."""
        return replace(self.record, seed=None, players=list(self.names), events=list(self.record.events))

    # --- play

    def move(self, seats: Iterable[int], move: str, at: int) -> None:
        """A person's move, written as in records. `at` is the number of events they have seen."""
        if self.turn == NONE:
            raise Refused("the game is over")
        if self.turn not in seats:
            raise Refused(f"it is not your turn: {self.names[self.turn]} must decide")
        if at != len(self.record.events):
            raise Refused("the game has gone on since you saw it: look again")
        legal = {str(action): action for action in self.games.legal_actions(0)}
        if move not in legal:
            raise Refused(f"{move!r} is not legal now: allowed are {', '.join(legal)}")
        self.step(actions.encode(legal[move]))

    def ask_bot(self) -> Callable[[], int]:
        """A function that gives the action of the agent on turn; like a hint, it looks at a copy."""
        make_player = self.agents[self.turn]
        assert make_player is not None, "a person is on turn"
        self.games.random_keys()  # the copy gets another random stream every time
        games = self.games.copy()
        return lambda: int(make_player().act(PublicView(games), np.arange(1))[0])

    def step(self, code: int) -> None:
        """Makes a legal action of whoever is on turn, and tells in the log what it did."""
        self.game.step(code)
        self.log += chain.from_iterable(self._told()[1:])
        self._note_points()
        self.changed_at = time.time()
        self.changes += 1
        self.problem = ""

    def _told(self) -> list[list[Entry]]:
        """What happened in the last step, by its moves."""
        return move_log(self.game.moments, self.record.events, self.names, self.ruleset)

    def _note_points(self) -> None:
        for (_, before), (_, after) in pairwise(self.game.moments):
            gains = [new - old for old, new in zip(before["scores"], after["scores"], strict=True)]
            if any(gains):
                bonus = before["phase"] == "place"  # the points of a bonus zone (§5.5)
                self.scorings.append({"bonus": bonus, "round": before["round"], "gains": gains})

    def undo(self, seats: Iterable[int]) -> None:
        """Takes back a person's last decision and all that followed; only where all others are bots."""
        kept = self._undone(list(seats))
        if kept is None:
            raise Refused("only a person who plays against bots alone and has made a move can take it back")
        self._play(move for _, move in self.moves[:kept])
        self.problem = ""

    def _undone(self, seats: Sequence[int]) -> int | None:
        """How many moves are left when the last one of the person is taken back; None if it cannot be."""
        if self.agents.count(None) != 1 or len(seats) != 1:
            return None
        return max((i for i, (player, _) in enumerate(self.moves) if player == seats[0]), default=None)

    def set_pace(self, seats: Iterable[int], pace: float | None) -> None:
        """How fast bots move; those who sit at the table decide, or anybody if only bots do."""
        if None in self.agents and not list(seats):
            raise Refused("only those who sit at the table set its pace")
        if pace not in PACES or isinstance(pace, bool):
            raise Refused(f"pace must be one of {', '.join(map(str, PACES))}, but is {pace!r}")
        self.pace = pace

    # --- seats

    def sit(self, seat: int, name: str = "") -> str:
        """Takes a free seat, under a name of one's own; returns the token that holds it."""
        if not 0 <= seat < len(self.players) or self.agents[seat] is not None:
            raise Refused(f"seat {seat} is none for a person: these are {self._seats_of_people()}")
        if self.holders[seat] is not None:
            raise Refused(f"{self.names[seat]}'s seat is taken")
        token = secrets.token_urlsafe(24)
        self.holders[seat] = _digest(token)
        self._rename(seat, " ".join(name.split()))
        return token

    def seat_of(self, token: str) -> int:
        """The seat that a token holds."""
        for seat in range(len(self.players)):
            if self.holds(seat, token):
                return seat
        raise Refused("this token holds no seat at this table")

    def holds(self, seat: int, token: str) -> bool:
        """Whether a token holds a seat."""
        return hmac.compare_digest(self.holders[seat] or "", _digest(token))

    def leave(self, seat: int) -> None:
        """Frees a seat; its token is worth nothing from now on."""
        self.holders[seat] = None
        self._rename(seat, "")

    def _rename(self, seat: int, name: str) -> None:
        """The log has names in it, so it is written anew."""
        if self.people[seat] != name:
            self.people[seat] = name
            self._play([move for _, move in self.moves])

    def _seats_of_people(self) -> str:
        return ", ".join(str(seat) for seat, agent in enumerate(self.agents) if agent is None) or "none"


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()


class SessionStore:
    """All tables, each with two files: `ID.json` is its game record, `ID.seats` who sits there.

    Agents are made when they are asked for, and tables are read by `load`; not before.

    Args:
        folder: where the files are; it is made if it is missing.
        agents: the names of the agents that may be asked for; by default all that are installed and need no settings.
        ruleset: of new tables.
    """

    def __init__(self, folder: Path, agents: Sequence[str] | None = None, ruleset: Ruleset | None = None) -> None:
        self.folder = folder
        self.ruleset = ruleset or Ruleset()
        self._installed = sorted(point.name for point in entry_points(group=GROUP) if point.name != HUMAN)
        self._made: dict[str, Agent | None] = {}
        self.tables: dict[str, Session] = {}
        self.problems: list[str] = []
        """Files that could not be read, and why."""
        offered = [name for name in self._installed if name not in NEED_SETTINGS]
        for name in offered if agents is None else agents:
            self.admit(name)

    @property
    def agents(self) -> list[str]:
        """The agents that may be asked for."""
        return list(self._made)

    def admit(self, name: str) -> None:
        """Lets an agent be asked for; it is made when it is."""
        if name == HUMAN:
            return
        if name.partition(":")[0] not in self._installed:
            raise InvalidArgument(f"no agent is called {name!r}: there are {', '.join(self._installed)}")
        if name in NEED_SETTINGS:
            make_agent(name)  # says which
        self._made.setdefault(name, None)

    def agent(self, name: str) -> MakeAgent:
        """Who gives an agent that may be asked for; others, which could name any file, are refused."""
        if name not in self._made:
            raise Refused(f"no agent here is called {name!r}: there are {', '.join(self._made)}")
        return partial(self._make, name)

    def _make(self, name: str) -> Agent:
        agent = self._made[name] = self._made[name] or make_agent(name)
        return agent

    def table(self, identity: str) -> Session:
        """A table."""
        if identity not in self.tables:
            raise Refused(f"there is no table {identity!r}")
        return self.tables[identity]

    def check(self, players: Sequence[str], seed: int | None = None) -> None:
        """Refuses players who cannot sit at a table here, and a seed that is none."""
        if not MIN_PLAYERS <= len(players) <= MAX_PLAYERS:
            raise Refused(f"a table has {MIN_PLAYERS} to {MAX_PLAYERS} players, not {len(players)}")
        self._seated(players)
        _seed(seed)

    def open_table(
        self,
        players: Sequence[str],
        seed: int | None = None,
        identity: str | None = None,
        ruleset: Ruleset | None = None,
    ) -> str:
        """A new table; returns its name, which says nothing about the deal. Same seed, same deal."""
        self.check(players, seed)
        if len(self.tables) >= MOST_TABLES:
            raise Refused(f"there are {MOST_TABLES} tables already: delete some first")
        table = Session(players, self._seated(players), _seed(seed), ruleset or self.ruleset)
        identity = identity or new_identity()
        self._make_folder()
        self.save(identity, table)()
        self.tables[identity] = table
        return identity

    def rematch(self, identity: str, seats: Iterable[int]) -> str:
        """A new deal for the players of a game that is over; returns the name of its table."""
        table = self.table(identity)
        if table.turn != NONE:
            raise Refused("a rematch can be had when the game is over")
        if None in table.agents and not list(seats):
            raise Refused("only those who sit at the table can ask for a rematch")
        if table.next_table not in self.tables:
            table.next_table = self.open_table(table.players, ruleset=table.ruleset)
        return table.next_table

    def remove(self, identity: str, tokens: Iterable[str] = ()) -> None:
        """Deletes a table with its files; one at which other people sit stays."""
        table, keys = self.table(identity), list(tokens)
        for seat, holder in enumerate(table.holders):
            if holder is not None and not any(table.holds(seat, key) for key in keys):
                raise Refused(f"{table.names[seat]} sits at this table: only those who sit there can delete it")
        for kind in FILES:
            (self.folder / f"{identity}.{kind}").unlink(missing_ok=True)
        del self.tables[identity]

    def _seated(self, players: Sequence[str]) -> list[MakeAgent | None]:
        return [None if name == HUMAN else self.agent(name) for name in players]

    # --- files

    def save(self, identity: str, table: Session, kinds: Iterable[str] = FILES) -> Callable[[], None]:
        """A function that writes these files of a table as it is now; it may run in a thread while the game goes on."""
        contents: dict[str, Callable[[], str]] = {
            "json": replace(table.record, events=list(table.record.events)).to_json,
            "seats": partial(
                json.dumps, {"holders": list(table.holders), "people": list(table.people), "pace": table.pace}
            ),
        }

        def write() -> None:
            for kind in kinds:
                _write(self.folder / f"{identity}.{kind}", contents[kind]())

        return write

    def load(self) -> None:
        """Takes all tables from their files; one that cannot be read is left alone, and named in `problems`."""
        self._make_folder()
        sweep(self.folder)
        for path in sorted(self.folder.glob("*.json")):
            try:
                if not _ID.fullmatch(path.stem):
                    raise InvalidArgument(f"{path.stem!r} is no name of a table")
                self.tables[path.stem] = self._restored(path)
            except Exception as error:  # whatever is wrong with one file, the others are there
                reason = " ".join(str(error).removeprefix(f"{path}: ").split())
                self.problems.append(f"{path}: {reason[:LONGEST_PROBLEM] or type(error).__name__}")

    def _make_folder(self) -> None:
        self.folder.mkdir(0o700, parents=True, exist_ok=True)

    def _restored(self, path: Path) -> Session:
        record = GameRecord.load(path)
        if record.seed is None:
            raise DamagedRecord("a table needs the seed of its game")
        for name in record.players:
            self.admit(name)
        table = Session(record.players, self._seated(record.players), record.seed, record.ruleset)
        table.holders, table.people, table.pace = _read_seats(path.with_suffix(".seats"), record.players)
        table._play(e["move"] for e in record.events if "move" in e and not e.get("forced"))
        if table.record.events != record.events:
            raise DamagedRecord("the game does not follow from its seed")
        table.changed_at = path.stat().st_mtime
        return table


def _seed(seed: int | None) -> int:
    """The seed of a game, as its record will have it; one that nobody can guess if there is none."""
    if seed is None:
        return int(seed_of_game(None))
    if type(seed) is not int or not 0 <= seed < 2**SEED_BITS:
        raise Refused(f"seed must be a whole number from 0 to {2**SEED_BITS - 1}, but is {seed!r}")
    return seed


def new_identity() -> str:
    """A name for a table that nobody can guess."""
    return secrets.token_urlsafe(8)


def _read_seats(path: Path, players: Sequence[str]) -> tuple[list[str | None], list[str], float | None]:
    """Who holds the seats of a table, what they call themselves, and its pace."""
    try:
        seats = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedRecord(f"{path.name}: not a JSON document: {error}") from None
    if not isinstance(seats, dict) or not {"holders", "people", "pace"} <= set(seats):
        raise DamagedRecord(f"{path.name}: must be a mapping with holders, people and pace")
    holders, people, pace = seats["holders"], seats["people"], seats["pace"]
    if not isinstance(people, list) or len(people) != len(players) or not all(isinstance(p, str) for p in people):
        raise DamagedRecord(f"{path.name}: people must be a list of {len(players)} names, one for each seat")
    if not isinstance(holders, list) or len(holders) != len(players):
        raise DamagedRecord(f"{path.name}: holders must be a list of {len(players)}, one for each seat")
    for name, holder in zip(players, holders, strict=True):
        if holder is not None and (name != HUMAN or not isinstance(holder, str) or not _DIGEST.fullmatch(holder)):
            raise DamagedRecord(f"{path.name}: holders must be null or, for people, 64 hexadecimal digits")
    if isinstance(pace, bool) or pace not in PACES:
        raise DamagedRecord(f"{path.name}: pace must be one of {PACES}")
    return holders, people, pace


def _write(path: Path, content: str) -> None:
    """Writes a file that only its owner can read: seeds and seats are nobody else's business."""
    atomic_write(path, content.encode(), private=True)
