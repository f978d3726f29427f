"""What happened in a game, in words."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from montecristo_env.core import actions
from montecristo_env.core.constants import COLOURS, NONE
from montecristo_env.render.checks import check_names
from montecristo_env.render.words import describe, long_name
from montecristo_env.ruleset import Ruleset


class Entry(NamedTuple):
    """A line of the log."""

    kind: str
    """ "move", "forced" (nobody was asked), "chance" or "score"."""
    player: int
    """Whose move it is; -1 if nobody's."""
    words: str


def display_names(players: Sequence[str]) -> list[str]:
    """The names of players, short enough for the board; those who share one get their colours in front."""
    names = check_names(players, len(players))
    shared = Counter(names)
    marked = [f"{colour.capitalize()} {name}" for colour, name in zip(COLOURS, names, strict=False)]
    return check_names(
        [mark if shared[name] > 1 else name for mark, name in zip(marked, names, strict=True)], len(names)
    )


def move_log(
    moments: Sequence[tuple[int, Mapping[str, Any]]],
    events: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    rules: Ruleset,
) -> list[list[Entry]]:
    """What led to each of some moments that follow each other.

    Args:
        moments: the index of the move event that led there and the public state; the first may be the start, -1.
        events: those of the record.
        names: of the players.
        rules: of the game.
    """
    log: list[list[Entry]] = []
    before: Mapping[str, Any] | None = None
    for (index, state), end in zip(moments, [*(index for index, _ in moments[1:]), len(events)], strict=True):
        entries = [] if before is None else [_move(events[index], before, names, rules)]
        entries += [_chance(event, names) for event in events[index + 1 : end]]
        if before is not None:
            entries += _scores(before["scores"], state["scores"], names)
        log.append(entries)
        before = state
    return log


def _move(event: Mapping[str, Any], state: Mapping[str, Any], names: Sequence[str], rules: Ruleset) -> Entry:
    """A move event of a record, made in this public state."""
    words = describe(actions.parse(event["move"]), state, names, rules.market, rules.card_adventurers)
    return Entry("forced" if event.get("forced") else "move", event["player"], words)


def _chance(event: Mapping[str, Any], names: Sequence[str]) -> Entry:
    """A chance event of a record."""
    match event:
        case {"draw": cards}:
            words = f"cards on offer: {_pieces(map(actions.parse_card, cards))}"
        case {"tokens": tokens}:
            words = f"drawn from the bag: {_pieces(map(actions.parse_token, tokens))}"
        case {"wild": player}:
            words = f"{names[player]} gets a card face down: a wild bag"
        case {"shuffle": _}:
            words = "the discarded cards are shuffled: a new pile"
        case _:
            words = "the discarded tokens go back into the bag"
    return Entry("chance", NONE, words)


def _scores(before: Sequence[int], after: Sequence[int], names: Sequence[str]) -> list[Entry]:
    """Who has scored between two states, if anybody has."""
    gains = [f"{name} +{new - old}" for name, old, new in zip(names, before, after, strict=True) if new > old]
    return [Entry("score", NONE, f"points: {', '.join(gains)}")] if gains else []


def _pieces(pieces: Iterable[Sequence[int]]) -> str:
    return ", ".join(map(long_name, pieces))
