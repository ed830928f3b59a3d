"""How much algebra alone reads: `analytic` on bundled digits and the untrained MLP, by batch size and by defence.

Tolerances were chosen on other seeds and frozen before. Each row is a mean over 25 batches, or 40 of one image: the
share of examples that some answer gives with no pixel off by 0.01, how many certified answers of a batch are wrong, and
the PSNR where nothing is exact. The attacker sits at the server and knows no defence.

    python benchmarks/exact.py
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from _rows import Row, parser, show

from leaktight.attacks import Analytic
from leaktight.core.defence import Defence, Undefended
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.data import Digits
from leaktight.defences import GaussianNoise, Polarization, TopK
from leaktight.learning import Federated
from leaktight.metrics import PSNR, ExactShare, FalseAnswers
from leaktight.models import MLP

SEEDS = range(400, 405)
BARS = {4: 0.95, 8: 0.95, 16: 0.9}


def measure(defence: Defence, batch: int, victims: int = 5, *, normalise: bool = True) -> dict[str, float]:
    """Return each reading's mean over all seeds, and the seconds for a message."""
    scenario = Federated(data=Digits(), model=MLP(), rounds=0, normalise=normalise)
    attempt = Attempt(attack=Analytic(), metrics=(PSNR(), ExactShare(), FalseAnswers()))
    totals: dict[str, float] = {}
    for seed in SEEDS:
        run = scenario.observe(scenario.train(defence, seed), defence, Observation("initial", batch, victims, seed))
        started = time.perf_counter()
        readings = attempt.read(run, stream(seed)).readings
        found = {reading.name: reading.value for reading in readings if reading.against != "used"}
        found["seconds"] = (time.perf_counter() - started) / victims
        totals = {name: totals.get(name, 0.0) + value / len(SEEDS) for name, value in found.items()}
    return totals


def rows() -> Iterator[Row]:
    """Return all rows."""
    for batch, bar in BARS.items():
        for inputs, normalise in (("standardised", True), ("in [0, 1]", False)):
            found = measure(Undefended(), batch, normalise=normalise)
            yield Row(f"batches of {batch}, pixels {inputs}: exact", found["exact_share"], "of examples", bar)
            yield Row(
                f"batches of {batch}, pixels {inputs}: false", found["false_answers"], "a batch", 1, at_least=False
            )
            yield Row(f"batches of {batch}, pixels {inputs}: time", found["seconds"], "s a batch")
    for batch in (1, 4, 8, 12, 16):
        found = measure(Polarization(alpha2=100.0), batch)
        yield Row(
            f"polarization 100, batches of {batch}: exact",
            found["exact_share"],
            "of examples",
            1.0 if batch == 1 else None,
        )
        yield Row(f"polarization 100, batches of {batch}: false", found["false_answers"], "a batch")
        yield Row(f"polarization 100, batches of {batch}: time", found["seconds"], "s a batch")
    for std in (0.001, 0.01, 0.1):
        for inputs, normalise in (("standardised", True), ("in [0, 1]", False)):
            noisy = measure(GaussianNoise(std=std), 1, victims=8, normalise=normalise)
            yield Row(f"one image, noise {std:g}, pixels {inputs}", noisy["psnr"], "dB", 30.0 if std == 0.01 else None)
    for share in (0.5, 0.1, 0.01):
        yield Row(f"one image, top-k {share:g}", measure(TopK(share=share), 1, victims=8)["psnr"], "dB")
    for std in (1e-6, 1e-5, 1e-4, 1e-3):
        found = measure(GaussianNoise(std=std), 8)
        yield Row(f"batches of 8, noise {std:g}: exact", found["exact_share"], "of examples")
        yield Row(f"batches of 8, noise {std:g}: false", found["false_answers"], "a batch")
        yield Row(f"batches of 8, noise {std:g}", found["psnr"], "dB")


if __name__ == "__main__":
    show(list(rows()), parser(__doc__).parse_args().json)
