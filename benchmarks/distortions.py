"""Monotone distortions of the features: the design of SeSDA (R package TULIP).

    python benchmarks/distortions.py [--drawings 20] [--report]

Mai and Zou (2015): 150 samples, 800 features, five of which carry the direction; normal
with a Bayes error of 10 %, and then exp() of all of them. The rule is fitted to the
normal features, to the distorted ones, to their logarithms as the hint asks (which are
the normal features), and to normal scores: the ranks of each feature in the training
data, as quantiles of the normal distribution, interpolated for new samples. Runs can be
stopped at any moment and go on where they were.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import toeplitz
from scipy.stats import norm
from sklearn.preprocessing import QuantileTransformer
from threadpoolctl import threadpool_limits

from ebda import EBClassifier, LogarithmWarning
from ebda.data.distortion import log_hint

Array = NDArray[Any]
Record = dict[str, Any]
SAMPLES, FEATURES, TEST, RHO, BAYES = 150, 800, 1000, 0.5, 0.1
ROWS = {
    "AR(1), 0.5": (RHO ** np.arange(FEATURES), [3.0, 1.5, 0.0, 0.0, 2.0]),
    "equal, 0.5": (
        np.append(1.0, np.full(FEATURES - 1, RHO)),
        [3.0, 1.7, -2.2, -2.1, 2.55],
    ),
}
Features = Callable[[Array, Array], tuple[Array, Array]]


def normal_scores(train: Array, new: Array) -> tuple[Array, Array]:
    """Ranks in the training data as quantiles of the normal distribution."""
    ranks = QuantileTransformer(
        n_quantiles=len(train), output_distribution="normal"
    ).fit(train)
    # The ends are at 1/2 a rank, not at minus and plus infinity.
    most = norm.isf(0.5 / len(train))
    a, b = (np.clip(ranks.transform(X), -most, most) for X in (train, new))
    return a, b


TRANSFORMATIONS: dict[str, Features] = {
    "normal": lambda a, b: (np.log(a), np.log(b)),
    "exp": lambda a, b: (a, b),
    "normal scores": normal_scores,
}


def draw(row: str, seed: int) -> tuple[Array, Array, Array, Array]:
    """Distorted training and test samples, with their labels."""
    first, direction = ROWS[row]
    covariance = toeplitz(first)
    beta = np.zeros(FEATURES)
    beta[: len(direction)] = direction
    # The Bayes error is Phi(-Delta / 2) with Delta**2 = beta' Sigma beta.
    beta *= 2 * norm.isf(BAYES) / np.sqrt(beta @ covariance @ beta)
    root, mean = np.linalg.cholesky(covariance), covariance @ beta
    rng = np.random.default_rng([list(ROWS).index(row), seed])

    def samples(n: int) -> tuple[Array, Array]:
        y = rng.integers(0, 2, n)
        X = rng.standard_normal((n, FEATURES)) @ root.T + y[:, None] * mean
        return np.exp(X), y

    return *samples(SAMPLES), *samples(TEST)


def measure(row: str, drawing: int) -> Iterator[Record]:
    X, y, new, truth = draw(row, drawing)
    for name, features in TRANSFORMATIONS.items():
        train, test = features(X, new)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", LogarithmWarning)
            model = EBClassifier().fit(train, y)
        yield {
            "row": row,
            "drawing": drawing,
            "features": name,
            "error": float((model.predict(test) != truth).mean()),
            "hint": log_hint(train) is not None,
        }


def read(path: Path) -> list[Record]:
    """The records; a torn last line is none."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines if line]


def carry_out(path: Path, drawings: int) -> Iterator[Record]:
    """Run what the file lacks, a drawing of every row at a time, and append it."""
    done = {(r["row"], r["drawing"], r["features"]) for r in read(path)}
    with path.open("a") as file:
        for drawing in range(drawings):
            for row in ROWS:
                if all((row, drawing, name) in done for name in TRANSFORMATIONS):
                    continue
                for record in measure(row, drawing):
                    file.write(json.dumps(record) + "\n")
                    file.flush()
                    yield record


def report(records: list[Record]) -> str:
    """Error by row and features, with the share of drawings that got the hint."""
    lines = [f"Bayes error {BAYES}", "| row | " + " | ".join(TRANSFORMATIONS) + " |"]
    lines.append("|---" * (len(TRANSFORMATIONS) + 1) + "|")
    for row in ROWS:
        cells = []
        for name in TRANSFORMATIONS:
            found = [r for r in records if (r["row"], r["features"]) == (row, name)]
            if not found:
                cells.append("")
                continue
            errors = np.array([r["error"] for r in found])
            se = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
            hints = sum(r["hint"] for r in found)
            cells.append(
                f"{errors.mean():.3f} ({se:.3f}), hint in {hints} of {len(found)}"
            )
        lines.append("| " + " | ".join([row, *cells]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drawings", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    parser.add_argument("--report", action="store_true", help="no runs")
    options = parser.parse_args()
    path = options.out / "distortions.jsonl"
    if not options.report:
        for record in carry_out(path, options.drawings):
            print(json.dumps(record), flush=True)
    print(report(read(path)))


if __name__ == "__main__":
    main()
