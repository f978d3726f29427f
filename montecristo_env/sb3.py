"""The Stable-Baselines3 environment: a native `VecEnv` on the batch, with action masks for sb3-contrib."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecristo_env.errors import InvalidArgument
from montecristo_env.games import action_codes
from montecristo_env.render.renderer import Renderer
from montecristo_env.ruleset import RulesetLike
from montecristo_env.single_agent import Opponents, Seen, SingleAgentGames

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:  # pragma: no cover
    raise ImportError("montecristo_env.sb3 needs stable-baselines3: pip install 'montecristo-env[sb3]'") from error


class MonteCristoVecEnv(VecEnv):
    """`MaskablePPO("MlpPolicy", MonteCristoVecEnv(256, opponents="random"))` trains on it as it is.

    For the arguments see `SingleAgentGames`. Games that end are restarted at once. Their info has `episode` (the keys
    of SB3's Monitor, and `win`, `score_margin`, `decisions`), `terminal_observation` and `TimeLimit.truncated`.
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
        mask_in_observation: bool = False,
    ) -> None:
        self._learners = SingleAgentGames(
            num_envs, opponents, num_players, seat, ruleset, reward, obs_dtype, mask_in_observation
        )
        self._renderer = Renderer(render_mode)
        self._envs = [_SingleEnv(self._learners, self._renderer, game) for game in range(num_envs)]
        self._begun = time.time()
        super().__init__(num_envs, self._learners.observation_space, self._learners.action_space)

    @property
    def games(self) -> Any:
        """The batch that is played."""
        return self._learners.games

    def reset(self) -> Seen:
        """Starts new games, from the seeds of `seed()` if it was called."""
        self._learners.start(np.arange(self.num_envs), self._seeds)
        self._reset_seeds()
        self._reset_options()
        masks = self._learners.masks()
        self.reset_infos = [{"action_mask": mask} for mask in masks]
        return self._learners.observe()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Takes the learners' decisions."""
        self._actions = action_codes(actions, self.num_envs)

    def step_wait(self) -> tuple[Seen, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Plays them, and everybody else's until the learners' next ones."""
        self._learners.step(self._actions)
        rewards, dones = self._learners.rewards(), self._learners.over
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = np.flatnonzero(dones)
        if ended.size:
            self._finish(ended, rewards, infos)
        return self._learners.observe(), rewards, dones, infos

    def _finish(self, ended: NDArray[np.int64], rewards: NDArray[np.float32], infos: list[dict[str, Any]]) -> None:
        """Fills the infos of games that have ended, and starts new ones."""
        outcome = self._learners.outcome(ended)
        observations, truncated = self._learners.observe_each(ended), self._learners.truncated[ended]
        seconds = round(time.time() - self._begun, 6)
        for k, game in enumerate(ended.tolist()):  # SB3 wants a dict for each
            facts = {name: values[k].item() for name, values in outcome.items()}
            episode = {"r": float(rewards[game]), "l": int(self._learners.steps[game]), "t": seconds} | facts
            infos[game] = facts | {
                "episode": episode,
                "terminal_observation": observations[k],
                "TimeLimit.truncated": bool(truncated[k]),
            }
        self._learners.start(ended)
        for k, mask in zip(ended.tolist(), self._learners.masks(ended), strict=True):
            self.reset_infos[k] = {"action_mask": mask}

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions of every learner, (N, actions)."""
        return self._learners.masks().view(np.bool_)

    # --- the games one by one, as SB3 wants to see them

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Calls a method of some games."""
        if method_name == "action_masks" and indices is None:
            return list(self.action_masks())
        return [getattr(env, method_name)(*method_args, **method_kwargs) for env in self._selected(indices)]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of some games."""
        return [getattr(env, attr_name) for env in self._selected(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Sets an attribute of some games; a new `seat` counts from their next game on."""
        for env in self._selected(indices):
            setattr(env, attr_name, value)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """True for SB3's Monitor, whose work is done here; nothing else is wrapped around a game."""
        return [wrapper_class is Monitor for _ in self._selected(indices)]

    def _selected(self, indices: int | Iterable[int] | None) -> list["_SingleEnv"]:
        return [self._envs[index] for index in self._get_indices(indices)]

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """A picture of every game."""
        return [env.render() if self.render_mode == "rgb_array" else None for env in self._envs]

    def close(self) -> None:
        """Closes the window, if there is one."""
        self._renderer.close()


class _SingleEnv:
    """One game of the batch, as `get_attr`, `set_attr` and `env_method` see it."""

    spec = None

    def __init__(self, learners: SingleAgentGames, renderer: Renderer, game: int) -> None:
        self._learners, self._renderer, self._game = learners, renderer, game
        self.render_mode = renderer.render_mode
        self.observation_space, self.action_space = learners.observation_space, learners.action_space
        self.num_players = learners.num_players

    @property
    def seat(self) -> int:
        return int(self._learners.seats[self._game])

    @seat.setter
    def seat(self, seat: int | str) -> None:
        if seat != "random" and (not isinstance(seat, int | np.integer) or not 0 <= seat < self.num_players):
            raise InvalidArgument(f'seat must be 0 to {self.num_players - 1} or "random", but is {seat!r}')
        self._learners.wanted_seats[self._game] = -1 if seat == "random" else seat

    def action_masks(self) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self._learners.masks(np.array([self._game]))[0].view(np.bool_)
        return mask

    def public_state(self) -> dict[str, Any]:
        return self._learners.games.public_state(self._game)

    def render(self) -> Any:
        return self._renderer.show(self._learners.games, self._game) if self.render_mode else None
