from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.attacks import PropertyInference
from leaktight.core import registry
from leaktight.core.attack import PropertyScores
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.metric import Reading
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.threat import Knows, ThreatModel
from leaktight.metrics.property_auc import has_property
from leaktight.metrics.v_information import MOST, v_information
from leaktight.probes import VInformation
from leaktight.testing import property_run, toy_run


@pytest.fixture(scope="module")
def run() -> Run:
    return property_run()


@pytest.fixture(scope="module")
def found(run: Run) -> dict[tuple[str, str | None], Reading]:
    return read(run, families=("random_forest", "logistic"), repeats=3)


def read(run: Run, **settings: object) -> dict[tuple[str, str | None], Reading]:
    probe = VInformation.model_validate({"families": ("logistic",), "repeats": 2, "gradients": 80, **settings})
    readings = probe.read(run, stream(0, "v-information")).readings
    made = {(reading.name, reading.layer): reading for reading in readings}
    assert len(made) == len(readings)
    return made


def with_properties(run: Run, properties: dict[tuple[str, int], torch.Tensor | None]) -> Run:
    truths = {
        key: dataclasses.replace(one, raw=dataclasses.replace(one.raw, properties=properties[key]))
        for key, one in run.truths.items()
    }
    return dataclasses.replace(run, truths=truths)


def test_there_is_a_reading_for_each_family_and_layer(found: dict[tuple[str, str | None], Reading]) -> None:
    names = ("v_information_random_forest", "v_information_logistic", "v_information")
    assert found.keys() == {
        (f"{name}{share}", layer) for name in names for share in ("", "_share") for layer in (None, "body.1", "head")
    }
    for (name, _), reading in found.items():
        most = 1 if name.endswith("share") else MOST
        assert (reading.n, reading.chance, reading.leaks, reading.against) == (40, 0.0, "high", "raw")
        assert len(reading.each) == 3
        assert max(reading.each) <= most
        assert reading.value == pytest.approx(sum(reading.each) / 3)
        assert reading.low is not None
        assert reading.high is not None
        assert reading.low <= reading.value <= reading.high <= most


def test_shares_are_of_all_there_is(found: dict[tuple[str, str | None], Reading]) -> None:
    for (name, layer), reading in found.items():
        if not name.endswith("share"):
            assert found[f"{name}_share", layer].value == pytest.approx(reading.value / MOST)


def test_the_layer_that_shows_the_property_has_the_most(found: dict[tuple[str, str | None], Reading]) -> None:
    assert found["v_information", "body.1"].beats_chance()
    assert found["v_information_share", "body.1"].value > 0.9
    assert found["v_information", "body.1"].value > found["v_information", "head"].value


def test_a_repeat_is_the_attack_scored_by_hand(run: Run) -> None:
    rng = stream(0, "v-information")
    seed = int(torch.randint(1 << 62, (), generator=rng))
    view = ThreatModel(knows=frozenset({Knows.AUXILIARY, Knows.LOCAL_STEPS})).view(run)
    attack = PropertyInference(classifier="logistic", layers="each", gradients=80)
    found = read(run)
    for repeat in range(2):
        guess = attack(view, stream(seed, "v_information", repeat))
        assert isinstance(guess, PropertyScores)
        expected = v_information(guess.values, has_property([run.truth(key) for key in guess.keys]))
        # The attack's first row is the one it chose; the second is of all layers together, which has no name here.
        for layer, value in zip((None, *guess.layers[2:]), expected.tolist()[1:], strict=True):
            assert found["v_information_logistic", layer].each[repeat] == pytest.approx(value)


def test_repeats_differ_and_come_again(run: Run) -> None:
    one = read(run)
    assert len(set(one["v_information_logistic", "head"].each)) == 2
    assert read(run) == one
    assert read(run, repeats=1)["v_information_logistic", "head"].each == one["v_information_logistic", "head"].each[:1]


def test_one_repeat_has_no_interval(run: Run) -> None:
    for reading in read(run, repeats=1).values():
        assert (reading.low, reading.high) == (None, None)


def test_shuffled_properties_tell_nothing(run: Run) -> None:
    order = torch.randperm(len(run.truths), generator=stream(0, "order")).tolist()
    keys = list(run.truths)
    dealt = {key: run.truths[keys[place]].raw.properties for key, place in zip(keys, order, strict=True)}
    for layer in (None, "body.1", "head"):
        reading = read(with_properties(run, dealt), repeats=3)["v_information", layer]
        assert reading.low is not None
        assert reading.high is not None
        assert reading.low <= 0 <= reading.high


def test_the_attacker_needs_public_examples(run: Run) -> None:
    with pytest.raises(Refusal, match="property_inference needs to know auxiliary, which the threat model withholds"):
        read(run, threat=ThreatModel())


def test_modelling_the_defence_needs_to_know_it(run: Run) -> None:
    with pytest.raises(Refusal, match="property_inference needs to know defence"):
        read(run, models_defence=True)
    knows = frozenset({Knows.AUXILIARY, Knows.LOCAL_STEPS, Knows.DEFENCE})
    assert read(run, models_defence=True, threat=ThreatModel(knows=knows))["v_information", "body.1"].value > 0


def test_data_without_a_property_is_refused(run: Run) -> None:
    with pytest.raises(Refusal, match="private property"):
        read(toy_run())
    with pytest.raises(Refusal, match="Whether messages hold a private property is unknown"):
        read(with_properties(run, dict.fromkeys(run.truths)))


def test_too_few_messages_of_a_kind_are_refused(run: Run) -> None:
    one = next(iter(run.truths))
    rare = {key: (torch.ones if key == one else torch.zeros)(8) for key in run.truths}
    with pytest.raises(
        Refusal, match=r"v_information needs two messages with the property and two without\. 1 of 40 have it"
    ):
        read(with_properties(run, rare))


def test_it_is_found_by_its_kind_and_checks_its_settings() -> None:
    assert registry.classes("probe")["v_information"] is VInformation
    made = VInformation(repeats=2, gradients=40)
    assert VInformation.model_validate(made.to_dict()) == made
    with pytest.raises(InvalidValue, match="The `repeats` of v_information must be at least 1"):
        VInformation(repeats=0)
    with pytest.raises(InvalidValue, match="The `families` of v_information must be a list of at least 1"):
        VInformation(families=())
