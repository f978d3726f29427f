"""Why a place on the board cannot be chosen now. What is legal is the engine's answer; this only says it in words."""

from collections.abc import Mapping
from typing import Any

from montecristo_env.core import actions, batch
from montecristo_env.core.actions import DUNGEON_LETTERS, KIND_LETTERS
from montecristo_env.core.constants import LANE_COLOUR_ROOM, LANE_ROOM, Decision, Lane, Zone
from montecristo_env.games import GameBatch
from montecristo_env.render.targets import target
from montecristo_env.render.words import KIND_NAMES, code


def reasons(games: GameBatch) -> dict[str, str]:
    """For the decision at hand in a batch of one: places that look as if they could be chosen, and why they cannot be.

    Args:
        games: a batch of one game.
    """
    state = games.public_state()
    legal = {target(action, state) for action in games.legal_actions(0)}
    return {place: reason for place, reason in _candidates(games, state).items() if place not in legal}


def _candidates(games: GameBatch, state: Mapping[str, Any]) -> dict[str, str]:
    """Every place that the kind of decision is about, with the reason that holds if it is not legal."""
    seat = state["current_player"]
    match Decision[state["phase"].upper()]:
        case Decision.PLACE if state["zone_used"]:
            return {_zone(zone): "you have visited a bonus zone in this action already" for zone in Zone}
        case Decision.PLACE:
            return {_zone(zone): "one of your adventurers is there already" for zone in Zone}
        case Decision.REINFORCE:
            return {_zone(zone): "reinforcements go to dungeons only" for zone in Zone}
        case Decision.PUT_TOKEN:
            return {f"dungeon-{letter}": "this chest has put a token here already" for letter in DUNGEON_LETTERS}
        case Decision.TAKE:
            here = state["gather_dungeon"]
            tokens = {
                token: f"token-{DUNGEON_LETTERS[here]}-{code(token)}" for token in state["dungeons"][here]["tokens"]
            }
            return {place: _price(games, seat, token) for token, place in tokens.items()}
        case Decision.PAY:
            kind = KIND_NAMES[state["taking"][0]].lower()
            return {f"hand-{seat}-{code(card)}": f"only {kind} and wild bags can pay" for card in state["hands"][seat]}
        case Decision.REARRANGE:
            top = f"market-{KIND_LETTERS[state['market'][0]]}"
            return {**_marbles(state, seat), top: "this marker is on the best space already"}
        case Decision.RETURN_MARBLE:
            return {f"lane-{lane.name.lower()}": _lane(state, lane) for lane in Lane}
    return {}


def _zone(zone: Zone) -> str:
    return f"zone-{zone.name.lower()}"


def _price(games: GameBatch, seat: int, token: actions.Token) -> str:
    bags = batch.count_bags(games.states, 0, seat, token.kind)
    plural = "bag" if token.value == 1 else "bags"
    return f"needs {token.value} {KIND_NAMES[token.kind].lower()} {plural}; you have {bags}"


def _marbles(state: Mapping[str, Any], seat: int) -> dict[str, str]:
    return {
        f"marble-{lane.name.lower()}-{position}": "this marble is at the bottom of its lane already"
        if owner == seat
        else "only your own marbles can be moved"
        for lane in Lane
        for position, owner in enumerate(state["lanes"][lane])
    }


def _lane(state: Mapping[str, Any], lane: Lane) -> str:
    marbles = state["lanes"][lane]
    if lane == state["cylinder"]:
        return "the marble comes from this lane"
    if len(marbles) >= LANE_ROOM:
        return f"there are {LANE_ROOM} marbles in this lane already"
    return f"there are {LANE_COLOUR_ROOM} marbles of this colour in this lane already"
