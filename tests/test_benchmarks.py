"""Every benchmark fits the code that it measures, at least as far as its imports."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


def test_all_benchmarks_can_be_imported() -> None:
    for package in ("numba", "sb3_contrib", "ray.rllib", "pyspiel"):
        pytest.importorskip(package)
    assert {"engine", "peers", "shells", "training"} <= set(NAMES)
    program = f"import {', '.join(NAMES)}"  # in one process: torch and Ray take seconds to import
    done = subprocess.run([sys.executable, "-c", program], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
