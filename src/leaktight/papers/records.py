"""Records: everything that a paper's audits measured, as one tidy table to ask from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.core.metric import Reading
from leaktight.core.record import Cell, Record, Status

Purpose = Literal["measure", "control", "null"]
Readings = dict[int, Reading]
"""One reading for each seed that has it."""


class Records:
    """One line for each measured cell; a question that no line answers is an error, not an empty answer.

    The columns are the name of the audit, the fields of a cell (`label`, `defence`, `stage`, `batch_size`, `seed`) and
    those of its scenario (`model`, `rounds`, `participants`). Controls and null views are no measurements: controls are
    left to the report, and null views are in `nulls`.

    A number may be missing for a good reason. Whoever allows that says so: `done` leaves out cells that were refused or
    failed, and `optional` allows a done cell to lack a reading, such as the accuracy of a training run that diverged.

    Args:
        audits: the records of each audit by its name.
        purpose: of which cells.
    """

    def __init__(self, audits: Mapping[str, Iterable[Record]], purpose: Purpose = "measure") -> None:
        self._whole = {name: tuple(records) for name, records in audits.items()}
        self._purpose = purpose
        self._audits = {
            name: tuple(record for record in records if record.cell.purpose == purpose)
            for name, records in self._whole.items()
        }

    def __iter__(self) -> Iterator[Record]:
        return (record for records in self._audits.values() for record in records)

    def __len__(self) -> int:
        return sum(map(len, self._audits.values()))

    def where(self, *audits: str, **columns: Any) -> Records:
        """Return the lines of these audits whose columns have these values; raise an error if there are none.

        Args:
            audits: names of audits; all if none is named.
            columns: the value of each column, which may be a field of the cell or of its scenario.
        """
        unknown = [name for name in audits if name not in self._audits]
        if unknown:
            raise InvalidValue(f"There is no audit named `{unknown[0]}`. {did_you_mean(unknown[0], self._audits)}")
        selected = Records(
            {
                name: [record for record in self._audits[name] if _matches(record, columns)]
                for name in audits or self._audits
            },
            self._purpose,
        )
        if not len(selected):
            wanted = ", ".join(f"{name}={value!s}" for name, value in columns.items())
            raise InvalidValue(
                f"No cell of {_list_names(audits or self._audits)} was planned with {wanted or 'any settings'}."
            )
        return selected

    @property
    def done(self) -> Records:
        """The lines whose cells were done; perhaps none."""
        return Records(
            {
                name: [record for record in records if record.status is Status.DONE]
                for name, records in self._audits.items()
            },
            self._purpose,
        )

    @property
    def nulls(self) -> Records:
        """The same attacks where honest parties send noise, so that there is nothing to find; perhaps none.

        Ask it before `where`.
        """
        return Records(self._whole, "null")

    def by_seed(self) -> dict[int, Record]:
        """Return the record of each seed; raise an error where several cells have the same seed."""
        records: dict[int, Record] = {}
        for record in self:
            # Two audits may have a cell in common; it was measured once.
            if records.setdefault(record.cell.seed, record).cell != record.cell:
                raise InvalidValue(
                    f"Several cells of {_list_names(self._audits)} have the seed {record.cell.seed}. Ask for more "
                    "columns."
                )
        return records

    def readings(
        self, name: str, against: str | None = None, layer: str | None = None, optional: bool = False
    ) -> Readings:
        """Return a reading for each seed; raise an error for a cell that lacks it.

        Args:
            name: the reading's name.
            against: `raw` or `used`; None takes the first there is.
            layer: as messages name it; None for a reading without one.
            optional: whether a cell may lack it; its seed is then left out.
        """
        readings: Readings = {}
        for seed, record in self.by_seed().items():
            reading = find_reading(record, name, against, layer)
            if reading is not None:
                readings[seed] = reading
            elif not optional:
                where = f" of layer `{layer}`" if layer else ""
                raise InvalidValue(f"The {record.status} cell `{record.cell.label}` has no reading `{name}`{where}.")
        return readings

    def reading(
        self, name: str, against: str | None = None, layer: str | None = None, optional: bool = False
    ) -> Reading | None:
        """Return the reading of the only seed; None if it was left out on request. Several seeds are an error."""
        readings = self.readings(name, against, layer, optional)
        if len(readings) > 1:
            raise InvalidValue(f"The reading `{name}` was asked for one seed. {len(readings)} seeds have it.")
        return next(iter(readings.values()), None)


def find_reading(record: Record, name: str, against: str | None = None, layer: str | None = None) -> Reading | None:
    """Return a record's own reading of this name and layer; None if it has none."""
    return next(
        (
            reading
            for reading in record.readings
            if (reading.name, reading.layer, reading.by) == (name, layer, "") and against in (None, reading.against)
        ),
        None,
    )


def _matches(record: Record, columns: Mapping[str, Any]) -> bool:
    return all(_column(record.cell, name) == value for name, value in columns.items())


def _column(cell: Cell, name: str) -> Any:
    return getattr(cell, name) if name in Cell.model_fields else getattr(cell.scenario, name, None)


def _list_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
