"""Whatever is in a file that we read: it is taken, or refused by an error of ours; no other error comes out."""

import copy
import functools
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("safetensors")
pytest.importorskip("openskill")

from safetensors.numpy import save

from montecristo_agents import arena
from montecristo_agents.entity import EntityNetwork, Sizes, shapes
from montecristo_agents.models import FORMAT, InvalidModel, checksum, layout_hash
from montecristo_env import GameBatch, GameRecord, MonteCristoError, observation

# In place of a value stands a mark, which the JSON text of the junk replaces: no program could write all of it.
MARK = "here stands the junk"
JUNK = ["null", "[]", "{}", "-1", str(10**400), "1e400", "NaN", '"x"', "true", "[" * 500 + "]" * 500]
JUNK += ["[" * 980 + "]" * 980, "[" * 100_000 + "]" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000]
TINY = Sizes(2, 3, 4)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values inside a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def spoilt(document: Any, path: tuple[Any, ...], junk: str) -> str:
    """The JSON text with junk in one place."""
    document = copy.deepcopy({"": document})
    *parents, key = ("", *path)
    functools.reduce(lambda inner, name: inner[name], parents, document)[key] = MARK
    return json.dumps(document[""]).replace(json.dumps(MARK), junk)


def all_spoilt(document: Any, most: int) -> Iterator[str]:
    """Junk in every place, or in as many as there is time for."""
    cases = [(path, junk) for path in places(document) for junk in JUNK]
    for path, junk in random.Random(0).sample(cases, min(most, len(cases))):
        yield spoilt(document, path, junk)


def taken_or_refused(load: Callable[[], Any]) -> bool:
    """Whether it was refused; any error but one of ours fails the test."""
    try:
        load()
    except MonteCristoError:
        return True
    return False


# --- records


def test_a_record_with_junk_in_it_is_refused_by_name() -> None:
    games = GameBatch(1, 2, seed=3)
    record = GameRecord.record(games)
    games.play_random(30)
    record.annotate("random")
    document = json.loads(record.to_json())
    head = document | {"events": []}
    noted = next(index for index, event in enumerate(document["events"]) if "probabilities" in event)
    document["events"][noted]["value"] = 0.5
    texts = [*all_spoilt(head, 400), *all_spoilt(document, 200)]
    texts += [spoilt(document, ("events", noted, name), junk) for name in document["events"][noted] for junk in JUNK]
    refused = [taken_or_refused(functools.partial(GameRecord.from_json, text)) for text in texts]
    assert sum(refused) > 0.8 * len(texts)
    assert not taken_or_refused(lambda: GameRecord.from_json(json.dumps(document)))


# --- models


def tensors() -> dict[str, Any]:
    found = {name: np.full(shape, 0.1, np.float32) for name, shape in shapes(TINY).items()}
    return found | {name: np.zeros_like(found[name]) for name in found if name.endswith("bias")}


def model(**header: str) -> bytes:
    """A model file with a true checksum, whatever its header says."""
    entries = {"format": FORMAT, "layout": layout_hash(), "sizes": json.dumps(TINY), "training": '{"seed": 1}'} | header
    return save(tensors(), entries | {"checksum": checksum(entries, tensors())})


def test_a_model_with_junk_in_its_header_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    path.write_bytes(model())
    EntityNetwork.load(path)
    for entry in ("sizes", "training", "layout", "format"):
        for junk in JUNK:
            path.write_bytes(model(**{entry: junk}))
            right = (entry, junk[0]) == ("training", "{")
            assert taken_or_refused(lambda: EntityNetwork.load(path)) or right, (entry, junk[:20])
    for text in all_spoilt(list(TINY), 100):
        path.write_bytes(model(sizes=text))
        assert taken_or_refused(lambda: EntityNetwork.load(path)), text[:20]


def test_a_model_file_with_junk_where_its_tensors_are_described_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    content = model()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    texts = [*all_spoilt(header, 400)]
    texts += [json.dumps(header | {"value.bias": header["value.bias"] | {"shape": [1] * n}}) for n in (2, 64, 65, 1000)]
    for text in texts:
        path.write_bytes(len(text).to_bytes(8, "little") + text.encode() + content[end:])
        assert taken_or_refused(lambda: EntityNetwork.load(path)), text[:200]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("pair.weight", "pairs"),
        ("pair_context.weight", "the context"),
        ("pair_dungeon.weight", "dungeons"),
        ("pair_kind.weight", "kinds"),
        ("pair.bias", "dungeon_pairs"),
        ("dungeon.weight", "dungeons"),
        ("dungeon_pairs.weight", "dungeon_pairs"),
        ("dungeon_context.weight", "the context"),
        ("dungeon_place", "trunk.0"),
        ("kind.weight", "kinds"),
        ("kind_pairs.weight", "kind_pairs"),
        ("kind_place", "trunk.0"),
        ("trunk.0.weight", "trunk.0"),
        ("trunk.0.bias", "trunk.1"),
        ("trunk.1.weight", "trunk.1"),
        ("trunk.1.bias", "the heads"),
        ("policy.weight", "the heads"),
        ("value.weight", "the heads"),
        ("win.weight", "the heads"),
        ("to_dungeons.weight", "the heads"),
        ("to_kinds.bias", "the heads"),
        ("of_dungeons.weight", "the heads"),
        ("of_kinds.weight", "the heads"),
    ],
)
@pytest.mark.parametrize("value", [3e38, -3e38])
def test_weights_with_which_logits_may_become_infinite_are_refused(name: str, part: str, value: float) -> None:
    weights = tensors()
    for other, tensor in weights.items():
        if other.endswith("weight"):
            tensor.fill(2.0)
    weights[name].fill(value)
    with pytest.raises(InvalidModel, match=f"the weights of {part} are so large that what it gives may be infinite"):
        EntityNetwork(TINY, weights)


@pytest.mark.parametrize("name", ["policy", "value", "win", "of_dungeons", "of_kinds"])
def test_large_biases_of_heads_with_which_logits_may_become_infinite_are_refused(name: str) -> None:
    weights = tensors()
    weights[f"{name}.bias"].fill(3e38)
    weights[f"{name}.weight"].fill(1e35)
    with pytest.raises(InvalidModel, match="the weights of the heads are so large that what it gives may be infinite"):
        EntityNetwork(TINY, weights)


def test_a_file_with_weights_with_which_logits_may_become_infinite_is_refused_by_name(tmp_path: Path) -> None:
    weights = tensors()
    weights["policy.weight"].fill(3e38)
    path = tmp_path / "net.safetensors"
    entries = {"format": FORMAT, "layout": layout_hash(), "sizes": json.dumps(TINY), "training": "{}"}
    path.write_bytes(save(weights, entries | {"checksum": checksum(entries, weights)}))
    with pytest.raises(InvalidModel, match=r"net\.safetensors: the weights of the heads are so large"):
        EntityNetwork.load(path)


def test_large_weights_that_cannot_overflow_are_taken() -> None:
    weights = tensors()
    weights["trunk.0.weight"].fill(1e20)
    logits, values = EntityNetwork(TINY, weights).evaluate(np.full((1, observation.SIZE), 127, np.int8))
    assert np.isfinite(logits).all() and np.isfinite(values).all()


# --- the arena


def test_settings_of_an_arena_run_with_junk_in_them_are_refused_by_name(tmp_path: Path) -> None:
    make = functools.partial(arena.Run, ["random", "random"], deals=2, folder=tmp_path)
    make()
    known = tmp_path / "settings.json"
    document = json.loads(known.read_text())
    for text in [*all_spoilt(document, 250), "", "{", "[]", "null"]:
        known.write_text(text)
        assert taken_or_refused(make) or json.loads(text) == document, text[:200]
    known.write_bytes(b"\xff\xfe")
    assert taken_or_refused(make)


def test_a_damaged_chunk_of_an_arena_run_is_refused_by_name(tmp_path: Path) -> None:
    make = functools.partial(arena.Run, ["random", "random"], deals=3, folder=tmp_path)
    run = make()
    assert run.folder is not None
    run.folder.save(0, run.match.play(0, 3)[0])
    (chunk,) = (tmp_path / "chunks").iterdir()
    content = chunk.read_bytes()
    assert not taken_or_refused(make)
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 200).tolist():
        chunk.write_bytes(content[:place] + bytes([content[place] ^ 1 << int(rng.integers(8))]) + content[place + 1 :])
        taken_or_refused(make)
    for shape in ((1,) * 65, (10**400,), (-1,), (2**62, 2**62), "x", (1.5,), None):
        with zipfile.ZipFile(io.BytesIO(content)) as whole, zipfile.ZipFile(chunk, "w") as other:
            for name in whole.namelist():
                other.writestr(name, whole.read(name) if name != "scores.npy" else npy(shape))
        assert taken_or_refused(make), shape


def npy(shape: Any) -> bytes:
    """An array file that says it has this shape."""
    head = f"{{'descr': '<i2', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(24)


# --- training


def test_settings_of_a_training_run_with_junk_in_them_are_taken_or_refused_by_name(tmp_path: Path) -> None:
    pytest.importorskip("sb3_contrib")
    from montecristo_train import runs
    from montecristo_train.ppo import PRESETS, Settings

    runs.new_folder(tmp_path, PRESETS["smoke"][1])
    known = tmp_path / runs.SETTINGS
    document = {"settings": json.loads(known.read_text())["settings"]}
    refused = 0
    for text in all_spoilt(document, 10_000):
        known.write_text(text)
        refused += taken_or_refused(lambda: runs.read_settings(tmp_path, Settings))
    assert refused > 300


def test_metrics_with_junk_in_them_are_forgotten(tmp_path: Path) -> None:
    pytest.importorskip("sb3_contrib")
    from montecristo_train import runs

    metrics = tmp_path / runs.METRICS
    good = '{"steps": 5, "win_rate/random": 0.5}'
    for text in all_spoilt({"steps": 5}, 100):
        metrics.write_text(f"{good}\n{text}\n")
        runs.forget_metrics_after(metrics, 5)
        assert metrics.read_text().splitlines()[0] == good
