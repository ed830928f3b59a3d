"""The table of similarity: how close an attack's candidates come to the gradient in each layer, as it goes on."""

from __future__ import annotations

from leaktight.core.metric import Reading
from leaktight.papers.reproduction import Row, columns
from leaktight.papers.transformation_search.measured import Measured, Place
from leaktight.papers.transformation_search.plans import ATTACKS, PATH
from leaktight.papers.transformation_search.tables import beside, where

_START = "similarity_after_"


def similarity_rows(measured: Measured) -> list[Row]:
    """Return the similarity of every layer at some moments of the attack, with no, a random and the hybrid policy (Fig. 6)."""
    focus = measured.study.focus
    rows: list[Row] = []
    for name, defence in beside(measured).items():
        for record in measured.done(Place(focus, ATTACKS, PATH), defence).values():
            found = [one for one in record.readings if one.name.startswith(_START)]
            # The trained layers in the order of the network, as the first moment has them.
            order = {layer: number for number, layer in enumerate(dict.fromkeys(one.layer for one in found), start=1)}
            rows += [
                {
                    **where(focus),
                    "policy": name,
                    "layer": order[one.layer],
                    "name": one.layer,
                    "iterations": _iterations(one),
                    **columns("similarity", one),
                }
                for one in sorted(found, key=lambda one: (order[one.layer], _iterations(one)))
            ]
    return rows


def _iterations(reading: Reading) -> int:
    return int(reading.name.removeprefix(_START))
