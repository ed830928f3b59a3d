"""The gate: what passes, what fails, and that nothing passes for want of evidence."""

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.core.record import Status
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.findings.gate import Demands, hold_to, read_allowed
from leaktight.findings.summary_file import summary_of

TOP = TopK(share=0.05)
LENIENT = Demands(leaks=None, refuted=None, unknown=None, useless=None, unfinished=None)


@pytest.fixture
def summary(made):
    def make(records, missing=0, defences=()):
        plan = made.plan().model_copy(update={"defences": tuple(defences)})
        return summary_of(records, plan, made.VERSIONS, missing=missing)

    return make


def outcome(gate):
    return {criterion.name: criterion.passed for criterion in gate.criteria}


def test_a_defence_that_leaks_fails_and_is_named(made, summary):
    gate = hold_to(summary([made.record(psnr=38), made.record(TopK(share=0.3), 31)]), Demands())
    assert not gate.passed
    assert str(gate) == "Gate failed: leaks."
    assert outcome(gate) == {
        "measured": True,
        "unfinished": True,
        "leaks": False,
        "refuted": True,
        "unknown": True,
        "useless": True,
    }
    leaks = gate.criteria[2]
    assert (
        str(leaks)
        == "leaks: failed. 1 of 1 verdict, none allowed: top-k (share 0.3), images (all 8 images recognised by dlg2019)."
    )
    assert [case.subject for case in leaks.faults] == ["top-k (share 0.3), images"]


def test_messages_without_a_defence_count_only_if_there_is_nothing_else(made, summary):
    records = made.two_principles(TopK(share=0.05), accuracy=0.79)
    assert hold_to(summary(records), Demands()).passed
    bare = hold_to(summary([made.record(psnr=38)]), Demands())
    assert [one.undefended for one in bare.judged] == [True]
    assert str(bare) == "Gate failed: leaks."
    assert not hold_to(summary(records), Demands(), defences=["none"]).passed


def test_what_is_missing_as_evidence_fails_unless_it_is_allowed(made, summary):
    found = summary([made.record(psnr=38, extra=made.searches(0)), made.record(TopK(), psnr=9, extra=made.searches(8))])
    assert str(hold_to(found, Demands())) == "Gate failed: unknown."
    assert hold_to(found, Demands(unknown=None)).passed
    assert hold_to(found, Demands(unknown=1)).passed


def test_so_many_are_allowed(made, summary):
    leaky = summary([made.record(psnr=38), *(made.record(TopK(share=share), 31) for share in (0.2, 0.3))])
    assert hold_to(leaky, Demands(leaks=2)).passed
    gate = hold_to(leaky, Demands(leaks=1))
    assert gate.criteria[2].sentence.startswith("2 of 2 verdicts, 1 allowed: ")
    assert len(gate.criteria[2].faults) == 2
    assert "leaks" not in outcome(hold_to(leaky, Demands(leaks=None)))


def test_a_price_is_held_to_its_limit(made, summary):
    found = summary(made.two_principles(TopK(share=0.05), accuracy=0.75))
    gate = hold_to(found, Demands(accuracy_loss=2))
    assert str(gate) == "Gate failed: accuracy-loss."
    assert gate.criteria[-1].sentence.startswith("Top-k (share 0.05) costs 5.0 points of accuracy (")
    assert gate.criteria[-1].sentence.endswith("; 2 points allowed.")
    passed = hold_to(found, Demands(accuracy_loss=6)).criteria[-1]
    assert passed.passed
    assert passed.sentence.endswith(", which the interval of top-k (share 0.05) reaches beyond.")
    assert "reaches beyond" not in hold_to(found, Demands(accuracy_loss=50)).criteria[-1].sentence


def test_every_interval_that_reaches_beyond_the_limit_is_said(made, summary):
    records = [*made.two_principles(TOP, accuracy=0.78), made.record(GaussianNoise(std=1.0), 31, 0.79)]
    passed = hold_to(summary(records), Demands(accuracy_loss=2.5)).criteria[-1]
    assert passed.passed
    assert passed.sentence.startswith("At most, top-k (share 0.05) costs ")
    assert passed.sentence.endswith("the interval of Gaussian noise (std 1) and top-k (share 0.05) reaches beyond.")


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -1.0])
def test_a_limit_that_every_price_or_none_would_pass_is_refused(limit):
    with pytest.raises(InvalidValue, match=r"`--accuracy-loss` must be a number of points, at least 0\. Got "):
        Demands(accuracy_loss=limit)


def test_a_price_that_was_not_measured_fails(made, summary):
    found = summary(made.two_principles(TopK(share=0.05), accuracy=None))
    gate = hold_to(found, Demands(accuracy_loss=2, useless=None))
    assert "what top-k (share 0.05) costs was not measured" in gate.criteria[-1].sentence.lower()
    assert not gate.passed


def test_a_useless_model_is_no_success(made, summary):
    found = summary(made.two_principles(TopK(share=0.05), accuracy=0.1))
    assert str(hold_to(found, Demands())) == "Gate failed: useless."


def test_a_useless_model_hides_no_missing_evidence(made, summary):
    bare = made.record(psnr=38, extra=made.searches(0))
    found = summary([bare, made.record(TOP, psnr=9, extra=made.searches(8), accuracy=0.1)])
    assert found.verdicts[-1].verdict == "useless"
    assert str(hold_to(found, Demands(useless=None))) == "Gate failed: unknown."


def test_scenarios_without_a_name_are_told_apart(made, summary):
    other = made.SCENARIO.model_copy(update={"rounds": 50})
    records = [
        made.record(defence, psnr, scenario=scenario)
        for scenario in (made.SCENARIO, other)
        for defence, psnr in ((None, 38), (TOP, 31))
    ]
    gate = hold_to(summary(records), Demands(accuracy_loss=2))
    for criterion in gate.criteria:
        subjects = [case.subject for case in criterion.cases]
        assert len(set(subjects)) == len(subjects)
    assert [case.subject for case in gate.criteria[2].faults] == [
        f"top-k (share 0.05), images, scenario {number}" for number in (1, 2)
    ]


@pytest.mark.parametrize("records", [[], "failed"])
def test_an_audit_in_which_nothing_was_measured_fails_whatever_is_allowed(made, summary, records):
    records = [made.record(status=Status.FAILED, reason="RuntimeError: no")] if records else []
    gate = hold_to(summary(records), LENIENT)
    assert str(gate) == "Gate failed: measured."
    assert gate.criteria[0].sentence == "Nothing was measured, so nothing can be said."


def test_a_defence_of_which_nothing_is_known_fails(made, summary):
    records = made.two_principles(TopK(share=0.05), accuracy=0.79)
    found = summary(records, defences=[TopK(share=0.05), DPSGD()])
    gate = hold_to(found, LENIENT)
    assert str(gate) == "Gate failed: measured."
    assert gate.criteria[0].sentence.startswith("Nothing was found about DP-SGD")
    assert hold_to(found, LENIENT, defences=["top_k"]).passed


def test_an_unfinished_audit_fails(made, summary):
    records = made.two_principles(TopK(share=0.05), accuracy=0.79)
    gate = hold_to(summary(records, missing=2), Demands())
    assert str(gate) == "Gate failed: unfinished."
    assert gate.criteria[1].sentence == "0 cells failed and 2 are missing, none allowed."
    assert hold_to(summary(records, missing=2), Demands(unfinished=2)).passed


def test_one_defence_or_kind_of_leak_is_chosen_by_name(made, summary):
    records = [
        made.record(psnr=38, labels=0.0),
        made.record(TopK(share=0.3), 31, labels=0.0),
        made.record(GaussianNoise(std=1.0), 31, labels=0.0),
    ]
    found = summary(records)
    for name in ("top_k", "top-k (share 0.3)", "Top-K (share 0.3)"):
        gate = hold_to(found, Demands(), defences=[name], kinds=["images"])
        assert [(one.defence["kind"], one.kind) for one in gate.judged] == [("top_k", "images")]
    assert len(hold_to(found, Demands()).judged) == 4
    with pytest.raises(InvalidValue, match=r"no verdict on a defence `topk`. Did you mean `top_k`\?"):
        hold_to(found, Demands(), defences=["topk"])
    with pytest.raises(InvalidValue, match=r"no verdict on the kind of leak `tokens`. Known are: `images`, `labels`"):
        hold_to(found, Demands(), kinds=["tokens"])


def test_a_kind_of_leak_that_is_asked_for_must_have_been_measured_under_each_defence(made, summary):
    records = [
        made.record(psnr=38, labels=0.0),
        made.record(TopK(share=0.3), 9, labels=0.9),
        made.record(GaussianNoise(std=1.0), psnr=None, labels=0.9),
    ]
    lenient = Demands(leaks=None, unknown=None)
    gate = hold_to(summary(records), lenient, kinds=["images"])
    assert str(gate) == "Gate failed: measured."
    assert gate.criteria[0].sentence.startswith("Nothing was found about images under Gaussian noise (std 1). ")
    assert hold_to(summary(records), lenient, kinds=["labels"]).passed
    assert hold_to(summary(records), lenient, defences=["top_k"], kinds=["images"]).passed


@pytest.mark.parametrize("text", ["some", "-1", "1.5", "", "²"])
def test_what_is_allowed_is_a_word_or_a_number(text):
    with pytest.raises(InvalidValue, match="`--leaks` must be `none`, `any`, or how many are allowed"):
        read_allowed(text, "leaks")
    assert read_allowed(" None ", "leaks") == 0
