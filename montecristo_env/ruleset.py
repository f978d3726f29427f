"""The settings of a game (§1.9)."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from montecristo_env.core.constants import (
    ADVENTURERS,
    BEST_MARKET_VALUE,
    CARDS,
    KINDS,
    MOST_ROUNDS,
    MOST_TARGET,
    SIZES,
    TOKENS,
)
from montecristo_env.errors import UnplayableRuleset

Counts = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Ruleset:
    """What the rulebooks leave open or players may want to change. A set that cannot be played is refused.

    Attributes:
        deck: for each of the five kinds, the number of supply cards with 1, 2 and 3 bags; 30 cards in all (§1.6).
        card_adventurers: the adventurers on a card with 1, 2 and 3 bags (§1.6).
        tokens: for each of the five kinds, the number of treasure tokens of value 1, 2 and 3; 30 in all (§1.7).
        market: the values of the five market spaces, best first (§1.8).
        target: the points that end the game at the end of a scoring round (§9.1).
        round_limit: the round after which a game is cut off (§9.4).
    """

    deck: Counts = ((2, 2, 2),) * KINDS
    card_adventurers: tuple[int, ...] = (3, 2, 1)
    tokens: Counts = ((2, 2, 2),) * KINDS
    market: tuple[int, ...] = (3, 2, 2, 1, 1)
    target: int = 40
    round_limit: int = 100

    def __post_init__(self) -> None:
        """Refuses what cannot be played, and makes plain tuples of lists and arrays."""
        set_field = object.__setattr__
        set_field(self, "deck", _counts("deck", self.deck, CARDS))
        set_field(self, "tokens", _counts("tokens", self.tokens, TOKENS))
        set_field(self, "card_adventurers", _integers("card_adventurers", self.card_adventurers, SIZES, 0, ADVENTURERS))
        set_field(self, "market", _integers("market", self.market, KINDS, 1, BEST_MARKET_VALUE))
        if any(better < worse for better, worse in zip(self.market, self.market[1:], strict=False)):
            raise UnplayableRuleset(f"market must not increase from best to worst, but is {self.market}")
        set_field(self, "target", _integer("target", self.target, 1, MOST_TARGET))
        set_field(self, "round_limit", _integer("round_limit", self.round_limit, 1, MOST_ROUNDS))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, settings: Any) -> Self:
        """The inverse of `to_dict`; unknown settings are refused."""
        known = list(cls.__dataclass_fields__)
        if not isinstance(settings, dict) or not set(settings) <= set(known):
            raise UnplayableRuleset(f"a rule set is a mapping with some of {', '.join(known)}, not {settings!r}")
        return cls(**settings)


def _integer(name: str, value: Any, lowest: int, highest: int) -> int:
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        number = None
    if number is None or isinstance(value, bool) or not lowest <= number <= highest:
        raise UnplayableRuleset(f"{name} must be a whole number from {lowest} to {highest}, but is {value!r}")
    return int(number)


def _integers(name: str, values: Any, length: int, lowest: int, highest: int) -> tuple[int, ...]:
    try:
        items = tuple(values)
    except TypeError:
        items = ()
    if len(items) != length:
        raise UnplayableRuleset(f"{name} must be {length} whole numbers from {lowest} to {highest}, but is {values!r}")
    return tuple(_integer(f"{name}[{i}]", item, lowest, highest) for i, item in enumerate(items))


def _counts(name: str, rows: Any, total: int) -> Counts:
    try:
        items = tuple(rows)
    except TypeError:
        items = ()
    if len(items) != KINDS:
        raise UnplayableRuleset(f"{name} must be {KINDS} rows (one per kind) of {SIZES} counts, but is {rows!r}")
    counts = tuple(_integers(f"{name}[{kind}]", row, SIZES, 0, total) for kind, row in enumerate(items))
    if (found := sum(map(sum, counts))) != total:
        raise UnplayableRuleset(f"{name} must be {total} in all, but is {found}: {counts}")
    return counts
