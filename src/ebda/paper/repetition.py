"""One repetition of one row: draw the data, fit each method, compute its error."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.utils import Bunch

from ebda import theory
from ebda.estimators.linear_classifier import LinearClassifier
from ebda.moments.classwise import class_moments
from ebda.moments.contrasts import class_contrasts
from ebda.moments.variance import pooled
from ebda.paper.methods import FURTHER, classifier
from ebda.paper.oracles import SupportOracle
from ebda.paper.studies import N_PER_CLASS, TABLES, VARIANCE, Table
from ebda.priors import DiscretePrior
from ebda.typing import FloatArray

Record = dict[str, Any]


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
        exact = _exact(model.coef_, model.intercept_, sim)
        return exact, _by_the_authors(model, sim, method)
    part = ("data", "target") if label == "training" else ("test_data", "test_target")
    wrong = model.predict(sim[part[0]]) != sim[part[1]]
    return float(np.mean(wrong)), None


def _model(
    table: Table, method: str, sim: Bunch, random_state: Any
) -> LinearClassifier:
    if method == "Oracle":
        return SupportOracle(sim.means[1] != 0, priors="uniform")
    if method in FURTHER:
        return FURTHER[method](None, random_state)
    return classifier(method, table.study, random_state=random_state)


def _exact(coef: FloatArray, intercept: Any, sim: Bunch) -> float:
    covariance = theory.AR1(sim.rho, sim.variance) if sim.rho else sim.variance
    first, second = sim.means
    return theory.error_rate(coef, intercept, first, second, covariance)


def _by_the_authors(model: LinearClassifier, sim: Bunch, method: str) -> float:
    """The error by the formula of the authors' scripts.

    Let a be the weights of the features in units of their estimated standard deviations
    S. For independent features the score has the standard deviation ``|s a / S|``,
    where s are the true ones. The scripts divide by ``|a|``, which would be right if S
    were equal to s, and is too small.

    In the columns FAIR and IR the scripts seem to use ``d / S**2``, the weights in
    units of X, in place of a, so that they divide by S once too often. This is inferred
    from the tables (docs/reproduction/README.md); the scripts are not available.
    """
    moments = class_moments(sim.data, sim.target == "b", 2)
    scale = np.sqrt(class_contrasts(moments, pooled(moments)).variance)
    coef: FloatArray = model.coef_[0]
    if method in ("FAIR", "IR"):
        coef = coef / scale
    a: FloatArray = coef * scale
    unit = theory.AR1(sim.rho) if sim.rho else 1.0
    sd = np.sqrt(theory.as_covariance(unit, len(a)).quadratic_form(a))
    if sd == 0:
        return 0.5
    first, second = (sim.means - moments.means.mean(axis=0)) @ coef / sd
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
