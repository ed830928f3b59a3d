"""What a defence says about itself."""

import pytest

from leaktight.core.defence import HOOKS, Chain, Defence, Undefended
from leaktight.defences import ClassKeys, GaussianNoise, Polarization, TopK, Withhold


@pytest.mark.parametrize(
    ("defence", "hooks"),
    [
        (Undefended(), set()),
        (TopK(), {"on_message"}),
        (GaussianNoise(), {"on_gradient", "on_message"}),
        (Polarization(), {"on_task"}),
        (ClassKeys(), {"on_agree", "on_task", "on_close", "on_reveal"}),
        (Chain(), set()),
        (Chain(links=(Undefended(), TopK(), Chain(links=(Polarization(),)))), {"on_task", "on_message"}),
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
