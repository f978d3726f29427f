"""The network player: the same choices in any batch, files that are refused when damaged, play by the network."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray
from safetensors.numpy import save_file

from helpers import CODE, DIAMOND, EMERALD, GOLD, RUBY, SAPPHIRE, D, F, Table
from montecristo_agents import entity, models, policy
from montecristo_agents.entity import EntityNetwork, Sizes, shapes
from montecristo_agents.models import FORMAT, InvalidModel, checksum, layout_hash
from montecristo_agents.policy import PolicyAgent
from montecristo_env import GameBatch, GameRecord, InvalidArgument, Lane, PublicView, actions, make_agent, observation
from montecristo_env.agent import Evaluator
from shell_helpers import run_python

SIZES = Sizes(8, 12, 16)
Tensors = dict[str, NDArray[Any]]


def random_tensors(seed: int = 0) -> Tensors:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(0, shape[-1] ** -0.5, shape).astype(np.float32) for name, shape in shapes(SIZES).items()}


def no_tensors() -> Tensors:
    """None but zeros: all actions are alike, and every position has the value 0."""
    return {name: np.zeros(shape, np.float32) for name, shape in shapes(SIZES).items()}


def positions(games: int = 100, decisions: int = 40) -> GameBatch:
    """Games in the middle, with 2, 3 and 4 players."""
    batch = GameBatch(games, np.arange(games) % 3 + 2, seed=1)
    batch.play_random(decisions)
    return batch


# --- What the network gives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 64, 129])
def test_a_row_gives_the_same_choice_and_logits_but_for_rounding_whatever_else_is_in_the_batch(rows: int) -> None:
    """Not the same bits: a library multiplies matrices, and in which order it adds depends on their size.

    Sums of large terms may come out near 0, so what is rounded is compared with the largest logit or value.
    """
    network = EntityNetwork(SIZES, random_tensors())
    seen = positions(games=300).observe()
    logits, values = network.evaluate(seen)
    some = np.random.default_rng(rows).permutation(len(seen))[:rows]
    logits_of_some, values_of_some = network.evaluate(seen[some])
    np.testing.assert_allclose(logits_of_some, logits[some], rtol=0, atol=1e-5 * np.abs(logits).max())
    np.testing.assert_allclose(values_of_some, values[some], rtol=0, atol=1e-5 * np.abs(values).max())
    np.testing.assert_array_equal(logits_of_some.argmax(axis=1), logits[some].argmax(axis=1))


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    network = EntityNetwork(SIZES, random_tensors())
    seen = positions().observe()
    alone, _ = network.evaluate(seen)
    monkeypatch.setattr(entity, "ALL_CORES", 3)
    monkeypatch.setattr(entity, "ROWS_PER_THREAD", 7)
    np.testing.assert_array_equal(network.evaluate(seen)[0], alone)


def test_compiled_and_interpreted_code_give_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = EntityNetwork(SIZES, random_tensors())
    network.save(tmp_path / "net.safetensors")
    seen = positions(3).observe()
    np.save(tmp_path / "seen.npy", seen)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = run_python(
        "import numpy as np\n"
        "from montecristo_agents.entity import EntityNetwork\n"
        f"folder = {str(tmp_path)!r}\n"
        "logits, _ = EntityNetwork.load(folder + '/net.safetensors').evaluate(np.load(folder + '/seen.npy'))\n"
        "np.save(folder + '/logits.npy', logits)\n"
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "logits.npy"), network.evaluate(seen)[0])


def test_no_rows_give_no_results() -> None:
    logits, values = EntityNetwork(SIZES, random_tensors()).evaluate(np.zeros((0, observation.SIZE), np.int8))
    assert logits.shape == (0, actions.COUNT) and values.shape == (0,)


def test_reads_observations_that_are_read_only_or_strided() -> None:
    network = EntityNetwork(SIZES, random_tensors())
    seen = positions().observe()
    expected, _ = network.evaluate(seen[::2].copy())
    seen.flags.writeable = False
    np.testing.assert_array_equal(network.evaluate(seen[::2])[0], expected)


@pytest.mark.parametrize(
    "observations",
    [np.zeros((2, observation.SIZE), np.float32), np.zeros((2, 5), np.int8), np.zeros(observation.SIZE, np.int8)],
)
def test_refuses_what_is_no_observation(observations: NDArray[Any]) -> None:
    with pytest.raises(InvalidArgument, match=f"observations must be int8, \\(K, {observation.SIZE}\\)"):
        EntityNetwork(SIZES, random_tensors()).evaluate(observations)


# --- Files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a good model."""
    path = tmp_path / "net.safetensors"
    EntityNetwork(SIZES, random_tensors(), training={"seed": 7, "steps": 1000}).save(path)
    return path


def rewrite(path: Path, tensors: Tensors | None = None, **header: str) -> None:
    """Puts a model in the place of the good one, with other tensors and header but a true checksum."""
    tensors = random_tensors() if tensors is None else tensors
    entries = {"format": FORMAT, "layout": layout_hash(), "sizes": json.dumps(SIZES), "training": "{}"} | header
    save_file(tensors, path, {**entries, "checksum": checksum(entries, tensors)})


def test_a_loaded_network_is_the_saved_one(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    saved = EntityNetwork(SIZES, random_tensors(), training={"seed": 7})
    saved.save(path)
    loaded = EntityNetwork.load(path)
    assert (loaded.sizes, loaded.training) == (SIZES, {"seed": 7})
    seen = positions().observe()
    for one, other in zip(loaded.evaluate(seen), saved.evaluate(seen), strict=True):
        np.testing.assert_array_equal(one, other)


def test_half_precision_halves_the_file_and_hardly_changes_the_results(path: Path) -> None:
    network = EntityNetwork(SIZES, random_tensors())
    network.save(path.with_name("half.safetensors"), np.float16)
    half = EntityNetwork.load(path.with_name("half.safetensors"))
    assert path.with_name("half.safetensors").stat().st_size < 0.6 * path.stat().st_size
    seen = positions().observe()
    np.testing.assert_allclose(half.evaluate(seen)[0], network.evaluate(seen)[0], atol=0.02)


def test_weights_that_do_not_fit_into_half_precision_are_refused(tmp_path: Path) -> None:
    tensors = random_tensors()
    tensors["policy.weight"][3, 4] = 1e6
    with pytest.raises(InvalidModel, match=r"policy\.weight has weights that are not finite float16"):
        EntityNetwork(SIZES, tensors).save(tmp_path / "net.safetensors", np.float16)
    assert list(tmp_path.iterdir()) == []


def test_a_network_survives_pickling(path: Path) -> None:
    network = EntityNetwork.load(path)
    seen = positions().observe()
    copy = pickle.loads(pickle.dumps(network))
    np.testing.assert_array_equal(copy.evaluate(seen)[0], network.evaluate(seen)[0])


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"nowhere\.safetensors: there is no such file; give the path"):
        EntityNetwork.load(tmp_path / "nowhere.safetensors")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="cannot be read"):
        EntityNetwork.load(tmp_path)


def test_a_file_of_another_sort_is_refused(path: Path) -> None:
    path.write_text("a game record, perhaps, but certainly no network\n" * 20)
    with pytest.raises(InvalidModel, match=r"net\.safetensors: cannot be read .*: get it anew, or train it again"):
        EntityNetwork.load(path)


def test_a_safetensors_file_of_another_project_is_refused(path: Path) -> None:
    save_file(random_tensors(), path)
    with pytest.raises(InvalidModel, match="is no model for this game: its header lacks format, layout"):
        EntityNetwork.load(path)


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.999])
def test_a_truncated_file_is_refused(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InvalidModel, match=r"cannot be read .*: get it anew, or train it again"):
        EntityNetwork.load(path)


@pytest.mark.parametrize("flip", [0x01, 0xFF])
def test_a_flipped_byte_anywhere_is_refused(path: Path, flip: int) -> None:
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    weights = np.random.default_rng(flip).integers(header, len(content), 100).tolist()
    for place in [*range(header), *weights]:
        path.write_bytes(content[:place] + bytes([content[place] ^ flip]) + content[place + 1 :])
        with pytest.raises(InvalidModel, match=r"net\.safetensors"):
            EntityNetwork.load(path)


def test_another_layout_is_refused_and_both_are_named(path: Path) -> None:
    rewrite(path, layout="0123456789abcdef")
    with pytest.raises(InvalidModel, match=f"0123456789abcdef.*{layout_hash()}.*train it again, or install"):
        EntityNetwork.load(path)


def test_the_layout_hash_knows_fields_and_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    before = layout_hash()
    field = observation.FIELDS["pile_size"]
    with monkeypatch.context() as patch:
        patch.setitem(observation.FIELDS, "pile_size", field._replace(highest=field.highest + 1))
        assert layout_hash() != before
    with monkeypatch.context() as patch:
        patch.setitem(observation.FIELDS, "pile_size", field._replace(scale=2 * field.scale))
        assert layout_hash() != before
    with monkeypatch.context() as patch:
        patch.setitem(actions.BLOCKS, "deal", range(0, 14))
        assert layout_hash() != before
    assert layout_hash() == before


def test_another_format_is_refused(path: Path) -> None:
    rewrite(path, format="99")
    with pytest.raises(InvalidModel, match="has format 99, but this version of montecristo-env reads format 2"):
        EntityNetwork.load(path)


def test_a_perceptron_in_the_first_format_is_refused_by_its_format(path: Path) -> None:
    layers = {"trunk.0": (4, observation.SIZE), "policy": (actions.COUNT, 4), "value": (1, 4)}
    tensors = {f"{name}.weight": np.zeros(shape, np.float32) for name, shape in layers.items()}
    tensors |= {f"{name}.bias": np.zeros(shape[0], np.float32) for name, shape in layers.items()}
    header = {"format": "1", "layout": layout_hash(), "hidden": "[4]", "activation": "relu", "residual": "false"}
    header |= {"advised": "false", "training": "{}"}
    save_file(tensors, path, {**header, "checksum": checksum(header, tensors)})
    with pytest.raises(InvalidModel, match="has format 1, but this version of montecristo-env reads format 2"):
        make_agent(f"policy:{path}")


@pytest.mark.parametrize(
    ("entry", "text", "complaint"),
    [
        ("sizes", "many", "must give sizes as a JSON list, but says 'many'"),
        ("sizes", "[]", "sizes must be those of pair, entity, hidden"),
        ("sizes", "[8, 12]", "sizes must be those of pair, entity, hidden"),
        ("sizes", "[8, 12, 16.5]", "sizes must be those of pair, entity, hidden"),
        ("sizes", "[8, 12, 0]", "sizes must be those of pair, entity, hidden"),
        ("sizes", "[8, 12, 17]", "must have the shape"),
        ("training", "[]", "must give training as a JSON dict"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(path: Path, entry: str, text: str, complaint: str) -> None:
    rewrite(path, **{entry: text})
    with pytest.raises(InvalidModel) as refused:
        EntityNetwork.load(path)
    assert complaint in str(refused.value)


def test_wrong_tensors_are_refused_by_name(path: Path) -> None:
    good = random_tensors()
    bad = {
        "lacks the weights trunk.1.bias": {name: t for name, t in good.items() if name != "trunk.1.bias"},
        "do not belong to it: trunk.2.bias": good | {"trunk.2.bias": good["trunk.1.bias"]},
        "value.weight must have the shape (4, 16), but has (2, 16)": good
        | {"value.weight": np.zeros((2, 16), np.float32)},
        "trunk.0.weight must have the shape": good | {"trunk.0.weight": good["trunk.0.weight"].T.copy()},
        "float16 or float32, but there are value.bias (F64)": good | {"value.bias": np.zeros(4)},
    }
    for complaint, tensors in bad.items():
        rewrite(path, tensors)
        with pytest.raises(InvalidModel) as refused:
            EntityNetwork.load(path)
        assert complaint in str(refused.value)


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused(path: Path, weight: float) -> None:
    tensors = random_tensors()
    tensors["trunk.1.weight"][2, 3] = weight
    rewrite(path, tensors)
    with pytest.raises(InvalidModel, match=r"trunk\.1\.weight has weights that are not finite"):
        EntityNetwork.load(path)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_file_and_no_other(
    path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    before = path.read_bytes()
    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="the disk is full"):
        EntityNetwork(SIZES, random_tensors(seed=1)).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_save_replaces_an_older_file(path: Path) -> None:
    other = EntityNetwork(SIZES, random_tensors(seed=1))
    other.save(path)
    seen = positions().observe()
    np.testing.assert_array_equal(EntityNetwork.load(path).evaluate(seen)[0], other.evaluate(seen)[0])


# --- Play ------------------------------------------------------------------------------------------------------------


def network_that_likes(move: str, logit: float) -> EntityNetwork:
    """A network that gives every position the value 0 and every action but one the logit 0."""
    tensors = no_tensors()
    tensors["policy.bias"][CODE[move]] = logit
    return EntityNetwork(SIZES, tensors)


def play(agent: PolicyAgent, games: GameBatch, decisions: int) -> None:
    for _ in range(decisions):
        rows = np.flatnonzero(~games.over)
        if rows.size:
            games.step(agent.act(PublicView(games), rows), rows)


def last_chance() -> Table:
    """Red, 38 points, can take a treasure worth 9 in the last dungeon: they win at once, if they take it."""
    table = Table(2)
    table.lanes([1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0])
    table.market(RUBY, GOLD, SAPPHIRE, EMERALD, DIAMOND)
    table.put(F, (RUBY, 3), (GOLD, 1), (GOLD, 1))
    table.enter(F, 0)
    table.give(0, (RUBY, 3))
    table.row["score"][:2] = 38, 39
    table.draw_tokens_next((SAPPHIRE, 1), (SAPPHIRE, 1), (SAPPHIRE, 2))
    table.begin(Lane.CHEST)
    table.play("put F", "put A", "put B")
    assert table.legal == ["stop taking", "take R3"]
    return table


def test_plays_the_best_legal_action() -> None:
    games = positions()
    network = EntityNetwork(SIZES, random_tensors())
    rows = np.arange(1, len(games), 3)
    acts = PolicyAgent(network).act(PublicView(games), rows)
    logits, _ = network.evaluate(games.observe(rows=rows))
    for row, act, of_row in zip(rows, acts, logits, strict=True):
        legal = [actions.encode(action) for action in games.legal_actions(int(row))]
        assert act in legal and of_row[act] == of_row[legal].max()


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_draws_from_the_softmax_at_its_temperature(temperature: float) -> None:
    draws = 20_000
    games = positions(8)
    rearranging = int(np.argmax(games.action_mask().sum(axis=1)))
    games = games[np.full(draws, rearranging)]
    games.states["play_key"] = np.random.default_rng(0).integers(2**63, size=draws, dtype=np.uint64)
    network = EntityNetwork(SIZES, random_tensors())
    drawn = PolicyAgent(network, temperature).act(PublicView(games), np.arange(draws))

    legal = np.flatnonzero(games.action_mask(rows=0)[0])
    assert legal.size > 4
    weights = np.exp(network.evaluate(games.observe(rows=0))[0][0, legal].astype(np.float64) / temperature)
    counts = np.bincount(drawn, minlength=actions.COUNT)[legal]
    assert counts.sum() == draws
    assert scipy.stats.chisquare(counts, draws * weights / weights.sum()).pvalue > 1e-3


@pytest.mark.parametrize("temperature", [0.0, 0.5, 2.0])
def test_says_how_likely_it_is_to_choose_each_legal_action_and_what_it_expects(temperature: float) -> None:
    games, rows = positions(), np.arange(3, 90, 7)
    agent = PolicyAgent(EntityNetwork(SIZES, random_tensors()), temperature=temperature)
    likely, values = agent.evaluate(PublicView(games), rows)
    masks = games.action_mask(rows=rows)
    logits, expected = agent.network.evaluate(games.observe(rows=rows))
    weights = np.where(masks, np.exp(logits.astype(np.float64) / (temperature or 1)), 0)
    np.testing.assert_allclose(likely, weights / weights.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_array_equal(values, expected)
    assert isinstance(agent, Evaluator)


def test_annotates_a_record(path: Path) -> None:
    games = GameBatch(1, 3, seed=0)
    record = GameRecord.record(games)
    games.play_random(25)
    record.annotate(f"policy:{path}")
    told = [event for event in record.events if "probabilities" in event]
    assert len(told) == 25
    assert all(np.isfinite(event["value"]) and len(event["probabilities"]) > 1 for event in told)
    record.check()


def test_looking_ahead_finds_the_winning_move() -> None:
    games = last_chance().games
    cautious = network_that_likes("stop taking", 5.0)
    rows = np.arange(1)
    assert PolicyAgent(cautious).act(PublicView(games), rows)[0] == CODE["stop taking"]
    assert PolicyAgent(cautious, lookahead=2).act(PublicView(games), rows)[0] == CODE["take R3"]


def test_looking_ahead_what_the_next_player_fears_is_good_for_the_others() -> None:
    table = Table(3)
    table.lanes([1, 2, 0], [0, 1, 2], [0, 1, 2], [1, 0, 2])
    table.adventurers(0, 1)
    table.begin(Lane.ADVENTURERS)  # red has one adventurer, so after placing it others are asked
    third = observation.FIELDS["adventurers"].columns.start + 2  # as the next player counts, red sits third
    tensors = no_tensors()
    tensors["dungeon.weight"][0, third] = 1.0  # of every dungeon; D is the one that the trunk looks at
    tensors["trunk.0.weight"][0, D * SIZES.entity] = tensors["trunk.1.weight"][0, 0] = 1.0
    tensors["win.weight"][0, 0] = -1.0  # the more adventurers red has in D, the worse for the next player
    agent = PolicyAgent(EntityNetwork(SIZES, tensors), lookahead=1)
    assert agent.act(PublicView(table.games), np.arange(1))[0] == CODE["enter D"]


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0}, {"lookahead": 2}, {"temperature": 0.1, "lookahead": 1}])
def test_same_seeds_give_same_play_whatever_else_is_in_the_batch(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "ROWS_AT_ONCE", 8)
    agent = PolicyAgent(EntityNetwork(SIZES, random_tensors()), **settings)
    games = positions(20)
    some = np.array([3, 4, 11, 17])
    few = games[some]
    play(agent, games, 60)
    play(agent, few, 60)
    assert few.states.tobytes() == games.states[some].tobytes()


@pytest.mark.parametrize("lookahead", [0, 2])
def test_what_is_hidden_does_not_change_play(lookahead: int) -> None:
    games = positions()
    other = games.resample_hidden(np.random.default_rng(5))
    other.states["play_key"] = games.states["play_key"]
    agent = PolicyAgent(EntityNetwork(SIZES, random_tensors()), lookahead=lookahead)
    rows = np.arange(len(games))
    np.testing.assert_array_equal(agent.act(PublicView(games), rows), agent.act(PublicView(other), rows))


def test_plays_whole_games_of_all_sizes() -> None:
    games = positions(30, decisions=0)
    play(PolicyAgent(EntityNetwork(SIZES, random_tensors()), temperature=1.0), games, 3000)
    assert games.over.all()


# --- By name ---------------------------------------------------------------------------------------------------------


def test_is_made_by_name_with_settings(path: Path) -> None:
    agent = make_agent(f"policy:{path}:temperature=0.5:lookahead=3")
    assert isinstance(agent, PolicyAgent)
    assert (agent.temperature, agent.lookahead, agent.path) == (0.5, 3, path)
    assert agent.name == "policy:net:temperature=0.5:lookahead=3"
    assert make_agent(f"policy:{path}").name == "policy:net"
    assert PolicyAgent(path).path == path


def test_a_path_may_have_colons_of_its_own(path: Path) -> None:
    odd = path.parent / "drive:letter=c" / "net:1.safetensors"
    odd.parent.mkdir()
    path.rename(odd)
    assert PolicyAgent(str(odd)).path == odd
    agent = PolicyAgent(f"{odd}:temperature=2")
    assert (agent.path, agent.temperature) == (odd, 2.0)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (":temperature=hot", "temperature must be a number from 0, but is 'hot'"),
        (":temperature=nan", "temperature must be a number from 0, but is 'nan'"),
        (":temperature=-1", "temperature must be a number from 0, but is '-1'"),
        (":lookahead=1.5", "lookahead must be a whole number from 0, but is '1.5'"),
        (":speed=3", "'speed=3' is no setting of a network player: these are temperature=NUMBER and lookahead=NUMBER"),
    ],
)
def test_settings_that_make_no_sense_are_refused(path: Path, settings: str, complaint: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        make_agent(f"policy:{path}{settings}")
    assert complaint in str(refused.value)


@pytest.mark.parametrize("name", ["policy", "policy:"])
def test_a_path_is_asked_for(name: str) -> None:
    with pytest.raises(InvalidArgument, match="policy:PATH"):
        make_agent(name)


def test_the_packaged_network_plays_if_there_is_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "files", lambda _: path.parent)
    with pytest.raises(InvalidModel, match="brings no network ppo along: train one and play it as policy:PATH"):
        policy.ppo()
    (path.parent / "models").mkdir()
    path.rename(path.parent / "models" / "ppo.safetensors")
    assert policy.ppo().name == "ppo"
    agent = policy.ppo("lookahead=2:temperature=1")
    assert (agent.name, agent.temperature, agent.lookahead) == ("ppo:temperature=1:lookahead=2", 1.0, 2)
    with pytest.raises(InvalidArgument, match="'fast' is no setting of a network player"):
        policy.ppo("fast")


def test_plays_without_torch(path: Path) -> None:
    done = run_python(
        "import sys\n"
        "import numpy as np\n"
        "from montecristo_env import GameBatch, PublicView, make_agent\n"
        f"agent = make_agent('policy:{path}:temperature=1:lookahead=1')\n"
        "games = GameBatch(4, 3, seed=0)\n"
        "games.step(agent.act(PublicView(games), np.arange(4)))\n"
        "assert 'torch' not in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr
