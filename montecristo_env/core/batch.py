"""The entry points: what Python calls. Each is a loop over rows of a batch and allocates nothing.

All of them take the rows to work on as an index array and a range of it, so that threads can share the work.
"""

import numpy as np

from montecristo_env.core import invariants
from montecristo_env.core._jit import compile_once, copy_bytes, entry_point, kernel
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.chance import (
    advance,
    fill_bag,
    mix,
    random_choice,
    resample_hidden,
    shuffle_discards_under_pile,
)
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS, NONE, TOKENS_DRAWN, Decision
from montecristo_env.core.layout import STATE, Row, States, aligned_zeros
from montecristo_env.core.legal import NOTHING, legal_choices
from montecristo_env.core.observation import SIZE, observe
from montecristo_env.core.rules import apply, enter_lane, play, start
from montecristo_env.core.scoring import WIN, write_rewards
from montecristo_env.core.setup import next_seed, set_up

_ONE = np.uint64(1)
_ROW_BYTES = STATE.itemsize
NO_ACTION = NONE  # sampled for a game that is over


@entry_point
def start_games(states: States, rows: np.ndarray, seeds: np.ndarray, begin: int, end: int) -> None:
    """New games from these seeds."""
    for k in range(begin, end):
        start(states[rows[k]], seeds[k])


@entry_point
def restart_games(states: States, rows: np.ndarray, only_finished: bool, begin: int, end: int) -> None:
    """New games, each from the seed that follows its last one."""
    for k in range(begin, end):
        s = states[rows[k]]
        if s.decision == Decision.OVER or not only_finished:
            start(s, next_seed(s.seed))


@entry_point
def are_increasing(rows: np.ndarray, size: int) -> bool:
    """Whether these are row numbers of a batch of this size, in order, each once."""
    last = -1
    for row in rows:
        if not last < row < size:
            return False
        last = row
    return True


@entry_point
def first_illegal(states: States, rows: np.ndarray, actions: np.ndarray, begin: int, end: int) -> int:
    """The first place whose action is not legal, or NONE. A game that is over takes any."""
    return _first_illegal(states, rows, actions, begin, end)


@kernel
def _first_illegal(states: States, rows: np.ndarray, actions: np.ndarray, begin: int, end: int) -> int:
    for k in range(begin, end):
        s = states[rows[k]]
        if s.legal == NOTHING:
            continue
        if actions[k] < FIRST[s.decision] or actions[k] >= FIRST[s.decision + 1]:
            return k
        if (s.legal >> np.uint64(actions[k] - FIRST[s.decision])) & _ONE == NOTHING:
            return k
    return NONE


@entry_point
def step_games(
    states: States, rows: np.ndarray, actions: np.ndarray, rewards: np.ndarray, reward: int, begin: int, end: int
) -> int:
    """One action in every game that is not over; or nothing at all, if one is illegal: its place."""
    illegal = _first_illegal(states, rows, actions, begin, end)
    if illegal != NONE:
        return illegal
    for k in range(begin, end):
        s = states[rows[k]]
        rewards[rows[k], :] = 0.0
        if s.legal != NOTHING:
            play(s, actions[k] - FIRST[s.decision])
            if s.legal == NOTHING:
                write_rewards(s, reward, rewards[rows[k]])
    return NONE


@entry_point
def play_random(
    states: States,
    rows: np.ndarray,
    steps: int,
    seats: np.ndarray,
    rewards: np.ndarray,
    reward: int,
    begin: int,
    end: int,
) -> None:
    """Up to so many uniformly random decisions in every game, until it is the turn of a seat.

    `seats` has one entry for all, or one per row; NONE stops nobody.
    """
    for k in range(begin, end):
        s = states[rows[k]]
        rewards[rows[k], :] = 0.0
        if s.legal == NOTHING:
            continue
        seat = seats[k if seats.size > 1 else 0]
        for _ in range(steps):
            if s.current_player == seat:
                break
            play(s, random_choice(s))
            if s.legal == NOTHING:
                write_rewards(s, reward, rewards[rows[k]])
                break


@entry_point
def sample_actions(states: States, rows: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """A uniformly random legal action for every game."""
    for k in range(begin, end):
        s = states[rows[k]]
        out[k] = FIRST[s.decision] + random_choice(s) if s.legal != NOTHING else NO_ACTION


@entry_point
def write_observations(
    states: States, rows: np.ndarray, players: np.ndarray, out: np.ndarray, masks: np.ndarray, begin: int, end: int
) -> None:
    """What a player of every game sees, and the masks unless `masks` is empty.

    `players` has one entry for all, or one per row; NONE is the decider.
    """
    for k in range(begin, end):
        s = states[rows[k]]
        player = players[k if players.size > 1 else 0]
        if player == NONE:
            player = max(int(s.current_player), 0)
        observe(s, player, out[k])
        if masks.size > 0:
            _write_mask(s, masks[k])


@entry_point
def write_masks(states: States, rows: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """1 for every legal action."""
    for k in range(begin, end):
        _write_mask(states[rows[k]], out[k])


@kernel
def _write_mask(s: Row, out: np.ndarray) -> None:
    out[:] = 0
    if s.decision != Decision.OVER:
        first = FIRST[s.decision]
        for choice in range(FIRST[s.decision + 1] - first):
            out[first + choice] = (s.legal >> np.uint64(choice)) & _ONE


@entry_point
def resample_games(states: States, rows: np.ndarray, keys: np.ndarray, begin: int, end: int) -> None:
    """Redraws what is hidden."""
    for k in range(begin, end):
        resample_hidden(states[rows[k]], keys[k])


@entry_point
def draw_keys(states: States, rows: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """Random bits for every game."""
    for k in range(begin, end):
        s = states[rows[k]]
        s.play_key = advance(s.play_key)
        out[k] = mix(s.play_key)


@entry_point
def copy_public(states: States, rows: np.ndarray, out: States, begin: int, end: int) -> None:
    """Copies games without what is hidden, which is zero in the copy."""
    for k in range(begin, end):
        s = out[k]
        copy_bytes(s.bytes, 0, states[rows[k]].bytes, 0, _ROW_BYTES)
        s.seed = s.cards_key = s.tokens_key = s.play_key = NOTHING
        s.slot_card[:] = 0
        s.bag_order[:] = 0
        s.scratch[:] = 0


@entry_point
def find_violations(states: States, rows: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """The failed checks of every game."""
    for k in range(begin, end):
        out[k] = invariants.violations(states[rows[k]])


# --- one move at a time, forced ones too: for game records


@entry_point
def lay_out(states: States, row: int, seed: np.uint64) -> None:
    """Setup only, before the first card is drawn."""
    set_up(states[row], seed)


@entry_point
def proceed(states: States, row: int, choice: int) -> None:
    """The start of the first lane (choice NONE) or one decision; the next decision is asked even if it is forced."""
    s = states[row]
    if choice == NONE:
        enter_lane(s)
    else:
        apply(s, choice)
    s.legal = legal_choices(s)


@entry_point
def prepare_draw(states: States, row: int, cards: int) -> None:
    """Shuffles already now, if drawing so many cards will need it: a replay can then arrange them (§4.3)."""
    s = states[row]
    if s.pile_size < cards:
        shuffle_discards_under_pile(s)


@entry_point
def prepare_chest(states: States, row: int) -> None:
    """Fills the bag already now, if opening the chest will need it (§6.2)."""
    s = states[row]
    if s.bag_size < TOKENS_DRAWN:
        fill_bag(s)


def compile_all() -> None:
    """Compiles, or loads, every entry point; the first use in a process calls this."""
    compile_once(_call_every_entry_point)


def _call_every_entry_point() -> None:
    states = np.zeros(1, STATE)
    states["num_players"] = MIN_PLAYERS
    states["deck"] = states["tokens"] = 2
    states["target"] = states["round_limit"] = 1
    rows = np.zeros(1, np.int64)
    seeds = np.zeros(1, np.uint64)
    actions = np.zeros(1, np.int64)
    rewards = np.zeros((1, MAX_PLAYERS), np.float32)
    are_increasing(rows, 1)
    start_games(states, rows, seeds, 0, 1)
    sample_actions(states, rows, actions, 0, 1)
    first_illegal(states, rows, actions, 0, 1)
    step_games(states, rows, actions, rewards, WIN, 0, 1)
    play_random(states, rows, 1, rows, rewards, WIN, 0, 1)
    masks = aligned_zeros((1, COUNT), np.int8)
    write_observations(states, rows, actions * 0, aligned_zeros((1, SIZE), np.int8), masks, 0, 1)
    write_masks(states, rows, masks, 0, 1)
    resample_games(states, rows, seeds, 0, 1)
    draw_keys(states, rows, seeds, 0, 1)
    copy_public(states, rows, states.copy(), 0, 1)
    find_violations(states, rows, actions, 0, 1)
    restart_games(states, rows, False, 0, 1)
    lay_out(states, 0, seeds[0])
    proceed(states, 0, NONE)
    prepare_draw(states, 0, 1)
    prepare_chest(states, 0)
