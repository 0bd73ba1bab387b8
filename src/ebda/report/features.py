"""The features as the page stores them: names, and arrays in base64.

A page must stay small enough for an e-mail. It holds the features in the order of
their evidence: all of them where they fit into `BUDGET`, else the first ones, and it
says so.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.palette import COLOURS
from ebda.report.case import LEVEL, Case
from ebda.report.markup import embedded_json, plain
from ebda.rule.ranking import Ranking
from ebda.rule.shrinkage import pointwise
from ebda.typing import FloatArray, IntArray

# Bytes of a page that features may take, besides drawings, text and script.
BUDGET = 2_600_000
# Longer names are cut: no one reads them, and a single one could fill the page.
LONGEST_NAME = 1000
# Rates are stored as -log10; smaller ones count as this.
_LEAST_RATE, _MOST = 1e-300, 300.0
# Points of a curve: about one for each pixel of the plot.
_GRID = 601
# Characters in base64 of a number of four bytes.
_BASE64 = 16 / 3

# Columns with one row per contrast; each is also a column of the table and of the CSV.
COLUMNS = ("difference", "t", "p", "q", "z", "effect", "zero", "beyond", "weight")


def columns(case: Case) -> dict[str, FloatArray]:
    """Each column, with one row per contrast and one entry per feature.

    The difference is that of the class means, in the units of the data or as a log2
    fold change, and t, p and q are about it, including what common factors contribute;
    z, and what follows from it, is adjusted for them.
    """
    model, ranking = case.model, case.ranking
    rows = {
        "difference": case.difference,
        "t": ranking.marginal.t,
        "p": np.clip(-ranking.marginal.log_p / np.log(10), 0.0, _MOST),
        "q": _log_rate(ranking.marginal.q_value),
        "z": model.z_,
        "effect": model.posterior_mean_,
        "zero": model.prob_zero_,
        "beyond": _log_rate(ranking.conditional.q_value),
        "weight": model.coef_,
    }
    return {key: np.atleast_2d(rows[key]) for key in COLUMNS}


def _log_rate(rate: FloatArray) -> FloatArray:
    return np.clip(-np.log10(np.maximum(rate, _LEAST_RATE)), 0.0, _MOST)


def packed(values: npt.NDArray[Any], kind: str = "<f4") -> str:
    """An array in base64, of little-endian numbers: 5.3 characters each.

    >>> packed(np.array([1.0, 2.0]))
    'AACAPwAAAEA='
    """
    return base64.b64encode(values.astype(kind).tobytes()).decode("ascii")


def shown_name(value: object) -> str:
    """A name as text, cut where it is too long to be read.

    >>> len(shown_name("x" * 5000))
    1000
    """
    name = plain(value)
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def features_that_fit(names: list[str] | None, n: int, n_numbers: int) -> int:
    """How many of the first features a page has room for, at least one.

    >>> features_that_fit(None, 10**6, n_numbers=10) == int(BUDGET // (160 / 3))
    True
    """
    size = np.full(n, n_numbers * _BASE64)
    if names is not None:
        size += [len(embedded_json(name).encode()) + 1 for name in names]
    return max(1, int(np.searchsorted(np.cumsum(size), BUDGET, side="right")))


def payload(case: Case) -> dict[str, Any]:
    """What the script reads: all about the features."""
    ranking, n_contrasts = case.ranking, len(case.contrasts)
    order = ranking.order
    names = None
    if ranking.names is not None:
        # Even without names, no more features than this would fit.
        most = int(BUDGET // (len(COLUMNS) * _BASE64)) + 1
        names = [shown_name(ranking.names[j]) for j in order[:most]]
        order = order[:most]
    many = n_contrasts > 1
    n_numbers = (len(COLUMNS) + many) * n_contrasts + len(case.classes) + 1
    n = features_that_fit(names, len(order), n_numbers)
    order = order[:n]
    return {
        "total": case.n_features,
        "difference": case.difference_is,
        "colours": len(COLOURS),
        "found": _found(case),
        "names": None if names is None else names[:n],
        "column": packed(order, "<u4"),
        "classes": case.classes,
        "contrasts": case.contrasts,
        "rows": {
            key: [packed(row[order]) for row in rows]
            for key, rows in columns(case).items()
        },
        "order": _orders(ranking, order) if many else None,
        "means": [packed(row[order]) for row in case.model.moments_.means],
        "curves": _curves(case),
    }


def _found(case: Case) -> list[list[int]]:
    """How many features are higher and lower, for each contrast, out of all."""
    marginal = case.ranking.marginal
    differ = np.atleast_2d(marginal.q_value) <= LEVEL
    t = np.atleast_2d(marginal.t)
    ways = (differ & (t > 0), differ & (t <= 0))
    return [
        [int(n) for n in both]
        for both in zip(*(way.sum(axis=1) for way in ways), strict=True)
    ]


def _orders(ranking: Ranking, kept: IntArray) -> list[str]:
    """Order of the kept features by their evidence for each contrast alone."""
    found = ranking.marginal
    place = np.empty(len(found.f), dtype=np.intp)
    orders = []
    for k in range(len(found.t)):
        place[found.order_in(k)] = np.arange(len(place))
        orders.append(packed(np.argsort(place[kept]), "<u4"))
    return orders


def _curves(case: Case) -> dict[str, str]:
    """The estimate as a function of z, for each shrinkage."""
    z = np.asarray(case.model.z_)
    low, high = float(z.min()), float(z.max())
    margin = max(0.03 * (high - low), 0.5)
    grid = np.linspace(low - margin, high + margin, _GRID)
    posterior = case.model.prior_.posterior(grid)
    kappa = case.model.zero_threshold
    made = {
        name: packed(shrinkage.estimate(grid, posterior, kappa))
        for name, shrinkage in pointwise().items()
    }
    return {"grid": packed(grid), **made}
