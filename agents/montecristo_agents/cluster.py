"""Matches on a Ray cluster: chunks of rounds as tasks, on as many cores as there are."""

from collections import deque
from collections.abc import Generator, Sequence
from typing import TypeAlias

from montecristo_agents.matches import Match, Played

try:
    import ray
except ImportError as error:
    raise ImportError("tournaments on Ray need ray: pip install 'montecristo-env[rllib]'") from error

Chunk: TypeAlias = tuple[int, int, list[str] | None, bool]  # as `Match.play` takes them
AHEAD = 2  # tasks that are handed out for each core, so that none waits


def cores() -> int:
    """How many cores the cluster has; joins it, or makes one of this machine if there is none."""
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False)
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def play_in_order(match: Match, chunks: Sequence[Chunk]) -> Generator[Played]:
    """What came out of each chunk, one after the other; a task whose machine dies is played again elsewhere."""
    shared = ray.put(match)  # once for each machine, with the weights of all agents
    play = ray.remote(num_cpus=1, max_retries=-1)(_play)
    waiting: deque[ray.ObjectRef] = deque()
    left = iter(chunks)
    try:
        while True:
            while len(waiting) < AHEAD * cores() and (chunk := next(left, None)) is not None:
                waiting.append(play.remote(shared, *chunk))
            if not waiting:
                return
            yield ray.get(waiting.popleft())
    finally:
        for task in waiting:
            ray.cancel(task)


def _play(match: Match, first: int, end: int, names: list[str] | None, log: bool) -> Played:
    return match.play(first, end, names, log)
