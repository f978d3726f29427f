"""The board as text for a terminal, at most 80 columns wide.

A player is one letter (R, B, G, Y for red, blue, green, yellow), a card or token a letter and a number (R2), a wild bag
W: colour only helps.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from montecristo_env.core.actions import DUNGEON_LETTERS
from montecristo_env.core.constants import COLOURS, LANE_ROOM, TREASURE_PLACES, Kind, Lane, Zone
from montecristo_env.render.checks import check_names, check_settings, check_state
from montecristo_env.render.primitives import columns
from montecristo_env.render.words import (
    CARD_ADVENTURERS,
    KIND_NAMES,
    MARKET_VALUES,
    ZONE_NAMES,
    code,
    left_over,
    owed,
    sentence,
)

WIDTH = 80
_BOLD, _DIM, _PLAIN = "1", "2", "\x1b[0m"
_SEATS = ("97;41", "97;44", "30;42", "30;103")
_KINDS = {Kind.GOLD: "33", Kind.RUBY: "31", Kind.SAPPHIRE: "94", Kind.EMERALD: "32", Kind.DIAMOND: "36"}
_CODES = re.compile(r"\x1b\[[0-9;]*m")
_LANES = ("Supp", "Adve", "Ches", "Rear")
_CASTLE_WIDTH, _LANE_WIDTH = 45, 5
_QUEUE = 26  # adventurers in a line; the rest stands below


def to_text(
    state: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    market_values: Sequence[int] = MARKET_VALUES,
    card_adventurers: Sequence[int] = CARD_ADVENTURERS,
    colour: bool = True,
) -> str:
    """The board as text. Without `colour` it has no control codes at all.

    Args:
        state: what `GameBatch.public_state` gives.
        names: one for each player; by default those of the colours.
        market_values: of the five market spaces, best first (`Ruleset.market`).
        card_adventurers: the adventurers on a card with 1, 2 and 3 bags (`Ruleset.card_adventurers`).
        colour: whether to colour it by ANSI codes.
    """
    check_state(state)
    players = check_names(names, len(state["scores"]))
    values, adventurers = check_settings(market_values, card_adventurers)
    title = _wrap(f"Round {state['round']}: {sentence(state, players)}")
    board = zip_longest(_castle(state), _slide(state, values), fillvalue="")
    lines = [
        *(_paint(line, _BOLD) for line in title),
        "",
        *(f"{_pad(castle, _CASTLE_WIDTH)} {slide}".rstrip() for castle, slide in board),
        "",
        _heaps(state),
        *_in_play(state, adventurers),
        "",
        *(line for seat, name in enumerate(players) for line in _player(state, seat, name)),
    ]
    text = "\n".join(lines)
    return text if colour else _CODES.sub("", text)


def _castle(state: Mapping[str, Any]) -> list[str]:
    lines = [_paint("Castle   treasures    queue, front first", _DIM)]
    for letter, dungeon in zip(DUNGEON_LETTERS, state["dungeons"], strict=True):
        tokens = [*map(_treasure, dungeon["tokens"]), *["--"] * (TREASURE_PLACES - len(dungeon["tokens"]))]
        at = DUNGEON_LETTERS.index(letter)
        mark = ">" if at == state["gather_dungeon"] else "+" if at in state["chest_dungeons"] else " "
        first, *more = [dungeon["queue"][i : i + _QUEUE] for i in range(0, len(dungeon["queue"]), _QUEUE)] or [[]]
        lines.append(f"{mark} {_paint(letter, _BOLD)} {' '.join(tokens)}  {''.join(map(_seat, first))}")
        lines += [" " * 17 + "".join(map(_seat, rest)) for rest in more]
    zones = (f"{ZONE_NAMES[zone]} {''.join(map(_seat, state['zones'][zone])) or '-'}" for zone in Zone)
    first, second, third, fourth = zones
    return [*lines, f"  {_pad(first, 21)}{second}", f"  {_pad(third, 21)}{fourth}"]


def _slide(state: Mapping[str, Any], values: Sequence[int]) -> list[str]:
    """Lanes with the bottom at the bottom, and the market with the best at the top."""
    lanes = [
        "".join(_pad(_paint(name, _DIM), _LANE_WIDTH) for name in _LANES),
        *(
            "".join(_pad(f" {_seat(lane[row])}" if row < len(lane) else " .", _LANE_WIDTH) for lane in state["lanes"])
            for row in reversed(range(LANE_ROOM))
        ),
        "".join(_pad("===" if state["cylinder"] == lane else "", _LANE_WIDTH) for lane in Lane),
    ]
    market = [_paint("Market", _DIM)]
    for value, kind in zip(values, state["market"], strict=True):
        market.append(f"{value} {_paint(KIND_NAMES[kind], _KINDS[Kind(kind)])}")
    return [f"{lane} {market_line}" for lane, market_line in zip_longest(lanes, market, fillvalue="")]


def _heaps(state: Mapping[str, Any]) -> str:
    discards, used = len(state["card_discard"]), len(state["token_discard"])
    return f"Cards: pile {state['pile_size']}, discards {discards}   Tokens: bag {len(state['bag'])}, discards {used}"


def _in_play(state: Mapping[str, Any], adventurers: Sequence[int]) -> list[str]:
    """What the decision at hand is about."""
    lines = []
    if state["offer"]:
        offers = (f"{_treasure(piece)} with {adventurers[piece[1] - 1]}" for piece in state["offer"])
        lines.append(f"On offer: {', '.join(offers)} (adventurers)")
    if state["drawn_tokens"]:
        lines.append(f"Drawn, next first: {_treasures(state['drawn_tokens'])}")
    if state["gather_dungeon"] >= 0:
        letter = DUNGEON_LETTERS[state["gather_dungeon"]]
        parts = [f"Turns left in {letter}: {' '.join(map(_seat, state['gather_order']))}"]
        if state["taking"] is not None:
            value = state["taking"][1]
            parts.append(f"paid {value - owed(state)} of {value} for {_treasure(state['taking'])}")
        lines.append("   ".join(parts))
        if owners := left_over(state):
            bags = [f"{_seat(seat)} {_treasures(kinds)}" for seat, kinds in owners.items()]
            lines += [f"Left-over bags: {', '.join(bags[i : i + 2])}" for i in range(0, len(bags), 2)]
    return lines


def _player(state: Mapping[str, Any], seat: int, name: str) -> list[str]:
    mark = ">" if seat == state["current_player"] else "*" if seat in state["winners"] else " "
    points, supply, marseille = state["scores"][seat], state["supply"][seat], state["marseille"][seat]
    active = "   active" if seat == state["active_player"] and state["current_player"] >= 0 else ""
    head = f"{mark} {_seat(seat)} {_paint(_pad(name, 17), _BOLD)}{points:>5} points"
    cards = " ".join([*map(_treasure, state["hands"][seat]), *["W"] * state["wilds"][seat]]) or "no cards"
    taken = f"taken {_treasures(state['gathered'][seat])}" if state["gathered"][seat] else ""
    return [
        f"{head}   {supply} in supply   {marseille} in Marseille{active}",
        f"    {_pad(f'hand {cards}', 34)}{taken}".rstrip(),
    ]


# --- Pieces of a line


def _paint(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}{_PLAIN}"


def _pad(text: str, width: int) -> str:
    """The text, followed by as many spaces as make it this wide on the screen."""
    return text + " " * (width - columns(_CODES.sub("", text)))


def _wrap(text: str) -> list[str]:
    """The text in lines that fit the screen."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if columns(longer) > WIDTH:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _seat(seat: int) -> str:
    return _paint(COLOURS[seat][0].upper(), _SEATS[seat])


def _treasure(piece: Sequence[int]) -> str:
    return _paint(code(piece), _KINDS[Kind(piece[0])])


def _treasures(pieces: Iterable[Sequence[int]]) -> str:
    return " ".join(map(_treasure, pieces))
