"""The drawing of the board: from the public state of a game to shapes, which every output draws alike."""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from montecristo_env.core.actions import DUNGEON_LETTERS, KIND_LETTERS
from montecristo_env.core.constants import DUNGEONS, LANE_ROOM, LANES, TREASURE_PLACES, Lane, Zone
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
_TICK = ((-7, 0), (-5, -2), (-2, 1), (5, -6), (7, -4), (-2, 5))
_PLAYERS = Rect(MARGIN, 508, WIDTH - 2 * MARGIN, 200)
_MIDDLE = Rect(860, 64, 404, 432)  # slide, market and table, beside the castle
_MARKET_HEIGHT, _TABLE_HEIGHT, _BETWEEN = 64, 116, 8
SMALLEST = 14  # of all text: 11 pixels where a part of the board is drawn at 0.8 of its size


class _Places(NamedTuple):
    """Where the parts are that move with the number of players."""

    slide: Rect
    market: Rect
    table: Rect
    players: tuple[Rect, ...]


def _places(num_players: int) -> _Places:
    """A panel is at most a third of the board wide, so that a phone can show it: with 2 players the table is beside."""
    columns = max(3, num_players)
    width = (_PLAYERS.width - (columns - 1) * GAP) / columns
    bottom = [_PLAYERS._replace(x=_PLAYERS.x + column * (width + GAP), width=width) for column in range(columns)]
    x, y, wide, high = _MIDDLE[:4]
    panel = Rect(x, y, wide, high, PANEL, EDGE, 1, 10)
    table = panel._replace(y=y + high - _TABLE_HEIGHT, height=_TABLE_HEIGHT)
    if columns > num_players:
        spare = bottom[num_players]
        table = panel._replace(x=spare.x, y=spare.y, width=spare.width, height=spare.height)
        tall = high
    else:
        tall = high - _TABLE_HEIGHT - _BETWEEN
    slide = panel._replace(height=tall - _MARKET_HEIGHT - _BETWEEN)
    market = panel._replace(y=y + tall - _MARKET_HEIGHT, height=_MARKET_HEIGHT)
    return _Places(slide, market, table, tuple(bottom[:num_players]))


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
    parts = {name: part.draw() for name, part in _parts(state, players, values, adventurers).items()}
    inside = [parts.pop(name) for name in list(parts) if name.startswith(("dungeon-", "zone-"))]
    castle = Group((*parts.pop("castle").items, *inside))
    paper = Rect(0, 0, WIDTH, HEIGHT, PAPER)
    items: list[Item] = [paper, _header(state, title, target), castle, *parts.values()]
    return Drawing(WIDTH, HEIGHT, title, (Group(tuple(items)),))


class Part(NamedTuple):
    """A part of the board that can be drawn."""

    content: Hashable
    """All that the drawing depends on: parts of one name and the same content look the same."""
    draw: Callable[[], Group]


def board_parts(
    state: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    market_values: Sequence[int] = MARKET_VALUES,
    card_adventurers: Sequence[int] = CARD_ADVENTURERS,
) -> dict[str, Part]:
    """The board without its header, in parts that a page can move about: a narrow screen has no room for it whole.

    The arguments are those of `draw_board`. A part is drawn when its `draw` is called; its `box` is its place on the
    board, and "castle" lies behind others.
    """
    check_state(state)
    players = check_names(names, len(state["scores"]))
    return _parts(state, players, *check_settings(market_values, card_adventurers))


def _parts(
    state: Mapping[str, Any], players: Sequence[str], values: Sequence[int], adventurers: Sequence[int]
) -> dict[str, Part]:
    places = _places(len(players))
    deciding = (state["current_player"], state["taking"])
    in_play = ("offer", "drawn_tokens", "gather_order", "left_over_bags", "pile_size")
    heaps = tuple(len(state[name]) for name in ("card_discard", "bag", "token_discard"))
    own = ("scores", "supply", "marseille", "hands", "wilds", "gathered")
    return {
        "castle": Part((), _walls),
        **{
            f"dungeon-{DUNGEON_LETTERS[dungeon]}": Part(
                _frozen(
                    state["dungeons"][dungeon],
                    dungeon in state["chest_dungeons"],
                    state["gather_dungeon"] == dungeon and (True, state["taking"]),
                ),
                partial(_dungeon, state, dungeon),
            )
            for dungeon in range(DUNGEONS)
        },
        **{
            f"zone-{zone.name.lower()}": Part(_frozen(state["zones"][zone], len(players)), partial(_zone, state, zone))
            for zone in Zone
        },
        "slide": Part(_frozen(state["lanes"], state["cylinder"], places.slide), partial(_slide, state, places.slide)),
        "market": Part(_frozen(state["market"], values, places.market), partial(_market, state, values, places.market)),
        "table": Part(
            _frozen([state[name] for name in in_play], heaps, deciding, state["gather_dungeon"], adventurers, places),
            partial(_table, state, adventurers, places.table),
        ),
        **{
            f"player-{seat}": Part(
                _frozen(
                    [state[name][seat] for name in own],
                    [seat == state[name] for name in ("current_player", "active_player")],
                    state["current_player"] < 0,
                    seat in state["winners"],
                    name,
                    place,
                ),
                partial(player_panel, state, seat, name, place),
            )
            for seat, (name, place) in enumerate(zip(players, places.players, strict=True))
        },
    }


def _frozen(*values: Any) -> str:
    """Values that can be compared and looked up, whatever lists are in them."""
    return json.dumps(values, default=repr)


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
    items: list[Item] = [frame, Text(x + 12, y + 16, ZONE_NAMES[zone], 16, INK)]
    items.append(Text(x + 12, y + 34, ZONE_EFFECTS[zone], SMALLEST, MUTED))
    for seat in range(len(state["scores"])):
        middle = x + 24 + seat * 30
        if seat in state["zones"][zone]:
            items.append(pawn(seat, middle, y + 57, 25))
        else:
            items.append(Circle(middle, y + 57, 9, SEAT_TINTS[seat], FAINT))
    return Group(tuple(items), f"zone-{zone.name.lower()}")


# --- The action slide and the market


def _slide(state: Mapping[str, Any], place: Rect) -> Group:
    width = (place.width - 2 * 8 - (LANES - 1) * 4) / LANES
    lanes = (Rect(place.x + 8 + lane * (width + 4), place.y + 8, width, place.height - 16) for lane in Lane)
    return Group((place, *(_lane(state, lane, box) for lane, box in zip(Lane, lanes, strict=True))))


def _lane(state: Mapping[str, Any], lane: Lane, box: Rect) -> Group:
    here = state["cylinder"] == lane
    x, y, width, height = box[:4]
    frame = Rect(x, y, width, height, GLOW if here else CELL, INK if here else EDGE, 2 if here else 1, 8)
    floor, middle = y + height - 22, x + width / 2
    pitch = (floor - y - 26) / LANE_ROOM
    items: list[Item] = [frame, Text(middle, y + 15, LANE_NAMES[lane], 15, INK, "middle")]
    if here:
        items += [
            Rect(x + 16, floor + 3, width - 32, 14, MUTED, INK, 1, 7),
            Rect(x + 22, floor + 7, width - 44, 3, FAINT, radius=1.5),
        ]
    else:
        items.append(Line(x + 18, floor + 10, x + width - 18, floor + 10, EDGE, 2))
    marbles = state["lanes"][lane]
    for position in range(LANE_ROOM):
        centre = floor - pitch * (position + 0.5)
        if position < len(marbles):
            seat, target = marbles[position], f"marble-{lane.name.lower()}-{position}"
            items.append(marble(seat, middle, centre, min(16, pitch / 2 - 0.5), target, f"marble-{seat}"))
        else:
            items.append(Circle(middle, centre, 3, EDGE))
    return Group(tuple(items), f"lane-{lane.name.lower()}")


def _market(state: Mapping[str, Any], values: Sequence[int], place: Rect) -> Group:
    """The best space is at the left."""
    x, y, _, height = place[:4]
    items: list[Item] = [place, Text(x + 10, y + height / 2, "Market", 15, INK)]
    for space, kind in enumerate(state["market"]):
        left, letter = x + 68 + space * 66, KIND_LETTERS[kind]
        frame = Rect(left, y + 8, 62, height - 16, CELL, EDGE, 1, 8)
        value = Text(left + 16, y + height / 2, f"{values[space]}", 20, INK, "middle")
        signs = gem(kind, left + 42, y + height / 2, 16)
        items.append(Group((frame, value, *signs), f"market-{letter}", f"marker-{letter}"))
    return Group(tuple(items))


# --- The table: piles, and what was just drawn


def _table(state: Mapping[str, Any], adventurers: Sequence[int], place: Rect) -> Group:
    x, y = place.x, place.y
    items: list[Item] = [place]
    heaps = (
        ("Cards", ("pile", state["pile_size"]), ("discards", len(state["card_discard"]))),
        ("Tokens", ("bag", len(state["bag"])), ("discards", len(state["token_discard"]))),
    )
    high = (place.height - 20 - 6) / 2
    for row, (title, *counts) in enumerate(heaps):
        top, middle = y + 10 + row * (high + 6), y + 10 + row * (high + 6) + high / 2
        heap: list[Item] = [Rect(x + 10, top, 184, high, CELL, EDGE, 1, 8), Text(x + 18, middle, title, SMALLEST, INK)]
        for column, (label, count) in enumerate(counts):
            heap.append(Text(x + 94 + column * 66, middle - 9, str(count), 18, INK, "middle"))
            heap.append(Text(x + 94 + column * 66, middle + 10, label, SMALLEST, MUTED, "middle"))
        items.append(Group(tuple(heap)))
    items += _in_play(state, adventurers, Rect(x + 206, y + 10, place.width - 216, place.height - 20))
    return Group(tuple(items))


def _in_play(state: Mapping[str, Any], adventurers: Sequence[int], place: Rect) -> list[Item]:
    """What the decision at hand is about: cards on offer, tokens drawn, or whose turns are left in a dungeon."""
    x, y, width, height = place[:4]
    if state["offer"]:
        items: list[Item] = [Text(x, y + 9, "On offer", SMALLEST, INK)]
        for i, piece in enumerate(state["offer"]):
            spot = Rect(x + i * 47, y + 20, 43, min(height - 20, 96))
            items.append(card(piece, spot, f"offer-{code(piece)}", adventurers[piece[1] - 1]))
        return items
    if state["drawn_tokens"]:
        items = [Text(x, y + 9, "Drawn, next first", SMALLEST, INK)]
        for i, piece in enumerate(state["drawn_tokens"]):
            spot = Rect(x, y + 32, 64, 50) if i == 0 else Rect(x + 12 + i * 60, y + 37, 54, 40)
            items.append(token(piece, spot, f"drawn-{code(piece)}"))
        return items
    if state["gather_dungeon"] >= 0:
        return _gathering(state, place)
    return [Text(x + width / 2, y + height / 2, "Nothing drawn", SMALLEST, MUTED, "middle")]


def _gathering(state: Mapping[str, Any], place: Rect) -> list[Item]:
    x, y, width = place[:3]
    letter = DUNGEON_LETTERS[state["gather_dungeon"]]
    items: list[Item] = [Text(x, y + 9, f"Turns left in {letter}", SMALLEST, INK)]
    for i, seat in enumerate(state["gather_order"]):
        items.append(marble(seat, x + 118 + i * 19, y + 10, 9))
    if state["taking"] is not None:
        value = state["taking"][1]
        paid = value - owed(state)
        items.append(Text(x, y + 33, f"Paid {paid} of {value} for {code(state['taking'])}", SMALLEST, INK))
    owners = left_over(state)
    if owners:
        items.append(Text(x, y + 54, "Left-over bags", SMALLEST, INK))
        room = width if len(owners) == 1 else width / 2
        for i, (seat, bags) in enumerate(owners.items()):
            left, middle = x + i % 2 * room, y + 72 + i // 2 * 17
            words = fit(Text(left + 16, middle, " ".join(map(code, bags)), SMALLEST, INK), room - 20, 9)
            items += [marble(seat, left + 6, middle, 6), words]
    return items
