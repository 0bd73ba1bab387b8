"""What is said about single values: signs, probabilities of the null, intervals.

The prior that estimates the means best need not be one whose posterior can be reported.
Atoms leave intervals that are too short for what they stand for, and with enough values
an atom beside zero holds the bulk and is sure of its sign. So:

- signs and the null come from what lies beyond the bulk of the values
  (:func:`ebda.priors.null.beyond_null`), or beyond zero with a point null;
- intervals come from a smooth prior, a scale mixture of normal distributions.

A family whose own posterior is smooth and cannot put its mass beside zero is reported
as it is where the null is a point: results are then those of ashr and ebnm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.priors.base import PriorFamily
from ebda.priors.normal_mixture import NormalMixture
from ebda.priors.null import Null, beyond_null
from ebda.priors.posterior import Posterior
from ebda.typing import FloatArray

NULLS = ("auto", "empirical", "point")


@dataclass(frozen=True, eq=False)
class Report:
    """What is said about single values.

    Parameters
    ----------
    loc, scale : float
        Place and width of the null, in units of the noise.
    signs : Posterior
        For the probability of the null and the local false sign rate.
    intervals : Posterior
        For credible intervals.
    """

    loc: float
    scale: float
    signs: Posterior
    intervals: Posterior


def report(
    x: FloatArray,
    scale: FloatArray,
    z: FloatArray | None,
    posterior: Posterior,
    family: PriorFamily | None,
    null: str,
) -> Report:
    """Signs and intervals of values with an estimated prior.

    Parameters
    ----------
    x, scale : ndarray of shape (n,)
        Values and their noise.
    z : ndarray of shape (n,), optional
        Normal statistics to judge signs by, where these are not ``x / scale``.
    posterior : Posterior
        Of the means, under the estimated prior.
    family : PriorFamily, optional
        The family of the prior; None for one that is not in the registry.
    null : {"auto", "empirical", "point"}
        "auto": empirical, unless the prior is given and not estimated.
    """
    own = family is not None and family.is_reported
    given = family is not None and not family.is_estimated
    intervals: Posterior = posterior
    if not own:
        intervals = NormalMixture().fit(x, scale).prior_.posterior(x, scale)
    if null == "point" or (null == "auto" and given):
        if own:
            return Report(0.0, 1.0, posterior, intervals)
        beyond = beyond_null(x, scale, Null())
    else:
        beyond = beyond_null(x, scale) if z is None else beyond_null(z)
    loc, width = (float(np.ravel(v)[0]) for v in (beyond.null.loc, beyond.null.scale))
    return Report(loc, width, beyond.posteriors[0], intervals)
