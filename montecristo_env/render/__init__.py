"""Pictures of a game: `svg`, `html`, `rgb_array` and `ansi` show one game of a batch, all called alike.

`draw` gives the drawing that the first three and a `Window` show; `board.draw_board` makes one of a public state alone,
such as one from a file. Pixels and windows need pygame: pip install 'montecristo-env[render]'.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from montecristo_env.errors import InvalidArgument
from montecristo_env.render.board import draw_board
from montecristo_env.render.markup import to_svg
from montecristo_env.render.primitives import Drawing
from montecristo_env.render.raster import WIDTH, Window, to_pixels
from montecristo_env.render.text import to_text
from montecristo_env.ruleset import Ruleset

__all__ = ["Drawing", "Games", "Window", "ansi", "draw", "html", "rgb_array", "svg"]


@runtime_checkable
class Games(Protocol):
    """What can be drawn: a `GameBatch`, or the `PublicView` of one."""

    @property
    def ruleset(self) -> Ruleset:
        """The settings of all games."""

    def public_state(self, game: int = 0) -> dict[str, Any]:
        """Everything that all players know of one game."""


def draw(games: Games, game: int = 0, *, names: Sequence[str] | None = None) -> Drawing:
    """The board of one game as everybody at the table sees it.

    Args:
        games: a `GameBatch` or a `PublicView`.
        game: which game of it.
        names: one for each player; by default those of the colours.
    """
    state, rules = _shown(games, game), games.ruleset
    return draw_board(
        state,
        names=names,
        market_values=rules.market,
        card_adventurers=rules.card_adventurers,
        target=rules.target,
    )


def svg(games: Games, game: int = 0, *, names: Sequence[str] | None = None) -> str:
    """The board as an SVG document; the arguments are those of `draw`."""
    return to_svg(draw(games, game, names=names))


def html(games: Games, game: int = 0, *, names: Sequence[str] | None = None) -> str:
    """The board for a notebook, as wide as there is room; the arguments are those of `draw`."""
    return f'<div style="max-width: {WIDTH}px">{svg(games, game, names=names)}</div>'


def rgb_array(
    games: Games, game: int = 0, *, names: Sequence[str] | None = None, width: int = WIDTH
) -> NDArray[np.uint8]:
    """The board as an (H, W, 3) picture of this width, which needs no display; other arguments are those of `draw`."""
    return to_pixels(draw(games, game, names=names), width)


def ansi(games: Games, game: int = 0, *, names: Sequence[str] | None = None, colour: bool = True) -> str:
    """The board as text, without control codes if not in `colour`; other arguments are those of `draw`."""
    state, rules = _shown(games, game), games.ruleset
    return to_text(
        state, names=names, market_values=rules.market, card_adventurers=rules.card_adventurers, colour=colour
    )


def _shown(games: Games, game: int) -> dict[str, Any]:
    if not isinstance(games, Games):
        raise InvalidArgument(f"games must be a GameBatch or a PublicView, but is {type(games).__name__}")
    return games.public_state(game)
