"""How a table is read: the options that every command has which reads one."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from leaktight.core.errors import InvalidValue

if TYPE_CHECKING:
    from leaktight.core.value import Value
    from leaktight.plans.plan import Plan

Kept = TypeVar("Kept", bound="Value")
R = TypeVar("R")
NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", r"\t": "\t", "bar": "|", "pipe": "|", "space": " "}
"""What a separator may be called on a command line, where a tab is hard to type."""


@dataclasses.dataclass(frozen=True)
class TableOptions:
    """What a command line says about a table; what it does not say stays as the data's settings have it.

    The fields are the options; `takes_table_options` gives them to a command.
    """

    separator: Annotated[
        str | None,
        typer.Option(help="What stands between a table's cells: ;, tab, ...", show_default="as in the file"),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(help="The columns' names, with commas, of a table without a header.", metavar="NAME,..."),
    ] = None
    positive: Annotated[
        str | None,
        typer.Option(help="Of two labels, the one that is positive.", show_default="the last in order"),
    ] = None
    ignore: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; repeat it for more.", metavar="COLUMN")
    ] = None
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are codes; repeat it for more.", metavar="COLUMN")
    ] = None
    missing: Annotated[
        Literal["error", "fill"] | None,
        typer.Option(help="Refuse empty cells of a table, or fill them.", show_default="error"),
    ] = None
    words: Annotated[
        Literal["one_hot", "ids", "hashed"] | None,
        typer.Option(help="What becomes of a table's words; ids are for wide_deep.", show_default="one_hot"),
    ] = None
    buckets: Annotated[int | None, typer.Option(help="How many ids hashed words share.", show_default="1000")] = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that were given, as a table has them."""
        found = {name: value for name, value in vars(self).items() if value not in (None, [], ())}
        if "separator" in found:
            found["separator"] = NAMES.get(found["separator"].lower(), found["separator"])
        if "columns" in found:
            found["columns"] = [name.strip() for name in found["columns"].split(",")]
        return found

    def apply(self, data: Kept) -> Kept:
        """Return the settings of a table with what was given in place of its own.

        Raises:
            InvalidValue: it is no table, or has no such setting.
        """
        odd = self._odd(data)
        if odd:
            raise InvalidValue(_no_table(odd[0], data))
        return type(data).model_validate({**data.to_dict(), **self.settings}) if self.settings else data

    def apply_in(self, plan: Plan) -> Plan:
        """Return a plan with what was given in each of its scenarios whose data is a table.

        Raises:
            InvalidValue: none is.
        """
        from leaktight.plans.plan import change

        if not self.settings:
            return plan
        sources = {name: dict(scenario).get("data") for name, scenario in plan.scenarios.items()}
        tables = {name: data for name, data in sources.items() if data is not None and not self._odd(data)}
        if not tables:
            raise InvalidValue(_no_table(next(iter(self.settings)), next(iter(sources.values()))))
        changed = {
            name: change(scenario, data=self.apply(tables[name])) if name in tables else scenario
            for name, scenario in plan.scenarios.items()
        }
        return type(plan).model_validate({**dict(plan), "scenarios": changed})

    def _odd(self, data: Value) -> list[str]:
        return [name for name in self.settings if name not in type(data).model_fields]


NONE_GIVEN = TableOptions()
"""What a command is told that is called without a command line."""


def _no_table(option: str, data: Value | None) -> str:
    kind = "" if data is None else f" The data is of kind `{dict(data).get('kind')}`, which has no such setting."
    return f"`--{option}` says how a table (.csv, .tsv) is read.{kind} Leave it out, or name a table."


def takes_table_options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options of tables in place of its last parameter, `table`, which gathers them.

    Args:
        command: what a command line calls, with a parameter `table: TableOptions`.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "table"]
    hints = inspect.get_annotations(TableOptions, eval_str=True)
    last = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(field.name, last, default=field.default, annotation=hints[field.name])
        for field in dataclasses.fields(TableOptions)
    ]

    @functools.wraps(command)
    def call(*words: Any, **given: Any) -> R:
        table = TableOptions(**{option.name: given.pop(option.name, None) for option in options})
        return command(*words, **given, table=table)

    parameters = [*(one.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for one in own), *options]
    call.__dict__["__signature__"] = signature.replace(parameters=parameters)
    call.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    return call
