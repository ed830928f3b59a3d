"""Records made by hand: an audit whose every number is chosen, so that what is said about it can be checked."""

from __future__ import annotations

import statistics
from typing import Any, ClassVar

import torch
from torch import Tensor

from leaktight.attacks import Analytic, preset
from leaktight.core.attack import Attack, Guess, Principle
from leaktight.core.defence import Defence, Undefended
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.record import Cell, Record, Status
from leaktight.core.scenario import Scenario
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Npz
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.metrics import standard
from leaktight.plans.plan import Grid, Plan
from leaktight.statistics.interval import wilson

EPSILON = 20.0
GREY = 11.0
SPREAD = (-3.0, -2.0, -1.0, 0.0, 0.0, 1.0, 2.0, 3.0)


class Handmade(Scenario):
    """A scenario that is only a set of settings; without a default kind it stays out of the registry."""

    data: Any = Npz(path="patients/anna/photos.npz")
    model: dict[str, Any] = {"kind": "dlnet", "activation": "sigmoid"}
    rounds: int = 100

    def train(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def observe(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class Adaptive(Attack):
    """Knows the defence and models it."""

    claims: ClassVar[frozenset[str]] = frozenset({"inputs"})
    goals: ClassVar[tuple[str, ...]] = ("rebuild the examples",)

    @property
    def needs(self) -> frozenset[Knows]:
        return frozenset({Knows.DEFENCE})

    def models(self, defence: Defence) -> bool:
        return True

    def run(self, *args: Any) -> Guess:
        raise NotImplementedError


class Learned(Adaptive):
    """Rests on another principle."""

    principle: ClassVar[Principle] = "learned"


class Team(Attack):
    """Two attacks together: `search` models the defence, `simple` does not."""

    claims: ClassVar[frozenset[str]] = frozenset({"inputs"})

    def member(self, name: str) -> Attack:
        return {"search": ADAPTIVE, "learned": LEARNED, "simple": DLG}[name]

    def run(self, *args: Any) -> Guess:
        raise NotImplementedError


SCENARIO = Handmade.model_construct(kind="handmade")
ADAPTIVE = Adaptive.model_construct(kind="adaptive")
LEARNED = Learned.model_construct(kind="learned")
TEAM = Team.model_construct(kind="team")
DLG, GEIPING = preset("dlg2019"), preset("geiping2020")


def share(name: str, hits: float, n: int, **more: Any) -> Reading:
    low, high = wilson(hits, n)
    return Reading(name=name, value=hits / n, low=low, high=high, n=n, **more)


def image_readings(psnr: float, against: str = "raw") -> list[Reading]:
    """Eight images whose PSNR lie around this one, and the share of them that is recognised."""
    each = tuple(min(100.0, psnr + step) for step in SPREAD)
    mean = statistics.fmean(each)
    common: dict[str, Any] = {"n": len(each), "leaks": "high", "against": against}
    hits = sum(value >= EPSILON for value in each)
    return [
        Reading(name="psnr", value=mean, low=mean - 1.5, high=min(100.0, mean + 1.5), chance=GREY, each=each, **common),
        Reading(name="ssim", value=min(1.0, max(0.0, (mean - 5) / 40)), chance=0.1, **common),
        share("reconstruction_statement", hits, chance=0.0, **{**common, "n": 8}),
    ]


def record(
    defence: Defence | None = None,
    psnr: float | None = 30.0,
    accuracy: float | None = 0.8,
    attack: Attack = DLG,
    label: str = "dlg2019",
    labels: float | None = None,
    used: float | None = None,
    knows: tuple[Knows, ...] = (Knows.LOCAL_STEPS,),
    status: Status = Status.DONE,
    reason: str = "",
    notes: dict[str, float] | None = None,
    extra: tuple[Reading, ...] = (),
    **cell: Any,
) -> Record:
    """Return what came of one cell; `labels` is the share of labels missed."""
    probe = Attempt(attack=attack, threat=ThreatModel(knows=frozenset(knows)), metrics=standard())
    made = Cell(**{"scenario": SCENARIO, "defence": defence or Undefended(), "probe": probe, "label": label, **cell})
    readings: list[Reading] = []
    if psnr is not None:
        readings += image_readings(psnr) + image_readings(psnr if used is None else used, "used")
    if labels is not None:
        readings.append(share("label_distance", 8 * labels, 8, leaks="low", chance=0.9, against="raw"))
    if accuracy is not None:
        readings.append(share("accuracy", round(1000 * accuracy), 1000, chance=0.1))
    done = status is Status.DONE
    return Record(
        cell=made,
        status=status,
        reason=reason,
        readings=(*readings, *extra) if done else (),
        notes=(notes or {}) if done else {},
        seconds=12.5,
    )


def searches(failed: int, of: int = 8, guess: float = 2.0, truth: float = 1.0) -> tuple[Reading, ...]:
    """What is known of the searches of a cell: how many failed, and the objectives of guess and truth."""
    each = tuple(float(place < failed) for place in range(of))
    return (
        Reading(name="objective_of_guess", value=guess, n=of, each=(guess,) * of),
        Reading(name="objective_of_truth", value=truth, n=of, each=(truth,) * of),
        share("search_failed", failed, of, each=each),
    )


def two_principles(defence: Defence, psnr: float = 9.0, failed: int = 0, **more: Any) -> list[Record]:
    """A defence that two attacks met which know it, rest on different principles, and read everything without it."""
    searched = {"attack": ADAPTIVE, "label": "adaptive", "knows": (Knows.DEFENCE,)}
    learned = {"attack": LEARNED, "label": "learned", "knows": (Knows.DEFENCE,)}
    bare = {name: value for name, value in more.items() if name != "accuracy"}
    return [
        record(psnr=38, extra=searches(0), **searched, **bare),
        record(psnr=38, **learned, **bare),
        record(defence, psnr, extra=searches(failed), **searched, **more),
        record(defence, psnr - 1, **learned, **more),
    ]


def members(by: dict[str, float], **more: Any) -> tuple[Reading, ...]:
    """What the attacks of a team reached, by name."""
    return tuple(
        reading.model_copy(update={"by": name})
        for name, psnr in by.items()
        for reading in (*image_readings(psnr), *(searches(0, **more) if name == "search" else ()))
    )


def characteristic(
    ratio: float | None, error: float, untraced: float | None = None, holds: float = 0.0
) -> tuple[Reading, ...]:
    """What a characteristic is made of: the ratio, the relative error, the share of examples not traced, the theorem's condition."""
    found = []
    spread = tuple(error * (1 + step / 10) for step in SPREAD)
    common: dict[str, Any] = {"n": 8, "against": "raw"}
    found.append(
        Reading(
            name="rmse_relative",
            value=error,
            low=0.9 * error,
            high=1.1 * error,
            leaks="low",
            chance=1.0,
            each=spread,
            **common,
        )
    )
    if untraced is not None:
        found.append(share("tracing_distance", 8 * untraced, leaks="low", chance=0.75, **common))
    if ratio is not None:
        found.append(
            Reading(name="gradient_ratio", value=ratio, low=0.8 * ratio, high=ratio / 0.8, each=(ratio,) * 8, **common)
        )
        found.append(share("theorem_condition", 8 * holds, **common))
        if holds:
            found.append(
                Reading(
                    name="theorem_bound", value=2.5, each=(2.5,) * round(8 * holds), **{**common, "n": round(8 * holds)}
                )
            )
    return tuple(found)


def sweep(*, labels: float | None = 0.25, untraced: float | None = 0.5, **more: Any) -> list[Record]:
    """No defence, and noise and top-k at three strengths each: from ratios that are red to green."""
    points = ((50.0, 0.1, 0.8), (5.0, 0.6, 0.7), (0.5, 1.0, 0.4))
    noise = [GaussianNoise(std=std) for std in (1e-4, 1e-3, 1e-2)]
    made = [record(accuracy=0.82, labels=labels, extra=characteristic(None, 0.01, untraced), **more)]
    for defences, drop in ((noise, 0.0), ([TopK(share=share) for share in (0.3, 0.1, 0.01)], 0.1)):
        for defence, (ratio, error, accuracy) in zip(defences, points, strict=True):
            extra = characteristic(ratio, error, untraced, holds=0.5 if ratio > 10 else 0.0)
            made.append(record(defence, 30 - 20 * error, accuracy - drop, labels=labels, extra=extra, **more))
    return made


def control(psnr: float = 100.0, **more: Any) -> Record:
    return record(psnr=psnr, accuracy=None, attack=Analytic(), label="analytic", purpose="control", **more)


def null(psnr: float = 7.0, **more: Any) -> Record:
    return record(psnr=psnr, accuracy=None, purpose="null", **more)


def audit(seeds: tuple[int, ...] = (0,)) -> list[Record]:
    """A whole audit: noise and top-k at several strengths, DP-SGD, two attacks, one cell refused and one failed."""
    numbers: list[tuple[Defence, float, float, dict[str, float]]] = [
        (Undefended(), 38, 0.82, {}),
        (GaussianNoise(std=1e-4), 31, 0.82, {}),
        (GaussianNoise(std=1e-3), 19, 0.80, {}),
        (GaussianNoise(std=1e-2), 8, 0.61, {}),
        (TopK(share=0.3), 27, 0.815, {}),
        (TopK(share=0.05), 12, 0.79, {}),
        (TopK(share=0.01), 9, 0.74, {}),
        (DPSGD(multiplier=1.0), 10, 0.66, {"dp_sgd.epsilon": 3.2, "dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.1}),
    ]
    made = [control(seed=seed) for seed in seeds]
    for seed in seeds:
        for defence, psnr, accuracy, notes in numbers:
            common: dict[str, Any] = {"seed": seed, "notes": notes, "accuracy": accuracy - 0.01 * seed}
            missed = 0.0 if psnr > 10 else 0.75
            made.append(record(defence, psnr - seed, labels=missed, **common))
            made.append(record(defence, psnr - 6, attack=GEIPING, label="geiping2020", labels=missed, **common))
        made.append(null(seed=seed))
    batch = {"batch_size": 8, "label": "dlg2019"}
    made.append(record(TopK(share=0.3), status=Status.REFUSED, reason="dlg2019 needs one label per image.", **batch))
    made.append(
        record(TopK(share=0.05), status=Status.FAILED, reason="RuntimeError: image [0.1, 0.7] is odd.", **batch)
    )
    return made


def plan(title: str = "Photos and a small network", **grid: Any) -> Plan:
    probes = {"dlg2019": Attempt(attack=DLG, metrics=standard())}
    return Plan(title=title, scenarios={"1": SCENARIO}, probes=probes, grid=Grid(**grid))


VERSIONS = {"leaktight": "0.1.0", "torch": "2.13.0", "python": "3.12.1"}


def photos(count: int = 8) -> Tensor:
    """Crops of scikit-learn's photographs, 32 by 32, as bytes."""
    from sklearn.datasets import load_sample_images

    images = [torch.from_numpy(image.copy()).permute(2, 0, 1) for image in load_sample_images().images]
    small = [torch.nn.functional.avg_pool2d(image.float(), 4) for image in images]
    corners = [(10 + 8 * number, 14 + 13 * number) for number in range(count)]
    crops = [small[number % 2][:, y : y + 32, x : x + 32] for number, (y, x) in enumerate(corners)]
    return torch.stack(crops).round().to(torch.uint8)


def gallery(records: list[Record]) -> Any:
    """Return a maker of pictures: the same originals for every cell, disturbed to the PSNR that its record has."""
    by_key = {made.cell.key: made for made in records}

    def pictures(key: str) -> dict[str, Tensor]:
        made = by_key[key]
        psnr, truth = made.reading("psnr", "raw"), photos()
        if psnr is None:
            return {}
        noise = torch.randn(truth.shape, generator=stream(0, key))
        scale = torch.tensor([255 * 10 ** (-value / 20) for value in psnr.each])
        guess = (truth + scale[:, None, None, None] * noise).clamp(0, 255).round().to(torch.uint8)
        labels = torch.arange(len(truth)) % 2
        copies = {"truth_used": truth.clone(), "guess_labels": labels.clone()}
        return {"truth_raw": truth, "guess": guess, "labels": labels, **copies}

    return pictures
