"""The PettingZoo AEC environment: a batch of one game, in PettingZoo's words."""

import copy
from operator import attrgetter
from typing import Any, Self

import gymnasium
import numpy as np
from gymnasium.spaces import Dict, Discrete
from numpy.typing import NDArray
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from montecristo_env import render
from montecristo_env.core import actions, observation
from montecristo_env.core.batch import ILLEGAL_REWARD
from montecristo_env.errors import InvalidArgument
from montecristo_env.games import GameBatch
from montecristo_env.render.renderer import RENDER_FPS, RENDER_MODES, Renderer
from montecristo_env.ruleset import RulesetLike
from montecristo_env.util.spaces import masked_space, observation_box

Observation = dict[str, NDArray[Any]]


class raw_env(AECEnv[str, Observation, int]):
    """The environment without wrappers. An illegal action raises `IllegalAction` and changes nothing."""

    metadata = {  # noqa: RUF012 (PettingZoo reads it from the class)
        "name": "montecristo_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        num_players: int = 2,
        render_mode: str | None = None,
        ruleset: RulesetLike = None,
        reward: str = "win",
        obs_dtype: str = "float32",
    ) -> None:
        super().__init__()
        box = observation_box(obs_dtype)
        self.games = GameBatch(1, num_players, ruleset=ruleset, reward=reward)
        self.render_mode = render_mode
        self._renderer = Renderer(render_mode)
        self._dtype = np.dtype(obs_dtype)
        self.possible_agents = [f"player_{seat}" for seat in range(int(num_players))]
        self.agents: list[str] = []
        self._seat = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._seen = np.zeros((1, observation.SIZE), self._dtype)  # by the player who must decide
        self._masks = np.zeros((1, actions.COUNT), np.int8)
        self.state_space = box
        self.observation_spaces = {agent: masked_space(obs_dtype) for agent in self.possible_agents}
        self.action_spaces: dict[str, Discrete[np.int64]] = {
            agent: Discrete(actions.COUNT) for agent in self.possible_agents
        }

    def observation_space(self, agent: str) -> Dict:
        """The same for every agent: `observation`, scaled or counts, and `action_mask`."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> "Discrete[np.int64]":
        """All actions of the game; the mask says which are legal."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts a new game: the one of the seed, or else the one that follows the last."""
        self.games.reset(rows=0, seed=seed)
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._over = False  # for whatever reason
        self._no_mask = np.zeros(actions.COUNT, np.int8)
        self.infos = {agent: {"action_mask": self._no_mask.copy()} for agent in self.agents}
        self._skip_agent_selection = None
        self.agent_selection = self.agents[0]
        self._look()
        if self.render_mode == "human":
            self.render()

    def _look(self) -> None:
        """Asks the player who must decide."""
        self.games.observe(self._seen, masks=self._masks)
        self._ask()

    def _ask(self) -> None:
        """Passes the turn to the player who must decide next, with what they may do."""
        agent = self.possible_agents[self.games.current_player[0]]
        if agent != self.agent_selection:
            self.infos[self.agent_selection] = {"action_mask": self._no_mask.copy()}
            self.agent_selection = agent
        self.infos[agent] = {"action_mask": self._masks[0].copy()}

    def step(self, action: int | None) -> None:
        """One decision of the selected agent; None once it is done."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self.games.step(np.array([action]), observations=self._seen, masks=self._masks)
        self._cumulative_rewards[agent] = 0.0
        if self.games.step_status[0]:
            self._finish()
        else:
            self._ask()
        if self.render_mode == "human":
            self.render()

    def _finish(self) -> None:
        """The game is over: everybody gets their reward."""
        self.rewards = dict(zip(self.agents, self.games.rewards[0].tolist(), strict=False))
        self.terminations = dict.fromkeys(self.agents, bool(self.games.terminated[0]))
        self.truncations = dict.fromkeys(self.agents, bool(self.games.truncated[0]))
        self._end_decisions()
        self._accumulate_rewards()

    def _end_decisions(self) -> None:
        """Nobody has legal actions any more."""
        self.infos = {agent: {"action_mask": self._no_mask.copy()} for agent in self.agents}
        self._over = True

    def observe(self, agent: str) -> Observation:
        """What an agent sees; its mask is all zeros unless it is to decide."""
        if agent == self.agent_selection and not self._over:
            return {"observation": self._seen[0].copy(), "action_mask": self._masks[0].copy()}
        return {"observation": self._seen_by(self._seat[agent]), "action_mask": self._no_mask.copy()}

    def state(self) -> NDArray[Any]:
        """The game as seat 0 sees it: all players know the same (§10.2), so this is everything that anybody knows."""
        return self._seen_by(0)

    def _seen_by(self, seat: int) -> NDArray[Any]:
        seen: NDArray[Any] = self.games.observe(np.empty_like(self._seen), seat)[0]
        return seen

    # --- copies

    def clone(self) -> Self:
        """An independent copy, in the middle of a game too; it has no window."""
        return copy.deepcopy(self)

    def get_state(self) -> dict[str, Any]:
        """Everything about the game at this moment, for `set_state` of this or an equal environment."""
        if not hasattr(self, "infos"):
            raise InvalidArgument("there is no state before the first reset")
        return copy.deepcopy({name: value for name, value in self.__dict__.items() if name not in _FIXED})

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes back to a moment that `get_state` has kept."""
        if state["games"].num_players[0] != self.games.num_players[0]:
            raise InvalidArgument(
                f"the state is of a game with {state['games'].num_players[0]} players, "
                f"but this environment has {self.games.num_players[0]}"
            )
        self.__dict__.update(copy.deepcopy(state))

    # --- pictures

    def render(self) -> NDArray[np.uint8] | str | None:
        """Draws the board as `render_mode` says."""
        if self.render_mode is None:
            gymnasium.logger.warn("You are calling render method without specifying any render mode.")
            return None
        return self._renderer.show(self.games)

    def _repr_svg_(self) -> str:
        """The board in a notebook."""
        return render.svg(self.games)

    def close(self) -> None:
        """Closes the window, if there is one."""
        self._renderer.close()


# Made once and the same in every copy: not part of the state of a game.
_FIXED = {"render_mode", "_renderer", "_dtype", "possible_agents", "_seat", "state_space"} | {
    "observation_spaces",
    "action_spaces",
}


# PettingZoo's wrappers fetch `agents`, `terminations` and so on through one `__getattr__` per layer, which takes most
# of the time of a step. These look at the innermost environment at once, and otherwise are the stock wrappers.


class _Direct:
    """The attributes of the innermost environment, without a detour."""

    _innermost: raw_env

    def __init__(self, env: AECEnv[str, Observation, int], **kwargs: Any) -> None:
        self._innermost = env.unwrapped
        super().__init__(env, **kwargs)  # type: ignore[call-arg]


for _name in ("agents", "agent_selection", "rewards", "terminations", "truncations", "infos", "_cumulative_rewards"):
    setattr(_Direct, _name, property(attrgetter(f"_innermost.{_name}")))


class _TerminateIllegal(_Direct, wrappers.TerminateIllegalWrapper[str, Observation, int]):
    def step(self, action: int) -> None:
        super().step(action)
        if self._terminated:
            self._innermost._end_decisions()

    def set_state(self, state: dict[str, Any]) -> None:
        self._innermost.set_state(state)
        self._terminated = False
        self._prev_obs = self._prev_info = None  # of another moment


class _AssertOutOfBounds(_Direct, wrappers.AssertOutOfBoundsWrapper[str, Observation, int]):
    def step(self, action: int | None) -> None:
        if isinstance(action, int) and 0 <= action < actions.COUNT:
            self.env.step(action)  # what the stock wrapper would do, after a check that takes longer
        else:
            super().step(action)


class _OrderEnforcing(_Direct, wrappers.OrderEnforcingWrapper[str, Observation, int]):
    def __init__(self, env: AECEnv[str, Observation, int]) -> None:
        super().__init__(env)
        del self._innermost  # until the reset: an attribute asked for then is refused by the stock wrapper

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts a new game."""
        super().reset(seed, options)
        self._innermost = self.unwrapped

    def clone(self) -> Self:
        """An independent copy, wrappers and all."""
        return copy.deepcopy(self)

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes back to a moment that `get_state` has kept; serves as a reset."""
        self.env.set_state(state)
        self._has_reset = self._has_updated = True
        self._innermost = self.unwrapped

    def _repr_svg_(self) -> str:
        return str(self.unwrapped._repr_svg_())


def env(**kwargs: Any) -> AECEnv[str, Observation, int]:
    """The environment in PettingZoo's conventional wrappers: an illegal action ends the game with a warning."""
    wrapped: Any = raw_env(**kwargs)
    wrapped = _TerminateIllegal(wrapped, illegal_reward=ILLEGAL_REWARD)
    wrapped = _AssertOutOfBounds(wrapped)
    return _OrderEnforcing(wrapped)
