"""How good choices are at first sight: `python benchmarks/looks.py [ppo] [greedy] [mcts:200 …] [--positions 10000]`.

In positions from games of a network, every choice is tried in many imagined games, in which greedy plays on for two
rounds and the judge says how it ends. By that measure, the table gives what the choices of others bring beyond those of
the first agent, in thousandths of a win a decision, by kind of decision: of the other agents, of fewer tries, and of
whoever follows one of the looks of the advice (see `montecristo_agents.advice`), which try nothing in imagined games.
"""

import argparse

import numpy as np
from decisions import positions
from numpy.typing import NDArray

from montecristo_agents import advice
from montecristo_agents.policy import PolicyAgent
from montecristo_agents.trials import try_out
from montecristo_env import GameBatch, PublicView, make_agent
from montecristo_env.core.constants import Decision

ROUNDS = 2
FEWER_TRIES = 1, 4


def choices(games: GameBatch, names: list[str]) -> dict[str, NDArray[np.int64]]:
    """What each contender does in all positions."""
    view, rows, legal = PublicView(games), np.arange(len(games)), games.action_mask() == 1
    found = {name: make_agent(name).act(view, rows) for name in names}
    seen = advice.observe_with_advice(games)
    for look, name in enumerate(advice.LOOKS):
        liked = advice.judged(seen, look)
        found[name] = np.where(legal, liked, -1).argmax(axis=1)
    for tries in FEWER_TRIES:
        found[f"{tries} tries"] = np.where(legal, try_out(view, rows, tries, ROUNDS), -1).argmax(axis=1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="*", default=["ppo", "greedy", "mcts:200"])
    parser.add_argument("--players", type=int, default=2)
    parser.add_argument("--positions", type=int, default=10_000)
    parser.add_argument("--tries", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    network = make_agent("ppo:temperature=1")
    assert isinstance(network, PolicyAgent)
    games = positions(network, options.positions, options.players, options.seed)
    rows, kinds = np.arange(len(games)), games.states["decision"]
    shares = try_out(PublicView(games), rows, options.tries, ROUNDS)
    found = choices(games, options.agents)
    first = shares[rows, found.pop(options.agents[0])]
    asked = [kind for kind in Decision if (kinds == kind).any() and kind != Decision.OVER]
    print(f"beyond {options.agents[0]}, in thousandths of a win, in {len(games)} positions; ± is one standard error")
    print(" " * 32 + "all    " + "".join(f"{kind.name.lower().replace('_', ' '):>14}" for kind in asked))
    for name, codes in found.items():
        gains = 1000 * (shares[rows, codes] - first)
        line = "".join(f"{gains[kinds == kind].mean():14.1f}" for kind in asked)
        print(f"{name:30}{gains.mean():6.1f} ±{gains.std() / len(gains) ** 0.5:3.1f}{line}")


if __name__ == "__main__":
    main()
