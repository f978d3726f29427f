"""The player that searches: Monte Carlo tree search on games whose hidden parts are redrawn in every simulation."""

import numpy as np
from numpy.typing import NDArray

from montecristo_agents import judgement, tree
from montecristo_agents.greedy import MOST_CHOICES, NOT_JUDGED, greedy_choice, liking
from montecristo_agents.judgement import FEATURES, judge
from montecristo_agents.tree import (
    NODE,
    ROOT,
    add_missing,
    back_up,
    descend,
    forget_hidden,
    most_visited,
    plant,
    write_shares,
)
from montecristo_env.agent import Evaluation, PublicView
from montecristo_env.core._jit import Library, kernel
from montecristo_env.core.actions import COUNT
from montecristo_env.core.chance import random_choice
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS
from montecristo_env.core.layout import STATE, Row, States, aligned_empty, aligned_zeros
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import play
from montecristo_env.errors import InvalidArgument
from montecristo_env.threads import ALL_CORES, share

SIMULATIONS = 800
MOST_SIMULATIONS = 100_000
MOST_ROUNDS = 100
ROLLOUTS = ("greedy", "random")

# --- found by matches between versions
ROUNDS = 2  # one was as good for a few hundred simulations in an earlier version, but worse for more, at equal time
CURIOSITY = 0.4  # how much the search trusts greedy's idea of a move that was tried seldom; 0.2 and 0.8 won less
DOUBT = 0.05  # how likely a move is that greedy does not like at all, compared with his own

_NO_SHARES, _NO_VALUES = np.zeros((0, 0)), np.zeros(0)

SOURCES = (__file__, tree.__file__, *judgement.SOURCES)
"""The files that the search is made from: a library that uses its kernels must name them."""

library = Library("the search", *SOURCES)


class MctsAgent:
    """Searches for a move with so many simulations: `mcts:800`, `mcts:800:rollout=random`, `mcts:800:rounds=3`.

    A simulation redraws what is hidden, goes down the tree of the moves tried so far to a position that is new, plays
    on from there, judges who will win (see `judgement`), and tells the moves on its way. What is drawn is the same for
    the first try of each move, for the second, and so on, so that luck favours none. On the way down a move is chosen
    for its mean value and for how much the greedy player likes it, which counts less the more often it was tried. The
    move tried most often is played. All randomness comes from the random stream of each game.

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
            np.empty((parts, (1 + self.simulations) * MOST_CHOICES), NODE),
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
    worths, priors, features = np.empty(MOST_CHOICES, np.int64), np.empty(MOST_CHOICES), np.empty(len(FEATURES))
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
                priors,
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
    priors: np.ndarray,
    features: np.ndarray,
) -> None:
    """Grows a tree from the root, by the moves of one position with every simulation."""
    size = grow(tree, plant(tree), ROOT, root, worths, priors)
    for _ in range(simulations):
        leaf = descend(tree, root, key, s, CURIOSITY)
        size = grow(tree, size, leaf, s, worths, priors)
        roll_out(s, greedily, int(s.round_number) + rounds)
        judge(s, features, values)
        back_up(tree, leaf, values)


@kernel
def grow(tree: np.ndarray, size: int, node: int, s: Row, worths: np.ndarray, priors: np.ndarray) -> int:
    """Adds the moves that are missing in a position, as likely as greedy likes them; the new size of the tree."""
    if s.legal == NOTHING:
        return size
    worths[:] = NOT_JUDGED
    priors[:] = 0.0
    best = greedy_choice(s, worths)
    total = 0.0
    for choice in range(MOST_CHOICES):
        if s.legal & bit(choice) != NOTHING:
            liked = 1.0 if choice == best else liking(worths, best, choice)
            priors[choice] = DOUBT + liked * liked
            total += priors[choice]
    priors /= total
    return add_missing(tree, size, node, s, priors)


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
