"""The Gymnasium environment: one learner among agents."""

import operator
from typing import Any, SupportsIndex

import gymnasium
import numpy as np
from numpy.typing import NDArray

from montecristo_env import render
from montecristo_env.render.renderer import RENDER_FPS, RENDER_MODES, Renderer
from montecristo_env.ruleset import RulesetLike
from montecristo_env.single_agent import Opponents, Seen, SingleAgentGames


class MonteCristoEnv(gymnasium.Env[Seen, SupportsIndex]):
    """`gymnasium.make("montecristo_env:MonteCristo-v0", opponents=("random", "random"), seat="random")`.

    The observation is a vector (see `montecristo_env.observation`), or with `mask_in_observation=True` a dict of that
    and the `action_mask`; the action one of `montecristo_env.actions`. Legal
    actions are in `info["action_mask"]` and from `action_masks()`; an illegal one ends the game with the reward -1.
    For the arguments see `SingleAgentGames`. At the end of a game, `info` also has `win` (1, a share of it, or 0),
    `score_margin` (points ahead of the best other player), `decisions` (of all players) and `illegal_action`.
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012 (Gymnasium reads it from the class)

    def __init__(
        self,
        opponents: Opponents = "random",
        num_players: int | None = None,
        seat: int | str = "random",
        ruleset: RulesetLike = None,
        reward: str = "win",
        obs_dtype: str = "float32",
        render_mode: str | None = None,
        mask_in_observation: bool = False,
    ) -> None:
        self._learners = SingleAgentGames(
            1, opponents, num_players, seat, ruleset, reward, obs_dtype, mask_in_observation
        )
        self.observation_space = self._learners.observation_space
        self.action_space = self._learners.action_space
        self.render_mode = render_mode
        self._renderer = Renderer(render_mode)

    @property
    def games(self) -> Any:
        """The batch of one that is played."""
        return self._learners.games

    @property
    def seat(self) -> int:
        """The learner's seat in this game."""
        return int(self._learners.seats[0])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Starts a new game: the one of the seed, or else the one that follows the last."""
        super().reset(seed=seed)
        self._learners.start(_ONLY, [seed])
        if self.render_mode == "human":
            self.render()
        return self._learners.observe_each(_ONLY)[0], {"action_mask": self.action_masks()}

    def step(self, action: SupportsIndex) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """The learner's decision, and everybody else's until its next one."""
        learners = self._learners
        learners.step(np.array([operator.index(action)]))
        info: dict[str, Any] = {"action_mask": self.action_masks()}
        if learners.over[0]:
            info |= {name: values[0].item() for name, values in learners.outcome(_ONLY).items()}
        if self.render_mode == "human":
            self.render()
        return (
            learners.observe_each(_ONLY)[0],
            float(learners.rewards()[0]),
            bool(learners.terminated[0]),
            bool(learners.truncated[0]),
            info,
        )

    def action_masks(self) -> NDArray[np.int8]:
        """The legal actions, as sb3-contrib asks for them."""
        mask: NDArray[np.int8] = self._learners.masks()[0]
        return mask

    def render(self) -> NDArray[np.uint8] | str | None:  # type: ignore[override]
        """Draws the board as `render_mode` says."""
        if self.render_mode is None:
            gymnasium.logger.warn("You are calling render method without specifying any render mode.")
            return None
        return self._renderer.show(self._learners.games)

    def _repr_svg_(self) -> str:
        """The board in a notebook."""
        return render.svg(self._learners.games)

    def close(self) -> None:
        """Closes the window, if there is one."""
        self._renderer.close()


_ONLY = np.zeros(1, np.int64)
