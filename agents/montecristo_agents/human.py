"""A person at the terminal."""

import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from montecristo_env import actions, render
from montecristo_env.agent import PublicView
from montecristo_env.core.actions import DUNGEON_LETTERS, Action
from montecristo_env.core.constants import COLOURS, Lane, Zone
from montecristo_env.render.text import WIDTH
from montecristo_env.render.words import KIND_NAMES, LANE_NAMES, ZONE_NAMES, describe, long_name

QUIT = ("quit", "exit", "q")
HELP = ("?", "help")
ONE_COLUMN = 8  # choices that are listed below each other; more stand in columns
GAP = 3  # spaces between columns
LONGEST_ANSWER = 40  # characters; longer than every move


class PlayerLeft(SystemExit):
    """The person has left the game, or there is nobody to ask. If nobody catches it, the program ends with its text."""


class HumanAgent:
    """Shows the board and asks for a number or the notation of an action, until it gets a legal one.

    Args:
        answers: where answers come from; by default the standard input.
        screen: where questions go to; by default the standard output. A terminal gets colours.
    """

    name = "human"
    interactive = True
    """A person is asked: who lets agents play shows no progress bar, and plays one game after the other."""

    def __init__(self, *, answers: TextIO | None = None, screen: TextIO | None = None) -> None:
        self._answers = answers or sys.stdin
        self._screen = screen or sys.stdout
        self._seen: dict[int, dict[str, Any]] = {}
        """By game, the public state at its last question."""

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row, each asked for in turn."""
        codes = []
        for game in rows.tolist():
            self._show("" if len(games) == 1 else f"\nGame {game}")
            codes.append(actions.encode(self._ask(games, game)))
        return np.array(codes, np.int64)

    def _ask(self, games: PublicView, game: int) -> Action:
        state, legal = games.public_state(game), games.legal_actions(game)
        values, adventurers = games["market_values"][game].tolist(), games["card_adventurers"][game].tolist()
        colour = self._screen.isatty()
        names = [colour.capitalize() for colour in COLOURS]
        before = self._seen.get(game)
        if before is not None and before["round"] <= state["round"] and len(before["scores"]) == len(state["scores"]):
            told = "; ".join(news(before, state, names)) or "nothing"
            self._show(textwrap.fill(f"Since your last choice: {told}.", WIDTH) + "\n")
        self._seen[game] = state
        self._show(render.ansi(games, game, colour=colour))
        described = [describe(action, state, names, values, adventurers) for action in legal]
        self._show("\n" + "\n".join(_columns(described)))
        question = f"{COLOURS[state['current_player']].capitalize()}, your choice (1 to {len(legal)}, ? for help): "
        choices = {str(action).lower(): action for action in legal}
        choices |= {str(number): action for number, action in enumerate(legal, start=1)}
        while (answer := self._answer(question)) not in choices:
            self._show(_help(legal) if answer in HELP else _refusal(answer, legal))
        return choices[answer]

    def _answer(self, question: str) -> str:
        """What is typed, in small letters."""
        self._screen.write(f"\n{question}")
        self._screen.flush()
        try:
            line = self._answers.readline()
        except UnicodeDecodeError:
            line = "\n"  # what is no text is no answer
        if line == "":
            self._show("")
            raise PlayerLeft("The game ends here: there is no more input for the human player.")
        answer = " ".join(line.split()).encode("unicode_escape").decode()[:LONGEST_ANSWER]  # so that it can be shown
        if not self._answers.isatty():  # a terminal shows what is typed, others do not
            self._show(answer)
        if answer.lower() in QUIT:
            raise PlayerLeft("The game ends here: the human player has left.")
        return answer.lower()

    def _show(self, text: str) -> None:
        self._screen.write(f"{text}\n")


def news(before: Mapping[str, Any], after: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """What has changed on the board between two public states of a game, in words."""
    told = []
    for letter, old, new in zip(DUNGEON_LETTERS, before["dungeons"], after["dungeons"], strict=True):
        told += _counted(Counter(new["queue"]) - Counter(old["queue"]), names, f"to dungeon {letter}")
        told += _counted(Counter(old["queue"]) - Counter(new["queue"]), names, f"back from dungeon {letter}")
        arrived, gone = Counter(new["tokens"]) - Counter(old["tokens"]), Counter(old["tokens"]) - Counter(new["tokens"])
        told += [f"{long_name(token)} put into {letter}" for token in arrived.elements()]
        told += [f"{long_name(token)} gone from {letter}" for token in gone.elements()]
    for zone in Zone:
        visitors = sorted(set(after["zones"][zone]) - set(before["zones"][zone]))
        told += [f"{names[seat]} visited {ZONE_NAMES[zone]}" for seat in visitors]
    for lane in Lane:
        if before["lanes"][lane] != after["lanes"][lane]:
            marbles = "".join(names[seat][0] for seat in after["lanes"][lane]) or "empty"
            told.append(f"lane {LANE_NAMES[lane]} is now {marbles}")
    if before["market"] != after["market"]:
        told.append(f"market is now {', '.join(KIND_NAMES[kind] for kind in after['market'])}")
    for seat, (old_hand, new_hand) in enumerate(zip(before["hands"], after["hands"], strict=True)):
        gained = Counter(new_hand) - Counter(old_hand)
        told += [f"{names[seat]} got {long_name(card)}" for card in gained.elements()]
    for seat, (old_score, new_score) in enumerate(zip(before["scores"], after["scores"], strict=True)):
        if new_score > old_score:
            told.append(f"{names[seat]} scored {new_score - old_score}")
    return told


def _counted(seats: Counter[int], names: Sequence[str], where: str) -> list[str]:
    return [f"{names[seat]} {count} {where}" for seat, count in sorted(seats.items())]


def _columns(texts: Sequence[str]) -> list[str]:
    """Numbered texts, in as many columns as fit if there are many."""
    entries = [f"{number:>3}  {text}" for number, text in enumerate(texts, start=1)]
    width = max(map(len, entries)) + GAP
    columns = 1 if len(entries) <= ONE_COLUMN else max(1, (WIDTH + GAP) // width)
    height = -(-len(entries) // columns)
    return ["".join(entry.ljust(width) for entry in entries[row::height]).rstrip() for row in range(height)]


def _refusal(answer: str, legal: Sequence[Action]) -> str:
    return (
        f"'{answer}' is not possible now. Type a number from 1 to {len(legal)}, or a move such as\n"
        f"'{legal[0]}'; ? shows all of them, quit leaves the game."
    )


def _help(legal: Sequence[Action]) -> str:
    moves = "\n".join(_columns([str(action) for action in legal]))
    return (
        "\nType the number of a choice, or the move itself as game records write it;\n"
        "quit leaves the game. R, B, G, Y are the players red, blue, green and yellow. A\n"
        "kind and a number are a card with that many bags or a token of that value: R2 is\n"
        "Ruby 2. W is a wild bag. === marks the lane in use; lanes are Supply,\n"
        "Adventurers, Chest and Rearrange. Places in a lane are counted from the bottom:\n"
        "place 1 is 0 in a move.\n"
        f"The moves you can make now:\n{moves}"
    )
