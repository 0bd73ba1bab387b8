"""All plots of the package on its embedded data, written as PNG files.

``python examples/plots.py DIR`` takes about half a minute; ``--quick`` leaves out
cross-validation and the comparison of rules.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from ebda import EBClassifier
from ebda.baselines import IndependenceRule
from ebda.datasets import load_golub, load_khan
from ebda.evaluation import cross_validate, plan_from_evaluation
from ebda.plotting import (
    CalibrationDisplay,
    EffectDisplay,
    ErrorByMethodDisplay,
    MarginalDisplay,
    PlanningDisplay,
    PriorDisplay,
    ScoreDisplay,
    ShrinkageDisplay,
)
from ebda.priors import Kernel, PointLaplace

RECORDS = Path(__file__).parent.parent / "docs" / "benchmarks" / "accuracy.csv"


def classifier(quick: bool) -> EBClassifier:
    """The default classifier, or one that compares no rules."""
    if quick:
        return EBClassifier(shrinkage="mean", covariance="factor")
    return EBClassifier()


def of_a_model(name: str, model: EBClassifier, genes: Any) -> Iterator[tuple[str, Any]]:
    """The plots of a fitted model."""
    yield f"{name}_marginal", MarginalDisplay.from_estimator(model)
    yield f"{name}_prior", PriorDisplay.from_estimator(model)
    yield f"{name}_shrinkage", ShrinkageDisplay.from_estimator(model)
    yield f"{name}_effects", EffectDisplay.from_estimator(model, names=genes)


def of_golub(quick: bool) -> Iterator[tuple[str, Any]]:
    """Two classes, with logarithms of the raw intensities."""
    golub = load_golub()
    X = np.sign(golub.data) * np.log1p(np.abs(golub.data))
    model = classifier(quick).fit(X, golub.target)
    yield from of_a_model("golub", model, golub.feature_names)
    yield (
        "golub_effects_shrunken",
        EffectDisplay.from_estimator(
            model, effect="posterior_mean", names=golub.feature_names
        ),
    )
    for prior in (PointLaplace(), Kernel()):
        fitted = prior.fit(model.z_)
        yield (
            f"golub_prior_{type(prior).__name__}",
            PriorDisplay.from_prior(fitted.prior_),
        )
    if quick:
        return
    methods = {
        "EBClassifier": EBClassifier(),
        "mean, diagonal": EBClassifier(shrinkage="mean", covariance="diagonal"),
        "sparse, diagonal": EBClassifier(shrinkage="sparse", covariance="diagonal"),
        "independence rule": IndependenceRule(),
    }
    found = {name: cross_validate(m, X, golub.target) for name, m in methods.items()}
    yield "golub_methods", ErrorByMethodDisplay.from_evaluations(found)
    honest = found["EBClassifier"]
    yield "golub_scores", ScoreDisplay.from_evaluation(honest, names=golub.sample_id)
    yield "golub_calibration", CalibrationDisplay.from_evaluation(honest)
    plan = plan_from_evaluation(honest)
    yield "golub_planning", PlanningDisplay.from_plan(plan)


def of_khan(quick: bool) -> Iterator[tuple[str, Any]]:
    """Four classes."""
    khan = load_khan()
    model = classifier(quick).fit(khan.data, khan.target)
    genes = khan.feature_names
    yield from of_a_model("khan", model, genes)
    yield "khan_marginal_EWS", MarginalDisplay.from_estimator(model, "EWS")
    yield "khan_effects_EWS", EffectDisplay.from_estimator(model, "EWS", names=genes)
    yield "khan_scores_fit", ScoreDisplay.from_estimator(model, khan.data, khan.target)
    if quick:
        return
    plain = EBClassifier(shrinkage="mean", covariance="diagonal")
    honest = cross_validate(plain, khan.data, khan.target)
    samples = [f"sample {i}" for i in range(len(khan.target))]
    yield "khan_scores", ScoreDisplay.from_evaluation(honest, names=samples)
    yield "khan_scores_EWS", ScoreDisplay.from_evaluation(honest, "EWS", samples)
    yield "khan_calibration", CalibrationDisplay.from_evaluation(honest)
    yield "khan_calibration_EWS", CalibrationDisplay.from_evaluation(honest, "EWS")


def of_records() -> Iterator[tuple[str, Any]]:
    """Results of the benchmark, if this is a checkout of the project."""
    if RECORDS.exists():
        with RECORDS.open(newline="") as stream:
            records = list(csv.DictReader(stream))
        yield (
            "benchmark_methods",
            ErrorByMethodDisplay.from_records(records, "alon_colon"),
        )


def main() -> None:
    """Draw all plots."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="folder for the plots")
    parser.add_argument("--quick", action="store_true", help="no cross-validation")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    plots = [of_golub(chosen.quick), of_khan(chosen.quick), of_records()]
    for source in plots:
        for name, display in source:
            display.plot()
            display.figure_.savefig(chosen.out / f"{name}.png", dpi=110)
            plt.close(display.figure_)
            print(chosen.out / f"{name}.png")


if __name__ == "__main__":
    main()
