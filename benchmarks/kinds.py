"""Which decisions an agent should leave to another: `python benchmarks/kinds.py [ppo] [mcts:200] [--deals 200]`.

The first agent plays against itself, but at one side the second makes all decisions of one kind. Where that side wins
more than its share, the second knows better; where it wins less, the first does. With `--together` it makes those of
all kinds that are named: what two kinds bring need not be the sum of what each does.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.arena import play
from montecristo_env import Agent, PublicView, make_agent
from montecristo_env.core.constants import Decision


class Helped:
    """An agent that leaves some kinds of decision to another."""

    name = "helped"

    def __init__(self, agent: Agent, helper: Agent, kinds: list[Decision]) -> None:
        self.agent, self.helper, self.kinds = agent, helper, kinds

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        left_to_helper = np.isin(games["decision"][rows], self.kinds)
        actions = np.empty(rows.size, np.int64)
        for agent, his in ((self.helper, left_to_helper), (self.agent, ~left_to_helper)):
            if his.any():
                actions[his] = agent.act(games, rows[his])
        return actions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = [decision for decision in Decision if decision != Decision.OVER]
    names = [kind.name.lower() for kind in kinds]
    parser.add_argument("agent", nargs="?", default="ppo")
    parser.add_argument("helper", nargs="?", default="mcts:200")
    parser.add_argument("--players", type=int, default=2)
    parser.add_argument("--deals", type=int, default=200)
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--kinds", nargs="+", choices=names, default=names)
    parser.add_argument("--together", action="store_true", help="hand over all these kinds at once")
    options = parser.parse_args()
    agent, helper = make_agent(options.agent), make_agent(options.helper)
    share = 1 / options.players
    print(f"% won by {agent.name} with the help of {helper.name} against {agent.name} alone; equals win {share:.0%}")
    for handed_over in [options.kinds] if options.together else [[kind] for kind in options.kinds]:
        helped = Helped(agent, helper, [Decision[kind.upper()] for kind in handed_over])
        report = play([agent, helped], options.players, options.deals, options.seed, focus=1, progress=False)
        pair = report.pair(helped.name, agent.name)
        assert pair is not None
        rate = pair.win_rate
        print(
            f"  {', '.join(handed_over).replace('_', ' '):15}{rate.value:6.1%} ({rate.low:.1%} to {rate.high:.1%})",
            flush=True,
        )


if __name__ == "__main__":
    main()
