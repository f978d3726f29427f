"""A dataset for torch; see `dataset`."""

from collections.abc import Iterator
from pathlib import Path

from montecristo_agents.dataset import Dataset
from montecristo_env.util.commands import missing

try:
    import torch
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError as error:
    raise missing("a dataset for torch", error.name, "sb3") from error


class TorchDataset(IterableDataset[dict[str, torch.Tensor]]):
    """The batches of `Dataset.batches` as tensors: give it to a `DataLoader` with `batch_size=None`.

    Args:
        folder: that `arena --dataset` has written.
        size: of a batch.
        seed: shuffles the shards and the decisions in each; in order if None.

    The workers of a loader share the shards among them.
    """

    def __init__(self, folder: str | Path, size: int, seed: int | None = None) -> None:
        self.dataset, self.size, self.seed = Dataset(folder), size, seed

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        worker = get_worker_info()
        part, parts = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for arrays in self.dataset.batches(self.size, self.seed, part, parts):
            yield {name: torch.from_numpy(values) for name, values in arrays.items()}
