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
from leaktight.papers.comparison import lowest
from leaktight.papers.layer_leakage.audits import PARTICIPANTS, seeds_of
from leaktight.papers.layer_leakage.networks import layers_of
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, over_runs, paired_columns, reading_of
from leaktight.plans.plan import Grid, Plan

AUDIT = "inversion"
ERROR, MORE = "rmse_relative", "more"
SINGLE = (
    "The gradient of the first layer has fewer numbers than an image has pixels, so that by itself it cannot determine "
    "one; compare the columns `numbers` and `pixels` of the table `inversion`. `more` is by how much the error is "
    "above that of the first layer alone, or of the same layers with the first, on the same images of each seed."
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
        grid=Grid(seeds=seeds_of(study, asked.seeds), victims=asked.victims),
    )
    return {AUDIT: plan}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each set of layers: how many numbers it has, and the error of what is recovered from them."""
    asked = study.inversion
    data = asked.data.load()
    model = asked.network.build(data.shape, data.classes, seed=0)
    layers = layers_of(asked.network)
    attacks = {span(numbers): records.where(AUDIT, label=f"layers {span(numbers)}").done for numbers in asked.sets}
    errors = {name: attack.readings(ERROR, "raw") for name, attack in attacks.items()}
    rows: list[Row] = []
    for numbers in asked.sets:
        name = span(numbers)
        with_first = errors.get(_with_first(name), {})
        matched = tuple(f"{layers[number]}." for number in numbers)
        rows.append(
            {
                "data_set": asked.data_set,
                "layers": name,
                "numbers": sum(tensor.numel() for name, tensor in model.tensors().items() if name.startswith(matched)),
                "pixels": math.prod(data.shape),
                **over_runs(ERROR, errors[name].values()),
                **paired_columns(MORE, errors[name], with_first),
                **over_runs("psnr", attacks[name].readings("psnr", "raw").values()),
            }
        )
    return rows


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare the first layer with every other one alone, and sets of layers with and without it."""
    verdicts = []
    for (data_set,), own in groups(rows, "data_set"):
        more = {str(row["layers"]): reading_of(row, MORE) for row in own}
        others = [reading for layers, reading in more.items() if "-" not in layers and layers != "1"]
        name = f"rMSE(best other layer alone) - rMSE(first layer alone), {data_set}"
        verdicts.append(above(name, lowest(others), 0))
        for layers in (layers for layers in more if layers.startswith("2-")):
            name = f"rMSE(layers {layers}) - rMSE(layers {_with_first(layers)}), {data_set}"
            verdicts.append(above(name, more[layers], 0))
    return verdicts


def _with_first(name: str) -> str:
    """Return with which set one is compared: the first layer alone, or the same layers and the first; else nothing.

    Example:
        >>> _with_first("3"), _with_first("2-4"), _with_first("1-4"), _with_first("1")
        ('1', '1-4', '', '')
    """
    if name.startswith("2-"):
        return f"1{name[1:]}"
    return "" if "-" in name or name == "1" else "1"


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
