"""The work of ``ebda fit``: cross-validate, fit to all samples, test."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ebda.cli.class_priors import in_order
from ebda.cli.comparison import compared
from ebda.cli.kept import Watched
from ebda.cli.known import covariates_for, covariates_of, groups_of
from ebda.cli.outcome import Fitted
from ebda.cli.predict import classify
from ebda.cli.progress import steps
from ebda.cli.samples import training_values
from ebda.estimators.classifier import EBClassifier
from ebda.evaluation import Evaluation, RepeatedEvaluation, cross_validate
from ebda.evaluation.held_out import class_codes
from ebda.inputs import Table
from ebda.inputs.matching import by_name


def fitted_to(
    table: Table, test: Table | None, options: argparse.Namespace, seconds: float
) -> Fitted:
    """Cross-validate, fit to all samples, and test.

    Of data that stay on disk the error is estimated from the samples that the fit
    keeps in memory for its folds.

    Parameters
    ----------
    table : Table
        The samples of the fit.
    test : Table, optional
        Those of a test.
    options : Namespace
        Of the command.
    seconds : float
        What reading took.
    """
    model = EBClassifier(
        prior=options.prior,
        shrinkage=options.shrinkage,
        covariance=options.covariance,
        sample_scale=options.sample_scale,
        wild_values=options.wild_values,
        priors=in_order(options.priors, list(table.class_counts)),
        n_jobs=options.jobs,
        random_state=options.seed,
    )
    took = {"reading": seconds}
    watched = Watched.of(table)
    n_steps = _n_folds(table, options) * options.repeats + 1
    doing = None if watched is None else watched.words
    with steps(n_steps, options.quiet, doing=doing) as done:
        seen: Table | None = table
        if watched is None:
            crossed = _crossed(model, table, options, took, done)
            _fit(model, table, table.X, options, took, done)
        else:
            _fit(model, table, watched.data, options, took, done)
            seen, crossed = watched.kept() if _wants_samples(options) else None, []
            if seen is not None:
                crossed = _crossed(model, seen, options, took, done)
    repeated = RepeatedEvaluation(tuple(crossed)) if crossed else None
    tested: Evaluation | None = None
    warned: list[str] = []
    if test is not None:
        lacking = _absent(test)
        known = training_values(seen, None)
        _, warned = compared(
            model, test.X, known, lacking, test.source, log=options.log
        )
        tested = _tested(model, test, options.missing)
    found = model, repeated, tested, took, table, seen, test
    return Fitted(*found, tuple(warned))


def _absent(test: Table) -> list[str]:
    """Features without a value in any test sample."""
    if not isinstance(test.X, np.ndarray):
        return []
    names: list[str] = test.feature_names[np.isnan(test.X).all(axis=0)].tolist()
    return names


def _wants_samples(options: argparse.Namespace) -> bool:
    return bool(options.folds or options.report or options.model or options.test)


def _n_folds(table: Table, options: argparse.Namespace) -> int:
    return int(min(options.folds, max(table.class_counts.values())))


def _known(table: Table, options: argparse.Namespace) -> tuple[Any, Any]:
    """Groups and covariates of the samples."""
    covariates = covariates_of(table, options.covariates)
    return groups_of(table, options.groups), covariates


def _crossed(
    model: EBClassifier,
    table: Table,
    options: argparse.Namespace,
    took: dict[str, float],
    done: Callable[[str], None],
) -> list[Evaluation]:
    """One cross-validation per repetition; none for no folds."""
    assert table.y is not None
    folds, (groups, covariates) = _n_folds(table, options), _known(table, options)
    if not folds:
        return []
    start = time.perf_counter()
    crossed = [
        cross_validate(
            model,
            table.X,
            table.y,
            folds,
            options.seed + repeat,
            lambda: done("fold"),
            groups,
            covariates,
        )
        for repeat in range(options.repeats)
    ]
    took["cross-validation"] = time.perf_counter() - start
    return crossed


def _fit(
    model: EBClassifier,
    table: Table,
    X: Any,
    options: argparse.Namespace,
    took: dict[str, float],
    done: Callable[[str], None],
) -> None:
    """To all samples."""
    assert table.y is not None
    start = time.perf_counter()
    groups, covariates = _known(table, options)
    model.fit(X, table.y, groups=groups, covariates=covariates)
    model.feature_names_in_ = table.feature_names.astype(object)
    took["fit"] = time.perf_counter() - start
    done("fit to all samples")


def _tested(model: EBClassifier, test: Table, missing: str) -> Evaluation:
    """The error on samples that took no part, predicted as `ebda predict` would."""
    assert test.y is not None
    with by_name():
        zero_weight, own = missing == "zero-weight", covariates_for(model, test)
        _, probabilities = classify(model, test.X, zero_weight, own)
    codes = class_codes(model.classes_, test.y)
    return Evaluation(model.classes_, codes, probabilities, 0)
