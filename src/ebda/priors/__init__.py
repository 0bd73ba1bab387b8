"""Prior families: each turns z into an estimate of the prior of eta.

`PRIORS` is the registry that the `prior` parameter of the estimators names. To add a
family, write one file with a class that honours :mod:`ebda.priors.base`, and name
it here; the conformance test then runs for it.
"""

from __future__ import annotations

from typing import Any

from ebda.priors.base import PriorEstimator
from ebda.priors.discrete import DiscretePrior
from ebda.priors.dp.dirichlet_process import DirichletProcess
from ebda.priors.fixed import FixedPrior
from ebda.priors.kernel import Kernel
from ebda.priors.laplace import PointLaplace, PointLaplacePrior
from ebda.priors.normal import PointNormal, PointNormalPrior
from ebda.priors.npmle import NPMLE

PRIORS: dict[str, type[Any]] = {
    "dp": DirichletProcess,
    "fixed": FixedPrior,
    "laplace": PointLaplace,
    "normal": PointNormal,
    "kernel": Kernel,
    "npmle": NPMLE,
}

__all__ = [
    "NPMLE",
    "PRIORS",
    "DirichletProcess",
    "DiscretePrior",
    "FixedPrior",
    "Kernel",
    "PointLaplace",
    "PointLaplacePrior",
    "PointNormal",
    "PointNormalPrior",
    "PriorEstimator",
    "make_prior",
]


def make_prior(prior: Any, **defaults: Any) -> PriorEstimator:
    """A prior estimator from what a user gives: a name, an estimator, or a prior.

    Parameters
    ----------
    prior : str, prior estimator or prior
        A name makes the family's estimator with those of the `defaults` that it
        takes. An estimator is cloned, so that the given one is not changed. A
        prior, such as `DiscretePrior`, is used as it is.
    **defaults
        Parameters such as ``random_state``, for names only.

    >>> make_prior("dp", n_jobs=2, random_state=0)
    DirichletProcess(n_jobs=2, random_state=0)
    >>> make_prior(DiscretePrior([0, 1], [0.5, 0.5]))
    FixedPrior(prior=DiscretePrior(atoms=[0, 1], weights=[0.5, 0.5]))
    """
    from sklearn.base import clone

    if isinstance(prior, str):
        if prior not in PRIORS:
            raise ValueError(
                f"prior must be one of {sorted(PRIORS)}, a prior estimator or a "
                f"prior; got {prior!r}"
            )
        estimator = PRIORS[prior]()
        known = estimator.get_params()
        estimator.set_params(**{k: v for k, v in defaults.items() if k in known})
        return estimator  # type: ignore[no-any-return]
    if callable(getattr(prior, "fit", None)):
        return clone(prior)  # type: ignore[no-any-return]
    return FixedPrior(prior)
