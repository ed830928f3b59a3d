"""Choice: nothing that another dominates on the printed numbers, and nothing that cannot be told apart passed over."""

from leaktight.defences import GaussianNoise, TopK
from leaktight.findings.advice import advise
from leaktight.findings.choice import choose, dominates
from leaktight.findings.summary import summarise


def judged(records):
    return [one for one in summarise(records).judgements if one.defence != records[0].cell.defence]


def test_what_is_worse_in_leak_and_price_is_dominated(made):
    bare = made.record(psnr=38)
    better, worse = judged(
        [
            bare,
            made.record(GaussianNoise(), psnr=17, accuracy=0.79),
            made.record(TopK(), psnr=18, accuracy=0.78),
        ]
    )
    assert dominates(better, worse)
    assert not dominates(worse, better)
    assert choose([worse, better]).best is better


def test_what_cannot_be_told_apart_is_named_with_the_cheaper(made):
    records = [
        made.record(psnr=38),
        made.record(GaussianNoise(), psnr=17, accuracy=0.78),
        made.record(TopK(), psnr=18, accuracy=0.79),
    ]
    choice = choose(judged(records))
    assert [one.defence.kind for one in (choice.best, *choice.alike)] == ["gaussian_noise", "top_k"]
    within = next(one for one in advise(summarise(records), (0.05,)) if "At most" in one.question)
    assert "By their intervals, Gaussian noise" in within.sentence
    assert "cannot be told apart; the cheaper is top-k (share 0.1), at 1.0 points" in within.sentence


def test_nothing_beyond_the_budget_is_chosen(made):
    records = [made.record(psnr=38), made.record(TopK(), psnr=17, accuracy=0.7)]
    assert choose(judged(records), budget=0.05) is None
    assert choose(judged(records)).best.defence == TopK()
