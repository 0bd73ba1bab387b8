"""A rare class and few strong features: the design of QuanDA (NeurIPS 2025).

    python benchmarks/rare_classes.py [--drawings 20] [--methods NAME ...] [--report]

10 of 200 samples are of one class; 5 of 10,000 features differ, by +0.7 in it and -0.7
in the other, and only these are correlated, equally or as AR(1), with three
correlations about the 0.7 of the authors' program (github.com/qianttang/QuanDA). What
counts is the area under the ROC curve of new samples. Runs can be stopped at any moment
and go on where they were; --redo runs the named methods again.

QuanDA runs where its solver is there (`benchmarks/quanda.py`), with three of the levels
and four of the draws that its authors take, eleven and ten: all of them need minutes a
drawing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import toeplitz
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

import quanda
from ebda import EBClassifier

Array = NDArray[Any]
Record = dict[str, Any]
SAMPLES, RARE, FEATURES, STRONG, EFFECT = 200, 10, 10_000, 5, 0.7
TEST = 1000
ROWS = [(s, rho) for s in ("AR(1)", "equal") for rho in (0.5, 0.7, 0.9)]
LEVELS, DRAWS = [0.92, 0.95, 0.98], 4
SLACK = 0.01


def draw(row: tuple[str, float], seed: int) -> tuple[Array, Array, Array, Array]:
    """Training and test samples with their labels; 1 is the rare class.

    Half of the test samples are of either class: the area does not depend on that.
    """
    structure, rho = row
    if structure == "AR(1)":
        covariance = toeplitz(rho ** np.arange(STRONG))
    else:
        covariance = np.full((STRONG, STRONG), rho) + (1 - rho) * np.eye(STRONG)
    root = np.linalg.cholesky(covariance)
    rng = np.random.default_rng([ROWS.index(row), seed])

    def samples(rare: int, common: int) -> tuple[Array, Array]:
        y = np.repeat([1, 0], [rare, common])
        X = rng.standard_normal((rare + common, FEATURES))
        X[:, :STRONG] = X[:, :STRONG] @ root.T
        X[:, :STRONG] += np.where(y == 1, EFFECT, -EFFECT)[:, None]
        return X, y

    return *samples(RARE, SAMPLES - RARE), *samples(TEST // 2, TEST // 2)


Scores = tuple[Array, dict[str, Any]]


def ours(**parameters: Any) -> Callable[..., Scores]:
    """Decisions of EBClassifier, and how many features have a weight."""

    def run(X: Array, y: Array, new: Array, truth: Array) -> Scores:
        model = EBClassifier(**parameters).fit(X, y)
        scores = model.decision_function(new)
        return scores, {"features": int(model.selected_.sum())}

    return run


def raw_shrunken(X: Array, y: Array, new: Array, truth: Array) -> Scores:
    """Raw differences times the inverse of a covariance shrunken to its diagonal.

    With Ledoit and Wolf's amount for the residuals in units of the moderated standard
    deviations, and Woodbury's identity.
    """
    plain = EBClassifier(covariance="diagonal", shrinkage="mean").fit(X, y)
    sd = np.sqrt(plain.contrasts_.variance)
    means = np.stack([X[y == k].mean(axis=0) for k in (0, 1)])
    R = (X - means[y]) / sd
    n, p = R.shape
    gram = R @ R.T
    mu = np.trace(gram) / (n * p)
    square = (gram**2).sum() / n**2
    beta = ((np.diag(gram) ** 2).sum() / n - square) / (p * n)
    delta = square / p - mu**2
    amount = min(beta, delta) / delta
    difference = (means[1] - means[0]) / sd
    ridge = amount * mu
    inner = np.linalg.solve(ridge * np.eye(n) + (1 - amount) / n * gram, R @ difference)
    coef = (difference - (1 - amount) / n * (R.T @ inner)) / ridge
    scores: Array = new @ (coef / sd)
    return scores, {"amount": float(amount)}


def published(X: Array, y: Array, new: Array, truth: Array) -> Scores:
    """QuanDA; beside it, the best of its levels by the test samples."""
    model = quanda.QuanDA(LEVELS, DRAWS).fit(X, y)
    areas = [roc_auc_score(truth, model.decisions(new, c)) for c in model.path_]
    return model.decisions(new), {"best_level": max(areas)}


METHODS: dict[str, Callable[..., Scores]] = {
    "EBClassifier": ours(),
    "npmle": ours(prior="npmle"),
    "normal": ours(prior="normal"),
    "raw, shrunken covariance": raw_shrunken,
    "QuanDA": published,
}


def key(record: Record) -> tuple[str, float, int, str]:
    return record["structure"], record["rho"], record["drawing"], record["method"]


def read(path: Path) -> list[Record]:
    """The records; a torn last line is none, and the later of two counts."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return list({key(r): r for r in map(json.loads, filter(None, lines))}.values())


def measure(row: tuple[str, float], drawing: int, method: str) -> Record:
    X, y, new, truth = draw(row, drawing)
    with threadpool_limits(1):
        start = time.perf_counter()
        scores, more = METHODS[method](X, y, new, truth)
        seconds = time.perf_counter() - start
    return {
        "structure": row[0],
        "rho": row[1],
        "drawing": drawing,
        "method": method,
        "auc": float(roc_auc_score(truth, scores)),
        "seconds": round(seconds, 3),
        **more,
    }


def carry_out(path: Path, methods: list[str], drawings: int) -> Iterator[Record]:
    """Run what the file lacks, a drawing of every row at a time, and append it."""
    done = {key(record) for record in read(path)}
    with path.open("a") as file:
        for drawing in range(drawings):
            for row in ROWS:
                for method in methods:
                    if (*row, drawing, method) in done:
                        continue
                    record = measure(row, drawing, method)
                    file.write(json.dumps(record) + "\n")
                    file.flush()
                    yield record


def areas(
    records: list[Record], row: tuple[str, float], method: str
) -> dict[int, float]:
    """Area of each drawing that a method has been run on."""
    return {
        r["drawing"]: r["auc"]
        for r in records
        if (r["structure"], r["rho"], r["method"]) == (*row, method)
    }


def report(records: list[Record]) -> tuple[str, bool]:
    """A table in Markdown, and whether every bar is met.

    QuanDA is compared on the drawings that it has been run on.
    """
    present = {r["method"] for r in records}
    methods = [m for m in METHODS if m in present]
    methods += sorted(present - set(METHODS))
    head = ["row", "drawings", *methods, "best of the two priors", "QuanDA"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    met = True
    for row in ROWS:
        found = {m: areas(records, row, m) for m in methods}
        mine = found.get("EBClassifier", {})
        if not mine:
            continue
        cells = [
            f"{np.mean(list(a.values())):.3f}" if a else "" for a in found.values()
        ]
        verdicts = []
        bars = [([m for m in ("npmle", "normal") if found.get(m)], SLACK)]
        bars.append(([m for m in ("QuanDA",) if found.get(m)], 0.0))
        for others, slack in bars:
            apart = [_mean_gain(mine, found[m]) for m in others]
            ok = bool(apart) and min(apart) >= -slack
            met &= ok
            word = "ok" if ok else "NOT MET"
            verdicts.append(f"{min(apart):+.3f} {word}" if apart else "not run")
        line = [f"{row[0]}, {row[1]}", str(len(mine)), *cells, *verdicts]
        lines.append("| " + " | ".join(line) + " |")
    zero = sum(r.get("features") == 0 for r in records if r["method"] == "EBClassifier")
    lines += ["", f"Drawings in which EBClassifier has no feature: {zero}."]
    of = {m: sum(r["method"] == m for r in records) for m in methods}
    lines.append("Runs: " + ", ".join(f"{m} {n}" for m, n in of.items()) + ".")
    best = [r["best_level"] - r["auc"] for r in records if "best_level" in r]
    if best:
        lines.append(
            "QuanDA with the level that is best for the test samples, as in its "
            f"authors' script, would have {np.mean(best):.3f} more."
        )
    return "\n".join(lines), met


def _mean_gain(mine: dict[int, float], other: dict[int, float]) -> float:
    common = sorted(set(mine) & set(other))
    return float(np.mean([mine[d] - other[d] for d in common])) if common else np.nan


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--drawings", type=int, default=20)
    add("--methods", nargs="+", choices=list(METHODS), help="(all that can run)")
    add("--out", type=Path, default=Path("docs/benchmarks"))
    add("--redo", action="store_true", help="run the methods of --methods again")
    add("--report", action="store_true", help="of what has been run, no runs")
    options = parser.parse_args()
    path = options.out / "rare_classes.jsonl"
    methods = options.methods or [
        m for m in METHODS if m != "QuanDA" or quanda.source() is not None
    ]
    if options.redo:
        kept = [r for r in read(path) if r["method"] not in methods]
        path.write_text("".join(json.dumps(r) + "\n" for r in kept))
    if not options.report:
        for record in carry_out(path, methods, options.drawings):
            print(json.dumps(record), flush=True)
    text, met = report(read(path))
    print(text)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
