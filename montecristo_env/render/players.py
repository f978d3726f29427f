"""The panel of one player: what lies in front of him."""

from collections.abc import Mapping, Sequence
from typing import Any

from montecristo_env.core.constants import ADVENTURERS, MOST_CARDS_HELD
from montecristo_env.render.pieces import INK, MUTED, SEAT_TINTS, card, marble, pawn, token
from montecristo_env.render.primitives import Group, Item, Point, Rect, Text, fit
from montecristo_env.render.words import code

_PAD = 12
_LABELS = 72  # room for "Marseille"


def player_panel(state: Mapping[str, Any], seat: int, name: str, place: Rect) -> Group:
    """Badge, name and score; adventurers; cards; gathered tokens. Who must decide, or has won, is outlined."""
    x, y, width, height = place[:4]
    lit = seat == state["current_player"] or seat in state["winners"]
    frame = Rect(x, y, width, height, "#ffffff", INK if lit else "#d9d4ca", 3 if lit else 1, 10)
    head = Rect(x + 3, y + 3, width - 6, 40, SEAT_TINTS[seat], radius=8)
    score = fit(Text(x + width - _PAD, y + 24, str(state["scores"][seat]), 28, INK, "end"), 84, 12)
    items: list[Item] = [frame, head, marble(seat, x + 27, y + 23, 14), score]
    tag = _tag(state, seat)
    items.append(fit(Text(x + 50, y + (24 if not tag else 18), name, 17, INK), width - 50 - 100, 9))
    if tag:
        items.append(Text(x + 50, y + 34, tag, 11, MUTED))
    wide = width >= 2 * (_LABELS + ADVENTURERS * 24 + _PAD)  # both kinds of adventurers in one row, and larger cards
    room = (width - 2 * _PAD) / 2 if wide else width - 2 * _PAD
    waiting = x + _PAD + room if wide else x + _PAD, y + (60 if wide else 88)
    items += _adventurers("Supply", state["supply"][seat], seat, (x + _PAD, y + 60), room)
    items += _adventurers("Marseille", state["marseille"][seat], seat, waiting, room)
    top = y + (80 if wide else 106)
    hand = Rect(x + _PAD, top, width - 2 * _PAD, y + 163 - top)
    items += _hand(state["hands"][seat], state["wilds"][seat], seat, hand)
    items += _gathered(state["gathered"][seat], seat, Rect(x + _PAD, y + 168, width - 2 * _PAD, 24))
    return Group(tuple(items), f"player-{seat}")


def _tag(state: Mapping[str, Any], seat: int) -> str:
    if state["current_player"] < 0:
        return "winner" if seat in state["winners"] else ""
    return "active player" if seat == state["active_player"] else ""


def _adventurers(label: str, count: int, seat: int, place: Point, width: float) -> list[Item]:
    x, y = place
    pitch = min(24.0, (width - _LABELS) / ADVENTURERS)
    pawns = (pawn(seat, x + _LABELS + (i + 0.5) * pitch, y, 24, label == "Supply") for i in range(count))
    return [Text(x, y, f"{label} {count}", 12, MUTED), *pawns]


def _hand(hand: Sequence[Sequence[int]], wilds: int, seat: int, place: Rect) -> list[Item]:
    """Face-up cards, then wild bags."""
    gap = 4
    width = min(0.75 * place.height, (place.width - (MOST_CARDS_HELD - 1) * gap) / MOST_CARDS_HELD)
    cards: list[Sequence[int] | None] = [*hand, *[None] * wilds]
    if not cards:
        return [Text(place.x, place.y + place.height / 2, "No cards", 12, MUTED)]
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
    labels, gap = 46, 2
    width = min(40, (place.width - labels - (ADVENTURERS - 1) * gap) / ADVENTURERS)  # one adventurer for each (§8.3)
    items: list[Item] = [Text(place.x, place.y + place.height / 2, "Taken", 12, MUTED)]
    for i, piece in enumerate(tokens):
        spot = Rect(place.x + labels + i * (width + gap), place.y, width, place.height)
        items.append(token(piece, spot, f"gathered-{seat}-{code(piece)}"))
    return items
