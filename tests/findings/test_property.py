"""Verdicts about a property name who tells it, how well, from what, and what each defence does about it at what price."""

import pytest

from leaktight.attacks import PropertyInference
from leaktight.core.metric import Reading
from leaktight.core.threat import ThreatModel
from leaktight.data import Npz, Parity
from leaktight.defences import GaussianNoise
from leaktight.findings.advice import advise
from leaktight.findings.flags_attacks import attack_at_chance, leakage_grows
from leaktight.findings.flags_soundness import null_above_chance
from leaktight.findings.rows import rows_of
from leaktight.findings.sentence import sentence_of
from leaktight.findings.summary import summarise
from leaktight.findings.verdict import judge
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.probes import Sensitivity

SCENARIO = Federated(data=Npz(path="faces.npz", private_property="Hat"), model=MLP())
WEAK, STRONG = GaussianNoise(std=0.01), GaussianNoise(std=0.1)
ATTACK = PropertyInference(layers="each")


def auc(value, spread=0.05, layer=None):
    ends = {"low": max(0.0, value - spread), "high": min(1.0, value + spread)}
    return Reading(name="property_auc", value=value, n=40, chance=0.5, leaks="high", against="raw", layer=layer, **ends)


@pytest.fixture
def record(made):
    def make(
        defence, value, accuracy=0.9, layers=None, seat="server", attack=ATTACK, label="property inference", **more
    ):
        settings = {"scenario": SCENARIO, "batch_size": 16, "stage": "training", **more}
        found = made.record(
            defence,
            psnr=None,
            accuracy=accuracy,
            attack=attack,
            label=label,
            extra=(auc(value), *(auc(told, layer=layer) for layer, told in (layers or {}).items())),
            **settings,
        )
        probe = found.cell.probe.model_copy(update={"threat": ThreatModel(seat=seat, knows=attack.needs)})
        return found.model_copy(update={"cell": found.cell.model_copy(update={"probe": probe})})

    return make


def test_without_defence_the_property_is_named_with_its_auc(record):
    (found,) = judge(rows_of([record(None, 0.93)]))
    assert found.verdict == "leaks"
    assert sentence_of(found) == (
        "No defence: leaks. From one shared message the server tells whether its examples have the property `Hat` "
        "with AUC 0.93 (0.88 to 0.98; guessing gets 0.5) (property inference on the whole message; batches of 16, "
        "throughout training)."
    )


@pytest.mark.parametrize(
    ("seat", "who"),
    [("server", "the server"), ("wire", "someone on the wire"), ("client-2", "the participant client-2")],
)
def test_the_attacker_is_named_by_its_seat(record, seat, who):
    (found,) = judge(rows_of([record(None, 0.93, seat=seat)]))
    assert f"From one shared message {who} tells whether" in sentence_of(found)


def test_a_property_is_named_by_its_source(record):
    (found,) = judge(rows_of([record(None, 0.93, scenario=Federated(data=Parity(), model=MLP()))]))
    assert "whether its examples have the property `6 or more` with AUC 0.93" in sentence_of(found)


def test_a_layer_with_a_larger_auc_is_mentioned_not_judged(record):
    (found,) = judge(rows_of([record(None, 0.9, layers={"conv1": 0.6, "head": 0.95})]))
    assert found.reading.value == 0.9
    assert "on the whole message; head alone 0.95; batches of 16" in sentence_of(found)


def test_nothing_told_undefended_is_not_called_safe(record):
    (found,) = judge(rows_of([record(None, 0.52)]))
    assert found.verdict == "unknown"
    assert "AUC 0.52 (0.47 to 0.57; guessing gets 0.5)" in sentence_of(found)
    assert "That does not show that none can" in sentence_of(found)


@pytest.mark.parametrize(
    ("value", "verdict", "words"),
    [
        (0.52, "unknown", "No attack counts as evidence: property inference does not model this defence."),
        (0.7, "reduced", "with AUC 0.70 (0.65 to 0.75; guessing gets 0.5), against 0.93 without it"),
        (0.9, "leaks", "with AUC 0.90 (0.85 to 0.95; guessing gets 0.5), against 0.93 without it"),
        (
            0.1,
            "leaks",
            "with AUC 0.10 (0.05 to 0.15; guessing gets 0.5), as good as 0.90 the other way round, against 0.93",
        ),
    ],
)
def test_a_defence_is_set_beside_none_with_its_price(record, value, verdict, words):
    _, found = judge(rows_of([record(None, 0.93), record(STRONG, value, accuracy=0.87)]))
    assert found.verdict == verdict
    assert words in sentence_of(found)
    assert "The price: 3.0 points of accuracy (95 % interval" in sentence_of(found)


def test_nothing_is_stopped_while_a_single_layer_tells(record):
    _, found = judge(rows_of([record(None, 0.93), record(STRONG, 0.52, layers={"conv1": 0.5, "head": 0.7})]))
    assert found.verdict == "reduced"
    assert "with AUC 0.70" in sentence_of(found)
    assert "(property inference on the layer head alone" in sentence_of(found)


def test_the_strongest_attack_counts(record):
    attacks = {label: PropertyInference(classifier=label) for label in ("logistic", "network")}
    values = {"logistic": 0.8, "network": 0.6}
    defended = [record(STRONG, values[label], attack=attack, label=label) for label, attack in attacks.items()]
    *_, found = judge(rows_of([record(None, 0.95), *defended]))
    assert (found.worst.attack, found.reading.value) == ("logistic", 0.8)


def test_without_anything_to_compare_with_nothing_is_claimed(record):
    (alone,) = judge(rows_of([record(STRONG, 0.52)]))
    assert alone.missing.startswith("Nothing was measured without a defence")
    _, both = judge(rows_of([record(None, 0.51), record(STRONG, 0.52)]))
    assert (both.verdict, both.missing) == (
        "unknown",
        "The attack failed even without a defence, so this says nothing.",
    )


def test_an_attacker_who_knows_the_defence_is_set_beside_one_who_does_not(record):
    knowing = PropertyInference(models_defence=True)
    records = [record(None, 0.95), record(STRONG, 0.6), record(STRONG, 0.8, attack=knowing, label="knowing")]
    *_, found = judge(rows_of(records))
    assert (
        "An attacker who knows the defence gets 0.80 (knowing), one who ignores it 0.60 (property inference)."
        in sentence_of(found)
    )


def test_images_and_property_are_judged_apart(record, made):
    images = [made.record(defence, psnr, scenario=SCENARIO) for defence, psnr in ((None, 38), (STRONG, 8))]
    records = [*images, record(None, 0.95), record(STRONG, 0.7, accuracy=0.8)]
    summary = summarise(records)
    assert [(j.defence.kind, j.kind.kind, j.verdict) for j in summary.judgements] == [
        ("none", "images", "leaks"),
        ("gaussian_noise", "images", "unknown"),
        ("none", "property", "leaks"),
        ("gaussian_noise", "property", "reduced"),
    ]
    questions = [item.question for item in advise(summary)]
    assert questions[0] == "Images: What was tightly bounded or not broken, at the lowest price?"
    assert questions[2] == "Private property: What was tightly bounded or not broken, at the lowest price?"


def test_advice_takes_the_least_leak_within_the_budget(record):
    records = [record(None, 0.95), record(WEAK, 0.7, accuracy=0.895), record(STRONG, 0.6, accuracy=0.86)]
    _, *within, limits = advise(summarise(records))
    assert [item.question for item in within] == ["At most 1 or 2 points of accuracy?", "At most 5 points of accuracy?"]
    assert [item.defence for item in within] == [WEAK, STRONG]
    assert "property inference. Stronger attacks exist" in limits.sentence


def test_flags_speak_of_properties_too(record):
    (flag,) = leakage_grows([record(None, 0.95), record(WEAK, 0.6), record(STRONG, 0.8)])
    assert "from Gaussian noise (std 0.01) to Gaussian noise (std 0.1)" in flag.sentence
    assert [flag.name for flag in attack_at_chance([record(None, 0.51)])] == ["attack_at_chance"]
    assert attack_at_chance([record(None, 0.9, layers={"conv1": 0.5})]) == []


def test_a_null_view_is_for_attacks(record, made):
    (flag,) = null_above_chance([record(None, 0.9, purpose="null")])
    assert "does better than chance in property AUC" in flag.sentence
    public = Reading(
        name="property_sensitivity_f", value=3.0, low=2.9, high=3.1, n=16, chance=1.0, leaks="high", layer="head"
    )
    quiet = made.record(psnr=None, probe=Sensitivity(), purpose="null", extra=(public,))
    assert null_above_chance([quiet]) == []


def test_a_layer_that_cannot_be_inverted_is_no_reason_to_doubt(made):
    one = made.GEIPING.model_copy(update={"layers": ("head",)})
    assert attack_at_chance([made.record(None, 8.0, attack=one, label="head")]) == []
    assert len(attack_at_chance([made.record(None, 8.0, attack=made.GEIPING, label="all")])) == 1
