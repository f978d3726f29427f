"""Many games of self-play as one Stable-Baselines3 environment: a column of a rollout is a game, not a player."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from montecristo_env import GameBatch, actions, make_agent, symmetry
from montecristo_env.agent import PublicView
from montecristo_env.core.constants import MAX_PLAYERS
from montecristo_env.ruleset import RulesetLike
from montecristo_env.util.spaces import observation_box
from montecristo_train.pool import Opponent, Pool
from montecristo_train.seat_gae import SeatStep
from montecristo_train.settings import SelfPlaySettings

LEARNER = -1  # who holds a seat: the learner, or a place in the pool
Floats = NDArray[np.float32]


class SelfPlayVecEnv(VecEnv):
    """N games in which the learner holds all seats, or all but some that the pool plays.

    Every step is one decision of the learner in every game, for whichever of their seats it is; then the pool plays
    until the learner is asked again, and ended games are followed by new ones at once. Observations, masks and actions
    have the kinds in market order (see `montecristo_env.symmetry`). The reward that Stable-Baselines3 sees is that of
    the seat that decided; what all seats got is in the first info, `infos[0]["seats"]`, a `SeatStep` of all games.

    Args:
        players: the player count of every game, (N,).
        pool: the opponents.
        seed: of deals and seatings.
        ruleset: see `GameBatch`.
    """

    render_mode = None

    def __init__(
        self, players: Sequence[int] | NDArray[np.int64], pool: Pool, seed: int, ruleset: RulesetLike = None
    ) -> None:
        self.games = GameBatch(len(players), np.asarray(players), seed=seed, ruleset=ruleset, reward="win")
        self.pool = pool
        self.rng = np.random.default_rng(seed)
        num_games = len(self.games)
        self.holders = np.full((num_games, MAX_PLAYERS), LEARNER)
        self._rewards = np.zeros((num_games, MAX_PLAYERS), np.float32)
        self._ended = np.zeros(num_games, np.bool_)
        self._rows = np.arange(num_games)
        self._view = PublicView(self.games)
        self._masks = np.zeros((num_games, actions.COUNT), np.int8)
        super().__init__(num_games, observation_box("int8"), Discrete(actions.COUNT))
        self._seat_learners(self._rows)

    @property
    def deciders(self) -> NDArray[np.int64]:
        """Whose turn it is in each game, (N,); always a seat of the learner."""
        return self.games.current_player.astype(np.int64)

    def reset(self) -> NDArray[np.int8]:
        """What the deciders see; games that are being played go on, so that a resumed run can."""
        self._let_pool_play()
        return self._observe()

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Takes the learner's decisions."""
        self._actions = symmetry.permute_actions(actions.astype(np.int64), symmetry.inverse(self._order))

    def step_wait(self) -> tuple[NDArray[np.int8], Floats, NDArray[np.bool_], list[dict[str, Any]]]:
        """Makes them, and lets the pool play until the next ones."""
        acted = self.deciders
        self._rewards = np.zeros_like(self._rewards)
        self._ended = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self.games.step(self._actions)
        self._settle(self._rows, infos)
        self._let_pool_play(infos)
        infos[0]["seats"] = SeatStep(acted, self._rewards, self._ended, self.deciders)
        return self._observe(), self._rewards[self._rows, acted], self._ended.copy(), infos

    def _let_pool_play(self, infos: list[dict[str, Any]] | None = None) -> None:
        waiting = self._rows
        while True:
            holders = self.holders[waiting, self.games.current_player[waiting]]
            waiting, holders = waiting[holders != LEARNER], holders[holders != LEARNER]
            if waiting.size == 0:
                return
            self.games.step(self.pool.act(self._view, waiting, holders), rows=waiting)
            self._settle(waiting, infos)

    def _settle(self, rows: NDArray[np.int64], infos: list[dict[str, Any]] | None) -> None:
        """Pays everybody where a game has ended with the last step, and starts the next one there."""
        over = rows[self.games.step_status[rows] > 0]
        if over.size == 0:
            return
        first = over[~self._ended[over]]  # a second end before the learner's turn has no decision to be credited to
        self._rewards[first] = self.games.rewards[first]
        self._ended[first] = True
        shares = self.games.winners / np.maximum(self.games.winners.sum(axis=1, keepdims=True), 1)
        for game in over.tolist():  # a few in every step
            self._count(game, shares[game])
            if infos is not None:
                infos[game] = self._episode(game)
        self.games.reset(over)
        self._seat_learners(over)

    def _count(self, game: int, shares: Floats) -> None:
        """Tells the pool how its member did, compared with the learner, per seat."""
        players = int(self.games.num_players[game])
        holders = self.holders[game, :players]
        place = int(holders.max())
        if place == LEARNER:
            return
        theirs, ours = shares[:players][holders == place].mean(), shares[:players][holders == LEARNER].mean()
        if theirs + ours > 0:
            self.pool.count(place, float(theirs / (theirs + ours)))

    def _episode(self, game: int) -> dict[str, Any]:
        """What Stable-Baselines3 logs of a game: its length, and the reward of the first seat."""
        players = int(self.games.num_players[game])
        scores = np.sort(self.games.scores[game, :players])
        return {
            "episode": {
                "r": float(self._rewards[game, 0]),
                "l": int(self.games.states["decisions"][game]),
                "margin": int(scores[-1] - scores[-2]),
                "players": players,
            }
        }

    def _seat_learners(self, rows: NDArray[np.int64]) -> None:
        """Decides for games that begin who holds which seat."""
        self.holders[rows] = LEARNER
        for game in rows.tolist():
            place = self.pool.draw(self.rng)
            if place is not None:
                players = int(self.games.num_players[game])
                held = players - 1 if not self.pool.members[place].past_self else self.rng.integers(1, players)
                seats = self.rng.permutation(players)[:held]
                self.holders[game, seats] = place

    def _observe(self) -> NDArray[np.int8]:
        seen = self.games.observe(masks=self._masks)
        self._order = symmetry.market_order(seen)
        ordered: NDArray[np.int8] = symmetry.permute_observations(seen, self._order)
        return ordered

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions of every decider, (N, actions.COUNT)."""
        legal: NDArray[np.bool_] = symmetry.permute_masks(self._masks, self._order).view(np.bool_)
        return legal

    # --- what VecEnv asks for besides

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Calls a method; only `action_masks` makes sense game by game."""
        if method_name != "action_masks":
            raise AttributeError(f"games of self-play have no {method_name}")
        masks = self.action_masks()
        return list(masks if indices is None else masks[self._places(indices)])

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of the whole, once for every game."""
        return [getattr(self, attr_name) for _ in self._places(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Sets an attribute of the whole."""
        setattr(self, attr_name, value)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Nothing is wrapped around a game."""
        return [False for _ in self._places(indices)]

    def _places(self, indices: Any) -> list[int]:
        return list(self._get_indices(indices))

    def close(self) -> None:
        """There is nothing to close."""


def make_env(settings: SelfPlaySettings) -> SelfPlayVecEnv:
    """The games of a run, with its opponents."""
    shares = np.cumsum(settings.players) / np.sum(settings.players)
    players = 2 + np.searchsorted(shares, (np.arange(settings.n_envs) + 0.5) / settings.n_envs)
    opponents = [Opponent(make_agent(name), past_self=False) for name in settings.opponents]
    pool = Pool(settings.past_share, settings.opponents_share, settings.pool_size, members=opponents)
    return SelfPlayVecEnv(players, pool, settings.seed, settings.ruleset)
