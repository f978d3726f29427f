"""The mean of some trained networks: `python -m montecristo_train.average PATH PATH --out PATH`.

Networks that went on from the same one in different ways, such as self-play and lessons, can be averaged, weight by
weight. Their mean often keeps of each what it has learnt.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from montecristo_agents.policy import Network
from montecristo_env.commands import run_command
from montecristo_env.errors import InvalidArgument


@dataclass(frozen=True)
class Average:
    """Averages networks, weight by weight."""

    models: tyro.conf.Positional[tuple[Path, ...]]
    """Model files (`policy:PATH`) of networks with the same layers."""
    out: Path
    """Where to write their mean; a file that is there already is replaced."""


def average(networks: Sequence[Network]) -> Network:
    """The network whose weights are the means of theirs."""
    if len(networks) < 2:
        raise InvalidArgument(f"a mean needs two networks or more, not {len(networks)}")
    first = networks[0]
    shape = first.hidden, first.activation, first.residual, first.advised
    for network in networks:
        found = network.hidden, network.activation, network.residual, network.advised
        if found != shape:
            raise InvalidArgument(
                "only networks with the same hidden layers, activation, residual, advised have a mean, "
                f"not {shape} and {found}"
            )
    tensors = {
        name: np.mean([np.asarray(network.tensors[name], np.float32) for network in networks], axis=0)
        for name in first.tensors
    }
    return Network(first.hidden, tensors, *shape[1:], training={"mean of": [network.training for network in networks]})


def main(arguments: list[str]) -> None:
    """The command line."""
    options = tyro.cli(Average, args=arguments, prog="python -m montecristo_train.average")
    average([Network.load(path) for path in options.models]).save(options.out, np.float16)
    print(f"the mean of {len(options.models)} networks is {options.out}")


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
