"""What a feature party learns of labels over a whole training run, and what the features alone give.

Scores are added up over 20 passes.

UCI credit and the encoded Criteo sample, 4,000 training rows each, 20 passes of batches of 256 by Adam 0.001; bottom of
64 and 16 units, top of 16. Settings of the attacks were chosen on UCI Adult and frozen before. Gradient attacks sit at
the cut. Rows are means over seeds; heavier attacks are run for the first seed alone. A model that trains on shuffled
labels learns them by heart, so attacks still find these; the labels as they were before the shuffle are in no message,
and there attacks find what features alone give. A price is the loss of test AUC against the undefended training of the
same seed, on the same test rows, with DeLong's paired interval, for the first seed.

    python benchmarks/labels.py [--data ../shared/data] [--seeds 3] [--only credit]
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import NormalDist, mean
from typing import Literal

import torch
from _rows import Row, parser, show
from pydantic import SerializeAsAny
from torch import Tensor

from leaktight.attacks import Clustering, Completion, LabelPosterior, Spectral, Surrogate
from leaktight.core.attack import Attack
from leaktight.core.defence import Defence, Undefended
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.scenario import Observation, Training
from leaktight.core.task import Batch
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Criteo
from leaktight.data.source import Data, Source
from leaktight.data.table import Csv
from leaktight.defences import IsotropicNoise, MaxNorm, SumKL
from leaktight.learning import Adam, Split
from leaktight.learning.boundary import FEATURE_PARTY, LABEL_PARTY
from leaktight.metrics import LeakAUC, LeakAUCPasses

PASSES, ROWS = 20, 4000
THREAT = ThreatModel(seat=FEATURE_PARTY, knows=frozenset({Knows.HINTS, Knows.DEFENCE}))
DEFENCES: dict[str, Defence] = {
    "none": Undefended(),
    "sumKL 0.4": SumKL(bound=0.4),
    "max-norm": MaxNorm(),
    "isotropic 4": IsotropicNoise(ratio=4.0),
    "sumKL 0.4 over 20 passes": SumKL(bound=0.4, passes=PASSES),
}
BARS = {"sumKL 0.4": (0.85, True), "max-norm": (0.95, True), "sumKL 0.4 over 20 passes": (0.68, False)}


class ShuffledLabels(Source):
    """Data whose training labels were dealt out to other rows by chance."""

    kind: Literal["benchmark_shuffled_labels"] = "benchmark_shuffled_labels"
    data: SerializeAsAny[Source]

    def read(self) -> Data:
        """Return the data with other training labels."""
        data = self.data.load()
        order = torch.randperm(len(data.train), generator=stream(0, "shuffled labels"))
        return dataclasses.replace(data, train=Batch(data.train.inputs, data.train.labels[order]))


def scenarios(folder: Path) -> dict[str, Split]:
    """Return the scenarios of split learning by the name of their data."""
    shared = {"cut": "relu2", "passes": PASSES, "batch_size": 256, "optimiser": Adam(learning_rate=0.001)}
    credit = Csv(
        path=str(folder / "tabular" / "UCI_Credit_Card.csv.gz"),
        label="default.payment.next.month",
        ignore=("ID",),
        train_limit=ROWS,
        test_limit=ROWS,
    )
    clicks, test = (folder / "ctr" / f"criteo_encoded_{part}_10000.csv.gz" for part in ("train", "test"))
    return {
        "credit": Split(data=credit, model={"kind": "mlp", "hidden": (64, 16, 16), "activation": "relu"}, **shared),
        "criteo": Split(
            data=Criteo(path=str(clicks), test_path=str(test), train_limit=ROWS),
            model={"kind": "wide_deep", "hidden": (64, 16, 16)},
            **shared,
        ),
    }


def observe(scenario: Split, defence: Defence, seed: int) -> tuple[Training, Run]:
    """Train, and return every message of the training."""
    training = scenario.train(defence, seed)
    return training, scenario.observe(
        training, defence, Observation("training", scenario.batch_size, scenario.messages, seed)
    )


def read(attack: Attack, run: Run, seed: int) -> dict[str, Reading]:
    """Return an attack's readings by name."""
    attempt = Attempt(attack=attack, threat=THREAT, metrics=(LeakAUC(), LeakAUCPasses()))
    return {reading.name: reading for reading in attempt.read(run, stream(seed, "labels", attack.kind)).readings}


def scores(scenario: Split, training: Training, defence: Defence, seed: int) -> Tensor:
    """Return how much likelier the trained model holds each test row positive."""
    data = scenario.data.load()
    feature, label = scenario.parties(data, defence, seed)
    feature.restore(training.snapshots["end"].memories[FEATURE_PARTY])
    label.restore(training.snapshots["end"].memories[LABEL_PARTY])
    features, own = scenario.divide_rows(data.test.inputs)
    classes = label.scores(feature.features(features), own)
    return classes[:, 1] - classes[:, 0]


def price(one: Tensor, other: Tensor, labels: Tensor) -> tuple[float, float, float]:
    """Return by how much the first AUC is larger on the same rows, and DeLong's paired 95 % interval."""
    ups, downs = (_placements(one, labels)[side] - _placements(other, labels)[side] for side in (0, 1))
    spread = math.sqrt((ups.var() / len(ups) + downs.var() / len(downs)).item()) * NormalDist().inv_cdf(0.975)
    value = ups.mean().item()
    return value, value - spread, value + spread


def _placements(values: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    ups, downs = values[labels == 1].double(), values[labels == 0].double()
    wins = (ups[:, None] > downs[None, :]).double() + 0.5 * (ups[:, None] == downs[None, :]).double()
    return wins.mean(1), wins.mean(0)


def gradient_rows(name: str, scenario: Split, seeds: Sequence[int]) -> Iterator[Row]:
    """Measure attacks on gradients under every defence, single messages and added up, and the prices."""
    tests: dict[str, Tensor] = {}
    labels = scenario.data.load().test.labels
    for title, defence in DEFENCES.items():
        found: dict[str, list[dict[str, Reading]]] = {}
        for seed in seeds:
            training, run = observe(scenario, defence, seed)
            if seed == seeds[0]:
                tests[title] = scores(scenario, training, defence, seed)
            for attack in (Clustering(), LabelPosterior()):
                found.setdefault(attack.kind, []).append(read(attack, run, seed))
        for kind, readings in found.items():
            place = f"{name}, {title}, {kind}"
            bar, at_least = BARS.get(title, (None, True))
            yield Row(f"{place}: single message", mean(each["leak_auc"].value for each in readings), "AUC")
            added = mean(each["leak_auc_passes"].value for each in readings)
            yield Row(
                f"{place}: added up", added, "AUC", bar if kind == "clustering" or not at_least else None, at_least
            )
            yield Row(f"{place}: theory", mean(each["leak_auc_theory"].value for each in readings), "AUC")
            if "leak_auc_ceiling" in readings[0]:
                yield Row(f"{place}: ceiling", readings[0]["leak_auc_ceiling"].value, "AUC")
            shuffled = [each["leak_auc_features"] for each in readings]
            inside = sum((one.low or 0.0) <= 0.5 <= (one.high or 1.0) for one in shuffled)
            yield Row(f"{place}: shuffled rows", mean(one.value for one in shuffled), "AUC")
            yield Row(f"{place}: shuffled rows within 95 % of 0.5", inside, f"of {len(shuffled)}")
        value, low, high = price(tests["none"], tests[title], labels)
        if title != "none":
            yield Row(f"{name}, {title}: price in test AUC", value, f"[{low:.3f}, {high:.3f}]")


def feature_rows(name: str, scenario: Split, seed: int) -> Iterator[Row]:
    """Measure the attacks that use features, beside what the features give alone.

    Each is measured undefended, under sumKL, and with shuffled labels.
    """
    shuffled = scenario.model_copy(update={"data": ShuffledLabels(data=scenario.data)})
    cases: dict[str, tuple[Split, Defence]] = {
        "none": (scenario, Undefended()),
        "sumKL 0.4": (scenario, SumKL(bound=0.4)),
        "sumKL 0.4 over 20 passes": (scenario, SumKL(bound=0.4, passes=PASSES)),
        "labels shuffled": (shuffled, Undefended()),
    }
    for title, (training, defence) in cases.items():
        _, run = observe(training, defence, seed)
        for attack in (Spectral(), Completion(), Surrogate()):
            readings = read(attack, run, seed)
            told, alone = readings["leak_auc_passes"], readings["leak_auc_features"]
            place = f"{name}, {title}, {attack.kind}"
            bar = alone.high if title == "none" else None
            yield Row(f"{place}: features alone", alone.value, f"[{alone.low:.3f}, {alone.high:.3f}]")
            yield Row(f"{place}: all passes", told.value, f"[{told.low:.3f}, {told.high:.3f}]", bar)
            if training is shuffled:
                yield from _before_the_shuffle(place, attack, run, scenario.data.load().train.labels, seed)


def _before_the_shuffle(place: str, attack: Attack, run: Run, labels: Tensor, seed: int) -> Iterator[Row]:
    """Grade an attack on training with shuffled labels by the labels as they were, which no message reveals."""
    attempt = Attempt(attack=attack, threat=THREAT, metrics=(LeakAUCPasses(),))
    guess = attack(THREAT.view(run), stream(seed, "labels", attack.kind))
    rows = {int(step): seen["rows"] for step, seen in run.locals[FEATURE_PARTY].memory["seen"].items()}
    truth = [
        dataclasses.replace(run.truth(key), raw=Batch(run.truth(key).raw.inputs, labels[rows[key[1]]]))
        for key in guess.keys
    ]
    readings = {reading.name: reading for reading in attempt.grade(guess, truth, stream(seed, "labels", attack.kind))}
    for name, title in (("leak_auc_features", "features alone"), ("leak_auc_passes", "all passes")):
        found = readings[name]
        yield Row(f"{place}, labels as they were: {title}", found.value, f"[{found.low:.3f}, {found.high:.3f}]")


def main() -> None:
    """Measure all data sets."""
    options = parser(__doc__)
    options.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="the folder with `ctr` and `tabular`"
    )
    options.add_argument("--seeds", type=int, default=3, help="how often gradient attacks are measured")
    options.add_argument("--only", default="", help="the data set, `credit` or `criteo`")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    rows: list[Row] = []
    for name, scenario in scenarios(chosen.data).items():
        if chosen.only in ("", name):
            rows += [*gradient_rows(name, scenario, range(chosen.seeds)), *feature_rows(name, scenario, 0)]
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
