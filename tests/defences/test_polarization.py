"""Secret polarization network: the paper's identities, and that its secrets stay home."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from leaktight.core.channel import Belief, push_all
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.task import Batch, Model, Task
from leaktight.core.threat import ThreatModel
from leaktight.data import Digits
from leaktight.defences import DPSGD, GaussianNoise, Polarization, TopK
from leaktight.defences.polarization import polarization_loss
from leaktight.learning import Adam, Client, FedAvg, Federated, FedSGD, RoundRobin, Server, Sgd, classification
from leaktight.learning.gradient import gradient
from leaktight.models import MLP, ConvNet, DLNet

CLASSES, BITS = 3, 16


def task(seed: int = 0) -> Task:
    return classification(DLNet(width=3).build((1, 8, 8), CLASSES, seed), (1, 8, 8), CLASSES)


def batch(examples: int = 5, seed: int = 0) -> Batch:
    rng = stream(seed, "batch")
    return Batch(torch.rand(examples, 1, 8, 8, generator=rng), torch.randint(0, CLASSES, (examples,), generator=rng))


def own(defence: Polarization, party: str = "client-0") -> tuple[Task, Local]:
    local = Local(party, seed=0)
    return defence.on_task(task(), local), local


codes = st.lists(st.lists(st.sampled_from([-1.0, 1.0]), min_size=6, max_size=6), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(st.data(), codes, st.floats(1.0, 5.0))
def test_the_loss_bounds_the_hamming_distance(data: st.DataObject, codes: list[list[float]], margin: float) -> None:
    wanted = torch.tensor(codes, dtype=torch.float64)
    size = wanted.numel()
    values = data.draw(st.lists(st.floats(-1e6, 1e6), min_size=size, max_size=size))
    outputs = torch.tensor(values, dtype=torch.float64).view_as(wanted)
    # Lemma 5.5; a zero output counts as the wrong bit, as in its proof.
    hamming = (outputs * wanted <= 0).sum(-1)
    assert (hamming <= polarization_loss(outputs, wanted, margin)).all()


def test_the_loss_bounds_the_distances_within_and_between_classes() -> None:
    rng = stream(1, "outputs")
    first, second = (torch.sign(torch.randn(BITS, generator=rng)) for _ in range(2))
    groups = [torch.randn(7, BITS, generator=rng) + code for code in (first, second)]
    bits = [group.sign() for group in groups]
    losses = [polarization_loss(group, code, 1.0) for group, code in zip(groups, (first, second), strict=True)]

    def hamming(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return (one[:, None] != other[None]).sum(-1).double().mean()

    # Propositions 5.1 and 5.2 for two classes.
    assert hamming(bits[0], bits[0]) <= 2 * losses[0].mean()
    apart = (first != second).sum() - hamming(bits[0], bits[1])
    assert apart <= losses[0].mean() + losses[1].mean()


@pytest.mark.parametrize(("alpha1", "alpha2"), [(1.0, 0.1), (0.5, 0.5), (2.0, 3.0)])
def test_the_gradient_is_the_weighted_sum_of_both(alpha1: float, alpha2: float) -> None:
    defended, local = own(Polarization(alpha1=alpha1, alpha2=alpha2, bits=BITS))
    parameters, examples = defended.model.tensors(), batch()
    found = gradient(defended, parameters, examples).tensors

    def mean_loss(of: Task) -> dict[str, torch.Tensor]:
        return dict(gradient(of, parameters, examples).tensors)

    public = mean_loss(dataclasses.replace(defended, loss=lambda outputs, labels: task().loss(outputs[0], labels)))
    mine = local.memory["codes"][examples.labels]
    private = mean_loss(
        dataclasses.replace(defended, loss=lambda outputs, labels: (1.0 - outputs[1] * mine).relu().sum(1)),
    )
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, alpha1 * public[name] + alpha2 * private[name])
    assert private["body.conv1.weight"].abs().max() > 0
    assert private["head.public.weight"].abs().max() == 0


def test_off_is_the_plain_task() -> None:
    plain = gradient(task(), task().model.tensors(), batch()).tensors
    defended, _ = own(Polarization(alpha2=0.0))
    sent = defended.outward(gradient(defended, defended.model.tensors(), batch()).tensors)
    assert sent.keys() == plain.keys()
    assert all(torch.equal(sent[name], plain[name]) for name in plain)
    assert torch.equal(
        defended.predict(defended.model(batch().inputs)),
        task().model(batch().inputs),
    )


def test_soft_labels_mean_the_same_as_hard_ones() -> None:
    defended, _ = own(Polarization(bits=BITS))
    outputs, labels = defended.model(batch().inputs), batch().labels
    soft = nn.functional.one_hot(labels, CLASSES).float()
    torch.testing.assert_close(defended.loss(outputs, labels), defended.loss(outputs, soft))


def test_codes_are_fair_and_each_party_has_its_own() -> None:
    (first, one), (_, other) = own(Polarization(bits=4096)), own(Polarization(bits=4096), "client-1")
    codes = one.memory["codes"]
    assert set(codes.unique().tolist()) == {-1.0, 1.0}
    assert abs(codes.mean().item()) < 0.05
    assert (codes != other.memory["codes"]).float().mean() > 0.45
    again, _ = own(Polarization(bits=4096))
    assert all(torch.equal(tensor, again.model.tensors()[name]) for name, tensor in first.model.tensors().items())


def test_the_private_head_starts_in_its_bound() -> None:
    for bound, wanted in ((None, 1 / 12**0.5), (0.3, 0.3)):
        weight = own(Polarization(bound=bound, bits=256))[0].model.tensors()["head.private.weight"]
        assert weight.shape == (256, 12)
        assert 0.95 * wanted < weight.abs().max() <= wanted


def test_the_global_generator_and_the_public_model_stay_as_they_were() -> None:
    public = task()
    before, weights = torch.random.get_rng_state(), copy.deepcopy(public.model.state_dict())
    Polarization().on_task(public, Local("client-0", seed=0))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(tensor, weights[name]) for name, tensor in public.model.state_dict().items())


def test_names_go_out_as_they_would_without_it() -> None:
    defended, _ = own(Polarization())
    assert list(defended.public_parameters()) == list(task().public_parameters())
    twice = Chain(links=(Polarization(), Polarization(alpha2=0.3))).on_task(task(), Local("client-0", seed=0))
    assert list(twice.public_parameters()) == list(task().public_parameters())
    assert sum(twice.wire(name) is None for name in twice.model.tensors()) == 4


@pytest.mark.parametrize(
    "protocol",
    [
        FedSGD(optimiser=Sgd(learning_rate=0.1)),
        FedAvg(optimiser=Sgd(learning_rate=0.1)),
        RoundRobin(optimiser=Adam(learning_rate=0.003)),
    ],
)
@pytest.mark.parametrize(
    "links", [(), (GaussianNoise(std=1e-3),), (TopK(share=0.3),), (DPSGD(clip=10.0, multiplier=0.5),)]
)
def test_it_trains_under_every_protocol_and_in_chains(
    protocol: FedSGD | FedAvg | RoundRobin, links: tuple[Defence, ...]
) -> None:
    defence = (
        Chain(links=(Polarization(alpha2=0.05, bits=BITS), *links)) if links else Polarization(alpha2=0.05, bits=BITS)
    )
    scenario = Federated(data=Digits(), model=MLP(), participants=2, protocol=protocol, rounds=2, batch_size=8)
    training = scenario.train(defence, seed=0)
    memories = training.snapshots["end"].memories["client-0"]
    start = training.snapshots["initial"].memories["client-0"]
    assert training.snapshots["end"].parameters.keys() == scenario.task(Digits().load(), 0).public_parameters().keys()
    assert {name.split(".")[1] for name in memories["private"]} == {"private"}
    assert "private" not in start  # nothing has been trained yet


def test_the_head_is_remembered_and_trained_between_messages() -> None:
    client = Client(
        "client-0",
        task(),
        batch(20),
        Polarization(bits=BITS),
        Local("client-0", seed=0),
        batch_size=5,
        local_steps=2,
        shares=Kind.UPDATE,
    )
    server = Server(task().public_parameters())
    client.respond(server.ask("client-0", 0))
    first = copy.deepcopy(client.local.memory["private"])
    client.respond(server.ask("client-0", 1))
    second = client.local.memory["private"]
    assert first.keys() == second.keys() == {"head.private.weight", "head.private.bias"}
    assert not torch.equal(first["head.private.weight"], second["head.private.weight"])


def test_noise_on_steps_reaches_the_private_head_and_noise_on_messages_does_not() -> None:
    def head(*links: Defence) -> torch.Tensor:
        defence = Chain(links=(Polarization(bits=BITS), *links))
        client = Client(
            "client-0", task(), batch(20), defence, Local("client-0", seed=0), batch_size=5, shares=Kind.UPDATE
        )
        client.respond(Server(task().public_parameters()).ask("client-0", 0))
        found: torch.Tensor = client.local.memory["private"]["head.private.weight"]
        return found

    clean, outside, inside = head(), head(GaussianNoise(std=1.0)), head(GaussianNoise(std=1.0, each="step"))
    assert torch.equal(clean, outside)
    assert not torch.allclose(clean, inside, atol=0.01)


def test_no_secret_is_in_the_transcript_or_in_a_view() -> None:
    scenario = Federated(data=Digits(), model=DLNet(width=3), participants=3, rounds=1, batch_size=8)
    defence = Polarization(bits=BITS)
    training = scenario.train(defence, seed=0)
    run = scenario.observe(training, defence, Observation("end", 2, 3, seed=0))
    view = ThreatModel(seat="server").view(run)
    secrets = [
        tensor
        for local in run.locals.values()
        for tensor in (local.memory["defence"]["codes"], *local.memory["private"].values())
    ]
    assert len(secrets) == 9
    shown = [tensor for message in (*run.transcript, *view.messages) for tensor in message.tensors.values()]
    for tensor in shown:
        assert BITS not in tensor.shape
        for secret in secrets:
            assert tensor.shape != secret.shape or not torch.equal(tensor, secret)
    assert view.memory == {}
    assert not any("private" in name for message in run.transcript for name in message.tensors)


def test_what_goes_out_is_another_gradient_than_the_plain_one() -> None:
    def sent(defence: Polarization | Undefended) -> torch.Tensor:
        client = Client("client-0", task(), batch(), defence, Local("client-0", seed=0), batch_size=5)
        answer = client.respond(Server(task().public_parameters()).ask("client-0", 0))
        return torch.cat([tensor.flatten() for name, tensor in answer.tensors.items() if name.startswith("body")])

    plain = sent(Undefended())
    weak, strong = (torch.dist(sent(Polarization(alpha2=alpha2)), plain) for alpha2 in (0.01, 0.1))
    assert 0 < weak < strong
    # The perturbation is linear in alpha2.
    torch.testing.assert_close(strong, 10 * weak, rtol=1e-3, atol=0)


def test_any_body_and_head_will_do() -> None:
    network = ConvNet(width=2).build((3, 32, 32), CLASSES, 0)
    inner = classification(network, (3, 32, 32), CLASSES)
    hidden = classification(Model(network.body, nn.Sequential(network.head, nn.Identity())), (3, 32, 32), CLASSES)
    for one in (inner, hidden):
        defended = Polarization(bits=BITS).on_task(one, Local("client-0", seed=0))
        outputs = defended.model(torch.rand(2, 3, 32, 32))
        assert outputs[1].shape == (2, BITS)
        assert defended.predict(outputs).shape == (2, CLASSES)


@pytest.mark.parametrize(
    ("field", "value"),
    [("alpha2", -0.1), ("alpha1", 0.0), ("bits", 0), ("margin", 0.5), ("bound", 0.0), ("alpha2", float("nan"))],
)
def test_absurd_settings_are_refused(field: str, value: float) -> None:
    with pytest.raises(InvalidValue, match=f"`{field}` of polarization must be"):
        Polarization.model_validate({field: value})


def test_the_hardened_variant_adds_noise_to_the_public_head_alone() -> None:
    defence = Polarization(alpha2=0.1, bits=4, head_noise=0.5)
    defended, local = own(defence)
    clean = gradient(defended, defended.model.tensors(), batch())
    first, second = (defence.on_gradient(clean, local).tensors for _ in range(2))
    for name, tensor in clean.tensors.items():
        if name.startswith("head.public."):
            assert 0 < (first[name] - tensor).std().item() < 1.5
            assert not torch.equal(first[name], second[name])
        else:
            assert torch.equal(first[name], tensor)
    assert defence.redraws
    assert not Polarization().redraws
    assert Polarization().on_gradient(clean, local) is clean
    assert "head_noise" not in Polarization().to_dict()


def test_the_hardened_variant_states_its_noise_for_both_names_of_the_head() -> None:
    stages = Polarization(head_noise=0.5).channel(task()).step
    names = ("body.conv1.weight", "head.weight", "head.public.weight")
    belief = push_all(stages, Belief({name: torch.zeros(2) for name in names}))
    assert [belief.noise_of(name).variance for name in names] == [0.0, 0.25, 0.25]
    assert Polarization().channel(task()).step == ()


def test_it_says_what_it_leaves_open() -> None:
    said = " ".join(Polarization.leaves_open)
    assert all(word in said for word in ("labels", "features", "linear first layer"))
    assert "What it leaves open" in (Polarization.__doc__ or "")
