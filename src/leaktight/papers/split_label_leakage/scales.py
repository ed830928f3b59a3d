"""The three scales: which data sets, how long they are trained, what they are protected by."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializeAsAny

from leaktight.core.device import DeviceName
from leaktight.core.value import Value
from leaktight.data import RareDigit
from leaktight.data.files import FileSource
from leaktight.data.source import Source
from leaktight.models.network import Network
from leaktight.models.wide_deep import WideDeep
from leaktight.papers.datasets import need_folder
from leaktight.papers.paper import Order
from leaktight.papers.split_label_leakage.mechanisms import PUBLISHED_RATIO, STRONGEST_BOUND
from leaktight.papers.split_label_leakage.sources import find_credit, need_criteo

BOUNDS = (0.1, 0.2, 0.3, 0.4)
RATIOS = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)
"""Of Fig. 2(c) 5; the range is that of the published code."""
PUBLISHED_BATCH = 65_536
"""That of section 4; a batch is never larger than the data."""
PASSES = 20
CRITEO, CRITEO_ALL, CRITEO_DEEP, CREDIT = "Criteo", "Criteo, wide part on all", "Criteo, no wide part", "UCI credit"
CREDIT_LARGEST = "UCI credit, largest batch"
_EVERY = ("*",)


class Study(Value):
    """Everything that is done with one data set.

    Args:
        name: the data set in our tables.
        data: where it comes from.
        network: what is trained; Fig. 1 cuts it after its second layer, all else before its head.
        label_party: the columns of the wide part.
        feature_party: the columns of the deep part; empty means all others.
        rounds: how many steps a training takes.
        epochs: in place of steps, how often it goes through the data; 0 takes the steps.
        candidates: numbers of steps that are compared on held-out training rows; `rounds` was chosen among them that
            way.
        batch_size: examples per step, as far as there are so many.
        learning_rate: Adam's.
        bounds: detection errors L of sumKL.
        ratios: of isotropic noise.
        seeds: how often everything is repeated; 3 or more give intervals.
        moments: at how many moments of a training it is looked at.
        victims: how many steps are attacked, spread over the moments, or `all`.
        passes: over how many passes scores are added up in a training run of its own; 0 leaves that out.
        pause: Fig. 1 looks at the training after 1, 2, 3 and 4 times so many steps.
        seed: what all randomness derives from.
        device: where tensors live.
    """

    name: str
    data: SerializeAsAny[Source]
    network: SerializeAsAny[Network] = WideDeep()
    label_party: tuple[str, ...] = ()
    feature_party: tuple[str, ...] = ()
    rounds: int = Field(0, ge=0)
    epochs: int = Field(0, ge=0)
    candidates: tuple[int, ...] = ()
    batch_size: int = 1024
    learning_rate: float = 0.001
    bounds: tuple[float, ...] = BOUNDS
    ratios: tuple[float, ...] = RATIOS
    seeds: int = 3
    moments: int = 20
    victims: int | Literal["all"] = "all"
    passes: int = Field(0, ge=0)
    pause: int = 10
    seed: int = 0
    device: DeviceName = "cpu"


def studies(order: Order) -> list[Study]:
    """Return what an order asks for, data set by data set; with `steps`, cut to the least that runs every part."""
    whole = {"smoke": _smoke, "small": _small, "paper": _paper}[order.scale](order.data)
    cut = whole if order.steps is None else [_cut(study, order.steps) for study in whole]
    return [study.model_copy(update={"seed": order.seed}) for study in cut]


def describe_cut(order: Order) -> str:
    """Return what `steps` cuts, as the middle of a sentence."""
    return (
        f"at most {order.steps} steps, two passes, one seed, the strongest bound, two ratios, 2,000 training and 1,000 "
        "test rows"
    )


def missing_sets(order: Order) -> list[str]:
    """Return the data sets that the small scale does without because they are not in the folder."""
    return [CREDIT] if order.scale == "small" and find_credit(order.data) is None else []


def _smoke(data: str) -> list[Study]:
    return [
        Study(
            name="digits",
            data=RareDigit(),
            network=WideDeep(hidden=(32, 32, 32, 32)),
            label_party=("r0*", "r1*", "r2*"),
            rounds=30,
            candidates=(10, 30),
            batch_size=256,
            learning_rate=0.005,
            bounds=(0.1, STRONGEST_BOUND),
            ratios=(1.0, PUBLISHED_RATIO, 25.0),
            seeds=1,
            moments=10,
            passes=2,
        )
    ]


def _small(data: str) -> list[Study]:
    need_folder(data, "small")
    clicks, credit = need_criteo(data), find_credit(data)
    ratios: dict[str, Any] = {"ratios": (1.0, 2.5, PUBLISHED_RATIO, 10.0, 25.0)}
    steps: dict[str, Any] = {"candidates": (20, 30, 40, 50, 60)}
    studies = [
        Study(
            name=CRITEO,
            data=clicks,
            label_party=("I*",),
            feature_party=("C*",),
            rounds=40,
            passes=PASSES,
            **steps,
            **ratios,
        ),
        # As in the paper, with batches as large as they can be; the wide part alone carries most of what such a small
        # set can teach.
        Study(
            name=CRITEO_ALL,
            data=clicks,
            label_party=_EVERY,
            feature_party=_EVERY,
            batch_size=PUBLISHED_BATCH,
            rounds=50,
            **steps,
            **ratios,
        ),
        # The label party has labels alone: all that the model learns passes the protected gradient.
        Study(name=CRITEO_DEEP, data=clicks, feature_party=_EVERY, rounds=40, **steps, **ratios),
    ]
    if credit is not None:
        own = ("LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE")
        shared: dict[str, Any] = {"data": credit, "label_party": own, "pause": 30, **ratios}
        counts = (80, 120, 160, 200, 240)
        studies += [
            Study(name=CREDIT, rounds=200, candidates=counts, passes=PASSES, **shared),
            # All steps of so large a batch would not fit into memory, and its training runs take the longest.
            Study(
                name=CREDIT_LARGEST,
                rounds=200,
                candidates=counts,
                batch_size=PUBLISHED_BATCH,
                victims=40,
                **shared | {"bounds": (BOUNDS[0], STRONGEST_BOUND), "ratios": (1.0, PUBLISHED_RATIO, 25.0)},
            ),
        ]
    return studies


def _paper(data: str) -> list[Study]:
    need_folder(data, "paper")
    return [
        Study(
            name=CRITEO_ALL,
            data=need_criteo(data),
            label_party=_EVERY,
            feature_party=_EVERY,
            epochs=30,
            batch_size=PUBLISHED_BATCH,
            learning_rate=0.0001,
            # A step of this size takes 34 MB, and an attack holds all of its steps.
            victims=20,
            pause=100,
            device="auto",
        )
    ]


def _cut(study: Study, steps: int) -> Study:
    """Return a study in which every part is kept, and of what is counted or swept only the least."""
    return study.model_copy(
        update={
            "data": _limit(study.data),
            "rounds": min(steps, study.rounds) if study.rounds else steps,
            "epochs": 0,
            "candidates": tuple(dict.fromkeys(min(steps, count) for count in study.candidates)),
            "bounds": study.bounds[-1:],
            "ratios": tuple(dict.fromkeys((study.ratios[0], PUBLISHED_RATIO))),
            "seeds": 1,
            "victims": study.victims if study.victims == "all" else min(steps, study.victims),
            "passes": min(2, study.passes),
            "pause": min(steps, study.pause),
        }
    )


def _limit(data: Source) -> Source:
    return data.model_copy(update={"train_limit": 2000, "test_limit": 1000}) if isinstance(data, FileSource) else data
