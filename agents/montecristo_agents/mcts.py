"""The player that searches: Monte Carlo tree search on games whose hidden parts are redrawn in every simulation."""

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.greedy import MOST_CHOICES, NOT_VALUED, greedy_choice, relative_value
from montecristo_agents.heuristic_value import FEATURES, evaluate
from montecristo_agents.tree import (
    NODE,
    ROOT,
    Trees,
    backup,
    canonicalize_hidden,
    expand,
    init_tree,
    most_visited,
    simulate,
    write_visit_shares,
)
from montecristo_env.agent import Evaluation, PublicView
from montecristo_env.core.actions import COUNT
from montecristo_env.core.chance import random_choice
from montecristo_env.core.constants import MAX_PLAYERS
from montecristo_env.core.jit import entry_point, kernel, local_array
from montecristo_env.core.layout import (
    STATE,
    Float64s,
    Float64Table,
    Int64s,
    Row,
    States,
    UInt64s,
    aligned_empty,
)
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import play
from montecristo_env.errors import InvalidArgument
from montecristo_env.threads import ALL_CORES, parallel_for

SIMULATIONS = 800
MOST_SIMULATIONS = 100_000
MOST_ROUNDS = 100
ROLLOUTS = ("greedy", "random")

# --- found by matches between versions
ROUNDS = 2  # one was as good for a few hundred simulations in an earlier version, but worse for more, at equal time
C_PUCT = 0.4  # how much the search trusts greedy's idea of a move that was tried seldom; 0.2 and 0.8 won less
PRIOR_FLOOR = 0.05  # how likely a move is that greedy does not like at all, compared with its own

_NO_SHARES, _NO_VALUES = np.zeros((0, 0)), np.zeros(0)


class MctsAgent:
    """Searches for a move with so many simulations: `mcts:800`, `mcts:800:rollout=random`, `mcts:800:rounds=3`.

    A simulation redraws what is hidden, goes down the tree of the moves tried so far to a position that is new, plays
    on from there, and backs up the heuristic value of where it ends (see `heuristic_value`). What is drawn is the same
    for the first try of each move, for the second, and so on, so that luck favours none. On the way down a move is
    chosen for its mean value and for its prior, the greedy player's value of it, which counts less the more often the
    move was tried. The move tried most often is played. All randomness comes from the random stream of each game.

    Args:
        settings: the number of simulations per decision, then settings, all separated by colons. `rollout=greedy` or
            `rollout=random`: who plays on from the new move. `rounds=N`: until N rounds of the slide have begun,
            or the game is over; with 0 there is no rollout.
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
        keys = games.random_keys(rows)
        roots = games.resample_hidden(keys, rows).states
        parts = min(ALL_CORES, roots.size)
        actions = np.empty(roots.size, np.int64)
        parallel_for(
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


@entry_point
def search_games(
    roots: States,
    keys: UInt64s,
    simulations: int,
    greedily: bool,
    rounds: int,
    trees: Trees,
    games: States,
    values: Float64Table,
    out: Int64s,
    shares: Float64Table,
    expected: Float64s,
    begin: int,
    end: int,
) -> None:
    """The best action of every root; unless `shares` is empty, also how often each was tried, and with what values.

    A part of the work, with a tree of its own, is every so many-th root.
    """
    parts = len(trees)
    choice_values, priors = local_array(MOST_CHOICES, np.int64), local_array(MOST_CHOICES, np.float64)
    features = local_array(len(FEATURES), np.float64)
    for part in range(begin, end):
        for k in range(part, len(roots), parts):
            canonicalize_hidden(roots[k])
            search(
                roots[k],
                keys[k],
                simulations,
                greedily,
                rounds,
                trees[part],
                games[part],
                values[part],
                choice_values,
                priors,
                features,
            )
            out[k] = most_visited(trees[part])
            if shares.size > 0:
                expected[k] = write_visit_shares(trees[part], shares[k])


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
    choice_values: np.ndarray,
    priors: np.ndarray,
    features: np.ndarray,
) -> None:
    """Grows a tree from the root, by the moves of one position with every simulation."""
    size = grow(tree, init_tree(tree), ROOT, root, choice_values, priors)
    for _ in range(simulations):
        leaf = simulate(tree, root, key, s, C_PUCT)
        size = grow(tree, size, leaf, s, choice_values, priors)
        roll_out(s, greedily, int(s.round_number) + rounds)
        evaluate(s, features, values)
        backup(tree, leaf, values)


@kernel
def grow(tree: np.ndarray, size: int, node: int, s: Row, choice_values: np.ndarray, priors: np.ndarray) -> int:
    """Adds the moves that are missing in a position, as likely as greedy likes them; the new size of the tree."""
    if s.legal == NOTHING:
        return size
    choice_values[:] = NOT_VALUED
    priors[:] = 0.0
    best = greedy_choice(s, choice_values)
    total = 0.0
    for choice in range(MOST_CHOICES):
        if s.legal & bit(choice) != NOTHING:
            liked = 1.0 if choice == best else relative_value(choice_values, best, choice)
            priors[choice] = PRIOR_FLOOR + liked * liked
            total += priors[choice]
    priors /= total
    return expand(tree, size, node, s, priors)


@kernel
def roll_out(s: Row, greedily: bool, last_round: int) -> None:
    """Plays on until this round begins or the game is over."""
    while s.legal != NOTHING and s.round_number < last_round:
        play(s, greedy_choice(s, None) if greedily else random_choice(s))
