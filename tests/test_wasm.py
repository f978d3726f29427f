"""The rules and the players as WebAssembly, in Node: the same games, the same choices, the same words as in Python."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from montecristo_agents.entity import EntityNetwork
from montecristo_agents.models import shipped_model
from montecristo_env import GameBatch, GameRecord, Ruleset
from montecristo_env.agent import PublicView, make_agent
from montecristo_env.ruleset import VARIANTS
from montecristo_env.web.sessions import Session

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "montecristo_env" / "web" / "static"
COMPILED = ROOT / "build" / "wasm"
MUST_RUN = bool(os.environ.get("MONTECRISTO_CI"))
GAMES = 3168  # 32 rule sets, 2 to 4 players, 33 deals
POSITIONS = 10_000

if (shutil.which("node") is None or not (COMPILED / "montecristo.wasm").is_file()) and not MUST_RUN:
    pytest.skip("needs Node 20 and the module: make wasm", allow_module_level=True)

Ask = Callable[..., Any]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Lets Node do something in a folder, and reads what it has found."""

    def asked(command: str, work: Any = None) -> Any:
        (tmp_path / "work.json").write_text(json.dumps(work))
        script = ROOT / "tests" / "wasm" / "proof.mjs"
        done = subprocess.run(
            ["node", script, COMPILED, SCRIPTS, tmp_path, command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found = tmp_path / "found.json"
        return json.loads(found.read_text()) if found.exists() else None

    return asked


def nth_legal(masks: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Of every row the legal action at this place, counted round and round."""
    wanted = places % np.maximum(masks.sum(axis=1), 1)
    return ((masks.cumsum(axis=1) == wanted[:, None] + 1) & (masks == 1)).argmax(axis=1)


def digests(players: int, seeds: list[int], ruleset: Ruleset) -> list[str]:
    games = GameBatch(len(seeds), players, seed=seeds, ruleset=ruleset)
    found = [hashlib.sha256() for _ in seeds]
    for step in itertools.count():
        alive = np.flatnonzero(~games.over)
        if alive.size == 0:
            break
        seen, masks = games.observe(), games.action_mask()
        for game in alive:
            found[game].update(seen[game].tobytes() + masks[game].tobytes())
        games.step(nth_legal(masks, 7 * step + np.array(seeds)))
    rows = games.states.copy()
    rows["scratch"] = 0
    for game, row in enumerate(rows):
        found[game].update(row.tobytes())
    return [digest.hexdigest() for digest in found]


def test_games_are_the_same_to_the_byte(ask: Ask) -> None:
    """Observation and mask at every decision, and the row in the end, in games of all sizes and all variants."""
    work, expected = [], []
    rulesets = [Ruleset(**dict(zip(VARIANTS, values, strict=True))) for values in itertools.product(*VARIANTS.values())]
    each = GAMES // (3 * len(rulesets))
    for number, (ruleset, players) in enumerate(itertools.product(rulesets, (2, 3, 4))):
        seeds = [1000 * number + deal for deal in range(each)]
        expected += digests(players, seeds, ruleset)
        work += [{"players": players, "seed": seed, "ruleset": ruleset.to_dict()} for seed in seeds]
    assert len(work) >= 3000
    assert ask("games", work) == expected


def test_a_special_deck_and_a_short_game_are_the_same(ask: Ask) -> None:
    ruleset = Ruleset(
        deck=((1, 2, 3), (3, 2, 1), (2, 2, 2), (0, 3, 3), (2, 2, 2)),
        card_adventurers=(1, 2, 3),
        market=(3, 3, 2, 2, 1),
        target=17,
        round_limit=9,
    )
    work = [{"players": 3, "seed": seed, "ruleset": ruleset.to_dict()} for seed in range(50)]
    assert ask("games", work) == digests(3, list(range(50)), ruleset)


def write_positions(folder: Path, size: int) -> GameBatch:
    """Positions with something to decide, from all parts of games that are played by greedy and at random."""
    games = GameBatch(512, np.resize([2, 3, 4], 512), seed=5)
    greedy, rng = make_agent("greedy"), np.random.default_rng(5)
    rows: list[np.ndarray] = []
    while sum(map(len, rows)) < size:
        for _ in range(7):
            acts = greedy.act(PublicView(games), np.arange(512))
            acts = np.where(rng.random(512) < 0.3, games.sample_actions(), acts)
            games.step(acts, autoreset=True)
        row_bytes = games.states.view(np.uint8).reshape(512, -1)
        rows.append(row_bytes[rng.random(512) < 0.5])
    found = GameBatch(size, 2, seed=0)
    found.states.view(np.uint8)[:] = np.concatenate(rows)[:size].ravel()
    (folder / "rows.bin").write_bytes(found.states.tobytes())
    return found


@pytest.fixture
def positions(tmp_path: Path) -> GameBatch:
    return write_positions(tmp_path, POSITIONS)


def test_the_network_says_what_it_says_in_numpy(ask: Ask, tmp_path: Path, positions: GameBatch) -> None:
    choices = np.array(ask("logits"))
    logits = np.frombuffer((tmp_path / "logits.bin").read_bytes(), np.float32).reshape(POSITIONS, -1)
    shares = np.frombuffer((tmp_path / "shares.bin").read_bytes(), np.float32).reshape(POSITIONS, 2, 4)
    seen, masks = positions.observe(), positions.action_mask()
    half = EntityNetwork.load(COMPILED / "alphazero.safetensors")
    expected, utilities, wins = half.forward(seen)
    assert np.abs(logits - expected).max() < 1e-3
    assert np.abs(shares - np.stack([utilities, wins], axis=1)).max() < 1e-4
    best = np.where(masks, expected, -np.inf).argmax(axis=1)
    assert (choices == best).mean() >= 0.999
    with shipped_model("alphazero") as path:
        whole = EntityNetwork.load(path).forward(seen)[0]
    best = np.where(masks, whole, -np.inf).argmax(axis=1)
    print(f"half precision: {(choices != best).mean():.3%} of choices differ, logits by {np.abs(logits - whole).max()}")
    assert (choices == best).mean() >= 0.999


def test_greedy_chooses_as_in_python(ask: Ask, positions: GameBatch) -> None:
    native = make_agent("greedy").act(PublicView(positions), np.arange(POSITIONS))
    assert ask("choices", {"agent": "greedy"}) == native.tolist()


@pytest.mark.parametrize("agent", ["alphazero:32", "mcts:40"])
def test_searches_choose_as_in_python(ask: Ask, tmp_path: Path, agent: str) -> None:
    """But for rounding: exp and log are those of the page."""
    few = write_positions(tmp_path, 200)
    native = make_agent(agent)
    if agent.startswith("alphazero"):
        native.network = EntityNetwork.load(COMPILED / "alphazero.safetensors")  # type: ignore[attr-defined]
    expected = native.act(PublicView(few), np.arange(200))
    assert (np.array(ask("choices", {"agent": agent})) == expected).mean() >= 0.98


def test_losses_and_luck_are_those_of_python(ask: Ask, tmp_path: Path) -> None:
    """Where nothing is drawn they are the same; where something is, other redraws are behind their means."""
    games = GameBatch(1, 3, seed=[4])
    record = GameRecord.record(games)
    before, after, moves = [], [], []
    while not games.over[0]:
        before.append(games.states.copy())
        moves.append(int(games.sample_actions()[0]))
        games.step(np.array(moves[-1:]))
        after.append(games.states.copy())
    positions = GameBatch(len(before), 3, seed=0)
    for name, rows in (("after", after), ("rows", before)):
        positions.states[:] = np.concatenate(rows)
        (tmp_path / f"{name}.bin").write_bytes(positions.states.tobytes())
    found = ask("analysis", moves)
    judge: Any = make_agent("alphazero")
    judge.network = EntityNetwork.load(COMPILED / "alphazero.safetensors")
    record.annotate(judge)
    told = [event for event in record.events if "loss" in event]
    draws = positions.draws(np.array(moves))
    assert [one["draws"] for one in found] == draws.tolist()
    assert 10 < draws.sum() < len(draws) - 10
    losses = np.array([[one["loss"], event["loss"]] for one, event in zip(found, told, strict=True)])
    lucks = np.array([[one["luck"], event["luck"]] for one, event in zip(found, told, strict=True)])
    preferred = np.array([one["preferredDraws"] for one in found])
    sure = ~draws & ~preferred
    assert np.abs(losses[sure, 0] - losses[sure, 1]).max() < 1e-3 < losses[sure].max()
    assert not lucks[~draws].any()
    assert np.abs(lucks.sum(axis=2)).max() < 1e-3
    assert np.corrcoef(lucks[draws, 0].ravel(), lucks[draws, 1].ravel())[0, 1] > 0.9
    assert np.abs(losses[:, 0] - losses[:, 1]).max() < 0.2


def test_records_are_read_in_python(ask: Ask, tmp_path: Path) -> None:
    for players, seed in ((2, 1), (3, 2), (4, 2**40 + 3)):
        ask("record", {"players": players, "seed": seed, "agent": "greedy"})
        record = GameRecord.load(tmp_path / "record.json")
        games = GameBatch(1, players, seed=[seed])
        own = GameRecord.record(games)
        greedy = make_agent("greedy")
        while not games.over.all():
            games.step(greedy.act(PublicView(games), np.arange(1)))
        assert (record.events, record.setup, record.result) == (own.events, own.setup, own.result)


def test_the_page_shows_what_the_server_shows(ask: Ask) -> None:
    """Board, words, places, reasons and log, at every decision."""
    work = [
        {"players": ["human", "greedy"], "seed": 11},
        {"players": ["human", "random", "greedy"], "seed": 12},
        {"players": ["human", "human", "greedy", "greedy"], "seed": 13},
    ]
    for game, found in zip(work, ask("views", work), strict=True):
        players: Any = game["players"]
        session = Session(players, [None if name == "human" else _nobody for name in players], game["seed"], Ruleset())
        session.holders = ["somebody" if name == "human" else None for name in players]
        you = [seat for seat, name in enumerate(players) if name == "human"]
        for step, view in enumerate(found):
            expected = json.loads(json.dumps(session.view(you)))
            for name in expected.keys() - {"type", "places", "can_undo"}:
                assert view[name] == expected[name], (game, step, name)
            for part, place in expected["places"].items():
                assert view["places"][part] == pytest.approx(place)
            legal = session.games.action_mask()[0].nonzero()[0]
            if legal.size:
                session.step(int(legal[(7 * step + game["seed"]) % legal.size]))
        assert session.turn == -1


def _nobody() -> Any:
    raise AssertionError("no agent is asked")


def test_bad_input_throws_an_error_with_a_name_and_changes_nothing(ask: Ask) -> None:
    found = ask("mistakes")
    names = {mistake: name for mistake, (name, _, _) in found.items()}
    assert names == {
        **dict.fromkeys(["no players", "half a seed", "negative seed", "two names", "far seat"], "InvalidArgument"),
        **dict.fromkeys(
            ["unknown setting", "unknown variant", "rising market", "small deck"],
            "UnplayableRuleset",
        ),
        "illegal action": "IllegalAction",
        **dict.fromkeys(["unknown action", "half an action", "code too high", "no action"], "InvalidArgument"),
        **dict.fromkeys(
            ["unknown agent", "agent with too much", "half a simulation", "short row"],
            "InvalidArgument",
        ),
        "no network": "InvalidModel",
    }
    assert all(unchanged for _, _, unchanged in found.values())
    assert "allowed are" in found["illegal action"][1]
    assert "2 to 4" in found["no players"][1]


def test_garbage_is_refused_by_name_and_changes_nothing(ask: Ask) -> None:
    found = ask("garbage")
    assert found["wrong"] == []
    assert found["refused"] > 50 * found["tried"]


INTERNAL = {
    "Engine": {
        *("wasm", "description", "codes", "row", "counts", "mask", "zero", "word", "found", "block", "state", "memory"),
        *("keep", "withRow", "arrange", "call", "bind", "writeWord", "readWord"),
    },
    "Game": {"setup", "moments"},
    "Network": {"run", "seen", "logits", "utilities", "wins"},
    "Agent": {"engine", "simulations", "choose", "think"},
}
"""What the module needs itself, and does not declare."""


def test_the_declared_types_are_those_of_the_module(ask: Ask) -> None:
    declared = (SCRIPTS / "montecristo.d.ts").read_text()
    found = ask("members")
    for name in found["exports"]:
        assert f"export class {name} " in declared or f"export function {name}(" in declared, name
    for name, members in found["members"].items():
        assert members_of(declared, name) == set(members) - INTERNAL[name], name
    assert members_of(declared, "PublicState") == set(found["state"])
    assert members_of(declared, "Ruleset") == set(found["ruleset"])


def members_of(declared: str, name: str) -> set[str]:
    """The members of a class or an interface in a declaration."""
    match = re.search(rf"^export (?:class|interface) {name} {{\n(.*?)^}}", declared, re.MULTILINE | re.DOTALL)
    assert match is not None, name
    found = re.findall(r"^  (?:readonly )?(\w+)\??[:(]", match[1], re.MULTILINE)
    return set(found) - {"constructor"}


def test_the_module_was_built_from_these_sources() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from montecristo_agents import wasm; "
            "sys.exit(not wasm.is_current(pathlib.Path(sys.argv[1])))",
            COMPILED,
        ],
        check=False,
    )
    assert done.returncode == 0, f"{COMPILED} is older than the sources: make wasm"
