"""`leaktight audit`: measure what leaks, write the report, say the verdict."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leaktight.cli.interruption import stop_with
from leaktight.cli.output_options import Json, Quiet
from leaktight.cli.table_options import NONE_GIVEN, TableOptions, takes_table_options
from leaktight.cli.worker_options import Address, Backend, Workers, open_workers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaktight.cli.progress import Bar
    from leaktight.core.record import Record
    from leaktight.plans.plan import Plan
    from leaktight.running import worker_pool

SOME_FAILED = 1

EXAMPLES = """
\b
Examples:
  leaktight audit
  leaktight audit --model resnet20 --data photos --preset standard
  leaktight audit --model mine.models:net --data mine.npz --head classifier.2
  leaktight audit --model mine.models:net --data mine.npz --batch-norm eval --weights mine.safetensors
  leaktight audit audit.toml --workers 2 --out results
  leaktight audit --model convnet --data photos --budget 10m
  leaktight audit --data loans.csv:default --model mlp --ignore customer --missing fill
  leaktight audit --captured recorded --model mine.models:net --shape 1,28,28
"""


@takes_table_options
def audit(
    file: Annotated[
        Path | None,
        typer.Argument(help="A plan in TOML; `leaktight init` writes one.", metavar="FILE", show_default=False),
    ] = None,
    preset: Annotated[
        Literal["quick", "standard"] | None,
        typer.Option(
            help="A ready plan in place of a file: a few minutes, or about twenty, for a small network.",
            show_default="quick, without a file",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model kind, or your own as package.module:function.")] = None,
    data: Annotated[str | None, typer.Option(help="A data kind, a file or folder, or package.module:function.")] = None,
    head: Annotated[str | None, typer.Option(help="Your model's last linear layer, if it is not found.")] = None,
    batch_norm: Annotated[
        Literal["train", "eval"] | None,
        typer.Option(help="The mode of your model's batch norm.", show_default="train"),
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="Which of your model's outputs is the class scores: a key or a place.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="Your model's pretrained weights (safetensors).", metavar="FILE")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="One seed in place of the plan's.", show_default=False)] = None,
    workers: Workers = None,
    backend: Backend = "local",
    address: Address = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="How long it may take, such as 10m, or `none`; which attacks fit is decided at the start.",
            metavar="TIME",
            show_default="10m for your own model by the preset quick",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The audit's folder.", show_default="leaktight-NAME")] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda", "mps"] | None,
        typer.Option(help="Where tensors live.", show_default="as the plan says"),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Leave private images and the seeds out of the report.")
    ] = False,
    captured: Annotated[
        Path | None,
        typer.Option(help="A folder with recorded messages, audited in place of a training.", metavar="DIR"),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="The private batches behind recorded messages (safetensors): grades them.", metavar="PATH"),
    ] = None,
    shape: Annotated[str | None, typer.Option(help="The shape of one recorded example, such as 1,28,28.")] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(
            help="How recorded messages were made, such as momentum=0.9; repeat it for more.", metavar="NAME=VALUE"
        ),
    ] = None,
    table: TableOptions = NONE_GIVEN,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Measure what shared messages leak, with and without defences, and write a report.

    Finished cells are kept: after an interruption the same command resumes.
    """
    from leaktight.cli.captured import of_captures
    from leaktight.cli.progress import Bar
    from leaktight.running import run
    from leaktight.running.time_budget import OWN_BUDGET, read_budget, time_limit

    if captured is not None or truth is not None or shape is not None or known:
        _refuse_own(batch_norm=batch_norm, output=output, weights=weights)
        plan = of_captures(captured, truth, shape, file, preset, model, data, head, known or ())
    else:
        plan = choose_plan(file, preset, model, data, head, batch_norm=batch_norm, output=output, weights=weights)
    plan = table.apply_in(plan)
    if seed is not None:
        plan = plan.with_seed(seed)
    own = file is None and captured is None and _is_own(plan)
    limit = time_limit(budget, own and preset != "standard")
    folder = out or Path(f"leaktight-{file.stem if file else 'captured' if captured else preset or 'quick'}")
    with (
        stop_with("finished cells are kept; run the same command to resume."),
        Bar(quiet=quiet) as bar,
        open_workers(backend, workers, address) as pool,
    ):
        if own and budget is None and limit is not None:
            bar.say(
                f"It takes at most {OWN_BUDGET}, as nobody knows what your network costs; `--budget` says otherwise."
            )
        first = _say_before(bar, plan, folder, pool, device, limit, own, captured is not None)
        records = run(
            plan,
            folder,
            workers=pool,
            device=device,
            progress=bar.step,
            budget=limit,
            on_begin=lambda sound: bar.begin(sound, pool),
            on_undefended=None if captured and first else partial(bar.say_first_answer, again=first),
        )
    bar.end()
    spent = None if limit is None else read_budget(folder)
    if spent is not None:
        bar.say(str(spent))
    finish(folder, records, list(plan.scenarios), spent.caveats if spent else (), redact, quiet, json)


def _say_before(
    bar: Bar,
    plan: Plan,
    folder: Path,
    workers: worker_pool.Workers,
    device: str | None,
    limit: float | None,
    own: bool,
    captured: bool,
) -> bool:
    """Say what attacks that take seconds get, and what is measured before the audit begins.

    Args:
        bar: where to say it.
        plan: the whole audit.
        folder: the audit's folder.
        workers: who measures.
        device: as for `run`.
        limit: how many seconds the audit has; None for no limit.
        own: whether it is of a person's own network, without a file.
        captured: whether it is of recorded messages.

    Returns:
        Whether there was an answer.
    """
    from leaktight.cli.captured import answer_first
    from leaktight.findings.first_answer import at_a_glance

    answer = at_a_glance(plan, folder, device) if own and not bar.quiet else ""
    if answer:
        bar.say(answer)
    if limit is not None:
        bar.say("First it measures what training runs and attacks cost here, unless the folder has a list already.")
    if captured:
        answer = answer_first(plan, folder, workers, device, bar.step, partial(bar.begin, workers=workers))
        if answer:
            bar.say(answer)
    return bool(answer)


def _refuse_own(**given: str | None) -> None:
    """Refuse settings of a network that is trained here, where messages were recorded elsewhere."""
    from leaktight.core.errors import InvalidValue

    option = next((name for name, value in given.items() if value is not None), None)
    if option is not None:
        raise InvalidValue(
            f"`--{option.replace('_', '-')}` is a setting of a network that is trained here. Recorded messages bring "
            "their own parameters; leave it out, and state how they were made with `--known`."
        )


def _is_own(plan: Plan) -> bool:
    """Return whether a plan audits a person's own network."""
    from leaktight.models import Factory

    return any(isinstance(dict(scenario).get("model"), Factory) for scenario in plan.scenarios.values())


def finish(
    folder: Path,
    records: Sequence[Record],
    scenarios: Sequence[str],
    caveats: Sequence[str],
    redact: bool,
    quiet: bool,
    json: bool,
) -> None:
    """Write report and summary, say what was found, and end with an exit code of its own if a cell failed."""
    from leaktight.cli.outcome import reasons, show, words_of
    from leaktight.core.record import Status
    from leaktight.findings.summary import summarise
    from leaktight.findings.summary_file import write_summary
    from leaktight.report import write_report

    summary = summarise(records)
    report = write_report(folder, redact=redact, summary=summary, tell=partial(typer.echo, err=True))
    written = write_summary(folder, redact=redact, summary=summary)
    failed = reasons(records, Status.FAILED)
    if json:
        typer.echo(written.read_text(), nl=False)
    elif quiet:
        typer.echo("\n".join([*words_of(summary), f"Report: {report}"]))
    else:
        show(records, scenarios, summary=summary, caveats=caveats)
        typer.echo("\n".join(["", f"Report: {report}", *hints_of(records, redact)]))
    if failed:
        if json or quiet:
            typer.echo("\n".join(f"Failed: {reason}" for reason in failed), err=True)
        raise typer.Exit(SOME_FAILED)


def hints_of(records: Sequence[Record], redact: bool) -> list[str]:
    """Say what a report shows that is private, and how to leave it out."""
    from leaktight.findings import leak_kinds

    pictured = [kind.pictured for kind in leak_kinds() if kind.pictured]
    images = any(record.reading(name) for record in records for name in pictured)
    content = "shows private images" if images else "may hold private values"
    return [] if redact else [f"It {content}; --redact leaves them out."]


def choose_plan(
    file: Path | None,
    preset: str | None,
    model: str | None,
    data: str | None,
    head: str | None = None,
    **own: str | None,
) -> Plan:
    """Return the plan that the words of a command line ask for; `own` are more settings of a person's own model."""
    from leaktight.core.errors import InvalidValue
    from leaktight.data import from_text as data_from
    from leaktight.models import from_text as model_from
    from leaktight.models.text import set_own
    from leaktight.plans import quick, read_plan, standard

    if file is not None and preset is not None:
        raise InvalidValue(f"Give a file or a preset, not both. Got `{file}` and `--preset {preset}`.")
    chosen: dict[str, Any] = {}
    network = set_own(None if model is None else model_from(model), head=head, **own)
    if network is not None:
        chosen["model"] = network
    if data is not None:
        chosen["data"] = data_from(data)
    if file is not None:
        return read_plan(file).with_scenarios(**chosen)
    return standard(**chosen) if preset == "standard" else quick(**chosen)
