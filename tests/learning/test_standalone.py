from __future__ import annotations

from pathlib import Path

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.core.errors import Refusal
from leaktight.core.scenario import Observation
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.learning import FedAvg, Federated, Standalone, standalone
from leaktight.models import MLP
from leaktight.plans import Grid, Plan
from leaktight.probes import Utility
from leaktight.running import run
from leaktight.running.content import ContentDigest, digest_content

FEDERATION = Federated(data=Digits(), model=MLP(), participants=3, protocol=FedAvg(local_steps=2), rounds=2)


def test_every_participant_is_trained_and_a_sample_is_the_first_of_them() -> None:
    every = standalone(FEDERATION, seed=0)
    assert len(every) == 3
    assert standalone(FEDERATION, seed=0, sample=2) == every[:2]


def test_alone_is_a_federation_of_one() -> None:
    one = FEDERATION.model_copy(update={"participants": 1})
    [readings] = standalone(one, seed=0)
    assert readings == tuple(reading.without_outcomes() for reading in one.train(Undefended(), seed=0).utility)


def test_the_scenario_has_the_mean_utility() -> None:
    training = Standalone(federation=FEDERATION).train(Undefended(), seed=0)
    values = [readings[0].value for readings in standalone(FEDERATION, seed=0)]
    [reading] = training.utility
    assert reading.value == pytest.approx(sum(values) / 3)
    assert reading.each == tuple(values)
    assert reading.low is not None
    assert reading.high is not None
    assert min(values) - 1e-9 <= reading.low < reading.value < reading.high <= max(values) + 1e-9


def test_one_participant_gives_no_interval() -> None:
    [reading] = Standalone(federation=FEDERATION, sample=1).train(Undefended(), seed=0).utility
    assert (reading.low, reading.high, reading.n) == (None, None, 1)


def test_progress_counts_the_rounds_of_all() -> None:
    told: list[tuple[int, int]] = []
    Standalone(federation=FEDERATION, sample=2).train(Undefended(), 0, lambda done, total: told.append((done, total)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_defence_has_nothing_to_do() -> None:
    with pytest.raises(Refusal, match="Who trains alone sends nothing, so gaussian_noise has nothing to do"):
        Standalone(federation=FEDERATION).train(GaussianNoise(), seed=0)


def test_what_is_observed_is_the_start_of_the_federation() -> None:
    scenario = Standalone(federation=FEDERATION, sample=1)
    observation = Observation("initial", batch_size=1, victims=1, seed=0)
    ours = scenario.observe(scenario.train(Undefended(), 0), Undefended(), observation)
    theirs = FEDERATION.observe(FEDERATION.train(Undefended(), 0), Undefended(), observation)
    for one, other in zip(ours.transcript, theirs.transcript, strict=True):
        assert all(torch.equal(one.tensors[name], other.tensors[name]) for name in one.tensors)


def test_it_runs_in_an_audit_and_is_made_from_the_federation(tmp_path: Path) -> None:
    scenario = Standalone(federation=FEDERATION, sample=1)
    made, other = (digest_content(one.content(0)) for one in (scenario, FEDERATION))
    assert made == other != ContentDigest()
    plan = Plan(scenarios={"1": scenario}, probes={"utility": Utility()}, grid=Grid(victims=1))
    records = run(plan, tmp_path)
    assert {record.cell.purpose for record in records} == {"measure"}
    assert records[0].readings == scenario.train(Undefended(), 0).utility
