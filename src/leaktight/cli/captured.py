"""`leaktight audit --captured`: the plan that a command line asks for when messages were recorded elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leaktight.captures import AsCaptured, Known, read_captures
from leaktight.core.display import join_words
from leaktight.core.errors import InvalidValue
from leaktight.data import from_text as data_from
from leaktight.findings.summary import summarise
from leaktight.models import Factory
from leaktight.models import from_text as model_from
from leaktight.plans import capture_plan
from leaktight.plans.captured import cheapest
from leaktight.plans.plan import Plan
from leaktight.running import run
from leaktight.running.scheduler import OnBegin, Progress
from leaktight.running.worker_pool import Workers


def of_captures(
    folder: Path | None,
    truth: Path | None,
    shape: str | None,
    file: Path | None,
    preset: str | None,
    model: str | None,
    data: str | None,
    head: str | None,
    known: Sequence[str] = (),
) -> Plan:
    """Return the plan for an audit of captures.

    Args:
        folder: where they are.
        truth: the private batches behind them: a file, or a folder of files.
        shape: the shape of one example, as numbers between commas.
        file: a plan in TOML, which captures have no need of.
        preset: `standard` searches as long as the attacks' sources do.
        model: the person's own model.
        data: public examples of the same kind, which the attacker is taken to know: they set chance levels.
        head: the model's last linear layer.
        known: what is known of how they were made, `NAME=VALUE` each.
    """
    if folder is None:
        raise InvalidValue(
            "`--truth`, `--shape` and `--known` are about recorded messages. Name their folder with `--captured`."
        )
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
    return capture_plan(folder, own, truth, wanted, public, thorough=preset == "standard", known=read_known(known))


def read_known(words: Sequence[str]) -> Known:
    """Return what a command line states of how messages were made.

    Example:
        >>> known = read_known(["learning-rate=0.1", "mean=none"])
        >>> known.learning_rate, known.mean, known.momentum
        (0.1, (), None)
    """
    fields: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not value:
            raise InvalidValue(f"What is known must be given as `NAME=VALUE`, such as `momentum=0.9`. Got {word!r}.")
        several = name in ("mean", "std", "shape")
        parts = () if value == "none" else tuple(part.strip() for part in value.split(","))
        fields[name.strip().replace("-", "_")] = parts if several else value
    return Known(**fields)


def answer_first(
    plan: Plan,
    folder: Path,
    workers: Workers,
    device: str | None,
    progress: Progress | None = None,
    on_begin: OnBegin | None = None,
) -> str:
    """Measure what the cheapest attacks get from recorded messages, and say it before the long searches begin.

    What is measured is kept in the folder, and is not measured again.

    Args:
        plan: the plan of the whole audit.
        folder: the audit's folder.
        workers: who measures.
        device: as for `run`.
        progress: as for `run`.
        on_begin: is called with the plan of what comes first, before it is measured.

    Returns:
        The sentences; nothing if no attack is cheap, or nothing can be said of what they got.
    """
    first = cheapest(plan)
    if first is None:
        return ""
    first = first.model_copy(update={"title": f"{first.title}, the cheapest attacks first"})
    summary = summarise(run(first, folder, workers=workers, device=device, progress=progress, on_begin=on_begin))
    if not summary.judgements:
        return ""
    found = [
        sentence
        for judgement, sentence in zip(summary.judgements, summary.verdict, strict=True)
        if isinstance(judgement.defence, AsCaptured)
    ]
    names = join_words(list(first.probes))
    return f"First answer, by {names}: {' '.join(found or summary.verdict)} Longer searches follow."


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
