"""What the tests of the framework shells share: players that never roll dice, transcripts of games, comparisons."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecristo_env import GameBatch, PublicView, Ruleset, actions, observation
from montecristo_env.games import seed_of_game

ENV_ID = "montecristo_env:MonteCristo-v0"
AEC_ID = "montecristo/montecristo-v0"
SHORT = Ruleset(round_limit=2)
"""Games that are cut off after two rounds: long enough for every kind of shell, short enough for many of them."""

_WEIGHTS = np.arange(1, 2 * observation.SIZE, 2, dtype=np.int64) * 7919


# --- Players ---------------------------------------------------------------------------------------------------------


def choose(observations: NDArray[np.int8], masks: NDArray[np.int8], salt: int = 0) -> NDArray[np.int64]:
    """A legal action for every row, picked by a checksum of what the player sees."""
    picks = (observations.astype(np.int64) @ _WEIGHTS + salt) % masks.sum(axis=1)
    order = np.cumsum(masks, axis=1, dtype=np.int64) - 1
    chosen: NDArray[np.int64] = ((order == picks[:, None]) & (masks == 1)).argmax(axis=1)
    return chosen


def counts(shares: NDArray[np.float32]) -> NDArray[np.int8]:
    """Scaled observations as counts again."""
    return np.rint(shares / observation.SCALE).astype(np.int8)


class ChecksumAgent:
    """Plays by `choose`: what it does follows from what it sees, in every interface."""

    def __init__(self, salt: int = 0) -> None:
        self.name, self.salt = f"checksum {salt}", salt

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return choose(games.observe(rows=rows), games.action_mask(rows=rows), self.salt)


class LowestAgent:
    """Plays the legal action with the lowest code."""

    name = "lowest"

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return games.action_mask(rows=rows).argmax(axis=1)


class RecordingAgent(LowestAgent):
    """Plays as `LowestAgent` and keeps which seats of which games it was asked to play, call by call."""

    def __init__(self) -> None:
        self.name = "recording"
        self.calls: list[list[tuple[int, int]]] = []

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        self.calls.append(list(zip(rows.tolist(), games.current_player[rows].tolist(), strict=True)))
        return super().act(games, rows)

    @property
    def played(self) -> set[tuple[int, int]]:
        """(game, seat) of every decision."""
        return {one for call in self.calls for one in call}


def legal_ones(masks: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """A random legal action for every row, 0 where there is none."""
    return np.array([rng.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in masks], np.int64)


def illegal_one(mask: NDArray[Any]) -> int:
    """An action that exists but is not legal now."""
    return int(np.flatnonzero(mask == 0)[0])


# --- Transcripts -----------------------------------------------------------------------------------------------------


@dataclass
class Moment:
    """One decision, or the end of a game, as `GameBatch` tells it."""

    player: int  # -1: the game is over
    seen: NDArray[np.int8]  # (players, SIZE), by every seat
    mask: NDArray[np.int8]
    action: int = -1


@dataclass
class Transcript:
    """A whole game: every decision, and how it ended."""

    moments: list[Moment] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminated: bool = False
    truncated: bool = False
    scores: list[int] = field(default_factory=list)
    winners: list[bool] = field(default_factory=list)

    @property
    def end(self) -> Moment:
        return self.moments[-1]

    def turns_of(self, seat: int) -> list[Moment]:
        """The decisions of one player."""
        return [moment for moment in self.moments if moment.player == seat]

    def outcome(self, seat: int) -> dict[str, Any]:
        """What the single-agent shells say at the end, worked out once more."""
        others = [score for player, score in enumerate(self.scores) if player != seat]
        return {
            "win": self.winners[seat] / max(1, sum(self.winners)),
            "score_margin": self.scores[seat] - max(others),
            "decisions": len(self.moments) - 1,
            "illegal_action": False,
        }


def transcripts(
    num_players: int, seeds: Sequence[int], games_each: int = 1, ruleset: Ruleset | None = None, reward: str = "win"
) -> list[list[Transcript]]:
    """Games that everybody plays by `choose`: for each seed its game, and those that follow it."""
    games = GameBatch(len(seeds), num_players, _game_seeds(seeds), ruleset, reward)
    told: list[list[Transcript]] = [[] for _ in seeds]
    for _ in range(games_each):
        fresh = [Transcript() for _ in seeds]
        while True:
            seen = np.stack([games.observe(player=seat) for seat in range(num_players)], axis=1)
            masks, players = games.action_mask(), games.current_player.copy()
            alive = np.flatnonzero(~games.over)
            acts = np.full(len(seeds), -1)
            acts[alive] = choose(games.observe(rows=alive), masks[alive])
            for row, transcript in enumerate(fresh):
                if not transcript.moments or transcript.end.player >= 0:
                    moment = Moment(int(players[row]), seen[row], masks[row], int(acts[row]))
                    transcript.moments.append(moment)
                    if moment.player < 0:
                        transcript.rewards = games.rewards[row, :num_players].tolist()
            if alive.size == 0:
                break
            games.step(acts[alive], alive)
        for row, transcript in enumerate(fresh):
            transcript.terminated, transcript.truncated = bool(games.terminated[row]), bool(games.truncated[row])
            transcript.scores = games.scores[row, :num_players].tolist()
            transcript.winners = games.winners[row, :num_players].tolist()
            told[row].append(transcript)
        games.reset()
    return told


def _game_seeds(seeds: Sequence[int]) -> NDArray[np.uint64]:
    """The seeds of the games that the shells deal for these seeds."""
    return np.array([seed_of_game(seed) for seed in seeds], np.uint64)


# --- Comparisons -----------------------------------------------------------------------------------------------------


def assert_same(found: Any, expected: Any, where: str = "") -> None:
    """Equal in value, shape, dtype and keys, all the way down."""
    if isinstance(expected, dict):
        assert isinstance(found, dict) and found.keys() == expected.keys(), f"{where}: {found} != {expected}"
        for key in expected:
            assert_same(found[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, tuple | list):
        assert type(found) is type(expected) and len(found) == len(expected), f"{where}: {found} != {expected}"
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{where}[{place}]")
    elif isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray), f"{where}: {type(found)}"
        assert found.dtype == expected.dtype and found.shape == expected.shape, f"{where}: {found} != {expected}"
        if expected.dtype == object:
            for place, (one, other) in enumerate(zip(found, expected, strict=True)):
                assert_same(one, other, f"{where}[{place}]")
        elif not np.array_equal(found, expected):  # quick; the other one explains
            np.testing.assert_array_equal(found, expected, err_msg=where)
    else:
        assert type(found) is type(expected) and found == expected, f"{where}: {found!r} != {expected!r}"


def scaled(seen: NDArray[np.int8]) -> NDArray[np.float32]:
    """What the shells show of these counts."""
    return seen * observation.SCALE


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a fresh interpreter, in which every warning is an error."""
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=600)


NO_MASK = np.zeros(actions.COUNT, np.int8)
