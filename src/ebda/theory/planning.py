"""What error a study will reach: the classifier's expected error before any data.

Features are independent with known variances, and effects
``delta = (mu_2 - mu_1) / sd`` come from a known prior. With n samples a class,
``z ~ N(sqrt(n/2) delta, 1)``. The rule has weights ``a_j = sqrt(2/n) f(z_j)``, with f
the posterior mean or its kin, and cuts at the midpoint of the sample means, whose noise
has variance 1/(2n) and is independent of z. Given z, the score of a sample of class 2
is normal with mean ``sum_j a_j delta_j / 2`` and variance ``c^2 sum_j a_j^2``, where
``c^2 = 1 + 1/(2n)``; class 1 mirrors it. As ``sum_j a_j e_j`` with independent standard
normal e_j has just this spread, the expected error is

    ``P(Y_1 + ... + Y_p <= 0)``, ``Y_j = a_j (delta_j / 2 + c e_j)``,

a tail of a sum of independent variables. Mean and variance of Y give its Gaussian
limit, but its generating function ``M(s) = E exp(s a delta/2 + s^2 c^2 a^2/2)`` is just
another integral over z, so the tail itself is had by inverting ``M^p``, through the
saddle point: right also where the few features that carry the rule make no limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from ebda.priors.posterior import DiscretePosterior, Posterior
from ebda.rule import shrinkage
from ebda.theory.quadrature import panel_rule, switch_points
from ebda.typing import FloatArray

ComplexArray = npt.NDArray[np.complex128]

# z is integrated this far on either side of its mean, and jumps are sought so finely.
_REACH = 9.0
_PANEL = 0.5
_GRID_STEP = 1 / 16
# Weights below this share of the largest one count as zero: with P(zero | z) that near
# to one they carry no information, and would stretch the inversion without end.
_NEGLIGIBLE = 1e-6
# Panels of the inversion: each is wider than the last by this factor.
_GROWTH = 1.3
_MAX_PANELS = 200


def _unshrunk(z: FloatArray, posterior: Posterior, kappa: float) -> FloatArray:
    return z


RULES: dict[str, Callable[[FloatArray, Posterior, float], FloatArray]] = {
    "mean": shrinkage.mean,
    "sparse": shrinkage.sparse,
    "hard": shrinkage.hard,
    "none": _unshrunk,
}


@runtime_checkable
class _Effects(Protocol):
    """A discrete prior, such as `ebda.priors.DiscretePrior`."""

    atoms: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class _Terms:
    """The distribution of one Y, atom by atom.

    Parameters
    ----------
    prior : ndarray of shape (n_atoms,)
        Weight of each atom.
    a, mass : ndarray of shape (n_atoms, n_nodes)
        The rule's weight at each node, and the probability of the node given the
        atom; zero where a is.
    zero : ndarray of shape (n_atoms,)
        P(a = 0) given the atom.
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
        """E Y given each atom, and E Y^2; the overall mean first."""
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
    effects: _Effects | npt.ArrayLike,
    pi0: float | None = None,
    *,
    n_features: int,
    weights: npt.ArrayLike | None = None,
    rule: str = "mean",
    zero_threshold: float = 0.5,
    fixed_counts: bool = False,
) -> FloatArray:
    """Error that a study of n samples a class will reach.

    The mean, over training sets, of the exact error (equation 5) of the classifier
    that knows the variances and the prior of the effects: a limit that
    `EBClassifier` comes close to when it has many features to learn the prior from.
    Features are independent and classes equally likely.

    Parameters
    ----------
    n : int or array-like
        Samples a class; several give a curve.
    effects : DiscretePrior, or array-like of shape (n_atoms,)
        Prior of the mean differences in units of the features' standard deviation.
        Or its atoms, with `weights`.
    pi0 : float, optional
        Share of features without effect. If given, `effects` describes the others.
    n_features : int
        p.
    weights : array-like of shape (n_atoms,), optional
        Of the atoms; equal if not given.
    rule : {"mean", "sparse", "hard", "none"}
        As the `shrinkage` of the classifier; "none" is the independence rule.
    zero_threshold : float
        kappa of the rules "sparse" and "hard".
    fixed_counts : bool
        Whether exactly ``p * weight`` features have each effect, as in the paper's
        studies, or each feature draws its own.

    Returns
    -------
    float or ndarray
        With the shape of n.

    Notes
    -----
    Exact up to quadrature (about 1e-6 of the value); see the module for the derivation.
    When no feature passes the threshold the rule errs half of the time.

    Examples
    --------
    Row (3, 50) of the paper's Table 1: 50 of 10,000 features differ by 3, with variance
    12.5. The limit measured over 50 simulated sets of 25 a class is 0.0288.

    >>> from ebda.theory import expected_error
    >>> study = dict(effects=[3 / 12.5**0.5], pi0=0.995, n_features=10_000)
    >>> expected_error([12, 25, 50], **study, fixed_counts=True).round(3)
    array([0.153, 0.03 , 0.004])
    """
    atoms, mass = _effect_prior(effects, weights, pi0)
    sizes = np.asarray(n, dtype=np.float64)
    if not (np.isfinite(sizes).all() and (sizes >= 1).all()):
        raise ValueError("n must be at least 1: samples a class")
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features!r}")
    if rule not in RULES:
        raise ValueError(f"rule must be one of {sorted(RULES)}, got {rule!r}")
    out = np.empty(sizes.size)
    for i, size in enumerate(sizes.ravel()):
        terms = _terms(size, atoms, mass, rule, zero_threshold)
        out[i] = _lower_tail(terms, n_features, fixed_counts)
    return out.reshape(sizes.shape)[()]


def _effect_prior(
    effects: _Effects | npt.ArrayLike,
    weights: npt.ArrayLike | None,
    pi0: float | None,
) -> tuple[FloatArray, FloatArray]:
    """Distinct atoms, ascending, and their weights of sum one."""
    if isinstance(effects, _Effects):
        if weights is not None:
            raise ValueError("weights belong to atoms; effects is a prior here")
        atoms, mass = effects.atoms, effects.weights
    else:
        atoms = np.atleast_1d(np.asarray(effects, dtype=np.float64))
        mass = np.asarray(
            np.ones(atoms.shape) if weights is None else weights, dtype=np.float64
        )
    if atoms.ndim != 1 or atoms.shape != mass.shape or atoms.size == 0:
        raise ValueError(
            f"effects and weights must be vectors of one length; got shapes "
            f"{atoms.shape} and {mass.shape}"
        )
    if not (np.isfinite(atoms).all() and (mass >= 0).all() and 0 < mass.sum() < np.inf):
        raise ValueError("effects must be finite, weights non-negative, not all zero")
    mass = mass / mass.sum()
    if pi0 is not None:
        if not 0 <= pi0 <= 1:
            raise ValueError(f"pi0 must lie between 0 and 1, got {pi0!r}")
        atoms = np.append(atoms, 0.0)
        mass = np.append((1 - pi0) * mass, pi0)
    distinct, where = np.unique(atoms[mass > 0], return_inverse=True)
    total: FloatArray = np.zeros(distinct.size)
    np.add.at(total, where, mass[mass > 0])
    return distinct, total


def _terms(
    n: float, atoms: FloatArray, prior: FloatArray, rule: str, kappa: float
) -> _Terms:
    """Integrate over z given each atom, for n samples a class."""
    scale = np.sqrt(2 / n)
    eta, log_prior = atoms / scale, np.log(prior)

    def estimate(z: FloatArray) -> FloatArray:
        posterior = DiscretePosterior(z, np.ones_like(z), eta, log_prior)
        return RULES[rule](z, posterior, kappa)

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
    # Nodes that no atom uses are left out: with the sparse rule, most.
    columns = used.any(axis=0)
    a, mass = a[:, columns], np.where(used, mass, 0.0)[:, columns]
    return _Terms(prior, a, mass, zero, a * atoms[:, None] / 2, np.sqrt(1 + 0.5 / n))


def _lower_tail(terms: _Terms, p: int, fixed_counts: bool) -> float:
    """``P(sum of p Ys <= 0)``; of an atom at zero, where no feature is used, half.

    With ``K(s) = log E exp(s sum Y)``, less the atom, which does not decay in y,

        ``-(1/pi) int_0^inf Re(exp(K(s)) / s) dy`` along ``s = tau + i y``

    for any ``tau < 0`` (at the saddle point of K nothing cancels, and small errors
    are exact in all digits), or a half more than that at ``tau = 0``.
    """

    def mixed(of_atoms: ComplexArray) -> ComplexArray:
        """The product over p features of what each atom contributes."""
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
    # Too near to the pole at zero, and the error is large: no need to go around.
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
