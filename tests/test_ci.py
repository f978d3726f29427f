"""Continuous integration skips nothing because something is not installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("1", "No module named 'nothing_like_it'")])
def test_a_test_that_lacks_something_is_skipped_but_fails_in_ci(tmp_path: Path, ci: str, outcome: str) -> None:
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_it.py").write_text("import pytest\npytest.importorskip('nothing_like_it', reason='why')\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    env = os.environ | {"MONTECRISTO_CI": ci}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert outcome in done.stdout
    assert ("failed" in done.stdout or "error" in done.stdout) == bool(ci)
