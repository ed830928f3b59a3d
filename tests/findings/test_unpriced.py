"""Where the model is no use even without defence, no price, no CAP and no advice are given, and the reason is."""

import pytest

from leaktight.cli.outcome import caps
from leaktight.data import Digits, RareDigit
from leaktight.defences import GaussianNoise, TopK
from leaktight.findings.advice import advise
from leaktight.findings.characteristic import leading_curves
from leaktight.findings.flags_soundness import utility_at_majority
from leaktight.findings.rows import UNTRAINED, rows_of
from leaktight.findings.summary import summarise
from leaktight.learning import FedAvg, Federated, Split
from leaktight.learning.standalone import Standalone
from leaktight.models import MLP

USELESS = "even without defence the model is no better than always naming the commonest class"


def federated(rounds=0):
    return Federated(data=Digits(), model=MLP(), protocol=FedAvg(), rounds=rounds)


@pytest.fixture(params=["untrained", "useless"])
def unpriced(request, made):
    """Records of a sweep, and why they have no price."""
    if request.param == "untrained":
        return made.sweep(scenario=federated()), UNTRAINED
    records = made.sweep()
    bare = made.record(accuracy=0.1, labels=0.25, extra=made.characteristic(None, 0.01, 0.5))
    return [bare, *records[1:]], USELESS


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_scenario_without_rounds_says_so(rounds):
    split = Split(data=RareDigit(), model=MLP(hidden=(16,)), label_party=("r0*",), rounds=rounds)
    alone = Standalone(federation=federated(rounds))
    assert [one.untrained for one in (federated(rounds), split, alone)] == [rounds == 0] * 3


def test_nothing_is_added_to_what_a_scenario_is_known_by():
    assert "untrained" not in federated().to_dict()


def test_no_row_has_a_price_and_each_says_why(unpriced):
    records, why = unpriced
    rows = rows_of(records)
    assert {row.unpriced for row in rows} == {why}
    assert {row.loss for row in rows} == {None}


def test_the_accuracy_of_an_untrained_model_is_not_shown(made):
    """However many digits it happens to name rightly."""
    rows = rows_of(
        [made.record(scenario=federated(), accuracy=0.8), made.record(TopK(), scenario=federated(), accuracy=0.8)]
    )
    assert [(row.utility, row.useless) for row in rows] == [(None, False)] * 2
    assert all(row.reading("psnr", "raw") for row in rows)


def test_a_trained_model_that_is_no_use_keeps_its_accuracy(made):
    rows = rows_of([made.record(accuracy=0.1), made.record(TopK(), accuracy=0.1)])
    assert [row.utility.value for row in rows] == [0.1, 0.1]


def test_the_verdict_names_no_price(unpriced):
    records, why = unpriced
    defended = summarise(records).verdict[1:7]
    assert all(f"No price can be given: {why}." in sentence for sentence in defended)
    assert not any("The price" in sentence or "perhaps nothing" in sentence for sentence in defended)


def test_no_defence_is_advised(unpriced):
    records, why = unpriced
    (advice,) = advise(summarise(records))
    assert advice.sentence == f"This cannot be said: {why}, so a price in accuracy means nothing. Train longer."
    assert advice.defence is None


def test_curves_are_of_distances_alone(unpriced):
    records, why = unpriced
    summary = summarise(records)
    assert [curve.family for curve in summary.curves] == ["Gaussian noise", "top-k"]
    assert [curve.caps for curve in summary.curves] == [{}, {}]
    assert [spot.distance("reconstruction").value for spot in summary.curves[0].spots] == [0.1, 0.6, 1.0]
    assert caps(summary) == [f"{name}, 3 strengths: none, {why}" for name in ("Gaussian noise", "Top-k")]


def test_the_leading_curve_is_still_that_of_the_closest_attack(made):
    def farther(record):
        moved = [
            r.model_copy(update={"value": 3 * r.value}) if r.name == "rmse_relative" else r for r in record.readings
        ]
        return record.model_copy(update={"readings": tuple(moved)})

    weak = [farther(record) for record in made.sweep(label="weak", scenario=federated())]
    summary = summarise([*weak, *made.sweep(scenario=federated())])
    assert {curve.attack for curve in leading_curves(summary.curves, summary.judgements)} == {"dlg2019"}


def test_the_flag_says_why(made, unpriced):
    records, why = unpriced
    (flag,) = utility_at_majority(records)
    assert why.lower() in flag.sentence.lower()
    assert flag.severity == ("info" if why == UNTRAINED else "doubt")


def test_other_scenarios_keep_their_prices(made):
    records = [*made.sweep(scenario=federated()), *made.sweep()]
    idle, trained = ([row for row in rows_of(records) if row.scenario == number] for number in (1, 2))
    assert {row.unpriced for row in idle} == {UNTRAINED}
    assert {row.unpriced for row in trained} == {""}
    assert [row.loss is None for row in trained] == [True, *[False] * 6]
    assert [bool(curve.caps) for curve in summarise(records).curves] == [False, False, True, True]
    assert len(utility_at_majority(records)) == 1


def test_of_several_undefended_rows_the_one_over_most_seeds_counts(made):
    one = [made.record(accuracy=0.1, seed=0, label="other")]
    both = [made.record(accuracy=0.9, seed=seed) for seed in (0, 1, 2)]
    rows = rows_of([*one, *both, made.record(GaussianNoise(std=1), accuracy=0.5)])
    assert {row.unpriced for row in rows} == {""}
