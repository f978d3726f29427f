"""Where agents are good and where they are not: `python benchmarks/decisions.py ppo [policy:PATH …] [--players 2]`.

In positions from games of `ppo`, every choice is tried out (see `montecristo_agents.trials`). For every kind of
decision the table says how much more of a win, in thousandths, the choice of an agent brings than that of greedy, and
what the best choice brings: it is found by half of the tries and valued by the other half.
"""

import argparse

import numpy as np

from montecristo_agents.trials import ROUNDS, try_out
from montecristo_env import GameBatch, PublicView, make_agent
from montecristo_env.core.constants import Decision

SOURCE = "ppo"
LONGEST = 70  # decisions for each two players, until positions are looked at


def positions(number: int, players: int, seed: int) -> GameBatch:
    """Games that are not over, each after a random number of decisions."""
    games = GameBatch(number, players, seed=seed)
    player, view = make_agent(SOURCE), PublicView(games)
    stop = np.random.default_rng(seed).integers(LONGEST * players // 2, size=number)
    while (rows := np.flatnonzero(~games.over & (games.states["decisions"] < stop))).size:
        games.step(player.act(view, rows), rows)
    return games[np.flatnonzero(~games.over)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="+")
    parser.add_argument("--players", type=int, default=2)
    parser.add_argument("--positions", type=int, default=3000)
    parser.add_argument("--tries", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    games = positions(options.positions, options.players, options.seed)
    view, rows = PublicView(games), np.arange(len(games))
    halves = [try_out(view, rows, options.tries // 2, ROUNDS) for _ in range(2)]
    worth = np.mean(halves, axis=0)
    greedy = worth[rows, make_agent("greedy").act(view, rows)]
    columns = {"best": halves[1][rows, halves[0].argmax(axis=1)] - greedy}
    for name in options.agents:
        columns[name] = worth[rows, make_agent(name).act(view, rows)] - greedy
    decisions = games.states["decision"]
    print("\t".join(["decision", "positions", *columns]))
    for kind in [None, *np.unique(decisions)]:
        here = rows if kind is None else np.flatnonzero(decisions == kind)
        label = "all" if kind is None else Decision(kind).name.lower().replace("_", " ")
        figures = (
            f"{1000 * gain[here].mean():.1f} ± {1960 * gain[here].std() / np.sqrt(here.size):.1f}"
            for gain in columns.values()
        )
        print("\t".join([label, str(here.size), *figures]), flush=True)


if __name__ == "__main__":
    main()
