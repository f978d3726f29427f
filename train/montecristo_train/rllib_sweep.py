"""Tries several values of settings side by side with Ray Tune: an example to start from.

```sh
python -m montecristo_train.rllib_sweep --total-timesteps 500000 --learning-rates 3e-4 1e-3 3e-3
```
"""

import dataclasses
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tyro

from montecristo_env.util.commands import missing, run_command
from montecristo_train.rllib import PRESETS, Training, on_ray
from montecristo_train.rllib_runner import RllibSettings

try:
    from ray import tune
except ImportError as error:
    raise missing("training on Ray", error.name, "rllib") from error

QUICK = PRESETS["quick"][1]


def sweep(settings: RllibSettings, choices: Mapping[str, Sequence[Any]], folder: Path) -> tune.ResultGrid:
    """Trains once with every combination; each result has the settings tried and the last win rates.

    A trial takes one core for learning and one for each runner, so as many run at the same time as the cluster has room
    for.
    """

    def trial(tried: dict[str, Any]) -> None:
        chosen = dataclasses.replace(settings, **tried)
        with tempfile.TemporaryDirectory() as run:
            training = Training(chosen, Path(run))
            while training.steps < chosen.total_timesteps:
                training.update()
            rates = training.latest
            training.algorithm.stop()
        tune.report({"win_rate": rates[f"win_rate/{chosen.evaluate_against[0]}"]} | rates)

    cores = [{"CPU": 1}] * (1 + settings.n_runners)
    tuner = tune.Tuner(
        tune.with_resources(trial, tune.PlacementGroupFactory(cores)),
        param_space={name: tune.grid_search(list(values)) for name, values in choices.items()},
        run_config=tune.RunConfig(storage_path=str(folder.resolve()), verbose=0),
    )
    return tuner.fit()


@dataclasses.dataclass(frozen=True)
class Options:
    """Compares learning rates and weights of entropy by the win rate against the first baseline."""

    learning_rates: tuple[float, ...] = (5e-4, 1e-3)
    """Of Adam, at the beginning."""
    ent_coefs: tuple[float, ...] = (0.01,)
    """What randomness is worth, at the beginning."""
    total_timesteps: int = QUICK.total_timesteps
    """How long to train each."""
    n_runners: int = 0
    """Of each trial; see `RllibSettings`."""
    address: str = ""
    """The cluster; see `RllibSettings`."""
    folder: Path = Path("runs", "sweep")
    """Where Tune keeps its results."""


def main(arguments: list[str]) -> None:
    """The command line."""
    options = tyro.cli(Options, args=arguments, prog="python -m montecristo_train.rllib_sweep")
    settings = dataclasses.replace(
        QUICK, total_timesteps=options.total_timesteps, n_runners=options.n_runners, address=options.address
    )
    with on_ray(settings):
        results = sweep(
            settings, {"learning_rate": options.learning_rates, "ent_coef": options.ent_coefs}, options.folder
        )
    for result in sorted(results, key=lambda result: -result.metrics["win_rate"]):
        print(f"{result.metrics['win_rate']:.0%} with {result.config}")


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
