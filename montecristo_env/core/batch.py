"""The entry points: what Python calls. Each is a loop over rows of a batch and allocates nothing.

All of them take the rows to work on as an index array and a range of it, so that threads can share the work.
"""

from enum import IntEnum

import numpy as np

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
from montecristo_env.core.constants import MAX_PLAYERS, NONE, TOKENS_DRAWN, Decision
from montecristo_env.core.jit import WORD, copy_bytes, entry_point, kernel, spread_bits, zero_bytes
from montecristo_env.core.layout import (
    STATE,
    Bools,
    Float32Table,
    Float64s,
    Int8s,
    Int8Table,
    Int64s,
    Row,
    States,
    UInt64s,
)
from montecristo_env.core.legal import NOTHING, bags_of, legal_choices
from montecristo_env.core.observation import SCALE, SIZE, observe
from montecristo_env.core.rules import apply, enter_lane, play, plays_into_draw, start
from montecristo_env.core.scoring import write_rewards
from montecristo_env.core.setup import next_seed, set_up

_ONE = np.uint64(1)
_ROW_BYTES = STATE.itemsize
_LAST_WORD = COUNT - WORD  # the last place for a word of flags in a mask
NO_ACTION = NONE  # sampled for a game that is over
UNTIL_THEIR_TURN = 1_000_000  # more decisions than any game has between two of the same player
ILLEGAL_REWARD = -1.0  # for a learner who makes an illegal action
_SEAT_STREAM = 5  # 0 to 4 have other uses


class StepStatus(IntEnum):
    """Whether a game has ended with its last step, and how."""

    RUNNING = 0
    TERMINATED = 1  # §9.1
    TRUNCATED = 2  # at the round limit, §9.4


@entry_point
def start_games(states: States, rows: Int64s, seeds: UInt64s, begin: int, end: int) -> None:
    """New games from these seeds."""
    for k in range(begin, end):
        start(states[rows[k]], seeds[k])


@entry_point
def restart_games(states: States, rows: Int64s, only_finished: bool, begin: int, end: int) -> None:
    """New games, each from the seed that follows its last one."""
    for k in range(begin, end):
        s = states[rows[k]]
        if s.decision == Decision.OVER or not only_finished:
            start(s, next_seed(s.seed))


@entry_point
def are_increasing(rows: Int64s, size: int) -> bool:
    """Whether these are row numbers of a batch of this size, in order, each once."""
    last = -1
    for row in rows:
        if not last < row < size:
            return False
        last = row
    return True


@entry_point
def are_seated(states: States, rows: Int64s, seats: Int64s) -> bool:
    """Whether each of these seats, one per row, is one of its game's."""
    for k in range(rows.size):  # noqa: SIM110 (a generator would not compile)
        if not 0 <= seats[k] < states[rows[k]].num_players:
            return False
    return True


@entry_point
def first_illegal(states: States, rows: Int64s, actions: Int64s, begin: int, end: int) -> int:
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
    rows: Int64s,
    actions: Int64s,
    checked: bool,
    rewards: Float32Table,
    reward: int,
    step_status: Int8s,
    autoreset: bool,
    samples: Int64s,
    counts: Int8Table,
    shares: Float32Table,
    masks: Int8Table,
    begin: int,
    end: int,
) -> int:
    """One action in every game that is not over; or nothing at all, if one is illegal: its place.

    Then, in the same pass: how each game has ended, new games for those if `autoreset`, random actions to go on with if
    there is room for them in `samples`, which may be `actions`, and what the next decider sees (see `_show`).
    """
    if not checked:
        illegal = _first_illegal(states, rows, actions, begin, end)
        if illegal != NONE:
            return illegal
    for k in range(begin, end):
        s = states[rows[k]]
        for player in range(MAX_PLAYERS):
            rewards[rows[k], player] = 0.0
        step_status[rows[k]] = StepStatus.RUNNING
        if s.legal != NOTHING:
            play(s, actions[k] - FIRST[s.decision])
            if s.legal == NOTHING:
                write_rewards(s, reward, rewards[rows[k]])
                step_status[rows[k]] = StepStatus.TRUNCATED if s.truncated else StepStatus.TERMINATED
        if autoreset and s.legal == NOTHING:
            start(s, next_seed(s.seed))
        if samples.size > 0:
            samples[k] = _sample(s)
        _show(s, NONE, counts, shares, masks, k, begin)
    return NONE


@entry_point
def write_draws(states: States, rows: Int64s, actions: Int64s, copies: States, out: Bools, begin: int, end: int) -> int:
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
    rows: Int64s,
    steps: int,
    seats: Int64s,
    rewards: Float32Table,
    reward: int,
    begin: int,
    end: int,
) -> None:
    """Up to `steps` uniformly random decisions in every game, until it is the turn of a seat.

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
    rows: Int64s,
    actions: Int64s,
    seats: Int64s,
    steps: Int64s,
    illegal: Bools,
    rewards: Float32Table,
    reward: int,
    begin: int,
    end: int,
) -> None:
    """The decision of the one learner in every game, then random ones of the others until its next.

    An illegal action is not made but marked, and its game stands still from then on, as one that is over does.
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
        _play_random(s, UNTIL_THEIR_TURN, seats[row], rewards[row], reward)


@entry_point
def seat_learners(
    states: States,
    rows: Int64s,
    wanted: Int64s,
    seats: Int64s,
    others_random: bool,
    rewards: Float32Table,
    reward: int,
    begin: int,
    end: int,
) -> None:
    """The seat of the one learner in games that begin: the wanted one, or for NONE one that follows from the seed.

    If the others are random, they decide until it is the learner's turn. All arrays but `rows` are of the whole batch.
    """
    for k in range(begin, end):
        row = rows[k]
        s = states[row]
        seats[row] = wanted[row] if wanted[row] != NONE else below(stream(s.seed, _SEAT_STREAM), s.num_players)
        if others_random:
            _play_random(s, UNTIL_THEIR_TURN, seats[row], rewards[row], reward)


@entry_point
def write_outcomes(
    states: States, rows: Int64s, seats: Int64s, shares: Float64s, margins: Int64s, begin: int, end: int
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
def sample_actions(states: States, rows: Int64s, out: Int64s, begin: int, end: int) -> None:
    """A uniformly random legal action for every game."""
    for k in range(begin, end):
        out[k] = _sample(states[rows[k]])


@kernel
def _sample(s: Row) -> int:
    return int(FIRST[s.decision]) + random_choice(s) if s.legal != NOTHING else NO_ACTION


@entry_point
def write_observations(
    states: States,
    rows: Int64s,
    players: Int64s,
    counts: Int8Table,
    shares: Float32Table,
    masks: Int8Table,
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
def write_masks(states: States, rows: Int64s, out: Int8Table, begin: int, end: int) -> None:
    """1 for every legal action."""
    for k in range(begin, end):
        _write_mask(states[rows[k]], out[k])


@kernel
def _write_mask(s: Row, out: np.ndarray) -> None:
    first = int(FIRST[s.decision])
    at = min(first, _LAST_WORD)
    zero_bytes(out, 0, COUNT)
    spread_bits(out, at, s.legal << np.uint64((first - at) % WORD))  # every block fits in a word


@entry_point
def resample_games(states: States, rows: Int64s, keys: UInt64s, begin: int, end: int) -> None:
    """Redraws what is hidden."""
    for k in range(begin, end):
        resample_hidden(states[rows[k]], keys[k])


@entry_point
def draw_keys(states: States, rows: Int64s, out: UInt64s, begin: int, end: int) -> None:
    """Random bits for every game, which do not lead back to its seed: agents get them."""
    for k in range(begin, end):
        s = states[rows[k]]
        s.play_key = advance(s.play_key)
        out[k] = one_way(s.play_key, s.play_key)


@entry_point
def copy_public(states: States, rows: Int64s, out: States, begin: int, end: int) -> None:
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
def count_bags(states: States, row: int, player: int, kind: int) -> int:
    """All that a player could pay for a token of this kind, as the rules count it: for those who explain them."""
    return bags_of(states[row], player, kind)


@entry_point
def prepare_draw(states: States, row: int, cards: int) -> None:
    """Shuffles already now, if drawing this number of cards will need it: a replay can then arrange them (§4.3)."""
    s = states[row]
    if s.pile_size < cards:
        shuffle_discards_under_pile(s)


@entry_point
def prepare_chest(states: States, row: int) -> None:
    """Fills the bag already now, if opening the chest will need it (§6.2)."""
    s = states[row]
    if s.bag_size < TOKENS_DRAWN:
        fill_bag(s)
