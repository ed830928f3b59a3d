"""Verdicts about labels name who can tell them, from what, how well, and against what guessing gets."""

import pytest

from leaktight.attacks import Clustering, Direction, GradientNorm
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import SumKL
from leaktight.findings.advice import advise
from leaktight.findings.flags_attacks import attack_at_chance, leakage_grows, only_non_adaptive
from leaktight.findings.flags_contests import cheap_beats_expensive
from leaktight.findings.passes import passes_of
from leaktight.findings.rows import rows_of
from leaktight.findings.sentence import sentence_of
from leaktight.findings.summary import summarise
from leaktight.findings.verdict import judge

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
            extra=(
                *readings(value, **more),
                Reading(name="auc", value=accuracy, low=accuracy - 0.01, high=accuracy + 0.01),
            ),
        )

    return make


def test_the_feature_party_can_tell_labels_from_the_norm_alone(record):
    (found,) = judge(rows_of([record(None, 0.97)]))
    assert (found.kind.kind, found.verdict) == ("labels", "leaks")
    assert sentence_of(found) == (
        "No defence: leaks. The feature party tells labels with AUC 0.97 (0.95 to 0.99) from the length of gradients "
        "alone, where guessing gets 0.50 (95 % quantile over steps 1.00; norm, at the cut; batches of 128, "
        "throughout training)."
    )


@pytest.mark.parametrize(
    ("attack", "seat", "words"),
    [
        (DIRECTION, "feature-party", "The feature party tells labels"),
        (DIRECTION, "feature-party", "from the direction of gradients, with one known positive"),
        (CLUSTERING, "wire", "Someone on the wire tells labels"),
        (CLUSTERING, "wire", "without any known label"),
    ],
)
def test_each_attack_says_what_it_needs(record, attack, seat, words):
    (found,) = judge(rows_of([record(None, 0.97, attack, attack.kind, seat)]))
    assert words in sentence_of(found)


def test_undefended_labels_that_nobody_told_are_not_called_safe(record):
    (found,) = judge(rows_of([record(None, 0.51)]))
    assert found.verdict == "unknown"
    assert "That does not show that none can." in sentence_of(found)


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.51, "unknown"), (0.6, "reduced"), (0.70, "reduced"), (0.73, "leaks"), (0.94, "leaks")]
)
def test_half_of_what_lies_beyond_chance_decides(record, value, verdict):
    _, found = judge(rows_of([record(None, 0.95), record(SumKL(bound=0.4), value, accuracy=0.88, tail=value)]))
    assert found.verdict == verdict
    assert f"SumKL (bound 0.4): {verdict}. The feature party tells labels with AUC {value:.2f}" in sentence_of(found)
    assert "against 0.95 without it" in sentence_of(found)
    assert sentence_of(found).endswith("The price: 2.0 points of test AUC (95 % interval 0.6 to 3.4).")


def test_nothing_is_protected_that_leaks_in_the_worst_steps(record):
    _, found = judge(rows_of([record(None, 0.95), record(SumKL(bound=0.4), 0.51, tail=0.8)]))
    assert found.verdict == "reduced"
    assert "But in the worst steps they are told with AUC 0.80, where guessing gets 0.60." in sentence_of(found)


def test_an_attack_that_succeeds_in_the_worst_steps_counts_before_one_that_never_does(record):
    defended = [record(SumKL(), 0.515, DIRECTION, "direction"), record(SumKL(), 0.51, NORM, "norm", tail=0.8)]
    *_, found = judge(rows_of([record(None, 0.95), *defended]))
    assert (found.verdict, found.worst.attack) == ("reduced", "norm")


def test_without_defence_the_worst_steps_are_a_leak(record):
    (found,) = judge(rows_of([record(None, 0.51, tail=0.8)]))
    assert found.verdict == "leaks"


def test_an_auc_far_below_a_half_is_neither_safe_nor_stopped(record):
    (bare,) = judge(rows_of([record(None, 0.09)]))
    assert bare.verdict == "leaks"
    assert "with AUC 0.09 (0.07 to 0.11), which is as good as 0.91 the other way round" in sentence_of(bare)
    _, found = judge(rows_of([record(None, 0.95), record(SumKL(), 0.2)]))
    assert found.verdict == "leaks"


def test_without_anything_to_compare_with_nothing_is_claimed(record):
    (alone,) = judge(rows_of([record(SumKL(), 0.51)]))
    assert alone.missing == "Nothing was measured without a defence here, so there is nothing to compare with."
    _, both = judge(rows_of([record(None, 0.5), record(SumKL(), 0.51)]))
    assert (both.verdict, both.missing) == (
        "unknown",
        "The attack failed even without a defence, so this says nothing.",
    )


def test_a_signed_attack_beyond_chance_counts_before_an_unsigned_one_at_chance(record):
    defended = [
        record(SumKL(), 0.57, CLUSTERING, "clustering", chance=0.56),
        record(SumKL(), 0.55, NORM, "norm", spread=0.02),
    ]
    *_, found = judge(rows_of([record(None, 0.95), *defended]))
    assert (found.verdict, found.worst.attack) == ("reduced", "norm")


def test_a_leak_before_the_cut_is_a_leak(record):
    bare, defended = record(None, 0.95), record(SumKL(), 0.51)
    deeper = readings(0.7, layer="linear1")
    defended = defended.model_copy(update={"readings": (*defended.readings, *deeper)})
    _, found = judge(rows_of([bare, defended]))
    assert found.verdict == "reduced"
    assert "95 % quantile over steps 0.80; norm, at the layer linear1" in sentence_of(found)


def passes(value, each=(), features=None, **more):
    common = {"leaks": "high", "against": "raw", "n": 400, "chance": 0.5}
    found = [
        Reading(name="leak_auc_passes", value=value, low=value - 0.02, high=min(1.0, value + 0.02), each=each, **common)
    ]
    beside = {"leak_auc_features": features, **more}
    return (*found, *(Reading(name=name, value=one) for name, one in beside.items() if one is not None))


def with_passes(record, *more):
    return record.model_copy(update={"readings": (*record.readings, *more)})


def test_scores_added_up_over_passes_decide(record):
    bare = with_passes(record(None, 0.9), *passes(0.99))
    defended = with_passes(record(SumKL(), 0.6), *passes(0.88, each=(0.61, 0.8, 0.88)))
    _, found = judge(rows_of([bare, defended]))
    assert (found.verdict, found.reading.name) == ("leaks", "leak_auc_passes")
    assert "tells labels with AUC 0.88 (0.86 to 0.90) after 3 passes" in sentence_of(found)
    single = with_passes(record(SumKL(), 0.9), *passes(0.5))
    assert judge(rows_of([bare, single]))[1].reading.value == 0.5


def test_what_features_alone_give_is_no_leak(record):
    bare = with_passes(record(None, 0.9), *passes(0.99, features=0.7))
    for value, verdict in ((0.7, "unknown"), (0.75, "reduced"), (0.9, "leaks")):
        defended = with_passes(record(SumKL(), 0.5, tail=0.5), *passes(value, features=0.7))
        _, found = judge(rows_of([bare, defended]))
        assert (found.verdict, found.reading.chance) == (verdict, 0.7)


def test_all_that_is_known_of_passes_stands_in_one_line(record):
    more = {"leak_auc_theory": 0.89, "leak_auc_ceiling": 0.68}
    defended = with_passes(record(SumKL(), 0.6), *passes(0.88, each=(0.61, 0.88), features=0.55, **more))
    [row] = rows_of([defended])
    assert str(passes_of(row)) == (
        "norm, at the cut (2 passes): one message 0.60, all passes 0.88, features alone 0.55, theory 0.89, ceiling of "
        "the bound 0.68"
    )
    assert passes_of(row).curve == (0.61, 0.88)
    assert passes_of(rows_of([record(None, 0.9)])[0]) is None


def test_advice_takes_the_least_leak_within_the_budget(record):
    records = [
        record(None, 0.95),
        record(SumKL(bound=0.1), 0.7, accuracy=0.895),
        record(SumKL(bound=0.3), 0.6, accuracy=0.86),
        record(SumKL(bound=0.4), 0.51, accuracy=0.86, tail=0.5),
    ]
    protects, one, two, five, limits = advise(summarise(records))
    assert protects.defence is None
    assert "sumKL (bound 0.1): reduced; the feature party tells labels with AUC 0.70" in one.sentence
    assert "reaches beyond the budget" in one.sentence
    assert "sumKL (bound 0.1)" in two.sentence
    assert "sumKL (bound 0.3)" in five.sentence
    assert "norm. Stronger attacks exist" in limits.sentence


def test_flags_speak_of_labels_too(record):
    grows = [record(None, 0.95), record(SumKL(bound=0.1), 0.6), record(SumKL(bound=0.4), 0.8)]
    (flag,) = leakage_grows(grows)
    assert "from sumKL (bound 0.1) to sumKL (bound 0.4)" in flag.sentence
    assert [flag.name for flag in only_non_adaptive(grows)] == ["only_non_adaptive"]
    assert [flag.name for flag in attack_at_chance([record(None, 0.51)])] == ["attack_at_chance"]
    assert attack_at_chance(grows) == cheap_beats_expensive(grows) == []
