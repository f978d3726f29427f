"""Pictures of a game: the drawing of the board, and its outputs.

`draw` turns `GameBatch.public_state` into a drawing; `svg`, `rgb_array` and `Window` show it, `ansi` tells the same in
text, `html` puts it into a notebook. Pixels and windows need pygame: pip install 'montecristo-env[render]'.
"""

from collections.abc import Mapping
from typing import Any

from montecristo_env.render.ansi import ansi
from montecristo_env.render.board import draw
from montecristo_env.render.primitives import Drawing
from montecristo_env.render.raster import Window, rgb_array
from montecristo_env.render.svg import svg

__all__ = ["Drawing", "Window", "ansi", "draw", "html", "rgb_array", "svg"]


def html(state: Mapping[str, Any], **settings: Any) -> str:
    """The board for a notebook, as wide as there is room; `settings` are those of `draw`."""
    return f'<div style="max-width: 1280px">{svg(draw(state, **settings))}</div>'
