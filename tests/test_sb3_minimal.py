"""The tutorial recipe: one seat of an AEC game as a Gymnasium environment; the learner's policy plays the others."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")
pytest.importorskip("tyro")

from stable_baselines3.common.env_checker import check_env

from montecristo_env import GameBatch, montecristo_v0
from montecristo_env.games import seed_of_game
from montecristo_train.sb3_minimal import SelfPlayEnv
from shell_helpers import SHORT, choose, counts, scaled

PLAYERS = pytest.mark.parametrize("num_players", [2, 3, 4])


def pick(seen: Any, mask: Any) -> int:
    """What everybody does: it follows from what they see."""
    return int(choose(counts(seen)[None], mask[None])[0])


@PLAYERS
def test_the_learner_gets_its_own_decisions_and_its_own_reward(num_players: int) -> None:
    """Whoever moves last; so learners that did not move last also see what the end brought them."""
    others: list[bytes] = []

    def policy(seen: Any, mask: Any) -> int:
        others.append(seen.tobytes())
        return pick(seen, mask)

    env = SelfPlayEnv(montecristo_v0.env(num_players=num_players, reward="margin"), policy)
    learners, moved_last = set(), 0
    for seed in range(8):
        games = GameBatch(1, num_players, [seed_of_game(seed)], reward="margin")
        others.clear()
        seen, _ = env.reset(seed=seed)
        seat = int(env.learner.removeprefix("player_"))
        learners.add(seat)
        total, over, expected = 0.0, False, []
        while not games.over[0]:
            last = int(games.current_player[0])
            shown, mask = scaled(games.observe()[0]), games.action_mask()[0]
            if last == seat:
                assert not over and total == 0
                np.testing.assert_array_equal(seen, shown)
                np.testing.assert_array_equal(env.action_masks(), mask)
                seen, reward, terminated, truncated, _ = env.step(np.int64(pick(seen, env.action_masks())))
                total, over = total + reward, terminated or truncated
            else:
                expected.append(shown.tobytes())
            games.step([pick(shown, mask)])
        assert over and total == pytest.approx(games.rewards[0, seat]) and total != 0
        assert others == expected
        np.testing.assert_array_equal(seen, scaled(games.observe(player=seat)[0]))
        moved_last += last == seat
    assert len(learners) > 1 and 0 < moved_last < 8


def test_stable_baselines3_finds_nothing_to_complain_about() -> None:
    check_env(SelfPlayEnv(montecristo_v0.env(ruleset=SHORT), pick))


def test_the_recipe_runs_from_the_command_line() -> None:
    command = [sys.executable, "-m", "montecristo_train.sb3_minimal", "--total-timesteps", "1", "--players", "3"]
    done = subprocess.run([*command, "--evaluate-deals", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "total_timesteps" in done.stdout and "3 players, rules: default, 2 deals" in done.stdout
