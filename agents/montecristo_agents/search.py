"""The search: Gumbel at the root, PUCT below it, many games at once, and an evaluator that is asked for all of them.

Every simulation redraws what is hidden, goes down the tree of the moves tried so far (an open loop, see `tree`) to a
position with a move that is new, and asks the evaluator how likely moves are there and what share of the utility each
seat may expect. Everybody maximises their own share (max^n).

At the root, Gumbel noise and the logits pick the moves that are considered, and sequential halving shares the
simulations among them (Danihelka et al., "Policy improvement by planning with Gumbel", 2022). Without noise the search
is a player; with noise its improved policy is a target to learn from.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.tree import (
    NODE,
    ROOT,
    Trees,
    action_of,
    add_child,
    backup,
    canonicalize_hidden,
    choice_of,
    determinize,
    expand,
    init_tree,
    move_of,
    select_child,
)
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.chance import stream
from montecristo_env.core.constants import MAX_PLAYERS, NONE
from montecristo_env.core.jit import Array, bind, copy_bytes, entry_point, kernel, local_array
from montecristo_env.core.layout import STATE, Float32Table, Int64s, Int64Table, Row, States, UInt64s, aligned_zeros
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import play
from montecristo_env.errors import InvalidArgument
from montecristo_env.util.threads import parallel_for

C_PUCT = 0.3  # how much priors count below the root
C_VISIT = 50.0  # how much values count at the root before a move was tried often
# both are for two players; shares of more players differ less, so that they count in proportion to the players
SCORE_SCALE = 6.0  # points; for two players, softmax(scores / 6) is (1 + tanh(margin / 12)) / 2
WIN_WEIGHT = 0.5  # of the share of the win in the utility
MOST_CHOICES: int = int(np.diff(FIRST).max())
GAMES_PER_THREAD = 64  # that are worth a thread when each goes down its tree once
_NOISE_STREAM = 1 << 32  # redraws use the streams from 0
_SPARE_BITS = np.uint64(12)  # 52 bits and a half are exact in a float, and never 0 or 1
_STEPS = 2.0**52
_ROW_BYTES = STATE.itemsize

SEARCH = np.dtype(
    [
        ("key", np.uint64),  # all chance of the search follows from it
        ("simulations", np.int32),  # done so far; NONE before the root is evaluated
        ("budget", np.int32),  # simulations to do
        ("considered", np.int32),  # moves that sequential halving begins with
        ("moves", np.int32),  # legal ones; the node of the j-th is 1 + j
        ("nodes", np.int32),  # of the tree
        ("leaf", np.int32),  # the node that waits for the evaluator
        ("halfway", np.bool_),  # another seat was played for, and the simulation goes on
        ("done", np.bool_),
        ("scale", np.float64),  # of values against logits: half the number of players
        ("value", np.float64),  # of the root for the decider, as evaluated
        ("logits", np.float64, (MOST_CHOICES,)),  # by move
        ("noise", np.float64, (MOST_CHOICES,)),  # by move
        ("q", np.float64, (MOST_CHOICES,)),  # by move: mean values for the decider, completed
        ("totals", np.float64, (MAX_PLAYERS,)),  # sums of the values that were backed up, by seat
        # --- results, once done
        ("action", np.int64),
        ("policy", np.float64, (MOST_CHOICES,)),  # improved, by place in the block of the decision
        ("values", np.float64, (MAX_PLAYERS,)),  # what each seat may expect
    ]
)
"""The state of one search."""

Searches: TypeAlias = Annotated[NDArray[np.void], Array(SEARCH)]


class Evaluator(Protocol):
    """What a search asks about the leaves of a batch of trees."""

    def evaluate(self, rows: States) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The logits of all actions, (K, actions.COUNT), and the share of each seat, (K, 4).

        Shares are from 0 to 1 and sum to 1; seats that nobody holds have 0. What is hidden in the rows is redrawn; who
        plays on from them plays with copies. Rows of games that are over may get anything.
        """


def considered_visits(moves: int, simulations: int) -> list[int]:
    """Sequential halving: how often a move must have been tried to be a candidate in each simulation.

    All considered moves are tried equally often, then the better half of them, and so on, until two are left.
    """
    if moves <= 1:
        return list(range(simulations))
    phases = int(np.ceil(np.log2(moves)))
    schedule: list[int] = []
    visits = [0] * moves
    left = moves
    while len(schedule) < simulations:
        for _ in range(max(1, simulations // (phases * left))):
            schedule += visits[:left]
            visits[:left] = [count + 1 for count in visits[:left]]
        left = max(2, left // 2)
    return schedule[:simulations]


@lru_cache(4)
def schedules(budgets: tuple[int, ...]) -> NDArray[np.int64]:
    """The considered visits for each number of moves, one after the other, with the budget of each."""
    found = np.zeros((len(budgets), max(budgets)), np.int64)
    for moves, budget in enumerate(budgets, 1):
        found[moves - 1, :budget] = considered_visits(moves, budget)
    return found


class Search:
    """Searches in many games at once, each at its own pace; a `tick` is one simulation in each of them.

    Args:
        size: how many games.
        evaluator: asked in every tick for a leaf of every game.
        budgets: `budgets[m - 1]` is the number of simulations at a root where m moves are considered; there are as many
            entries as moves may be considered at most.
        noise: the weight of the Gumbel noise: 1 to explore, 0 to play.
        win_weight: of the share of the win in the utility of games that are over; the rest is for points.
        best_response: whether everybody else plays what the evaluator likes best, as frozen opponents would whose
            network it is, instead of what is best for them. Their decisions are not in the tree; each takes a tick.
        threads: that may share the work, besides those of the evaluator.
    """

    def __init__(
        self,
        size: int,
        evaluator: Evaluator,
        budgets: Sequence[int],
        noise: float = 0.0,
        win_weight: float = WIN_WEIGHT,
        best_response: bool = False,
        threads: int = 1,
    ) -> None:
        if size < 1 or not budgets or min(budgets) < 1:
            raise InvalidArgument(
                f"a search needs a game or more, and a simulation or more each, but got {size} and {list(budgets)}"
            )
        self.evaluator, self.threads = evaluator, threads
        self.searches = np.zeros(size, SEARCH)
        """Their states and results, `SEARCH`; those that are done wait for `start`."""
        self.searches["done"] = True
        self.roots = aligned_zeros(size, STATE)
        """The positions that are searched from, without a trace of what is hidden."""
        self._leaves = aligned_zeros(size, STATE)
        self._logits, self._values = np.zeros((size, COUNT), np.float32), np.zeros((size, MAX_PLAYERS), np.float32)
        self._trees = np.empty((size, 1 + (max(budgets) + 1) * MOST_CHOICES), NODE)
        games = self.roots, self.searches, self._trees, self._leaves
        self._simulate = bind(simulate_games, *games, schedules(tuple(budgets)), bool(best_response))
        self._expand = bind(
            expand_trees,
            *games,
            self._logits,
            self._values,
            np.array(budgets, np.int64),
            float(noise),
            float(win_weight),
            bool(best_response),
        )

    def start(self, games: NDArray[np.int64], rows: States, keys: NDArray[np.uint64]) -> None:
        """Begins new searches in some of the games.

        Args:
            games: which ones, (K,).
            rows: their positions, (K,). They are copied, and what is hidden in them has no influence.
            keys: from which all chance of each search follows, (K,).
        """
        self._share(bind(start_searches, games, rows, keys, self.roots, self.searches), games.size)

    def tick(self) -> None:
        """One simulation in every search that is not done, or a part of one (see `best_response`)."""
        self._share(self._simulate, self.searches.size)
        self._logits[:], self._values[:] = self.evaluator.evaluate(self._leaves)
        self._share(self._expand, self.searches.size)

    def run(self, rows: States, keys: NDArray[np.uint64]) -> NDArray[np.void]:
        """Searches from these positions, one for every game, until all are done; the results, `SEARCH`."""
        self.start(np.arange(self.searches.size), rows, keys)
        while not self.searches["done"].all():
            self.tick()
        return self.searches

    def _share(self, function: Callable[[int, int], None], size: int) -> None:
        parallel_for(function, size=size, threads=self.threads, least=GAMES_PER_THREAD)


# --- Compiled --------------------------------------------------------------------------------------------------------


@entry_point
def start_searches(
    games: Int64s, rows: States, keys: UInt64s, roots: States, searches: Searches, begin: int, end: int
) -> None:
    """Roots without a trace of what is hidden, and searches that have done nothing yet."""
    for k in range(begin, end):
        start_search(rows[k], keys[k], roots[games[k]], searches[games[k]])


@kernel
def start_search(s: Row, key: np.uint64, root: Row, search: Row) -> None:
    """A root without a trace of what is hidden, and a search that has done nothing yet."""
    copy_bytes(root.bytes, 0, s.bytes, 0, _ROW_BYTES)
    canonicalize_hidden(root)
    search.key = key
    search.simulations = NONE
    search.leaf = ROOT
    search.halfway = False
    search.totals[:] = 0.0
    search.policy[:] = 0.0
    search.values[:] = 0.0
    search.action = NONE
    search.done = s.legal == NOTHING


@entry_point
def simulate_games(
    roots: States,
    searches: Searches,
    trees: Trees,
    leaves: States,
    schedules: Int64Table,
    best_response: bool,
    begin: int,
    end: int,
) -> None:
    """Goes down in every tree to a position that the evaluator must be asked about; at first that is the root."""
    for i in range(begin, end):
        if searches[i].done:
            continue
        if searches[i].simulations == NONE:
            determinize(roots[i], stream(searches[i].key, 0), leaves[i])
            continue
        if not searches[i].halfway:
            wanted = schedules[searches[i].considered - 1, searches[i].simulations]
            searches[i].leaf = begin_simulation(roots[i], searches[i], trees[i], wanted, leaves[i])
        seat = int(roots[i].current_player) if best_response else NONE
        searches[i].leaf = select_leaf(trees[i], int(searches[i].leaf), leaves[i], seat)


@kernel
def begin_simulation(root: Row, search: Row, tree: np.ndarray, wanted: int, s: Row) -> int:
    """Plays a root move that was tried `wanted` times, in a game with redrawn hidden parts; its node.

    The first try of every move at the root is played in one and the same redrawn game, the second tries in another
    one, and so on: all moves have the same luck, which would otherwise hide how good they are.
    """
    complete_q(search, tree)
    node = 1 + best_move(search, tree, wanted)
    determinize(root, stream(search.key, int(tree[node].visits)), s)
    play(s, choice_of(s, tree[node].move))
    return node


@kernel
def select_leaf(tree: np.ndarray, node: int, s: Row, seat: int) -> int:
    """Plays the best moves until one is missing in the tree, or another seat is to move than this one; the last node.

    Without a seat, all are in the tree.
    """
    while seat == NONE or s.current_player == seat:
        best = select_child(tree, node, s, 2.0 * C_PUCT / s.num_players)
        if best == NONE:
            break
        node = best
        play(s, choice_of(s, tree[node].move))
    return node


@kernel
def complete_q(search: Row, tree: np.ndarray) -> None:
    """The mean value of every root move for the decider; untried ones get a mixture of the others and of the root's."""
    highest = -np.inf
    for j in range(search.moves):
        highest = max(highest, search.logits[j])
    visits, tried, weighted = 0, 0.0, 0.0
    for j in range(search.moves):
        node = tree[1 + j]
        if node.visits > 0:
            search.q[j] = node.total / node.visits
            prior = np.exp(search.logits[j] - highest)
            visits += int(node.visits)
            tried += prior
            weighted += prior * search.q[j]
    mixed = search.value
    if visits > 0:  # a prior may be so low that it is 0
        mixed = (search.value + visits * (weighted / tried if tried > 0.0 else search.value)) / (1 + visits)
    for j in range(search.moves):
        if tree[1 + j].visits == 0:
            search.q[j] = mixed


@kernel
def most_visits(search: Row, tree: np.ndarray) -> int:
    """How often the root move was tried that was tried most."""
    most = 0
    for j in range(search.moves):
        most = max(most, int(tree[1 + j].visits))
    return most


@kernel
def best_move(search: Row, tree: np.ndarray, wanted: int) -> int:
    """Of the root moves that were tried `wanted` times, the one with the best noise, logit and value."""
    weight = search.scale * (C_VISIT + most_visits(search, tree))
    best, highest = NONE, -np.inf
    for j in range(search.moves):
        score = search.noise[j] + search.logits[j] + weight * search.q[j]
        if tree[1 + j].visits == wanted and score > highest:
            best, highest = j, score
    return best


@entry_point
def expand_trees(
    roots: States,
    searches: Searches,
    trees: Trees,
    leaves: States,
    logits: Float32Table,
    values: Float32Table,
    budgets: Int64s,
    noise: float,
    win_weight: float,
    best_response: bool,
    begin: int,
    end: int,
) -> None:
    """Gives every tree what the evaluator says about its leaf, and ends the searches that have done enough."""
    priors, utilities = local_array(MOST_CHOICES, np.float64), local_array(MAX_PLAYERS, np.float64)
    for i in range(begin, end):
        if searches[i].done:
            continue
        if searches[i].simulations == NONE:
            init_root(roots[i], searches[i], trees[i], logits[i], values[i], priors, budgets, noise)
            continue
        over = leaves[i].legal == NOTHING
        searches[i].halfway = best_response and not over and leaves[i].current_player != roots[i].current_player
        if searches[i].halfway:
            play(leaves[i], likeliest(leaves[i], logits[i]))
            continue
        if over:
            write_utilities(leaves[i], win_weight, utilities)
        else:
            write_priors(leaves[i], logits[i], priors)
            searches[i].nodes = expand(trees[i], searches[i].nodes, searches[i].leaf, leaves[i], priors)
            for seat in range(MAX_PLAYERS):
                utilities[seat] = values[i, seat]
        backup(trees[i], searches[i].leaf, utilities)
        for seat in range(MAX_PLAYERS):
            searches[i].totals[seat] += utilities[seat]
        searches[i].simulations += 1
        if searches[i].simulations == searches[i].budget:
            finish(roots[i], searches[i], trees[i])


@kernel
def init_root(
    root: Row,
    search: Row,
    tree: np.ndarray,
    logits: np.ndarray,
    values: np.ndarray,
    priors: np.ndarray,
    budgets: np.ndarray,
    noise: float,
) -> None:
    """A tree with a node for every legal move, which stand in the order of their codes."""
    size, moves = init_tree(tree), 0
    first = int(FIRST[root.decision])
    write_priors(root, logits, priors)
    for choice in range(int(FIRST[root.decision + 1]) - first):
        if root.legal & bit(choice) != NOTHING:
            add_child(tree, size, ROOT, move_of(root, choice), priors[choice])
            search.logits[moves] = logits[first + choice]
            search.noise[moves] = noise * gumbel(search.key, choice) if noise > 0.0 else 0.0
            size += 1
            moves += 1
    search.nodes = size
    search.moves = moves
    search.considered = min(moves, budgets.size)
    search.budget = budgets[search.considered - 1]
    search.scale = 0.5 * root.num_players
    search.value = values[root.current_player]
    search.simulations = 0


@kernel
def gumbel(key: np.uint64, number: int) -> float:
    """Noise: the highest of logits with such noise is a draw from their softmax."""
    bits = stream(stream(key, _NOISE_STREAM), number) >> _SPARE_BITS
    return float(-np.log(-np.log((float(bits) + 0.5) / _STEPS)))


@kernel
def write_priors(s: Row, logits: np.ndarray, priors: np.ndarray) -> None:
    """The softmax of the logits of legal choices, by place in the block of the decision."""
    first, choices = int(FIRST[s.decision]), int(FIRST[s.decision + 1] - FIRST[s.decision])
    highest, total = -np.inf, 0.0
    for choice in range(choices):
        if s.legal & bit(choice) != NOTHING:
            highest = max(highest, float(logits[first + choice]))
    for choice in range(choices):
        priors[choice] = 0.0
        if s.legal & bit(choice) != NOTHING:
            priors[choice] = np.exp(float(logits[first + choice]) - highest)
            total += priors[choice]
    for choice in range(choices):
        priors[choice] /= total


@kernel
def likeliest(s: Row, logits: np.ndarray) -> int:
    """The legal choice with the highest logit; of several, the first one."""
    first, best = int(FIRST[s.decision]), NONE
    for choice in range(int(FIRST[s.decision + 1]) - first):
        if s.legal & bit(choice) != NOTHING and (best == NONE or logits[first + choice] > logits[first + best]):
            best = choice
    return best


@kernel
def write_utilities(s: Row, win_weight: float, out: np.ndarray) -> None:
    """What a game that is over is worth to each seat: shares of the win and of softmax(scores / 6), which sum to 1."""
    winners, best, total = 0, 0, 0.0
    for seat in range(s.num_players):
        winners += int(s.winners[seat])
        best = max(best, int(s.score[seat]))
    for seat in range(MAX_PLAYERS):
        out[seat] = 0.0
        if seat < s.num_players:
            out[seat] = np.exp((int(s.score[seat]) - best) / SCORE_SCALE)
            total += out[seat]
    for seat in range(s.num_players):
        out[seat] = win_weight * int(s.winners[seat]) / winners + (1.0 - win_weight) * out[seat] / total


@kernel
def finish(root: Row, search: Row, tree: np.ndarray) -> None:
    """The results: the action, the improved policy, and what each seat may expect.

    The decider expects what the improved policy gets; the others share the rest as in the simulations.
    """
    complete_q(search, tree)
    most = most_visits(search, tree)
    search.action = action_of(tree[1 + best_move(search, tree, most)].move)
    weight, highest, total, expected = search.scale * (C_VISIT + most), -np.inf, 0.0, 0.0
    for j in range(search.moves):
        highest = max(highest, search.logits[j] + weight * search.q[j])
    for j in range(search.moves):
        likely = np.exp(search.logits[j] + weight * search.q[j] - highest)
        search.policy[action_of(tree[1 + j].move) - int(FIRST[root.decision])] = likely
        total += likely
        expected += likely * search.q[j]
    for choice in range(MOST_CHOICES):
        search.policy[choice] /= total
    decider, players = int(root.current_player), int(root.num_players)
    others = 0.0
    for seat in range(players):
        others += search.totals[seat] if seat != decider else 0.0
    for seat in range(players):
        part = search.totals[seat] / others if others > 0.0 else 1.0 / (players - 1)
        search.values[seat] = expected / total if seat == decider else (1.0 - expected / total) * part
    search.done = True
