"""The settings of AlphaZero: the dataclass is also the command line, and the presets are the subcommands."""

from dataclasses import dataclass

from montecristo_env.errors import InvalidArgument
from montecristo_train.settings import RunSettings


@dataclass(frozen=True)
class Settings(RunSettings):
    """Gumbel AlphaZero; a timestep is one position, a decision of any player."""

    total_timesteps: int = 80_000_000
    """How long to train."""
    start: str = ""
    """A model file to start from, with a network of the same sizes or a smaller one; from scratch if empty."""
    players: tuple[float, float, float] = (0.4, 0.2, 0.4)
    """The shares of games with 2, 3 and 4 players."""
    n_workers: int = 2
    """Processes that play; with 0 this one does."""
    ray: bool = False
    """Whether they are actors of Ray, on the machines of a cluster (`ray start`), or on this one if there is none."""
    n_steps: int = 1024
    """Positions that a process plays with the same weights."""

    max_considered: int = 8
    """Moves that a search considers at its root at most."""
    simulations_per_move: int = 4
    """Simulations are 2 plus this for each move considered, from `fewer_until` on …"""
    fewer_simulations_per_move: int = 2
    """… and 2 plus this before: a weak network learns more from more games …"""
    fewer_until: float = 0.6
    """… in this share of the run …"""
    min_simulations: int = 8
    """… but at least this many …"""
    max_simulations: int = 34
    """… and at most this many."""

    win_weight: float = 0.5
    """Of the share of the win in the utility; the rest is softmax(scores / 6)."""
    td_lambda: float = 0.97
    """How far values are learnt from the end of the game rather than from later searches."""
    redraws: int = 0
    """Redraws of every draw by whose value its luck is subtracted from what is learnt; 0 for none."""
    warmup: int = 100_000
    """Of the first positions, this many are learnt from the end of the game only."""

    buffer_size: int = 2_000_000
    """Positions that are kept to learn from, 1.2 kB each."""
    window: float = 0.2
    """The share of all positions so far, the newest, that is learnt from: those of a weaker network teach its play …"""
    min_window: int = 200_000
    """… but at least so many: of few games, the results are learnt by heart."""
    learning_starts: int = 20_000
    """Positions to wait for before learning, also after `--resume`."""
    replay_ratio: float = 2.0
    """How often each position is learnt from."""
    batch_size: int = 512
    """Positions per gradient step."""
    learning_rate: float = 2e-3
    """Of AdamW, at the beginning."""
    final_learning_rate: float = 5e-5
    """At the end; half a cosine in between."""
    weight_decay: float = 1e-4
    """Of AdamW."""
    max_grad_norm: float = 2.0
    """The longest gradient."""
    vf_coef: float = 1.5
    """The weight of the value's cross-entropy in the loss; that of the policy has 1."""
    win_coef: float = 0.3
    """The weight of that of the win."""
    aux_coef: float = 0.5
    """The weight of the squared error of the final margin and of points in the next two rounds."""
    bfloat16: bool = True
    """Whether matrices are multiplied in half precision, in play and in learning, if the processor has that."""
    average_rate: float = 0.002
    """How fast the averaged weights, which play, are evaluated and exported, follow those that learn."""

    evaluate_every: int = 4_000_000
    """Timesteps between evaluations; there is one at the end, too."""
    evaluate_simulations: int = 32
    """Simulations per decision when it plays the last of these with search, too; 0 for none."""
    checkpoint_every: int = 100_000
    """Timesteps between checkpoints."""

    def __post_init__(self) -> None:
        super().__post_init__()
        least_of = {
            "n_envs": ("n_workers", self.n_workers),
            "max_simulations": ("min_simulations", self.min_simulations),
            "buffer_size": ("batch_size", self.batch_size),
        }
        for name, (other, least) in least_of.items():
            if getattr(self, name) < least:
                raise InvalidArgument(f"{name} must be at least {other}, {least}, but is {getattr(self, name)}")

    def budgets(self, timesteps: int) -> list[int]:
        """Simulations by the number of moves considered, from 1, after so many timesteps."""
        early = self.share_done(timesteps) < self.fewer_until
        per_move = self.fewer_simulations_per_move if early else self.simulations_per_move
        wanted = [2 + per_move * moves for moves in range(1, self.max_considered + 1)]
        return [min(max(number, self.min_simulations), self.max_simulations) for number in wanted]

    def td_lambda_after(self, timesteps: int) -> float:
        """For the positions that are played after so many timesteps."""
        return 1.0 if timesteps < self.warmup else self.td_lambda


QUICK = Settings(
    total_timesteps=2_400_000,
    players=(0.5, 0.25, 0.25),
    simulations_per_move=2,
    min_simulations=6,
    max_simulations=18,
    evaluate_every=600_000,
)
PRESETS = {
    "smoke": (
        "under a minute: to see that it works",
        Settings(
            total_timesteps=6_000,
            n_workers=0,
            n_envs=32,
            n_steps=500,
            pair_units=8,
            entity_units=8,
            hidden_units=32,
            learning_starts=2_000,
            batch_size=128,
            evaluate_every=1_000_000,
            evaluate_deals=10,
            evaluate_simulations=4,
            checkpoint_every=2_000,
        ),
    ),
    "quick": ("about five minutes: an agent that beats random, and greedy with search", QUICK),
    "full": ("under three hours on two cores: the strongest agent", Settings()),
}
