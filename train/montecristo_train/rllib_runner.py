"""What self-play needs from RLlib: a network with masks, a runner that plays many games at once, and a league.

RLlib's own runner for many agents steps every game by itself in Python and keeps a dictionary for every step. Here a
runner plays all its games in one compiled batch, and hands over what RLlib would cut a multi-agent episode into
anyway: for every seat that the learner holds an episode of its own, with that seat's decisions and rewards. All seats
share one network, so to RLlib this is one agent with many episodes.
"""

import dataclasses
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray

from montecristo_agents.entity import EntityNetwork, Sizes
from montecristo_env import actions
from montecristo_env.core.constants import MAX_PLAYERS
from montecristo_env.util.commands import missing
from montecristo_env.util.spaces import observation_box
from montecristo_train import entity
from montecristo_train.checkpoint import past_self
from montecristo_train.entity import ILLEGAL, EntityModule
from montecristo_train.seat_gae import SeatStep
from montecristo_train.seat_trajectories import SeatTrajectories, Trajectory
from montecristo_train.selfplay import SelfPlayVecEnv, make_env
from montecristo_train.settings import SelfPlaySettings

try:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.rllib.core import DEFAULT_MODULE_ID, Columns
    from ray.rllib.core.rl_module.apis import ValueFunctionAPI
    from ray.rllib.core.rl_module.torch import TorchRLModule
    from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode
    from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer as Buffer
except ImportError as error:
    raise missing("training on Ray", "ray", "rllib") from error

LEAGUE = "league"  # the part of a runner's state
SEEN, MASK = "observation", "action_mask"  # the parts of an observation, as PettingZoo's classic games call them


@dataclasses.dataclass(frozen=True)
class RllibSettings(SelfPlaySettings):
    """Self-play with PPO on RLlib."""

    n_runners: int = 2
    """Processes that play, on any machine of the cluster; they share the games. With 0 the learner plays itself."""
    address: str = ""
    """The cluster: "auto" for the one this machine belongs to; if empty, this machine alone."""


def spaces() -> tuple[Dict, "Discrete[np.int64]"]:
    """What the network sees, as counts, and what it chooses from."""
    return Dict({SEEN: observation_box("int8"), MASK: Box(0, 1, (actions.COUNT,), np.int8)}), Discrete(actions.COUNT)


class MaskedNetwork(TorchRLModule, ValueFunctionAPI):
    """The entity network with masks."""

    def setup(self) -> None:
        """Makes the layers."""
        self.module = EntityModule(Sizes(*self.model_config["sizes"]))
        for unused in (self.module.value, self.module.auxiliary):
            unused.requires_grad_(False)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, torch.Tensor]:
        seen = batch[Columns.OBS][SEEN]
        outputs = self.module(seen)
        logits = outputs.logits.masked_fill(batch[Columns.OBS][MASK] == 0, ILLEGAL)
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: entity.expected_rewards(outputs, seen)}

    def compute_values(self, batch: dict[str, Any], embeddings: torch.Tensor | None = None) -> torch.Tensor:
        """What the observer expects to get, (K,)."""
        values: torch.Tensor = self._forward(batch)[Columns.EMBEDDINGS] if embeddings is None else embeddings
        return values.squeeze(-1)


def export(module: MaskedNetwork, training: dict[str, Any]) -> EntityNetwork:
    """The network without torch, as `policy:PATH` plays it."""
    return entity.export_wins(module.module, training)


class SelfPlayRunner(SingleAgentEnvRunner):
    """Plays its share of the games, all in one batch, and returns an episode for each seat of the learner.

    It also keeps the league, as part of its state: a checkpoint has it, and so has a runner that takes the place of one
    that died.
    """

    env: SelfPlayVecEnv | None

    def __init__(self, **kwargs: Any) -> None:
        self.league: list[EntityNetwork] = []
        super().__init__(**kwargs)

    @property
    def settings(self) -> RllibSettings:
        """Those of the run."""
        settings: RllibSettings = self.config.env_config["settings"]
        return settings

    def make_env(self) -> None:
        """Sets up this runner's games, with deals of their own."""
        n_envs = self.settings.n_envs // max(1, self.settings.n_runners)
        seed = int(np.random.SeedSequence((self.settings.seed, self.worker_index or 0)).generate_state(1)[0])
        self.env = make_env(dataclasses.replace(self.settings, n_envs=n_envs, seed=seed))
        self.num_envs = n_envs
        self._seen: Any = self.env.reset()
        self._cutter = SeatTrajectories()
        self._rng = np.random.default_rng(seed)

    def get_spaces(self) -> dict[str, Any]:
        """Those of the network."""
        both = spaces()
        return {INPUT_ENV_SPACES: both, INPUT_ENV_SINGLE_SPACES: both, DEFAULT_MODULE_ID: both}

    def add_past_self(self, network: EntityNetwork) -> None:
        """Takes a past self into the league."""
        self.league = [*self.league, network][-self.settings.pool_size :]
        if self.env is not None:
            self.env.pool.add_past_self(past_self(network))

    def set_league(self, league: list[EntityNetwork]) -> None:
        """Replaces all past selves, as after a restart."""
        self.league = league
        if self.env is not None:
            self.env.pool.members = [member for member in self.env.pool.members if not member.past_self]
            self.env.pool.guest = None
            for network in league:
                self.env.pool.add_past_self(past_self(network))

    def get_state(self, components: Any = None, *, not_components: Any = None, **kwargs: Any) -> dict[str, Any]:
        """RLlib's part of the state, and the league."""
        state: dict[str, Any] = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(LEAGUE, components, not_components):
            state[LEAGUE] = self.league
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what of a state is there."""
        if LEAGUE in state:
            self.set_league(state[LEAGUE])
        super().set_state(state)

    def sample(self, **kwargs: Any) -> list[SingleAgentEpisode]:
        """Plays one rollout of all games."""
        assert self.env is not None
        env, size = self.env, (self.settings.n_steps, self.num_envs)
        seats, ended = np.empty(size, np.int64), np.empty(size, np.bool_)
        rewards = np.empty((*size, MAX_PLAYERS), np.float32)
        columns: dict[str, NDArray[Any]] = {
            SEEN: np.empty((*size, self._seen.shape[1]), np.int8),
            MASK: np.empty((*size, actions.COUNT), np.int8),
            Columns.ACTIONS: np.empty(size, np.int64),
            Columns.ACTION_LOGP: np.empty(size, np.float32),
            Columns.ACTION_DIST_INPUTS: np.empty((*size, actions.COUNT), np.float32),
        }
        games: list[dict[str, Any]] = []
        for step in range(self.settings.n_steps):
            masks = env.action_masks().view(np.int8)
            logits = self._logits(self._seen, masks)
            chosen, logp = draw(logits, self._rng)
            for column, values in zip(columns.values(), (self._seen, masks, chosen, logp, logits), strict=True):
                column[step] = values
            self._seen, _, _, infos = env.step(chosen)
            by_seat: SeatStep = infos[0]["seats"]
            seats[step], rewards[step], ended[step] = by_seat[:3]
            games += [info["episode"] for info in infos if "episode" in info]
        env.pool.forget()
        self._log(games)
        return [episode(part) for part in self._cutter.cut(seats, rewards, ended, columns)]

    def _logits(self, seen: NDArray[np.int8], masks: NDArray[np.int8]) -> NDArray[np.float32]:
        batch = {Columns.OBS: {SEEN: torch.from_numpy(seen), MASK: torch.from_numpy(masks)}}
        with torch.no_grad():
            logits: NDArray[np.float32] = self.module.forward_exploration(batch)[Columns.ACTION_DIST_INPUTS].numpy()
        return logits

    def _log(self, games: list[dict[str, Any]]) -> None:
        """Counts decisions, known outcome or not: that is what a rollout is measured in."""
        self._increase_sampled_metrics(self.settings.n_steps * self.num_envs, len(games))
        for name, key in (("decisions", "l"), ("margin", "margin")):
            for game in games:
                self.metrics.log_value(("game", name), game[key], window=100)


def draw(logits: NDArray[np.float32], rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """An action for each row, as likely as its logit says, and the logarithm of that likelihood."""
    logp = logits - logits.max(axis=1, keepdims=True)
    logp -= np.log(np.exp(logp).sum(axis=1, keepdims=True))
    chosen: NDArray[np.int64] = (logp + rng.gumbel(size=logp.shape)).argmax(axis=1)
    return chosen, np.take_along_axis(logp, chosen[:, None], axis=1)[:, 0]


def episode(part: Trajectory) -> SingleAgentEpisode:
    """A trajectory in RLlib's words. It needs an observation after the last decision: after the end, any will do."""
    seen = {name: part.columns[name] for name in (SEEN, MASK)}
    if part.ended:
        seen = {name: np.concatenate([values, values[-1:]]) for name, values in seen.items()}
    decided = len(part.rewards)
    return SingleAgentEpisode(
        observations=Buffer(seen),
        actions=Buffer(part.columns[Columns.ACTIONS][:decided]),
        rewards=Buffer(part.rewards),
        infos=[{}] * (decided + 1),
        extra_model_outputs={
            name: Buffer(part.columns[name][:decided]) for name in (Columns.ACTION_LOGP, Columns.ACTION_DIST_INPUTS)
        },
        terminated=part.ended,
        len_lookback_buffer=0,
    )


class League(RLlibCallback):
    """Makes the learner a past self now and then, and tells all runners."""

    def on_train_result(self, *, algorithm: Algorithm, result: dict[str, Any], **kwargs: Any) -> None:
        """After every update."""
        settings: RllibSettings = algorithm.config.env_config["settings"]
        steps = int(result["env_runners"]["num_env_steps_sampled_lifetime"])
        if steps // settings.snapshot_every > (steps - settings.n_envs * settings.n_steps) // settings.snapshot_every:
            network = export(algorithm.get_module(), {})
            algorithm.env_runner_group.foreach_env_runner(lambda runner: runner.add_past_self(network))

    def on_checkpoint_loaded(self, *, algorithm: Algorithm, **kwargs: Any) -> None:
        """RLlib gives the league to its own runner only."""
        league = algorithm.env_runner.league
        algorithm.env_runner_group.foreach_env_runner(lambda runner: runner.set_league(league))
