"""What the first linear layer saw is read off its gradient, and a search starts there."""

import dataclasses

import pytest
import torch
from torch import nn

from leaktight.attacks import preset
from leaktight.attacks.features import layer_inputs, read_features
from leaktight.attacks.replay import FEATURE_GRADIENT
from leaktight.core.defence import Undefended
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.task import Batch, Model
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import ClassKeys, GaussianNoise, Polarization, TopK
from leaktight.learning import Adam, Client, Server, classification
from leaktight.models import AlexNet, DLNet, FaceAlexNet
from leaktight.priors import Generic

KNOWS = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.LOCAL_STEPS}))
SHAPE, CLASSES = (1, 12, 12), 6


def convolutional(labels, defence=None):
    """Return a run of one victim with an example for each of these labels, behind convolutions and one linear layer."""
    return one_message(classification(DLNet().build(SHAPE, CLASSES, seed=0), SHAPE, CLASSES), labels, defence)


def one_message(task, labels, defence=None, images=None):
    """Return a run of one victim with an example for each of these labels: blurred noise, unless images are given."""
    if images is None:
        images = torch.rand(len(labels), *SHAPE, generator=torch.Generator().manual_seed(3))
        images = nn.functional.avg_pool2d(images, 5, stride=1, padding=2)
    owned = Batch(images, torch.tensor(labels))
    defence = defence or Undefended()
    task = defence.on_agree(task)
    client = Client("client-0", task, owned, defence, Local("client-0", seed=0), batch_size=len(labels))
    ask = Server(task.public_parameters()).ask("client-0", 0)
    found = client.answer(ask)
    return Run((ask, found.sent), task, client.defence, {found.sent.key: found})


def blocks(count):
    """Return images of blocks, each quite unlike the others."""
    dark = torch.rand(count, 1, 4, 4, generator=torch.Generator().manual_seed(5)) < 0.5
    return nn.functional.interpolate(dark.float(), scale_factor=3)


def read(run, readings=1, **settings):
    """Return the features that are read behind the messages of a run."""
    view = KNOWS.view(run)
    _, victims = next(iter(preset("posterior", **settings).cases(view, view.exchanges(), stream(0))))
    task = victims.replay.task
    coordinates = Generic().coordinates(task.shape, task.model.normalise, None, task.classes)
    return read_features(victims, coordinates, readings, stream(1))


def true_features(run, layer):
    """Return what a layer saw of each message's examples, by rising label."""
    task, found = run.public, run.truths.values()
    inputs = [one.raw.inputs[one.raw.labels.argsort(stable=True)] for one in found]
    return [layer_inputs(task, task.public_parameters(), one, layer).detach() for one in inputs]


@pytest.mark.parametrize("defence", [None, Polarization(alpha2=100.0)], ids=["plain", "private loss"])
def test_one_example_is_read_exactly_whatever_the_loss(observe, defence):
    run = observe(defence=defence)
    found = read(run)
    assert found.layer == "body.1"
    for row, truth in enumerate(true_features(run, "body.1")):
        torch.testing.assert_close(found.values[row, 0], truth, rtol=1e-3, atol=1e-4)


def test_only_entries_that_were_sent_are_read(observe):
    run = observe(defence=TopK(share=0.5))
    found = read(run)
    known = found.spread < 1e5
    assert known.any()
    for row, truth in enumerate(true_features(run, "body.1")):
        torch.testing.assert_close(found.values[row, 0, 0][known[row]], truth[0][known[row]], rtol=1e-3, atol=1e-3)


def test_a_batch_of_different_labels_is_read_off_the_head():
    run = convolutional([4, 0, 2])
    found = read(run, readings=3)
    assert (found.layer, tuple(found.values.shape[:3])) == ("head", (1, 3, 3))
    (truth,) = true_features(run, "head")
    errors = (found.values[0] - truth).abs().amax((1, 2)) / truth.std()
    assert errors.min() < 0.01


@pytest.mark.parametrize("defence", [None, Polarization(alpha2=10.0)], ids=["plain", "private loss"])
def test_a_batch_is_read_at_a_relu_layer_behind_convolutions_each_with_its_label(defence):
    task = classification(FaceAlexNet().build(SHAPE, CLASSES, seed=0), SHAPE, CLASSES)
    run = one_message(task, [4, 0, 2, 5], defence, blocks(4))
    found = read(run, readings=2)
    assert (found.layer, tuple(found.values.shape[:3])) == ("body.linear1", (1, 2, 4))
    (truth,) = true_features(run, "body.linear1")
    for reading in found.values[0]:
        torch.testing.assert_close(reading, truth, rtol=1e-3, atol=1e-3 * truth.abs().max().item())
    assert found.spread.max() < 0.1 * truth.abs().max()


def test_examples_that_are_not_certified_are_left_to_the_search():
    """Behind few units, and of images much alike, only some of a batch can be read."""
    task = classification(AlexNet(width=16).build(SHAPE, CLASSES, seed=0), SHAPE, CLASSES)
    run = one_message(task, [4, 0, 2, 5])
    found = read(run)
    known = found.spread[0, :, 0] < 1e5
    assert 0 < known.sum() < 4
    (truth,) = true_features(run, "body.linear1")
    torch.testing.assert_close(found.values[0, 0][known], truth[known], rtol=1e-3, atol=1e-3 * truth.abs().max().item())


@pytest.mark.parametrize("alpha1", [1.0, 0.25])
@pytest.mark.parametrize("settings", [{}, {"loss": "free"}], ids=["private head searched", "free loss"])
def test_a_private_loss_leaves_the_public_head_and_a_batch_s_features_with_it(alpha1, settings):
    run = convolutional([4, 0, 2], Polarization(alpha1=alpha1, alpha2=10.0))
    found = read(run, readings=3, **settings)
    (truth,) = true_features(run, "head")
    errors = (found.values[0] - truth).abs().amax((1, 2)) / truth.std()
    assert errors.min() < 0.01


def test_behind_a_head_of_keys_there_are_no_features_to_read():
    assert read(convolutional([4], ClassKeys(dimensions=32))) is None
    found = read(convolutional([4], ClassKeys(dimensions=32, features=8)))
    assert found.layer.startswith("head.")


@pytest.mark.parametrize(
    "run",
    [lambda: convolutional([0, 1], GaussianNoise(std=0.1)), lambda: convolutional(list(range(CLASSES)))],
    ids=["noise on a batch", "as many examples as classes"],
)
def test_what_cannot_be_read_is_not(run):
    assert read(run()) is None


def test_several_steps_show_no_features(observe):
    assert read(observe(steps=2)) is None


def test_a_step_of_adam_shows_no_features(observe):
    assert read(observe(optimiser=Adam(learning_rate=0.01), steps=1, shares=Kind.UPDATE)) is None


def test_a_linear_layer_over_tokens_shows_no_features():
    """It sees several vectors for each example, whose gradients are added."""
    body = nn.Sequential(nn.Unflatten(-1, (3, 4)), nn.Flatten(1, 3), nn.Linear(4, 5), nn.Flatten())
    task = classification(Model(body, nn.Linear(180, CLASSES)), SHAPE, CLASSES)
    assert task.model.features(torch.zeros(1, *SHAPE)).shape == (1, 180)
    assert read(one_message(task, [2])) is None


def test_a_message_that_is_not_finite_leaves_the_others_their_features():
    run = convolutional([4, 0, 2])
    ask, sent = run.transcript
    broken = dataclasses.replace(
        sent, tensors={name: torch.full_like(tensor, torch.nan) for name, tensor in sent.tensors.items()}
    )
    found = read(dataclasses.replace(run, transcript=(ask, broken)), readings=2)
    assert found is not None
    assert bool(found.values.isfinite().all())


def test_a_search_from_the_features_is_ahead_of_one_from_the_prior():
    run = convolutional([4])
    settings = {"iterations": 3, "restarts": 1, "phases": 1, "settle": 0.0}
    ahead, behind = (
        preset("posterior", initial=start, **settings)(KNOWS.view(run), stream(0)) for start in ("features", "prior")
    )
    assert ahead.objective.item() < 0.5 * behind.objective.item()


def test_the_public_head_alone_shows_an_image_and_a_free_loss_no_less():
    """Of a private loss that drowns the body nothing has to be known."""
    run = convolutional([4], Polarization(alpha2=5.0))
    [ground_truth] = run.truths.values()
    settings = {"iterations": 60, "restarts": 2, "phases": 1}
    head, free = (preset(name, **settings)(KNOWS.view(run), stream(0)) for name in ("public-head", "free-loss"))
    blind = (ground_truth.raw.inputs - 0.5).square().mean()
    errors = [(guess.inputs[0] - ground_truth.raw.inputs).square().mean().item() for guess in (head, free)]
    assert max(errors) < 0.1 * blind
    assert [guess.labels[0].tolist() for guess in (head, free)] == [[4], [4]]
    assert free.judge([ground_truth]).isfinite().all()


@pytest.mark.parametrize("name", ["free-loss", "public-head"])
def test_where_there_is_no_public_head_a_free_loss_is_matched_by_the_body_alone(name):
    run = convolutional([4], ClassKeys(dimensions=32))
    attack = preset(name, iterations=2, restarts=1, phases=1)
    if name == "public-head":
        with pytest.raises(Refusal, match="Layer `head` cannot be matched"):
            attack(KNOWS.view(run), stream(0))
        return
    [(_, victims)] = attack.cases(KNOWS.view(run), KNOWS.view(run).exchanges(), stream(0))
    assert all(wire.startswith("body.") for wire in victims.sightings[0].wanted)
    assert attack(KNOWS.view(run), stream(0)).inputs[0].shape == (1, *SHAPE)


def test_the_search_for_a_free_gradient_starts_at_the_size_of_what_was_sent():
    sizes = []
    for alpha1 in (1.0, 100.0):
        run = convolutional([4], Polarization(alpha1=alpha1, alpha2=alpha1))
        view = KNOWS.view(run)
        [(_, victims)] = preset("free-loss").cases(view, view.exchanges(), stream(0))
        sizes.append(victims.secrets[FEATURE_GRADIENT].std().item())
    assert sizes[1] == pytest.approx(100 * sizes[0], rel=1e-3)
