from __future__ import annotations

from leaktight.papers import Order
from leaktight.papers.polarization_network import PolarizationNetwork
from leaktight.papers.polarization_network.notes import ADAPTIVE, CLIPPED, TRACING, notes_of
from leaktight.papers.polarization_network.settings import ALPHA2, NOISE, Study, studies

PAPER = PolarizationNetwork()


def with_strengths(study: Study, noise: tuple[float, ...], alpha2: tuple[float, ...], name: str = "CIFAR10") -> Study:
    sweeps = tuple(sweep.model_copy(update={"noise": noise, "alpha2": alpha2}) for sweep in study.sweeps)
    return study.model_copy(update={"name": name, "sweeps": sweeps})


def test_fewer_strengths_than_published_are_told(study: Study) -> None:
    told = notes_of([with_strengths(study, (0.1, 0.5), ALPHA2)])
    assert told[:2] == [TRACING, ADAPTIVE]
    assert "CIFAR10 at batch 1 (0.1, 0.5 for noise" in told[2]
    assert notes_of([with_strengths(study, NOISE, ALPHA2)]) == [TRACING, ADAPTIVE]


def test_the_published_errors_of_mnist_cannot_be_ours(study: Study) -> None:
    assert notes_of([with_strengths(study, NOISE, ALPHA2, name="MNIST")]) == [TRACING, ADAPTIVE, CLIPPED]


def test_what_steps_cut_is_told_as_it_is() -> None:
    [cut, *_] = PAPER.remarks(Order(steps=3))
    assert cut.startswith("Cut by --steps 3: at most 3 rounds, local steps and attack iterations, 2 victims")
    assert cut.endswith("The numbers show that every part runs, and nothing else.")
    # The bundled digits are not cut.
    assert "1000" not in cut
    assert "1000 training and 50 test images" in PAPER.cut(Order(scale="paper", data="sets", steps=3))
    [study] = studies(Order(steps=3))
    assert {sweep.victims for sweep in study.sweeps} == {2}


def test_without_steps_nothing_is_said_to_be_cut() -> None:
    assert not any("Cut" in remark for remark in PAPER.remarks(Order()))
