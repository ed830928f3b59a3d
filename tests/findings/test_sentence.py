"""Sentences that a reader takes in at once, and that claim no more than was measured."""

import pytest

from leaktight.captures import AsCaptured
from leaktight.core.defence import Chain
from leaktight.core.metric import Reading
from leaktight.core.threat import Knows
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.findings.rows import rows_of
from leaktight.findings.sentence import cost_of, sentence_of
from leaktight.findings.verdict import judge


def said(records, defence=None, kind="images"):
    [found] = [j for j in judge(rows_of(records)) if j.defence == (defence or TopK()) and j.kind.kind == kind]
    return sentence_of(found)


def loss(value, *ends):
    low, high = ends or (None, None)
    return Reading(name="accuracy_loss", value=value, low=low, high=high)


@pytest.mark.parametrize(
    ("reading", "text"),
    [
        (None, "its cost in accuracy was not measured"),
        (loss(0.05), "5.0 points of accuracy"),
        (loss(0.05, 0.01, 0.09), "5.0 points of accuracy (95 % interval 1.0 to 9.0)"),
        (loss(0.01, -0.02, 0.04), "1.0 points of accuracy (95 % interval -2.0 to 4.0, so perhaps nothing)"),
        (loss(-0.03, -0.05, -0.01), "nothing, 3.0 points of accuracy were gained (95 % interval 1.0 to 5.0)"),
    ],
)
def test_a_cost_is_said_with_its_interval_and_no_more(reading, text):
    assert cost_of(reading) == text


def test_no_defence_is_told_by_count_quality_and_setting(made):
    [whole] = [sentence_of(found) for found in judge(rows_of([made.record(psnr=38)]))]
    assert whole == (
        "No defence: leaks. All 8 images can be recognised from one shared message "
        "(median PSNR 38 dB; dlg2019; batches of 1, before training)."
    )
    [batch] = [sentence_of(found) for found in judge(rows_of([made.record(psnr=20, batch_size=4)]))]
    assert "5 of 8 images can be recognised from shared messages of 4 images each" in batch
    [nothing] = [sentence_of(found) for found in judge(rows_of([made.record(psnr=9)]))]
    assert nothing.startswith("No defence: unknown. None of 8 images is recognised (")
    assert nothing.endswith("No attack tried read more than guessing explains. That does not show that none can.")
    [blurred] = [sentence_of(found) for found in judge(rows_of([made.record(psnr=15)]))]
    assert blurred.startswith("No defence: leaks. None of 8 images is recognised (")
    assert blurred.endswith("But the copies have a PSNR of 15.0 dB, where blind guessing gets 11.0 dB.")


def test_one_image_is_singular(made):
    one = tuple(
        reading.model_copy(update={"n": 1, "each": (), "low": None, "high": None})
        for reading in made.image_readings(40.0)
    )
    [found] = judge(rows_of([made.record(psnr=None, extra=one)]))
    assert sentence_of(found).startswith("No defence: leaks. 1 of 1 image can be recognised")
    assert "mean PSNR 40 dB" in sentence_of(found)


def test_each_word_says_what_it_rests_on(made):
    bare = made.record(psnr=38)
    assert said([bare, made.record(TopK(), psnr=31)]).startswith(
        "Top-k (share 0.1): leaks. All 8 images can be recognised from one shared message, against all 8 without it ("
    )
    assert "Top-k (share 0.1): reduced. 1 of 8 images can be recognised" in said([bare, made.record(TopK(), psnr=17)])
    assert "But the copies have a PSNR of 15.0 dB, where blind guessing gets 11.0 dB." in said(
        [bare, made.record(TopK(), psnr=15)]
    )
    calm = said(made.two_principles(TopK(), accuracy=0.7))
    assert "Top-k (share 0.1): not broken. None of 8 images is recognised, against all 8 without it" in calm
    assert "found nothing: adaptive (search over candidates) and learned (learned model)." in calm
    assert "A stronger attack may get through; up to 32 % may be recognised, by the 95 % interval." in calm
    assert calm.endswith("The price: 10.0 points of accuracy (95 % interval 6.2 to 13.7).")
    failed = said([made.record(psnr=9), made.record(TopK(), psnr=8)])
    assert "Top-k (share 0.1): unknown." in failed
    assert "The attack failed even without a defence, so this says nothing." in failed


def test_an_epsilon_is_said_with_what_it_implies_and_an_infinite_one_is_no_guarantee(made):
    bare = made.record()
    assumed = {"dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}
    attacked = {"dp_sgd.attacked.epsilon": 4.38, "dp_sgd.attacked.delta": 1e-5, "dp_sgd.attacked.participations": 1.0}
    finite = made.record(DPSGD(), psnr=9, notes={"dp_sgd.epsilon": 1.0, **assumed, **attacked})
    told = said([bare, finite], DPSGD())
    assert "bounded. None of 8 images is recognised" in told
    assert "At 1 % false alarms no attacker finds more than 2.7 % of the examples that were there." in told
    assert told.endswith(
        "Its privacy budget: epsilon at most 1 at delta 1e-05 (upper bound; Poisson sampling at rate 0.1); "
        "for the attacked messages alone, epsilon at most 4.38 at delta 1e-05 "
        "(upper bound; no amplification is claimed for batches that an audit fixed: an example counts once)."
    )
    endless = made.record(DPSGD(), psnr=9, notes={"dp_sgd.epsilon": float("inf"), **assumed})
    told = said([bare, endless], DPSGD())
    assert "epsilon is infinite at delta 1e-05 (Poisson sampling at rate 0.1): no guarantee." in told
    assert "unknown" in told


def test_a_model_that_learned_nothing_is_said_in_the_same_line(made):
    told = said([made.record(psnr=38), made.record(TopK(), psnr=9, accuracy=0.1)])
    assert "The model learned nothing: it is no better than always naming the commonest class." in told
    assert "learned nothing" not in said([made.record(psnr=38), made.record(TopK(), psnr=9, accuracy=0.5)])


def test_a_model_whose_interval_reaches_chance_may_have_learned_nothing(made):
    told = said([made.record(psnr=38), made.record(TopK(), psnr=9, accuracy=0.11)])
    assert "The model may have learned nothing: it may, by its interval, be no better than always naming" in told


def informed(made, naive, knowing):
    adaptive = {"attack": made.ADAPTIVE, "label": "adaptive", "knows": (Knows.DEFENCE,)}
    return said([made.record(psnr=40), made.record(TopK(), psnr=naive), made.record(TopK(), psnr=knowing, **adaptive)])


def test_an_attacker_who_knows_the_defence_is_named_where_it_gets_more(made):
    assert (
        "An attacker who knows the defence gets all 8 (adaptive), one who ignores it none of 8 (dlg2019)."
        in informed(made, 9, 38)
    )
    assert "one who ignores it 3 of 8 (dlg2019); the intervals overlap." in informed(made, naive=19, knowing=21)
    assert "gets copies of 16 dB (adaptive), one who ignores it copies of 12 dB" in informed(made, 12, 16)
    for naive, knowing in ((4, 9), (30, 30), (38, 9)):
        assert "knows the defence gets" not in informed(made, naive, knowing)


def test_a_luckier_attacker_is_told_of(made):
    team = {"attack": made.TEAM, "label": "team"}
    bare = made.record(psnr=38, extra=made.members({"search": 38}), **team)
    told = said([bare, made.record(TopK(), psnr=9, extra=made.members({"luckiest": 20}), **team)])
    assert "A luckier attacker, who knew for each image which attack to believe, would recognise 5 of 8." in told


def test_labels_that_come_with_an_update_need_no_second_price(made):
    told = said([made.record(labels=0.0), made.record(TopK(), labels=0.25)], kind="labels")
    assert told == (
        "Top-k (share 0.1): leaks. 75 % of the labels behind a message are read correctly, where the best blind answer gets 10 %, "
        "against 100 % without it (dlg2019; batches of 1, before training)."
    )


def test_examples_behind_a_message_are_counted_not_assumed(made):
    """Several local steps, or everybody's examples in a secure sum, are behind one message: more than a batch."""
    [found] = judge(rows_of([made.record(psnr=38, batch_size=2, victims=2)]))
    assert "can be recognised from shared messages of 4 images each" in sentence_of(found)
    assert "batches of 2, 4 examples behind each message, before training" in sentence_of(found)


def test_a_chain_is_named_by_its_links(made):
    chain = Chain(links=(TopK(share=0.1), GaussianNoise(std=0.1)))
    assert said([made.record(), made.record(chain)], chain).startswith(
        "Top-k (share 0.1) + Gaussian noise (std 0.1): leaks."
    )


def samples(made, defence, one, whichever, **more):
    readings = [
        Reading(name=name, value=value, low=value - 0.02, high=value + 0.02, n=100, chance=chance, leaks="high")
        for name, value, chance in (("recognised", one, 0.1), ("recognised_any", whichever, 0.5))
    ]
    return made.record(defence, psnr=None, extra=tuple(readings), **more)


def test_samples_are_counted_by_what_they_show(made):
    bare = samples(made, None, 0.99, 0.99)
    told = said([bare, samples(made, TopK(), 0.0, 0.97)], kind="samples")
    assert (
        "None of 100 made-up pictures show the class asked for, where 10 would by chance; but 97 % show some class of "
        "the attacked, where guessing gets 50 %, against 99 of 100 without it"
    ) in told
    runs = [samples(made, TopK(), 0.0, whichever, seed=seed) for seed, whichever in enumerate((0.98, 0.0, 0.0))]
    told = said([bare, *runs], kind="samples")
    # A generator that makes one picture is recognised wholly or not at all: one training run of three proves nothing.
    assert "show some class of the attacked" not in told


def test_captured_messages_have_no_price_that_could_be_missing(made):
    records = [made.record(psnr=38, accuracy=None), made.record(AsCaptured(), psnr=38, accuracy=None)]
    [sentence] = [sentence_of(one) for one in judge(rows_of(records)) if isinstance(one.defence, AsCaptured)]
    assert sentence.startswith("As captured: leaks.")
    assert "accuracy" not in sentence


def test_what_nobody_graded_is_told_for_each_attack(made):
    def left(value, label):
        readings = (Reading(name="objective", value=value, n=4), Reading(name="diverged", value=0.0, n=4))
        return made.record(psnr=None, accuracy=None, extra=readings, label=label)

    [found] = judge(rows_of([left(0.5, "weak"), left(1e-9, "strong")]))
    assert sentence_of(found) == (
        "No defence: unknown. The attack strong was left with 1e-09 of its objective (strong; batches of 1, before "
        "training). The attack weak was left with 0.5 of its objective. Nobody compared the guesses with the "
        "originals: add the private batches with `--truth`."
    )
