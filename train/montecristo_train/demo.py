"""What `make run` does: trains a small agent by self-play, measures it, and shows a game of it.

`python -m montecristo_train.demo [smoke|quick|full]`; about five minutes with `quick`, which is the default.
"""

import sys
import time
from pathlib import Path

from rich.console import Console

from montecristo_agents.arena import play
from montecristo_agents.policy import PolicyAgent
from montecristo_env import GameRecord, InvalidArgument
from montecristo_env.replay import write_replay
from montecristo_env.util.commands import resumable, run_command
from montecristo_train.alphazero import train
from montecristo_train.alphazero_settings import PRESETS
from montecristo_train.runs import AGENT, CURVE, new_folder

OPPONENTS = ("random", "greedy", "ppo")
DEALS = 250
SHOWN = "deal0-table1-seat1.json"  # the game that is shown, with the second opponent in the second seat
GAME, REPLAY = "game.json", "game.html"


def main(arguments: list[str]) -> None:
    """Trains, measures, plays."""
    if arguments in (["--help"], ["-h"]):
        print(__doc__)
        return
    preset = arguments[0] if arguments else "quick"
    if len(arguments) > 1 or preset not in PRESETS:
        raise InvalidArgument(f"give one of {', '.join(PRESETS)}, not {' '.join(arguments)!r}")
    text, settings = PRESETS[preset]
    folder = Path("runs", "demo", time.strftime("%Y%m%d-%H%M%S"))
    new_folder(folder, settings)
    console = Console()
    console.print(f"Training [b]{preset}[/b] ({text}) in {folder}:")
    with resumable(f"python -m montecristo_train.alphazero --resume {folder}"):
        agent = PolicyAgent(train(settings, folder))
    agent.name = "yours"
    measured = folder / "arena"
    print(play([*OPPONENTS, agent], 2, DEALS, focus=len(OPPONENTS), folder=measured, records=1))
    record = GameRecord.load(measured / "records" / SHOWN)
    record.annotate(agent)
    record.save(folder / GAME)
    write_replay(record, folder / REPLAY)
    console.print(f"\nYour agent is {folder / AGENT}, its learning curve {folder / CURVE}.")
    console.print(f"A game of it against {OPPONENTS[1]} is {folder / REPLAY}: open it in a browser.")
    console.print("\nWhat to do next:")
    for what, command in (
        ("play against it", f"python -m montecristo_env.play --players human policy:{folder / AGENT}"),
        ("let others play against it", f"python -m montecristo_agents.arena mcts:200 policy:{folder / AGENT}"),
        ("train a stronger one, three hours", "python -m montecristo_train.alphazero full"),
        ("see all settings", "python -m montecristo_train.alphazero quick --help"),
    ):
        console.print(f"  {what:34}[b]{command}[/b]", soft_wrap=True)


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
