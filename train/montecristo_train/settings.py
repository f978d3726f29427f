"""The settings of a training run: each dataclass is also a command line, and its presets are the subcommands."""

import types
from dataclasses import dataclass, fields, replace
from typing import Any, get_args, get_origin, get_type_hints

from montecristo_env.errors import InvalidArgument

MORE_THAN_LUCK = 0.65  # who wins so many of the few games of an evaluation has learnt something
_LEAST = {"seed": 0, "lessons": 0, "runners": 0, "batch": 2}  # of whole numbers; 1 of all others
_MOST = {"seed": 2**32 - 1}  # 2**62 of all others
_LARGE = 1e9  # more than any number that is no share
_SHARES = ("discount", "decay", "shaping_share", "past_share", "scripted_share")  # from 0 to 1


@dataclass(frozen=True)
class SelfPlaySettings:
    """What all recipes of self-play with PPO share; a step is one decision of the learner."""

    steps: int = 50_000_000
    """How long to train."""
    seed: int = 0
    """Same seed, same run, on the same machine."""
    tables: int = 512
    """Games that are played at the same time."""
    rollout: int = 64
    """Decisions in each of them between two updates."""
    players: tuple[float, float, float] = (0.5, 0.25, 0.25)
    """The shares of tables with 2, 3 and 4 players."""
    reward: str = "win"
    """What is paid at the end: win, rank or margin (see GameBatch)."""
    ruleset: str = ""
    """Settings of the game that differ from the default, such as refill=short,target=30, or a JSON file of them."""

    advised: bool = True
    """Whether the network sees, besides the observation, how greedy judges the choices and how a round would score."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the network's hidden layers."""
    learning_rate: float = 7e-4
    """Of Adam, at the beginning."""
    final_learning_rate: float = 3e-5
    """At the end; linear in between."""
    batch: int = 2048
    """Decisions per gradient step."""
    epochs: int = 2
    """How often an update goes through a rollout."""
    discount: float = 1.0
    """Of later rewards, per decision of the same player: games end, so none is needed."""
    decay: float = 0.95
    """Lambda of the generalised advantage estimate."""
    clip: float = 0.2
    """How far an update may go: the clip range of PPO."""
    entropy: float = 0.008
    """What randomness is worth, at the beginning."""
    final_entropy: float = 0.001
    """At the end; linear in between."""
    value_weight: float = 0.5
    """The weight of the value's error in the loss."""
    gradient_limit: float = 0.5
    """The longest gradient."""
    shaping: float = 1.0
    """The weight of the score margin, as a potential, in the rewards, at the beginning."""
    shaping_share: float = 0.5
    """The share of the training after which that weight has gone to zero."""

    past_share: float = 0.1
    """The share of games with a past self at the table."""
    scripted_share: float = 0.5
    """The share of games with a scripted player at the table."""
    scripted: tuple[str, ...] = ("greedy",)
    """These, those that still win more often."""
    alone: bool = False
    """Whether the learner has only one seat in games with scripted players at the table."""
    pool_size: int = 20
    """Past selves that are kept."""
    snapshot_every: int = 50
    """Updates after which the learner becomes a past self."""

    evaluate_every: int = 50
    """Updates between evaluations; there is one at the end, too."""
    evaluate_against: tuple[str, ...] = ("random", "greedy")
    """Whom to play then."""
    evaluate_deals: int = 100
    """On so many deals, in every seat."""
    checkpoint_every: int = 25
    """Updates between checkpoints."""

    def __post_init__(self) -> None:
        """Refuses what cannot be trained with, by name."""
        hints = get_type_hints(type(self))
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if (wanted := _wanted(name, value, hints[name])) is not None:
                raise InvalidArgument(f"{name} must be {wanted}, but is {value!r}")
        if not sum(self.players):
            raise InvalidArgument(f"players must have a share that is not 0, but is {self.players}")
        for name in ("hidden", "evaluate_against"):
            if not getattr(self, name):
                raise InvalidArgument(f"{name} must not be empty")

    def share_done(self, steps: int) -> float:
        """How much of the training is done after so many steps, from 0 to 1."""
        return min(1.0, steps / self.steps)

    def shaping_at(self, steps: int) -> float:
        """The weight of the score margin after so many steps."""
        return self.shaping * max(0.0, 1 - self.share_done(steps) / max(self.shaping_share, 1e-9))


def _wanted(name: str, value: Any, hint: Any) -> str | None:
    """What a setting must be, if it is not that."""
    if hint is int:
        least, most = _LEAST.get(name, 1), _MOST.get(name, 2**62)
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


@dataclass(frozen=True)
class Settings(SelfPlaySettings):
    """Self-play with MaskablePPO."""

    start: str = ""
    """A model file (`policy:PATH`) to start from, with the same hidden layers; from scratch if empty."""
    symmetric: bool = False
    """Whether the network treats all kinds of treasure alike, and all dungeons (see `symmetry`)."""
    lessons: int = 0
    """The first so many of the steps teach what every choice is worth, tried out, before learning from wins begins."""

    lessons_tries: int = 1
    """How often each choice is tried in lessons: where all are taught, more positions teach more than more tries."""
    lessons_rounds: int = 1
    """For how many rounds greedy plays on in lessons: more tell more of a choice, with more noise."""
    lessons_on: tuple[str, ...] = ()
    """The kinds of decision that lessons are about, such as put_token; in others it is held to `start`. None: all."""
    bfloat16: bool = False
    """Whether hidden layers are worked out in half precision: faster on processors that know it, if not by much."""
    threads: int = 2
    """For torch."""


QUICK = Settings(
    steps=5_000_000,
    tables=256,
    advised=False,
    hidden=(256,),
    learning_rate=1e-3,
    final_learning_rate=1e-4,
    epochs=3,
    entropy=0.02,
    final_entropy=0.002,
    scripted_share=0.1,
    snapshot_every=20,
    evaluate_every=20,
    evaluate_deals=50,
)
SMOKE = replace(
    QUICK,
    steps=40_000,
    tables=32,
    rollout=32,
    hidden=(32,),
    batch=256,
    epochs=2,
    snapshot_every=5,
    evaluate_every=20,
    evaluate_deals=10,
    checkpoint_every=10,
)
FULL = Settings(
    steps=10_000_000,
    lessons=2_000_000,
    lessons_rounds=2,
    tables=1024,
    rollout=32,
    players=(0.7, 0.05, 0.25),  # advice for four takes twice as long as for two
    hidden=(1024, 1024),
    symmetric=True,
    learning_rate=6e-4,
    final_learning_rate=1e-5,
    entropy=0.004,
    final_entropy=0.0005,
    shaping=0.0,  # values are learnt in the lessons, without it
    past_share=0.05,
    scripted_share=0.2,
    scripted=("greedy", "mcts:12"),
    alone=True,
    evaluate_every=40,
)

PRESETS = {
    "smoke": ("under a minute: to see that it works", SMOKE),
    "quick": ("about four minutes: an agent that beats random", QUICK),
    "full": ("about forty minutes: an agent that beats greedy", FULL),
}
