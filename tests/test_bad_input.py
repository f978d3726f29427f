"""Bad input raises a named error that says what was wrong and what is allowed, and changes nothing."""

from __future__ import annotations

import copy
import functools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import CODE, everything, random_games, share_small_batches, without_the_rights_of_root
from montecristo_env import (
    DamagedRecord,
    GameBatch,
    GameRecord,
    IllegalAction,
    InvalidArgument,
    InvalidNotation,
    InvalidPlayerCount,
    MonteCristoError,
    Ruleset,
    UnplayableRuleset,
    actions,
    make_agent,
    observation,
)
from montecristo_env.core.jit import INTERPRETED

pytestmark = [pytest.mark.engine, pytest.mark.interpreted]

TESTS = Path(__file__).parent
NOT_THERE = "montecristo has no such thing"


def refused(games: GameBatch, error: type[Exception], words: str, call: Callable[[], Any]) -> str:
    """The call raises this error with these words, and the batch is untouched."""
    before = everything(games)
    with pytest.raises(error, match=words) as caught:
        call()
    assert everything(games) == before
    assert isinstance(caught.value, MonteCristoError) and isinstance(caught.value, ValueError)
    return str(caught.value)


@pytest.fixture
def games() -> GameBatch:
    """Five games at different decisions, mixed player counts; they have paid rewards, so that losing them shows."""
    games = random_games(5, [2, 3, 4, 3, 2], seed=2, steps=30)
    games.rewards[:] = 0.5
    return games


# --- Actions ---------------------------------------------------------------------------------------------------------


def illegal_codes(games: GameBatch, game: int) -> list[int]:
    """Actions that are not legal now: one for another decision, and one for this decision, if all are not legal."""
    mask = games.action_mask()[game]
    block = actions.BLOCKS[games.public_state(game)["phase"]]
    others = [code for code in range(actions.COUNT) if code not in block]
    return [others[0], others[-1], *[code for code in block if not mask[code]][:1]]


def test_one_illegal_action_among_many_changes_no_game(games: GameBatch) -> None:
    kinds = set()
    for game in range(5):
        for code in illegal_codes(games, game):
            acts = games.copy().sample_actions()
            acts[game] = code
            message = refused(games, IllegalAction, f"game {game}: player", functools.partial(games.step, acts))
            assert f"{code} ({actions.decode(code)})" in message
            for legal in np.flatnonzero(games.action_mask()[game]):  # the legal ones are named
                assert f"{legal} ({actions.decode(int(legal))})" in message
            kinds.add(code in actions.BLOCKS[games.public_state(game)["phase"]])
    assert kinds == {False, True}


def test_an_illegal_action_is_named_by_its_game_where_only_some_rows_step(games: GameBatch) -> None:
    rows = [1, 4]
    acts = games.copy().sample_actions(rows=rows)
    acts[1] = np.flatnonzero(games.action_mask()[4] == 0)[-1]
    refused(games, IllegalAction, "game 4: player", lambda: games.step(acts, rows=rows))


@pytest.mark.skipif(INTERPRETED, reason="plain Python uses no threads")
def test_an_illegal_action_changes_nothing_where_threads_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in its own share nor in the others."""
    shared = share_small_batches(monkeypatch, rows_per_thread=256)
    games = random_games(1100, 3, seed=0, steps=50)
    games.threads = 2
    games = games.copy()
    for bad in (0, 300, 1099):
        acts = games.copy().sample_actions()
        acts[bad] = np.flatnonzero(games.action_mask()[bad] == 0)[0]
        step = functools.partial(games.step, acts)
        refused(games, IllegalAction, f"game {bad}: player", step)
    games.step(games.sample_actions())
    assert shared


def test_an_illegal_action_writes_nothing_into_a_record() -> None:
    games = GameBatch(3, 3, seed=0)
    record = GameRecord.record(games, 0)
    events = copy.deepcopy(record.events)
    acts = games.copy().sample_actions()
    acts[2] = CODE["keep order"]
    refused(games, IllegalAction, "game 2: player", lambda: games.step(acts))
    refused(games, InvalidArgument, "actions must", lambda: games.step(acts[:2]))
    assert record.events == events
    games.play_random(2000)
    assert record.result is not None and GameRecord.from_json(record.to_json()) == record


@pytest.mark.parametrize("code", [146, 1000, 2**31, 2**63 - 1, -1, -2, -146, -(2**31), -(2**63) + 1000])
def test_action_codes_out_of_range_are_refused(games: GameBatch, code: int) -> None:
    for row in range(5):
        acts = games.copy().sample_actions()
        acts[row] = code
        step = functools.partial(games.step, acts)
        message = refused(games, IllegalAction, f"game {row}: .*no action has this code", step)
        assert f"action {code} " in message


LOWEST_CODES = """
import numpy as np
from helpers import everything, random_games
from montecristo_env import IllegalAction, actions

games = random_games(5, [2, 3, 4, 3, 2], seed=2, steps=30)
before = everything(games)
for code in range(-(2**63), -(2**63) + 2 * actions.COUNT):
    for row in range(5):
        acts = games.copy().sample_actions()
        acts[row] = code
        try:
            games.step(acts)
        except IllegalAction as error:
            assert f"game {row}" in str(error) and str(code) in str(error)
        else:
            raise SystemExit(f"{code} was taken in game {row}")
assert everything(games) == before
"""


def test_the_lowest_codes_of_all_are_refused() -> None:
    """To subtract the start of a block from them wraps around, and a shift by the result can find a legal bit.

    In a process of its own: it crashed when they were taken.
    """
    folders = os.pathsep.join(filter(None, [str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH")]))
    env = os.environ | {"PYTHONPATH": folders}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOWEST_CODES], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("acts", "words"),
    [
        ([0, 0, 0, 0], r"shape \(5,\), one per game, but have \(4,\)"),
        ([0, 0, 0, 0, 0, 0], r"shape \(5,\).*\(6,\)"),
        ([[0], [0], [0], [0], [0]], r"shape \(5,\).*\(5, 1\)"),
        (0, r"shape \(5,\).*\(\)"),
        ([], r"shape \(5,\).*\(0,\)"),
        (None, r"shape \(5,\)"),
        ([0.0, 0.0, 0.0, 0.0, 0.0], "whole numbers, but are float64"),
        (np.zeros(5, np.float32), "whole numbers, but are float32"),
        (np.zeros(5, np.bool_), "whole numbers, but are bool"),
        (np.zeros(5, object), "whole numbers, but are object"),
        ([2**70] * 5, "whole numbers, but are object"),
        (["enter A"] * 5, "whole numbers, but are <U7"),
        ([None] * 5, "whole numbers, but are object"),
    ],
)
def test_actions_of_the_wrong_shape_or_type_are_refused(games: GameBatch, acts: Any, words: str) -> None:
    refused(games, InvalidArgument, words, lambda: games.step(acts))


def test_ragged_actions_are_refused(games: GameBatch) -> None:
    refused(games, InvalidArgument, "actions", lambda: games.step([[0], [0, 1], 0, 0, 0]))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint8, np.uint64, ">i8"])
def test_actions_of_any_integer_type_are_taken(games: GameBatch, dtype: Any) -> None:
    other = games.copy()
    acts = other.sample_actions()
    games.sample_actions()
    games.step(acts.astype(dtype) if np.dtype(dtype).itemsize > 1 or acts.max() < 127 else acts)
    other.step(acts)
    assert games.states.tobytes() == other.states.tobytes()


def test_unsigned_actions_beyond_every_code_are_refused(games: GameBatch) -> None:
    acts = games.copy().sample_actions().astype(np.uint64)
    acts[2] = 2**64 - 1
    refused(games, IllegalAction, "game 2", lambda: games.step(acts))


# --- Rows ------------------------------------------------------------------------------------------------------------

BAD_ROWS: list[tuple[Any, str]] = [
    ([0, 5], "rows must be from 0 to 4, but are 0 to 5"),
    ([-1, 2], "rows must be from 0 to 4, but are -1 to 2"),
    (5, "from 0 to 4"),
    (-1, "from 0 to 4"),
    (2**62, "from 0 to 4"),
    ([True, False], r"mask of rows must have the shape \(5,\), but has \(2,\)"),
    (np.ones(6, np.bool_), r"shape \(5,\), but has \(6,\)"),
    ([[0, 1], [2, 3]], "one dimension"),
    ([0.0, 1.0], "whole numbers"),
    (["a"], "whole numbers"),
    ([None], "whole numbers"),
]
BAD_ORDER: list[tuple[Any, str]] = [([1, 1], "increasing, each given once"), ([3, 2], "increasing, each given once")]


@pytest.mark.parametrize(("rows", "words"), [*BAD_ROWS, *BAD_ORDER])
def test_bad_rows_are_refused(games: GameBatch, rows: Any, words: str) -> None:
    refused(games, InvalidArgument, words, lambda: games.step([0, 0], rows=rows))
    refused(games, InvalidArgument, words, lambda: games.sample_actions(rows=rows))
    refused(games, InvalidArgument, words, lambda: games.observe(rows=rows))
    refused(games, InvalidArgument, words, lambda: games.action_mask(rows=rows))
    refused(games, InvalidArgument, words, lambda: games.play_random(1, rows=rows))
    refused(games, InvalidArgument, words, lambda: games.reset(rows=rows))
    refused(games, InvalidArgument, words, lambda: games.reset(rows=rows, seed=0))


@pytest.mark.parametrize(("rows", "words"), BAD_ROWS)
def test_clones_of_rows_that_are_not_there_are_refused(games: GameBatch, rows: Any, words: str) -> None:
    refused(games, InvalidArgument, words, lambda: games[rows])


def test_rows_of_large_or_odd_numbers_are_refused(games: GameBatch) -> None:
    refused(games, InvalidArgument, "rows", lambda: games.step([0], rows=np.array([2**63 + 1], np.uint64)))
    refused(games, InvalidArgument, "rows", lambda: games.observe(rows=[2**70]))
    refused(games, InvalidArgument, "rows", lambda: games.observe(rows=[[0], [1, 2]]))


@pytest.mark.parametrize("game", [5, -1, 1.0, "0", None, [0], 2**70])
def test_a_game_that_is_not_there_is_refused(games: GameBatch, game: Any) -> None:
    for call in (games.public_state, games.legal_actions, lambda game: games.add_listener(game, None)):
        refused(games, InvalidArgument, "a game is a whole number from 0 to 4, not", lambda call=call: call(game))


@pytest.mark.parametrize("steps", ["x", None, 2.5, [3], 2**70])
def test_a_number_of_random_steps_that_is_none_is_refused(games: GameBatch, steps: Any) -> None:
    refused(games, InvalidArgument, "steps must", lambda: games.play_random(steps))


# --- Making batches --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "num_players",
    [1, 5, 0, -2, 2**40, 2.0, "2", None, [2, 3], [[2, 2, 2]], [2, 2, 5], [2, 1, 2], [2.0, 2.0, 2.0], True],
)
def test_player_counts_other_than_2_to_4_are_refused(num_players: Any) -> None:
    with pytest.raises(InvalidPlayerCount, match=r"2 to 4 players can play|a whole number or an array of 3") as caught:
        GameBatch(3, num_players, seed=0)
    assert isinstance(caught.value, InvalidArgument)


def test_ragged_player_counts_are_refused() -> None:
    with pytest.raises(InvalidPlayerCount):
        GameBatch(2, [[2], [2, 3]], seed=0)


@pytest.mark.parametrize(
    "seed",
    [-1, -(2**70), 1.5, "7", [1, 2], [1, 2, 3, 4], [1, -2, 3], [1.0, 2.0, 3.0], [[1, 2, 3]], ["a", "b", "c"], {}],
)
def test_bad_seeds_are_refused(games: GameBatch, seed: Any) -> None:
    with pytest.raises(InvalidArgument, match="seed must"):
        GameBatch(3, 2, seed=seed)
    refused(games, InvalidArgument, "seed must", lambda: games.reset(rows=[0, 1, 2], seed=seed))


def test_seeds_too_large_for_64_bits_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="seed must"):
        GameBatch(3, 2, seed=[1, 2, 2**64])


@pytest.mark.parametrize(
    "seed", [0, 2**64, 2**200, np.int64(3), np.uint64(2**63), np.array([0, 1, 2**64 - 1], np.uint64), (4, 5, 6)]
)
def test_good_seeds_are_taken(seed: Any) -> None:
    assert GameBatch(3, 2, seed=seed).violations() == {}


@pytest.mark.parametrize("num_games", [0, -1, 1.0, "1", None, [1]])
def test_bad_sizes_are_refused(num_games: Any) -> None:
    with pytest.raises(InvalidArgument, match="num_games must be a whole number from 1"):
        GameBatch(num_games, 2, seed=0)


@pytest.mark.parametrize("reward", ["score", "", None, 0, ["win"]])
def test_unknown_rewards_are_refused(reward: Any) -> None:
    with pytest.raises(InvalidArgument, match="reward must be one of win, rank, margin"):
        GameBatch(1, 2, seed=0, reward=reward)


@pytest.mark.parametrize("threads", [0, -1])
def test_too_few_threads_are_refused(threads: int) -> None:
    with pytest.raises(InvalidArgument, match="threads must be at least 1"):
        GameBatch(1, 2, seed=0, threads=threads)


@pytest.mark.parametrize("threads", ["two", 1.5, [1]])
def test_threads_that_are_no_number_are_refused(threads: Any) -> None:
    with pytest.raises(InvalidArgument, match="threads must be"):
        GameBatch(1, 2, seed=0, threads=threads)


@pytest.mark.parametrize("ruleset", [40, ["target"], {"targets": 30}, "target", {"refill": "never"}])
def test_something_else_than_a_rule_set_is_refused(ruleset: Any) -> None:
    with pytest.raises(UnplayableRuleset, match=r"a rule set is|refill must be"):
        GameBatch(1, 2, seed=0, ruleset=ruleset)


# --- Observers and buffers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("player", "words"),
    [
        (2, "player 2 does not sit in game 0: seats are 0 to 1"),
        (3, "player 3 does not sit in game 0: seats are 0 to 1"),
        (4, "player 4 does not sit in game 0"),
        (-1, "player -1 does not sit in game 0"),
        ([0, 1, 2, 3, 0], "player 3 does not sit in game 3: seats are 0 to 2"),
        ([0, 0, 0, 0, 2], "player 2 does not sit in game 4: seats are 0 to 1"),
        ([0, 1], "player must be a seat or 5 of them"),
        ([[0], [0], [0], [0], [0]], "player must be a seat or 5 of them"),
        (0.0, "player must be a seat"),
        ("0", "player must be a seat"),
        ([True] * 5, "player must be a seat"),
    ],
)
def test_absent_observers_are_refused(games: GameBatch, player: Any, words: str) -> None:
    refused(games, InvalidArgument, words, lambda: games.observe(player=player))
    refused(games, InvalidArgument, words, lambda: games.play_random(1, until=player))


def test_an_absent_observer_of_some_rows_is_named_with_their_game(games: GameBatch) -> None:
    refused(games, InvalidArgument, "player 3 does not sit in game 3", lambda: games.observe(player=3, rows=[2, 3]))
    games.observe(player=3, rows=[2])


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


BUFFERS: list[tuple[str, tuple[int, ...], type, Callable[[GameBatch, Any], Any]]] = [
    ("observe", (5, observation.SIZE), np.int8, lambda games, out: games.observe(out=out)),
    ("masks", (5, actions.COUNT), np.int8, lambda games, out: games.observe(masks=out)),
    ("action_mask", (5, actions.COUNT), np.int8, lambda games, out: games.action_mask(out=out)),
    ("sample_actions", (5,), np.int64, lambda games, out: games.sample_actions(out=out)),
]


@pytest.mark.parametrize(("name", "shape", "dtype", "call"), BUFFERS, ids=[buffer[0] for buffer in BUFFERS])
def test_bad_buffers_are_refused(
    games: GameBatch, name: str, shape: tuple[int, ...], dtype: Any, call: Callable[[GameBatch, Any], Any]
) -> None:
    wanted = re.escape(f"out must be an array of {np.dtype(dtype)} of shape {shape}, but is ")
    wrong_dtype = np.float64 if dtype is np.int8 else np.int32
    for out in (
        np.zeros(shape, wrong_dtype),
        np.zeros(shape, np.uint8),
        np.zeros(shape, np.dtype(dtype).newbyteorder()) if dtype is np.int64 else np.zeros(shape, np.bool_),
        np.zeros((4, *shape[1:]), dtype),
        np.zeros((6, *shape[1:]), dtype),
        np.zeros((*shape, 1), dtype),
        np.zeros((), dtype),
        np.zeros(shape, dtype).tolist(),
    ):
        refused(games, InvalidArgument, wanted, lambda out=out: call(games, out))
    strided = np.zeros((*shape, 2), dtype)[..., 0]
    for out in (strided, read_only(np.zeros(shape, dtype))):
        refused(games, InvalidArgument, "out must be contiguous and writeable", lambda out=out: call(games, out))


def test_buffers_in_column_order_are_refused(games: GameBatch) -> None:
    out = np.zeros((5, observation.SIZE), np.int8, order="F")
    refused(games, InvalidArgument, "out must be contiguous", lambda: games.observe(out=out))


def test_unknown_fields_of_the_observation_are_refused(games: GameBatch) -> None:
    refused(
        games, InvalidArgument, "no field is called 'hand': .*hands", lambda: observation.view(games.observe(), "hand")
    )


# --- Actions by name -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [-1, actions.COUNT, 10**9, 1.5, "1", None])
def test_codes_of_no_action_are_not_decoded(code: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"no action has the code {code}: codes are 0 to {actions.COUNT - 1}"):
        actions.decode(code)


@pytest.mark.parametrize("action", [None, "enter A", actions.Enter(6), actions.Enter([]), actions.Take(actions.WILD)])
def test_what_is_no_action_is_not_encoded(action: Any) -> None:
    with pytest.raises(InvalidArgument, match="is no action of this game"):
        actions.encode(action)


@pytest.mark.parametrize(
    "text", ["", "   ", "enter G", "enter", "fly A", "take W", "deal W", "marble chest 0 down 1", "1", None, 5, []]
)
def test_what_is_no_notation_is_not_parsed(text: Any) -> None:
    with pytest.raises(InvalidNotation, match="is no action; allowed are"):
        actions.parse(text)


def test_a_wrong_notation_is_told_the_ones_that_begin_alike() -> None:
    with pytest.raises(InvalidNotation, match=r"enter A, enter B, enter C, enter D, enter E, enter F"):
        actions.parse("enter G")


@pytest.mark.parametrize("text", ["", "R", "R4", "R0", "X1", "R11", "r1", None, 5, ["R", "1"], "W"])
def test_what_is_no_piece_is_not_parsed(text: Any) -> None:
    with pytest.raises(InvalidNotation, match=r"is not a card: a kind \(G, R, S, E, D\) and its bags \(1 to 3\)"):
        actions.parse_card(text)
    with pytest.raises(InvalidNotation, match=r"is not a token: a kind \(G, R, S, E, D\) and its value \(1 to 3\)"):
        actions.parse_token(text)


# --- Rule sets -------------------------------------------------------------------------------------------------------

FIVE = ((2, 2, 2),) * 5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        *(
            (setting, words)
            for name in ("deck", "tokens")
            for setting, words in [
                ({name: ((2, 2, 2),) * 4}, f"{name} must be 5 rows"),
                ({name: ((2, 2, 2),) * 6}, f"{name} must be 5 rows"),
                ({name: 30}, f"{name} must be 5 rows"),
                ({name: None}, f"{name} must be 5 rows"),
                ({name: ((2, 2),) * 5}, rf"{name}\[0\] must be 3 whole numbers"),
                ({name: (6, 6, 6, 6, 6)}, rf"{name}\[0\] must be 3 whole numbers"),
                ({name: ((2, 2, 2),) * 4 + ((2, 2, 1),)}, f"{name} must be 30 in all, but is 29"),
                ({name: ((2, 2, 2),) * 4 + ((2, 2, 3),)}, f"{name} must be 30 in all, but is 31"),
                ({name: ((-2, 6, 2), *FIVE[1:])}, rf"{name}\[0\]\[0\] must be a whole number from 0 to 30, but is -2"),
                ({name: ((2.0, 2, 2), *FIVE[1:])}, rf"{name}\[0\]\[0\] must be a whole number"),
                ({name: ((True, 3, 2), *FIVE[1:])}, rf"{name}\[0\]\[0\] must be a whole number"),
                ({name: (("2", 2, 2), *FIVE[1:])}, rf"{name}\[0\]\[0\] must be a whole number"),
            ]
        ),
        ({"card_adventurers": (3, 2)}, "card_adventurers must be 3 whole numbers from 0 to 9"),
        ({"card_adventurers": 3}, "card_adventurers must be 3 whole numbers"),
        ({"card_adventurers": (3, 2, -1)}, r"card_adventurers\[2\] must be a whole number from 0 to 9, but is -1"),
        ({"card_adventurers": (3, 2, 10)}, r"card_adventurers\[2\] must be a whole number from 0 to 9, but is 10"),
        ({"market": (3, 2, 2, 1)}, "market must be 5 whole numbers from 1 to 3"),
        ({"market": (3, 2, 2, 1, 0)}, r"market\[4\] must be a whole number from 1 to 3, but is 0"),
        ({"market": (4, 2, 2, 1, 1)}, r"market\[0\] must be a whole number from 1 to 3, but is 4"),
        ({"market": (2, 3, 2, 1, 1)}, "market must not increase from best to worst"),
        ({"target": 0}, "target must be a whole number from 1 to 10000, but is 0"),
        ({"target": 10_001}, "target must be a whole number from 1 to 10000"),
        ({"target": 40.0}, "target must be a whole number"),
        ({"target": None}, "target must be a whole number"),
        ({"target": float("nan")}, "target must be a whole number"),
        ({"round_limit": 0}, "round_limit must be a whole number from 1 to 10000, but is 0"),
        ({"round_limit": 10_001}, "round_limit must be a whole number"),
        ({"round_limit": "100"}, "round_limit must be a whole number"),
    ],
)
def test_rule_sets_that_cannot_be_played_are_refused(settings: dict[str, Any], words: str) -> None:
    """§1.9."""
    with pytest.raises(UnplayableRuleset, match=words):
        Ruleset(**settings)
    with pytest.raises(UnplayableRuleset, match=words):
        Ruleset.from_dict(settings)


@pytest.mark.parametrize("settings", [None, [], "deck", {"decks": FIVE}, {"target": 40, NOT_THERE: 1}, {1: 2}])
def test_what_is_no_rule_set_is_refused(settings: Any) -> None:
    with pytest.raises(UnplayableRuleset, match="a rule set is a mapping with some of deck, card_adventurers"):
        Ruleset.from_dict(settings)


def test_the_extremes_of_a_rule_set_can_be_played() -> None:
    for ruleset in (
        Ruleset(target=1, round_limit=1),
        Ruleset(target=10_000, round_limit=10_000),
        Ruleset(deck=((30, 0, 0), *((0, 0, 0),) * 4), tokens=((0, 0, 0),) * 4 + ((0, 0, 30),)),
        Ruleset(card_adventurers=(0, 0, 0), market=(1, 1, 1, 1, 1)),
        Ruleset(card_adventurers=np.array([9, 9, 9]), market=[3, 3, 3, 3, 3], deck=np.full((5, 3), 2)),
    ):
        games = GameBatch(3, [2, 3, 4], seed=0, ruleset=ruleset)
        games.play_random(60)
        assert games.violations() == {}
        assert Ruleset.from_dict(json.loads(json.dumps(ruleset.to_dict()))) == ruleset and hash(ruleset)


# --- Recording -------------------------------------------------------------------------------------------------------


def test_only_a_game_that_has_not_begun_can_be_followed(games: GameBatch) -> None:
    refused(games, InvalidArgument, "game 0 has begun", lambda: GameRecord.record(games, 0))
    refused(games, InvalidArgument, "from 0 to 4", lambda: GameRecord.record(games, 5))
    fresh = GameBatch(1, 3, seed=0)
    refused(fresh, InvalidArgument, "players must be 3 names", lambda: GameRecord.record(fresh, 0, players=["a", "b"]))
    for names in ([1, 2, 3], ["a", "b", None]):  # no program could read such a record again
        follow = functools.partial(GameRecord.record, fresh, 0, players=names)
        refused(fresh, InvalidArgument, "players must be 3 names", follow)
    other = fresh.resample_hidden(np.random.default_rng(0))
    refused(other, InvalidArgument, "did not start from its seed", lambda: GameRecord.record(other, 0))


# --- Damaged records -------------------------------------------------------------------------------------------------

Document = dict[str, Any]


def finished_record() -> GameRecord:
    """A short game with every kind of event: forced moves, draws, a reshuffle, wild bags, tokens, a refill."""
    games = GameBatch(1, 4, seed=8, ruleset=Ruleset(target=30, round_limit=12))
    record = GameRecord.record(games)
    rng = np.random.default_rng(8)
    while not games.over[0]:
        codes = np.flatnonzero(games.action_mask()[0])
        wanted = [code for code in (CODE["visit wild"], CODE["return chest"]) if code in codes]
        games.step([wanted[0] if wanted else rng.choice(codes)])
    return record


@pytest.fixture(scope="module")
def record() -> GameRecord:
    record = finished_record()
    kinds = {"forced" if "forced" in event else next(iter(event)) for event in record.events}
    assert kinds == {"player", "forced", "draw", "shuffle", "wild", "tokens", "refill"}
    return record


@pytest.fixture
def document(record: GameRecord) -> Document:
    return dict(json.loads(record.to_json()))


def damaged(document: Document, words: str) -> None:
    with pytest.raises(DamagedRecord, match=words):
        GameRecord.from_json(json.dumps(document))


def place(document: Document, key: str, nth: int = 0) -> int:
    """The index of the n-th event with this key."""
    return [i for i, event in enumerate(document["events"]) if key in event][nth]


def test_a_sound_record_is_read(record: GameRecord, document: Document) -> None:
    assert GameRecord.from_json(record.to_json()) == record
    assert GameRecord.from_json(json.dumps(document)) == record


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "5", '"montecristo-record"', "{}", '{"format": "other"}', "\ufeff{}"]
)
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(DamagedRecord, match=r'not a JSON document|"format" must be "montecristo-record"'):
        GameRecord.from_json(text)


def test_a_truncated_record_is_refused(record: GameRecord) -> None:
    text = record.to_json()
    for end in range(0, len(text) - 2, 7 if not INTERPRETED else 997):
        with pytest.raises(DamagedRecord, match="not a JSON document"):
            GameRecord.from_json(text[:end])


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": ' * 50_000])
def test_a_document_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(DamagedRecord):
        GameRecord.from_json(text)


def test_a_document_with_an_endless_number_is_refused(document: Document) -> None:
    text = json.dumps(document).replace('"seed": ', '"seed": ' + "9" * 5000)
    with pytest.raises(DamagedRecord):
        GameRecord.from_json(text)


@pytest.mark.parametrize("version", [0, 1, 3, "2", None, [2]])
def test_another_version_is_refused(document: Document, version: Any) -> None:
    damaged(document | {"version": version}, "record version .* is unknown; this program reads 2")


@pytest.mark.parametrize("name", ["num_players", "players", "ruleset", "seed", "setup", "events", "result"])
def test_a_missing_part_is_named(document: Document, name: str) -> None:
    del document[name]
    damaged(document, f"the record lacks {name}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("num_players", value) for value in (1, 5, 3, 2, "4", None, [4], 4.0, True, {}, [[4], 4])),
        *(("players", value) for value in (None, [], ["a"] * 3, ["a", "b", "c", 4], 4, "abcd?", {})),
        *(("ruleset", value) for value in (None, [], {"target": 0}, {"other": 1}, {"deck": []}, 7)),
        *(("seed", value) for value in ("seed", -1, 1.5, [], {}, True)),
        *(("setup", value) for value in (None, [], {}, "setup", 5)),
        *(("events", value) for value in (None, {}, 5, "events", [None], [5], ["x"], [[]], [{}], True, {"0": {}})),
        *(("result", value) for value in (None, {}, [], 5, {"scores": []})),
    ],
)
def test_a_wrong_part_is_refused(document: Document, name: str, value: Any) -> None:
    damaged(document | {name: value}, ".")


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("lanes", [[0, 1, 2, 3]] * 3, "lanes must be 4 lists of 4 seats"),
        ("lanes", [[0, 1, 2, 2]] * 4, "lanes must be 4 lists of 4 seats"),
        ("lanes", [[0, 1, 2, 4]] * 4, "lanes must be 4 lists of 4 seats"),
        ("lanes", [[0, 1, 2]] * 4, "lanes must be 4 lists of 4 seats"),
        ("lanes", None, "setup"),
        ("lanes", [None] * 4, "setup"),
        ("lanes", [[[], [], [], []]] * 4, "setup"),
        ("market", "GRSE", "market must be the letters GRSED"),
        ("market", "GRSEE", "market must be the letters GRSED"),
        ("market", "GRSEX", "market must be the letters GRSED"),
        ("market", 5, "setup"),
        ("market", None, "setup"),
        ("dungeons", ["G1"] * 5, "dungeons must be 6 tokens"),
        ("dungeons", ["G1"] * 6, "more tokens of one sort than there are"),
        ("dungeons", ["G1", "G1", "R1", "R1", "S1", "X1"], "is not a token"),
        ("dungeons", ["G1", "G1", "R1", "R1", "S1", None], "is not a token"),
        ("dungeons", None, "setup"),
        ("dungeons", 6, "setup"),
    ],
)
def test_a_bad_setup_is_refused(document: Document, part: str, value: Any, words: str) -> None:
    document["setup"][part] = value
    damaged(document, words)


def test_a_missing_part_of_the_setup_is_refused(document: Document) -> None:
    del document["setup"]["market"]
    damaged(document, "setup")


def test_a_setup_of_two_players_has_six_marbles_each() -> None:
    """§2.1: every lane with both colours is not enough."""
    games = GameBatch(1, 2, seed=0)
    document = json.loads(GameRecord.record(games).to_json())
    document["setup"]["lanes"] = [[0, 0, 1]] * 4
    damaged(document, "setup: .*marbles")


def test_an_unknown_move_is_named(document: Document) -> None:
    for move in ("fly A", "", None, 5, [], {}):
        index = place(document, "move", 10)
        document["events"][index]["move"] = move
        damaged(document, f"event {index}: ")


def test_an_illegal_move_is_named(document: Document) -> None:
    index = place(document, "move", 10)
    move = "discard W" if document["events"][index]["move"] != "discard W" else "keep order"
    document["events"][index]["move"] = move
    damaged(document, f"event {index}: '{move}' is not legal in phase ")


def test_a_wrong_player_is_named(document: Document) -> None:
    for player in (3 - document["events"][place(document, "move", 5)]["player"], -1, 9, None, "0", []):
        broken = copy.deepcopy(document)
        index = place(document, "move", 5)
        broken["events"][index]["player"] = player
        damaged(broken, f"event {index}: must be ")


def test_a_move_without_a_player_is_refused(document: Document) -> None:
    index = place(document, "move", 5)
    del document["events"][index]["player"]
    damaged(document, f"event {index}: must be ")


def test_a_move_with_something_extra_or_with_true_for_a_number_is_refused(document: Document) -> None:
    for change in ({"shuffle": True}, {"wild": None}, {"player": False}, {"player": 0.0}, {"forced": 1}):
        broken = copy.deepcopy(document)
        forced = "forced" in change
        event = next(e for e in broken["events"] if e.get("player") == 0 and ("forced" in e) == forced)
        event.update(change)
        damaged(broken, r"event \d+: must be .*, but is")


def test_true_for_a_number_is_refused_in_events_of_chance_and_in_the_result(document: Document) -> None:
    broken = copy.deepcopy(document)
    event = next(e for e in broken["events"] if e.get("wild") in (0, 1))
    event["wild"] = bool(event["wild"])
    damaged(broken, r"event \d+: chance must be")
    document["result"]["truncated"] = int(document["result"]["truncated"])
    damaged(document, "result: must be")


def test_a_wrong_forced_flag_is_named(document: Document) -> None:
    """§11.4."""
    broken = copy.deepcopy(document)
    index = place(document, "forced")
    del broken["events"][index]["forced"]
    damaged(broken, f"event {index}: must be .*'forced': True")
    index = next(i for i, event in enumerate(document["events"]) if "move" in event and "forced" not in event)
    document["events"][index]["forced"] = True
    damaged(document, f"event {index}: must be ")


def test_a_missing_forced_move_is_refused(document: Document) -> None:
    """§11.4: in the middle, and at the end of a game that was not finished."""
    broken = copy.deepcopy(document)
    index = place(document, "forced", 1)
    del broken["events"][index]
    damaged(broken, "event ")
    index = next(i for i in range(len(document["events"])) if ends_before_forced(document["events"], i))
    document["events"] = document["events"][:index]
    damaged(document | {"result": None}, f"event {index}: a forced move is missing")


def ends_before_forced(events: list[Document], index: int) -> bool:
    return "forced" in events[index] and "move" in events[index - 1]


def test_impossible_draws_are_named(document: Document) -> None:
    """§10.1: cards that are not among the unseen ones; more or fewer than are drawn."""
    index = place(document, "draw", 1)
    draw = document["events"][index]["draw"]
    for cards in (
        [draw[0]] * 4,
        draw[:3],
        [*draw, draw[0]],
        [],
        ["X1", *draw[1:]],
        [*draw[:3], None],
        None,
        "R1",
        4,
        ["W"] * 4,
    ):
        document["events"][index]["draw"] = cards
        damaged(document, "event ")


def test_a_card_that_all_have_seen_cannot_be_drawn(document: Document) -> None:
    """§10.1: both copies lie face up."""
    draws = [card for event in document["events"][: place(document, "shuffle")] for card in event.get("draw", [])]
    twice = next(card for card in draws if draws.count(card) == 2)
    last = place(document, "draw", max(i for i, event in enumerate(drawn(document)) if i < 5))
    if twice in document["events"][last]["draw"]:
        twice = next(card for card in draws if draws.count(card) == 2 and card not in document["events"][last]["draw"])
    document["events"][last]["draw"][0] = twice
    damaged(document, "event ")


def drawn(document: Document) -> list[Document]:
    return [event for event in document["events"] if "draw" in event]


def test_impossible_tokens_are_named(document: Document) -> None:
    index = place(document, "tokens", 1)
    tokens = document["events"][index]["tokens"]
    for wrong in (
        [tokens[0]] * 3,
        tokens[:2],
        [*tokens, tokens[0]],
        [],
        ["X1", *tokens[1:]],
        None,
        "G1",
        3,
        [None] * 3,
    ):
        document["events"][index]["tokens"] = wrong
        damaged(document, f"event {index}: ")


@pytest.mark.parametrize("key", ["draw", "shuffle", "wild", "tokens", "refill"])
def test_a_missing_or_repeated_event_of_chance_is_refused(document: Document, key: str) -> None:
    index = place(document, key)
    missing = copy.deepcopy(document)
    del missing["events"][index]
    damaged(missing, "event ")
    document["events"].insert(index, document["events"][index])
    damaged(document, "event ")


@pytest.mark.parametrize(
    ("key", "event"),
    [
        ("wild", {"wild": 9}),
        ("wild", {"wild": None}),
        ("wild", {"wild": "0"}),
        ("wild", {"shuffle": True}),
        ("shuffle", {"shuffle": False}),
        ("shuffle", {"refill": True}),
        ("refill", {"refill": None}),
        ("draw", {"tokens": ["G1", "G1", "R1"]}),
        ("tokens", {"draw": ["G1", "R1"]}),
        ("tokens", {"other": 1}),
        ("tokens", {}),
        ("tokens", None),
        ("tokens", "tokens"),
        ("tokens", ["tokens"]),
        ("tokens", 3),
    ],
)
def test_a_wrong_event_of_chance_is_refused(document: Document, key: str, event: Any) -> None:
    document["events"][place(document, key)] = event
    damaged(document, "event ")


def test_events_with_something_extra_in_them_are_refused(document: Document) -> None:
    for key in ("draw", "tokens", "wild", "shuffle", "refill"):
        broken = copy.deepcopy(document)
        broken["events"][place(document, key)][NOT_THERE] = 1
        damaged(broken, "event ")


def test_moves_after_the_end_are_refused(document: Document) -> None:
    last = len(document["events"])
    document["events"].append({"player": 0, "move": "keep order"})
    damaged(document, f"event {last}: .* after the end of the game")


def test_chance_after_the_end_is_refused(document: Document) -> None:
    for event in ({"draw": ["G1"]}, {"tokens": ["G1", "G2", "G3"]}, {"shuffle": True}, {"wild": 0}, {"refill": True}):
        damaged(document | {"events": [*document["events"], event]}, "event ")


def test_a_wrong_result_is_named(document: Document) -> None:
    result = document["result"]
    for wrong in (
        result | {"scores": [0, 0, 0, 0]},
        result | {"winners": [0, 1, 2, 3]},
        result | {"truncated": not result["truncated"]},
        result | {NOT_THERE: 1},
        None,
    ):
        damaged(document | {"result": wrong}, "result: must be ")
    unfinished = document | {"events": document["events"][:-1]}
    damaged(unfinished, "result: must be None|event ")


def test_a_record_changed_by_hand_is_checked_too(record: GameRecord) -> None:
    broken = copy.deepcopy(record)
    broken.events[place(record.__dict__, "move", 3)]["player"] = 9
    with pytest.raises(DamagedRecord, match="event "):
        list(broken.replay())
    with pytest.raises(DamagedRecord, match="event "):
        broken.check()


# --- Fuzz ------------------------------------------------------------------------------------------------------------

JUNK: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    3,
    99,
    10**30,
    0.5,
    float("nan"),
    "",
    "R1",
    "W",
    "enter A",
    [],
    [0],
    ["R1"],
]
JUNK += [{}, {"move": "enter A"}, {"draw": ["R1"]}, {"tokens": ["R1", "R2", "R3"]}, [[]], {"a": {"b": []}}, "\ud800"]


def all_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside a JSON value."""
    if not isinstance(value, dict | list):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(found for key, inner in items for found in all_places(inner, (*path, key)))]


def damage(document: Any, rng: random.Random) -> None:
    """Replaces, deletes, repeats or exchanges something somewhere, more often outside the long list of events."""
    paths = [path for path in all_places(document) if path]
    outside = [path for path in paths if path[0] != "events" or len(path) == 1]
    path = rng.choice(outside if rng.random() < 0.3 else paths)
    *parents, key = path
    holder = document
    for parent in parents:
        holder = holder[parent]
    match rng.randrange(5):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case 2 if isinstance(holder, list) and len(holder) > 1:
            other = rng.randrange(len(holder))
            holder[key], holder[other] = holder[other], holder[key]
        case 3 if isinstance(holder, dict):
            holder[rng.choice(["move", "draw", "tokens", "wild", "shuffle", "player", "forced"])] = rng.choice(JUNK)
        case _:
            holder[key] = copy.deepcopy(rng.choice(JUNK))


def read_or_refuse(broken: str) -> GameRecord | None:
    """The record, or None if it is refused by name; it must say what the text says, and nothing else may be raised."""
    try:
        sound = GameRecord.from_json(broken)
    except DamagedRecord:
        return None
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}; reading {broken}") from error
    found, written = json.loads(sound.to_json()), json.loads(broken)
    for name in ("setup", "events", "result", "players"):
        assert json.dumps(found[name], sort_keys=True) == json.dumps(written[name], sort_keys=True), name
    return sound


def damage_at_random(record: GameRecord, seed: int, times: int) -> int:
    """Damages the JSON of a record so often; how often it was read all the same, with something else in it."""
    text = record.to_json()
    rng = random.Random(seed)
    changed = 0
    for _ in range(times):
        document = json.loads(text)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            damage(document, rng)
        changed += read_or_refuse(json.dumps(document)) not in (None, record)
    return changed


def damage_letters(record: GameRecord, seed: int, times: int) -> int:
    """The same with single letters."""
    text = record.to_json()
    rng = random.Random(seed)
    changed = 0
    for _ in range(times):
        where = rng.randrange(len(text))
        broken = text[:where] + rng.choice('0123456789GRSEDW[]{}",: \n\0é') + text[where + rng.randrange(2) :]
        changed += read_or_refuse(broken) not in (None, record)
    return changed


@pytest.mark.parametrize("damaging", [damage_at_random, damage_letters])
def test_a_record_damaged_at_random_is_read_as_it_stands_or_refused_by_name(
    record: GameRecord, damaging: Callable[[GameRecord, int, int], int]
) -> None:
    """Hardly any change is sound: what is dealt and decided depends on the rest."""
    times = 12 if INTERPRETED else 250
    changed = damaging(record, 0, times)
    assert INTERPRETED or changed <= 0.05 * times


# --- Files -----------------------------------------------------------------------------------------------------------


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_saved_record_is_read_again_and_nothing_else_is_left(record: GameRecord, tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    record.save(path)
    assert GameRecord.load(path) == record and GameRecord.load(str(path)) == record
    assert files(tmp_path) == ["game.json"]
    record.save(str(path))
    assert files(tmp_path) == ["game.json"]
    assert path.read_text(encoding="utf-8") == record.to_json()


def test_a_relative_name_without_a_folder_can_be_saved(
    record: GameRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record.save("game.json")
    assert files(tmp_path) == ["game.json"] and GameRecord.load("game.json") == record


@pytest.mark.parametrize("step", ["open", "fdopen", "fsync", "replace", "to_json"])
def test_a_save_that_fails_midway_keeps_the_older_file(
    record: GameRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The file is the old or the new one, never half of one; no temporary file is left behind."""
    path = tmp_path / "game.json"
    path.write_text("older", encoding="utf-8")

    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "no space left")

    if step == "to_json":
        monkeypatch.setattr(GameRecord, "to_json", fail)
    else:
        monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="no space left"):
        record.save(path)
    assert path.read_text(encoding="utf-8") == "older"
    assert files(tmp_path) == ["game.json"]


def test_a_folder_that_cannot_be_written_gives_the_error_of_the_system(record: GameRecord, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        record.save(tmp_path / "missing" / "game.json")
    (tmp_path / "file").write_text("older", encoding="utf-8")
    with pytest.raises((NotADirectoryError, FileNotFoundError)):  # the second on Windows
        record.save(tmp_path / "file" / "game.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises((IsADirectoryError, PermissionError)):  # the second on Windows
        record.save(tmp_path / "folder")
    assert files(tmp_path) == ["file", "folder"] and files(tmp_path / "folder") == []


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has other rights")
def test_a_forbidden_folder_keeps_the_older_file(record: GameRecord) -> None:
    with tempfile.TemporaryDirectory() as name:  # not below `tmp_path`, where nobody else may look
        folder = Path(name)
        path = folder / "game.json"
        path.write_text("older", encoding="utf-8")
        folder.chmod(0o555)
        try:
            with without_the_rights_of_root():
                assert path.read_text(encoding="utf-8") == "older"  # so it is not the folder above that is forbidden
                with pytest.raises(PermissionError):
                    record.save(path)
        finally:
            folder.chmod(0o700)
        assert path.read_text(encoding="utf-8") == "older" and files(folder) == ["game.json"]


def test_files_that_are_no_records_are_refused_with_their_name(record: GameRecord, tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    for content in (b"\xff\xfe\x00\x01", bytes(range(256)), b"", b"not json", record.to_json().encode()[:500], b"[1]"):
        path.write_bytes(content)
        with pytest.raises(DamagedRecord, match=re.escape(str(path))):
            GameRecord.load(path)
    with pytest.raises(FileNotFoundError):
        GameRecord.load(tmp_path / "missing.json")


# --- Agents ----------------------------------------------------------------------------------------------------------


def test_an_unknown_agent_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidArgument, match=r"no agent is called 'mtcs:50': there are .*; did you mean 'mcts'\?"):
        make_agent("mtcs:50")
    with pytest.raises(InvalidArgument, match="no agent is called 'xyz'") as caught:
        make_agent("xyz")
    assert "did you mean" not in str(caught.value)


def test_an_agent_whose_package_is_missing_says_what_to_install() -> None:
    """In a process of its own: modules that are imported twice in one leave others with the first of them."""
    program = (
        "import sys; sys.modules['safetensors'] = None\n"
        "import montecristo_env\n"
        "try:\n    montecristo_env.make_agent('ppo')\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert re.search(r"safetensors.*pip install 'montecristo-env\[arena\]'", done.stdout)
