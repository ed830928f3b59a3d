"""Class keys: the loss of the paper, keys that stay home until the reveal, and nobody who can score another's class before."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from leaktight.core.defence import Chain
from leaktight.core.draws import SeededDraws
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.core.scenario import Observation, flatten
from leaktight.core.task import Batch, Task
from leaktight.core.threat import ThreatModel
from leaktight.data import ByClass, Digits
from leaktight.defences import ClassKeys, GaussianNoise, Polarization, TopK
from leaktight.defences.key_theory import random_keys
from leaktight.learning import Client, Federated, RoundRobin, Server, Sgd, classification
from leaktight.learning.gradient import gradient
from leaktight.models import MLP

torch.set_num_threads(1)
SHAPE, CLASSES, DIMENSIONS = (1, 8, 8), 4, 256
KEYS = ClassKeys(dimensions=DIMENSIONS)
OWNED = {"client-0": (0, 1), "client-1": (1, 2, 3)}


def task() -> Task:
    return classification(MLP(hidden=(128,)).build(SHAPE, CLASSES, seed=0), SHAPE, CLASSES)


def batch(examples: int, classes: tuple[int, ...] = (0, 1, 2, 3), seed: int = 0) -> Batch:
    rng = stream(seed, "batch")
    labels = torch.tensor(classes)[torch.arange(examples) % len(classes)]
    inputs = 0.1 * torch.rand(examples, *SHAPE, generator=rng)
    inputs[torch.arange(examples), 0, 2 * labels] += 0.9
    return Batch(inputs, labels)


def own(defence: ClassKeys = KEYS, party: str = "client-0", classes: tuple[int, ...] = (0, 1)) -> tuple[Task, Local]:
    local = Local(party, seed=0)
    local.now.classes = classes
    return defence.on_task(defence.on_agree(task()), local), local


def clients(defence: ClassKeys | Chain = KEYS, seed: int = 0) -> list[Client]:
    public = defence.on_agree(task())
    return [
        Client(name, public, batch(48, classes), defence, Local(name, seed), 16, 1, Sgd(learning_rate=0.1), Kind.UPDATE)
        for name, classes in OWNED.items()
    ]


def played(parties: list[Client], rounds: int) -> tuple[Server, list[Message]]:
    server, protocol = Server(parties[0].public.public_parameters(), Sgd()), RoundRobin()
    transcript = [message for number in range(rounds) for message in protocol.round(server, parties, number)]
    return server, transcript


@pytest.mark.parametrize(("scale", "factor"), [(None, math.sqrt(DIMENSIONS)), (1.0, 1.0)])
def test_the_loss_is_minus_the_inner_product_with_the_own_key(scale: float | None, factor: float) -> None:
    defended, local = own(ClassKeys(dimensions=DIMENSIONS, scale=scale))
    examples = batch(5)
    outputs = defended.model(examples.inputs)
    # The public model embeds; the owner's leaves that to the score.
    embeddings = KEYS.on_agree(task()).model(examples.inputs)
    keys = local.memory["keys"][examples.labels]
    torch.testing.assert_close(defended.loss(outputs, examples.labels), -factor * (embeddings * keys).sum(1))
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(5))


@pytest.mark.parametrize("fixed", [True, False])
def test_the_public_loss_is_that_of_keys_which_anybody_can_draw(fixed: bool) -> None:
    defence, examples = ClassKeys(dimensions=DIMENSIONS, fixed=fixed), batch(5)
    public = defence.on_agree(task())
    local = Local("client-0", seed=0)
    local.memory["keys"] = random_keys(CLASSES, DIMENSIONS, SeededDraws(stream(0, "public keys")))
    same = defence.on_task(public, local)
    losses = [each.loss(each.model(examples.inputs), examples.labels) for each in (public, same)]
    torch.testing.assert_close(*losses)


def test_labels_may_be_probabilities() -> None:
    defended, _ = own()
    examples = batch(5)
    outputs = defended.model(examples.inputs)
    soft = torch.nn.functional.one_hot(examples.labels, CLASSES).float()
    torch.testing.assert_close(defended.loss(outputs, soft), defended.loss(outputs, examples.labels))


def test_weight_decay_adds_the_square_of_every_parameter_once() -> None:
    plain, _ = own()
    decayed, _ = own(ClassKeys(dimensions=DIMENSIONS, weight_decay=0.5))
    parameters, examples = plain.model.tensors(), batch(6)
    without, found = (dict(gradient(each, parameters, examples).tensors) for each in (plain, decayed))
    for name, tensor in found.items():
        # The derivative of 0.5 * ||theta||^2 is theta.
        torch.testing.assert_close(tensor, without[name] + parameters[name], atol=1e-5, rtol=1e-4)


def test_keys_have_length_one_and_are_each_party_s_own() -> None:
    keys = {party: own(party=party)[1].memory["keys"] for party in OWNED}
    for each in keys.values():
        torch.testing.assert_close(each.norm(dim=1), torch.ones(CLASSES))
    overlaps = keys["client-0"] @ keys["client-1"].t()
    assert overlaps.abs().max() < 5 / math.sqrt(DIMENSIONS)
    assert torch.equal(own()[1].memory["keys"], keys["client-0"])


def test_keys_are_kept_over_a_restart() -> None:
    first, local = own()
    kept = local.memory["keys"].clone()
    again = KEYS.on_task(KEYS.on_agree(task()), local)
    assert torch.equal(local.memory["keys"], kept)
    outputs, examples = first.model(batch(3).inputs), batch(3)
    assert torch.equal(first.loss(outputs, examples.labels), again.loss(outputs, examples.labels))


@pytest.mark.parametrize("dimensions", [64, 4096, 16_384])
def test_the_fixed_layer_is_public_seeded_untrained_and_free(dimensions: int) -> None:
    one, same = (ClassKeys(dimensions=dimensions).on_agree(task()) for _ in range(2))
    other = ClassKeys(dimensions=dimensions, layer_seed=1).on_agree(task())
    inputs = batch(2).inputs
    assert torch.equal(one.model(inputs), same.model(inputs))
    assert not torch.allclose(one.model(inputs), other.model(inputs))
    assert one.model(inputs).shape == (2, dimensions)
    assert list(one.public_parameters()) == ["body.linear1.weight", "body.linear1.bias"]
    assert not any("head" in name for name in one.model.state_dict())


def test_a_learned_layer_goes_out_and_a_layer_before_it_may_be_added() -> None:
    public = ClassKeys(dimensions=64, fixed=False, features=6).on_agree(task())
    shapes = {
        name: tuple(tensor.shape) for name, tensor in public.public_parameters().items() if name.startswith("head")
    }
    assert shapes == {
        "head.before.0.weight": (6, 128),
        "head.before.0.bias": (6,),
        "head.last.weight": (64, 6),
        "head.last.bias": (64,),
    }


def test_no_key_is_a_parameter_or_a_buffer_of_anybody_s_model() -> None:
    defended, local = own()
    for tensor in [*defended.model.parameters(), *defended.model.buffers(), *defended.public_parameters().values()]:
        assert not _holds(tensor, local.memory["keys"])


def test_there_is_no_key_in_the_transcript_before_the_reveal() -> None:
    parties = clients()
    _, transcript = played(parties, rounds=3)
    keys = torch.cat([party.local.memory["defence"]["keys"] for party in parties])
    assert {message.kind for message in transcript} == {Kind.PARAMETERS, Kind.UPDATE}
    for message in transcript:
        for tensor in message.tensors.values():
            assert not _holds(tensor, keys)
        assert set(message.facts) <= {
            "participants",
            "examples",
            "owned",
            "local_steps",
            "batch_size",
            "learning_rate",
            "momentum",
        }


def test_what_goes_out_has_no_room_for_a_key_whatever_its_length() -> None:
    # The same names and shapes at every d: what depends on the keys passes through as many numbers as there are
    # features.
    shapes = []
    for dimensions in (64, 16_384):
        party = clients(ClassKeys(dimensions=dimensions))[0]
        _, [_, sent] = played([party], rounds=1)
        shapes.append({name: tuple(tensor.shape) for name, tensor in sent.tensors.items()})
    assert shapes[0] == shapes[1]


def test_other_keys_of_a_class_that_one_does_not_own_change_nothing_that_is_sent() -> None:
    # A canary: an update is no function of a key that it does not train for.
    sent = []
    for changed in (False, True):
        party = clients()[0]
        if changed:
            party.local.memory["defence"]["keys"][2:] = random_keys(2, DIMENSIONS, SeededDraws(stream(9)))
        _, [_, message] = played([party], rounds=1)
        sent.append(message)
    for name, tensor in sent[0].tensors.items():
        assert torch.equal(tensor, sent[1].tensors[name])


def test_a_view_before_the_reveal_leads_to_no_key() -> None:
    scenario = Federated(
        data=Digits(), model=MLP(hidden=(8,)), partition=ByClass(), participants=2, protocol=RoundRobin(), rounds=1
    )
    training = scenario.train(KEYS, 0)
    run = scenario.observe(training, KEYS, Observation("end", 8, 2, 0))
    private = torch.cat([local.memory["defence"]["keys"] for local in run.locals.values()])
    for seat in ("server", "wire"):
        view = ThreatModel(seat=seat).view(run)
        held = [tensor for message in view.messages for tensor in message.tensors.values()]
        held += [*view.task.model.parameters(), *view.task.model.buffers()]
        assert not any(_holds(tensor, private) for tensor in held)
        assert flatten(view.memory) == {}
    # A participant has its own keys, and no other's.
    mine = ThreatModel(seat="client-0").view(run).memory["defence"]["keys"]
    theirs = run.locals["client-1"].memory["defence"]["keys"]
    assert torch.equal(mine, run.locals["client-0"].memory["defence"]["keys"])
    assert (mine @ theirs.t()).abs().max() < 0.5


def test_nobody_predicts_before_the_reveal() -> None:
    public = KEYS.on_agree(task())
    with pytest.raises(Refusal, match="No class can be scored before the participants reveal their keys"):
        public.predict(public.model(batch(2).inputs))


def test_a_party_scores_its_own_classes_only() -> None:
    defended, local = own()
    outputs = defended.model(batch(3).inputs)
    scores = defended.predict(outputs)
    assert torch.isfinite(scores[:, :2]).all()
    assert (scores[:, 2:] == -torch.inf).all()
    embeddings = KEYS.on_agree(task()).model(batch(3).inputs)
    torch.testing.assert_close(scores[:, 1], embeddings @ local.memory["keys"][1])


def test_a_key_of_one_s_own_says_nothing_of_another_s_class() -> None:
    # What a party can compute for a foreign class is a score by a random direction: the same for examples of it and of
    # others.
    parties = clients()
    server, _ = played(parties, rounds=80)
    foreign = parties[0].local.memory["defence"]["keys"][3]
    public, examples = parties[0].public, batch(200, seed=5)
    outputs = public.forward(public.model_parameters(server.parameters), examples.inputs)
    real = outputs @ parties[1].local.memory["defence"]["keys"][3]
    guessed = outputs @ foreign
    of = examples.labels == 3
    assert real[of].mean() - real[~of].mean() > 0.2
    assert abs(guessed[of].mean() - guessed[~of].mean()) < 4 / math.sqrt(DIMENSIONS)


def test_closing_reveals_the_keys_of_owned_classes_alone() -> None:
    for party in clients():
        message = party.close()
        assert message is not None
        assert message.kind is Kind.REVEAL
        assert set(message.tensors) == {str(label) for label in OWNED[party.name]}
        for name, key in message.tensors.items():
            assert torch.equal(key, party.local.memory["defence"]["keys"][int(name)])


def test_after_the_reveal_the_shared_model_classifies_even_a_class_with_two_owners() -> None:
    parties = clients()
    server, _ = played(parties, rounds=80)
    public = parties[0].public
    final = KEYS.on_reveal(public, [message for party in parties if (message := party.close()) is not None])
    examples = batch(80, seed=7)
    scores = final.predict(final.forward(final.model_parameters(server.parameters), examples.inputs))
    assert (scores.argmax(1) == examples.labels).float().mean() > 0.9


def reveal(sender: str, **keys: Tensor) -> Message:
    return Message(Kind.REVEAL, sender, "server", 1, {name.removeprefix("c"): key for name, key in keys.items()})


def test_of_several_keys_of_a_class_the_best_counts() -> None:
    basis = torch.eye(DIMENSIONS)
    final = KEYS.on_reveal(
        KEYS.on_agree(task()),
        [reveal("client-0", c0=basis[0], c1=basis[1]), reveal("client-1", c1=basis[2], c3=basis[3])],
    )
    outputs = torch.nn.functional.normalize(0.6 * basis[0] + 0.1 * basis[1] + 0.7 * basis[2], dim=0)[None]
    scores = final.predict(outputs)
    # Class 1 by its second key, class 2 by none.
    torch.testing.assert_close(scores[0, :2], torch.stack([outputs[0, 0], outputs[0, 2]]))
    assert scores[0, 2] == -torch.inf
    assert scores.argmax(1).tolist() == [1]


def test_a_longer_key_wins_nothing() -> None:
    basis = torch.eye(DIMENSIONS)
    final = KEYS.on_reveal(
        KEYS.on_agree(task()), [reveal("client-0", c0=basis[0]), reveal("client-1", c1=100 * basis[1])]
    )
    outputs = torch.nn.functional.normalize(0.9 * basis[0] + 0.1 * basis[1], dim=0)[None]
    assert final.predict(outputs).argmax(1).tolist() == [0]


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"c9": torch.ones(DIMENSIONS)}, r"A key of client-1 must be named by a class from 0 to 3. Got `9` instead"),
        ({"cx": torch.ones(DIMENSIONS)}, r"Got `x` instead"),
        (
            {"c1": torch.ones(3)},
            r"The key of client-1 for class 1 must be 256 finite numbers, not all 0. Got shape \(3,\)",
        ),
        ({"c1": torch.zeros(DIMENSIONS)}, r"must be 256 finite numbers, not all 0"),
        ({"c1": torch.full((DIMENSIONS,), torch.nan)}, r"must be 256 finite numbers, not all 0"),
    ],
)
def test_a_key_that_cannot_be_one_is_an_error(keys: dict[str, Tensor], sentence: str) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        KEYS.on_reveal(KEYS.on_agree(task()), [reveal("client-1", **keys)])


def test_without_a_single_key_no_class_is_chosen() -> None:
    final = KEYS.on_reveal(KEYS.on_agree(task()), [])
    assert (final.predict(torch.ones(2, DIMENSIONS)) == -torch.inf).all()


def test_it_goes_along_with_defences_of_messages() -> None:
    chain = Chain(links=(KEYS, GaussianNoise(std=0.001), TopK(share=0.5)))
    parties = clients(chain)
    server, transcript = played(parties, rounds=2)
    final = chain.on_reveal(parties[0].public, [message for party in parties if (message := party.close()) is not None])
    scores = final.predict(final.forward(final.model_parameters(server.parameters), batch(4).inputs))
    assert scores.shape == (4, CLASSES)
    assert any((tensor == 0).any() for message in transcript[1::2] for tensor in message.tensors.values())


@pytest.mark.parametrize("fixed", [True, False])
def test_before_a_private_head_it_trains_for_the_same_keys(fixed: bool) -> None:
    keys = ClassKeys(dimensions=DIMENSIONS, fixed=fixed)
    chain = Chain(links=(keys, Polarization(alpha2=0.0)))
    local, examples = Local("client-0", seed=0), batch(5)
    both = chain.on_task(chain.on_agree(task()), local)
    alone, own_local = own(keys)
    own_local.memory["keys"] = next(link["keys"] for link in local.memory.values() if "keys" in link)
    losses = [each.loss(each.model(examples.inputs), examples.labels) for each in (both, alone)]
    torch.testing.assert_close(*losses)


def test_a_private_head_refuses_what_is_weighed() -> None:
    chain = Chain(links=(ClassKeys(dimensions=DIMENSIONS, weight_decay=0.1), Polarization()))
    with pytest.raises(Refusal, match="polarization must see a body with one head"):
        chain.on_task(chain.on_agree(task()), Local("client-0", seed=0))


def test_after_another_private_head_it_refuses() -> None:
    chain = Chain(links=(Polarization(), KEYS))
    with pytest.raises(Refusal, match="class_keys must see the agreed embedding"):
        chain.on_task(chain.on_agree(task()), Local("client-0", seed=0))
    with pytest.raises(Refusal, match="class_keys must see the agreed embedding"):
        KEYS.on_task(task(), Local("client-0", seed=0))


@pytest.mark.parametrize("settings", [{"dimensions": 1}, {"dimensions": 100_000}, {"scale": 0}, {"weight_decay": -1}])
def test_settings_out_of_range_are_an_error(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidValue):
        ClassKeys.model_validate(settings)


def test_direct_embeddings_are_the_features_at_length_one() -> None:
    defence = ClassKeys(dimensions=128, direct=True, orthonormal=True)
    public, (party, local) = defence.on_agree(task()), own(defence)
    inputs, keys = batch(5).inputs, local.memory["keys"]
    features = torch.nn.functional.normalize(task().model.features(inputs), dim=1)
    torch.testing.assert_close(public.model(inputs), features)
    torch.testing.assert_close(keys @ keys.t(), torch.eye(CLASSES), atol=1e-5, rtol=0)
    labels = batch(5).labels
    torch.testing.assert_close(
        party.loss(party.model(inputs), labels), -math.sqrt(128) * (features * keys[labels]).sum(1)
    )
    assert not any("head" in name for name in public.public_parameters())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"dimensions": 64, "direct": True},
            "class_keys embeds directly by as many features as keys have dimensions, 64",
        ),
        ({"dimensions": 128, "direct": True, "features": 8}, "leave `features` out"),
        ({"dimensions": 3, "orthonormal": True}, "needs at least as many dimensions as classes"),
    ],
)
def test_what_cannot_be_embedded_so_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refusal, match=sentence):
        ClassKeys(**settings).on_agree(task())


def test_it_notes_the_effective_length_of_its_keys() -> None:
    notes = [
        own(ClassKeys(dimensions=d, **more))[1].notes for d, more in ((64, {}), (4096, {}), (64, {"fixed": False}))
    ]
    assert [note.get("class_keys.effective_length") for note in notes] == [64, 128, None]


def _holds(tensor: Tensor, keys: Tensor) -> bool:
    """Return whether any row or column of a tensor points along a key, or has one inside."""
    length = keys.shape[1]
    flat_tensor = tensor.detach().flatten()
    rows = [flat_tensor] if flat_tensor.numel() == length else []
    if tensor.dim() >= 2:
        rows += [
            row for matrix in (tensor.flatten(1), tensor.flatten(1).t()) if matrix.shape[1] == length for row in matrix
        ]
    rows += list(flat_tensor.unfold(0, length, 1)) if length <= flat_tensor.numel() <= 8 * length else []
    if not rows:
        return False
    cosine = torch.nn.functional.normalize(torch.stack(rows), dim=1) @ keys.t()
    return bool((cosine.abs() > 0.9).any())
