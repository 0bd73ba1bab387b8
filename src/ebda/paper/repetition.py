"""One repetition of one row: draw the data, fit each method, compute its error."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.utils import Bunch

from ebda import theory
from ebda.datasets import make_two_class
from ebda.estimators.linear_classifier import LinearClassifier
from ebda.moments.classwise import class_moments
from ebda.moments.contrasts import class_contrasts
from ebda.moments.variance import pooled
from ebda.paper.further import FURTHER
from ebda.paper.methods import classifier
from ebda.paper.oracles import ScriptsOracle
from ebda.paper.studies import N_PER_CLASS, TABLES, VARIANCE, Table
from ebda.priors import DiscretePrior
from ebda.typing import FloatArray

Record = dict[str, Any]
# Columns whose weights the scripts take in units of X where others have those of X / S.
_IN_UNITS_OF_X = ("FAIR", "IR", "glmnet")
_TEST_SAMPLES = 400


def seed_of(seed: int, table: str, row: int, repetition: int, what: str) -> Any:
    """A random state that depends on the arguments and on nothing else."""
    key = (zlib.crc32(table.encode()), row, repetition, zlib.crc32(what.encode()))
    words = np.random.SeedSequence(seed, spawn_key=key).generate_state(8)
    return np.random.RandomState(words)


def repeat(
    name: str, row: int, repetition: int, methods: Iterable[str], seed: int
) -> list[Record]:
    """Errors of the methods on one draw of the data of a row.

    Parameters
    ----------
    name : str
        Name of the table.
    row, repetition : int
        Index of the row, and of the draw.
    methods : iterable of str
        Columns to fit. Each has random numbers of its own, so that its results do not
        depend on which others are fitted.
    seed : int
        Seed of the whole run.
    """
    table = TABLES[name]
    label = table.rows[row].label
    sim = table.rows[row].draw(seed_of(seed, name, row, repetition, "data"))
    records: list[Record] = []
    for method in methods:
        random_state = seed_of(seed, name, row, repetition, method)
        error, by_authors = _errors(table, label, method, sim, random_state)
        place = {"table": name, "row": label, "method": method}
        errors = {"error": error, "error_authors": by_authors}
        records.append({**place, "repetition": repetition, **errors})
    return records


def _errors(
    table: Table, label: str, method: str, sim: Bunch, random_state: Any
) -> tuple[float, float | None]:
    if method == "Limit":
        return _limit(sim), None
    model = _model(table, method, sim, random_state).fit(sim.data, sim.target)
    if table.study in (1, 2):
        if not hasattr(model, "coef_"):
            return error_on_test_samples(model, sim, random_state), None
        exact = _exact(model.coef_, model.intercept_, sim)
        in_units_of_x = method in _IN_UNITS_OF_X
        return exact, error_of_the_scripts(model.coef_[0], sim, in_units_of_x)
    part = ("data", "target") if label == "training" else ("test_data", "test_target")
    wrong = model.predict(sim[part[0]]) != sim[part[1]]
    return float(np.mean(wrong)), None


def _model(
    table: Table, method: str, sim: Bunch, random_state: Any
) -> LinearClassifier:
    if method == "Oracle":
        return ScriptsOracle(sim.means[1] != 0)
    if method in FURTHER:
        return FURTHER[method](None, random_state)
    return classifier(method, table.study, random_state=random_state)


def _exact(coef: FloatArray, intercept: Any, sim: Bunch) -> float:
    covariance = theory.AR1(sim.rho, sim.variance) if sim.rho else sim.variance
    first, second = sim.means
    return theory.error_rate(coef, intercept, first, second, covariance)


def error_on_test_samples(
    model: LinearClassifier, sim: Bunch, random_state: np.random.RandomState
) -> float:
    """The error of a rule that is not linear, on 400 new samples, as many as study 3.

    Parameters
    ----------
    model : fitted classifier
        The rule.
    sim : Bunch
        The data that it was fitted to: `means`, `variance` and `rho`.
    random_state : RandomState
        Determines the samples.

    Examples
    --------
    >>> from ebda.baselines import DickerZhao
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=50, n_signals=5, variance=12.5, random_state=0)
    >>> model = DickerZhao().fit(sim.data, sim.target)
    >>> error_on_test_samples(model, sim, np.random.RandomState(0))
    0.4375
    """
    new = make_two_class(
        _TEST_SAMPLES // 2,
        sim.means.shape[1],
        n_signals=0,
        effect=0.0,
        variance=sim.variance,
        rho=sim.rho,
        random_state=random_state,
    )
    new.data[new.target == "b"] += sim.means[1]
    return float(np.mean(model.predict(new.data) != new.target))


def error_of_the_scripts(coef: FloatArray, sim: Bunch, in_units_of_x: bool) -> float:
    """The error of a rule by the formula of the authors' scripts for studies 1 and 2.

    With S the standard errors of the differences, the scripts take the weights a of
    ``X / S``, the midpoint of the class means ``m / S``, and the standard deviation of
    the score for ``s |a|``, where s is that of X and S is close to one:

        ``Psi_k = a' (mu_k - m) / S / (s |a|)``,

    with ``s^2 a' R a`` for correlated features. The score has the standard deviation
    ``s |a / S|``, which is larger (`ebda.theory.error_rate`). For FAIR, IR and glmnet
    a has the weights of X in it, and the formula is the same but for the midpoint,
    which is right: ``(a' mu_k / S - a' m) / (s |a|)``. The error is the mean over both
    classes.

    Parameters
    ----------
    coef : ndarray of shape (n_features,)
        Weights of the rule, in units of X.
    sim : Bunch
        The data: `data`, `target`, `means`, `variance` and `rho`.
    in_units_of_x : bool
        Whether a has the weights of X.

    Examples
    --------
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=50, n_signals=5, variance=12.5, random_state=0)
    >>> round(error_of_the_scripts(sim.means[1], sim, in_units_of_x=False), 3)
    0.374
    """
    moments = class_moments(sim.data, sim.target == "b", 2)
    variance = class_contrasts(moments, pooled(moments)).variance
    error = np.sqrt(variance * (1 / moments.counts).sum())
    middle = moments.means.mean(axis=0) @ coef
    a, of_means = (coef, coef / error) if in_units_of_x else (coef * error, coef)
    covariance = theory.AR1(sim.rho) if sim.rho else 1.0
    form = theory.as_covariance(covariance, len(a)).quadratic_form(a)
    sd = np.sqrt(sim.variance * form)
    if sd == 0:
        return 0.5
    first, second = (sim.means @ of_means - middle) / sd
    return float(ndtr(first) + ndtr(-second)) / 2


def _limit(sim: Bunch) -> float:
    """Error of the posterior mean for the true prior and known variances."""
    first, second = sim.data[:N_PER_CLASS].mean(0), sim.data[N_PER_CLASS:].mean(0)
    se = np.sqrt(VARIANCE * 2 / N_PER_CLASS)
    effects, counts = np.unique(sim.means[1], return_counts=True)
    if len(effects) > 1000:  # a continuous background: as many atoms as it has bins
        counts, edges = np.histogram(sim.means[1], bins=1000)
        effects = (edges[1:] + edges[:-1]) / 2
    prior = DiscretePrior(effects[counts > 0] / se, counts[counts > 0])
    coef = prior.posterior((second - first) / se).mean
    return _exact(coef, -coef @ (first + second) / 2, sim)
