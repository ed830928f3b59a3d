"""What a defence says about itself."""

import pytest
import torch

from leaktight.core.defence import HOOKS, Chain, Defence, Undefended
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.defences import (
    ClassKeys,
    GaussianNoise,
    LaplaceNoise,
    LayerGuard,
    LocalDP,
    Polarization,
    Pruning,
    TopK,
    Withhold,
)


@pytest.mark.parametrize(
    ("defence", "hooks"),
    [
        (Undefended(), set()),
        (TopK(), {"on_message"}),
        (GaussianNoise(), {"on_gradient", "on_message"}),
        (Polarization(), {"on_gradient", "on_task"}),
        (ClassKeys(), {"on_agree", "on_task", "on_close", "on_reveal"}),
        (Chain(), set()),
        (Chain(links=(Undefended(), TopK(), Chain(links=(Polarization(),)))), {"on_gradient", "on_task", "on_message"}),
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, set) else str(value),
)
def test_a_defence_names_the_hooks_in_which_it_may_act(defence: Defence, hooks: set[str]) -> None:
    assert defence.hooks() == hooks


def test_every_hook_is_in_the_list() -> None:
    assert {name for name in vars(Defence) if name.startswith("on_")} == set(HOOKS)


def test_a_chain_has_no_memory_only_if_no_link_has() -> None:
    assert Chain(links=(GaussianNoise(), Withhold())).memoryless
    assert not Chain(links=(GaussianNoise(), TopK(residual=True))).memoryless


NOISE, DP = GaussianNoise(std=0.1), LocalDP(clip=2.0)


@pytest.mark.parametrize(
    ("links", "pairs"),
    [
        ((TopK(), NOISE), [("gaussian_noise", "top_k")]),
        ((Pruning(), DP), [("local_dp", "pruning")]),
        ((NOISE, TopK()), [("top_k", "gaussian_noise")]),
        ((NOISE, DP), [("local_dp", "gaussian_noise")]),
        ((NOISE, GaussianNoise(std=0.1, clip=1.0)), [("gaussian_noise", "gaussian_noise")]),
        ((Chain(links=(TopK(),)), Withhold(), NOISE), [("gaussian_noise", "top_k")]),
        ((Withhold(), LayerGuard(guard=Chain(links=(TopK(), NOISE)), layers=("head",))), [("gaussian_noise", "top_k")]),
        ((TopK(noise=0.1), Pruning()), []),
        ((DP, NOISE), []),
        ((NOISE, LaplaceNoise()), []),
        ((TopK(), GaussianNoise(std=0.1, each="step")), []),
        ((TopK(), GaussianNoise(std=0)), []),
        ((TopK(share=1.0), NOISE), []),
        ((Polarization(), NOISE), []),
    ],
    ids=lambda value: None if isinstance(value, list) else " + ".join(map(str, value)),
)
def test_a_chain_names_each_link_that_undoes_another(links: tuple[Defence, ...], pairs: list[tuple[str, str]]) -> None:
    sentences = Chain(links=links).conflicts()
    assert [
        sentence.startswith(f"{later} after {earlier} ")
        for sentence, (later, earlier) in zip(sentences, pairs, strict=True)
    ] == [True] * len(pairs)


def test_a_single_defence_undoes_nothing() -> None:
    assert not NOISE.conflicts()
    assert not Chain(links=(NOISE,)).conflicts()


def test_top_k_leaves_zeros_that_noise_after_it_fills() -> None:
    """The sentence is true: after the noise nothing is zero any more, and with noise of its own the rest stays zero."""
    message = Message(Kind.UPDATE, "client-0", "server", 0, {"a": torch.arange(100.0)})
    filled = Chain(links=(TopK(share=0.1), NOISE)).on_message(message, Local("client-0", seed=0)).tensors["a"]
    sparse = TopK(share=0.1, noise=0.1).on_message(message, Local("client-0", seed=0)).tensors["a"]
    assert (int((filled == 0).sum()), int((sparse == 0).sum())) == (0, 90)


def test_top_k_after_large_noise_drops_the_update() -> None:
    update = torch.zeros(1000)
    update[:100] = 1.0
    message = Message(Kind.UPDATE, "client-0", "server", 0, {"a": update})
    kept = {}
    for name, defence in {
        "after": Chain(links=(GaussianNoise(std=3.0), TopK(share=0.1))),
        "first": TopK(share=0.1, noise=3.0),
    }.items():
        sent = defence.on_message(message, Local("client-0", seed=0)).tensors["a"]
        kept[name] = int((sent[:100] != 0).sum())
    assert kept["first"] == 100
    assert kept["after"] < 40


def test_a_clip_after_noise_sends_less_noise_than_was_stated() -> None:
    message = Message(Kind.UPDATE, "client-0", "server", 0, {"a": torch.zeros(10_000)})
    chain = Chain(links=(GaussianNoise(std=0.5), GaussianNoise(std=1e-6, clip=1.0)))
    assert chain.on_message(message, Local("client-0", seed=0)).tensors["a"].std() < 0.011


def test_noise_adds_up_over_links_and_the_smallest_bound_counts() -> None:
    chain = Chain(links=(DP, GaussianNoise(std=1.5), TopK(share=0.25, noise=1.0)))
    assert chain.noise_norm(4) == pytest.approx((4 * 2.0**2 + 4 * 1.5**2 + 1) ** 0.5)
    assert chain.message_bound == 2
    assert Undefended().noise_norm(4) == 0
    assert Chain(links=(NOISE,)).message_bound is None
