"""The same tasks in R's pamr, glmnet, sda, limma and ashr, and in ebda.

python benchmarks/coming_from.py [--out FILE]

Needs R with these packages. Writes the numbers of the pages "Coming from ...".
"""

from __future__ import annotations

import argparse
import json
import runpy
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from ebda import EBClassifier, NormalMeans
from ebda.baselines import LassoLogistic, ShrinkageDA, ShrunkenCentroids
from ebda.datasets import load_golub

SCRIPT = Path(__file__).with_suffix(".R")
OUT = Path("docs/coming-from/results.json")
# That of the sources, and not of the day on which they were installed.
version = runpy.run_path(str(SCRIPT.parents[1] / "tools" / "version.py"))["version"]


def inner_folds(y: Any) -> Any:
    """Ten folds for what is tuned inside of a fit, the same ones in R and Python."""
    fold = np.empty(len(y), dtype=int)
    split = StratifiedKFold(10, shuffle=True, random_state=1)
    for f, (_, test) in enumerate(split.split(y, y)):
        fold[test] = f + 1
    return fold


class Given:
    """The folds that are given, as a splitter of scikit-learn."""

    def __init__(self, fold: Any) -> None:
        self.fold = fold

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        for f in np.unique(self.fold):
            yield np.flatnonzero(self.fold != f), np.flatnonzero(self.fold == f)

    def get_n_splits(self, *_: Any) -> int:
        return len(np.unique(self.fold))


RULES = {
    "LassoLogistic": lambda inner: LassoLogistic(cv=Given(inner)),
    "ShrunkenCentroids": lambda inner: ShrunkenCentroids(cv=Given(inner)),
    "ShrinkageDA": lambda inner: ShrinkageDA(),
    "EBClassifier": lambda inner: EBClassifier(),
}


def of_rules(X: Any, y: Any, train: Any, fold: Any, inner: Any) -> dict[str, Any]:
    """Errors on the test samples and in cross-validation."""
    found = {}
    for name, make in RULES.items():
        model = make(inner[train]).fit(X[train], y[train])
        crossed = 0
        for f in np.unique(fold):
            held = fold == f
            fitted = make(inner[~held]).fit(X[~held], y[~held])
            crossed += np.count_nonzero(fitted.predict(X[held]) != y[held])
        found[name] = {
            "test": int(np.count_nonzero(model.predict(X[~train]) != y[~train])),
            "crossed": int(crossed),
            "features": int(np.count_nonzero(np.any(model.coef_ != 0, axis=0))),
        }
    return found


def estimates() -> tuple[Any, Any, Any]:
    """True values, of which a tenth is not zero, estimates and standard errors."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(3000) < 0.1, rng.normal(0, 2, 3000), 0.0)
    se = rng.uniform(0.3, 1.0, 3000)
    return truth, truth + se * rng.normal(size=3000), se


def judged(mean: Any, s_value: Any, truth: Any, x: Any) -> dict[str, Any]:
    """Squared error of the means, and what is called at an s-value of 5 %."""
    called = s_value <= 0.05
    return {
        "squared_error": round(float(np.mean((mean - truth) ** 2)), 4),
        "called": int(called.sum()),
        "wrong_sign": int(
            np.count_nonzero(np.sign(x[called]) != np.sign(truth[called]))
        ),
    }


def main() -> None:
    """Write the data, run R and ebda, write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    golub = load_golub()
    X, y = np.sign(golub.data) * np.log1p(np.abs(golub.data)), golub.target
    train, inner = golub.split == "train", inner_folds(y)
    fold = np.empty(len(y), dtype=int)
    split = StratifiedKFold(5, shuffle=True, random_state=0)
    for f, (_, test) in enumerate(split.split(y, y)):
        fold[test] = f
    truth, x, se = estimates()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savetxt(folder / "x.csv", X, delimiter=",", fmt="%.17g")
        (folder / "y.txt").write_text("\n".join(y))
        for file, values in (("fold", fold), ("train", train * 1), ("inner", inner)):
            np.savetxt(folder / f"{file}.txt", values, fmt="%d")
        pd.DataFrame({"estimate": x, "se": se}).to_csv(folder / "estimates.csv")
        command = ["Rscript", "--vanilla", str(SCRIPT), name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        limma, ashr = (pd.read_csv(folder / f"{p}.csv") for p in ("limma", "ashr"))
    lines = [line.split(",") for line in done.stdout.split() if "," in line]
    rules = {
        rule: dict(zip(("test", "crossed", "features"), map(int, rest), strict=True))
        for rule, *rest in lines
        if rule not in ("rule", "version")
    }
    rules |= of_rules(X, y, train, fold, inner)
    ranking = EBClassifier().fit(X, y).ranking_.marginal
    same = NormalMeans(prior="unimodal", null="point").fit(x, scale=se)
    ours = NormalMeans().fit(x, scale=se)
    best = ranking.order[:100]
    result = {
        "versions": {line[1]: line[2] for line in lines if line[0] == "version"}
        | {"ebda": version()},
        "rules": rules,
        "limma": {
            "largest_difference_of_t": float(
                np.abs(np.abs(limma["t"]) - abs(ranking.t)).max()
            ),
            "limma_q_05": int((limma["q"] <= 0.05).sum()),
            "ebda_q_05": int(ranking.selected(0.05).sum()),
            "shared_of_first_100": len(set(best) & set(np.argsort(limma["p"])[:100])),
        },
        "ashr": {
            "estimates": judged(x, np.ones(len(x)), truth, x),
            "ash": judged(ashr["mean"], ashr["s"], truth, x),
            "unimodal": judged(same.posterior_mean_, same.s_value_, truth, x),
            "stacked": judged(ours.posterior_mean_, ours.s_value_, truth, x),
            "largest_difference_of_means": float(
                np.abs(same.posterior_mean_ - ashr["mean"]).max()
            ),
        },
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
