"""What an environment shows of its game: text, a picture or a window, as its render mode says."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecristo_env import render
from montecristo_env.errors import InvalidArgument

RENDER_MODES = ("human", "rgb_array", "ansi")
RENDER_FPS = 2.0


class Renderer:
    """Shows games in one render mode; a window stays open until `close`. Copies have no window."""

    def __init__(self, render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            allowed = ", ".join(RENDER_MODES)
            raise InvalidArgument(f"render_mode must be None or one of {allowed}, but is {render_mode!r}")
        self.render_mode = render_mode
        self._window: Any = None

    def show(self, games: render.Games, game: int = 0) -> NDArray[np.uint8] | str | None:
        """A string for "ansi", an (H, W, 3) picture for "rgb_array", None for "human"."""
        if self.render_mode == "ansi":
            return render.ansi(games, game)
        if self.render_mode == "rgb_array":
            return render.rgb_array(games, game)
        if self._window is None:
            self._window = render.Window(fps=RENDER_FPS)
        self._window.show(render.draw(games, game))
        return None

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        return {"render_mode": self.render_mode, "_window": None}
