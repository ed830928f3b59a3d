"""Flower: defend and audit existing apps, and train with our own parties on it. The only importer of flwr."""

import os
from collections.abc import MutableMapping

TELEMETRY_OFF = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}
"""Settings that keep telemetry, update checks and usage statistics of Flower and Ray from leaving the machine."""


def disable_telemetry(environment: MutableMapping[str, str] | None = None) -> None:
    """Switch telemetry, update checks and usage statistics off; what a user has set stays as it is.

    Args:
        environment: where to set it; by default the environment of this process.

    Example:
        >>> chosen = {"FLWR_TELEMETRY_ENABLED": "1"}
        >>> disable_telemetry(chosen)
        >>> chosen["FLWR_TELEMETRY_ENABLED"], chosen["FLWR_DISABLE_UPDATE_CHECK"]
        ('1', '1')
    """
    where = os.environ if environment is None else environment
    for name, value in TELEMETRY_OFF.items():
        where.setdefault(name, value)


disable_telemetry()

# flwr reads its environment while it is imported, so everything that imports it comes after.
try:
    import flwr  # noqa: F401
except ImportError as error:
    raise ImportError("Flower is not installed. Install it with `pip install leaktight[flower]`.") from error

from leaktight.flower.defence_memory import notes_of  # noqa: E402
from leaktight.flower.defended_training import DefendedTraining, defend_training  # noqa: E402
from leaktight.flower.protect import Protection, protect  # noqa: E402
from leaktight.flower.record import RecordingStrategy, record  # noqa: E402
from leaktight.flower.tap import Tap, tap  # noqa: E402
from leaktight.flower.training_settings import describe_training  # noqa: E402
from leaktight.flower.truth import keep_truth  # noqa: E402

__all__ = [
    "DefendedTraining",
    "Protection",
    "RecordingStrategy",
    "Tap",
    "defend_training",
    "describe_training",
    "keep_truth",
    "notes_of",
    "protect",
    "record",
    "tap",
]
