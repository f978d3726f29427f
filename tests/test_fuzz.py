"""The program that explores: it plays, and what fails is reported with the seed that finds it again."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
BROKEN = """
import fuzz

def disagree(*_):
    fuzz.pytest.fail("they differ")

if __name__ == "__main__":
    fuzz.compare_games = disagree
    found = fuzz.one_round(seed=3, twin_only=True, most=1)
    assert "they differ" in found.failure and found.games == 0
"""


def run(*arguments: str | Path) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_plays_against_the_twin() -> None:
    options = ["--twin-only", "--minutes", "0", "--workers", "1", "--examples", "2", "--seed", "3"]
    said = run("fuzz.py", *options)
    assert "first seed: 3" in said and "12 games against the twin" in said and ", 0 failures" in said


def test_fewer_games_than_asked_for_are_a_failure() -> None:
    options = ["--twin-only", "--minutes", "0", "--workers", "1", "--examples", "1", "--games", "100"]
    done = subprocess.run([sys.executable, "fuzz.py", *options], cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "6 of 100 games only" in done.stdout


def test_a_difference_from_the_twin_is_a_failure() -> None:
    run("-c", BROKEN)
