"""Prices are paired: on the same test rows, over seeds; what became of each row stays in the audit's folder."""

import json

import pytest
import torch

from leaktight.attacks import Analytic
from leaktight.cli.export import as_csv, as_lines
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.data import Digits, RareDigit
from leaktight.defences import GaussianNoise, IsotropicNoise
from leaktight.findings.redaction import redact_records, without_outcomes
from leaktight.findings.rows import rows_of
from leaktight.findings.utility import Price, price_of
from leaktight.learning import Federated, Split
from leaktight.learning.evaluate import accuracy_reading, grade_scores
from leaktight.metrics import PSNR
from leaktight.models import MLP
from leaktight.plans.plan import Grid, Plan
from leaktight.report.render import render
from leaktight.running.scheduler import run
from leaktight.running.store import Store
from leaktight.statistics import unpack

ROWS = 400
LABELS = torch.arange(ROWS) % 10


def utility(seed, misses, name="price"):
    """The accuracy of a model that misses what is hard for everybody, and some more."""
    hard = torch.rand(ROWS, generator=stream(0, name, "hard"))
    own = 0.05 * torch.rand(ROWS, generator=stream(seed, name, str(misses)))
    return accuracy_reading(hard + own > misses, LABELS, keep=True)


def measured(made, seed, defence=None, misses=0.2):
    return made.record(defence, accuracy=None, seed=seed, extra=(utility(seed, misses),))


def test_a_price_on_the_same_rows_is_narrower_than_one_on_others():
    pairs = [(utility(0, 0.2), utility(0, 0.24))]
    paired = price_of(pairs)
    bare = [tuple(one.without_outcomes() for one in pair) for pair in pairs]
    apart = price_of(bare)
    assert (paired.paired, apart.paired) == (True, False)
    assert paired.value == pytest.approx(apart.value)
    assert paired.high - paired.low < 0.6 * (apart.high - apart.low)
    assert paired.low > 0 > apart.low


def test_a_price_is_paired_in_all_seeds_or_in_none():
    pairs = [(utility(seed, 0.2), utility(seed, 0.25)) for seed in (0, 1)]
    assert price_of(pairs).paired
    half = [pairs[0], (pairs[1][0], pairs[1][1].without_outcomes())]
    assert not price_of(half).paired
    fewer = accuracy_reading(torch.ones(10, dtype=torch.bool), LABELS[:10], keep=True)
    assert not price_of([(utility(0, 0.2), fewer)]).paired


def test_rows_are_priced_over_seeds(made):
    defence = GaussianNoise(std=0.1)
    records = [measured(made, seed) for seed in (0, 1, 2)] + [measured(made, seed, defence, 0.25) for seed in (0, 1, 2)]
    bare, row = rows_of(records)
    expected = price_of([(utility(seed, 0.2), utility(seed, 0.25)) for seed in (0, 1, 2)])
    assert bare.loss is None
    assert row.loss == expected
    assert isinstance(row.loss, Price)
    assert row.loss.paired
    assert not any(reading.outcomes for each in (bare, row) for reading in each.readings)


def test_two_attacks_on_one_training_count_it_once(made):
    defence = GaussianNoise(std=0.1)
    records = [measured(made, 0), measured(made, 0, defence, 0.25)]
    other = [r.model_copy(update={"cell": r.cell.model_copy(update={"victims": 4})}) for r in records]
    prices = [row.loss for row in rows_of([*records, *other]) if row.loss]
    assert prices == [price_of([(utility(0, 0.2), utility(0, 0.25))])]


def test_an_auc_is_priced_by_its_ranks():
    rng = stream(0, "auc")
    labels = (torch.rand(300, generator=rng) < 0.3).long()
    latent = labels + torch.randn(300, generator=rng)
    models = [torch.stack([-latent, latent + 0.4 * torch.randn(300, generator=rng)], 1) for _ in range(2)]
    (one, share), (other, _) = (grade_scores(scores, labels, 2, keep=True) for scores in models)
    price = price_of([(one, other)])
    assert (price.name, price.paired, unpack(one.outcomes).kind, unpack(share.outcomes).kind) == (
        "auc_loss",
        True,
        "ranks",
        "hits",
    )
    assert price.value == pytest.approx(one.value - other.value)
    assert not any(reading.outcomes for reading in grade_scores(models[0], labels, 2))


@pytest.mark.parametrize(
    ("scenario", "defence", "kinds"),
    [
        (Federated(data=Digits(), model=MLP(hidden=(8,)), rounds=3), GaussianNoise(std=0.01), ["hits"]),
        (
            Split(data=RareDigit(), model=MLP(hidden=(8,)), label_party=("r0*",), rounds=3),
            IsotropicNoise(),
            ["ranks", "hits"],
        ),
    ],
)
def test_a_training_keeps_what_became_of_each_test_row(scenario, defence, kinds):
    bare, under = (scenario.train(one, seed=0).utility for one in (scenario.baseline, defence))
    for readings in (bare, under):
        found = [unpack(reading.outcomes) for reading in readings if reading.outcomes]
        assert [outcomes.kind for outcomes in found] == kinds
        assert found[-1].groups[0].mean().item() == pytest.approx(readings[len(kinds) - 1].value)
    assert price_of([(bare[0], under[0])]).paired


def test_what_became_of_each_row_is_stored_and_never_passed_on(tmp_path):
    scenario = Federated(data=Digits(), model=MLP(hidden=(8,)), rounds=40)
    plan = Plan(
        scenarios={"1": scenario},
        defences=(GaussianNoise(std=0.01),),
        probes={"analytic": Attempt(attack=Analytic(), metrics=(PSNR(),))},
        grid=Grid(victims=2, seeds=(3, 4)),
    )
    run(plan, tmp_path)
    with Store.read(tmp_path) as store:
        records, versions, gallery = store.records(), store.versions(), store.gallery
        packed = {reading.outcomes for record in records for reading in record.readings if reading.outcomes}
        assert packed
        [price] = [row.loss for row in rows_of(records) if row.loss]
        assert price.paired
        pages = [render(records, plan, versions, gallery, redact) for redact in (False, True)]
    shown = [
        *pages,
        as_lines(without_outcomes(records)),
        as_lines(redact_records(records), redact=True),
        as_csv(records),
    ]
    assert not any(text in one for one in shown for text in packed)
    assert not any("outcomes" in json.dumps(record.to_dict()) for record in redact_records(records))
    prices = [f"{100 * end:.1f}" for end in (price.low, price.high)]
    assert all(f"{prices[0]} to {prices[1]}" in page for page in pages)


def test_a_reading_without_them_says_nothing_of_them():
    assert "outcomes" not in Reading(name="accuracy", value=0.5).to_dict()
    assert Reading.model_validate(utility(0, 0.2).to_dict()) == utility(0, 0.2)
