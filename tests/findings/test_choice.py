"""Choice: nothing that another dominates on the printed numbers, and nothing that cannot be told apart passed over."""

from leaktight.core.metric import Reading
from leaktight.defences import DPSGD, GaussianNoise, SumKL, TopK
from leaktight.findings.advice import advise
from leaktight.findings.choice import choose, dominates
from leaktight.findings.headline import headline_of
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


def under_dp_sgd(made, accuracy):
    """DP-SGD under which two attacks that work without it find nothing, and whose epsilon promises next to nothing."""
    notes = {"dp_sgd.epsilon": 9.0, "dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}
    records = made.two_principles(DPSGD(), accuracy=accuracy)
    return [one.model_copy(update={"notes": notes}) if one.cell.defence == DPSGD() else one for one in records]


def test_an_epsilon_that_promises_little_takes_nothing_from_what_attacks_show(made):
    reduced = made.record(GaussianNoise(), psnr=17, accuracy=0.74, label="adaptive", attack=made.ADAPTIVE)
    summary = summarise([*under_dp_sgd(made, accuracy=0.75), reduced])
    private, noisy = (
        next(one for one in summary.judgements if one.defence.kind == kind) for kind in ("dp_sgd", "gaussian_noise")
    )
    assert (private.verdict, private.is_good, private.withstood, private.may_be_advised) == (
        "bounded",
        False,
        True,
        True,
    )
    assert dominates(private, noisy)
    assert choose([private, noisy]).best is private
    protects, within, _ = advise(summary, (0.2,))
    assert protects.defence == within.defence == DPSGD()
    assert "not broken by the attacks tried, though its epsilon promises next to nothing" in within.sentence
    assert headline_of(summary).endswith(
        "was not broken by the attacks tried, for about 5.0 points of accuracy. Its epsilon promises next to nothing."
    )


def test_of_two_leaks_that_are_printed_alike_the_cheaper_dominates(made):
    def told(auc, low):
        reading = {"low": low, "high": auc + 0.02, "chance": 0.5, "leaks": "high", "n": 20, "against": "raw"}
        return (Reading(name="leak_auc", value=auc, **reading),)

    records = [
        made.record(psnr=None, extra=told(0.97, 0.95)),
        made.record(SumKL(bound=0.4), psnr=None, accuracy=0.79, extra=told(0.6541, 0.63)),
        made.record(SumKL(bound=0.2), psnr=None, accuracy=0.78, extra=told(0.6509, 0.63)),
    ]
    found = judged(records)
    cheap, dear = sorted(found, key=lambda one: one.worst.loss.value)
    assert {one.verdict for one in found} == {"reduced"}
    assert dominates(cheap, dear)
    assert choose(found).best is cheap


def test_what_looks_as_good_and_was_not_shown_to_help_is_said_to_be_that(made):
    records = [
        made.record(psnr=38),
        made.record(GaussianNoise(), psnr=17, accuracy=0.78),
        made.record(TopK(), psnr=9, accuracy=0.79),
    ]
    within = next(one for one in advise(summarise(records), (0.05,)) if "At most" in one.question)
    assert within.defence == GaussianNoise()
    assert "By the numbers alone top-k (share 0.1) leaks no more and costs no more; that it helps was not shown." in (
        within.sentence
    )
    dearer = [*records[:2], made.record(TopK(), psnr=9, accuracy=0.7)]
    within = next(one for one in advise(summarise(dearer), (0.05,)) if "At most" in one.question)
    assert "By the numbers alone" not in within.sentence
