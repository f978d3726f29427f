"""Training recipes for montecristo-env: one readable file each."""

import os
from importlib.util import find_spec

from montecristo_env.util.commands import missing

# Torch's threads spin for a while after each piece of work, on cores that our own threads could use by then. It is told
# not to before it is imported, or never.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

_NEEDED = (
    "torch",
    "stable_baselines3",
    "sb3_contrib",
    "tensorboard",
    "tyro",
    "rich",
    "safetensors",
    "openskill",
    "matplotlib",
)
for _package in _NEEDED:
    if find_spec(_package) is None:
        raise missing("training", _package, "sb3")
