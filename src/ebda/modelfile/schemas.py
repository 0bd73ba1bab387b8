"""What a file holds of each class: the schemas of models and of what they are made of.

Importing this module registers all classes that a model file can hold, those here and
those that are declared beside their definitions, in the modules imported here. It is a
fixed list: nothing in a file decides what is imported.

A fitted attribute is listed here, or it is not in the file. Left out are the samples
that ``partial_fit`` keeps (a model file holds nobody's data) and the variational
posteriors of the batches of a Dirichlet process, which nothing reads after the fit.

To change the format: a new optional field needs nothing else (an older ebda says that
it does not know it); a new meaning of an old one needs a new version, and a fixture.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebda.baselines import (
    FAIR,
    GreenshteinPark,
    IndependenceRule,
    LassoLogistic,
    PseudoInverseLDA,
    ShrunkenCentroids,
)
from ebda.estimators.classifier import EBClassifier
from ebda.estimators.normal_means import NormalMeans
from ebda.evaluation import Evaluation
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import Contrasts
from ebda.priors import (
    NPMLE,
    DirichletProcess,
    DiscretePrior,
    FixedPrior,
    Kernel,
    PointLaplace,
    PointLaplacePrior,
    PointNormal,
    PointNormalPrior,
)
from ebda.priors.kernel import KernelPosterior, KernelPrior
from ebda.priors.posterior import DiscretePosterior
from ebda.priors.spike_slab import Masses, SpikeSlabPosterior
from ebda.selection.calibration import Calibration
from ebda.selection.weights import Selection
from ebda.storage.fields import SQUEEZED, VALUES, Array, Kind, Labels, Names, Scalar
from ebda.storage.objects import Lengths, Nested, Pairs, Schema, register

# What a file holds: one object of these.
MODEL, EVALUATION = Nested("model"), Nested(("Evaluation",))

_POSITIVE = ("finite", "positive")
_NOT_NEGATIVE = ("finite", "zero or more")
_PROBABILITY = ("zero or more", "at most 1")
_NUMBER = Scalar((float,))
_COUNT = Scalar((int,), least=0)


def _discrete_prior(fields: dict[str, Any]) -> DiscretePrior:
    # Its own __init__ would divide by the sum of the weights once more.
    prior = DiscretePrior.__new__(DiscretePrior)
    prior.__setstate__(fields)
    return prior


# --- priors and posteriors

register(
    Schema(
        DiscretePrior,
        {
            "atoms": Array(("t",), ("finite", "ascending")),
            "weights": Array(("t",), ("finite", "positive", "a distribution")),
        },
        build=_discrete_prior,
        is_parameter=True,
        role="prior",
    ),
    Schema(
        KernelPrior,
        {
            "values": Array(("t",), ("finite", "in order")),
            "bandwidth": Scalar((float,), least=np.finfo(np.float64).tiny),
            "exact": Scalar((bool,)),
        },
        is_parameter=True,
        role="prior",
    ),
    Schema(
        PointNormalPrior,
        {"pi0": _NUMBER, "tau": _NUMBER},
        is_parameter=True,
        role="prior",
    ),
    Schema(
        PointLaplacePrior,
        {"pi0": _NUMBER, "rate": _NUMBER},
        is_parameter=True,
        role="prior",
    ),
)

register(
    Schema(
        Masses,
        {
            "log_zero": Array(("flat",), ("free of NaN",)),
            "log_sides": Array(("2", "flat"), ("free of NaN",)),
            "location": Array(("2", "flat")),
            "sd": Array(("flat",), _POSITIVE),
        },
    )
)
register(
    Schema(
        DiscretePosterior,
        {
            "z": Array(VALUES),
            "scale": Array(VALUES, _POSITIVE),
            "atoms": Array(("t",), ("finite", "ascending")),
            "log_weights": Array(("t",), ("finite", "zero or less")),
        },
        role="posterior",
    ),
    Schema(
        KernelPosterior,
        {
            "z": Array(VALUES),
            "scale": Array(VALUES, _POSITIVE),
            "slope": Array(VALUES),
            "curvature": Array(VALUES),
        },
        role="posterior",
    ),
    Schema(
        SpikeSlabPosterior,
        {"shape": Lengths(), "masses": Nested(("Masses",))},
        role="posterior",
    ),
)


def _family(family: type[Any], **extra: Kind) -> Schema:
    """An estimator of a prior: what it found, and how the search for it went."""
    fields = {"prior_": Nested("prior"), **extra}
    return Schema(
        family,
        fields,
        optional=frozenset(fields),
        finish=_check_prior,
        is_parameter=True,
        role="family",
    )


def _check_prior(estimator: Any) -> None:
    if not hasattr(estimator, "prior_"):
        raise ValueError("there is no fitted prior")


_LIKELIHOOD = Scalar((float,), finite=False)
register(
    _family(
        DirichletProcess,
        lower_bounds_=Array(("i",), ("free of NaN",)),
        lower_bound_=_LIKELIHOOD,
        n_iter_=_COUNT,
        converged_=Scalar((bool,)),
    ),
    _family(
        NPMLE,
        grid_=Array(("g",)),
        duality_gap_=_LIKELIHOOD,
        log_likelihood_=_LIKELIHOOD,
        n_iter_=_COUNT,
        converged_=Scalar((bool,)),
    ),
    _family(PointNormal, log_likelihood_=_LIKELIHOOD),
    _family(PointLaplace, log_likelihood_=_LIKELIHOOD),
    _family(Kernel),
    _family(FixedPrior),
)


# --- steps of the fit, and the evaluation


def _contrasts(fields: dict[str, Any]) -> Contrasts:
    """Contrasts; the first files had their standard errors themselves."""
    scale = fields.pop("scale", None)
    if scale is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            fields["unit"] = scale**2 / fields["variance"]
    if "unit" not in fields:
        raise ValueError("the unit of the contrasts is missing")
    if not np.isfinite(fields["unit"]).all():
        raise ValueError("standard errors and variances do not go together")
    if fields["unit"].shape[1] not in (1, len(fields["variance"])):
        raise ValueError("the unit of the contrasts has another number of features")
    return Contrasts(**fields)


register(
    Schema(
        ClassMoments,
        {
            "counts": Array(("k",), _POSITIVE),
            "means": Array(("k", "p")),
            "centred_squares": Array(("k", "p"), _NOT_NEGATIVE),
        },
    ),
    Schema(
        Contrasts,
        {
            "z": Array(("c", "p")),
            "unit": Array(("c", "u"), _NOT_NEGATIVE),
            "positive": Array(("c", "k")),
            "negative": Array(("c", "k")),
            "variance": Array(("p",), _POSITIVE),
            "constant": Array(("p",), (), np.bool_),
        },
        frozenset({"unit"}),
        {"scale": Array(("c", "p"), _NOT_NEGATIVE)},
        _contrasts,
    ),
    Schema(
        Calibration,
        {
            "slope": Array(("j",), _POSITIVE),
            "share": Array(("j",), _NOT_NEGATIVE),
            "noise": Scalar((float,), least=0.0),
        },
    ),
    Schema(
        Selection,
        {
            "candidates": Pairs("m"),
            "weight": Array(("m",), _NOT_NEGATIVE),
            "separation": Array(("m",), ()),
            "error": Array(("m",), ()),
            "n_folds": _COUNT,
            "reason": Scalar((str,)),
            "slope": _NUMBER,
            "calibration": Nested(("Calibration",)),
            "scores": Array(("h", "c")),
            "codes": Array(("h",), (), np.int64, below="k"),
        },
        optional=frozenset({"scores", "codes"}),
    ),
)
register(
    Schema(
        Evaluation,
        {
            "classes": Labels(),
            "codes": Array(("n",), (), np.int64, below="k"),
            "probabilities": Array(("n", "k"), _PROBABILITY),
            "n_folds": _COUNT,
        },
    )
)


# --- models

_LINEAR: dict[str, Kind] = {
    "classes_": Labels(),
    "n_features_in_": Scalar((int,), least=1, dimension="p"),
    "feature_names_in_": Names(),
    "coef_": Array(("c", "p")),
    "intercept_": Array(("c",)),
}
_CLASS_PRIOR: dict[str, Kind] = {"class_prior_": Array(("k",), _POSITIVE)}
_SELECTED: dict[str, Kind] = {"selected_": Array(("p",), (), np.bool_)}
_MOMENTS: dict[str, Kind] = {
    **_LINEAR,
    **_CLASS_PRIOR,
    **_SELECTED,
    "n_seen_": _COUNT,
    "z_": Array(SQUEEZED),
    "moments_": Nested(("ClassMoments",)),
    "contrasts_": Nested(("Contrasts",)),
}
_POSTERIOR_MEAN: dict[str, Kind] = {"posterior_mean_": Array(SQUEEZED)}
_UNNAMED = frozenset({"feature_names_in_"})


def _linear(model: type[Any], *parts: dict[str, Kind], **extra: Kind) -> Schema:
    fields = _LINEAR | {name: kind for part in parts for name, kind in part.items()}
    return Schema(model, fields | extra, _UNNAMED, role="model")


def _finish_moments(model: Any) -> None:
    """As after `fit`: `partial_fit` goes on from the moments, without samples."""
    model._check_parameters()
    model.samples_ = None


def _finish_classifier(model: Any) -> None:
    _finish_moments(model)
    model.prior_ = model.prior_estimator_.prior_


def _finish_means(model: Any) -> None:
    model.prior_ = model.prior_estimator_.prior_


register(
    Schema(
        EBClassifier,
        {
            **_MOMENTS,
            "n_factors_": _COUNT,
            "calibration_": Nested(("Calibration",)),
            "selection_": Nested(("Selection",)),
            "prior_estimator_": Nested("family"),
            "posterior_": Nested("posterior", values=("c", "p")),
        },
        _UNNAMED,
        finish=_finish_classifier,
        role="model",
    ),
    Schema(
        NormalMeans,
        {
            "prior_estimator_": Nested("family"),
            "posterior_": Nested("posterior"),
            "log_likelihood_": _LIKELIHOOD,
        },
        finish=_finish_means,
        role="model",
    ),
    Schema(IndependenceRule, _MOMENTS, _UNNAMED, finish=_finish_moments, role="model"),
    Schema(
        GreenshteinPark,
        _MOMENTS | _POSTERIOR_MEAN,
        _UNNAMED,
        finish=_finish_moments,
        role="model",
    ),
    _linear(
        FAIR,
        _CLASS_PRIOR,
        _SELECTED,
        z_=Array(("p",)),
        n_selected_=_COUNT,
        criterion_=Array(("s",)),
    ),
    _linear(
        LassoLogistic,
        _SELECTED,
        lambdas_=Array(("l",)),
        deviances_=Array(("l",)),
        deviance_se_=Array(("l",)),
        lambda_=_NUMBER,
    ),
    _linear(PseudoInverseLDA, _CLASS_PRIOR, rank_=_COUNT),
    _linear(ShrunkenCentroids, _CLASS_PRIOR, _SELECTED, centroids_=Array(("k", "p"))),
)
