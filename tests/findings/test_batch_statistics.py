"""Batch statistics as a kind of leak: judged by the attack that reads them, beside images."""

import pytest

from leaktight.attacks import RunningStatistics, Strongest, preset
from leaktight.core.metric import Reading, quantity_of
from leaktight.data import Digits
from leaktight.defences import DPSGD, GaussianNoise
from leaktight.findings import BatchStatistics
from leaktight.findings.rows import rows_of
from leaktight.findings.verdict import judge
from leaktight.learning import Federated
from leaktight.models import Factory
from leaktight.plans import quick
from leaktight.plans.plan import Grid
from leaktight.running import run

CODE = """
from torch import nn

def net(shape, classes):
    return nn.Sequential(
        nn.Conv2d(shape[0], 4, 3, stride=2), nn.BatchNorm2d(4), nn.Tanh(), nn.Flatten(), nn.Dropout(0.1),
        nn.Linear(4 * ((shape[1] - 1) // 2) ** 2, classes),
    )
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """An audit of a network in training mode, with a short search."""
    folder = tmp_path_factory.mktemp("audit")
    (folder / "my_normed_net.py").write_text(CODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.chdir(folder)
        plan = quick(model=Factory(function="my_normed_net:net"), data=Digits(size=8))
        short = preset("posterior").model_copy(update={"iterations": 1, "restarts": 1, "phases": 1})
        probes = {
            name: probe.model_copy(update={"attack": Strongest(members={"posterior": short})})
            for name, probe in plan.probes.items()
        }
        small = plan.model_copy(
            update={
                "probes": probes,
                "scenarios": {name: _short(scenario) for name, scenario in plan.scenarios.items()},
                "defences": (GaussianNoise(std=0.1), DPSGD()),
                "grid": Grid(batch_sizes=(2,), stages=("initial",), victims=4),
            }
        )
        yield run(small, folder / "out", workers=1)


def _short(scenario):
    return Federated.model_validate({**dict(scenario), "rounds": 2, "device": "cpu"})


@pytest.mark.long
def test_they_are_judged_beside_images(records):
    rows = rows_of(records)
    judged = {one.defence.kind: one for one in judge(rows) if one.kind == BatchStatistics()}
    bare = judged["none"]
    assert bare.verdict == "leaks"
    assert bare.reading.value < 1e-3
    assert "are read with an error of less than 0.01 %" in bare.kind.clause(bare.worst)
    assert bare.kind.short(bare.worst).endswith(" %")
    assert judged["gaussian_noise"].reading.value > bare.reading.value


@pytest.mark.long
def test_a_defence_that_needs_each_examples_gradient_is_refused(records):
    [refused] = [record for record in records if record.cell.defence.kind == "dp_sgd"]
    assert refused.status == "refused"
    assert "Batch norm `body.1` in training mode mixes the examples of a batch" in refused.reason


def test_its_reading_has_a_title():
    assert quantity_of("statistics_error").title == "error of batch statistics"


def test_the_error_is_said_beside_that_of_the_statistics_known_before(made):
    kind = BatchStatistics()
    reading = Reading(name="statistics_error", value=0.25, low=0.2, high=0.3, chance=1.5, leaks="low", n=4)
    (row,) = rows_of([made.record(psnr=None, attack=RunningStatistics(), extra=(reading,))])
    said = "the means and variances of a batch are read with an error of 25 %"
    assert kind.reading(row).value == 0.25
    assert (kind.short(row), kind.clause(row)) == ("25 %", f"{said}, where those known before are off by 150 %")
    assert [column.text(row) for column in kind.columns()] == ["25.00 % (20.00 to 30.00)", "150.00 %"]
    (row,) = rows_of([made.record(psnr=None, extra=(reading.model_copy(update={"chance": None}),))])
    assert kind.clause(row) == said


def test_where_no_statistics_were_read_nothing_is_said_of_them(made):
    kind, (row,) = BatchStatistics(), rows_of([made.record(psnr=30)])
    assert (kind.reading(row), kind.short(row), kind.clause(row)) == (None, "nothing", "nothing was measured")
    assert (kind.verdict_note([row], []), kind.glossary(["psnr"], [])) == ("", {})
    assert list(kind.glossary(["statistics_error"], [])) == ["batch statistics"]
