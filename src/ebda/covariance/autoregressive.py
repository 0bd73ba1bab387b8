"""Features in an order: correlation that falls off with the distance.

Points of a spectrum or probes along a chromosome are correlated with their neighbours.
The simplest model of that is an autoregression, ``corr(i, j) = rho^|i - j|`` (studies
3 to 5 of the paper's tables): ``W`` with rows ``(z_j - rho z_{j-1}) / sqrt(1 - rho^2)``
makes the noise independent, and ``W'W`` is the inverse of the correlation matrix R, so
that nothing costs more than a pass over the features.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from ebda.data.samples import Samples
from ebda.typing import FloatArray

# Estimates are clipped to this absolute value: at 1 there is no W.
_LARGEST = 0.999


def neighbour_correlation(
    samples: Samples,
    means: FloatArray,
    variance: FloatArray,
    constant: npt.NDArray[np.bool_] | None = None,
) -> float:
    """Mean correlation of neighbours within the classes, in excess of that of any two.

    Common factors correlate features whatever their order. The mean correlation of
    features far apart measures that, and is subtracted. Far apart are the features of
    the first third and those of the last: the mean over all such pairs is a product
    of sums. `constant` features are skipped. The result is clipped to +-0.999.
    """
    varying = np.ones(len(variance), bool) if constant is None else ~constant
    n_varying = int(np.count_nonzero(varying))
    df = samples.weight.sum() - len(np.unique(samples.codes))
    if df <= 0 or n_varying < 3:
        return 0.0
    third = np.full(len(variance), -1)
    third[varying] = np.arange(n_varying) * 3 // n_varying
    sums = samples.neighbour_sums(means, np.sqrt(variance), third)
    n_pairs = float(np.prod([np.count_nonzero(third == k) for k in (0, 2)]))
    far = float(sums.thirds[:, 0] @ sums.thirds[:, 2]) / n_pairs
    rho = (sums.near / (n_varying - 1) - far) / float(df)
    return float(np.clip(rho, -_LARGEST, _LARGEST))


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
    z: FloatArray = lfilter([1.0], [1.0, -rho], driven, axis=-1)
    return z


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
    back = lfilter([1.0], [1.0, -rho], z[..., ::-1], axis=-1)[..., ::-1]
    result: FloatArray = back * np.sqrt(1 - rho**2)
    result[..., 0] = back[..., 0]
    return result
