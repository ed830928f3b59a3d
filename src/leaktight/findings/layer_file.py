"""The file that a layer study leaves behind: what each layer gives away, for people and for `layer_guard`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leaktight.core.metric import Reading
from leaktight.core.private import write_private
from leaktight.defences.ranking import FORMAT
from leaktight.findings.layer_risk import Correlation, LayerRow, correlations, rankings

LAYERS_FILE = "layers.json"


def write_layers(path: Path, rows: Sequence[LayerRow]) -> None:
    """Write rows with their rankings and correlations, for the owner alone.

    Args:
        path: the file; `layer_guard` takes it as its `ranking`.
        rows: what was measured of each layer, in the order of the network.

    Example:
        >>> import tempfile
        >>> row = LayerRow("head", {"property_auc": Reading(name="property_auc", value=0.9, layer="head")})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_layers(Path(folder) / "layers.json", [row])
        ...     json.loads((Path(folder) / "layers.json").read_text())["ranking"]
        {'property': ['head']}
    """
    found = {
        "format": FORMAT,
        "layers": [
            {"layer": row.layer, "risk": {name: _as_dict(one) for name, one in row.readings.items()}} for row in rows
        ],
        "ranking": rankings(rows),
        "correlation": [_correlation(one) for one in correlations(rows)],
    }
    write_private(path, json.dumps(found, indent=2, allow_nan=False).encode() + b"\n")


def _as_dict(reading: Reading) -> dict[str, Any]:
    return {name: getattr(reading, name) for name in ("value", "low", "high", "n", "chance")}


def _correlation(one: Correlation) -> dict[str, Any]:
    return {"metric": one.metric, "attack": one.attack, "r": one.r, "p": one.p, "n": one.n}
