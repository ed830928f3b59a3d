"""Faces of 64x64: trials of the plain GAN attack, to choose the settings of `reproduce class-keys` on faces.

Each variant attacks the plain framework, never keys, under seeds and on people that no table reports. It prints how
many samples are recognised in the end, in the median round and in the best, how far they are from the victim's pictures
relative to the mean of public ones, how much they differ, and how good the shared model is. A trial takes minutes:

    python benchmarks/faces.py --data path/to/data --variant start --seeds 1

Without `--data`, or without a sub-folder `olivetti`, nothing is tried. A variant works if every seed's median round has
most samples recognised: then it may be entered as `FACES` in `papers/class_keys/scales.py`.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from _rows import Row, parser, show

from leaktight.attacks.gan import GanAttack
from leaktight.core.defence import Undefended
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.learning.optimiser import Adam, Sgd
from leaktight.models.generator import Generator
from leaktight.models.lenet import LeNet
from leaktight.papers import Order
from leaktight.papers.class_keys.audits import BEHIND, deal_classes, make_federation
from leaktight.papers.class_keys.mechanisms import attempt
from leaktight.papers.class_keys.scales import OLIVETTI, Study, scope_of
from leaktight.papers.datasets import find_set

FIRST_SEED, FIRST_VICTIM = 100, 15
"""Seeds and people of trials; the tables have seeds from 0 and the first people."""
SHOWN = ("recognised", "recognised_median", "recognised_best", "mean_picture", "sample_diversity")


def variants(study: Study) -> dict[str, Study]:
    """Return what is tried, by name; each says what it changes of the settings that are entered now."""

    def change(attack: dict[str, Any] | None = None, **settings: Any) -> Study:
        return study.model_copy(update={**settings, "attack": study.attack.model_copy(update=attack or {})})

    wide = LeNet(activation="relu", norm="instance", channels=(12, 24), linear=(512, 512))
    return {
        "start": study,
        "few turns, 50 steps each": change({"generator_steps": 50}, rounds=50),
        "slower generator": change({"optimiser": Adam(learning_rate=0.0003)}),
        "slower model": change(optimiser=Adam(learning_rate=0.0003)),
        "wider generator": change({"generator": Generator(width=32)}, rounds=100),
        "wider model": change(network=wide),
        "short turns": change(local_epochs=0, local_steps=2, rounds=400),
        "more fakes": change({"fakes": 32, "kept_rounds": 3}),
        "plain steps": change(optimiser=Sgd(learning_rate=0.05, momentum=0.9)),
    }


def trial_rows(name: str, study: Study, number: int) -> list[Row]:
    """Train once with the attacker in its seat, and score its samples."""
    start = time.process_time()
    attack: GanAttack = study.attack.model_copy(update={"victim_class": FIRST_VICTIM + number, "class_key": "random"})
    trial, seed = attempt(attack), FIRST_SEED + number
    scenario = make_federation(study, deal_classes(study.classes, 2), study.rounds, spare=1)
    training = scenario.train(Undefended(), seed, enter=trial.enter)
    spent = time.process_time() - start
    run = scenario.observe(training, Undefended(), Observation("end", BEHIND, 2, seed), trial.enter)
    readings = {reading.name: reading for reading in trial.read(run, stream(seed, "trial")).readings}
    rows = [Row(f"{name}, seed {seed}: {reading}", readings[reading].value, "") for reading in SHOWN]
    rows.append(Row(f"{name}, seed {seed}: accuracy", training.utility[0].value, ""))
    rows.append(Row(f"{name}, seed {seed}: training", spent, "s"))
    return rows


def main() -> None:
    """Try the variants that were asked for."""
    options = parser(__doc__)
    options.add_argument("--data", default="", help="folder with the sub-folders `mnist` and `olivetti`")
    options.add_argument("--variant", action="append", help="which to try; all if none is named")
    options.add_argument("--seeds", type=int, default=3, help="how many seeds, each with a person of its own")
    options.add_argument("--rounds", type=int, help="cut to so many rounds, to see that it runs")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    if not chosen.data or find_set(chosen.data, "olivetti") is None:
        print("Nothing is tried: it needs faces. Name a folder that has a sub-folder `olivetti` with `--data`.")
        return
    studies = {study.name: study for study in scope_of(Order(scale="small", data=chosen.data)).studies}
    tried = variants(studies[OLIVETTI])
    rows: list[Row] = []
    for name in chosen.variant or tried:
        study = tried[name]
        if chosen.rounds:
            study = study.model_copy(update={"rounds": chosen.rounds})
        for number in range(chosen.seeds):
            found = trial_rows(name, study, number)
            show(found, None)
            rows += found
    if chosen.json:
        show(rows, chosen.json)


if __name__ == "__main__":
    main()
