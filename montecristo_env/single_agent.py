"""A batch of games with one learner in each, the other seats played by agents: what all single-agent shells share."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray

from montecristo_env.agent import Agent, PublicView, make_agent
from montecristo_env.core import batch, observation
from montecristo_env.core.actions import COUNT
from montecristo_env.core.batch import ILLEGAL_REWARD, UNTIL_THEIR_TURN
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS
from montecristo_env.core.layout import aligned_empty
from montecristo_env.errors import InvalidArgument, InvalidPlayerCount
from montecristo_env.games import GameBatch, seed_of_game
from montecristo_env.ruleset import RulesetLike
from montecristo_env.util.spaces import masked_space, observation_box

Opponents: TypeAlias = str | Agent | Sequence[str | Agent]
Seen: TypeAlias = NDArray[Any] | dict[str, NDArray[Any]]
"""Observations, or a dict of them and action masks."""


class SingleAgentGames:
    """N games in which it is always the learner's turn, or the game has ended.

    Args:
        num_envs: how many games.
        opponents: names or agents for the other seats, in clockwise order from the learner; one alone plays them all.
        num_players: default: one more than there are opponents.
        seat: the learner's, or "random": a new one for every game, which follows from the game's seed.
        ruleset: see `GameBatch`.
        reward: see `GameBatch`.
        obs_dtype: "float32" for scaled observations, "int8" for counts.
        mask_in_observation: whether an observation is a dict of `observation` and `action_mask`, as some frameworks
            expect.

    An illegal action of the learner ends its game with the reward -1, as in PettingZoo.
    """

    def __init__(
        self,
        num_envs: int,
        opponents: Opponents = "random",
        num_players: int | None = None,
        seat: int | str = "random",
        ruleset: RulesetLike = None,
        reward: str = "win",
        obs_dtype: str = "float32",
        mask_in_observation: bool = False,
    ) -> None:
        self.agents = _seat_opponents(opponents, num_players)
        self.num_players = len(self.agents) + 1
        if seat != "random" and (not isinstance(seat, int | np.integer) or not 0 <= int(seat) < self.num_players):
            raise InvalidArgument(f'seat must be 0 to {self.num_players - 1} or "random", but is {seat!r}')
        self._dtype = observation_box(obs_dtype).dtype
        self.observation_space: Box | Dict = (
            masked_space(obs_dtype) if mask_in_observation else observation_box(obs_dtype)
        )
        self.action_space: Discrete[np.int64] = Discrete(COUNT)
        self.games = GameBatch(num_envs, self.num_players, ruleset=ruleset, reward=reward)
        self.wanted_seats = np.full(num_envs, -1 if seat == "random" else int(seat))  # -1: a random one
        self.seats = np.zeros(num_envs, np.int64)
        self.steps = np.zeros(num_envs, np.int64)  # decisions of the learner in this game
        self.illegal = np.zeros(num_envs, np.bool_)  # games that ended by an illegal action of the learner
        self._view = PublicView(self.games)
        self._players = list({id(agent): agent for agent in self.agents}.values())  # each agent object once
        places = {id(agent): place for place, agent in enumerate(self._players)}
        self._player_at = np.array([places[id(agent)] for agent in self.agents])
        # An agent that says of itself that it is uniformly random is played by the engine at once.
        self._all_random = all(getattr(agent, "uniformly_random", False) for agent in self._players)
        self._rows = np.arange(num_envs)
        self._started = False

    def start(self, rows: NDArray[Any], seeds: Sequence[int | None] | None = None) -> None:
        """New games in these rows: from the given seeds, or each from the seed that follows its last."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if rows.size == 0:
            return
        given = [] if seeds is None else [(k, seed_of_game(seed)) for k, seed in enumerate(seeds) if seed is not None]
        self.games.reset(rows)
        if given:
            self.games.reset(rows[[k for k, _ in given]], np.array([seed for _, seed in given], np.uint64))
        self.steps[rows] = 0
        self.illegal[rows] = False
        at_once = self._all_random and not self.games.has_listeners
        rewards = self.games.rewards, self.games.reward_kind
        self.games.run(batch.seat_learners, rows, self.wanted_seats, self.seats, at_once, *rewards)
        if not at_once:
            self._let_opponents_play()
        self._started = True

    def step(self, actions: NDArray[np.int64]) -> None:
        """The learners' decisions, then everybody else's until it is the learners' turn again; ended games stay."""
        if not self._started:
            raise ResetNeeded("call reset before the first step")
        games = self.games
        if self._all_random and not games.has_listeners:
            facts = self.seats, self.steps, self.illegal
            games.run(batch.step_learners, self._rows, actions, *facts, games.rewards, games.reward_kind)
            return
        alive = ~self.over
        self.steps += alive
        legal = self._are_legal(actions)
        games.rewards[:] = 0
        illegal = np.flatnonzero(alive & ~legal)
        self.illegal[illegal] = True
        games.rewards[illegal, self.seats[illegal]] = ILLEGAL_REWARD
        rows = np.flatnonzero(alive & legal)
        games.step(actions[rows], rows)
        self._let_opponents_play()

    def _are_legal(self, actions: NDArray[np.int64]) -> NDArray[np.bool_]:
        inside = (actions >= 0) & (actions < COUNT)
        legal: NDArray[np.bool_] = inside & (self.games.action_mask()[self._rows, np.where(inside, actions, 0)] == 1)
        return legal

    def _let_opponents_play(self) -> None:
        current = self.games.current_player
        while True:
            waiting = np.flatnonzero((current != self.seats) & (current >= 0) & ~self.illegal)
            if waiting.size == 0:
                return
            if self._all_random:
                self.games.play_random(UNTIL_THEIR_TURN, waiting, until=self.seats[waiting])
                return
            if len(self._players) == 1:
                self.games.step(self._players[0].act(self._view, waiting), rows=waiting)
                continue
            turn = self._player_at[(current[waiting] - self.seats[waiting] - 1) % self.num_players]
            for number, agent in enumerate(self._players):
                rows = waiting[turn == number]
                if rows.size:
                    self.games.step(agent.act(self._view, rows), rows=rows)

    # --- what the learners see and get

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which games have ended, (N,)."""
        return self.games.over | self.illegal

    @property
    def terminated(self) -> NDArray[np.bool_]:
        """Which games have ended by the rules or by an illegal action, (N,)."""
        return self.games.terminated | self.illegal

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Which games were cut off at the round limit, (N,)."""
        return self.games.truncated & ~self.illegal

    def rewards(self) -> NDArray[np.float32]:
        """The learners' rewards of the last step, (N,)."""
        rewards: NDArray[np.float32] = self.games.rewards[self._rows, self.seats]
        return rewards

    def observe(self, rows: NDArray[np.int64] | None = None) -> Seen:
        """What the learners see, (N, SIZE), a new array; or a dict of that and their legal actions."""
        seats = self.seats if rows is None else self.seats[rows]
        seen = self.games.observe(aligned_empty((seats.size, observation.SIZE), self._dtype), seats, rows)
        if isinstance(self.observation_space, Box):
            return seen
        return {"observation": seen, "action_mask": self.masks(rows)}

    def observe_each(self, rows: NDArray[np.int64]) -> list[Seen]:
        """The same, one by one."""
        seen = self.observe(rows)
        if not isinstance(seen, dict):
            return list(seen)
        return [{name: part[k] for name, part in seen.items()} for k in range(rows.size)]

    def masks(self, rows: NDArray[np.int64] | None = None) -> NDArray[np.int8]:
        """The learners' legal actions, (N, COUNT), a new array; all 0 where the game has ended."""
        masks = self.games.action_mask(rows=rows)
        if self.illegal.any():
            masks[self.illegal if rows is None else self.illegal[rows]] = 0
        return masks

    def outcome(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """How ended games went for their learners: share of the win, points ahead of the best other, decisions."""
        shares, margins = np.empty(rows.size), np.empty(rows.size, np.int64)
        self.games.run(batch.write_outcomes, rows, self.seats[rows], shares, margins)
        return {
            "win": shares,
            "score_margin": margins,
            "decisions": self.games.states["decisions"][rows].astype(np.int64),
            "illegal_action": self.illegal[rows],
        }


def _seat_opponents(opponents: Opponents, num_players: int | None) -> list[Agent]:
    alone = isinstance(opponents, str | Agent)
    if not alone and not isinstance(opponents, Sequence):
        raise InvalidArgument(f"opponents must be an agent, its name or a sequence of such, but is {opponents!r}")
    if num_players is None:
        num_players = MIN_PLAYERS if alone else len(opponents) + 1  # type: ignore[arg-type]
    if not isinstance(num_players, int | np.integer) or not MIN_PLAYERS <= num_players <= MAX_PLAYERS:
        raise InvalidPlayerCount(f"{MIN_PLAYERS} to {MAX_PLAYERS} players can play, not {num_players!r}")
    names: list[Any] = [opponents] * (num_players - 1) if alone else list(opponents)  # type: ignore[arg-type]
    if len(names) != num_players - 1:
        raise InvalidArgument(f"{num_players} players need {num_players - 1} opponents, but there are {len(names)}")
    made = {name: make_agent(name) for name in names if isinstance(name, str)}  # each name once
    return [made[name] if isinstance(name, str) else make_agent(name) for name in names]
