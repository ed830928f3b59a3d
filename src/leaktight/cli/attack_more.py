"""`leaktight attack-more`: attack harder what does not leak yet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leaktight.cli.audit import SOME_FAILED
from leaktight.cli.interruption import stop_with
from leaktight.cli.worker_options import Address, Engine, Workers, open_workers

EXAMPLES = """
\b
Example:
  leaktight attack-more leaktight-quick
"""


def attack_more(
    folder: Annotated[Path, typer.Argument(help="The folder of an audit.", metavar="DIR")],
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Leave private images and the seeds out of the report.")
    ] = False,
) -> None:
    """Attack harder wherever the verdict is not `leaks`, and write the report anew.

    The suite `strongest` searches four times as long against these defences, and without a defence to compare with.
    Each further call searches four times as long as the one before. After an interruption the same command resumes.
    """
    from leaktight.cli.audit import hint_of
    from leaktight.cli.outcome import show
    from leaktight.cli.progress import Bar
    from leaktight.core.record import Status
    from leaktight.findings.attack_more import plan_more
    from leaktight.findings.summary import summarise
    from leaktight.findings.summary_file import write_summary
    from leaktight.report import write_report
    from leaktight.running import run
    from leaktight.running.store import Store

    with Store.read(folder) as store:
        plan, records, missing = store.plan(), store.records(), store.missing()
    # What an earlier call began and did not finish comes first.
    more = plan if missing else plan_more(plan, summarise(records).judgements)
    with (
        stop_with("finished cells are kept; run the same command to resume."),
        Bar() as bar,
        open_workers(engine, workers, address) as pool,
    ):
        records = run(more, folder, workers=pool, progress=bar.step)
    summary = summarise(records)
    show(records, list(more.scenarios), summary=summary)
    write_summary(folder, redact=redact, summary=summary)
    typer.echo(
        f"\nReport: {write_report(folder, redact=redact, summary=summary, tell=typer.echo)}{hint_of(records, redact)}"
    )
    if any(record.status is Status.FAILED for record in records):
        raise typer.Exit(SOME_FAILED)
