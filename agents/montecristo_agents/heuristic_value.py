"""The heuristic value of a position: how likely each player is to win, by what everybody can see.

A softmax over the players of a weighted sum of what each of them has. The weights depend on the number of players and,
linearly, on how near the leader is to the target: marbles in the Treasure chest lane count little at first and most at
the end. They were fitted to the results of many games, at the beginning of rounds, by
`python -m montecristo_train.heuristic_value`.
"""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.scoring_forecast import (
    all_hands,
    all_tokens,
    gained_by,
    market_word,
    scoring_round,
    some_dungeon_holds,
)
from montecristo_env.agent import PublicView
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
from montecristo_env.core.jit import entry_point, kernel
from montecristo_env.core.layout import Float64Cube, Float64s, Float64Table, Row, States
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
"""What the weighted sum is made of; the places of marbles are counted from the bottom, which is 0."""
_FIRST_MARBLE = len(FEATURES) - LANES * LANE_ROOM
EARLY, LATE = range(2)  # what a feature weighs in any case, and what more when the leader is at the target
STAGES = ("early", "late")
WEIGHTS_FILE = Path(__file__).with_name("models") / "heuristic_value.json"


def _read_weights() -> NDArray[np.float64]:
    """The weights by number of players, stage and feature."""
    kept = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    numbers = range(MIN_PLAYERS, MAX_PLAYERS + 1)
    return np.array([[[kept[str(n)][name][stage] for name in FEATURES] for stage in STAGES] for n in numbers])


_WEIGHTS = _read_weights()


@kernel
def points_soon(s: Row) -> tuple[int, bool]:
    """The points of a scoring round now, for `write_features`, and whether the next chest may bring one."""
    tokens = all_tokens(s)
    _, points, _ = scoring_round(s, market_word(s), all_hands(s), tokens)
    return points, some_dungeon_holds(tokens, TREASURE_PLACES - 1)


@kernel
def write_features(s: Row, player: int, points: int, soon: bool, out: np.ndarray) -> None:
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
def evaluate(s: Row, features: np.ndarray, values: np.ndarray) -> None:
    """The share of the win that every player may expect; `features` is scratch space, one number per feature."""
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
        write_features(s, player, points, soon, features)
        logit = 0.0
        for feature in range(features.size):
            logit += features[feature] * (weights[EARLY, feature] + late * weights[LATE, feature])
        values[player] = logit
    most, total = -np.inf, 0.0
    for player in range(players):
        most = max(most, values[player])
    for player in range(players):
        values[player] = np.exp(values[player] - most)
        total += values[player]
    for player in range(players):
        values[player] /= total


@entry_point
def evaluate_rows(states: States, features: Float64s, values: Float64Table) -> None:
    """The win probabilities of all players of every row; `features` is room for those of one player."""
    for k in range(len(states)):
        evaluate(states[k], features, values[k])


@entry_point
def write_features_of_rows(states: States, features: Float64Cube, late: Float64s) -> None:
    """Features of all players and progress of every row."""
    for k in range(len(states)):
        s = states[k]
        late[k] = progress(s)
        points, soon = points_soon(s)
        for player in range(s.num_players):
            write_features(s, player, points, soon, features[k, player])


def win_probabilities(games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The share of the win that every seat may expect in these games, 0 for absent ones, (K, 4)."""
    states = games.public_rows(rows)
    values = np.zeros((states.size, MAX_PLAYERS))
    evaluate_rows(states, np.empty(len(FEATURES)), values)
    return values


def features_of(games: PublicView, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The features of every seat, (K, 4, features), and how near the leader is to the target, (K,)."""
    states = games.public_rows(rows)
    features, late = np.zeros((states.size, MAX_PLAYERS, len(FEATURES))), np.zeros(states.size)
    write_features_of_rows(states, features, late)
    return features, late
