"""The empirical Bayes posterior of Martin and Walker (2014).

In units of the noise, with the share omega of zeros and the likelihood to the power
kappa,

    omega ~ Beta(a n, 1),    eta_i ~ omega delta_0 + (1 - omega) N(x_i, tau**2),
    posterior ~ prior * prod_i exp(-(x_i - eta_i)**2 / 2)**kappa.

The slab of each value is centred at the value, so that a large one is not shrunk. Given
omega the values are independent, with the odds of not being zero

    (1 - omega) / omega * r_i,    r_i = (1 + kappa tau**2)**-0.5 exp(kappa x_i**2 / 2),

and the slab leaves ``N(x_i, tau**2 / (1 + kappa tau**2))``. The posterior density of
omega is ``omega**(a n - 1) prod_i (omega + (1 - omega) r_i)``: one integral, which the
trapezoidal rule does for the logit of omega, with exponentially small errors. The
authors draw samples instead.

The prior has been moved to where the data are, and there is no marginal density: by
Tweedie's formula the one with these posterior means would be constant far from zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit, log_ndtr, logsumexp

from ebda.priors.base import BasePriorEstimator, PriorFamily, sorted_values
from ebda.priors.posterior import broadcast_scale, finite_values
from ebda.priors.spike_slab import Masses, SpikeSlabPosterior
from ebda.sizes import sizes
from ebda.storage.fields import POSITIVE, VALUES, Array, Scalar
from ebda.storage.objects import Lengths, Nested, Schema, register
from ebda.typing import FloatArray

# The log density of omega is followed down to this below its largest value.
_DEPTH = 36.0
_FIRST_STEP = 1e-3
# Points of the rule: at least so many, and so far apart at most.
_POINTS = 129
_SPACING = 0.25


@dataclass(frozen=True, eq=False)
class MartinWalkerPosterior(SpikeSlabPosterior):
    """A point mass at zero and a normal distribution about the value.

    Parameters
    ----------
    masses, shape
        As in `SpikeSlabPosterior`.
    mean_slope : ndarray
        Derivative of each posterior mean by its own value.
    """

    mean_slope: FloatArray


@dataclass(frozen=True, eq=False)
class MartinWalkerPrior:
    """The posterior of omega, and what it leads to for each value.

    Parameters
    ----------
    log_odds : ndarray of shape (n_points,)
        Points of ``log(omega / (1 - omega))``, ascending.
    weights : ndarray of shape (n_points,)
        Their posterior probabilities.
    kappa : float
        Power of the likelihood.
    tau : float
        Standard deviation of the slab, in units of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import MartinWalker
    >>> x = np.append(np.zeros(98), [5.0, 1e6])
    >>> posterior = MartinWalker().fit(x).prior_.posterior(x)
    >>> posterior.mean[[0, 98, 99]].round(2).tolist()
    [0.0, 4.99, 1000000.0]
    """

    log_odds: FloatArray
    weights: FloatArray
    kappa: float
    tau: float

    has_density = False

    @property
    def pi0(self) -> float:
        """Posterior mean of omega."""
        return float(self.weights @ expit(self.log_odds))

    def posterior(
        self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0
    ) -> MartinWalkerPosterior:
        """Posterior of eta for each z ~ N(eta, scale**2).

        Parameters
        ----------
        z : array-like of any shape, or a number
            Observed values.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        values = finite_values(z)
        flat, s = values.ravel(), broadcast_scale(values, scale).ravel()
        x = flat / s
        log_zero, log_slab, change = self._zero_or_not(log_ratio(x, self))
        sd = s * self.tau / np.sqrt(1 + self.kappa * self.tau**2)
        location = np.stack([flat, -flat])
        masses = Masses(log_zero, log_slab + log_ndtr(location / sd), location, sd)
        # The log ratio has the derivative kappa x.
        slope = np.exp(log_slab) + self.kappa * x * x * change
        return MartinWalkerPosterior(masses, values.shape, slope.reshape(values.shape))

    def _zero_or_not(
        self, ratio: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log of P(zero) and of P(not zero), and the latter's slope by the ratio."""
        out = np.empty((3, len(ratio)))
        log_weights = np.log(self.weights)[:, None]
        size = max(1, sizes.posterior_elements // len(self.weights))
        for start in range(0, len(ratio), size):
            rows = slice(start, start + size)
            odds = self.log_odds[:, None] - ratio[rows]
            out[0, rows] = logsumexp(log_weights + log_expit(odds), axis=0)
            out[1, rows] = logsumexp(log_weights + log_expit(-odds), axis=0)
            out[2, rows] = self.weights @ (expit(odds) * expit(-odds))
        return out[0], out[1], out[2]

    def logpdf(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> FloatArray:
        """Log marginal density at each z: there is none, and this is a TypeError."""
        raise TypeError(
            "the prior of Martin and Walker follows the values and has no marginal "
            "density; it gives posteriors alone"
        )


def log_ratio(x: FloatArray, model: MartinWalker | MartinWalkerPrior) -> FloatArray:
    """``log r_i`` of values in units of the noise."""
    constant = np.log1p(model.kappa * model.tau**2) / 2
    ratio: FloatArray = model.kappa * x * x / 2 - constant
    return ratio


def posterior_of_share(
    ratio: FloatArray, count: float
) -> tuple[FloatArray, FloatArray]:
    """Points and weights of the posterior of ``log(omega / (1 - omega))``.

    Parameters
    ----------
    ratio : ndarray of shape (n_values,)
        ``log r_i``.
    count : float
        ``a n``, the first parameter of the Beta distribution.

    Examples
    --------
    One value with r = 1 says nothing, and omega has the mean ``1 / (1 + 1)``:

    >>> points, weights = posterior_of_share(np.zeros(1), 1.0)
    >>> round(float(weights @ expit(points)), 6)
    0.5
    """
    n, positive = len(ratio), ratio > 0

    def log_density(v: float) -> float:
        # Of omega + (1 - omega) r, omega is taken out, and r where it is large.
        rest = np.logaddexp(0, np.where(positive, v - ratio, ratio - v)).sum()
        prior = (count + n) * log_expit(v) + log_expit(-v)
        return float(prior + rest - positive.sum() * v)

    # Modes where all are large, and where all are small: the density lies between.
    bounds = np.log(count / (n + 1)) - 1, np.log(count + n) + 1
    mode = float(
        minimize_scalar(lambda v: -log_density(v), bounds=bounds, method="bounded").x
    )
    top = log_density(mode)

    def end(direction: float) -> float:
        step = _FIRST_STEP
        while log_density(mode + direction * step) > top - _DEPTH:
            step *= 2
        return mode + direction * step

    first, last = end(-1.0), end(1.0)
    size = max(_POINTS, int(np.ceil((last - first) / _SPACING)) + 1)
    points = np.linspace(first, last, size)
    density = np.array([log_density(float(v)) for v in points])
    weights = np.exp(density - density.max())
    kept = weights > 0
    return points[kept], weights[kept] / weights.sum()


class MartinWalker(BasePriorEstimator):
    """Point mass and slabs that are centred at the values (Martin and Walker 2014).

    It gives posteriors alone: there is no prior that is the same for all values, and so
    no marginal density and no likelihood.

    Parameters
    ----------
    alpha : float
        a: omega, the share of zeros, has the prior Beta(a n, 1) with n values.
    kappa : float
        Power of the likelihood, at most 1. The authors' theorems need it to be less,
        by however little.
    tau : float
        Standard deviation of the slabs, in units of the noise. If eta is zero, r has
        the mean ``((1 + kappa tau**2) (1 - kappa))**-0.5``: 1 by default, and more for
        narrower slabs, which take zeros for effects.

    Attributes
    ----------
    prior_ : MartinWalkerPrior
        The posterior of omega.

    References
    ----------
    Martin and Walker (2014), Electronic Journal of Statistics 8, 2188-2206.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.priors import MartinWalker
    >>> rng = np.random.default_rng(0)
    >>> eta = np.repeat([0.0, 6.0], [950, 50])
    >>> x = eta + rng.normal(size=1000)
    >>> prior = MartinWalker().fit(x).prior_
    >>> errors = prior.posterior(x).mean - eta
    >>> round(prior.pi0, 2), round(float(np.mean(errors**2)), 2)
    (0.95, 0.1)
    """

    def __init__(
        self, alpha: float = 0.25, kappa: float = 0.99, tau: float = 10.0
    ) -> None:
        self.alpha = alpha
        self.kappa = kappa
        self.tau = tau

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> MartinWalker:
        """Find the posterior of omega.

        Parameters
        ----------
        z : array-like
            Values; their shape and order do not matter.
        scale : float or array-like
            Noise standard deviation, one for all or one for each value.
        """
        values, scales = sorted_values(z, scale)
        self._check_positive("alpha", "kappa", "tau")
        if self.kappa > 1:
            raise ValueError(f"kappa must be at most 1, got {self.kappa!r}")
        ratio = log_ratio(values / scales, self)
        points, weights = posterior_of_share(ratio, self.alpha * len(values))
        self.prior_ = MartinWalkerPrior(points, weights, self.kappa, self.tau)
        return self


register(
    Schema(
        MartinWalkerPrior,
        {
            "log_odds": Array(("t",), ("finite", "ascending")),
            "weights": Array(("t",), (*POSITIVE, "a distribution")),
            "kappa": Scalar((float,), least=0, most=1),
            "tau": Scalar((float,), least=0),
        },
        is_parameter=True,
        role="prior",
    ),
    Schema(
        MartinWalkerPosterior,
        {
            "shape": Lengths(),
            "masses": Nested(("Masses",)),
            "mean_slope": Array(VALUES),
        },
        role="posterior",
    ),
)

FAMILY = PriorFamily(
    "martin_walker",
    "point mass at zero plus a normal distribution about each value",
    MartinWalker,
)
