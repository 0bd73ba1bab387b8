"""True covariance matrices, which are not formed where this can be avoided.

Each object honours `Covariance`. With ``D = diag(S)`` and the correlation matrix
``R = D^-1/2 S D^-1/2``, the costs are

==========  ===============  ===================  ==============================
object      quadratic form   solve                lambda_max(R)
==========  ===============  ===================  ==============================
`Diagonal`  O(p)             O(p)                 exact: 1
`AR1`       O(p), recursion  O(p), tridiagonal    exact: one root in one unknown
`LowRank`   O(pk)            O(pk^2), Woodbury    exact: one root in one unknown
`Dense`     O(p^2)           O(p^3), Cholesky     exact to p = 500, then Lanczos
==========  ===============  ===================  ==============================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.optimize import brentq
from scipy.sparse.linalg import eigsh

from ebda.covariance import low_rank
from ebda.covariance.autoregressive import transposed, unwhiten_transposed, whiten
from ebda.typing import FloatArray

# Up to this size computing all eigenvalues is cheap; beyond it Lanczos iterations find
# the largest one.
_LANCZOS_FROM = 500


@runtime_checkable
class Covariance(Protocol):
    """A p x p covariance matrix S; p is given where the object does not fix it."""

    def quadratic_form(self, a: FloatArray) -> float:
        """``a' S a``."""

    def solve(self, a: FloatArray) -> FloatArray:
        """``S^-1 a``."""

    def diagonal(self, p: int) -> FloatArray:
        """The p variances, read-only; a ValueError if the matrix is not p x p."""

    def lambda_max(self, p: int) -> float:
        """The largest eigenvalue of the correlation matrix R."""


@dataclass(frozen=True, eq=False, init=False)
class Diagonal:
    """Independent features: ``S = diag(variance)``.

    Parameters
    ----------
    variance : float or array-like of shape (p,)
        Variance of all features, or of each.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.theory import Diagonal
    >>> Diagonal([1.0, 4.0]).quadratic_form(np.array([1.0, 2.0]))
    17.0
    """

    variance: FloatArray

    def __init__(self, variance: npt.ArrayLike) -> None:
        object.__setattr__(self, "variance", _positive("variance", variance))

    def quadratic_form(self, a: FloatArray) -> float:
        return float(np.sum(self.variance * a * a))

    def solve(self, a: FloatArray) -> FloatArray:
        return a / self.variance

    def diagonal(self, p: int) -> FloatArray:
        return _per_feature("variance", self.variance, p)

    def lambda_max(self, p: int) -> float:
        return 1.0


@dataclass(frozen=True, eq=False, init=False)
class AR1:
    """Autoregressive features: ``S_ij = sd_i sd_j rho**abs(i - j)``.

    The correlation matrix R is the inverse of ``W' W`` with a bidiagonal W
    (:mod:`ebda.covariance.autoregressive`), so that ``a' S a`` is a sum of squares and
    cannot be negative. The eigenvalues of R are
    ``(1 - rho^2) / (1 - 2 rho cos(t) + rho^2)``; for the largest, t is the only root
    of ``cos((p+1) t/2) = |rho| cos((p-1) t/2)`` between 0 and ``pi/(p+1)``.

    Parameters
    ----------
    rho : float
        Correlation of neighbouring features, between -1 and 1.
    variance : float or array-like of shape (p,)
        Variance of all features, or of each.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.theory import AR1
    >>> AR1(0.5).quadratic_form(np.array([1.0, 1.0]))
    3.0
    >>> AR1(0.5).solve(np.array([1.5, 1.5])).round(12)
    array([1., 1.])
    >>> round(AR1(0.5).lambda_max(2), 12), round(AR1(0.5).lambda_max(10**6), 6)
    (1.5, 3.0)
    """

    rho: float
    variance: FloatArray

    def __init__(self, rho: float, variance: npt.ArrayLike = 1.0) -> None:
        if not -1 < rho < 1:
            raise ValueError(f"rho must lie between -1 and 1, got {rho!r}")
        object.__setattr__(self, "rho", float(rho))
        object.__setattr__(self, "variance", _positive("variance", variance))

    def quadratic_form(self, a: FloatArray) -> float:
        scores = unwhiten_transposed(a * np.sqrt(self.variance), self.rho)
        return float(scores @ scores)

    def solve(self, a: FloatArray) -> FloatArray:
        sd = np.sqrt(self.variance)
        return transposed(whiten(a / sd, self.rho), self.rho) / sd

    def diagonal(self, p: int) -> FloatArray:
        return _per_feature("variance", self.variance, p)

    def lambda_max(self, p: int) -> float:
        r = abs(self.rho)
        if r == 0:
            return 1.0
        t = brentq(
            lambda t: np.cos((p + 1) * t / 2) - r * np.cos((p - 1) * t / 2),
            0.0,
            np.pi / (p + 1),
            xtol=1e-18,
        )
        return float((1 - r**2) / ((1 - r) ** 2 + 4 * r * np.sin(t / 2) ** 2))


@dataclass(frozen=True, eq=False, init=False)
class LowRank:
    """Common factors plus independent noise: ``S = L L' + diag(psi)``.

    With U the loadings of the correlation matrix R and ``D0 = 1 - |U_i|^2`` its noise,
    the largest eigenvalue l of R is 1 or solves ``lambda_max(U' (l - D0)^-1 U) = 1``,
    a k x k problem whose left side decreases in l.

    Parameters
    ----------
    loadings : array-like of shape (p, k)
        L; a vector means one factor.
    diagonal : float or array-like of shape (p,)
        psi, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.theory import LowRank
    >>> one_factor = LowRank([1.0, 1.0, 1.0], 1.0)
    >>> one_factor.quadratic_form(np.ones(3))
    12.0
    >>> one_factor.solve(np.full(3, 4.0)).round(12)
    array([1., 1., 1.])
    >>> round(one_factor.lambda_max(3), 12)
    2.0
    """

    loadings: FloatArray
    noise: FloatArray

    def __init__(self, loadings: npt.ArrayLike, diagonal: npt.ArrayLike) -> None:
        L = np.asarray(loadings, dtype=np.float64)
        L = L[:, None] if L.ndim == 1 else L
        if L.ndim != 2 or not np.isfinite(L).all():
            raise ValueError(
                f"loadings must be a finite matrix of shape (p, k), got shape {L.shape}"
            )
        psi = _per_feature("diagonal", _positive("diagonal", diagonal), len(L))
        object.__setattr__(self, "loadings", L)
        object.__setattr__(self, "noise", psi)

    def quadratic_form(self, a: FloatArray) -> float:
        scores = self.loadings.T @ a
        return float(scores @ scores + np.sum(self.noise * a * a))

    def solve(self, a: FloatArray) -> FloatArray:
        return low_rank.solve(self.loadings, self.noise, a)

    def diagonal(self, p: int) -> FloatArray:
        total = np.einsum("ij,ij->i", self.loadings, self.loadings) + self.noise
        return _per_feature("loadings", total, p)

    def lambda_max(self, p: int) -> float:
        U = self.loadings / np.sqrt(self.diagonal(p))[:, None]
        shared = np.einsum("ij,ij->i", U, U)
        # A feature without loadings is independent of the others: eigenvalue 1.
        U, shared = U[shared > 0], shared[shared > 0]

        def excess(above_one: float) -> float:
            inner = (U / (above_one + shared)[:, None]).T @ U
            return float(np.linalg.eigvalsh(inner)[-1]) - 1.0

        if len(U) == 0 or excess(0.0) <= 0:
            return 1.0
        most = float(np.linalg.eigvalsh(U.T @ U)[-1])
        return 1.0 + float(brentq(excess, 0.0, 2 * most, xtol=1e-14))


@dataclass(frozen=True, eq=False, init=False)
class Dense:
    """Any covariance, as a matrix.

    `lambda_max` uses a full eigendecomposition of R up to p = 500, and Lanczos
    iterations to machine precision beyond.

    Parameters
    ----------
    matrix : array-like of shape (p, p)
        Symmetric, with a positive diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.theory import Dense
    >>> Dense([[1.0, 0.5], [0.5, 1.0]]).quadratic_form(np.ones(2))
    3.0
    """

    matrix: FloatArray

    def __init__(self, matrix: npt.ArrayLike) -> None:
        S = np.asarray(matrix, dtype=np.float64)
        if S.ndim != 2 or S.shape[0] != S.shape[1] or not np.isfinite(S).all():
            raise ValueError(
                f"a covariance matrix must be square and finite, got shape {S.shape}"
            )
        if not np.allclose(S, S.T, rtol=1e-8, atol=1e-12 * np.abs(S).max(initial=0.0)):
            raise ValueError("a covariance matrix must be symmetric")
        _positive("the diagonal of the covariance", S.diagonal())
        object.__setattr__(self, "matrix", S)

    def quadratic_form(self, a: FloatArray) -> float:
        return max(float(a @ self.matrix @ a), 0.0)

    def solve(self, a: FloatArray) -> FloatArray:
        try:
            result: FloatArray = cho_solve(cho_factor(self.matrix), a)
        except LinAlgError:
            raise ValueError("the covariance matrix is not positive definite") from None
        return result

    def diagonal(self, p: int) -> FloatArray:
        return _per_feature("covariance", self.matrix.diagonal(), p)

    def lambda_max(self, p: int) -> float:
        sd = np.sqrt(self.diagonal(p))
        R = self.matrix / sd / sd[:, None]
        if p <= _LANCZOS_FROM:
            return float(eigh(R, eigvals_only=True)[-1])
        start = np.random.default_rng(0).normal(size=p)
        return float(eigsh(R, k=1, which="LA", v0=start, return_eigenvectors=False)[0])


def as_covariance(covariance: npt.ArrayLike | Covariance, p: int) -> Covariance:
    """Convert a number, an array or an object to a covariance of p features.

    Parameters
    ----------
    covariance : float, array-like of shape (p,) or (p, p), or Covariance
        A multiple of the identity, a diagonal, a matrix, or an object such as `AR1`
        or `LowRank`.
    p : int
        Number of features.

    Examples
    --------
    >>> from ebda.theory import AR1, as_covariance
    >>> as_covariance(2.0, 3).diagonal(3)
    array([2., 2., 2.])
    >>> as_covariance(AR1(0.9), 3)
    AR1(rho=0.9, variance=array(1.))
    """
    if not isinstance(covariance, Covariance):
        values = np.asarray(covariance, dtype=np.float64)
        if values.ndim > 2:
            raise ValueError(
                "covariance must be a number, a vector, a matrix or a covariance "
                f"object such as AR1; got an array of shape {values.shape}"
            )
        covariance = Dense(values) if values.ndim == 2 else Diagonal(values)
    covariance.diagonal(p)
    return covariance


def _positive(name: str, values: npt.ArrayLike) -> FloatArray:
    result = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(result).all() and (result > 0).all()):
        raise ValueError(f"{name} must be positive and finite")
    return result


def _per_feature(name: str, values: FloatArray, p: int) -> FloatArray:
    if values.shape not in ((), (p,)):
        raise ValueError(
            f"{name} is for {values.shape[0]} features, but there are {p}"
            if values.ndim == 1
            else f"{name} must be a number or a vector, got shape {values.shape}"
        )
    return np.broadcast_to(values, (p,))


def vector(name: str, values: npt.ArrayLike, size: int | None = None) -> FloatArray:
    """Finite numbers, as many as there are features if that is known."""
    result = np.asarray(values, dtype=np.float64)
    if result.ndim != 1 or result.size == 0 or result.size != (size or result.size):
        wanted = "a vector" if size is None else f"a vector of {size} features"
        raise ValueError(f"{name} must be {wanted}, got shape {result.shape}")
    if not np.isfinite(result).all():
        raise ValueError(f"{name} must be finite")
    return result
