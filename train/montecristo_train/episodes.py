"""Games of self-play with search, and what they teach: positions, improved policies and targets for every player."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.entity import EntityEvaluator, EntityNetwork, Sizes, observe_deciders
from montecristo_agents.search import MOST_CHOICES, Search, Searches, start_search, write_utilities
from montecristo_agents.tree import determinize
from montecristo_env import GameBatch, actions, observation, symmetry
from montecristo_env.core.actions import FIRST
from montecristo_env.core.chance import advance, mix, stream
from montecristo_env.core.constants import MAX_PLAYERS
from montecristo_env.core.jit import copy_bytes, entry_point, kernel, local_array
from montecristo_env.core.layout import (
    STATE,
    BoolTable,
    Float32Cube,
    Float32Table,
    Float64s,
    Float64Table,
    Int64s,
    Row,
    States,
    StateTable,
    UInt64s,
    aligned_empty,
    aligned_zeros,
)
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import play, plays_into_draw, start
from montecristo_env.core.setup import next_seed
from montecristo_env.ruleset import RulesetLike

MOST_DECISIONS = 512  # of a game that are learnt from; longer ones are rare
ROUNDS_AHEAD = 2  # in which points are predicted
MARGIN_SCALE, POINTS_SCALE = 20.0, 10.0  # points that count as 1
_ROW_BYTES = STATE.itemsize
_GAMES, _DECISIONS, _MARGINS = range(3)  # of statistics
_LUCK_STREAM = 1 << 33  # searches use those below

VALUE, WIN = slice(0, MAX_PLAYERS), slice(MAX_PLAYERS, 2 * MAX_PLAYERS)
"""Where shares of the utility and of the win stand in a row of targets, from the decider on, clockwise."""
MARGIN = WIN.stop
"""Where the final margin of the decider stands."""
AUXILIARY = slice(MARGIN, MARGIN + 1 + MAX_PLAYERS)
"""That, and the points of each player in the coming rounds."""
TARGETS = AUXILIARY.stop


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
        """Room for `size` positions."""
        return cls(
            aligned_zeros(size, STATE),
            np.zeros((size, MOST_CHOICES), np.float32),
            np.zeros((size, TARGETS), np.float32),
        )

    def first(self, size: int) -> "Positions":
        """A copy of the first `size`."""
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
        win_weight: of the share of the win in the utility.
        redraws: of every draw, to subtract its luck from what is learnt: what it changed in the value that the network
            gives, compared with the mean over the redraws. With 0 nothing is subtracted.
        seed: of deals and searches: same seed and same weights, same games.
        ruleset: see `GameBatch`.
        network: makes the one that plays, of its sizes and weights.
    """

    def __init__(
        self,
        players: NDArray[np.int64],
        sizes: Sizes,
        win_weight: float,
        redraws: int,
        seed: int,
        ruleset: RulesetLike,
        network: Callable[[Sizes, Mapping[str, NDArray[Any]]], EntityNetwork] = EntityNetwork,
    ) -> None:
        self.games = GameBatch(players.size, players, seed=seed, ruleset=ruleset, threads=1)
        self.sizes, self.win_weight, self.redraws = sizes, win_weight, redraws
        self._network = network
        self._search: Search | None = None
        self._budgets: list[int] = []
        self._keys = np.random.default_rng(seed).integers(2**63, size=players.size, dtype=np.uint64)
        self._states = aligned_empty((players.size, MOST_DECISIONS), STATE)
        self._policies = np.empty((players.size, MOST_DECISIONS, MOST_CHOICES), np.float32)
        self._values = np.empty((players.size, MOST_DECISIONS, MAX_PLAYERS), np.float32)
        self._lucks = np.empty((players.size, MOST_DECISIONS, MAX_PLAYERS), np.float32)
        self._lengths = np.zeros(players.size, np.int64)
        self._drawn = np.empty(players.size, np.int64)
        self._outcomes = aligned_empty(players.size * (1 + redraws), STATE)

    def collect(
        self, tensors: Mapping[str, NDArray[Any]], size: int, td_lambda: float, budgets: list[int]
    ) -> tuple[Positions, dict[str, float]]:
        """Plays with these weights until finished games give `size` positions, or a few more or less.

        Args:
            tensors: the weights.
            size: how many positions.
            td_lambda: how far values are learnt from the end of the game.
            budgets: of the search (see `Search`); when they change, searches that are under way begin anew.

        Returns: the positions, and facts about the games.
        """
        evaluator = EntityEvaluator(self._network(self.sizes, tensors))
        if self._search is None or budgets != self._budgets:
            self._search = Search(len(self.games), evaluator, budgets, noise=1.0, win_weight=self.win_weight)
            self._budgets = budgets
            everyone = np.arange(len(self.games))
            self._search.start(everyone, self.games.states, self._keys)
        self._search.evaluator = evaluator
        room = Positions.empty(size + MOST_DECISIONS)
        statistics, filled, evaluations = np.zeros(3), 0, 0
        while filled < size:
            self._search.tick()
            evaluations += len(self.games)
            drawn = play_found(
                self.games.states,
                self._search.searches,
                self._keys,
                self._states,
                self._policies,
                self._values,
                self._lucks,
                self._lengths,
                self.redraws,
                self._drawn,
                self._outcomes,
            )
            if drawn > 0:
                outcomes = self._outcomes[: drawn * (1 + self.redraws)]
                shares = evaluator.evaluate(outcomes)[1].astype(np.float64)
                write_luck(outcomes, shares, self._drawn[:drawn], self._lengths, self.win_weight, self._lucks)
            filled = go_on(
                self.games.states,
                self._search.searches,
                self._search.roots,
                self._keys,
                self._states,
                self._policies,
                self._values,
                self._lucks,
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


@entry_point
def play_found(
    games: States,
    searches: Searches,
    keys: UInt64s,
    states: StateTable,
    policies: Float32Cube,
    values: Float32Cube,
    lucks: Float32Cube,
    lengths: Int64s,
    redraws: int,
    drawn: Int64s,
    outcomes: States,
) -> int:
    """Where a search is done, keeps the position and plays its action; in how many games this draws something.

    Which games these are is written to `drawn`; to `outcomes` what has come of each, and what would have come of
    redraws. With no redraws none are counted.
    """
    count = 0
    for i in range(len(games)):
        s, found, length = games[i], searches[i], lengths[i]
        if not found.done or s.legal == NOTHING:
            continue
        choice = found.action - int(FIRST[s.decision])
        if length < MOST_DECISIONS:
            copy_bytes(states[i, length].bytes, 0, s.bytes, 0, _ROW_BYTES)
            for option in range(MOST_CHOICES):
                policies[i, length, option] = found.policy[option]
            for seat in range(MAX_PLAYERS):
                values[i, length, seat] = found.values[seat]
                lucks[i, length, seat] = 0.0
            lengths[i] += 1
        play(s, choice)
        if redraws > 0 and length < MOST_DECISIONS:
            before, at = states[i, length], count * (1 + redraws)
            copy_bytes(outcomes[at].bytes, 0, before.bytes, 0, _ROW_BYTES)
            if plays_into_draw(outcomes[at], choice):
                copy_bytes(outcomes[at].bytes, 0, s.bytes, 0, _ROW_BYTES)
                for k in range(redraws):
                    determinize(before, stream(mix(keys[i]), _LUCK_STREAM + k), outcomes[at + 1 + k])
                    play(outcomes[at + 1 + k], choice)
                drawn[count] = i
                count += 1
    return count


@entry_point
def write_luck(
    outcomes: States, shares: Float64Table, drawn: Int64s, lengths: Int64s, win_weight: float, lucks: Float32Cube
) -> None:
    """The luck of the last decision of these games: what their outcome is worth, less the mean worth of redraws.

    `shares` are what each seat may expect of the outcomes; of games that are over, this is overwritten.
    """
    each = len(outcomes) // len(drawn)
    for j in range(len(drawn)):
        i = drawn[j]
        t = lengths[i] - 1
        for k in range(each):
            at = j * each + k
            if outcomes[at].legal == NOTHING:
                write_utilities(outcomes[at], win_weight, shares[at])
            for seat in range(MAX_PLAYERS):
                lucks[i, t, seat] += shares[at, seat] if k == 0 else -shares[at, seat] / (each - 1)


@entry_point
def go_on(
    games: States,
    searches: Searches,
    roots: States,
    keys: UInt64s,
    states: StateTable,
    policies: Float32Cube,
    values: Float32Cube,
    lucks: Float32Cube,
    lengths: Int64s,
    td_lambda: float,
    win_weight: float,
    out_states: States,
    out_policies: Float32Table,
    out_targets: Float32Table,
    filled: int,
    statistics: Float64s,
) -> int:
    """Where a search is done, begins the next one; a game that is over gives its positions first, and starts anew.

    A game for whose positions there is no room waits. Returns how many positions there are.
    """
    returns = local_array(MAX_PLAYERS, np.float64)
    for i in range(len(games)):
        s = games[i]
        if not searches[i].done:
            continue
        if s.legal == NOTHING:
            if filled + lengths[i] > len(out_states):
                continue
            write_targets(
                s, states[i], values[i], lucks[i], lengths[i], td_lambda, win_weight, returns, out_targets[filled:]
            )
            for t in range(lengths[i]):
                copy_bytes(out_states[filled + t].bytes, 0, states[i, t].bytes, 0, _ROW_BYTES)
                for option in range(MOST_CHOICES):
                    out_policies[filled + t, option] = policies[i, t, option]
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
    lucks: np.ndarray,
    length: int,
    td_lambda: float,
    win_weight: float,
    returns: np.ndarray,
    out: np.ndarray,
) -> None:
    """What to learn from every position of a game: TD(lambda) of values less later luck, who has won, by how much.

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
        for seat in range(players):
            returns[seat] -= lucks[t, seat]
        for ego in range(players):
            seat = (int(s.current_player) + ego) % players
            points = int(end.score[seat]) if later == length else int(states[later].score[seat])
            out[t, ego] = returns[seat]
            out[t, MAX_PLAYERS + ego] = int(end.winners[seat]) / winners
            out[t, MARGIN + 1 + ego] = (points - int(s.score[seat])) / POINTS_SCALE
        out[t, MARGIN] = margin_of(end, int(s.current_player)) / MARGIN_SCALE
        for seat in range(players):
            returns[seat] = td_lambda * returns[seat] + (1.0 - td_lambda) * values[t, seat]


@entry_point
def spread(states: States, policies: Float32Table, masks: BoolTable, out: Float32Table) -> None:
    """Which actions are legal, and how likely each is, by code, into zeros."""
    for k in range(len(states)):
        first = int(FIRST[states[k].decision])
        for choice in range(int(FIRST[states[k].decision + 1]) - first):
            if states[k].legal & bit(choice) != NOTHING:
                masks[k, first + choice] = True
                out[k, first + choice] = policies[k, choice]
