"""What was fitted and chosen, and why, in plain words."""

from __future__ import annotations

import numpy as np

from ebda.report.case import Case
from ebda.report.cautions import LEVEL
from ebda.report.numbers import MINUS, count, listed, percent

# What the names of the candidates mean.
COVARIANCES = {
    "diagonal": "features one by one",
    "factor": "common factors taken out",
    "neighbours": "correlation along the features taken out",
}
SHRINKAGES = {
    "mean": "every difference shrunken to its posterior mean",
    "sparse": "the same, and zero where no difference is the more probable",
    "hard": "differences as they are, where one is probable, else zero",
    "centred": "posterior mean, about a null that the data show",
    "strict": "only differences that are nearly certain",
    "smooth": "posterior mean under a smooth prior",
}
# More atoms than this say nothing one by one.
_ATOMS = 8


def headline(case: Case) -> str:
    """What is told apart."""
    if len(case.classes) <= 4:
        return (
            " against ".join(case.classes[:2])
            if len(case.classes) == 2
            else listed(case.classes)
        )
    return count(len(case.classes), "class", "classes")


def method(case: Case) -> list[str]:
    """Paragraphs on the fit."""
    model = case.model
    classes = [
        f"{count(n)} {label}"
        for label, n in zip(case.classes, case.counts, strict=True)
    ]
    weighted = int(np.count_nonzero(model.selected_))
    paragraphs = [
        f"The model is a linear rule of {count(case.n_features, 'feature')}, fitted to "
        f"{count(case.counts.sum(), 'sample')} ({listed(classes)}). The difference of "
        "the class means of each feature, over its standard error, is an estimate with "
        "noise of size one. How large the true differences are, and how many there "
        "are, was estimated from all features together (empirical Bayes), and each "
        "was shrunken accordingly. Nothing was tuned by hand.",
        _factors(case),
        _choice(case),
        f"{_some(weighted, case.n_features)} a weight in the rule. "
        f"{_found(case)} A weight is for prediction and a q-value for a finding: many "
        "small weights may predict well without one feature being certain.",
    ]
    return [p for p in paragraphs if p]


def _some(n: int, of: int) -> str:
    if n == of:
        return "All features have" if n > 1 else "The feature has"
    return f"{count(n)} of {count(of, 'feature')} {'has' if n == 1 else 'have'}"


def _found(case: Case) -> str:
    n = int(np.count_nonzero(np.atleast_2d(case.ranking.selected(LEVEL)).any(axis=0)))
    verb = "differs" if n == 1 else "differ"
    return (
        f"{count(n, 'feature') if n else 'No feature'} {verb if n else 'differs'} "
        f"with a q-value of {LEVEL:g} or less: among those, about {percent(LEVEL)} or "
        "fewer are expected to be no difference or to point the other way."
    )


def _factors(case: Case) -> str:
    n = case.model.n_factors_
    if not n:
        return ""
    one = n == 1
    return (
        f"{count(n, 'common factor')} within the classes {'was' if one else 'were'} "
        "found, which many features share. z and what follows from it are what is left "
        f"of a feature beside {'it' if one else 'them'}, so a large difference of the "
        "means may have a small z."
    )


def _choice(case: Case) -> str:
    selection = case.model.selection_
    if not selection.n_folds:
        return str(selection.reason)
    covariance, shrinkage = selection.best
    how = [COVARIANCES.get(covariance, covariance)]
    how.append(SHRINKAGES.get(shrinkage, shrinkage))
    return (
        f"{count(len(selection.candidates))} rules were compared on held-out samples "
        f"in {selection.n_folds} folds inside the training data, by how far apart they "
        "put the classes, and added up with the probability of being the best as "
        "weight. "
        f"The largest share, {percent(selection.weight.max())}, has "
        f"“{covariance}, {shrinkage}”: {', '.join(how)}. The held-out scores also "
        "calibrate the probabilities."
    )


def prior_rows(case: Case) -> list[tuple[str, float]]:
    """What differences there are, and which share of the features has each."""
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
