"""Networks that treat kinds of treasure and dungeons alike."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib import MaskablePPO
from torch.nn.functional import linear

from montecristo_agents import advice
from montecristo_agents.policy import Network, shipped_model
from montecristo_env import GameBatch, InvalidArgument, actions, observation
from montecristo_env.core.constants import CARD_TYPES, DUNGEONS, KINDS, NONE, SIZES, Decision
from montecristo_train.network import export, load
from montecristo_train.ppo import make_model
from montecristo_train.selfplay import make_env
from montecristo_train.settings import FULL, SMOKE, Settings
from montecristo_train.symmetry import ByKind, SharedHead, SharedLinear, Unit, action_units, hidden_units, input_units

SYMMETRIC = dataclasses.replace(SMOKE, tables=6, hidden=(160, 170), symmetric=True, advised=False)
EXCHANGE = np.array([3, 0, 4, 2, 1])  # the kind that each becomes
BY_TYPE = ("hands", "gathered", "dungeon_tokens", "unseen_cards", "card_discard", "bag", "token_discard", "offer")


def model_of(settings: Settings) -> MaskablePPO:
    """A model with biases, too, as if it had learnt something."""
    model = make_model(settings, make_env(settings))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model


def exchange_kinds(games: GameBatch) -> GameBatch:
    """The same games, but for the kinds, which have changed places."""
    games = games.copy()
    states = games.states
    for name in BY_TYPE:
        old = states[name].reshape(*states[name].shape[:-1], KINDS, SIZES)
        new = np.empty_like(old)
        new[..., EXCHANGE, :] = old
        states[name] = new.reshape(states[name].shape)
    states["market"] = EXCHANGE[states["market"]]
    states["left_over_bags"][..., EXCHANGE] = states["left_over_bags"].copy()
    for name in ("drawn_tokens", "taking"):
        old = states[name].astype(np.int64)
        states[name] = np.where(old == NONE, NONE, EXCHANGE[old // SIZES] * SIZES + old % SIZES)
    return games


def exchange_kind(action: actions.Action) -> actions.Action:
    match action:
        case actions.Deal(card) | actions.Discard(card) | actions.Pay(card):
            new = card if card == actions.WILD else card._replace(kind=int(EXCHANGE[card.kind]))
            return type(action)(new)
        case actions.Take(token):
            return actions.Take(token._replace(kind=int(EXCHANGE[token.kind])))
        case actions.MoveMarker(kind, by):
            return actions.MoveMarker(int(EXCHANGE[kind]), by)
    return action


def test_kinds_that_change_places_change_their_logits_and_nothing_else() -> None:
    model = model_of(SYMMETRIC)
    network = export(model, {})
    games = GameBatch(600, np.resize([2, 3, 4], 600), seed=3)
    codes = [actions.encode(exchange_kind(actions.decode(code))) for code in range(actions.COUNT)]
    seen = set()
    for _ in range(12):
        games.play_random(7)
        games.reset(np.flatnonzero(games.over))
        seen |= set(games.states["decision"].tolist())
        others = exchange_kinds(games)
        assert (others.observe() != games.observe()).any(axis=1).all()
        logits, values = network.evaluate(games.observe())
        logits_then, values_then = network.evaluate(others.observe())
        np.testing.assert_allclose(logits_then[:, codes], logits, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(values_then, values, rtol=1e-3, atol=1e-4)
        assert np.ptp(logits, axis=0).min() > 1e-3  # they do depend on what is seen
    assert seen == {int(decision) for decision in Decision if decision != Decision.OVER}


def test_nothing_that_is_seen_or_chosen_is_taken_for_something_else() -> None:
    for units in (input_units(advised=True), input_units(advised=False), action_units("logit"), hidden_units(512)):
        assert len(set(units)) == len(units)
    assert len(input_units(advised=True)) == advice.SIZE
    assert len(input_units(advised=False)) == observation.SIZE
    assert len(hidden_units(512)) == 512
    for name, dungeon, kind in [("dungeon_tokens", 6, 5), ("hands", 1, 5), ("adventurers", 6, 1), ("marbles", 1, 1)]:
        places = observation.view(np.arange(observation.SIZE), name).ravel()
        part = [input_units(advised=False)[place] for place in places]
        assert len({unit.dungeon for unit in part}) == dungeon and len({unit.kind for unit in part}) == kind
    assert sum(unit.kind != NONE for unit in action_units("logit")) == 4 * CARD_TYPES + 2 * KINDS
    assert sum(unit.dungeon != NONE for unit in action_units("logit")) == 3 * DUNGEONS


def test_a_field_of_an_unknown_group_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    field = observation.FIELDS["bags"]
    monkeypatch.setitem(observation.FIELDS, "bags", field._replace(group="cards"))
    with pytest.raises(KeyError, match="cards"):
        input_units(advised=False)


def test_weights_between_dungeons_depend_on_nothing_but_their_order() -> None:
    units = [Unit("crew", dungeon=dungeon) for dungeon in range(DUNGEONS)]
    layer = SharedLinear(units, units)
    assert len(layer.shared) == 3
    shared = (layer.weight / layer.scale).detach().numpy()
    for same in (
        shared[np.eye(DUNGEONS, dtype=bool)],
        shared[np.tri(DUNGEONS, k=-1) > 0],
        shared[np.tri(DUNGEONS) == 0],
    ):
        np.testing.assert_allclose(same, same[0], rtol=1e-6)
    assert len(layer.shared_bias) == DUNGEONS  # what is first in a scoring round is special


def test_the_units_of_all_kinds_are_the_same_and_have_the_same_scale() -> None:
    for units in (input_units(advised=True), input_units(advised=False), action_units("logit"), hidden_units(512)):
        order = ByKind(units)
        assert sorted(order.order) == list(range(len(units)))
        assert all(units[place].kind == NONE for place in order.order[: order.without])
        for kind, places in enumerate(order.kinds):
            assert [units[place] for place in places] == [units[first]._replace(kind=kind) for first in order.kinds[0]]
            if len(units) in (advice.SIZE, observation.SIZE):
                np.testing.assert_array_equal(advice.SCALE[places], advice.SCALE[order.kinds[0]])


def check_that_it_is_as_written_out(layer: SharedLinear, inputs: torch.Tensor, given: torch.Tensor) -> None:
    """Checks what a layer gives, by kind, and its gradients."""
    expected = linear(inputs, layer.weight, layer.bias)[:, layer.after.order]
    torch.testing.assert_close(given, expected, rtol=1e-4, atol=1e-4)
    changed = [*layer.parameters()] + [inputs] * inputs.requires_grad
    back = torch.randn(given.shape, generator=torch.Generator().manual_seed(4))
    gradients = (torch.autograd.grad(result, changed, back) for result in (given, expected))
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3)


def with_biases(layer: SharedLinear) -> SharedLinear:
    torch.nn.init.normal_(layer.shared_bias)
    return layer


@pytest.mark.parametrize("rows", [0, 1, 30])
@pytest.mark.parametrize(
    ("before", "after"), [(160, 250), (250, 50), (50, 160), (50, 50)]
)  # with 50 there are no kinds
def test_a_layer_gives_and_learns_what_all_weights_would(before: int, after: int, rows: int) -> None:
    layer = with_biases(SharedLinear(hidden_units(before), hidden_units(after)))
    features = torch.randn(rows, before, requires_grad=True)
    check_that_it_is_as_written_out(layer, features, layer(features[:, layer.before.order]))


@pytest.mark.parametrize("after", [action_units("logit"), [Unit("value")]], ids=["logits", "value"])
def test_what_heads_give_is_in_the_order_of_actions(after: list[Unit]) -> None:
    layer = with_biases(SharedHead(hidden_units(250), after))
    features = torch.randn(30, 250, requires_grad=True)
    given = layer(features[:, layer.before.order])
    check_that_it_is_as_written_out(layer, features, given[:, layer.after.order])


@pytest.mark.parametrize("rows", [0, 1, 100])
@pytest.mark.parametrize("after", [50, 160])
def test_a_layer_that_sees_gives_and_learns_what_all_weights_would(after: int, rows: int) -> None:
    layer = with_biases(SharedLinear(input_units(advised=True), hidden_units(after)))
    rng = np.random.default_rng(rows)
    counts = rng.integers(-128, 128, (rows, advice.SIZE)) * (rng.random((rows, advice.SIZE)) < 0.1)
    seen, scale = torch.from_numpy(counts.astype(np.int8)), torch.from_numpy(advice.SCALE)
    check_that_it_is_as_written_out(layer, seen * scale, layer.see(seen, scale))


@pytest.mark.parametrize("advised", [False, True])
def test_a_network_that_was_written_out_is_taken_over_as_it_was(advised: bool) -> None:
    settings = dataclasses.replace(SYMMETRIC, advised=advised)
    model = model_of(settings)
    network = export(model, {})
    assert network.hidden == SYMMETRIC.hidden
    other = make_model(dataclasses.replace(settings, seed=9), make_env(settings))
    load(other, network)
    for mine, theirs in zip(other.policy.parameters(), model.policy.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    with pytest.raises(InvalidArgument, match="cannot start from a network with hidden layers"):
        load(model_of(dataclasses.replace(settings, hidden=(80,))), network)
    plain = export(model_of(dataclasses.replace(settings, symmetric=False)), {})
    with pytest.raises(InvalidArgument, match="is not symmetric: start with --no-symmetric"):
        load(model, plain)


def test_the_shipped_network_can_be_started_from() -> None:
    settings = dataclasses.replace(FULL, tables=6)
    with shipped_model() as path:
        load(make_model(settings, make_env(settings)), Network.load(path))


def test_it_plays_as_the_model_does() -> None:
    settings = dataclasses.replace(SYMMETRIC, advised=True)
    model, env = model_of(settings), make_env(settings)
    seen = env.reset()
    with torch.no_grad():
        features = model.policy.extract_features(torch.from_numpy(seen).float())
        logits, values = model.policy.action_net(features).numpy(), model.policy.value_net(features).numpy()
    played = export(model, {}).evaluate(seen)
    np.testing.assert_allclose(played[0], logits, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(played[1], values[:, 0], rtol=1e-3, atol=1e-4)
