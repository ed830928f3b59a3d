"""Labels over a whole training on click and credit data: what adds up, what the stated bound is worth, and what keeps it.

The data are not ours to pass on: a folder `shared/data` beside the repository may hold them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.attacks import Clustering
from leaktight.core.defence import Defence
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.threat import ThreatModel
from leaktight.data import Criteo
from leaktight.data.table import Csv
from leaktight.defences import MaxNorm, SumKL
from leaktight.learning import Adam, Split
from leaktight.metrics import LeakAUC, LeakAUCPasses

FOLDER = Path(__file__).parents[3] / "shared" / "data"
CREDIT, CLICKS = FOLDER / "tabular" / "UCI_Credit_Card.csv.gz", FOLDER / "ctr" / "criteo_encoded_train_10000.csv.gz"
SHARED = {"cut": "relu2", "passes": 20, "batch_size": 256, "optimiser": Adam(learning_rate=0.001)}


def scenario(name: str) -> Split:
    file = {"credit": CREDIT, "criteo": CLICKS}[name]
    if not file.is_file():
        pytest.skip(f"there is no `{file.name}` in `shared/data` beside the repository")
    if name == "credit":
        data = Csv(
            path=str(file), label="default.payment.next.month", ignore=("ID",), train_limit=4000, test_limit=1000
        )
        return Split(data=data, model={"kind": "mlp", "hidden": (64, 16, 16), "activation": "relu"}, **SHARED)
    clicks = Criteo(path=str(file), train_limit=4000, test_limit=1000)
    return Split(data=clicks, model={"kind": "wide_deep", "hidden": (64, 16, 16)}, **SHARED)


def readings(split: Split, defence: Defence) -> dict[str, Reading]:
    training = split.train(defence, 0)
    run = split.observe(training, defence, Observation("training", 256, split.messages, 0))
    threat = ThreatModel(seat="feature-party", knows=frozenset())
    found = Attempt(attack=Clustering(), threat=threat, metrics=(LeakAUC(), LeakAUCPasses())).read(run, stream(1))
    return {reading.name: reading for reading in found.readings}


@pytest.mark.long
@pytest.mark.parametrize("name", ["credit", "criteo"])
def test_a_bound_of_one_message_is_gone_after_twenty_passes_and_one_over_twenty_holds(name: str) -> None:
    split = scenario(name)
    one, whole, longest = (readings(split, made) for made in (SumKL(bound=0.4), SumKL(bound=0.4, passes=20), MaxNorm()))
    assert 0.57 < one["leak_auc"].value < 0.65
    assert one["leak_auc_passes"].value >= 0.85
    assert one["leak_auc_passes"].value == pytest.approx(one["leak_auc_theory"].value, abs=0.03)
    assert one["leak_auc_passes"].low > one["leak_auc_ceiling"].value == pytest.approx(0.68)
    assert longest["leak_auc_passes"].value >= 0.95
    assert whole["leak_auc_passes"].value <= 0.68
    for found in (one, whole, longest):
        # Three standard errors: the 95 % interval leaves one in twenty out.
        alone = found["leak_auc_features"]
        assert abs(alone.value - 0.5) < 1.5 * (alone.high - alone.low) / 2
