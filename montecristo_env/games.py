"""A batch of games with a NumPy face: the one object that every interface stands on."""

import ctypes
import struct
from collections.abc import Callable
from functools import cached_property
from html import escape
from typing import Any, Protocol, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from montecristo_env import render
from montecristo_env.core import actions, batch, invariants, observation
from montecristo_env.core.actions import COUNT
from montecristo_env.core.constants import MAX_PLAYERS, MIN_PLAYERS, NONE, Decision
from montecristo_env.core.jit import INTERPRETED, EntryPoint, address
from montecristo_env.core.layout import STATE, States, aligned_empty, aligned_zeros
from montecristo_env.core.observation import SIZE
from montecristo_env.core.public import public_state
from montecristo_env.core.scoring import REWARDS
from montecristo_env.errors import IllegalAction, InvalidArgument, InvalidPlayerCount
from montecristo_env.ruleset import Ruleset, RulesetLike
from montecristo_env.util.threads import ALL_CORES, parallel_for

Rows: TypeAlias = int | ArrayLike | None

# Rows that are worth a thread, which must be woken: of most work, and of work that takes little time.
ROWS_PER_THREAD = 512
ROWS_PER_THREAD_LIGHT = 8192
# The most games, and decisions in each, of one compiled call of random play. After that, Ctrl-C is heard.
ROWS_PER_CALL, STEPS_PER_CALL = 2**13, 2**8
_LIGHT = (batch.first_illegal, batch.write_masks, batch.restart_games)
ROWS_SHOWN = 8  # in a notebook
MOST_GAMES = 2**40  # a petabyte; NumPy would not even try more
SEED_BITS = 53  # seeds we make fit in a float, so that every JSON reader keeps them


_NO_CODES = np.zeros(0, np.int64)
_NO_COUNTS = np.zeros((0, 0), np.int8)
_NO_SHARES = np.zeros((0, 0), np.float32)
_STEP = cast(Any, batch.step_games)
# Where its arguments begin.
_ACTIONS, _REWARD, _AUTORESET, _SAMPLES, _COUNTS, _SHARES, _MASKS = (
    0 if INTERPRETED else _STEP.places[name]
    for name in ("actions", "reward", "autoreset", "samples", "counts", "shares", "masks")
)
_OWN_ACTION = -1  # behind them


class StepListener(Protocol):
    """Is told of every step of one game of a batch, before it is played."""

    def before_step(self, action: int) -> None:
        """The game is about to make this legal action."""


class GameBatch:
    """N games of The Secret of Monte Cristo, stepped together in compiled code.

    Args:
        num_games: how many games.
        num_players: 2, 3 or 4, or an array of N of these.
        seed: an int, from which every game gets a seed of its own; an array of N seeds, taken as they are (see
            `seeds`); None for an unpredictable one. Same seed, same game, on every machine.
        ruleset: the settings, default `Ruleset()`; also as a mapping, or as a text such as "refill=short,target=30".
        reward: "win", "rank" or "margin", all paid at the end and zero-sum. "win": (n * share - 1) / (n - 1), where
            w winners have a share of 1/w each; "rank": linear from +1 for the first to -1 for the last, the mean for
            those who tie; "margin": (own score - mean of the others' scores) / target.
        threads: how many threads may share the work; default: as many as there are cores. No result depends on it.

    Decisions with a single legal action are made by the engine (§11.4): `current_player` always has a choice. A game
    that is over stays as it is, whatever action it gets, until `reset`. One thread at a time may use a batch; several
    batches may be used by several threads at once.

    ```python
    games = GameBatch(1024, num_players=3, seed=0)
    mask = games.action_mask()
    while not games.over.all():
        games.step(games.sample_actions())
    games.scores, games.winners
    ```
    """

    def __init__(
        self,
        num_games: int = 1,
        num_players: int | ArrayLike = 2,
        seed: int | ArrayLike | None = None,
        ruleset: RulesetLike = None,
        reward: str = "win",
        threads: int | None = None,
    ) -> None:
        if not isinstance(num_games, int | np.integer) or not 1 <= num_games <= MOST_GAMES:
            raise InvalidArgument(f"num_games must be a whole number from 1 to {MOST_GAMES}, but is {num_games!r}")
        players = _player_counts(num_players, int(num_games))
        if reward not in REWARDS:
            raise InvalidArgument(f"reward must be one of {', '.join(REWARDS)}, but is {reward!r}")
        if threads is not None and (not isinstance(threads, int | np.integer) or threads < 1):
            raise InvalidArgument(f"threads must be at least 1, a whole number, but is {threads!r}")
        self.ruleset = Ruleset.of(ruleset)
        self.reward = reward
        self.threads = int(threads or ALL_CORES)
        try:
            states = aligned_zeros(int(num_games), STATE)
        except MemoryError:
            needed = f"{num_games * STATE.itemsize / 2**30:,.1f} GiB"
            raise MemoryError(f"{num_games} games need {needed} of memory, which is more than there is") from None
        seeds = _seeds(seed, int(num_games))  # after that: to draw many takes long
        states["num_players"] = players
        states["deck"] = np.ravel(self.ruleset.deck)
        states["tokens"] = np.ravel(self.ruleset.tokens)
        states["card_adventurers"] = self.ruleset.card_adventurers
        states["market_values"] = self.ruleset.market
        states["target"] = self.ruleset.target
        states["round_limit"] = self.ruleset.round_limit
        states["discard_after_deal"] = self.ruleset.discard == "after_deal"
        states["refill_when_short"] = self.ruleset.refill == "short"
        states["reshuffle_when_empty"] = self.ruleset.reshuffle == "empty"
        states["left_over_bags_last_a_round"] = self.ruleset.left_over_bags == "round"
        states["chest_ends_game"] = self.ruleset.game_end == "chest"
        self._adopt(states)
        self.run(batch.start_games, self._all, seeds)

    def _adopt(self, states: States) -> None:
        """Takes over these games; everything that is not in a row is made here."""
        self.states = states
        self.rewards: NDArray[np.float32] = aligned_zeros((states.size, MAX_PLAYERS), np.float32)
        self.step_status: NDArray[np.int8] = np.zeros(states.size, np.int8)
        self._all, self._size = np.arange(states.size), states.size
        self._alone = INTERPRETED or self.threads < 2 or states.size < 2 * ROWS_PER_THREAD
        self.reward_kind = REWARDS.index(self.reward)
        self._fewest_players = int(states["num_players"].min(initial=MAX_PLAYERS))
        self._listeners: dict[int, list[StepListener]] = {}
        self._step_wanted: tuple[bool | int, ...] | None = None  # what the arguments of a step are laid out for

    # --- what there is

    def __len__(self) -> int:
        return int(self.states.size)

    def __repr__(self) -> str:
        counts = "/".join(map(str, np.unique(self.num_players)))
        return f"<GameBatch of {len(self)} games, {counts} players, {int(self.over.sum())} over>"

    def _repr_html_(self) -> str:
        """In a notebook: the board of a single game, or a table of the first games."""
        if len(self) == 1:
            return render.html(self)
        lines = ["<tr><th>game<th>round<th>scores<th>to decide"]
        for game in range(min(len(self), ROWS_SHOWN)):
            state = self.public_state(game)
            seat = state["current_player"]
            who = "nobody, it is over" if seat == NONE else f"player {seat}: {state['phase'].replace('_', ' ')}"
            lines.append(f"<tr><td>{game}<td>{state['round']}<td>{', '.join(map(str, state['scores']))}<td>{who}")
        lines += ["<tr><td colspan=4>…"] if len(self) > ROWS_SHOWN else []
        return f"<table><caption>{escape(repr(self))}</caption>{''.join(lines)}</table>"

    @cached_property
    def num_players(self) -> NDArray[np.int8]:
        """Players of each game, (N,)."""
        return self.states["num_players"]

    @cached_property
    def current_player(self) -> NDArray[np.int8]:
        """Who must decide in each game, -1 where it is over, (N,)."""
        return self.states["current_player"]

    @cached_property
    def terminated(self) -> NDArray[np.bool_]:
        """Which games are over by §9.1, (N,)."""
        return self.states["terminated"]

    @cached_property
    def truncated(self) -> NDArray[np.bool_]:
        """Which games were cut off at the round limit (§9.4), (N,)."""
        return self.states["truncated"]

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which games are over either way, (N,)."""
        over: NDArray[np.bool_] = self.states["decision"] == Decision.OVER
        return over

    @cached_property
    def scores(self) -> NDArray[np.int16]:
        """Points of each player, (N, 4)."""
        return self.states["score"]

    @cached_property
    def winners(self) -> NDArray[np.bool_]:
        """Which players have won, (N, 4); nobody while a game lives, several where the win is shared."""
        return self.states["winners"].view(np.bool_)

    @cached_property
    def seeds(self) -> NDArray[np.uint64]:
        """The seed of each game's deal: `GameBatch(N, num_players, seed=seeds)` deals the same, (N,)."""
        return self.states["seed"]

    def observe(
        self,
        out: NDArray[Any] | None = None,
        player: int | ArrayLike | None = None,
        rows: Rows = None,
        masks: NDArray[np.int8] | None = None,
    ) -> NDArray[Any]:
        """What the decider of each game sees, or another seat; `montecristo_env.observation` names the fields.

        Args:
            out: where to write, (N, observation.SIZE): counts if it is int8, scaled if it is float32, which is
                counts * `observation.SCALE`; a new array of counts if None.
            player: a seat, or one per game; the decider if None (seat 0 where the game is over).
            rows: only these games.
            masks: where to write the action masks too, in the same pass, (N, actions.COUNT) int8.
        """
        index = self._index(rows)
        out = _out(None, (index.size, observation.SIZE), _INT8) if out is None else out
        outputs, seats = self._outputs(index, out, masks), self._observers(player, index)
        if rows is not None or index.size > 1:
            _check_apart((out, masks), (index, seats))
        self.run(batch.write_observations, index, seats, *outputs)
        return out

    @cached_property
    def _scratch(self) -> NDArray[np.int8]:
        """Room for observations before they are scaled; of each thread's part only the first row is used."""
        return aligned_empty((len(self), observation.SIZE), _INT8)

    def action_mask(self, out: NDArray[np.int8] | None = None, rows: Rows = None) -> NDArray[np.int8]:
        """1 for every legal action of the decider, (N, actions.COUNT) int8; all 0 where the game is over."""
        index = self._index(rows)
        out = _out(out, (index.size, actions.COUNT), _INT8)
        if rows is not None:
            _check_apart((out,), (index,))
        self.run(batch.write_masks, index, out)
        return out

    def legal_actions(self, game: int) -> list[actions.Action]:
        """The legal actions of one game, by name."""
        row = self.states[self._one(game)]
        if row["decision"] == Decision.OVER:
            return []
        first, legal = int(actions.FIRST[row["decision"]]), int(row["legal"])
        return [actions.decode(first + choice) for choice in range(legal.bit_length()) if legal >> choice & 1]

    def public_state(self, game: int = 0) -> dict[str, Any]:
        """Everything that all players know of one game, as plain Python values."""
        return public_state(self.states[self._one(game)])

    # --- play

    def step(
        self,
        actions: ArrayLike,
        rows: Rows = None,
        *,
        autoreset: bool = False,
        observations: NDArray[Any] | None = None,
        masks: NDArray[np.int8] | None = None,
        samples: NDArray[np.int64] | None = None,
    ) -> None:
        """One action in every game, in place; where a game is over, its action is ignored.

        An illegal action raises `IllegalAction` and changes nothing in any game. `rewards` and `step_status` are of
        this step. The options do in the same pass, which is faster, what `reset`, `observe` and `sample_actions` would
        do after it. What is written must not share memory with what is read, nor with each other.

        Args:
            actions: an action code per game.
            rows: only in these games.
            autoreset: start new games at once where one is over.
            observations: where to write what the next deciders see, as `observe` does.
            masks: where to write their action masks.
            samples: where to write a random legal action for each of them; this alone may be `actions` itself.
        """
        if rows is None and self._alone and not self._listeners and not INTERPRETED:
            self._step_all(actions, autoreset, observations, masks, samples)
            return
        index = self._index(rows)
        codes = action_codes(actions, index.size)
        seen = self._outputs(index, observations, masks)
        samples = None if samples is None else _out(samples, (index.size,), _INT64)
        if not (observations is None and masks is None and samples is None):
            in_place = samples is not None and (samples is codes or samples.ctypes.data == codes.ctypes.data)
            _check_apart((observations, masks, samples), (None if in_place else codes, None if rows is None else index))
        samples = _NO_CODES if samples is None else samples
        outputs = self.rewards, self.reward_kind, self.step_status, autoreset, samples, *seen
        if self._listeners:
            illegal = batch.first_illegal(self.states, index, codes, 0, index.size)
            if illegal == NONE:
                self._notify_listeners(index, codes)
                over = self.over
                batch.step_games(self.states, index, codes, True, *outputs, 0, index.size)
                if autoreset:
                    self._remove_listeners(index[over[index] | (self.step_status[index] > 0)])
        elif self._alone:
            illegal = batch.step_games(self.states, index, codes, False, *outputs, 0, index.size)
        else:  # no game may go on if an action in another one is illegal
            places = self.run(batch.first_illegal, index, codes)
            illegal = next((place for place in places if place != NONE), NONE)
            if illegal == NONE:
                self.run(batch.step_games, index, codes, True, *outputs)
        if illegal != NONE:
            raise IllegalAction(self._complaint(int(index[illegal]), int(codes[illegal])))

    def draws(self, actions: ArrayLike, rows: Rows = None) -> NDArray[np.bool_]:
        """Whether each action would turn up something hidden, cards or tokens, before the next choice, (N,).

        These are the chance nodes: where the answer is no, what all players see next follows from what they see now;
        where it is yes, it depends on what `resample_hidden` redraws, unless only one thing can come. An action can
        draw late, after decisions that the engine makes by itself. A wild bag is drawn unseen, so it does not count.

        An illegal action raises `IllegalAction`; where a game is over, nothing is drawn.

        Args:
            actions: an action code per game.
            rows: only in these games.
        """
        index = self._index(rows)
        codes = action_codes(actions, index.size)
        out = np.empty(index.size, np.bool_)
        illegal = [place for place in self.run(batch.write_draws, index, codes, self._copies, out) if place != NONE]
        if illegal:
            raise IllegalAction(self._complaint(int(index[illegal[0]]), int(codes[illegal[0]])))
        return out

    @cached_property
    def _copies(self) -> States:
        """Room to try actions; of each thread's part only the first row is used."""
        return aligned_empty(len(self), STATE)

    def sample_actions(self, out: NDArray[np.int64] | None = None, rows: Rows = None) -> NDArray[np.int64]:
        """A uniformly random legal action for every game, -1 where it is over; each game has its own random stream."""
        index = self._index(rows)
        out = _out(out, (index.size,), _INT64)
        if rows is not None:
            _check_apart((out,), (index,))
        self.run(batch.sample_actions, index, out)
        return out

    def play_random(self, steps: int, rows: Rows = None, until: int | ArrayLike | None = None) -> None:
        """Up to `steps` random decisions in every game, all in compiled code; the same as sampling and stepping.

        `rewards` are those of the games that ended during the call. Ctrl-C may leave some games further than others.

        Args:
            steps: decisions per game at most.
            rows: only in these games.
            until: a seat, or one per game: the game stops when it is that player's turn.
        """
        if not isinstance(steps, int | np.integer) or not 0 <= steps < 2**63:
            raise InvalidArgument(f"steps must be a whole number from 0, but is {steps!r}")
        index = self._index(rows)
        seats = self._observers(until, index)
        if not self._listeners:
            for begin in range(0, index.size, ROWS_PER_CALL):
                rows_of_call = slice(begin, begin + ROWS_PER_CALL)
                self._play_random(steps, index[rows_of_call], seats if seats.size == 1 else seats[rows_of_call])
            return
        self.rewards[index] = 0
        for _ in range(steps):  # one by one, for the listeners
            index, seats = self._waiting(index, seats)
            if index.size == 0:
                return
            self.step(self.sample_actions(rows=index), index)

    def reset(self, rows: Rows = None, seed: int | ArrayLike | None = None) -> None:
        """Starts new games; `rewards` stay those of the last step.

        Args:
            rows: which ones. If None: those that are over, or, with a seed, all.
            seed: as for the constructor, for the chosen rows; if None, each game takes a seed that follows its last.
        """
        only_finished = rows is None and seed is None
        index = self._index(rows)
        seeds = None if seed is None else _seeds(seed, index.size)
        if self._listeners:
            self._remove_listeners(np.flatnonzero(self.over) if only_finished else index)
        if seeds is None:
            self.run(batch.restart_games, index, only_finished)
        else:
            self.run(batch.start_games, index, seeds)

    # --- clones

    def copy(self) -> Self:
        """An independent clone of all games."""
        return self[:]

    def __getitem__(self, rows: int | slice | ArrayLike) -> Self:
        """An independent clone of some games, in the order given; repeats are fine."""
        index = self._all[rows] if isinstance(rows, slice) else self._index(rows, increasing=False)
        clone = object.__new__(type(self))
        clone.ruleset, clone.reward, clone.threads = self.ruleset, self.reward, self.threads
        states = aligned_zeros(index.size, STATE)
        np.take(self.states, index, out=states)
        clone._adopt(states)
        clone.rewards[:] = self.rewards[index]
        clone.step_status[:] = self.step_status[index]
        return clone

    def resample_hidden(self, rng: np.random.Generator | NDArray[np.uint64]) -> Self:
        """A clone whose hidden parts (§10.1) are redrawn, consistent with everything public.

        Redrawn are the order of the pile, the cards behind wild bags, the order of the bag and all chance to come.

        Args:
            rng: where chance comes from, or one key per game, from which all its chance follows.
        """
        if isinstance(rng, np.random.Generator):
            rng = rng.integers(2**SEED_BITS, size=len(self), dtype=np.uint64)
        keys = _seeds(rng, len(self))
        clone = self.copy()
        clone.run(batch.resample_games, clone._all, keys)
        return clone

    def public_rows(self, rows: Rows = None) -> States:
        """Copies of the rows of some games, with zeros for what is hidden."""
        index = self._index(rows)
        copies: States = aligned_empty(index.size, STATE)
        self.run(batch.copy_public, index, copies)
        return copies

    def random_keys(self, rows: Rows = None) -> NDArray[np.uint64]:
        """Random bits for every game, from the stream of random play that `sample_actions` uses too, (N,)."""
        index = self._index(rows)
        keys = np.empty(index.size, np.uint64)
        self.run(batch.draw_keys, index, keys)
        return keys

    def __getstate__(self) -> dict[str, Any]:
        return {
            "ruleset": self.ruleset,
            "reward": self.reward,
            "threads": self.threads,
            "states": self.states,
            "rewards": self.rewards,
            "step_status": self.step_status,
        }

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.ruleset, self.reward, self.threads = saved["ruleset"], saved["reward"], saved["threads"]
        states = aligned_zeros(saved["states"].size, STATE)
        states[:] = saved["states"]
        self._adopt(states)
        self.rewards[:] = saved["rewards"]
        self.step_status[:] = saved["step_status"]

    # --- listeners and checks

    def add_listener(self, game: int, listener: StepListener) -> None:
        """Tells a listener of every step of a game until its next reset; `GameRecord.record` adds one."""
        self._listeners.setdefault(self._one(game), []).append(listener)

    @property
    def has_listeners(self) -> bool:
        """Whether a game has listeners, so that its decisions must be made one by one."""
        return bool(self._listeners)

    def violations(self) -> dict[int, list[str]]:
        """The games whose state is not sane, with the checks that fail; empty unless there is a bug."""
        failed = np.zeros(len(self), np.int64)
        self.run(invariants.find_violations, self._all, failed)
        return {int(game): invariants.describe(int(failed[game])) for game in np.flatnonzero(failed)}

    def run(self, function: Callable[..., Any], index: NDArray[np.int64], *args: Any) -> list[Any]:
        """Calls an entry point for these rows, shared among threads where that pays; returns what each returned."""
        if self._alone:
            if index is self._all and isinstance(function, EntryPoint):
                words = function.arguments(*args, 0, index.size, head=self._head)
                return [function.result(function.native(words))]
            return [function(self.states, index, *args, 0, index.size)]
        least = ROWS_PER_THREAD_LIGHT if function in _LIGHT else ROWS_PER_THREAD
        return parallel_for(function, self.states, index, *args, size=index.size, threads=self.threads, least=least)

    # --- inside

    @cached_property
    def _head(self) -> bytes:
        """The first two arguments of many entry points, games and rows, for all games."""
        return struct.pack("=4q", address(self.states), len(self), address(self._all), len(self))

    @cached_property
    def _step_words(self) -> Any:
        """The arguments of `batch.step_games` for all games, laid out but for the arrays of the caller."""
        own = self.rewards, self.reward_kind, self.step_status, False
        of_caller = self._all, _NO_COUNTS, _NO_SHARES, _NO_COUNTS
        words = _STEP.arguments(self._all, False, *own, *of_caller, 0, len(self), head=self._head)
        laid_out = (ctypes.c_int64 * (len(words) // 8 + 1)).from_buffer_copy(words + bytes(8))
        laid_out[_ACTIONS] = ctypes.addressof(laid_out) + len(words)  # of a batch of one: its action, the last word
        laid_out[_COUNTS + 2] = laid_out[_SHARES + 2] = observation.SIZE
        laid_out[_MASKS + 2] = COUNT
        return laid_out

    @cached_property
    def _step_address(self) -> int:
        """Where they are: a call takes this sooner than the words themselves."""
        return ctypes.addressof(self._step_words)

    def _step_all(
        self,
        actions: ArrayLike,
        autoreset: bool,
        observations: NDArray[Any] | None,
        masks: NDArray[np.int8] | None,
        samples: NDArray[np.int64] | None,
    ) -> None:
        """`step` of all games by one thread, where nobody listens: only what may change is looked at in each call."""
        words, size = self._step_words, self._size
        codes = action_codes(actions, size)
        if size == 1:
            words[_OWN_ACTION] = codes.item()
        else:
            words[_ACTIONS] = _address_of(_byte_of(codes))
        scaled = False
        if observations is not None:
            if scaled := _is_float32(observations):
                words[_SHARES] = _place(observations, (size, SIZE), _FLOAT32)
                words[_COUNTS] = address(self._scratch)
            else:
                words[_COUNTS] = _place(observations, (size, SIZE), _INT8)
        if masks is not None:
            words[_MASKS] = _place(masks, (size, COUNT), _INT8)
        if samples is not None:
            words[_SAMPLES] = _place(samples, (size,), _INT64)
        wanted = autoreset, self.reward_kind, observations is None, scaled, masks is None, samples is None
        if wanted != self._step_wanted:
            words[_AUTORESET], words[_REWARD] = bool(autoreset), self.reward_kind
            words[_COUNTS + 1] = 0 if observations is None else size
            words[_SHARES + 1] = size if scaled else 0
            words[_MASKS + 1] = 0 if masks is None else size
            words[_SAMPLES + 1] = 0 if samples is None else size
            self._step_wanted = wanted
        if size > 1 and not (observations is None and masks is None and samples is None):
            in_place = samples is not None and words[_SAMPLES] == words[_ACTIONS]
            _check_apart((observations, masks, samples), (None if in_place else codes,))
        illegal = _STEP.native(self._step_address)
        if illegal != NONE:
            illegal = _STEP.result(illegal)
            raise IllegalAction(self._complaint(illegal, int(codes[illegal])))

    def _play_random(self, steps: int, index: NDArray[np.int64], seats: NDArray[np.int64]) -> None:
        """Random decisions in few games, without listeners."""
        while True:
            now = min(steps, STEPS_PER_CALL)
            self.run(batch.play_random, index, now, seats, self.rewards, self.reward_kind)
            steps -= now
            if steps == 0:
                return
            index, seats = self._waiting(index, seats)
            if index.size == 0:
                return

    def _waiting(
        self, index: NDArray[np.int64], seats: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Those of these games that go on until it is the turn of a seat, and these seats."""
        current = self.current_player[index]
        waiting = (current != seats) & (current != NONE)
        return index[waiting], seats if seats.size == 1 else seats[waiting]

    def _outputs(
        self, index: NDArray[np.int64], observations: NDArray[Any] | None, masks: NDArray[np.int8] | None
    ) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int8]]:
        """Where an entry point writes counts, shares and masks; what is not wanted is empty."""
        masks = _NO_COUNTS if masks is None else _out(masks, (index.size, actions.COUNT), _INT8)
        if observations is None:
            return _NO_COUNTS, _NO_SHARES, masks
        if _is_float32(observations):
            return self._scratch[: index.size], _out(observations, (index.size, observation.SIZE), _FLOAT32), masks
        return _out(observations, (index.size, observation.SIZE), _INT8), _NO_SHARES, masks

    def _index(self, rows: Rows, increasing: bool = True) -> NDArray[np.int64]:
        """The rows as an index array."""
        if rows is None:
            return self._all
        index = np.atleast_1d(_array(rows, "rows"))
        if index.dtype is _INT64 and index.ndim == 1 and index.flags.carray and batch.are_increasing(index, len(self)):
            return index
        if index.dtype == np.bool_:
            if index.shape != (len(self),):
                raise InvalidArgument(f"a mask of rows must have the shape ({len(self)},), but has {index.shape}")
            return np.flatnonzero(index)
        if index.size == 0:
            return np.zeros(0, np.int64)
        if index.ndim != 1 or not np.issubdtype(index.dtype, np.integer):
            raise InvalidArgument(
                f"rows must be whole numbers in one dimension, not {index.dtype} of shape {index.shape}"
            )
        index = index.astype(np.int64)
        if index.min() < 0 or index.max() >= len(self):
            raise InvalidArgument(f"rows must be from 0 to {len(self) - 1}, but are {index.min()} to {index.max()}")
        if increasing and (index[1:] <= index[:-1]).any():
            raise InvalidArgument("rows must be increasing, each given once")
        return index

    def _one(self, game: int) -> int:
        if not isinstance(game, int | np.integer) or not 0 <= game < len(self):
            raise InvalidArgument(f"a game is a whole number from 0 to {len(self) - 1}, not {game!r}")
        return int(game)

    def _observers(self, player: int | ArrayLike | None, index: NDArray[np.int64]) -> NDArray[np.int64]:
        if player is None:
            return _DECIDER
        if type(player) is int and 0 <= player < self._fewest_players:
            return _SEATS[player]
        seats = np.atleast_1d(_array(player, "player"))
        usual = seats.dtype is _INT64 and seats.shape == index.shape and seats.flags.carray
        if usual and batch.are_seated(self.states, index, seats):
            return seats
        if seats.shape not in ((1,), index.shape) or not np.issubdtype(seats.dtype, np.integer):
            raise InvalidArgument(f"player must be a seat or {index.size} of them, not {player!r}")
        absent = (seats < 0) | (seats >= self.num_players[index])
        if absent.any():
            game = int(index[np.flatnonzero(absent)[0]])
            raise InvalidArgument(
                f"player {seats[min(int(np.flatnonzero(absent)[0]), seats.size - 1)]} does not sit in game {game}: "
                f"seats are 0 to {self.num_players[game] - 1}"
            )
        return seats.astype(np.int64)

    def _complaint(self, game: int, code: int) -> str:
        state = self.states[game]
        phase = Decision(int(state["decision"])).name.lower()
        named = f"{code} ({actions.decode(code)})" if 0 <= code < actions.COUNT else f"{code} (no action has this code)"
        legal = ", ".join(f"{actions.encode(action)} ({action})" for action in self.legal_actions(game))
        return f"game {game}: player {state['current_player']} may not {phase} with action {named}; legal are {legal}"

    def _remove_listeners(self, index: NDArray[np.int64]) -> None:
        for game in self._listeners.keys() & set(index.tolist()):
            del self._listeners[game]

    def _notify_listeners(self, index: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
        for game, listeners in self._listeners.items():
            place = int(np.searchsorted(index, game))
            if place < index.size and index[place] == game and self.states["legal"][game]:
                for listener in listeners:
                    listener.before_step(int(codes[place]))


_NDARRAY = np.ndarray
_byte_of: Any = ctypes.c_char.from_buffer
_address_of: Callable[[Any], int] = ctypes.addressof
_INT8, _INT64, _FLOAT32 = np.dtype(np.int8), np.dtype(np.int64), np.dtype(np.float32)
_DECIDER = np.full(1, NONE, np.int64)
_SEATS = [np.full(1, seat, np.int64) for seat in range(MAX_PLAYERS)]


def _array(values: ArrayLike, name: str, error: type[InvalidArgument] = InvalidArgument) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise error(f"{name} must be one number or a plain array of them, but is {values!r}") from None


def _player_counts(num_players: int | ArrayLike, num_games: int) -> NDArray[np.int8]:
    players = _array(num_players, "num_players", InvalidPlayerCount)
    if not np.issubdtype(players.dtype, np.integer) or players.shape not in ((), (num_games,)):
        raise InvalidPlayerCount(
            f"num_players must be a whole number or an array of {num_games}, but is {num_players!r}"
        )
    if players.min() < MIN_PLAYERS or players.max() > MAX_PLAYERS:
        raise InvalidPlayerCount(f"{MIN_PLAYERS} to {MAX_PLAYERS} players can play, not {num_players!r}")
    return players.astype(np.int8)


def _seeds(seed: int | ArrayLike | None, num_games: int) -> NDArray[np.uint64]:
    """One seed per game. From one int they are drawn by SeedSequence, which NumPy keeps the same on every machine."""
    if seed is None or isinstance(seed, int | np.integer):
        if seed is not None and seed < 0:
            raise InvalidArgument(f"seed must not be negative, but is {seed}")
        drawn = np.random.SeedSequence(None if seed is None else int(seed)).generate_state(num_games, np.uint64)
        return drawn >> np.uint64(64 - SEED_BITS)
    seeds = _array(seed, "seed")
    if seeds.shape != (num_games,) or not np.issubdtype(seeds.dtype, np.integer) or seeds.min(initial=0) < 0:
        raise InvalidArgument(
            f"seed must be None, a whole number from 0, or an array of {num_games} such, not {seed!r}"
        )
    return seeds.astype(np.uint64)


def seed_of_game(seed: int | None) -> np.uint64:
    """The seed of the game that `GameBatch(1, seed=seed)` deals."""
    return np.uint64(_seeds(seed, 1)[0])


def action_codes(actions: ArrayLike, size: int) -> NDArray[np.int64]:
    """This number of action codes as an int64 array; anything else than whole numbers in one dimension is refused."""
    codes = actions if type(actions) is _NDARRAY else _array(actions, "actions")
    if codes.dtype is _INT64 and codes.shape == (size,) and codes.flags.carray:
        return codes
    if codes.shape != (size,):
        raise InvalidArgument(f"actions must have the shape ({size},), one per game, but have {codes.shape}")
    if not np.issubdtype(codes.dtype, np.integer) and size > 0:
        raise InvalidArgument(f"actions must be whole numbers, but are {codes.dtype}")
    return codes.astype(np.int64)


def _out(out: NDArray[Any] | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if type(out) is np.ndarray and out.dtype is dtype and out.shape == shape and out.flags.carray:
        return out
    if out is None:
        return aligned_empty(shape, dtype) if shape[0] > 1 else np.empty(shape, dtype)
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        found = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else repr(type(out))
        raise InvalidArgument(f"out must be an array of {dtype} of shape {shape}, but is {found}")
    if not out.flags.carray:
        raise InvalidArgument("out must be contiguous and writeable")
    return out


def _place(out: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """The address of an array to write to; those that `_out` would refuse are refused."""
    if type(out) is _NDARRAY and out.dtype is dtype and out.shape == shape and (dtype is _INT8 or out.flags.carray):
        try:
            return _address_of(_byte_of(out))
        except TypeError:  # neither contiguous nor writeable, or one of the two: bytes need no more than these
            pass
    return address(_out(out, shape, dtype))


def _is_float32(out: Any) -> bool:
    return isinstance(out, _NDARRAY) and out.dtype is not _INT8 and out.dtype == _FLOAT32


def _check_apart(outputs: tuple[NDArray[Any] | None, ...], inputs: tuple[NDArray[Any] | None, ...]) -> None:
    """Refuses outputs that share memory with each other or with inputs: kernels would read what they have written.

    Not asked where a batch of one is stepped whole, in which nothing is read after that: it takes a microsecond.
    """
    owners, size = set(), 0
    for array in outputs + inputs:
        if array is not None:
            owner = array if array.base is None else array.base
            if getattr(owner, "base", owner) is not None:  # the memory comes from elsewhere
                break
            owners.add(id(owner))
            size += 1
    else:
        if len(owners) == size:  # the usual case: each has memory of its own
            return
    for place, out in enumerate(outputs):
        for other in outputs[place + 1 :] + inputs:
            if out is not None and other is not None and np.may_share_memory(out, other):
                raise InvalidArgument(
                    "an array to write to must not share memory with rows, actions or players, nor with another one; "
                    "only samples may be the actions themselves"
                )
