"""How strength grows with simulations: `python benchmarks/strength.py [--agent mcts] [--deals 40]`.

A search (`mcts`, `alphazero`, `policy+mcts:PATH`) meets one opponent with more and more simulations per decision, on
the same deals, in every seat. What is done is kept in runs/strength; the same command goes on from there. `--opponent
greedy` compares with the script; there, luck hides what hundreds of simulations more bring. `--plot FILE` draws the win
rates.
"""

from pathlib import Path

import tyro
from matplotlib.figure import Figure

from montecristo_agents.benchmark import benchmark
from montecristo_agents.ratings import Estimate

SIMULATIONS = (50, 100, 200, 400, 800, 1600, 3200)
FOLDER = Path("runs", "strength")


def draw(rates: dict[int, Estimate], opponent: str, path: Path) -> None:
    """Win rates with intervals over simulations."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    numbers, values = list(rates), [100 * rate.value for rate in rates.values()]
    errors = [
        [100 * (rate.value - rate.low) for rate in rates.values()],
        [100 * (rate.high - rate.value) for rate in rates.values()],
    ]
    axes.errorbar(numbers, values, errors, marker="o", capsize=3)
    axes.axhline(50, color="grey", linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    axes.set_xticks(numbers, [f"{number:,}" for number in numbers])
    axes.minorticks_off()
    axes.set_xlabel("simulations per decision")
    axes.set_ylabel(f"% of games won against {opponent}")
    figure.savefig(path, dpi=150)


def main(
    agent: str = "mcts",
    simulations: tuple[int, ...] = SIMULATIONS,
    deals: int = 40,
    players: int = 2,
    opponent: str = "mcts:200",
    folder: Path = FOLDER,
    plot: Path | None = None,
) -> None:
    print(f"{'simulations':>12}  win rate of {agent} against {opponent}, {players} players")
    rates = {}
    for number in simulations:
        searcher = f"{agent}:{number}"
        if searcher == opponent:
            continue
        kept = folder / f"{searcher}-{opponent}-{players}-{deals}".replace(":", "-").replace("/", "-")
        report = benchmark(searcher, players, deals, against=[opponent], folder=kept)
        pair = report.pair(searcher, opponent)
        assert pair is not None
        rate = rates[number] = pair.win_rate
        print(f"{number:12}  {rate.value:.1%} ({rate.low:.1%} to {rate.high:.1%})", flush=True)
    if plot:
        draw(rates, opponent, plot)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
