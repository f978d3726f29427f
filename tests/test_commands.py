"""How our command lines end: when a package is missing, when nobody reads on, and after Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("sb3_contrib")

from montecristo_env.util.files import LOCK
from montecristo_train.runs import METRICS

AGENTS = ("montecristo_agents.arena", "montecristo_agents.ladder")
TRAINING = tuple(
    f"montecristo_train.{name}"
    for name in ("ppo", "alphazero", "exploit", "demo", "heuristic_value", "pettingzoo_minimal")
)
ON_RAY = ("montecristo_train.rllib", "montecristo_train.rllib_sweep")


def without(package: str, folder: Path) -> dict[str, str]:
    """An environment in which a package cannot be imported: Python runs `sitecustomize` before anything else."""
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules[{package!r}] = None\n")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path}


@pytest.mark.parametrize(
    ("module", "package", "message"),
    [
        *((name, "torch", "training needs torch: pip install 'montecristo-env[sb3]'") for name in TRAINING + ON_RAY),
        ("montecristo_train.ppo", "sb3_contrib", "training needs sb3_contrib: pip install 'montecristo-env[sb3]'"),
        ("montecristo_train.ppo", "tyro", "training needs tyro: pip install 'montecristo-env[sb3]'"),
        *((name, "ray", "training on Ray needs ray: pip install 'montecristo-env[rllib]'") for name in ON_RAY),
        *(
            (name, package, f"the arena needs {package}: pip install 'montecristo-env[arena]'")
            for name in AGENTS
            for package in ("tyro", "openskill", "rich", "matplotlib")
        ),
    ],
)
def test_a_command_without_a_package_says_in_one_line_what_to_install(
    module: str, package: str, message: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, env=without(package, tmp_path), capture_output=True, text=True, check=False)
    said = done.stderr.strip().replace("openskill.models", "openskill").replace("matplotlib.figure", "matplotlib")
    assert (said, done.returncode, done.stdout) == (message, 1, "")


@pytest.mark.parametrize("agent", ["ppo", "alphazero", "policy:agent.safetensors", "policy+mcts:agent.safetensors:10"])
def test_a_network_player_without_safetensors_says_what_to_install(agent: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "montecristo_agents.arena", "random", agent]
    done = subprocess.run(
        command, env=without("safetensors", tmp_path), capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stderr == "arena: a network player needs safetensors: pip install 'montecristo-env[arena]'\n"
    assert done.returncode == 2


def test_a_library_without_a_package_raises_and_lets_the_program_go_on(tmp_path: Path) -> None:
    code = "try:\n    import montecristo_train.ppo\nexcept ImportError as error:\n    print(error, error.name)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=without("torch", tmp_path), capture_output=True, text=True, check=True)
    assert done.stdout == "training needs torch: pip install 'montecristo-env[sb3]' torch\n"


@pytest.mark.parametrize("module", AGENTS + TRAINING + ON_RAY)
def test_help_that_nobody_reads_to_its_end_is_no_error(module: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as if `head` had gone already
    arguments = ["quick", "--help"] if module.endswith((".ppo", ".alphazero", ".rllib")) else ["--help"]
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.stderr == ""


ENDLESS = ("--total-timesteps", "1000000000")
SMALL = ("--n-envs", "8", "--n-threads", "1")


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such signals")
@pytest.mark.parametrize(
    ("arguments", "how"),
    [
        (("ppo", "smoke", *SMALL), "python -m montecristo_train.ppo --resume RUN"),
        (("alphazero", "smoke", "--n-envs", "8"), "python -m montecristo_train.alphazero --resume RUN"),
        (("exploit", "random", *SMALL), "the same command with --run RUN"),
        (("rllib", "smoke", "--n-envs", "8", "--n-runners", "0"), "python -m montecristo_train.rllib --resume RUN"),
    ],
)
def test_ctrl_c_in_training_says_in_one_line_how_to_go_on(arguments: tuple[str, ...], how: str, tmp_path: Path) -> None:
    if arguments[0] == "rllib":
        pytest.importorskip("ray.rllib")
    recipe, *settings = arguments
    run = tmp_path / "run"
    command = [sys.executable, "-m", f"montecristo_train.{recipe}", *settings, *ENDLESS, "--run", str(run)]
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=said,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # jobs inherit that it is not
        )
        while not (run / METRICS).exists():  # it has learnt once
            assert process.poll() is None, (tmp_path / "said").read_text()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    lines = (tmp_path / "said").read_text().splitlines()
    assert lines[-1] == f"stopped; to go on: {how.replace('RUN', str(run))}"
    assert not [line for line in lines if "Traceback" in line or "KeyboardInterrupt" in line]
    assert not (run / LOCK).exists()


@pytest.mark.parametrize("recipe", ["ppo", "alphazero", "rllib"])
def test_help_tells_of_resume(recipe: str) -> None:
    if recipe == "rllib":
        pytest.importorskip("ray.rllib")
    command = [sys.executable, "-m", f"montecristo_train.{recipe}", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--resume RUN" in done.stdout
