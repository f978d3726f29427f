"""Dependencies between modules point one way: towards the constants, away from the training recipes."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "montecristo_env": ROOT,
    "montecristo_verifiers": ROOT,
    "montecristo_agents": ROOT / "agents",
    "montecristo_train": ROOT / "train",
}

# Lowest first. A module may import from the layers below its own, and from nothing in its own layer. The name of a
# package stands for everything in it.
LAYERS = [
    ["montecristo_env.errors", "montecristo_env.util"],
    ["montecristo_env.util.commands", "montecristo_env.util.files"],
    ["montecristo_env.core.library"],
    ["montecristo_env.core.jit"],
    ["montecristo_env.core.intrinsics", "montecristo_env.core.build"],
    ["montecristo_env.core.constants"],
    ["montecristo_env.ruleset", "montecristo_env.core.layout"],
    ["montecristo_env.core.actions", "montecristo_env.core.chance"],
    ["montecristo_env.core.setup", "montecristo_env.core.legal"],
    ["montecristo_env.core.scoring"],
    ["montecristo_env.core.rules"],
    ["montecristo_env.core.observation", "montecristo_env.core.invariants"],
    ["montecristo_env.core.batch", "montecristo_env.core.chance_nodes", "montecristo_env.core.symmetry"],
    [
        "montecristo_env.core.public",
        "montecristo_env.render",
        "montecristo_env.util.spaces",
        "montecristo_env.util.threads",
    ],
    ["montecristo_env.games", "montecristo_env.symmetry"],
    ["montecristo_env.agent"],
    ["montecristo_env.analysis", "montecristo_env.text"],
    ["montecristo_env.record", "montecristo_env.single_agent"],
    ["montecristo_env.web", "montecristo_env.web.extras"],
    ["montecristo_env.web.move_log", "montecristo_env.web.reasons"],
    ["montecristo_env.web.replay_page"],
    ["montecristo_env.replay", "montecristo_env.web.page", "montecristo_env.web.sessions"],
    ["montecristo_env.web.server"],
    ["montecristo_env.play", "montecristo_env.__main__"],
    [
        "montecristo_env.aec",
        "montecristo_env.gym_env",
        "montecristo_env.openspiel",
        "montecristo_env.sb3",
        "montecristo_env.torchrl",
        "montecristo_env.vector",
    ],
    ["montecristo_env.montecristo_v0", "montecristo_env.testing"],
    ["montecristo_agents", "montecristo_verifiers"],
    ["montecristo_train"],
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
FACADES = {"montecristo_env", "montecristo_env.core"}  # their __init__ only gathers names, so it belongs to no layer

# No framework of any sort.
CORE_MAY_IMPORT = {"montecristo_env", "numpy", "numba", "llvmlite"} | sys.stdlib_module_names


def module_name(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    module_name(path, folder): path
    for package, folder in FOLDERS.items()
    for path in sorted((folder / package).rglob("*.py"))
}


def imports(module: str) -> set[str]:
    """Everything a module imports, at any depth of its code; `from package import submodule` names the submodule."""
    path = MODULES[module]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = module.split(".")[: len(module.split(".")) - node.level + (path.name == "__init__.py")]
                base = ".".join([*up, node.module] if node.module else up)
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                found.add(submodule if submodule in MODULES else base)
    return found


def layer_of(module: str) -> str | None:
    """The entry of LAYERS that a module belongs to: itself or the nearest package around it."""
    parts = module.split(".")
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in names if name in RANK), None)


def test_modules_were_found() -> None:
    assert {"montecristo_env", "montecristo_env.core.rules", "montecristo_agents", "montecristo_train"} <= set(MODULES)


@pytest.mark.parametrize("module", sorted(set(MODULES) - FACADES))
def test_imports_point_down(module: str) -> None:
    own = layer_of(module)
    assert own is not None, f"{module} has no layer yet: give it one in LAYERS"
    for imported in imports(module):
        if imported.split(".")[0] not in FOLDERS:
            continue
        other = layer_of(imported)
        if other == own:  # inside one package
            continue
        if imported in FACADES:  # it gathers everything up to the shells: only what stands above them may use it
            assert not module.startswith("montecristo_env."), f"{module} imports the facade {imported}"
            continue
        assert other is not None, f"{module} imports {imported}, which has no layer"
        assert RANK[other] < RANK[own], f"{module} imports {imported}, which is not below it"


@pytest.mark.parametrize("module", sorted(name for name in MODULES if name.startswith("montecristo_env.core")))
def test_core_knows_no_framework(module: str) -> None:
    assert {name.split(".")[0] for name in imports(module)} <= CORE_MAY_IMPORT
