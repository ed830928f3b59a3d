from __future__ import annotations

from leaktight.core.defence import Chain, Undefended
from leaktight.defences import GaussianNoise, TopK
from leaktight.defences.polarization import Polarization
from leaktight.papers.polarization_network.mechanisms import MECHANISMS, sweep_mechanisms


def test_mechanisms_are_those_of_table_2() -> None:
    made = {mechanism.name: mechanism.make(0.1) for mechanism in MECHANISMS}
    noise = GaussianNoise(std=0.1, each="step")
    assert made == {
        "Gaussian": noise,
        "PPDL-0.05": Chain(links=(noise, TopK(share=0.05))),
        "PPDL-0.3": Chain(links=(noise, TopK(share=0.3))),
        "SPN": Polarization(alpha2=0.1, bits=64, alpha1=1.0, bound=0.3),
    }
    assert Undefended() not in sweep_mechanisms((0.1,), (0.1,)).values()
