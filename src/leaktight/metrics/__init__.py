"""Metrics: guess and truth in, reading out. The only part, beside probes, that sees the truth."""

from leaktight.core.metric import Metric
from leaktight.metrics.above_chance import PSNRAboveChance
from leaktight.metrics.bound import ReconstructionStatement, statement
from leaktight.metrics.comparison import Comparison
from leaktight.metrics.exactness import ExactShare, FalseAnswers
from leaktight.metrics.generated import (
    Recognised,
    RecognisedAny,
    RecognisedBest,
    RecognisedConfidence,
    RecognisedMedian,
)
from leaktight.metrics.image import MSE, PSNR, SSIM, RelativeRMSE
from leaktight.metrics.key_cosine import KeyCosine
from leaktight.metrics.labels import LabelDistance
from leaktight.metrics.leak_auc import LeakAUC
from leaktight.metrics.leak_auc_passes import LeakAUCPasses
from leaktight.metrics.norm_histogram import NormHistogram
from leaktight.metrics.pairing import arrange, pair
from leaktight.metrics.perturbation import Perturbation
from leaktight.metrics.perturbation_cosine import PerturbationCosine
from leaktight.metrics.privacy_aware import Claim, PrivacyAware, privacy_aware
from leaktight.metrics.property_auc import PropertyAuc
from leaktight.metrics.sample_distance import MeanPicture, NearestAny, NearestPrivate, SampleDiversity
from leaktight.metrics.search_gap import SearchGap
from leaktight.metrics.statistics_error import StatisticsError, statistics_error
from leaktight.metrics.tracing import TracingDistance, trace

__all__ = [
    "MSE",
    "PSNR",
    "SSIM",
    "Claim",
    "Comparison",
    "ExactShare",
    "FalseAnswers",
    "KeyCosine",
    "LabelDistance",
    "LeakAUC",
    "LeakAUCPasses",
    "MeanPicture",
    "NearestAny",
    "NearestPrivate",
    "NormHistogram",
    "PSNRAboveChance",
    "Perturbation",
    "PerturbationCosine",
    "PrivacyAware",
    "PropertyAuc",
    "Recognised",
    "RecognisedAny",
    "RecognisedBest",
    "RecognisedConfidence",
    "RecognisedMedian",
    "ReconstructionStatement",
    "RelativeRMSE",
    "SampleDiversity",
    "SearchGap",
    "StatisticsError",
    "TracingDistance",
    "arrange",
    "pair",
    "privacy_aware",
    "standard",
    "statement",
    "statistics_error",
    "trace",
]


def standard() -> tuple[Metric, ...]:
    """Return the metrics that an audit uses unless told otherwise; each grades what it can and is silent elsewhere.

    Example:
        >>> [metric.kind for metric in standard()][:5]
        ['psnr', 'ssim', 'mse', 'rmse_relative', 'label_distance']
        >>> [metric.kind for metric in standard()][5:9]
        ['reconstruction_statement', 'tracing_distance', 'search_gap', 'perturbation']
        >>> [metric.kind for metric in standard()][9:13]
        ['leak_auc', 'leak_auc_passes', 'norm_histogram', 'property_auc']
        >>> [metric.kind for metric in standard()][13:18]
        ['recognised', 'recognised_any', 'recognised_confidence', 'recognised_median', 'recognised_best']
        >>> [metric.kind for metric in standard()][18:23]
        ['nearest_private', 'nearest_any', 'mean_picture', 'sample_diversity', 'key_cosine']
        >>> [metric.kind for metric in standard()][23:]
        ['exact_share', 'false_answers', 'statistics_error']
    """
    images = PSNR(), SSIM(), MSE(), RelativeRMSE()
    messages = Perturbation(), LeakAUC(), LeakAUCPasses(), NormHistogram(), PropertyAuc()
    recognised = Recognised(), RecognisedAny(), RecognisedConfidence(), RecognisedMedian(), RecognisedBest()
    samples = NearestPrivate(), NearestAny(), MeanPicture(), SampleDiversity(), KeyCosine()
    exact = ExactShare(), FalseAnswers()
    return (
        *images,
        LabelDistance(),
        ReconstructionStatement(),
        TracingDistance(),
        SearchGap(),
        *messages,
        *recognised,
        *samples,
        *exact,
        StatisticsError(),
    )
