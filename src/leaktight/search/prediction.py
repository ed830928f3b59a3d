"""Prediction: what our runs of the published experiment found the privacy score to say about attacks."""

from __future__ import annotations

import functools
import math
from importlib import resources

from leaktight.core.document import parse_json
from leaktight.core.value import Value

FILE = "prediction.json"
_Z = 1.959964


class Prediction(Value):
    r"""How well the privacy score predicted what an attack found, over random policies.

    Args:
        setting: on what.
        r: Pearson's correlation of score and PSNR; the paper has 0.697.
        policies: how many policies it is over.
    """

    setting: str
    r: float
    policies: int

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval by Fisher's artanh."""
        half = _Z / math.sqrt(self.policies - 3)
        return math.tanh(math.atanh(self.r) - half), math.tanh(math.atanh(self.r) + half)

    def __str__(self) -> str:
        """Say so in a sentence."""
        low, high = self.interval
        verdict = "did not predict" if low <= 0 else "predicted in part"
        return (
            f"In our runs the privacy score {verdict} what attacks find: its correlation with PSNR is {self.r:.2f} "
            f"({low:.2f} to {high:.2f}) over {self.policies} random policies, where the paper has 0.70."
        )


@functools.cache
def read_prediction() -> Prediction:
    """Return what was found last.

    Example:
        >>> str(read_prediction()).startswith("In our runs the privacy score")
        True
    """
    text = resources.files("leaktight.search").joinpath(FILE).read_bytes()
    return Prediction.model_validate(parse_json(text))
