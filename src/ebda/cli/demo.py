"""Compare rules on the embedded leukemia data, list genes, draw and report.

Fits the paper's rules, its competitors and EBClassifier() to the 38 training samples of
the Golub leukemia data (7129 genes), counts their errors on the 34 test samples and in
repeated cross-validation of all 72, lists the genes that differ, draws the fitted
prior, and writes the report.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ebda.cli import options as shared
from ebda.cli.features import feature_words
from ebda.cli.outcome import confusion_words
from ebda.cli.side_by_side import FOLDS, RULES, Errors, errors_of, heading, row
from ebda.cli.terminal import say
from ebda.datasets import load_golub
from ebda.estimators.classifier import EBClassifier
from ebda.files import replacing
from ebda.inputs.matching import by_name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("ebda-demo.png"),
        metavar="FILE",
        help="where to write the picture (default: %(default)s)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        default=Path("ebda-demo.html"),
        metavar="FILE",
        help="where to write the report (default: %(default)s)",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        metavar="N",
        help="cross-validations of each rule; 0 for the test samples alone "
        "(default: %(default)s)",
    )
    shared.add_top(parser)


def run(options: argparse.Namespace) -> None:
    """Compare, fit, print, draw, report."""
    shared.check_writable("--out", options.out)
    shared.check_writable("--report", options.report)
    if options.repeats < 0:
        raise ValueError(f"--repeats must be 0 or more, got {options.repeats}")
    golub = load_golub()
    scales = {
        "raw intensities": golub.data,
        "logarithms": np.sign(golub.data) * np.log1p(np.abs(golub.data)),
    }
    ours = _compare(golub, scales, options.repeats)
    # Some intensities are below zero: a difference of signed logarithms is no fold
    # change, and is not called one.
    model = EBClassifier().fit(scales["logarithms"], golub.target)
    model.feature_names_in_ = golub.feature_names.astype(object)
    n_factors = model.n_factors_
    found = (
        f"{n_factors or 'no'} common factor{'s' * (n_factors != 1)} within the classes"
    )
    say(
        f"\nTest samples by EBClassifier(), of logarithms:\n"
        f"{confusion_words(ours.tested)}\n\n"
        f"Fitted to the logarithms of all {len(golub.target)} samples, without tuning: "
        f"{found}.\n{describe_prior(model.prior_)}\n\n"
        f"{feature_words(model, options.top, None)}\n"
    )
    _draw(model, options.out)
    _report(model, golub, scales["logarithms"], ours, options)


def _compare(golub: Any, scales: dict[str, Any], repeats: int) -> Errors:
    """Print a row for each rule as soon as it is known; the last one is returned."""
    train = golub.split == "train"
    say(
        f"Leukemia data of Golub et al. (1999): {golub.data.shape[1]} genes, "
        f"{train.sum()} training and {(~train).sum()} test samples, "
        f"{' against '.join(golub.target_names)}.\n"
    )
    what = f"How many of the {(~train).sum()} test samples are wrong"
    if repeats:
        what += (
            f", and the error in {FOLDS}-fold cross-validation of all\n"
            f"{len(train)} samples: mean (and range) of {repeats} repetition"
            f"{'s' * (repeats > 1)}, with the same folds for every rule"
        )
    say(f"{what}:\n\n{heading(scales, repeats)}")
    for rule, make in RULES.items():
        try:
            errors = [
                errors_of(make, X, golub.target, train, repeats)
                for X in scales.values()
            ]
        except ImportError as missing:
            say(f"{rule}: left out, as {missing}")
            continue
        say(row(rule, errors))
    return errors[-1]


def describe_prior(prior: Any) -> str:
    """The fitted prior in words."""
    lines = [
        "The fitted prior: what the genes' normalised differences between the "
        "classes really are,\nbeside the common factors.",
        f"  {prior.pi0:6.1%} of the genes do not differ;",
    ]
    lines += [
        f"  {weight:6.1%} differ by {atom:+.1f} standard errors;"
        if weight >= 0.0005
        else f"  <0.05% differ by {atom:+.1f} standard errors;"
        for atom, weight in sorted(
            zip(prior.atoms, prior.weights, strict=True), key=lambda pair: -pair[1]
        )
        if atom != 0
    ]
    return "\n".join(lines)[:-1] + "."


def _draw(model: EBClassifier, path: Path) -> None:
    """Write the picture, or say what is missing for it."""
    try:
        from ebda.plotting import plot_fit
    except ImportError as error:
        say(f"No picture: {error}")
        return
    figure = plot_fit(model)
    with replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:] or "png", dpi=150)
    say(f"Picture of the fit: {path.resolve()}")


def _report(
    model: EBClassifier,
    golub: Any,
    X: Any,
    ours: Errors,
    options: argparse.Namespace,
) -> None:
    """Write the report, with the error of the first cross-validation."""
    from ebda import report

    with by_name():
        report.write_report(
            options.report,
            model,
            X=X,
            y=golub.target,
            evaluation=ours.crossed[0] if ours.crossed else None,
            sample_names=[f"patient {number}" for number in golub.sample_id],
            data={
                "source": "Golub et al. (1999), Affymetrix intensities of 72 patients",
                "target": "leukemia",
                "n_samples": X.shape[0],
                "n_features": X.shape[1],
                "transformation": "sign(x) log(1 + |x|)",
                "log": False,
            },
            command=options.command_line,
        )
    say(f"Report: {options.report.resolve()}")
