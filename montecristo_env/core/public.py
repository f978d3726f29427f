"""Everything public about one game, as plain Python values: for people and tests."""

from typing import Any

import numpy as np

from montecristo_env.core.actions import Card, Token
from montecristo_env.core.constants import CARD_TYPES, DUNGEONS, NONE, SIZES, TOKEN_TYPES, ZONES, Decision


def public_state(game: np.void) -> dict[str, Any]:
    """What all players know of a game (a row of `GameBatch.states`).

    Seats and kinds are ints, cards and tokens are (kind, bags) and (kind, value); lists of them are sorted. Lanes are
    given bottom first, the market best first, queues front first. `left_over_bags` are, by player and kind, the bags
    paid and not used up: while a token is being paid for, what is still owed is its value less the payer's left-over
    bags of its kind. `recipient` gets the next card of the offer, -1 when no card is left to deal. `gather_order` are
    the players whose turn in the dungeon is not over, the one whose turn it is first.
    """
    n = int(game["num_players"])
    decision = Decision(int(game["decision"]))
    return {
        "round": int(game["round_number"]),
        "cylinder": int(game["cylinder"]),
        "phase": decision.name.lower(),
        "active_player": int(game["active_player"]),
        "current_player": int(game["current_player"]),
        "lanes": [(lane[lane > 0] - 1).tolist() for lane in game["lanes"]],
        "market": game["market"].tolist(),
        "dungeons": [
            {"tokens": tokens(game["dungeon_tokens"][dungeon]), "queue": queue(game, dungeon)}
            for dungeon in range(DUNGEONS)
        ],
        "zones": [np.flatnonzero(game["zones"][:n, zone]).tolist() for zone in range(ZONES)],
        "supply": game["supply"][:n].tolist(),
        "marseille": game["marseille"][:n].tolist(),
        "hands": [cards(hand) for hand in game["hands"][:n]],
        "wilds": game["wilds"][:n].tolist(),
        "scores": game["score"][:n].tolist(),
        "offer": cards(game["offer"]),
        "recipient": int(game["recipient"]),
        "drawn_tokens": [token(t) for t in game["drawn_tokens"].tolist() if t != NONE],
        "taking": None if game["taking"] == NONE else token(int(game["taking"])),
        "left_over_bags": game["left_over_bags"][:n].tolist(),
        "placements_left": int(game["placements_left"]),
        "zone_used": bool(game["zone_used"]),
        "reinforcements_left": int(game["reinforcements_left"]),
        "chest_dungeons": np.flatnonzero(game["chest_dungeons"]).tolist(),
        "gather_dungeon": int(game["gather_dungeon"]),
        "gather_order": [seat for seat in game["gather_order"].tolist() if seat != NONE],
        "gathered": [tokens(gathered) for gathered in game["gathered"][:n]],
        "pile_size": int(game["pile_size"]),
        "card_discard": cards(game["card_discard"]),
        "bag": tokens(game["bag"]),
        "token_discard": tokens(game["token_discard"]),
        "winners": np.flatnonzero(game["winners"]).tolist(),
    }


_CARDS = [Card(number // SIZES, number % SIZES + 1) for number in range(CARD_TYPES)]
_TOKENS = [Token(number // SIZES, number % SIZES + 1) for number in range(TOKEN_TYPES)]


def card(number: int) -> Card:
    """The face-up card with this number in the engine."""
    return _CARDS[number]


def token(number: int) -> Token:
    """The token with this number in the engine."""
    return _TOKENS[number]


def cards(counts: np.ndarray) -> list[Card]:
    """The cards of which these are the counts."""
    return [_CARDS[number] for number, copies in enumerate(counts.tolist()) if copies for _ in range(copies)]


def tokens(counts: np.ndarray) -> list[Token]:
    """The tokens of which these are the counts."""
    return [_TOKENS[number] for number, copies in enumerate(counts.tolist()) if copies for _ in range(copies)]


def queue(game: np.void, dungeon: int) -> list[int]:
    """The seats in a dungeon's queue, front first."""
    places = game["places"][:, dungeon]
    return [
        seat for _, seat in sorted((place, seat) for seat, row in enumerate(places.tolist()) for place in row if place)
    ]
