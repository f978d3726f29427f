"""How strength grows with simulations: `python benchmarks/strength.py [--deals 100] [--most 3200] [--opponent greedy]`.

The search meets one opponent with 50, 100, 200 … simulations per decision, on the same deals, in every seat. What is
done is kept in runs/strength; the same command goes on from there. Against greedy, luck hides what hundreds of
simulations more bring; `--opponent mcts:200` shows it.
"""

import argparse
from pathlib import Path

from montecristo_agents.benchmark import benchmark

FEWEST = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deals", type=int, default=100)
    parser.add_argument("--most", type=int, default=3200)
    parser.add_argument("--players", type=int, default=2)
    parser.add_argument("--opponent", default="greedy")
    parser.add_argument("--folder", type=Path, default=Path("runs", "strength"))
    options = parser.parse_args()
    simulations = [FEWEST]
    while simulations[-1] < options.most:
        simulations.append(2 * simulations[-1])
    print(f"{'simulations':>12}  win rate of mcts against {options.opponent}, {options.players} players")
    for number in simulations:
        searcher = f"mcts:{number}"
        if searcher == options.opponent:
            continue
        folder = options.folder / f"{options.opponent}-{number}-{options.players}-{options.deals}".replace(":", "-")
        report = benchmark(searcher, options.players, options.deals, against=[options.opponent], folder=folder)
        pair = report.pair(searcher, options.opponent)
        assert pair is not None
        rate = pair.win_rate
        print(f"{number:12}  {rate.value:.1%} ({rate.low:.1%} to {rate.high:.1%})", flush=True)


if __name__ == "__main__":
    main()
