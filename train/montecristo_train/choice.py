"""Random choice among legal actions, for the policy of Stable-Baselines3."""

from typing import Self

import torch
from sb3_contrib.common.maskable.distributions import MaskableCategoricalDistribution, MaybeMasks

ILLEGAL = -1e8  # the logit of an action that cannot be chosen, as in sb3-contrib


class LegalChoice(MaskableCategoricalDistribution):
    """The same as what it replaces, but probabilities are worked out once, not for every mask and question."""

    def proba_distribution(self, action_logits: torch.Tensor) -> Self:
        """Takes the logits of a batch; all actions are legal until they are masked."""
        self._logits = action_logits
        self.apply_masking(None)
        return self

    def apply_masking(self, masks: MaybeMasks) -> None:
        """Says which actions are legal; None for all."""
        self._legal = self._logits
        if masks is not None:
            legal = torch.as_tensor(masks, dtype=torch.bool).reshape(self._logits.shape)
            self._legal = torch.where(legal, self._logits, ILLEGAL)
        self._logs: torch.Tensor | None = None

    def _log_probabilities(self) -> torch.Tensor:
        if self._logs is None:
            self._logs = self._legal.log_softmax(dim=1)
        return self._logs

    def _probabilities(self) -> torch.Tensor:
        return self._legal.softmax(dim=1)  # `exp` takes five times as long where the result is zero

    def log_prob(self, actions: torch.Tensor) -> torch.Tensor:
        """The logarithm of the probability of each of these."""
        return self._log_probabilities().gather(1, actions.long()[:, None])[:, 0]

    def entropy(self) -> torch.Tensor:
        """How random the choices are."""
        return -(self._probabilities() * self._log_probabilities()).sum(dim=1)

    def sample(self) -> torch.Tensor:
        """One choice for each of the batch."""
        reached = self._probabilities().cumsum(dim=1)
        return (reached <= torch.rand(len(reached), 1) * reached[:, -1:]).sum(dim=1)

    def mode(self) -> torch.Tensor:
        """The most likely ones."""
        return self._legal.argmax(dim=1)
