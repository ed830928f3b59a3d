"""Rankings: which layers are the riskiest, as `leaktight layers` wrote it down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leaktight.core.document import parse_json
from leaktight.core.errors import InvalidValue, did_you_mean, excerpt
from leaktight.core.input_file import MEBIBYTE
from leaktight.data.files import read_bytes

FORMAT = 1
LARGEST_RANKING = 16 * MEBIBYTE
"""How many bytes a `layers.json` may have: several readings for each layer."""


def read_ranking(path: Path, risk: str) -> tuple[str, ...]:
    """Return the layers in a file of `leaktight layers`, riskiest first.

    Args:
        path: the file, a `layers.json`.
        risk: what they are ranked by. Kinds of leak name the rankings: how much layers reveal of a `property`, of the
            inputs (`reconstruction`), of the `labels`, or of what another package brings.

    Raises:
        InvalidValue: there is no such file, or it is damaged, or it has no such ranking; one sentence says which.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "layers.json"
        ...     _ = file.write_text('{"format": 1, "layers": [], "ranking": {"labels": ["head", "body.linear1"]}}')
        ...     read_ranking(file, "labels")
        ('head', 'body.linear1')
    """
    result = _parse(path)
    if result.get("format") != FORMAT:
        raise InvalidValue(
            f"The file `{path}` must be a result of `leaktight layers` of format {FORMAT}. Got format "
            f"{excerpt(result.get('format'))} instead."
        )
    rankings = result.get("ranking")
    if not isinstance(rankings, dict):
        raise InvalidValue(
            f"The file `{path}` must hold a `ranking` of layers. It does not; run `leaktight layers` again."
        )
    if risk not in rankings:
        raise InvalidValue(f"The file `{path}` has no ranking by `{risk}`. {did_you_mean(risk, rankings)}")
    layers = rankings[risk]
    named = isinstance(layers, list) and all(isinstance(layer, str) and layer for layer in layers)
    if not named or not layers or len(set(layers)) != len(layers):
        raise InvalidValue(
            f"The ranking by `{risk}` in `{path}` must be a list of layers, each once. It is not; run "
            "`leaktight layers` again."
        )
    return tuple(layers)


def _parse(path: Path) -> dict[str, Any]:
    try:
        result = parse_json(read_bytes(path, LARGEST_RANKING))
    # Bytes that are no text, text that is no JSON, and JSON that is nested too deeply.
    except ValueError as error:
        raise InvalidValue(
            f"The file `{path}` must be a whole result of `leaktight layers`. It is damaged ({error}); run that again."
        ) from None
    if not isinstance(result, dict):
        raise InvalidValue(
            f"The file `{path}` must be a result of `leaktight layers`. Got a {type(result).__name__} instead."
        )
    return result
