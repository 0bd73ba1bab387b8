"""Powers of a large positive definite matrix times vectors, by Lanczos's method.

After k steps from a vector v the matrix A is known on the span of ``v, A v, ...,
A^(k-1) v``, as a tridiagonal matrix T in an orthonormal basis V, and

    A^a v ~ |v| V T^a e_1 .

The error falls as fast as that of the best polynomial of degree k - 1 on the
eigenvalues of A, without any knowledge of these.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh_tridiagonal

from ebda.typing import FloatArray

# The result is looked at after ten steps, and again after ten or a fifth more, until it
# no longer changes.
_FIRST = 10
_MORE = 1.2
_TOLERANCE = 1e-9
# With more steps than this, and ten for each dimension, something is wrong.
_STEPS = 100
# A direction this small, relative to the first, is rounding.
_EXHAUSTED = 1e-13


def power(
    times: Callable[[FloatArray], FloatArray], exponent: float, vector: FloatArray
) -> FloatArray:
    """``A^exponent v``.

    Parameters
    ----------
    times : callable
        Multiplies a vector with A, symmetric and positive definite.
    exponent : float
        Any.
    vector : ndarray of shape (n,)
        v; not changed.

    Examples
    --------
    >>> A = np.array([[5.0, 4.0], [4.0, 5.0]])
    >>> power(lambda v: A @ v, 0.5, np.array([1.0, 0.0])).round(12)
    array([2., 1.])
    """
    length = float(np.linalg.norm(vector))
    if length == 0:
        return np.zeros_like(vector)
    basis = [vector / length]
    diagonal: list[float] = []
    beside: list[float] = []
    before, look = np.zeros(0), _FIRST
    for _ in range(_STEPS + 10 * len(vector)):
        image = times(basis[-1])
        if beside:
            image = image - beside[-1] * basis[-2]
        diagonal.append(float(image @ basis[-1]))
        image = image - diagonal[-1] * basis[-1]
        norm = float(np.linalg.norm(image))
        # Rounding lets the basis lose its orthogonality, which costs steps alone.
        done = norm <= _EXHAUSTED * abs(diagonal[0])
        if done or len(diagonal) == look:
            found = _first_column(diagonal, beside, exponent)
            change = found.copy()
            change[: len(before)] -= before
            if done or np.linalg.norm(change) <= _TOLERANCE * np.linalg.norm(found):
                break
            before, look = found, max(look + _FIRST, int(_MORE * look))
        beside.append(norm)
        basis.append(image / norm)
    else:
        raise ArithmeticError(
            "a power of a matrix times a vector was not found; the matrix must be "
            "symmetric and positive definite"
        )
    total = np.zeros_like(vector)
    for weight, direction in zip(found, basis, strict=True):
        total += (length * weight) * direction
    return total


def _first_column(
    diagonal: list[float], beside: list[float], exponent: float
) -> FloatArray:
    """``T^exponent e_1``."""
    value, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside))
    # A value that is zero up to rounding would have no inverse.
    least = np.finfo(float).eps * float(value[-1])
    column: FloatArray = vectors @ (np.maximum(value, least) ** exponent * vectors[0])
    return column
