"""The collaborative framework: what is downloaded, what is uploaded, who takes a turn when, and for how long."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.scenario import Observation
from leaktight.core.task import Batch
from leaktight.data import ByClass, Digits
from leaktight.defences import GaussianNoise
from leaktight.learning import Federated, RoundRobin, Server, Sgd, federate
from leaktight.learning.collaborative import Sharing, largest
from leaktight.models import MLP


def local(number=0) -> Local:
    made = Local("client-0", seed=3)
    made.begin(number)
    return made


def tensors(seed=0, scale=1.0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "weight": scale * torch.randn(4, 5, generator=generator),
        "bias": scale * torch.randn(3, generator=generator),
    }


def flat(named) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in named.values()])


@given(share=st.floats(0.001, 1.0), seed=st.integers(0, 50))
def test_exactly_a_share_is_chosen_and_nothing_larger_is_left(share, seed):
    found = {name: tensor.abs() for name, tensor in tensors(seed).items()}
    mask, entries = flat(largest(found, share)), flat(found)
    assert mask.sum() == -(-round(share * 23, 9) // 1)
    assert mask.all() or entries[mask].min() >= entries[~mask].max()


def test_of_equal_entries_as_many_as_asked_are_chosen():
    assert flat(largest({"a": torch.ones(6), "b": torch.ones(4)}, 0.3)).sum() == 3


def test_the_largest_changes_go_out_and_the_rest_as_zero():
    update = tensors()
    sent = flat(Sharing(upload=0.3).select_upload(update, local()))
    edge = flat(update).abs().sort(descending=True).values[6]
    assert torch.equal(sent, torch.where(flat(update).abs() >= edge, flat(update), 0.0))


def test_random_ones_are_drawn_anew_in_each_round_whatever_their_size():
    sharing, update = Sharing(upload=0.5, choice="random"), tensors()
    masks = [flat(sharing.select_upload(update, local(number))) != 0 for number in range(400)]
    assert {int(mask.sum()) for mask in masks} == {12}
    # Each entry goes out in about 12 of 23 rounds; five standard deviations are 0.125.
    assert (torch.stack(masks).float().mean(0) - 12 / 23).abs().max() < 0.125
    again = flat(sharing.select_upload(update, local(7))) != 0
    assert torch.equal(again, masks[7])


def test_entries_are_bounded_after_they_were_chosen():
    update = {"weight": torch.tensor([5.0, -4.0, 3.0, 0.1])}
    sent = Sharing(upload=0.5, clip=1.0).select_upload(update, local())["weight"]
    assert sent.tolist() == [1.0, -1.0, 0.0, 0.0]
    assert Sharing(clip=1.0).select_upload(update, local())["weight"].tolist() == pytest.approx([1.0, -1.0, 1.0, 0.1])


def test_who_shares_all_keeps_nothing_and_changes_nothing():
    own, update = local(), tensors()
    sharing = Sharing()
    taken = sharing.select_download(update, own)
    sharing.remember(update, taken, update, update, own)
    assert torch.equal(flat(taken), flat(update))
    assert torch.equal(flat(sharing.select_upload(update, own)), flat(update))
    assert own.memory == {}


def test_the_first_download_is_whole():
    served = tensors()
    assert torch.equal(flat(Sharing(download=0.1).select_download(served, local())), flat(served))


def test_of_later_downloads_what_others_changed_most_is_taken_and_the_rest_stays_ones_own():
    sharing, own, served = Sharing(download=0.5), local(), {"w": torch.zeros(4)}
    taken = sharing.select_download(served, own)
    # It trains by (1, 2, 3, 4), of which only the first two go out.
    sent = {"w": torch.tensor([1.0, 2.0, 0.0, 0.0])}
    sharing.remember(served, taken, {"w": torch.tensor([1.0, 2.0, 3.0, 4.0])}, sent, own)
    # Others add (0, 10, 0.1, 0.5): entries 1 and 3 changed most, although 2 and 3 differ most from its own.
    following = {"w": torch.tensor([1.0, 12.0, 0.1, 0.5])}
    taken = sharing.select_download(following, own)
    assert taken["w"].tolist() == pytest.approx([1.0, 12.0, 3.0, 0.5])
    # What was left aside is still new the next time; nothing was sent since.
    sharing.remember(following, taken, taken, {}, own)
    later = {"w": torch.tensor([1.0, 12.0, 0.1, 0.45])}
    assert sharing.select_download(later, own)["w"].tolist() == pytest.approx([1.0, 12.0, 0.1, 0.45])


def test_a_client_trains_from_the_mixture_and_sends_the_change_from_there(make, task):
    client = make(shares=Kind.UPDATE, local_steps=2, sharing=Sharing(download=0.5))
    first = Message(Kind.PARAMETERS, "server", "client-0", 0, task.public_parameters())
    sent = client.respond(first)
    own = {name: tensor + sent.tensors[name] for name, tensor in first.tensors.items()}
    assert all(torch.allclose(client.local.memory["download"]["own"][name], own[name]) for name in own)
    generator = torch.Generator().manual_seed(5)
    moved = {name: tensor + torch.randn(tensor.shape, generator=generator) for name, tensor in own.items()}
    second = dataclasses.replace(first, round=1, tensors=moved)
    mixture = client.sharing.select_download(moved, client.local)
    taken = flat(mixture) == flat(moved)
    assert taken.sum() == -(-taken.numel() // 2)
    assert torch.allclose(flat(mixture)[~taken], flat(own)[~taken])
    plain = make(shares=Kind.UPDATE, local_steps=2)
    expected = plain.respond(dataclasses.replace(second, tensors=mixture)).tensors
    assert all(torch.equal(tensor, expected[name]) for name, tensor in client.respond(second).tensors.items())


def test_turns_are_drawn_anew_each_round_from_the_servers_seed(make, task):
    def senders(order, seed):
        clients = [make(f"client-{k}", slice(12 * k, 12 * k + 12), shares=Kind.UPDATE) for k in range(5)]
        server = Server(task.public_parameters(), seed=seed)
        protocol = RoundRobin(order=order, local_steps=1)
        return [[m.sender for m in protocol.round(server, clients, n) if m.kind is Kind.UPDATE] for n in range(6)]

    names = [f"client-{k}" for k in range(5)]
    assert senders("in_turn", 0) == [names] * 6
    drawn = senders("random", 0)
    assert all(sorted(turns) == names for turns in drawn)
    assert len(set(map(tuple, drawn))) > 3
    assert senders("random", 0) == drawn != senders("random", 1)


def scenario(**settings) -> Federated:
    protocol = RoundRobin(**{"optimiser": Sgd(learning_rate=0.1), **settings.pop("protocol", {})})
    base = {"data": Digits(), "model": MLP(hidden=(16,)), "participants": 2, "rounds": 4, "batch_size": 64}
    return Federated(**{**base, "protocol": protocol, **settings})


def test_epochs_are_whole_passes_over_ones_own_data():
    made = scenario(protocol={"local_epochs": 2})
    run = made.observe(made.train(Undefended(), 0), Undefended(), Observation("end", 64, 2, 0))
    for (name, _), ground_truth in run.truths.items():
        steps = 2 * (len(ground_truth.owned) // 64)
        assert ground_truth.sent.facts["local_steps"] == steps, name
        assert len(ground_truth.raw) == 64 * steps


def test_within_a_pass_no_example_occurs_twice(make):
    steps = RoundRobin(local_epochs=2).steps(examples=60, batch_size=16)
    batches = make(batch_size=16, local_steps=steps, shares=Kind.UPDATE).batches(round=1)
    assert len(batches) == 6
    for part in (batches[:3], batches[3:]):
        assert len(Batch.join(part).inputs.unique(dim=0)) == 48


def test_a_participant_with_less_than_a_batch_takes_one_step_in_a_pass():
    assert RoundRobin(local_epochs=3).steps(examples=5, batch_size=64) == 3


@pytest.mark.parametrize(
    "settings",
    [{"download": 0.3}, {"upload": 0.3}, {"upload": 0.3, "choice": "random"}, {"clip": 0.01}, {"order": "random"}],
    ids=str,
)
def test_a_federation_learns_by_shares(settings):
    made = scenario(protocol={"local_epochs": 1, **settings}, rounds=12)
    [accuracy] = made.train(Undefended(), 0).utility
    plain = scenario(protocol={"local_epochs": 1}, rounds=12).train(Undefended(), 0).utility[0]
    assert accuracy.low > accuracy.chance
    assert accuracy.value != plain.value


def test_what_would_have_been_sent_undefended_starts_from_the_same_mixture():
    made = scenario(protocol={"download": 0.4, "upload": 0.5, "choice": "random", "local_steps": 2})
    quiet = GaussianNoise(std=1e-12)
    run = made.observe(made.train(quiet, 0), quiet, Observation("end", 16, 4, 0))
    for ground_truth in run.truths.values():
        assert all(
            torch.allclose(ground_truth.plain.tensors[name], tensor, atol=1e-9)
            for name, tensor in ground_truth.clean.tensors.items()
        )
        entries = flat(ground_truth.clean.tensors)
        assert (entries != 0).sum() <= -(-len(entries) // 2)


def test_an_observation_goes_on_from_what_a_participant_kept():
    made = scenario(protocol={"download": 0.4, "local_steps": 2})
    training = made.train(Undefended(), 0)
    assert {*training.snapshots["end"].memories["client-1"]["download"]} == {"own", "seen"}
    run = made.observe(training, Undefended(), Observation("end", 16, 2, 0))
    kept = training.snapshots["end"].memories["client-0"]
    data = made.data.load()
    client = made.clients(run.public, data, Undefended(), 0, {"client-0": kept}, 16)[0]
    [ask, sent] = [message for message in run.transcript if "client-0" in (message.sender, message.receiver)]
    assert all(torch.equal(tensor, sent.tensors[name]) for name, tensor in client.respond(ask).tensors.items())


def test_settings_of_before_keep_their_keys():
    plain = RoundRobin(local_steps=2)
    assert set(plain.to_dict()) == {"kind", "optimiser", "local_steps", "aggregation"}
    full = RoundRobin(order="random", download=0.5, upload=0.1, choice="random", clip=0.1, local_epochs=1)
    assert RoundRobin.model_validate(full.to_dict()) == full
    assert RoundRobin.model_validate(plain.to_dict()) == plain


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"download": 0.0}, "The `download` of round_robin must be above 0. Got 0.0 instead."),
        ({"upload": 1.5}, "The `upload` of round_robin must be at most 1. Got 1.5 instead."),
        ({"clip": 0.0}, "The `clip` of round_robin must be above 0. Got 0.0 instead."),
        ({"local_epochs": 0}, "The `local_epochs` of round_robin must be at least 1. Got 0 instead."),
        ({"order": "last"}, "The `order` of round_robin must be one of 'in_turn' or 'random'. Got 'last' instead."),
    ],
)
def test_faults_are_said(settings, sentence):
    with pytest.raises(InvalidValue) as caught:
        RoundRobin(**settings)
    assert str(caught.value) == sentence


def test_a_federation_of_owners_of_classes_learns_all_of_them():
    halves = ByClass(owned=(tuple(range(6)), tuple(range(4, 10))))
    made = scenario(partition=halves, protocol={"local_steps": 4, "optimiser": Sgd(learning_rate=0.05)}, rounds=60)
    data = made.data.load()
    clients = made.clients(made.task(data, 0), data, Undefended(), 0)
    assert [client.local.classes for client in clients] == [tuple(range(6)), tuple(range(4, 10))]
    assert made.train(Undefended(), 0).utility[0].value > 0.6


def test_the_same_seed_plays_the_same_rounds(make, task):
    clients = [make(f"client-{k}", slice(20 * k, 20 * k + 20), shares=Kind.UPDATE) for k in range(3)]
    server, again = Server(task.public_parameters(), seed=1), Server(task.public_parameters(), seed=1)
    for one in (server, again):
        federate(RoundRobin(order="random", local_steps=1), one, clients, 3)
    assert torch.equal(flat(server.parameters), flat(again.parameters))
