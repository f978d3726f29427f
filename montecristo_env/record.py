"""Game records: what was played, as a JSON document that replays from its events alone.

A record holds the rule set, the seed, the setup and every event in order: moves, forced ones included, and the
outcomes of chance. Nothing hidden is in the events: a wild bag taken is recorded, its card is not, so a replay gives
every public state, with hidden parts that are possible but not those of the original. (With the seed, those can be
rebuilt.)
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from montecristo_env import render
from montecristo_env.agent import Agent, PublicView, WinEstimator, evaluate_position, make_agent
from montecristo_env.analysis import Balance, analyse, balances
from montecristo_env.core import actions, batch
from montecristo_env.core.constants import (
    COLOURS,
    DUNGEONS,
    HIDDEN_SLOTS,
    KINDS,
    LANES,
    MARBLES,
    NONE,
    SIZES,
    TOKENS_DRAWN,
    Decision,
)
from montecristo_env.core.layout import States
from montecristo_env.core.public import card, cards, public_state, token
from montecristo_env.errors import DamagedRecord, IllegalAction, InvalidArgument, MonteCristoError
from montecristo_env.games import GameBatch
from montecristo_env.ruleset import Ruleset
from montecristo_env.util.files import atomic_write

FORMAT = "montecristo-record"
VERSION = 2
DIGITS = 4  # of probabilities and values
ROUNDING = 0.01  # what probabilities may be above 1 in all, being rounded

ANNOTATIONS = ("probabilities", "value", "loss", "luck")  # what a move event may tell besides the move

Event = dict[str, Any]
"""One of `{"player": 0, "move": "enter A"}` (with `"forced": True` where there was no choice), `{"draw": ["R2", …]}`,
`{"shuffle": True}`, `{"wild": player}`, `{"tokens": ["R3", …]}`, `{"refill": True}`.

A move that was not forced may tell what an agent thought of it: `"probabilities": {"enter A": 0.7, …}`, for some or all
of the legal actions, `"value": 0.2`, the reward "win" the player may expect, `"loss": 0.05`, by how much what the agent
would have done was better, and `"luck": [0.1, -0.1]`, what the draws that followed brought to every seat.
`GameRecord.annotate` writes them."""


class Position(NamedTuple):
    """A moment of a replayed game: the index of the move that led to it (-1 for the start), and a batch of one."""

    event: int
    games: GameBatch


@dataclass(repr=False)
class GameRecord:
    """A game as it was played: `GameRecord.record(games, row)` writes one, `replay()` plays it again."""

    num_players: int
    ruleset: Ruleset
    seed: int | None
    players: list[str]
    setup: dict[str, Any]
    events: list[Event] = field(default_factory=list)
    result: dict[str, Any] | None = None
    evaluator: str | None = None
    """Who has said what is noted at the moves, see `annotate`."""

    # --- recording

    @classmethod
    def record(cls, games: GameBatch, game: int = 0, players: list[str] | None = None) -> Self:
        """Records a game of a batch from now, its start, until its end or reset.

        Args:
            games: the batch; nothing else changes for its users.
            game: which game; it must not have been played yet.
            players: names, by seat; colours if None.
        """
        row = games[game].states
        n = int(row["num_players"][0])
        if row["decisions"][0] > 0:
            raise InvalidArgument(
                f"game {game} has begun: a record starts with the game, so follow it right after reset"
            )
        if players is not None and (len(players) != n or not all(isinstance(name, str) for name in players)):
            raise InvalidArgument(f"players must be {n} names, but is {players!r}")
        state = row.copy()
        batch.lay_out(state, 0, state["seed"][0])
        record = cls(n, games.ruleset, int(state["seed"][0]), list(players or COLOURS[:n]), _describe_setup(state[0]))
        recorder = _Recorder(record, state)
        recorder.begin()
        if not _same(state, row):
            raise InvalidArgument(f"game {game} did not start from its seed, so it cannot be recorded")
        games.add_listener(game, recorder)
        return record

    # --- reading and writing

    def to_json(self) -> str:
        """The record as a JSON document."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "num_players": self.num_players,
            "players": self.players,
            "ruleset": self.ruleset.to_dict(),
            "seed": self.seed,
            "setup": self.setup,
            "result": self.result,
        }
        if self.evaluator is not None:
            document["evaluator"] = self.evaluator
        head = "".join(f'  "{name}": {json.dumps(value)},\n' for name, value in document.items())
        events = ",\n".join(f"    {json.dumps(event)}" for event in self.events)
        return f'{{\n{head}  "events": [\n{events}\n  ]\n}}\n'

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads a record and replays it once: what comes back is sound."""
        try:
            return cls._from_json(text)
        except RecursionError:
            raise DamagedRecord("nested too deeply for a game record") from None

    @classmethod
    def _from_json(cls, text: str) -> Self:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise DamagedRecord(f"not a JSON document: {error}") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise DamagedRecord(f'not a game record: "format" must be "{FORMAT}"')
        if document.get("version") != VERSION:
            raise DamagedRecord(f"record version {document.get('version')!r} is unknown; this program reads {VERSION}")
        names = ("num_players", "players", "ruleset", "seed", "setup", "events", "result")
        if missing := [name for name in names if name not in document]:
            raise DamagedRecord(f"the record lacks {', '.join(missing)}")
        try:
            ruleset = Ruleset.from_dict(document["ruleset"])
        except MonteCristoError as error:
            raise DamagedRecord(f"ruleset: {error}") from None
        if not isinstance(document["events"], list):
            raise DamagedRecord(f"events must be a list, but is {document['events']!r}")
        for index, event in enumerate(document["events"]):
            if not isinstance(event, dict):
                raise DamagedRecord(f"event {index}: must be a mapping, but is {event!r}")
        seed = document["seed"]
        if seed is not None and (type(seed) is not int or not 0 <= seed < 2**64):
            raise DamagedRecord(f"seed must be null or a whole number from 0, but is {seed!r}")
        evaluator = document.get("evaluator")
        if evaluator is not None and not isinstance(evaluator, str):
            raise DamagedRecord(f"evaluator must be a name, but is {evaluator!r}")
        record = cls(**{name: document[name] for name in names} | {"ruleset": ruleset, "evaluator": evaluator})
        record.check()
        return record

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the record to a file, which appears whole or not at all."""
        atomic_write(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a record from a file and replays it once."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise DamagedRecord(f"{path}: not a text file: {error}") from None
        try:
            return cls.from_json(text)
        except DamagedRecord as error:
            raise DamagedRecord(f"{path}: {error}") from None

    # --- showing

    def __repr__(self) -> str:
        moves = sum("move" in event for event in self.events)
        if self.result is None:
            end = "not over"
        else:
            winners = " and ".join(self.players[seat] for seat in self.result["winners"])
            scores = ", ".join(map(str, self.result["scores"]))
            end = f"{'cut off' if self.result['truncated'] else 'over'}, {winners or 'nobody'} won, scores {scores}"
        return f"<GameRecord of {', '.join(self.players)}: {moves} moves, {end}>"

    def _repr_html_(self) -> str:
        """In a notebook: what the record is, and its last board."""
        *_, last = self.replay()
        return f"<p>{escape(repr(self))}</p>{render.html(last.games, names=self.players)}"

    def annotate(self, agent: str | Agent) -> None:
        """Notes at every decision what an agent thinks of it, in place of what was noted before.

        An agent that estimates who wins, such as a network, also tells what each decision has cost and what draws have
        brought to the players (see `montecristo_env.analysis`).

        Args:
            agent: an agent or its name, such as "policy:PATH"; it need not be the one that played.
        """
        judge = make_agent(agent)
        self.evaluator = judge.name
        positions = list(self.replay())
        places = [place for place, after in enumerate(positions[1:]) if not self.events[after.event].get("forced")]
        events = [self.events[positions[place + 1].event] for place in places]
        for event in events:
            for name in ("probabilities", "value", "loss", "luck"):
                event.pop(name, None)
        thoughts = [evaluate_position(judge, positions[place].games) for place in places]
        for event, thought in zip(events, thoughts, strict=True):
            event["probabilities"] = {str(a): round(p, DIGITS) for a, p in thought.probabilities.items()}
            if thought.value is not None:
                event["value"] = round(thought.value, DIGITS)
        if isinstance(judge, WinEstimator) and places:
            before, after = (
                np.concatenate([positions[place].games.states for place in found])
                for found in (places, [*places[1:], len(positions) - 1])
            )
            games = positions[0].games[np.zeros(len(places), np.int64)]
            games.states[:] = before
            codes = [actions.encode(actions.parse(event["move"])) for event in events]
            unit = self.num_players / (self.num_players - 1)  # of the reward "win", in shares of the win
            preferred = [
                actions.encode(max(thought.probabilities, key=thought.probabilities.__getitem__))
                for thought in thoughts
            ]
            losses, lucks = analyse(judge, games, codes, preferred, after)
            for event, loss, luck in zip(events, losses, lucks, strict=True):
                event["loss"] = round(unit * float(loss), DIGITS)
                event["luck"] = [round(unit * float(one), DIGITS) for one in luck[: self.num_players]]

    def balances(self) -> list[Balance] | None:
        """What their decisions cost the players and what draws brought them, by seat, as `annotate` has noted it.

        None if nothing is noted, or the agent does not estimate who wins (see `WinEstimator`).
        """
        return balances(self.events, self.num_players)

    # --- replaying

    def replay(self) -> Iterator[Position]:
        """Every state of the game: the start, then one after each move, forced ones included.

        An event that the rules do not allow raises `DamagedRecord` and is named.
        """
        games, state = self._laid_out()
        moves = [i for i, event in enumerate(self.events) if "move" in event]
        for index, following in zip([NONE, *moves], [*moves, len(self.events)], strict=True):
            outcomes = self.events[index + 1 : following]
            choice = NONE if index == NONE else self._choice(index, state)
            before = state.copy()
            _prepare_chance(state, outcomes, index + 1)
            ready = state.copy()
            batch.proceed(state, 0, choice)
            if not _equal(outcomes, found := _chance_events(before[0], ready[0], state[0])):
                raise DamagedRecord(f"event {index + 1}: chance must be {found} here, but is {outcomes}")
            yield Position(index, games.copy())

    def check(self) -> None:
        """Replays the record and compares the result; raises `DamagedRecord` if something does not fit."""
        last = list(self.replay())[-1].games.states[0]
        if last["decision"] != Decision.OVER and last["legal"].item().bit_count() == 1:
            raise DamagedRecord(f"event {len(self.events)}: a forced move is missing")
        if not _equal(self.result, _describe_result(last)):
            raise DamagedRecord(f"result: must be {_describe_result(last)}, but is {self.result}")

    def _laid_out(self) -> tuple[GameBatch, States]:
        """A batch of one, with the setup of the record."""
        try:
            games = GameBatch(1, self.num_players, seed=0, ruleset=self.ruleset)
            if len(self.players) != self.num_players or not all(isinstance(name, str) for name in self.players):
                raise InvalidArgument(f"players must be {self.num_players} names, but is {self.players!r}")
            batch.lay_out(games.states, 0, np.uint64(0))
            _lay_out(games.states[0], self.setup)
        except MonteCristoError as error:
            raise DamagedRecord(f"setup: {error}") from None
        except (TypeError, KeyError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise DamagedRecord(f"setup: {type(error).__name__}: {error}") from None
        failed = games.violations().get(0, [])
        if wrong := set(failed) & {"marbles", "market", "tokens"}:
            raise DamagedRecord(f"setup: not a setup of this game: {', '.join(sorted(wrong))}")
        return games, games.states

    def _choice(self, index: int, state: States) -> int:
        """The choice that a move event makes, if it is legal."""
        event, game = self.events[index], state[0]
        decision = int(game["decision"])
        if decision == Decision.OVER:
            raise DamagedRecord(f"event {index}: {event} after the end of the game")
        try:
            code = actions.encode(actions.parse(event["move"]))
        except (MonteCristoError, AttributeError) as error:
            raise DamagedRecord(f"event {index}: {error}") from None
        choice, legal = code - int(actions.FIRST[decision]), int(game["legal"])
        if choice < 0 or not legal >> choice & 1:
            phase = Decision(decision).name.lower()
            raise DamagedRecord(f"event {index}: {event['move']!r} is not legal in phase {phase}")
        expected = _move_event(int(game["current_player"]), code, legal)
        if not _equal({key: event[key] for key in event if key not in ANNOTATIONS}, expected):
            raise DamagedRecord(f"event {index}: must be {expected}, but is {event}")
        if wrong := _wrong_annotation(event, decision, legal, self.num_players):
            raise DamagedRecord(f"event {index}: {wrong}")
        return choice


class _Recorder:
    """Plays a game, one move at a time, and writes down what happens."""

    def __init__(self, record: GameRecord, state: States) -> None:
        self.record = record
        self.state = state

    def begin(self) -> None:
        self._proceed(NONE)
        self._play_forced()

    def before_step(self, action: int) -> None:
        self._move(action - int(actions.FIRST[self.state["decision"][0]]))
        self._play_forced()

    def _play_forced(self) -> None:
        while (legal := int(self.state["legal"][0])).bit_count() == 1:
            self._move(legal.bit_length() - 1)

    def _move(self, choice: int) -> None:
        game = self.state[0]
        code = int(actions.FIRST[game["decision"]]) + choice
        self.record.events.append(_move_event(int(game["current_player"]), code, int(game["legal"])))
        self._proceed(choice)

    def _proceed(self, choice: int) -> None:
        before = self.state.copy()
        batch.proceed(self.state, 0, choice)
        self._reached(NONE if choice == NONE else len(self.record.events) - 1)
        self.record.events += _chance_events(before[0], before[0], self.state[0])
        self.record.result = _describe_result(self.state[0])

    def _reached(self, event: int) -> None:
        """This move was made, before chance is written down."""


class RecordedGame(_Recorder):
    """A game that is its own recorder: a move runs the rules once, for the game and for its record.

    Args:
        players: names, by seat.
        seed: of the deal.
        ruleset: of the game.
    """

    def __init__(self, players: list[str], seed: int, ruleset: Ruleset) -> None:
        self.games = GameBatch(1, len(players), seed=[seed], ruleset=ruleset)
        """A batch of one, to look at and to copy; only `step` changes it."""
        state = self.games.states
        batch.lay_out(state, 0, state["seed"][0])
        record = GameRecord(len(players), ruleset, seed, list(players), _describe_setup(state[0]))
        super().__init__(record, state)
        self.moments: list[tuple[int, dict[str, Any]]] = []
        """The last decision before the last step, and every move of it: the index of its event (-1 for the start of the
        game) and the public state that it led to."""
        self.begin()

    def step(self, code: int) -> None:
        """Makes a legal action of whoever must decide, and the forced moves that follow."""
        if batch.first_illegal(self.state, np.zeros(1, np.int64), np.array([code]), 0, 1) != NONE:
            raise IllegalAction(f"{code} is not legal now: legal are {self.games.action_mask()[0].nonzero()[0]}")
        del self.moments[:-1]
        self.before_step(code)

    def _reached(self, event: int) -> None:
        self.moments.append((event, public_state(self.state[0])))


class FollowedGame(_Recorder):
    """What happens in a game of a batch from now on, as everybody at the table sees it: for agents that tell people.

    Args:
        view: of the batch.
        game: which game; it is followed until its next reset.
    """

    def __init__(self, view: PublicView, game: int) -> None:
        games = view._games
        state = games[game].states
        n = int(state["num_players"][0])
        super().__init__(GameRecord(n, games.ruleset, None, list(COLOURS[:n]), {}), state)
        self.moments: list[tuple[int, dict[str, Any]]] = []
        """The public state at the last `forget`, index -1, then that after every move, forced ones too, with the index
        of the move in `record.events`."""
        self.forget()
        games.add_listener(game, self)

    def forget(self) -> None:
        """Forgets what has happened so far."""
        self.record.events.clear()
        self.moments[:] = [(NONE, public_state(self.state[0]))]

    def _reached(self, event: int) -> None:
        self.moments.append((event, public_state(self.state[0])))


def _move_event(player: int, code: int, legal: int) -> Event:
    event: Event = {"player": player, "move": str(actions.decode(code))}
    return event | {"forced": True} if legal.bit_count() == 1 else event


def _wrong_annotation(event: Event, decision: int, legal: int, players: int) -> str | None:
    """What is wrong with what an agent is said to have thought of a move, if anything is."""
    if "loss" in event and not (_is_number(event["loss"]) and event["loss"] >= 0):
        return f"loss must be a finite number from 0, but is {event['loss']!r}"
    luck = event.get("luck", [0] * players)
    if not isinstance(luck, list) or len(luck) != players or not all(map(_is_number, luck)):
        return f"luck must be {players} finite numbers, but is {luck!r}"
    if "value" in event and not _is_number(event["value"]):
        return f"value must be a finite number, but is {event['value']!r}"
    if "probabilities" not in event:
        return None
    first = int(actions.FIRST[decision])
    allowed = {str(actions.decode(first + choice)) for choice in range(legal.bit_length()) if legal >> choice & 1}
    likely = event["probabilities"]
    if not isinstance(likely, dict) or not set(likely) <= allowed:
        return f"probabilities must be those of legal actions, but are {likely!r}"
    if not all(_is_number(p) and 0 <= p <= 1 for p in likely.values()) or sum(likely.values()) > 1 + ROUNDING:
        return f"probabilities must be numbers from 0 to 1 and 1 in all, but are {likely!r}"
    return None


def _equal(value: object, expected: object) -> bool:
    """Whether two values of JSON are the same; to Python, true is 1 as well."""
    if type(value) is not type(expected) or value != expected:
        return False
    if isinstance(value, dict) and isinstance(expected, dict):
        return all(_equal(value[key], expected[key]) for key in expected)
    return not isinstance(value, list) or not isinstance(expected, list) or all(map(_equal, value, expected))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _chance_events(before: np.void, ready: np.void, after: np.void) -> list[Event]:
    """What chance did between two states that are one move apart; `ready` is the first, its hidden parts arranged."""
    events: list[Event] = []
    shuffle: list[Event] = [{"shuffle": True}] if after["shuffles"] > before["shuffles"] else []
    if after["offer_size"] > before["offer_size"]:
        old = _pile(ready)[: min(before["pile_size"], after["offer_size"])]
        drawn = [str(card(int(number))) for number in ready["slot_card"][old]]
        rest = [str(c) for c in cards(after["offer"])]
        for known in drawn:
            rest.remove(known)
        # what the old pile did not have comes from the new one, in no particular order
        events += [*([{"draw": drawn}] if drawn else []), *shuffle, *([{"draw": rest}] if rest else [])]
    for player in np.flatnonzero(after["wilds"] > before["wilds"]):
        wild: list[Event] = [{"wild": int(player)}]
        events += shuffle + wild if before["pile_size"] == 0 else wild + shuffle
    if before["drawn_tokens"][0] == NONE and after["drawn_tokens"][0] != NONE:
        refill: list[Event] = [{"refill": True}] if after["refills"] > before["refills"] else []
        drawn_tokens: list[Event] = [{"tokens": [str(token(int(number))) for number in after["drawn_tokens"]]}]
        events += refill + drawn_tokens if before["bag_size"] < TOKENS_DRAWN else drawn_tokens + refill
    return events


def _pile(game: np.void) -> NDArray[np.int8]:
    """The slots of the pile, top first."""
    slots: NDArray[np.int8] = game["pile"][(game["pile_top"] + np.arange(game["pile_size"])) % HIDDEN_SLOTS]
    return slots


def _prepare_chance(state: States, outcomes: list[Event], index: int) -> None:
    """Arranges what is hidden so that the coming draws are those of the record."""
    drawn: list[actions.Card] = []
    for place, event in enumerate(outcomes):
        try:
            drawn += [actions.parse_card(text) for text in event.get("draw", [])]
            if "tokens" in event:
                _arrange_bag(state, [actions.parse_token(text) for text in event["tokens"]])
        except (MonteCristoError, TypeError, AttributeError) as error:
            raise DamagedRecord(f"event {index + place}: {error}") from None
    if drawn:
        try:
            _arrange_pile(state, drawn)
        except MonteCristoError as error:
            raise DamagedRecord(f"event {index}: {error}") from None


def _arrange_pile(state: States, drawn: list[actions.Card]) -> None:
    """Exchanges hidden cards of the same shuffle (§10.1) so that these lie on top of the pile."""
    batch.prepare_draw(state, 0, len(drawn))
    game = state[0]
    pile = _pile(game)
    if len(drawn) > pile.size:
        raise InvalidArgument(f"{len(drawn)} cards are drawn, but only {pile.size} exist")
    for place, wanted in enumerate(drawn):
        slot = pile[place]
        alike = game["slot_shuffle"] == game["slot_shuffle"][slot]
        alike[pile[:place]] = False
        _exchange(game["slot_card"], slot, np.flatnonzero(alike & (game["slot_card"] == _number(wanted))), wanted)


def _arrange_bag(state: States, drawn: list[actions.Token]) -> None:
    """Reorders the bag so that these tokens are drawn next."""
    if len(drawn) != TOKENS_DRAWN:
        raise InvalidArgument(f"{TOKENS_DRAWN} tokens are drawn, not {len(drawn)}")
    batch.prepare_chest(state, 0)
    game = state[0]
    for place, wanted in enumerate(drawn):
        last = int(game["bag_size"]) - 1 - place
        _exchange(game["bag_order"], last, np.flatnonzero(game["bag_order"][: last + 1] == _number(wanted)), wanted)


def _exchange(items: NDArray[np.int8], place: int, candidates: NDArray[np.intp], wanted: object) -> None:
    if candidates.size == 0:
        raise InvalidArgument(f"{wanted} cannot be drawn here: it is not among what is unseen")
    items[[place, candidates[-1]]] = items[[candidates[-1], place]]


def _number(piece: tuple[int, int]) -> int:
    kind, size = piece
    return kind * SIZES + size - 1


def _describe_setup(game: np.void) -> dict[str, Any]:
    return {
        "lanes": [(lane[lane > 0] - 1).tolist() for lane in game["lanes"]],
        "market": "".join(actions.KIND_LETTERS[kind] for kind in game["market"]),
        "dungeons": [str(token(int(np.flatnonzero(tokens)[0]))) for tokens in game["dungeon_tokens"]],
    }


def _lay_out(game: np.void, setup: dict[str, Any]) -> None:
    """Puts the setup of a record (§2) in the place of the one that is there."""
    n = int(game["num_players"])
    lanes, dungeons, market = setup["lanes"], setup["dungeons"], setup["market"]
    per_lane = n * MARBLES[n] // LANES
    if len(lanes) != LANES or any(len(lane) != per_lane or set(lane) != set(range(n)) for lane in lanes):
        raise InvalidArgument(f"lanes must be {LANES} lists of {per_lane} seats, each with every player (§2.1)")
    if len(dungeons) != DUNGEONS:
        raise InvalidArgument(f"dungeons must be {DUNGEONS} tokens (§2.3)")
    if len(market) != KINDS or set(market) != set(actions.KIND_LETTERS):
        raise InvalidArgument(f"market must be the letters {actions.KIND_LETTERS} in some order (§2.4)")
    game["lanes"][:, :per_lane] = np.array(lanes) + 1
    game["market"] = [actions.KIND_LETTERS.index(letter) for letter in market]
    game["dungeon_tokens"] = 0
    for dungeon, text in enumerate(dungeons):
        game["dungeon_tokens"][dungeon, _number(actions.parse_token(text))] = 1
    left = game["tokens"] - game["dungeon_tokens"].sum(axis=0)
    if (left < 0).any():
        raise InvalidArgument("dungeons hold more tokens of one sort than there are")
    game["bag"] = left
    game["bag_order"][: game["bag_size"]] = np.repeat(np.arange(left.size), left)


def _describe_result(game: np.void) -> dict[str, Any] | None:
    if game["decision"] != Decision.OVER:
        return None
    n = int(game["num_players"])
    return {
        "scores": game["score"][:n].tolist(),
        "winners": np.flatnonzero(game["winners"]).tolist(),
        "truncated": bool(game["truncated"]),
    }


def _same(state: States, other: States) -> bool:
    """Whether two rows are the same game; the streams of random play do not belong to it."""
    names = [name for name in state.dtype.names or () if name not in ("play_key", "scratch")]
    return all(np.array_equal(state[name], other[name]) for name in names)
