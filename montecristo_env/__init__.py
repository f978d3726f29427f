"""The Secret of Monte Cristo as a fast multi-agent environment.

`GameBatch` is the game: a batch of games with masks, observations and rewards. `Ruleset` holds its settings,
`actions` and `observation` explain the numbers, `GameRecord` keeps what was played. This project is not affiliated
with the game's designers or publishers.
"""

import warnings

import gymnasium
import pettingzoo

from montecristo_env import montecristo_v0, symmetry
from montecristo_env.agent import Agent, PublicView, make_agent
from montecristo_env.core import actions, observation
from montecristo_env.core.constants import Decision, Kind, Lane, Zone
from montecristo_env.errors import (
    DamagedRecord,
    IllegalAction,
    InvalidArgument,
    InvalidNotation,
    InvalidPlayerCount,
    MonteCristoError,
    UnplayableRuleset,
)
from montecristo_env.games import GameBatch
from montecristo_env.record import GameRecord
from montecristo_env.ruleset import Ruleset

__version__ = "0.1.0"

if "MonteCristo-v0" not in gymnasium.registry:
    gymnasium.register(
        "MonteCristo-v0",
        entry_point="montecristo_env.gym_env:MonteCristoEnv",
        vector_entry_point="montecristo_env.vector:MonteCristoVectorEnv",
        order_enforce=False,  # it sees to that itself, and so a notebook shows the board, not a wrapper
        disable_env_checker=True,
    )
if hasattr(pettingzoo, "register"):  # PettingZoo 1.27 and later
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # it warns when the package is reloaded
        pettingzoo.register("aec", "montecristo/montecristo-v0", entry_point="montecristo_env.montecristo_v0:env")

__all__ = [
    "Agent",
    "DamagedRecord",
    "Decision",
    "GameBatch",
    "GameRecord",
    "IllegalAction",
    "InvalidArgument",
    "InvalidNotation",
    "InvalidPlayerCount",
    "Kind",
    "Lane",
    "MonteCristoError",
    "PublicView",
    "Ruleset",
    "UnplayableRuleset",
    "Zone",
    "actions",
    "make_agent",
    "montecristo_v0",
    "observation",
    "symmetry",
]
