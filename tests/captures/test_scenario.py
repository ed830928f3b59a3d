"""Captured messages become a run: as they were, or as they would have been without a defence."""

import pytest
import torch

from leaktight.attacks import RunningStatistics
from leaktight.captures import AsCaptured, Captured, Known, read_captures
from leaktight.captures.sender import exchange, undefended_message
from leaktight.captures.truth import read_truth
from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.models import Factory


def scenario(folder, name="linear", truth=False, **settings):
    path = str(folder.parent / "truth.safetensors") if truth else ""
    return Captured(folder=str(folder), model=Factory(function=f"networks:{name}"), truth=path, **settings)


def observed(one, defence, batch_size=1, victims=8):
    return one.observe(one.train(defence, 0), defence, Observation("training", batch_size, victims, 0))


def close(one, other, tolerance=1e-5):
    return all(torch.allclose(one.tensors[name], other.tensors[name], atol=tolerance) for name in other.tensors)


def test_without_the_truth_a_run_has_no_ground_truth(recorded):
    run = observed(scenario(recorded()), AsCaptured())
    assert [message.kind for message in run.transcript] == [Kind.PARAMETERS, Kind.GRADIENT] * 2
    assert not run.truths
    assert run.notes["captures.messages"] == 2


def test_with_the_truth_the_undefended_message_is_the_recorded_one(recorded):
    one = scenario(recorded(change=None), truth=True)
    run = observed(one, AsCaptured())
    assert len(run.truths) == 2
    for ground_truth in run.truths.values():
        assert close(ground_truth.plain, ground_truth.sent)
    assert close(observed(one, Undefended()).transcript[1], run.transcript[1])


def test_what_a_defence_changed_shows_between_plain_and_sent(recorded):
    one = scenario(recorded(change=lambda tensor: tensor * 0.5), truth=True)
    ground_truth = next(iter(observed(one, AsCaptured()).truths.values()))
    assert close(ground_truth.plain.map(lambda tensor: tensor / 2), ground_truth.sent)
    undone = observed(one, Undefended()).transcript[1]
    assert close(undone, ground_truth.plain)


def test_an_update_of_one_step_is_its_gradient(recorded):
    run = observed(scenario(recorded(steps=1, local_steps=1, learning_rate=0.1), truth=True), AsCaptured())
    ground_truth = next(iter(run.truths.values()))
    assert ground_truth.sent.kind is Kind.GRADIENT
    assert close(ground_truth.plain, ground_truth.sent, 1e-4)


def test_an_update_of_several_steps_is_replayed(recorded):
    folder = recorded(steps=3, examples=2, local_steps=3, batch_size=2, learning_rate=0.1)
    ground_truth = next(iter(observed(scenario(folder, truth=True), AsCaptured(), batch_size=2).truths.values()))
    assert ground_truth.sent.kind is Kind.UPDATE
    assert len(ground_truth.raw) == 6
    assert close(ground_truth.plain, ground_truth.sent)


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"local_steps": 2},
        {"local_steps": 2, "learning_rate": 0.1, "optimiser": "adam"},
        {"local_steps": 2, "learning_rate": 0.1, "optimiser": "sgd-unusual"},
    ],
)
def test_an_update_of_unknown_steps_has_no_undefended_twin(recorded, known):
    one = scenario(recorded(steps=2, batch_size=1, **known), truth=True)
    assert next(iter(observed(one, AsCaptured()).truths.values())).plain is None
    with pytest.raises(Refusal, match="the number or size of local steps is unknown"):
        observed(one, Undefended())


@pytest.mark.parametrize("steps", [1, 3])
def test_weight_decay_and_momentum_are_replayed(recorded, steps):
    def optimiser(model):
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5, weight_decay=0.2)

    folder = recorded(steps=steps, examples=2, local_steps=steps, batch_size=2, optimiser=optimiser)
    one = scenario(folder, truth=True)
    assert one.captures()[0].manifest.weight_decay == 0.2
    for ground_truth in observed(one, AsCaptured(), batch_size=2).truths.values():
        assert close(ground_truth.plain, ground_truth.sent, 1e-4)


def test_what_is_stated_at_the_audit_fills_what_was_not_recorded(recorded):
    folder = recorded(steps=2, batch_size=1)
    stated = scenario(folder, truth=True, known=Known(local_steps=2, learning_rate=0.1))
    ground_truth = next(iter(observed(stated, AsCaptured()).truths.values()))
    assert close(ground_truth.plain, ground_truth.sent)
    with pytest.raises(InvalidValue, match="Got `batch_size` 2 where 1 was recorded"):
        scenario(folder, known=Known(batch_size=2)).captures()


def test_an_audit_of_before_settings_could_be_stated_keeps_its_key(recorded):
    one = scenario(recorded())
    assert "known" not in one.to_dict()
    assert one.model_copy(update={"known": Known(momentum=0.0)}).key != one.key


def test_what_is_assumed_is_counted(recorded):
    notes = observed(scenario(recorded(steps=2, batch_size=1, momentum=0.0)), AsCaptured()).notes
    assumed = {name: number for name, number in notes.items() if name.startswith("captures.assumed_")}
    names = ("learning_rate", "local_steps", "mean", "optimiser", "weight_decay")
    assert assumed == {f"captures.assumed_{name}": 2 for name in names}


@pytest.mark.parametrize("mode", [True, False])
def test_batch_norm_is_replayed_as_it_was(recorded, mode):
    folder = recorded("normed", examples=4, mode=mode)
    one = scenario(folder, "normed", truth=True)
    capture = one.captures()[0]
    task = one.task(capture)
    asked, sent = exchange(capture, task)
    plain = undefended_message(
        task, asked, sent, read_truth(folder.parent / "truth.safetensors", ["model/0"])["model/0"], capture.manifest
    )
    other = {name for name in sent.tensors if not torch.allclose(plain.tensors[name], sent.tensors[name], atol=1e-5)}
    # Dropout's draws cannot be repeated; all else can, in evaluation mode to the letter.
    assert bool(other) is mode
    assert list(task.model.batch_norms()) == ["body.2"] * mode
    notes = observed(one, AsCaptured(), batch_size=4).notes
    assert (notes["captures.batch_norms"], notes["captures.dropouts"]) == ((0, 1) if mode else (0, 0))


@pytest.mark.parametrize("known", [True, False])
def test_running_statistics_that_came_along_tell_those_of_the_batch(recorded, forget_training, known):
    folder = recorded(
        "normed", messages=1, examples=4, steps=1, batch_size=4, local_steps=1, learning_rate=0.1, optimiser="sgd"
    )
    if not known:
        forget_training(folder)
    one = scenario(folder, "normed", truth=True)
    run = observed(one, AsCaptured(), batch_size=4)
    [truth] = run.truths.values()
    view = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS})).view(run)
    [values] = RunningStatistics()(view, stream(0)).values
    [capture] = one.captures()
    seen = one.module(capture)[:2](truth.raw.inputs).detach()
    for name, wanted in {"2.running_mean": seen.mean(0), "2.running_var": seen.var(0)}.items():
        assert (values[name] - wanted).norm() / wanted.norm() < 1e-3
        torch.testing.assert_close(truth.statistics[name], wanted, rtol=1e-3, atol=1e-5)


def test_batch_norm_that_cannot_be_replayed_in_training_mode_is_taken_in_evaluation_mode(recorded, monkeypatch):
    import networks

    folder = recorded("normed", messages=1, examples=4)
    plain = networks.normed

    def averaging():
        module = plain()
        module[2].momentum = None
        return module

    monkeypatch.setattr(networks, "normed", averaging)
    one = scenario(folder, "normed")
    assert one.task(one.captures()[0]).model.batch_norms() == {}
    assert observed(one, AsCaptured(), batch_size=4).notes["captures.batch_norms"] == 1


def test_messages_are_chosen_by_batch_size_and_spread(recorded):
    one = scenario(recorded(messages=6))
    rounds = [message.round for message in observed(one, AsCaptured(), victims=3).transcript[::2]]
    assert rounds == [0, 2, 4]
    with pytest.raises(Refusal, match="batches of 5"):
        observed(one, AsCaptured(), batch_size=5)


def test_rounds_can_be_chosen(recorded):
    one = scenario(recorded(messages=3), rounds=(1,))
    assert [capture.manifest.round for capture in one.captures()] == [1]


def test_only_messages_with_a_truth_are_graded(recorded):
    folder = recorded(messages=3)
    write_only = read_truth(folder.parent / "truth.safetensors", ["model/1"])
    from leaktight.captures import write_truth

    write_truth(folder.parent / "truth.safetensors", write_only)
    run = observed(scenario(folder, truth=True), AsCaptured())
    assert list(run.truths) == [("model", 1)]
    assert run.notes["captures.left_out"] == 2


def test_other_defences_are_refused(recorded):
    one = scenario(recorded())
    with pytest.raises(Refusal, match="cannot be sent again under gaussian_noise"):
        observed(one, GaussianNoise())
    with pytest.raises(Refusal, match="follows from the private batch alone"):
        observed(one, Undefended())
    message = observed(one, AsCaptured()).transcript[1]
    with pytest.raises(Refusal, match="cannot be applied"):
        AsCaptured().on_message(message, Local("model", 0))


def test_what_does_not_fit_is_one_sentence(recorded):
    folder = recorded()
    with pytest.raises(InvalidValue, match=r"must hold `2.weight` like the model"):
        scenario(folder, "normed").task(read_captures(folder)[0])
    with pytest.raises(InvalidValue, match=r"must return a torch.nn.Module"):
        scenario(folder, "no_module").task(read_captures(folder)[0])
    with pytest.raises(InvalidValue, match="does not run on examples of shape"):
        scenario(folder, shape=(1, 5, 5)).task(read_captures(folder)[0])
    with pytest.raises(InvalidValue, match=r"Public examples must have the shape \(1, 4, 4\)"):
        observed(scenario(folder, public=Digits()), AsCaptured())


def test_a_shape_that_nobody_told_is_asked_for(recorded):
    folder = recorded()
    for path in folder.glob("*.capture.json"):
        path.write_text(path.read_text().replace('"shape": [\n  1,\n  4,\n  4\n ]', '"shape": null'))
    assert scenario(folder, truth=True).shape_of(read_captures(folder)[0]) == (1, 4, 4)
    with pytest.raises(InvalidValue, match="--shape 1,28,28"):
        scenario(folder).task(read_captures(folder)[0])


def test_labels_and_counts_of_the_truth_must_fit(recorded):
    folder = recorded(messages=1)
    one = scenario(folder, truth=True)
    capture = one.captures()[0]
    task = one.task(capture)
    asked, sent = exchange(capture, task)
    batch = read_truth(folder.parent / "truth.safetensors", ["model/0"])["model/0"]
    from leaktight.core.task import Batch

    with pytest.raises(InvalidValue, match="labels from 0 to 2"):
        undefended_message(task, asked, sent, Batch(batch.inputs, batch.labels + 5), capture.manifest)
    with pytest.raises(InvalidValue, match="as many examples as its manifest says, 1"):
        undefended_message(task, asked, sent, Batch.join([batch, batch]), capture.manifest)
