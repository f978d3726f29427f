"""One call that measures a policy against the standard ladder."""

import inspect
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.arena import play
from montecristo_agents.ladder import STANDARD, split_installed
from montecristo_agents.report import Report
from montecristo_env import Agent, InvalidArgument, PublicView, actions, make_agent, observation
from montecristo_env.games import action_codes
from montecristo_env.ruleset import RulesetLike


class Model(Protocol):
    """What Stable-Baselines3 calls a model, such as a `PPO` or a `MaskablePPO`."""

    def predict(self, observation: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Actions for a batch of observations, and something else."""


Choice: TypeAlias = Callable[[NDArray[np.float32], NDArray[np.int8]], NDArray[np.integer]]
Policy: TypeAlias = str | Agent | Choice | Model


def benchmark(
    policy: Policy,
    players: int = 2,
    deals: int = 500,
    seed: int = 0,
    *,
    name: str | None = None,
    against: Sequence[str | Agent] = STANDARD,
    ruleset: RulesetLike = None,
    folder: str | Path | None = None,
    progress: bool = True,
) -> Report:
    """Lets a policy play against every agent of the standard ladder, on the same deals, in every seat.

    ```python
    report = benchmark(lambda obs, mask: mask.argmax(axis=1), name="first", deals=100)
    print(report)
    report.agent("first").elo
    ```

    Args:
        policy: one of

            - an `Agent`, or the short name of one;
            - a callable `(obs, mask) -> action` for a batch of K decisions: `obs` is (K, observation.SIZE) float32,
              scaled as the shells give it, `mask` is (K, actions.COUNT) int8 with 1 for legal actions,
              and the result holds K action codes;
            - a model of Stable-Baselines3, that is anything with `.predict(obs, deterministic=True)`. One that also
              takes `action_masks` gets them. One that does not may choose illegal actions: a random legal one
              is played instead, and a warning says how often.
        players: 2, 3 or 4 at a table.
        deals: how many deals every table plays; more of them make the intervals narrower.
        seed: same seed, same deals.
        name: what the report calls the policy, if it has no name of its own.
        against: whom it meets. Those that are not installed are left out with a warning.
        ruleset: the settings of the game.
        folder: where to keep what is done, so that the same call can be resumed; nowhere if None.
        progress: whether to show a progress bar.

    Returns:
        The report of an arena run in which the others meet only this policy, not each other.
    """
    agent = as_agent(policy, name)
    _, missing = split_installed(other for other in against if isinstance(other, str))
    if missing:
        warnings.warn(f"not installed, so not played against: {', '.join(missing)}", stacklevel=2)
    agents = [*(other for other in against if other not in missing), agent]
    report = play(
        agents, players, deals, seed, ruleset=ruleset, folder=folder, focus=len(agents) - 1, progress=progress
    )
    if isinstance(agent, _ModelAgent) and agent.illegal:
        share = agent.illegal / agent.decisions
        warnings.warn(
            f"{share:.1%} of the decisions of {agent.name} were illegal and replaced by random ones", stacklevel=2
        )
    return report


def as_agent(policy: Policy, name: str | None = None) -> Agent:
    """An agent that plays as the policy says; for what a policy may be see `benchmark`."""
    if isinstance(policy, str | Agent):
        return make_agent(policy)
    if hasattr(policy, "predict"):
        return _ModelAgent(policy, name or type(policy).__name__)
    if callable(policy):
        return _CallableAgent(policy, name or str(getattr(policy, "__name__", type(policy).__name__)))
    raise InvalidArgument(f"a policy is an agent, a callable (obs, mask) -> action or an SB3 model, not {policy!r}")


class _CallableAgent:
    """Plays what a function says."""

    def __init__(self, choose: Choice, name: str) -> None:
        self.name = name
        self._choose = choose

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        masks = np.empty((rows.size, actions.COUNT), np.int8)
        counts = games.observe(rows=rows, masks=masks)
        return action_codes(self._choose(counts * observation.SCALE, masks), rows.size)


class _ModelAgent:
    """Plays what a model of Stable-Baselines3 says."""

    def __init__(self, model: Model, name: str) -> None:
        self.name = name
        self.decisions = self.illegal = 0
        self._model = model
        self._takes_masks = "action_masks" in inspect.signature(model.predict).parameters
        space = getattr(model, "observation_space", None)
        self._wants_counts = getattr(space, "dtype", None) == np.int8

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        masks = np.empty((rows.size, actions.COUNT), np.int8)
        counts = games.observe(rows=rows, masks=masks)
        seen = counts if self._wants_counts else counts * observation.SCALE
        if self._takes_masks:
            return action_codes(self._model.predict(seen, action_masks=masks, deterministic=True)[0], rows.size)
        chosen = action_codes(self._model.predict(seen, deterministic=True)[0], rows.size)
        legal = masks[np.arange(rows.size), chosen] == 1
        self.decisions += rows.size
        self.illegal += int((~legal).sum())
        return np.where(legal, chosen, games.sample_actions(rows))
