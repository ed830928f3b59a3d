"""Who does the work of a command: processes here, or Ray.

The options, and the block that starts and stops what they ask for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leaktight.core.errors import InvalidValue
from leaktight.core.memory import WORKER_MEMORY, free_memory, workers_that_fit

if TYPE_CHECKING:
    from leaktight.running import worker_pool

Workers = Annotated[
    int | None, typer.Option(help="How many work at the same time.", show_default="one per core, as far as memory goes")
]
Backend = Annotated[Literal["local", "ray"], typer.Option(help="Who works: processes here, or Ray.")]
Address = Annotated[
    str | None,
    typer.Option(help="A Ray cluster's, as host:port.", show_default="a Ray is started here and stopped after"),
]


@contextmanager
def open_workers(
    backend: Literal["local", "ray"], workers: int | None, address: str | None
) -> Iterator[worker_pool.Workers]:
    """Return what an audit or a search takes as its `workers`; what was started for it is stopped after the block."""
    if backend == "local":
        if address is not None:
            raise InvalidValue(f"`--address {address}` is that of a Ray cluster. Add `--backend ray`, or leave it out.")
        _warn_of_memory(workers)
        yield workers_that_fit() if workers is None else workers
        return
    from leaktight.running.ray_cluster import Cluster

    with Cluster(workers, address) as cluster:
        yield cluster


def _warn_of_memory(workers: int | None) -> None:
    """Say so if more workers were asked for than there is memory for."""
    free = free_memory()
    if workers is not None and workers > 1 and free is not None and workers * WORKER_MEMORY > free:
        typer.echo(
            f"Memory may run short: {workers} workers hold up to {workers * WORKER_MEMORY / 2**30:.1f} GiB in "
            f"searches, and {free / 2**30:.1f} GiB are free. `--workers {max(1, free // WORKER_MEMORY)}` is safe.",
            err=True,
        )
