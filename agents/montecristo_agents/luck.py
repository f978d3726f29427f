"""Luck: what draws did to the players, and results with luck taken out.

After a decision that draws something (see `GameBatch.draws`), luck is the value of what came minus the mean value of
what might have come: the same decision in games whose hidden parts are redrawn. Its mean is 0 for every seat, whatever
the value function is and whoever plays, because what is hidden and what is redrawn have the same distribution. So luck
times any number may be subtracted from results: their mean stays, and their variance falls if the value function knows
something. Such control variates are used in poker (Burch et al., "AIVAT", 2018) and in backgammon.

The value functions are both heads of a network: the share of the win and the share of the utility that it expects for
every seat. How much of each is subtracted from the result of a deal is fitted to other deals.

What decisions lose is measured beside it: the value of what the network would have done less that of what was done, or
nothing if that is below 0.
"""

import hashlib
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.entity import (
    ROWS_PER_THREAD,
    EntityNetwork,
    Workspace,
    activate,
    add_product,
    embed,
    observe_deciders,
    softmax,
)
from montecristo_agents.models import shipped_model
from montecristo_agents.search import SCORE_SCALE, WIN_WEIGHT
from montecristo_env import GameBatch, InvalidArgument
from montecristo_env.core.actions import COUNT, FIRST
from montecristo_env.core.chance import resample_hidden, stream
from montecristo_env.core.constants import DUNGEONS, KINDS, MAX_PLAYERS, Decision
from montecristo_env.core.jit import copy_bytes, entry_point, local_array
from montecristo_env.core.layout import STATE, Float32s, Float32Table, Float64Cube, Int64s, States, aligned_empty
from montecristo_env.core.rules import play
from montecristo_env.threads import ALL_CORES, parallel_for

SIGNALS = ("value", "win")
"""The heads of the network, in which luck is measured."""
WIN = SIGNALS.index("win")
VALUE_MODEL = "alphazero"
"""The shipped network that gives the values."""
REDRAWS = 16  # the noise of their mean adds 1/16 to the variance of luck
MOST_REDRAWS = 1024
FOLDS = 10  # of the deals of a match: how much luck counts in one of them is fitted to the others
BLOCK = 256  # rows that a thread evaluates at a time
REDRAWN_ROWS = 2**15  # at a time, so that they do not fill the memory
_LUCK_STREAM = 1 << 33  # of a game's seed; the game itself, the searches and their noise use others
_ROW_BYTES = STATE.itemsize
FEWEST_DEALS = 16  # that coefficients are fitted to


class Values:
    """The share of the win and of the utility of every seat: as a network expects them, or as they came out."""

    def __init__(self, network: EntityNetwork, threads: int = ALL_CORES) -> None:
        self.network, self.threads = network, threads
        self._trunk = [(np.ascontiguousarray(weight), bias) for weight, bias in network._trunk]
        heads = slice(COUNT, COUNT + len(SIGNALS) * MAX_PLAYERS)  # value and win; no logits are needed
        weight, bias = self._trunk.pop()
        self._trunk.append((np.ascontiguousarray(weight[:, heads]), np.ascontiguousarray(bias[heads])))
        self._own = threading.local()  # of each thread: room to work

    def __call__(self, rows: States) -> NDArray[np.float64]:
        """The shares, (K, 4, SIGNALS); seats that nobody holds have 0. A row has the same shares in any company."""
        found = np.zeros((rows.size, MAX_PLAYERS, len(SIGNALS)))
        if blocks := -(-rows.size // BLOCK):
            parallel_for(self._evaluate, rows, found, size=blocks, threads=self.threads)
        over = rows["decision"] == Decision.OVER
        found[over] = _final_values(rows[over])
        return found

    def _evaluate(self, rows: States, found: NDArray[np.float64], first: int, end: int) -> None:
        """Some blocks of rows, as `EntityNetwork.forward` does; but the sums of each row are in an order of its own.

        There they are those of a library, which rounds by how many rows there are and where among them one stands.
        """
        if not hasattr(self._own, "room"):
            self._own.room = Workspace(BLOCK, self.network.sizes)
        room, packed = self._own.room, self.network._packed
        for begin in range(first * BLOCK, min(end * BLOCK, rows.size), BLOCK):
            part = rows[begin : begin + BLOCK]
            size = part.size
            observe_deciders(part, room.seen, 0, size)
            embed(room.seen, *packed[:7], room.dungeon_sums, room.kind_sums, room.features, 0, size)
            nothing = np.zeros(packed.dungeon_pairs.shape[1], np.float32)
            multiply(room.dungeon_sums, packed.dungeon_pairs, nothing, room.of_dungeons, size * DUNGEONS)
            multiply(room.kind_sums, packed.kind_pairs, nothing, room.of_kinds, size * KINDS)
            activate(room.of_dungeons, room.of_kinds, room.features, 0, size)
            before = room.features
            for (weight, bias), after in zip(self._trunk[:-1], room.hidden, strict=False):
                multiply(before, weight, bias, after, size)
                np.maximum(after, 0, out=after)
                before = after
            write_shares(part, before, *self._trunk[-1], found[begin : begin + size])

    def __getstate__(self) -> dict[str, Any]:
        return {"network": self.network, "threads": self.threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


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
    """

    def __init__(self, network: EntityNetwork, redraws: int = REDRAWS, sha256: str | None = None) -> None:
        if not isinstance(redraws, int) or not 1 <= redraws <= MOST_REDRAWS:
            raise InvalidArgument(f"redraws must be a whole number from 1 to {MOST_REDRAWS}, but is {redraws!r}")
        self.value, self.redraws, self.sha256 = Values(network), redraws, sha256

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
        return {"sha256": self.sha256, "redraws": self.redraws}

    def step(
        self, games: GameBatch, actions: NDArray[np.int64], rows: NDArray[np.int64], losses: bool = True
    ) -> Measured:
        """Steps these rows of a batch as `GameBatch.step` does, and measures luck and, if wanted, losses.

        Both follow from the seed and the decisions of a game alone, and no random stream of the game is used.
        """
        draws = games.draws(actions, rows)
        other = np.zeros(0, np.int64)  # decisions that the network would make in another way
        if losses:
            preferred, seats = self._preferred(games, rows), games.current_player[rows]
            other = np.flatnonzero(preferred != actions)
            better = self._expected(games, preferred[other], rows[other])[np.arange(other.size), seats[other], WIN]
        values = np.empty((rows.size, MAX_PLAYERS, len(SIGNALS)))
        values[draws] = self._expected(games, actions[draws], rows[draws])
        games.step(actions, rows)
        needed = draws.copy()
        needed[other] = True
        came = np.empty_like(values)
        came[needed] = self.value(games.states[rows[needed]])
        values[~draws] = came[~draws]
        lost = np.zeros(rows.size)
        if losses:
            lost[other] = np.maximum(better - values[other, seats[other], WIN], 0.0)
        return Measured(rows[draws], came[draws] - values[draws], lost)

    def _preferred(self, games: GameBatch, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the network would do in these games."""
        masks = np.empty((rows.size, COUNT), np.int8)
        logits = self.value.network.forward(games.observe(rows=rows, masks=masks), self.value.threads)[0]
        best: NDArray[np.int64] = np.where(masks, logits, -np.inf).argmax(axis=1)
        return best

    def _expected(self, games: GameBatch, actions: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
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
                means[part] = self.value(redrawn).reshape(part.size, redraws, *means.shape[1:]).mean(axis=1)
        return means


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


@entry_point
def write_shares(rows: States, hidden: Float32Table, weight: Float32Table, bias: Float32s, out: Float64Cube) -> None:
    """The shares of each head by seat, which are given from the decider on."""
    active = local_array(hidden.shape[1], np.int64)
    logits, shares = local_array(bias.size, np.float32), local_array(MAX_PLAYERS, np.float32)
    for k in range(rows.size):
        for j in range(bias.size):
            logits[j] = bias[j]
        add_product(hidden[k], 0, hidden.shape[1], weight, active, logits)
        first, players = max(int(rows[k].current_player), 0), int(rows[k].num_players)
        for signal in range(out.shape[2]):
            softmax(logits[signal * MAX_PLAYERS : (signal + 1) * MAX_PLAYERS], players, shares)
            for ego in range(players):
                seat = first + ego if first + ego < players else first + ego - players
                out[k, seat, signal] = shares[ego]
