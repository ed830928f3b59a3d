"""Plan files: a person's TOML becomes a plan, or one error that shows every fault with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leaktight.attacks.presets import PRESETS, preset
from leaktight.core import registry
from leaktight.core.attack import Attack
from leaktight.core.defence import Defence
from leaktight.core.document import parse_toml
from leaktight.core.errors import SHOWN, InvalidValue, did_you_mean, excerpt, unknown
from leaktight.core.input_file import LARGEST_SETTINGS, read_input
from leaktight.core.metric import Metric
from leaktight.core.private import reason
from leaktight.core.probe import Attempt, Probe
from leaktight.core.scenario import Scenario
from leaktight.core.threat import ThreatModel
from leaktight.metrics import SearchGap, standard
from leaktight.plans.build import Faults, Table, build_value, sweep
from leaktight.plans.plan import Grid, Plan

MOST_TABLES = 1000
"""How many defences, attacks, probes, metrics or scenarios a plan may name one by one."""
SECTIONS = ("title", "scenario", "scenarios", "defences", "attacks", "probes", "metrics", "threat", "grid")


def read_plan(path: Path) -> Plan:
    """Return the plan that a TOML file describes.

    Args:
        path: the file.

    Raises:
        InvalidValue: the file is missing, is not TOML, or has faults; all of them are shown, each with its place.
    """
    return parse_plan(read_document(path), f"The file `{path}`")


def read_document(path: Path) -> Table:
    """Return what a TOML file holds.

    Raises:
        InvalidValue: the file is missing or is not TOML.
    """
    try:
        text = read_input(path, LARGEST_SETTINGS).decode()
    except FileNotFoundError:
        raise InvalidValue(f"There is no file `{path}`. Write one with `leaktight init {path}`.") from None
    except UnicodeDecodeError:
        raise InvalidValue(f"The file `{path}` is not text in UTF-8. An audit file is TOML.") from None
    except OSError as error:
        raise InvalidValue(f"The file `{path}` cannot be read: {reason(error)}.") from None
    try:
        return parse_toml(text)
    except ValueError as error:
        raise InvalidValue(f"The file `{path}` is not valid TOML: {error}.") from None


def parse_plan(document: Table, source: str = "The plan") -> Plan:
    """Return the plan that a document describes, in the form of a plan file.

    Args:
        document: what TOML reads.
        source: how errors name it.

    Example:
        >>> plan = parse_plan({
        ...     "scenario": {"data": "digits", "model": "mlp"},
        ...     "defences": [{"kind": "gaussian_noise", "std": [0.01, 0.1]}],
        ...     "attacks": [{"preset": "dlg2019", "iterations": 10}],
        ... })
        >>> [str(defence) for defence in plan.defences], list(plan.probes)
        (['gaussian_noise', 'gaussian_noise(std=0.1)'], ['dlg2019*'])
    """
    faults = Faults()
    for name in document:
        if name not in SECTIONS:
            faults.add("", f"There is no section `{name[:SHOWN]}`. {did_you_mean(name, SECTIONS)}")
    scenarios = _scenarios(document, faults)
    threat = build_value(ThreatModel, document.get("threat", {}), "threat", faults)
    metrics = _each(Metric, document, "metrics", faults) if "metrics" in document else list(standard())
    # Whatever is graded, a search that failed must not pass for a defence that works.
    metrics += [] if any(isinstance(metric, SearchGap) for metric in metrics) else [SearchGap()]
    probes = _probes(document, threat or ThreatModel(), tuple(metrics), faults)
    defences = _defences(document, faults)
    grid = build_value(Grid, document.get("grid", {}), "grid", faults)
    title = document.get("title", "Audit")
    if not isinstance(title, str):
        faults.add("title", f"It must be a text. Got {excerpt(title)} instead.")
    faults.check(source)
    try:
        return Plan(title=title, scenarios=scenarios, defences=tuple(defences), probes=probes, grid=grid)
    except InvalidValue as error:
        raise InvalidValue(f"{source} cannot be used. {error}") from None


def _scenarios(document: Table, faults: Faults) -> dict[str, Scenario]:
    """Return the scenarios by name: one from `[scenario]`, or several from `[[scenarios]]`.

    One without a name goes by its number.
    """
    if "scenario" in document and "scenarios" in document:
        faults.add("scenarios", "There is a `[scenario]` too. Give one or the other.")
    tables = {"scenario": document["scenario"]} if "scenario" in document else {}
    if not tables:
        tables = {f"scenarios[{at}]": table for at, table in enumerate(_tables(document, "scenarios", faults))}
    if not tables and not document.get("scenarios"):
        faults.add("scenario", "It is missing. Add `[scenario.data]` and `[scenario.model]`, each with a `kind`.")
    found: dict[str, Scenario] = {}
    for number, (place, table) in enumerate(tables.items(), start=1):
        name = str(number)
        if isinstance(table, dict):
            name = str(table.get("name") or name)
            table = {"kind": "federated", **{key: table[key] for key in table if key != "name"}}
        if name in found:
            faults.add(place, f"There is another `{name}`. Give one of them another `name`.")
        scenario = build_value(Scenario, table, place, faults)
        if scenario is not None:
            found[name] = scenario
    return found


def _tables(document: Table, name: str, faults: Faults) -> list[Any]:
    given = document.get(name, [])
    if isinstance(given, list) and len(given) > MOST_TABLES:
        faults.add(name, f"There must be at most {MOST_TABLES}. Got {len(given)} instead; make several plans of them.")
        return []
    if isinstance(given, list):
        return given
    faults.add(name, f"It must be a list: write `[[{name}]]`, not `[{name}]`.")
    return []


def _each(root: type[Any], document: Table, name: str, faults: Faults) -> list[Any]:
    tables = enumerate(_tables(document, name, faults))
    return [one for at, table in tables if (one := build_value(root, table, f"{name}[{at}]", faults)) is not None]


def _defences(document: Table, faults: Faults) -> list[Defence]:
    found: list[Defence] = []
    for at, table in enumerate(_tables(document, "defences", faults)):
        try:
            variations = sweep(table)
        except InvalidValue as error:
            faults.add(f"defences[{at}]", error)
            continue
        found += [d for one in variations if (d := build_value(Defence, one, f"defences[{at}]", faults)) is not None]
    return found


def _probes(document: Table, threat: ThreatModel, metrics: tuple[Metric, ...], faults: Faults) -> dict[str, Probe]:
    found: dict[str, Probe] = {}
    sections = {"attacks": _attack, "probes": _probe}
    for section, reader in sections.items():
        for at, table in enumerate(_tables(document, section, faults)):
            place = f"{section}[{at}]"
            if isinstance(table, str):
                table = _spell_out(table, place, faults) if section == "attacks" else {"kind": table}
            if table is None:
                continue
            if not isinstance(table, dict):
                faults.add(place, f"It must be a table of settings. Got {excerpt(table)} instead.")
                continue
            apart = ("name", "threat") if section == "attacks" else ("name",)
            probe, label = reader({key: table[key] for key in table if key not in apart}, place, faults)
            label = str(table.get("name") or label)
            if label in found:
                faults.add(place, f"There is another `{label}`. Give one of them a `name`.")
            elif isinstance(probe, Attack):
                own = _threat(table, threat, place, faults)
                stated = [table.get("threat"), document.get("threat")]
                if not any(isinstance(given, dict) and "knows" in given for given in stated):
                    own = own.model_copy(update={"knows": own.knows | probe.wants})
                found[label] = Attempt(attack=probe, threat=own, metrics=metrics)
            elif probe is not None:
                found[label] = probe
    if not any(document.get(section) for section in sections):
        faults.add("attacks", 'There is none. Add one, as in `[[attacks]]` with `preset = "dlg2019"`.')
    return found


def _threat(table: Table, common: ThreatModel, place: str, faults: Faults) -> ThreatModel:
    """Return an attack's own threat model: what it does not state is as in `[threat]`."""
    own = table.get("threat", {})
    given = {**common.to_dict(), **own} if isinstance(own, dict) else own
    found: ThreatModel | None = build_value(ThreatModel, given, f"{place}.threat", faults)
    return found or common


def _spell_out(word: str, place: str, faults: Faults) -> Table | None:
    """Return the table that a plain word stands for: the preset of that name, else the kind."""
    kinds = registry.classes(Attack.family)
    if word not in PRESETS and word not in kinds:
        faults.add(place, unknown("preset or kind", word, {*PRESETS, *kinds}))
        return None
    return {"preset" if word in PRESETS else "kind": word}


def _attack(table: Table, place: str, faults: Faults) -> tuple[Attack | None, str]:
    if "preset" not in table:
        return build_value(Attack, table, place, faults), str(table.get("kind", place))
    name = str(table["preset"])
    overrides = {key: value for key, value in table.items() if key != "preset"}
    try:
        return preset(name, **overrides), f"{name}*" if overrides else name
    except InvalidValue as error:
        faults.add(place, error)
    return None, place


def _probe(table: Table, place: str, faults: Faults) -> tuple[Probe | None, str]:
    return build_value(Probe, table, place, faults), str(table.get("kind", place))
