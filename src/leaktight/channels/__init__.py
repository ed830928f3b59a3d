"""Channels: the stages that defences state their channels in, and how likely a message is under them.

Most laws are exact. These are approximations. Of chains:

- Noise before a clip: the norm counts as its expected value; the more entries, the better this holds.
- The sum of two Laplace laws: the second counts as a Gaussian of the same variance.
- A mask after noise that is itself hidden by later noise: what was kept counts as all that might have been.
- A mask after noise after a mask, and noise on sent entries of which noise was ranked: the bound is safe, not tight.
- A clip or a mask after noise and a mask: what went out is taken from one typical draw.
- Noise on single examples, of their mean: Gaussian.

Of updates of several steps: noise on one step counts as if later steps did not see it; what Adam makes of noise has
about the right size, not the right law. Elsewhere: a mask that noise hides has a soft edge, Laplace noise beside
Gaussian noise in what a mask ranked counts as Gaussian, and a batch by Poisson sampling as if it had the size that the
message says.
"""

from leaktight.channels.calibration import deviations, standardise
from leaktight.channels.clip import Clip
from leaktight.channels.gradient import outward, push_examples
from leaktight.channels.largest import KeepLargest
from leaktight.channels.layers import Drop, OnLayers
from leaktight.channels.likelihood import negative_log_likelihood
from leaktight.channels.noise import AddNoise, StatedNoise

__all__ = [
    "AddNoise",
    "Clip",
    "Drop",
    "KeepLargest",
    "OnLayers",
    "StatedNoise",
    "deviations",
    "negative_log_likelihood",
    "outward",
    "push_examples",
    "standardise",
]
