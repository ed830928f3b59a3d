"""Inversion by layers: how well images are recovered from the gradients of some layers (Fig. 10)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaktight.attacks.presets import preset
from leaktight.core.probe import Attempt, Probe
from leaktight.learning.federated import Federated
from leaktight.learning.protocol import FedSGD
from leaktight.metrics import PSNR, RelativeRMSE, SearchGap
from leaktight.papers.check import Check, above
from leaktight.papers.comparison import difference, lowest
from leaktight.papers.layer_leakage.audits import PARTICIPANTS
from leaktight.papers.layer_leakage.networks import layers_of
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, columns, groups, reading_of
from leaktight.plans.plan import Grid, Plan

AUDIT = "inversion"
SINGLE = (
    "The gradient of the first layer has fewer numbers than an image has pixels, so that by itself it cannot determine "
    "one; compare the columns `numbers` and `pixels` of the table `inversion`."
)
PUBLISHED = claims(
    ("The gradient of the first layer tends to be the most important for a reconstruction.", "9.2, Fig. 10")
)


def plans(study: Study) -> Plans:
    """Reconstruct images from gradients of the initial network, of which some layers are matched."""
    asked = study.inversion
    layers = layers_of(asked.network)
    probes: dict[str, Probe] = {
        f"layers {span(numbers)}": Attempt(
            attack=preset("idlg2020", layers=[layers[number] for number in numbers], iterations=asked.iterations),
            metrics=(RelativeRMSE(), PSNR(), SearchGap()),
        )
        for numbers in asked.sets
    }
    scenario = Federated(
        data=asked.data,
        model=asked.network,
        # The attack's own code shows networks pixels as they are.
        normalise=False,
        participants=PARTICIPANTS,
        protocol=FedSGD(),
        rounds=0,
        device=study.device,
    )
    plan = Plan(
        title=f"{asked.data_set}: inversion by layers",
        scenarios={"one gradient": scenario},
        probes=probes,
        grid=Grid(seeds=(study.seed,), victims=asked.victims),
    )
    return {AUDIT: plan}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each set of layers: how many numbers it has, and the error of what is recovered from them."""
    asked = study.inversion
    data = asked.data.load()
    model = asked.network.build(data.shape, data.classes, seed=0)
    layers = layers_of(asked.network)
    rows: list[Row] = []
    for numbers in asked.sets:
        attack = records.where(AUDIT, label=f"layers {span(numbers)}").done
        matched = tuple(f"{layers[number]}." for number in numbers)
        rows.append(
            {
                "data_set": asked.data_set,
                "layers": span(numbers),
                "numbers": sum(tensor.numel() for name, tensor in model.tensors().items() if name.startswith(matched)),
                "pixels": math.prod(data.shape),
                **columns("rmse_relative", attack.reading("rmse_relative", "raw")),
                **columns("psnr", attack.reading("psnr", "raw")),
            }
        )
    return rows


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare the first layer with every other one alone, and sets of layers with and without it."""
    verdicts = []
    for (data_set,), own in groups(rows, "data_set"):
        errors = {str(row["layers"]): reading_of(row, "rmse_relative") for row in own}
        others = [error for layers, error in errors.items() if "-" not in layers and layers != "1"]
        name = f"rMSE(best other layer alone) - rMSE(first layer alone), {data_set}"
        verdicts.append(above(name, difference(lowest(others), errors.get("1")), 0))
        for layers in (layers for layers in errors if layers.startswith("2-")):
            with_first = f"1{layers[1:]}"
            name = f"rMSE(layers {layers}) - rMSE(layers {with_first}), {data_set}"
            verdicts.append(above(name, difference(errors[layers], errors.get(with_first)), 0))
    return verdicts


def span(numbers: Sequence[int]) -> str:
    """Name some layers by the first and the last of them.

    Example:
        >>> span((1,)), span((1, 2, 3, 4))
        ('1', '1-4')
    """
    return f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


EXPERIMENT = Experiment(
    table="inversion",
    keys=("data_set", "layers"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda study: [SINGLE],
)
