"""The search engine: phases, racing, rest, NaN, hypotheses and group terms, on objectives whose minimum is known."""

import math

import pytest
import torch

from leaktight.attacks import SearchAdam, SearchGuardedLBFGS, SearchLBFGS, SearchSGD
from leaktight.attacks import search_engine as engine_module
from leaktight.attacks.search_engine import Phase, Problem, SearchEngine, SearchSettings

WIDTH = 4


def bowl(point, shared, own, row, weight):
    """Half the squared distance from the victim's own centre, and a height that the row tries."""
    return weight * 0.5 * (point - own["centre"]).square().sum() + row["height"] + shared["zero"]


def problem(victims=2, rows=3, heights=None, objective=bowl, **more):
    centres = torch.arange(float(victims))[:, None].expand(-1, WIDTH).contiguous()
    heights = torch.zeros(victims * rows) if heights is None else torch.tensor(heights)
    return Problem(objective, {"zero": torch.zeros(())}, {"centre": centres}, {"height": heights}, **more)


def starts(rows=6, seed=0):
    return torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(seed))


def search(*phases, descent=None, **settings):
    return SearchSettings(descent or SearchSGD(learning_rate=0.3, momentum=0.0), phases or (Phase(60),), **settings)


@pytest.mark.parametrize(
    "descent",
    [SearchAdam(), SearchSGD(learning_rate=0.1), SearchLBFGS(), SearchGuardedLBFGS()],
    ids=lambda one: one.kind,
)
def test_each_victim_ends_at_its_own_minimum(descent):
    found = SearchEngine(problem(), search(Phase(300), descent=descent)).run(starts(), 2)
    assert torch.allclose(found.points, torch.tensor([[0.0], [1.0]]).expand(-1, WIDTH), atol=1e-2)
    assert found.objective.max() < 1e-3


def test_the_row_with_the_lowest_objective_is_found_with_its_number():
    found = SearchEngine(problem(heights=[3.0, 1.0, 2.0, 5.0, 6.0, 4.0]), search()).run(starts(), 2)
    assert found.rows.tolist() == [1, 5]
    assert found.objective.tolist() == pytest.approx([1.0, 4.0], abs=1e-4)


def test_a_race_keeps_the_best_rows_of_each_victim_and_goes_on_from_where_they_were():
    heights = [3.0, 1.0, 2.0, 0.0, 7.0, 5.0, 6.0, 4.0]
    moved: list[tuple[int, list[int], torch.Tensor]] = []
    race = search(Phase(10, keep=2), Phase(10, keep=1), Phase(10))
    engine = SearchEngine(
        problem(2, 4, heights), race, lambda now, owners, points: moved.append((now, owners.tolist(), points.clone()))
    )
    found = engine.run(starts(8), 2)
    assert [len(owners) for now, owners, _ in moved if now in (5, 15, 25)] == [8, 4, 2]
    assert found.rows.tolist() == [3, 7]
    last = [points for now, _, points in moved if now == 10]
    assert torch.equal(last[1], last[0][[1, 3, 5, 7]])


def test_a_phase_weighs_what_the_messages_say():
    weights = []

    def tell(point, shared, own, row, weight):
        return weight * (point - 1).square().sum() + (point + 1).square().sum()

    for weight in (1.0, 0.25):
        found = SearchEngine(problem(1, 1, objective=tell), search(Phase(200, weight=weight))).run(
            torch.zeros(1, WIDTH), 1
        )
        weights.append(found.points.mean().item())
    assert weights == pytest.approx([0.0, -0.6], abs=1e-3)


def test_the_best_point_is_kept_though_the_search_leaves_it():
    found = SearchEngine(problem(), search(Phase(30), descent=SearchSGD(learning_rate=2.5, momentum=0.0))).run(
        starts(), 2
    )
    begin = SearchEngine(problem(), search()).values(starts(), torch.tensor([0, 0, 0, 1, 1, 1]), torch.arange(6))
    assert found.objective.tolist() == pytest.approx(begin.view(2, 3).amin(1).tolist(), rel=1e-5)
    assert any(torch.equal(found.points[0], start) for start in starts())


def test_a_row_rests_at_its_target_and_where_nothing_falls_any_more():
    seen: list[int] = []
    for settings in ({"stop": 1e-3}, {"settle": 1e-3}):
        seen.clear()
        found = SearchEngine(
            problem(), search(Phase(5000), **settings), lambda now, owners, points: seen.append(now)
        ).run(starts(), 2)
        assert seen[-1] < 100
        assert found.objective.max() < 0.02


def test_resting_rows_leave_the_batch_and_change_nothing_for_others(monkeypatch):
    counts: list[int] = []
    far = starts() * torch.tensor([0.0, 0.0, 0.0, 100.0, 100.0, 100.0])[:, None]
    plan = search(Phase(40), stop=1e-3)
    kept = SearchEngine(problem(), plan).run(far, 2)
    monkeypatch.setattr(engine_module, "DROP_EVERY", 2)
    dropped = SearchEngine(problem(), plan, lambda now, owners, points: counts.append(len(owners))).run(far, 2)
    assert counts[0] == 6
    assert min(counts) == 3
    assert torch.allclose(kept.points, dropped.points, atol=1e-6)


def cliff(point, shared, own, row, weight):
    """A bowl without a value where the first coordinate is above the row's edge."""
    value = 0.5 * (point - own["centre"]).square().sum()
    return torch.where(point[0] > row["height"], math.nan, 1.0) * value


def test_a_row_without_a_value_ends_alone():
    edges = [math.inf, -math.inf, math.inf, math.inf, -math.inf, math.inf]
    found = SearchEngine(problem(heights=edges, objective=cliff), search()).run(starts(), 2)
    assert found.objective.max() < 1e-6
    lost = SearchEngine(problem(1, 2, [-math.inf] * 2, cliff), search()).run(starts(2), 1)
    assert not lost.objective.isfinite().any()
    assert torch.equal(lost.points[0], starts(2)[0])


def test_a_descent_that_recovers_comes_back_from_where_there_is_no_value():
    """The minimum lies at 1, and from 1.2 on there is no value: the first long step lands there."""
    origin = torch.zeros(1, WIDTH)
    origin[:, 0] = -3.0
    centre = {"centre": torch.ones(1, WIDTH)}
    steep = Problem(lambda *a: 100 * cliff(*a), {}, centre, {"height": torch.tensor([1.2])})
    plain = SearchEngine(steep, search(Phase(100), descent=SearchSGD(learning_rate=0.015, momentum=0.0))).run(origin, 1)
    guarded = SearchEngine(steep, search(Phase(100), descent=SearchGuardedLBFGS(learning_rate=5.0))).run(origin, 1)
    assert plain.objective.item() > 1.0
    assert guarded.objective.item() < 1e-3


def test_rows_of_a_victim_can_see_each_other():
    """Each row is drawn to the mean of its victim's rows: with the bowl they end at the centre, without it where they started on average."""

    def flat(point, shared, own, row, weight):
        return 0.0 * point.sum()

    def spread(points, owners):
        same = (owners[:, None] == owners[None]).to(points)
        return (points - (same @ points / same.sum(1, keepdim=True)).detach()).square().sum(1)

    begin = starts()
    seen: list[torch.Tensor] = []
    plan = search(Phase(100), descent=SearchSGD(learning_rate=0.1, momentum=0.0))
    SearchEngine(problem(objective=flat, group=spread), plan, lambda now, owners, points: seen.append(points)).run(
        begin, 2
    )
    assert torch.allclose(seen[-1], begin.view(2, 3, WIDTH).mean(1).repeat_interleave(3, 0), atol=1e-4)


@pytest.mark.parametrize("group", [None, lambda points, owners: points.square().sum(1)], ids=["alone", "group"])
def test_chunks_follow_from_memory_and_change_nothing(monkeypatch, group):
    seen: list[int] = []
    plan = search(descent=SearchGuardedLBFGS())
    together = SearchEngine(problem(group=group), plan).run(starts(), 2)
    monkeypatch.setattr(engine_module, "MEMORY", 1)
    apart = SearchEngine(problem(group=group), plan, lambda now, owners, points: seen.append(len(points))).run(
        starts(), 2
    )
    assert set(seen) == {1 if group is None else 3}
    assert torch.allclose(together.points, apart.points, atol=1e-5)


def test_what_a_descent_remembers_counts_as_memory(monkeypatch):
    """A row of 4 numbers with 50 pairs remembers 105 such vectors, 1680 bytes."""
    monkeypatch.setattr(engine_module, "MEMORY", 3 * (1680 + 100))
    for descent, rows in ((SearchGuardedLBFGS(), 3), (SearchSGD(), 6)):
        seen: list[int] = []
        plan = search(Phase(1), descent=descent)
        SearchEngine(
            problem(bytes_per_row=100), plan, lambda now, owners, points, seen=seen: seen.append(len(points))
        ).run(starts(), 2)
        assert set(seen) == {rows}


def test_points_are_brought_back_to_where_they_may_be():
    found = SearchEngine(problem(project=lambda points: points.clamp(-0.5, 0.5)), search()).run(
        starts().clamp(-0.5, 0.5), 2
    )
    assert torch.allclose(found.points[1], torch.full((WIDTH,), 0.5))


def test_schedules_and_signs():
    plan = search(Phase(100), decay="steps")
    assert [plan.rate(share, 0) for share in (0.0, 0.4, 0.7, 0.9)] == pytest.approx([1.0, 0.1, 0.01, 0.001])
    plan = search(Phase(100), decay="cosine")
    assert plan.rate(0.0, 0) == pytest.approx(1 / 50)
    assert plan.rate(0.5, 60) == pytest.approx(0.5)
    slope = torch.tensor([[-2.0, 0.0, 1e-3]])
    assert search(sign="hard").bend(slope, 0.3).tolist() == [[-1.0, 0.0, 1.0]]
    assert torch.allclose(search(sign="soft").bend(slope, 0.5), 2 * (slope / 2).tanh())
    assert search().bend(slope, 0.5) is slope
