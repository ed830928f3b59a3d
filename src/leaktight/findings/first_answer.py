"""The first answer: what messages give away without a defence, said before the rest of an audit is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leaktight.core.display import join_words
from leaktight.core.record import Record
from leaktight.core.temporary import private_temporary
from leaktight.findings.summary import summarise
from leaktight.plans.plan import Plan
from leaktight.plans.presets import glance
from leaktight.running.scheduler import run
from leaktight.running.store import STORE_FILE


def at_a_glance(plan: Plan, folder: Path, device: str | None) -> str:
    """Say what messages give away to attacks that take seconds, before what takes minutes begins.

    It is measured apart, and again by the audit itself.

    Args:
        plan: the whole audit.
        folder: the audit's folder; where an audit has begun there already, its own answers come soon enough.
        device: as for `run`.

    Returns:
        The sentences; nothing if an audit has begun there, or none of these attacks could be run.
    """
    if (folder / STORE_FILE).exists():
        return ""
    with private_temporary() as place:
        summary = summarise(run(glance(plan), place, device=device))
    if not summary.judgements:
        return ""
    said = zip(summary.judgements, summary.verdict, strict=True)
    leaking = {judgement.worst.attack: sentence for judgement, sentence in said if judgement.verdict == "leaks"}
    if not leaking:
        return "First answer: no attack that needs no search read anything from the untrained network. Searches follow."
    found = " ".join(leaking.values())
    return f"First answer, in the untrained network by {join_words(list(leaking))}: {found} Searches follow."


def first_answer(records: Sequence[Record], again: bool = False) -> str:
    """Say what was found without a defence, before anything is known of defences.

    Args:
        records: what was measured.
        again: whether something was said of it already, before the searches.
    """
    return f"{'After the searches' if again else 'First answer'}. {summarise(records).verdict[0]}"
