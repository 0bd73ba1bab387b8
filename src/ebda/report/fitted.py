"""What was fitted and chosen, as tables, and the first features."""

from __future__ import annotations

import numpy as np

from ebda.report.case import Case
from ebda.report.drawings import bar
from ebda.report.layout import section, table
from ebda.report.markup import Markup, join, name, tag
from ebda.report.numbers import DASH, percent
from ebda.report.words import COVARIANCES, SHRINKAGES, method, prior_rows


def fit(case: Case) -> Markup:
    """What was fitted and chosen, and why."""
    selection = case.model.selection_
    compared: list[list[object]] = []
    for (covariance, shrinkage), w, d, se in zip(
        selection.candidates,
        selection.weight,
        selection.separation,
        selection.error,
        strict=True,
    ):
        meaning = [COVARIANCES.get(covariance, ""), SHRINKAGES.get(shrinkage, "")]
        cell = [
            f"{covariance}, {shrinkage}",
            tag("small", "; ".join(filter(None, meaning))),
        ]
        judged = DASH if np.isnan(d) else f"{d:.2f} ± {se:.2f}"
        compared.append([join(cell), join([bar(float(w)), percent(float(w))]), judged])
    prior: list[list[object]] = [
        [what, join([bar(share), percent(share)])] for what, share in prior_rows(case)
    ]
    return section(
        "fit",
        "What was fitted, and why",
        tag("div", *[tag("p", words) for words in method(case)], class_="prose"),
        tag(
            "div",
            table(
                ["rule", "share", "separation (± s.e.)"],
                compared,
                "Rules that were compared, and their share in the model",
                "shares",
            ),
            table(
                ["true difference", "of the features"],
                prior,
                "Estimated distribution of the true differences",
                "shares",
            ),
            class_="columns",
        ),
    )


def top_features(case: Case, n: int = 20) -> Markup:
    """The first features, for a reader without a script."""
    ranking = case.ranking
    z, mean, lfsr, q = (
        np.atleast_2d(a)
        for a in (ranking.z, ranking.posterior_mean, ranking.lfsr, ranking.q_value)
    )
    rows: list[list[object]] = []
    for j in ranking.order[:n]:
        k = int(lfsr[:, j].argmin())
        numbers = [f"{z[k, j]:.2f}", f"{mean[k, j]:.2f}", f"{lfsr[k, j]:.2g}"]
        rows.append([name(case.feature(j)), *numbers, f"{q[k, j]:.2g}"])
    head: list[object] = ["feature", "z", "effect", "lfsr", "q"]
    return table(head, rows, f"The first {len(rows)} features", "features")
