"""What both the picture and the text say in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from montecristo_env.core.actions import DUNGEON_LETTERS, KIND_LETTERS
from montecristo_env.core.constants import Decision, Kind

MARKET_VALUES = (3, 2, 2, 1, 1)  # §1.8
CARD_ADVENTURERS = (3, 2, 1)  # §1.6
KIND_NAMES = tuple(kind.name.capitalize() for kind in Kind)
LANE_NAMES = ("Supply", "Adventurers", "Chest", "Rearrange")
ZONE_NAMES = ("Wild bag", "Disembark", "Bonus points", "Reinforcement")
ZONE_EFFECTS = ("a bag of any kind", "3 from Marseille", "2 points at once", "2 more to dungeons")


def code(piece: Sequence[int]) -> str:
    """A card or a token in short, as in game records: "R2"."""
    kind, size = piece
    return f"{KIND_LETTERS[kind]}{size}"


def long_name(piece: Sequence[int]) -> str:
    """A token in words: "Ruby 2"."""
    kind, size = piece
    return f"{KIND_NAMES[kind]} {size}"


def owed(state: Mapping[str, Any]) -> int:
    """The bags still to be paid for the token that is being taken (§8.3)."""
    kind, value = state["taking"]
    return max(0, int(value) - int(state["left_over_bags"][kind]))


def left_over(state: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Kinds of which the player has left-over bags (§8.4), and how many. What pays for a token is no longer his."""
    bags = enumerate(state["left_over_bags"])
    return [(kind, int(count)) for kind, count in bags if count and not _is_owed(state, kind)]


def _is_owed(state: Mapping[str, Any], kind: int) -> bool:
    return state["taking"] is not None and int(state["taking"][0]) == kind


def sentence(state: Mapping[str, Any], names: Sequence[str]) -> str:
    """Whose decision it is, and what is asked; who has won, once the game is over."""
    phase = Decision[state["phase"].upper()]
    if phase == Decision.OVER:
        return _outcome(state, names)
    who = names[state["current_player"]]
    dungeon = DUNGEON_LETTERS[state["gather_dungeon"]]
    match phase:
        case Decision.DEAL:
            to = state["recipient"]
            return (
                f"{who} chooses a card to keep" if to == state["active_player"] else f"{who} gives {names[to]} a card"
            )
        case Decision.DISCARD:
            return f"{who} has too many cards and discards one"
        case Decision.PLACE:
            left = state["placements_left"]
            if state["zone_used"]:
                return f"{who} may place {_count(left, 'adventurer')} in {'a dungeon' if left == 1 else 'dungeons'}"
            where = " in a dungeon or a bonus zone" if left == 1 else ", at most one in a bonus zone"
            return f"{who} may place {_count(left, 'adventurer')}{where}"
        case Decision.REINFORCE:
            return f"{who} may send {_count(state['reinforcements_left'], 'reinforcement')} to dungeons"
        case Decision.PUT_TOKEN:
            return f"{who} puts {long_name(state['drawn_tokens'][0])} into a dungeon"
        case Decision.TAKE:
            return f"{who} may take a token from dungeon {dungeon}"
        case Decision.PAY:
            bags = owed(state)
            of_kind = KIND_NAMES[state["taking"][0]].lower()
            price = f"{bags} {of_kind} {'bag' if bags == 1 else 'bags'} owed"
            return f"{who} pays for {long_name(state['taking'])} from dungeon {dungeon}: {price}"
        case Decision.REARRANGE:
            return f"{who} may move an own marble down or a market marker up"
        case _:
            return f"{who} puts the used marble on top of another lane"


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"up to {number} {noun}s"


def _outcome(state: Mapping[str, Any], names: Sequence[str]) -> str:
    winners = [names[seat] for seat in state["winners"]]
    if not winners:
        return "The game is over"
    points = f"{state['scores'][state['winners'][0]]} points"
    if len(winners) == 1:
        return f"{winners[0]} wins with {points}"
    return f"{', '.join(winners[:-1])} and {winners[-1]} share the win with {points}"
