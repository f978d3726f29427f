"""What a short try tells of a choice: `python benchmarks/decisions.py [--agent ppo] [--players 2] [--positions 2000]`.

In positions from games of a network, each of its likely choices is tried in some imagined games, the same for all
choices of a position. The truth is taken to be what a choice brings if the network plays on for five rounds and the
judge says how it ends. Ways to try it for less differ in who plays on, for how long, and who says how it ends. The
table gives, for every kind of decision, how far the choices of a position differ (in thousandths of a win, standard
deviation), the noise of one try, and how a way agrees with the truth (correlation, corrected for the noise of both).
"""

import argparse
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.judgement import chances
from montecristo_agents.policy import PolicyAgent
from montecristo_env import Agent, GameBatch, PublicView, make_agent
from montecristo_env.core.constants import Decision

LIKELY = 0.01
LONGEST = 70  # decisions for each two players, until positions are looked at


class Way(NamedTuple):
    who: str  # plays on
    rounds: int
    judge: str  # says how it ends

    def __str__(self) -> str:
        return f"{self.who}, {self.rounds} rounds, {self.judge}"


TRUTH = Way("network", 5, "judge")
ROUNDS = {"network": (0, 1, 2, TRUTH.rounds), "greedy": (1, 2)}
WAYS = [Way(who, rounds, judge) for who in ROUNDS for rounds in ROUNDS[who] for judge in ("judge", "value")]


def positions(network: PolicyAgent, number: int, players: int, seed: int) -> GameBatch:
    """Games that are not over, each after a random number of decisions."""
    games = GameBatch(number, players, seed=seed)
    view = PublicView(games)
    stop = np.random.default_rng(seed).integers(LONGEST * players // 2, size=number)
    while (rows := np.flatnonzero(~games.over & (games.states["decisions"] < stop))).size:
        games.step(network.act(view, rows), rows)
    return games[np.flatnonzero(~games.over)]


def play_on(games: GameBatch, agent: Agent, last_rounds: NDArray[np.int64]) -> None:
    """Until these rounds have begun or the games are over."""
    view = PublicView(games)
    while (rows := np.flatnonzero(~games.over & (games.states["round_number"] < last_rounds))).size:
        games.step(agent.act(view, rows), rows)


def try_choices(
    games: GameBatch, rows: NDArray[np.int64], codes: NDArray[np.int64], network: PolicyAgent, tries: int
) -> dict[Way, NDArray[np.float64]]:
    """What share of the win each choice brings who makes it, as every way has it."""
    view, every, each = PublicView(games), np.arange(len(games)), np.arange(rows.size)
    seats = games.current_player[rows]
    found = {way: np.zeros(rows.size) for way in WAYS}
    for _ in range(tries):
        keys = view.random_keys(every)
        for who, agent in (("network", network), ("greedy", make_agent("greedy"))):
            imagined = view.resample_hidden(keys, every)[rows]
            imagined.step(codes)
            first_rounds = imagined.states["round_number"].astype(np.int64)
            for rounds in ROUNDS[who]:
                play_on(imagined, agent, first_rounds + rounds)
                _, values = network.network.evaluate(network.network.look(imagined))
                for judge, expected in (("judge", None), ("value", values)):
                    shares = chances(PublicView(imagined), each, expected)[each, seats]
                    found[Way(who, rounds, judge)] += shares / tries
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="ppo", help="ppo or policy:PATH")
    parser.add_argument("--players", type=int, default=2)
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--tries", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    network = make_agent(options.agent)
    assert isinstance(network, PolicyAgent), "ppo or policy:PATH"
    games = positions(network, options.positions, options.players, options.seed)
    likely = network.evaluate(PublicView(games), np.arange(len(games))).probabilities > LIKELY
    games, likely = games[likely.sum(axis=1) > 1], likely[likely.sum(axis=1) > 1]
    rows, codes = np.nonzero(likely)
    halves = [try_choices(games, rows, codes, network, options.tries // 2) for _ in range(2)]
    for half in halves:
        for way, worth in half.items():
            half[way] = worth - (np.bincount(rows, worth) / np.bincount(rows))[rows]
    decisions = games.states["decision"][rows]
    print(f"{len(games)} of {options.positions} positions, {rows.size} choices")
    for kind in [None, *np.unique(decisions)]:
        here = np.full(rows.size, True) if kind is None else decisions == kind
        print("\nall" if kind is None else f"\n{Decision(kind).name.lower().replace('_', ' ')}", f"({here.sum()})")
        one, two = ({way: worth[here] for way, worth in half.items()} for half in halves)
        true = (one[TRUTH] * two[TRUTH]).mean()
        for way in WAYS:
            differ = (one[way] * two[way]).mean()
            noise = np.sqrt(((one[way] - two[way]) ** 2).mean() / 2 * (options.tries // 2))
            agree = (one[way] * two[TRUTH] + two[way] * one[TRUTH]).mean() / 2
            agrees = agree / np.sqrt(differ * true) if min(differ, true) > 0 else np.nan
            spread = 1000 * np.sqrt(max(differ, 0.0))
            print(f"  {way!s:27} differ {spread:3.0f}, noise {1000 * noise:4.0f}, agrees {agrees:5.2f}")


if __name__ == "__main__":
    main()
