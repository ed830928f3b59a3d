"""Metrics: guess and truth in, reading out. The only part, beside probes, that sees the truth."""

from leaktight.core.metric import Metric
from leaktight.metrics.bound import ReconstructionStatement, statement
from leaktight.metrics.comparison import Comparison
from leaktight.metrics.image import MSE, PSNR, SSIM, RelativeRMSE
from leaktight.metrics.labels import LabelDistance
from leaktight.metrics.pairing import arrange, pair

__all__ = [
    "MSE",
    "PSNR",
    "SSIM",
    "Comparison",
    "LabelDistance",
    "ReconstructionStatement",
    "RelativeRMSE",
    "arrange",
    "pair",
    "standard",
    "statement",
]


def standard() -> tuple[Metric, ...]:
    """Return the metrics that an audit uses unless told otherwise; each grades what it can and is silent elsewhere.

    Example:
        >>> [metric.kind for metric in standard()]
        ['psnr', 'ssim', 'mse', 'rmse_relative', 'label_distance', 'reconstruction_statement']
    """
    return PSNR(), SSIM(), MSE(), RelativeRMSE(), LabelDistance(), ReconstructionStatement()
