"""A position in words, in a compact and in a long form."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from montecristo_env.agent import PublicView
from montecristo_env.core.actions import DUNGEON_LETTERS
from montecristo_env.core.constants import Lane, Zone
from montecristo_env.core.public import cards
from montecristo_env.errors import InvalidArgument
from montecristo_env.games import GameBatch
from montecristo_env.render.words import (
    KIND_NAMES,
    LANE_NAMES,
    ZONE_NAMES,
    code,
    left_over,
    long_name,
    owed,
    sentence,
)
from montecristo_env.text.moves import NAMES

State = dict[str, Any]


def describe(games: GameBatch | PublicView, game: int = 0, seat: int | None = None, *, long: bool = False) -> str:
    """Everything that players know of a game, in words.

    Args:
        games: a batch of games.
        game: which of them.
        seat: who reads it; the decider if None.
        long: sentences with all names written out, instead of lines in notation.
    """
    view = games if isinstance(games, PublicView) else PublicView(games)
    state = view.public_state(game)
    players = len(state["scores"])
    seat = state["current_player"] if seat is None else seat
    if isinstance(seat, bool) or not isinstance(seat, int) or not -1 <= seat < players:
        raise InvalidArgument(f"seat must be a whole number from 0 to {players - 1}, but is {seat!r}")
    unseen = cards(view["unseen_cards"][game])
    ruleset = view.ruleset
    you = f" You are {NAMES[seat]}." if seat >= 0 else ""
    head = (
        f"Round {state['round']} of at most {ruleset.round_limit}, target {ruleset.target} points.{you} "
        f"{sentence(state, NAMES)}."
    )
    body = _long(state, seat, ruleset.market, unseen) if long else _compact(state, seat, ruleset.market, unseen)
    return "\n".join([head, *body])


def _compact(state: State, seat: int, market: Sequence[int], unseen: Sequence[Any]) -> list[str]:
    lanes = [
        f"{'>' if state['cylinder'] == lane else ''}{lane.name.lower()} {_names(state['lanes'][lane])}" for lane in Lane
    ]
    prices = [f"{KIND_NAMES[kind]} {price}" for kind, price in zip(state["market"], market, strict=True)]
    zones = [f"{zone.name.lower()} {_names(state['zones'][zone])}" for zone in Zone]
    lines = [
        f"Slide, next marble first, > in use: {'; '.join(lanes)}",
        f"Market prices: {', '.join(prices)}",
        "Dungeons, treasures | queue from the front:",
        *(
            f"{letter} {_codes(dungeon['tokens'])} | {_names(dungeon['queue'])}"
            for letter, dungeon in zip(DUNGEON_LETTERS, state["dungeons"], strict=True)
        ),
        f"Zones: {', '.join(zones)}",
        "Players, points / adventurers in supply / in Marseille / hand:",
    ]
    for player, points in enumerate(state["scores"]):
        hand = [*map(code, state["hands"][player]), *["W"] * state["wilds"][player]]
        gathered = f" / gathered {_codes(state['gathered'][player])}" if state["gathered"][player] else ""
        lines.append(
            f"{NAMES[player]}{' (you)' if player == seat else ''} {points} / {state['supply'][player]} / "
            f"{state['marseille'][player]} / {' '.join(hand) or '-'}{gathered}"
        )
    if state["offer"]:
        lines.append(f"On offer: {_codes(state['offer'])}")
    if state["drawn_tokens"]:
        put = "".join(DUNGEON_LETTERS[dungeon] for dungeon in state["chest_dungeons"])
        lines.append(f"Drawn, next first: {' '.join(map(code, state['drawn_tokens']))}; not into {put or '-'}")
    if state["gather_dungeon"] >= 0:
        paid = f"; {owed(state)} bags owed for {code(state['taking'])}" if state["taking"] is not None else ""
        spare = [f"; {NAMES[player]} has spare bags {_codes(bags)}" for player, bags in left_over(state).items()]
        lines.append(
            f"Gathering in {DUNGEON_LETTERS[state['gather_dungeon']]}: turns left {_names(state['gather_order'])}"
            f"{paid}{''.join(spare)}"
        )
    return [
        *lines,
        f"Cards: pile {state['pile_size']}; unseen (pile and wild bags) {_codes(unseen)}; "
        f"discarded {_codes(state['card_discard'])}",
        f"Tokens: bag {_codes(state['bag'])}; discarded {_codes(state['token_discard'])}",
    ]


def _long(state: State, seat: int, market: Sequence[int], unseen: Sequence[Any]) -> list[str]:
    prices = [f"{KIND_NAMES[kind]} pays {price}" for kind, price in zip(state["market"], market, strict=True)]
    lines = [
        "",
        f"The lane in use is {LANE_NAMES[state['cylinder']]}; its active player is {NAMES[state['active_player']]}.",
        *(
            f"Marbles in the lane {LANE_NAMES[lane]}, the next one first: {_names(state['lanes'][lane], 'none')}."
            for lane in Lane
        ),
        f"In the market, per unit of value and best first: {', '.join(prices)}.",
        "",
        *(
            f"Dungeon {letter} holds {_long_names(dungeon['tokens'])}; its queue, from the front: "
            f"{_names(dungeon['queue'], 'nobody')}."
            for letter, dungeon in zip(DUNGEON_LETTERS, state["dungeons"], strict=True)
        ),
        *(f"In the bonus zone {ZONE_NAMES[zone]}: {_names(state['zones'][zone], 'nobody')}." for zone in Zone),
        "",
    ]
    for player, points in enumerate(state["scores"]):
        wilds = [_count(state["wilds"][player], "wild bag")] if state["wilds"][player] else []
        hand = [*(f"{long_name(card)} ({code(card)})" for card in state["hands"][player]), *wilds]
        lines.append(
            f"{NAMES[player]}{' (you)' if player == seat else ''} has {_count(points, 'point')}, "
            f"{_count(state['supply'][player], 'adventurer')} in the supply, {state['marseille'][player]} in Marseille "
            f"and these cards (a kind and its bags): {', '.join(hand) or 'none'}."
        )
        if state["gathered"][player]:
            lines.append(f"{NAMES[player]} has gathered, not yet scored: {_long_names(state['gathered'][player])}.")
    lines.append("")
    if state["offer"]:
        lines.append(f"Cards on offer: {_long_names(state['offer'])}.")
    if state["drawn_tokens"]:
        put = ", ".join(DUNGEON_LETTERS[dungeon] for dungeon in state["chest_dungeons"])
        lines.append(
            f"Treasures drawn, the next one first: {', '.join(map(long_name, state['drawn_tokens']))}. "
            f"Dungeons that got one from this chest: {put or 'none'}."
        )
    if state["gather_dungeon"] >= 0:
        letter = DUNGEON_LETTERS[state["gather_dungeon"]]
        lines.append(f"Treasure is gathered in dungeon {letter}; turns left: {_names(state['gather_order'])}.")
        if state["taking"] is not None:
            lines.append(f"For {long_name(state['taking'])} {_count(owed(state), 'bag')} must still be paid.")
        lines += [
            f"{NAMES[player]} has spare bags: {', '.join(f'{KIND_NAMES[kind]} {count}' for kind, count in bags)}."
            for player, bags in left_over(state).items()
        ]
    return [
        *lines,
        f"The pile has {_count(state['pile_size'], 'card')}. Unseen, in the pile or held as wild bags: "
        f"{_long_names(unseen)}. Discarded cards: {_long_names(state['card_discard'])}.",
        f"Treasures in the bag: {_long_names(state['bag'])}. Discarded treasures: "
        f"{_long_names(state['token_discard'])}.",
    ]


def _names(seats: Iterable[int], nobody: str = "-") -> str:
    return " ".join(NAMES[seat] for seat in seats) or nobody


def _codes(pieces: Iterable[Any]) -> str:
    """Pieces in notation, the same ones counted: "G1x2 R3"."""
    counts = Counter(map(code, pieces))
    return " ".join(name if count == 1 else f"{name}x{count}" for name, count in counts.items()) or "-"


def _long_names(pieces: Iterable[Any]) -> str:
    counts = Counter(map(long_name, pieces))
    return ", ".join(name if count == 1 else f"{count} times {name}" for name, count in counts.items()) or "nothing"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
