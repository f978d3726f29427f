"""The player that searches: Monte Carlo tree search on games whose hidden parts are redrawn in every simulation."""

import numpy as np
from numpy.typing import NDArray

from montecristo_agents import judgement, tree
from montecristo_agents.greedy import MOST_CHOICES, NOT_JUDGED, greedy_choice, liking
from montecristo_agents.judgement import FEATURES, judge
from montecristo_agents.tree import (
    NODE,
    ROOT,
    add_child,
    back_up,
    choice_of,
    forget_hidden,
    imagine,
    most_visited,
    move_of,
    plant,
    write_shares,
)
from montecristo_env.agent import Evaluation, PublicView
from montecristo_env.core._jit import Library, kernel
from montecristo_env.core.actions import COUNT
from montecristo_env.core.chance import random_choice, stream
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS, NONE
from montecristo_env.core.layout import STATE, Row, States, aligned_empty, aligned_zeros
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import play
from montecristo_env.errors import InvalidArgument
from montecristo_env.threads import ALL_CORES, share

SIMULATIONS = 800
MOST_SIMULATIONS = 1_000_000
MOST_ROUNDS = 100
ROLLOUTS = ("greedy", "random")

# --- found by matches between versions
ROUNDS = 2  # one is as good for a few hundred simulations, but worse for more, at equal time
EXPLORATION = 0.1  # how much a move gains by being tried seldom; 0.2 and 0.02 lost more games than they won
WIDENING = 1.0  # moves that are tried in a position, for each square root of its visits
TRUST = 1.0  # what a move gets on top of its values, in all, as far as the greedy player likes it

_NO_SHARES, _NO_VALUES = np.zeros((0, 0)), np.zeros(0)

SOURCES = (__file__, tree.__file__, *judgement.SOURCES)
"""The files that the search is made from: a library that uses its kernels must name them."""

library = Library("the search", *SOURCES)


class MctsAgent:
    """Searches for a move with so many simulations: `mcts:800`, `mcts:800:rollout=random`, `mcts:800:rounds=3`.

    A simulation redraws what is hidden, goes down the tree of the moves tried so far to one that is new, plays on from
    there, judges the position by the scores and by what a scoring round would bring, and tells the moves on its way.
    What is drawn is the same for the first try of each move, for the second, and so on, so that luck favours none.
    In every position the greedy player's move is tried first, the others, best liked first, as visits become more.
    The move tried most often is played. All randomness comes from the random stream of each game.

    Args:
        settings: the number of simulations per decision, then settings, all separated by colons. `rollout=greedy` or
            `rollout=random`: who plays on from the new move. `rounds=N`: until N rounds of the slide have begun,
            or the game is over; with 0 the position is judged at once.
    """

    def __init__(self, settings: str = str(SIMULATIONS)) -> None:
        simulations, *options = settings.split(":")
        self.simulations = whole_number("the number of simulations", simulations, 1, MOST_SIMULATIONS)
        self.rollout = ROLLOUTS[0]
        self.rounds = ROUNDS
        for option in options:
            name, _, value = option.partition("=")
            if name == "rollout" and value in ROLLOUTS:
                self.rollout = value
            elif name == "rounds":
                self.rounds = whole_number("rounds", value, 0, MOST_ROUNDS)
            else:
                raise InvalidArgument(
                    f"{option!r} is no setting of mcts: these are rollout={' or rollout='.join(ROLLOUTS)}, and rounds=N"
                )
        self.name = f"mcts:{settings}"
        library.compile_once(_call_every_entry_point)

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        return self._search(games, rows, _NO_SHARES, _NO_VALUES)

    def evaluate(self, games: PublicView, rows: NDArray[np.int64]) -> Evaluation:
        """How often it tried each action, and what the tries led to, as the reward "win"."""
        shares, values = np.zeros((rows.size, COUNT)), np.zeros(rows.size)
        self._search(games, rows, shares, values)
        players = games.num_players[rows]
        return Evaluation(shares, (players * values - 1) / (players - 1))

    def _search(
        self, games: PublicView, rows: NDArray[np.int64], shares: NDArray[np.float64], expected: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        library.compile_once(_call_every_entry_point)  # again: a copy from another process was not made here
        keys = games.random_keys(rows)
        roots = games.resample_hidden(keys, rows).states
        parts = min(ALL_CORES, roots.size)
        actions = np.empty(roots.size, np.int64)
        share(
            search_games,
            roots,
            keys,
            self.simulations,
            self.rollout == "greedy",
            self.rounds,
            np.empty((parts, 1 + self.simulations), NODE),
            aligned_empty(parts, STATE),
            np.empty((parts, MAX_PLAYERS)),
            actions,
            shares,
            expected,
            size=parts,
            threads=ALL_CORES,
        )
        return actions


def whole_number(what: str, text: str, lowest: int, highest: int) -> int:
    """The number that a setting gives."""
    if not (text.isascii() and text.isdecimal()) or not lowest <= int(text) <= highest:
        raise InvalidArgument(f"{what} must be a whole number from {lowest} to {highest}, but is {text!r}")
    return int(text)


@library.entry_point
def search_games(
    roots: States,
    keys: np.ndarray,
    simulations: int,
    greedily: bool,
    rounds: int,
    trees: np.ndarray,
    games: States,
    values: np.ndarray,
    out: np.ndarray,
    shares: np.ndarray,
    expected: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """The best action of every root; unless `shares` is empty, also how often each was tried, and with what values.

    A part of the work, with a tree of its own, is every so many-th root.
    """
    parts = len(trees)
    worths, features = np.empty(MOST_CHOICES, np.int64), np.empty(len(FEATURES))
    for part in range(begin, end):
        for k in range(part, len(roots), parts):
            forget_hidden(roots[k])
            search(
                roots[k],
                keys[k],
                simulations,
                greedily,
                rounds,
                trees[part],
                games[part],
                values[part],
                worths,
                features,
            )
            out[k] = most_visited(trees[part])
            if shares.size > 0:
                expected[k] = write_shares(trees[part], shares[k])


@kernel
def search(
    root: Row,
    key: np.uint64,
    simulations: int,
    greedily: bool,
    rounds: int,
    tree: np.ndarray,
    s: Row,
    values: np.ndarray,
    worths: np.ndarray,
    features: np.ndarray,
) -> None:
    """Grows a tree from the root, one node with every simulation."""
    size = plant(tree)
    for _ in range(simulations):
        leaf = descend(tree, size, root, key, s, worths)
        size = max(size, leaf + 1)
        roll_out(s, greedily, int(s.round_number) + rounds)
        judge(s, features, values)
        back_up(tree, leaf, values)


@kernel
def descend(tree: np.ndarray, size: int, root: Row, key: np.uint64, s: Row, worths: np.ndarray) -> int:
    """Plays the most promising moves until a new one is due, and that one; its node in the tree of this size.

    If the game is over first, it is the node where it ended. The first try of every move at the root is played in one
    and the same imagined game, the second tries in another one, and so on: all moves have the same luck, which would
    otherwise hide how good they are.
    """
    node = ROOT
    best, new_choices = look_at_children(tree, node, root)
    tries = int(tree[best].visits) if new_choices == NOTHING and best != NONE else 0
    imagine(root, stream(key, tries), s)
    while s.legal != NOTHING:
        if new_choices != NOTHING:
            return try_new_choice(tree, size, node, s, new_choices, worths)
        node = best
        play(s, choice_of(s, tree[node].move))
        best, new_choices = look_at_children(tree, node, s)
    return node


@kernel
def look_at_children(tree: np.ndarray, node: int, s: Row) -> tuple[int, np.uint64]:
    """The most promising child among those legal here; and the choices without a child, if a new one is due."""
    new_choices = s.legal
    best, highest = NONE, 0.0
    tried, all_visits = 0, 0
    child = int(tree[node].first_child)
    while child != NONE:
        move = tree[child]
        choice = choice_of(s, move.move)
        if choice != NONE:
            new_choices &= ~bit(choice)
            move.available += 1
            visits = int(move.visits)
            tried += 1
            all_visits += visits
            curiosity = EXPLORATION * np.sqrt(np.log(int(move.available)) / visits)
            bound = (move.total + TRUST * move.prior) / visits + curiosity
            if best == NONE or bound > highest:
                best, highest = child, bound
        child = int(move.next_sibling)
    if tried >= 1 + WIDENING * np.sqrt(all_visits):
        new_choices = NOTHING
    return best, new_choices


@kernel
def try_new_choice(tree: np.ndarray, size: int, node: int, s: Row, new_choices: np.uint64, worths: np.ndarray) -> int:
    """Plays a choice that is new to a node: the one greedy likes best, or a random one of those he did not judge."""
    worths[:] = NOT_JUDGED
    best = greedy_choice(s, worths)
    choice = best
    if new_choices & bit(choice) == NOTHING:
        choice = random_among(s, new_choices)
        for other in range(MOST_CHOICES):
            if new_choices & bit(other) != NOTHING and worths[other] > worths[choice]:
                choice = other
    add_child(tree, size, node, move_of(s, choice), liking(worths, best, choice) if choice != best else 1.0)
    play(s, choice)
    return size


@kernel
def random_among(s: Row, choices: np.uint64) -> int:
    """A uniformly random one of these choices."""
    legal = s.legal
    s.legal = choices
    choice = random_choice(s)
    s.legal = legal
    return choice


@kernel
def roll_out(s: Row, greedily: bool, last_round: int) -> None:
    """Plays on until this round begins or the game is over."""
    while s.legal != NOTHING and s.round_number < last_round:
        play(s, greedy_choice(s, None) if greedily else random_choice(s))


def _call_every_entry_point() -> None:
    roots = aligned_zeros(1, STATE)
    roots["num_players"] = MIN_PLAYERS
    keys, actions = np.zeros(1, np.uint64), np.zeros(1, np.int64)
    trees, values = np.zeros((1, 1), NODE), np.zeros((1, MAX_PLAYERS))
    search_games(roots, keys, 0, True, 0, trees, roots.copy(), values, actions, _NO_SHARES, _NO_VALUES, 0, 1)
