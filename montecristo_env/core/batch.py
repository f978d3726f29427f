"""The entry points: what Python calls. Each is a loop over rows of a batch and allocates nothing.

All of them take the rows to work on as an index array and a range of it, so that threads can share the work.
"""

from enum import IntEnum

import numpy as np

from montecristo_env.core._jit import WORD, compile_once, copy_bytes, entry_point, kernel, spread_bits
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.chance import (
    advance,
    below,
    fill_bag,
    one_way,
    random_choice,
    resample_hidden,
    shuffle_discards_under_pile,
    stream,
)
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS, NONE, TOKENS_DRAWN, Decision
from montecristo_env.core.layout import STATE, Row, States, aligned_zeros
from montecristo_env.core.legal import NOTHING, legal_choices
from montecristo_env.core.observation import SCALE, SIZE, observe
from montecristo_env.core.rules import apply, enter_lane, play, plays_into_draw, start
from montecristo_env.core.scoring import WIN, write_rewards
from montecristo_env.core.setup import next_seed, set_up

_ONE = np.uint64(1)
_ROW_BYTES = STATE.itemsize
NO_ACTION = NONE  # sampled for a game that is over
UNTIL_HIS_TURN = 1_000_000  # more decisions than any game has between two of the same player
ILLEGAL_REWARD = -1.0  # for a learner who makes an illegal action
_SEAT_STREAM = 5  # 0 to 4 have other uses


class Ending(IntEnum):
    """Whether a game has ended with its last step, and how."""

    NONE = 0
    BY_THE_RULES = 1  # §9.1
    CUT_OFF = 2  # at the round limit, §9.4


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
def are_seated(states: States, rows: np.ndarray, seats: np.ndarray) -> bool:
    """Whether each of these seats, one per row, is one of its game's."""
    for k in range(rows.size):  # noqa: SIM110 (a generator would not compile)
        if not 0 <= seats[k] < states[rows[k]].num_players:
            return False
    return True


@entry_point
def first_illegal(states: States, rows: np.ndarray, actions: np.ndarray, begin: int, end: int) -> int:
    """The first place whose action is not legal, or NONE. A game that is over takes any."""
    return _first_illegal(states, rows, actions, begin, end)


@kernel
def _first_illegal(states: States, rows: np.ndarray, actions: np.ndarray, begin: int, end: int) -> int:
    for k in range(begin, end):
        s = states[rows[k]]
        if s.legal != NOTHING and not _is_legal(s, actions[k]):
            return k
    return NONE


@kernel
def _is_legal(s: Row, action: int) -> bool:
    if action < FIRST[s.decision] or action >= FIRST[s.decision + 1]:
        return False
    return bool((s.legal >> np.uint64(action - FIRST[s.decision])) & _ONE)


@entry_point
def step_games(
    states: States,
    rows: np.ndarray,
    actions: np.ndarray,
    checked: bool,
    rewards: np.ndarray,
    reward: int,
    endings: np.ndarray,
    restart: bool,
    samples: np.ndarray,
    counts: np.ndarray,
    shares: np.ndarray,
    masks: np.ndarray,
    begin: int,
    end: int,
) -> int:
    """One action in every game that is not over; or nothing at all, if one is illegal: its place.

    Then, in the same pass: how each game has ended, new games for those if `restart`, random actions to go on with if
    there is room for them in `samples`, which may be `actions`, and what the next decider sees (see `_show`).
    """
    if not checked:
        illegal = _first_illegal(states, rows, actions, begin, end)
        if illegal != NONE:
            return illegal
    for k in range(begin, end):
        s = states[rows[k]]
        rewards[rows[k], :] = 0.0
        endings[rows[k]] = Ending.NONE
        if s.legal != NOTHING:
            play(s, actions[k] - FIRST[s.decision])
            if s.legal == NOTHING:
                write_rewards(s, reward, rewards[rows[k]])
                endings[rows[k]] = Ending.CUT_OFF if s.truncated else Ending.BY_THE_RULES
        if restart and s.legal == NOTHING:
            start(s, next_seed(s.seed))
        if samples.size > 0:
            samples[k] = _sample(s)
        _show(s, NONE, counts, shares, masks, k, begin)
    return NONE


@entry_point
def write_draws(
    states: States, rows: np.ndarray, actions: np.ndarray, copies: States, out: np.ndarray, begin: int, end: int
) -> int:
    """Whether each action would turn up cards or tokens before the next choice; or the place of an illegal one.

    Of `copies`, which has room for all of `rows`, only row `begin` is used.
    """
    illegal = _first_illegal(states, rows, actions, begin, end)
    if illegal != NONE:
        return illegal
    copy = copies[begin]
    for k in range(begin, end):
        s = states[rows[k]]
        out[k] = False
        if s.legal != NOTHING:
            copy_bytes(copy.bytes, 0, s.bytes, 0, _ROW_BYTES)
            out[k] = plays_into_draw(copy, actions[k] - FIRST[s.decision])
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
        _play_random(s, steps, seat, rewards[rows[k]], reward)


@kernel
def _play_random(s: Row, steps: int, seat: int, rewards: np.ndarray, reward: int) -> None:
    for _ in range(steps):
        if s.current_player == seat or s.legal == NOTHING:
            return
        play(s, random_choice(s))
        if s.legal == NOTHING:
            write_rewards(s, reward, rewards)


@entry_point
def step_learners(
    states: States,
    rows: np.ndarray,
    actions: np.ndarray,
    seats: np.ndarray,
    steps: np.ndarray,
    illegal: np.ndarray,
    rewards: np.ndarray,
    reward: int,
    begin: int,
    end: int,
) -> None:
    """The decision of the one learner in every game, then random ones of the others until his next.

    An illegal action is not made but marked, and his game stands still from then on, as one that is over does.
    """
    for k in range(begin, end):
        row = rows[k]
        s = states[row]
        rewards[row, :] = 0.0
        if illegal[row] or s.legal == NOTHING:
            continue
        steps[row] += 1
        if not _is_legal(s, actions[k]):
            illegal[row] = True
            rewards[row, seats[row]] = ILLEGAL_REWARD
            continue
        play(s, actions[k] - FIRST[s.decision])
        if s.legal == NOTHING:
            write_rewards(s, reward, rewards[row])
        _play_random(s, UNTIL_HIS_TURN, seats[row], rewards[row], reward)


@entry_point
def seat_learners(
    states: States,
    rows: np.ndarray,
    wanted: np.ndarray,
    seats: np.ndarray,
    others_random: bool,
    rewards: np.ndarray,
    reward: int,
    begin: int,
    end: int,
) -> None:
    """The seat of the one learner in games that begin: the wanted one, or for NONE one that follows from the seed.

    If the others are random, they decide until it is his turn. All arrays but `rows` are of the whole batch.
    """
    for k in range(begin, end):
        row = rows[k]
        s = states[row]
        seats[row] = wanted[row] if wanted[row] != NONE else below(stream(s.seed, _SEAT_STREAM), s.num_players)
        if others_random:
            _play_random(s, UNTIL_HIS_TURN, seats[row], rewards[row], reward)


@entry_point
def write_outcomes(
    states: States, rows: np.ndarray, seats: np.ndarray, shares: np.ndarray, margins: np.ndarray, begin: int, end: int
) -> None:
    """How games went for one seat of each: its share of the win, and its points ahead of the best other."""
    for k in range(begin, end):
        s = states[rows[k]]
        winners, best = 0, -1
        for player in range(s.num_players):
            winners += s.winners[player]
            if player != seats[k]:
                best = max(best, int(s.score[player]))
        shares[k] = s.winners[seats[k]] / max(winners, 1)
        margins[k] = int(s.score[seats[k]]) - best


@entry_point
def sample_actions(states: States, rows: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """A uniformly random legal action for every game."""
    for k in range(begin, end):
        out[k] = _sample(states[rows[k]])


@kernel
def _sample(s: Row) -> int:
    return int(FIRST[s.decision]) + random_choice(s) if s.legal != NOTHING else NO_ACTION


@entry_point
def write_observations(
    states: States,
    rows: np.ndarray,
    players: np.ndarray,
    counts: np.ndarray,
    shares: np.ndarray,
    masks: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """What a player of every game sees (see `_show`); `players` has one entry for all, or one per row."""
    for k in range(begin, end):
        player = players[k if players.size > 1 else 0]
        _show(states[rows[k]], player, counts, shares, masks, k, begin)


@kernel
def _show(s: Row, player: int, counts: np.ndarray, shares: np.ndarray, masks: np.ndarray, k: int, scratch: int) -> None:
    """Writes what a player sees (NONE: the decider) and the mask into row `k` of those arrays that are not empty.

    Observations are counts; or scaled ones, unless `shares` is empty, and then row `scratch` of `counts` is only
    room to work.
    """
    if player == NONE:
        player = max(int(s.current_player), 0)
    if shares.size > 0:
        observe(s, player, counts[scratch])
        for i in range(SIZE):
            shares[k, i] = np.float32(counts[scratch, i]) * SCALE[i]
    elif counts.size > 0:
        observe(s, player, counts[k])
    if masks.size > 0:
        _write_mask(s, masks[k])


@entry_point
def write_masks(states: States, rows: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """1 for every legal action."""
    for k in range(begin, end):
        _write_mask(states[rows[k]], out[k])


@kernel
def _write_mask(s: Row, out: np.ndarray) -> None:
    first = FIRST[s.decision]
    spread_bits(out, 0, _shifted(s.legal, first))
    spread_bits(out, WORD, _shifted(s.legal, first - WORD))
    spread_bits(out, COUNT - WORD, _shifted(s.legal, first - (COUNT - WORD)))  # these overlap, and agree


@kernel
def _shifted(bits: np.uint64, by: int) -> np.uint64:
    """Upwards, or downwards where negative."""
    if by <= -WORD or by >= WORD:
        return NOTHING
    return bits << np.uint64(by) if by >= 0 else bits >> np.uint64(-by)


@entry_point
def resample_games(states: States, rows: np.ndarray, keys: np.ndarray, begin: int, end: int) -> None:
    """Redraws what is hidden."""
    for k in range(begin, end):
        resample_hidden(states[rows[k]], keys[k])


@entry_point
def draw_keys(states: States, rows: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """Random bits for every game, which do not lead back to its seed: agents get them."""
    for k in range(begin, end):
        s = states[rows[k]]
        s.play_key = advance(s.play_key)
        out[k] = one_way(s.play_key, s.play_key)


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
    write_draws(states, rows, actions, states.copy(), np.zeros(1, np.bool_), 0, 1)
    counts, masks = aligned_zeros((1, SIZE), np.int8), aligned_zeros((1, COUNT), np.int8)
    shares = aligned_zeros((1, SIZE), np.float32)
    step_games(
        states, rows, actions, False, rewards, WIN, masks[0, :1].copy(), False, actions, counts, shares, masks, 0, 1
    )
    play_random(states, rows, 1, rows, rewards, WIN, 0, 1)
    write_observations(states, rows, actions * 0, counts, shares, masks, 0, 1)
    are_seated(states, rows, rows)
    step_learners(states, rows, actions, rows.copy(), rows.copy(), masks[:, 0] > 1, rewards, WIN, 0, 1)
    seat_learners(states, rows, rows, rows.copy(), True, rewards, WIN, 0, 1)
    write_outcomes(states, rows, rows, np.zeros(1), rows.copy(), 0, 1)
    write_masks(states, rows, masks, 0, 1)
    resample_games(states, rows, seeds, 0, 1)
    draw_keys(states, rows, seeds, 0, 1)
    copy_public(states, rows, states.copy(), 0, 1)
    restart_games(states, rows, False, 0, 1)
    lay_out(states, 0, seeds[0])
    proceed(states, 0, NONE)
    prepare_draw(states, 0, 1)
    prepare_chest(states, 0)
