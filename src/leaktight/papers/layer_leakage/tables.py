"""Tables: the paper's figures in numbers, from the records of our audits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leaktight.papers.layer_leakage.correlation import Correlation, correlation_columns, of_columns
from leaktight.papers.layer_leakage.measured import Measured, told
from leaktight.papers.layer_leakage.networks import NETWORKS, layers_of, shown
from leaktight.papers.layer_leakage.plans import (
    COMPARED,
    ENTRIES,
    FOREST,
    INFORMATION,
    LEAK,
    MIXED,
    MODEL,
    NETWORK,
    SENSITIVITY,
    V_ENTRIES,
    V_FOREST,
    V_NETWORK,
    convolutional,
)
from leaktight.papers.layer_leakage.settings import Subject
from leaktight.papers.reproduction import Row, Tables, rows_where

AUC, V_INFORMATION, JACOBIAN = "property_auc", "v_information", "sensitivity"
MEASURES = {"V-information": V_INFORMATION, "sensitivity": JACOBIAN}
ALL = "All"
NORMS = {"F": "sensitivity_f", "1": "sensitivity_1", "infinity": "sensitivity_inf"}
_ATTACKS = {
    FOREST: (LEAK, V_FOREST, "random_forest"),
    NETWORK: (COMPARED, V_NETWORK, "network"),
    ENTRIES: (COMPARED, V_ENTRIES, "random_forest"),
}


def tables_of(measured: Measured) -> Tables:
    """Return every table that follows from trainings; `inversions` makes the one of Fig. 10."""
    layers = _layers(measured)
    return {
        "layers": layers,
        "correlation": _correlations(measured, layers),
        "mixed": _mixed(measured),
        "norms": _norms(measured, layers),
        "classifiers": _classifiers(measured),
        "entries": _entries(measured),
        "properties": _properties(measured, layers),
        "tasks": _tasks(measured),
        "mutual_information": _information(measured),
    }


def _places(subject: Subject, network: str) -> Iterator[tuple[Row, str]]:
    """Give the columns that name each layer of a network, and what messages call it."""
    for number, layer in layers_of(NETWORKS[network]).items():
        row: Row = {
            "data_set": subject.data_set,
            "task": subject.task,
            "property": subject.private,
            "network": network,
            "layer": number,
            "name": shown(layer),
        }
        yield row, layer


def _leaked(
    measured: Measured, subject: Subject, network: str, layer: str, classifier: str = FOREST, where: str | None = None
) -> Row:
    """Return what an attack finds in a layer, and how much information it has for attackers of its kind."""
    part, probe, family = _ATTACKS[classifier]
    part = where or part
    name = f"{V_INFORMATION}_{family}"
    return {
        **told(AUC, measured.readings(subject, part, network, classifier, AUC, layer)),
        **told(V_INFORMATION, measured.readings(subject, part, network, probe, name, layer)),
        **told(f"{V_INFORMATION}_share", measured.readings(subject, part, network, probe, f"{name}_share", layer)),
    }


def _sensitive(measured: Measured, subject: Subject, network: str, layer: str, name: str = NORMS["F"]) -> Row:
    return told(JACOBIAN, measured.readings(subject, MODEL, network, SENSITIVITY, name, layer))


def _layers(measured: Measured) -> list[Row]:
    """Return attack, V-information and sensitivity of every layer (Fig. 2, 3)."""
    return [
        {
            **place,
            **_leaked(measured, subject, network, layer),
            **_sensitive(measured, subject, network, layer),
            **told("accuracy", measured.accuracy(subject, LEAK, network, FOREST)),
        }
        for subject in measured.study.subjects
        for network in measured.study.networks
        for place, layer in _places(subject, network)
    ]


def _correlations(measured: Measured, layers: Sequence[Row]) -> list[Row]:
    """Return the correlation of both measures with the attack, over layers and subjects (Table 1)."""
    return [
        {
            "network": network,
            "measure": measure,
            **correlation_columns(of_columns(_of_network(layers, network), column, AUC)),
        }
        for network in (*measured.study.networks, ALL)
        for measure, column in MEASURES.items()
    ]


def _of_network(rows: Sequence[Row], network: str) -> list[Row]:
    return list(rows) if network == ALL else rows_where(rows, network=network)


def _mixed(measured: Measured) -> list[Row]:
    """Return attack and V-information where only a part of each batch has the property, and how well they go together on each network."""
    found = []
    for network in measured.study.mixed_on:
        rows: list[Row] = [
            {**place, "share": measured.study.mixed, **_leaked(measured, subject, network, layer, where=MIXED)}
            for subject in measured.study.subjects
            for place, layer in _places(subject, network)
        ]
        told_once = correlation_columns(of_columns(rows, V_INFORMATION, AUC))
        found += [{**row, **{name: told_once[name] for name in ("r", "r_low", "r_high", "p")}} for row in rows]
    return found


def _norms(measured: Measured, layers: Sequence[Row]) -> list[Row]:
    """Return sensitivity by each norm, and its correlation with the attack over the layers of all subjects (Fig. 4)."""
    found = []
    for network in measured.study.networks:
        attacked = rows_where(layers, network=network)
        for norm, name in NORMS.items():
            rows: list[Row] = [
                {**place, "norm": norm, **_sensitive(measured, subject, network, layer, name)}
                for subject in measured.study.subjects
                for place, layer in _places(subject, network)
            ]
            beside: list[Row] = [{**row, AUC: other[AUC]} for row, other in zip(rows, attacked, strict=True)]
            told_once = correlation_columns(of_columns(beside, JACOBIAN, AUC))
            found += [{**row, **{name: told_once[name] for name in ("r", "r_low", "r_high", "p")}} for row in rows]
    return found


def _classifiers(measured: Measured) -> list[Row]:
    """Return what a network finds beside what a random forest does (Fig. 5)."""
    return [
        {**place, "classifier": classifier, **_leaked(measured, subject, network, layer, classifier)}
        for subject in measured.study.subjects
        for network in measured.study.compared
        for classifier in (FOREST, NETWORK)
        for place, layer in _places(subject, network)
    ]


def _entries(measured: Measured) -> list[Row]:
    """Return what a forest finds in a few random entries of each layer, beside all of it (Fig. 6)."""
    attacks = {f"{measured.study.entries} random": ENTRIES, "pooled, all": FOREST}
    return [
        {**place, "entries": entries, **_leaked(measured, subject, network, layer, attack)}
        for subject in measured.study.subjects
        for network in measured.study.compared
        for entries, attack in attacks.items()
        for place, layer in _places(subject, network)
    ]


def _properties(measured: Measured, layers: Sequence[Row]) -> list[Row]:
    """Return the attack on several properties of one task, and how well what is measured without it tells of it (Fig. 7).

    Sensitivity is that of the task. V-information is that of the property itself, and once more that of another subject's property.
    """
    study, network = measured.study, measured.study.properties_on
    task = next((subject.task for subject in study.properties), None)
    main = [subject for subject in study.subjects if subject.task == task]
    found = []
    for subject in (*main, *study.properties):
        other = next((one for one in study.subjects if one != subject), None)
        rows: list[Row] = [
            {
                **place,
                **_leaked(measured, subject, network, layer),
                **_sensitive(measured, main[0] if main else subject, network, layer),
                "other": _other(layers, other, place),
            }
            for place, layer in _places(subject, network)
        ]
        told_once: Row = {}
        for column, name in ((V_INFORMATION, "r_v_information"), ("other", "r_other"), (JACOBIAN, "r_sensitivity")):
            told_once |= _coefficient(of_columns(rows, column, AUC), name)
        found += [{**{name: value for name, value in row.items() if name != "other"}, **told_once} for row in rows]
    return found


def _other(layers: Sequence[Row], subject: Subject | None, place: Row) -> float | None:
    """Return the V-information of the same layer about another subject's property."""
    if subject is None:
        return None
    wanted = {"data_set": subject.data_set, "task": subject.task, "property": subject.private}
    rows = rows_where(layers, network=place["network"], layer=place["layer"], **wanted)
    value = rows[0][V_INFORMATION] if rows else None
    return value if isinstance(value, float) else None


def _coefficient(found: Correlation | None, name: str) -> Row:
    return {column: value for column, value in correlation_columns(found, name).items() if column.startswith(name)}


def _tasks(measured: Measured) -> list[Row]:
    """Return the sensitivity of each layer as a share of all layers, by what is learned (Fig. 8)."""
    study = measured.study
    return [
        {
            **place,
            **told("share", measured.readings(subject, MODEL, network, SENSITIVITY, f"{NORMS['F']}_share", layer)),
            **told("accuracy", measured.accuracy(subject, MODEL, network, SENSITIVITY)),
        }
        for subject in (*study.subjects, *study.tasks)
        for network in convolutional(study)
        for place, layer in _places(subject, network)
    ]


def _information(measured: Measured) -> list[Row]:
    """Return the mutual information of input and activations, as a share of all that so many examples can tell (Fig. 9)."""
    return [
        {
            **place,
            **{
                column: value
                for end in ("upper", "lower")
                for column, value in told(
                    f"{end}_share",
                    measured.readings(subject, MODEL, network, INFORMATION, f"mutual_information_{end}_share", layer),
                ).items()
            },
        }
        for subject in measured.study.subjects
        for network in measured.study.networks
        for place, layer in _places(subject, network)
    ]
