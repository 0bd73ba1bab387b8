"""A kernel estimate of the marginal density, and Tweedie's formula.

Brown and Greenshtein (2009) do without a prior: the posterior mean of eta is

    E(eta | z) = z + d/dz log f(z)

for any prior, and the marginal density f of the z is estimated by a normal kernel of
bandwidth h. The exact sums over all pairs grow with the square of their number. The
fast form sorts the values into boxes of width h/2 and expands the kernel about the
middle c of a box,

    exp(-(x-y)**2/2) = exp(-(x-c)**2/2) exp(-(y-c)**2/2) exp((x-c)(y-c)),   h = 1,

the last factor as a power series: its argument is at most 2.25 for boxes within 9h, so
20 terms leave a relative error of 1e-11 for each box, and boxes farther away do not
count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from ebda.cached import cached_property
from ebda.kernels.hermite import evaluate_cubics, hermite_coefficients
from ebda.priors.base import BasePriorEstimator, PriorFamily, check_values
from ebda.priors.posterior import broadcast_scale, finite_values, tail_probability
from ebda.storage.fields import VALUES, Array, Scalar
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray

# Exact sums for up to this many values: a million kernel evaluations take 10 ms.
_MAX_EXACT = 1000
# Kernel evaluations in a block of exact sums: 8 MiB of float64.
_BLOCK_ELEMENTS = 1 << 20
# Terms of the power series.
_TERMS = 20
# Boxes of h/2 on either side that are summed: those within 9h.
_REACH = 18
# Sums below this part of one kernel are summed exactly: values beyond 9h count, too.
_ISOLATED = 1e-12
# Cubics in a box, for interpolation.
_CUBICS = 32


# log f, its first and its second derivative at some points.
Derivatives = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class KernelPrior:
    """What a kernel estimate of f says about eta; there is no mass at zero.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The z that f was estimated from, ascending.
    bandwidth : float
        h, in units of the noise.
    exact : bool
        Whether to sum over all pairs, or to use the fast form.
    """

    values: FloatArray
    bandwidth: float
    exact: bool

    @property
    def pi0(self) -> float:
        """The mass at zero: none is estimated."""
        return 0.0

    def posterior(
        self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0
    ) -> KernelPosterior:
        """Posterior of eta for each z, in units of its scale.

        Beyond the data the estimate of f says nothing, and the correction of the
        last value is used.
        """
        values = finite_values(z)
        s = broadcast_scale(values, scale)
        inside = np.clip(values / s, self.values[0], self.values[-1])
        _, slope, curvature = self._log_density(inside)
        return KernelPosterior(values, s, slope, curvature)

    def logpdf(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> FloatArray:
        """Log of the kernel estimate of the marginal density."""
        values = finite_values(z)
        s = broadcast_scale(values, scale)
        log_f, _, _ = self._log_density(values / s)
        return (log_f - np.log(s))[()]

    def _log_density(self, z: FloatArray) -> Derivatives:
        """log f, its first and its second derivative at each z."""
        x = z.ravel()
        if self.exact:
            found = _derivatives(_exact_sums(x, self.values, self.bandwidth), self)
        else:
            found = _interpolated(x, self)
        log_f, slope, curvature = (v.reshape(z.shape) for v in found)
        return log_f, slope, curvature


def _exact_sums(x: FloatArray, y: FloatArray, h: float) -> FloatArray:
    """Sums of K, u K and u**2 K over all values y, with ``u = (y - x) / h``.

    One row each, and one of the logs of the factors that were taken out of them.
    """
    out = np.empty((4, len(x)))
    size = max(1, _BLOCK_ELEMENTS // len(y))
    for start in range(0, len(x), size):
        rows = slice(start, start + size)
        u = (y - x[rows, None]) / h
        exponent = -0.5 * u * u
        top = exponent.max(axis=1)
        kernel = np.exp(exponent - top[:, None])
        out[:, rows] = (
            kernel.sum(axis=1),
            np.einsum("ij,ij->i", kernel, u),
            np.einsum("ij,ij,ij->i", kernel, u, u),
            top,
        )
    return out


def _fast_sums(x: FloatArray, y: FloatArray, h: float) -> FloatArray:
    """The same by a power series about the middle of each box of values."""
    width = h / 2
    box = np.floor(y / width)
    boxes, box_of = np.unique(box, return_inverse=True)
    centre = (boxes + 0.5) * width
    v = (y - centre[box_of]) / h
    # Moments of the values about the middle of their box, times v**k / k!.
    weight = np.exp(-0.5 * v * v)
    moments = np.empty((_TERMS + 2, len(boxes)))
    for k in range(_TERMS + 2):
        moments[k] = np.bincount(box_of, weights=weight, minlength=len(boxes))
        weight = weight * v
    factorial = np.cumprod(np.append(1.0, np.arange(1, _TERMS)))

    out = np.zeros((4, len(x)))
    total, first, second, _ = out
    here = np.floor(x / width)
    for shift in range(-_REACH, _REACH + 1):
        place = np.searchsorted(boxes, here + shift)
        place[place == len(boxes)] = 0
        hit = np.flatnonzero(boxes[place] == here + shift)
        if not hit.size:
            continue
        b = place[hit]
        t = (x[hit] - centre[b]) / h
        power = np.exp(-0.5 * t * t)
        s0, s1, s2 = np.zeros((3, len(hit)))
        for k in range(_TERMS):
            term = power / factorial[k]
            s0 += term * moments[k, b]
            s1 += term * moments[k + 1, b]
            s2 += term * moments[k + 2, b]
            power = power * t
        # u = (y - x)/h = v - t
        total[hit] += s0
        first[hit] += s1 - t * s0
        second[hit] += s2 - 2 * t * s1 + t * t * s0
    isolated = total < _ISOLATED
    if isolated.any():  # in a gap of the data, where what was left out may count
        out[:, isolated] = _exact_sums(x[isolated], y, h)
    return out


def _derivatives(sums: FloatArray, prior: KernelPrior) -> Derivatives:
    """log f and its derivatives from the sums."""
    total, first, second, top = sums
    h, n = prior.bandwidth, len(prior.values)
    mean = first / total
    log_f = np.log(total) + top - np.log(n * h * np.sqrt(2 * np.pi))
    return log_f, mean / h, (second / total - mean**2 - 1) / h**2


def _interpolated(x: FloatArray, prior: KernelPrior) -> Derivatives:
    """The same at many points, by cubics between nodes in the boxes that hold any.

    Values and derivatives agree at the nodes; between them the error is of the order
    of the fourth power of their distance, h/64, and far below 1e-5.
    """
    h = prior.bandwidth
    width = h / 2
    boxes, row = np.unique(np.floor(x / width), return_inverse=True)
    if len(x) <= 2 * len(boxes) * (_CUBICS + 1):
        return _derivatives(_fast_sums(x, prior.values, h), prior)
    nodes = (boxes[:, None] + np.linspace(0, 1, _CUBICS + 1)) * width
    found = _derivatives(_fast_sums(nodes.ravel(), prior.values, h), prior)
    log_f, slope, curvature = (v.reshape(nodes.shape) for v in found)
    step = width / _CUBICS
    place = (x - nodes[row, 0]) / step
    left = np.clip(place.astype(np.intp), 0, _CUBICS - 1)
    t = place - left

    def interpolate(y: FloatArray, derivative: FloatArray) -> FloatArray:
        coefficients = hermite_coefficients(y, step * derivative).reshape(4, -1)
        return evaluate_cubics(coefficients, row * _CUBICS + left, t)

    start = curvature[row, left]
    linear = start + t * (curvature[row, left + 1] - start)
    return interpolate(log_f, slope), interpolate(slope, curvature), linear


@dataclass(frozen=True, eq=False)
class KernelPosterior:
    """Tweedie's mean and variance, with sign rates and intervals of a normal.

    Parameters
    ----------
    z, scale : ndarray
        Values and their noise scale.
    slope, curvature : ndarray
        First and second derivative of log f, in units of the noise.
    """

    z: FloatArray
    scale: FloatArray
    slope: FloatArray
    curvature: FloatArray

    @cached_property
    def mean(self) -> FloatArray:
        return self.z + self.scale * self.slope

    @property
    def prob_zero(self) -> FloatArray:
        return np.zeros(self.z.shape)

    @cached_property
    def sd(self) -> FloatArray:
        return self.scale * np.sqrt(np.maximum(1 + self.curvature, 0.0))

    @cached_property
    def lfsr(self) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = ndtr(-np.abs(self.mean) / self.sd)
        return np.where(np.isnan(rate), 1.0, rate)

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the interval: mean plus and minus a multiple of the sd.

        Parameters
        ----------
        level : float
            Probability inside, between 0 and 1.
        """
        half = -ndtri(tail_probability(level)) * self.sd
        return self.mean - half, self.mean + half


class Kernel(BasePriorEstimator):
    """Kernel estimate of the marginal density with Tweedie's formula.

    ``E(eta | z) = z + f'(z)/f(z)`` with a normal kernel (Brown and Greenshtein
    2009); as the prior of :class:`~ebda.EBClassifier` it is the classifier of
    Greenshtein and Park (2009).

    Parameters
    ----------
    bandwidth : float
        h, in units of the noise; the paper's authors use 0.3.
    method : {"auto", "exact", "fast"}
        "exact" sums over all pairs, "fast" expands the kernel in boxes and agrees
        to about 1e-9; "auto" is exact for up to 1000 values.

    Attributes
    ----------
    prior_ : KernelPrior
        The estimated marginal, with `posterior` and `logpdf`.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import Kernel
    >>> z = np.random.default_rng(0).normal(size=5000)
    >>> shrunk = Kernel().fit(z).prior_.posterior(z).mean
    >>> bool(np.mean(shrunk**2) < 0.1)
    True
    """

    def __init__(self, bandwidth: float = 0.3, method: str = "auto") -> None:
        self.bandwidth = bandwidth
        self.method = method

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Kernel:
        """Keep the values; the density is computed where it is asked for.

        Parameters
        ----------
        z : array-like
            Values; their shape and order do not matter.
        scale : float or array-like
            Noise standard deviation; values are taken in units of it.
        """
        self._check_positive("bandwidth")
        if self.method not in ("auto", "exact", "fast"):
            raise ValueError(
                f"method must be 'auto', 'exact' or 'fast', got {self.method!r}"
            )
        values, scales = check_values(z, scale)
        exact = self.method == "exact" or (
            self.method == "auto" and len(values) <= _MAX_EXACT
        )
        self.prior_ = KernelPrior(np.sort(values / scales), self.bandwidth, exact)
        return self


def _posterior_from_fields(fields: dict[str, FloatArray]) -> KernelPosterior:
    # The first files called the curvature by another name.
    if "bend" in fields:
        fields["curvature"] = fields.pop("bend")
    return KernelPosterior(**fields)


register(
    Schema(
        KernelPrior,
        {
            "values": Array(("t",), ("not empty", "finite", "in order")),
            "bandwidth": Scalar((float,), least=np.finfo(np.float64).tiny),
            "exact": Scalar((bool,)),
        },
        is_parameter=True,
        role="prior",
    ),
    Schema(
        KernelPosterior,
        {
            "z": Array(VALUES),
            "scale": Array(VALUES, ("finite", "positive")),
            "slope": Array(VALUES),
            "curvature": Array(VALUES),
        },
        optional=frozenset({"curvature"}),
        former={"bend": Array(VALUES)},
        build=_posterior_from_fields,
        role="posterior",
    ),
)

FAMILY = PriorFamily("kernel", "kernel estimate of the marginal density", Kernel)
