"""Split learning between two machines: what the wire costs, against the same training in one process.

Two processes, one for each party, train over gRPC on loopback; one process trains the same network on the same rows in
the same order with the same two parties. Steps per second are those after the first tenth, as the label party sees
them; the runs take turns, and the median of each counts. The rows are made up: 13 numbers and 26 hashed words with the
feature party, 13 numbers with the label party.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from leaktight.core.draws import PublicSeed
from leaktight.core.threads import rest_soon

rest_soon()  # torch reads it when it is imported

import torch
from _rows import Row, parser, show

from leaktight.core.certificates import make_certificates
from leaktight.core.local import Local
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.data import Columns
from leaktight.learning import BatchOrder, FeatureParty, LabelParty
from leaktight.models import WideDeep, halves
from leaktight.wire import PartyFile, PartyProgress, parse_party_file, take_part
from leaktight.wire.party_data import PartyData

NUMBERS, WORDS, BUCKETS = 13, 26, 1000
ROLES, BOTH = ("label-party", "feature-party"), "both"
COLUMNS = Columns(tuple(map(str, range(NUMBERS + WORDS))), (0,) * NUMBERS + (BUCKETS + 1,) * WORDS)


def held(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows and labels that both ways train on."""
    rng, count = stream(0, "rows"), 2 * batch
    numbers, ids = (
        torch.randn(count, NUMBERS, generator=rng),
        torch.randint(0, BUCKETS + 1, (count, WORDS), generator=rng),
    )
    return torch.cat([numbers, ids], 1), (torch.rand(count, generator=rng) < 0.25).long()


class Made(PartyFile):
    """A party's settings with rows that are made up in place of a file's."""

    def load_data(self, role: str) -> PartyData:
        """Return the party's part of the rows."""
        rows, labels = held(self.agreement.batch_size)
        if role == "label-party":
            return PartyData(Batch(rows[:, :NUMBERS], labels), None, COLUMNS.take(range(NUMBERS)), 2)
        return PartyData(Batch(rows, torch.full_like(labels, -1)), None, COLUMNS, 0)


class Clock:
    """Notes when each step was taken."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, progress: PartyProgress | None = None) -> None:
        """Take in that a step was taken."""
        self.times.append(time.perf_counter())

    def rate(self) -> float:
        """Return steps per second after the first tenth."""
        start = len(self.times) // 10
        return (len(self.times) - 1 - start) / (self.times[-1] - self.times[start])


def in_one_process(batch: int, width: int, steps: int) -> float:
    """Return steps per second of both parties in this process."""
    rows, labels = held(batch)
    made = halves(WideDeep(hidden=(128, 128, width)), COLUMNS, 2, PublicSeed(0), own=COLUMNS.take(range(NUMBERS)))
    feature = FeatureParty(made.bottom, rows, BatchOrder(len(rows), batch, 0), Local("feature-party", 0))
    label = LabelParty(
        made.top, labels, BatchOrder(len(rows), batch, 0), Local("label-party", 0), made.shape, rows[:, :NUMBERS]
    )
    message, clock = feature.respond(label.opening()), Clock()
    for _ in range(steps):
        message = feature.respond(label.respond(message))
        clock()
    return clock.rate()


def in_a_fresh_one(*size: int) -> float:
    """Return the same of a new process, so that both ways begin alike."""
    words = [sys.executable, __file__, "--role", BOTH, "--document", json.dumps(size)]
    return float(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)  # noqa: S603


def between_two(batch: int, width: int, steps: int, **wire: object) -> float:
    """Return steps per second of two processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        made = make_certificates(Path(folder, "certificates"), ROLES)
        processes = {}
        for role in ROLES:
            document = {
                "scenario": {
                    "model": {"kind": "wide_deep", "hidden": [128, 128, width]},
                    "data": "rare_digit",
                    "rounds": steps,
                    "batch_size": batch,
                },
                "wire": {
                    "listen" if role == "label-party" else "connect": address,
                    "checkpoint": str(Path(folder, role)),
                    **({} if wire.get("insecure") else {"certificates": str(made[role].key.parent)}),
                    **wire,
                },
            }
            words = [sys.executable, __file__, "--role", role, "--document", json.dumps(document)]
            processes[role] = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603
        try:
            said, _ = processes["label-party"].communicate(timeout=900)
            return float(said)
        finally:
            for process in processes.values():
                process.kill()
                process.communicate()


def one_party(role: str, document: str) -> None:
    """Take part as one party, or as both, and print the steps per second."""
    if role == BOTH:
        print(in_one_process(*json.loads(document)))
        return
    settings = parse_party_file(json.loads(document))
    clock = Clock()
    take_part(role, Made(settings.agreement, settings.data, settings.defence, settings.wire), lambda _: None, clock)
    print(clock.rate())


def measured(ways: dict[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Return the median of each way's steps per second; the ways take turns."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            found[name].append(way())
    return {name: statistics.median(rates) for name, rates in found.items()}


def rows_of(chosen: argparse.Namespace) -> list[Row]:
    """Measure every way."""
    size = (chosen.batch, chosen.width, chosen.steps)
    ways: dict[str, Callable[[], float]] = {
        "one process": lambda: in_a_fresh_one(*size),
        "mutual TLS": lambda: between_two(*size),
        "without TLS": lambda: between_two(*size, insecure=True),
        "mutual TLS, int8": lambda: between_two(*size, compression="int8"),
    }
    rates = measured(ways, chosen.repeats)
    what = f"{chosen.batch} x {chosen.width}"
    rows = [Row(f"one process, {what}", rates["one process"], "steps/s")]
    for name in list(ways)[1:]:
        rows.append(Row(f"two processes, {what}, {name}", rates[name], "steps/s"))
        bar = 0.6 if name == "mutual TLS" else None
        rows.append(Row(f"two processes against one, {name}", rates[name] / rates["one process"], "x", bar))
    return rows


def main() -> None:
    """Measure the wire, or be one of its two parties."""
    options = parser(__doc__)
    options.add_argument("--batch", type=int, default=4096, help="examples per step")
    options.add_argument("--width", type=int, default=64, help="numbers per example at the cut")
    options.add_argument("--steps", type=int, default=200, help="steps of each run")
    options.add_argument("--repeats", type=int, default=3, help="runs of each way")
    options.add_argument("--role", choices=[*ROLES, BOTH], help=argparse.SUPPRESS)
    options.add_argument("--document", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.role:
        one_party(chosen.role, chosen.document)
    else:
        show([Row("threads", torch.get_num_threads(), ""), *rows_of(chosen)], chosen.json)


if __name__ == "__main__":
    main()
