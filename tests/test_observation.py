"""How observations are laid out: groups of rows that are alike, fields by name, scales."""

from __future__ import annotations

import numpy as np
import pytest

from montecristo_env import GameBatch, InvalidArgument, Ruleset, make_agent, observation
from montecristo_env.agent import PublicView
from montecristo_env.core.constants import KINDS
from montecristo_env.core.layout import STATE

ROWS = {"global": (), "players": (4,), "kinds": (5,), "dungeons": (6,), "pairs": (6, 5)}


def test_groups_are_contiguous_and_in_order() -> None:
    assert {name: group.axes for name, group in observation.GROUPS.items()} == ROWS
    bounds = [0, *(group.slice.stop for group in observation.GROUPS.values())]
    assert [group.slice.start for group in observation.GROUPS.values()] == bounds[:-1]
    assert bounds[-1] == observation.SIZE
    for group in observation.GROUPS.values():
        assert group.slice.stop - group.slice.start == np.prod((*group.axes, group.width))


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
@pytest.mark.parametrize("lead", [(), (7,), (2, 3)])
def test_entities_and_fields_are_views_for_any_leading_axes(dtype: type, lead: tuple[int, ...]) -> None:
    seen = np.random.default_rng(0).integers(0, 100, (*lead, observation.SIZE)).astype(dtype)
    every_other = np.stack([seen, seen], axis=-2)[..., 0, :]  # not contiguous
    for array in (seen, every_other):
        groups = observation.entities(array)
        for part, axes in zip(groups, ROWS.values(), strict=True):
            assert part.shape[:-1] == (*lead, *axes) and part.dtype == dtype and np.shares_memory(part, array)
        flat = [part.reshape(*lead, -1) for part in groups]
        np.testing.assert_array_equal(np.concatenate(flat, axis=-1), seen)
        for name, field in observation.FIELDS.items():
            part = observation.view(array, name)
            assert part.shape == (*lead, *field.shape) and np.shares_memory(part, array)
            group = groups[list(ROWS).index(field.group)]
            np.testing.assert_array_equal(part.ravel(), group[..., field.columns].ravel())


@pytest.mark.parametrize("shape", [(), (3,), (observation.SIZE, 2)])
def test_arrays_of_another_length_are_refused(shape: tuple[int, ...]) -> None:
    for look in (observation.entities, lambda seen: observation.view(seen, "hands")):
        with pytest.raises(InvalidArgument, match=f"must have {observation.SIZE} entries"):
            look(np.zeros(shape, np.int8))


def test_entities_of_tensors_are_views_too() -> None:
    torch = pytest.importorskip("torch")
    seen = torch.zeros(3, observation.SIZE)
    observation.entities(seen).pairs[1, 5, 4, 2] = 1
    assert seen[1, -1] == 1


def test_rows_of_players_and_of_all_others_begin_with_the_observer() -> None:
    games = GameBatch(30, 4, seed=0)
    games.play_random(60)
    for seat in range(4):
        seen = games.observe(player=seat)
        order = (seat + np.arange(4)) % 4
        np.testing.assert_array_equal(observation.view(seen, "scores"), games.scores[:, order])
        np.testing.assert_array_equal(
            observation.view(seen, "adventurers"), games.states["crew"][:, order].transpose(0, 2, 1)
        )
        hands = games.states["hands"].reshape(30, 4, KINDS, 3)[:, order]
        np.testing.assert_array_equal(observation.view(seen, "hands"), hands.transpose(0, 2, 1, 3))


def test_scores_and_rounds_that_do_not_fit_are_cut_off_at_127() -> None:
    games = GameBatch(1, 2, seed=0, ruleset=Ruleset(target=1000, round_limit=1000))
    games.states["score"][0, :2] = 126, 300
    seen = games.observe(player=0)[0]
    assert observation.view(seen, "scores").tolist() == [126, 127, 0, 0]
    assert observation.view(seen, "rounds_left").tolist() == [127]
    games.states["round_number"] = 990
    assert observation.view(games.observe()[0], "rounds_left").tolist() == [10]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_scaled_numbers_of_ordinary_games_use_the_range(players: int) -> None:
    """No field is squeezed towards zero, and few entries are far above 1."""
    games = GameBatch(256, players, seed=1)
    view, greedy, rows = PublicView(games), make_agent("greedy"), np.arange(256)
    seen = []
    for step in range(200):
        games.step(np.where(step % 6 == 0, games.sample_actions(), greedy.act(view, rows)), autoreset=True)
        if step > 60:
            seen.append(games.observe())
    counts = np.concatenate(seen)
    assert (counts >= 0).all() and (counts <= observation.HIGHEST).all()
    scaled = counts * observation.SCALE
    assert (scaled > 4).mean() < 1e-3
    for name, field in observation.FIELDS.items():
        found = (
            observation.view(scaled, name)[:, :players] if field.group == "players" else observation.view(scaled, name)
        )
        assert found.max() >= 1, name


def test_a_row_and_an_observation_stay_under_a_kibibyte() -> None:
    assert observation.SIZE < 1024 and STATE.itemsize < 1024
