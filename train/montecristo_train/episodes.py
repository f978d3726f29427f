"""Games of self-play with search, and what they teach: positions, improved policies and targets for every player."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecristo_agents import search
from montecristo_agents.entity import EntityEvaluator, EntityNetwork, Sizes, observe_deciders
from montecristo_agents.search import MOST_CHOICES, SEARCH, Search, start_search, write_utilities
from montecristo_env import GameBatch, actions, observation, symmetry
from montecristo_env.core._jit import Library, copy_bytes, kernel
from montecristo_env.core.actions import FIRST
from montecristo_env.core.chance import advance, mix
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS
from montecristo_env.core.layout import STATE, Row, States, aligned_empty, aligned_zeros
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import play, start
from montecristo_env.core.setup import next_seed
from montecristo_env.ruleset import RulesetLike

MOST_DECISIONS = 512  # of a game that are learnt from; longer ones are rare
ROUNDS_AHEAD = 2  # in which points are predicted
MARGIN_SCALE, POINTS_SCALE = 20.0, 10.0  # points that count as 1
_ROW_BYTES = STATE.itemsize
_GAMES, _DECISIONS, _MARGINS = range(3)  # of statistics

VALUE, WIN = slice(0, MAX_PLAYERS), slice(MAX_PLAYERS, 2 * MAX_PLAYERS)
"""Where shares of the utility and of the win stand in a row of targets, from the decider on, clockwise."""
MARGIN = WIN.stop
"""Where the final margin of the decider stands."""
AUXILIARY = slice(MARGIN, MARGIN + 1 + MAX_PLAYERS)
"""That, and the points of each player in the coming rounds."""
TARGETS = AUXILIARY.stop

library = Library("self-play with search", __file__, *search.SOURCES)


class Positions(NamedTuple):
    """Positions that were played, and what to learn from them."""

    states: States
    """(N,); only what the decider sees of them is learnt from."""
    policies: NDArray[np.float32]
    """The improved policies, by place in the block of the decision, (N, MOST_CHOICES)."""
    targets: NDArray[np.float32]
    """(N, TARGETS)"""

    @classmethod
    def empty(cls, size: int) -> "Positions":
        """Room for so many."""
        return cls(
            aligned_zeros(size, STATE),
            np.zeros((size, MOST_CHOICES), np.float32),
            np.zeros((size, TARGETS), np.float32),
        )

    def first(self, size: int) -> "Positions":
        """A copy of the first so many."""
        return Positions(self.states[:size].copy(), self.policies[:size].copy(), self.targets[:size].copy())


class Batch(NamedTuple):
    """Positions as the network sees them, kinds in market order."""

    seen: NDArray[np.int8]
    masks: NDArray[np.bool_]
    policies: NDArray[np.float32]
    targets: NDArray[np.float32]


class SelfPlay:
    """Games that one network plays with itself by search, each at its own pace.

    Args:
        players: of each game, (N,).
        sizes: of the network.
        budgets: of the search (see `Search`).
        win_weight: of the share of the win in the utility.
        seed: of deals and searches: same seed and same weights, same games.
        ruleset: see `GameBatch`.
    """

    def __init__(
        self,
        players: NDArray[np.int64],
        sizes: Sizes,
        budgets: list[int],
        win_weight: float,
        seed: int,
        ruleset: RulesetLike,
    ) -> None:
        library.compile_once(_call_every_entry_point)
        self.games = GameBatch(players.size, players, seed=seed, ruleset=ruleset, threads=1)
        self.sizes, self.win_weight = sizes, win_weight
        self._budgets = budgets
        self._search: Search | None = None
        self._keys = np.random.default_rng(seed).integers(2**63, size=players.size, dtype=np.uint64)
        self._states = aligned_empty((players.size, MOST_DECISIONS), STATE)
        self._policies = np.empty((players.size, MOST_DECISIONS, MOST_CHOICES), np.float32)
        self._values = np.empty((players.size, MOST_DECISIONS, MAX_PLAYERS), np.float32)
        self._lengths = np.zeros(players.size, np.int64)

    def collect(
        self, tensors: Mapping[str, NDArray[Any]], size: int, td_lambda: float
    ) -> tuple[Positions, dict[str, float]]:
        """Plays with these weights until finished games give so many positions, or a few more or less.

        Returns: the positions, and facts about the games.
        """
        evaluator = EntityEvaluator(EntityNetwork(self.sizes, tensors))
        if self._search is None:
            self._search = Search(len(self.games), evaluator, self._budgets, noise=1.0, win_weight=self.win_weight)
            everyone = np.arange(len(self.games))
            self._search.start(everyone, self.games.states, self._keys)
        self._search.evaluator = evaluator
        room = Positions.empty(size + MOST_DECISIONS)
        statistics, filled, evaluations = np.zeros(3), 0, 0
        while filled < size:
            self._search.tick()
            evaluations += len(self.games)
            filled = go_on(
                self.games.states,
                self._search.searches,
                self._search.roots,
                self._keys,
                self._states,
                self._policies,
                self._values,
                self._lengths,
                td_lambda,
                self.win_weight,
                *room,
                filled,
                statistics,
            )
        games = max(statistics[_GAMES], 1.0)
        facts = {"game/decisions": statistics[_DECISIONS] / games, "game/margin": statistics[_MARGINS] / games}
        return room.first(filled), facts | {
            "games": float(statistics[_GAMES]),
            "evaluations": float(evaluations),
        }


def prepare(positions: Positions, picked: NDArray[np.int64]) -> Batch:
    """What the network learns from these positions."""
    states = positions.states[picked]
    seen = np.empty((picked.size, observation.SIZE), np.int8)
    masks, policies = (
        np.zeros((picked.size, actions.COUNT), np.bool_),
        np.zeros((picked.size, actions.COUNT), np.float32),
    )
    observe_deciders(states, seen, 0, picked.size)
    spread(states, positions.policies[picked], masks, policies)
    order = symmetry.market_order(seen)
    return Batch(
        symmetry.permute_observations(seen, order),
        symmetry.permute_masks(masks, order),
        symmetry.permute_masks(policies, order),
        positions.targets[picked],
    )


# --- Compiled --------------------------------------------------------------------------------------------------------


@library.entry_point
def go_on(
    games: States,
    searches: np.ndarray,
    roots: States,
    keys: np.ndarray,
    states: States,
    policies: np.ndarray,
    values: np.ndarray,
    lengths: np.ndarray,
    td_lambda: float,
    win_weight: float,
    out_states: States,
    out_policies: np.ndarray,
    out_targets: np.ndarray,
    filled: int,
    statistics: np.ndarray,
) -> int:
    """Where a search is done, keeps the position and plays its action; a game that is over gives its positions.

    A game for whose positions there is no room waits. Returns how many positions there are.
    """
    returns = np.empty(MAX_PLAYERS)
    for i in range(len(games)):
        s, found = games[i], searches[i]
        if not found.done:
            continue
        if s.legal != NOTHING:
            length = lengths[i]
            if length < MOST_DECISIONS:
                copy_bytes(states[i, length].bytes, 0, s.bytes, 0, _ROW_BYTES)
                for choice in range(MOST_CHOICES):
                    policies[i, length, choice] = found.policy[choice]
                for seat in range(MAX_PLAYERS):
                    values[i, length, seat] = found.values[seat]
                lengths[i] += 1
            play(s, found.action - int(FIRST[s.decision]))
        if s.legal == NOTHING:
            if filled + lengths[i] > len(out_states):
                continue
            write_targets(s, states[i], values[i], lengths[i], td_lambda, win_weight, returns, out_targets[filled:])
            for t in range(lengths[i]):
                copy_bytes(out_states[filled + t].bytes, 0, states[i, t].bytes, 0, _ROW_BYTES)
                out_policies[filled + t] = policies[i, t]
            filled += lengths[i]
            statistics[_GAMES] += 1
            statistics[_DECISIONS] += lengths[i]
            statistics[_MARGINS] += abs(margin_of(s, 0))
            lengths[i] = 0
            start(s, next_seed(s.seed))
        keys[i] = advance(keys[i])
        start_search(s, mix(keys[i]), roots[i], searches[i])
    return filled


@kernel
def margin_of(s: Row, seat: int) -> int:
    """By how many points a player leads the best of the others."""
    best = -1
    for other in range(s.num_players):
        if other != seat:
            best = max(best, int(s.score[other]))
    return int(s.score[seat]) - best


@kernel
def write_targets(
    end: Row,
    states: States,
    values: np.ndarray,
    length: int,
    td_lambda: float,
    win_weight: float,
    returns: np.ndarray,
    out: np.ndarray,
) -> None:
    """What to learn from every position of a game: TD(lambda) of values, who has won, and by how much.

    Everything is given from the decider on, clockwise.
    """
    players = int(end.num_players)
    write_utilities(end, win_weight, returns)
    winners = 0
    for seat in range(players):
        winners += int(end.winners[seat])
    later = length  # the first position of a round that is ROUNDS_AHEAD later
    for t in range(length - 1, -1, -1):
        s = states[t]
        while later - 1 > t and states[later - 1].round_number >= s.round_number + ROUNDS_AHEAD:
            later -= 1
        out[t, :] = 0.0
        for ego in range(players):
            seat = (int(s.current_player) + ego) % players
            points = int(end.score[seat]) if later == length else int(states[later].score[seat])
            out[t, ego] = returns[seat]
            out[t, MAX_PLAYERS + ego] = int(end.winners[seat]) / winners
            out[t, MARGIN + 1 + ego] = (points - int(s.score[seat])) / POINTS_SCALE
        out[t, MARGIN] = margin_of(end, int(s.current_player)) / MARGIN_SCALE
        for seat in range(players):
            returns[seat] = td_lambda * returns[seat] + (1.0 - td_lambda) * values[t, seat]


@library.entry_point
def spread(states: States, policies: np.ndarray, masks: np.ndarray, out: np.ndarray) -> None:
    """Which actions are legal, and how likely each is, by code, into zeros."""
    for k in range(len(states)):
        first = int(FIRST[states[k].decision])
        for choice in range(int(FIRST[states[k].decision + 1]) - first):
            if states[k].legal & bit(choice) != NOTHING:
                masks[k, first + choice] = True
                out[k, first + choice] = policies[k, choice]


def _call_every_entry_point() -> None:
    rows, episodes, room = aligned_zeros(1, STATE), aligned_zeros((1, 1), STATE), Positions.empty(1)
    rows["num_players"] = MIN_PLAYERS
    policies, values = np.zeros((1, 1, MOST_CHOICES), np.float32), np.zeros((1, 1, MAX_PLAYERS), np.float32)
    keys, lengths = np.zeros(1, np.uint64), np.zeros(1, np.int64)
    searches = np.zeros(1, SEARCH)  # none is done, so nothing happens
    arrays = rows, searches, rows.copy(), keys, episodes, policies, values, lengths
    go_on(*arrays, 1.0, 1.0, *room, 0, np.zeros(3))
    spread(rows[:0].copy(), room.policies, np.zeros((0, 1), np.bool_), np.zeros((0, 1), np.float32))
