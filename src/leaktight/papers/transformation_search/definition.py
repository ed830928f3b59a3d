"""The table of Definition 2: which policies hide enough images at an accuracy that is good enough, under which attacker."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from leaktight.core.defence import Defence
from leaktight.core.metric import Reading
from leaktight.metrics.privacy_aware import Claim, PrivacyAware, privacy_aware
from leaktight.papers.reproduction import Row, columns, number
from leaktight.papers.transformation_search.measured import ACCURACY, PSNR, Measured, Place, told
from leaktight.papers.transformation_search.plans import ADAPTIVE, KNOWING, POLICIES, found_for
from leaktight.papers.transformation_search.policies import known_ones, undefended
from leaktight.papers.transformation_search.settings import Subject
from leaktight.papers.transformation_search.tables import groups, where


def definition_rows(measured: Measured) -> list[Row]:
    """Return the share of images that stay hidden and the accuracy lost, for each policy and attacker, with the verdict."""
    rows = []
    for subject in measured.study.subjects:
        for name, (_, defences) in groups(measured, subject).items():
            rows.append(_row(measured, subject, name, Place(subject, POLICIES), defences))
            if subject == measured.study.focus and name in known_ones(measured.study, found_for(subject, measured.found)):
                rows.append(_row(measured, subject, name, Place(subject, ADAPTIVE, KNOWING), defences))
    return rows


def _row(measured: Measured, subject: Subject, name: str, place: Place, defences: Sequence[Defence]) -> Row:
    study = measured.study
    claim = Claim(epsilon=study.epsilon, delta=study.delta, gamma=study.gamma)
    found = _judged(measured, claim, place, defences)
    return {
        **where(subject),
        "policy": name,
        "attack": place.label,
        "epsilon": claim.epsilon,
        "delta": claim.delta,
        "gamma": claim.gamma,
        "images": found.used.n if found else None,
        **columns("hidden", found.used if found else None),
        **columns("hidden_original", found.raw if found else None),
        **columns("accuracy_lost", found.loss if found else None),
        "as_printed": found.printed if found else None,
        "with_original": found.verdict if found else None,
    }


def _judged(measured: Measured, claim: Claim, place: Place, defences: Sequence[Defence]) -> PrivacyAware | None:
    """Pool the images of all trainings, and take accuracies over trainings; None if something was not measured."""
    psnrs = [_pooled(measured, place, defences, against) for against in ("raw", "used")]
    accuracies = [_accuracy(measured, place, some) for some in (defences, [undefended(measured.study)])]
    if None in psnrs or None in accuracies:
        return None
    known = [one for one in (*psnrs, *accuracies) if one is not None]
    # Several policies are tried on the same images, which are no further trials.
    return privacy_aware(claim, known[:2], known[2], known[3], messages=max(1, len(known[0].each) // len(defences)))


def _pooled(measured: Measured, place: Place, defences: Sequence[Defence], against: str) -> Reading | None:
    found = [one for defence in defences for one in measured.readings(place, defence, PSNR, against)]
    if not found:
        return None
    each = tuple(value for one in found for value in one.each)
    return found[0].model_copy(update={"value": fmean(each), "n": len(each), "each": each})


def _accuracy(measured: Measured, place: Place, defences: Sequence[Defence]) -> Reading | None:
    found = [one for defence in defences for one in measured.readings(place, defence, ACCURACY)]
    if not found:
        return None
    row = told(ACCURACY, found)
    value, low, high = (number(row, f"{ACCURACY}{end}") for end in ("", "_low", "_high"))
    return None if value is None else Reading(name=ACCURACY, value=value, low=low, high=high, n=sum(one.n for one in found))
