"""The table of inversions: how well images are recovered from the gradients of some layers."""

from __future__ import annotations

import math

from leaktight.papers.layer_leakage.networks import layers_of
from leaktight.papers.layer_leakage.plans import INVERSION, span
from leaktight.papers.layer_leakage.settings import Study
from leaktight.papers.paper import Records
from leaktight.papers.reproduction import Row, columns


def inversion_rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each set of layers: how many numbers it has, and the error of what is recovered from them (Fig. 10)."""
    asked = study.inversion
    done = {record.cell.label: record for record in records.get(INVERSION, ()) if record.cell.purpose == "measure"}
    data = asked.data.load()
    model = asked.network.build(data.shape, data.classes, seed=0)
    layers = layers_of(asked.network)
    rows: list[Row] = []
    for numbers in asked.sets:
        record = done.get(f"layers {span(numbers)}")
        matched = tuple(f"{layers[number]}." for number in numbers)
        rows.append(
            {
                "data_set": asked.data_set,
                "layers": span(numbers),
                "numbers": sum(tensor.numel() for name, tensor in model.tensors().items() if name.startswith(matched)),
                "pixels": math.prod(data.shape),
                **columns("rmse_relative", record.reading("rmse_relative", "raw") if record else None),
                **columns("psnr", record.reading("psnr", "raw") if record else None),
            }
        )
    return rows
