"""The TorchRL environment: a batched `EnvBase` on the batch, for turn-based self-play."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecristo_env.core import actions, observation
from montecristo_env.core.layout import aligned_empty
from montecristo_env.errors import InvalidArgument
from montecristo_env.games import GameBatch
from montecristo_env.ruleset import RulesetLike
from montecristo_env.util.commands import missing
from montecristo_env.util.spaces import observation_box

try:
    import torch
    from tensordict import TensorDict, TensorDictBase
    from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
    from torchrl.envs import EnvBase
except ImportError as error:
    raise missing("montecristo_env.torchrl", error.name, "torchrl") from error


class MonteCristoTorchEnv(EnvBase):
    """`MonteCristoTorchEnv(256, num_players=3)`: many games in one step, each asking whoever must decide.

    Keys of a tensordict, for N games with n players:

    * `observation` (N, SIZE), `action_mask` (N, COUNT) bool and `current_player` (N, 1) int64: what the player to
      decide sees and may do, and which seat that is. The same player may decide several times in a row.
    * `action` (N,): their decision. An illegal one raises `IllegalAction` and changes nothing.
    * `("next", "agents", "reward")` (N, n, 1): what every seat gets, zero until the end of the game.
    * `("next", "terminated")`, `("next", "truncated")`, `("next", "done")` (N, 1): as §9.1 and §9.4 have it. Where a
      game is over, the observation is that of seat 0 and no action is legal, until `reset`, which starts the games
      that are over, or those of a `_reset` mask.

    `rollout` without a policy plays legal actions. Inside other transforms, TorchRL's `ActionMask` sees to that, and a
    `Collector` of random games takes `env.rand_action` as its policy.

    Args:
        num_envs: how many games, the batch size of the environment.
        num_players: 2, 3 or 4.
        seed: of the games of the first reset, as for `GameBatch`; `set_seed` gives another one.
        ruleset: see `GameBatch`.
        reward: see `GameBatch`.
        obs_dtype: "float32" for scaled observations, "int8" for counts.
        device: where the tensors go; the games stay on the CPU.
    """

    def __init__(
        self,
        num_envs: int = 1,
        num_players: int = 2,
        seed: int | None = None,
        ruleset: RulesetLike = None,
        reward: str = "win",
        obs_dtype: str = "float32",
        device: Any = "cpu",
    ) -> None:
        box = observation_box(obs_dtype)
        if np.ndim(num_players):
            raise InvalidArgument(f"num_players must be 2, 3 or 4, the same in all games, but is {num_players!r}")
        games = GameBatch(num_envs, num_players, seed, ruleset, reward)
        super().__init__(device=torch.device(device), batch_size=torch.Size([num_envs]))
        self.games = games
        self.num_players = int(num_players)
        self._dtype = box.dtype
        self._seed = seed
        low, high = (torch.from_numpy(bound).expand(num_envs, -1) for bound in (box.low, box.high))
        self.observation_spec = Composite(
            observation=Bounded(low, high, device=device, dtype=low.dtype),
            action_mask=Binary(actions.COUNT, (num_envs, actions.COUNT), device, torch.bool),
            current_player=Categorical(self.num_players, (num_envs, 1), device, torch.int64),
            shape=(num_envs,),
        )
        self.action_spec = Categorical(actions.COUNT, (num_envs,), device, torch.int64)
        reward_spec = Unbounded((num_envs, self.num_players, 1), device, torch.float32)
        self.reward_spec = Composite(
            agents=Composite(reward=reward_spec, shape=(num_envs,)), shape=(num_envs,), device=device
        )
        flag = Binary(1, (num_envs, 1), device, torch.bool)
        self.done_spec = Composite(
            done=flag, terminated=flag.clone(), truncated=flag.clone(), shape=(num_envs,), device=device
        )

    def _set_seed(self, seed: int | None) -> None:
        self._seed = seed

    def _reset(self, tensordict: TensorDictBase | None = None, **_: Any) -> TensorDictBase:
        wanted = None if tensordict is None else tensordict.get("_reset", None)
        rows = np.arange(len(self.games)) if wanted is None else np.flatnonzero(wanted.cpu().numpy())
        if self._seed is not None and rows.size == len(self.games):
            self.games.reset(seed=self._seed)
            self._seed = None
        else:
            self.games.reset(rows)
        seen, masks = self._room()
        self.games.observe(seen, masks=masks)
        return self._tensordict(seen, masks)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        seen, masks = self._room()
        self.games.step(tensordict["action"].cpu().numpy(), observations=seen, masks=masks)
        stepped = self._tensordict(seen, masks)
        rewards = self.games.rewards[:, : self.num_players, None].copy()
        stepped["agents"] = TensorDict({"reward": torch.from_numpy(rewards)}, self.batch_size, device=self.device)
        return stepped

    def _room(self) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Where to write observations and masks: new every time, since rollouts keep them."""
        return (
            aligned_empty((len(self.games), observation.SIZE), self._dtype),
            aligned_empty((len(self.games), actions.COUNT), np.dtype(np.int8)),
        )

    def _tensordict(self, seen: NDArray[Any], masks: NDArray[np.int8]) -> TensorDict:
        games = self.games
        parts = {
            "observation": seen,
            "action_mask": masks.view(np.bool_),
            "current_player": np.maximum(games.current_player, 0).astype(np.int64)[:, None],
            "terminated": games.terminated[:, None].copy(),
            "truncated": games.truncated[:, None].copy(),
            "done": games.over[:, None],
        }
        tensors = {name: torch.from_numpy(part) for name, part in parts.items()}
        self.full_action_spec["action"].update_mask((tensors["action_mask"] | tensors["done"]).to(self.device))
        return TensorDict(tensors, self.batch_size, device=self.device)
