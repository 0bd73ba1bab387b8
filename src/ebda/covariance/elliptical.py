"""Whether scales of the samples are what makes the tails heavy.

Under an elliptical distribution, ``x_i = m_k + s_i Sigma^1/2 u_i``, residuals have
heavy tails because samples have scales, and ``r_ij / s_i`` are normal. The kurtosis of
a feature is that of u times ``mean(s^4) / mean(s^2)^2``, and when each sample is
divided by its scale it falls to that of normal residuals, ``3 df / (df + 2)`` with df
degrees of freedom. Real samples also differ in the mean square of their residuals, but
most often because some of their features are wild, or because they belong to factors
that were not found. Then tails stay heavy. So

    1 - |log(kurtosis with scales / normal)| / log(kurtosis without / normal),

of means over the features, says how well the model of :mod:`ebda.covariance.scales`
holds.
"""

from __future__ import annotations

import numpy as np

from ebda.covariance.summary import Summary

# A logarithm of the excess of the kurtosis this small is chance.
_NO_EXCESS = 0.02
# Scales that explain so much of the excess are the model. In simulated elliptical
# samples it is 0.95 or more, and 0.3 to 0.6 in the real sets with scales that differ.
_EXPLAINED = 0.75


def kurtosis(data: Summary) -> float:
    """Mean over the features of the kurtosis of the residuals of the samples.

    Parameters
    ----------
    data : Summary
        Residuals are about its class means, times the roots of the precisions.
    """
    samples = data.samples
    assert samples is not None
    weight = samples.weight
    squares = data.rows**2 / weight[:, None]
    second = weight @ squares / weight.sum()
    squares *= squares
    fourth = weight @ squares / weight.sum()
    varying = ~data.contrasts.constant & (second > 0)
    if not varying.any():
        return 0.0
    return float(np.mean(fourth[varying] / second[varying] ** 2))


def explained_by_scales(common: Summary, own: Summary) -> float:
    """The share of the excess of the kurtosis that scales of the samples explain.

    Parameters
    ----------
    common : Summary
        The data with a common scale.
    own : Summary
        The same with scales of the samples.

    Returns
    -------
    float
        1 where nothing is left, and 0 where there was none: scales that differ make
        the tails of normal residuals heavy.
    """
    df = common.moments.residual_df
    normal = 3 * df / (df + 2)
    excess, left = (
        float(np.log(max(kurtosis(data), 1.0) / normal)) for data in (common, own)
    )
    if excess <= _NO_EXCESS:
        return 0.0
    return 1 - abs(left) / excess


def is_elliptical(common: Summary, own: Summary) -> bool:
    """Whether the samples look like those of an elliptical distribution.

    Parameters
    ----------
    common, own : Summary
        As in `explained_by_scales`.
    """
    return explained_by_scales(common, own) >= _EXPLAINED
