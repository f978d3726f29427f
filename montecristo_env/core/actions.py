"""Actions: their codes, their names, and the notation of game records.

An action is an int in range(COUNT). Each kind of decision (§11.1) owns one block of codes, in the order of
`constants.Decision`; inside a block the order is that of the lists below, from which everything else is derived:

    code = FIRST[decision] + choice

`decode` turns a code into a small named value, `encode` back; `str()` of the value is the notation, `parse` reads it.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from montecristo_env.core.constants import (
    DUNGEONS,
    KINDS,
    LANE_ROOM,
    LONGEST_MOVE,
    SIZES,
    Decision,
    Kind,
    Lane,
    Zone,
)
from montecristo_env.errors import InvalidArgument, InvalidNotation

DUNGEON_LETTERS = "ABCDEF"
KIND_LETTERS = "".join(kind.name[0] for kind in Kind)


class Card(NamedTuple):
    """A face-up supply card: bags of one kind. A wild bag is `WILD`."""

    kind: int
    bags: int

    def __str__(self) -> str:
        return "W" if self == WILD else f"{KIND_LETTERS[self.kind]}{self.bags}"


WILD: Final = Card(-1, 1)


class Token(NamedTuple):
    """A treasure token."""

    kind: int
    value: int

    def __str__(self) -> str:
        return f"{KIND_LETTERS[self.kind]}{self.value}"


@dataclass(frozen=True, slots=True)
class Deal:
    """Give this card of the offer to the next player (§4.1)."""

    card: Card

    def __str__(self) -> str:
        return f"deal {self.card}"


@dataclass(frozen=True, slots=True)
class Discard:
    """Discard this card, being over the hand limit (§4.5)."""

    card: Card

    def __str__(self) -> str:
        return f"discard {self.card}"


@dataclass(frozen=True, slots=True)
class Enter:
    """Place an adventurer at the end of a dungeon's queue (§5.2)."""

    dungeon: int

    def __str__(self) -> str:
        return f"enter {DUNGEON_LETTERS[self.dungeon]}"


@dataclass(frozen=True, slots=True)
class Visit:
    """Place an adventurer in a bonus zone (§5.2)."""

    zone: int

    def __str__(self) -> str:
        return f"visit {Zone(self.zone).name.lower()}"


@dataclass(frozen=True, slots=True)
class StopPlacing:
    """Place no more adventurers in this action (§5.1)."""

    def __str__(self) -> str:
        return "stop placing"


@dataclass(frozen=True, slots=True)
class Reinforce:
    """Place a reinforcement in a dungeon (§5.6)."""

    dungeon: int

    def __str__(self) -> str:
        return f"reinforce {DUNGEON_LETTERS[self.dungeon]}"


@dataclass(frozen=True, slots=True)
class StopReinforcing:
    """Place no more reinforcements (§5.6)."""

    def __str__(self) -> str:
        return "stop reinforcing"


@dataclass(frozen=True, slots=True)
class PutToken:
    """Put the next drawn token into a dungeon (§6.1)."""

    dungeon: int

    def __str__(self) -> str:
        return f"put {DUNGEON_LETTERS[self.dungeon]}"


@dataclass(frozen=True, slots=True)
class Take:
    """Take a token and pay for it (§8.3)."""

    token: Token

    def __str__(self) -> str:
        return f"take {self.token}"


@dataclass(frozen=True, slots=True)
class StopTaking:
    """Take no more tokens from this dungeon (§8.3)."""

    def __str__(self) -> str:
        return "stop taking"


@dataclass(frozen=True, slots=True)
class Pay:
    """Pay with a card or a wild bag (§8.3)."""

    card: Card

    def __str__(self) -> str:
        return f"pay {self.card}"


@dataclass(frozen=True, slots=True)
class MoveMarble:
    """Move one's marble down in its lane (§7.1); position 0 is the bottom."""

    lane: int
    position: int
    by: int

    def __str__(self) -> str:
        return f"marble {Lane(self.lane).name.lower()} {self.position} down {self.by}"


@dataclass(frozen=True, slots=True)
class MoveMarker:
    """Move a treasure marker up in the market (§7.1)."""

    kind: int
    by: int

    def __str__(self) -> str:
        return f"market {KIND_LETTERS[self.kind]} up {self.by}"


@dataclass(frozen=True, slots=True)
class KeepOrder:
    """Rearrange nothing (§7.1)."""

    def __str__(self) -> str:
        return "keep order"


@dataclass(frozen=True, slots=True)
class ReturnMarble:
    """Put the used marble on top of another lane (§3.2)."""

    lane: int

    def __str__(self) -> str:
        return f"return {Lane(self.lane).name.lower()}"


Action: TypeAlias = (
    Deal
    | Discard
    | Enter
    | Visit
    | StopPlacing
    | Reinforce
    | StopReinforcing
    | PutToken
    | Take
    | StopTaking
    | Pay
    | MoveMarble
    | MoveMarker
    | KeepOrder
    | ReturnMarble
)

_steps = range(1, LONGEST_MOVE + 1)
_dungeons = range(DUNGEONS)
_lanes = range(len(Lane))
_cards = [Card(kind, bags) for kind in range(KINDS) for bags in range(1, SIZES + 1)]
_tokens = [Token(kind, value) for kind in range(KINDS) for value in range(1, SIZES + 1)]
MARBLE_MOVES = [(position, by) for position in range(LANE_ROOM) for by in _steps if by <= position]

_by_decision: dict[Decision, list[Action]] = {
    Decision.DEAL: [Deal(card) for card in _cards],
    Decision.DISCARD: [Discard(card) for card in [*_cards, WILD]],
    Decision.PLACE: [*(Enter(d) for d in _dungeons), *(Visit(zone.value) for zone in Zone), StopPlacing()],
    Decision.REINFORCE: [*(Reinforce(d) for d in _dungeons), StopReinforcing()],
    Decision.PUT_TOKEN: [PutToken(d) for d in _dungeons],
    Decision.TAKE: [*(Take(token) for token in _tokens), StopTaking()],
    Decision.PAY: [Pay(card) for card in [*_cards, WILD]],
    Decision.REARRANGE: [
        *(MoveMarble(lane, position, by) for lane in _lanes for position, by in MARBLE_MOVES),
        *(MoveMarker(kind, by) for kind in range(KINDS) for by in _steps),
        KeepOrder(),
    ],
    Decision.RETURN_MARBLE: [ReturnMarble(lane) for lane in _lanes],
}
_actions = [action for block in _by_decision.values() for action in block]
_codes = {action: code for code, action in enumerate(_actions)}
_texts = {str(action).lower(): action for action in _actions}

COUNT: Final = len(_actions)
"""The number of actions."""

FIRST: Final = np.cumsum([0] + [len(block) for block in _by_decision.values()])
"""FIRST[decision] is the first code of the decision's block; FIRST[OVER] is COUNT."""

BLOCKS: Final = {
    decision.name.lower(): range(int(FIRST[decision]), int(FIRST[decision + 1])) for decision in _by_decision
}
"""The range of codes of each kind of decision."""

# Places inside the blocks, for the kernels.
VISIT = _by_decision[Decision.PLACE].index(Visit(0))
STOP_PLACING = _by_decision[Decision.PLACE].index(StopPlacing())
STOP_REINFORCING = _by_decision[Decision.REINFORCE].index(StopReinforcing())
STOP_TAKING = _by_decision[Decision.TAKE].index(StopTaking())
MOVE_MARKER = _by_decision[Decision.REARRANGE].index(MoveMarker(0, 1))
KEEP_ORDER = _by_decision[Decision.REARRANGE].index(KeepOrder())
MOVES_PER_LANE = len(MARBLE_MOVES)
MOVE_POSITION = np.array([position for position, _ in MARBLE_MOVES])
MOVE_BY = np.array([by for _, by in MARBLE_MOVES])
FIRST_MOVE = np.array([next((i for i, m in enumerate(MARBLE_MOVES) if m[0] == p), 0) for p in range(LANE_ROOM)])
"""FIRST_MOVE[position] + by - 1 is the place of a move within its lane's moves."""


def parse_card(text: str) -> Card:
    """The face-up card that a text like "R2" names."""
    return Card(*_parse_piece(text, "a card", "bags"))


def parse_token(text: str) -> Token:
    """The token that a text like "R3" names."""
    return Token(*_parse_piece(text, "a token", "value"))


def _parse_piece(text: str, what: str, size: str) -> tuple[int, int]:
    if not isinstance(text, str) or len(text) != 2 or text[0] not in KIND_LETTERS or text[1] not in "123"[:SIZES]:
        raise InvalidNotation(
            f"{text!r} is not {what}: a kind ({', '.join(KIND_LETTERS)}) and its {size} (1 to {SIZES})"
        )
    return KIND_LETTERS.index(text[0]), int(text[1])


def decode(code: int) -> Action:
    """The action of a code."""
    if not isinstance(code, int | np.integer) or not 0 <= code < COUNT:
        raise InvalidArgument(f"no action has the code {code}: codes are 0 to {COUNT - 1}")
    return _actions[code]


def encode(action: Action) -> int:
    """The code of an action; the inverse of `decode`."""
    try:
        return _codes[action]
    except (KeyError, TypeError):
        raise InvalidArgument(f"{action!r} is no action of this game") from None


def parse(notation: str) -> Action:
    """The action that a notation names; the inverse of `str(action)`. Case and extra spaces do not matter."""
    words = notation.lower().split() if isinstance(notation, str) else []
    action = _texts.get(" ".join(words))
    if action is None:
        alike = [str(action) for text, action in _texts.items() if text.split()[0] in words[:1]]
        raise InvalidNotation(f"{notation!r} is no action; allowed are, for example, {', '.join(alike or _EXAMPLES)}")
    return action


_EXAMPLES = [str(block[0]) for block in _by_decision.values()]
