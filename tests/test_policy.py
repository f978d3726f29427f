"""The network player: the same numbers as torch gives, files that are refused when damaged, play by the network."""

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
from montecristo_agents import policy
from montecristo_agents.policy import InvalidModel, Network, PolicyAgent, checksum, layout_hash
from montecristo_env import GameBatch, GameRecord, InvalidArgument, Lane, PublicView, actions, make_agent, observation
from montecristo_env.agent import Evaluator
from shell_helpers import run_python

HIDDEN = (24, 16, 16)
Tensors = dict[str, NDArray[Any]]


def random_tensors(hidden: tuple[int, ...] = HIDDEN, seed: int = 0) -> Tensors:
    rng = np.random.default_rng(seed)
    sizes = [observation.SIZE, *hidden]
    layers = {f"trunk.{i}": (sizes[i], sizes[i + 1]) for i in range(len(hidden))}
    layers |= {"policy": (hidden[-1], actions.COUNT), "value": (hidden[-1], 1)}
    tensors: Tensors = {}
    for name, (inputs, outputs) in layers.items():
        tensors[f"{name}.weight"] = rng.normal(0, np.sqrt(2 / inputs), (outputs, inputs)).astype(np.float32)
        tensors[f"{name}.bias"] = rng.normal(0, 0.1, outputs).astype(np.float32)
    return tensors


def positions(games: int = 100, decisions: int = 40) -> GameBatch:
    """Games in the middle, with 2, 3 and 4 players."""
    batch = GameBatch(games, np.arange(games) % 3 + 2, seed=1)
    batch.play_random(decisions)
    return batch


# --- What the network gives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_evaluates_as_torch_does(activation: str, residual: bool) -> None:
    torch = pytest.importorskip("torch")
    tensors = random_tensors()
    seen = positions().observe()
    logits, values = Network(HIDDEN, tensors, activation, residual).evaluate(seen)

    weights = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    h = torch.from_numpy(seen * observation.SCALE)
    for i in range(len(HIDDEN)):
        before = torch.nn.functional.linear(h, weights[f"trunk.{i}.weight"], weights[f"trunk.{i}.bias"])
        after = getattr(torch, activation)(before)
        h = h + after if residual and i > 0 and HIDDEN[i] == HIDDEN[i - 1] else after
    expected = torch.nn.functional.linear(h, weights["policy.weight"], weights["policy.bias"]).numpy()
    expected_values = torch.nn.functional.linear(h, weights["value.weight"], weights["value.bias"]).numpy()[:, 0]
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    np.testing.assert_allclose(values, expected_values, atol=1e-4)
    assert (logits.argmax(axis=1) == expected.argmax(axis=1)).all()


def test_takes_the_weights_of_a_torch_sequential_as_they_are(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(observation.SIZE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    heads = {"policy": nn.Linear(64, actions.COUNT), "value": nn.Linear(64, 1)}
    layers = {"trunk.0": trunk[0], "trunk.1": trunk[2], **heads}
    tensors = {
        f"{name}.{part}": getattr(layer, part).detach().numpy()
        for name, layer in layers.items()
        for part in ("weight", "bias")
    }
    Network((64, 64), tensors).save(tmp_path / "net.safetensors")
    seen = positions().observe()
    logits, values = Network.load(tmp_path / "net.safetensors").evaluate(seen)
    with torch.no_grad():
        h = trunk(torch.from_numpy(seen * observation.SCALE))
        np.testing.assert_allclose(logits, heads["policy"](h), atol=1e-4)
        np.testing.assert_allclose(values, heads["value"](h)[:, 0], atol=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 64, 129])
def test_a_row_gives_the_same_bits_whatever_else_is_in_the_batch(rows: int) -> None:
    network = Network(HIDDEN, random_tensors())
    seen = positions(games=300).observe()
    logits, values = network.evaluate(seen)
    some = np.random.default_rng(rows).permutation(len(seen))[:rows]
    logits_of_some, values_of_some = network.evaluate(seen[some])
    np.testing.assert_array_equal(logits_of_some, logits[some])
    np.testing.assert_array_equal(values_of_some, values[some])


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(HIDDEN, random_tensors())
    seen = positions().observe()
    alone, _ = network.evaluate(seen)
    monkeypatch.setattr(policy, "ALL_CORES", 3)
    monkeypatch.setattr(policy, "WEIGHTS_PER_THREAD", 7 * network._weights.size)
    np.testing.assert_array_equal(network.evaluate(seen)[0], alone)


def test_compiled_and_interpreted_code_give_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(HIDDEN, random_tensors())
    network.save(tmp_path / "net.safetensors")
    seen = positions(3).observe()
    np.save(tmp_path / "seen.npy", seen)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = run_python(
        "import numpy as np\n"
        "from montecristo_agents.policy import Network\n"
        f"folder = {str(tmp_path)!r}\n"
        "logits, _ = Network.load(folder + '/net.safetensors').evaluate(np.load(folder + '/seen.npy'))\n"
        "np.save(folder + '/logits.npy', logits)\n"
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "logits.npy"), network.evaluate(seen)[0])


def test_no_rows_give_no_results() -> None:
    logits, values = Network(HIDDEN, random_tensors()).evaluate(np.zeros((0, observation.SIZE), np.int8))
    assert logits.shape == (0, actions.COUNT) and values.shape == (0,)


def test_reads_observations_that_are_read_only_or_strided() -> None:
    network = Network(HIDDEN, random_tensors())
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
        Network(HIDDEN, random_tensors()).evaluate(observations)


# --- Files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a good model."""
    path = tmp_path / "net.safetensors"
    Network(HIDDEN, random_tensors(), training={"seed": 7, "steps": 1000}).save(path)
    return path


def rewrite(path: Path, tensors: Tensors | None = None, **header: str) -> None:
    """Puts a model in the place of the good one, with other tensors and header but a true checksum."""
    tensors = random_tensors() if tensors is None else tensors
    entries = {
        "format": policy.FORMAT,
        "layout": layout_hash(),
        "hidden": json.dumps(HIDDEN),
        "activation": "relu",
        "residual": "false",
        "advised": "false",
        "training": "{}",
    } | header
    save_file(tensors, path, {**entries, "checksum": checksum(entries, tensors)})


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_loaded_network_is_the_saved_one(tmp_path: Path, activation: str) -> None:
    path = tmp_path / "net.safetensors"
    saved = Network(HIDDEN, random_tensors(), activation, residual=True, training={"seed": 7})
    saved.save(path)
    loaded = Network.load(path)
    assert (loaded.hidden, loaded.activation, loaded.residual) == (HIDDEN, activation, True)
    assert loaded.training == {"seed": 7}
    seen = positions().observe()
    for one, other in zip(loaded.evaluate(seen), saved.evaluate(seen), strict=True):
        np.testing.assert_array_equal(one, other)


def test_half_precision_halves_the_file_and_hardly_changes_the_results(path: Path) -> None:
    network = Network(HIDDEN, random_tensors())
    network.save(path.with_name("half.safetensors"), np.float16)
    half = Network.load(path.with_name("half.safetensors"))
    assert path.with_name("half.safetensors").stat().st_size < 0.6 * path.stat().st_size
    seen = positions().observe()
    np.testing.assert_allclose(half.evaluate(seen)[0], network.evaluate(seen)[0], atol=0.02)


def test_weights_that_do_not_fit_into_half_precision_are_refused(tmp_path: Path) -> None:
    tensors = random_tensors()
    tensors["policy.weight"][3, 4] = 1e6
    with pytest.raises(InvalidModel, match=r"policy\.weight has weights that are not finite float16"):
        Network(HIDDEN, tensors).save(tmp_path / "net.safetensors", np.float16)
    assert list(tmp_path.iterdir()) == []


def test_a_network_survives_pickling(path: Path) -> None:
    network = Network.load(path)
    seen = positions().observe()
    copy = pickle.loads(pickle.dumps(network))
    np.testing.assert_array_equal(copy.evaluate(seen)[0], network.evaluate(seen)[0])


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"nowhere\.safetensors: there is no such file; give the path"):
        Network.load(tmp_path / "nowhere.safetensors")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="cannot be read"):
        Network.load(tmp_path)


def test_a_file_of_another_sort_is_refused(path: Path) -> None:
    path.write_text("a game record, perhaps, but certainly no network\n" * 20)
    with pytest.raises(InvalidModel, match=r"net\.safetensors: cannot be read .*: get it anew, or train it again"):
        Network.load(path)


def test_a_safetensors_file_of_another_project_is_refused(path: Path) -> None:
    save_file(random_tensors(), path)
    with pytest.raises(InvalidModel, match="is no model for this game: its header lacks format, layout"):
        Network.load(path)


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.999])
def test_a_truncated_file_is_refused(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InvalidModel, match=r"cannot be read .*: get it anew, or train it again"):
        Network.load(path)


@pytest.mark.parametrize("flip", [0x01, 0xFF])
def test_a_flipped_byte_anywhere_is_refused(path: Path, flip: int) -> None:
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    weights = np.random.default_rng(flip).integers(header, len(content), 100).tolist()
    for place in [*range(header), *weights]:
        path.write_bytes(content[:place] + bytes([content[place] ^ flip]) + content[place + 1 :])
        with pytest.raises(InvalidModel, match=r"net\.safetensors"):
            Network.load(path)


def test_another_layout_is_refused_and_both_are_named(path: Path) -> None:
    rewrite(path, layout="0123456789abcdef")
    with pytest.raises(InvalidModel, match=f"0123456789abcdef.*{layout_hash()}.*train it again, or install"):
        Network.load(path)


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


def test_the_layout_hash_of_advised_networks_knows_the_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, advised = layout_hash(), layout_hash(advised=True)
    assert plain != advised
    monkeypatch.setattr("montecristo_agents.advice.LAYOUT", "another")
    assert layout_hash() == plain
    assert layout_hash(advised=True) != advised


def test_another_format_is_refused(path: Path) -> None:
    rewrite(path, format="2")
    with pytest.raises(InvalidModel, match="has format 2, but this version of montecristo-env reads format 1"):
        Network.load(path)


@pytest.mark.parametrize(
    ("entry", "text", "complaint"),
    [
        ("hidden", "many", "must give hidden as a JSON list, but says 'many'"),
        ("hidden", "[]", "hidden must be the sizes of one or more layers"),
        ("hidden", "[24.5]", "hidden must be the sizes of one or more layers"),
        ("activation", "gelu", "the activation must be relu or tanh, but is 'gelu'"),
        ("residual", "perhaps", "must give residual as a JSON bool"),
        ("training", "[]", "must give training as a JSON dict"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(path: Path, entry: str, text: str, complaint: str) -> None:
    rewrite(path, **{entry: text})
    with pytest.raises(InvalidModel) as refused:
        Network.load(path)
    assert complaint in str(refused.value)


def test_wrong_tensors_are_refused_by_name(path: Path) -> None:
    good = random_tensors()
    bad = {
        "lacks the weights trunk.1.bias": {name: t for name, t in good.items() if name != "trunk.1.bias"},
        "do not belong to it: trunk.3.bias": good | {"trunk.3.bias": good["trunk.2.bias"]},
        "value.weight must have the shape (1, 16), but has (2, 16)": good
        | {"value.weight": np.zeros((2, 16), np.float32)},
        "trunk.0.weight must have the shape": good | {"trunk.0.weight": good["trunk.0.weight"].T.copy()},
        "float16 or float32, but there are value.bias (F64)": good | {"value.bias": np.zeros(1)},
    }
    for complaint, tensors in bad.items():
        rewrite(path, tensors)
        with pytest.raises(InvalidModel) as refused:
            Network.load(path)
        assert complaint in str(refused.value)


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused(path: Path, weight: float) -> None:
    tensors = random_tensors()
    tensors["trunk.1.weight"][2, 3] = weight
    rewrite(path, tensors)
    with pytest.raises(InvalidModel, match=r"trunk\.1\.weight has weights that are not finite"):
        Network.load(path)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_file_and_no_other(
    path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    before = path.read_bytes()
    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="the disk is full"):
        Network(HIDDEN, random_tensors(seed=1)).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_save_replaces_an_older_file(path: Path) -> None:
    other = Network(HIDDEN, random_tensors(seed=1))
    other.save(path)
    seen = positions().observe()
    np.testing.assert_array_equal(Network.load(path).evaluate(seen)[0], other.evaluate(seen)[0])


# --- Play ------------------------------------------------------------------------------------------------------------


def network_that_likes(move: str, logit: float) -> Network:
    """A network that gives every position the value 0 and every action but one the logit 0."""
    tensors = {name: np.zeros_like(tensor) for name, tensor in random_tensors().items()}
    tensors["policy.bias"][CODE[move]] = logit
    return Network(HIDDEN, tensors)


def play(agent: PolicyAgent, games: GameBatch, decisions: int) -> None:
    for _ in range(decisions):
        rows = np.flatnonzero(~games.over)
        if rows.size:
            games.step(agent.act(PublicView(games), rows), rows)


def last_chance() -> Table:
    """Red, 38 points, can take a treasure worth 9 in the last dungeon: he wins at once, if he takes it."""
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
    network = Network(HIDDEN, random_tensors())
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
    network = Network(HIDDEN, random_tensors())
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
    agent = PolicyAgent(Network(HIDDEN, random_tensors()), temperature=temperature)
    likely, values = agent.evaluate(PublicView(games), rows)
    masks = games.action_mask(rows=rows)
    logits, expected = agent.network.evaluate(games.observe(rows=rows))
    weights = np.where(masks, np.exp(logits.astype(np.float64) / (temperature or 1)), 0)
    np.testing.assert_allclose(likely, weights / weights.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_array_equal(values, expected)
    assert isinstance(agent, Evaluator)


def test_annotates_a_record(path: Path) -> None:
    games = GameBatch(1, 3, seed=0)
    record = GameRecord.follow(games)
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
    table.begin(Lane.ADVENTURERS)  # red has one adventurer, so after placing him others are asked
    tensors = {name: np.zeros_like(tensor) for name, tensor in random_tensors().items()}
    red_crew = observation.view(np.arange(observation.SIZE), "adventurers")[
        D, 2
    ]  # as the next player counts, red sits third
    for layer in range(len(HIDDEN)):
        tensors[f"trunk.{layer}.weight"][0, red_crew if layer == 0 else 0] = 1.0
    tensors["value.weight"][0, 0] = -1.0  # the more adventurers red has in D, the worse for the next player
    agent = PolicyAgent(Network(HIDDEN, tensors), lookahead=1)
    assert agent.act(PublicView(table.games), np.arange(1))[0] == CODE["enter D"]


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0}, {"lookahead": 2}, {"temperature": 0.1, "lookahead": 1}])
def test_same_seeds_give_same_play_whatever_else_is_in_the_batch(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "ROWS_AT_ONCE", 8)
    agent = PolicyAgent(Network(HIDDEN, random_tensors()), **settings)
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
    agent = PolicyAgent(Network(HIDDEN, random_tensors()), lookahead=lookahead)
    rows = np.arange(len(games))
    np.testing.assert_array_equal(agent.act(PublicView(games), rows), agent.act(PublicView(other), rows))


def test_plays_whole_games_of_all_sizes() -> None:
    games = positions(30, decisions=0)
    play(PolicyAgent(Network(HIDDEN, random_tensors()), temperature=1.0), games, 3000)
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
    monkeypatch.setattr(policy, "files", lambda _: path.parent)
    with pytest.raises(InvalidModel, match="brings no network along: train one and play it as policy:PATH"):
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
