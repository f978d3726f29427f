"""Explores what the tests only sample: `make fuzz`, or `python tests/fuzz.py --minutes 60 --workers 4`.

Other random games and rule sets in every run: whole games against the twin, damaged records, and the properties that
Hypothesis checks. It ends after a time, or after a number of games against the twin. What fails is reported with the
seed that finds it again: `--seed N --workers 1`.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import multiprocessing
import os
import secrets
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

os.environ["MONTECRISTO_FUZZ"] = "1"  # before the tests are imported: their examples are other ones every time
sys.path.insert(0, str(Path(__file__).parent))

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

import test_bad_input
import test_properties
from helpers import property_settings
from montecristo_env import Ruleset
from test_against_reference import POLICIES, compare_games
from test_properties import rulesets

GAMES = 6
"""Against the twin, in one example."""


class Found(NamedTuple):
    """What a worker has done, and what failed."""

    games: int
    properties: int
    failure: str


def against_the_twin(seed: int, examples: int) -> int:
    """Whole games by any rules, played by any mixture of policies; how many."""
    played = 0

    @property_settings(examples)
    @given(
        st.lists(st.integers(2, 4), min_size=GAMES, max_size=GAMES),
        st.one_of(st.just(Ruleset()), rulesets()),
        st.integers(0, 2**53 - 1),
        st.lists(st.sampled_from(sorted(POLICIES)), min_size=1, max_size=4),
    )
    def agree(num_players: list[int], ruleset: Ruleset, games_seed: int, policies: list[str]) -> None:
        nonlocal played
        compare_games(num_players, ruleset, GAMES, games_seed, policies)
        played += GAMES

    hypothesis.seed(seed)(agree)()
    return played


def properties() -> list[Callable[[], None]]:
    """The tests of Hypothesis that need nothing but examples."""
    found = [test for test in vars(test_properties).values() if getattr(test, "is_hypothesis_test", False)]
    alone = [test for test in found if not inspect.signature(test).parameters]
    assert len(alone) >= 10
    return alone


def one_round(seed: int, twin_only: bool, most: int) -> Found:
    """The same for the same seed; properties have as many examples as in the tests."""
    games = checked = 0
    try:
        games += against_the_twin(seed, most)
        if not twin_only:
            for number, test in enumerate(properties()):
                hypothesis.seed(seed + number)(test)()
                checked += 1
            record = test_bad_input.finished_record()
            for check in (test_bad_input.damage_at_random, test_bad_input.damage_letters):
                check(record, seed, most)
                checked += 1
    except (Exception, pytest.fail.Exception):
        return Found(games, checked, traceback.format_exc())
    return Found(games, checked, "")


def explore(minutes: float, most_games: int, seed: int, workers: int, twin_only: bool, most: int) -> int:
    """Rounds with one seed after the other; how many have failed."""
    end = time.monotonic() + 60 * minutes
    games = checked = failed = 0
    seeds = itertools.count(seed)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:  # it notices if one dies
        running = deque(
            (number, pool.submit(one_round, number, twin_only, most)) for number in itertools.islice(seeds, workers)
        )
        while running:
            number, future = running.popleft()
            found = future.result()
            games, checked = games + found.games, checked + found.properties
            if found.failure:
                failed += 1
                print(
                    f"{found.failure}\n"
                    f"found by: python tests/fuzz.py --minutes 0 --workers 1 --examples {most} --seed {number}"
                )
            print(
                f"{games:,} games against the twin, {checked:,} properties with random examples, {failed} failures",
                flush=True,
            )
            if time.monotonic() < end and (not most_games or games < most_games) and not failed:
                number = next(seeds)
                running.append((number, pool.submit(one_round, number, twin_only, most)))
    if games < most_games and not failed:
        print(f"the time was enough for {games:,} of {most_games:,} games only")
        return 1
    return failed


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="no round begins later; 0 is one round per worker")
    parser.add_argument("--games", type=int, default=0, help="against the twin; fewer are a failure, 0 is no limit")
    parser.add_argument("--examples", type=int, default=20, help="of games and damaged records, in one round")
    parser.add_argument("--seed", type=int, help="of the first round; default: another one every time")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--twin-only", action="store_true", help="nothing but games against the twin")
    options = parser.parse_args()
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"first seed: {seed}", flush=True)
    sys.exit(
        bool(
            explore(options.minutes, options.games, seed, max(1, options.workers), options.twin_only, options.examples)
        )
    )


if __name__ == "__main__":
    main()
