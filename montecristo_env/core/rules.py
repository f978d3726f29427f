"""The rules, one function per phase (§3 to §7), and the loop that plays forced decisions (§11.4)."""

import numpy as np

from montecristo_env.core.actions import (
    KEEP_ORDER,
    MOVE_BY,
    MOVE_MARKER,
    MOVE_POSITION,
    MOVES_PER_LANE,
    STOP_PLACING,
    STOP_REINFORCING,
    STOP_TAKING,
    VISIT,
)
from montecristo_env.core.chance import draw_card, draw_hidden, draw_token, fill_bag, lowest_bit
from montecristo_env.core.constants import (
    BONUS_POINTS,
    DISEMBARKING,
    DUNGEONS,
    HAND_LIMIT,
    LANE_ROOM,
    LONGEST_MOVE,
    NONE,
    PLACEMENTS_ACTIVE,
    PLACEMENTS_OTHERS,
    REINFORCEMENTS,
    SIZES,
    TOKENS_DRAWN,
    TREASURE_PLACES,
    Decision,
    Lane,
    Zone,
)
from montecristo_env.core.jit import kernel
from montecristo_env.core.layout import Row
from montecristo_env.core.legal import NOTHING, ask, legal_choices
from montecristo_env.core.scoring import (
    begin_scoring_round,
    end_game,
    finish_chest,
    lose_card,
    pay_with_card,
    stop_taking,
    take,
    tokens_in,
)
from montecristo_env.core.setup import set_up

_ONE = np.uint64(1)


@kernel
def start(s: Row, seed: np.uint64) -> None:
    """A new game, up to its first real choice."""
    set_up(s, seed)
    enter_lane(s)
    play_forced(s)


@kernel
def play(s: Row, choice: int) -> None:
    """One decision of the current player, and everything up to the next real choice."""
    s.decisions += 1
    apply(s, choice)
    play_forced(s)


@kernel
def play_forced(s: Row) -> None:
    """A decision with exactly one legal action is not asked (§11.4)."""
    s.legal = legal_choices(s)
    while s.legal != NOTHING and s.legal & (s.legal - _ONE) == NOTHING:
        apply(s, lowest_bit(s.legal))
        s.legal = legal_choices(s)


@kernel
def plays_into_draw(s: Row, choice: int) -> bool:
    """Plays a decision and the forced ones behind it until something is turned up; False if nothing is.

    Cards of the supply (§4.1) and tokens of a chest (§6.1) are all that is ever turned up, both where the used marble
    has been returned. A wild bag is drawn unseen (§5.3), and shuffles show nothing: no player learns anything.
    """
    while True:
        returns_marble = s.decision == Decision.RETURN_MARBLE
        apply(s, choice)
        if returns_marble and (s.decision == Decision.DEAL or s.decision == Decision.PUT_TOKEN):
            return True
        legal = legal_choices(s)
        if legal == NOTHING or legal & (legal - _ONE) != NOTHING:
            return False
        choice = lowest_bit(legal)


@kernel
def apply(s: Row, choice: int) -> None:
    """Carries out one decision, forced or not, and what follows from it up to the next one."""
    match s.decision:
        case Decision.DEAL:
            deal_supply_card(s, choice)
        case Decision.DISCARD:
            discard_card(s, choice)
        case Decision.PLACE:
            place_adventurer(s, choice)
        case Decision.REINFORCE:
            place_reinforcement(s, choice)
        case Decision.PUT_TOKEN:
            put_token(s, choice)
        case Decision.TAKE:
            if choice == STOP_TAKING:
                stop_taking(s)
            else:
                take(s, choice)
        case Decision.PAY:
            pay_with_card(s, choice)
        case Decision.REARRANGE:
            rearrange(s, choice)
        case Decision.RETURN_MARBLE:
            return_marble(s, choice)


# --- The action slide (§3)


@kernel
def enter_lane(s: Row) -> None:
    """The owner of the bottom marble of the cylinder's lane becomes active, and their action begins (§3.1)."""
    if not reach_lane(s):
        return
    match s.cylinder:
        case Lane.SUPPLY:
            draw_supply_cards(s)
        case Lane.ADVENTURERS:
            s.current_player = s.active_player
            s.placements_left = PLACEMENTS_ACTIVE
            continue_placing(s)
        case Lane.CHEST:
            open_treasure_chest(s)
        case Lane.REARRANGE:
            ask(s, s.active_player, Decision.REARRANGE)


@kernel
def reach_lane(s: Row) -> bool:
    """Skips empty lanes (§3.5) and says who is active; False if the game is cut off instead."""
    while s.lane_size[s.cylinder] == 0:
        if not move_cylinder(s):
            return False
    s.active_player = s.lanes[s.cylinder, 0] - 1
    return True


@kernel
def return_marble(s: Row, lane: int) -> None:
    """The used marble goes on top of another lane, the cylinder to the next one (§3.2, §3.4)."""
    put_used_marble(s, lane)
    if move_cylinder(s):
        enter_lane(s)


@kernel
def put_used_marble(s: Row, lane: int) -> None:
    """Puts the used marble on top of another lane; the rest of its own slides down (§3.2)."""
    used = s.cylinder
    s.lanes[lane, s.lane_size[lane]] = s.lanes[used, 0]
    s.lane_size[lane] += 1
    for position in range(LANE_ROOM - 1):
        s.lanes[used, position] = s.lanes[used, position + 1]
    s.lanes[used, LANE_ROOM - 1] = 0
    s.lane_size[used] -= 1


@kernel
def move_cylinder(s: Row) -> bool:
    """To the next lane; False if the game is cut off instead, at the round limit (§3.4, §9.4)."""
    if s.cylinder != Lane.REARRANGE:
        s.cylinder += 1
        return True
    if s.round_number == s.round_limit:
        s.truncated = True
        end_game(s)
        return False
    s.round_number += 1
    s.cylinder = Lane.SUPPLY
    return True


# --- Supply (§4)


@kernel
def draw_supply_cards(s: Row) -> None:
    """As many cards as there are players, or what exists (§4.1, §4.4)."""
    while s.offer_size < s.num_players:
        card = draw_card(s)
        if card == NONE:
            break
        s.offer[card] += 1
        s.offer_size += 1
    s.recipient = s.active_player
    ask(s, s.active_player, Decision.DEAL)


@kernel
def deal_supply_card(s: Row, card: int) -> None:
    """The next player gets their card and brings their adventurers from Marseille at once (§4.1, §4.2)."""
    player = s.recipient
    s.offer[card] -= 1
    s.offer_size -= 1
    s.hands[player, card] += 1
    s.hand_size[player] += 1
    disembark(s, player, s.card_adventurers[card % SIZES])
    s.recipient = next_player(s, player) if s.offer_size > 0 else NONE
    if s.hand_size[player] > HAND_LIMIT and not s.discard_after_deal:  # §4.5
        ask(s, player, Decision.DISCARD)
    elif s.recipient == NONE:
        discard_over_limit(s, s.active_player)


@kernel
def continue_deal(s: Row) -> None:
    """After a discard, the next card is dealt, or whoever else has 8 cards discards (§4.5)."""
    if s.recipient != NONE:
        ask(s, s.active_player, Decision.DEAL)
    else:
        discard_over_limit(s, s.current_player)


@kernel
def disembark(s: Row, player: int, adventurers: int) -> None:
    """Adventurers go from Marseille to the personal supply, as far as Marseille has them (§4.2, §5.4)."""
    moved = min(int(adventurers), int(s.marseille[player]))
    s.marseille[player] -= moved
    s.supply[player] += moved


@kernel
def next_player(s: Row, player: int) -> int:
    """Clockwise (§1.1)."""
    following = int(player) + 1
    return following if following < s.num_players else 0


@kernel
def discard_over_limit(s: Row, player: int) -> None:
    """From this player on, clockwise round to the active player, whoever has 8 cards discards one (§4.5)."""
    while s.hand_size[player] <= HAND_LIMIT:
        player = next_player(s, player)
        if player == s.active_player:
            ask(s, player, Decision.RETURN_MARBLE)
            return
    ask(s, player, Decision.DISCARD)


@kernel
def discard_card(s: Row, card: int) -> None:
    """One card over the limit goes; then the deal or the placing goes on (§4.5, §5.3)."""
    lose_card(s, s.current_player, card)
    if s.cylinder == Lane.SUPPLY:
        continue_deal(s)
    else:
        continue_placing(s)


# --- Adventurers (§5)


@kernel
def continue_placing(s: Row) -> None:
    """Asks the placing player for their next adventurer, or else the others in turn (§5.1)."""
    player = int(s.current_player)
    while s.placements_left == 0 or s.supply[player] == 0:
        player = next_player(s, player)
        s.zone_used = False
        if player == s.active_player:
            s.placements_left = 0
            ask(s, player, Decision.RETURN_MARBLE)
            return
        s.placements_left = PLACEMENTS_OTHERS
    ask(s, player, Decision.PLACE)


@kernel
def place_adventurer(s: Row, choice: int) -> None:
    """An adventurer enters a dungeon or a bonus zone, or the player stops (§5.1, §5.2)."""
    if choice == STOP_PLACING:
        s.placements_left = 0
        continue_placing(s)
        return
    s.placements_left -= 1
    if choice < VISIT:
        enter_dungeon(s, s.current_player, choice)
        continue_placing(s)
    else:
        visit_zone(s, s.current_player, choice - VISIT)


@kernel
def enter_dungeon(s: Row, player: int, dungeon: int) -> None:
    """An adventurer joins the end of the queue (§5.2)."""
    s.supply[player] -= 1
    s.queue_length[dungeon] += 1
    s.places[player, dungeon, s.crew[player, dungeon]] = s.queue_length[dungeon]
    s.crew[player, dungeon] += 1


@kernel
def visit_zone(s: Row, player: int, zone: int) -> None:
    """A bonus takes effect at once (§5.2)."""
    s.supply[player] -= 1
    s.zones[player, zone] = 1
    s.zone_used = True
    match zone:
        case Zone.WILD:
            take_wild_bag(s, player)
            if s.hand_size[player] > HAND_LIMIT:  # §5.3
                ask(s, player, Decision.DISCARD)
                return
        case Zone.DISEMBARK:
            disembark(s, player, DISEMBARKING)
        case Zone.POINTS:
            s.score[player] += BONUS_POINTS
        case Zone.REINFORCEMENT:
            s.reinforcements_left = REINFORCEMENTS
    continue_reinforcing(s)


@kernel
def take_wild_bag(s: Row, player: int) -> None:
    """The top card of the pile, unseen by everyone (§5.3); at least two cards are never in hands (§4.4)."""
    s.wild_slots[player, s.wilds[player]] = draw_hidden(s)
    s.wilds[player] += 1
    s.hand_size[player] += 1


@kernel
def continue_reinforcing(s: Row) -> None:
    """Reinforcements come before the next placement; what is not used is lost (§5.6)."""
    if s.reinforcements_left > 0 and s.supply[s.current_player] > 0:
        ask(s, s.current_player, Decision.REINFORCE)
        return
    s.reinforcements_left = 0
    continue_placing(s)


@kernel
def place_reinforcement(s: Row, choice: int) -> None:
    """A reinforcement enters a dungeon, or the player stops (§5.6)."""
    if choice == STOP_REINFORCING:
        s.reinforcements_left = 0
    else:
        enter_dungeon(s, s.current_player, choice)
        s.reinforcements_left -= 1
    continue_reinforcing(s)


# --- Treasure chest (§6)


@kernel
def open_treasure_chest(s: Row) -> None:
    """Three tokens are drawn, all visible from the start (§6.1); a bag too short, or emptied, is refilled (§6.2)."""
    if s.bag_size < TOKENS_DRAWN:
        fill_bag(s)
    for i in range(TOKENS_DRAWN):
        s.drawn_tokens[i] = draw_token(s)
    finish_drawing_tokens(s)


@kernel
def finish_drawing_tokens(s: Row) -> None:
    """A bag that the draw has emptied is refilled before the tokens are placed (§6.2)."""
    if s.bag_size == 0 and not s.refill_when_short:
        fill_bag(s)
    ask(s, s.active_player, Decision.PUT_TOKEN)


@kernel
def put_token(s: Row, dungeon: int) -> None:
    """The next token in the order drawn goes into a dungeon; after the third, scoring is checked (§6.1, §6.3)."""
    s.dungeon_tokens[dungeon, s.drawn_tokens[0]] += 1
    s.chest_dungeons[dungeon] = 1
    for i in range(TOKENS_DRAWN - 1):
        s.drawn_tokens[i] = s.drawn_tokens[i + 1]
    s.drawn_tokens[TOKENS_DRAWN - 1] = NONE
    if s.drawn_tokens[0] != NONE:
        return
    full = False
    for place in range(DUNGEONS):
        s.chest_dungeons[place] = 0
        full |= tokens_in(s, place) == TREASURE_PLACES
    if full:
        begin_scoring_round(s)
    else:
        finish_chest(s, s.chest_ends_game)


# --- Rearrange (§7)


@kernel
def rearrange(s: Row, choice: int) -> None:
    """A marble down, a market marker up, or nothing (§7.1)."""
    if choice < MOVE_MARKER:
        move_marble(
            s, choice // MOVES_PER_LANE, MOVE_POSITION[choice % MOVES_PER_LANE], MOVE_BY[choice % MOVES_PER_LANE]
        )
    elif choice < KEEP_ORDER:
        marker = choice - MOVE_MARKER
        move_marker(s, marker // LONGEST_MOVE, marker % LONGEST_MOVE + 1)
    ask(s, s.active_player, Decision.RETURN_MARBLE)


@kernel
def move_marble(s: Row, lane: int, position: int, by: int) -> None:
    """A marble moves down, those it passes move up by one."""
    for place in range(position, position - by, -1):
        s.lanes[lane, place], s.lanes[lane, place - 1] = s.lanes[lane, place - 1], s.lanes[lane, place]


@kernel
def move_marker(s: Row, kind: int, by: int) -> None:
    """A treasure marker moves up, those it passes move down by one."""
    space = 0
    while s.market[space] != kind:
        space += 1
    for place in range(space, space - by, -1):
        s.market[place], s.market[place - 1] = s.market[place - 1], s.market[place]
