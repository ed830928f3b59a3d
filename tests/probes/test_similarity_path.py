"""The similarity path: what it reads is the cosine of the candidate's gradient, at the moments it says."""

import pytest
import torch
import torch.nn.functional as F

from leaktight.attacks import GradientMatching, SearchAdam, SearchLBFGS
from leaktight.attacks import search_engine as engine_module
from leaktight.attacks.hypotheses import guess_hypotheses
from leaktight.attacks.search_engine import SearchEngine
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise
from leaktight.probes import SimilarityPath
from leaktight.testing import null_run, toy_run

ATTACK = GradientMatching(iterations=60, descent=SearchAdam(learning_rate=0.05), labels="given")
THREAT = ThreatModel(knows=frozenset({Knows.LABELS}))


@pytest.fixture(scope="module")
def run():
    return toy_run(rounds=3, batch_size=1)


def paths(run, attack=ATTACK, moments=4, **settings):
    found = (
        SimilarityPath(attack=attack, threat=THREAT, moments=moments, **settings).read(run, stream(0, "path")).readings
    )
    return {(reading.name, reading.layer): reading for reading in found}


def test_there_is_a_reading_for_each_moment_and_layer_in_order(run):
    found = paths(run)
    assert list(found) == [
        (f"similarity_after_{moment}", layer) for moment in (0, 20, 40, 60) for layer in ("body.1", "head")
    ]
    for reading in found.values():
        assert reading.n == len(reading.each) == 3
        assert reading.low <= reading.value <= reading.high
        assert all(-1 - 1e-6 <= value <= 1 + 1e-6 for value in reading.each)


def test_values_are_the_cosine_of_the_candidate_at_that_moment(run):
    """The first moment is where the search starts, from the same stream; the gradient is made by autograd."""
    view, rng = THREAT.view(run), stream(0, "path")
    exchanges = view.exchanges()
    [(_, victims)] = ATTACK.cases(view, exchanges, rng)
    objective = ATTACK.objective(victims, view)
    guess_hypotheses(victims, 1, rng)
    points = ATTACK.starts(objective, 1, rng)
    _, inputs, targets, _ = torch.func.vmap(objective.unpack)(points, victims.targets)
    found = paths(run)
    for row, exchange in enumerate(exchanges):
        leaves = {
            name: tensor.clone().requires_grad_(True)
            for name, tensor in view.task.model_parameters(exchange.parameters).items()
        }
        loss = view.task.loss(view.task.forward(leaves, inputs[row]), targets[row]).mean()
        slopes = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
        for layer in ("body.1", "head"):
            names = [name for name in slopes if name.startswith(layer)]
            one, other = (
                torch.cat([part[name].flatten() for name in names]) for part in (slopes, exchange.sent.tensors)
            )
            assert found["similarity_after_0", layer].each[row] == pytest.approx(
                F.cosine_similarity(one, other, dim=0).item(), abs=1e-5
            )


def test_a_search_that_succeeds_ends_at_one_in_every_layer_and_one_on_noise_does_not(run):
    attack = GradientMatching(iterations=300, labels="given")
    last = [reading.value for (name, _), reading in paths(run, attack).items() if name == "similarity_after_300"]
    assert min(last) > 0.99
    noise = [
        reading.value for (name, _), reading in paths(null_run(run), attack).items() if name == "similarity_after_300"
    ]
    assert min(noise) < 0.5


def test_watching_changes_nothing_and_chunks_and_dropped_rows_are_put_in_place(run, monkeypatch):
    view = THREAT.view(run)
    [(_, victims)] = ATTACK.cases(view, view.exchanges(), stream(0))
    objective, seen = ATTACK.objective(victims, view), []
    problem, starts = objective.problem(guess_hypotheses(victims, 1, stream(1))), ATTACK.starts(objective, 1, stream(1))
    watched, alone = (
        SearchEngine(problem, ATTACK.search(), watch).run(starts, 3).points
        for watch in (lambda *now: seen.append(now), None)
    )
    assert torch.equal(watched, alone)
    assert [evaluation for evaluation, *_ in seen] == list(range(61))
    together = paths(run)
    monkeypatch.setattr(engine_module, "MEMORY", 1)
    apart = paths(run)
    for place, reading in together.items():
        assert apart[place].each == pytest.approx(reading.each, abs=1e-3)


def test_who_has_come_to_rest_stays_where_it_was(run, monkeypatch):
    monkeypatch.setattr(engine_module, "DROP_EVERY", 1)
    attack = GradientMatching(distance="l2", descent=SearchLBFGS(inner=1), iterations=200, labels="given", stop=1e-3)
    found = paths(run, attack, moments=5)
    assert len(found) == 10
    for layer in ("body.1", "head"):
        assert found["similarity_after_200", layer].each == found["similarity_after_150", layer].each


def test_more_moments_than_evaluations_are_told_once(run):
    found = paths(run, ATTACK.model_copy(update={"iterations": 2}), moments=7)
    assert [name for name, layer in found if layer == "head"] == [
        "similarity_after_0",
        "similarity_after_1",
        "similarity_after_2",
    ]


def test_the_attacker_gets_what_it_needs_and_no_more(run):
    probe = SimilarityPath(attack=GradientMatching(iterations=1, labels="given"))
    with pytest.raises(Refusal, match="needs to know labels"):
        probe.read(run, stream(0))
    noisy = toy_run(GaussianNoise(std=0.1), rounds=2, batch_size=1)
    known = ThreatModel(knows=frozenset({Knows.LABELS}))
    assert len(SimilarityPath(attack=probe.attack, threat=known, moments=2).read(noisy, stream(0)).readings) == 4


@pytest.mark.parametrize("several", [{"restarts": 2}, {"messages": "joined"}, {"distance": "likelihood"}])
def test_an_attack_of_several_searches_is_refused(several):
    with pytest.raises(
        InvalidValue,
        match=r"must search once for each message, by a distance. Got restarts, joined messages or a likelihood instead",
    ):
        SimilarityPath(attack=GradientMatching(**several))
