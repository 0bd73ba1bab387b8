"""What a reader should know before believing the numbers.

A check takes the case and returns a :class:`Caution` or None; `CHECKS` lists them in
the order in which they are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebda.data.distortion import log_hint
from ebda.listing import alike
from ebda.report.case import LEVEL, Case
from ebda.report.structure import (
    batches_and_outliers,
    perfect_by_chance,
    perfect_features,
)
from ebda.report.words import count, listed, percent

# With fewer samples than this, the mean of a class and any error are poorly estimated.
FEW = 10
# A class with this many times the samples of another.
UNEQUAL = 4.0
# Perfect features are mentioned where fewer than this many are expected by chance.
_SURPRISE = 0.05


@dataclass(frozen=True)
class Caution:
    """One thing to know.

    Parameters
    ----------
    severe : bool
        Whether conclusions are at risk, or it is merely good to know.
    title, words : str
        What it is, and what to do about it.
    """

    severe: bool
    title: str
    words: str


def few_samples(case: Case) -> Caution | None:
    """Classes with too few samples, or with samples that are worth too few."""
    few = [
        f"{label} ({count(n)})"
        for label, n in zip(case.classes, case.worth, strict=True)
        if n < FEW
    ]
    if not few:
        return None
    grouped = case.model.groups_ is not None
    kind = "what is worth fewer than {} independent" if grouped else "fewer than {}"
    return Caution(
        True,
        "Few samples",
        f"The model has {kind.format(FEW)} samples of {listed(few)}. Any "
        "estimate of the error depends on single samples, and so does the list of "
        "features. More samples of "
        f"{'these classes' if len(few) > 1 else 'this class'} would help more than "
        "anything else.",
    )


def alike_labels(case: Case) -> Caution | None:
    """Classes whose names differ in case or blanks only."""
    found = alike(case.classes)
    if not found:
        return None
    return Caution(
        True,
        "Labels that differ in case or blanks only",
        f"{listed([' and '.join(names) for names in found])} are taken for different "
        "classes. If they are one, write them in one way and fit the model again.",
    )


def copies(case: Case) -> Caution | None:
    """Samples that are far more alike than others, and were not declared a group."""
    selection = case.model.selection_
    if selection.copies is None:
        return None
    n, e = int(case.model.n_seen_), case.evaluation
    # Names may be those of other samples.
    of_fit = e is not None and e.n_folds and len(e.codes) == n
    names = case.names_of(n) if of_fit else None
    return Caution(True, "Samples that look like copies", selection.copy_words(names))


def confounded(case: Case) -> Caution | None:
    """Covariates that tell much about the class."""
    found = case.model.covariates_
    if found is None or not found.caution:
        return None
    return Caution(True, "Covariates partly confounded with the classes", found.caution)


def not_adjusted(case: Case) -> Caution | None:
    """Samples without the covariates that the model was adjusted for."""
    if not case.lacks_covariates:
        return None
    names = listed(case.model.covariates_.names.tolist(), 6)
    words = (
        f"The model was adjusted for {names}, and these samples were given without. "
    )
    if case.evaluation is None:
        words += (
            "Their probabilities are those of samples with the mean of the fit, and "
        )
    else:
        words += "The held-out predictions do not depend on that. But "
    words += (
        "what looks like a batch may be one of these. Give the covariates to "
        "write_report, or their columns to ebda report."
    )
    return Caution(False, "Samples without covariates", words)


def imbalance(case: Case) -> Caution | None:
    """Classes of very different size."""
    small, large = int(case.counts.argmin()), int(case.counts.argmax())
    ratio = case.counts[large] / case.counts[small]
    if ratio < UNEQUAL:
        return None
    always = percent(1 - case.counts[large] / case.counts.sum())
    return Caution(
        False,
        "Unequal classes",
        f"There are {ratio:.1f} times as many samples of {case.classes[large]} as of "
        f"{case.classes[small]}. Always predicting {case.classes[large]} would be "
        f"wrong for only {always}, so compare the errors of the classes, not the "
        "total. If the classes will have other shares in practice, pass these to the "
        "model as its class probabilities (priors).",
    )


def missing_values(case: Case) -> Caution | None:
    """Values that were missing in the fit, and features that had too few."""
    moments = case.model.moments_
    if moments.observed is None:
        return None
    total = float(moments.counts.sum()) * moments.means.shape[1]
    share = 1 - float(moments.observed.sum()) / total
    gone = np.flatnonzero(moments.without_values)
    words = (
        f"{percent(share)} of the values were missing in the fit. Means, variances and "
        "standard errors are of the values that are there, and a missing value adds "
        "nothing to the score of a sample. That is right where values are missing by "
        "chance, and not where they are missing because of what they are."
    )
    if len(gone):
        adjusted = case.model.covariates_ is not None
        also = ", or confounded with covariates," if adjusted else ""
        words += (
            f" {count(len(gone), 'feature')} without a value in some class{also} "
            f"{'has' if len(gone) == 1 else 'have'} no weight."
        )
    return Caution(bool(len(gone)), "Missing values", words)


def no_better_than_chance(case: Case) -> Caution | None:
    """An error whose interval reaches that of the most frequent class."""
    e = case.evaluation
    if e is None or e.interval()[1] < e.chance_error:
        return None
    return Caution(
        True,
        "Not better than chance",
        "Always predicting the most frequent class is wrong for "
        f"{percent(e.chance_error)} of the samples, and the interval of the error "
        f"reaches {percent(e.interval()[1])}. These data do not show that the classes "
        "can be told apart.",
    )


def no_error(case: Case) -> Caution | None:
    """Every held-out sample was classified correctly."""
    e = case.evaluation
    if e is None or e.n_errors or e.chance_error == 0:
        return None
    return Caution(
        False,
        "Separation that may be too good to be true",
        f"All {count(len(e.codes))} held-out samples were classified correctly. Some "
        "classes are that far apart. But the cause may also be something else: a "
        "column that encodes the label, classes that were measured in different "
        "batches, several samples of the same patient, or features that were selected "
        "beforehand with the labels of all samples.",
    )


def perfect_feature(case: Case) -> Caution | None:
    """A single feature that separates all samples."""
    if case.codes is None:
        return None
    found = perfect_features(case.X, case.codes, len(case.classes))
    present = np.bincount(case.codes)
    expected = perfect_by_chance(present[present > 0].astype(float), case.n_features)
    if not found.size or expected > _SURPRISE:
        return None
    order = case.ranking.order
    names = [case.feature(j) for j in order[np.isin(order, found)]]
    what = "one class from all others" if len(case.classes) > 2 else "the classes"
    return Caution(
        False,
        "A single feature separates perfectly",
        f"{listed(names, 5)}{': each alone' if len(names) > 1 else ' alone'} separates "
        f"{what} without an error in {count(len(case.codes))} samples. A good marker "
        "does that, and so does a column that was made from the label. Check which of "
        "the two it is.",
    )


def batch(case: Case) -> Caution | None:
    """A strong factor that splits the samples, or a sample unlike the others.

    Of samples that are adjusted for covariates, as far as these are given.
    """
    if case.codes is None:
        return None
    names = case.names_of(len(case.codes))
    adjustment = None
    if case.columns is not None:
        adjustment = case.columns, case.model.covariates_.slopes
    batches, outliers = batches_and_outliers(
        case.X, case.codes, len(case.classes), adjustment
    )
    words = []
    for factor in batches[:1]:
        group = [names[i] for i in factor.samples]
        mix = [
            np.bincount(case.codes[rows], minlength=len(case.classes))
            for rows in (factor.samples, factor.rest)
        ]
        shares = [
            f"{case.classes[k]} {a} and {b}"
            for k, (a, b) in enumerate(zip(*mix, strict=True))
        ]
        words.append(
            f"A common factor with {percent(factor.share)} of the variance within the "
            f"classes divides the samples into groups of {len(factor.samples)} and "
            f"{len(factor.rest)} ({listed(shares)}). The smaller group: "
            f"{listed(group)}. A rule can remove such a factor, but not the part that "
            "coincides with a class: compare the groups with dates, plates and sites."
        )
    for factor in outliers:
        words.append(
            f"{names[factor.samples[0]]} is unlike all others: this sample alone is a "
            f"factor with {percent(factor.share)} of the variance within the classes. "
            "Check its quality."
        )
    if not words:
        return None
    title = "Looks like a batch" if batches else "A sample unlike the others"
    return Caution(True, title, " ".join(words))


def factors(case: Case) -> Caution | None:
    """Common factors of any kind."""
    n = case.model.n_factors_
    if not n:
        return None
    subject = "is a common factor" if n == 1 else f"are {n} common factors"
    return Caution(
        False,
        "Common factors within the classes",
        f"There {subject} that many features share, such as batches, cell types or the "
        "state of a sample. The rule, z and the effects are adjusted for "
        f"{'it' if n == 1 else 'them'}. If the classes were measured at different "
        "times or places, no method can tell the batch from the class.",
    )


def logarithms(case: Case) -> Caution | None:
    """Features that look like logarithms that were not taken."""
    hint = None if case.X is None else log_hint(case.X)
    if hint is None:
        return None
    words = f"{hint[0].upper()}{hint[1:]}. Take them and fit the model again."
    return Caution(False, "Logarithms may be wanted", words)


def no_features(case: Case) -> Caution | None:
    """No single feature is a finding."""
    if not case.model.selected_.any():
        return Caution(
            True,
            "No difference found",
            "No difference could be told from zero, and no feature has a weight in the "
            "rule. Every sample is assigned to the most frequent class.",
        )
    if case.n_found:
        return None
    return Caution(
        False,
        "No single feature stands out",
        f"No feature differs between the classes with q ≤ {LEVEL:g}. The rule may "
        "still predict well from many small differences, but no single "
        "feature should be reported as a finding.",
    )


def no_evaluation(case: Case) -> Caution | None:
    """The error was not estimated."""
    if case.evaluation is not None:
        return None
    return Caution(
        False,
        "Error not estimated",
        "There was no cross-validation and no test set, so that it is not known how "
        "often the model will be wrong on new samples.",
    )


Check = Callable[[Case], Caution | None]
CHECKS: tuple[Check, ...] = (
    alike_labels,
    no_better_than_chance,
    no_features,
    few_samples,
    batch,
    copies,
    confounded,
    not_adjusted,
    no_error,
    perfect_feature,
    imbalance,
    missing_values,
    logarithms,
    factors,
    no_evaluation,
)


# What the preview of `ebda fit` says before the work.
SAID_BEFORE: tuple[Check, ...] = (logarithms, alike_labels)


def cautions(case: Case, without: tuple[Check, ...] = ()) -> list[Caution]:
    """Everything that the checks found, warnings first.

    Parameters
    ----------
    case : Case
        What the report is about.
    without : tuple of callable
        Checks to leave out.
    """
    checks = [check for check in CHECKS if check not in without]
    found = [caution for check in checks if (caution := check(case)) is not None]
    return sorted(found, key=lambda caution: not caution.severe)
