"""Missing values: used as they are, or imputed before the same classifier.

    python benchmarks/missing_values.py [--repeats 2] [--report]

Of ten real sets 5, 20 and 40 % of the values are removed at random, or all values below
the 20 % quantile of the set, as a mass spectrometer loses small intensities; from
training and test samples alike. `EBClassifier` takes what is left as it is, or after
scikit-learn's `SimpleImputer` (means) or `KNNImputer` (five neighbours), each fitted to
the training samples. A repeat is one of five stratified folds. Times are CPU seconds of
one fit and one prediction, imputation included, on one core.

The report also tells how many features of data without any difference, the same sets
with permuted labels and normal numbers, have a moderated t with a small p-value.
Runs can be stopped at any moment and go on where they were.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.base import BaseEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from ebda import EBClassifier, LogarithmWarning
from ebda.baselines import IndependenceRule
from ebda.moments import VARIANCES
from real_data import CLIP, FOLDS, SEED, load

Array = NDArray[Any]
Record = dict[str, Any]
SETS = [
    "alizadeh_lymphoma3",
    "alon_colon",
    "borovecki_huntington",
    "golub_leukemia",
    "gravier_breast",
    "khan_srbct",
    "pomeroy_cns",
    "shipp_dlbcl_fl",
    "singh_prostate_6033",
    "sorlie_breast5",
]
SIMULATED, SIMULATED_SHAPE = "normal numbers", (60, 5000)
BELOW = 0.2
MISSING: dict[str, float] = {"5 %": 0.05, "20 %": 0.2, "40 %": 0.4, "small": BELOW}
METHODS: dict[str, Callable[[], BaseEstimator]] = {
    "as they are": EBClassifier,
    "SimpleImputer": lambda: make_pipeline(
        SimpleImputer(keep_empty_features=True), EBClassifier()
    ),
    "KNNImputer": lambda: make_pipeline(
        KNNImputer(keep_empty_features=True), EBClassifier()
    ),
}
NULL, LEVELS = "null", (0.05, 0.01, 0.001)


def with_gaps(X: Array, missing: str, seed: int) -> Array:
    """X without the values that go."""
    share = MISSING[missing]
    if missing == "small":
        return np.where(np.quantile(X, share) > X, np.nan, X)
    rng = np.random.default_rng([seed, round(100 * share)])
    return np.where(rng.random(X.shape) < share, np.nan, X)


def measure(name: str, missing: str, repeat: int, method: str) -> Record:
    """Error, log-loss and time of one method on one fold."""
    data = load(name)
    X = with_gaps(data.X, missing, repeat)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    train, test = list(splits.split(X, data.y))[repeat]
    classes, codes = np.unique(data.y, return_inverse=True)
    model = METHODS[method]()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LogarithmWarning)
        start = time.process_time()
        model.fit(X[train], data.y[train])
        probability = model.predict_proba(X[test])
        seconds = time.process_time() - start
    of_truth = np.clip(probability[np.arange(len(test)), codes[test]], CLIP, 1.0)
    wrong = classes[probability.argmax(axis=1)] != data.y[test]
    return {
        "error": float(wrong.mean()),
        "log_loss": float(-np.log(of_truth).mean()),
        "seconds": round(seconds, 4),
        "gone": round(float(np.isnan(X).mean()), 4),
    }


def null(name: str, missing: str, repeat: int) -> Record:
    """Share of features with small p-values where the labels are random."""
    rng = np.random.default_rng([1, repeat])
    if name == SIMULATED:
        X = rng.normal(size=SIMULATED_SHAPE)
        y = np.arange(len(X)) % 2
    else:
        data = load(name)
        X, y = data.X, rng.permutation(data.y == np.unique(data.y)[0])
    model = IndependenceRule(variance="moderated").fit(with_gaps(X, missing, repeat), y)
    variance = VARIANCES["moderated"].estimate(model.moments_)
    df = np.broadcast_to(variance.degrees_of_freedom, len(model.z_))
    used = ~model.contrasts_.constant
    p = 2 * student.sf(np.abs(model.z_[used]), df[used])
    return {f"{level}": float((p <= level).mean()) for level in LEVELS}


def read(path: Path) -> list[Record]:
    """The records; a torn last line is none."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines if line]


def carry_out(path: Path, repeats: int) -> Iterator[Record]:
    """Run what the file lacks, a repeat of everything at a time, and append it."""
    names = ("set", "missing", "repeat", "method")
    done = {tuple(r[name] for name in names) for r in read(path)}
    jobs = [
        (name, missing, repeat, method)
        for repeat in range(repeats)
        for method in [NULL, *METHODS]
        for name in ([*SETS, SIMULATED] if method == NULL else SETS)
        for missing in MISSING
    ]
    with path.open("a") as file:
        for job in jobs:
            if job in done:
                continue
            found = null(*job[:3]) if job[3] == NULL else measure(*job)
            record = dict(zip(names, job, strict=True)) | found
            file.write(json.dumps(record) + "\n")
            file.flush()
            yield record


def report(records: list[Record]) -> str:
    """Mean error, log-loss and time by what is missing, and p-values without signal."""
    lines = ["| missing | " + " | ".join(METHODS) + " | time / KNNImputer |"]
    lines.append("|---" * (len(METHODS) + 2) + "|")

    def of(missing: str, method: str, what: str) -> Array:
        return np.array(
            [
                r[what]
                for r in records
                if (r["missing"], r["method"]) == (missing, method)
            ]
        )

    for missing in MISSING:
        cells, total = [], {}
        for method in METHODS:
            error, loss = of(missing, method, "error"), of(missing, method, "log_loss")
            total[method] = of(missing, method, "seconds").sum()
            cells.append(
                f"{error.mean():.3f}, {loss.mean():.3f}, {total[method]:.0f} s"
                if len(error)
                else ""
            )
        ratio = total["as they are"] / max(total["KNNImputer"], 1e-9)
        lines.append(f"| {missing} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    lines.append("\np-values up to a level, without a difference:")
    for missing in MISSING:
        for kind, simulated in (("permuted labels", False), (SIMULATED, True)):
            found = [
                r
                for r in records
                if (r["missing"], r["method"]) == (missing, NULL)
                and (r["set"] == SIMULATED) == simulated
            ]
            shares = ", ".join(
                f"{level}: {np.mean([r[str(level)] for r in found]):.4f}"
                for level in LEVELS
                if found
            )
            lines.append(f"{missing}, {kind}: {shares}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    parser.add_argument("--report", action="store_true", help="no runs")
    options = parser.parse_args()
    path = options.out / "missing_values.jsonl"
    if not options.report:
        for record in carry_out(path, options.repeats):
            print(json.dumps(record), flush=True)
    print(report(read(path)))


if __name__ == "__main__":
    main()
