"""A slow, obvious twin of the rules, written from the rules alone, to check the compiled engine against.

Clause numbers (§8.4) are those of the rules page. The whole game is one generator that is written in the order of
the rulebook: wherever a player decides, it stops in `Game.decide` and goes on once `Game.play` is told the answer.

The twin knows no more than the players do (§10): a hidden card is only a place that belongs to a shuffle. What
chance brings is told to it from outside, and it refuses what cannot be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, TypeVar

Card = tuple[int, int]  # (kind, bags)
Token = tuple[int, int]  # (kind, value)
T = TypeVar("T")
Script = Generator[list[str], str, T]  # yields the legal actions, is sent the one chosen

KINDS = "GRSED"  # gold, ruby, sapphire, emerald, diamond
DUNGEONS = "ABCDEF"
ZONES = ("wild", "disembark", "points", "reinforcement")
LANES = ("supply", "adventurers", "chest", "rearrange")
SUPPLY, ADVENTURERS, CHEST, REARRANGE = range(4)

ADVENTURERS_EACH = 9  # §1.5
FIRST_ADVENTURERS = 2  # §2.5
LANE_LIMIT = 7  # §3.3
LANE_COLOUR_LIMIT = 3  # §3.3
HAND_LIMIT = 7  # §4.5
PLACEMENTS = 3  # §5.1
DISEMBARKING = 3  # §5.4
BONUS_POINTS = 2  # §5.5
REINFORCEMENTS = 2  # §5.6
CHEST_TOKENS = 3  # §6.1
FULL_DUNGEON = 4  # §6.3
LONGEST_MOVE = 2  # §7.1

VARIANTS = {  # §1.10: default first
    "discard": ("at_once", "after_deal"),
    "refill": ("empty", "short"),
    "reshuffle": ("needed", "empty"),
    "left_over_bags": ("dungeon", "round"),
    "game_end": ("scoring", "chest"),
}


@dataclass(frozen=True)
class Rules:
    """The settings of §1.9 and §1.10."""

    deck: tuple[tuple[int, int, int], ...] = ((2, 2, 2),) * 5  # §1.6: per kind, copies of cards with 1, 2, 3 bags
    adventurers: tuple[int, int, int] = (3, 2, 1)  # on a card with 1, 2, 3 bags
    tokens: tuple[tuple[int, int, int], ...] = ((2, 2, 2),) * 5  # §1.7: per kind, copies with value 1, 2, 3
    market: tuple[int, int, int, int, int] = (3, 2, 2, 1, 1)  # §1.8: best first
    target: int = 40  # §9.1
    round_limit: int = 100  # §9.4
    discard: str = "at_once"  # §4.5
    refill: str = "empty"  # §6.2
    reshuffle: str = "needed"  # §4.3
    left_over_bags: str = "dungeon"  # §8.4
    game_end: str = "scoring"  # §9.1

    def __post_init__(self) -> None:
        for name, copies in (("deck", self.deck), ("tokens", self.tokens)):
            if len(copies) != 5 or any(len(row) != 3 or min(row) < 0 for row in copies) or sum(map(sum, copies)) != 30:
                raise ValueError(f"{name} must be 5 kinds x 3 copies, 30 in all: {copies}")
        if len(self.adventurers) != 3 or min(self.adventurers) < 0:
            raise ValueError(f"adventurers must be three numbers from 0: {self.adventurers}")
        if len(self.market) != 5 or list(self.market) != sorted(self.market, reverse=True):
            raise ValueError(f"market must be five values, best first: {self.market}")
        if self.target < 1 or self.round_limit < 1:
            raise ValueError(f"target and round limit must be at least 1: {self.target}, {self.round_limit}")
        for name, choices in VARIANTS.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}: {getattr(self, name)!r}")


class Setup(TypedDict):
    """What chance decides before the game (§2)."""

    lanes: Sequence[Sequence[int]]  # 4 lanes of seats, bottom first
    market: Sequence[int]  # the 5 kinds, best first
    dungeons: Sequence[Token]  # the first token of each dungeon


class Chance(Protocol):
    """Supplies what is drawn. While it is asked for a card, the card's place is still the top of the pile."""

    def draw_card(self) -> Card: ...

    def draw_tokens(self) -> Sequence[Token]: ...


STANDARD = Rules()


def notation(piece: Card | Token) -> str:
    """A card or a token in notation: R2."""
    kind, number = piece
    return f"{KINDS[kind]}{number}"


def pieces(table: Sequence[Sequence[int]]) -> Counter[tuple[int, int]]:
    """The 30 cards or 30 tokens of a table of the rule set."""
    return Counter({(kind, i + 1): count for kind, row in enumerate(table) for i, count in enumerate(row) if count})


class Game:
    """One game, always standing at a real choice (§11.4) or at its end."""

    def __init__(self, num_players: int, setup: Setup, rules: Rules = STANDARD, chance: Chance | None = None) -> None:
        if num_players not in (2, 3, 4):
            raise ValueError(f"2 to 4 players, not {num_players}")  # §1.1
        if chance is None:
            raise ValueError("the twin needs to be told what chance brings")
        self.n = num_players
        self.rules = rules
        self.chance = chance

        # The slide (§2.1, §2.2).
        self.lanes = [[int(seat) for seat in lane] for lane in setup["lanes"]]  # bottom first
        self.cylinder = SUPPLY
        self.round = 1
        self.active_player = -1
        # The board (§2.3, §2.4).
        self.market = [int(kind) for kind in setup["market"]]  # best first
        self.treasures: list[list[Token]] = [[(int(kind), int(value))] for kind, value in setup["dungeons"]]
        self.queues: list[list[int]] = [[] for _ in DUNGEONS]  # seats, front first
        self.zones: list[list[int]] = [[] for _ in ZONES]  # seats
        self.bag = pieces(rules.tokens)
        self.token_discard: list[Token] = []
        # The players (§2.5).
        self.supply = [FIRST_ADVENTURERS] * self.n
        self.marseille = [ADVENTURERS_EACH - FIRST_ADVENTURERS] * self.n
        self.hands: list[list[Card]] = [[] for _ in range(self.n)]  # without the wild bags
        self.wilds: list[list[int]] = [[] for _ in range(self.n)]  # shuffle numbers, oldest first
        self.scores = [0] * self.n
        self.gathered: list[list[Token]] = [[] for _ in range(self.n)]
        # The cards (§10.1): a hidden card is the number of the shuffle it comes from.
        self.unseen = [pieces(rules.deck)]  # per shuffle, the cards of it that nobody has seen
        self.pile = [0] * self.unseen[0].total()  # shuffle numbers, top first
        self.card_discard: list[Card] = []

        # What is under way; empty outside its phase.
        self.phase = "deal"
        self.current_player = -1
        self.offer: list[Card] = []
        self.recipients: list[int] = []  # who still gets a card, in the order of service
        self.placements_left = 0
        self.zone_used = False
        self.reinforcements_left = 0
        self.drawn_tokens: list[Token] = []
        self.chest_dungeons: list[int] = []
        self.gather_dungeon = -1
        self.gather_order: list[int] = []
        self.taking: Token | None = None
        self.left_over_bags = [[0] * len(KINDS) for _ in range(self.n)]

        self.terminated = False
        self.truncated = False
        self.winners: list[int] = []
        self.log: list[tuple[Any, ...]] = []
        self.corners: Counter[str] = Counter()

        self._script: Script[None]
        self._legal: list[str] = []
        self.check_setup()
        for (first,) in self.treasures:
            self.bag -= Counter([first])
        self.follow(self.rounds())

    def check_setup(self) -> None:
        """Refuse a setup with the wrong pieces. The shape of §2.1 is not asked for: tests begin with other lanes."""
        marbles = 6 if self.n == 2 else 4  # §1.4
        everyone = Counter(dict.fromkeys(range(self.n), marbles))
        assert Counter(seat for lane in self.lanes for seat in lane) == everyone, f"marbles: {self.lanes}"
        assert len(self.lanes) == len(LANES), f"lanes: {self.lanes}"
        assert all(len(lane) <= LANE_LIMIT for lane in self.lanes), f"a lane is too long: {self.lanes}"  # §3.3
        assert all(max(Counter(lane).values(), default=0) <= LANE_COLOUR_LIMIT for lane in self.lanes), self.lanes
        assert sorted(self.market) == list(range(len(KINDS))), f"market: {self.market}"
        assert len(self.treasures) == len(DUNGEONS), f"dungeons: {self.treasures}"
        assert Counter(first for (first,) in self.treasures) <= self.bag, f"no such tokens: {self.treasures}"

    # --- Decisions (§11) ---------------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated

    def legal(self) -> list[str]:
        """The legal actions in notation, sorted; none when the game is over."""
        return list(self._legal)

    def play(self, action: str) -> None:
        """Play one decision and go on to the next real choice."""
        if action not in self._legal:
            raise ValueError(f"{action!r} is not legal; legal: {', '.join(self._legal) or 'nothing'}")
        try:
            self._legal = self._script.send(action)
        except StopIteration:
            self._legal = []

    def drew(self, before: int) -> bool:
        """Whether anything was turned up since the log had this length: a wild bag stays unseen (§5.3)."""
        return any(event[0] in ("draw", "tokens") for event in self.log[before:])

    def follow(self, script: Script[None]) -> None:
        """Go on with this part of the rules; tests use it to begin in a situation made by hand."""
        self._script = script
        self._legal = next(script, [])

    def decide(self, player: int, phase: str, options: dict[str, T]) -> Script[T]:
        """Let a player choose among the options, which are named in notation; equal ones are one (§11.3)."""
        self.phase = phase
        self.current_player = player
        forced = len(options) == 1  # §11.4
        if forced:
            action = next(iter(options))
        else:
            action = yield sorted(options)
        self.log.append(("move", player, action, forced))
        return options[action]

    # --- The action slide (§3) ---------------------------------------------------------------------------------------

    def rounds(self) -> Script[None]:
        """The game from the cylinder's lane on."""
        while not self.over:
            yield from self.carry_out_lane()
            if not self.over:
                self.move_cylinder()
        self.phase = "over"
        self.current_player = -1

    def carry_out_lane(self) -> Script[None]:
        lane = self.lanes[self.cylinder]
        if not lane:
            self.corners["empty lane"] += 1
            return  # §3.5
        self.active_player = lane[0]  # §3.1
        if self.cylinder == SUPPLY:
            yield from self.supply_action()
        elif self.cylinder == ADVENTURERS:
            yield from self.adventurers_action()
        elif self.cylinder == CHEST:
            yield from self.treasure_chest_action()
        else:
            yield from self.rearrange_action()
        if not self.over:
            yield from self.return_marble()  # §3.2

    def return_marble(self) -> Script[None]:
        """The used marble goes on top of another lane (§3.2)."""
        options = {}
        for i, lane in enumerate(self.lanes):
            room = len(lane) < LANE_LIMIT and lane.count(self.active_player) < LANE_COLOUR_LIMIT  # §3.3
            if i != self.cylinder and room:
                options[f"return {LANES[i]}"] = lane
        if len(options) < len(LANES) - 1:
            self.corners["lane full"] += 1
        chosen = yield from self.decide(self.active_player, "return_marble", options)
        chosen.append(self.lanes[self.cylinder].pop(0))

    def move_cylinder(self) -> None:
        if self.cylinder != REARRANGE:
            self.cylinder += 1  # §3.4
        elif self.round < self.rules.round_limit:
            self.cylinder = SUPPLY
            self.round += 1
        else:
            self.truncated = True  # §9.4
            self.corners["truncated"] += 1
            self.declare_winners()

    def clockwise(self, first: int) -> list[int]:
        return [(first + i) % self.n for i in range(self.n)]

    # --- Supply (§4) -------------------------------------------------------------------------------------------------

    def supply_action(self) -> Script[None]:
        for _ in range(self.n):  # §4.1
            if self.a_card_is_left():
                self.draw_face_up()
        if len(self.offer) < self.n:
            self.corners["cards exhausted"] += 1
        self.recipients = self.clockwise(self.active_player)[: len(self.offer)]  # §4.4: who comes last goes without
        while self.recipients:
            yield from self.deal_card(self.recipients[0])
        if self.rules.discard == "after_deal":
            for player in self.clockwise(self.active_player):
                yield from self.keep_hand_limit(player)  # §4.5

    def deal_card(self, player: int) -> Script[None]:
        """The active player chooses the card that a player gets; with it that player may have one too many."""
        options = {f"deal {notation(card)}": card for card in self.offer}
        card = yield from self.decide(self.active_player, "deal", options)
        self.recipients.remove(player)
        self.offer.remove(card)
        self.hands[player].append(card)
        _, bags = card
        self.bring_from_marseille(player, self.rules.adventurers[bags - 1])  # §4.2
        if self.rules.discard == "at_once":
            yield from self.keep_hand_limit(player)  # §4.5: before the next card is chosen

    def bring_from_marseille(self, player: int, wanted: int) -> None:
        """Adventurers come into the personal supply, as far as Marseille has them (§4.2, §5.4)."""
        coming = min(wanted, self.marseille[player])
        if coming < wanted:
            self.corners["marseille short"] += 1
        self.marseille[player] -= coming
        self.supply[player] += coming

    def a_card_is_left(self) -> bool:
        """Whether a card can be drawn; the discards are shuffled to a new pile if it takes that (§4.3)."""
        if not self.pile:
            self.reshuffle()
        return bool(self.pile)

    def reshuffle(self) -> None:
        """The discards of this moment, if there are any, are shuffled to a new pile (§4.3)."""
        if not self.card_discard:
            return
        self.pile = [len(self.unseen)] * len(self.card_discard)
        self.unseen.append(Counter(self.card_discard))
        self.card_discard = []
        self.log.append(("shuffle",))
        self.corners["reshuffle"] += 1
        if self.offer:
            self.corners["reshuffle within a deal"] += 1

    def after_a_draw(self) -> None:
        """In a variant of §4.3 the draw of the last card is what makes a new pile."""
        if self.rules.reshuffle == "empty" and not self.pile:
            self.corners["reshuffle on the last card" if self.card_discard else "last card, no discards"] += 1
            self.reshuffle()

    def draw_face_up(self) -> None:
        kind, bags = self.chance.draw_card()
        card = (int(kind), int(bags))
        shuffle = self.pile.pop(0)
        assert self.unseen[shuffle][card] > 0, (
            f"{card} cannot be drawn: shuffle {shuffle} has only these unseen cards: {dict(self.unseen[shuffle])}"
        )
        self.unseen[shuffle] -= Counter([card])
        self.offer.append(card)
        self.log.append(("draw", card))
        self.after_a_draw()

    def keep_hand_limit(self, player: int) -> Script[None]:
        """A player with 8 cards, wild bags included, discards one (§4.5)."""
        if len(self.hands[player]) + len(self.wilds[player]) <= HAND_LIMIT:
            return
        options: dict[str, Card | None] = {f"discard {notation(card)}": card for card in self.hands[player]}
        if self.wilds[player]:
            options["discard W"] = None
        if self.cylinder == SUPPLY:
            self.corners["discard within a deal" if self.recipients else "discard after a deal"] += 1
        card = yield from self.decide(player, "discard", options)
        if card is None:
            self.corners["wild over the limit"] += 1
        self.give_up(player, card)

    def give_up(self, player: int, card: Card | None) -> None:
        """A spent or discarded card leaves the hand face up; a wild bag, None, goes unseen under the pile (§4.6)."""
        if card is not None:
            self.hands[player].remove(card)
            self.card_discard.append(card)
            return
        if not self.pile:
            self.corners["wild is the whole pile"] += 1
        self.pile.append(self.wilds[player].pop(0))  # the one held longest

    # --- Adventurers (§5) --------------------------------------------------------------------------------------------

    def adventurers_action(self) -> Script[None]:
        active, *others = self.clockwise(self.active_player)
        yield from self.place_adventurers(active, PLACEMENTS)  # §5.1
        for player in others:
            yield from self.place_adventurers(player, 1)

    def place_adventurers(self, player: int, placements: int) -> Script[None]:
        self.placements_left = placements
        while self.placements_left and self.supply[player]:
            options: dict[str, tuple[str, int] | None] = {f"enter {d}": ("enter", i) for i, d in enumerate(DUNGEONS)}
            for i, zone in enumerate(ZONES):
                if not self.zone_used and player not in self.zones[i]:  # §5.1, §5.2
                    options[f"visit {zone}"] = ("visit", i)
            options["stop placing"] = None
            choice = yield from self.decide(player, "place", options)
            if choice is None:
                break
            self.placements_left -= 1
            self.supply[player] -= 1
            verb, place = choice
            if verb == "enter":
                self.queues[place].append(player)  # §5.2
            else:
                self.zone_used = True
                self.zones[place].append(player)
                yield from self.grant_bonus(player, ZONES[place])
        self.placements_left = 0
        self.zone_used = False

    def grant_bonus(self, player: int, zone: str) -> Script[None]:
        """A bonus takes effect at once (§5.2)."""
        if zone == "wild":
            yield from self.take_wild_bag(player)
        elif zone == "disembark":
            self.bring_from_marseille(player, DISEMBARKING)  # §5.4
        elif zone == "points":
            before = self.scores[player]
            self.scores[player] += BONUS_POINTS  # §5.5
            if before < self.rules.target <= self.scores[player]:
                self.corners["target passed by bonus points"] += 1  # §9.1: the game goes on
        else:
            yield from self.place_reinforcements(player)

    def take_wild_bag(self, player: int) -> Script[None]:
        """The top card of the pile, unseen by everyone (§5.3)."""
        assert self.a_card_is_left(), "at least 2 cards always exist (§4.4)"
        shuffle = self.pile.pop(0)
        self.wilds[player].append(shuffle)
        self.log.append(("wild", player))
        if shuffle > 0:
            self.corners["wild from reshuffle"] += 1
        self.after_a_draw()
        yield from self.keep_hand_limit(player)

    def place_reinforcements(self, player: int) -> Script[None]:
        """Up to 2 more adventurers into dungeons, before the next placement (§5.6)."""
        self.reinforcements_left = REINFORCEMENTS
        while self.reinforcements_left and self.supply[player]:
            options: dict[str, int | None] = {f"reinforce {d}": i for i, d in enumerate(DUNGEONS)}
            options["stop reinforcing"] = None
            dungeon = yield from self.decide(player, "reinforce", options)
            if dungeon is None:
                break
            self.reinforcements_left -= 1
            self.supply[player] -= 1
            self.queues[dungeon].append(player)
        self.reinforcements_left = 0

    # --- Treasure chest (§6) -----------------------------------------------------------------------------------------

    def treasure_chest_action(self) -> Script[None]:
        self.draw_tokens()
        while self.drawn_tokens:
            options = {f"put {d}": i for i, d in enumerate(DUNGEONS) if i not in self.chest_dungeons}  # §6.1
            dungeon = yield from self.decide(self.active_player, "put_token", options)
            self.treasures[dungeon].append(self.drawn_tokens.pop(0))
            self.chest_dungeons.append(dungeon)
        self.chest_dungeons = []
        if any(len(tokens) == FULL_DUNGEON for tokens in self.treasures):
            yield from self.scoring_round()  # §6.3
        elif self.rules.game_end == "chest" and self.target_reached():  # §9.1
            self.corners["end by a chest"] += 1
            self.end_by_points()

    def draw_tokens(self) -> None:
        """Three tokens; the bag is refilled before them if it is too short, or after them if it is empty (§6.2)."""
        if self.bag.total() < CHEST_TOKENS:
            self.corners["refill of a short bag"] += 1
            self.refill_bag()
        tokens = [(int(kind), int(value)) for kind, value in self.chance.draw_tokens()]
        assert len(tokens) == CHEST_TOKENS, f"{CHEST_TOKENS} tokens must be drawn, not {tokens}"
        assert Counter(tokens) <= self.bag, f"{tokens} cannot be drawn: the bag holds {dict(self.bag)}"
        self.bag -= Counter(tokens)
        self.drawn_tokens = tokens
        self.log.append(("tokens", list(tokens)))
        if self.rules.refill == "empty" and not self.bag.total():
            self.corners["refill of an emptied bag"] += 1
            self.refill_bag()

    def refill_bag(self) -> None:
        """All tokens that lie discarded at this moment go back into the bag."""
        self.bag += Counter(self.token_discard)
        self.token_discard = []
        self.log.append(("refill",))

    # --- Rearrange (§7) ----------------------------------------------------------------------------------------------

    def rearrange_action(self) -> Script[None]:
        """Down a lane and up the market are both towards the start of the list."""
        options: dict[str, tuple[list[int], int, int] | None] = {"keep order": None}
        for by in range(1, LONGEST_MOVE + 1):
            for lane_name, lane in zip(LANES, self.lanes, strict=True):
                for place in range(by, len(lane)):
                    if lane[place] == self.active_player:
                        options[f"marble {lane_name} {place} down {by}"] = (lane, place, by)
            for place in range(by, len(self.market)):
                options[f"market {KINDS[self.market[place]]} up {by}"] = (self.market, place, by)
        choice = yield from self.decide(self.active_player, "rearrange", options)
        if choice is not None:
            line, place, by = choice
            line.insert(place - by, line.pop(place))

    # --- Scoring round (§8) ------------------------------------------------------------------------------------------

    def scoring_round(self) -> Script[None]:
        for dungeon in range(len(DUNGEONS)):  # §8.1
            self.gather_dungeon = dungeon
            self.gather_order = self.order_in_dungeon(dungeon)
            while self.gather_order:
                yield from self.gathering_turn(self.gather_order[0], dungeon)
                self.gather_order.pop(0)
        self.gather_dungeon = -1
        for player in range(self.n):
            self.lose_left_over_bags(player)  # §8.4: at the latest
        self.clear_board()
        self.score_gathered_tokens()
        if self.target_reached():  # §9.1
            self.end_by_points()

    def order_in_dungeon(self, dungeon: int) -> list[int]:
        """Most adventurers first, then whose foremost stands further up the queue (§8.2)."""
        queue = self.queues[dungeon]
        counts = Counter(queue)
        if len(set(counts.values())) < len(counts):
            self.corners["tie in a queue"] += 1
        return sorted(counts, key=lambda player: (-counts[player], queue.index(player)))

    def gathering_turn(self, player: int, dungeon: int) -> Script[None]:
        """Any number of tokens, none included (§8.3); stopping exists only beside a token to take (§11.4)."""
        carried = list(self.left_over_bags[player])  # from dungeons before this one
        while player in self.queues[dungeon]:
            options: dict[str, Token | None] = {
                f"take {notation(token)}": token for token in self.treasures[dungeon] if self.can_pay(player, token)
            }
            if not options:
                break
            options["stop taking"] = None
            token = yield from self.decide(player, "take", options)
            if token is None:
                break
            if carried[token[0]]:
                self.corners["left-over bags of an earlier dungeon used"] += 1
                carried[token[0]] = 0
            yield from self.pay_for(player, token)
            self.treasures[dungeon].remove(token)
            self.gathered[player].append(token)
            self.queues[dungeon].remove(player)  # the foremost; the queue closes up
            self.marseille[player] += 1
        if self.rules.left_over_bags == "dungeon":
            self.lose_left_over_bags(player)  # §8.4

    def lose_left_over_bags(self, player: int) -> None:
        if any(self.left_over_bags[player]):
            self.corners["left-over bags lost"] += 1
        self.left_over_bags[player] = [0] * len(KINDS)

    def can_pay(self, player: int, token: Token) -> bool:
        """Whether left-over bags, cards of the kind and wild bags together meet the price (§11.2)."""
        kind, value = token
        on_cards = sum(bags for card_kind, bags in self.hands[player] if card_kind == kind)
        return self.left_over_bags[player][kind] + on_cards + len(self.wilds[player]) >= value

    def pay_for(self, player: int, token: Token) -> Script[None]:
        """Cards or wild bags, one by one, until the price is met; left-over bags are used first (§8.4, §11.2)."""
        kind, value = token
        self.taking = token
        left_over = self.left_over_bags[player]
        if left_over[kind]:
            self.corners["left-over bags used"] += 1
        if left_over[kind] >= value:
            self.corners["left-over bags suffice"] += 1
        while left_over[kind] < value:
            options: dict[str, Card | None] = {
                f"pay {notation(card)}": card for card in self.hands[player] if card[0] == kind
            }
            if self.wilds[player]:
                options["pay W"] = None
            card = yield from self.decide(player, "pay", options)
            left_over[kind] += 1 if card is None else card[1]
            self.give_up(player, card)  # §8.5
        left_over[kind] -= value
        self.taking = None

    def clear_board(self) -> None:
        """Dungeons that are still full and the bonus zones are emptied (§8.6)."""
        for tokens in self.treasures:
            if len(tokens) == FULL_DUNGEON:
                self.token_discard += tokens
                tokens.clear()
                self.corners["dungeon emptied"] += 1
        for zone in self.zones:
            for player in zone:
                self.marseille[player] += 1
            zone.clear()

    def score_gathered_tokens(self) -> None:
        """Value times market value of the kind (§8.7)."""
        for player, tokens in enumerate(self.gathered):
            for kind, value in tokens:
                self.scores[player] += value * self.rules.market[self.market.index(kind)]
            self.token_discard += tokens
            tokens.clear()

    # --- The end (§9) ------------------------------------------------------------------------------------------------

    def standing(self, player: int) -> tuple[int, int]:
        """Points, then adventurers in dungeons: the higher, the better (§9.2)."""
        return self.scores[player], sum(queue.count(player) for queue in self.queues)

    def target_reached(self) -> bool:
        return max(self.scores) >= self.rules.target

    def end_by_points(self) -> None:
        self.terminated = True
        self.declare_winners()

    def declare_winners(self) -> None:
        best = max(self.standing(player) for player in range(self.n))
        self.winners = [player for player in range(self.n) if self.standing(player) == best]
        if len(self.winners) < self.scores.count(max(self.scores)):
            self.corners["tie broken by adventurers"] += 1
        if len(self.winners) > 1:
            self.corners["shared win"] += 1  # §9.3

    def rewards(self, kind: str) -> list[float]:
        """The rewards at the end, zero before it."""
        players = range(self.n)
        if kind not in ("win", "rank", "margin"):
            raise ValueError(f"no such reward: {kind!r}")
        if not self.over:
            return [0.0] * self.n
        if kind == "win":
            shares = [1 / len(self.winners) if player in self.winners else 0.0 for player in players]
            return [(self.n * share - 1) / (self.n - 1) for share in shares]
        if kind == "rank":
            order = sorted((self.standing(player) for player in players), reverse=True)
            rewards = []
            for player in players:
                places = [place for place, standing in enumerate(order) if standing == self.standing(player)]
                rewards.append(1 - 2 * (sum(places) / len(places)) / (self.n - 1))
            return rewards
        total = sum(self.scores)
        return [(own - (total - own) / (self.n - 1)) / self.rules.target for own in self.scores]

    # --- What everyone sees (§10) ------------------------------------------------------------------------------------

    def public_state(self) -> dict[str, Any]:
        return {
            "round": self.round,
            "cylinder": self.cylinder,
            "phase": self.phase,
            "active_player": self.active_player,
            "current_player": self.current_player,
            "lanes": [list(lane) for lane in self.lanes],
            "market": list(self.market),
            "dungeons": [
                {"tokens": sorted(tokens), "queue": list(queue)}
                for tokens, queue in zip(self.treasures, self.queues, strict=True)
            ],
            "zones": [sorted(zone) for zone in self.zones],
            "supply": list(self.supply),
            "marseille": list(self.marseille),
            "hands": [sorted(hand) for hand in self.hands],
            "wilds": [len(wilds) for wilds in self.wilds],
            "scores": list(self.scores),
            "offer": sorted(self.offer),
            "recipient": self.recipients[0] if self.recipients else -1,
            "drawn_tokens": list(self.drawn_tokens),
            "taking": self.taking,
            "left_over_bags": [list(bags) for bags in self.left_over_bags],
            "placements_left": self.placements_left,
            "zone_used": self.zone_used,
            "reinforcements_left": self.reinforcements_left,
            "chest_dungeons": sorted(self.chest_dungeons),
            "gather_dungeon": self.gather_dungeon,
            "gather_order": list(self.gather_order),
            "gathered": [sorted(tokens) for tokens in self.gathered],
            "pile_size": len(self.pile),
            "card_discard": sorted(self.card_discard),
            "bag": sorted(self.bag.elements()),
            "token_discard": sorted(self.token_discard),
            "winners": list(self.winners),
        }
