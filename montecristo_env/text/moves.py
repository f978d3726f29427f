"""Legal moves as text, and the reader of answers."""

import re
from collections.abc import Sequence
from functools import cache

from montecristo_env.agent import PublicView
from montecristo_env.core import actions
from montecristo_env.core.actions import Action
from montecristo_env.core.constants import COLOURS, Kind
from montecristo_env.errors import IllegalAction, InvalidNotation
from montecristo_env.games import GameBatch
from montecristo_env.render.words import describe as describe_action

NAMES = tuple(colour.capitalize() for colour in COLOURS)
"""What players are called, by seat."""

LONGEST_ANSWER = 20_000
"""Characters of an answer that are read: the last ones."""

_THOUGHT = "</think>"  # behind this stands the answer of models that think aloud
_PIECE = re.compile(f"[{actions.KIND_LETTERS.lower()}][1-3]")
_KIND_WORDS = {kind.name[0].lower(): kind.name.lower() for kind in Kind}
# Words that may stand inside a move without changing it: "enter the dungeon B", "give Green the card R2".
_FILLERS = (
    "the|this|my|with|card|token|treasure|dungeon|into|in|to|from|of|lane|zone|bonus|marker|position|by|"
    + "|".join(COLOURS)
)
_GAP = f" (?:(?:{_FILLERS}) )*"
_ARTICLE = re.compile(r"\ba(?= [A-Za-z]{2})")  # "enter a dungeon" is not "enter A"
_MARKED = re.compile(r"\[([^\[\]]+)\]|`([^`]+)`|\*\*([^*]+)\*\*")
_NUMBER = re.compile(r"(?:(?:i|choose|my|final|answer|move|option|choice|action|number|is) )*([0-9]{1,4})")


def list_moves(games: GameBatch | PublicView, game: int = 0, *, long: bool = False) -> str:
    """The legal moves of a game, numbered from 1; in the long form each on a line of its own, with what it means."""
    legal = games.legal_actions(game)
    if not long:
        return "; ".join(f"{number} {action}" for number, action in enumerate(legal, start=1))
    state, ruleset = games.public_state(game), games.ruleset
    return "\n".join(
        f"{number}. {action}: {describe_action(action, state, NAMES, ruleset.market, ruleset.card_adventurers)}"
        for number, action in enumerate(legal, start=1)
    )


def parse_move(answer: str, legal: Sequence[Action]) -> Action:
    """The legal move that an answer names.

    Case, spaces, punctuation, numbering and prose around the move do not matter, nor do words such as "the dungeon"
    inside it; kinds may be written out ("take ruby 3"). A number alone chooses from the list. What is marked by
    [brackets], `backticks` or **stars** counts before the rest, and the last line with a move before earlier ones. What
    a model thinks aloud, up to </think>, does not count.

    Args:
        answer: what somebody wrote.
        legal: the legal moves, in the order of the list (`GameBatch.legal_actions`).

    Raises:
        InvalidNotation: it names no move, or several different legal ones at the deciding place.
        IllegalAction: the move it names is not legal now.
    """
    if not isinstance(answer, str):
        raise InvalidNotation(f"an answer is a text, not {type(answer).__name__}; {_allowed(legal)}")
    text = answer.rpartition(_THOUGHT)[2][-LONGEST_ANSWER:]
    marked = ["".join(groups) for groups in _MARKED.findall(text)]
    for part in [*reversed(marked), *reversed(text.splitlines())]:
        words = " ".join(re.findall("[a-z0-9]+", _ARTICLE.sub(" ", part).lower()))
        named = [action for pattern, action in _patterns() if pattern.search(words)]
        if not named and (number := _NUMBER.fullmatch(words)):
            if not 1 <= int(number[1]) <= len(legal):
                raise IllegalAction(f"there is no move number {number[1]}; {_allowed(legal)}")
            return legal[int(number[1]) - 1]
        possible = [action for action in named if action in legal]
        if len(possible) == 1:
            return possible[0]
        if possible:
            raise InvalidNotation(f"the answer names {' and '.join(map(str, possible))}: name one; {_allowed(legal)}")
        if named:
            raise IllegalAction(f"{' and '.join(map(str, named))} may not be played now; {_allowed(legal)}")
    shown = " ".join(text.split())
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    raise InvalidNotation(f"{shown!r} names no move; {_allowed(legal)}")


def _allowed(legal: Sequence[Action]) -> str:
    return f"legal are: {', '.join(map(str, legal))}" if legal else "the game is over, nothing is legal"


@cache
def _patterns() -> list[tuple[re.Pattern[str], Action]]:
    """What to look for in an answer, for every action of the game."""
    found = []
    for code in range(actions.COUNT):
        action = actions.decode(code)
        verb, *rest = str(action).lower().split()
        verbs = "(?:deal|keep|give)" if verb == "deal" else verb
        found.append((re.compile(_GAP.join([rf"\b{verbs}", *map(_word, rest)]) + r"\b"), action))
    return found


def _word(word: str) -> str:
    if _PIECE.fullmatch(word):
        return f"(?:{word[0]} ?|{_KIND_WORDS[word[0]]} ?){word[1]}"
    return "w(?:ild(?: bag)?)?" if word == "w" else word
