"""Rule sets as text: what command lines take and reports show (§1.9, §1.10)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from montecristo_env import GameBatch, Ruleset, UnplayableRuleset, montecristo_v0
from montecristo_env.gym_env import MonteCristoEnv
from montecristo_env.ruleset import VARIANTS
from montecristo_env.vector import MonteCristoVectorEnv

ALL_COMBINATIONS = [dict(zip(VARIANTS, values, strict=True)) for values in itertools.product(*VARIANTS.values())]


def test_the_default_of_every_variant_is_its_first_value() -> None:
    default = Ruleset()
    assert all(getattr(default, name) == values[0] for name, values in VARIANTS.items())


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", {}),
        ("default", {}),
        ("refill=short,target=30", {"refill": "short", "target": 30}),
        ("refill=short, target=30", {"refill": "short", "target": 30}),
        ('{"market": [3, 3, 2, 2, 1]}', {"market": (3, 3, 2, 2, 1)}),
        (" game_end=chest ", {"game_end": "chest"}),
    ],
)
def test_a_text_names_a_rule_set(text: str, settings: dict[str, Any]) -> None:
    assert Ruleset.parse(text) == Ruleset(**settings)


@pytest.mark.parametrize(
    "ruleset",
    [
        *(Ruleset(**combination) for combination in ALL_COMBINATIONS),
        Ruleset(target=1, round_limit=10_000),
        Ruleset(deck=((30, 0, 0), *((0, 0, 0),) * 4), refill="short"),
    ],
    ids=str,
)
def test_parse_is_the_inverse_of_str(ruleset: Ruleset) -> None:
    assert Ruleset.parse(str(ruleset)) == ruleset


@pytest.mark.parametrize("meant", ["target=25", {"target": 25}, Ruleset(target=25)])
def test_games_take_rule_sets_settings_and_texts(meant: Any) -> None:
    assert GameBatch(1, seed=0, ruleset=meant).ruleset == Ruleset(target=25)
    assert GameBatch(1, seed=0).ruleset == Ruleset()


@pytest.mark.parametrize("make", [montecristo_v0.env, MonteCristoEnv, MonteCristoVectorEnv])
def test_environments_take_texts(make: Any) -> None:
    assert make(ruleset="target=25,refill=short").unwrapped.games.ruleset == Ruleset(target=25, refill="short")


def test_a_text_may_be_the_path_of_a_json_file(tmp_path: Path) -> None:
    ruleset = Ruleset(target=25, discard="after_deal")
    path = tmp_path / "my rules.json"
    path.write_text(json.dumps(ruleset.to_dict()), encoding="utf-8")
    assert Ruleset.parse(str(path)) == ruleset


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("refill", "a rule set is name=value"),
        ("target=1,target=2", "with each name once"),
        ("refil=short", "a mapping with some of .*refill"),
        ("refill=shor", "refill must be one of empty, short, but is 'shor'"),
        ("target=" + "9" * 400, "target must be a whole number from 1 to 10000"),
        ("target=-1", "target must be a whole number from 1 to 10000"),
        ("missing.json", "no rule set can be read from missing.json"),
        ("{", "no rule set can be read from {"),
        ('{"target":' + "[" * 100_000, "no rule set can be read"),
    ],
)
def test_other_texts_are_refused(text: str, words: str) -> None:
    with pytest.raises(UnplayableRuleset, match=words):
        Ruleset.parse(text)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("value", ["", "maybe", None, 0, True, np.zeros(3), ["empty"]])
def test_an_unknown_value_of_a_variant_is_refused(name: str, value: Any) -> None:
    with pytest.raises(UnplayableRuleset, match=f"{name} must be one of {', '.join(VARIANTS[name])}"):
        Ruleset(**{name: value})


def test_every_variant_changes_some_game() -> None:
    """With the same seeds and random streams, games differ from the default's in at least one."""
    ends = {}
    for name, values in [("default", ("", "")), *VARIANTS.items()]:
        ruleset = Ruleset() if name == "default" else Ruleset(**{name: values[-1]})  # type: ignore[arg-type]
        games = GameBatch(300, 4, seed=3, ruleset=ruleset)
        games.play_random(10_000)
        ends[name] = games.scores.tobytes() + games.states["decisions"].tobytes()
    assert len(set(ends.values())) == len(ends)
