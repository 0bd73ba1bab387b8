"""What was fitted and chosen, and why, in words and tables."""

from __future__ import annotations

import numpy as np

from ebda.covariance import COVARIANCES
from ebda.report.case import LEVEL, Case
from ebda.report.drawings import bar
from ebda.report.markup import Column, Markup, join, name, section, table, tag
from ebda.report.words import DASH, MINUS, count, line_of, listed, percent
from ebda.rule.shrinkage import SHRINKAGES
from ebda.typing import FloatArray

# A prior with more atoms than this is summed up.
_ATOMS = 8


def fit(case: Case) -> Markup:
    """What was fitted and chosen, and why."""
    return section(
        "fit",
        "What was fitted, and why",
        tag("div", *[tag("p", words) for words in method(case)], class_="prose"),
        tag("div", _compared(case), _prior(case), class_="columns"),
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
        *[
            str(known)
            for known in (case.model.groups_, case.model.covariates_)
            if known
        ],
        _factors(case),
        _scales(case),
        _wild(case),
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
        first = f"No feature differs between the classes with q ≤ {LEVEL:g}."
    else:
        first = (
            f"{count(n, 'feature')} {'differs' if n == 1 else 'differ'} between the "
            f"classes with q ≤ {LEVEL:g}, each taken by itself: at most about "
            f"{percent(LEVEL)} of them are expected not to differ."
        )
    doubt = case.ranking.marginal.doubt(LEVEL)
    return " ".join(filter(None, [first, doubt, _beyond(case)]))


def _beyond(case: Case) -> str:
    """The other list, where it asks something else."""
    if not case.model.n_factors_:
        return ""
    n = case.n_beyond
    said = count(n, "feature") if n else "No feature"
    return (
        f"{said} {'differ' if n > 1 else 'differs'} by more than the common factors "
        "make of it (“q beyond”): whatever shifts a whole group of features together "
        "counts for the first list and not for the second."
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


def _scales(case: Case) -> str:
    scale = case.model.sample_scale_
    return "" if scale is None else str(scale)


def _wild(case: Case) -> str:
    found = case.model.wild_values_
    return "" if found is None else str(found)


def _choice(case: Case) -> str:
    selection = case.model.selection_
    if not selection.n_folds:
        return str(selection.reason)
    if len(selection.candidates) == 1:
        return str(selection.words())
    lines = "; ".join(_lines(*selection.best))
    return " ".join(
        [
            f"{count(len(selection.candidates))} rules were compared by how well they "
            f"tell the classes apart on held-out samples, in {selection.n_folds} folds "
            "of the training data. The model is their average, and a rule counts the "
            "more the more probable it makes the labels. The largest weight, "
            f"{percent(selection.weight.max())}, has “{', '.join(selection.best)}”"
            f"{f' ({lines})' if lines else ''}. The held-out scores also calibrate "
            "the probabilities.",
            selection.doubt,
        ]
    ).strip()


def _lines(covariance: str, candidate: str) -> list[str]:
    """What the two parts of a rule are, as far as they are registered."""
    lines = [
        line_of(COVARIANCES, covariance),
        line_of(SHRINKAGES, candidate),
    ]
    return [line for line in lines if line]


def _share(share: float) -> Markup:
    return join([bar(share), percent(share)])


def _compared(case: Case) -> Markup:
    """A row for each rule: what it is, its share, and its separation."""
    selection = case.model.selection_
    judged = zip(selection.separation, selection.error, strict=True)
    rules = [
        join([", ".join(rule), tag("small", "; ".join(_lines(*rule)))])
        for rule in selection.candidates
    ]
    separation = [
        DASH if np.isnan(mean) else f"{mean:.2f} ± {error:.2f}"
        for mean, error in judged
    ]
    shares = [_share(weight) for weight in selection.weight]
    caption = "Rules that were compared, and their share in the model"
    columns: list[Column] = [("rule", rules), ("share", shares)]
    columns.append(("separation (± s.e.)", separation))
    return table(columns, caption, "shares")


def _prior(case: Case) -> Markup:
    what, shares = zip(*prior_rows(case), strict=True)
    drawn = [_share(share) for share in shares]
    caption = "Estimated distribution of the true differences"
    columns = [("true difference", what), ("share of features", drawn)]
    return table(columns, caption, "shares")


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
    order = np.argsort(-weights, kind="stable")
    names = [
        f"{a:+.1f} standard errors".replace("-", MINUS) if a else "no difference"
        for a in atoms[order]
    ]
    return list(zip(names, weights[order].tolist(), strict=True))


def top_features(case: Case, n: int = 20) -> Markup:
    """The first features, for readers without JavaScript."""
    found = case.ranking.marginal
    first = found.order[: min(n, case.n_found)]
    if not first.size:
        return tag("p", f"No feature differs between the classes with q ≤ {LEVEL:g}.")
    best = found.strongest[first]

    def shown(values: FloatArray, form: str) -> list[str]:
        return [format(v, form) for v in np.atleast_2d(values)[best, first]]

    columns: list[Column] = [
        ("feature", [name(case.feature(j)) for j in first]),
        (case.difference_is, shown(case.difference, ".3g")),
        ("t", shown(found.t, ".2f")),
        ("q", [format(v, ".2g") for v in found.q_over_classes[first]]),
        (
            "q beyond",
            [format(v, ".2g") for v in case.ranking.conditional.q_over_classes[first]],
        ),
    ]
    return table(columns, f"The first {len(first)} features", "features")
