"""Perturbation cosine: whether what a defence adds to a tensor points where its undefended gradient does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.attack import Guess
from leaktight.core.message import Tensors
from leaktight.core.metric import MESSAGE, Metric, Reading
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.statistics.interval import bootstrap


def cosine_to_addition(plain: Tensor, clean: Tensor) -> float | None:
    r"""Return \(\cos(B, E)\) for a tensor B and what was added to it, E; None if one of them is zero everywhere.

    Example:
        >>> cosine_to_addition(torch.tensor([1.0, 0.0]), torch.tensor([2.0, 1.0]))
        0.7071067811865475
    """
    gradient, added = plain.double().flatten(), (clean.double() - plain.double()).flatten()
    sizes = float(gradient.norm()), float(added.norm())
    return None if 0.0 in sizes else float((gradient / sizes[0]) @ (added / sizes[1]))


class PerturbationCosine(Metric):
    r"""The cosine of each tensor's undefended gradient B and of what the party's own training adds to it, E.

    Under the secret polarization network E is \(\alpha_2\) times the gradient of the polarization loss, and this is the
    cosine that the paper's Fig. 4 shows. Near 1 the secret loss pulls where the public one does; near 0 it is noise to
    it. It says nothing about leakage. There is a reading for each tensor, the mean over messages, and none for a tensor
    that is the same in all of them. What happens at the boundary, such as noise on the message, is not counted.

    Differs from the paper: it says neither of which network its four cosines are, nor after which training.

    Example:
        >>> PerturbationCosine().claim
        'message'

    References:
        Fan et al., Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks, 2020,
        section 3.1, Eq. 6 and Fig. 4.
    """

    kind: Literal["perturbation_cosine"] = "perturbation_cosine"
    title: ClassVar[str] = "cosine of gradient and perturbation"
    claim: ClassVar[str] = MESSAGE
    leaks: ClassVar[None] = None

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return the mean cosine of each tensor; nothing where nobody knows what would have been sent undefended."""
        known = [(one.plain.tensors, one.clean.tensors) for one in truth if one.plain is not None]
        names = known[0][0] if known else ()
        readings = [
            self._reading(name, known, stream(rng.initial_seed(), "interval", self.kind, name)) for name in names
        ]
        return tuple(reading for reading in readings if reading is not None)

    def _reading(self, name: str, known: Sequence[tuple[Tensors, Tensors]], rng: Stream) -> Reading | None:
        cosines = [cosine_to_addition(plain[name], clean[name]) for plain, clean in known if name in clean]
        each = [cosine for cosine in cosines if cosine is not None and cosine == cosine]
        if not each:
            return None
        values = torch.tensor(each, dtype=torch.float64)
        low, high = bootstrap(values, rng)
        return Reading(
            name=self.kind,
            value=float(values.mean()),
            low=low,
            high=high,
            n=len(each),
            against="raw",
            layer=name,
            each=tuple(each),
        )
