"""`leaktight audit --captured`: the plan that a command line asks for when messages were recorded elsewhere."""

from __future__ import annotations

from pathlib import Path

from leaktight.captures import read_captures
from leaktight.core.errors import InvalidValue
from leaktight.data import from_text as data_from
from leaktight.models import Factory
from leaktight.models import from_text as model_from
from leaktight.plans import capture_plan
from leaktight.plans.plan import Plan


def of_captures(
    folder: Path | None,
    truth: Path | None,
    shape: str | None,
    file: Path | None,
    preset: str | None,
    model: str | None,
    data: str | None,
    head: str | None,
) -> Plan:
    """Return the plan for an audit of captures.

    Args:
        folder: where they are.
        truth: the private batches behind them.
        shape: the shape of one example, as numbers between commas.
        file: a plan in TOML, which captures have no need of.
        preset: `standard` searches as long as the attacks' sources do.
        model: the person's own model.
        data: public examples of the same kind, which the attacker is taken to know: they set chance levels.
        head: the model's last linear layer.
    """
    if folder is None:
        raise InvalidValue("`--truth` and `--shape` are about recorded messages. Name their folder with `--captured`.")
    if file is not None:
        raise InvalidValue(f"Give recorded messages or a plan, not both. Got `--captured {folder}` and `{file}`.")
    own = None if model is None else model_from(model)
    if own is not None and not isinstance(own, Factory):
        raise InvalidValue(
            f"The model of recorded messages must be given as `package.module:function`. Got `{model}` instead: its "
            "names are not those of your own state dict."
        )
    if head is not None:
        if own is None:
            raise InvalidValue(
                "`--head` names a layer of your own model. Give that with `--model package.module:function`."
            )
        own = own.model_copy(update={"head": head})
    public, wanted = None if data is None else data_from(data), sizes(shape) if shape else ()
    if own is None:
        # A file that came from elsewhere does not choose the code that is run here.
        names = {capture.manifest.model for capture in read_captures(folder)} - {""}
        trusted = f"; they name `{names.pop()}`, so give that if you trust its code" if len(names) == 1 else ""
        raise InvalidValue(
            "The model of recorded messages must be given with `--model package.module:function`. Got none "
            f"instead{trusted}."
        )
    return capture_plan(folder, own, truth, wanted, public, thorough=preset == "standard")


def sizes(text: str) -> tuple[int, ...]:
    """Return the shape that a text names.

    Example:
        >>> sizes("1,28,28")
        (1, 28, 28)
    """
    parts = text.replace("x", ",").split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise InvalidValue(
            f"A shape must be positive whole numbers between commas, such as `1,28,28`. Got {text!r} instead."
        )
    return tuple(map(int, parts))
