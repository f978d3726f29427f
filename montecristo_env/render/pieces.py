"""The pieces of the game as small groups of shapes. Colour never stands alone: a seat has a shape, a kind a letter."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import cos, pi, sin
from typing import TypeAlias

from montecristo_env.core.actions import KIND_LETTERS
from montecristo_env.render.primitives import Circle, Group, Item, Point, Polygon, Rect, Shape, Text
from montecristo_env.render.words import code

# Seats and treasures follow the palette of Okabe and Ito, which keeps apart for colour-blind readers.
INK, MUTED, FAINT, WHITE = "#22303c", "#5f6a74", "#c3c9ce", "#ffffff"
ON_COLOUR = "#22303d"  # ink on a coloured piece: a page with dark colours changes INK, but not this
SEAT_FILLS = ("#d55e00", "#0072b2", "#009e73", "#f0e442")
SEAT_TINTS = ("#fbe6d8", "#d8e9f4", "#d6f0e8", "#fbf8d0")
SEAT_SIGNS = ("#fffffe", "#fffffe", "#fffffe", ON_COLOUR)  # a white that stays, likewise
PALE_SIGNS = ("#d55e00", "#0072b2", "#009e73", "#a39500")
KIND_FILLS = ("#e69f00", "#b0306a", "#56b4e9", "#2a7a4b", "#e4ebf1")
KIND_SIGNS = (ON_COLOUR, "#fffffe", ON_COLOUR, "#fffffe", ON_COLOUR)
WILD_FILL = "#4a5560"

cached = lru_cache(2**14)
"""Keeps what was drawn: games show the same pieces in the same places again and again."""

Sign: TypeAlias = Callable[[float, float, float, str], list[Shape]]


def regular(x: float, y: float, radius: float, corners: int, turn: float = 0) -> tuple[Point, ...]:
    """The corners of a regular polygon; the first points up, or is turned from there by a part of a full circle."""
    angles = (2 * pi * (corner / corners + turn) for corner in range(corners))
    return tuple((x + radius * sin(angle), y - radius * cos(angle)) for angle in angles)


def seat_sign(seat: int, x: float, y: float, size: float, fill: str) -> Shape:
    """The sign of a seat: disc, square, triangle, diamond."""
    match seat:
        case 0:
            return Circle(x, y, size * 0.46, fill)
        case 1:
            return Rect(x - size * 0.4, y - size * 0.4, size * 0.8, size * 0.8, fill)
        case 2:
            return Polygon(regular(x, y + size * 0.1, size * 0.58, 3), fill)
        case _:
            return Polygon(regular(x, y, size * 0.56, 4), fill)


@cached
def marble(seat: int, x: float, y: float, radius: float, target: str = "", piece: str = "") -> Group:
    """A marble, or the badge of a player."""
    disc = Circle(x, y, radius, SEAT_FILLS[seat], INK)
    return Group((disc, seat_sign(seat, x, y, radius, SEAT_SIGNS[seat])), target, piece)


PAWN_SHAPE = 0.8  # width to height
SMALL_TOKEN = 44  # below this width


@cached
def pawn(seat: int, x: float, y: float, height: float, present: bool = True) -> Group:
    """An adventurer around (x, y); one who waits in Marseille is pale."""
    fill, sign = (SEAT_FILLS[seat], SEAT_SIGNS[seat]) if present else (SEAT_TINTS[seat], PALE_SIGNS[seat])
    edge = INK if present else FAINT
    half = height / 2
    frame = Rect(x - PAWN_SHAPE * half, y - half, 2 * PAWN_SHAPE * half, height)
    outline = _pawn_outline(x, y, half)
    inner = _pawn_outline(x, y, half, height * 0.045)
    body: list[Item] = [frame]
    for colour, (head, shoulders) in ((edge, outline), (fill, inner)):
        body += [Circle(*head, colour), Polygon(shoulders, colour)]
    return Group((*body, seat_sign(seat, x, y + half * 0.42, half * 0.74, sign)), piece=f"adventurer-{seat}")


def _pawn_outline(
    x: float, y: float, half: float, inset: float = 0
) -> tuple[tuple[float, float, float], tuple[Point, ...]]:
    """Head (x, y, radius) and body, drawn in by `inset` on every side."""
    wide, narrow = PAWN_SHAPE * half - inset, 0.42 * half - inset
    top, bottom = y - 0.3 * half + inset, y + half - inset
    head = (x, y - 0.52 * half, 0.48 * half - inset)
    body = (
        (x - narrow, top),
        (x + narrow, top),
        (x + wide * 0.86, top + 0.3 * half),
        (x + wide, bottom),
        (x - wide, bottom),
        (x - wide * 0.86, top + 0.3 * half),
    )
    return head, body


@cached
def gem(kind: int, x: float, y: float, radius: float) -> tuple[Shape, ...]:
    """A treasure with its letter; each kind has a cut of its own."""
    corners, turn = ((24, 0), (6, 0), (5, 0), (8, 1 / 16), (4, 0))[kind]
    size = radius * (1.0, 1.0, 1.04, 1.02, 1.0)[kind]
    edge = Polygon(regular(x, y, size, corners, turn), INK)
    face = Polygon(regular(x, y, size - 1.2, corners, turn), KIND_FILLS[kind])
    return edge, face, Text(x, y, KIND_LETTERS[kind], radius * 1.22, KIND_SIGNS[kind], "middle")


def token(piece: Sequence[int], box: Rect, target: str, lit: bool = False) -> Group:
    """A treasure token, kind and value; a small one is all in the colour of its kind, a lit one has a thick edge."""
    return _token(tuple(piece), box, target, lit)


@cached
def _token(piece: tuple[int, ...], box: Rect, target: str, lit: bool) -> Group:
    kind, value = piece
    x, y, width, height = box[:4]
    middle = y + height / 2
    if width < SMALL_TOKEN:
        tile = Rect(x, y, width, height, KIND_FILLS[kind], INK, 1, 5)
        items: tuple[Shape, ...] = (tile, Text(x + width / 2, middle, code(piece), 14, KIND_SIGNS[kind], "middle"))
    else:
        tile = Rect(x, y, width, height, WHITE, INK, 3 if lit else 1, min(8, height * 0.25))
        number = Text(x + width * 0.8, middle, str(value), height * 0.5, INK, "middle")
        items = (tile, *gem(kind, x + width * 0.36, middle, min(height * 0.42, width * 0.3)), number)
    return Group(items, target, f"token-{code(piece)}")


def card(piece: Sequence[int] | None, box: Rect, target: str, adventurers: int | None = None) -> Group:
    """A supply card: its kind above, its bags below, then the adventurers if they still matter. None is a wild bag."""
    return _card(None if piece is None else tuple(piece), box, target, adventurers)


@cached
def _card(piece: tuple[int, ...] | None, box: Rect, target: str, adventurers: int | None) -> Group:
    x, y, width, height = box[:4]
    middle, band = x + width / 2, height * (0.44 if adventurers is None else 0.34)
    rows = (height - band) / (1 if adventurers is None else 2)
    face = Rect(x, y, width, height, WHITE, INK, 1, 5)
    if piece is None:
        mark: tuple[Shape, ...] = (
            Rect(x + 1, y + 1, width - 2, height - 2, WILD_FILL, radius=4),
            Text(middle, y + band * 0.54, "W", band * 0.62, "#fffffe", "middle"),
        )
        bags, ink = 1, "#fffffe"
    else:
        mark, bags, ink = gem(piece[0], middle, y + band * 0.56, min(band * 0.46, width * 0.4)), piece[1], INK
    size = min(rows * 0.62, width * 0.46)
    items: list[Item] = [face, *mark, *_counted(bags, middle, y + band + rows * 0.46, size, ink, bag)]
    if adventurers is not None:
        items += _counted(adventurers, middle, y + band + rows * 1.42, size, ink, figure)
    return Group(tuple(items), target, "card-W" if piece is None else f"card-{code(piece)}")


def _counted(count: int, x: float, y: float, size: float, ink: str, sign: Sign) -> list[Shape]:
    """A number and a sign of what is counted."""
    return [Text(x - size * 0.42, y, str(count), size, ink, "middle"), *sign(x + size * 0.38, y, size * 0.86, ink)]


def bag(x: float, y: float, size: float, fill: str) -> list[Shape]:
    """A small sign of a bag: round below, tied above."""
    half = ((0.24, -0.5), (0.1, -0.27), (0.34, 0.0), (0.42, 0.22), (0.34, 0.42), (0.2, 0.5))
    right = [(x + px * size, y + py * size) for px, py in half]
    left = [(x - px * size, y + py * size) for px, py in reversed(half)]
    return [Polygon((*right, *left), fill)]


def figure(x: float, y: float, size: float, fill: str) -> list[Shape]:
    """A small sign of an adventurer, of no colour."""
    body = ((0.2, 0.0), (0.38, 0.2), (0.42, 0.5), (-0.42, 0.5), (-0.38, 0.2), (-0.2, 0.0))
    return [
        Circle(x, y - 0.28 * size, 0.24 * size, fill),
        Polygon(tuple((x + px * size, y + py * size) for px, py in body), fill),
    ]
