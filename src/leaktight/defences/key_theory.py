"""Key theory: the angles between random keys, and why a loss without other classes' keys is a likelihood."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from scipy.special import betaincinv, hyp0f1
from torch import Tensor

from leaktight.core.draws import Draws
from leaktight.core.errors import InvalidValue


def random_keys(count: int, dimensions: int, draws: Draws) -> Tensor:
    r"""Draw keys of length 1 in random directions, one in each row.

    A key is \(\psi = z / \lVert z \rVert\) with \(z \sim N(0, I)\).

    Example:
        >>> import torch
        >>> from leaktight.core.draws import public_draws
        >>> random_keys(3, 64, public_draws(0)).norm(dim=1).allclose(torch.ones(3))
        True

    References: Sariyildiz, Cinbis and Ayday 2020, section 4.3.
    """
    return F.normalize(draws.normals((count, dimensions)), dim=1)


def orthonormal_keys(count: int, dimensions: int, draws: Draws) -> Tensor:
    """Draw keys of length 1 at right angles to each other, one in each row: a slice of a random orthogonal matrix.

    Example:
        >>> import torch
        >>> from leaktight.core.draws import public_draws
        >>> keys = orthonormal_keys(3, 64, public_draws(0))
        >>> torch.allclose(keys @ keys.t(), torch.eye(3), atol=1e-5)
        True

    References: Sariyildiz, Cinbis and Ayday 2020, section 5.5.
    """
    q, r = torch.linalg.qr(draws.normals((dimensions, count), torch.float64))
    keys: Tensor = (q * r.diagonal().sign()).t().float().contiguous()
    return keys


def key_at_distance(key: Tensor, distance: float, draws: Draws) -> Tensor:
    r"""Draw a key of length 1 at a Euclidean distance \(\delta\) from another, in a random direction from it.

    .. math:: \psi' = (1 - \delta^2 / 2) \, \psi + \delta \sqrt{1 - \delta^2 / 4} \; u, \qquad
        u \perp \psi, \ \lVert u \rVert = 1.

    Args:
        key: \(\psi\), of length 1, in at least 2 dimensions.
        distance: \(\delta\), from 0, the same key, to 2, the opposite one; two random keys are about \(\sqrt 2\) apart.
        draws: where the direction comes from.

    Example:
        >>> import torch
        >>> from leaktight.core.draws import public_draws
        >>> draws = public_draws(0)
        >>> key = random_keys(1, 64, draws)[0]
        >>> round(torch.dist(key, key_at_distance(key, 0.5, draws)).item(), 4)
        0.5

    Differs from the paper: its code searches for such a key by descent; here the distance is exact.

    References: Sariyildiz, Cinbis and Ayday 2020, section 5.3, experiment II.
    """
    if not 0 <= distance <= 2:
        raise InvalidValue(
            f"The distance of two keys must be in [0, 2], as both have length 1. Got {distance!r} instead."
        )
    other = draws.normals(key.shape, key.dtype).to(key.device)
    across = F.normalize(other - (other @ key) * key, dim=0)
    return (1 - distance**2 / 2) * key + distance * math.sqrt(1 - distance**2 / 4) * across


def largest_overlap(dimensions: int, pairs: int = 1, level: float = 0.5) -> float:
    r"""Return the quantile of the largest inner product among so many pairs of random keys.

    The inner product \(t\) of two random directions in \(\mathbb{R}^d\) has
    \((1 + t) / 2 \sim B((d - 1) / 2, (d - 1) / 2)\), about \(N(0, 1 / d)\). Of \(n\) pairs the largest is below \(t\)
    with probability \(F(t)^n\): among keys of one draw the pairs are independent of each other two by two, which
    suffices for small tails.

    Args:
        dimensions: \(d\), at least 2; more dimensions, smaller overlaps.
        pairs: \(n\), at least 1. K keys have K (K - 1) / 2 pairs.
        level: which quantile, in (0, 1).

    Example:
        >>> [round(largest_overlap(d, pairs=4950 * 1000), 2) for d in (128, 1024, 16384)]
        [0.43, 0.16, 0.04]

    References: Sariyildiz, Cinbis and Ayday 2020, section 4.3 and Figure 2.
    """
    tail = -math.expm1(math.log(level) / pairs)
    shape = (dimensions - 1) / 2
    return 1 - 2 * float(betaincinv(shape, shape, tail))


def effective_length(dimensions: int, features: int, fixed: bool = True) -> int:
    r"""Return the length of keys that protects: \(\min(d, F)\) behind a fixed layer of F features, else d.

    A generator follows the slope of an embedding's inner product with its key, by the features that go into the fixed
    layer. That is the key's image in F numbers: two random keys of any length have images whose overlap is about
    \(1 / \sqrt F\) once d is above F. So longer keys are less likely to resemble each other, but from F on a random
    one drives a generator as near to a true one's direction as before. A layer that is learned has no such bound, and
    its own gradient shows the keys.

    Args:
        dimensions: d, the length of keys.
        features: F, how many numbers go into the fixed layer, or through the narrowest layer before it.
        fixed: whether the layer is fixed.

    Example:
        >>> effective_length(16_384, features=84), effective_length(128, features=256)
        (84, 128)

    Differs from the paper: it takes robustness to grow with d alone (section 4.4).
    """
    return min(dimensions, features) if fixed else dimensions


def image_overlap(dimensions: int, features: int) -> float:
    r"""Return the root mean square of the cosine between what two random keys tell a generator behind a fixed layer.

    Of d dimensions an embedding's ReLU leaves half, and their keys' entries go back through a slice of an orthogonal
    matrix of F columns, so that with \(m = \min(d, F)\) the mean square is about \(1 / m + 1 / d\).

    Args:
        dimensions: d, the length of keys.
        features: F, how many numbers go into the fixed layer.

    Example:
        >>> [round(image_overlap(d, features=84), 2) for d in (128, 1024, 16_384)]
        [0.14, 0.11, 0.11]

    Differs from the paper: it looks at keys alone, not at what goes back through its fixed layer.
    """
    return math.sqrt(1 / effective_length(dimensions, features) + 1 / dimensions)


def closest(keys: Tensor) -> Tensor:
    r"""Return the direction with the largest sum of inner products with some keys: their normalised sum.

    This is where a shared class is drawn.

    Its score with each of two keys is \(\sqrt{(1 + \langle \psi_i, \psi_j \rangle) / 2}\), about 0.71 for keys in many
    dimensions.

    Args:
        keys: one of length 1 in each row.

    Example:
        >>> import torch
        >>> (torch.eye(2) @ closest(torch.eye(2))).tolist()
        [0.7071067690849304, 0.7071067690849304]

    References: Sariyildiz, Cinbis and Ayday 2020, section 5.4 and Figure 8.
    """
    return F.normalize(keys.sum(0), dim=0)


def expected_exponential(length: float, dimensions: int | None = None) -> float:
    r"""Return the mean of \(e^{\langle \phi, \psi \rangle}\) over all keys.

    It is the denominator of a softmax over infinitely many classes.

    .. math:: E_{\psi \sim N(0, I)} \, e^{\langle \phi, \psi \rangle} = e^{\lVert \phi \rVert^2 / 2}, \qquad
        E_{\lVert \psi \rVert = 1} \, e^{\langle \phi, \psi \rangle} = {}_0F_1(d / 2; \lVert \phi \rVert^2 / 4).

    Neither depends on the direction of \(\phi\). For embeddings of length 1 it is a constant, \(e^{1 / 2}\) for
    Gaussian keys, so that \(-\log p(c \mid x) = -\langle \phi(x), \psi_c \rangle\) plus a constant: the loss that needs
    no other class's key.

    Args:
        length: \(\lVert \phi \rVert\), at least 0.
        dimensions: \(d\) for keys of length 1; None for Gaussian ones, of any dimension.

    Example:
        >>> expected_exponential(1.0) == math.exp(0.5)
        True

    Differs from the paper: it derives its loss for Gaussian keys and uses normalised ones. The second formula shows
    that these have a constant denominator as well.

    References: Sariyildiz, Cinbis and Ayday 2020, Eq. 6 to 9 and Appendix A.
    """
    if dimensions is None:
        return math.exp(length**2 / 2)
    return float(hyp0f1(dimensions / 2, length**2 / 4))
