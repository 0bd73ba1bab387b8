"""The algebra of a first-order autoregression along the features.

Its correlation matrix is ``R_ij = rho^|i - j|`` (studies 3 to 5 of the paper's
tables). W with rows ``(z_j - rho z_{j-1}) / sqrt(1 - rho^2)`` makes the noise
independent, and ``W'W`` is the inverse of R, so that nothing costs more than a pass
over the features.
"""

from __future__ import annotations

import numpy as np

from ebda.typing import FloatArray


def whiten(z: FloatArray, rho: float) -> FloatArray:
    """W times `z`, along the last axis, for ``-1 < rho < 1``.

    >>> np.abs(whiten(np.array([1.0, 0.8, 0.64]), 0.8)).round(12)
    array([1., 0., 0.])
    """
    white: FloatArray = z.copy()
    white[..., 1:] -= rho * z[..., :-1]
    white[..., 1:] /= np.sqrt(1 - rho**2)
    return white


def unwhiten(white: FloatArray, rho: float) -> FloatArray:
    """The inverse of W times `white`: noise in, an autoregression out.

    >>> unwhiten(np.array([1.0, 0.0, 0.0]), 0.8).round(12)
    array([1.  , 0.8 , 0.64])
    """
    driven = white * np.sqrt(1 - rho**2)
    driven[..., 0] = white[..., 0]
    return _accumulated(driven, rho)


def transposed(white: FloatArray, rho: float) -> FloatArray:
    """W' times `white`: after `whiten`, the inverse of the correlation."""
    scaled: FloatArray = white / np.sqrt(1 - rho**2)
    scaled[..., 0] = white[..., 0]
    back: FloatArray = scaled.copy()
    back[..., :-1] -= rho * scaled[..., 1:]
    return back


def unwhiten_transposed(z: FloatArray, rho: float) -> FloatArray:
    """The inverse of W' times `z`; the squares of the result sum to ``z' R z``.

    >>> unwhiten_transposed(np.array([0.0, 0.0, 1.0]), 0.8).round(3)
    array([0.64, 0.48, 0.6 ])
    """
    back = _accumulated(z[..., ::-1], rho)[..., ::-1]
    result: FloatArray = back * np.sqrt(1 - rho**2)
    result[..., 0] = back[..., 0]
    return result


def _accumulated(x: FloatArray, rho: float) -> FloatArray:
    """``y_j = x_j + rho y_{j-1}``, along the last axis."""
    # Loaded where it is used: it takes 5 % of the time to import the classifier.
    from scipy.signal import lfilter

    y: FloatArray = lfilter([1.0], [1.0, -rho], x, axis=-1)
    return y
