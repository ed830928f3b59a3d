"""Layer setup: what a layer study asks, on which messages, and what its attacker was given, in sentences."""

from __future__ import annotations

from leaktight.findings.layer_risk import question_in
from leaktight.plans.layer_study import INFERENCE, LayerStudy


def setup_sentences(study: LayerStudy) -> list[str]:
    """Say what is asked, on which messages, and what the attacker was given.

    Args:
        study: what is measured.

    Example:
        >>> from leaktight.data import Parity
        >>> from leaktight.models import MLP
        >>> setup_sentences(LayerStudy(data=Parity(), model=MLP()))[0][:83]
        'Asked is whether the examples behind a message have the property `6 or more`, and, '
    """
    data = study.data.load()
    scenarios = study.plans()[INFERENCE].scenarios
    asked = f"{question_in(scenarios['property'])}, and, apart, whether they " if "property" in scenarios else ""
    what = "all of its examples" if study.share == 1 else f"a share of {study.share:g} of its examples"
    alike = " Batches of both kinds have labels alike." if study.matched else ""
    sent = f"updates of {study.local_steps} local steps" if study.local_steps > 1 else "gradients"
    known = "their labels are known"
    if asked and data.test.properties is not None:
        known += f", and which of them have the property ({int((data.test.properties == 1).sum())} do)"
    return [
        f"Asked is whether the examples behind a message {asked}are of the commonest class.",
        f"In one of two rounds, drawn at random, {what} have what is asked for; in the other none has.{alike}",
        f"The attacker sits at the server and sees the {sent} of each of {study.participants} participants, and all "
        f"parameters handed out. It is given the {len(data.test)} test examples as public ones: {known}.",
        "The data is dealt out evenly, so that every participant has examples with the property and without.",
    ]
