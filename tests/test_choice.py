"""The random choice among legal actions: the same as that of sb3-contrib."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib.common.maskable.distributions import MaskableCategoricalDistribution

from montecristo_train.choice import LegalChoice

ROWS, ACTIONS = 50, 20
CLOSE_TO_ONE = 1 - 2.0**-24  # the highest number that torch draws


def some_logits() -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and masks with one legal action or more."""
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(ROWS, ACTIONS, generator=generator) * 3
    masks = torch.rand(ROWS, ACTIONS, generator=generator) < torch.linspace(0, 1, ROWS)[:, None]
    masks[torch.arange(ROWS), torch.randint(ACTIONS, (ROWS,), generator=generator)] = True
    return logits, masks


@pytest.mark.parametrize("form", ["none", "bool", "float", "array"])
def test_probabilities_entropy_and_gradients_are_those_of_sb3_contrib(form: str) -> None:
    logits, legal = some_logits()
    forms = {"none": None, "bool": legal, "float": legal.float().ravel(), "array": legal.numpy()}
    chosen = legal.float().argmax(dim=1)
    results = []
    for choice in (LegalChoice(ACTIONS), MaskableCategoricalDistribution(ACTIONS)):
        mine = logits.clone().requires_grad_()
        choice.proba_distribution(mine).apply_masking(forms[form])
        log_prob, entropy = choice.log_prob(chosen), choice.entropy()
        (gradient,) = torch.autograd.grad((log_prob * 2 + entropy).sum(), mine)
        results.append([log_prob, entropy, gradient, choice.mode()])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_new_mask_takes_the_place_of_the_old_one() -> None:
    logits, legal = some_logits()
    choice = LegalChoice(ACTIONS).proba_distribution(logits)
    before = choice.entropy()
    choice.apply_masking(legal)
    assert not torch.equal(choice.entropy(), before)
    choice.apply_masking(None)
    assert torch.equal(choice.entropy(), before)


def test_actions_are_drawn_as_often_as_they_are_likely_and_illegal_ones_never() -> None:
    logits, legal = some_logits()
    draws = 20_000
    choice = LegalChoice(ACTIONS)
    torch.manual_seed(2)
    for row in (5, 25, 49):
        choice.proba_distribution(logits[row].expand(draws, -1)).apply_masking(legal[row].expand(draws, -1))
        drawn = np.bincount(choice.sample().numpy(), minlength=ACTIONS) / draws
        expected = np.where(legal[row].numpy(), np.exp(logits[row].numpy()), 0)
        expected /= expected.sum()
        assert (drawn[~legal[row].numpy()] == 0).all()
        assert (np.abs(drawn - expected) <= 5 * np.sqrt(expected * (1 - expected) / draws)).all()


@pytest.mark.parametrize("luck", [0.0, CLOSE_TO_ONE])
def test_the_lowest_and_the_highest_number_draw_the_first_and_the_last_legal_action(
    luck: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits, legal = some_logits()
    choice = LegalChoice(ACTIONS).proba_distribution(logits / 10)  # no action so unlikely that it is rounded away
    choice.apply_masking(legal)
    monkeypatch.setattr(torch, "rand", lambda *size: torch.full(size, luck))
    ends = [np.flatnonzero(line)[0 if luck == 0 else -1] for line in legal.numpy()]
    assert choice.sample().tolist() == ends
