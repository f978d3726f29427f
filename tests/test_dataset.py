"""Games as data: every decision is there, as it was, and streams into learners."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import public_part
from montecristo_agents import arena
from montecristo_agents.arena import Run, play
from montecristo_agents.dataset import ABOUT, Dataset, unpack_rows
from montecristo_agents.luck import SIGNALS, LuckMeter
from montecristo_agents.policy import PolicyAgent
from montecristo_agents.random import RandomAgent
from montecristo_env import GameBatch, InvalidArgument
from test_luck import Twin, network


def write(dataset: Path, players: int = 2, **settings: Any) -> Run:
    run = Run([RandomAgent(), Twin()], players, 5, seed=1, dataset=dataset, **settings)
    run.play(progress=False)
    return run


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "GAMES_PER_SHARD", 6)


@pytest.mark.parametrize("players", [2, 4])
def test_the_decisions_of_a_dataset_play_the_games_again(tmp_path: Path, players: int) -> None:
    run = write(tmp_path, players)
    dataset = Dataset(tmp_path)
    assert len(dataset) == -(-run.match.rounds // (6 // players))
    for number in range(len(dataset)):
        arrays = dataset.shard(number)
        games = GameBatch(len(arrays["seeds"]), players, seed=arrays["seeds"])
        rows = unpack_rows(arrays["rows"])
        assert (rows["seed"] == 0).all() and (rows["slot_card"] == 0).all() and (rows["bag_order"] == 0).all()
        for game in range(len(games)):
            for decision in np.flatnonzero(arrays["games"] == game):
                assert games.current_player[game] == arrays["seats"][decision]
                assert public_part(rows[[decision]]).tobytes() == public_part(games.states[[game]]).tobytes()
                games.step(arrays["actions"][[decision]], [game])
        assert games.over.all()
        np.testing.assert_array_equal(games.winners, arrays["winners"])
        np.testing.assert_array_equal(games.scores, arrays["scores"])
        assert (arrays["agents"][:, :players] >= 0).all() and (arrays["agents"][:, players:] == -1).all()
    plain = Run([RandomAgent(), Twin()], players, 5, seed=1)
    plain.play(progress=False)
    assert plain.report().pairs == run.report().pairs, "to keep decisions must not change games"


def test_batches_hold_what_a_learner_needs(tmp_path: Path) -> None:
    write(tmp_path)
    dataset = Dataset(tmp_path)
    whole = [dataset.shard(number) for number in range(len(dataset))]
    batches = list(dataset.batches(50))
    total = sum(len(arrays["actions"]) for arrays in whole)
    assert sum(len(batch["actions"]) for batch in batches) == total
    for batch in batches:
        size = len(batch["actions"])
        assert (batch["masks"][np.arange(size), batch["actions"]] == 1).all()
    first = whole[0]
    games = GameBatch(1, 2, seed=first["seeds"][:1])
    np.testing.assert_array_equal(batches[0]["observations"][0], games.observe()[0])
    np.testing.assert_array_equal(batches[0]["masks"][0], games.action_mask()[0])
    decider, end = first["seats"][0], first["games"][0]
    assert batches[0]["shares"][0] == first["winners"][end, decider] / first["winners"][end].sum()
    assert batches[0]["margins"][0] == int(first["scores"][end, decider]) - int(first["scores"][end, 1 - decider])

    shuffled = list(dataset.batches(50, seed=3))
    again = list(dataset.batches(50, seed=3))
    assert all((a["actions"] == b["actions"]).all() for a, b in zip(shuffled, again, strict=True))
    assert any(
        (a["actions"] != b["actions"]).any() for a, b in zip(shuffled, batches, strict=False) if len(a) == len(b)
    )
    parts = [sum(len(b["actions"]) for b in dataset.batches(50, 3, part, 2)) for part in range(2)]
    assert sum(parts) == total and min(parts) > 0


def test_policies_values_and_luck_are_there_if_somebody_offers_them(tmp_path: Path) -> None:
    agents = [PolicyAgent(network()), RandomAgent()]
    settings: dict[str, Any] = {"adjust": LuckMeter(network(), 2)}
    play(agents, deals=3, dataset=tmp_path / "data", progress=False, **settings)
    arrays = Dataset(tmp_path / "data").shard(0)
    network_moves = arrays["agents"][arrays["games"], arrays["seats"]] == 0
    policies = arrays["policies"].astype(float)
    np.testing.assert_allclose(policies[network_moves].sum(axis=1), 1, atol=0.02)
    assert (policies[~network_moves] == 0).all()
    np.testing.assert_array_equal(np.isnan(arrays["values"]), ~network_moves)
    likeliest = policies[network_moves].max(axis=1)
    np.testing.assert_array_equal(
        policies[network_moves][np.arange(network_moves.sum()), arrays["actions"][network_moves]], likeliest
    )
    assert arrays["luck"].shape == (len(policies), 4, len(SIGNALS))
    lucky = np.abs(arrays["luck"]).max(axis=(1, 2)) > 0
    assert 0.03 < lucky.mean() < 0.3
    np.testing.assert_allclose(arrays["luck"].sum(axis=1), 0, atol=1e-5)


def test_a_stopped_run_ends_with_the_same_shards(tmp_path: Path) -> None:
    write(tmp_path / "whole", folder=tmp_path / "run of whole")
    again: dict[str, Any] = {"seed": 1, "dataset": tmp_path / "parts", "folder": tmp_path / "run of parts"}
    run = Run([RandomAgent(), Twin()], 2, 5, **again)
    chunks = run._play_here()
    played = next(chunks)
    assert run.dataset is not None and run.folder is not None and played.decisions is not None
    run.dataset.save(0, len(played.results), played.decisions)
    run.folder.save(0, played.results)
    Run([RandomAgent(), Twin()], 2, 5, **again).play(progress=False)
    whole, parts = Dataset(tmp_path / "whole"), Dataset(tmp_path / "parts")
    assert [path.name for path in whole.paths] == [path.name for path in parts.paths]
    for number in range(len(whole)):
        ours, theirs = whole.shard(number), parts.shard(number)
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name])


def test_the_workers_of_a_torch_loader_share_the_shards(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from montecristo_agents.torch_dataset import TorchDataset

    write(tmp_path)
    loader = torch.utils.data.DataLoader(TorchDataset(tmp_path, 64, seed=0), batch_size=None, num_workers=2)
    found = sum(len(batch["actions"]) for batch in loader)
    dataset = Dataset(tmp_path)
    assert found == sum(len(dataset.shard(number)["actions"]) for number in range(len(dataset)))


def test_folders_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "data")
    with pytest.raises(InvalidArgument, match="holds the games of another run"):
        Run([RandomAgent(), Twin()], 2, 6, seed=1, dataset=tmp_path / "data")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "something").touch()
    with pytest.raises(InvalidArgument, match="neither empty nor a dataset"):
        write(tmp_path / "other")
    with pytest.raises(InvalidArgument, match="is no dataset"):
        Dataset(tmp_path / "other")
    about = json.loads((tmp_path / "data" / ABOUT).read_text())
    (tmp_path / "data" / ABOUT).write_text(json.dumps(about | {"rows": "0"}))
    with pytest.raises(InvalidArgument, match="this version reads"):
        Dataset(tmp_path / "data")
    (tmp_path / "data" / ABOUT).write_text(json.dumps(about))
    dataset = Dataset(tmp_path / "data")
    dataset.paths[0].write_bytes(b"no archive")
    with pytest.raises(InvalidArgument, match="is damaged"):
        dataset.shard(0)
    with pytest.raises(InvalidArgument, match="size must be 1 or more and part one of 2"):
        next(dataset.batches(5, part=2, parts=2))
