"""How well networks learn from observations: `python benchmarks/learnability.py [--positions 300000] [--seed 0]`.

Two small networks are taught what greedy plays, from positions of its own games (some of whose moves are random), and
then play against it on duplicate deals, both seats. What they win says how much of the game can be read off an
observation: both look at the same numbers, and neither searches.

- *plain*: a perceptron with two hidden layers of 256 on the float32 observation.
- *shared*: layers that dungeons, kinds and pairs of both share, on `observation.entities`; kinds in the order of the
  market (`montecristo_env.symmetry`). It has less than half a million multiply-adds.

`--without FIELD …` blanks fields, to see what they are good for.
"""

import argparse
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from montecristo_agents.benchmark import benchmark
from montecristo_agents.entity import DUNGEON_CODES, KIND_CODES
from montecristo_env import GameBatch, PublicView, actions, make_agent, observation, symmetry
from montecristo_env.core.constants import DUNGEONS, KINDS

GAMES = 1024
OPENING = 60  # decisions that are not looked at, so that games are in all their stages
PERIOD = 7  # one of this many decisions is kept, so that positions differ
RANDOM_MOVES = 0.15  # so that positions occur that greedy would not get into
TEST_POSITIONS = 50_000
BATCH = 1024
EPOCHS = 14
RATE, LAST_RATE = 1e-3, 1e-5
ILLEGAL = -1e9


class Demonstrations(NamedTuple):
    """Positions, the legal actions, and what greedy chose."""

    seen: NDArray[np.int8]
    masks: NDArray[np.int8]
    chosen: NDArray[np.int64]


def collect_demonstrations(positions: int, players: int, seed: int) -> Demonstrations:
    """Positions from games that greedy plays with itself."""
    games = GameBatch(GAMES, players, seed=seed)
    view, greedy = PublicView(games), make_agent("greedy")
    rng = np.random.default_rng(seed)
    parts: list[Demonstrations] = []
    rows, step = np.arange(GAMES), 0
    while len(parts) * GAMES < positions:
        chosen = greedy.act(view, rows)
        if step > OPENING and step % PERIOD == 0:
            parts.append(Demonstrations(games.observe(), games.action_mask(), chosen))
        at_random = rng.random(GAMES) < RANDOM_MOVES
        games.step(np.where(at_random, games.sample_actions(), chosen), autoreset=True)
        step += 1
    return Demonstrations(*(np.concatenate(part)[:positions] for part in zip(*parts, strict=True)))


class Plain(nn.Module):
    """A perceptron on the whole observation."""

    canonical = False

    def __init__(self, hidden: int = 256) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(observation.SIZE, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, actions.COUNT),
        )

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """The logits of all actions."""
        logits: torch.Tensor = self.layers(seen)
        return logits


class Shared(nn.Module):
    """Layers that all dungeons share, all kinds, and all pairs of both, which tell each other what they see, twice.

    In between, two layers look at all of it. Dungeons and kinds say what they think of the actions that name them.
    """

    canonical = True

    def __init__(self, pair: int = 32, entity: int = 64, hidden: int = 224) -> None:
        super().__init__()
        groups = observation.GROUPS
        dungeon, kind = groups["dungeons"].width, groups["kinds"].width
        context = groups["global"].width + math.prod((*groups["players"].axes, groups["players"].width))
        self.pairs_1 = nn.ModuleList(
            [nn.Linear(width, pair) for width in (groups["pairs"].width, dungeon, kind, context)]
        )
        self.dungeons_1 = nn.ModuleList([nn.Linear(width, entity) for width in (dungeon, pair, context)])
        self.kinds_1 = nn.ModuleList([nn.Linear(width, entity) for width in (kind, pair, context)])
        self.dungeon_place = nn.Parameter(torch.zeros(DUNGEONS, entity))  # dungeons are gathered in order
        self.together = nn.Sequential(
            nn.Linear((2 + KINDS) * entity + context, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.pairs_2 = nn.ModuleList([nn.Linear(width, pair) for width in (pair, entity, entity)])
        self.dungeons_2 = nn.ModuleList([nn.Linear(width, entity) for width in (entity, pair, hidden)])
        self.kinds_2 = nn.ModuleList([nn.Linear(width, entity) for width in (entity, pair, hidden)])
        self.of_dungeons = nn.Linear(entity, DUNGEON_CODES.shape[1])
        self.of_kinds = nn.Linear(entity, KIND_CODES.shape[1])
        self.of_all = nn.Linear(hidden, actions.COUNT)
        self.codes: torch.Tensor
        self.register_buffer("codes", torch.from_numpy(np.concatenate([DUNGEON_CODES.ravel(), KIND_CODES.ravel()])))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """The logits of all actions."""
        group = observation.entities(seen)
        context = torch.cat([group.global_, group.players.flatten(1)], 1)
        pairs = _add(
            self.pairs_1, group.pairs, group.dungeons[:, :, None], group.kinds[:, None], context[:, None, None]
        )
        dungeons = _add(self.dungeons_1, group.dungeons, pairs.sum(2), context[:, None], more=self.dungeon_place)
        kinds = _add(self.kinds_1, group.kinds, pairs.sum(1), context[:, None])
        together = self.together(torch.cat([dungeons.sum(1), dungeons.amax(1), kinds.flatten(1), context], 1))
        pairs = _add(self.pairs_2, pairs, dungeons[:, :, None], kinds[:, None])
        dungeons = _add(self.dungeons_2, dungeons, pairs.sum(2), together[:, None], more=dungeons)
        kinds = _add(self.kinds_2, kinds, pairs.sum(1), together[:, None], more=kinds)
        named = torch.cat([self.of_dungeons(dungeons).flatten(1), self.of_kinds(kinds).flatten(1)], 1)
        logits: torch.Tensor = self.of_all(together).index_add(1, self.codes, named)
        return logits


def _add(layers: nn.ModuleList, *inputs: torch.Tensor, more: torch.Tensor | float = 0.0) -> torch.Tensor:
    """What layers make of their inputs, added up."""
    return torch.relu(
        sum((layer(part) for layer, part in zip(layers, inputs, strict=True)), start=torch.as_tensor(more))
    )


def multiply_adds(network: nn.Module) -> int:
    """How many multiplications with weights one position takes."""
    total = 0

    def count(layer: nn.Linear, inputs: tuple[torch.Tensor], _: torch.Tensor) -> None:
        nonlocal total
        total += inputs[0].numel() * layer.out_features

    hooks = [layer.register_forward_hook(count) for layer in network.modules() if isinstance(layer, nn.Linear)]
    network(torch.zeros(1, observation.SIZE))
    for hook in hooks:
        hook.remove()
    return total


NETWORKS: dict[str, type[Plain] | type[Shared]] = {"plain": Plain, "shared": Shared}


class Student:
    """A network that learns and plays; it sees scaled observations, some fields blank, kinds in market order or not."""

    def __init__(self, name: str, network: Plain | Shared, without: Sequence[str] = ()) -> None:
        self.name = name
        self.network = network
        self.scale = observation.SCALE.copy()
        for field in without:
            observation.view(self.scale, field)[...] = 0

    def learn(self, shown: Demonstrations, epochs: int, seed: int) -> None:
        """Trains on all positions in each epoch, with a falling learning rate."""
        shown = self._arranged(shown)[0]
        rng = np.random.default_rng(seed)
        optimizer = torch.optim.Adam(self.network.parameters(), lr=RATE)
        batches = len(shown.chosen) // BATCH
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, LAST_RATE / RATE, epochs * batches)
        for _ in range(epochs):
            for batch in rng.permutation(len(shown.chosen))[: batches * BATCH].reshape(batches, BATCH):
                logits = self._logits(shown.seen[batch], shown.masks[batch])
                loss = nn.functional.cross_entropy(logits, torch.from_numpy(shown.chosen[batch]))
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()

    def choose(self, seen: NDArray[np.int8], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        """The actions it likes best."""
        shown, order = self._arranged(Demonstrations(seen, masks, np.zeros(len(seen), np.int64)))
        with torch.no_grad():
            chosen = self._logits(shown.seen, shown.masks).argmax(1).numpy()
        return symmetry.permute_actions(chosen, symmetry.inverse(order))

    def act(self, games: PublicView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same, as an agent of the arena."""
        masks = np.empty((rows.size, actions.COUNT), np.int8)
        return self.choose(games.observe(rows=rows, masks=masks), masks)

    def _arranged(self, shown: Demonstrations) -> tuple[Demonstrations, NDArray[np.int64]]:
        """Positions with their kinds as the network wants them, and the permutations that led there."""
        if not self.network.canonical:
            return shown, np.arange(KINDS)
        order = symmetry.market_order(shown.seen)
        seen, masks = symmetry.permute_observations(shown.seen, order), symmetry.permute_masks(shown.masks, order)
        return Demonstrations(seen, masks, symmetry.permute_actions(shown.chosen, order)), order

    def _logits(self, seen: NDArray[np.int8], masks: NDArray[np.int8]) -> torch.Tensor:
        logits: torch.Tensor = self.network(torch.from_numpy(seen * self.scale))
        return logits.masked_fill(torch.from_numpy(masks == 0), ILLEGAL)


def agreement(student: Student, shown: Demonstrations) -> dict[str, float]:
    """How often a student does what greedy does, in all and by kind of decision."""
    parts = [slice(begin, begin + BATCH) for begin in range(0, len(shown.chosen), BATCH)]
    chosen = np.concatenate([student.choose(shown.seen[part], shown.masks[part]) for part in parts])
    right = chosen == shown.chosen
    found = {"all": float(right.mean())}
    for name, codes in actions.BLOCKS.items():
        asked = np.isin(shown.chosen, codes)
        found[name] = float(right[asked].mean()) if asked.any() else float("nan")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, default=300_000)
    parser.add_argument("--players", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--deals", type=int, default=1000, help="each is played in every seat")
    parser.add_argument("--seed", type=int, default=0, help="of positions, weights and deals")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--without", nargs="+", choices=observation.FIELDS, default=[], metavar="FIELD")
    options = parser.parse_args()
    shown = collect_demonstrations(options.positions, options.players, options.seed)
    test = collect_demonstrations(TEST_POSITIONS, options.players, options.seed + 1)
    print(f"{options.positions:,} positions, {options.players} players, {options.epochs} epochs, seed {options.seed}")
    for name in options.networks:
        torch.manual_seed(options.seed)
        student = Student(name, NETWORKS[name](), options.without)
        start = time.perf_counter()
        student.learn(shown, options.epochs, options.seed)
        seconds = time.perf_counter() - start
        found = agreement(student, test)
        report = benchmark(
            student, options.players, options.deals, options.seed + 2, against=["greedy"], progress=False
        )
        pair = report.pair(name, "greedy")
        assert pair is not None
        rate = pair.win_rate
        print(f"\n{name}: {multiply_adds(student.network):,} multiply-adds, learnt in {seconds:.0f} s")
        print("  does as greedy: " + ", ".join(f"{block} {share:.1%}" for block, share in found.items()))
        print(f"  wins against greedy: {rate.value:.1%} ({rate.low:.1%} to {rate.high:.1%}), {pair.games} games")


if __name__ == "__main__":
    main()
