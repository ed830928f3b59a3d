"""What comparisons say: a price is what is paid, and a gain is none."""

import pytest

from leaktight.core.metric import Reading
from leaktight.defences import TopK
from leaktight.findings.comparison_words import say_price
from leaktight.findings.summary import summarise


@pytest.mark.parametrize(
    ("accuracy", "said"),
    [(0.75, "5.0 points of accuracy"), (0.79, "1.0 points of accuracy"), (0.81, "none seen")],
)
def test_a_price_is_never_below_nothing(made, accuracy, said):
    judgement = summarise([made.record(psnr=38), made.record(TopK(), psnr=17, accuracy=accuracy)]).judgements[1]
    assert say_price(judgement) == said


def test_what_is_surely_gained_is_said(made):
    judgement = summarise([made.record(accuracy=0.6), made.record(TopK(), psnr=17, accuracy=0.8)]).judgements[1]
    loss = judgement.worst.loss
    assert isinstance(loss, Reading)
    assert loss.high < 0
    assert say_price(judgement) == "20.0 points of accuracy gained"
