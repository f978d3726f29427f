"""The command `montecristo`, which runs the others.

`montecristo arena greedy random` is `python -m montecristo_agents.arena greedy random`.
"""

import ast
import importlib.metadata
import importlib.util
import runpy
import sys
from pathlib import Path

from montecristo_env.util.commands import quiet_pipe

COMMANDS = {
    "play": "montecristo_env.play",
    "replay": "montecristo_env.replay",
    "arena": "montecristo_agents.arena",
    "ladder": "montecristo_agents.ladder",
    "train ppo": "montecristo_train.ppo",
    "train alphazero": "montecristo_train.alphazero",
    "train rllib": "montecristo_train.rllib",
    "train rllib-sweep": "montecristo_train.rllib_sweep",
    "train torchrl": "montecristo_train.torchrl",
    "train sb3-minimal": "montecristo_train.sb3_minimal",
    "train pettingzoo-minimal": "montecristo_train.pettingzoo_minimal",
    "train heuristic-value": "montecristo_train.heuristic_value",
    "exploit": "montecristo_train.exploit",
    "demo": "montecristo_train.demo",
}
"""The module behind each command."""

BAD_INPUT = 2  # the exit status


def overview() -> str:
    """All commands, each with the first line of its module."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {_first_line(module)}" for name, module in COMMANDS.items()]
    return "\n".join(["usage: montecristo COMMAND ...", "", *lines, "", "montecristo COMMAND --help says more."])


def _first_line(module: str) -> str:
    """Of the docstring, without what is said there of `python -m`; nothing is imported."""
    package, _, name = module.partition(".")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return "(not installed)"
    source = (Path(spec.origin).parent / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").splitlines()[0].split(": `python")[0].rstrip(".")


def main() -> None:
    """Runs a command as `python -m` does."""
    arguments = sys.argv[1:]
    if arguments[:1] in ([], ["-h"], ["--help"]):
        with quiet_pipe():
            print(overview())
        return
    if arguments == ["--version"]:
        print(f"montecristo-env {importlib.metadata.version('montecristo-env')}")
        return
    for words in (2, 1):
        if module := COMMANDS.get(" ".join(arguments[:words])):
            sys.argv = [module, *arguments[words:]]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
            return
    print(f"montecristo has no command {' '.join(arguments[:2])!r}\n{overview()}", file=sys.stderr)
    sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
