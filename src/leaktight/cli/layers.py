"""`leaktight layers`: where in a model the leak sits: what each layer gives away by itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leaktight.cli.audit import SOME_FAILED
from leaktight.cli.interruption import stop_with
from leaktight.cli.output_options import Json, Quiet
from leaktight.cli.table_options import NONE_GIVEN, TableOptions, takes_table_options
from leaktight.cli.worker_options import Address, Backend, Workers, open_workers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaktight.core.record import Record
    from leaktight.data.source import Source
    from leaktight.plans.layer_study import LayerStudy

EXAMPLES = """
\b
Examples:
  leaktight layers                                             bundled digits, some minutes
  leaktight layers --data people.csv:income --property sex
  leaktight layers --data people.csv:income --property job --property-positive nurse --matched-labels
  leaktight layers --data faces.npz --property glasses --model mine.models:net --rounds 300
"""


@takes_table_options
def layers(
    data: Annotated[str, typer.Option(help="A data kind, a file or folder, or package.module:function.")] = "parity",
    model: Annotated[
        str | None,
        typer.Option(
            help="A model kind, or your own as package.module:function.",
            show_default="face_alexnet for images, mlp for all else",
        ),
    ] = None,
    private_property: Annotated[
        str | None,
        typer.Option(
            "--property", help="The column or member that nobody meant to share.", show_default="the data's own, if any"
        ),
    ] = None,
    property_positive: Annotated[
        str | None,
        typer.Option(
            help="The cell that means that a row has the property.", show_default="of two cells, see the docs"
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The column that is learned.", show_default="the data's own")
    ] = None,
    rounds: Annotated[int, typer.Option(help="How long the model trains.")] = 100,
    participants: Annotated[int, typer.Option(help="How many train together.")] = 2,
    local_steps: Annotated[int, typer.Option(help="Steps behind one message; above 1 it is an update.")] = 1,
    batch_size: Annotated[int, typer.Option(help="Examples behind one step.")] = 32,
    share: Annotated[float, typer.Option(help="Which part of a batch with the property has it.")] = 1.0,
    matched_labels: Annotated[
        bool, typer.Option("--matched-labels", help="Batches with the property and without have labels alike.")
    ] = False,
    messages: Annotated[int, typer.Option(help="How many messages are judged; more gives narrower intervals.")] = 100,
    gradients: Annotated[
        int, typer.Option(help="How many gradients the attacker learns from; more is stronger.")
    ] = 400,
    victims: Annotated[int, typer.Option(help="How many images are inverted, layer by layer; 0 for none.")] = 4,
    seed: Annotated[int, typer.Option(help="What all randomness derives from.")] = 0,
    workers: Workers = None,
    backend: Backend = "local",
    address: Address = None,
    out: Annotated[Path, typer.Option(help="The folder for the result.")] = Path("leaktight-layers"),
    device: Annotated[Literal["auto", "cpu", "cuda", "mps"], typer.Option(help="Where tensors live.")] = "auto",
    table: TableOptions = NONE_GIVEN,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Measure what each layer gives away: of a private property, of the labels, and of the examples themselves.

    Finished cells are kept: after an interruption the same command resumes.
    """
    from leaktight.cli.progress import Bar
    from leaktight.models import from_text
    from leaktight.plans.layer_study import LayerStudy
    from leaktight.running import run

    source = table.apply(_source(data, label, private_property, property_positive))
    study = LayerStudy(
        data=source,
        model=from_text(model or _fitting_model(source)),
        participants=participants,
        rounds=rounds,
        local_steps=local_steps,
        batch_size=batch_size,
        share=share,
        matched=matched_labels,
        messages=messages,
        gradients=gradients,
        victims=victims,
        seed=seed,
        device=device,
    )
    records = []
    with (
        stop_with("finished cells are kept; run the same command to resume."),
        Bar(quiet=quiet) as bar,
        open_workers(backend, workers, address) as pool,
    ):
        for name, plan in study.plans().items():
            records += run(
                plan,
                out / name,
                workers=pool,
                progress=bar.step,
                on_begin=lambda sound: bar.begin(sound, pool),
            )
    bar.end()
    _finish(study, records, out, quiet, json)


def _finish(study: LayerStudy, records: Sequence[Record], out: Path, quiet: bool, json: bool) -> None:
    """Write page and ranking, say what was found, and end with an exit code of its own if a cell failed."""
    from leaktight.cli.layer_table import show
    from leaktight.cli.outcome import reasons
    from leaktight.core.record import Status
    from leaktight.findings.layer_file import LAYERS_FILE, write_layers
    from leaktight.findings.layer_risk import first_question, layer_rows
    from leaktight.findings.layer_words import layer_sentences, setup_sentences
    from leaktight.report import write_layer_report

    rows, question = layer_rows(records), first_question(records)
    for status in (Status.REFUSED, Status.FAILED):
        for reason in reasons([record for record in records if record.status is status], status):
            typer.echo(f"{status.capitalize()}: {reason}", err=True)
    if not rows:
        raise typer.Exit(SOME_FAILED)
    about = setup_sentences(study)
    write_layers(out / LAYERS_FILE, rows, about)
    tell = partial(typer.echo, err=True)
    report = write_layer_report([out / name for name in study.plans()], out / "layers.html", tell=tell, about=about)
    if json:
        typer.echo((out / LAYERS_FILE).read_text(), nl=False)
    elif quiet:
        typer.echo("\n".join([*layer_sentences(rows, question), f"Report: {report}"]))
    else:
        show(rows, about=about, question=question)
        typer.echo(f"\nReport: {report}\nRanking: {out / LAYERS_FILE} (for `layer_guard`)")
    if any(record.status is Status.FAILED for record in records):
        raise typer.Exit(SOME_FAILED)


def _fitting_model(source: Source) -> str:
    """Return the kind of network that is taken where nobody names one: one for images, or one for all else."""
    from leaktight.plans.layer_study import IMAGE

    return "face_alexnet" if len(source.load().shape) == IMAGE else "mlp"


def _source(text: str, label: str | None, private_property: str | None, positive: str | None) -> Source:
    """Return the source that a text names, with another label or private property if asked for."""
    from leaktight.core.errors import InvalidValue
    from leaktight.data import from_text

    found = from_text(text)
    chosen = {"label": label, "private_property": private_property, "private_property_positive": positive}
    wanted = {name: value for name, value in chosen.items() if value is not None}
    for name in wanted:
        if name not in type(found).model_fields:
            able = (
                "a .csv file"
                if name == "label"
                else "a .csv or .npz file, or a function that returns a Data with properties"
            )
            option = name.removeprefix("private_").replace("_", "-")
            raise InvalidValue(f"The data `{text}` has no `{option}` to choose. `--{option}` needs {able}.")
    return type(found).model_validate({**found.to_dict(), **wanted})
