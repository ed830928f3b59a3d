"""sumKL on messages: the covariances of theorem 1, the promised bound, and no way out for a raw gradient."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.defence import Strength
from leaktight.core.errors import InvalidValue
from leaktight.core.label_bound import LabelBound
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.core.run import largest
from leaktight.core.scenario import flatten, unflatten
from leaktight.core.task import Batch
from leaktight.defences import SumKL
from leaktight.defences.divergence import Classes, NoisePair, allowed_sumkl, power, sumkl
from leaktight.defences.sumkl_solver import least, strongest
from leaktight.statistics.auc import auc
from leaktight.testing.cut import cut_run, cut_step
from leaktight.testing.defences import (
    check_canary,
    check_chains,
    check_extremes,
    check_form,
    check_input,
    check_seed,
    check_streams,
)


def party(labels: torch.Tensor, seed: int = 0) -> Local:
    return now(Local("label-party", seed), labels)


def now(local: Local, labels: torch.Tensor, round: int = 0) -> Local:
    local.begin(round)
    local.now.batch = Batch(torch.zeros(len(labels), 1), labels)
    return local


def protect(defence: SumKL, rows: torch.Tensor, local: Local) -> torch.Tensor:
    message = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", local.round, {"cut": rows})
    return defence.on_message(message, local).tensors["cut"]


def two_classes(
    n: int = 400,
    d: int = 6,
    share: float = 0.25,
    stds: tuple[float, float] = (0.2, 0.5),
    seed: int = 0,
    gap: float = 0.6,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows of two Gaussian classes whose means are apart along the diagonal, and their labels."""
    rng = stream(seed, "two classes")
    labels = (torch.arange(n) < share * n).long()[torch.randperm(n, generator=rng)]
    rows = torch.randn(n, d, generator=rng) * torch.tensor(stds)[labels][:, None] - gap * labels[:, None]
    return rows, labels


def estimated(rows: torch.Tensor, labels: torch.Tensor) -> tuple[Classes, torch.Tensor]:
    """Return what a textbook would estimate from the batch."""
    low, high = rows[labels == 0].double(), rows[labels == 1].double()
    difference = high.mean(0) - low.mean(0)
    u, v = (part.var(0, correction=0).mean().item() for part in (low, high))
    return Classes(u, v, difference.square().sum().item(), rows.shape[1], labels.double().mean().item()), difference


NEAR = {"stds": (0.1, 0.5), "n": 2000, "d": 24, "gap": 0.02}


@pytest.mark.parametrize("share", [0.2, 0.8])
@pytest.mark.parametrize(
    "settings",
    [{"stds": (0.2, 0.5)}, {"stds": (0.5, 0.2)}, {"stds": (0.3, 0.3)}, NEAR, {**NEAR, "stds": (0.5, 0.1)}],
    ids=["wider positives", "wider negatives", "alike", "near, wider positives", "near, wider negatives"],
)
def test_the_noise_has_the_covariances_of_theorem_1(settings: dict[str, Any], share: float) -> None:
    """Along the difference of the means and across it, each relative to its own variance."""
    rows, labels = two_classes(share=share, **settings)
    classes, difference = estimated(rows, labels)
    wanted = least(classes, allowed_sumkl(0.4))
    draws = torch.stack([protect(SumKL(bound=0.4), rows, party(labels, seed)) - rows for seed in range(60)]).double()
    unit = difference / difference.norm()
    for which, noise in enumerate((wanted.negatives, wanted.positives)):
        sample = draws[:, labels == which].flatten(0, 1)
        along = sample @ unit
        across = sample - torch.outer(along, unit)
        tolerance = 6 * math.sqrt(2 / len(sample))
        assert along.square().mean().item() == pytest.approx(noise.along, rel=tolerance)
        assert along.mean().abs().item() <= 5 * math.sqrt(noise.along / len(sample))
        # What rounding in single precision leaves across a difference without noise there.
        rounding = 1e-6 * math.sqrt(noise.along)
        covariance, complement = (
            across.T @ across / len(across),
            torch.eye(len(unit)).double() - torch.outer(unit, unit),
        )
        assert (covariance - noise.across * complement).abs().max().item() <= tolerance * noise.across + rounding**2
        together = (across.T @ along / len(across)).abs().max().item()
        assert together <= tolerance * math.sqrt(noise.across * noise.along) + rounding * math.sqrt(noise.along)


@pytest.mark.parametrize("stds", [(0.1, 0.5), (0.5, 0.1)])
def test_near_classes_of_unlike_spread_need_as_much_noise_across_as_along(stds: tuple[float, float]) -> None:
    classes, _ = estimated(*two_classes(**{**NEAR, "stds": stds}))
    wanted = least(classes, allowed_sumkl(0.4))
    narrow, wide = (wanted.negatives, wanted.positives) if stds[0] < stds[1] else (wanted.positives, wanted.negatives)
    assert 0.2 < narrow.across / narrow.along <= 1
    assert wide.across == 0


def test_rows_get_noise_of_their_own() -> None:
    rows, labels = two_classes()
    noise = (protect(SumKL(bound=0.4), rows, party(labels)) - rows).double()
    alike = noise @ noise.T / noise.norm(dim=1)[:, None] / noise.norm(dim=1)
    others = alike[~torch.eye(len(rows)).bool()]
    # Random signs along one direction: correlated or anti-correlated, neither more often.
    assert abs(others.mean().item()) < 0.05


@pytest.mark.parametrize("defence", [SumKL(bound=0.1), SumKL(bound=0.4), SumKL(scale=0.5), SumKL(scale=20.0)], ids=str)
def test_the_notes_say_what_holds(defence: SumKL) -> None:
    rows, labels = two_classes()
    local = party(labels)
    protect(defence, rows, local)
    classes, _ = estimated(rows, labels)
    noise = (
        least(classes, allowed_sumkl(defence.bound))
        if defence.bound
        else strongest(classes, defence.scale * classes.gap)
    )
    after = sumkl(classes, noise)
    assert local.notes == {
        "sumkl.before": pytest.approx(sumkl(classes, NoisePair()), rel=1e-4),
        "sumkl.after": pytest.approx(after, rel=1e-4),
        "sumkl.power": pytest.approx(power(classes, noise), rel=1e-4),
        "sumkl.detection": pytest.approx(min(1.0, 0.5 + math.sqrt(after) / 4), rel=1e-4),
        "sumkl.highest_detection": pytest.approx(min(1.0, 0.5 + math.sqrt(after) / 4), rel=1e-4),
        "sumkl.one_class": 0,
        # The party holds no more rows than these.
        "sumkl.run": pytest.approx(after, rel=1e-4),
        "sumkl.run_detection": pytest.approx(min(1.0, 0.5 + math.sqrt(after) / 4), rel=1e-4),
    }
    if defence.bound:
        assert local.notes["sumkl.detection"] == pytest.approx(1 - defence.bound, abs=1e-9)


def test_the_worst_message_is_remembered() -> None:
    local = Local("label-party", 0)
    found = []
    for number, scale in enumerate((1.0, 30.0, 5.0)):
        rows, labels = two_classes(seed=number)
        protect(SumKL(scale=scale), rows, now(local, labels, number))
        found.append(local.notes["sumkl.detection"])
    assert local.notes["sumkl.highest_detection"] == max(found) > found[-1]
    assert largest([local.notes, {"sumkl.highest_detection": 0.51}])["sumkl.highest_detection"] == max(found)


@pytest.mark.parametrize("bound", [0.1, 0.3, 0.4])
def test_no_threshold_on_norm_or_direction_beats_the_bound(bound: float) -> None:
    """The mean of false positive and false negative rate of the best threshold, on Gaussian rows as the theorem has them."""
    rows, labels = two_classes(n=20_000, d=16)
    _, difference = estimated(rows, labels)
    sent = protect(SumKL(bound=bound), rows, party(labels)).double()
    for scores in (sent.norm(dim=1), sent @ difference, (sent - sent.mean(0)).norm(dim=1)):
        ordered = labels[scores.argsort()].double()
        hits = torch.stack([(1 - ordered).cumsum(0) / (1 - ordered).sum(), ordered.cumsum(0) / ordered.sum()])
        assert 0.5 - (hits[0] - hits[1]).abs().max().item() / 2 > bound - 0.02


def test_the_bound_is_one_of_a_single_message_and_sums_over_many_tell_more() -> None:
    """The docstring's warning: scores of one example, added up over passes with noise drawn anew, beat any single one."""
    rows, labels = two_classes(n=2000, d=8)
    _, difference = estimated(rows, labels)
    scores = torch.stack(
        [protect(SumKL(bound=0.4), rows, party(labels, seed)).double() @ difference for seed in range(40)]
    )
    single, summed = auc(scores[0], labels), auc(scores.sum(0), labels)
    assert single < 0.65
    assert summed > single + 0.1


def test_divergences_add_up_to_that_of_the_run() -> None:
    rows, labels = two_classes()
    local = party(labels)
    for number in range(6):
        now(local, labels, number)
        local.now.examples = 3 * len(labels)
        protect(SumKL(bound=0.4), rows, local)
    # Six messages of a third of the rows are two passes.
    assert local.notes["sumkl.run"] == pytest.approx(2 * 0.16, rel=1e-6)
    assert local.notes["sumkl.run_detection"] == pytest.approx(0.5 + math.sqrt(2 * 0.16) / 4, rel=1e-6)
    assert local.notes["sumkl.highest_detection"] == pytest.approx(0.6, abs=1e-9)


@pytest.mark.parametrize("passes", [2, 20])
def test_a_bound_over_passes_leaves_each_message_its_part(passes: int) -> None:
    rows, labels = two_classes()
    one, several = party(labels), party(labels)
    protect(SumKL(bound=0.4), rows, one)
    defence = SumKL(bound=0.4, passes=passes)
    for number in range(passes):
        now(several, labels, number)
        protect(defence, rows, several)
    assert several.notes["sumkl.after"] == pytest.approx(one.notes["sumkl.after"] / passes, rel=1e-6)
    assert several.notes["sumkl.run_detection"] == pytest.approx(0.6, abs=1e-6)
    assert several.notes["sumkl.power"] > one.notes["sumkl.power"]
    assert defence.label_bound == LabelBound(0.4, passes)


def test_passes_go_with_a_bound_and_one_is_left_out_of_the_key() -> None:
    assert SumKL(bound=0.3, passes=1).to_dict() == {"kind": "sumkl", "bound": 0.3, "scale": None}
    assert SumKL(passes=20) == SumKL(bound=0.4, passes=20)
    assert SumKL.model_validate(SumKL(passes=20).to_dict()) == SumKL(passes=20)
    assert SumKL(scale=1.0).label_bound is None
    with pytest.raises(InvalidValue, match=r"must have a `bound` to keep over `passes`. Got the `scale` 1.0 instead"):
        SumKL(scale=1.0, passes=3)
    with pytest.raises(InvalidValue, match="The `passes` of sumkl must be at least 1"):
        SumKL(passes=0)


def both_ways(rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.zeros(len(rows), dtype=torch.long), torch.ones(len(rows), dtype=torch.long)


@pytest.mark.parametrize("defence", [SumKL(bound=0.4), SumKL(scale=4.0)], ids=str)
@pytest.mark.parametrize("n", [1, 2, 50])
def test_a_first_batch_of_one_class_is_hidden_from_its_mirror_image(defence: SumKL, n: int) -> None:
    rows = torch.rand(n, 5, generator=stream(0)) + 1
    for labels in both_ways(rows):
        local = party(labels)
        sent = protect(defence, rows, local)
        assert (sent != rows).any(1).all()
        assert "last" not in local.memory
        gap = 4 * rows.double().square().sum(1).mean().item()
        assert local.notes["sumkl.power"] == pytest.approx(4.0 * gap if defence.bound is None else gap / 0.16, rel=1e-3)


def test_no_bound_is_noted_that_rests_on_a_class_nobody_saw() -> None:
    rows, labels = two_classes()
    local = party(torch.zeros_like(labels))
    protect(SumKL(), rows, local)
    assert local.notes == {"sumkl.power": pytest.approx(local.notes["sumkl.power"]), "sumkl.one_class": 1}
    protect(SumKL(), rows, now(local, labels, 1))
    assert local.notes["sumkl.highest_detection"] == local.notes["sumkl.detection"] == pytest.approx(0.6)
    protect(SumKL(), rows, now(local, torch.ones_like(labels), 2))
    assert "sumkl.detection" not in local.notes
    assert local.notes["sumkl.highest_detection"] == pytest.approx(0.6)
    assert local.notes["sumkl.one_class"] == 2


def test_rows_of_one_class_that_cancel_are_hidden_too() -> None:
    row = torch.tensor([[1.0, -2.0, 0.5]])
    sent = protect(SumKL(bound=0.49), torch.cat([row, -row]), party(torch.tensor([0, 0])))
    assert (sent != torch.cat([row, -row])).any(1).all()


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("unit", [1.0, 4.0])
def test_a_later_batch_of_one_class_borrows_from_the_last_with_both(which: int, unit: float) -> None:
    """Rows carry 1 / n, so a batch of a fourth of the rows has rows four times as long."""
    rows, labels = two_classes(n=800, stds=(0.2, 0.25))
    local, defence = party(labels), SumKL(bound=0.4)
    protect(defence, rows, local)
    classes, difference = estimated(rows, labels)
    again = rows[labels == which].repeat(4, 1)[: int(800 / unit)] * unit * 0.5
    draws = []
    for number in range(1, 80):
        now(local, torch.full((len(again),), which), number)
        draws.append(protect(defence, again, local) - again)
    variance = again.double().var(0, correction=0).mean().item()
    u, v = (variance, classes.positives * unit**2) if which == 0 else (classes.negatives * unit**2, variance)
    shared, gap = min(u, v), max(classes.gap * unit**2, 4 * again.double().square().sum(1).mean().item())
    wanted = least(Classes(u - shared, v - shared, gap, 6, classes.share), allowed_sumkl(0.4))
    noise = wanted.positives if which else wanted.negatives
    sample = torch.cat(draws).double()
    direction = difference if which == 0 else again.double().mean(0)
    assert (sample @ direction / direction.norm()).var().item() == pytest.approx(noise.along, rel=0.1)
    assert sample.square().sum(1).mean().item() == pytest.approx(noise.trace(6), rel=0.1)


def test_a_memory_of_another_cut_is_not_used() -> None:
    rows, labels = two_classes(d=6)
    local = party(labels)
    protect(SumKL(), rows, local)
    now(local, torch.zeros(3, dtype=torch.long), 1)
    narrow = torch.ones(3, 4)
    assert (protect(SumKL(), narrow, local) != narrow).any(1).all()
    assert local.notes["sumkl.power"] == pytest.approx(16 / 0.16, rel=1e-3)


@pytest.mark.parametrize("defence", [SumKL(bound=0.4), SumKL(scale=1.0)], ids=str)
def test_one_mean_and_two_variances_are_something_to_hide(defence: SumKL) -> None:
    rows = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0]])
    local = party(torch.tensor([0, 0, 1, 1]))
    sent = protect(defence, rows, local)
    assert (sent[:2] != rows[:2]).all()
    assert local.notes["sumkl.after"] < local.notes["sumkl.before"]


@pytest.mark.parametrize("defence", [SumKL(bound=0.4), SumKL(scale=4.0)], ids=str)
@pytest.mark.parametrize("d", [1, 3])
def test_classes_without_spread_get_noise_along_their_difference(defence: SumKL, d: int) -> None:
    labels = torch.tensor([0, 1, 0, 1, 1])
    rows = torch.where(labels[:, None] == 1, 2.0, -1.0) * torch.ones(5, d)
    local = party(labels)
    noise = protect(defence, rows, local) - rows
    assert (noise != 0).all()
    assert torch.allclose(noise, noise[:, :1].expand(5, d), rtol=1e-3, atol=1e-5)
    assert local.notes["sumkl.before"] > 1e300
    assert all(math.isfinite(note) for note in local.notes.values())


def test_equal_rows_have_nothing_to_hide() -> None:
    rows = torch.full((4, 3), 0.5)
    local = party(torch.tensor([0, 1, 0, 1]))
    assert torch.allclose(protect(SumKL(), rows, local), rows, atol=1e-5)
    zeros = torch.zeros(4, 3)
    assert torch.equal(protect(SumKL(), zeros, party(torch.tensor([0, 1, 0, 1]))), zeros)
    assert torch.equal(protect(SumKL(), zeros, party(torch.zeros(4).long())), zeros)


def test_classes_that_are_alike_enough_go_out_as_they_are() -> None:
    rng = stream(0, "alike")
    rows, labels = torch.randn(5000, 2, generator=rng), torch.randint(0, 2, (5000,), generator=rng)
    local = party(labels)
    assert torch.equal(protect(SumKL(bound=0.1), rows, local), rows)
    assert local.notes["sumkl.power"] == 0
    assert local.notes["sumkl.detection"] < 0.6


@settings(max_examples=80, deadline=None)
@given(
    size=st.sampled_from([1e-30, 1e-12, 1e-6, 1.0, 1e4, 1e15]),
    n=st.integers(1, 12),
    d=st.integers(1, 5),
    labels=st.lists(st.integers(0, 1), min_size=12, max_size=12),
    bound=st.floats(0.05, 0.45),
    seed=st.integers(0, 100),
)
def test_whatever_the_batch_what_goes_out_is_finite_and_noisy(size, n, d, labels, bound, seed) -> None:
    rows = torch.randn(n, d, generator=stream(seed, "any")) * size
    local = party(torch.tensor(labels[:n]), seed)
    sent = protect(SumKL(bound=bound), rows, local)
    assert torch.isfinite(sent).all()
    if len(set(labels[:n])) == 1:
        assert (sent != rows).any(1).all()
        assert local.notes["sumkl.power"] > rows.double().square().sum(1).mean().item()
        assert "sumkl.detection" not in local.notes
        return
    assert local.notes["sumkl.detection"] <= 1 - bound + 1e-9
    # Equal bytes only where the bound holds without noise.
    assert not torch.equal(sent, rows) or local.notes["sumkl.before"] <= allowed_sumkl(bound)


def test_a_power_scale_of_zero_is_off() -> None:
    rows, labels = two_classes()
    assert protect(SumKL(scale=0.0), rows, party(labels)) is rows


@pytest.mark.parametrize("rows", [torch.zeros(0, 4), torch.zeros(3, 0)])
def test_nothing_to_send_is_left_alone(rows: torch.Tensor) -> None:
    assert protect(SumKL(), rows, party(torch.zeros(len(rows)).long())).shape == rows.shape


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_types_are_kept(dtype: torch.dtype) -> None:
    rows, labels = two_classes()
    assert protect(SumKL(), rows.to(dtype), party(labels)).dtype is dtype


def test_several_tensors_are_one_gradient() -> None:
    rows, labels = two_classes()
    parts = {"left": rows[:, :4].reshape(-1, 2, 2), "right": rows[:, 4:]}
    message = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, parts)
    sent = SumKL().on_message(message, party(labels)).tensors
    assert sent["left"].shape == parts["left"].shape
    together = torch.cat([sent["left"].flatten(1), sent["right"]], 1)
    assert torch.equal(together, protect(SumKL(), rows, party(labels)))


def test_the_memory_survives_storage_by_path_and_warms_the_search() -> None:
    rows, labels = two_classes()
    stored = party(labels)
    protect(SumKL(), rows, stored)
    assert stored.memory["relative_power"] > 0
    restored = Local("label-party", 0, memory=unflatten(flatten(stored.memory)))
    later, more = two_classes(seed=1)
    one, other = (protect(SumKL(), later, now(local, more, 1)) for local in (stored, restored))
    assert torch.equal(one, other)
    fresh = protect(SumKL(), later, now(Local("label-party", 0), more, 1))
    assert torch.allclose(one, fresh, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("defence", [SumKL(scale=2.0), SumKL(bound=0.2)], ids=str)
def test_both_goals_conform(defence: SumKL) -> None:
    for check in (check_form, check_seed, check_canary, check_extremes, check_chains):
        check(defence, cut_run)
    for check in (check_input, check_streams):
        check(defence, cut_step)


def test_the_goal_in_use_is_the_strength() -> None:
    assert SumKL() == SumKL(bound=0.4)
    assert SumKL.strength == SumKL().strength == Strength("bound", "up", None)
    assert SumKL(scale=3.0).strength == Strength("scale", "up", 0.0)
    assert SumKL(scale=3.0).with_strength(5.0) == SumKL(scale=5.0)
    assert SumKL(bound=0.3).with_strength(0.2) == SumKL(bound=0.2)
    assert (str(SumKL()), str(SumKL(scale=3.0))) == ("sumkl(bound=0.4)", "sumkl(scale=3.0)")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            {"bound": 0.3, "scale": 1.0},
            "sumkl must have a `bound` or a `scale`. Got 0.3 and 1.0 instead; leave one out.",
        ),
        ({"bound": 0.5}, "The `bound` of sumkl must be below 0.5. Got 0.5 instead."),
        ({"bound": 0.0}, "The `bound` of sumkl must be above 0. Got 0.0 instead."),
        ({"scale": -1.0}, "The `scale` of sumkl must be at least 0. Got -1.0 instead."),
        ({"limit": 0.1}, "sumkl has no setting `limit`."),
    ],
)
def test_wrong_settings(setting: dict[str, float], sentence: str) -> None:
    with pytest.raises(InvalidValue) as found:
        SumKL.model_validate(setting)
    assert sentence in str(found.value)


@pytest.mark.parametrize("digits", [6, 9, 12, 14, 15, 16])
def test_a_bound_at_the_edge_of_what_numbers_hold_is_met_or_an_error(digits: int) -> None:
    rows, labels = two_classes()
    local, bound = party(labels), min(0.5 - 10.0**-digits, math.nextafter(0.5, 0))
    try:
        sent = protect(SumKL(bound=bound), rows, local)
    except InvalidValue:
        assert digits > 9
        return
    assert local.notes["sumkl.detection"] <= 1 - bound
    assert (sent != rows).any(1).all()
