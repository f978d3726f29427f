"""The Secret of Monte Cristo as a fast multi-agent environment.

`GameBatch` is the game: a batch of games with masks, observations and rewards. `Ruleset` holds its settings,
`actions` and `observation` explain the numbers, `GameRecord` keeps what was played. This project is not affiliated
with the game's designers or publishers.
"""

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
__all__ = [
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
    "Ruleset",
    "UnplayableRuleset",
    "Zone",
    "actions",
    "observation",
]
