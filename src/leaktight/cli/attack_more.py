"""`leaktight attack-more`: attack harder what does not leak yet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leaktight.cli.interruption import stop_with
from leaktight.cli.output_options import Json, Quiet
from leaktight.cli.worker_options import Address, Backend, Workers, open_workers

EXAMPLES = """
\b
Example:
  leaktight attack-more leaktight-quick
"""


def attack_more(
    folder: Annotated[Path, typer.Argument(help="The folder of an audit.", metavar="DIR")],
    workers: Workers = None,
    backend: Backend = "local",
    address: Address = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Leave private images and the seeds out of the report.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Attack harder wherever the verdict is not `leaks`, and write the report anew.

    The suite `strongest` searches four times as long against these defences, and without a defence to compare with.
    Each further call searches four times as long as the one before. After an interruption the same command resumes.
    """
    from leaktight.cli.audit import finish
    from leaktight.cli.progress import Bar
    from leaktight.findings.attack_more import plan_more
    from leaktight.findings.summary import summarise
    from leaktight.running import run
    from leaktight.running.store import Store

    with Store.read(folder) as store:
        plan, records, missing = store.plan(), store.records(), store.missing()
    # What an earlier call began and did not finish comes first.
    more = plan if missing else plan_more(plan, summarise(records).judgements)
    with (
        stop_with("finished cells are kept; run the same command to resume."),
        Bar(quiet=quiet) as bar,
        open_workers(backend, workers, address) as pool,
    ):
        records = run(more, folder, workers=pool, progress=bar.step, on_begin=lambda sound: bar.begin(sound, pool))
    bar.end()
    finish(folder, records, list(more.scenarios), more.caveats, redact, quiet, json)
