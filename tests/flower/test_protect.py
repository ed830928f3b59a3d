"""One line protects every update of an app: by name, scalars too, closed on any fault, state in the context."""

import copy
from typing import Literal

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.secure import SecretKey
from leaktight.defences import DPSGD, GaussianNoise, LaplaceNoise, LocalDP, Polarization, Pruning, TopK
from leaktight.flower import notes_of, protect

ZEROS = {"conv__weight": np.zeros((4, 5), np.float32), "scale": np.float32(2.0), "norm__steps": np.int64(3)}
MOVED = {"conv__weight": np.ones((4, 5), np.float32), "scale": np.float32(3.0), "norm__steps": np.int64(9)}


def played(by_hand, mod, context=None, before=ZEROS, after=MOVED, kind="train", **more):
    app = by_hand.answering(by_hand.arrays(**after), **more)
    return mod(by_hand.ask(by_hand.arrays(**before), kind), context or by_hand.context(), app)


def test_the_update_goes_through_the_defence_and_comes_back_on_top_of_what_was_received(by_hand):
    sent = by_hand.values(played(by_hand, protect(TopK(share=0.1)), after={**MOVED, "scale": np.float32(12.0)}))
    weight = sent["conv.weight"]
    # Of 21 entries 3 are shared: the scalar that moved most, and two ones.
    assert sent["scale"] == 12
    assert weight.sum() == 2
    assert weight.dtype == np.float32


def test_scalars_get_noise_too_and_keep_their_form(by_hand):
    sent = by_hand.values(played(by_hand, protect(GaussianNoise(std=0.5))))
    assert sent["scale"].shape == ()
    assert sent["scale"] != 3
    assert list(sent) == ["conv.weight", "scale", "norm.steps"]


def test_integers_go_back_as_they_were_received(by_hand):
    sent = by_hand.values(played(by_hand, protect(GaussianNoise(std=0.5))))
    assert sent["norm.steps"] == 3
    assert sent["norm.steps"].dtype == np.int64


def test_noise_has_its_deviation_and_no_bias(by_hand):
    big = {"weight": np.zeros(20_000, np.float32)}
    sent = by_hand.values(played(by_hand, protect(GaussianNoise(std=0.5)), before=big, after=big))["weight"]
    assert abs(sent.std() - 0.5) < 0.01
    assert abs(sent.mean()) < 0.015


@pytest.mark.parametrize("kind", ["evaluate", "query", "query.embeddings"])
def test_metrics_of_other_messages_pass_and_their_arrays_do_not(by_hand, kind):
    mod, asked = protect(GaussianNoise(std=0.5)), by_hand.ask(by_hand.arrays(**ZEROS), kind)
    content = {"metrics": MetricRecord({"accuracy": 0.5})}
    reply = mod(asked, by_hand.context(), lambda message, _: Message(RecordDict(content), reply_to=message))
    assert dict(reply.content["metrics"]) == {"accuracy": 0.5}
    refused = played(by_hand, mod, kind=kind)
    assert refused.has_error()
    assert (
        f"The reply to a message of type `{kind}` holds arrays, and only updates are defended" in refused.error.reason
    )


def test_train_messages_with_an_action_are_protected(by_hand):
    sent = by_hand.values(played(by_hand, protect(GaussianNoise(std=0.5)), kind="train.personal"))
    assert (sent["conv.weight"] != 1).all()


def test_metrics_pass(by_hand):
    reply = played(by_hand, protect(GaussianNoise(std=0.5)))
    assert dict(reply.content["metrics"]) == {"num-examples": 10, "train_loss": 0.5}


def test_no_noise_is_drawn_twice(by_hand):
    context, mod = by_hand.context(), protect(GaussianNoise(std=0.5))
    replies = [
        played(by_hand, mod, where) for where in (context, context, by_hand.context(node=8), by_hand.context(run=2))
    ]
    drawn = [tuple(by_hand.values(reply)["conv.weight"].ravel()) for reply in replies]
    assert len(set(drawn)) == 4
    twin = played(by_hand, protect(LaplaceNoise(scale=0.5)), by_hand.context())
    assert not np.isclose(by_hand.values(twin)["conv.weight"], by_hand.values(replies[0])["conv.weight"]).any()


def test_noise_is_new_where_a_nodes_state_was_put_back(by_hand):
    """Who can have a node forget what it sent must not get the same noise around something else."""
    mod, before = protect(GaussianNoise(std=0.5)), by_hand.context()
    played(by_hand, mod, before)
    twins = [by_hand.context(), by_hand.context()]
    for twin in twins:
        twin.state = RecordDict({name: copy.deepcopy(record) for name, record in before.state.items()})
    one, other = (by_hand.values(played(by_hand, mod, twin))["conv.weight"] for twin in twins)
    assert not np.isclose(one, other).any()


@pytest.mark.parametrize(
    "defence",
    [
        GaussianNoise(std=0),
        GaussianNoise(std=0, clip=1.0),
        TopK(share=1.0),
        Chain(links=(TopK(), GaussianNoise(std=0))),
    ],
)
def test_a_strength_that_means_off_is_refused(defence):
    with pytest.raises(
        InvalidValue, match=r"`protect` needs a defence that changes messages. Got .* instead, which means off"
    ):
        protect(defence)


def test_privacy_without_noise_is_refused():
    with pytest.raises(InvalidValue, match="Got local_dp with `multiplier` 0 instead, which adds no noise"):
        protect(LocalDP(multiplier=0))


def test_noise_alone_is_a_defence_though_everything_is_shared():
    assert protect(TopK(share=1.0, noise=0.1)).defence.noise == 0.1


def said(caplog):
    return [line.message for line in caplog.records if "update" in line.message]


@pytest.mark.parametrize(
    ("defence", "sentence"),
    [
        (GaussianNoise(std=0.5), "gaussian_noise(std=0.5): noise norm 2.29 beside an update norm of 4.58."),
        (
            GaussianNoise(std=0.5, clip=2.0),
            "gaussian_noise(clip=2.0, std=0.5): noise norm 4.58 beside an update norm of 4.58, which is clipped to 2.",
        ),
        (
            LocalDP(clip=9.0, multiplier=0.5),
            "local_dp(clip=9.0, multiplier=0.5): noise norm 20.6 beside an update norm of 4.58.",
        ),
        (TopK(share=0.5), "top_k(share=0.5): an update of norm 4.58 was changed by 3.16."),
    ],
)
def test_the_log_says_once_in_a_run_how_large_the_noise_is(by_hand, caplog, defence, sentence):
    context, mod = by_hand.context(), protect(defence)
    caplog.set_level("INFO")
    for _ in range(2):
        reply = played(by_hand, mod, context)
    assert said(caplog) == [sentence]
    # It is the node's own: nothing of it is sent.
    assert "noise norm" not in repr(reply.content)
    played(by_hand, mod, by_hand.context(run=2))
    assert said(caplog) == [sentence] * 2


def test_noise_in_units_of_the_clip_has_that_deviation(by_hand):
    before, after = {"weight": np.zeros(20_000, np.float32)}, {"weight": np.full(20_000, 3.0, np.float32)}
    mod = protect(GaussianNoise(std=0.5, clip=2.0))
    sent = by_hand.values(played(by_hand, mod, before=before, after=after))["weight"]
    assert abs(sent.std() - 1.0) < 0.02
    # The update is shortened from 424 to 2.
    assert abs(sent.mean() - 2 / 20_000**0.5) < 0.03


@pytest.mark.parametrize(
    ("links", "start"),
    [
        ((TopK(), GaussianNoise()), "gaussian_noise after top_k puts noise on the entries that top_k left out"),
        ((GaussianNoise(), Pruning()), "pruning after gaussian_noise chooses entries by their noise"),
        ((LaplaceNoise(), LocalDP()), "local_dp after laplace_noise shortens the noise together with the update"),
    ],
)
def test_a_link_that_undoes_another_is_warned_about(caplog, links, start):
    protect(Chain(links=links))
    [warning] = [line for line in caplog.records if line.levelname == "WARNING"]
    assert warning.message.startswith(start)


def test_a_chain_without_such_a_link_is_not(caplog):
    protect(Chain(links=(LocalDP(), GaussianNoise(std=0.1))))
    assert not caplog.records


def test_the_same_mod_twice_adds_noise_twice(by_hand):
    mod, context = protect(GaussianNoise(std=0.5)), by_hand.context()
    app = by_hand.answering(by_hand.arrays(**ZEROS))
    reply = mod(by_hand.ask(by_hand.arrays(**ZEROS)), context, lambda message, where: mod(message, where, app))
    once = mod(by_hand.ask(by_hand.arrays(**ZEROS)), by_hand.context(), app)
    inner, both = by_hand.values(once)["conv.weight"], by_hand.values(reply)["conv.weight"]
    assert not np.isclose(both, 2 * inner).any()


def test_residuals_are_kept_in_the_context_and_go_out_later(by_hand):
    context, mod = by_hand.context(), protect(TopK(share=0.5, residual=True))
    before = {"weight": np.zeros(4, np.float32)}
    first = played(by_hand, mod, context, before, {"weight": np.array([4, 3, 2, 1], np.float32)})
    second = played(
        by_hand, protect(TopK(share=0.5, residual=True)), context, before, {"weight": np.zeros(4, np.float32)}
    )
    assert by_hand.values(first)["weight"].tolist() == [4, 3, 0, 0]
    assert by_hand.values(second)["weight"].tolist() == [0, 0, 2, 1]


class Counting(Defence):
    """Accounts for every message."""

    kind: Literal["test_counted"] = "test_counted"

    def on_message(self, message, local):
        local.memory["spent"] = local.memory.get("spent", 0.0) + message.facts["examples"]
        local.notes["counting.epsilon"] = local.memory["spent"]
        return message.map(lambda tensor: tensor / 2)


def test_what_is_spent_adds_up_over_messages(by_hand):
    context, defence = by_hand.context(), Counting()
    assert notes_of(context, defence) == {}
    for _ in range(3):
        played(by_hand, protect(defence), context)
    assert notes_of(context, defence) == {"counting.epsilon": 30.0}


def test_a_folder_keeps_the_budget_over_processes_and_runs(by_hand, tmp_path):
    defence, folder = Counting(), tmp_path / "node"
    for run in (1, 1, 2):
        played(by_hand, protect(defence, state=folder), by_hand.context(run=run))
    assert notes_of(by_hand.context(run=3), defence, folder) == {"counting.epsilon": 30.0}
    assert notes_of(by_hand.context(run=3), defence) == {}
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_an_account_beside_another_is_refused(by_hand, tmp_path):
    """What two settings spend adds up; an epsilon that starts anew with each would be none."""
    played(by_hand, protect(LocalDP(multiplier=4.0), state=tmp_path))
    reply = played(by_hand, protect(LocalDP(multiplier=4.01), state=tmp_path))
    assert "holds what was spent under other settings, in `leaktight.local_dp." in reply.error.reason
    assert not played(by_hand, protect(LocalDP(multiplier=4.0), state=tmp_path)).has_error()
    assert not played(by_hand, protect(LocalDP(multiplier=4.01), state=tmp_path / "other")).has_error()


def test_what_belongs_to_a_run_ends_with_it(by_hand, tmp_path):
    mod, before = protect(TopK(share=0.5, residual=True), state=tmp_path), {"weight": np.zeros(4, np.float32)}
    played(by_hand, mod, by_hand.context(run=1), before, {"weight": np.array([4, 3, 2, 1], np.float32)})
    later = played(by_hand, mod, by_hand.context(run=2), before, {"weight": np.array([0, 0, 0, 8], np.float32)})
    assert by_hand.values(later)["weight"].tolist() == [0, 0, 0, 8]


def test_a_damaged_folder_is_named_and_nothing_is_sent(by_hand, tmp_path):
    played(by_hand, protect(Counting(), state=tmp_path))
    [kept] = tmp_path.glob("*.safetensors")
    kept.write_bytes(kept.read_bytes()[:-3])
    reply = played(by_hand, protect(Counting(), state=tmp_path))
    assert "must be as it was written. It is damaged; restore it" in reply.error.reason


def test_a_budget_that_ends_with_its_process_is_said_once(by_hand, caplog, monkeypatch):
    monkeypatch.setattr("leaktight.flower.defence_memory._warned", set())
    for _ in range(2):
        played(by_hand, protect(Counting()))
    said = [record.message for record in caplog.records if "budget" in record.message]
    assert said == [
        "The budget of test_counted is counted in the node's context and ends with it. "
        "Name a folder, `state=PATH`, to count over restarts and runs."
    ]


def test_no_secret_is_kept_or_sent(by_hand, tmp_path, monkeypatch):
    made, new = [], SecretKey.new
    monkeypatch.setattr(SecretKey, "new", classmethod(lambda cls: made.append(new()) or made[-1]))
    context = by_hand.context()
    reply = played(by_hand, protect(GaussianNoise(std=0.5), state=tmp_path), context)
    [key] = made
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for content in (kept, repr(context.state).encode(), repr(reply.content).encode()):
        assert key.hex.encode() not in content
        assert bytes.fromhex(key.hex) not in content


def test_the_budget_of_local_privacy_adds_up_over_messages(by_hand):
    context, defence = by_hand.context(), LocalDP(multiplier=4.0)
    spent = []
    for _ in range(3):
        assert not played(by_hand, protect(defence), context).has_error()
        spent.append(notes_of(context, defence)["local_dp.epsilon"])
    assert spent[0] < spent[1] < spent[2]


def test_chains_work_and_each_link_has_its_own_memory(by_hand):
    chain = Chain(links=(TopK(share=0.5, residual=True), GaussianNoise(std=0.1), TopK(share=0.5, residual=True)))
    context = by_hand.context()
    for _ in range(2):
        reply = played(by_hand, protect(chain), context)
    assert not reply.has_error()
    assert (by_hand.values(reply)["conv.weight"] == 0).any()


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (ZEROS, {**MOVED, "other": np.zeros(2, np.float32)}, "`other` of the reply's record `arrays` was not received"),
        (ZEROS, {**MOVED, "scale": np.zeros(2, np.float32)}, "`scale` must keep its shape"),
        (ZEROS, {**MOVED, "scale": np.float32(np.nan)}, "gaussian_noise failed"),
        (ZEROS, {**MOVED, "scale": np.int64(1)}, "stay real"),
    ],
)
def test_an_update_that_cannot_be_defended_is_not_sent(by_hand, before, after, why):
    reply = played(by_hand, protect(GaussianNoise(std=0.1)), before=before, after=after)
    assert reply.has_error()
    assert why in reply.error.reason
    assert not reply.has_content()


class Broken(Defence):
    """Fails with what it was given."""

    kind: Literal["test_broken"] = "test_broken"

    def on_message(self, message, local):
        raise RuntimeError(f"secret {message.tensors}")


def test_a_fault_that_nobody_foresaw_closes_the_door_and_tells_no_number(by_hand):
    reply = played(by_hand, protect(Broken()))
    assert reply.has_error()
    assert reply.error.reason.endswith("RuntimeError")
    assert "secret" not in reply.error.reason


def test_numbers_beyond_their_type_are_not_sent(by_hand):
    half = {"weight": np.zeros(3, np.float16)}
    reply = played(by_hand, protect(GaussianNoise(std=1e9)), before=half, after=half)
    assert "must be finite numbers" in reply.error.reason


def test_bytes_in_a_reply_are_refused(by_hand):
    reply = played(by_hand, protect(TopK()), extra=ConfigRecord({"state": b"everything"}))
    assert "holds bytes in `state`" in reply.error.reason
    assert not played(by_hand, protect(TopK()), extra=ConfigRecord({"words": "fine"})).has_error()


def test_what_the_app_itself_reports_as_an_error_stays_that_error(by_hand):
    from flwr.app import Error

    def app(message, context):
        return Message(Error(2, "no data"), reply_to=message)

    reply = protect(TopK())(by_hand.ask(by_hand.arrays(**ZEROS)), by_hand.context(), app)
    assert reply.error.reason == "no data"


def test_an_app_that_trains_in_place_cannot_hide_its_update(by_hand):
    asked = by_hand.ask(by_hand.arrays(**ZEROS))

    def app(message, context):
        message.content["arrays"] = by_hand.arrays(**MOVED)
        return Message(RecordDict({"arrays": message.content["arrays"]}), reply_to=message)

    sent = by_hand.values(protect(Pruning(rate=0.99))(asked, by_hand.context(), app))
    assert (sent["conv.weight"] == 0).sum() == 19


def test_several_records_are_one_update(by_hand):
    first, second = (by_hand.arrays(weight=np.zeros(4, np.float32)) for _ in range(2))
    asked = by_hand.ask(first)
    asked.content["head"] = second

    def app(message, context):
        moved = {
            "arrays": by_hand.arrays(weight=np.full(4, 1, np.float32)),
            "head": by_hand.arrays(weight=np.full(4, 9, np.float32)),
        }
        return Message(RecordDict(moved), reply_to=message)

    reply = protect(TopK(share=0.5))(asked, by_hand.context(), app)
    assert by_hand.values(reply)["weight"].tolist() == [0, 0, 0, 0]
    assert by_hand.values(reply, "head")["weight"].tolist() == [9, 9, 9, 9]


@pytest.mark.parametrize(
    ("defence", "why"),
    [
        (Undefended(), "which does nothing to them"),
        (Chain(links=()), "which does nothing to them"),
        (Polarization(), "which also acts in `on_task`: use `leaktight.flower.defend_training`"),
        (DPSGD(), "which also acts in `on_gradient`: use `leaktight.flower.defend_training`"),
        (GaussianNoise(std=0.1, each="step"), "which also acts in `on_gradient`"),
        (Chain(links=(TopK(), Polarization())), "polarization instead"),
    ],
)
def test_a_defence_that_works_elsewhere_is_refused_at_once(defence, why):
    with pytest.raises(InvalidValue, match="needs a defence that changes messages") as caught:
        protect(defence)
    assert why in str(caught.value)


def test_a_changed_state_closes_the_door(by_hand):
    context, mod = by_hand.context(), protect(TopK())
    played(by_hand, mod, context)
    [name] = context.state
    context.state[name] = ConfigRecord({"state": b"nonsense"})
    assert "must be as it was written. It is damaged" in played(by_hand, mod, context).error.reason


def test_arrays_of_torch_are_protected(by_hand):
    model = torch.nn.BatchNorm1d(3)
    before = ArrayRecord(model.state_dict())
    model(torch.rand(5, 3))
    reply = protect(GaussianNoise(std=0.1))(
        by_hand.ask(before), by_hand.context(), by_hand.answering(ArrayRecord(model.state_dict()))
    )
    sent = reply.content["arrays"].to_torch_state_dict()
    assert int(sent["num_batches_tracked"]) == 0
    assert not torch.equal(sent["running_mean"], model.running_mean)
    assert isinstance(reply.content["arrays"]["weight"], Array)


def test_older_clients_are_protected_too(by_hand):
    from flwr.client import NumPyClient
    from flwr.clientapp import ClientApp
    from flwr.common import FitIns, ndarrays_to_parameters
    from flwr.compat.common.recorddict_compat import fitins_to_recorddict

    class Old(NumPyClient):
        def fit(self, parameters, config):
            return [array + 1 for array in parameters], 10, {"loss": 0.5}

    app = ClientApp(client_fn=lambda context: Old().to_client(), mods=[protect(TopK(share=0.25))])
    asked = by_hand.ask(by_hand.arrays(**ZEROS))
    asked.content = fitins_to_recorddict(FitIns(ndarrays_to_parameters([np.zeros(4, np.float32)]), {}), keep_input=True)
    reply = app(asked, by_hand.context())
    [record] = reply.content.array_records.values()
    assert [array.numpy().sum() for array in record.values()] == [1]
