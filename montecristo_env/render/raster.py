"""A drawing as pixels, and in a window, by pygame."""

import os
import time
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from montecristo_env.errors import InvalidArgument
from montecristo_env.render.primitives import ANCHORS, Circle, Drawing, Line, Polygon, Rect, Shape, Text

FINER = 2  # everything is drawn larger by this factor and scaled down, which smooths the edges
WIDTH, MIN_WIDTH, MAX_WIDTH = 1280, 160, 7680
BLINK = 0.02  # seconds between looks at what the user does, while a picture stays


def to_pixels(drawing: Drawing, width: int = WIDTH) -> NDArray[np.uint8]:
    """The drawing as an (H, W, 3) picture of this width; needs no display."""
    pygame = _pygame()
    picture = _paint(pygame, drawing, _size(drawing, width))
    pixels = np.frombuffer(pygame.image.tobytes(picture, "RGB"), np.uint8)
    return pixels.reshape(picture.get_height(), picture.get_width(), 3).copy()


class Window:
    """A window that shows drawings. When the user closes it, it stays closed and `show` does nothing more.

    Args:
        width: of the window, in pixels.
        fps: how many drawings it shows a second at most: `show` waits as long as that takes. None for no limit.
        title: in the bar above it.
    """

    _open: ClassVar[dict[int, "Window"]] = {}  # by the window's number: events come for all of them at once

    def __init__(self, width: int = WIDTH, fps: float | None = None, title: str = "Monte Cristo") -> None:
        if fps is not None and not (isinstance(fps, int | float) and fps > 0):
            raise InvalidArgument(f"fps must be None or greater than 0, but is {fps!r}")
        _check_width(width)
        self._pygame = _pygame()
        self.width, self.fps, self.title = width, fps, title
        self.closed = False
        self._window: Any = None
        self._shown = float("-inf")

    def show(self, drawing: Drawing) -> None:
        """Shows a drawing until the next one."""
        size = _size(drawing, self.width)
        self._watch()
        self._wait()
        if self.closed:
            return
        pygame = self._pygame
        if self._window is None:
            pygame.display.init()
            self._window = pygame.Window(self.title, size)
            self._open[self._window.id] = self
        try:
            self._window.get_surface().blit(_paint(pygame, drawing, size), (0, 0))
            self._window.flip()
        except pygame.error:  # somebody has quit pygame, and with it all windows
            self._forget()
            return
        self._shown = time.monotonic()
        self._watch()

    def close(self) -> None:
        """Closes the window for good; a second time does nothing."""
        self.closed = True
        if self._window is not None:
            self._window.destroy()
            self._forget()

    def _forget(self) -> None:
        """The window is gone."""
        self.closed, self._window = True, None
        for number in [number for number, window in self._open.items() if window is self]:
            del self._open[number]

    def _wait(self) -> None:
        """Lets the last drawing stay as long as `fps` says."""
        if self.fps is None:
            return
        until = self._shown + 1 / self.fps
        while not self.closed and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, BLINK))
            self._watch()

    def _watch(self) -> None:
        """Sees to what users have done to the windows; without it the system takes them for dead."""
        if self._window is None:
            return
        pygame = self._pygame
        if not pygame.display.get_init():  # somebody has quit it
            self._forget()
            return
        for event in pygame.event.get():
            if event.type == pygame.WINDOWCLOSE and event.window is not None and event.window.id in self._open:
                self._open[event.window.id].close()
            elif event.type == pygame.QUIT:
                for window in list(self._open.values()):
                    window.close()


def _pygame() -> Any:
    """The package, only once it is needed: playing does not need it."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        pygame = import_module("pygame")
        import_module("pygame.freetype")
    except ImportError as error:
        raise ImportError("drawing pixels needs pygame-ce: pip install 'montecristo-env[render]'") from error
    return pygame


def _check_width(width: int) -> None:
    if not isinstance(width, int | np.integer) or not MIN_WIDTH <= width <= MAX_WIDTH:
        raise InvalidArgument(f"width must be a whole number from {MIN_WIDTH} to {MAX_WIDTH}, but is {width!r}")


def _size(drawing: Drawing, width: int) -> tuple[int, int]:
    if not isinstance(drawing, Drawing):
        raise InvalidArgument(f"drawing must be a Drawing, as `draw` gives, but is {type(drawing).__name__}")
    _check_width(width)
    return int(width), round(int(width) * drawing.height / drawing.width)


# --- Drawing ---------------------------------------------------------------------------------------------------------


def _paint(pygame: Any, drawing: Drawing, size: tuple[int, int]) -> Any:
    """A pygame surface of this size with the drawing on it."""
    large = pygame.Surface((size[0] * FINER, size[1] * FINER), 0, 32)
    scale = size[0] * FINER / drawing.width
    pygame.freetype.init()
    font = pygame.freetype.Font(None)  # the one that comes with pygame, on every machine
    font.origin = True
    for shape in drawing.shapes():
        _paint_shape(pygame, large, font, shape, scale)
    return pygame.transform.smoothscale(large, size)


def _paint_shape(pygame: Any, surface: Any, font: Any, shape: Shape, scale: float) -> None:
    match shape:
        case Text():
            _paint_text(surface, font, shape, scale)
        case Polygon(points, fill):
            pygame.draw.polygon(surface, fill, [(round(x * scale), round(y * scale)) for x, y in points])
        case Circle(x, y, radius, fill, stroke, thick):
            centre = (x * scale, y * scale)
            if stroke:
                inner = 0 if fill else max(1, round(thick * scale))
                pygame.draw.circle(surface, stroke, centre, radius * scale, inner)
            if fill:
                pygame.draw.circle(surface, fill, centre, (radius - (thick if stroke else 0)) * scale)
        case Rect(_, _, _, _, fill, stroke, thick, radius):
            left, top, right, bottom = (round(edge * scale) for edge in shape.box)
            box, round_off = pygame.Rect(left, top, right - left, bottom - top), round(radius * scale)
            edge = max(1, round(thick * scale)) if stroke else 0
            if stroke:
                pygame.draw.rect(surface, stroke, box, 0 if fill else edge, round_off)
            if fill:
                pygame.draw.rect(surface, fill, box.inflate(-2 * edge, -2 * edge), 0, max(0, round_off - edge))
        case Line(x1, y1, x2, y2, stroke, thick):
            ends = (round(x1 * scale), round(y1 * scale)), (round(x2 * scale), round(y2 * scale))
            pygame.draw.line(surface, stroke, *ends, max(1, round(thick * scale)))


def _paint_text(surface: Any, font: Any, text: Text, scale: float) -> None:
    size = text.size * scale
    ink = font.get_rect(text.text, size=size)
    x = text.x * scale - ink.x - ink.width * ANCHORS[text.anchor]
    font.render_to(surface, (round(x), round(text.baseline * scale)), text.text, text.fill, size=size)
