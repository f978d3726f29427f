"""What holds for all tests."""

import importlib
import os
from typing import Any

import pytest


def _import(name: str, *_: Any, **__: Any) -> Any:
    return importlib.import_module(name)


if os.environ.get("MONTECRISTO_CI"):  # a test that lacks something fails there instead of being skipped
    pytest.importorskip = _import
