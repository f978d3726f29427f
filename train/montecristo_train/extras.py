"""What training on Ray needs, all from one extra."""

from montecristo_env.util.commands import missing

try:
    import ray
    from ray import tune
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.ppo import PPO, PPOConfig
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.rllib.core import DEFAULT_MODULE_ID, Columns
    from ray.rllib.core.rl_module.apis import ValueFunctionAPI
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.core.rl_module.torch import TorchRLModule
    from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode
    from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
except ImportError as error:
    raise missing("training on Ray", error.name, "rllib") from error

__all__ = [
    "DEFAULT_MODULE_ID",
    "INPUT_ENV_SINGLE_SPACES",
    "INPUT_ENV_SPACES",
    "PPO",
    "Algorithm",
    "Columns",
    "InfiniteLookbackBuffer",
    "PPOConfig",
    "RLModuleSpec",
    "RLlibCallback",
    "SingleAgentEnvRunner",
    "SingleAgentEpisode",
    "TorchRLModule",
    "ValueFunctionAPI",
    "ray",
    "tune",
]
