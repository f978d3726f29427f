"""Continuous integration skips nothing because something is not installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
SKIPS = {
    "module": "pytest.importorskip('nothing_like_it')",
    "skip_module": "pytest.skip('there is no browser', allow_module_level=True)",
    "test": "def test_it():\n    pytest.importorskip('nothing_like_it')",
    "skip": "def test_it():\n    pytest.skip('there is no browser')",
    "mark": "@pytest.mark.skipif(True, reason='there is no browser')\ndef test_it():\n    pass",
    "fixture": "@pytest.fixture\ndef page():\n    pytest.skip('there is no browser')\ndef test_it(page):\n    pass",
}
"""Ways to skip, each of which ends one test file."""
ALLOWED = "@pytest.mark.skipif(True, reason='this system cannot fork')\ndef test_it():\n    pass"


@pytest.mark.parametrize("ci", ["", "1"])
def test_a_test_that_lacks_something_is_skipped_but_fails_in_ci(tmp_path: Path, ci: str) -> None:
    shutil.copy(CONFTEST, tmp_path)
    for name, body in {**SKIPS, "allowed": ALLOWED}.items():
        (tmp_path / f"test_{name}.py").write_text(f"import pytest\n\n{body}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors", "-rA"]
    env = os.environ | {"MONTECRISTO_CI": ci}
    done = subprocess.run([*command, tmp_path], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    for name in SKIPS:
        assert any(f"test_{name}.py" in line for line in failed) == bool(ci), f"{name}: {done.stdout}"
    assert f"{1 if ci else len(SKIPS) + 1} skipped" in done.stdout
    assert (done.returncode == 0) == (not ci)
