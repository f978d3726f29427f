"""The replay of a game: every step as a picture and in words, and the page that shows it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from montecristo_env.core import actions
from montecristo_env.games import GameBatch
from montecristo_env.render.board import draw_parts
from montecristo_env.render.markup import fragment
from montecristo_env.render.pieces import SEAT_FILLS, marble
from montecristo_env.render.primitives import Group
from montecristo_env.render.words import describe, sentence
from montecristo_env.ruleset import Ruleset
from montecristo_env.web.move_log import display_names, move_log

BADGE = 12  # the radius of a player's badge


def replay_data(
    positions: Iterable[tuple[int, GameBatch]], events: Sequence[Mapping[str, Any]], players: Sequence[str]
) -> dict[str, Any]:
    """A game as values that JSON can hold; only what is public is in it.

    Pictures change little from step to step. So a part of the board that stays the same is stored once, as a list of
    lines of SVG, each of which is stored once, too: `steps[i]["parts"]` are indices into `parts`, and these hold
    indices into `lines`.

    Args:
        positions: what `GameRecord.replay` gives.
        events: those of the record.
        players: their names.
    """
    names = display_names(players)
    played = list(positions)
    rules = played[0][1].ruleset
    moments = [(index, games.public_state()) for index, games in played]
    following = [*(events[index] for index, _ in moments[1:]), {}]
    lines: dict[str, int] = {}
    parts: dict[tuple[int, ...], int] = {}
    steps = []
    for (_, state), coming in zip(moments, following, strict=True):
        drawn = parts_of(state, names, rules)
        indices = [tuple(lines.setdefault(line, len(lines)) for line in fragment(part)) for part in drawn.values()]
        shown = {"parts": [parts.setdefault(part, len(parts)) for part in indices], **summary(state, names)}
        steps.append(shown | _opinion(coming, state, names, rules))
    moves = [
        {"step": step, **entry._asdict()}
        for step, entries in enumerate(move_log(moments, events, names, rules))
        for entry in entries
    ]
    return {
        "players": describe_players(names),
        "target": rules.target,
        "rules": str(rules),
        "places": places(drawn),
        "lines": list(lines),
        "parts": list(parts),
        "steps": steps,
        "moves": moves,
    }


def replay_page(replays: Sequence[Mapping[str, Any]]) -> str:
    """One HTML page that shows these replays and needs nothing else."""
    html = static("replay.html")
    data = json.dumps(replays, separators=(",", ":")).replace("<", "\\u003c")  # no text in it can end the script
    contents = {"style": static("style.css"), "script": static("board.js") + static("replay.js"), "data": data}
    before, *rest = html.split("{{")
    named = [part.split("}}", 1) for part in rest]
    return before + "".join(contents[name] + after for name, after in named)


def static(name: str) -> str:
    """The text of one of the files of the pages."""
    return (files("montecristo_env.web") / "static" / name).read_text(encoding="utf-8")


def parts_of(state: Mapping[str, Any], names: Sequence[str], rules: Ruleset) -> dict[str, Group]:
    """The parts of the board, by name."""
    return draw_parts(state, names=names, market_values=rules.market, card_adventurers=rules.card_adventurers)


def places(parts: Mapping[str, Group]) -> dict[str, tuple[float, ...]]:
    """Where the parts are on the board: left, top, width and height."""
    boxes = {name: part.box for name, part in parts.items()}
    return {name: (left, top, right - left, bottom - top) for name, (left, top, right, bottom) in boxes.items()}


def describe_players(names: Sequence[str]) -> list[dict[str, str]]:
    """Name, colour and badge (in a square of SVG around 0) of each player."""
    badges = ("".join(fragment(marble(seat, 0, 0, BADGE))) for seat in range(len(names)))
    return [
        {"name": name, "colour": SEAT_FILLS[seat], "badge": badge}
        for seat, (name, badge) in enumerate(zip(names, badges, strict=True))
    ]


def summary(state: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """What stands above the board."""
    return {
        "title": sentence(state, names),
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
    choices = [
        (describe(actions.parse(move), state, names, rules.market, rules.card_adventurers), probability)
        for move, probability in sorted(event["probabilities"].items(), key=lambda item: -item[1])
    ]
    moved = describe(actions.parse(event["move"]), state, names, rules.market, rules.card_adventurers)
    return {"opinion": {"choices": choices, "moved": moved, "value": event.get("value")}}
