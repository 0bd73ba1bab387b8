"""The statistics of each feature beyond the common factors within the classes.

Each factor takes a degree of freedom, and as its loadings are estimates, the
differences vary by more than one standard error.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebda.moments import ClassMoments
from ebda.moments.contrasts import complete_df
from ebda.moments.variance import Variance
from ebda.rule.bulk import bulk_variance
from ebda.rule.marginal import Statistics
from ebda.typing import FloatArray


def statistics_beyond(
    z: FloatArray,
    constant: npt.NDArray[np.bool_],
    common: FloatArray | None,
    n_factors: int,
    moments: ClassMoments,
    variance: Variance,
    marginal: Statistics,
    most: float,
) -> Statistics:
    """What is known of each difference without common factors.

    Parameters
    ----------
    z : ndarray of shape (n_contrasts, n_features)
        The contrasts without common factors.
    constant : ndarray of bool of shape (n_features,)
        Features that carry nothing.
    common : ndarray of shape (n_contrasts, n_factors), optional
        Differences of the common factors, after shrinkage.
    n_factors : int
        Common factors.
    moments : ClassMoments
        Of all samples.
    variance : Variance
        What the contrasts were divided by.
    marginal : Statistics
        Those of the same features, with their common factors.
    most : float
        Degrees of freedom of all features together, which none has more of.
    """
    df = np.minimum(variance.degrees_of_freedom, most)
    own_df = marginal.own_df
    if moments.observed is not None:
        # z is that of a feature with all values: few of them have made it smaller.
        complete = complete_df(moments, variance.degrees_of_freedom)
        if np.isfinite(complete):
            own_df = own_df * (complete / np.asarray(variance.degrees_of_freedom))
        df = np.minimum(complete, most)
    of_loadings = float(moments.counts.sum()) - len(moments.counts)
    ratio: FloatArray = rest_variance(z[:, ~constant], common, of_loadings)
    # With a variance for each class z has been judged by these.
    if len(variance.by_class) == 1:
        ratio = ratio * marginal.ratio
    return Statistics(
        z,
        np.maximum(df - n_factors, 1.0),
        moments.n_values,
        ratio,
        np.maximum(own_df - n_factors, 1.0),
    )


def rest_variance(z: FloatArray, common: FloatArray | None, df: float) -> FloatArray:
    """Variance of a difference without common factors, as their loadings are estimates.

    A contrast in which the factors differ by g, in units of what they differ by chance,
    keeps g times the error of the loadings. As in the analysis of covariance the
    variance is ``1 + |g|^2 / df``, or less where the loadings are shrunken: then the
    bulk of the values shows what it is.

    Parameters
    ----------
    z : ndarray of shape (n_contrasts, n_features)
        The values without common factors, of features that vary.
    common : ndarray of shape (n_contrasts, n_factors), optional
        g after its shrinkage by ``1 - n_factors / |g|^2``.
    df : float
        Degrees of freedom of the loadings.

    Returns
    -------
    ndarray of shape (n_contrasts, 1), or (1, 1) without factors
        At least 1.

    >>> z = 9 * np.random.default_rng(0).normal(size=(1, 500))
    >>> rest_variance(z, np.array([[2.4, 3.2, 0.0]]), df=40).round(2)
    array([[1.54]])
    """
    if common is None or not common.size:
        return np.ones((1, 1))
    shrunken = np.sqrt(np.einsum("ck,ck->c", common, common))
    length = (shrunken + np.sqrt(shrunken**2 + 4 * common.shape[1])) / 2
    most = 1 + (length**2 / max(df, 1.0))[:, None]
    variance: FloatArray = np.clip(bulk_variance(z), 1.0, most)
    return variance
