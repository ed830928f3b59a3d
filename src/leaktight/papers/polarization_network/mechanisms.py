"""The mechanisms that the paper compares, as our defences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.defences import GaussianNoise, LaplaceNoise, TopK
from leaktight.defences.polarization import Polarization

NONE, GAUSSIAN, PPDL_05, PPDL_30, SPN, LAPLACE = "none", "Gaussian", "PPDL-0.05", "PPDL-0.3", "SPN", "Laplace"
BITS = 64


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """A mechanism by its name in our tables.

    Args:
        name: the paper's, but for "DP", which is Gaussian noise without a bound and so without an epsilon.
        strengths: which list of strengths it is swept over: the noise's or the polarization's.
        make: returns the defence at a strength.
    """

    name: str
    strengths: str
    make: Callable[[float], Defence]


def gaussian(std: float) -> Defence:
    """Return what the paper calls DP: noise on the gradient of each local step, nothing clipped."""
    return GaussianNoise(std=std, each="step")


def laplace(scale: float) -> Defence:
    """Return Laplace noise in its place (appendix E)."""
    return LaplaceNoise(scale=scale, each="step")


def ppdl(share: float) -> Callable[[float], Defence]:
    """Return what the paper calls PPDL: the same noise on each step, of whose result the largest entries go out."""
    return lambda std: Chain(links=(GaussianNoise(std=std, each="step"), TopK(share=share)))


def spn(alpha2: float, bits: int = BITS) -> Defence:
    """Return the secret polarization network on DLNet, whose weights are all uniform(-0.3, 0.3) (Table 2)."""
    return Polarization(alpha2=alpha2, bits=bits, bound=0.3)


def hardened(alpha2: float, head_noise: float) -> Defence:
    """Return our variant of it, whose public head is guarded by noise as well."""
    return Polarization(alpha2=alpha2, bits=BITS, bound=0.3, head_noise=head_noise)


def federated_spn(alpha2: float) -> Defence:
    """Return it on a larger network, whose layers start as torch starts them (Table 3)."""
    return Polarization(alpha2=alpha2, bits=BITS)


MECHANISMS = (
    Mechanism(GAUSSIAN, "noise", gaussian),
    Mechanism(PPDL_05, "noise", ppdl(0.05)),
    Mechanism(PPDL_30, "noise", ppdl(0.3)),
    Mechanism(SPN, "alpha2", spn),
)


def against_strongest(mechanism: str) -> str:
    """Return the name of a mechanism against who knows of it and takes the best of all attacks.

    Example:
        >>> against_strongest("SPN")
        'SPN, strongest attacker'
    """
    return f"{mechanism}, strongest attacker"


def sweep_mechanisms(noise: Sequence[float], alpha2: Sequence[float]) -> dict[tuple[str, float], Defence]:
    """Return every mechanism at every strength, by its name and strength.

    Example:
        >>> [name for name, strength in sweep_mechanisms(noise=(0.1,), alpha2=(0.5,))]
        ['Gaussian', 'PPDL-0.05', 'PPDL-0.3', 'SPN']
    """
    strengths = {"noise": noise, "alpha2": alpha2}
    return {
        (mechanism.name, value): mechanism.make(value)
        for mechanism in MECHANISMS
        for value in strengths[mechanism.strengths]
    }


def with_none(defences: dict[tuple[str, float], Defence]) -> dict[tuple[str, float], Defence]:
    """Return them after no mechanism at all."""
    return {(NONE, 0.0): Undefended(), **defences}
