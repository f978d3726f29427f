"""Workers that play for a learner: processes, or the learner's own. Nothing here needs torch."""

import multiprocessing
import os
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from montecristo_env.errors import MonteCristoError
from montecristo_train.alphazero_settings import Settings
from montecristo_train.episodes import Positions, SelfPlay


class SelfPlayWorkers(Protocol):
    """Workers that play for a learner, on any machines."""

    def collect(self, weights: dict[str, NDArray[np.float32]], td_lambda: float) -> tuple[Positions, dict[str, float]]:
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

    def collect(self, weights: dict[str, NDArray[np.float32]], td_lambda: float) -> tuple[Positions, dict[str, float]]:
        """Positions that were played, and facts about their games."""
        if self._local is not None:
            return self._local.collect(weights, self._settings.n_steps, td_lambda)
        try:
            if not self._asked:
                for connection in self._connections:
                    connection.send((weights, td_lambda))
                self._asked = True
            ready = wait(self._connections)
            chosen = next(connection for connection in self._connections if connection in ready)
            self._connections.remove(chosen)
            self._connections.append(chosen)  # so that everybody has their turn
            found = cast(tuple[Positions, dict[str, float]], chosen.recv())
            chosen.send((weights, td_lambda))  # they go on while this process learns
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
    search = settings.budgets, settings.win_weight, settings.redraws
    return SelfPlay(players, settings.sizes, *search, seed, settings.ruleset)


def work(settings: Settings, worker: int, positions: int, connection: Connection) -> None:
    """What a worker process does, until its connection is closed."""
    self_play = make_self_play(settings, worker, positions)
    try:
        while True:
            weights, td_lambda = connection.recv()
            connection.send(self_play.collect(weights, settings.n_steps, td_lambda))
    except (EOFError, OSError, KeyboardInterrupt):
        return
