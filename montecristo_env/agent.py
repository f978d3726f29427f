"""Who plays: the protocol of agents, what they may look at, and how they are found by name."""

from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from montecristo_env.core import actions
from montecristo_env.core.layout import HIDDEN_FIELDS, STATE, States
from montecristo_env.errors import InvalidArgument, MonteCristoError
from montecristo_env.games import GameBatch, Rows
from montecristo_env.ruleset import Ruleset

GROUP = "montecristo_env.agents"
"""The entry-point group in which packages announce their agents: `name = "module:factory"`."""


class PublicView:
    """A batch of games as its players see it: everything public, nothing hidden (§10).

    Agents get this instead of the `GameBatch`, so that none can cheat by accident. What they may want to change, such
    as the games of a search, they get as a clone with redrawn hidden parts from `resample_hidden`.
    """

    def __init__(self, games: GameBatch) -> None:
        self._games = games

    def __len__(self) -> int:
        return len(self._games)

    def __getitem__(self, field: str) -> NDArray[Any]:
        """A public field of the states, read-only: `view["score"]` is (N, 4)."""
        names = [name for name in STATE.names or () if name not in HIDDEN_FIELDS]
        if field not in names:
            raise InvalidArgument(f"{field!r} is no public field of a game: these are {', '.join(names)}")
        values: NDArray[Any] = self._games.states[field]
        values.flags.writeable = False
        return values

    @property
    def ruleset(self) -> Ruleset:
        """The settings of the games."""
        return self._games.ruleset

    @property
    def num_players(self) -> NDArray[np.int8]:
        """Players of each game, (N,)."""
        return self["num_players"]

    @property
    def current_player(self) -> NDArray[np.int8]:
        """Who must decide in each game, (N,)."""
        return self["current_player"]

    def observe(
        self, out: NDArray[np.int8] | None = None, player: Any = None, rows: Rows = None, masks: Any = None
    ) -> NDArray[np.int8]:
        """See `GameBatch.observe`."""
        return self._games.observe(out, player, rows, masks)

    def action_mask(self, out: NDArray[np.int8] | None = None, rows: Rows = None) -> NDArray[np.int8]:
        """See `GameBatch.action_mask`."""
        return self._games.action_mask(out, rows)

    def legal_actions(self, game: int) -> list[actions.Action]:
        """See `GameBatch.legal_actions`."""
        return self._games.legal_actions(game)

    def public_state(self, game: int = 0) -> dict[str, Any]:
        """See `GameBatch.public_state`."""
        return self._games.public_state(game)

    def sample_actions(self, rows: Rows = None) -> NDArray[np.int64]:
        """Random legal actions, from the games' own streams; see `GameBatch.sample_actions`."""
        return self._games.sample_actions(rows=rows)

    def random_keys(self, rows: Rows = None) -> NDArray[np.uint64]:
        """Random bits for an agent's own use, from the games' own streams: same seeds, same play.

        They do not lead back to the seeds, and so to what is hidden.
        """
        return self._games.random_keys(rows)

    def public_rows(self, rows: Rows = None) -> States:
        """Copies of the rows of some games, for compiled agents; what is hidden is zero in them."""
        return self._games.public_rows(rows)

    def resample_hidden(self, rng: np.random.Generator | NDArray[np.uint64], rows: Rows = None) -> GameBatch:
        """A clone of some games, the agent's own to play with, whose hidden parts are redrawn."""
        games = self._games if rows is None else self._games[cast(Any, rows)]
        return games.resample_hidden(rng)


@runtime_checkable
class Agent(Protocol):
    """A player. It plays many games at once, and any seat of them."""

    name: str

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """One legal action for the current player of each of these rows."""


class Evaluation(NamedTuple):
    """What an agent thinks of some positions: how likely it is to choose each action, and what it expects to win."""

    probabilities: NDArray[np.float64]
    """(K, actions.COUNT); the legal actions of a row sum to 1, the others are 0."""
    values: NDArray[np.float64]
    """(K,), the reward that the decider of each row may expect."""


@runtime_checkable
class Evaluator(Agent, Protocol):
    """An agent that can say what it thinks, not only what it does."""

    def evaluate(self, games: PublicView, rows: NDArray[np.int64]) -> Evaluation:
        """What it thinks of the legal actions of each of these rows."""


@runtime_checkable
class WinEstimator(Agent, Protocol):
    """An agent that can say how likely every seat is to win: with it, luck and losses are measured."""

    def win_probabilities(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of the win that every seat of these games may expect, (K, 4); seats that nobody holds have 0."""


class PositionEvaluation(NamedTuple):
    """What an agent thinks of one position: legal actions with their probabilities, and what it expects to win."""

    probabilities: dict[actions.Action, float]
    value: float | None


TRIES = 5


def evaluate_position(agent: Agent, games: GameBatch, game: int = 0) -> PositionEvaluation:
    """What an agent would do in a game, and how sure it is; the game does not change.

    An `Evaluator` is asked what it thinks. Any other is asked several times what it does, and how often it gives an
    answer is how sure it is.
    """
    clone, only = games[game], np.arange(1)
    view = PublicView(clone)
    legal = clone.legal_actions(0)
    if isinstance(agent, Evaluator):
        evaluation = agent.evaluate(view, only)
        value: float | None = float(evaluation.values[0])
        likely = evaluation.probabilities[0]
    else:
        value = None
        likely = np.zeros(actions.COUNT)
        for _ in range(TRIES):
            likely[agent.act(view, only)[0]] += 1 / TRIES
    return PositionEvaluation({action: float(likely[actions.encode(action)]) for action in legal}, value)


def make_agent(agent: str | Agent) -> Agent:
    """An agent by its short name: `"random"`, or with settings behind a colon: `"mcts:500"`.

    Agents are found through the entry-point group `montecristo_env.agents`, so other packages can add their own: the
    entry point is called with the text behind the colon, or with nothing. An agent object is returned as it is.
    """
    if isinstance(agent, Agent):
        return agent
    found = {point.name: point for point in entry_points(group=GROUP)}
    name, colon, settings = agent.partition(":") if isinstance(agent, str) else ("", "", "")
    if name not in found:
        known = ", ".join(sorted(found)) or "none installed"
        nearest = "".join(f"; did you mean {near!r}?" for near in get_close_matches(name, found, n=1))
        raise InvalidArgument(f"no agent is called {agent!r}: there are {known}{nearest}")
    try:
        made = found[name].load()(*([settings] if colon else []))
    except ModuleNotFoundError as error:
        hint = ": pip install 'montecristo-env[arena]'" if found[name].module.startswith("montecristo_agents.") else ""
        raise ModuleNotFoundError(f"agent {name!r} needs {error.name}{hint}", name=error.name) from error
    except (TypeError, ValueError) as error:
        if isinstance(error, MonteCristoError):
            raise
        raise InvalidArgument(f"agent {agent!r} cannot be made: {error}") from error
    if not isinstance(made, Agent):
        raise InvalidArgument(f"agent {agent!r} is a {type(made).__name__} without `name` and `act`")
    return made
