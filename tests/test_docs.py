"""The documentation is complete and true: every public module is in it, and its examples run as they stand.

`make docs` builds the pages and checks links; tables are made from the code then, so that they cannot go stale.
"""

import importlib.util
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import montecristo_env
from montecristo_env.agent import GROUP

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MOST_WORDS_OF_A_CARD = 400
BY_PROGRAMS = {"ladder.md"}  # tested with the programs that write them
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if page.name not in BY_PROGRAMS] + [ROOT / "CONTRIBUTING.md"]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
EXAMPLES = [
    pytest.param(code, id=f"{name}-{number}")
    for name, text in TEXTS.items()
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
]

# Modules that are not in the reference: what users need of them is documented elsewhere.
INTERNAL = {
    "montecristo_env.agent",  # exported by the package
    "montecristo_env.errors",
    "montecristo_env.games",
    "montecristo_env.ruleset",
    "montecristo_env.montecristo_v0",  # the page of the environment
    "montecristo_env.__main__",  # the commands are those of the modules
    "montecristo_agents.extras",
    "montecristo_agents.dense",
    "montecristo_agents.scoring_forecast",
    "montecristo_agents.tree",
}
PUBLIC_IN_CORE = {"montecristo_env.core.actions", "montecristo_env.core.observation"}


def modules() -> set[str]:
    folders = {"montecristo_env": ROOT, "montecristo_agents": ROOT / "agents", "montecristo_train": ROOT / "train"}
    found = {f"{name}.{path.stem}" for name, folder in folders.items() for path in (folder / name).glob("*.py")}
    return {name for name in found if not name.endswith(".__init__")} | PUBLIC_IN_CORE


def in_reference() -> set[str]:
    text = "".join(text for name, text in TEXTS.items() if name.startswith("docs/api/"))
    return set(re.findall(r"^::: (\S+)$", text, flags=re.MULTILINE))


def test_every_module_is_in_the_reference_or_internal() -> None:
    assert modules() - INTERNAL <= in_reference()
    assert modules() >= INTERNAL, "INTERNAL names a module that does not exist"
    assert not INTERNAL & in_reference()


@pytest.mark.parametrize("name", montecristo_env.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    exported = getattr(montecristo_env, name)
    assert exported.__doc__ and exported.__doc__.strip()
    inherited = [base.__doc__ for base in getattr(exported, "__mro__", ())[1:]]
    assert exported.__doc__ not in inherited


def test_every_agent_is_described() -> None:
    names = {point.name for point in entry_points(group=GROUP) if point.value.startswith("montecristo_agents.")}
    for name in names:
        assert re.search(rf"^\| `{re.escape(name)}[`:]", TEXTS["docs/agents.md"], flags=re.MULTILINE), name


@pytest.mark.parametrize("name", ["docs/alphazero.md", "docs/ppo.md"])
def test_model_cards_are_short(name: str) -> None:
    text = re.sub(r"<!--.*?-->|[|]", "", TEXTS[name])
    assert len(text.split()) <= MOST_WORDS_OF_A_CARD


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {
        "sb3": "sb3_contrib",
        "pyspiel": "pyspiel",
        "textarena": "textarena",
        "torchrl": "torchrl",
        "ray.rllib": "ray",
    }
    for word, package in needs.items():
        if word in code:
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "example", "exec"), {})


@pytest.mark.parametrize("name", TEXTS)
def test_commands_exist(name: str) -> None:
    """Whether they do what is said, the tests of those programs show."""
    targets = set(re.findall(r"^(\w+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for module in re.findall(r"python -m (montecristo_[\w.]+)", TEXTS[name]):
        assert importlib.util.find_spec(module), module
    if name != "docs/research-log.md":  # commands there are those of their time, and it says so
        for path in re.findall(r"python (benchmarks/\w+\.py)", TEXTS[name]):
            assert (ROOT / path).exists(), path
    for target in re.findall(r"`make (\w+)", TEXTS[name]):
        assert target in targets, target
    for path in re.findall(r"`((?:tests|benchmarks|docs)/[\w/]+\.\w+)`", TEXTS[name]):
        assert (ROOT / path).exists(), path


def test_architecture_names_files_that_exist() -> None:
    places = [ROOT / "montecristo_env", ROOT / "agents/montecristo_agents", ROOT / "train/montecristo_train"]
    places += [ROOT, ROOT / "tests", ROOT / "montecristo_env/render"]
    for path in re.findall(r"`([\w/]+\.(?:py|toml|md))`", TEXTS["docs/architecture.md"]):
        assert any((place / path).exists() for place in places), path
