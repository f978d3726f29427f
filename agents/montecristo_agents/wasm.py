"""Builds what plays in a browser: `python -m montecristo_agents.wasm FOLDER`, or `make wasm`.

It writes `montecristo.wasm`, all compiled kernels for WebAssembly (see `montecristo_env.core.build`), and
`alphazero.safetensors`, the shipped network in half precision. What a page must know of the kernels, such as where a
field stands in a row, is a section of the module called "montecristo": JSON.
"""

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from montecristo_agents import entity, mcts, models, search, tree
from montecristo_env import observation
from montecristo_env.core import actions, constants, layout, library
from montecristo_env.ruleset import VARIANTS, Ruleset
from montecristo_env.util.files import atomic_write

TARGET = "wasm32"
MODULE, NETWORK, SECTION = "montecristo.wasm", "alphazero.safetensors", "montecristo"


def build(folder: Path) -> None:
    """Writes the module, unless it is there and its sources are as they were, and the network."""
    folder.mkdir(parents=True, exist_ok=True)
    if not is_current(folder):
        with tempfile.TemporaryDirectory() as made:
            command = [sys.executable, "-m", "montecristo_env.core.build", "--target", TARGET, "--folder", made]
            subprocess.run(command, check=True, env=os.environ | {"MONTECRISTO_BOUNDSCHECK": "0"})
            module = Path(made, library.file_name(TARGET)).read_bytes()
            manifest = json.loads(Path(made, library.MANIFEST).read_text(encoding="utf-8"))
        facts = json.dumps(description() | {"manifest": manifest}).encode()
        atomic_write(folder / MODULE, with_section(module, facts))
    with models.shipped_model("alphazero") as path:
        entity.EntityNetwork.load(path).save(folder / NETWORK, np.float16)


def is_current(folder: Path) -> bool:
    """Whether there is a module in a folder, made from the sources as they are."""
    try:
        content = (folder / MODULE).read_bytes()
        facts = json.loads(content[content.rindex(b'{"version"') :])
    except (OSError, ValueError):
        return False
    sources = facts["manifest"]["sources"]
    own = json.loads(json.dumps(description()))
    return bool(library.fingerprint(sources) == facts["manifest"]["hash"] and facts | own == facts)


def with_section(module: bytes, content: bytes) -> bytes:
    """The module with one more section of its own, at its end."""
    name = SECTION.encode()
    body = _length(len(name)) + name + content
    return module + b"\0" + _length(len(body)) + body


def _length(number: int) -> bytes:
    """A number in LEB128."""
    found = b""
    while number >= 0x80:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def description() -> dict[str, Any]:
    """What a page must know of the module; all of it comes from the definitions that the kernels use."""
    groups = observation.GROUPS
    return {
        "version": importlib.metadata.version("montecristo-env"),
        "layout": models.layout_hash(),
        "state": fields(layout.STATE),
        "observation": observation.SIZE,
        "actions": [str(actions.decode(code)) for code in range(actions.COUNT)],
        "first": actions.FIRST.tolist(),
        "decisions": [decision.name.lower() for decision in constants.Decision],
        "colours": constants.COLOURS,
        "ruleset": Ruleset().to_dict(),
        "variants": VARIANTS,
        "most": {
            "target": constants.MOST_TARGET,
            "round_limit": constants.MOST_ROUNDS,
            "market": constants.BEST_MARKET_VALUE,
            "adventurers": constants.ADVENTURERS,
            "cards": constants.CARDS,
            "tokens": constants.TOKENS,
        },
        "search": {
            "state": fields(search.SEARCH),
            "node_bytes": tree.NODE.itemsize,
            "most_choices": search.MOST_CHOICES,
            "win_weight": search.WIN_WEIGHT,
            "rounds": mcts.ROUNDS,
        },
        "network": {
            "context": entity.CONTEXT,
            "dungeons": [constants.DUNGEONS, groups["dungeons"].width, groups["dungeons"].slice.start],
            "kinds": [constants.KINDS, groups["kinds"].width, groups["kinds"].slice.start],
            "pairs": [constants.DUNGEONS * constants.KINDS, groups["pairs"].width, groups["pairs"].slice.start],
            "dungeon_actions": entity.DUNGEON_CODES.shape[1],
            "kind_actions": entity.KIND_CODES.shape[1],
            "most_units": entity.MOST_UNITS,
            "scale": [float(np.float32(scale)) for scale in observation.SCALE],
        },
    }


def fields(dtype: np.dtype[Any]) -> dict[str, Any]:
    """Where the fields of a row stand: type, place and shape of each, and how long the row is."""
    found: Mapping[str, Any] = dtype.fields or {}
    places = {
        name: [field[0].base.str[1:], int(field[1]), list(field[0].shape)]
        for name, field in found.items()
        if name != "bytes"
    }
    return {"bytes": dtype.itemsize, "fields": places}


def main() -> None:
    """Builds into the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help=f"where to write {MODULE} and {NETWORK}")
    folder = parser.parse_args().folder
    build(folder)
    for name in (MODULE, NETWORK):
        print(f"{folder / name}: {(folder / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
