"""Kinds of treasure are interchangeable: permuted games run side by side with the games they were made from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import ODD_RULES
from montecristo_env import GameBatch, InvalidArgument, Ruleset, actions, observation, symmetry
from montecristo_env.core.constants import KINDS, NONE, SIZES, Decision
from montecristo_env.core.jit import INTERPRETED

pytestmark = [pytest.mark.engine, pytest.mark.interpreted]

BY_TYPE = ("hands", "gathered", "dungeon_tokens", "unseen_cards", "card_discard", "bag", "token_discard", "offer")
SETTINGS = ("deck", "tokens")
NUMBERS = ("drawn_tokens", "taking", "slot_card", "bag_order")  # of cards and tokens, -1 for none
GAMES = 6 if INTERPRETED else 60


def permuted(games: GameBatch, permutations: NDArray[np.int64]) -> GameBatch:
    """The same games with the kinds of each permuted, in everything, hidden or not, and in the settings."""
    games = games.copy()
    states, index = games.states, np.arange(len(games))
    numbers = (permutations[:, :, None] * SIZES + np.arange(SIZES)).reshape(len(games), -1)
    for name in (*BY_TYPE, *SETTINGS):
        old = states[name].copy()
        for game in index:
            states[name][game][..., numbers[game]] = old[game]
    for name in NUMBERS:
        old = states[name].astype(np.int64)
        new = numbers[index.reshape(-1, *[1] * (old.ndim - 1)), np.maximum(old, 0)]
        states[name] = np.where(old == NONE, NONE, new)
    states["market"] = np.take_along_axis(permutations, states["market"].astype(np.int64), axis=1)
    old = states["left_over_bags"].copy()
    for game in index:
        states["left_over_bags"][game][..., permutations[game]] = old[game]
        states["legal"][game] = sum(1 << choice for choice in permuted_choices(games, game, permutations[game]))
    return games


def permuted_choices(games: GameBatch, game: int, permutation: NDArray[np.int64]) -> list[int]:
    """The legal choices in their block after the kinds were permuted."""
    if games.over[game]:
        return []
    first = actions.FIRST[games.states["decision"][game]]
    legal = games.legal_actions(game)
    return [actions.encode(with_kind_permuted(action, permutation)) - int(first) for action in legal]


def with_kind_permuted(action: actions.Action, permutation: NDArray[np.int64]) -> actions.Action:
    match action:
        case actions.Deal(piece) | actions.Discard(piece) | actions.Take(piece) | actions.Pay(piece) if (
            piece.kind != NONE
        ):
            return type(action)(piece._replace(kind=int(permutation[piece.kind])))  # type: ignore[arg-type]
        case actions.MoveMarker(kind, by):
            return actions.MoveMarker(int(permutation[kind]), by)
    return action


def some_permutations(size: int, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permuted(np.tile(np.arange(KINDS), (size, 1)), axis=1)


@pytest.mark.parametrize("ruleset", [Ruleset(), ODD_RULES], ids=["default", "odd"])
def test_permuted_games_stay_the_same_game_at_every_step(ruleset: Ruleset) -> None:
    games = GameBatch(GAMES, np.resize([2, 3, 4], GAMES), seed=5, ruleset=ruleset)
    permutations = some_permutations(GAMES)
    others = permuted(games, permutations)
    shuffled, seen_decisions = 0, set()
    for _ in range(40 if INTERPRETED else 400):
        for seat in (None, 0, 1):
            counts = games.observe(player=seat)
            np.testing.assert_array_equal(
                symmetry.permute_observations(counts, permutations), others.observe(player=seat)
            )
        np.testing.assert_array_equal(symmetry.permute_masks(games.action_mask(), permutations), others.action_mask())
        seen_decisions |= set(games.states["decision"][~games.over].tolist())
        chances = games.states["shuffles"] + games.states["refills"]
        acts = games.sample_actions()
        going_on = ~games.over
        games.step(acts)
        others.step(symmetry.permute_actions(np.maximum(acts, 0), permutations))
        assert (games.current_player == others.current_player).all() and (games.scores == others.scores).all()
        # How cards and tokens are shuffled depends on their numbers: from then on it is another game.
        anew = np.flatnonzero(games.states["shuffles"] + games.states["refills"] != chances)
        shuffled += anew.size
        if anew.size:
            others.states[anew] = permuted(games[anew], permutations[anew]).states
        if not going_on.any():
            break
    assert shuffled < 40 * GAMES
    assert INTERPRETED or seen_decisions == set(range(Decision.OVER))


def test_in_canonical_order_kinds_stand_as_in_the_market() -> None:
    games = GameBatch(GAMES, 3, seed=1)
    games.play_random(30)
    counts = games.observe()
    order = symmetry.market_order(counts)
    assert (np.take_along_axis(order, games.states["market"].astype(np.int64), axis=1) == np.arange(KINDS)).all()
    canonical = symmetry.permute_observations(counts, order)
    assert (observation.view(canonical, "market") == np.eye(KINDS)).all()
    np.testing.assert_array_equal(symmetry.market_order(counts * observation.SCALE), order)
    others = permuted(games, some_permutations(GAMES)).observe()
    np.testing.assert_array_equal(symmetry.permute_observations(others, symmetry.market_order(others)), canonical)


def test_inverse_permutations_undo_observations_masks_and_actions() -> None:
    games = GameBatch(GAMES, 4, seed=2)
    games.play_random(40)
    permutations = some_permutations(GAMES)
    back = symmetry.inverse(permutations)
    scaled = games.observe() * observation.SCALE
    there = symmetry.permute_observations(scaled, permutations)
    assert (there != scaled).any() and there.dtype == np.float32
    np.testing.assert_array_equal(symmetry.permute_observations(there, back), scaled)
    for masks in (games.action_mask(), games.action_mask().astype(bool), games.action_mask().astype(np.float32)):
        moved = symmetry.permute_masks(masks, permutations)
        assert moved.dtype == masks.dtype
        np.testing.assert_array_equal(symmetry.permute_masks(moved, back), masks)
    codes = np.arange(actions.COUNT)
    one = permutations[0]
    np.testing.assert_array_equal(
        symmetry.permute_actions(symmetry.permute_actions(codes, one), symmetry.inverse(one)), codes
    )


def test_actions_name_the_permuted_kind_and_nothing_else_changes() -> None:
    permutation = np.array([3, 0, 4, 2, 1])
    codes = symmetry.permute_actions(np.arange(actions.COUNT), permutation)
    expected = [with_kind_permuted(actions.decode(code), permutation) for code in range(actions.COUNT)]
    assert [actions.decode(code) for code in codes] == expected
    assert sum(codes != np.arange(actions.COUNT)) == 4 * KINDS * SIZES + 2 * KINDS


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: symmetry.market_order(np.zeros(observation.SIZE, np.int8)),
            r"shape \(N, \d+\), but are int8 of shape",
        ),
        (lambda: symmetry.market_order(np.zeros((2, 9), np.int8)), "observations must be int8 or float32 of shape"),
        (lambda: symmetry.permute_observations(blank(np.float64), range(5)), "but are float64"),
        (lambda: symmetry.permute_observations(blank(np.int8), [0, 1, 2, 3, 3]), "each of the kinds 0 to 4 once"),
        (lambda: symmetry.permute_observations(blank(np.int8), [0, 1, 2, 3]), r"shape \(5,\) or \(N, 5\)"),
        (lambda: symmetry.permute_observations(blank(np.int8), np.eye(5)), "must be whole numbers"),
        (
            lambda: symmetry.permute_observations(blank(np.int8), [range(5)] * 2),
            "one for each of 3 rows, but there are 2",
        ),
        (lambda: symmetry.permute_actions([146], range(5)), "from 0 to 145"),
        (lambda: symmetry.permute_actions([-1], range(5)), "from 0 to 145"),
        (lambda: symmetry.permute_actions([0.5], range(5)), "actions must be whole numbers"),
    ],
)
def test_what_cannot_be_permuted_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        wrong()


def blank(dtype: type) -> NDArray[Any]:
    return np.zeros((3, observation.SIZE), dtype)
