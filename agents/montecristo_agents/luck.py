"""Luck: what draws did to the players, and results with luck taken out.

After a decision that draws something (see `GameBatch.draws`), luck is the value of what came minus the mean value of
what might have come: the same decision in games whose hidden parts are redrawn. Its mean is 0 for every seat, whatever
the value function is and whoever plays, because what is hidden and what is redrawn have the same distribution. So luck
times any number may be subtracted from results: their mean stays, and their variance falls if the value function knows
something. Such control variates are used in poker (Burch et al., "AIVAT", 2018) and in backgammon.

The value functions are both heads of a network: the share of the win and the share of the utility that it expects for
every seat, where the next draw would come if it played on in all seats. What it expects at once knows less of what a
draw has brought. How much of each is subtracted from the result of a deal is fitted to other deals.

What decisions lose is measured beside it: the value of what the network would have done less that of what was done, or
nothing if that is below 0.
"""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.entity import (
    ROWS_PER_THREAD,
    EntityNetwork,
    Workspace,
    activate,
    add_context,
    add_product,
    by_seat,
    embed,
    observe_deciders,
    write_outputs,
)
from montecristo_agents.models import shipped_model
from montecristo_agents.search import SCORE_SCALE, WIN_WEIGHT
from montecristo_env import GameBatch, InvalidArgument
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.chance import resample_hidden, stream
from montecristo_env.core.constants import DUNGEONS, KINDS, MAX_PLAYERS, Decision
from montecristo_env.core.jit import copy_bytes, entry_point, local_array
from montecristo_env.core.layout import STATE, Float32s, Float32Table, Int64s, States, aligned_empty
from montecristo_env.core.rules import play
from montecristo_env.util.threads import ALL_CORES, parallel_for, parallel_map

SIGNALS = ("value", "win")
"""The heads of the network, in which luck is measured."""
WIN = SIGNALS.index("win")
VALUE_MODEL = "alphazero"
"""The shipped network that gives the values."""
REDRAWS = 16  # the noise of their mean adds 1/16 to the variance of luck
MOST_REDRAWS = 1024
PLAYED_ON = 32  # positions at most up to the next draw, of which there is one every nine decisions
FOLDS = 10  # of the deals of a match: how much luck counts in one of them is fitted to the others
BLOCK = 256  # rows that a thread evaluates at a time
REDRAWN_ROWS = 2**15  # at a time, so that they do not fill the memory
_LUCK_STREAM = 1 << 33  # of a game's seed; the game itself, the searches and their noise use others
_ROW_BYTES = STATE.itemsize
FEWEST_DEALS = 16  # that coefficients are fitted to


class Values:
    """The shares of the win and of the utility of every seat: as a network expects them, or as they came out."""

    def __init__(self, network: EntityNetwork) -> None:
        self.network = network

    def __call__(self, rows: States) -> NDArray[np.float64]:
        """The shares, (K, 4, SIGNALS); seats that nobody holds have 0. A row has the same shares in any company."""
        return self.evaluate(rows)[0]

    def evaluate(self, rows: States) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """The shares, and the logits of all actions, (K, actions.COUNT)."""
        found = np.zeros((rows.size, MAX_PLAYERS, len(SIGNALS)))
        logits = np.empty((rows.size, COUNT), np.float32)
        parallel_map(lambda block: self._evaluate(rows, found, logits, block * BLOCK), -(-rows.size // BLOCK))
        over = rows["decision"] == Decision.OVER
        found[over] = _final_values(rows[over])
        return found, logits

    def _evaluate(self, rows: States, found: NDArray[np.float64], logits: NDArray[np.float32], begin: int) -> None:
        """A block of rows, as `EntityNetwork.forward` does; but the sums of each row are in an order of its own.

        There they are those of a library, which rounds by how many rows there are and where among them one stands.
        """
        room, packed, heads = Workspace(BLOCK, self.network.sizes), self.network._packed, self.network._heads
        part = rows[begin : begin + BLOCK]
        size = part.size
        dungeons, kinds = size * DUNGEONS, size * KINDS
        observe_deciders(part, room.seen, 0, size)
        embed(room.seen, *packed[:7], room.dungeon_sums, room.kind_sums, room.features, 0, size)
        multiply(room.dungeon_sums, packed.dungeon_pairs, _zeros(room.of_dungeons), room.of_dungeons, dungeons)
        multiply(room.kind_sums, packed.kind_pairs, _zeros(room.of_kinds), room.of_kinds, kinds)
        activate(room.of_dungeons, room.of_kinds, room.features, 0, size)
        before = room.features
        for (weight, bias), after in zip(self.network._trunk, room.hidden, strict=True):
            multiply(before, weight, bias, after, size)
            if after is not room.hidden[-1]:
                np.maximum(after, 0, out=after)
            before = after
        add_context(room.features, before, room.of_dungeons, room.of_kinds, 0, size)
        multiply(room.of_dungeons, heads.dungeons, _zeros(room.dungeon_scores), room.dungeon_scores, dungeons)
        multiply(room.of_kinds, heads.kinds, _zeros(room.kind_scores), room.kind_scores, kinds)
        into, *outputs = room.outputs
        write_outputs(
            room.seen, before, room.dungeon_scores, room.kind_scores, heads.dungeon_bias, heads.kind_bias,
            into, outputs[0], outputs[1], 0, size,
        )  # fmt: skip
        logits[begin : begin + size] = into[:size]
        for signal, shares in enumerate(outputs):
            by_seat(part, shares, room.shares, 0, size)
            found[begin : begin + size, :, signal] = room.shares[:size]


def _zeros(out: NDArray[np.float32]) -> NDArray[np.float32]:
    """A bias of nothing, as wide as what comes out."""
    return np.zeros(out.shape[1], np.float32)


def _final_values(rows: States) -> NDArray[np.float64]:
    """What the network learns to expect, where games are over; see `search`."""
    wins = rows["winners"] / rows["winners"].sum(axis=1, keepdims=True)
    seated = np.arange(MAX_PLAYERS) < rows["num_players"][:, None]
    points = np.where(seated, np.exp((rows["score"] - rows["score"].max(axis=1, keepdims=True)) / SCORE_SCALE), 0.0)
    points /= points.sum(axis=1, keepdims=True)
    return np.stack([WIN_WEIGHT * wins + (1 - WIN_WEIGHT) * points, wins], axis=-1)


class Measured(NamedTuple):
    """What a meter says of some decisions."""

    drawn: NDArray[np.int64]
    """The rows in which something was drawn, (D,)."""
    luck: NDArray[np.float64]
    """What that brought to every seat, (D, 4, SIGNALS); it sums to 0 over the seats."""
    losses: NDArray[np.float64]
    """What each decision lost for who made it, (K,), in shares of the win."""


class LuckMeter:
    """Plays decisions, and measures what they lose and the luck of those that draw something.

    Args:
        network: gives the values.
        redraws: in how many games with redrawn hidden parts a decision is tried, to know what might have come.
        sha256: of the network's file, which reports name.
        plays_on: whether the network plays on to the next draw before it is asked what it expects of luck. That
            explains more, and takes longer. What decisions lose is measured at once.
    """

    def __init__(
        self, network: EntityNetwork, redraws: int = REDRAWS, sha256: str | None = None, plays_on: bool = True
    ) -> None:
        if not isinstance(redraws, int) or not 1 <= redraws <= MOST_REDRAWS:
            raise InvalidArgument(f"redraws must be a whole number from 1 to {MOST_REDRAWS}, but is {redraws!r}")
        self.value, self.redraws, self.sha256, self.plays_on = Values(network), redraws, sha256, plays_on

    @classmethod
    def shipped(cls, redraws: int = REDRAWS) -> "LuckMeter":
        """With the network that comes with this package."""
        with shipped_model(VALUE_MODEL) as path:
            return cls.load(path, redraws)

    @classmethod
    def load(cls, path: str | Path, redraws: int = REDRAWS) -> "LuckMeter":
        """With the network of a model file."""
        return cls(EntityNetwork.load(path), redraws, hashlib.sha256(Path(path).read_bytes()).hexdigest())

    @property
    def settings(self) -> dict[str, Any]:
        """What its figures depend on."""
        return {"sha256": self.sha256, "redraws": self.redraws, "plays_on": self.plays_on}

    def step(
        self, games: GameBatch, actions: NDArray[np.int64], rows: NDArray[np.int64], losses: bool = True
    ) -> Measured:
        """Steps these rows of a batch as `GameBatch.step` does, and measures luck and, if wanted, losses.

        Both follow from the seed and the decisions of a game alone, and no random stream of the game is used.
        """
        draws, lost = games.draws(actions, rows), np.zeros(rows.size)
        if losses:
            preferred = self._preferred(games, rows)
            other = np.flatnonzero(preferred != actions)  # decisions that the network would make in another way
            better, made = (
                self._expected(games, some[other], rows[other], False)[..., WIN] for some in (preferred, actions)
            )
            gained = np.take_along_axis(better - made, games.current_player[rows[other], None].astype(np.int64), axis=1)
            lost[other] = np.maximum(gained[:, 0], 0.0)
        expected = self._expected(games, actions[draws], rows[draws], self.plays_on)
        games.step(actions, rows)
        return Measured(rows[draws], self._values(games, games.states[rows[draws]], self.plays_on) - expected, lost)

    def _preferred(self, games: GameBatch, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the network would do in these games."""
        return _best(games, rows, self.value.evaluate(games.states[rows])[1])

    def _values(self, like: GameBatch, rows: States, plays_on: bool) -> NDArray[np.float64]:
        """The values of these positions of games of the same rules, where the next draw would come, if it plays on."""
        if not plays_on:
            return self.value(rows)
        games = like[np.zeros(rows.size, np.int64)]
        games.states[:] = rows
        found = np.empty((rows.size, MAX_PLAYERS, len(SIGNALS)))
        active = np.arange(rows.size)
        for _ in range(PLAYED_ON):
            found[active], logits = self.value.evaluate(games.states[active])
            lives = ~games.over[active]
            active = active[lives]
            acts = _best(games, active, logits[lives])
            quiet = ~games.draws(acts, active)
            active = active[quiet]
            if active.size == 0:
                break
            games.step(acts[quiet], active)
        return found

    def _expected(
        self, games: GameBatch, actions: NDArray[np.int64], rows: NDArray[np.int64], plays_on: bool
    ) -> NDArray[np.float64]:
        """The values of these decisions, (K, 4, SIGNALS): those of actions that draw are means over redraws."""
        means = np.empty((rows.size, MAX_PLAYERS, len(SIGNALS)))
        draws = games.draws(actions, rows)
        for some, redraws in ((np.flatnonzero(draws), self.redraws), (np.flatnonzero(~draws), 1)):
            at_once = max(1, REDRAWN_ROWS // redraws)
            for begin in range(0, some.size, at_once):
                part = some[begin : begin + at_once]
                redrawn = aligned_empty(part.size * redraws, STATE)
                parallel_for(
                    play_redrawn, games.states, rows[part], actions[part], redraws, redrawn, size=part.size,
                    threads=ALL_CORES, least=ROWS_PER_THREAD,
                )  # fmt: skip
                means[part] = (
                    self._values(games, redrawn, plays_on).reshape(part.size, redraws, *means.shape[1:]).mean(axis=1)
                )
        return means


def _best(games: GameBatch, rows: NDArray[np.int64], logits: NDArray[np.float32]) -> NDArray[np.int64]:
    """The legal actions with the highest logits."""
    best: NDArray[np.int64] = np.where(games.action_mask(rows=rows), logits, -np.inf).argmax(axis=1)
    return best


# --- results without luck


def fit_coefficients(results: NDArray[np.float64], luck: NDArray[np.float64]) -> NDArray[np.float64]:
    """What to subtract of each signal so that the least variance is left.

    Args:
        results: one per deal, (deals,).
        luck: of the same deals, (deals, SIGNALS).

    The less they explain beyond what as many random numbers would, the closer to 0 they are: where luck tells nothing,
    almost nothing is subtracted. Zeros, if there are too few deals to tell. Where nobody was ever lucky in a signal, or
    two signals are the same, the smallest coefficients that do.
    """
    deals, signals = luck.shape
    if deals < FEWEST_DEALS:
        return np.zeros(signals)
    lucks, rest = luck - luck.mean(axis=0), results - results.mean()
    found: NDArray[np.float64] = np.linalg.lstsq(lucks, rest, rcond=None)[0]
    explained = float(((lucks @ found) ** 2).sum())
    left = float(((rest - lucks @ found) ** 2).sum())
    by_chance = left * signals / (deals - signals - 1)
    return found * max(0.0, 1 - by_chance / explained) if explained > 0 else np.zeros(signals)


def cross_fit(results: NDArray[np.float64], luck: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients for every deal, (deals, SIGNALS), that are fitted to deals of other folds."""
    folds = np.arange(len(results)) % FOLDS
    found = np.zeros(luck.shape)
    for fold in range(FOLDS):
        others = folds != fold
        found[~others] = fit_coefficients(results[others], luck[others])
    return found


def fit_ahead(results: NDArray[np.float64], luck: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients for every deal, (deals, SIGNALS), that are fitted to earlier deals alone.

    For a sequential test, which must not look ahead. They are fitted again each time the deals have doubled.
    """
    found = np.zeros(luck.shape)
    known = FEWEST_DEALS
    while known < len(results):
        found[known : 2 * known] = fit_coefficients(results[:known], luck[:known])
        known *= 2
    return found


# --- compiled


@entry_point
def play_redrawn(
    states: States, rows: Int64s, actions: Int64s, redraws: int, out: States, begin: int, end: int
) -> None:
    """Plays the action of every row in `redraws` copies of it, each with its hidden parts redrawn."""
    for k in range(begin, end):
        s = states[rows[k]]
        key = stream(stream(s.seed, _LUCK_STREAM), int(s.decisions))
        for i in range(redraws):
            copy = out[k * redraws + i]
            copy_bytes(copy.bytes, 0, s.bytes, 0, _ROW_BYTES)
            resample_hidden(copy, stream(key, i))
            play(copy, actions[k] - FIRST[s.decision])


@entry_point
def multiply(x: Float32Table, weight: Float32Table, bias: Float32s, out: Float32Table, rows: int) -> None:
    """Out = x @ weight + bias, of the first few rows."""
    active = local_array(x.shape[1], np.int64)
    for k in range(rows):
        for j in range(bias.size):
            out[k, j] = bias[j]
        add_product(x[k], 0, x.shape[1], weight, active, out[k])
