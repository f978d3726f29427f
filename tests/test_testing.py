"""The conformance kit: this environment passes, and each check can fail."""

import copy
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pygame", reason="games of PettingZoo need it")

from pettingzoo.classic import connect_four_v3

from montecristo_env import montecristo_v0, testing
from montecristo_env.core.layout import STATE

PLAYERS = (2, 3, 4)


def redraw(env: Any, seed: int) -> Any:
    clone = copy.deepcopy(env)
    clone.unwrapped.games = clone.unwrapped.games.resample_hidden(np.random.default_rng(seed))
    clone.unwrapped._look()
    return clone


def rotate(env: Any) -> Any:
    """A copy in which every player has moved one seat on, clockwise."""
    clone = copy.deepcopy(env)
    raw = clone.unwrapped
    n = len(raw.possible_agents)
    state = raw.games.states
    for name in ("score", "winners", "supply", "marseille", "zones", "crew", "places", "hands", "wilds", "wild_slots"):
        state[name][:, :n] = np.roll(state[name][:, :n], 1, axis=1)
    for name in ("hand_size", "gathered", "left_over_bags"):
        state[name][:, :n] = np.roll(state[name][:, :n], 1, axis=1)
    state["lanes"] = np.where(state["lanes"] > 0, state["lanes"] % n + 1, 0)
    for name in ("current_player", "active_player", "recipient", "gather_order"):
        state[name] = np.where(state[name] >= 0, (state[name] + 1) % n, state[name])
    raw._look()
    return clone


@pytest.mark.parametrize("make", [montecristo_v0.env, montecristo_v0.raw_env])
@pytest.mark.parametrize("players", PLAYERS)
def test_this_environment_conforms(make: Any, players: int) -> None:
    def make_env() -> Any:
        return make(num_players=players)

    testing.check_determinism(make_env)
    testing.check_clones(make_env)
    testing.check_pickle(make_env)
    testing.check_saved_states(make_env)
    testing.check_hidden_information(make_env, redraw)
    testing.check_seat_symmetry(make_env, rotate)


def test_connect_four_where_it_applies() -> None:
    """PettingZoo's connect_four loses the game on deepcopy and pickle: `EzPickle` makes a new one."""
    testing.check_determinism(connect_four_v3.env)
    testing.check_determinism(connect_four_v3.raw_env)
    for check in (testing.check_clones, testing.check_pickle):
        with pytest.raises((AssertionError, AttributeError)):
            check(connect_four_v3.raw_env)


class Faulty(montecristo_v0.raw_env):
    """An environment with one fault at a time."""

    fault = ""

    def observe(self, agent: str) -> Any:
        seen = super().observe(agent)
        if self.fault == "leak":
            seen["observation"][0] = self.games.states["bag_order"][0, 0]
        if self.fault == "seat":
            seen["observation"][0] = self.possible_agents.index(agent)
        if self.fault == "random":
            seen["observation"][0] = np.random.default_rng().random()
        return seen

    def clone(self) -> Any:
        return self if self.fault == "shared" else super().clone()

    def __reduce__(self) -> Any:
        return (Faulty, ()) if self.fault == "forgetful" else super().__reduce__()

    def set_state(self, state: Any) -> None:
        if self.fault != "lost":
            super().set_state(state)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("random", testing.check_determinism),
        ("shared", testing.check_clones),
        ("lost", testing.check_saved_states),
        ("forgetful", testing.check_pickle),
        ("leak", lambda make: testing.check_hidden_information(make, redraw)),
        ("seat", lambda make: testing.check_seat_symmetry(make, rotate)),
    ],
)
def test_each_check_can_fail(fault: str, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check(Faulty)
    monkeypatch.setattr(Faulty, "fault", fault)
    with pytest.raises((AssertionError, AttributeError)):
        check(Faulty)


def test_rotation_in_this_file_turns_every_seat_axis() -> None:
    """So that a new field of the state cannot be forgotten above."""
    turned = {"score", "winners", "supply", "marseille", "zones", "crew", "places", "hands", "wilds", "wild_slots"}
    turned |= {"hand_size", "gathered", "gather_order", "left_over_bags"}
    assert STATE.names is not None
    seat_axis = {name for name in STATE.names if STATE[name].shape[:1] == (4,)} - {"lanes", "lane_size"}
    assert seat_axis == turned
