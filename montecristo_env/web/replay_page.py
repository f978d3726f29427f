"""The replay of a game: every step as a picture and in words, and the page that shows it."""

import json
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from montecristo_env.analysis import balances
from montecristo_env.core import actions
from montecristo_env.record import GameRecord
from montecristo_env.render.board import Part, board_parts
from montecristo_env.render.markup import fragment
from montecristo_env.render.pieces import SEAT_FILLS, marble
from montecristo_env.render.targets import target
from montecristo_env.render.words import describe, sentence
from montecristo_env.ruleset import Ruleset
from montecristo_env.web.move_log import display_names, move_log

BADGE = 12  # the radius of a player's badge


class ReplayPage:
    """One page that shows games and needs nothing else.

    Pictures change little from step to step, and from game to game. So a part of the board is drawn and stored once, as
    a list of lines of SVG, each of which is stored once, too: `steps[i]["parts"]` of a game are indices into `parts`,
    and these hold indices into `lines`. Only what is public is in it.
    """

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self._parts: dict[tuple[int, ...], int] = {}
        self._drawn: dict[Hashable, int] = {}
        self._games: list[dict[str, Any]] = []

    def add(self, record: GameRecord) -> None:
        """Adds a game, in pictures and words; its seed is not shown."""
        events, rules = record.events, record.ruleset
        names = display_names(record.players)
        moments = [(event, games.public_state()) for event, games in record.replay()]
        following = [*(events[index] for index, _ in moments[1:]), {}]
        steps = [
            {
                "parts": self._indices(state, names, rules),
                **summary(state, names),
                **_opinion(coming, state, names, rules),
            }
            for (_, state), coming in zip(moments, following, strict=True)
        ]
        moves = [
            {"step": step, **entry._asdict()}
            for step, entries in enumerate(move_log(moments, events, names, rules))
            for entry in entries
        ]
        found = balances(events, len(names)) or []
        self._games.append(
            {
                "players": describe_players(names),
                "target": rules.target,
                "rules": str(rules),
                "evaluator": record.evaluator,
                "balances": [balance.describe(name) for balance, name in zip(found, names, strict=False)],
                "places": places(parts_of(moments[0][1], names, rules)),
                "steps": steps,
                "moves": moves,
            }
        )

    def _indices(self, state: Mapping[str, Any], names: Sequence[str], rules: Ruleset) -> list[int]:
        """The parts of the board; those that were drawn before are not drawn again."""
        indices = []
        for name, part in parts_of(state, names, rules).items():
            key = (name, part.content)
            if key not in self._drawn:
                lines = tuple(self._lines.setdefault(line, len(self._lines)) for line in fragment(part.draw()))
                self._drawn[key] = self._parts.setdefault(lines, len(self._parts))
            indices.append(self._drawn[key])
        return indices

    def data(self) -> dict[str, Any]:
        """All of it as values that JSON can hold."""
        return {"lines": list(self._lines), "parts": list(self._parts), "games": self._games}

    def html(self) -> str:
        """The page."""
        data = json.dumps(self.data(), separators=(",", ":")).replace(
            "<", "\\u003c"
        )  # no text in it can end the script
        scripts = "".join(_without_modules(static(name)) for name in ("board.js", "chart.js", "replay.js"))
        contents = {"style": static("style.css"), "script": scripts, "data": data}
        before, *rest = static("replay.html").split("{{")
        named = [part.split("}}", 1) for part in rest]
        return before + "".join(contents[name] + after for name, after in named)


def _without_modules(script: str) -> str:
    """A module as part of one script: a page that is opened from disk may not load others."""
    return re.sub(r"^import .*;\n|^export ", "", script, flags=re.MULTILINE)


def static(name: str) -> str:
    """The text of one of the files of the pages."""
    return (files("montecristo_env.web") / "static" / name).read_text(encoding="utf-8")


def parts_of(state: Mapping[str, Any], names: Sequence[str], rules: Ruleset) -> dict[str, Part]:
    """The parts of the board, by name."""
    return board_parts(state, names=names, market_values=rules.market, card_adventurers=rules.card_adventurers)


def places(parts: Mapping[str, Part]) -> dict[str, tuple[float, ...]]:
    """Where the parts are on the board: left, top, width and height."""
    boxes = {name: part.draw().box for name, part in parts.items()}
    return {name: (left, top, right - left, bottom - top) for name, (left, top, right, bottom) in boxes.items()}


def describe_players(names: Sequence[str]) -> list[dict[str, str]]:
    """Name, colour and badge (in a square of SVG around 0) of each player."""
    badges = ("".join(fragment(marble(seat, 0, 0, BADGE))) for seat in range(len(names)))
    return [
        {"name": name, "colour": SEAT_FILLS[seat], "badge": badge}
        for seat, (name, badge) in enumerate(zip(names, badges, strict=True))
    ]


def summary(state: Mapping[str, Any], names: Sequence[str], you: Collection[int] = ()) -> dict[str, Any]:
    """What stands above the board, for somebody who holds these seats."""
    return {
        "title": sentence(state, names, you),
        "round": state["round"],
        "scores": state["scores"],
        "player": state["current_player"],
    }


def _opinion(
    event: Mapping[str, Any], state: Mapping[str, Any], names: Sequence[str], rules: Ruleset
) -> dict[str, Any]:
    """What an agent thought of the move that comes next, if the record tells."""
    if "probabilities" not in event:
        return {}

    def words(move: str) -> str:
        return describe(actions.parse(move), state, names, rules.market, rules.card_adventurers)

    choices = [
        {"words": words(move), "probability": probability, "target": target(actions.parse(move), state)}
        for move, probability in sorted(event["probabilities"].items(), key=lambda item: -item[1])
    ]
    moved = words(event["move"])
    told = {name: event.get(name) for name in ("value", "loss", "luck")}
    return {"opinion": {"choices": choices, "moved": moved, **told}}
