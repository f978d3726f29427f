"""The random player."""

import numpy as np
from numpy.typing import NDArray

from montecristo_env.agent import PublicView


class RandomAgent:
    """Plays a uniformly random legal action, from the random stream of each game: same seeds, same play."""

    name = "random"
    uniformly_random = True

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        return games.sample_actions(rows)
