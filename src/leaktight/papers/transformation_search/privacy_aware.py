"""Definition 2: which policies hide enough images at little enough cost, under which attacker. A table of our own."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from leaktight.core.defence import Defence
from leaktight.core.metric import Reading
from leaktight.metrics.privacy_aware import Claim, PrivacyAware, privacy_aware
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, columns, over_runs, reading_of
from leaktight.papers.transformation_search import adaptive, policies
from leaktight.papers.transformation_search.adaptive import KNOWING
from leaktight.papers.transformation_search.audits import ACCURACY, ATTACK, PLACE, PSNR, place_of, readings_of
from leaktight.papers.transformation_search.mechanisms import grouped_policies, known_policies, plain_defence
from leaktight.papers.transformation_search.scales import Study

PUBLISHED = claims(("Definition 2 asks for it; the paper gives no epsilon, delta or gamma for its policies.", "4.1"))


def plans(study: Study) -> Plans:
    """Return the audits of both attackers."""
    return policies.plan_policies(study) | adaptive.plans(study)


def rows(study: Study, records: Records) -> list[Row]:
    """Return the share of images that stay hidden and the accuracy lost, with the verdict, by policy and attacker."""
    rows = []
    for subject in study.subjects:
        plain = policies.cells(study, subject, records)
        for name, (_, defences) in grouped_policies(study, subject).items():
            place = {**place_of(subject), "policy": name}
            rows.append(_row(study, {**place, "attack": ATTACK}, plain, defences))
            if subject == study.focus and name in known_policies(study, subject):
                knowing = adaptive.cells(study, records, KNOWING)
                rows.append(_row(study, {**place, "attack": KNOWING}, knowing, defences))
    return rows


def _row(study: Study, place: Row, cells: Records, defences: Sequence[Defence]) -> Row:
    claim = Claim(epsilon=study.epsilon, delta=study.delta, gamma=study.gamma)
    verdict = _judge(study, claim, cells, defences)
    return {
        **place,
        "epsilon": claim.epsilon,
        "delta": claim.delta,
        "gamma": claim.gamma,
        "images": verdict.used.n if verdict else None,
        **columns("hidden", verdict.used if verdict else None),
        **columns("hidden_original", verdict.raw if verdict else None),
        **columns("accuracy_lost", verdict.loss if verdict else None),
        "as_printed": verdict.as_printed if verdict else None,
        "with_original": verdict.verdict if verdict else None,
    }


def _judge(study: Study, claim: Claim, cells: Records, defences: Sequence[Defence]) -> PrivacyAware | None:
    """Pool the images of all training runs, and take accuracies over them; None if something was not measured."""
    psnrs = [_pool_images(cells, defences, against) for against in ("raw", "used")]
    accuracies = [_accuracy(cells, each) for each in (defences, [plain_defence(study)])]
    if None in psnrs or None in accuracies:
        return None
    known = [reading for reading in (*psnrs, *accuracies) if reading is not None]
    # Several policies are tried on the same images, which are no further trials.
    return privacy_aware(claim, known[:2], known[2], known[3], messages=max(1, len(known[0].each) // len(defences)))


def _pool_images(cells: Records, defences: Sequence[Defence], against: str) -> Reading | None:
    readings = readings_of(cells, defences, PSNR, against)
    if not readings:
        return None
    each = tuple(value for reading in readings for value in reading.each)
    return readings[0].model_copy(update={"value": fmean(each), "n": len(each), "each": each})


def _accuracy(cells: Records, defences: Sequence[Defence]) -> Reading | None:
    readings = readings_of(cells, defences, ACCURACY)
    mean = reading_of(over_runs(ACCURACY, readings), ACCURACY)
    return mean and mean.model_copy(update={"n": sum(reading.n for reading in readings)})


EXPERIMENT = Experiment(
    table="privacy_aware", keys=(*PLACE, "policy", "attack"), plans=plans, rows=rows, published=PUBLISHED
)
