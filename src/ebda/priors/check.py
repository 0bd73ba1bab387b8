"""A check of the contract of prior families, for those of this package and others."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from ebda.typing import FloatArray

# The effects of the values that estimators are fitted to.
_ETA = np.repeat([0.0, 4.0, -3.0], [1350, 75, 75])
# Values, scales, and what the error must say about them.
_BAD_VALUES: list[tuple[list[float], float | list[float], str]] = [
    ([], 1.0, "no values"),
    ([0.0, np.nan], 1.0, "NaN at position 1"),
    ([0.0, np.inf, np.nan], 1.0, "infinity at position 1 and 1 more"),
    ([0.0, 1.0], 0.0, "scale must be positive"),
    ([0.0, 1.0], [1.0, -1.0], "scale must be positive and finite; at position 1"),
    ([0.0, 1e200], 1.0, r"position 1 lies more than 1e\+100 standard errors"),
    ([0.0, 0.0], [1e-200, 1.0], "scales differ"),
    ([0.0, 1.0], [1.0, 1.0, 1.0], "does not fit"),
]
_SUMMARIES = ("mean", "prob_zero", "sd", "lfsr")
# Rounding error of probabilities that are compared with each other.
_ROUNDING = 1e-12


def check_prior(estimator: Any, monotone: bool = True) -> None:
    """Check that an estimator of the prior keeps the contract of a prior family.

    It is fitted to drawn values, a tenth of which have effects, and to awkward ones.
    Parameters, fitted attributes, posterior summaries and the marginal density are
    checked. The estimator itself is not changed.

    Parameters
    ----------
    estimator : prior estimator
        An object with ``fit(z, scale=1.0)``, which sets ``prior_``; see
        :class:`ebda.priors.BasePriorEstimator`.
    monotone : bool
        Whether the posterior mean must rise with z, as it does under every prior.
        False is for an estimate of the marginal density that need not belong to a
        prior, such as :class:`ebda.priors.Kernel`.

    Raises
    ------
    AssertionError
        If the contract is broken. The message says how.

    Examples
    --------
    >>> from ebda.priors import PointNormal, check_prior
    >>> check_prior(PointNormal())
    >>> check_prior(PointNormal(min_sd=100.0))
    Traceback (most recent call last):
    AssertionError: PointNormal(min_sd=100.0): the posterior means have more than half \
the squared error of the values
    """
    rng = np.random.default_rng(0)
    z = _ETA + rng.normal(size=len(_ETA))
    z.flags.writeable = False
    contract = _Contract(estimator)
    contract.check_parameters(z)
    fitted = contract.check_fit(z)
    contract.check_repeated_fits(fitted, z, rng)
    contract.check_posterior(fitted.prior_, z)
    contract.check_shapes(fitted.prior_, z)
    contract.check_marginal(fitted.prior_, monotone)
    contract.check_scales(z)
    contract.check_awkward_values(z)
    contract.check_bad_values()


class _Contract:
    """The clauses of the contract, for one estimator."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def require(self, condition: Any, message: str) -> None:
        """Raise an error if something does not hold, or not everywhere."""
        if not np.all(condition):
            raise AssertionError(f"{self.estimator!r}: {message}")

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Any:
        """A clone of the estimator, fitted."""
        return clone(self.estimator).fit(z, scale)

    def check_parameters(self, z: FloatArray) -> None:
        """`__init__` stores the parameters, and `fit` leaves them alone."""
        estimator = clone(self.estimator)
        before = estimator.get_params()
        self.require(
            not hasattr(estimator, "prior_"), "there is a prior_ before any fit"
        )
        fitted = estimator.fit(z)
        self.require(fitted is estimator, "fit does not return the estimator")
        after = estimator.get_params()
        self.require(
            after.keys() == before.keys()
            and all(after[name] is before[name] for name in before),
            "fit changes parameters",
        )
        self.require(not hasattr(clone(estimator), "prior_"), "a clone of it is fitted")

    def check_fit(self, z: FloatArray) -> Any:
        """What `fit` sets, and what it must not do to the values. Returns the fit."""
        values = z.copy()
        fitted = self.fit(values)
        for name in ("posterior", "logpdf"):
            self.require(
                callable(getattr(fitted.prior_, name, None)),
                f"prior_ has no method {name}",
            )
        self.require(values == z, "fit changes the values")
        before = fitted.prior_.posterior(z).mean.copy()
        values[:] = 0.0
        prior = fitted.prior_
        fitted.fit(z + 1.0)
        self.require(
            prior.posterior(z).mean == before,
            "a fitted prior changes when the values do, or with another fit",
        )
        return self.fit(z)

    def check_repeated_fits(
        self, fitted: Any, z: FloatArray, rng: np.random.Generator
    ) -> None:
        """The same values give the same result, in any shape and order."""
        mean = fitted.prior_.posterior(z).mean
        again = self.fit(z)
        self.require(
            again.prior_.posterior(z).mean == mean,
            "another fit to the same values gives another result",
        )
        self.require(
            again.fit(z).prior_.posterior(z).mean == mean,
            "fit gives another result when it is called again",
        )
        self.require(
            self.fit(z.reshape(3, -1)).prior_.posterior(z).mean == mean,
            "the result depends on the shape of the values",
        )
        permuted = self.fit(rng.permutation(z)).prior_.posterior(z).mean
        self.require(
            np.abs(permuted - mean) < 1e-6,
            "the result depends on the order of the values",
        )
        copy = pickle.loads(pickle.dumps(fitted))
        self.require(
            copy.prior_.posterior(z).mean == mean, "pickling changes the result"
        )

    def check_posterior(self, prior: Any, z: FloatArray) -> None:
        """The summaries are possible, and go together."""
        posterior = prior.posterior(z)
        mean, prob_zero, sd, lfsr = (getattr(posterior, name) for name in _SUMMARIES)
        self.require(
            (prob_zero >= 0) & (prob_zero <= 1), "prob_zero is not a probability"
        )
        self.require((lfsr >= 0) & (lfsr <= 1), "lfsr is not a probability")
        self.require(sd >= 0, "sd is negative")
        self.require(lfsr >= prob_zero - _ROUNDING, "lfsr is less than prob_zero")
        # P(eta <= 0) and P(eta >= 0) sum to 1 + P(eta = 0), and lfsr is the smaller.
        self.require(
            lfsr <= (1 + prob_zero) / 2 + _ROUNDING,
            "lfsr is larger than prob_zero allows",
        )
        ends: list[tuple[FloatArray, FloatArray]] = []
        for level in (0.5, 0.9, 0.99):
            lower, upper = posterior.interval(level)
            self.require(
                lower <= upper, f"the ends of interval({level}) are in the wrong order"
            )
            # Cantelli's inequality: how far a quantile can be from the mean.
            tail = (1 - level) / 2
            far, near = np.sqrt((1 - tail) / tail), np.sqrt(tail / (1 - tail))
            room = 1e-9 * (1 + np.abs(mean))
            self.require(
                (lower >= mean - far * sd - room)
                & (lower <= mean + near * sd + room)
                & (upper >= mean - near * sd - room)
                & (upper <= mean + far * sd + room),
                f"interval({level}) is not that of a distribution with this mean "
                "and sd",
            )
            if ends:
                self.require(
                    (lower <= ends[-1][0]) & (upper >= ends[-1][1]),
                    f"interval({level}) does not contain one of a lower level",
                )
            ends.append((lower, upper))
        for level in (0.0, 1.0):
            self._require_error(
                partial(posterior.interval, level),
                f"interval({level})",
                "level",
            )
        error = np.mean((mean - _ETA) ** 2)
        self.require(
            error < 0.5 * np.mean((z - _ETA) ** 2),
            "the posterior means have more than half the squared error of the values",
        )

    def check_shapes(self, prior: Any, z: FloatArray) -> None:
        """Results have the shape of the values, and do not depend on it."""
        flat = prior.posterior(z)
        for shape in ((), (30, 50), (5, 300)):
            values = z.reshape(shape) if shape else z[0]
            posterior = prior.posterior(values)
            results = {name: getattr(posterior, name) for name in _SUMMARIES}
            results["interval(0.9)"], _ = posterior.interval(0.9)
            results["logpdf"] = prior.logpdf(values)
            for name, found in results.items():
                self.require(
                    np.shape(found) == shape and np.isfinite(found).all(),
                    f"{name} of values of shape {shape} is not finite and of that "
                    f"shape, but of shape {np.shape(found)}",
                )
            for name in _SUMMARIES:
                want = getattr(flat, name)
                got = np.ravel(results[name])
                self.require(
                    np.abs(got - want[: got.size]) <= _ROUNDING * (1 + np.abs(got)),
                    f"{name} depends on the shape of the values",
                )
        empty = prior.posterior([])
        self.require(
            empty.mean.shape == (0,), "the posterior of no values is not empty"
        )

    def check_marginal(self, prior: Any, monotone: bool) -> None:
        """The marginal density is one, and belongs to the posterior."""
        # Wide enough for a slab with exponential tails.
        grid = np.linspace(-150, 150, 60_001)
        mass = np.exp(prior.logpdf(grid)).sum() * (grid[1] - grid[0])
        self.require(
            abs(mass - 1) < 1e-6, f"the density of logpdf integrates to {mass:.6f}"
        )
        grid, step = np.linspace(-5, 6, 111), 1e-5
        slope = (prior.logpdf(grid + step) - prior.logpdf(grid - step)) / (2 * step)
        mean = prior.posterior(grid).mean
        off = np.abs(mean - grid - slope)
        worst = int(np.argmax(off - 1e-7 * np.abs(grid + slope)))
        self.require(
            off <= 1e-5 + 1e-7 * np.abs(grid + slope),
            "posterior and logpdf do not go together: by Tweedie's formula the mean "
            f"at z = {grid[worst]:.1f} is {grid[worst] + slope[worst]:.6f}, and not "
            f"{mean[worst]:.6f}",
        )
        far = prior.posterior(np.array([-1e6, 1e6]))
        self.require(
            np.isfinite([far.mean, far.sd]), "mean or sd is not finite for z = 1e6"
        )
        self.require(far.prob_zero == 0, "prob_zero is not 0 for z = 1e6")
        if monotone:
            grid = np.linspace(-8, 8, 801)
            rise = np.diff(prior.posterior(grid).mean)
            lowest = int(np.argmin(rise))
            self.require(
                rise >= -1e-9,
                f"the posterior mean falls with z near z = {grid[lowest]:.2f}",
            )

    def check_scales(self, z: FloatArray) -> None:
        """Each value may have its own noise scale, and all of them another unit."""
        scale = np.linspace(0.5, 2, len(z))
        posterior = self.fit(z, scale).prior_.posterior(z, scale)
        for name in _SUMMARIES:
            self.require(
                np.isfinite(getattr(posterior, name)),
                f"{name} is not finite when each value has a scale",
            )
        one = self.fit(z).prior_.posterior(z)
        same = self.fit(z, np.ones(len(z))).prior_.posterior(z, np.ones(len(z)))
        self.require(
            np.abs(one.mean - same.mean) < 1e-6,
            "a scale of 1 for all and for each value give different results",
        )

    def check_awkward_values(self, z: FloatArray) -> None:
        """Single and equal values, ties and an outlier."""
        for words, values in {
            "a single zero": np.zeros(1),
            "a single value": np.array([1.5]),
            "equal values": np.full(50, 2.0),
            "many equal values": np.zeros(1500),
            "tied values": np.rint(z),
            "an outlier": np.append(z, 1e6),
        }.items():
            posterior = self.fit(values).prior_.posterior(values)
            for name in _SUMMARIES:
                found = getattr(posterior, name)
                self.require(np.isfinite(found), f"{name} of {words} is not finite")
            _, first, which = np.unique(values, return_index=True, return_inverse=True)
            self.require(
                posterior.mean == posterior.mean[first][which],
                f"equal values among {words} have different posterior means",
            )

    def check_bad_values(self) -> None:
        """`fit` refuses values that it cannot use, and says which."""
        for values, scale, message in _BAD_VALUES:
            self._require_error(
                partial(self.fit, values, scale),
                f"fit({values}, {scale})",
                message,
            )

    def _require_error(self, call: Callable[[], Any], words: str, message: str) -> None:
        try:
            call()
        except ValueError as error:
            self.require(
                re.search(message, str(error)),
                f"the error of {words} does not say {message!r}, but: {error}",
            )
            return
        self.require(False, f"{words} raises no ValueError")
