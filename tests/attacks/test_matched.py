"""What is matched: entries that were sent, bounds on those that were not, and layers that were chosen."""

import pytest
import torch

from leaktight.attacks import GradientMatching, SearchGuardedLBFGS, SearchLBFGS
from leaktight.attacks.hypotheses import guess_hypotheses
from leaktight.attacks.objective import Objective
from leaktight.attacks.replay import Replay
from leaktight.attacks.search_engine import SearchEngine
from leaktight.core.errors import Refusal
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import Pruning, TopK

VIEW = ThreatModel(knows=frozenset({Knows.LABELS, Knows.LOCAL_STEPS, Knows.DEFENCE}))
ATTACK = {"distance": "l2", "descent": SearchLBFGS(history=20), "iterations": 15, "restarts": 4, "labels": "given"}
KNOWING = GradientMatching(
    **{**ATTACK, "distance": "likelihood", "descent": SearchGuardedLBFGS(), "initial": "uniform", "iterations": 150}
)


def errors(guess, run) -> torch.Tensor:
    pairs = zip(guess.keys, guess.inputs, strict=True)
    return torch.stack([(inputs - run.truths[key].raw.inputs).square().mean() for key, inputs in pairs])


@pytest.mark.parametrize("defence", [TopK(share=0.5), Pruning(rate=0.5)], ids=str)
def test_who_bounds_what_was_left_out_sees_through_a_mask(observe, defence):
    run = observe(victims=4, defence=defence)
    plain, knowing = (
        errors(attack(VIEW.view(run), stream(0)), run) for attack in (GradientMatching(**ATTACK), KNOWING)
    )
    assert knowing.median() < 0.01 * plain.median()


def test_entries_that_did_not_come_narrow_the_search(observe):
    """Where few entries came, the bound on the others tells what the sent ones alone do not."""
    run = observe(victims=6, shape=(1, 8, 8), defence=TopK(share=0.1))
    view = VIEW.view(run)
    [(_, victims)] = KNOWING.cases(view, view.exchanges(), stream(0))
    objective = KNOWING.objective(victims, view)

    def sent_only(belief, wanted, floor):
        came = {name: (tensor != 0) for name, tensor in wanted.items()}
        return sum(0.5 * (came[n] * (belief.means[n] - wanted[n]) / floor[n]).square().sum() for n in wanted)

    loose = Objective(victims, objective.coordinates, sent_only)
    found = []
    for each in (objective, loose):
        problem = each.problem(guess_hypotheses(victims, 4, stream(0)))
        points = SearchEngine(problem, KNOWING.search(4)).run(KNOWING.starts(each, 4, stream(0)), len(victims)).points
        inputs = torch.func.vmap(each.unpack)(points, victims.targets)[1]
        truth = torch.stack([run.truths[exchange.sent.key].raw.inputs for exchange in view.exchanges()])
        found.append((inputs - truth).square().mean((1, 2, 3, 4)).median())
    assert found[0] < 0.5 * found[1]


def test_where_nothing_was_left_out_a_mask_changes_nothing(observe):
    view, masked = VIEW.view(observe(victims=2)), VIEW.view(observe(victims=2, defence=TopK(share=1.0)))
    plain, knowing = (KNOWING(each, stream(0)) for each in (view, masked))
    for one, other in zip(plain.inputs, knowing.inputs, strict=True):
        assert torch.equal(one, other)


def test_only_chosen_layers_are_matched(observe):
    run = observe(victims=3)
    view = VIEW.view(run)
    exchanges = view.exchanges()
    names = list(exchanges[0].sent.tensors)
    first, last = names[0].rpartition(".")[0], names[-1].rpartition(".")[0]
    found = {}
    for layer in (first, last):
        attack = GradientMatching(layers=(layer,), **ATTACK)
        victims = attack.victims([Replay.of(view.task, exchanges[0].sent)], [exchanges], view, stream(0))
        assert set(victims.sightings[0].wanted) == {f"{layer}.weight", f"{layer}.bias"}
        found[layer] = errors(attack(view, stream(0)), run)
    assert found[first].min() < 1e-6  # its weights' gradient is a multiple of the input
    assert found[last].min() > 1e-3  # these see four numbers of it


def test_a_layer_that_is_not_in_the_message_is_refused(observe):
    with pytest.raises(Refusal, match=r"Layer `body.9` cannot be matched: the message holds no tensor of it"):
        GradientMatching(layers=("body.9",), **ATTACK)(VIEW.view(observe(victims=1)), stream(0))
