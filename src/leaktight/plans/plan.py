"""Plans: what an audit is to measure, and the cells that follow from it."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Literal, Self, get_args

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from leaktight.core.defence import Defence, Undefended
from leaktight.core.device import DeviceName, device_of
from leaktight.core.errors import InvalidValue, did_you_mean, excerpt, unknown
from leaktight.core.probe import Probe
from leaktight.core.record import Cell
from leaktight.core.scenario import Scenario
from leaktight.core.value import Value
from leaktight.metrics import standard
from leaktight.plans.control import control_cells, null_cells

MOST_CELLS = 100_000
"""How many cells a plan may have, without controls: some gigabytes of memory, and months of work."""
MOST_VICTIMS = 100_000
"""How many messages a cell may measure."""
CONTROL_VICTIMS = 40
"""How many messages a control measures where every message of a training run is asked for; it has no training run."""
Stage = Literal["initial", "early", "end", "training"]


class Grid(Value):
    """Along which lines every defence and every probe is measured.

    Args:
        batch_sizes: examples behind one message, each at least 1.
        stages: when in training.
        seeds: everything is repeated for each.
        victims: how many messages each cell measures, at least 1; more gives narrower intervals. `all` measures every
            message of a split training at the stage `training`, so that attackers can add up what all its passes tell.
    """

    batch_sizes: tuple[int, ...] = Field((1,), min_length=1)
    stages: tuple[Stage, ...] = Field(("initial",), min_length=1)
    seeds: tuple[int, ...] = Field((0,), min_length=1)
    victims: int | Literal["all"] = 8

    @field_validator("victims", mode="plain")
    @classmethod
    def _check_victims(cls, given: Any) -> int | Literal["all"]:
        # One fault gets one sentence, which two types would not give it.
        if given == "all":
            return "all"
        whole = (
            given.is_integer() if isinstance(given, float) else isinstance(given, int) and not isinstance(given, bool)
        )
        if not whole:
            raise ValueError(f"must be a whole number or `all`. Got {excerpt(given)} instead.")
        if not 1 <= given <= MOST_VICTIMS:
            limit = "at least 1" if given < 1 else f"at most {MOST_VICTIMS}"
            raise ValueError(f"must be {limit}. Got {excerpt(given)} instead.")
        return int(given)

    @field_validator("batch_sizes", "seeds")
    @classmethod
    def _whole(cls, values: tuple[int, ...], about: Any) -> tuple[int, ...]:
        least = 1 if about.field_name == "batch_sizes" else 0
        if min(values) < least:
            raise ValueError(f"must be whole numbers of at least {least}. Got {min(values)} instead.")
        return values

    @field_validator("batch_sizes", "stages", "seeds")
    @classmethod
    def _distinct(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        twice = [(value, count) for value, count in Counter(values).items() if count > 1]
        if twice:
            raise ValueError(f"must hold each value once. Got {twice[0][0]!r} {twice[0][1]} times instead.")
        return values


class Further(Value):
    """One more probe, of one defence in one scenario only.

    An audit continues with it where it has not settled a question.

    Args:
        scenario: the name of the scenario.
        defence: the defence; none for the messages that it is compared with.
        label: how the report names the probe.
        probe: what is measured.
    """

    scenario: str
    defence: SerializeAsAny[Defence]
    label: str
    probe: SerializeAsAny[Probe]


class Plan(Value):
    """What an audit is to measure: in every scenario every defence against every probe, along the grid.

    Args:
        title: what the report is headed with.
        scenarios: data, model and how they learn, by name; the report numbers them in this order.
        defences: what is compared, beside `none`, which every audit has.
        probes: what is measured, by the name that the report gives it.
        grid: batch sizes, stages, seeds and victims.
        further: probes of single defences, beside the grid of all.
        bare: whether `none` is measured as well. Only where another plan has done so: without it nothing can be
            compared, and there is no null view.
        caveats: what a reader must know of how it was made: that a time budget shortened it.

    Example:
        >>> from leaktight.plans import quick
        >>> plan = quick()
        >>> Plan.model_validate(plan.to_dict()) == plan
        True
        >>> {cell.purpose for cell in plan.cells()} == {"measure", "control", "null"}
        True
    """

    title: str = "Audit"
    scenarios: dict[str, SerializeAsAny[Scenario]] = Field(min_length=1)
    defences: tuple[SerializeAsAny[Defence], ...] = ()
    probes: dict[str, SerializeAsAny[Probe]] = Field(min_length=1)
    grid: Grid = Grid()
    further: tuple[Further, ...] = Field((), exclude_if=lambda further: not further)
    # Left out where it is as usual, so that plans of before it was there keep their keys.
    bare: bool = Field(True, exclude_if=lambda bare: bare)
    caveats: tuple[str, ...] = Field((), exclude_if=lambda caveats: not caveats)

    @field_validator("scenarios")
    @classmethod
    def _check_different(cls, scenarios: dict[str, Scenario]) -> dict[str, Scenario]:
        names: dict[str, str] = {}
        for name, scenario in scenarios.items():
            first = names.setdefault(scenario.key, name)
            if first != name:
                raise ValueError(
                    f"must differ from each other. Got the same settings as `{first}` and as `{name}` instead."
                )
        return scenarios

    @field_validator("defences")
    @classmethod
    def _others(cls, defences: tuple[Defence, ...]) -> tuple[Defence, ...]:
        """Drop `none`, which is always there, and what was named before."""
        return tuple({one.key: one for one in defences if not isinstance(one, Undefended)}.values())

    @model_validator(mode="after")
    def _check_further(self) -> Self:
        for one in self.further:
            if one.scenario not in self.scenarios:
                raise unknown("scenario", one.scenario, self.scenarios)
        return self

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        grid = self.grid
        sizes = (self.scenarios, grid.seeds, (None, *self.defences), grid.stages, grid.batch_sizes, self.probes)
        alongside = math.prod(map(len, (grid.seeds, grid.stages, grid.batch_sizes)))
        count = math.prod(map(len, sizes)) + len(self.further) * alongside
        if count > MOST_CELLS:
            raise InvalidValue(f"A plan must have at most {MOST_CELLS} cells. Got {count}; make several plans of it.")
        return self

    def cells(self) -> list[Cell]:
        """Return every cell once: the measurements, scenario by scenario, then the controls, then the null views."""
        measured = [
            self._cell(scenario, defence, label, probe, seed, stage, batch_size)
            for scenario in self.scenarios.values()
            for seed in self.grid.seeds
            for defence in (*([scenario.baseline] if self.bare else []), *self.defences)
            for stage in self.grid.stages
            for batch_size in self.grid.batch_sizes
            for label, probe in self.probes.items()
        ]
        measured += [
            self._cell(self.scenarios[one.scenario], one.defence, one.label, one.probe, seed, stage, batch_size)
            for one in self.further
            for seed in self.grid.seeds
            for stage in self.grid.stages
            for batch_size in self.grid.batch_sizes
        ]
        controls = [
            cell
            for scenario in self.scenarios.values()
            for cell in control_cells(
                scenario,
                self.grid.seeds,
                CONTROL_VICTIMS if isinstance(self.grid.victims, str) else self.grid.victims,
                standard(),
            )
        ]
        # Scenarios that differ in model or length of training alone share their controls.
        return list({cell.key: cell for cell in (*measured, *controls, *null_cells(measured))}.values())

    def _cell(
        self, scenario: Scenario, defence: Defence, label: str, probe: Probe, seed: int, stage: Stage, batch_size: int
    ) -> Cell:
        return Cell(
            scenario=scenario,
            defence=defence,
            probe=probe,
            stage=stage,
            batch_size=batch_size,
            victims=self.victims_in(scenario),
            seed=seed,
            label=label,
        )

    def with_scenarios(self, **settings: Any) -> Self:
        """Return the plan with some settings replaced in each of its scenarios.

        Raises:
            InvalidValue: a scenario's kind has no such setting, or two scenarios would no longer differ.
        """
        changed = {name: change(scenario, **settings) for name, scenario in self.scenarios.items()}
        return type(self).model_validate({**dict(self), "scenarios": changed})

    def victims_in(self, scenario: Scenario) -> int:
        """Return how many messages each cell of a scenario measures.

        Raises:
            InvalidValue: all are asked for where that says nothing, or they are too many.
        """
        victims = self.grid.victims
        if not isinstance(victims, str):
            return victims
        messages = scenario.messages
        if messages is None or set(self.grid.stages) != {"training"}:
            raise InvalidValue(
                "The `victims` of the grid can be `all` for split learning at the stage `training` alone. Give their "
                "number instead."
            )
        if not 1 <= messages <= MOST_VICTIMS:
            raise InvalidValue(
                f"A training run must have 1 to {MOST_VICTIMS} messages to measure `all`. Got {messages} instead."
            )
        return messages

    def with_seed(self, seed: int) -> Self:
        """Return the plan for one seed."""
        grid = Grid.model_validate({**dict(self.grid), "seeds": (seed,)})
        return self.model_copy(update={"grid": grid})


def change(scenario: Scenario, **settings: Any) -> Scenario:
    """Return a scenario with some settings replaced."""
    known = type(scenario).model_fields
    for name in settings:
        if name not in known:
            raise InvalidValue(f"The scenario {scenario.kind} has no setting `{name}`. {did_you_mean(name, known)}")
    return type(scenario).model_validate({**dict(scenario), **settings})


def on_device(plan: Plan, device: str | None) -> Plan:
    """Return the plan for a device, by its own name in place of `auto`.

    This way the same machine gives the same keys.
    """
    placed = {name: _move(scenario, device) for name, scenario in plan.scenarios.items()}
    return plan.model_copy(update={"scenarios": placed})


def _move(scenario: Scenario, device: str | None) -> Scenario:
    if "device" not in type(scenario).model_fields:
        return scenario
    wanted: Any = device or dict(scenario)["device"]
    if wanted not in get_args(DeviceName):
        raise unknown("device", wanted, get_args(DeviceName))
    return change(scenario, device=device_of(wanted).type)
