"""The expected error of the classifier in a study of a given size, before any data.

Features are independent with known variances, and effects
``delta = (mu_2 - mu_1) / sd`` come from a known prior. With n samples per class,
``z ~ N(sqrt(n/2) delta, 1)``. The rule has weights ``a_j = sqrt(2/n) f(z_j)``, where f
is the posterior mean or another shrinkage, and its boundary goes through the midpoint
of the sample means, whose noise has variance 1/(2n) and is independent of z. Given z,
the score of a sample of class 2 is normal with mean ``sum_j a_j delta_j / 2`` and
variance ``c^2 sum_j a_j^2``, where ``c^2 = 1 + 1/(2n)``; class 1 is the mirror image.
As ``c sum_j a_j e_j`` with independent standard normal e_j has this variance, the
expected error is

    ``P(Y_1 + ... + Y_p <= 0)``, ``Y_j = a_j (delta_j / 2 + c e_j)``,

a tail probability of a sum of independent variables. The mean and variance of Y would
give a normal approximation. But its moment generating function
``M(s) = E exp(s a delta/2 + s^2 c^2 a^2/2)`` is just another integral over z, so that
the tail can be computed by inverting ``M^p`` along a line through the saddle point.
This is accurate also where a few features dominate the rule and the sum is far from
normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from ebda.priors.discrete import DiscretePrior
from ebda.rule.shrinkage import pointwise
from ebda.theory.quadrature import panel_rule, switch_points
from ebda.typing import FloatArray

ComplexArray = npt.NDArray[np.complex128]

# Range of the integrals over z on either side of its mean, width of their panels, and
# step of the grid on which jumps are sought.
_REACH = 9.0
_PANEL = 0.5
_GRID_STEP = 1 / 16
# Weights below this fraction of the largest one count as zero: with P(zero | z) that
# close to one they carry no information, and would make the inversion very slow.
_NEGLIGIBLE = 1e-6
# Panels of the inversion: each is wider than the last by this factor.
_GROWTH = 1.3
_MAX_PANELS = 200


@dataclass(frozen=True, eq=False)
class _Terms:
    """The distribution of one Y, given each atom.

    Parameters
    ----------
    prior : ndarray of shape (n_atoms,)
        Weight of each atom.
    a, mass : ndarray of shape (n_atoms, n_nodes)
        The weight of the rule at each node, and the probability of the node given the
        atom; zero where the weight is.
    zero : ndarray of shape (n_atoms,)
        P(a = 0) given each atom.
    shift : ndarray of shape (n_atoms, n_nodes)
        Mean of Y at each node.
    noise : float
        c.
    """

    prior: FloatArray
    a: FloatArray
    mass: FloatArray
    zero: FloatArray
    shift: FloatArray
    noise: float

    def moments(self) -> tuple[float, FloatArray, FloatArray]:
        """The mean of Y, and E Y and E Y^2 given each atom."""
        mean = np.sum(self.mass * self.shift, axis=1)
        square = self.shift**2 + (self.noise * self.a) ** 2
        return float(self.prior @ mean), mean, np.sum(self.mass * square, axis=1)

    def generating(self, s: ComplexArray) -> ComplexArray:
        """``E(exp(s Y) | atom)``, of shape (n_atoms, len(s))."""
        t = s[:, None, None]
        exponent = t * self.shift + (t * self.noise * self.a) ** 2 / 2
        moved: ComplexArray = np.einsum("stk,tk->ts", np.exp(exponent), self.mass)
        return moved + self.zero[:, None]


def expected_error(
    n: npt.ArrayLike,
    effects: DiscretePrior | npt.ArrayLike,
    pi0: float | None = None,
    *,
    n_features: int,
    weights: npt.ArrayLike | None = None,
    rule: str = "mean",
    zero_threshold: float = 0.5,
    fixed_counts: bool = False,
) -> FloatArray:
    """Expected error of a study with n samples per class.

    The mean over training sets of the exact error (equation 5) of a classifier that
    knows the variances and the prior of the effects. `EBClassifier` comes close to this
    limit when it has many features to learn the prior from. Features are independent
    and classes equally likely.

    Parameters
    ----------
    n : int or array-like
        Samples per class; several values give a curve.
    effects : DiscretePrior, or array-like of shape (n_atoms,)
        Prior of the mean differences, in units of the standard deviations of the
        features; or its atoms, with `weights`.
    pi0 : float, optional
        Proportion of features without effect. If given, `effects` describes the others.
    n_features : int
        Number of features p.
    weights : array-like of shape (n_atoms,), optional
        Weights of the atoms; equal by default.
    rule : {"mean", "sparse", "hard", "none"}
        As `shrinkage` in :class:`~ebda.EBClassifier`; "none" is the independence rule.
    zero_threshold : float
        Threshold kappa of the rules "sparse" and "hard".
    fixed_counts : bool
        Whether exactly ``p * weight`` features have each effect, as in the paper's
        studies. Otherwise each feature draws its effect from the prior.

    Returns
    -------
    float or ndarray
        Of the shape of `n`.

    Notes
    -----
    Exact up to quadrature, with a relative error of about 1e-6; the docstring of the
    module has the derivation. A rule that selects no feature has an error of one half.

    Examples
    --------
    Row (3, 50) of the paper's Table 1: 50 of 10,000 features differ by 3, with variance
    12.5. The mean over 50 simulated sets with 25 samples per class is 0.0288.

    >>> from ebda.theory import expected_error
    >>> study = dict(effects=[3 / 12.5**0.5], pi0=0.995, n_features=10_000)
    >>> expected_error([12, 25, 50], **study, fixed_counts=True).round(3)
    array([0.153, 0.03 , 0.004])
    """
    prior = _effect_prior(effects, weights, pi0)
    sizes = np.asarray(n, dtype=np.float64)
    if not (np.isfinite(sizes).all() and (sizes >= 1).all()):
        raise ValueError("n must be at least 1 sample per class")
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features!r}")
    if rule not in pointwise():
        raise ValueError(f"rule must be one of {[*pointwise()]}, got {rule!r}")
    out = np.empty(sizes.size)
    for i, size in enumerate(sizes.ravel()):
        terms = _terms(size, prior, rule, zero_threshold)
        out[i] = _lower_tail(terms, n_features, fixed_counts)
    return out.reshape(sizes.shape)[()]


def _effect_prior(
    effects: DiscretePrior | npt.ArrayLike,
    weights: npt.ArrayLike | None,
    pi0: float | None,
) -> DiscretePrior:
    """The prior of the effects, with the features without effect."""
    if isinstance(effects, DiscretePrior):
        if weights is not None:
            raise ValueError("weights must not be given if effects is a prior")
        prior = effects
    else:
        equal = np.ones(np.shape(effects))
        prior = DiscretePrior(effects, equal if weights is None else weights)
    if pi0 is None:
        return prior
    if not 0 <= pi0 <= 1:
        raise ValueError(f"pi0 must lie between 0 and 1, got {pi0!r}")
    rest = (1 - pi0) * prior.weights
    return DiscretePrior(np.append(prior.atoms, 0.0), np.append(rest, pi0))


def _terms(n: float, prior: DiscretePrior, rule: str, kappa: float) -> _Terms:
    """Integrate over z given each atom, for n samples per class."""
    scale = np.sqrt(2 / n)
    of_eta = prior.rescale(1 / scale)
    eta = of_eta.atoms

    def estimate(z: FloatArray) -> FloatArray:
        return pointwise()[rule].estimate(z, of_eta.posterior(z), kappa)

    grid = np.arange(eta[0] - _REACH, eta[-1] + _REACH + _GRID_STEP, _GRID_STEP)
    jumps, _ = switch_points(estimate, grid)
    around = np.arange(-_REACH, _REACH + _PANEL, _PANEL)
    inside = np.clip(jumps, eta[:, None] - _REACH, eta[:, None] + _REACH)
    edges = np.sort(np.concatenate([eta[:, None] + around, inside], axis=1), axis=1)
    z, width = panel_rule(edges)
    mass = width * np.exp(-0.5 * (z - eta[:, None]) ** 2)
    mass /= mass.sum(axis=1, keepdims=True)
    a = scale * estimate(z)
    a[np.abs(a) <= _NEGLIGIBLE * np.abs(a).max()] = 0.0
    zero = np.sum(mass * (a == 0), axis=1)
    used = (a != 0) & (mass > 0)
    # Nodes that no atom uses are dropped: with the sparse rule most of them.
    columns = used.any(axis=0)
    a, mass = a[:, columns], np.where(used, mass, 0.0)[:, columns]
    shift = a * prior.atoms[:, None] / 2
    return _Terms(prior.weights, a, mass, zero, shift, np.sqrt(1 + 0.5 / n))


def _lower_tail(terms: _Terms, p: int, fixed_counts: bool) -> float:
    """``P(sum of p Ys <= 0)``, with half of the atom at zero, where no feature is used.

    With ``K(s) = log E exp(s sum Y)``, minus the atom, which does not decay in y, it is

        ``-(1/pi) int_0^inf Re(exp(K(s)) / s) dy`` along ``s = tau + i y``

    for any ``tau < 0``, plus one half at ``tau = 0``. At the saddle point of K nothing
    cancels, and small errors keep their relative accuracy.
    """

    def mixed(of_atoms: ComplexArray) -> ComplexArray:
        """The product of the generating functions of p features."""
        if fixed_counts:
            powers = np.prod(of_atoms ** (p * terms.prior)[:, None], axis=0)
        else:
            powers = (of_atoms.T @ terms.prior) ** p
        return np.asarray(powers, dtype=np.complex128)

    mean, means, squares = terms.moments()
    variance = terms.prior @ (squares - (means**2 if fixed_counts else mean**2))
    if variance <= 0:
        return 0.5
    sd = np.sqrt(p * variance)
    atom = float(mixed(terms.zero[:, None].astype(np.complex128))[0].real)

    def height(tau: float) -> float:
        M = terms.generating(np.array([tau + 0j])).real[:, 0]
        per_feature = terms.prior @ np.log(M) if fixed_counts else terms.prior @ M
        return float(per_feature)

    with np.errstate(over="ignore"):
        ends = (-3 * mean / variance, 0.0)
        tau = float(minimize_scalar(height, bounds=ends, method="bounded").x)
    # Too close to the pole at zero: the error is large, and tau = 0 is accurate enough.
    tau = tau if tau * sd < -1 else 0.0
    total, left = 0.0, 0.0
    width = 0.5 / max(sd, terms.noise * np.abs(terms.a).max())
    for _ in range(_MAX_PANELS):
        y, dy = panel_rule(np.array([left, left + width]))
        s = np.asarray(tau + 1j * y, dtype=np.complex128)
        values = (mixed(terms.generating(s)) - atom) / s
        total += float(dy @ values.real)
        left, width = left + width, width * _GROWTH
        if np.abs(values).max() * left < 1e-8 * (abs(total) if tau else 1.0):
            break
    rest = (1 - atom) / 2 if tau == 0 else 0.0
    return float(atom / 2 + rest - total / np.pi)
