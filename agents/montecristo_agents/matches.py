"""Duplicate matches: which agents meet at which tables, and the games themselves, thousands at a time.

Every two agents meet at tables of their own. With 2 players there is one such table. With 3 or 4 there are two: one
player of the first agent against the others of the second, and the reverse. At every table each deal is played
once with the lone player in every seat, which is every way to seat them. All tables play the same deals. No table has
three different agents: every game tells something about one pair, and the lone player's chance among equals is 1/n.
"""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.dataset import Arrays, DecisionLog
from montecristo_agents.luck import SIGNALS, LuckMeter
from montecristo_env import Agent, GameBatch, GameRecord, InvalidArgument, MonteCristoError, PublicView, Ruleset
from montecristo_env.core.constants import MAX_PLAYERS, NONE
from montecristo_env.errors import IllegalAction
from montecristo_env.games import SEED_BITS
from montecristo_env.ruleset import RulesetLike

_TO_THE_END = 1_000_000  # more decisions than any game has


class Table(NamedTuple):
    """Who sits there: one player of one agent, all others of another. Agents are numbers."""

    lone: int
    rest: int


def schedule(agents: int, players: int, focus: int | None = None) -> list[Table]:
    """The tables at which agents 0 to `agents` - 1 meet; only those of one agent if there is a focus.

    With 2 players a table is one and the same from either side, and is listed once.
    """
    pairs = itertools.combinations(range(agents), 2) if players == 2 else itertools.permutations(range(agents), 2)
    return [Table(*pair) for pair in pairs if focus is None or focus in pair]


def deal_seeds(seed: int, deals: int) -> NDArray[np.uint64]:
    """The seed of every deal, those of `GameBatch(deals, seed=seed)`; more deals begin with the same ones."""
    return np.random.SeedSequence(seed).generate_state(deals, np.uint64) >> np.uint64(64 - SEED_BITS)


@dataclass
class Results:
    """What came out of K rounds; in a round one deal is played at one table, with the lone player in each seat.

    The last two axes of an array are the seat of the lone player, which names the game, and the seat of a player.
    """

    winners: NDArray[np.bool_]  # (K, n, n)
    ranks: NDArray[np.float32]  # (K, n, n), from 1; those who tie have the mean of their places
    scores: NDArray[np.int16]  # (K, n, n)
    decisions: NDArray[np.float32]  # (K, n, n); of players that the engine moves, their mean
    luck: NDArray[np.float64]  # (K, n, n, SIGNALS): of all draws, see `luck`; (K, n, n, 0) where it was not measured
    losses: NDArray[np.float64]  # (K, n, n), of all decisions, see `luck`; zeros where luck was not measured
    seconds: NDArray[np.float64]  # (agents,), the time each took to decide

    def __len__(self) -> int:
        return len(self.winners)

    def check(self, rounds: int, players: int, agents: int, signals: int) -> None:
        """Refuses what cannot be the results of that number of rounds of a match."""
        games = (rounds, players, players)
        wanted = {"winners": np.bool_, "ranks": np.float32, "scores": np.int16, "decisions": np.float32}
        shapes = {"seconds": (agents,), "luck": (*games, signals)}
        for name, dtype in (wanted | dict.fromkeys(("luck", "losses", "seconds"), np.float64)).items():
            values, shape = np.asarray(getattr(self, name)), shapes.get(name, games)
            if values.dtype != dtype or values.shape != shape:
                raise InvalidArgument(
                    f"{name} must be {np.dtype(dtype)} of shape {shape}, but are {values.dtype} of shape {values.shape}"
                )
            if not np.isfinite(values).all() or (name not in ("scores", "luck") and values.min() < 0):
                raise InvalidArgument(f"{name} must be finite numbers from 0")
        if not self.winners.any(axis=-1).all():
            raise InvalidArgument("every game must have a winner")

    def first(self, rounds: int) -> Self:
        """Those of the first `rounds` rounds; the seconds are still those of all."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self)(**{name: part if name == "seconds" else part[:rounds] for name, part in parts.items()})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The results of all rounds, one after the other."""
        per_round = [field.name for field in fields(cls) if field.name != "seconds"]
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in per_round}
        return cls(**joined, seconds=np.sum([part.seconds for part in parts], axis=0))


class Played(NamedTuple):
    """What came out of some rounds."""

    results: Results
    records: list[GameRecord]
    """Of all their games, if wanted."""
    decisions: Arrays | None
    """All decisions and how the games ended, if wanted: see `dataset`."""


class Match:
    """All games of some agents against each other.

    Its rounds are numbered: first all tables play the first deal, then the second, and so on. What comes out of a round
    does not depend on which others are played with it, as long as the agents draw their chance from the games.

    Args:
        agents: two or more; the same object may stand there twice.
        players: how many sit at a table.
        seeds: one for each deal.
        ruleset: see `GameBatch`.
        focus: the number of an agent: then the others meet only this one, and not each other.
        meter: measures the luck of draws, if there is one. The games are the same.
    """

    def __init__(
        self,
        agents: Sequence[Agent],
        players: int,
        seeds: NDArray[np.uint64],
        ruleset: RulesetLike = None,
        focus: int | None = None,
        meter: LuckMeter | None = None,
    ) -> None:
        self.agents = agents
        self.players = players
        self.seeds = seeds
        self.ruleset = Ruleset.of(ruleset)
        self.meter = meter
        self.tables = schedule(len(agents), players, focus)
        self.rounds = len(seeds) * len(self.tables)
        self._distinct = list({id(agent): agent for agent in agents}.values())
        ids = [id(agent) for agent in self._distinct]
        self._object = np.array([ids.index(id(agent)) for agent in agents])  # of each agent, its place in _distinct
        self._random = np.array([bool(getattr(agent, "uniformly_random", False)) for agent in self._distinct])
        self.interactive = any(getattr(agent, "interactive", False) for agent in agents)
        """Whether a person is asked: then games are played one after the other."""

    @property
    def signals(self) -> int:
        """In how many ways luck is measured; 0 without a meter."""
        return 0 if self.meter is None else len(SIGNALS)

    def seats(self, rounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which agent sits where in the games of these rounds, (K, n, n)."""
        tables = np.array(self.tables)[rounds % len(self.tables)]
        lone, rest = tables[:, Table._fields.index("lone")], tables[:, Table._fields.index("rest")]
        alone = np.eye(self.players, dtype=np.bool_)
        return np.where(alone, lone[:, None, None], rest[:, None, None])

    def play(self, first: int, end: int, names: Sequence[str] | None = None, log: bool = False) -> Played:
        """Plays the rounds from `first` to before `end`; with the agents' names, it records their games too.

        With `log` it keeps all decisions, for a dataset.
        """
        n = self.players
        rounds = np.arange(first, end)
        seats = self.seats(rounds).reshape(-1, n)
        seeds = self.seeds[rounds // len(self.tables)].repeat(n)
        games = GameBatch(len(seats), n, seed=seeds, ruleset=self.ruleset, reward="rank")
        followed = range(len(seats)) if names is not None else range(0)
        records = [GameRecord.record(games, game, [(names or "")[agent] for agent in seats[game]]) for game in followed]

        objects = self._object[seats]
        decision_log = DecisionLog(self.signals) if log else None
        decisions, luck, losses, seconds = self._play_out(games, objects, decision_log)
        shape = (len(rounds), n, n)
        results = Results(
            winners=games.winners[:, :n].reshape(shape),
            ranks=_ranks(games.rewards[:, :n]).reshape(shape),
            scores=games.scores[:, :n].reshape(shape),
            decisions=decisions.reshape(shape),
            luck=luck[:, :n].reshape(*shape, self.signals),
            losses=losses[:, :n].reshape(shape),
            seconds=_share_out(seconds, self._object),
        )
        logged = None
        if decision_log is not None:
            sitting = np.full((len(games), MAX_PLAYERS), NONE, np.int8)
            sitting[:, :n] = seats
            ends: Arrays = {
                "seeds": seeds,
                "agents": sitting,
                "winners": games.winners.copy(),
                "scores": games.scores.copy(),
            }
            logged = decision_log.arrays() | ends
        return Played(results, records, logged)

    def _play_out(
        self, games: GameBatch, objects: NDArray[np.int64], log: DecisionLog | None
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Plays all games to their end: decisions, luck and losses of every seat, the seconds of every distinct agent.

        Where only one seat, or none, is not uniformly random, the engine moves the random ones until it is its turn;
        unless luck is measured or decisions are kept, for which every one is made by itself.
        """
        view = PublicView(games)
        current = games.current_player
        seconds = np.zeros(len(self._distinct))
        asked = np.zeros(objects.shape, np.int32)
        luck, losses = np.zeros((len(games), MAX_PLAYERS, self.signals)), np.zeros((len(games), MAX_PLAYERS))
        random = self._random & (self.meter is None and log is None)
        thinkers = (~random[objects]).sum(axis=1)
        thinker = np.where(thinkers == 1, random[objects].argmin(axis=1), NONE)

        if (rows := np.flatnonzero(thinkers == 0)).size:
            start = time.perf_counter()
            games.play_random(_TO_THE_END, rows)
            players = np.bincount(objects[rows].ravel(), minlength=seconds.size)
            seconds += (time.perf_counter() - start) * players / players.sum()

        active = np.flatnonzero(~games.over)
        while active.size:
            playing = active[:1] if self.interactive else active
            turn = objects[playing, current[playing]]
            for number, agent in enumerate(self._distinct):
                rows = playing[turn == number]
                if rows.size == 0:
                    continue
                start = time.perf_counter()
                if random[number] and (moved := thinker[rows] != NONE).any():
                    by_engine = rows[moved]
                    games.play_random(_TO_THE_END, by_engine, until=thinker[by_engine])
                    rows = rows[~moved]
                if rows.size:
                    actions = agent.act(view, rows)
                seconds[number] += time.perf_counter() - start
                if rows.size:
                    asked[rows, current[rows]] += 1
                    try:
                        if log is not None:
                            log.add(games, rows, actions, agent)
                        if self.meter is None:
                            games.step(actions, rows)
                        else:
                            seats = current[rows]  # who decides, before they have
                            measured = self.meter.step(games, actions, rows)
                            luck[measured.drawn] += measured.luck
                            losses[rows, seats] += measured.losses
                            if log is not None:
                                log.add_luck(measured.drawn, measured.luck)
                    except MonteCristoError as error:
                        raise IllegalAction(f"agent {agent.name}: {error}") from None
            active = active[current[active] != NONE]
        return _count_decisions(games, asked, random[objects]), luck, losses, seconds


def _ranks(rewards: NDArray[np.float32]) -> NDArray[np.float32]:
    """Ranks from rewards that run from +1 for the first to -1 for the last."""
    players = rewards.shape[1]
    ranks: NDArray[np.float32] = ((players + 1) - (players - 1) * rewards) / 2
    return ranks


def _count_decisions(games: GameBatch, asked: NDArray[np.int32], random: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Decisions of every seat; those that the engine made are shared equally among the random seats."""
    unasked = games.states["decisions"] - asked.sum(axis=1)
    share = unasked / np.maximum(random.sum(axis=1), 1)
    counts: NDArray[np.float32] = (asked + random * share[:, None]).astype(np.float32)
    return counts


def _share_out(seconds: NDArray[np.float64], objects: NDArray[np.int64]) -> NDArray[np.float64]:
    """The seconds of each agent; those who are one object have an equal part each."""
    shared: NDArray[np.float64] = (seconds / np.bincount(objects))[objects]
    return shared
