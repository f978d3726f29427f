"""What lies in front of one player: their panel, and a strip with their hand alone for small screens."""

from collections.abc import Mapping, Sequence
from typing import Any

from montecristo_env.core.constants import ADVENTURERS, MOST_CARDS_HELD
from montecristo_env.render.pieces import INK, MUTED, SEAT_TINTS, card, marble, pawn, token
from montecristo_env.render.primitives import Group, Item, Point, Rect, Text, fit
from montecristo_env.render.words import code

_PAD = 12
_LABELS = 86  # room for "Marseille 7"
_SMALLEST = 14  # as everywhere on the board


def player_panel(state: Mapping[str, Any], seat: int, name: str, place: Rect) -> Group:
    """Badge, name and score; adventurers; cards; gathered tokens. Who must decide, or has won, is outlined."""
    x, y, width, height = place[:4]
    lit = seat == state["current_player"] or seat in state["winners"]
    frame = Rect(x, y, width, height, "#ffffff", INK if lit else "#d9d4ca", 3 if lit else 1, 10)
    head = Rect(x + 3, y + 3, width - 6, 40, SEAT_TINTS[seat], radius=8)
    score = fit(Text(x + width - _PAD, y + 24, str(state["scores"][seat]), 28, INK, "end"), 84, 12)
    items: list[Item] = [frame, head, marble(seat, x + 27, y + 23, 14), score]
    tag = _tag(state, seat)
    items.append(fit(Text(x + 50, y + (24 if not tag else 16), name, 17, INK), width - 50 - 100, _SMALLEST))
    if tag:
        items.append(Text(x + 50, y + 35, tag, _SMALLEST, MUTED))
    room = width - 2 * _PAD
    items += _adventurers("Supply", state["supply"][seat], seat, (x + _PAD, y + 59), room)
    items += _adventurers("Marseille", state["marseille"][seat], seat, (x + _PAD, y + 86), room)
    hand = Rect(x + _PAD, y + 102, room, 62)
    items += _hand(state["hands"][seat], state["wilds"][seat], seat, hand)
    items += _gathered(state["gathered"][seat], seat, Rect(x + _PAD, y + 168, width - 2 * _PAD, 24))
    return Group(tuple(items), f"player-{seat}")


def hand_strip(state: Mapping[str, Any], seat: int) -> Group:
    """The hand and the supply of one player, small enough to stay in view on a phone."""
    frame = Rect(0, 0, 372, 64, "#ffffff", "#d9d4ca", 1, 8)
    supply: list[Item] = [pawn(seat, 20, 20, 28), Text(20, 48, str(state["supply"][seat]), 20, INK, "middle")]
    cards = _hand(state["hands"][seat], state["wilds"][seat], seat, Rect(44, 4, 322, 56))
    return Group((frame, *supply, *cards))


def _tag(state: Mapping[str, Any], seat: int) -> str:
    if state["current_player"] < 0:
        return "winner" if seat in state["winners"] else ""
    return "active player" if seat == state["active_player"] else ""


def _adventurers(label: str, count: int, seat: int, place: Point, width: float) -> list[Item]:
    x, y = place
    pitch = min(24.0, (width - _LABELS) / ADVENTURERS)
    pawns = (pawn(seat, x + _LABELS + (i + 0.5) * pitch, y, 24, label == "Supply") for i in range(count))
    return [Text(x, y, f"{label} {count}", _SMALLEST, MUTED), *pawns]


def _hand(hand: Sequence[Sequence[int]], wilds: int, seat: int, place: Rect) -> list[Item]:
    """Face-up cards, then wild bags."""
    gap = 4
    width = min(0.75 * place.height, (place.width - (MOST_CARDS_HELD - 1) * gap) / MOST_CARDS_HELD)
    cards: list[Sequence[int] | None] = [*hand, *[None] * wilds]
    if not cards:
        return [Text(place.x, place.y + place.height / 2, "No cards", _SMALLEST, MUTED)]
    return [
        card(
            piece,
            Rect(place.x + i * (width + gap), place.y, width, place.height),
            f"hand-{seat}-{'W' if piece is None else code(piece)}",
        )
        for i, piece in enumerate(cards)
    ]


def _gathered(tokens: Sequence[Sequence[int]], seat: int, place: Rect) -> list[Item]:
    if not tokens:
        return []
    labels, gap = 48, 2
    width = min(40, (place.width - labels - (ADVENTURERS - 1) * gap) / ADVENTURERS)  # one adventurer for each (§8.3)
    items: list[Item] = [Text(place.x, place.y + place.height / 2, "Taken", _SMALLEST, MUTED)]
    for i, piece in enumerate(tokens):
        spot = Rect(place.x + labels + i * (width + gap), place.y, width, place.height)
        items.append(token(piece, spot, f"gathered-{seat}-{code(piece)}"))
    return items
