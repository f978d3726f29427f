"""Workers that play for a learner: processes, or the learner's own."""

import multiprocessing
import os
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, cast

import montecristo_train  # noqa: F401, before torch, which it tells not to keep cores busy

# isort: split
import numpy as np
import torch
from numpy.typing import NDArray

from montecristo_agents.entity import EntityNetwork
from montecristo_env.errors import MonteCristoError
from montecristo_train.alphazero_settings import Settings
from montecristo_train.entity import Bfloat16Network, has_bfloat16
from montecristo_train.episodes import Positions, SelfPlay


class SelfPlayWorkers(Protocol):
    """Workers that play for a learner, on any machines."""

    def collect(self, weights: dict[str, NDArray[np.float32]], played: int) -> tuple[Positions, dict[str, float]]:
        """Positions that a worker has played, and facts about their games; that worker goes on with these weights."""

    def close(self) -> None:
        """Ends what plays."""


class WorkerDied(MonteCristoError):
    """A process of self-play is gone."""


class Workers:
    """Processes that play, or this one."""

    def __init__(self, settings: Settings, positions: int) -> None:
        self._settings = settings
        self._local = make_self_play(settings, 0, positions) if settings.n_workers == 0 else None
        self.processes: list[Any] = []
        self._connections: list[Any] = []
        context = multiprocessing.get_context("spawn")
        for number in range(settings.n_workers):
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # in the new process: each has a core
            ours, theirs = context.Pipe()
            process = context.Process(target=work, args=(settings, number, positions, theirs), daemon=True)
            process.start()
            self.processes.append(process)
            theirs.close()  # so that the end of the process is noticed
            self._connections.append(ours)
        self._asked = False

    def collect(self, weights: dict[str, NDArray[np.float32]], played: int) -> tuple[Positions, dict[str, float]]:
        """Positions that were played, and facts about their games."""
        if self._local is not None:
            return play(self._local, self._settings, weights, played)
        try:
            if not self._asked:
                for connection in self._connections:
                    connection.send((weights, played))
                self._asked = True
            ready = wait(self._connections)
            chosen = next(connection for connection in self._connections if connection in ready)
            self._connections.remove(chosen)
            self._connections.append(chosen)  # so that everybody has their turn
            found = cast(tuple[Positions, dict[str, float]], chosen.recv())
            chosen.send((weights, played))  # they go on while this process learns
            return found
        except (EOFError, OSError):
            raise WorkerDied("a process of self-play has died: is there enough memory? Go on with --resume") from None

    def close(self) -> None:
        """Ends the processes."""
        for connection in self._connections:
            connection.close()
        for process in self.processes:
            process.terminate()
            process.join()


def make_workers(settings: Settings, positions: int) -> SelfPlayWorkers:
    """The workers of a run that has played this many positions."""
    if settings.ray:
        from montecristo_train.ray_workers import RayWorkers  # of an extra

        return RayWorkers(settings, positions)
    return Workers(settings, positions)


def make_self_play(settings: Settings, worker: int, positions: int) -> SelfPlay:
    """The games of one worker; how many positions were played before decides which deals they begin with."""
    games = settings.n_envs // max(settings.n_workers, 1)
    bounds = np.cumsum(settings.players) / np.sum(settings.players)
    players = 2 + np.searchsorted(bounds, (np.arange(games) + 0.5) / games)
    seed = int(np.random.SeedSequence([settings.seed, worker, positions]).generate_state(1)[0])
    rest = settings.win_weight, settings.redraws, seed, settings.ruleset
    network = Bfloat16Network if settings.bfloat16 and has_bfloat16() else EntityNetwork
    return SelfPlay(players, settings.sizes, *rest, network)


def play(
    self_play: SelfPlay, settings: Settings, weights: dict[str, NDArray[np.float32]], played: int
) -> tuple[Positions, dict[str, float]]:
    """What a worker plays with these weights, after the learner has got so many positions."""
    return self_play.collect(weights, settings.n_steps, settings.td_lambda_after(played), settings.budgets(played))


def work(settings: Settings, worker: int, positions: int, connection: Connection) -> None:
    """What a worker process does, until its connection is closed."""
    torch.set_num_threads(1)
    self_play = make_self_play(settings, worker, positions)
    try:
        while True:
            weights, played = connection.recv()
            connection.send(play(self_play, settings, weights, played))
    except (EOFError, OSError, KeyboardInterrupt):
        return
