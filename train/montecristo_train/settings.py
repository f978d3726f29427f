"""The settings of training runs: each dataclass is also a command line. Words are those of Stable-Baselines3."""

import types
from dataclasses import dataclass, fields
from typing import Any, get_args, get_origin, get_type_hints

from montecristo_agents.entity import Sizes
from montecristo_env.errors import InvalidArgument

_LEAST = {"batch_size": 2}  # of whole numbers; 1 of all others but for these, which have 0
_MAY_BE_ZERO = ("seed", "n_workers", "n_runners", "warmup", "learning_starts", "evaluate_simulations", "redraws")
_MOST = {"seed": 2**32 - 1}  # 2**62 of all others
_LARGE = 1e9  # more than any number that is no share
# From 0 to 1.
_SHARES = ["gamma", "gae_lambda", "td_lambda", "past_share", "opponents_share", "win_weight", "average_rate"]
_SHARES += ["window", "fewer_until"]


@dataclass(frozen=True)
class RunSettings:
    """What all recipes share; a timestep is one decision that is learnt from."""

    total_timesteps: int = 20_000_000
    """How long to train."""
    seed: int = 0
    """Same seed, same run, on the same machine, in one process."""
    n_envs: int = 512
    """Games that are played at the same time."""
    n_steps: int = 64
    """Decisions in each of them between two updates."""
    players: tuple[float, float, float] = (0.5, 0.25, 0.25)
    """The shares of games with 2, 3 and 4 players."""
    ruleset: str = ""
    """Settings of the game that differ from the default, such as refill=short,target=30, or a JSON file of them."""

    pair_units: int = 32
    """Of the network, for each pair of a dungeon and a kind."""
    entity_units: int = 48
    """For each dungeon and each kind."""
    hidden_units: int = 256
    """In both layers of the trunk."""
    learning_rate: float = 7e-4
    """Of the optimizer, at the beginning."""
    final_learning_rate: float = 3e-5
    """At the end."""
    batch_size: int = 2048
    """Decisions per gradient step."""
    max_grad_norm: float = 0.5
    """The longest gradient."""

    evaluate_every: int = 1_000_000
    """Timesteps between evaluations; there is one at the end, too."""
    evaluate_against: tuple[str, ...] = ("random", "greedy")
    """Whom to play then; nothing is learnt from it."""
    evaluate_deals: int = 100
    """How many deals, each played in every seat."""
    evaluate_simulations: int = 0
    """Simulations per decision when it plays the last of these with search, too; 0 for none."""
    checkpoint_every: int = 500_000
    """Timesteps between checkpoints."""

    def __post_init__(self) -> None:
        """Refuses what cannot be trained with, by name."""
        hints = get_type_hints(type(self))
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if (wanted := _wanted(name, value, hints[name])) is not None:
                raise InvalidArgument(f"{name} must be {wanted}, but is {value!r}")
        if not sum(self.players):
            raise InvalidArgument(f"players must have a share that is not 0, but is {self.players}")
        if not self.evaluate_against:
            raise InvalidArgument("evaluate_against must not be empty")

    @property
    def sizes(self) -> Sizes:
        """Of the network."""
        return Sizes(self.pair_units, self.entity_units, self.hidden_units)

    def share_done(self, timesteps: int) -> float:
        """The share of the training that is done after these timesteps, from 0 to 1."""
        return min(1.0, timesteps / self.total_timesteps)


@dataclass(frozen=True)
class SelfPlaySettings(RunSettings):
    """What the recipes with PPO share."""

    n_epochs: int = 2
    """How often an update goes through a rollout."""
    gamma: float = 1.0
    """The discount of later rewards, per decision of the same player: games end, so none is needed."""
    gae_lambda: float = 0.95
    """Of the generalised advantage estimate."""
    clip_range: float = 0.2
    """How far an update may go."""
    ent_coef: float = 0.01
    """What randomness is worth, at the beginning."""
    final_ent_coef: float = 0.001
    """At the end; linear in between."""
    vf_coef: float = 0.5
    """The weight of the value's error in the loss."""

    past_share: float = 0.2
    """The share of games with a past self at the table."""
    pool_size: int = 20
    """Past selves that are kept."""
    snapshot_every: int = 500_000
    """Timesteps after which the learner becomes a past self."""
    opponents: tuple[str, ...] = ()
    """Agents that play along, those that still win more often than others: greedy, policy:PATH …; none by default."""
    opponents_share: float = 0.0
    """The share of games with one of them at the table, in all seats but one."""


def _wanted(name: str, value: Any, hint: Any) -> str | None:
    """What a setting must be, if it is not that."""
    if hint is int:
        least, most = 0 if name in _MAY_BE_ZERO else _LEAST.get(name, 1), _MOST.get(name, 2**62)
        return None if type(value) is int and least <= value <= most else f"a whole number from {least} to {most}"
    if hint is float:
        share = name in _SHARES
        fits = type(value) in (int, float) and 0 <= value <= (1 if share else _LARGE)
        return None if fits else "a number from 0 to 1" if share else f"a number from 0 to {_LARGE:g}"
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        if not isinstance(value, tuple) or (kinds[-1] is not ... and len(value) != len(kinds)):
            return "a list" if kinds[-1] is ... else f"a list of {len(kinds)}"
        return next(
            (f"a list, each of it {wanted}" for item in value if (wanted := _wanted(name, item, kinds[0]))), None
        )
    if isinstance(hint, types.UnionType):
        return None  # a path, which is no part of a run's settings
    return None if type(value) is hint else f"a {hint.__name__}"
