"""What a drawing is made of: a few shapes in board coordinates, gathered in groups.

Every output draws the same shapes, so it is enough to know these to add another one. x grows to the right, y downwards.
Colours are "#rrggbb"; an empty fill or stroke is not drawn.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

Point: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


class Rect(NamedTuple):
    """A rectangle with round corners; the stroke lies inside it."""

    x: float
    y: float
    width: float
    height: float
    fill: str = ""
    stroke: str = ""
    stroke_width: float = 1
    radius: float = 0

    @property
    def box(self) -> Box:
        """The box around it."""
        return self.x, self.y, self.x + self.width, self.y + self.height


class Circle(NamedTuple):
    """A disc; the stroke lies inside it."""

    x: float
    y: float
    radius: float
    fill: str = ""
    stroke: str = ""
    stroke_width: float = 1

    @property
    def box(self) -> Box:
        """The box around it."""
        return self.x - self.radius, self.y - self.radius, self.x + self.radius, self.y + self.radius


class Polygon(NamedTuple):
    """A filled shape with straight edges."""

    points: tuple[Point, ...]
    fill: str

    @property
    def box(self) -> Box:
        """The box around it."""
        xs, ys = zip(*self.points, strict=True)
        return min(xs), min(ys), max(xs), max(ys)


class Line(NamedTuple):
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    stroke: str
    stroke_width: float = 1

    @property
    def box(self) -> Box:
        """The box around it."""
        return min(self.x1, self.x2), min(self.y1, self.y2), max(self.x1, self.x2), max(self.y1, self.y2)


class Text(NamedTuple):
    """One line of text. y is the middle of its capitals, x its "start", "middle" or "end"."""

    x: float
    y: float
    text: str
    size: float
    fill: str
    anchor: str = "start"

    @property
    def baseline(self) -> float:
        """Y of the line on which the letters stand."""
        return self.y + CAPITALS / 2 * self.size

    @property
    def left(self) -> float:
        """X of the first letter."""
        return self.x - text_width(self.text, self.size) * ANCHORS[self.anchor]

    @property
    def box(self) -> Box:
        """The box around it, from the top of the capitals to the tail of a g."""
        width = text_width(self.text, self.size)
        return self.left, self.y - CAPITALS / 2 * self.size, self.left + width, self.baseline + TAIL * self.size


class Group(NamedTuple):
    """Things that belong together, a panel or a piece. The first is its frame: the others lie inside it.

    Attributes:
        items: shapes and smaller groups, drawn in this order.
        target: what a click on it means, for example "dungeon-A" or "hand-0-R2"; empty if nothing. Equal pieces in the
            same place share a target, as they share an action.
        piece: what it is, if it is a piece of the game: "adventurer-0", "marble-0" (seats), "card-R2", "card-W",
            "token-R3", "marker-R". Everything in the public state is drawn as exactly one such group.
    """

    items: tuple["Item", ...]
    target: str = ""
    piece: str = ""

    @property
    def box(self) -> Box:
        """The box around its frame."""
        return self.items[0].box


Shape: TypeAlias = Rect | Circle | Polygon | Line | Text
Item: TypeAlias = Shape | Group


class Drawing(NamedTuple):
    """A picture of a game. `title` says in words what is asked of whom."""

    width: int
    height: int
    title: str
    items: tuple[Item, ...]

    def shapes(self) -> Iterator[Shape]:
        """All shapes, in the order in which they are drawn."""
        return _shapes(self.items)

    def groups(self) -> Iterator[Group]:
        """All groups, the outer before the inner."""
        return _groups(self.items)


def _shapes(items: Sequence[Item]) -> Iterator[Shape]:
    for item in items:
        if isinstance(item, Group):
            yield from _shapes(item.items)
        else:
            yield item


def _groups(items: Sequence[Item]) -> Iterator[Group]:
    for item in items:
        if isinstance(item, Group):
            yield item
            yield from _groups(item.items)


# --- Text ------------------------------------------------------------------------------------------------------------

CAPITALS = 0.73  # height of a capital, as a part of the font size
TAIL = 0.21  # how far a g reaches below the line
ANCHORS = {"start": 0.0, "middle": 0.5, "end": 1.0}

# How wide bold letters of the Helvetica family are, in thousandths of the size: space to tilde.
_WIDTHS = [
    *(278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278),
    *(556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611),
    *(975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778),
    *(667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556),
    *(333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611),
    *(611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584),
]
_OTHERS = {"…": 1000, "·": 278}


def text_width(text: str, size: float) -> float:
    """About how wide a text is; SVG squeezes it to that, so that no font breaks the layout."""
    return sum(map(_width, text)) * size / 1000


def _width(letter: str) -> int:
    code = ord(letter) - ord(" ")
    if 0 <= code < len(_WIDTHS):
        return _WIDTHS[code]
    base = unicodedata.normalize("NFD", letter)[0]
    if base != letter:
        return _width(base)
    return _OTHERS.get(letter, (0, 720, 1000)[_columns(letter)])


def fit(text: Text, width: float, smallest: float) -> Text:
    """The text made so small that it fits; if it would be smaller than that, it is cut."""
    size = min(text.size, max(smallest, width / max(text_width(text.text, 1), 1e-9)))
    words = text.text
    while text_width(words, size) > width + 1e-6 and words:
        words = words[:-2].rstrip() + "…" if len(words) > 1 else ""
    return text._replace(text=words, size=size)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(_columns(letter) for letter in text)


def _columns(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1
