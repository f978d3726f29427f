"""Self-play with TorchRL's PPO, in one file: `python -m montecristo_train.torchrl`.

One policy decides for all seats. The critic says what every seat will get, from what the player to decide sees, since
all players know the same. So TorchRL's own GAE credits every seat along the whole game, whoever moves in between, and
the advantage of a decision is that of the seat that made it. For a stronger player, see `montecristo_train.alphazero`.
"""

import sys
import time
from dataclasses import dataclass

import numpy as np
import tyro
from numpy.typing import NDArray

from montecristo_agents.benchmark import benchmark
from montecristo_agents.report import Report
from montecristo_env import actions, observation
from montecristo_env.torchrl import MonteCristoTorchEnv
from montecristo_env.util.commands import missing, run_command

try:
    import torch
    from tensordict.nn import TensorDictModule
    from torch import nn
    from torchrl.collectors import Collector
    from torchrl.modules import MaskedCategorical, ProbabilisticActor
    from torchrl.objectives import ClipPPOLoss
    from torchrl.objectives.value import GAE
except ImportError as error:
    raise missing("training with TorchRL", error.name, "torchrl") from error

REWARD, VALUE = ("agents", "reward"), "state_value"


@dataclass
class Settings:
    """PPO self-play on the TorchRL environment."""

    total_timesteps: int = 1_500_000
    """Decisions to learn from."""
    players: int = 2
    """2, 3 or 4 at a table."""
    n_envs: int = 256
    """Games at the same time."""
    n_steps: int = 64
    """Decisions of each game between updates."""
    batch_size: int = 2048
    """Decisions per gradient step."""
    n_epochs: int = 3
    """How often a rollout is learned from."""
    hidden_units: int = 256
    """In both hidden layers, of the policy and of the critic."""
    learning_rate: float = 1e-3
    """Of Adam, falling linearly to a tenth."""
    gae_lambda: float = 0.95
    """Of generalized advantage estimation; there is no discount."""
    clip_range: float = 0.2
    """Of PPO."""
    ent_coef: float = 0.01
    """What randomness is worth."""
    reward: str = "margin"
    """See `GameBatch`; this one tells more than who has won."""
    evaluate_deals: int = 250
    """Deals against random players at the end, each played in all seats."""
    seed: int = 0
    """Same seed, same run, on the same machine."""


def layers(outputs: int, settings: Settings) -> nn.Sequential:
    """A network with two hidden layers."""
    hidden = settings.hidden_units
    body = (nn.Linear(observation.SIZE, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
    return nn.Sequential(*body, nn.Linear(hidden, outputs))


class Critic(nn.Module):
    """What every seat will get, (..., players, 1).

    An observation begins with the player to decide, so the network does, too; here the seats are put in their places.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.players = settings.players
        self.layers = layers(settings.players, settings)

    def forward(self, seen: torch.Tensor, player: torch.Tensor) -> torch.Tensor:
        """For observations and the seats to decide, (..., 1)."""
        values: torch.Tensor = self.layers(seen)
        places = (torch.arange(self.players) - player) % self.players
        return values.gather(-1, places).unsqueeze(-1)


def train(settings: Settings) -> nn.Module:
    """Trains a policy network: from observations to logits."""
    torch.manual_seed(settings.seed)
    env = MonteCristoTorchEnv(settings.n_envs, settings.players, settings.seed, reward=settings.reward)
    network = layers(actions.COUNT, settings)
    policy = ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["logits"]),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        spec=env.action_spec,
        return_log_prob=True,
    )
    critic = TensorDictModule(Critic(settings), in_keys=["observation", "current_player"], out_keys=[VALUE])
    gae = GAE(gamma=1.0, lmbda=settings.gae_lambda, value_network=critic)
    gae.set_keys(value=VALUE, reward=REWARD, done=("agents", "done"), terminated=("agents", "terminated"))
    loss = ClipPPOLoss(
        policy, critic, clip_epsilon=settings.clip_range, entropy_coeff=settings.ent_coef, normalize_advantage=True
    )
    loss.set_keys(value=VALUE)
    optimizer = torch.optim.Adam(loss.parameters(), lr=settings.learning_rate)
    rollout = settings.n_envs * settings.n_steps
    updates = -(-settings.total_timesteps // rollout)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=updates)
    collector = Collector(
        env, policy, frames_per_batch=rollout, total_frames=updates * rollout, auto_register_policy_transforms=False
    )
    begun = time.perf_counter()
    for update, data in enumerate(collector, start=1):
        for name in ("done", "terminated"):  # the same for every seat
            flags = data["next", name].unsqueeze(-1)
            data["next", "agents", name] = flags.expand(data["next", "agents", "reward"].shape)
        with torch.no_grad():
            gae(data)
        data["advantage"] = data["advantage"].squeeze(-1).gather(-1, data["current_player"])
        samples = data.reshape(-1)
        for _ in range(settings.n_epochs):
            for chosen in torch.split(torch.randperm(rollout), settings.batch_size):
                losses = loss(samples[chosen])
                optimizer.zero_grad()
                (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimizer.step()
        schedule.step()
        speed = update * rollout / (time.perf_counter() - begun)
        print(f"\r{update * rollout:,} of {updates * rollout:,} decisions, {speed:,.0f} per second", end="", flush=True)
    print()
    collector.shutdown()
    return network


def measure(network: nn.Module, settings: Settings) -> Report:
    """The most likely actions against random players, on duplicate deals."""

    def choose(seen: NDArray[np.float32], mask: NDArray[np.int8]) -> NDArray[np.int64]:
        with torch.no_grad():
            logits = network(torch.from_numpy(seen)).numpy()
        best: NDArray[np.int64] = np.where(mask == 1, logits, -np.inf).argmax(axis=1)
        return best

    return benchmark(choose, settings.players, settings.evaluate_deals, name="torchrl", against=("random",))


def main(arguments: list[str]) -> None:
    """The command line."""
    settings = tyro.cli(Settings, args=arguments, prog="python -m montecristo_train.torchrl")
    print(measure(train(settings), settings))


if __name__ == "__main__":
    run_command(main, sys.argv[1:])
