"""Verdicts about labels name who can tell them, from what, how well, and against what guessing gets."""

import pytest

from leaktight.attacks import Clustering, Direction, GradientNorm
from leaktight.audit.advice import advise
from leaktight.audit.flags_attacks import attack_at_chance, leakage_grows, only_non_adaptive
from leaktight.audit.flags_contests import cheap_beats_expensive
from leaktight.audit.rows import rows_of
from leaktight.audit.summary import summarise
from leaktight.audit.verdict import judge
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import SumKL

NORM, DIRECTION, CLUSTERING = GradientNorm(), Direction(), Clustering()


def readings(value, chance=0.5, spread=0.02, layer=None, tail=None):
    common = {"n": 40, "leaks": "high", "against": "raw", "layer": layer}
    tail = min(1.0, value + 0.1) if tail is None else tail
    high = min(1.0, value + spread)
    return (
        Reading(name="leak_auc", value=value, low=value - spread, high=high, chance=chance, **common),
        Reading(name="leak_auc_q95", value=tail, low=tail - spread, high=tail, chance=chance + 0.1, **common),
    )


@pytest.fixture
def record(made):
    def make(defence, value, attack=NORM, label="norm", seat="feature-party", accuracy=0.9, **more):
        threat = ThreatModel(seat=seat, knows=frozenset({Knows.HINTS}))
        return made.record(
            defence,
            psnr=None,
            accuracy=None,
            label=label,
            probe=Attempt(attack=attack, threat=threat),
            batch_size=128,
            stage="training",
            extra=(*readings(value, **more), Reading(name="auc", value=accuracy, low=accuracy - 0.01, high=accuracy + 0.01)),
        )

    return make


def test_the_feature_party_can_tell_labels_from_the_norm_alone(record):
    (found,) = judge(rows_of([record(None, 0.97)]))
    assert found.tone == "leaks"
    assert found.sentence == (
        "Without defence, the feature party can tell positive from negative labels with AUC 0.97 from the length of gradients alone "
        "(95 % quantile over steps 1.00; guessing gets 0.50; norm, at the cut; batches of 128, throughout training)."
    )


@pytest.mark.parametrize(
    ("attack", "seat", "words"),
    [
        (DIRECTION, "feature-party", "the feature party can tell"),
        (DIRECTION, "feature-party", "from the direction of gradients, with one known positive"),
        (CLUSTERING, "wire", "someone on the wire can tell"),
        (CLUSTERING, "wire", "without any known label"),
    ],
)
def test_each_attack_says_what_it_needs(record, attack, seat, words):
    (found,) = judge(rows_of([record(None, 0.97, attack, attack.kind, seat)]))
    assert words in found.sentence


def test_undefended_labels_that_nobody_told_are_not_called_safe(record):
    (found,) = judge(rows_of([record(None, 0.51)]))
    assert found.tone == "unknown"
    assert "no attack tried told labels measurably better than guessing: AUC 0.51 where guessing gets 0.50" in found.sentence
    assert "That does not show that none can" in found.sentence


@pytest.mark.parametrize(
    ("value", "tone", "words"),
    [
        (
            0.51,
            "unbroken",
            "SumKL (bound 0.4) was not broken by the attack tried (norm): none told labels measurably better than guessing, AUC 0.51",
        ),
        (0.51, "unbroken", "where guessing gets 0.50, against 0.95 without it; up to 0.53 is possible, by the 95 % interval"),
        (0.70, "reduces", "reduced the leak: the feature party can still tell labels with AUC 0.70"),
        (0.94, "leaks", "did not measurably stop the leak: the feature party can tell labels with AUC 0.94"),
    ],
)
def test_a_defence_is_set_beside_none(record, value, tone, words):
    _, found = judge(rows_of([record(None, 0.95), record(SumKL(bound=0.4), value, accuracy=0.88)]))
    assert found.tone == tone
    assert words in found.sentence
    assert found.sentence.endswith("The price: 2.0 points of test AUC (95 % interval 0.6 to 3.4).")


def test_nothing_is_stopped_that_leaks_in_the_worst_steps(record):
    _, found = judge(rows_of([record(None, 0.95), record(SumKL(bound=0.4), 0.51, tail=0.8)]))
    assert found.tone == "reduces"
    assert (
        "reduced the leak: the feature party can still tell labels in the worst steps (AUC 0.80 where guessing gets 0.60; in the "
        "median step 0.51) from the length of gradients alone, against 0.95 without it"
    ) in found.sentence


def test_an_attack_that_succeeds_in_the_worst_steps_counts_before_one_that_never_does(record):
    defended = [record(SumKL(), 0.515, DIRECTION, "direction"), record(SumKL(), 0.51, NORM, "norm", tail=0.8)]
    *_, found = judge(rows_of([record(None, 0.95), *defended]))
    assert (found.tone, found.worst.attack) == ("reduces", "norm")


def test_without_defence_the_worst_steps_are_a_leak(record):
    (found,) = judge(rows_of([record(None, 0.51, tail=0.8)]))
    assert found.tone == "leaks"
    assert "can tell positive from negative labels in the worst steps (AUC 0.80 where guessing gets 0.60;" in found.sentence


def test_an_auc_far_below_a_half_is_neither_safe_nor_stopped(record):
    (bare,) = judge(rows_of([record(None, 0.09)]))
    assert bare.tone == "leaks"
    assert "with AUC 0.09, which is as good as 0.91 to whom it is known that larger scores mean negatives" in bare.sentence
    _, found = judge(rows_of([record(None, 0.95), record(SumKL(), 0.2)]))
    assert found.tone == "leaks"
    assert "can tell labels with AUC 0.20, which is as good as 0.80 the other way round, from the length" in found.sentence


def test_without_anything_to_compare_with_nothing_is_claimed(record):
    (alone,) = judge(rows_of([record(SumKL(), 0.51)]))
    assert "without defence nothing was measured to compare with" in alone.sentence
    _, both = judge(rows_of([record(None, 0.5), record(SumKL(), 0.51)]))
    assert (both.tone, "nothing was told without it either" in both.sentence) == ("unknown", True)


def test_a_signed_attack_beyond_chance_counts_before_an_unsigned_one_at_chance(record):
    defended = [
        record(SumKL(), 0.57, CLUSTERING, "clustering", chance=0.56),
        record(SumKL(), 0.55, NORM, "norm", spread=0.02),
    ]
    *_, found = judge(rows_of([record(None, 0.95), *defended]))
    assert (found.tone, found.worst.attack) == ("reduces", "norm")


def test_a_leak_before_the_cut_is_a_leak(record, made):
    bare, defended = record(None, 0.95), record(SumKL(), 0.51)
    deeper = readings(0.8, layer="linear1")
    defended = defended.model_copy(update={"readings": (*defended.readings, *deeper)})
    _, found = judge(rows_of([bare, defended]))
    assert found.tone == "reduces"
    assert "AUC 0.80" in found.sentence
    assert "95 % quantile over steps 0.90" in found.sentence
    assert "norm, at the layer linear1" in found.sentence


def test_advice_takes_the_least_leak_within_the_budget(record):
    records = [
        record(None, 0.95),
        record(SumKL(bound=0.1), 0.8, accuracy=0.895),
        record(SumKL(bound=0.4), 0.51, accuracy=0.86),
    ]
    unbroken, one, *_, five, limits = advise(summarise(records))
    assert (
        "SumKL (bound 0.4): leak AUC 0.51 under the strongest attack tried, at a price of 4.0 points of test AUC"
        in unbroken.sentence
    )
    assert "sumKL (bound 0.1)" in one.sentence
    assert "sumKL (bound 0.4)" in five.sentence
    assert "norm. Stronger attacks exist" in limits.sentence


def test_flags_speak_of_labels_too(record):
    grows = [record(None, 0.95), record(SumKL(bound=0.1), 0.6), record(SumKL(bound=0.4), 0.8)]
    (flag,) = leakage_grows(grows)
    assert "from sumKL (bound 0.1) to sumKL (bound 0.4)" in flag.sentence
    assert [flag.name for flag in only_non_adaptive(grows)] == ["only_non_adaptive"]
    assert [flag.name for flag in attack_at_chance([record(None, 0.51)])] == ["attack_at_chance"]
    assert attack_at_chance(grows) == cheap_beats_expensive(grows) == []
