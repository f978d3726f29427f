"""Games as data: every decision of an arena run in compressed NumPy shards, and a reader that streams them.

```sh
python -m montecristo_agents.arena alphazero alphazero:temperature=1 --deals 5000 --dataset games
```

`docs/datasets.md` describes the files.
"""

import hashlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecristo_agents.luck import SIGNALS
from montecristo_agents.models import layout_hash
from montecristo_env import Agent, GameBatch, InvalidArgument, PublicView, actions, observation
from montecristo_env.agent import Evaluator
from montecristo_env.core import batch
from montecristo_env.core.constants import MAX_PLAYERS, NONE
from montecristo_env.core.layout import OFFSET, STATE, States, aligned_empty
from montecristo_env.util.files import atomic_write, is_empty

SCHEMA = 1
"""The version of the files."""
ABOUT = "dataset.json"
GAMES_PER_SHARD = 256
_SHARD_NAME = re.compile(r"[0-9]{10}-[0-9]{10}\.npz")

Arrays = dict[str, NDArray[Any]]


def row_hash() -> str:
    """A hash of the fields of a packed row: rows of another layout mean something else."""
    fields = [(name, *_describe(name)) for name in OFFSET]
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:16]


# --- writing


class DecisionLog:
    """Keeps the decisions of a batch of games as they are made.

    Args:
        signals: in how many ways luck is measured.
    """

    def __init__(self, signals: int) -> None:
        self.signals = signals
        self._parts: list[Arrays] = []

    def add(self, games: GameBatch, rows: NDArray[np.int64], chosen: NDArray[np.int64], agent: Agent) -> None:
        """The decisions that these rows are about to make. What an agent thinks of them is asked in clones."""
        part: Arrays = {
            "rows": games.public_rows(rows).view(np.uint8).reshape(rows.size, STATE.itemsize),
            "actions": chosen.astype(np.int16),
            "games": rows.astype(np.int32),
            "seats": games.current_player[rows].copy(),
            "values": np.full(rows.size, np.nan, np.float32),
            "policies": np.zeros((rows.size, actions.COUNT), np.float16),
            "luck": np.zeros((rows.size, MAX_PLAYERS, self.signals), np.float32),
        }
        if isinstance(agent, Evaluator):  # a clone has random streams of its own: the games stay the same
            thoughts = agent.evaluate(PublicView(games[rows]), np.arange(rows.size))
            part["policies"][:], part["values"][:] = thoughts.probabilities, thoughts.values
        self._parts.append(part)

    def add_luck(self, rows: NDArray[np.int64], luck: NDArray[np.float64]) -> None:
        """Of those of the last decisions that drew something."""
        last = self._parts[-1]
        last["luck"][np.searchsorted(last["games"], rows)] = luck

    def arrays(self) -> Arrays:
        """All decisions, game by game and in order; without columns that nobody has filled."""
        names = list(self._parts[0]) if self._parts else []
        joined = {name: np.concatenate([part[name] for part in self._parts]) for name in names}
        order = np.argsort(joined["games"], kind="stable")
        found = {name: values[order] for name, values in joined.items()}
        if np.isnan(found["values"]).all():
            del found["values"], found["policies"]
        if not self.signals:
            del found["luck"]
        return found


class DatasetWriter:
    """Writes the shards of a run into a folder of its own, each whole or not at all.

    Args:
        folder: empty, or that of the same run.
        settings: of the run.
    """

    def __init__(self, folder: str | Path, settings: dict[str, Any]) -> None:
        self.folder = Path(folder)
        about = {
            "schema": SCHEMA,
            "rows": row_hash(),
            "layout": layout_hash(),
            "fields": {name: [*_describe(name)] for name in OFFSET},
            "actions": [str(actions.decode(code)) for code in range(actions.COUNT)],
            "signals": list(SIGNALS) if settings["adjust"] else [],
            "settings": settings,
        }
        content = (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode()
        known = self.folder / ABOUT
        self.folder.mkdir(parents=True, exist_ok=True)
        if known.exists():
            if known.read_bytes() != content:
                raise InvalidArgument(f"{self.folder} holds the games of another run: give another folder")
        elif not is_empty(self.folder):
            raise InvalidArgument(f"{self.folder} is neither empty nor a dataset")
        atomic_write(known, content)

    def save(self, first: int, end: int, arrays: Arrays) -> None:
        """Writes the games of the rounds from `first` to before `end`."""
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
        atomic_write(self.folder / f"{first:010}-{end:010}.npz", content.getvalue())


def _describe(name: str) -> tuple[int, str, list[int]]:
    """Where a field of a row begins, its type and its shape."""
    field = STATE[name]
    return OFFSET[name], field.base.str, list(field.shape)


# --- reading


class Dataset:
    """A folder of shards that `arena --dataset` has written.

    Args:
        folder: where they are.

    One that was written for another layout of rows, observations or actions is refused.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.about: dict[str, Any] = json.loads((self.folder / ABOUT).read_text(encoding="utf-8"))
            found = [self.about[name] for name in ("schema", "rows", "layout")]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidArgument(f"{self.folder} is no dataset: its {ABOUT} cannot be read ({error})") from None
        if found != (here := [SCHEMA, row_hash(), layout_hash()]):
            raise InvalidArgument(
                f"{self.folder} has schema, rows and layout {found}, but this version reads {here}: "
                "write it again, or install the version it was made with"
            )
        self.paths = sorted(path for path in self.folder.glob("*.npz") if _SHARD_NAME.fullmatch(path.name))
        """The shards, in order."""

    def shard(self, number: int) -> Arrays:
        """The arrays of one shard, as they are."""
        path = self.paths[number]
        try:
            with np.load(path) as saved:
                return dict(saved)
        except Exception as error:  # a damaged archive has many ways to say so
            raise InvalidArgument(f"{path} is damaged ({error}): write the dataset again") from None

    def batches(self, size: int, seed: int | None = None, part: int = 0, parts: int = 1) -> Iterator[Arrays]:
        """Decisions in batches, as a learner wants them; the last of a shard may be smaller.

        Each has `observations` (K, observation.SIZE) int8, `masks` (K, actions.COUNT) int8, `actions` and `seats`, the
        result of the game for who decided: `shares` of the win and `margins` in points, and what the shard has of
        `values`, `policies` and `luck`.

        Args:
            size: of a batch.
            seed: shuffles the shards and the decisions in each; in order if None.
            part: only every `parts`-th shard, beginning with this one: for several workers.
            parts: how many workers there are.
        """
        if size < 1 or not 0 <= part < parts:
            raise InvalidArgument(f"size must be 1 or more and part one of {parts}, but they are {size} and {part}")
        rng = None if seed is None else np.random.default_rng(seed)
        order = np.arange(len(self.paths)) if rng is None else rng.permutation(len(self.paths))
        for number in order[part::parts]:
            arrays = self.shard(int(number))
            decisions = np.arange(len(arrays["actions"]))
            if seed is not None:
                np.random.default_rng([seed, int(number)]).shuffle(decisions)
            for begin in range(0, decisions.size, size):
                yield _batch(arrays, decisions[begin : begin + size])

    def __len__(self) -> int:
        """How many shards there are."""
        return len(self.paths)


def _batch(arrays: Arrays, chosen: NDArray[np.int64]) -> Arrays:
    rows = unpack_rows(arrays["rows"][chosen])
    index, deciders = np.arange(rows.size), np.full(1, NONE, np.int64)
    seen, masks = np.empty((rows.size, observation.SIZE), np.int8), np.empty((rows.size, actions.COUNT), np.int8)
    no_shares = np.zeros((0, 0), np.float32)
    batch.write_observations(rows, index, deciders, seen, no_shares, masks, 0, rows.size)
    games, seats = arrays["games"][chosen], arrays["seats"][chosen].astype(np.int64)
    winners, scores = arrays["winners"][games], arrays["scores"][games].astype(np.float32)
    players = (arrays["agents"][games] != NONE).sum(axis=1)
    own = scores[index, seats]
    found: Arrays = {
        "observations": seen,
        "masks": masks,
        "actions": arrays["actions"][chosen].astype(np.int64),
        "seats": seats,
        "shares": (winners[index, seats] / winners.sum(axis=1)).astype(np.float32),
        "margins": own - (scores.sum(axis=1) - own) / (players - 1).astype(np.float32),
    }
    return found | {name: arrays[name][chosen] for name in ("values", "policies", "luck") if name in arrays}


def unpack_rows(packed: NDArray[np.uint8]) -> States:
    """Rows of `STATE` from the bytes of a shard; what is hidden is zero in them."""
    rows: States = aligned_empty(len(packed), STATE)
    rows.view(np.uint8).reshape(packed.shape)[...] = packed
    return rows
