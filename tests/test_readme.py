"""The README is short, its code runs as it stands, and its figures are those of the documentation."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
MOST_WORDS = 900
LARGEST_PICTURE = 1_500_000  # bytes
INTERVAL = r"[\d.,]+ \([\d.,]+ to [\d.,]+\)"


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)^## ", TEXT, flags=re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


def test_the_readme_is_short() -> None:
    assert len(TEXT.split()) <= MOST_WORDS


def test_the_readme_has_code() -> None:
    assert BLOCKS


@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_code_in_the_readme_runs(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize(
    ("title", "pages"),
    [("How strong the agents are", ["alphazero.md", "ppo.md"]), ("Speed", ["speed.md"])],
)
def test_figures_are_those_of_the_documentation(title: str, pages: list[str]) -> None:
    figures = re.findall(INTERVAL, section(title))
    known = {
        figure
        for page in pages
        for figure in re.findall(INTERVAL, (ROOT / "docs" / page).read_text(encoding="utf-8").replace(" %", ""))
    }
    assert len(figures) >= 3
    assert set(figures) <= known


def test_links_and_pictures_exist() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert target.startswith("https://") or (ROOT / target).exists(), target
    for picture in re.findall(r"!\[[^\]]*\]\((?!https://)([^)]+)\)", TEXT):
        assert (ROOT / picture).stat().st_size < LARGEST_PICTURE
