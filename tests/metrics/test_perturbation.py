"""Perturbation: the ratio, and theorem 2.2 as the linear algebra that it is."""

import dataclasses
import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from leaktight.core.attack import Guess, Scores
from leaktight.core.message import Kind, Message
from leaktight.core.metric import MESSAGE, Metric, Reading
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.defences import GaussianNoise, TopK, Withhold
from leaktight.metrics.perturbation import (
    BIAS_RATIO,
    BODY_RATIO,
    RATIO,
    RATIO_CAP,
    LinearSystem,
    Perturbation,
    gradient_ratio,
    magnitudes,
    median_interval,
)
from leaktight.statistics.interval import wilson
from leaktight.testing.toys import toy_run
from leaktight.testing.values import check_value

RATIOS = (RATIO, BODY_RATIO, BIAS_RATIO)


@pytest.fixture
def truths(ground_truths):
    """Return one truth for each pair of plain and sent tensors."""

    def make(*pairs):
        made = ground_truths([torch.zeros(1, 1)] * len(pairs))
        found = []
        for number, (ground_truth, (plain, sent)) in enumerate(zip(made, pairs, strict=True)):
            message = Message(Kind.GRADIENT, f"client-{number}", "server", 0, sent)
            known = None if plain is None else dataclasses.replace(message, tensors=plain)
            found.append(dataclasses.replace(ground_truth, sent=message, plain=known))
        return tuple(found)

    return make


def graded(truth) -> dict[str, Reading]:
    keys = tuple(ground_truth.sent.key for ground_truth in truth)
    return {reading.name: reading for reading in Perturbation().grade(Guess(keys), truth, stream(0))}


def layer(bias, weight, first="body.0"):
    return {f"{first}.weight": torch.tensor(weight), f"{first}.bias": torch.tensor(bias)}


def test_it_speaks_of_the_message_and_not_of_leakage():
    check_value(Perturbation())
    assert (Perturbation().claim, Perturbation().leaks) == (MESSAGE, None)
    assert Metric.model_validate({"kind": "perturbation"}) == Perturbation()


def test_norms_are_taken_over_all_tensors_of_the_undefended_message():
    plain = {"a": torch.tensor([[1.0, 2.0]]), "b": torch.tensor(2.0)}
    sent = {"a": torch.tensor([[1.0, 5.0]]), "b": torch.tensor(-2.0), "added": torch.full((3,), 100.0)}
    assert magnitudes(plain, sent) == (3.0, 5.0)
    assert gradient_ratio(plain, sent) == 0.6
    assert magnitudes({}, sent) == (0.0, 0.0)


def test_a_withheld_tensor_counts_as_zeros(truths):
    plain = {"a": torch.tensor([3.0]), "b": torch.tensor([[4.0]])}
    assert (
        magnitudes(plain, {"a": torch.tensor([3.0])})
        == magnitudes(plain, {**plain, "b": torch.zeros(1, 1)})
        == (5.0, 4.0)
    )
    assert magnitudes(plain, {}) == (5.0, 5.0)
    reading = graded(truths((plain, {"a": torch.tensor([3.0])}), (plain, {})))["gradient_ratio"]
    assert reading.each == (1.25, 1.0)


@pytest.mark.parametrize("withheld", [("body.0.weight", "body.0.bias"), ("body.0.bias",)], ids=str)
def test_a_first_layer_that_was_withheld_leaves_the_theorem_silent(truths, withheld):
    plain = {**layer([1.0, 2.0], [[3.0], [4.0]]), **layer([1.0], [[1.0, 1.0]], "head")}
    sent = {name: tensor for name, tensor in plain.items() if name not in withheld}
    zeroed = {name: torch.zeros_like(tensor) if name in withheld else tensor for name, tensor in plain.items()}
    one, other = (LinearSystem.of(plain, each, 1) for each in (sent, zeroed))
    assert all(torch.equal(vars(one)[name], vars(other)[name]) for name in vars(one))
    assert (one.condition(), one.bound()) == (1, math.inf)
    readings = graded(truths((plain, sent)))
    assert readings["theorem_condition"].value == 0
    assert "theorem_bound" not in readings


def test_a_run_with_a_withheld_layer_is_graded():
    run = toy_run(Withhold(layers=("head",)), batch_size=1)
    plain = toy_run(batch_size=1)
    truth = [
        dataclasses.replace(ground_truth, plain=plain.truths[key].sent) for key, ground_truth in run.truths.items()
    ]
    readings = graded(truth)
    shares = [
        magnitudes({"head.weight": t["head.weight"], "head.bias": t["head.bias"]}, {})[0] / magnitudes(t, t)[0]
        for t in (ground_truth.plain.tensors for ground_truth in truth)
    ]
    assert readings["gradient_ratio"].each == pytest.approx([1 / share for share in shares])
    assert readings["theorem_condition"].value == 1  # the first layer went out as it was


def test_small_differences_survive_in_double_precision():
    plain = {"a": torch.full((10_000,), 1e-30)}
    size, change = magnitudes(plain, {"a": plain["a"] * (1 + 2**-20)})
    assert size == pytest.approx(1e-28)
    assert size / change == pytest.approx(2**20, rel=0.1)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.floats(-1e30, 1e30), st.floats(-1e30, 1e30)), min_size=1, max_size=5))
def test_the_ratio_is_finite_and_positive_whatever_is_sent(entries):
    plain, sent = ({"a": torch.tensor(values, dtype=torch.float64)} for values in zip(*entries, strict=True))
    ratio = gradient_ratio(plain, sent)
    assert 1 / RATIO_CAP <= ratio <= RATIO_CAP
    size, change = magnitudes(plain, sent)
    if change and 1 / RATIO_CAP < size / change < RATIO_CAP:
        assert ratio == size / change


def test_the_value_is_the_mean_on_a_logarithmic_axis(truths):
    plain = {"a": torch.tensor([1.0])}
    reading = graded(truths(*[(plain, {"a": torch.tensor([1 + change])}) for change in (0.125, 2.0, 1.0)]))[
        "gradient_ratio"
    ]
    assert reading.each == (8.0, 0.5, 1.0)
    assert reading.value == pytest.approx(4 ** (1 / 3))
    assert (reading.n, reading.leaks, reading.chance, reading.against) == (3, None, None, "raw")
    assert 0.5 <= reading.low < reading.value < reading.high <= 8


def test_a_ratio_and_its_inverse_have_inverse_readings(truths):
    pairs = [({"a": torch.tensor([size])}, {"a": torch.tensor([size + 1.0])}) for size in (3.0, 0.5, 7.0, 2.0)]
    inverse = [({"a": torch.tensor([1.0])}, {"a": torch.tensor([1 + plain["a"].item()])}) for plain, _ in pairs]
    one, other = (graded(truths(*each))["gradient_ratio"] for each in (pairs, inverse))
    assert one.value == pytest.approx(1 / other.value)
    assert (one.low, one.high) == pytest.approx((1 / other.high, 1 / other.low), rel=0.1)


def test_a_single_message_has_no_interval(truths):
    reading = graded(truths(({"a": torch.ones(2)}, {"a": torch.zeros(2)})))["gradient_ratio"]
    assert (reading.value, reading.n, reading.low, reading.high) == (1, 1, None, None)


def test_untouched_messages_have_no_ratio_unless_others_were_touched(truths):
    plain = {"a": torch.ones(4)}
    assert "gradient_ratio" not in graded(truths((plain, plain), (plain, plain)))
    reading = graded(truths((plain, plain), (plain, {"a": torch.zeros(4)})))["gradient_ratio"]
    assert reading.each == (RATIO_CAP, 1.0)
    assert reading.value == pytest.approx(math.sqrt(RATIO_CAP))


def test_a_gradient_of_zero_has_the_least_ratio(truths):
    reading = graded(truths(({"a": torch.zeros(4)}, {"a": torch.ones(4)})))["gradient_ratio"]
    assert reading.value == pytest.approx(1 / RATIO_CAP)


def test_without_an_undefended_message_there_is_nothing_to_say(truths):
    assert graded(truths((None, {"a": torch.ones(1)}))) == {}
    assert graded(()) == {}


@pytest.mark.parametrize("broken", [math.inf, math.nan])
def test_a_training_that_diverged_gives_no_number(truths, broken):
    plain, sent = layer([1.0], [[1.0]]), layer([broken], [[1.0]])
    assert graded(truths((plain, sent), (sent, plain))) == {}
    assert set(graded(truths((plain, sent), (plain, layer([1.5], [[1.0]]))))) == {
        *RATIOS,
        "theorem_condition",
        "theorem_bound",
    }


def test_the_first_layer_with_weight_and_bias_is_taken():
    plain = {
        "norm.weight": torch.ones(2),
        "norm.bias": torch.ones(2),
        "bare.weight": torch.ones(2, 2),
        "linear.weight": torch.ones(3, 50),
        "linear.bias": torch.full((3,), 7.0),
        **layer([1.0], [[1.0]], "head"),
    }
    sent = {name: tensor + 1 for name, tensor in plain.items()}
    system = LinearSystem.of(plain, sent, 50)
    assert system.bias.tolist() == [7, 7, 7]
    assert system.bias_change.tolist() == [1, 1, 1]
    assert system.weight.shape == system.weight_change.shape == (3, 50)
    assert LinearSystem.of({"norm.weight": torch.ones(2), "norm.bias": torch.ones(2)}, sent, 50) is None


def test_a_layer_whose_system_the_example_does_not_solve_says_nothing_of_it():
    """A convolution, or a linear layer that sees other than the example: a later linear layer is not taken instead."""
    linear = layer([1.0], [[1.0, 1.0]], "body.1")
    convolution = {"body.0.weight": torch.ones(3, 2, 5, 5), "body.0.bias": torch.ones(3), **linear}
    sent = {name: tensor + 1 for name, tensor in convolution.items()}
    assert LinearSystem.of(convolution, sent, 2) is None
    assert LinearSystem.of(linear, sent, 3) is None
    assert LinearSystem.of(linear, sent, 2) is not None


def test_the_theorem_is_read_for_one_step_on_one_example_alone(truths):
    plain, sent = layer([1.0], [[1.0]]), layer([1.1], [[1.0]])
    [one] = truths((plain, sent))
    two = dataclasses.replace(one, raw=Batch(torch.zeros(2, 1), torch.zeros(2, dtype=torch.long)))
    steps = dataclasses.replace(one, sent=dataclasses.replace(one.sent, facts={"local_steps": 2.0}))
    assert "theorem_condition" in graded((one,))
    for several in (two, steps):
        assert graded((several,)).keys() == set(RATIOS)


def test_each_ratio_is_over_its_own_tensors(truths):
    plain = {
        "body.a.weight": torch.tensor([3.0]),
        "body.a.bias": torch.tensor([4.0]),
        "head.bias": torch.tensor([12.0]),
    }
    sent = {"body.a.weight": torch.tensor([6.0]), "body.a.bias": torch.tensor([8.0]), "head.bias": torch.tensor([12.0])}
    readings = graded(truths((plain, sent)))
    assert {name: readings[name].value for name in RATIOS} == pytest.approx(
        {"gradient_ratio": 13 / 5, "body_ratio": 1.0, "bias_ratio": 1.0}
    )
    only_weights = graded(truths((plain, {**plain, "body.a.weight": torch.tensor([4.0])})))
    assert only_weights.keys() & set(RATIOS) == {"gradient_ratio", "body_ratio"}
    assert only_weights["body_ratio"].value == pytest.approx(5.0)


def test_the_system_of_one_example_is_solved_by_that_example():
    """Eq. 8: for a batch of one the first layer's weight gradient is its bias gradient times the input."""
    run = toy_run(rounds=1, batch_size=1)
    (ground_truth,) = run.truths.values()
    tensors = ground_truth.sent.tensors
    system = LinearSystem.of(tensors, tensors, ground_truth.raw.inputs[0].numel())
    solution = system.weight / system.bias[:, None]
    assert torch.allclose(solution, ground_truth.raw.inputs.flatten(1).double().expand_as(solution), atol=1e-5)
    assert system.condition() == 0
    assert system.bound() == 0


numbers = st.floats(-4, 4).filter(lambda value: abs(value) > 1e-3)
small = st.floats(-0.5, 0.5)


@st.composite
def systems(draw):
    rows, inputs = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    bias, bias_change = (draw(st.lists(kind, min_size=rows, max_size=rows)) for kind in (numbers, small))
    weight, weight_change = (
        draw(st.lists(kind, min_size=rows * inputs, max_size=rows * inputs)) for kind in (numbers, small)
    )
    tensors = (torch.tensor(values, dtype=torch.float64) for values in (bias, weight, bias_change, weight_change))
    bias, weight, bias_change, weight_change = tensors
    return LinearSystem(bias, weight.view(rows, inputs), bias_change, weight_change.view(rows, inputs))


def full(system: LinearSystem):
    """Return the system as appendix A writes it: a diagonal matrix with each bias entry once for each input, and a vector."""
    inputs = system.weight.shape[1]
    matrices = (torch.diag(entries.repeat_interleave(inputs)) for entries in (system.bias, system.bias_change))
    return *matrices, system.weight.flatten(), system.weight_change.flatten()


@settings(deadline=None, max_examples=150)
@given(systems())
def test_condition_and_bound_are_those_of_theorem_2_2(system):
    matrix, change, vector, vector_change = full(system)
    spectral = torch.linalg.matrix_norm
    condition = spectral(torch.linalg.inv(matrix) @ change, 2).item()
    assert system.condition() == pytest.approx(condition)
    if condition >= 1 - 1e-9:
        assert condition < 1 or system.bound() == math.inf
        return
    relative = spectral(change, 2) / spectral(matrix, 2) + vector_change.norm() / vector.norm()
    assert system.bound() == pytest.approx((torch.linalg.cond(matrix, 2) / (1 - condition) * relative).item(), rel=1e-6)
    exact = torch.linalg.solve(matrix, vector)
    error = (torch.linalg.solve(matrix + change, vector + vector_change) - exact).norm() / exact.norm()
    # The two solutions compared here are rounded, the theorem's are not.
    assert error.item() <= system.bound() * (1 + 1e-9) + 1e-11


def test_a_row_without_a_bias_gradient_is_left_out_of_the_system(truths):
    plain, sent = layer([0.0, 1.0], [[1.0], [1.0]]), layer([0.3, 1.1], [[9.0], [1.0]])
    alone = graded(truths((layer([1.0], [[1.0]]), layer([1.1], [[1.0]]))))
    both = graded(truths((plain, sent)))
    assert both["theorem_condition"].value == 1
    assert both["theorem_bound"].value == alone["theorem_bound"].value


def test_a_layer_without_any_bias_gradient_says_nothing(truths):
    readings = graded(truths((layer([0.0], [[1.0]]), layer([0.5], [[2.0]]))))
    assert readings.keys() == set(RATIOS)


def test_the_condition_is_a_share_and_the_bound_a_median_over_where_it_holds(truths):
    plain = layer([1.0, 2.0], [[3.0], [4.0]])
    changed = [layer([1.0, 2.0 + change], [[3.0], [4.0]]) for change in (0.2, 1.0, 0.4, 2.0, -3.0)]
    readings = graded(truths(*[(plain, sent) for sent in changed]))
    condition, bound = readings["theorem_condition"], readings["theorem_bound"]
    assert condition.each == (1, 1, 1, 0, 0)
    assert (condition.value, condition.n) == (0.6, 5)
    assert (condition.low, condition.high) == pytest.approx(wilson(3, 5))
    # kappa = 2, ||E_B|| / ||B|| = change / 2, ||B^-1 E_B|| = change / 2
    expected = [2 / (1 - change / 2) * change / 2 for change in (0.2, 1.0, 0.4)]
    assert bound.each == pytest.approx(expected)
    assert bound.value == pytest.approx(expected[2])
    assert (bound.n, bound.leaks, bound.low) == (3, None, None)


def test_a_weight_gradient_of_zero_has_no_bound(truths):
    plain = layer([1.0], [[0.0]])
    readings = graded(truths((plain, layer([1.1], [[0.1]]))))
    assert readings["theorem_condition"].value == 1
    assert "theorem_bound" not in readings


@pytest.mark.parametrize("n", [1, 5, 6, 7, 20, 50])
def test_the_interval_of_a_median_covers_as_it_says(n):
    low, high = median_interval([float(value) for value in range(1, n + 1)])
    if n < 6:
        assert (low, high) == (None, None)
        return
    assert low + high == n + 1
    outside = 2 * binom.cdf(low - 1, n, 0.5)
    assert outside <= 0.05 < 2 * binom.cdf(low, n, 0.5)


def test_the_interval_of_a_median_does_not_depend_on_the_order():
    assert median_interval([3.0, 9.0, 1.0, 7.0, 2.0, 8.0, 5.0]) == (1.0, 9.0)


def run_of(defence):
    run = toy_run(defence, rounds=6, batch_size=1)
    plain = toy_run(rounds=6, batch_size=1).truths
    return tuple(dataclasses.replace(ground_truth, plain=plain[key].sent) for key, ground_truth in run.truths.items())


def test_more_noise_has_a_smaller_ratio_in_proportion():
    ratios = [graded(run_of(GaussianNoise(std=std)))["gradient_ratio"].value for std in (1e-4, 1e-3, 1e-2)]
    assert ratios[0] / ratios[1] == pytest.approx(10, rel=1e-3)
    assert ratios[1] / ratios[2] == pytest.approx(10, rel=1e-3)


def test_the_ratio_of_noise_is_what_its_scale_says():
    truth = run_of(GaussianNoise(std=1e-2))
    entries = sum(tensor.numel() for tensor in truth[0].sent.tensors.values())
    sizes = [magnitudes(ground_truth.plain.tensors, ground_truth.sent.tensors)[0] for ground_truth in truth]
    expected = math.exp(sum(map(math.log, sizes)) / 6) / (1e-2 * math.sqrt(entries))
    assert graded(truth)["gradient_ratio"].value == pytest.approx(expected, rel=0.1)


def test_sharing_fewer_entries_never_perturbs_more_than_the_gradient_itself():
    readings = graded(run_of(TopK(share=0.05)))
    assert all(ratio >= 1 for ratio in readings["gradient_ratio"].each)
    assert readings["theorem_condition"].value == 0


def test_readings_are_the_same_alone_or_later_and_come_back_from_json():
    truth, rng = run_of(GaussianNoise()), stream(3)
    guess = Scores(tuple(ground_truth.sent.key for ground_truth in truth), tuple(torch.zeros(1) for _ in truth))
    first = Perturbation().grade(guess, truth, rng)
    torch.rand(5, generator=rng)
    assert Perturbation().grade(guess, truth, rng) == first
    assert all(Reading.model_validate(json.loads(json.dumps(reading.to_dict()))) == reading for reading in first)
