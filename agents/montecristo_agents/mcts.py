"""The evaluator of a search that plays on: priors from the greedy player, values from the end of a rollout."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.greedy import MOST_CHOICES, NOT_VALUED, greedy_choice, relative_value
from montecristo_agents.heuristic_value import FEATURES, evaluate
from montecristo_agents.search_agent import SearchAgent, simulations_from, whole_number
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.chance import random_choice
from montecristo_env.core.constants import MAX_PLAYERS
from montecristo_env.core.jit import bind, copy_bytes, entry_point, kernel, local_array
from montecristo_env.core.layout import STATE, Float32Table, Row, States, aligned_empty
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import play
from montecristo_env.errors import InvalidArgument
from montecristo_env.util.threads import parallel_for

SIMULATIONS = 800
MOST_ROUNDS = 100
ROLLOUTS = ("greedy", "random")
ROWS_PER_THREAD = 8  # that are worth a thread
GAMES_AT_ONCE = 16

# --- found by matches between versions
ROUNDS = 2  # one was as good for a few hundred simulations in an earlier version, but worse for more, at equal time
PRIOR_FLOOR = 0.05  # how likely a move is that greedy does not like at all, compared with its own
_ROW_BYTES = STATE.itemsize


def mcts(settings: str = str(SIMULATIONS)) -> SearchAgent:
    """Searches with rollouts, so many simulations per decision: `mcts:800`, `mcts:800:rollout=random:rounds=3`.

    Args:
        settings: the number of simulations, then settings, all separated by colons. `rollout=greedy` or
            `rollout=random`: who plays on from a new position. `rounds=N`: until N rounds of the slide have begun, or
            the game is over; with 0 there is no rollout.
    """
    simulations, *options = settings.split(":")
    number, rollout, rounds = simulations_from(simulations), ROLLOUTS[0], ROUNDS
    for option in options:
        name, _, value = option.partition("=")
        if name == "rollout" and value in ROLLOUTS:
            rollout = value
        elif name == "rounds":
            rounds = whole_number("rounds", value, 0, MOST_ROUNDS)
        else:
            raise InvalidArgument(
                f"{option!r} is no setting of mcts: these are rollout={' or rollout='.join(ROLLOUTS)}, and rounds=N"
            )
    evaluators = partial(RolloutEvaluator, rollout, rounds)
    return SearchAgent(evaluators, number, f"mcts:{settings}", win_weight=1.0, games_at_once=GAMES_AT_ONCE)


class RolloutEvaluator:
    """Likes moves as the greedy player does, and plays on to the heuristic value of a later position.

    Args:
        rollout: "greedy" or "random": who plays on.
        rounds: until so many rounds of the slide have begun, or the game is over.
        threads: that may share the rows.
    """

    def __init__(self, rollout: str = ROLLOUTS[0], rounds: int = ROUNDS, threads: int = 1) -> None:
        self.rollout, self.rounds, self.threads = rollout, rounds, threads
        self._bind(aligned_empty(0, STATE))

    def evaluate(self, rows: States) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The logits of legal actions, and the share of the win of each seat; both until the next call."""
        if rows is not self._rows:
            self._bind(rows)
        parallel_for(self._evaluate, size=rows.size, threads=self.threads, least=ROWS_PER_THREAD)
        return self._found

    def _bind(self, rows: States) -> None:
        """Room for what is found out about these rows."""
        found = np.zeros((rows.size, COUNT), np.float32), np.zeros((rows.size, MAX_PLAYERS), np.float32)
        room = aligned_empty(rows.size, STATE)
        self._evaluate = bind(evaluate_by_rollout, rows, self.rollout == "greedy", self.rounds, room, *found)
        self._rows, self._found = rows, found


@entry_point
def evaluate_by_rollout(
    rows: States,
    greedily: bool,
    rounds: int,
    games: States,
    logits: Float32Table,
    shares: Float32Table,
    begin: int,
    end: int,
) -> None:
    """Writes logits of legal actions, and shares, but for games that are over; `games` is room for as many rows."""
    choice_values, features = local_array(MOST_CHOICES, np.int64), local_array(len(FEATURES), np.float64)
    values = local_array(MAX_PLAYERS, np.float64)
    for k in range(begin, end):
        if rows[k].legal == NOTHING:
            continue
        s = games[k]
        copy_bytes(s.bytes, 0, rows[k].bytes, 0, _ROW_BYTES)
        write_logits(s, choice_values, logits[k])
        roll_out(s, greedily, int(s.round_number) + rounds)
        evaluate(s, features, values)
        for seat in range(MAX_PLAYERS):
            shares[k, seat] = values[seat] if seat < s.num_players else 0.0


@kernel
def write_logits(s: Row, choice_values: np.ndarray, logits: np.ndarray) -> None:
    """How much greedy likes each legal action."""
    choice_values[:] = NOT_VALUED
    best, first = greedy_choice(s, choice_values), int(FIRST[s.decision])
    for choice in range(int(FIRST[s.decision + 1]) - first):
        if s.legal & bit(choice) != NOTHING:
            liked = 1.0 if choice == best else relative_value(choice_values, best, choice)
            logits[first + choice] = np.log(PRIOR_FLOOR + liked * liked)


@kernel
def roll_out(s: Row, greedily: bool, last_round: int) -> None:
    """Plays on until this round begins or the game is over."""
    while s.legal != NOTHING and s.round_number < last_round:
        play(s, greedy_choice(s, None) if greedily else random_choice(s))
