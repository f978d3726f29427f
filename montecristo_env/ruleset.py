"""The settings of a game (§1.9)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

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

DEFAULT = "default"  # what the default rule set is called
_MOST_DIGITS = 9  # of a number in a text
Counts = tuple[tuple[int, ...], ...]

VARIANTS = {
    "discard": ("at_once", "after_deal"),
    "refill": ("empty", "short"),
    "reshuffle": ("needed", "empty"),
    "left_over_bags": ("dungeon", "round"),
    "game_end": ("scoring", "chest"),
}
"""The settings that name a variant (§1.10), with their values; the first is the default."""


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
        discard: when a player with 8 cards discards one: "at_once", or "after_deal" (§4.5).
        refill: when the bag is refilled: as soon as a draw leaves it "empty", or only when it is too "short" (§6.2).
        reshuffle: when the discard pile becomes a new pile: when a card is "needed", or when a draw leaves the pile
            "empty" (§4.3).
        left_over_bags: how long bags left over on a card can be used: in the same "dungeon", or in the "round" (§8.4).
        game_end: what ends a game in which somebody has reached the target: a "scoring" round, or also a "chest"
            without one (§9.1).
    """

    deck: Counts = ((2, 2, 2),) * KINDS
    card_adventurers: tuple[int, ...] = (3, 2, 1)
    tokens: Counts = ((2, 2, 2),) * KINDS
    market: tuple[int, ...] = (3, 2, 2, 1, 1)
    target: int = 40
    round_limit: int = 100
    discard: str = "at_once"
    refill: str = "empty"
    reshuffle: str = "needed"
    left_over_bags: str = "dungeon"
    game_end: str = "scoring"

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
        for name, values in VARIANTS.items():
            value: Any = getattr(self, name)
            if not isinstance(value, str) or value not in values:
                raise UnplayableRuleset(f"{name} must be one of {', '.join(values)}, but is {value!r}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, settings: Any) -> Self:
        """The inverse of `to_dict`; unknown settings are refused."""
        known = list(cls.__dataclass_fields__)
        if not isinstance(settings, Mapping) or not set(settings) <= set(known):
            raise UnplayableRuleset(f"a rule set is a mapping with some of {', '.join(known)}, not {settings!r}")
        return cls(**settings)

    @classmethod
    def of(cls, ruleset: "RulesetLike") -> "Ruleset":
        """The rule set that somebody means: one as it is, the settings of one, a text (see `parse`), or the default."""
        if isinstance(ruleset, Ruleset):
            return ruleset
        if ruleset is None:
            return cls()
        return cls.parse(ruleset) if isinstance(ruleset, str) else cls.from_dict(ruleset)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The rule set that a text names, as command lines take it; the inverse of `str`.

        Args:
            text: settings that differ from the default, as "refill=short,target=30" or as JSON, or the path of a .json
                file with such settings; "default" or nothing for the default.
        """
        text = text.strip()
        if text in ("", DEFAULT):
            return cls()
        if text.startswith("{") or text.endswith(".json"):
            try:
                settings = json.loads(text if text.startswith("{") else Path(text).read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError) as error:
                raise UnplayableRuleset(f"no rule set can be read from {text}: {error}") from None
            return cls.from_dict(settings)
        parts = [part.strip().partition("=") for part in text.split(",")]
        if any(not equals for _, equals, _ in parts) or len({name for name, *_ in parts}) < len(parts):
            raise UnplayableRuleset(
                f"a rule set is name=value,name=value with each name once, a .json file, or {DEFAULT}; not {text!r}"
            )
        numbers = {name: value.isdecimal() and len(value) <= _MOST_DIGITS for name, _, value in parts}
        return cls.from_dict({name: int(value) if numbers[name] else value for name, _, value in parts})

    def __str__(self) -> str:
        changed = {name: value for name, value in self.to_dict().items() if value != getattr(type(self), name)}
        if any(isinstance(value, tuple) for value in changed.values()):
            return json.dumps(changed)
        return ",".join(f"{name}={value}" for name, value in changed.items()) or DEFAULT


RulesetLike: TypeAlias = Ruleset | Mapping[str, Any] | str | None
"""What is taken where a game is started (see `Ruleset.of`)."""


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
