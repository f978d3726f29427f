"""What holds for all tests."""

import os
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

import pytest

from montecristo_env.core import library
from montecristo_env.core.jit import INTERPRETED

MUST_RUN = bool(os.environ.get("MONTECRISTO_CI"))
"""Whether a test that skips itself fails."""
MAY_SKIP = ("this system", "other systems", "plain Python", "`make frameworks`")
"""Reasons to skip that installing something would not change begin so."""


def _fail_if_skipped(report: Any) -> None:
    if MUST_RUN and report.skipped and not hasattr(report, "wasxfail"):
        path, line, reason = report.longrepr
        reason = reason.removeprefix("Skipped: ")
        if not reason.startswith(MAY_SKIP):
            report.outcome = "failed"
            report.longrepr = f"{path}:{line}: nothing may be skipped here, but this was: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Tests that skip themselves."""
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Modules that skip themselves."""
    report = yield
    _fail_if_skipped(report)
    return report


def pytest_configure(config: pytest.Config) -> None:
    """Numba's warnings are errors; kernels that are older than their sources are compiled before the workers begin."""
    if find_spec("numba"):  # pytest refuses filters of what is not installed
        for kind in ("Performance", "Deprecation", "PendingDeprecation"):
            config.addinivalue_line("filterwarnings", f"error::numba.core.errors.Numba{kind}Warning")
    if not INTERPRETED and not hasattr(config, "workerinput"):
        library.load()
