"""The player that follows a trained network, without torch."""

import math
import re
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.entity import EntityNetwork
from montecristo_agents.models import shipped_model
from montecristo_agents.tree import canonicalize_hidden
from montecristo_env import actions
from montecristo_env.agent import Evaluation, PublicView
from montecristo_env.core.chance import resample_hidden, stream
from montecristo_env.core.jit import entry_point
from montecristo_env.core.layout import Float64Table, States, UInt64s
from montecristo_env.errors import InvalidArgument

N = TypeVar("N", int, float)

VALUE_WEIGHT = 10.0  # what looking ahead adds to a logit, for each unit of reward
ROWS_AT_ONCE = 1024  # when looking ahead, so that the clones of all legal actions do not fill the memory


class PolicyAgent:
    """Plays what a network says: `policy:PATH`, with settings behind it `policy:PATH:temperature=0.5:lookahead=4`.

    It plays the action with the highest logit; with a temperature it draws from softmax(logits / temperature), from the
    random stream of each game. Looking ahead it tries every legal action in N clones with redrawn hidden parts,
    and adds to its logit `VALUE_WEIGHT` times the mean value of what follows, or the reward where the game is over.
    Networks know the value for the player on turn; if that is another one, what they win is
    taken to be lost by all others alike: rewards sum to zero.

    Args:
        settings: the path of a model file with or without settings behind it, or a network.
        temperature: 0 plays the best action, 1 as often as the network says.
        lookahead: clones for each action; 0 does not look ahead.
    """

    def __init__(self, settings: str | Path | EntityNetwork = "", temperature: float = 0.0, lookahead: int = 0) -> None:
        options: dict[str, str] = {}
        if isinstance(settings, str):
            settings, options = _split(settings)
        if settings == "":
            raise InvalidArgument("policy needs the path of a model file: policy:PATH")
        self.path = Path(settings) if isinstance(settings, str | Path) else None
        """The model file, if the network comes from one."""
        self.temperature = _number("temperature", options.get("temperature", temperature), float)
        self.lookahead = _number("lookahead", options.get("lookahead", lookahead), int)
        self.network = EntityNetwork.load(settings) if isinstance(settings, str | Path) else settings
        self.name = self._name("policy" if self.path is None else f"policy:{self.path.stem}")

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action per row."""
        scores, masks, _ = self._scores(games, rows)
        if self.temperature:
            noise = np.empty(scores.shape)
            draw_noise(games.random_keys(rows), noise, 0, rows.size)
            scores += self.temperature * noise
        best: NDArray[np.int64] = np.where(masks, scores, -np.inf).argmax(axis=1)
        return best

    def evaluate(self, games: PublicView, rows: NDArray[np.int64]) -> Evaluation:
        """What it thinks of every legal action, at its temperature or, if that is 0, as the network says."""
        scores, masks, values = self._scores(games, rows)
        scores = np.where(masks, scores, -np.inf)
        weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / (self.temperature or 1.0))
        return Evaluation(weights / weights.sum(axis=1, keepdims=True), values.astype(np.float64))

    def win_probabilities(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of the win that its network expects for every seat, (K, 4)."""
        return self.network.win_probabilities(games, rows)

    def _scores(
        self, games: PublicView, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.float32]]:
        """How good the actions are, which ones are legal, and what the position is worth."""
        masks = np.empty((rows.size, actions.COUNT), np.int8)
        logits, values = self.network.evaluate(games.observe(rows=rows, masks=masks))
        scores = logits.astype(np.float64)
        if self.lookahead:
            for begin in range(0, rows.size, ROWS_AT_ONCE):
                part = slice(begin, begin + ROWS_AT_ONCE)
                scores[part] += VALUE_WEIGHT * self._values_ahead(games, rows[part], masks[part])
        return scores, masks, values

    def _values_ahead(self, games: PublicView, rows: NDArray[np.int64], masks: NDArray[np.int8]) -> NDArray[np.float64]:
        """The mean value of every legal action for the player on turn, 0 for others, (K, actions.COUNT)."""
        values = np.zeros(masks.shape)
        places, codes = np.nonzero(masks)
        seats = games.current_player[rows][places].astype(np.int64)
        for _ in range(self.lookahead):
            keys = games.random_keys(rows)
            clones = games.resample_hidden(keys, rows)
            redraw_hidden(clones.states, keys, 0, rows.size)
            after = clones[places]
            after.step(codes)
            _, expected = self.network.evaluate(after.observe())
            expected = np.where(after.current_player == seats, expected, -expected / (after.num_players - 1))
            rewards = np.take_along_axis(after.rewards, seats[:, None], axis=1)[:, 0]
            values[places, codes] += np.where(after.over, rewards, expected)
        return values / self.lookahead

    def _name(self, model: str) -> str:
        temperature = f":temperature={self.temperature:g}" if self.temperature else ""
        return model + temperature + (f":lookahead={self.lookahead}" if self.lookahead else "")


def ppo(settings: str = "") -> PolicyAgent:
    """The network that comes with this package, trained by PPO: `ppo`, `ppo:temperature=0.5`, `ppo:lookahead=4`."""
    return shipped("ppo", settings)


def shipped(name: str, settings: str) -> PolicyAgent:
    """A network that comes with this package, as a player with these settings."""
    if settings and _split(f":{settings}")[0]:
        raise InvalidArgument(f"{settings!r} is no setting of a network player: these are {_OPTIONS}")
    with shipped_model(name) as path:
        agent = PolicyAgent(f"{path}:{settings}" if settings else path)
    agent.name = agent._name(name)
    return agent


_OPTIONS = "temperature=NUMBER and lookahead=NUMBER"


def _split(settings: str) -> tuple[str, dict[str, str]]:
    """A path and the settings behind it; a path may have colons of its own."""
    path = settings
    options: dict[str, str] = {}
    while found := re.fullmatch(r"(.*):([a-z]+)=([^:/\\]*)", path, re.DOTALL):
        path, option, value = found.groups()
        if option not in ("temperature", "lookahead"):
            raise InvalidArgument(f"'{option}={value}' is no setting of a network player: these are {_OPTIONS}")
        options.setdefault(option, value)  # the last one given counts
    return path, options


def _number(name: str, value: str | float, kind: type[N]) -> N:
    """A setting that is a number from 0."""
    try:
        number = kind(str(value))
        if number >= 0 and math.isfinite(number):
            return number
    except ValueError:
        pass
    whole = "a whole number" if kind is int else "a number"
    raise InvalidArgument(f"{name} must be {whole} from 0, but is {value!r}")


# --- Compiled --------------------------------------------------------------------------------------------------------

_SPARE_BITS = np.uint64(12)  # 52 bits and a half are exact in a float, and never 0 or 1
_STEPS = 2.0**52


@entry_point
def draw_noise(keys: UInt64s, out: Float64Table, begin: int, end: int) -> None:
    """Gumbel noise for every action of every row: the highest of logits with noise is a draw from their softmax."""
    for k in range(begin, end):
        for action in range(out.shape[1]):
            uniform = (float(stream(keys[k], action) >> _SPARE_BITS) + 0.5) / _STEPS
            out[k, action] = -np.log(-np.log(uniform))


@entry_point
def redraw_hidden(states: States, keys: UInt64s, begin: int, end: int) -> None:
    """Redraws what is hidden, by the keys and what is public: what was hidden before leaves no trace."""
    for k in range(begin, end):
        canonicalize_hidden(states[k])
        resample_hidden(states[k], keys[k])
