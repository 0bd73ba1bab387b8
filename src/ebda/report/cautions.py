"""What a reader should know before believing the numbers.

A check looks at the case and returns a :class:`Caution` or None; `CHECKS` is the list
of them, in the order in which they are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebda.report.case import Case
from ebda.report.numbers import count, listed, percent
from ebda.report.structure import (
    batches_and_outliers,
    perfect_by_chance,
    perfect_features,
)

# Fewer samples than this in a class tell its mean and any error badly.
FEW = 10
# A class with this many times the samples of another.
UNEQUAL = 4.0
# A q-value up to here counts as a difference.
LEVEL = 0.05
# Expected number of perfect features by chance that is no surprise.
_SURPRISE = 0.05


@dataclass(frozen=True)
class Caution:
    """One thing to know.

    Parameters
    ----------
    severe : bool
        Whether conclusions are in danger, or it is merely good to know.
    title, words : str
        What it is, and what to do.
    """

    severe: bool
    title: str
    words: str


def few_samples(case: Case) -> Caution | None:
    """Classes with too few samples."""
    few = [
        f"{label} ({count(n)})"
        for label, n in zip(case.classes, case.counts, strict=True)
        if n < FEW
    ]
    if not few:
        return None
    return Caution(
        True,
        "Few samples",
        f"The model has fewer than {FEW} samples of {listed(few)}. The error below "
        "hangs on single samples, and so does the list of features. More samples of "
        "that class help more than anything else.",
    )


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
        f"{case.classes[small]}. Always answering {case.classes[large]} would be wrong "
        f"for {always} only: compare the errors of the classes, not the total. Where "
        'the shares will be others in use, fit with priors="uniform" or the true ones.',
    )


def no_better_than_chance(case: Case) -> Caution | None:
    """An error whose interval reaches that of the most frequent class."""
    e = case.evaluation
    if e is None or e.interval()[1] < e.chance_error:
        return None
    return Caution(
        True,
        "Not better than chance",
        f"Always naming the most frequent class errs in {percent(e.chance_error)} of "
        f"the samples, and the interval of the error reaches {percent(e.interval()[1])}"
        ". These data do not show that the classes can be told apart.",
    )


def no_error(case: Case) -> Caution | None:
    """Every held-out sample right."""
    e = case.evaluation
    if e is None or e.n_errors or e.chance_error == 0:
        return None
    return Caution(
        False,
        "Separation that may be too good to be true",
        f"All {count(len(e.codes))} held-out samples were classified right. Some "
        "classes are that far apart. It also happens where something else tells them "
        "apart: a column that encodes the label, classes measured in different "
        "batches, the same patient in several samples, or features that were chosen "
        "with the labels of all samples before.",
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
    place = np.empty(case.n_features, dtype=np.intp)
    place[case.ranking.order] = np.arange(case.n_features)
    names = [case.feature(j) for j in found[np.argsort(place[found])]]
    what = "one class from all others" if len(case.classes) > 2 else "the classes"
    return Caution(
        False,
        "A single feature separates perfectly",
        f"{listed(names, 5)}{': each alone' if len(names) > 1 else ' alone'} separates "
        f"{what} without an error in {count(len(case.codes))} samples. A "
        "good marker does that, and so does a column that was made from the label. "
        "Make sure which it is.",
    )


def batch(case: Case) -> Caution | None:
    """A strong factor with two groups of samples, or one sample unlike the rest."""
    if case.codes is None:
        return None
    n = len(case.codes)
    batches, outliers = batches_and_outliers(case.X, case.codes, len(case.classes))
    words = []
    for factor in batches[:1]:
        group = [case.name_of(int(i), n) for i in factor.samples]
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
            f"{listed(group)}. The rule takes such factors out, but what coincides "
            "with a class cannot be taken out: compare the groups with dates, plates "
            "and sites."
        )
    for factor in outliers:
        who = case.name_of(int(factor.samples[0]), n)
        words.append(
            f"{who} is unlike all others: it alone makes a factor with "
            f"{percent(factor.share)} of the variance within the classes. Look at its "
            "quality."
        )
    if not words:
        return None
    title = "Looks like a batch" if batches else "A sample unlike the others"
    return Caution(True, title, " ".join(words))


def factors(case: Case) -> Caution | None:
    """Common factors, whatever they are."""
    n = case.model.n_factors_
    if not n:
        return None
    were = "It was" if n == 1 else "They were"
    return Caution(
        False,
        "Common factors within the classes",
        f"{count(n, 'common factor')} that many features share: batches, cell types, "
        f"the state of a sample. {were} estimated and taken out of the rule and of "
        "z and the effects below. If the classes were measured at different times or "
        "places, no method can tell the batch from the class.",
    )


def no_features(case: Case) -> Caution | None:
    """No single feature that can be named."""
    if not case.model.selected_.any():
        return Caution(
            True,
            "No difference found",
            "The prior cannot tell any difference from zero, and no feature has a "
            "weight in the rule. Every sample gets the most frequent class.",
        )
    if case.ranking.selected(LEVEL).any():
        return None
    return Caution(
        False,
        "No single feature stands out",
        f"No feature has a q-value of {LEVEL:g} or less. The rule may still predict by "
        "many small differences, but none of the features below should be named as a "
        "finding.",
    )


def no_evaluation(case: Case) -> Caution | None:
    """Nothing is known of the error."""
    if case.evaluation is not None:
        return None
    return Caution(
        False,
        "No honest error",
        "The page was made without cross-validation and without a test set, so it "
        "cannot say how often the model errs on new samples.",
    )


CHECKS: tuple[Callable[[Case], Caution | None], ...] = (
    no_better_than_chance,
    no_features,
    few_samples,
    batch,
    no_error,
    perfect_feature,
    imbalance,
    factors,
    no_evaluation,
)


def cautions(case: Case) -> list[Caution]:
    """Everything that the checks found, the severe first."""
    found = [caution for check in CHECKS if (caution := check(case)) is not None]
    return sorted(found, key=lambda caution: not caution.severe)
