"""Plan differences: what was measured otherwise in one of several audits, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leaktight.core.display import join_words
from leaktight.findings.redaction import without_places

if TYPE_CHECKING:
    from leaktight.findings.audit_comparison import Audit

SHOWN = 8
"""How many settings are shown."""
VERSIONS = ("leaktight", "torch")


def differences_of(audits: Sequence[Audit]) -> Iterator[str]:
    """Say what differs in what was measured: settings of scenarios and grid, the data, versions, and attacks."""
    documents = [dict(flatten(_document(audit))) for audit in audits]
    names = dict.fromkeys(name for document in documents for name in document)
    differing = [name for name in names if len({document.get(name, "-") for document in documents}) > 1]
    for name in differing[:SHOWN]:
        texts = [f"{audit.letter} {one.get(name, '-')}" for audit, one in zip(audits, documents, strict=True)]
        yield f"{name}: {', '.join(texts)}"
    if len(differing) > SHOWN:
        yield f"{len(differing) - SHOWN} more settings"
    contents = [tuple(audit.contents.values()) for audit in audits]
    if len(set(contents)) > 1 and all(any(texts) for texts in contents):
        yield "the contents of the data"
    tried = [dict.fromkeys(name for one in audit.summary.judgements for name in one.attacks) for audit in audits]
    every = dict.fromkeys(attack for own in tried for attack in own)
    for audit, own in zip(audits, tried, strict=True):
        missing = [attack for attack in every if attack not in own]
        if missing and own:
            yield f"not tried in {audit.letter}: {join_words(missing)}"


def _document(audit: Audit) -> dict[str, Any]:
    scenarios = {name: without_places(scenario) for name, scenario in audit.scenarios.values()}
    return {
        **(scenarios if len(scenarios) > 1 else {"scenario": next(iter(scenarios.values()), {})}),
        "grid": audit.plan.grid.to_dict(),
        "version": {name: audit.versions.get(name, "-") for name in VERSIONS},
    }


def flatten(value: Mapping[str, Any], name: str = "") -> Iterator[tuple[str, str]]:
    """Return nested settings by their dotted names.

    Example:
        >>> dict(flatten({"model": {"kind": "mlp", "hidden": [8, 4]}, "rounds": 3}))
        {'model.kind': 'mlp', 'model.hidden': '8, 4', 'rounds': '3'}
    """
    for key, part in value.items():
        whole = f"{name}.{key}" if name else str(key)
        if isinstance(part, dict):
            yield from flatten(part, whole)
        else:
            yield whole, ", ".join(map(str, part)) if isinstance(part, list) else str(part)
