"""Classify the embedded leukemia data and draw the fit.

Fits the classifier to the 38 training samples of the Golub leukemia data (7129 genes),
classifies the 34 test samples, and draws the fitted prior.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from ebda.cli import options as shared
from ebda.cli.features import feature_words
from ebda.cli.outcome import confusion_words
from ebda.cli.terminal import say
from ebda.datasets import load_golub
from ebda.estimators.classifier import EBClassifier
from ebda.evaluation import evaluate
from ebda.files import replacing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("ebda-demo.png"),
        metavar="FILE",
        help="where to write the picture (default: %(default)s)",
    )
    shared.add_top(parser)


def run(options: argparse.Namespace) -> None:
    """Fit, predict, print, draw."""
    shared.check_writable("--out", options.out)
    golub = load_golub()
    train, test = golub.split == "train", golub.split == "test"
    say(
        f"Leukemia data of Golub et al. (1999): {golub.data.shape[1]} genes, "
        f"{train.sum()} training and {test.sum()} test samples, "
        f"{' against '.join(golub.target_names)}."
    )
    data = np.sign(golub.data) * np.log1p(np.abs(golub.data))
    start = time.perf_counter()
    model = EBClassifier().fit(data[train], golub.target[train])
    fitted = time.perf_counter() - start
    tested = evaluate(model, data[test], golub.target[test])
    model.feature_names_in_ = golub.feature_names.astype(object)
    say(
        f"Fitted EBClassifier() to the logarithms in {fitted:.2f} s, without tuning: "
        f"{model.n_factors_} common factors within the classes.\n"
    )
    say(f"Test samples ({tested.n_errors} of {len(tested.codes)} wrong):")
    say(confusion_words(tested))
    say("")
    say("What was compared inside the training samples, and its share in the rule:")
    say(model.selection_.table())
    say("")
    say(describe_prior(model.prior_))
    say("")
    say(feature_words(model, options.top, math.e))
    draw(model, options.out)


def describe_prior(prior: Any) -> str:
    """The fitted prior in words."""
    lines = [
        "The fitted prior: what the genes' normalised differences between the "
        "classes really are,\nbeside the common factors.",
        f"  {prior.pi0:6.1%} of the genes do not differ;",
    ]
    lines += [
        f"  {weight:6.1%} differ by {atom:+.1f} standard errors;"
        for atom, weight in sorted(
            zip(prior.atoms, prior.weights, strict=True), key=lambda pair: -pair[1]
        )
        if atom != 0
    ]
    return "\n".join(lines)[:-1] + "."


def draw(model: EBClassifier, path: Path) -> None:
    """Write the picture, or say what is missing for it."""
    try:
        from ebda.plotting import plot_fit
    except ImportError as error:
        say(f"\nNo picture: {error}")
        return
    figure = plot_fit(model)
    with replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:] or "png", dpi=150)
    say(f"\nPicture of the fit: {path.resolve()}")
