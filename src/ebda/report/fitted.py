"""What was fitted and chosen, and why, in words and tables."""

from __future__ import annotations

import numpy as np

from ebda.covariance import COVARIANCES
from ebda.report.case import LEVEL, Case
from ebda.report.drawings import bar
from ebda.report.markup import Markup, join, name, section, table, tag
from ebda.report.words import DASH, MINUS, count, line_of, listed, percent
from ebda.rule.shrinkage import SHRINKAGES
from ebda.selection.candidates import CANDIDATES

# A prior with more atoms than this is summed up.
_ATOMS = 8


def fit(case: Case) -> Markup:
    """What was fitted and chosen, and why."""
    return section(
        "fit",
        "What was fitted, and why",
        tag("div", *[tag("p", words) for words in method(case)], class_="prose"),
        tag(
            "div",
            table(
                ["rule", "share", "separation (± s.e.)"],
                _compared(case),
                "Rules that were compared, and their share in the model",
                "shares",
            ),
            table(
                ["true difference", "share of features"],
                [
                    [what, join([bar(share), percent(share)])]
                    for what, share in prior_rows(case)
                ],
                "Estimated distribution of the true differences",
                "shares",
            ),
            class_="columns",
        ),
    )


def method(case: Case) -> list[str]:
    """Paragraphs about the fit."""
    weighted = int(np.count_nonzero(case.model.selected_))
    paragraphs = [
        f"The model is a linear rule of {count(case.n_features, 'feature')}, fitted to "
        f"{count(case.counts.sum(), 'sample')} ({listed(case.sizes)}). For each "
        "feature, the difference of the class means divided by its standard error is "
        "the true difference plus noise of unit variance. How many features truly "
        "differ, and by how much, was estimated from all features together (empirical "
        "Bayes), and each difference was shrunk accordingly. No tuning was needed.",
        _factors(case),
        _choice(case),
        f"{_some(weighted, case.n_features)} a weight in the rule. "
        f"{_found(case)} Weights are for prediction and q-values for findings: many "
        "small weights may predict well although no single feature is certain.",
    ]
    return [p for p in paragraphs if p]


def _some(n: int, of: int) -> str:
    if n == of:
        return "All features have" if n > 1 else "The feature has"
    return f"{count(n)} of {count(of, 'feature')} {'has' if n == 1 else 'have'}"


def _found(case: Case) -> str:
    n = case.n_found
    if not n:
        return f"No feature has a q-value of {LEVEL:g} or less."
    return (
        f"{count(n, 'feature')} {'has' if n == 1 else 'have'} a q-value of {LEVEL:g} "
        f"or less: at most about {percent(LEVEL)} of them are expected not to differ, "
        "or to differ in the other direction."
    )


def _factors(case: Case) -> str:
    n = case.model.n_factors_
    if not n:
        return ""
    were, them = ("was", "it") if n == 1 else ("were", "them")
    return (
        f"{count(n, 'common factor')} {were} found within the classes, which many "
        f"features share. z, and all that follows from it, is about what remains of a "
        f"feature without {them}, so a large difference of the means may have a small "
        "z."
    )


def _choice(case: Case) -> str:
    selection = case.model.selection_
    if not selection.n_folds:
        return str(selection.reason)
    lines = "; ".join(_lines(*selection.best))
    return (
        f"{count(len(selection.candidates))} rules were compared by how well they "
        f"separate the classes on held-out samples, in {selection.n_folds} folds of "
        "the training data. The model is their average, weighted by the probability "
        "that each one is the best. The largest weight, "
        f"{percent(selection.weight.max())}, has “{', '.join(selection.best)}”"
        f"{f' ({lines})' if lines else ''}. The held-out scores also calibrate the "
        "probabilities."
    )


def _lines(covariance: str, candidate: str) -> list[str]:
    """What the two parts of a rule are, as far as they are registered."""
    lines = [
        line_of(COVARIANCES, covariance),
        line_of(CANDIDATES, candidate) or line_of(SHRINKAGES, candidate),
    ]
    return [line for line in lines if line]


def _compared(case: Case) -> list[list[object]]:
    """A row for each rule: what it is, its share, and its separation."""
    selection = case.model.selection_
    rows: list[list[object]] = []
    for rule, weight, separation, error in zip(
        selection.candidates,
        selection.weight.tolist(),
        selection.separation.tolist(),
        selection.error.tolist(),
        strict=True,
    ):
        lines = tag("small", "; ".join(_lines(*rule)))
        judged = DASH if np.isnan(separation) else f"{separation:.2f} ± {error:.2f}"
        share = join([bar(weight), percent(weight)])
        rows.append([join([", ".join(rule), lines]), share, judged])
    return rows


def prior_rows(case: Case) -> list[tuple[str, float]]:
    """The true differences, and the share of the features with each."""
    prior = case.model.prior_
    atoms = getattr(prior, "atoms", None)
    if atoms is None:
        pi0 = float(getattr(prior, "pi0", 0.0))
        return [("no difference", pi0), ("some difference", 1 - pi0)]
    weights = prior.weights
    if len(atoms) > _ATOMS:
        return [
            ("no difference", float(weights[atoms == 0].sum())),
            ("higher", float(weights[atoms > 0].sum())),
            ("lower", float(weights[atoms < 0].sum())),
        ]
    rows = [
        (
            "no difference"
            if a == 0
            else f"{a:+.1f} standard errors".replace("-", MINUS),
            float(w),
        )
        for a, w in zip(atoms, weights, strict=True)
    ]
    return sorted(rows, key=lambda row: -row[1])


def top_features(case: Case, n: int = 20) -> Markup:
    """The first features, for readers without JavaScript."""
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
