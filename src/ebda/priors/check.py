"""A check of the contract of prior families, for those of this package and others."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import clone

from ebda.priors.posterior import has_density
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
# Values that a family must be able to handle.
_AWKWARD_VALUES = {
    "a single zero": np.zeros(1),
    "a single value": np.array([1.5]),
    "equal values": np.full(50, 2.0),
    "many equal values": np.zeros(1500),
}
# Rounding error of probabilities that are compared with each other.
_ROUNDING = 1e-12

# What must hold, everywhere if it is an array, and what is wrong where it does not.
Clauses = Iterator[tuple[Any, str]]


def check_prior(estimator: Any, monotone: bool = True, one_sided: bool = False) -> None:
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
    one_sided : bool
        Whether effects can only be positive, and so are the ones that are drawn.

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
    eta = np.abs(_ETA) if one_sided else _ETA
    z = eta + rng.normal(size=len(eta))
    z.flags.writeable = False

    def fit(values: Any, scale: Any = 1.0) -> Any:
        return clone(estimator).fit(values, scale)

    clauses = chain(
        _parameters(clone(estimator), z),
        _values_are_left_alone(fit, z),
        _repeated_fits(fit, z, rng),
        _posterior(fit, z, eta),
        _shapes(fit, z),
        _marginal(fit, z, monotone, one_sided),
        _scales(fit, z),
        _awkward_values(fit, z),
        _bad_values(fit),
    )
    for holds, message in clauses:
        if not np.all(holds):
            raise AssertionError(f"{estimator!r}: {message}")


Fit = Callable[..., Any]


def _parameters(estimator: Any, z: FloatArray) -> Clauses:
    """`__init__` stores the parameters, and `fit` leaves them alone."""
    before = estimator.get_params()
    yield not hasattr(estimator, "prior_"), "there is a prior_ before any fit"
    yield estimator.fit(z) is estimator, "fit does not return the estimator"
    after = estimator.get_params()
    same = [after.get(name) is value for name, value in before.items()]
    yield all(same) and len(after) == len(before), "fit changes parameters"
    yield not hasattr(clone(estimator), "prior_"), "a clone of it is fitted"


def _values_are_left_alone(fit: Fit, z: FloatArray) -> Clauses:
    """`fit` sets a prior that is its own, and does not write into the values."""
    values = z.copy()
    fitted = fit(values)
    prior = fitted.prior_
    for name in ("posterior", "logpdf"):
        yield callable(getattr(prior, name, None)), f"prior_ has no method {name}"
    yield values == z, "fit changes the values"
    before = prior.posterior(z).mean.copy()
    values[:] = 0.0
    fitted.fit(z + 1.0)
    message = "a fitted prior changes when the values do, or with another fit"
    yield prior.posterior(z).mean == before, message


def _repeated_fits(fit: Fit, z: FloatArray, rng: np.random.Generator) -> Clauses:
    """The same values give the same result, in any shape and order."""

    def mean(fitted: Any) -> FloatArray:
        means: FloatArray = fitted.prior_.posterior(z).mean
        return means

    fitted, again = fit(z), fit(z)
    want = mean(fitted)
    yield mean(again) == want, "another fit to the same values gives another result"
    message = "fit gives another result when it is called again"
    yield mean(again.fit(z)) == want, message
    message = "the result depends on the shape of the values"
    yield mean(fit(z.reshape(3, -1))) == want, message
    message = "the result depends on the order of the values"
    yield np.abs(mean(fit(rng.permutation(z))) - want) < 1e-6, message
    copy = pickle.loads(pickle.dumps(fitted))
    yield mean(copy) == want, "pickling changes the result"


def _posterior(fit: Fit, z: FloatArray, eta: FloatArray) -> Clauses:
    """The summaries are possible, and go together."""
    posterior = fit(z).prior_.posterior(z)
    mean, prob_zero, sd, lfsr = (getattr(posterior, name) for name in _SUMMARIES)
    yield (prob_zero >= 0) & (prob_zero <= 1), "prob_zero is not a probability"
    yield (lfsr >= 0) & (lfsr <= 1), "lfsr is not a probability"
    yield sd >= 0, "sd is negative"
    yield lfsr >= prob_zero - _ROUNDING, "lfsr is less than prob_zero"
    # P(eta <= 0) and P(eta >= 0) sum to 1 + P(eta = 0), and lfsr is the smaller.
    possible = lfsr <= (1 + prob_zero) / 2 + _ROUNDING
    yield possible, "lfsr is larger than prob_zero allows"
    inner_lower, inner_upper = np.inf, -np.inf
    for level in (0.5, 0.9, 0.99):
        words = f"interval({level})"
        lower, upper = posterior.interval(level)
        yield lower <= upper, f"the ends of {words} are in the wrong order"
        # Cantelli's inequality: how far a quantile can be from the mean.
        tail = (1 - level) / 2
        far, near = np.sqrt((1 - tail) / tail) * sd, np.sqrt(tail / (1 - tail)) * sd
        room = 1e-9 * (1 + np.abs(mean))
        possible = (lower >= mean - far - room) & (lower <= mean + near + room)
        possible &= (upper >= mean - near - room) & (upper <= mean + far + room)
        message = f"{words} is not that of a distribution with this mean and sd"
        yield possible, message
        wider = (lower <= inner_lower) & (upper >= inner_upper)
        yield wider, f"{words} does not contain one of a lower level"
        inner_lower, inner_upper = lower, upper
    for level in (0.0, 1.0):
        call = partial(posterior.interval, level)
        yield from _refusal(call, f"interval({level})", "level")
    error, error_of_z = np.mean((mean - eta) ** 2), np.mean((z - eta) ** 2)
    message = "the posterior means have more than half the squared error of the values"
    yield error < 0.5 * error_of_z, message


def _shapes(fit: Fit, z: FloatArray) -> Clauses:
    """Results have the shape of the values, and do not depend on it."""
    prior = fit(z).prior_
    flat = prior.posterior(z)
    for shape in ((), (30, 50), (5, 300)):
        values = z.reshape(shape) if shape else z[0]
        posterior = prior.posterior(values)
        results = {name: getattr(posterior, name) for name in _SUMMARIES}
        results["interval(0.9)"], _ = posterior.interval(0.9)
        if has_density(prior):
            results["logpdf"] = prior.logpdf(values)
        for name, found in results.items():
            yield (
                np.shape(found) == shape and np.isfinite(found).all(),
                f"{name} of values of shape {shape} is not finite and of that "
                f"shape, but of shape {np.shape(found)}",
            )
        for name in _SUMMARIES:
            got = np.ravel(results[name])
            off = np.abs(got - getattr(flat, name)[: got.size])
            message = f"{name} depends on the shape of the values"
            yield off <= _ROUNDING * (1 + np.abs(got)), message
    is_empty = prior.posterior([]).mean.shape == (0,)
    yield is_empty, "the posterior of no values is not empty"


def _marginal(fit: Fit, z: FloatArray, monotone: bool, one_sided: bool) -> Clauses:
    """The posterior is that of a prior, and belongs to the density if there is one."""
    prior = fit(z).prior_
    yield from _density(prior) if has_density(prior) else _no_density(prior)
    far = prior.posterior(np.array([-1e6, 1e6]))
    yield np.isfinite([far.mean, far.sd]), "mean or sd is not finite for z = 1e6"
    zero = far.prob_zero[1:] if one_sided else far.prob_zero
    yield zero == 0, "prob_zero is not 0 for z = 1e6"
    grid = np.linspace(-8, 8, 801)
    rise = np.diff(prior.posterior(grid).mean)
    message = f"the posterior mean falls with z near z = {grid[np.argmin(rise)]:.2f}"
    yield not monotone or rise.min() >= -1e-9, message


def _density(prior: Any) -> Clauses:
    """The marginal density is one, and belongs to the posterior."""
    # Equal steps near zero, and wide enough for a slab with the tails of a Cauchy.
    place = np.linspace(-30, 30, 40_001)
    grid, slope = np.sinh(place), np.cosh(place)
    mass = np.exp(prior.logpdf(grid)) @ slope * (place[1] - place[0])
    yield abs(mass - 1) < 1e-6, f"the density of logpdf integrates to {mass:.6f}"
    grid, step = np.linspace(-5, 6, 111), 1e-5
    slope = (prior.logpdf(grid + step) - prior.logpdf(grid - step)) / (2 * step)
    mean, tweedie = prior.posterior(grid).mean, grid + slope
    excess = np.abs(mean - tweedie) - 1e-7 * np.abs(tweedie)
    worst = int(np.argmax(excess))
    yield (
        excess[worst] <= 1e-5,
        "posterior and logpdf do not go together: by Tweedie's formula the mean at "
        f"z = {grid[worst]:.1f} is {tweedie[worst]:.6f}, and not {mean[worst]:.6f}",
    )


def _no_density(prior: Any) -> Clauses:
    """Without a density `logpdf` says so, and the posterior has its own slope."""
    try:
        prior.logpdf(0.0)
    except TypeError as error:
        says_so = "no marginal density" in str(error)
        yield says_so, f"the error of logpdf does not say that there is none: {error}"
    else:
        yield False, "has_density is False, but logpdf raises no TypeError"
    grid, step = np.linspace(-5, 6, 111), 1e-5
    slope = getattr(prior.posterior(grid), "mean_slope", None)
    yield slope is not None, "a posterior without a density has no mean_slope"
    ends = (prior.posterior(grid + sign * step).mean for sign in (1, -1))
    excess = np.abs(np.subtract(*ends) / (2 * step) - slope)
    yield excess <= 1e-5, "mean_slope is not the derivative of the posterior mean"


def _scales(fit: Fit, z: FloatArray) -> Clauses:
    """Each value may have its own noise scale, and all of them another unit."""
    scale, ones = np.linspace(0.5, 2, len(z)), np.ones(len(z))
    posterior = fit(z, scale).prior_.posterior(z, scale)
    for name in _SUMMARIES:
        message = f"{name} is not finite when each value has a scale"
        yield np.isfinite(getattr(posterior, name)), message
    one, same = fit(z).prior_.posterior(z), fit(z, ones).prior_.posterior(z, ones)
    message = "a scale of 1 for all and for each value give different results"
    yield np.abs(one.mean - same.mean) < 1e-6, message


def _awkward_values(fit: Fit, z: FloatArray) -> Clauses:
    """Single and equal values, ties and an outlier."""
    drawn = {"tied values": np.rint(z), "an outlier": np.append(z, 1e6)}
    for words, values in (_AWKWARD_VALUES | drawn).items():
        posterior = fit(values).prior_.posterior(values)
        for name in _SUMMARIES:
            finite = np.isfinite(getattr(posterior, name))
            yield finite, f"{name} of {words} is not finite"
        _, first, which = np.unique(values, return_index=True, return_inverse=True)
        message = f"equal values among {words} have different posterior means"
        yield posterior.mean == posterior.mean[first][which], message


def _bad_values(fit: Fit) -> Clauses:
    """`fit` refuses values that it cannot use, and says which."""
    for values, scale, message in _BAD_VALUES:
        call = partial(fit, values, scale)
        yield from _refusal(call, f"fit({values}, {scale})", message)


def _refusal(call: Callable[[], Any], words: str, message: str) -> Clauses:
    try:
        call()
    except ValueError as error:
        says_so = re.search(message, str(error)) is not None
        yield says_so, f"the error of {words} does not say {message!r}, but: {error}"
    else:
        yield False, f"{words} raises no ValueError"
