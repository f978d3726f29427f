"""The Gymnasium vector environment: N games with one learner each, stepped in one compiled batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from montecristo_env.core.actions import COUNT
from montecristo_env.errors import InvalidArgument
from montecristo_env.games import action_codes
from montecristo_env.render.renderer import RENDER_FPS, RENDER_MODES, Renderer
from montecristo_env.ruleset import RulesetLike
from montecristo_env.single_agent import Opponents, Seen, SingleAgentGames


class MonteCristoVectorEnv(VectorEnv[Seen, NDArray[np.int64], NDArray[Any]]):
    """`gymnasium.make_vec("montecristo_env:MonteCristo-v0", num_envs=256, opponents="random")`.

    As `MonteCristoEnv`, N times: the same seeds give the same games. `autoreset_mode` is "NextStep" (an ended game is
    restarted by the next step, whose action it ignores), "SameStep" (it is restarted at once, and its last
    observation and info are in `infos["final_obs"]` and `infos["final_info"]`) or "Disabled" (you restart it, with
    `reset(options={"reset_mask": ...})`, before the next step).
    """

    def __init__(
        self,
        num_envs: int = 1,
        opponents: Opponents = "random",
        num_players: int | None = None,
        seat: int | str = "random",
        ruleset: RulesetLike = None,
        reward: str = "win",
        obs_dtype: str = "float32",
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        mask_in_observation: bool = False,
    ) -> None:
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            names = ", ".join(mode.value for mode in AutoresetMode)
            raise InvalidArgument(f"autoreset_mode must be one of {names}, but is {autoreset_mode!r}") from None
        self.metadata = {
            "render_modes": list(RENDER_MODES),
            "render_fps": RENDER_FPS,
            "autoreset_mode": self.autoreset_mode,
        }
        self._learners = SingleAgentGames(
            num_envs, opponents, num_players, seat, ruleset, reward, obs_dtype, mask_in_observation
        )
        self.num_envs = num_envs
        self.single_observation_space = self._learners.observation_space
        self.single_action_space = self._learners.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.render_mode = render_mode
        self._renderer = Renderer(render_mode)
        self._everyone = np.ones(num_envs, np.bool_)
        self._ended = np.zeros(num_envs, np.bool_)

    @property
    def games(self) -> Any:
        """The batch that is played."""
        return self._learners.games

    @property
    def seats(self) -> NDArray[np.int64]:
        """The learners' seats."""
        return self._learners.seats

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Starts new games; one seed is counted up, game by game. `options["reset_mask"]` restarts only some games."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        rows = np.arange(self.num_envs)
        if options is not None and "reset_mask" in options:
            mask = options["reset_mask"]
            if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
                raise InvalidArgument(f"reset_mask must be a bool array of shape ({self.num_envs},), but is {mask!r}")
            rows = np.flatnonzero(mask)
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        if seeds is not None and len(seeds) != self.num_envs:
            raise InvalidArgument(f"seed must be a whole number or {self.num_envs} of them, but there are {len(seeds)}")
        self._learners.start(rows, None if seeds is None else [seeds[i] for i in rows.tolist()])
        self._ended[rows] = False
        infos = {"action_mask": self._learners.masks(), "_action_mask": np.isin(np.arange(self.num_envs), rows)}
        return self._learners.observe(), infos

    def step(
        self, actions: ArrayLike
    ) -> tuple[Seen, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """The learners' decisions, and everybody else's until their next ones."""
        learners = self._learners
        codes = action_codes(actions, self.num_envs)
        if self.autoreset_mode == AutoresetMode.DISABLED and self._ended.any():
            ended_rows = ", ".join(map(str, np.flatnonzero(self._ended)))
            raise ResetNeeded(f'the games {ended_rows} have ended: reset them with options={{"reset_mask": ...}}')
        restarted = self._ended
        learners.step(codes)
        if restarted.any():
            learners.start(restarted)
        rewards = learners.rewards().astype(np.float64)
        rewards[restarted] = 0.0
        terminated, truncated = learners.terminated.copy(), learners.truncated.copy()
        ended = terminated | truncated
        infos: dict[str, Any] = {}
        if ended.any():
            infos = self._finish(np.flatnonzero(ended), ended)
        self._ended = np.zeros_like(ended) if self.autoreset_mode == AutoresetMode.SAME_STEP else ended
        infos |= {"action_mask": learners.masks(), "_action_mask": self._everyone.copy()}
        return learners.observe(), rewards, terminated, truncated, infos

    def _finish(self, rows: NDArray[np.int64], ended: NDArray[np.bool_]) -> dict[str, Any]:
        """The infos of games that have ended; in the mode "SameStep" new games begin."""
        outcome: dict[str, Any] = {}
        for name, values in self._learners.outcome(rows).items():
            outcome[name] = np.zeros(self.num_envs, values.dtype)
            outcome[name][rows] = values
            outcome[f"_{name}"] = ended.copy()
        if self.autoreset_mode != AutoresetMode.SAME_STEP:
            return outcome
        final_obs = np.full(self.num_envs, None, object)
        final_obs[rows] = self._learners.observe_each(rows)
        mask = np.zeros((self.num_envs, COUNT), np.int8)
        self._learners.start(rows)
        return {
            "final_obs": final_obs,
            "_final_obs": ended.copy(),
            "final_info": {"action_mask": mask, "_action_mask": ended.copy()} | outcome,
            "_final_info": ended.copy(),
        }

    def action_masks(self) -> NDArray[np.int8]:
        """The legal actions of every learner, (N, actions)."""
        return self._learners.masks()

    def render(self) -> tuple[Any, ...] | None:
        """Draws every board as `render_mode` says."""
        if self.render_mode is None:
            return None
        return tuple(self._renderer.show(self._learners.games, game) for game in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the window, if there is one."""
        if hasattr(self, "_renderer"):  # not if the constructor refused
            self._renderer.close()
