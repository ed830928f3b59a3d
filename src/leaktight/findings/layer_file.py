"""The file that a layer study leaves behind: what each layer gives away, for people and for `layer_guard`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leaktight.core.metric import Reading
from leaktight.core.private import write_private
from leaktight.defences.ranking import FORMAT
from leaktight.findings.kind import layer_measures
from leaktight.findings.layer_risk import LayerCorrelation, LayerRow, SealedStep, correlations, rankings, sealings

LAYERS_FILE = "layers.json"


def write_layers(path: Path, rows: Sequence[LayerRow], about: Sequence[str] = ()) -> None:
    """Write rows with their rankings and correlations, for the owner alone.

    Args:
        path: the file; `layer_guard` takes it as its `ranking`.
        rows: what was measured of each layer, in the order of the network.
        about: what was asked, and what the attacker was given, in sentences.

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
        "about": list(about),
        "layers": [
            {"layer": row.layer, "risk": {name: _as_dict(one) for name, one in row.readings.items()}} for row in rows
        ],
        "ranking": rankings(rows),
        "sealing": {
            measure.risk: [_step(step) for step in sealings(rows, measure)]
            for measure in layer_measures()
            if sealings(rows, measure)
        },
        "correlation": [_correlation(one) for one in correlations(rows)],
    }
    write_private(path, json.dumps(found, indent=2, allow_nan=False).encode() + b"\n")


def _as_dict(reading: Reading) -> dict[str, Any]:
    return {name: getattr(reading, name) for name in ("value", "low", "high", "n", "chance")}


def _step(step: SealedStep) -> dict[str, Any]:
    return {"layer": step.layer, "count": step.count, "bytes": step.bytes, "remaining": _as_dict(step.remaining)}


def _correlation(one: LayerCorrelation) -> dict[str, Any]:
    return {"metric": one.metric, "attack": one.attack, "r": one.r, "p": one.p, "n": one.n}
