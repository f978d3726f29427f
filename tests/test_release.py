"""What stands around the code: one version everywhere, sound workflows, one command. `test_wheel.py` has the rest."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import montecristo_env
from montecristo_env.__main__ import COMMANDS, overview

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def module(name: str, *arguments: str | Path) -> str:
    return run(sys.executable, "-m", name, *arguments)


# --- Version ---------------------------------------------------------------------------------------------------------


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_written_once_and_citations_and_the_changelog_have_it() -> None:
    assert "version" not in PROJECT["project"] and "version" in PROJECT["project"]["dynamic"]
    version = montecristo_env.__version__
    assert re.search(rf"^version: {re.escape(version)}$", read("CITATION.cff"), re.MULTILINE)
    assert re.search(rf"^## \[{re.escape(version)}\]", read("CHANGELOG.md"), re.MULTILINE)
    for name in ("README.md", "docs/cite.md"):
        assert f"version = {{{version}}}," in read(name)


def test_constraints_fit_the_ranges() -> None:
    lines = [line for line in read("constraints.txt").splitlines() if line and not line.startswith("#")]
    assert lines == sorted(lines, key=str.lower)
    versions = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    extras = {name: texts for name, texts in PROJECT["project"]["optional-dependencies"].items() if name != "openenv"}
    wanted = {*PROJECT["project"]["dependencies"], *(text for texts in extras.values() for text in texts)}
    for requirement in map(Requirement, wanted):
        if canonicalize_name(requirement.name) != "montecristo-env":
            version = versions[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), f"{requirement}, but {version}"


# --- Workflows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.dependabot", [ROOT / ".github/dependabot.yml"]),
        ("vendor.citation-file-format", [ROOT / "CITATION.cff"]),
        ("vendor.github-issue-config", [ROOT / ".github/ISSUE_TEMPLATE/config.yml"]),
        (
            "vendor.github-issue-forms",
            sorted(set((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")) - {ROOT / ".github/ISSUE_TEMPLATE/config.yml"}),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_for_github_follow_their_schemas(schema: str, files: list[Path]) -> None:
    pytest.importorskip("check_jsonschema")
    assert files
    module("check_jsonschema", "--builtin-schema", schema, *files)


def test_workflows_have_no_known_weakness() -> None:
    """Such as rights for all jobs, or what somebody else wrote in a command line."""
    program = Path(sys.executable).with_name("zizmor")
    if not program.exists():
        pytest.skip("zizmor is not installed")
    run(program, "--offline", "--quiet", "--min-severity", "low", ROOT / ".github")


def test_actions_of_others_are_pinned_by_hash_and_every_job_says_what_it_may_do_and_how_long() -> None:
    assert {path.stem for path in WORKFLOWS} == {"tests", "nightly", "docs", "release"}
    pins: dict[str, str] = {}
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert "\npermissions: {}\n" in text
        jobs = re.split(r"^  (?=[a-z]+:$)", text.split("\njobs:\n")[1], flags=re.MULTILINE)[1:]
        assert jobs
        for job in jobs:
            assert "    timeout-minutes: " in job and "    permissions:\n" in job, job
        used = re.findall(r"uses: (.*)", text)
        assert used
        for line in used:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
            action, pin = line.split("@")
            assert pins.setdefault(action, pin) == pin, f"two versions of {action}"


def test_every_make_target_that_a_workflow_calls_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    called = {name for path in WORKFLOWS for name in re.findall(r"run: make (\w+)", path.read_text(encoding="utf-8"))}
    assert "frameworks" in called  # whose tests `make test` skips
    for name in called:
        assert re.search(rf"^{name}:", makefile, re.MULTILINE), name


# --- Model cards ------------------------------------------------------------------------------------------------------

LADDER = re.compile(r"<!-- ladder: .*?<!-- end of ladder -->", re.DOTALL)


@pytest.mark.parametrize("name", ["alphazero", "ppo"])
def test_model_cards_have_metadata_and_the_figures_of_the_documentation_and_of_the_file(name: str) -> None:
    yaml = pytest.importorskip("yaml")
    _, metadata, card = read(f"docs/publishing/{name}.md").split("---\n", 2)
    page = read(f"docs/{name}.md")
    facts = yaml.safe_load(metadata)
    assert facts.items() >= {"license": "mit", "library_name": "montecristo-env"}.items()
    assert facts["pipeline_tag"] == "reinforcement-learning" and name in facts["tags"]
    tables = LADDER.findall(card)
    assert len(tables) == 1 and tables == LADDER.findall(page)

    content = (ROOT / f"agents/montecristo_agents/models/{name}.safetensors").read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    settings = json.loads(header.pop("__metadata__")["training"])["settings"]
    learnt = f"{settings['total_timesteps'] / 1e6:.0f} million"
    assert learnt in card and learnt in page and f"seed {settings['seed']}" in card
    assert f"{sum(prod(tensor['shape']) for tensor in header.values()):,} weights" in card


# --- The command -----------------------------------------------------------------------------------------------------


def programs() -> Iterator[str]:
    """The modules that `python -m` can run."""
    for folder in ("", "agents", "train"):
        for path in (ROOT / folder).glob("montecristo_*/*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            guards = [node for node in tree.body if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)]
            if guards and path.stem != "__main__":
                yield f"{path.parent.name}.{path.stem}"


BUILDS = {"montecristo_agents.wasm"}  # called by `make` alone


def test_every_program_is_a_command() -> None:
    assert sorted(COMMANDS.values()) == sorted(set(programs()) - BUILDS)
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\w.{{10}}", overview(), re.MULTILINE), name


def montecristo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("montecristo"), *arguments]
    if not Path(command[0]).exists():  # nothing is installed, only the folders are on the path
        command = [sys.executable, "-m", "montecristo_env", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command_runs_programs_names_itself_and_refuses_what_it_does_not_know() -> None:
    assert montecristo().stdout.strip() == overview()
    assert montecristo("--version").stdout.strip() == f"montecristo-env {montecristo_env.__version__}"
    shown = montecristo("train", "ppo", "--help")
    assert shown.returncode == 0 and "--resume RUN" in shown.stdout
    refused = montecristo("arena", "nobody", "random")
    assert refused.returncode == 2 and "nobody" in refused.stderr and "Traceback" not in refused.stderr
    unknown = montecristo("trian", "ppo")
    assert unknown.returncode == 2 and "no command 'trian ppo'" in unknown.stderr and overview() in unknown.stderr
