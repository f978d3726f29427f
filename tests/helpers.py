"""What the tests of the engine share: games arranged by hand, rows seen apart from what is hidden, seats rotated."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from numpy.typing import NDArray

import montecristo_env.games
import montecristo_env.util.threads
import reference
from montecristo_env import GameBatch, Kind, Lane, Ruleset, actions
from montecristo_env.core import batch
from montecristo_env.core.actions import Card
from montecristo_env.core.constants import ADVENTURERS, HIDDEN_SLOTS, MARBLES, NONE, SIZES
from montecristo_env.core.jit import INTERPRETED
from montecristo_env.core.layout import HIDDEN_FIELDS, STATE, States

GOLD, RUBY, SAPPHIRE, EMERALD, DIAMOND = Kind
A, B, C, D, E, F = range(6)
ODD_RULES = Ruleset(
    deck=((9, 0, 1), (0, 5, 0), (3, 3, 3), (0, 0, 4), (1, 1, 0)),
    card_adventurers=(0, 4, 2),
    tokens=((0, 3, 3), (6, 0, 0), (1, 2, 3), (0, 0, 9), (2, 1, 0)),
    market=(3, 3, 2, 2, 1),
    target=25,
    round_limit=20,
)
"""A rule set in which nothing is as usual."""

TEXT = [str(actions.decode(code)) for code in range(actions.COUNT)]
"""The notation of every action, by its code."""

CODE = {text: code for code, text in enumerate(TEXT)}


FUZZ = bool(os.environ.get("MONTECRISTO_FUZZ"))
"""Whether properties are tried with other examples every time (see fuzz.py)."""


def property_settings(examples: int) -> settings:
    """Hypothesis with the same examples every time, fewer of them where nothing is compiled."""
    return settings(
        max_examples=max(2, examples // 10) if INTERPRETED else examples,
        deadline=None,
        derandomize=not FUZZ,
        database=None,
        phases=[Phase.explicit, Phase.generate] if INTERPRETED else list(Phase),  # to shrink a failure would take hours
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def rules_of(ruleset: Ruleset) -> reference.Rules:
    """The same settings for the twin."""
    return reference.Rules(
        deck=ruleset.deck,  # type: ignore[arg-type]
        adventurers=ruleset.card_adventurers,  # type: ignore[arg-type]
        tokens=ruleset.tokens,  # type: ignore[arg-type]
        market=ruleset.market,  # type: ignore[arg-type]
        target=ruleset.target,
        round_limit=ruleset.round_limit,
        **{name: getattr(ruleset, name) for name in reference.VARIANTS},
    )


# --- Rows ------------------------------------------------------------------------------------------------------------


_whole_row = {name for name in STATE.names or () if STATE[name].itemsize == STATE.itemsize}
_public_bytes = np.ones(STATE.itemsize, np.bool_)
for _name in set(HIDDEN_FIELDS) - _whole_row:
    _offset = (STATE.fields or {})[_name][1]
    _public_bytes[_offset : _offset + STATE[_name].itemsize] = False


def public_part(states: States) -> NDArray[np.uint8]:
    """The bytes of every row but for its hidden fields, (N, bytes)."""
    return np.ascontiguousarray(states).view(np.uint8).reshape(states.size, STATE.itemsize)[:, _public_bytes]


def everything(games: GameBatch) -> tuple[bytes, bytes]:
    """All that a batch consists of, to see whether something changed."""
    return games.states.tobytes(), games.rewards.tobytes()


PER_SEAT = {
    "score",
    "winners",
    "crew",
    "places",
    "zones",
    "supply",
    "marseille",
    "hands",
    "left_over_bags",
    "hand_size",
    "wilds",
    "wild_slots",
    "gathered",
}
"""Fields whose first axis are the seats."""

SEAT_NUMBERS = {"current_player", "active_player", "recipient", "gather_order"}
"""Fields that store a seat, or NONE."""

MARBLES_BY_SEAT = {"lanes"}
"""Fields that store a seat + 1, or 0."""


SEATLESS = set(STATE.names or ()) - PER_SEAT - SEAT_NUMBERS - MARBLES_BY_SEAT
"""All others."""


def rotate_seats(states: States, by: int) -> States:
    """The same games with every seat moved on by a number of places, clockwise."""
    rotated = states.copy()
    for row in range(states.size):
        n = int(states["num_players"][row])
        new_seats = (np.arange(n) + by) % n
        for name in PER_SEAT:
            rotated[name][row, new_seats] = states[name][row, :n]
        for name in SEAT_NUMBERS:
            old = states[name][row]
            rotated[name][row] = np.where(old == NONE, NONE, (old + by) % n)
        for name in MARBLES_BY_SEAT:
            old = states[name][row]
            rotated[name][row] = np.where(old == 0, 0, (old - 1 + by) % n + 1)
    return rotated


# --- Checks that use nothing of the engine but its public state ------------------------------------------------------


def assert_conserved(state: dict[str, Any], n: int, ruleset: Ruleset) -> None:
    """§1.4 to §1.7, §3.3, §4.5, §8.2: every piece is somewhere, once, and no limit is broken."""
    for seat in range(n):
        in_dungeons = sum(dungeon["queue"].count(seat) for dungeon in state["dungeons"])
        in_zones = sum(zone.count(seat) for zone in state["zones"])
        assert state["supply"][seat] >= 0 and state["marseille"][seat] >= 0
        assert state["supply"][seat] + state["marseille"][seat] + in_dungeons + in_zones == ADVENTURERS
    assert all(zone == sorted(set(zone)) for zone in state["zones"])

    marbles = Counter(seat for lane in state["lanes"] for seat in lane)
    assert marbles == dict.fromkeys(range(n), MARBLES[n])
    assert all(len(lane) <= 7 and max(Counter(lane).values(), default=0) <= 3 for lane in state["lanes"])

    seen = Counter(state["offer"] + state["card_discard"])
    for hand in state["hands"]:
        seen.update(hand)
    deck = reference.pieces(ruleset.deck)
    assert seen <= deck
    assert seen.total() + state["pile_size"] + sum(state["wilds"]) == deck.total()
    room = 8 if state["phase"] in ("deal", "discard") else 7
    assert all(len(hand) + wilds <= room for hand, wilds in zip(state["hands"], state["wilds"], strict=True))

    tokens = Counter(state["bag"] + state["token_discard"] + state["drawn_tokens"])
    for holder in [dungeon["tokens"] for dungeon in state["dungeons"]] + state["gathered"]:
        tokens.update(holder)
    assert tokens == reference.pieces(ruleset.tokens)
    assert all(len(dungeon["tokens"]) <= 4 for dungeon in state["dungeons"])
    assert sorted(state["market"]) == list(range(5))


# --- Games arranged by hand ------------------------------------------------------------------------------------------


class Table:
    """A game of the engine that a test lays out by hand, begins in any lane and then plays in notation.

    Until `begin` the game stands before its first draw: everybody has 2 adventurers and no card, all cards are in the
    pile, the dungeons and the token discard are empty and all tokens are in the bag.
    """

    def __init__(self, num_players: int = 2, ruleset: Ruleset | None = None) -> None:
        self.n = num_players
        self.games = GameBatch(1, num_players, seed=0, ruleset=ruleset)
        self.states = self.games.states
        self.row = self.states[0]  # a view
        self.forced: list[str] = []  # forced moves since the start
        batch.lay_out(self.states, 0, np.uint64(0))
        self.row["bag"] = self.row["tokens"]
        self.row["dungeon_tokens"] = 0
        self._fill_bag()

    # --- laying out

    def lanes(self, *lanes: Sequence[int]) -> None:
        """Seats of the four lanes, bottom first."""
        self.row["lanes"] = 0
        for lane, seats in enumerate(lanes):
            self.row["lanes"][lane, : len(seats)] = np.array(seats, np.int8) + 1
            self.row["lane_size"][lane] = len(seats)

    def market(self, *kinds: int) -> None:
        """Kinds, best first."""
        self.row["market"] = kinds

    def adventurers(self, player: int, supply: int) -> None:
        """A number of adventurers in the personal supply, the rest of them in Marseille."""
        free = int(self.row["supply"][player]) + int(self.row["marseille"][player])
        self.row["supply"][player], self.row["marseille"][player] = supply, free - supply

    def enter(self, dungeon: int, *seats: int) -> None:
        """Adventurers from Marseille join a queue, in this order."""
        for seat in seats:
            self.row["marseille"][seat] -= 1
            self.row["queue_length"][dungeon] += 1
            self.row["places"][seat, dungeon, self.row["crew"][seat, dungeon]] = self.row["queue_length"][dungeon]
            self.row["crew"][seat, dungeon] += 1

    def visit(self, zone: int, seat: int) -> None:
        """An adventurer from Marseille stands in a bonus zone; its bonus is long gone."""
        self.row["marseille"][seat] -= 1
        self.row["zones"][seat, zone] = 1

    def put(self, dungeon: int, *tokens: tuple[int, int]) -> None:
        """Tokens of the bag lie in a dungeon."""
        for token in tokens:
            self._from_bag(token)
            self.row["dungeon_tokens"][dungeon, number(token)] += 1

    def discard_tokens(self, *tokens: tuple[int, int]) -> None:
        """Tokens of the bag lie on the token discard."""
        for token in tokens:
            self._from_bag(token)
            self.row["token_discard"][number(token)] += 1

    def draw_tokens_next(self, *tokens: tuple[int, int]) -> None:
        """These tokens come out of the bag next, in this order; call it last."""
        bag = list(self.row["bag_order"][: self.row["bag_size"]])
        for token in tokens:
            bag.remove(number(token))
        self.row["bag_order"][: len(bag) + len(tokens)] = [*bag, *(number(token) for token in reversed(tokens))]

    def give(self, player: int, *cards: tuple[int, int]) -> None:
        """Face-up cards of the pile are in a hand."""
        for card in cards:
            self._from_pile(card)
            self.row["hands"][player, number(card)] += 1
            self.row["hand_size"][player] += 1

    def give_any(self, player: int, cards: int) -> None:
        """A number of cards of the pile are in a hand, whichever."""
        for _ in range(cards):
            self.give(player, piece(int(self.row["slot_card"][self.pile()[0]])))

    def give_wild(self, player: int, card: tuple[int, int] | None = None) -> None:
        """A card of the pile, if one is named this one, is a wild bag in a hand."""
        pile = self.pile()
        place = 0 if card is None else self._place(card)
        self.row["wild_slots"][player, self.row["wilds"][player]] = pile.pop(place)
        self.row["wilds"][player] += 1
        self.row["hand_size"][player] += 1
        self._set_pile(pile)

    def discard(self, *cards: tuple[int, int]) -> None:
        """Cards of the pile lie on the card discard."""
        for card in cards:
            self._from_pile(card)
            self.row["card_discard"][number(card)] += 1

    def draw_next(self, *cards: tuple[int, int]) -> None:
        """These cards lie on top of the pile, in this order; call it last."""
        top: list[int] = []
        for card in cards:
            pile = self.pile()
            top.append(pile.pop(self._place(card)))
            self._set_pile(pile)
        self._set_pile([*top, *self.pile()])

    # --- playing

    def begin(self, lane: int = Lane.SUPPLY) -> None:
        """The cylinder is at this lane: its action begins."""
        self.row["cylinder"] = lane
        batch.proceed(self.states, 0, NONE)
        self._play_forced()
        self.check()

    def play(self, *moves: str) -> None:
        """Moves in notation, one for each real choice."""
        for move in moves:
            assert move in self.legal, f"{move!r} is not legal; legal: {', '.join(self.legal)}"
            code = CODE[move]
            batch.proceed(self.states, 0, code - int(actions.FIRST[self.row["decision"]]))
            self._play_forced()
            self.check()

    def stop(self) -> None:
        """Everybody places and takes nothing more, as long as that is what is asked."""
        while stops := [move for move in self.legal if move.startswith("stop")]:
            self.play(*stops)

    def _play_forced(self) -> None:
        while (legal := int(self.row["legal"])).bit_count() == 1:
            choice = legal.bit_length() - 1
            self.forced.append(TEXT[int(actions.FIRST[self.row["decision"]]) + choice])
            batch.proceed(self.states, 0, choice)

    # --- looking

    @property
    def legal(self) -> list[str]:
        """The legal moves in notation, sorted, as the action mask gives them."""
        return sorted(TEXT[code] for code in np.flatnonzero(self.games.action_mask()[0]))

    @property
    def state(self) -> dict[str, Any]:
        return self.games.public_state(0)

    def facts(self, *names: str) -> list[Any]:
        state = self.state
        return [state[name] for name in names]

    def check(self) -> None:
        """The game is sane."""
        assert self.games.violations() == {}
        assert_conserved(self.state, self.n, self.games.ruleset)

    def pile(self) -> list[int]:
        """The slots of the pile, top first."""
        places = (int(self.row["pile_top"]) + np.arange(int(self.row["pile_size"]))) % HIDDEN_SLOTS
        return [int(slot) for slot in self.row["pile"][places]]

    def pile_cards(self) -> list[Card]:
        """The cards of the pile, top first: hidden from the players, not from the test."""
        return [piece(int(self.row["slot_card"][slot])) for slot in self.pile()]

    def wild_cards(self, player: int) -> list[Card]:
        """The cards behind a player's wild bags, held longest first."""
        slots = self.row["wild_slots"][player, : self.row["wilds"][player]]
        return [piece(int(self.row["slot_card"][slot])) for slot in slots]

    # --- inside

    def _place(self, card: tuple[int, int]) -> int:
        return self.pile_cards().index(Card(*card))

    def _set_pile(self, slots: Sequence[int]) -> None:
        self.row["pile_top"] = 0
        self.row["pile_size"] = len(slots)
        self.row["pile"][: len(slots)] = slots

    def _from_pile(self, card: tuple[int, int]) -> None:
        pile = self.pile()
        slot = pile.pop(self._place(card))
        self._set_pile(pile)
        self.row["slot_shuffle"][slot] = NONE
        self.row["slot_card"][slot] = 0
        self.row["unseen_cards"][number(card)] -= 1

    def _from_bag(self, token: tuple[int, int]) -> None:
        assert self.row["bag"][number(token)] > 0, f"{token} is not in the bag"
        self.row["bag"][number(token)] -= 1
        self._fill_bag()

    def _fill_bag(self) -> None:
        tokens = np.repeat(np.arange(self.row["bag"].size), self.row["bag"])
        self.row["bag_size"] = tokens.size
        self.row["bag_order"][: tokens.size] = tokens


def number(wanted: tuple[int, int]) -> int:
    """The number of a card or token in the engine."""
    kind, size = wanted
    return kind * SIZES + size - 1


def piece(wanted: int) -> Card:
    """The card with this number; equal to the token with it."""
    return Card(wanted // SIZES, wanted % SIZES + 1)


def winning_position() -> Table:
    """Player 0, 38 points, can take a ruby worth 9 in the last dungeon: no other move ends the game."""
    table = Table(2)
    table.lanes([1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0])
    table.market(RUBY, GOLD, SAPPHIRE, EMERALD, DIAMOND)
    table.put(F, (RUBY, 3), (DIAMOND, 1), (EMERALD, 1))
    table.enter(F, 0)
    table.give(0, (RUBY, 3), (DIAMOND, 1), (EMERALD, 1))
    table.row["score"][:2] = 38, 39
    table.draw_tokens_next((SAPPHIRE, 1), (SAPPHIRE, 1), (SAPPHIRE, 2))
    table.begin(Lane.CHEST)
    table.play("put F", "put A", "put B")
    return table


def share_small_batches(monkeypatch: pytest.MonkeyPatch, rows_per_thread: int) -> list[int]:
    """Lets threads share batches that would be too small for it; the list returned grows whenever they do."""
    shared: list[int] = []

    share_rows = montecristo_env.util.threads._share_rows

    def counted() -> Any:
        shared.append(1)
        return share_rows()

    for name in [name for name in vars(montecristo_env.games) if name.startswith("ROWS_PER_THREAD")]:
        monkeypatch.setattr(montecristo_env.games, name, rows_per_thread)
    monkeypatch.setattr(montecristo_env.util.threads, "_share_rows", counted)
    return shared


def random_games(
    num_games: int, num_players: int | Sequence[int], seed: int, steps: int, ruleset: Ruleset | None = None
) -> GameBatch:
    """A batch in the middle of random play."""
    games = GameBatch(num_games, num_players, seed=seed, ruleset=ruleset)
    games.play_random(steps)
    return games


def all_pieces(counts: Iterable[Iterable[int]]) -> list[tuple[int, int]]:
    """The pieces of a table of a rule set, sorted."""
    return sorted(reference.pieces([list(row) for row in counts]).elements())


NOBODY = 65534  # the user who owns nothing


@contextmanager
def without_the_rights_of_root() -> Iterator[None]:
    """Root may write everywhere: for a moment this process is nobody's."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
