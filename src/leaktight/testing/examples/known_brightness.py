"""Known brightness: an attacker who knows how bright images are on average."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor

from leaktight.attacks.term import Candidate, Term


class KnownBrightness(Term):
    """Draw a candidate's mean towards a known one, for whoever wants to see how a term of the objective is written.

        weight * (mean(x) - brightness)^2

    Args:
        brightness: what the attacker knows, in [0, 1].
        weight: how much it counts beside messages and prior, above 0.
    """

    kind: Literal["example_known_brightness"] = "example_known_brightness"
    brightness: float = Field(0.5, ge=0, le=1)
    weight: float = Field(1.0, gt=0)

    def __call__(self, candidate: Candidate) -> Tensor:
        """Return the weighted squared difference; tensor operations alone, because the search is traced."""
        return self.weight * (candidate.inputs.mean() - self.brightness).square()
