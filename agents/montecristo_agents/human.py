"""A person at the terminal."""

import sys
import textwrap
from collections.abc import Sequence
from itertools import chain, groupby
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from montecristo_env import actions, render
from montecristo_env.agent import PublicView
from montecristo_env.core.actions import Action
from montecristo_env.core.constants import COLOURS, NONE
from montecristo_env.record import FollowedGame
from montecristo_env.render.text import WIDTH
from montecristo_env.render.words import describe
from montecristo_env.web.move_log import move_log

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
        self._followed: dict[int, FollowedGame] = {}
        """By game, what has happened in it since its last question."""

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
        followed = self._followed.get(game)
        if followed is None or followed.moments[-1][1] != state:  # another game has begun
            followed = self._followed[game] = FollowedGame(games, game)
        elif told := _told(followed, names):
            self._show(f"What happened:\n{told}\n")
        followed.forget()
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


def _told(followed: FollowedGame, names: Sequence[str]) -> str:
    """What has happened, one line for everything that a player did in turn."""
    record = followed.record
    entries = chain.from_iterable(
        move_log(followed.moments, record.events, names[: record.num_players], record.ruleset)
    )
    lines = []
    for player, found in groupby(entries, key=lambda entry: entry.player):
        who = "" if player == NONE else f"{names[player]}: "
        words = "; ".join(entry.words for entry in found)
        lines.append(textwrap.fill(who + words, WIDTH, initial_indent="  ", subsequent_indent="    "))
    return "\n".join(lines)


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
