"""What both the picture and the text say in words."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from montecristo_env.core import actions
from montecristo_env.core.actions import DUNGEON_LETTERS, KIND_LETTERS, WILD, Action, Card
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
    return max(0, int(value) - int(state["left_over_bags"][state["current_player"]][kind]))


def left_over(state: Mapping[str, Any]) -> dict[int, list[tuple[int, int]]]:
    """Whoever has left-over bags (§8.4), with their kinds and numbers; those that pay for a token now do not count."""
    bags = {
        seat: [(kind, int(count)) for kind, count in enumerate(counts) if count and not _is_owed(state, seat, kind)]
        for seat, counts in enumerate(state["left_over_bags"])
    }
    return {seat: kinds for seat, kinds in bags.items() if kinds}


def _is_owed(state: Mapping[str, Any], seat: int, kind: int) -> bool:
    return state["taking"] is not None and seat == state["current_player"] and int(state["taking"][0]) == kind


def sentence(state: Mapping[str, Any], names: Sequence[str], you: Collection[int] = ()) -> str:
    """Whose decision it is, and what is asked; who has won, once the game is over.

    Args:
        state: what `GameBatch.public_state` gives.
        names: of the players, by seat.
        you: the seats of the reader.
    """
    phase = Decision[state["phase"].upper()]
    if phase == Decision.OVER:
        return _outcome(state, names, you)
    mine = len(you) == 1 and state["current_player"] in you
    who, s = ("You", "") if mine else (names[state["current_player"]], "s")
    dungeon = DUNGEON_LETTERS[state["gather_dungeon"]]
    match phase:
        case Decision.DEAL:
            to = state["recipient"]
            return (
                f"{who} choose{s} a card to keep"
                if to == state["active_player"]
                else f"{who} give{s} {names[to]} a card"
            )
        case Decision.DISCARD:
            return f"{who} {'have' if mine else 'has'} too many cards and discard{s} one"
        case Decision.PLACE:
            left = state["placements_left"]
            if state["zone_used"]:
                return f"{who} may place {_count(left, 'adventurer')} in {'a dungeon' if left == 1 else 'dungeons'}"
            where = " in a dungeon or a bonus zone" if left == 1 else ", at most one in a bonus zone"
            return f"{who} may place {_count(left, 'adventurer')}{where}"
        case Decision.REINFORCE:
            return f"{who} may send {_count(state['reinforcements_left'], 'reinforcement')} to dungeons"
        case Decision.PUT_TOKEN:
            return f"{who} put{s} {long_name(state['drawn_tokens'][0])} into a dungeon"
        case Decision.TAKE:
            return f"{who} may take a token from dungeon {dungeon}"
        case Decision.PAY:
            bags = owed(state)
            of_kind = KIND_NAMES[state["taking"][0]].lower()
            price = f"{bags} {of_kind} {'bag' if bags == 1 else 'bags'} owed"
            return f"{who} pay{s} for {long_name(state['taking'])} from dungeon {dungeon}: {price}"
        case Decision.REARRANGE:
            return f"{who} may move an own marble down or a market marker up"
        case _:
            return f"{who} put{s} the used marble on top of another lane"


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"up to {number} {noun}s"


def _outcome(state: Mapping[str, Any], names: Sequence[str], you: Collection[int]) -> str:
    mine = [seat for seat in state["winners"] if seat in you][:1] if len(you) == 1 else []
    winners = [*("You" for _ in mine), *(names[seat] for seat in state["winners"] if seat not in mine)]
    if not winners:
        return "The game is over"
    points = f"{state['scores'][state['winners'][0]]} points"
    if len(winners) == 1:
        return f"{winners[0]} {'win' if mine else 'wins'} with {points}"
    return f"{', '.join(winners[:-1])} and {winners[-1]} share the win with {points}"


def describe(
    action: Action, state: Mapping[str, Any], names: Sequence[str], values: Sequence[int], adventurers: Sequence[int]
) -> str:
    """An action in words.

    Args:
        action: a legal one.
        state: what `GameBatch.public_state` gives.
        names: of the players, by seat.
        values: of the five market spaces, best first.
        adventurers: on a card with 1, 2 and 3 bags.
    """
    match action:
        case actions.Deal(card):
            to = state["recipient"]
            whom = "keep" if to == state["current_player"] else f"give {names[to]}"
            return f"{whom} {_card(card)}, {_exactly(adventurers[card.bags - 1], 'adventurer')}"
        case actions.Discard(card):
            return f"discard {_card(card)}"
        case actions.Enter(dungeon):
            return f"enter dungeon {DUNGEON_LETTERS[dungeon]}"
        case actions.Visit(zone):
            return f"visit {ZONE_NAMES[zone]}: {ZONE_EFFECTS[zone]}"
        case actions.StopPlacing():
            return "place no more adventurers"
        case actions.Reinforce(dungeon):
            return f"send a reinforcement to dungeon {DUNGEON_LETTERS[dungeon]}"
        case actions.StopReinforcing():
            return "send no more reinforcements"
        case actions.PutToken(dungeon):
            return f"put {long_name(state['drawn_tokens'][0])} into dungeon {DUNGEON_LETTERS[dungeon]}"
        case actions.Take(token):
            points = token.value * values[state["market"].index(token.kind)]
            return f"take {long_name(token)}, worth {_exactly(points, 'point')}"
        case actions.StopTaking():
            return "take nothing more here"
        case actions.Pay(card):
            return f"pay with {_card(card)}"
        case actions.MoveMarble(lane, position, by):
            return f"{LANE_NAMES[lane]}: marble from place {position + 1} down to {position - by + 1}"
        case actions.MoveMarker(kind, by):
            space = state["market"].index(kind)
            return (
                f"market: {KIND_NAMES[kind]} up {_exactly(by, 'space')}, value {values[space]} to {values[space - by]}"
            )
        case actions.KeepOrder():
            return "rearrange nothing"
        case actions.ReturnMarble(lane):
            return f"put the used marble on top of {LANE_NAMES[lane]}"


def _card(card: Card) -> str:
    return "a wild bag" if card == WILD else f"{card}: {_exactly(card.bags, 'bag')} of {KIND_NAMES[card.kind].lower()}"


def _exactly(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
