"""The drawing of the board: from the public state of a game to shapes, which every output draws alike."""

from collections.abc import Mapping, Sequence
from typing import Any

from montecristo_env.core.actions import DUNGEON_LETTERS, KIND_LETTERS
from montecristo_env.core.constants import DUNGEONS, LANE_ROOM, TREASURE_PLACES, Lane, Zone
from montecristo_env.errors import InvalidArgument
from montecristo_env.render.checks import check_names, check_settings, check_state
from montecristo_env.render.pieces import (
    FAINT,
    INK,
    MUTED,
    PAWN_SHAPE,
    SEAT_TINTS,
    WHITE,
    card,
    gem,
    marble,
    pawn,
    token,
)
from montecristo_env.render.players import player_panel
from montecristo_env.render.primitives import Circle, Drawing, Group, Item, Line, Polygon, Rect, Text, fit
from montecristo_env.render.words import (
    CARD_ADVENTURERS,
    LANE_NAMES,
    MARKET_VALUES,
    ZONE_EFFECTS,
    ZONE_NAMES,
    code,
    left_over,
    owed,
    sentence,
)

WIDTH, HEIGHT = 1280, 720
MARGIN, GAP = 16, 12
PAPER, STONE, CELL, PANEL, EDGE, GLOW = "#f5f2ec", "#d8d1c4", "#fbfaf7", "#ffffff", "#d9d4ca", "#fff3c4"
DONE = "#eae6dd"

_HEADER = Rect(0, 0, WIDTH, 52, INK)
_CASTLE = Rect(MARGIN, 64, 832, 432, STONE)
_SLIDE = Rect(860, 64, 308, 300, PANEL, EDGE, 1, 10)
_MARKET = Rect(1176, 64, 88, 300, PANEL, EDGE, 1, 10)
_TABLE = Rect(860, 372, 404, 124, PANEL, EDGE, 1, 10)
_TICK = ((-7, 0), (-5, -2), (-2, 1), (5, -6), (7, -4), (-2, 5))
_PLAYERS = Rect(MARGIN, 508, WIDTH - 2 * MARGIN, 200)


def draw_board(
    state: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    market_values: Sequence[int] = MARKET_VALUES,
    card_adventurers: Sequence[int] = CARD_ADVENTURERS,
    target: int = 40,
) -> Drawing:
    """The board as everybody at the table sees it.

    Args:
        state: what `GameBatch.public_state` gives; lists in place of tuples, as JSON has them, are fine.
        names: one for each player; by default those of the colours.
        market_values: of the five market spaces, best first (`Ruleset.market`).
        card_adventurers: the adventurers on a card with 1, 2 and 3 bags (`Ruleset.card_adventurers`).
        target: the points that end the game (`Ruleset.target`).
    """
    check_state(state)
    players = check_names(names, len(state["scores"]))
    values, adventurers = check_settings(market_values, card_adventurers)
    if not isinstance(target, int) or target < 1:
        raise InvalidArgument(f"target must be a whole number from 1, but is {target!r}")
    title = sentence(state, players)
    parts = _parts(state, players, values, adventurers)
    inside = [parts.pop(name) for name in list(parts) if name.startswith(("dungeon-", "zone-"))]
    castle = Group((*parts.pop("castle").items, *inside))
    paper = Rect(0, 0, WIDTH, HEIGHT, PAPER)
    items: list[Item] = [paper, _header(state, title, target), castle, *parts.values()]
    return Drawing(WIDTH, HEIGHT, title, (Group(tuple(items)),))


def draw_parts(
    state: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    market_values: Sequence[int] = MARKET_VALUES,
    card_adventurers: Sequence[int] = CARD_ADVENTURERS,
) -> dict[str, Group]:
    """The board without its header, in parts that a page can move about: a narrow screen has no room for it whole.

    The arguments are those of `draw_board`. A part's `box` is its place on the board; "castle" lies behind others.
    """
    check_state(state)
    players = check_names(names, len(state["scores"]))
    return _parts(state, players, *check_settings(market_values, card_adventurers))


def _parts(
    state: Mapping[str, Any], players: Sequence[str], values: Sequence[int], adventurers: Sequence[int]
) -> dict[str, Group]:
    n = len(players)
    width = (_PLAYERS.width - (n - 1) * GAP) / n
    return {
        "castle": _walls(),
        **{f"dungeon-{DUNGEON_LETTERS[dungeon]}": _dungeon(state, dungeon) for dungeon in range(DUNGEONS)},
        **{f"zone-{zone.name.lower()}": _zone(state, zone) for zone in Zone},
        "slide": _slide(state),
        "market": _market(state, values),
        "table": _table(state, adventurers),
        **{
            f"player-{seat}": player_panel(
                state, seat, name, _PLAYERS._replace(x=_PLAYERS.x + seat * (width + GAP), width=width)
            )
            for seat, name in enumerate(players)
        },
    }


def _header(state: Mapping[str, Any], title: str, target: int) -> Group:
    middle = _HEADER.height / 2
    progress = Text(
        WIDTH - MARGIN, middle, f"Round {state['round']}  ·  {target} points end the game", 14, FAINT, "end"
    )
    items: list[Item] = [_HEADER, progress]
    deciders = [state["current_player"]] if state["current_player"] >= 0 else state["winners"]
    x = MARGIN + 14.0
    for seat in deciders:
        items.append(marble(seat, x, middle, 14))
        x += 32
    x -= 8
    items.append(fit(Text(x, middle, title, 21, WHITE), progress.left - 2 * MARGIN - x, 12))
    return Group(tuple(items))


# --- The castle: dungeons and bonus zones


def _walls() -> Group:
    notch = _CASTLE.width / 25
    return Group((_CASTLE, *(Rect(_CASTLE.x + i * notch, _CASTLE.y, notch, 9, PAPER) for i in range(1, 25, 2))))


def _dungeon(state: Mapping[str, Any], dungeon: int) -> Group:
    letter = DUNGEON_LETTERS[dungeon]
    here = state["gather_dungeon"] == dungeon
    row, column = divmod(dungeon, 3)
    x, y, width, height = _CASTLE.x + 12 + column * 273, _CASTLE.y + 18 + row * 166, 262, 158
    done = dungeon in state["chest_dungeons"]  # this chest has put a token here (§6.1)
    fill = GLOW if here else DONE if done else CELL
    frame = Rect(x, y, width, height, fill, INK if here else EDGE, 2 if here else 1, 10)
    items: list[Item] = [frame, Text(x + 21, y + (21 if done else 28), letter, 24, INK, "middle")]
    if done:
        items.append(Polygon(tuple((x + 21 + px, y + 41 + py) for px, py in _TICK), INK))
    tokens = state["dungeons"][dungeon]["tokens"]
    codes = [code(piece) for piece in tokens]
    for i in range(TREASURE_PLACES):
        spot = Rect(x + 39 + i * 54, y + 9, 50, 38)
        if i < len(tokens):
            lit = (
                here and state["taking"] is not None and codes[i] == code(state["taking"]) and codes[i] not in codes[:i]
            )
            items.append(token(tokens[i], spot, f"token-{letter}-{codes[i]}", lit))
        else:
            items.append(Rect(*spot[:4], "", FAINT, 1, 8))
    items.append(Line(x + 10, y + 56, x + width - 10, y + 56, EDGE))
    items += _queue(state["dungeons"][dungeon]["queue"], Rect(x + 10, y + 62, width - 20, height - 68))
    return Group(tuple(items), f"dungeon-{letter}")


def _queue(queue: Sequence[int], place: Rect) -> list[Item]:
    """The adventurers in reading order, as large as all of them can be; an arrow points at the foremost."""
    if not queue:
        return []
    x, y, width, height = place[:4]
    start, tall = x + 16, 36.0
    while int((width - 16) / _pitch(tall)) * int(height / (tall + 2)) < len(queue):
        tall -= 0.5
    per_row = int((width - 16) / _pitch(tall))
    middle = y + 1 + tall / 2
    items: list[Item] = [Polygon(((x, middle - 6), (x + 10, middle), (x, middle + 6)), MUTED)]
    for i, seat in enumerate(queue):
        row, column = divmod(i, per_row)
        items.append(pawn(seat, start + (column + 0.5) * _pitch(tall), middle + row * (tall + 2), tall))
    return items


def _pitch(tall: float) -> float:
    return tall * PAWN_SHAPE + 2


def _zone(state: Mapping[str, Any], zone: Zone) -> Group:
    x, y, width, height = _CASTLE.x + 12 + zone * 204.5, _CASTLE.y + 350, 194.5, 74
    frame = Rect(x, y, width, height, CELL, EDGE, 1, 10)
    items: list[Item] = [frame, Text(x + 12, y + 16, ZONE_NAMES[zone], 15, INK)]
    items.append(Text(x + 12, y + 33, ZONE_EFFECTS[zone], 11, MUTED))
    for seat in range(len(state["scores"])):
        middle = x + 24 + seat * 30
        if seat in state["zones"][zone]:
            items.append(pawn(seat, middle, y + 55, 26))
        else:
            items.append(Circle(middle, y + 55, 9, SEAT_TINTS[seat], FAINT))
    return Group(tuple(items), f"zone-{zone.name.lower()}")


# --- The action slide and the market


def _slide(state: Mapping[str, Any]) -> Group:
    return Group((_SLIDE, *(_lane(state, lane, _SLIDE.x + 8 + lane * 74) for lane in Lane)))


def _lane(state: Mapping[str, Any], lane: Lane, x: float) -> Group:
    here = state["cylinder"] == lane
    y, width, height, pitch = _SLIDE.y + 9, 70, _SLIDE.height - 18, 32
    frame = Rect(x, y, width, height, GLOW if here else CELL, INK if here else EDGE, 2 if here else 1, 8)
    floor, middle = y + height - 26, x + width / 2
    items: list[Item] = [frame, Text(middle, y + 15, LANE_NAMES[lane], 10.5, INK, "middle")]
    if here:
        items += [
            Rect(x + 10, floor + 5, width - 20, 15, MUTED, INK, 1, 7),
            Rect(x + 16, floor + 9, width - 32, 3, FAINT, radius=1.5),
        ]
    else:
        items.append(Line(x + 12, floor + 12, x + width - 12, floor + 12, EDGE, 2))
    marbles = state["lanes"][lane]
    for position in range(LANE_ROOM):
        centre = floor - pitch / 2 - position * pitch
        if position < len(marbles):
            seat, target = marbles[position], f"marble-{lane.name.lower()}-{position}"
            items.append(marble(seat, middle, centre, 14, target, f"marble-{seat}"))
        else:
            items.append(Circle(middle, centre, 3, EDGE))
    return Group(tuple(items), f"lane-{lane.name.lower()}")


def _market(state: Mapping[str, Any], values: Sequence[int]) -> Group:
    x, y, width = _MARKET[:3]
    items: list[Item] = [_MARKET, Text(x + width / 2, y + 20, "Market", 13, INK, "middle")]
    for space, kind in enumerate(state["market"]):
        top, letter = y + 38 + space * 51, KIND_LETTERS[kind]
        frame = Rect(x + 8, top, width - 16, 46, CELL, EDGE, 1, 8)
        value = Text(x + 22, top + 23, f"{values[space]}", 20, INK, "middle")
        items.append(Group((frame, value, *gem(kind, x + 56, top + 23, 17)), f"market-{letter}", f"marker-{letter}"))
    return Group(tuple(items))


# --- The table: piles, and what was just drawn


def _table(state: Mapping[str, Any], adventurers: Sequence[int]) -> Group:
    x, y = _TABLE.x, _TABLE.y
    items: list[Item] = [_TABLE]
    heaps = (
        ("Cards", ("pile", state["pile_size"]), ("discards", len(state["card_discard"]))),
        ("Tokens", ("bag", len(state["bag"])), ("discards", len(state["token_discard"]))),
    )
    for row, (title, *counts) in enumerate(heaps):
        top = y + 10 + row * 54
        heap: list[Item] = [Rect(x + 10, top, 164, 50, CELL, EDGE, 1, 8), Text(x + 18, top + 25, title, 12, INK)]
        for column, (label, count) in enumerate(counts):
            heap.append(Text(x + 88 + column * 54, top + 19, str(count), 19, INK, "middle"))
            heap.append(Text(x + 88 + column * 54, top + 38, label, 11, MUTED, "middle"))
        items.append(Group(tuple(heap)))
    items += _in_play(state, adventurers, Rect(x + 186, y + 10, _TABLE.width - 196, _TABLE.height - 20))
    return Group(tuple(items))


def _in_play(state: Mapping[str, Any], adventurers: Sequence[int], place: Rect) -> list[Item]:
    """What the decision at hand is about: cards on offer, tokens drawn, or whose turns are left in a dungeon."""
    x, y, width, height = place[:4]
    if state["offer"]:
        items: list[Item] = [Text(x, y + 9, "On offer", 13, INK)]
        for i, piece in enumerate(state["offer"]):
            spot = Rect(x + i * 53, y + 22, 48, height - 22)
            items.append(card(piece, spot, f"offer-{code(piece)}", adventurers[piece[1] - 1]))
        return items
    if state["drawn_tokens"]:
        items = [Text(x, y + 9, "Drawn, next first", 13, INK)]
        for i, piece in enumerate(state["drawn_tokens"]):
            spot = Rect(x, y + 34, 64, 50) if i == 0 else Rect(x + 10 + i * 62, y + 38, 56, 42)
            items.append(token(piece, spot, f"drawn-{code(piece)}"))
        return items
    if state["gather_dungeon"] >= 0:
        return _gathering(state, place)
    return [Text(x + width / 2, y + height / 2, "Nothing drawn", 12, MUTED, "middle")]


def _gathering(state: Mapping[str, Any], place: Rect) -> list[Item]:
    x, y = place.x, place.y
    letter = DUNGEON_LETTERS[state["gather_dungeon"]]
    items: list[Item] = [Text(x, y + 9, f"Turns left in {letter}", 13, INK)]
    for i, seat in enumerate(state["gather_order"]):
        items.append(marble(seat, x + 124 + i * 24, y + 10, 10))
    if state["taking"] is not None:
        value = state["taking"][1]
        paid = value - owed(state)
        items.append(Text(x, y + 45, f"Paid {paid} of {value} for {code(state['taking'])}", 13, INK))
    owners = left_over(state)
    if owners:
        items.append(Text(x, y + 65, "Left-over bags", 10.5, INK))
        for i, (seat, bags) in enumerate(owners.items()):
            left, middle = x + i % 2 * 104, y + 82 + i // 2 * 16
            items += [marble(seat, left + 5, middle, 5), Text(left + 14, middle, " ".join(map(code, bags)), 10.5, INK)]
    return items
