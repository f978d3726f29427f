"""Workers that play for a learner, as Ray actors on any machines; those of `workers` are processes of this one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecristo_env.util.commands import missing
from montecristo_train.alphazero_settings import Settings
from montecristo_train.episodes import Positions
from montecristo_train.workers import make_self_play, play

try:
    import ray
except ImportError as error:
    raise missing("training on Ray", error.name, "rllib") from error


class RayWorkers:
    """Actors that play, each on a core of the cluster; without a cluster, one of this machine is made.

    Ray restarts an actor elsewhere when it or its machine dies. Meanwhile, the others go on.
    """

    def __init__(self, settings: Settings, positions: int) -> None:
        self._settings = settings
        self._own_cluster = not ray.is_initialized()
        if self._own_cluster:
            ray.init(include_dashboard=False, log_to_driver=False)
        actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(Actor)
        numbers = range(max(1, settings.n_workers))
        self.actors = [actor.remote(settings, number, positions) for number in numbers]
        self._playing: dict[Any, Any] = {}  # what was asked for, and of whom

    def collect(self, weights: dict[str, NDArray[np.float32]], played: int) -> tuple[Positions, dict[str, float]]:
        """Positions that one of the actors has played, and facts about their games; it gets these weights."""
        shared = ray.put(weights)
        if not self._playing:
            self._playing = {actor.collect.remote(shared, played): actor for actor in self.actors}
        (first,), _ = ray.wait(list(self._playing))
        actor = self._playing.pop(first)
        self._playing[actor.collect.remote(shared, played)] = actor  # it goes on while this process learns
        found: tuple[Positions, dict[str, float]] = ray.get(first)
        return found

    def close(self) -> None:
        """Ends the actors, and the cluster if it was made here."""
        for actor in self.actors:
            ray.kill(actor)
        if self._own_cluster:
            ray.shutdown()


class Actor:
    """Plays on a machine of the cluster."""

    def __init__(self, settings: Settings, number: int, positions: int) -> None:
        self._settings = settings
        self._self_play = make_self_play(settings, number, positions)

    def collect(self, weights: dict[str, NDArray[np.float32]], played: int) -> tuple[Positions, dict[str, float]]:
        """Plays with these weights."""
        return play(self._self_play, self._settings, weights, played)

    def node(self) -> str:
        """The machine."""
        node: str = ray.get_runtime_context().get_node_id()
        return node
