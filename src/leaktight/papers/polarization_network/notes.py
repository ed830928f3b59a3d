"""Notes: where our numbers and the published ones are not of the same thing."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.polarization_network.settings import ALPHA2, NOISE, Study, Sweep

DARK = "MNIST"
"""The set whose images are so dark that guesses outside the range of pixels decide the published error."""
TRACING = (
    "Tracing asks whose the attacked images are. The paper's text asks for every image that a participant owns, but of those almost none was sent, "
    "so that perfect reconstructions would score hardly better than noise."
)
ADAPTIVE = (
    "The adaptive attacker knows the mechanism and runs every attack: plain, adaptive (by the likelihood of what the mechanism states: the "
    "private head and codes of SPN are searched jointly, entries that PPDL did not send are bounded) and, for membership, label reading. At "
    "each strength its distance is the smallest of them; the paper has no such attacker. Gaussian noise is attacked by the plain ones only."
)
CLIPPED = (
    f"Reconstructions are clipped to the range of pixels before they are scored, so on {DARK} the relative error is at most about 3.1; the "
    "published CAPs of 3.4 to 4.7 can only come from unclipped ones and cannot be compared with ours."
)


def notes_of(studies: Sequence[Study]) -> list[str]:
    """Return what a reader of the tables must know, in sentences."""
    fewer = [
        f"{study.name} at batch {_listed(sweep.batch_sizes)} ({_listed(sweep.noise)} for noise, {_listed(sweep.alpha2)} for SPN)"
        for study in studies
        for sweep in study.sweeps
        if _fewer(sweep)
    ]
    found = [TRACING, ADAPTIVE]
    if fewer:
        found.append(
            f"Our CAPs average over fewer strengths than the published ones, so the two are not means of the same: {'; '.join(fewer)}."
        )
    if any(study.name == DARK for study in studies):
        found.append(CLIPPED)
    return found


def _fewer(sweep: Sweep) -> bool:
    return set(sweep.noise) < set(NOISE) or set(sweep.alpha2) < set(ALPHA2)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
