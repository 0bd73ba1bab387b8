"""covariance="sparse" where correlations are few, in Tables 3 to 5, and on real sets.

    python benchmarks/sparse_covariance.py [--drawings 20] [--out docs/benchmarks]

Three parts. "designs": sparse and other covariances of the kinds that Shao, Wang, Deng
and Wang (2011) and Cai and Liu (2012) have, with their methods. "tables": the rows of
the paper's Tables 3 to 5. "real": sets of the accuracy benchmark with at most 6,100
features, five folds once, and what the candidates of "auto" gain by one more. It can be
stopped, and goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

import candidates
import real_data
from accuracy_report import machine
from ebda import EBClassifier
from ebda.baselines import LinearProgrammingDA, SparseLDA, ThresholdedLDA
from ebda.datasets import load_golub
from ebda.paper import optimal_rule
from ebda.paper.repetition import seed_of
from ebda.paper.studies import TABLES, VARIANCE
from ebda.theory import AR1, error_rate
from simulations import SEED

Array = NDArray[np.float64]
Record = dict[str, Any]
RECORDS, PAGE = "sparse_covariance.jsonl", "sparse_covariance.md"
LIMIT, P = "best possible", 200
MOST_FEATURES = 6100
NAMES = ("sparse", "shrunken", "diagonal")
JOINED = [*candidates.NOW, ("sparse", "mean")]


def ours(covariance: str) -> Any:
    """Posterior means under one covariance."""
    return EBClassifier(covariance=covariance, shrinkage="mean", calibrate=False)


OURS: dict[str, Callable[[], Any]] = {
    name: lambda name=name: ours(name) for name in NAMES
}
COMPARED = "sparse, compared"
OURS[COMPARED] = lambda: EBClassifier(covariance="sparse")
THEIRS: dict[str, Callable[[], Any]] = {
    "SparseLDA": lambda: SparseLDA(random_state=0),
    "LinearProgrammingDA": lambda: LinearProgrammingDA(random_state=0),
    "ThresholdedLDA": lambda: ThresholdedLDA(random_state=0),
}
METHODS = {**OURS, **THEIRS}
ORDER = ["sparse", COMPARED, *METHODS, LIMIT]


@dataclass(frozen=True, eq=False)
class Design:
    """Two normal classes: what differs, the covariance, and the samples of each."""

    name: str
    covariance: Array
    difference: Array
    n: tuple[int, int]

    def draw(self, seed: int) -> tuple[Array, NDArray[np.intp]]:
        rng = np.random.default_rng([seed, crc32(self.name.encode())])
        root = np.linalg.cholesky(self.covariance)
        y = np.repeat([0, 1], self.n)
        noise = rng.normal(size=(len(y), len(self.difference))) @ root.T
        return noise + np.outer(y, self.difference), y

    def error(self, coef: Array, intercept: Array) -> float:
        zero = np.zeros(len(self.difference))
        return error_rate(coef, intercept, zero, self.difference, self.covariance)

    @property
    def limit(self) -> float:
        zero = np.zeros(len(self.difference))
        best = optimal_rule(zero, self.difference, self.covariance)
        return self.error(best.coef, best.intercept)


def blocks(size: int, rho: float) -> Array:
    return np.kron(np.eye(P // size), (1 - rho) * np.eye(size) + rho)


def random_precision(seed: int = 0) -> Array:
    """The inverse is sparse: five partners on average, with equal weights."""
    rng = np.random.default_rng(seed)
    upper = np.triu(0.5 * (rng.random((P, P)) < 5 / P), 1)
    precision = upper + upper.T
    precision += (0.5 - np.linalg.eigvalsh(precision)[0]) * np.eye(P)
    S = np.linalg.inv(precision)
    unit = np.sqrt(np.diag(S))
    return S / np.outer(unit, unit)


def leukemia() -> Design:
    """Genes of the leukemia data in blocks of 20, and the largest differences.

    A block is the gene with the largest correlations of those that are left and the 19
    that they are with. Differences below the threshold of the paper are zero, and the
    others are halved.
    """
    golub = load_golub()
    X = np.sign(golub.data) * np.log1p(np.abs(golub.data))
    codes = np.unique(golub.target, return_inverse=True)[1]
    means = np.array([X[codes == k].mean(axis=0) for k in (0, 1)])
    A = X - means[codes]
    chosen = np.flatnonzero(A.std(axis=0) > 0)[::17][: 2 * P]
    A, d = A[:, chosen], (means[1] - means[0])[chosen]
    sd = np.sqrt((A**2).sum(axis=0) / (len(X) - 2))
    A, d = A / sd, d / sd
    R = A.T @ A / (len(X) - 2)
    left, S = np.ones(len(d), dtype=bool), np.eye(len(d))
    while left.any():
        size = np.sort(np.abs(R) * np.outer(left, left), axis=1)[:, -20:].sum(axis=1)
        block = np.argsort(-np.abs(R[size.argmax()]) * left, kind="stable")[:20]
        S[np.ix_(block, block)] = R[np.ix_(block, block)]
        left[block] = False
    S = 0.9 * S + 0.1 * np.eye(len(d))
    step = np.sqrt(np.log(len(d)) / len(X))
    return Design(
        "leukemia in blocks", S, np.where(np.abs(d) > step**0.6, d, 0.0) / 2, (47, 25)
    )


def designs() -> list[Design]:
    place = np.arange(P)
    near = np.abs(place - place[:, None])
    first = np.where(place < 10, 0.5, 0.0)
    apart = np.where(place % 20 == 0, 0.5, 0.0)
    n = (100, 100)
    return [
        Design("autoregression 0.8, first 10", 0.8**near, first, n),
        Design("autoregression 0.8, 10 apart", 0.8**near, apart, n),
        Design("autoregression 0.5, 10 apart", 0.5**near, apart, n),
        Design("blocks of 5, 0.7", blocks(5, 0.7), apart, n),
        Design("blocks of 20, 0.5", blocks(20, 0.5), apart, n),
        Design("moving average 0.45", np.eye(P) + 0.45 * (near == 1), apart, n),
        Design("sparse inverse", random_precision(), apart, n),
        Design("all equal, 0.5", blocks(P, 0.5), first, n),
        Design("independent", np.eye(P), apart, n),
        leukemia(),
    ]


def timed(make: Callable[[], Any], X: Array, y: Any) -> tuple[Any, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make().fit(X, y)
    return model, time.process_time() - start


def design_records(drawing: int, done: set[Any]) -> Iterator[Record]:
    for design in designs():
        for name, make in METHODS.items():
            if ("designs", design.name, name, drawing) in done:
                continue
            X, y = design.draw(drawing)
            model, seconds = timed(make, X, y)
            error = design.error(model.coef_, model.intercept_)
            yield record("designs", design.name, name, drawing, error, seconds)
        if drawing == 0 and ("designs", design.name, LIMIT, 0) not in done:
            yield record("designs", design.name, LIMIT, 0, design.limit, 0.0)


def table_records(drawing: int, done: set[Any]) -> Iterator[Record]:
    for table in ("table3", "table4", "table5"):
        for place, row in enumerate(TABLES[table].rows):
            label = f"{table}, {row.label}"
            sim = row.draw(seed_of(SEED, table, place, drawing, "data"))
            for name, make in OURS.items():
                if ("tables", label, name, drawing) in done:
                    continue
                model, seconds = timed(make, sim.data, sim.target)
                covariance = AR1(float(row.label), VARIANCE)
                rule = model.coef_, model.intercept_, *sim.means
                error = error_rate(*rule, covariance)
                yield record("tables", label, name, drawing, error, seconds)


def real_records(done: set[Any]) -> Iterator[Record]:
    for name in real_data.names():
        data = real_data.load(name)
        if data.X.shape[1] > MOST_FEATURES or ("real", name, "joined", 0) in done:
            continue
        splits = StratifiedKFold(5, shuffle=True, random_state=candidates.SPLITS)
        found = defaultdict(list)
        for train, test in splits.split(data.X, data.y):
            X, y = data.X[train], data.y[train]
            new, truth = data.X[test], data.y[test]
            for method, make in OURS.items():
                model, seconds = timed(make, X, y)
                found[method].append((np.mean(model.predict(new) != truth), seconds))
            start = time.process_time()
            split = candidates.fit(name, X, y, new, truth, JOINED)
            seconds = time.process_time() - start
            if split is None:
                continue
            for label, names in (("auto", candidates.NOW), ("joined", JOINED)):
                error, loss = candidates.judge(split, names, 0.5, 1.0)
                found[label].append((error, seconds))
                found[f"{label}, log-loss"].append((loss, seconds))
        for method, values in found.items():
            yield record("real", name, method, 0, *np.mean(values, axis=0))


def record(
    part: str, row: str, method: str, drawing: int, error: float, seconds: float
) -> Record:
    return {
        "part": part,
        "row": row,
        "method": method,
        "drawing": drawing,
        "error": float(error),
        "seconds": float(seconds),
    }


def page(records: list[Record]) -> str:
    """Tables of the records, and what each part shows."""
    found: dict[str, dict[str, dict[str, list[Record]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for r in records:
        found[r["part"]][r["row"]][r["method"]].append(r)
    text = [
        "# Sparse covariance",
        f"Written by `benchmarks/sparse_covariance.py` on {machine()}. *sparse*, "
        "*shrunken* and *diagonal* are posterior means under these covariances of "
        "EBClassifier, without calibration; *sparse, compared* is "
        '`EBClassifier(covariance="sparse")`, which compares them with the diagonal '
        "by ten folds. Errors of simulated data are exact.",
    ]
    headings = {
        "designs": "## Sparse designs\nKinds of covariances that Shao, Wang, Deng and "
        f"Wang (2011) and Cai and Liu (2012) have: {P} features, 100 + 100 samples, "
        "10 differ by half a standard deviation; and 400 genes of the leukemia "
        "data with the correlations within blocks of 20 and the largest differences "
        "halved, 47 + 25 samples. ± is the standard error over the drawings.",
        "tables": "## The paper's Tables 3 to 5\n10,000 features, 25 + 25 samples, "
        "autoregressions; runs of features differ alike.",
        "real": "## Real sets\nErrors of five folds once. *auto*: the candidates "
        "that are compared by default, *joined*: these and posterior means under the "
        "sparse covariance, with the mean log-loss of both.",
    }
    for part, heading in headings.items():
        if part not in found:
            continue
        rows = found[part]
        known = dict.fromkeys(m for row in rows.values() for m in row)
        methods = sorted(known, key=lambda m: ORDER.index(m) if m in ORDER else 9)
        for of in rows.values():
            # Those that all methods have, so that they can be compared.
            drawn = [{r["drawing"] for r in of[m]} for m in methods if m != LIMIT]
            common = set.intersection(*drawn)
            for m in methods:
                if m != LIMIT:
                    of[m] = [r for r in of[m] if r["drawing"] in common]
        drawings = max(len(of[methods[0]]) for of in rows.values())
        text += [heading + (f" {drawings} drawings." if part != "real" else "")]
        lines = [["", *methods], ["---"] + ["---:"] * len(methods)]
        for row, of in rows.items():
            cells = [cell([r["error"] for r in of[m]]) for m in methods]
            lines.append([row, *cells])
        seconds = [
            np.mean([r["seconds"] for of in rows.values() for r in of[m]] or [0.0])
            for m in methods
        ]
        if part == "real":
            complete = [of for of in rows.values() if all(of[m] for m in methods)]
            means = [np.mean([of[m][0]["error"] for of in complete]) for m in methods]
            lines.append(["mean", *(f"{m:.4f}" for m in means)])
        both = zip(methods, seconds, strict=True)
        own = [f"{s:.2f}" if m in METHODS else "" for m, s in both]
        lines.append(["seconds of one core", *own])
        text.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(text) + "\n"


def cell(errors: list[float]) -> str:
    if not errors:
        return ""
    if len(errors) == 1:
        return f"{errors[0]:.4f}"
    return f"{np.mean(errors):.4f} ± {np.std(errors, ddof=1) / len(errors) ** 0.5:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--drawings", type=int, default=20, help="of each design (20)")
    add("--of-tables", type=int, default=5, help="drawings of Tables 3 to 5 (5)")
    add("--parts", nargs="+", default=["designs", "tables", "real"], help="which")
    add("--out", type=Path, default=Path("docs/benchmarks"), help="folder")
    options = parser.parse_args()
    path = options.out / RECORDS
    text = path.read_text() if path.exists() else ""
    records = [json.loads(line) for line in text.splitlines()]
    done = {(r["part"], r["row"], r["method"], r["drawing"]) for r in records}

    def every() -> Iterator[Record]:
        if "designs" in options.parts:
            for k in range(options.drawings):
                yield from design_records(k, done)
        if "tables" in options.parts:
            for k in range(options.of_tables):
                yield from table_records(k, done)
        if "real" in options.parts:
            yield from real_records(done)

    with path.open("a") as file:
        for found in every():
            print(*found.values(), flush=True)
            file.write(json.dumps(found) + "\n")
            file.flush()
            records.append(found)
    (options.out / PAGE).write_text(page(records))


if __name__ == "__main__":
    main()
