"""Behaviour is frozen: a signature over seeded games that every change either keeps or renews on purpose.

To renew the constants after a change that is meant to change something: `python tests/test_frozen.py`, paste what it
prints, and say in the commit what changed. "play" is what happens (seeds, rules, codes of actions, rewards), "states"
the public fields of the rows, "observations" what players see; so one can see which of them a change touches.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers import share_small_batches
from montecristo_env import GameBatch, Ruleset
from montecristo_env.core.layout import HIDDEN_FIELDS, STATE
from montecristo_env.ruleset import VARIANTS

Signature = dict[str, str]

MANY, FEW = 100, 1  # games of each number of players
FROZEN_MANY: Signature = {
    "play": "b3a5b7ab28e98c029668f127d98b3ed5",
    "states": "a53b5daa177e2face56a97a7dc5c2490",
    "observations": "e672939a9c0e8fe88305ed16b5971b35",
}
FROZEN_FEW: Signature = {
    "play": "bb0bd79046f00b9255ddb3f1499d6e64",
    "states": "991f605d0750d699281f87b0001ce955",
    "observations": "d5194f7301a712f4a8c0ceceab3f7fbb",
}

ROOT = Path(__file__).resolve().parent.parent
ALL_VARIANTS = Ruleset(**{name: values[-1] for name, values in VARIANTS.items()})  # §1.10
PUBLIC_FIELDS = sorted(set(STATE.names or ()) - set(HIDDEN_FIELDS))


def signature(games_each: int, threads: int | None = None) -> Signature:
    """The same number of games of 2, 3 and 4 players, played at random to the end, by default and with all variants."""
    num_players = np.repeat([2, 3, 4], games_each)
    play, states, observations = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
    for ruleset in (Ruleset(), ALL_VARIANTS):
        games = GameBatch(num_players.size, num_players, seed=2011, ruleset=ruleset, threads=threads)
        while not games.over.all():
            acts = games.sample_actions()
            play.update(games.action_mask().tobytes() + acts.tobytes())
            observations.update(games.observe().tobytes() + games.observe(player=1).tobytes())
            for name in PUBLIC_FIELDS:
                states.update(name.encode() + games.states[name].tobytes())
            games.step(acts)
            play.update(games.rewards.tobytes())
        play.update(games.scores.tobytes() + games.winners.tobytes() + games.seeds.tobytes())
        play.update(games.terminated.tobytes() + games.truncated.tobytes())
    for reward in ("rank", "margin"):
        paid = GameBatch(num_players.size, num_players, seed=2011, reward=reward, threads=threads)
        paid.play_random(10_000)
        play.update(paid.rewards.tobytes())
    found = {"play": play, "states": states, "observations": observations}
    return {name: digest.hexdigest()[:32] for name, digest in found.items()}


def in_another_process(games_each: int, **variables: str) -> Signature:
    folders = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, __file__, str(games_each)]
    env = os.environ | {"PYTHONPATH": folders} | variables
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.engine
def test_seeded_games_are_played_as_ever() -> None:
    assert signature(MANY) == FROZEN_MANY


@pytest.mark.engine
@pytest.mark.interpreted
def test_a_few_seeded_games_are_played_as_ever() -> None:
    assert signature(FEW) == FROZEN_FEW


@pytest.mark.engine
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    share_small_batches(monkeypatch, rows_per_thread=50)
    assert signature(MANY, threads) == FROZEN_MANY


def test_another_process_plays_the_same() -> None:
    assert in_another_process(MANY) == FROZEN_MANY


def test_plain_python_plays_the_same() -> None:
    """What is compiled and what is covered by the pass without compilation are the same rules."""
    assert in_another_process(FEW, NUMBA_DISABLE_JIT="1") == FROZEN_FEW


def main() -> None:
    """With a number of games, their signature as JSON; without, the constants for this file."""
    if len(sys.argv) > 1:
        print(json.dumps(signature(int(sys.argv[1]))))
        return
    for name, games_each in (("FROZEN_MANY", MANY), ("FROZEN_FEW", FEW)):
        lines = "".join(f'    "{part}": "{digest}",\n' for part, digest in signature(games_each).items())
        print(f"{name}: Signature = {{\n{lines}}}")


if __name__ == "__main__":
    main()
