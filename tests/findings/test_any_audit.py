"""Whatever an audit found, something true can be said about it."""

import math
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.defence import Chain, Undefended, is_undefended
from leaktight.core.record import Status
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.findings.advice import advise
from leaktight.findings.flags import raise_flags
from leaktight.findings.summary import summarise

DEFENCES = [
    Undefended(),
    GaussianNoise(std=0.0),
    GaussianNoise(std=0.1),
    TopK(share=0.5),
    TopK(share=0.01, residual=True),
    DPSGD(multiplier=0.0),
    Chain(links=(TopK(), GaussianNoise())),
    Chain(),
]
CELLS = st.fixed_dictionaries(
    {
        "defence": st.sampled_from(DEFENCES),
        "psnr": st.none() | st.floats(0, 100),
        "accuracy": st.none() | st.floats(0, 1),
        "labels": st.none() | st.floats(0, 1),
        "status": st.sampled_from(list(Status)),
        "notes": st.sampled_from([{}, {"dp_sgd.epsilon": 1.5}, {"dp_sgd.epsilon": math.inf}]),
        "batch_size": st.sampled_from([1, 8]),
        "stage": st.sampled_from(["initial", "early", "end"]),
        "seed": st.sampled_from([0, 1]),
        "purpose": st.sampled_from(["measure", "measure", "control", "null"]),
        "label": st.sampled_from(["dlg2019", "geiping2020"]),
    }
)
AUDITS = st.lists(CELLS, max_size=8)


def once(made, cells):
    """Return records of these cells, each cell once."""
    return list({record.cell.key: record for record in (made.record(**cell) for cell in cells)}.values())


@settings(deadline=None, max_examples=60)
@given(cells=AUDITS)
def test_every_audit_has_a_verdict_flags_and_advice_that_name_only_what_was_measured(made, cells):
    records = once(made, cells)
    summary = summarise(records)
    measured = {r.cell.defence for r in records if r.status is Status.DONE and r.cell.purpose == "measure"}
    assert {judgement.defence for judgement in summary.judgements} <= measured
    shown = {judgement.defence for judgement in summary.judgements if judgement.may_be_advised}
    assert {item.defence for item in advise(summary)} <= shown | {None}
    keys = {record.cell.key for record in records}
    for flag in raise_flags(records):
        assert set(flag.cells) <= keys
        assert flag.sentence.endswith(".")
    for sentence in summary.verdict:
        assert sentence.endswith(".")
        assert not re.search(r"\bnan\b|None(?! of)", sentence)


@settings(deadline=None, max_examples=60)
@given(cells=AUDITS)
def test_no_row_of_a_judged_setting_leaks_more_than_the_one_it_is_judged_by(made, cells):
    summary = summarise(once(made, cells))
    for judgement in summary.judgements:
        worst, kind = judgement.worst, judgement.kind
        rivals = [
            row
            for row in summary.rows
            if (row.defence, row.batch_size, row.stage) == (worst.defence, worst.batch_size, worst.stage)
            and row.scenario == worst.scenario
            and kind.reading(row) is not None
            and kind.unit(row) == kind.unit(worst)
        ]
        assert all(kind.severity(row) <= kind.severity(worst) for row in rivals)
        assert worst.attack in judgement.attacks
        if judgement.verdict in ("reduced", "not broken"):
            assert judgement.base is not None
            assert not is_undefended(judgement.defence)


@settings(deadline=None, max_examples=30)
@given(cells=AUDITS)
def test_the_order_of_records_changes_nothing_but_numbering(made, cells):
    records = once(made, cells)
    forward, backward = summarise(records), summarise(records[::-1])
    assert [row.cells for row in forward.rows] == [row.cells for row in backward.rows]
    assert forward.counts == backward.counts
