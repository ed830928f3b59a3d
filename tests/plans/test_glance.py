"""A glance: seconds, no defence, no training, and whatever can be read without a search."""

import torch
from torch import nn

from leaktight.core.in_memory import hold
from leaktight.data import Digits
from leaktight.findings.summary import summarise
from leaktight.models.in_memory import InMemory
from leaktight.plans import quick
from leaktight.plans.glance import ATTACKS, glance
from leaktight.running import run


def test_it_asks_only_what_needs_no_search_training_or_defence():
    plan = glance(quick())
    cells = [cell for cell in plan.cells() if cell.purpose == "measure"]
    assert all(attack.simple for attack in ATTACKS)
    assert {(cell.stage, cell.defence.kind, cell.scenario.rounds) for cell in cells} == {("initial", "none", 0)}
    assert (plan.grid.victims, plan.grid.batch_sizes) == (quick().grid.victims, quick().grid.batch_sizes)


def test_it_says_what_a_network_in_training_mode_gives_away_at_once(tmp_path):
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(36, 10)
    )
    plan = quick(model=InMemory(name="Net"), data=Digits(size=8)).with_scenarios(device="cpu")
    with hold({(InMemory.family, "Net"): network}):
        records = run(glance(plan), tmp_path)
    words = {judgement.kind.kind: judgement.verdict for judgement in summarise(records).judgements}
    assert (words["labels"], words["batch_statistics"]) == ("leaks", "leaks")
