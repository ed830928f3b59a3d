import pytest

from leaktight.core.metric import Reading
from leaktight.defences import TopK
from leaktight.findings.advice import advise
from leaktight.findings.flags_soundness import utility_at_majority
from leaktight.findings.rows import rows_of
from leaktight.findings.summary import summarise
from leaktight.findings.utility import ignorance, price_of, utility_name, utility_of, utility_text


def auc(value, **more):
    return Reading(name="auc", value=value, low=value - 0.01, high=value + 0.01, chance=0.5, **more)


@pytest.fixture
def records(made):
    bare = made.record(psnr=38, accuracy=None, extra=(auc(0.8),))
    return [bare, made.record(TopK(), psnr=17, accuracy=None, extra=(auc(0.78),))]


def test_auc_comes_first_and_leakage_never():
    leak, accuracy = auc(0.9, leaks="high"), Reading(name="accuracy", value=0.6)
    assert utility_of([leak, accuracy, auc(0.7)]).value == 0.7
    assert utility_of([leak, accuracy]) == accuracy
    assert utility_of([leak, Reading(name="gradient_ratio", value=3.0)]) is None
    assert utility_of([accuracy.model_copy(update={"layer": "head"})]) is None


def test_what_is_lost_keeps_the_name():
    loss = price_of([(auc(0.8), auc(0.75))])
    assert (loss.name, utility_name(loss)) == ("auc_loss", "test AUC")
    assert loss.value == pytest.approx(0.05)
    assert utility_name(None) == "accuracy"


def test_a_model_judged_by_auc_has_a_price_in_auc(records):
    rows = rows_of(records)
    assert [row.utility.name for row in rows] == ["auc", "auc"]
    assert rows[1].loss.value == pytest.approx(0.02)
    summary = summarise(records)
    assert "The price: 2.0 points of test AUC" in summary.verdict[1]
    _, within, _ = advise(summary, budgets=(0.03,))
    assert within.question == "At most 3 points of test AUC?"
    assert "2.0 points of test AUC" in within.sentence


def test_a_model_that_ranks_no_better_than_guessing_is_useless(made):
    records = [made.record(accuracy=None, extra=(auc(0.505),)), made.record(TopK(), accuracy=None, extra=(auc(0.5),))]
    (flag,) = utility_at_majority(records)
    assert "no better than guessing, so no price in test AUC" in flag.sentence
    (only,) = advise(summarise(records))
    assert "no better than guessing, so a price in test AUC means nothing" in only.sentence
    assert ignorance(None) == ignorance(Reading(name="accuracy", value=0.1))


def test_a_share_is_shown_in_percent_and_an_auc_by_its_digits():
    assert utility_text(Reading(name="accuracy", value=0.8149)) == "81 %"
    assert (utility_text(auc(0.9949)), utility_text(auc(0.9872))) == ("0.995", "0.987")
