"""The code in the README runs as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_readme_has_code() -> None:
    assert len(BLOCKS) == 4


@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_code_in_the_readme_runs(code: str) -> None:
    exec(compile(code, str(README), "exec"), {})
