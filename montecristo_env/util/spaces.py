"""The Gymnasium spaces that the environments share."""

import numpy as np
from gymnasium.spaces import Box, Dict

from montecristo_env.core import actions, observation
from montecristo_env.errors import InvalidArgument

OBS_DTYPES = ("float32", "int8")


def observation_box(obs_dtype: str) -> Box:
    """The space of observations: scaled as float32, or counts as int8."""
    if obs_dtype not in OBS_DTYPES:
        raise InvalidArgument(f"obs_dtype must be one of {', '.join(OBS_DTYPES)}, but is {obs_dtype!r}")
    dtype = np.dtype(obs_dtype).type
    highest = observation.HIGHEST * observation.SCALE if obs_dtype == "float32" else observation.HIGHEST
    return Box(np.zeros(observation.SIZE, dtype), highest, dtype=dtype)


def masked_space(obs_dtype: str) -> Dict:
    """The space of observations that come with their action masks, as PettingZoo's classic games have them."""
    mask = Box(0, 1, (actions.COUNT,), np.int8)
    return Dict({"observation": observation_box(obs_dtype), "action_mask": mask})
