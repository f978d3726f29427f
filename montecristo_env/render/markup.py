"""A drawing as SVG: one self-contained text, for browsers and notebooks."""

from collections.abc import Sequence
from functools import lru_cache
from xml.sax.saxutils import escape, quoteattr

from montecristo_env.errors import InvalidArgument
from montecristo_env.render.primitives import Circle, Drawing, Group, Item, Line, Polygon, Rect, Text

FONTS = "Helvetica, Arial, 'Liberation Sans', FreeSans, sans-serif"


def to_svg(drawing: Drawing) -> str:
    """The drawing as an SVG document. Groups carry what they are in `data-target` and `data-piece`."""
    if not isinstance(drawing, Drawing):
        raise InvalidArgument(f"drawing must be a Drawing, as `draw` gives, but is {type(drawing).__name__}")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.width} {drawing.height}" role="img" '
        f'font-family="{FONTS}" font-weight="bold">'
    )
    parts = [head, f"<title>{escape(drawing.title)}</title>"]
    _write(drawing.items, parts)
    parts.append("</svg>")
    return "\n".join(parts)


def fragment(group: Group) -> list[str]:
    """A part of a drawing, as lines that belong inside an `<svg>`; a piece is one line."""
    parts: list[str] = []
    _write([group], parts)
    return parts


@lru_cache(2**16, typed=True)  # games show the same pieces again and again
def _piece(group: Group) -> str:
    parts: list[str] = []
    _write_group(group, parts)
    return "".join(parts)


def _write(items: Sequence[Item], parts: list[str]) -> None:
    for item in items:
        if isinstance(item, Group) and not any(isinstance(inner, Group) for inner in item.items):
            parts.append(_piece(item))
        elif isinstance(item, Group):
            _write_group(item, parts)
        else:
            parts.append(_shape(item))


def _write_group(group: Group, parts: list[str]) -> None:
    names = (("data-target", group.target), ("data-piece", group.piece))
    parts.append("".join(["<g", *(f" {key}={quoteattr(name)}" for key, name in names if name), ">"]))
    _write(group.items, parts)
    parts.append("</g>")


@lru_cache(2**16, typed=True)
def _shape(shape: Item) -> str:
    match shape:
        case Rect(x, y, width, height, fill, stroke, thick, radius):
            edge = thick / 2 if stroke else 0  # SVG centres a stroke on the outline
            corners = f' rx="{_n(max(0, radius - edge))}"' if radius else ""
            size = f'width="{_n(width - 2 * edge)}" height="{_n(height - 2 * edge)}"'
            return f'<rect x="{_n(x + edge)}" y="{_n(y + edge)}" {size}{corners}{_paint(fill, stroke, thick)}/>'
        case Circle(x, y, radius, fill, stroke, thick):
            edge = thick / 2 if stroke else 0
            return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius - edge)}"{_paint(fill, stroke, thick)}/>'
        case Polygon(points, fill):
            corners = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
            return f'<polygon points="{corners}"{_paint(fill)}/>'
        case Line(x1, y1, x2, y2, stroke, thick):
            ends = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
            return f"<line {ends}{_paint('', stroke, thick)}/>"
        case Text():
            return _text(shape)
    raise InvalidArgument(f"{shape!r} is nothing that can be drawn")


def _text(text: Text) -> str:
    left, _, right, _ = text.box
    # The length is given, so that a reader without these fonts does not run over the edge.
    length = f'textLength="{_n(right - left)}" lengthAdjust="spacingAndGlyphs"'
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    place = f'x="{_n(text.x)}" y="{_n(text.baseline)}" font-size="{_n(text.size)}"'
    return f'<text {place} fill="{text.fill}"{anchor} {length} xml:space="preserve">{escape(text.text)}</text>'


def _paint(fill: str, stroke: str = "", thick: float = 0) -> str:
    edge = f' stroke="{stroke}" stroke-width="{_n(thick)}"' if stroke else ""
    return f' fill="{fill or "none"}"{edge}'


def _n(number: float) -> str:
    """A short number."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
