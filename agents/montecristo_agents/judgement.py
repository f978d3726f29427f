"""Who will win: chances of all players in a position, by what everybody can see.

A player's prospects are a weighted sum of what he has. The weights depend on the number of players and, linearly, on
how near the leader is to the target: marbles in the Treasure chest lane count little at first and most at the end. They
were fitted to the results of many games by `python -m montecristo_train.judgement`, at the beginning of rounds.
"""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from montecristo_agents import greedy
from montecristo_agents.outlook import all_hands, all_tokens, gained_by, market_word, scoring_round, some_dungeon_holds
from montecristo_env.agent import PublicView
from montecristo_env.core._jit import Library, kernel
from montecristo_env.core.constants import (
    DUNGEONS,
    KINDS,
    LANE_ROOM,
    LANES,
    MAX_PLAYERS,
    MIN_PLAYERS,
    SIZES,
    TREASURE_PLACES,
    Lane,
)
from montecristo_env.core.layout import STATE, Row, States
from montecristo_env.core.legal import NOTHING

FEATURES = (
    "points",
    "points in a scoring round now",
    "the same if a chest may bring it",
    "adventurers in the personal supply",
    "adventurers in Marseille",
    "adventurers in dungeons",
    "dungeons with adventurers",
    "cards",
    "wild bags",
    "bags",
    "bags times market value",
    *(f"marble {place} in lane {lane.name.lower()}" for lane in Lane for place in range(LANE_ROOM)),
)
"""What a player's prospects are made of; the places of marbles are counted from the bottom, which is 0."""
_FIRST_MARBLE = len(FEATURES) - LANES * LANE_ROOM
EARLY, LATE = range(2)  # what a feature weighs in any case, and what more when the leader is at the target
STAGES = ("early", "late")
WEIGHTS_FILE = Path(__file__).with_name("models") / "judgement.json"


def _read_weights() -> NDArray[np.float64]:
    """The weights by number of players, stage and feature."""
    kept = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    numbers = range(MIN_PLAYERS, MAX_PLAYERS + 1)
    return np.array([[[kept[str(n)][name][stage] for name in FEATURES] for stage in STAGES] for n in numbers])


_WEIGHTS = _read_weights()
_SMALLEST_REST = 1e-9  # of the win, that the judge leaves to the others
SOURCES = (__file__, str(WEIGHTS_FILE), *greedy.SOURCES)
"""The files that `judge` is made from: a library that uses it must name them."""
library = Library("the judge", *SOURCES)


@kernel
def points_soon(s: Row) -> tuple[int, bool]:
    """The points that a scoring round now would bring, for `describe`, and whether the next chest may bring it."""
    tokens = all_tokens(s)
    _, points, _ = scoring_round(s, market_word(s), all_hands(s), tokens)
    return points, some_dungeon_holds(tokens, TREASURE_PLACES - 1)


@kernel
def describe(s: Row, player: int, points: int, soon: bool, out: np.ndarray) -> None:
    """Writes the features of a player."""
    out[:] = 0.0
    out[0] = int(s.score[player])
    out[1] = gained_by(s, points, player)
    out[2] = out[1] if soon else 0.0
    out[3] = int(s.supply[player])
    out[4] = int(s.marseille[player])
    for dungeon in range(DUNGEONS):
        out[5] += int(s.crew[player, dungeon])
        out[6] += s.crew[player, dungeon] > 0
    out[7] = int(s.hand_size[player])
    out[8] = int(s.wilds[player])
    for space in range(KINDS):
        kind = int(s.market[space])
        for size in range(SIZES):
            bags = (size + 1) * int(s.hands[player, kind * SIZES + size])
            out[9] += bags
            out[10] += bags * int(s.market_values[space])
    for lane in range(LANES):
        for place in range(s.lane_size[lane]):
            if s.lanes[lane, place] == player + 1:
                out[_FIRST_MARBLE + lane * LANE_ROOM + place] = 1.0


@kernel
def progress(s: Row) -> float:
    """How near the leader is to the target, from 0 to 1."""
    most = 0
    for player in range(s.num_players):
        most = max(most, int(s.score[player]))
    return min(1.0, most / int(s.target))


@kernel
def judge(s: Row, features: np.ndarray, values: np.ndarray) -> None:
    """What share of the win every player may hope for; `features` is room for as many numbers as there are features."""
    players = int(s.num_players)
    if s.legal == NOTHING:
        winners = 0
        for player in range(players):
            winners += int(s.winners[player])
        for player in range(players):
            values[player] = s.winners[player] / winners
        return
    weights, late = _WEIGHTS[players - MIN_PLAYERS], progress(s)
    points, soon = points_soon(s)
    for player in range(players):
        describe(s, player, points, soon, features)
        prospects = 0.0
        for feature in range(features.size):
            prospects += features[feature] * (weights[EARLY, feature] + late * weights[LATE, feature])
        values[player] = prospects
    most = values[:players].max()
    total = 0.0
    for player in range(players):
        values[player] = np.exp(values[player] - most)
        total += values[player]
    for player in range(players):
        values[player] /= total


@kernel
def judge_with(s: Row, expected: float, features: np.ndarray, values: np.ndarray) -> None:
    """As `judge`, but the player on turn expects this reward: the others share the rest of the win as they would."""
    judge(s, features, values)
    if s.legal == NOTHING:
        return
    players, own = int(s.num_players), int(s.current_player)
    hoped = min(max((1 + (players - 1) * expected) / players, 0.0), 1.0)
    of_rest = (1 - hoped) / max(1 - values[own], _SMALLEST_REST)
    for player in range(players):
        values[player] *= of_rest
    values[own] = hoped


@library.entry_point
def judge_rows(states: States, values: np.ndarray) -> None:
    """The chances of all players of every row."""
    features = np.empty(len(FEATURES))
    for k in range(len(states)):
        judge(states[k], features, values[k])


@library.entry_point
def judge_rows_with(states: States, expected: np.ndarray, values: np.ndarray) -> None:
    """The same if the players on turn expect these rewards."""
    features = np.empty(len(FEATURES))
    for k in range(len(states)):
        judge_with(states[k], expected[k], features, values[k])


@library.entry_point
def describe_rows(states: States, features: np.ndarray, late: np.ndarray) -> None:
    """Features of all players and progress of every row."""
    for k in range(len(states)):
        s = states[k]
        late[k] = progress(s)
        points, soon = points_soon(s)
        for player in range(s.num_players):
            describe(s, player, points, soon, features[k, player])


def chances(
    games: PublicView, rows: NDArray[np.int64], expected: NDArray[np.float32] | None = None
) -> NDArray[np.float64]:
    """What share of the win every seat may hope for, 0 for absent ones, (K, 4).

    Args:
        games: a batch.
        rows: K of its games.
        expected: the rewards that the players on turn expect, if somebody knows better than the judge, (K,).
    """
    library.compile_once(_call_every_entry_point)
    states = games.public_rows(rows)
    values = np.zeros((states.size, MAX_PLAYERS))
    if expected is None:
        judge_rows(states, values)
    else:
        judge_rows_with(states, expected, values)
    return values


def describe_games(games: PublicView, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The features of every seat, (K, 4, features), and how near the leader is to the target, (K,)."""
    library.compile_once(_call_every_entry_point)
    states = games.public_rows(rows)
    features, late = np.zeros((states.size, MAX_PLAYERS, len(FEATURES))), np.zeros(states.size)
    describe_rows(states, features, late)
    return features, late


def _call_every_entry_point() -> None:
    states = np.zeros(1, STATE)
    states["num_players"], states["target"] = MIN_PLAYERS, 1
    states["winners"] = 1
    judge_rows(states, np.zeros((1, MAX_PLAYERS)))
    judge_rows_with(states, np.zeros(1, np.float32), np.zeros((1, MAX_PLAYERS)))
    describe_rows(states, np.zeros((1, MAX_PLAYERS, len(FEATURES))), np.zeros(1))
