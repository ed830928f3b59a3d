"""Tracing: the answer of Algorithm 6's double loop, and who is named by it."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.attack import Reconstruction, Scores
from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.metrics import tracing
from leaktight.metrics.tracing import TracingDistance, trace
from leaktight.statistics.interval import wilson
from leaktight.testing.metrics import check_metric


def literal(queries, reconstructions):
    """Return Algorithm 6's tracing indices by its two loops."""
    found = []
    for query in queries:
        lowest, nearest = float("inf"), 0
        for index, reconstruction in enumerate(reconstructions):
            error = (query.double() - reconstruction.double()).square().flatten().sum().item()
            if error < lowest:
                lowest, nearest = error, index
        found.append(nearest)
    return found


def counted(monkeypatch):
    """Count the pairs that are compared one by one."""
    pairs, original = [], tracing._squared_error

    def counting(query, reconstruction):
        pairs.append(1)
        return original(query, reconstruction)

    monkeypatch.setattr(tracing, "_squared_error", counting)
    return pairs


@st.composite
def crowds(draw):
    """Return queries and reconstructions, many of them equal or all but equal, at any scale."""
    seed, width = draw(st.integers(0, 2**32)), draw(st.sampled_from([1, 2, 7, 300]))
    rng = torch.Generator().manual_seed(seed)
    bases = torch.rand(draw(st.integers(1, 3)), width, generator=rng)
    if draw(st.booleans()):
        bases = bases.mul(4).round() / 4

    def near(count):
        drawn = bases[torch.randint(len(bases), (count,), generator=rng)]
        shift = torch.randn(count, width, generator=rng) * draw(st.sampled_from([0.0, 1e-7, 1e-4, 1e-1]))
        return drawn + shift * (torch.rand(count, 1, generator=rng) > 0.4)

    scale = draw(st.sampled_from([1.0, 1e-25, 1e-12, 1e12, 1e25]))
    kind = draw(st.sampled_from([torch.float32, torch.float64]))
    queries, known = ((near(draw(st.integers(1, 9))) * scale).to(kind) for _ in range(2))
    if draw(st.booleans()):
        queries[0] = known[-1]
    return queries, known


@settings(deadline=None, max_examples=400)
@given(crowds())
def test_the_answer_is_that_of_the_double_loop(crowd):
    queries, known = crowd
    assert trace(queries, known).tolist() == literal(queries, known)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=8),
)
def test_of_equally_near_ones_the_first_is_named(queries, known):
    """On a small grid most queries have several nearest neighbours at exactly the same distance."""
    queries, known = (torch.tensor(points, dtype=torch.float32) for points in (queries, known))
    assert trace(queries, known).tolist() == literal(queries, known)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.floats(1e-3, 1e3))
def test_mirror_images_of_a_query_tie_but_for_the_last_bits(seed, scale):
    rng = torch.Generator().manual_seed(seed)
    query, step = torch.rand(1, 12, generator=rng).double() * scale, torch.rand(4, 12, generator=rng).double() * scale
    known = torch.cat([query + step[:1], query - step[:1], query + step[:1].roll(1, 1), query + step])
    assert trace(query, known).tolist() == literal(query, known)


def test_small_chunks_give_the_same_answer(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    queries, known = torch.rand(50, 1, 6, 6, generator=rng), torch.rand(20, 1, 6, 6, generator=rng)
    whole = trace(queries, known)
    monkeypatch.setattr(tracing, "_SCORES", 60)
    monkeypatch.setattr(tracing, "_TERMS", 5)
    assert torch.equal(trace(queries, known), whole)
    assert whole.tolist() == literal(queries, known)


def test_ordinary_images_need_no_pair_by_pair_work(monkeypatch):
    pairs = counted(monkeypatch)
    rng = torch.Generator().manual_seed(0)
    queries, known = torch.rand(200, 3, 16, 16, generator=rng), torch.rand(100, 3, 16, 16, generator=rng)
    trace(queries, torch.cat([known, known, known]))
    assert not pairs


def test_reconstructions_that_collapsed_need_none_either(monkeypatch):
    """An attack that ends in the same grey everywhere, but for rounding, is settled in double precision."""
    pairs = counted(monkeypatch)
    rng = torch.Generator().manual_seed(1)
    queries = torch.rand(30, 3, 16, 16, generator=rng)
    known = 0.5 + 1e-6 * torch.randn(40, 3, 16, 16, generator=rng)
    assert trace(queries, known).tolist() == literal(queries, known)
    assert not pairs


def rechecked(monkeypatch):
    """Count the pairs that are left after single precision."""
    pairs, original = [], tracing._candidates

    def counting(queries, known, squares, precision):
        near = original(queries, known, squares, precision)
        if precision is torch.float32:
            pairs.append(int(near[near.sum(1) > 1].sum()))
        return near

    monkeypatch.setattr(tracing, "_candidates", counting)
    return pairs


@pytest.mark.parametrize("far", [1e6, -1e6])
def test_one_runaway_reconstruction_makes_no_other_pair_be_compared_again(monkeypatch, far):
    left, pairs = rechecked(monkeypatch), counted(monkeypatch)
    rng = torch.Generator().manual_seed(3)
    queries, known = torch.rand(60, 3, 16, 16, generator=rng), torch.rand(40, 3, 16, 16, generator=rng)
    known[7] = far
    assert trace(queries, known).tolist() == literal(queries, known)
    assert left == [0]
    assert not pairs


@settings(deadline=None, max_examples=100)
@given(crowds(), st.sampled_from([1e3, 1e6, 1e12, 1e200]))
def test_beside_runaways_the_answer_is_that_of_the_double_loop(crowd, far):
    queries, known = crowd
    known = torch.cat([known, far * known[:1].double(), -far * known[:1].double()])
    assert trace(queries.double(), known).tolist() == literal(queries, known)


def test_overflow_in_double_precision_is_compared_pair_by_pair(monkeypatch):
    pairs = counted(monkeypatch)
    rng = torch.Generator().manual_seed(4)
    queries, known = torch.rand(9, 5, generator=rng).double(), torch.rand(6, 5, generator=rng).double()
    known[2] = 1e300
    assert trace(queries, known).tolist() == literal(queries, known)
    assert len(pairs) <= 2 * len(queries)


def test_overflowing_numbers_are_compared_in_double_precision():
    queries = torch.tensor([[3e25, 0.0], [-2e25, 1e25]])
    known = torch.tensor([[-3e25, 0.0], [2e25, 0.0], [0.0, 0.0]])
    assert trace(queries, known).tolist() == literal(queries, known) == [1, 0]


def test_fewer_digits_in_products_change_no_answer():
    rng = torch.Generator().manual_seed(2)
    known = torch.rand(40, 64, generator=rng)
    queries = known[:20] + 1e-4 * torch.randn(20, 64, generator=rng)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert trace(queries, known).tolist() == list(range(20))
    finally:
        torch.set_float32_matmul_precision(before)


def test_queries_and_reconstructions_stay_as_they_are():
    queries, known = torch.rand(3, 4), torch.rand(2, 4).requires_grad_(True)
    before = queries.clone(), known.detach().clone()
    assert not trace(queries, known).requires_grad
    assert torch.equal(queries, before[0])
    assert torch.equal(known.detach(), before[1])


def test_no_query_has_no_answer():
    assert trace(torch.zeros(0, 3), torch.zeros(2, 3)).tolist() == []


@pytest.mark.parametrize(
    ("queries", "known", "sentence"),
    [
        (torch.zeros(1, 3), torch.zeros(0, 3), "must be at least one"),
        (torch.zeros(1, 3), torch.zeros(1, 4), r"of the shape \(4,\) of the reconstructions"),
        (torch.zeros(3), torch.zeros(3), "must be examples of the shape"),
        (torch.tensor([[float("nan")]]), torch.zeros(1, 1), "must be finite numbers"),
        (torch.zeros(1, 1), torch.tensor([[float("inf")]]), "must be finite numbers"),
    ],
)
def test_what_cannot_be_traced_is_refused(queries, known, sentence):
    with pytest.raises(InvalidValue, match=sentence):
        trace(queries, known)


def guessed(inputs, senders):
    rounds = [senders[:place].count(sender) for place, sender in enumerate(senders)]
    return Reconstruction(tuple(zip(senders, rounds, strict=True)), tuple(inputs))


def rows(*values):
    return torch.tensor([[value, value] for value in values])


def test_an_owner_is_the_sender_of_the_nearest_reconstruction(ground_truths):
    truth = ground_truths([rows(0.0, 1.0), rows(5.0), rows(9.0, 4.0)])
    guess = guessed([rows(0.1, 9.1), rows(5.1), rows(7.0)], ["a", "b", "a"])
    raw, used = TracingDistance().grade(guess, truth, stream(0))
    assert (raw.against, used.against) == ("raw", "used")
    # 9.0 is nearest to a reconstruction of another message, but of the same participant; 4.0 to one of another
    # participant.
    assert raw.each == used.each == (0, 0, 0, 0, 1)
    assert (raw.name, raw.value, raw.n, raw.leaks) == ("tracing_distance", 0.2, 5, "low")
    assert raw.chance == pytest.approx(1 - 4 / 5)
    assert (raw.low, raw.high) == pytest.approx(wilson(0.2 * 3, 3))


def test_raw_and_used_examples_are_traced_apart(ground_truths):
    truth = ground_truths([rows(0.0), rows(1.0)], used=[rows(1.0), rows(0.0)])
    raw, used = TracingDistance().grade(guessed([rows(0.0), rows(1.0)], ["a", "b"]), truth, stream(0))
    assert (raw.value, used.value) == (0, 1)


@pytest.mark.parametrize("queries", ["attacked", "owned"])
def test_one_participant_alone_leaves_nothing_to_trace(ground_truths, queries):
    truth = [
        dataclasses.replace(ground_truth, owned=ground_truth.raw)
        for ground_truth in ground_truths([rows(0.0), rows(1.0)])
    ]
    metric = TracingDistance(queries=queries)
    assert metric.grade(guessed([rows(0.0), rows(1.0)], ["sum", "sum"]), truth, stream(0)) == ()


def test_a_participant_without_examples_is_none(ground_truths):
    truth = ground_truths([rows(0.0), torch.zeros(0, 2)])
    assert TracingDistance().grade(guessed([rows(0.0), torch.zeros(0, 2)], ["a", "b"]), truth, stream(0)) == ()


def test_constant_reconstructions_are_at_chance(ground_truths):
    truth = ground_truths([rows(0.0), rows(1.0), rows(2.0), rows(3.0)])
    reading, _ = TracingDistance().grade(guessed([rows(0.5)] * 4, ["a", "b", "c", "d"]), truth, stream(0))
    assert reading.value == reading.chance == 0.75
    assert not reading.beats_chance()


def test_without_any_reconstruction_every_query_is_missed(ground_truths):
    truth = ground_truths([rows(0.0), rows(1.0)])
    reading, _ = TracingDistance().grade(guessed([torch.zeros(0, 2)] * 2, ["a", "b"]), truth, stream(0))
    assert reading.value == 1


def test_chance_is_to_name_who_owns_most(ground_truths):
    truth = ground_truths([rows(0.0, 1.0, 2.0), rows(3.0)])
    guess = guessed([rows(0.0), rows(9.0)], ["a", "b"])
    reading, _ = TracingDistance().grade(guess, truth, stream(0))
    assert (reading.chance, reading.value) == (0.25, 0.25)


def owning(truth, *owned):
    batches = [Batch(inputs, torch.zeros(len(inputs)).long()) for inputs in owned]
    return [dataclasses.replace(ground_truth, owned=batch) for ground_truth, batch in zip(truth, batches, strict=True)]


def test_everything_owned_is_asked_for_once(ground_truths):
    everything = rows(0.0, 1.0, 2.0), rows(8.0, 9.0), rows(0.0, 1.0, 2.0)
    truth = owning(ground_truths([rows(0.0), rows(9.0), rows(2.0)]), *everything)
    guess = guessed([rows(0.0), rows(6.0), rows(9.0)], ["a", "b", "a"])
    (reading,) = TracingDistance(queries="owned").grade(guess, truth, stream(0))
    assert (reading.against, reading.n, reading.each) == ("raw", 5, ())
    # 0, 1, 2 are nearest to 0 of `a`; 8 and 9 to the 9 of `a` though `b` owns them.
    assert reading.value == pytest.approx(0.4)
    assert reading.chance == pytest.approx(0.4)
    assert (reading.low, reading.high) == pytest.approx(wilson(0.4 * 2, 2))


def test_unknown_owners_give_no_reading(ground_truths):
    truth = ground_truths([rows(0.0), rows(1.0)])
    guess = guessed([rows(0.0), rows(1.0)], ["a", "b"])
    assert TracingDistance(queries="owned").grade(guess, truth, stream(0)) == ()
    half = [*owning(truth[:1], rows(0.0)), truth[1]]
    assert TracingDistance(queries="owned").grade(guess, half, stream(0)) == ()


@pytest.mark.parametrize("queries", ["attacked", "owned"])
def test_reconstructed_images_are_cut_to_the_pixel_range(ground_truths, queries):
    """What runs away beyond white is white on a screen, and nearest to the white image; other data are taken as they are."""
    for shape, value in (((1, 2, 2), 0), ((4,), 0.5)):
        white, dark = torch.ones(1, *shape), torch.full((1, *shape), 0.1)
        truth = owning(ground_truths([white, dark]), white, dark)
        guess = guessed([9 * white, 0.5 * white], ["a", "b"])
        assert TracingDistance(queries=queries).grade(guess, truth, stream(0))[0].value == value


def test_scores_are_not_graded(ground_truths):
    scores = Scores((("a", 0), ("b", 0)), (torch.zeros(1), torch.zeros(1)))
    assert TracingDistance().grade(scores, ground_truths([rows(0.0), rows(1.0)]), stream(0)) == ()


def test_the_metric_conforms():
    check_metric(TracingDistance())


def test_unknown_queries_are_refused():
    with pytest.raises(InvalidValue, match="queries"):
        TracingDistance(queries="all")


def test_better_reconstructions_are_traced_better(ground_truths, photos):
    images = [image[None] for batch in photos for image in batch]
    rng, senders = torch.Generator().manual_seed(0), [f"client-{number % 4}" for number in range(8)]
    values = []
    for noise in (0.0, 0.5, 50.0):
        guess = guessed([image + noise * torch.randn(image.shape, generator=rng) for image in images], senders)
        values.append(TracingDistance().grade(guess, ground_truths(images), stream(0))[0].value)
    assert values[0] == 0
    assert values[0] <= values[1] < values[2]
