"""The greedy player: the value of a choice is what the scoring round would bring if it came now.

Most decisions try every choice on the row, forecast the scoring round and take the choice back. Everything is counted
in hundredths of a point. A caller who wants the values of the choices passes an array; None costs nothing, since Numba
leaves the writing out.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.scoring_forecast import (
    CARD_BITS,
    CREW,
    FOOTHOLD,
    LEFT_OVER_AT,
    MOST_ALIKE,
    PERCENT,
    POINT,
    SUPPLY,
    TOKEN,
    TOKEN_BITS,
    VALUE,
    VALUE_BITS,
    WILDS_AT,
    Balance,
    Hands,
    Round,
    Tokens,
    after_payment,
    all_hands,
    all_tokens,
    balance,
    gather_from,
    gather_in,
    hand_of,
    hand_word,
    lead_by,
    market_word,
    payment,
    scoring_forecast,
    scoring_round,
    some_dungeon_holds,
    token_word,
    tokens_of,
    with_hand,
    with_tokens,
    without_token,
)
from montecristo_env.agent import PublicView
from montecristo_env.core.actions import (
    FIRST,
    FIRST_MOVE,
    KEEP_ORDER,
    MOVE_MARKER,
    MOVES_PER_LANE,
    STOP_PLACING,
    STOP_REINFORCING,
    STOP_TAKING,
    VISIT,
)
from montecristo_env.core.constants import (
    CARD_TYPES,
    DISEMBARKING,
    DUNGEONS,
    KINDS,
    LANES,
    LONGEST_MOVE,
    MIN_PLAYERS,
    NONE,
    REINFORCEMENTS,
    SIZES,
    TREASURE_PLACES,
    WILD_BAG,
    ZONES,
    Decision,
    Lane,
    Zone,
)
from montecristo_env.core.jit import entry_point, kernel
from montecristo_env.core.layout import Int64s, Row, States
from montecristo_env.core.legal import NOTHING, bit
from montecristo_env.core.rules import move_marker
from montecristo_env.util.threads import ALL_CORES, parallel_for

# --- weights, found by matches between versions
BONUS = 260  # bonus points: more than two, since nobody can take them away
NEXT_ENTRY = 60  # percent: what a further adventurer in a dungeon brings, compared with the best one
LEAD_SOON = 75  # percent: what counts of a lead if the next chest can start a scoring round in its player's favour
LEAD_LATER = 50  # percent: what counts of a lead that the others have time to make up for
WAITING = 15  # what it costs a marble to wait while the cylinder moves by one lane: short lanes give more turns
# What it is worth to be active in each lane: least in Adventurers, where everybody may place some.
LANE_VALUES = (20, -80, 0, 20)
LANE_VALUES_FOR_TWO = (30, -80, 0, 30)

ChoiceValues: TypeAlias = np.ndarray | None
NOT_VALUED = -(2**62)
MOST_CHOICES: int = int(np.diff(FIRST).max())
"""How many choices a decision has at most."""


@kernel
def record_value(values: ChoiceValues, choice: int, value: int) -> None:
    """Keeps the value of a choice for a caller who wants it."""
    if values is not None:
        values[choice] = value


@kernel
def relative_value(values: np.ndarray, best: int, choice: int) -> float:
    """How good a choice is, compared with the best: 1 is as good, 0.5 a point less, 0 has no value."""
    return 0.0 if values[choice] == NOT_VALUED else POINT / (POINT + values[best] - values[choice])


# --- Supply


@kernel
def choose_deal(s: Row, values: ChoiceValues) -> int:
    """The card that is worth most here, compared with where else it can go."""
    player = int(s.current_player)
    hands, tokens = all_hands(s), all_tokens(s)
    recipient = int(s.recipient)
    later = int(s.offer_size) - 1
    best, choice = 0, NONE
    for card in range(CARD_TYPES):
        if s.offer[card] == 0:
            continue
        gain = later * forecast_with_card(s, hands, tokens, player, recipient, card)
        other = recipient
        for _ in range(later):
            other = other + 1 if other + 1 < s.num_players else 0
            gain -= forecast_with_card(s, hands, tokens, player, other, card)
        record_value(values, card, gain // max(later, 1))
        if choice == NONE or gain > best:
            best, choice = gain, card
    return choice


@kernel
def forecast_with_card(s: Row, hands: Hands, tokens: Tokens, player: int, recipient: int, card: int) -> int:
    """The forecast if this card goes to a recipient."""
    hand = hand_of(hands, recipient)
    if s.hands[recipient, card] < MOST_ALIKE:
        hand += 1 << (card * CARD_BITS)
    moved = min(int(s.card_adventurers[card % SIZES]), int(s.marseille[recipient]))
    s.supply[recipient] += moved
    found = scoring_forecast(s, with_hand(hands, recipient, hand), tokens, player, False)
    s.supply[recipient] -= moved
    return found


@kernel
def choose_discard(s: Row, values: ChoiceValues) -> int:
    """The card that will be missed least."""
    player = int(s.current_player)
    hands, tokens = all_hands(s), all_tokens(s)
    best, choice = 0, NONE
    for card in range(WILD_BAG + 1):
        if s.legal & bit(card) == NOTHING:
            continue
        hand = hand_of(hands, player) - (1 << (card * CARD_BITS))
        found = scoring_forecast(s, with_hand(hands, player, hand), tokens, player, False)
        record_value(values, card, found)
        if choice == NONE or found > best:
            best, choice = found, card
    return choice


# --- Adventurers


@kernel
def lead_with_crew(
    s: Row, market: int, tokens: Tokens, dungeon: int, more: int, before: Round, after: Round, now: Balance
) -> int:
    """The forecast of the player on turn if `more` adventurers enter a dungeon.

    Without them a scoring round is so far `before` that dungeon and `after` it, and the player stands as `now`.
    """
    player = int(s.current_player)
    crew = s.crew[player, dungeon]
    first = s.places[player, dungeon, 0]
    if crew == 0:
        s.places[player, dungeon, 0] = s.queue_length[dungeon] + 1
    s.crew[player, dungeon] += more
    s.supply[player] -= more
    then = gather_in(s, market, tokens, dungeon, before)
    if then == after:  # nothing but where they stand has changed
        lead, kept, final, best_other = now
        kept += ((CREW - SUPPLY) * more + (FOOTHOLD if crew == 0 else 0)) * (int(s.num_players) - 1)
        now = lead, kept, final, best_other
    else:
        now = balance(s, market, gather_from(s, market, tokens, dungeon + 1, then), player)
    s.supply[player] += more
    s.crew[player, dungeon] = crew
    s.places[player, dungeon, 0] = first
    return lead_by(s, now, False)


@kernel
def to_overtake(s: Row, player: int, dungeon: int) -> int:
    """How many more adventurers it takes to have most in a dungeon, at least one."""
    most = 0
    for other in range(s.num_players):
        if other != player:
            most = max(most, int(s.crew[other, dungeon]))
    return max(1, most + 1 - int(s.crew[player, dungeon]))


@kernel
def gather_one_by_one(s: Row, market: int, hands: Hands, tokens: Tokens) -> tuple[Round, ...]:
    """A scoring round before each dungeon, and at its end."""
    before_a: Round = (hands, 0, 0)
    before_b = gather_in(s, market, tokens, 0, before_a)
    before_c = gather_in(s, market, tokens, 1, before_b)
    before_d = gather_in(s, market, tokens, 2, before_c)
    before_e = gather_in(s, market, tokens, 3, before_d)
    before_f = gather_in(s, market, tokens, 4, before_e)
    return before_a, before_b, before_c, before_d, before_e, before_f, gather_in(s, market, tokens, 5, before_f)


@kernel
def best_entry(
    s: Row, market: int, hands: Hands, tokens: Tokens, left: int, values: ChoiceValues
) -> tuple[int, int, int]:
    """The dungeon where an adventurer brings most, NONE if nowhere, how much, and the forecast without it.

    A crowd that overtakes all others counts as much as its adventurers bring on average.
    """
    player = int(s.current_player)
    turn = gather_one_by_one(s, market, hands, tokens)
    stands = balance(s, market, turn[DUNGEONS], player)
    now = lead_by(s, stands, False)
    best, choice = 0, NONE
    for dungeon in range(DUNGEONS):
        before, after = turn[dungeon], turn[dungeon + 1]
        gain = lead_with_crew(s, market, tokens, dungeon, 1, before, after, stands) - now
        crowd = to_overtake(s, player, dungeon)
        if 1 < crowd <= left:
            together = lead_with_crew(s, market, tokens, dungeon, crowd, before, after, stands) - now
            gain = max(gain, together // crowd)
        record_value(values, dungeon, gain)
        if gain > best:
            best, choice = gain, dungeon
    return choice, best, now


@kernel
def choose_place(s: Row, values: ChoiceValues) -> int:
    """A dungeon or a bonus zone, whichever brings most, or nothing."""
    player = int(s.current_player)
    market, hands, tokens = market_word(s), all_hands(s), all_tokens(s)
    left = min(int(s.placements_left), int(s.supply[player]))
    choice, entry, now = best_entry(s, market, hands, tokens, left, values)
    best = entry
    record_value(values, STOP_PLACING, 0)
    if choice == NONE:
        choice = STOP_PLACING
    for zone in range(ZONES):
        if s.legal & bit(VISIT + zone) == NOTHING:
            continue
        if zone == Zone.WILD:
            richer = with_hand(hands, player, hand_of(hands, player) + (1 << WILDS_AT))
            gain = scoring_forecast(s, richer, tokens, player, False) - now
        else:
            gain = bonus_gain(s, player, zone, entry)
        gain -= SUPPLY
        record_value(values, VISIT + zone, gain)
        if gain > best:
            best, choice = gain, VISIT + zone
    return choice


@kernel
def bonus_gain(s: Row, player: int, zone: int, entry: int) -> int:
    """What a bonus brings, if the best entry into a dungeon brings `entry`."""
    supply, left = int(s.supply[player]), int(s.placements_left)
    match zone:
        case Zone.DISEMBARK:
            arriving = min(DISEMBARKING, int(s.marseille[player]))
            return SUPPLY * arriving + entry * max(0, left - supply) * NEXT_ENTRY // PERCENT
        case Zone.REINFORCEMENT:
            more = min(supply - 1, left - 1 + REINFORCEMENTS) - (min(supply, left) - 1)
            return entry * more * NEXT_ENTRY // PERCENT
        case _:
            return BONUS


@kernel
def choose_reinforce(s: Row, values: ChoiceValues) -> int:
    """The dungeon where a reinforcement brings most, or nothing."""
    player = int(s.current_player)
    left = min(int(s.reinforcements_left), int(s.supply[player]))
    choice, _, _ = best_entry(s, market_word(s), all_hands(s), all_tokens(s), left, values)
    record_value(values, STOP_REINFORCING, 0)
    return STOP_REINFORCING if choice == NONE else choice


# --- Treasure chest


@kernel
def put_value(s: Row, market: int, hands: Hands, tokens: Tokens) -> int:
    """The forecast with these tokens; it counts most if a full dungeon starts the scoring round at once."""
    player = int(s.current_player)
    stands = balance(s, market, scoring_round(s, market, hands, tokens), player)
    if some_dungeon_holds(tokens, TREASURE_PLACES):
        return lead_by(s, stands, True)
    if some_dungeon_holds(tokens, TREASURE_PLACES - 1):
        lead = lead_by(s, stands, True)
        own_chest_next = s.lanes[Lane.CHEST, 1] == player + 1
        if own_chest_next == (lead > 0):
            return lead * LEAD_SOON // PERCENT
    return lead_by(s, stands, False) * LEAD_LATER // PERCENT


@kernel
def value_with_next(s: Row, market: int, hands: Hands, tokens: Tokens, taken: int) -> int:
    """The value of the best place for the second token, in another dungeon than the first."""
    best, choice = 0, NONE
    token = token_word(int(s.drawn_tokens[1]))
    for dungeon in range(DUNGEONS):
        if s.chest_dungeons[dungeon] or dungeon == taken:
            continue
        there = tokens_of(tokens, dungeon) << TOKEN_BITS | token
        found = put_value(s, market, hands, with_tokens(tokens, dungeon, there))
        if choice == NONE or found > best:
            best, choice = found, dungeon
    return best


@kernel
def choose_put_token(s: Row, values: ChoiceValues) -> int:
    """The dungeon where the token helps most, with the next token in mind if there may be a scoring round."""
    market, hands, tokens = market_word(s), all_hands(s), all_tokens(s)
    with_next = s.drawn_tokens[1] != NONE and some_dungeon_holds(tokens, TREASURE_PLACES - 1)
    best, choice = 0, NONE
    token = token_word(int(s.drawn_tokens[0]))
    for dungeon in range(DUNGEONS):
        if s.chest_dungeons[dungeon]:
            continue
        then = with_tokens(tokens, dungeon, tokens_of(tokens, dungeon) << TOKEN_BITS | token)
        found = value_with_next(s, market, hands, then, dungeon) if with_next else put_value(s, market, hands, then)
        record_value(values, dungeon, found)
        if choice == NONE or found > best:
            best, choice = found, dungeon
    return choice


# --- Scoring


@kernel
def choose_take(s: Row, values: ChoiceValues) -> int:
    """The token that leaves the best forecast for the rest of the scoring round, or none."""
    player = int(s.current_player)
    dungeon = int(s.gather_dungeon)
    hands, tokens = all_hands(s), all_tokens(s)
    hand, there = hand_of(hands, player), tokens_of(tokens, dungeon)
    s.gather_order[0] = NONE
    best, choice = scoring_forecast(s, hands, tokens, player, True), STOP_TAKING
    record_value(values, STOP_TAKING, best)
    s.gather_order[0] = player
    s.crew[player, dungeon] -= 1
    place = 0
    while there >> place:
        token = there >> place & TOKEN
        kind, value = token >> VALUE_BITS, token & VALUE
        number = kind * SIZES + value - 1
        left_over = int(s.left_over_bags[player, kind])
        paid = payment(hand, kind, value, left_over)
        if paid != NONE:
            s.left_over_bags[player, kind] = paid >> LEFT_OVER_AT
            hands_then = with_hand(hands, player, after_payment(hand, kind, paid))
            tokens_then = with_tokens(tokens, dungeon, without_token(there, place))
            s.gathered[player, number] += 1
            found = scoring_forecast(s, hands_then, tokens_then, player, True)
            s.gathered[player, number] -= 1
            s.left_over_bags[player, kind] = left_over
            record_value(values, number, found)
            if found > best:
                best, choice = found, number
        place += TOKEN_BITS
    s.crew[player, dungeon] += 1
    return choice


@kernel
def choose_pay(s: Row) -> int:
    """A card of the cheapest payment; others have no value."""
    kind, value = int(s.taking) // SIZES, int(s.taking) % SIZES + 1
    player = int(s.current_player)
    paid = payment(hand_word(s, player), kind, value, int(s.left_over_bags[player, kind]))
    for size in range(SIZES):
        if paid >> (size * CARD_BITS) & MOST_ALIKE:
            return kind * SIZES + size
    return WILD_BAG


# --- Rearrange and the action slide


@kernel
def best_marble_move(s: Row, player: int, values: ChoiceValues) -> tuple[int, int]:
    """The move of an own marble that passes most marbles of others, and what it brings."""
    best, choice = 0, KEEP_ORDER
    record_value(values, KEEP_ORDER, 0)
    for lane in range(LANES):
        for position in range(1, s.lane_size[lane]):
            if s.lanes[lane, position] != player + 1:
                continue
            gain = 0
            for by in range(1, min(position, LONGEST_MOVE) + 1):
                if s.lanes[lane, position - by] != player + 1:
                    gain += LANES * WAITING
                move = lane * MOVES_PER_LANE + int(FIRST_MOVE[position]) + by - 1
                record_value(values, move, gain)
                if gain > best:
                    best, choice = gain, move
    return choice, best


@kernel
def forecast_with_market(s: Row, hands: Hands, tokens: Tokens, player: int, space: int, by: int, now: int) -> int:
    """The forecast if the marker of this space moves up; it is as `now` if no kind gets another value."""
    before = market_word(s)
    move_marker(s, s.market[space], by)
    found = now if market_word(s) == before else scoring_forecast(s, hands, tokens, player, False)
    for place in range(space - by, space):
        s.market[place], s.market[place + 1] = s.market[place + 1], s.market[place]
    return found


@kernel
def choose_rearrange(s: Row, values: ChoiceValues) -> int:
    """A marble that gets its turn sooner, or a market marker, whichever brings more."""
    player = int(s.current_player)
    hands, tokens = all_hands(s), all_tokens(s)
    choice, best = best_marble_move(s, player, values)
    now = scoring_forecast(s, hands, tokens, player, False)
    for space in range(1, KINDS):
        for by in range(1, min(space, LONGEST_MOVE) + 1):
            gain = forecast_with_market(s, hands, tokens, player, space, by, now) - now
            move = MOVE_MARKER + int(s.market[space]) * LONGEST_MOVE + by - 1
            record_value(values, move, gain)
            if gain > best:
                best, choice = gain, move
    return choice


@kernel
def choose_return_marble(s: Row, values: ChoiceValues) -> int:
    """The lane with the best action that does not let the marble wait too long."""
    lane_values = LANE_VALUES_FOR_TWO if s.num_players == MIN_PLAYERS else LANE_VALUES
    best, choice = 0, NONE
    for lane in range(LANES):
        if s.legal & bit(lane) == NOTHING:
            continue
        wait = int(s.lane_size[lane]) * LANES + (lane - int(s.cylinder)) % LANES
        gain = lane_values[lane] - WAITING * wait
        record_value(values, lane, gain)
        if choice == NONE or gain > best:
            best, choice = gain, lane
    return choice


# --- all together


@kernel
def greedy_choice(s: Row, values: ChoiceValues) -> int:
    """What the greedy player does in this position, as the place in the decision's block.

    Looks at public fields only; changes it makes to the row to try them out are taken back.
    """
    match s.decision:
        case Decision.DEAL:
            return choose_deal(s, values)
        case Decision.DISCARD:
            return choose_discard(s, values)
        case Decision.PLACE:
            return choose_place(s, values)
        case Decision.REINFORCE:
            return choose_reinforce(s, values)
        case Decision.PUT_TOKEN:
            return choose_put_token(s, values)
        case Decision.TAKE:
            return choose_take(s, values)
        case Decision.PAY:
            return choose_pay(s)
        case Decision.REARRANGE:
            return choose_rearrange(s, values)
        case _:
            return choose_return_marble(s, values)


@entry_point
def choose_actions(states: States, out: Int64s, begin: int, end: int) -> None:
    """The greedy action of every row."""
    for k in range(begin, end):
        s = states[k]
        out[k] = FIRST[s.decision] + greedy_choice(s, None) if s.legal != NOTHING else NONE


ROWS_PER_THREAD = 512  # rows that are worth a thread


class GreedyAgent:
    """Plays by rules of thumb on what everybody can see; the same position always gets the same action."""

    name = "greedy"

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        positions = games.public_rows(rows)
        actions = np.empty(positions.size, np.int64)
        parallel_for(choose_actions, positions, actions, size=positions.size, threads=ALL_CORES, least=ROWS_PER_THREAD)
        return actions
