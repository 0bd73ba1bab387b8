"""The linear program of LPD (Cai and Liu 2012), for a covariance of low rank.

With the residuals A (n x p, such that ``S = A' A``) and ``M = S + r I``,

    min |b|_1  subject to  |M b - d|_inf <= t,
    max d' v - t |v|_1  subject to  |M v|_inf <= 1    (its dual).

Few of the constraints of either are active. The program of some rows and columns is
solved by HiGHS, with ``u = A b`` as n more variables, so that no product of features is
formed; then all rows and columns are checked, O(n p), and those that are violated join.
At the end both are feasible, and the gap between their values bounds what b could be
shorter: it certifies the solution, whatever found it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog

from ebda.typing import FloatArray

# Rows and columns that join in a round, at most.
_JOINING = 200
# By how much a constraint may be violated: HiGHS has 1e-7.
_TOLERANCE = 1e-8
_INFEASIBLE = 2


@dataclass(frozen=True, eq=False)
class Direction:
    """A solution of the linear program.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
        b.
    gap : float
        How much shorter than b, at most, any feasible vector is.
    excess : float
        By how much the largest residual exceeds the penalty.
    active : ndarray of bool of shape (n_features,)
        Rows that the program had at the end: where to start with a smaller penalty.
    """

    weights: FloatArray
    gap: float
    excess: float
    active: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LowRank:
    """``A' A + r I``."""

    A: FloatArray
    ridge: float

    def times(self, b: FloatArray) -> FloatArray:
        """The product with a vector."""
        product: FloatArray = (self.A @ b) @ self.A + self.ridge * b
        return product


def direction(
    matrix: LowRank,
    d: FloatArray,
    penalty: float,
    active: npt.NDArray[np.bool_] | None = None,
) -> Direction | None:
    """Solve the linear program; None where no vector is feasible.

    Parameters
    ----------
    matrix : LowRank
        M.
    d : ndarray of shape (n_features,)
        The differences.
    penalty : float
        t.
    active : ndarray of bool of shape (n_features,), optional
        Rows to start with, as an earlier solution has them.
    """
    beyond = np.abs(d) - penalty
    if (beyond <= 0).all():
        nothing = np.zeros(len(d), dtype=bool)
        return Direction(np.zeros(len(d)), 0.0, float(beyond.max()), nothing)
    rows = joining(beyond, np.zeros(len(d), dtype=bool))
    if active is not None:
        rows |= active
    columns = rows.copy()
    while True:
        found = _solve_part(matrix, d, penalty, rows, columns)
        if found is None:
            if columns.all():
                return None
            columns[:] = True
            continue
        b, v = found
        residual = np.abs(matrix.times(b) - d) - penalty
        slope = np.abs(matrix.times(v)) - 1
        new_rows, new_columns = joining(residual, rows), joining(slope, columns)
        if not (new_rows.any() or new_columns.any()):
            break
        rows |= new_rows
        columns |= new_rows | new_columns
    v /= 1 + max(float(slope.max()), 0.0)
    gap = np.abs(b).sum() - (d @ v - penalty * np.abs(v).sum())
    return Direction(b, float(gap), float(residual.max()), rows)


def path(
    matrix: LowRank, d: FloatArray, penalties: FloatArray
) -> Iterator[FloatArray | None]:
    """Solutions for descending penalties, each from the rows of the one before."""
    active = None
    for penalty in penalties:
        found = direction(matrix, d, penalty, active)
        if found is None:
            yield None
        else:
            active = found.active
            yield found.weights


def joining(excess: FloatArray, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The constraints outside that are violated most; ties join together.

    >>> joining(np.array([0.5, -1.0, 2.0]), np.array([False, False, True]))
    array([ True, False, False])
    """
    violated = (excess > _TOLERANCE) & ~inside
    if violated.sum() > _JOINING:
        least = np.partition(excess[violated], -_JOINING)[-_JOINING]
        violated &= excess >= least
    return violated


def _solve_part(
    matrix: LowRank,
    d: FloatArray,
    penalty: float,
    rows: npt.NDArray[np.bool_],
    columns: npt.NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray] | None:
    """b and v of the program of some rows and columns; None if it is infeasible.

    The variables are the positive and the negative part of b, and u.
    """
    n, p = matrix.A.shape
    i, j = rows.nonzero()[0], columns.nonzero()[0]
    of_rows = sparse.csr_array(matrix.A[:, i].T)
    of_columns = sparse.csr_array(matrix.A[:, j])
    # Every row is a column, too.
    diagonal = sparse.csr_array(
        (np.full(len(i), matrix.ridge), (np.arange(len(i)), np.searchsorted(j, i))),
        shape=(len(i), len(j)),
    )
    product: Any = sparse.hstack([diagonal, -diagonal, of_rows])
    solution = linprog(
        np.append(np.ones(2 * len(j)), np.zeros(n)),
        A_ub=sparse.vstack([product, -product]),
        b_ub=np.append(d[i] + penalty, penalty - d[i]),
        A_eq=sparse.hstack([of_columns, -of_columns, -sparse.eye_array(n)]),
        b_eq=np.zeros(n),
        bounds=[(0, None)] * (2 * len(j)) + [(None, None)] * n,
        method="highs-ds",
    )
    if solution.status == _INFEASIBLE:
        return None
    if solution.status != 0:
        raise ArithmeticError(
            f"HiGHS could not solve the linear program: {solution.message}"
        )
    b, v = np.zeros(p), np.zeros(p)
    b[j] = solution.x[: len(j)] - solution.x[len(j) : 2 * len(j)]
    slopes = solution.ineqlin.marginals
    v[i] = slopes[: len(i)] - slopes[len(i) :]
    return b, v
