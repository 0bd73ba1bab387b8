"""Where the mode of the prior lies, if it is not zero."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from ebda.priors.normal_mixture import NormalMixture
from ebda.typing import FloatArray

# Quantiles of the values that are tried before the search is refined.
_PLACES = np.linspace(0.05, 0.95, 19)
# At most so many values are looked at, evenly spread over the sorted ones.
_MOST = 20_000
_TOL = 1e-7


def most_likely_mode(x: FloatArray, scale: FloatArray) -> float:
    """The mode of a scale mixture of normal distributions, by maximum likelihood.

    The prior is ``w_0 delta_m + sum_t w_t N(m, sd_t**2)``, as with ``mode="estimate"``
    in ebnm; the likelihood is maximised over the weights for each m.

    >>> rng = np.random.default_rng(0)
    >>> x = 3 + rng.laplace(size=2000) + rng.normal(size=2000)
    >>> round(most_likely_mode(x, np.ones(2000)), 1)
    3.0
    """
    order = np.lexsort((scale, x))
    if len(order) > _MOST:
        order = order[np.linspace(0, len(order) - 1, _MOST).round().astype(np.intp)]
    values, noise = x[order], scale[order]

    def loss(mode: float) -> float:
        family = NormalMixture(tol=_TOL).fit(values - mode, noise)
        return -family.log_likelihood_

    places = np.unique(np.quantile(values, _PLACES))
    losses = [loss(place) for place in places]
    best = int(np.argmin(losses))
    ends = places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)]
    if ends[0] == ends[1]:
        return float(places[best])
    precise = {"xatol": 1e-4 * float(np.median(noise))}
    refined = minimize_scalar(loss, bounds=ends, method="bounded", options=precise)
    return float(refined.x if refined.fun < losses[best] else places[best])
