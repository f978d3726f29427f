"""Where on the board an action is clicked."""

from collections.abc import Mapping
from typing import Any

from montecristo_env.core import actions
from montecristo_env.core.actions import DUNGEON_LETTERS, KIND_LETTERS, Action
from montecristo_env.core.constants import Lane, Zone


def target(action: Action, state: Mapping[str, Any]) -> str:
    """The `Group.target` of the place that stands for an action; empty for those that decline to do something.

    Args:
        action: a legal one. A marble and a marker can be moved by one or two: these actions share a place.
        state: what `GameBatch.public_state` gives.
    """
    match action:
        case actions.Deal(card):
            return f"offer-{card}"
        case actions.Discard(card) | actions.Pay(card):
            return f"hand-{state['current_player']}-{card}"
        case actions.Enter(dungeon) | actions.Reinforce(dungeon) | actions.PutToken(dungeon):
            return f"dungeon-{DUNGEON_LETTERS[dungeon]}"
        case actions.Visit(zone):
            return f"zone-{Zone(zone).name.lower()}"
        case actions.Take(token):
            return f"token-{DUNGEON_LETTERS[state['gather_dungeon']]}-{token}"
        case actions.MoveMarble(lane, position):
            return f"marble-{Lane(lane).name.lower()}-{position}"
        case actions.MoveMarker(kind):
            return f"market-{KIND_LETTERS[kind]}"
        case actions.ReturnMarble(lane):
            return f"lane-{Lane(lane).name.lower()}"
        case _:
            return ""
