"""Layers that pass over zeros, and shared weights that are written out: the same as what torch would do."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch

from montecristo_train import sparse
from montecristo_train.sparse import sparse_linear
from montecristo_train.symmetry import SharedLinear, hidden_units

INPUTS, OUTPUTS = 37, 24


def some_inputs(rows: int, density: float) -> torch.Tensor:
    rng = np.random.default_rng(rows)
    counts = rng.integers(-128, 128, (rows, INPUTS)) * (rng.random((rows, INPUTS)) < density)
    return torch.from_numpy(counts.astype(np.int8))


def some_layer() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scale, weights and bias."""
    generator = torch.Generator().manual_seed(2)
    scale = torch.rand(INPUTS, generator=generator)
    weight = torch.randn(INPUTS, OUTPUTS, generator=generator).requires_grad_()
    return scale, weight, torch.randn(OUTPUTS, generator=generator).requires_grad_()


@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("rows", [0, 1, 100])
def test_a_layer_that_passes_over_zeros_gives_and_learns_what_torch_does(rows: int, density: float) -> None:
    counts, (scale, weight, bias) = some_inputs(rows, density), some_layer()
    back = torch.randn(rows, OUTPUTS, generator=torch.Generator().manual_seed(3))
    found = sparse_linear(counts, scale, weight, bias)
    expected = (counts.float() * scale) @ weight + bias
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
    gradients = torch.autograd.grad(found, (weight, bias), back)
    for mine, theirs in zip(gradients, torch.autograd.grad(expected, (weight, bias), back), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-3)


def test_inputs_may_share_their_weights() -> None:
    counts, (scale, weight, bias) = some_inputs(50, 0.2), some_layer()
    few, places = weight.detach()[:5].requires_grad_(), torch.arange(INPUTS) % 5
    found, expected = sparse_linear(counts, scale, few, bias, places), sparse_linear(counts, scale, few[places], bias)
    torch.testing.assert_close(found, expected)
    back = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    (mine,), (theirs,) = (torch.autograd.grad(result, few, back) for result in (found, expected))
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-3)


def test_weights_may_be_given_as_torch_keeps_them() -> None:
    counts, (scale, weight, bias) = some_inputs(50, 0.2), some_layer()
    kept = weight.detach().t().contiguous().requires_grad_()
    sparse_linear(counts, scale, kept.t(), bias).sum().backward()  # type: ignore[no-untyped-call]
    sparse_linear(counts, scale, weight, bias).sum().backward()  # type: ignore[no-untyped-call]
    assert kept.grad is not None and weight.grad is not None
    torch.testing.assert_close(kept.grad.t(), weight.grad)


def test_it_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "LEAST_ROWS", 1)
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        scale, weight, bias = some_layer()
        layer = SharedLinear(hidden_units(160), hidden_units(80))
        with torch.no_grad():
            layer.shared.copy_(torch.linspace(-1, 1, len(layer.shared)))
        found = sparse_linear(some_inputs(100, 0.2), scale, weight, bias)
        (found**2).sum().backward()  # type: ignore[no-untyped-call]
        (layer(torch.ones(1, 160)) ** 3).sum().backward()  # type: ignore[no-untyped-call]
        results.append([found.detach(), weight.grad, bias.grad, layer.shared.grad])
    for one, two in zip(*results, strict=True):
        assert one is not None and two is not None and torch.equal(one, two)


def test_weights_that_are_kept_while_nothing_is_learnt_are_new_after_learning() -> None:
    layer = SharedLinear(hidden_units(160), hidden_units(80))
    inputs = torch.ones(1, 160)
    optimizer = torch.optim.Adam(layer.parameters())
    with torch.no_grad():
        first = layer(inputs)
        assert layer._weights()[0] is layer._weights()[0]  # not written out again
    layer(inputs).sum().backward()
    optimizer.step()
    with torch.no_grad():
        second = layer(inputs)
    assert not torch.equal(first, second)
    torch.testing.assert_close(second, layer(inputs).detach())
    other = SharedLinear(hidden_units(160), hidden_units(80))
    with torch.no_grad():
        other(inputs)
        other.load_state_dict(layer.state_dict())
        assert torch.equal(other(inputs), second)
