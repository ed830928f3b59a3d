"""Quiet: what Flower and Ray do on their own, beyond a training, is off wherever we start or join them."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

OFF = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}
"""Settings that keep telemetry, update checks and usage statistics from leaving the machine."""


def quiet(environment: MutableMapping[str, str] | None = None) -> None:
    """Switch telemetry, update checks and usage statistics off; what a person has set stays as it is.

    Args:
        environment: where to set it; by default the environment of this process.

    Example:
        >>> chosen = {"FLWR_TELEMETRY_ENABLED": "1"}
        >>> quiet(chosen)
        >>> chosen["FLWR_TELEMETRY_ENABLED"], chosen["FLWR_DISABLE_UPDATE_CHECK"]
        ('1', '1')
    """
    where = os.environ if environment is None else environment
    for name, value in OFF.items():
        where.setdefault(name, value)
