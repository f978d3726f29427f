"""How fast the agents and the arena are: `python benchmarks/agents.py [--json FILE] [--repeats 5]`.

Decisions per second of the compiled players, simulations per second of the search, whole games per second of the arena.
Medians of repeats with the lowest and highest; what is compared is measured in turn.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tyro
from engine import JsonFile, machine, measure, save, show, summary

from montecristo_agents import entity, greedy, search_agent
from montecristo_agents.arena import play
from montecristo_agents.ladder import split_installed
from montecristo_env import GameBatch, PublicView, make_agent

GAMES = 4096
SEARCHED_GAMES, SIMULATIONS = 32, 200
ARENA_DEALS = {"random": 20_000, "greedy": 2_000}


def middle_of_games(num_games: int, players: int) -> PublicView:
    games = GameBatch(num_games, players, seed=0)
    view, rows, player = PublicView(games), np.arange(num_games), make_agent("greedy")
    for _ in range(30 * players):
        games.step(player.act(view, rows), autoreset=True)
    return view


def on_cores(module: Any, cores: int, work: Callable[[], int]) -> Callable[[], int]:
    """The same work with this number of threads at most."""

    def limited() -> int:
        before, module.ALL_CORES = module.ALL_CORES, cores
        try:
            return work()
        finally:
            module.ALL_CORES = before

    return limited


def measure_players(players: int, repeats: int) -> dict[str, dict[str, float]]:
    view, rows = middle_of_games(GAMES, players), np.arange(GAMES)
    few = rows[:SEARCHED_GAMES]
    installed = split_installed(["ppo", "alphazero"])[0]
    searchers = {name: make_agent(f"{name}:{SIMULATIONS}") for name in ("mcts", *installed) if name != "ppo"}
    deciders = {"greedy": (greedy, make_agent("greedy"))} | {name: (entity, make_agent(name)) for name in installed}
    works: dict[str, Callable[[], int]] = {}
    for cores in (1, 2):
        for name, (module, agent) in deciders.items():

            def decide(agent: Any = agent) -> int:
                return len(agent.act(view, rows))

            works[f"{name} decisions, {cores} threads"] = on_cores(module, cores, decide)

        for name, agent in searchers.items():

            def search(agent: Any = agent) -> int:
                return len(agent.act(view, few)) * SIMULATIONS

            works[f"{name} simulations, {cores} threads"] = on_cores(search_agent, cores, search)
    return {name: summary(rates) for name, rates in measure(works, repeats).items()}


def measure_arena(players: int, repeats: int) -> dict[str, dict[str, float]]:
    """Whole games per second of an agent against itself; its report is part of it."""

    def games_of(agent: str) -> Callable[[], int]:
        return lambda: play([agent, agent], players, ARENA_DEALS[agent], progress=False).games

    rates = measure({f"arena games, {agent}": games_of(agent) for agent in ARENA_DEALS}, repeats)
    return {name: summary(values) for name, values in rates.items()}


def main(json: JsonFile = None, repeats: int = 5) -> None:
    results: dict[str, Any] = {"machine": machine(), "repeats": repeats, "players": {}}
    for players in (2, 3, 4):
        print(f"measuring {players} players …", file=sys.stderr, flush=True)
        rates = measure_players(players, repeats) | measure_arena(players, repeats)
        results["players"][players] = rates
        print(f"\n{players} players")
        for name, values in rates.items():
            print(f"  {name:32s}{show(values, 'k/s', 1e-3)}", flush=True)
    save(json, results)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
