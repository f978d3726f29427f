"""The checks of what a picture is made from: a state may come from a file or over a wire."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from montecristo_env.core.constants import (
    ADVENTURERS,
    COLOURS,
    DUNGEONS,
    KINDS,
    LANE_ROOM,
    LANES,
    MAX_PLAYERS,
    MIN_PLAYERS,
    MOST_CARDS_HELD,
    NONE,
    SIZES,
    TOKENS_DRAWN,
    TREASURE_PLACES,
    ZONES,
    Decision,
)
from montecristo_env.errors import InvalidArgument
from montecristo_env.render.primitives import columns

LONGEST_NAME = 16

_NEEDED = (
    *("round", "cylinder", "phase", "active_player", "current_player", "lanes", "market", "dungeons", "zones"),
    *("supply", "marseille", "hands", "wilds", "scores", "offer", "drawn_tokens", "taking", "left_over_bags"),
    *("placements_left", "zone_used", "reinforcements_left", "chest_dungeons", "gather_dungeon", "gather_order"),
    *("recipient", "gathered", "pile_size", "card_discard", "bag", "token_discard", "winners"),
)
_PHASES = {decision.name.lower() for decision in Decision}
# What a phase is about must be there.
_ABOUT = {"deal": "offer", "put_token": "drawn_tokens", "pay": "taking"}


def check_state(state: Mapping[str, Any]) -> None:
    """Refuses what is not the public state of a game."""
    if not isinstance(state, Mapping):
        raise InvalidArgument(f"state must be what GameBatch.public_state gives, but is {type(state).__name__}")
    if missing := [name for name in _NEEDED if name not in state]:
        raise InvalidArgument(f"state must be what GameBatch.public_state gives, but lacks {', '.join(missing)}")
    try:
        wrong = next(_wrong(state), None)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise InvalidArgument(f"state is not what GameBatch.public_state gives: {error}") from error
    if wrong is not None:
        raise InvalidArgument(f"state is not what GameBatch.public_state gives: {wrong} is {state[wrong]!r}")


def _wrong(state: Mapping[str, Any]) -> Iterator[str]:
    """The entries that cannot be."""
    n = len(state["scores"])
    seats, lanes, dungeons, phase = range(n), range(LANES), range(DUNGEONS), state["phase"]
    over = phase == Decision.OVER.name.lower()
    gathering = phase in ("take", "pay")
    held = [len(hand) + wilds for hand, wilds in zip(state["hands"], state["wilds"], strict=True)]
    hands = [piece for hand in state["hands"] for piece in hand]
    sane = {
        "scores": MIN_PLAYERS <= n <= MAX_PLAYERS,
        "phase": phase in _PHASES and (phase not in _ABOUT or bool(state[_ABOUT[phase]])),
        "cylinder": state["cylinder"] in lanes,
        "active_player": state["active_player"] in seats,
        "current_player": state["current_player"] in seats or (over and state["current_player"] == NONE),
        "winners": _are(state["winners"], seats, n),
        "lanes": len(state["lanes"]) == LANES and all(_are(lane, seats, LANE_ROOM) for lane in state["lanes"]),
        "market": sorted(state["market"]) == list(range(KINDS)),
        "dungeons": len(state["dungeons"]) == DUNGEONS
        and all(
            _are(dungeon["queue"], seats, ADVENTURERS * n) and _are_pieces(dungeon["tokens"], TREASURE_PLACES)
            for dungeon in state["dungeons"]
        ),
        "zones": len(state["zones"]) == ZONES and all(_are(zone, seats, n) for zone in state["zones"]),
        "supply": len(state["supply"]) == n and _are(state["supply"], range(ADVENTURERS + 1), n),
        "marseille": len(state["marseille"]) == n and _are(state["marseille"], range(ADVENTURERS + 1), n),
        "hands": len(held) == n and max(held) <= MOST_CARDS_HELD and _are_pieces(hands, n * MOST_CARDS_HELD),
        "gathered": len(state["gathered"]) == n and all(_are_pieces(won, ADVENTURERS) for won in state["gathered"]),
        "offer": _are_pieces(state["offer"], n),
        "recipient": state["recipient"] in seats or (phase != "deal" and state["recipient"] == NONE),
        "drawn_tokens": _are_pieces(state["drawn_tokens"], TOKENS_DRAWN),
        "taking": state["taking"] is None or _are_pieces([state["taking"]], 1),
        "left_over_bags": len(state["left_over_bags"]) == n
        and all(len(bags) == KINDS and _are(bags, range(SIZES), KINDS) for bags in state["left_over_bags"]),
        "chest_dungeons": _are(state["chest_dungeons"], dungeons, DUNGEONS),
        "gather_dungeon": state["gather_dungeon"] in dungeons or (not gathering and state["gather_dungeon"] == NONE),
        "gather_order": _are(state["gather_order"], seats, n),
    }
    return (name for name, good in sane.items() if not good)


def _are(values: Sequence[int], allowed: range, most: int) -> bool:
    return len(values) <= most and all(value in allowed for value in values)


def _are_pieces(pieces: Sequence[Sequence[int]], most: int) -> bool:
    sizes = range(1, SIZES + 1)
    return len(pieces) <= most and all(kind in range(KINDS) and size in sizes for kind, size in pieces)


def check_names(names: Sequence[str] | None, n: int) -> list[str]:
    """The names to show: by default those of the colours. Long ones are cut, what cannot be printed is left out."""
    if names is None:
        return [colour.capitalize() for colour in COLOURS[:n]]
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) != n:
        raise InvalidArgument(f"names must be {n} texts, one for each player, but are {names!r}")
    if not all(isinstance(name, str) for name in names):
        raise InvalidArgument(f"names must be texts, but are {names!r}")
    clean = ["".join(letter for letter in " ".join(name.split()) if letter.isprintable()) for name in names]
    return [_cut(name.strip()) or COLOURS[seat].capitalize() for seat, name in enumerate(clean)]


def _cut(name: str) -> str:
    """The name, if it is short enough; otherwise its beginning."""
    if len(name) <= LONGEST_NAME and columns(name) <= LONGEST_NAME:
        return name
    while len(name) >= LONGEST_NAME or columns(name) >= LONGEST_NAME:
        name = name[:-1]
    return name.rstrip() + "…"


def check_settings(
    market_values: Sequence[int], card_adventurers: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The settings of the rule set that are printed on the components."""
    return _numbers("market_values", market_values, KINDS), _numbers("card_adventurers", card_adventurers, SIZES)


def _numbers(name: str, values: Sequence[int], length: int) -> tuple[int, ...]:
    """A list of whole numbers of this length, one digit each."""
    try:
        numbers = tuple(int(value) for value in values)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != length or not all(0 <= number <= 9 for number in numbers):
        raise InvalidArgument(f"{name} must be {length} whole numbers from 0 to 9, but is {values!r}")
    return numbers
