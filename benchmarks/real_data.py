"""Real data sets, their folds, and what a method makes of a fold: plain records.

A line of the file of records is one method on one fold. Folds depend on the set and on
the seed alone, so that every method, whenever it was run, saw the same ones.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedStratifiedKFold
from threadpoolctl import threadpool_limits

from peers import METHODS, features_used

Array = NDArray[Any]
Record = dict[str, Any]
Key = tuple[str, int, int, str]
FOLDS, SEED = 5, 0
# Larger values are raw intensities, which everybody takes logarithms of.
RAW = 100.0
CLIP = 1e-15
# "alon_colon permuted 3" is that set with its labels permuted by the seed 3.
PERMUTED = " permuted "


@dataclass(frozen=True, eq=False)
class DataSet:
    """Samples and labels as all methods get them, and what was done to them."""

    name: str
    X: Array
    y: Array
    logged: bool
    dropped: int

    def __str__(self) -> str:
        notes = ["logarithms of raw intensities"] if self.logged else []
        if self.dropped:
            notes.append(f"{self.dropped} samples of classes below {FOLDS} dropped")
        sizes = "/".join(map(str, np.unique(self.y, return_counts=True)[1]))
        text = f"{self.name}: {self.X.shape[0]} x {self.X.shape[1]}, classes {sizes}"
        return "; ".join([text, *notes])


def folder() -> Path:
    """Where the data lie: EBDA_DATA, or shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("EBDA_DATA", beside))


def names() -> list[str]:
    """The sets that are there."""
    return sorted(path.stem for path in folder().glob("*.npz"))


@cache
def load(name: str) -> DataSet:
    """A set without the classes that cannot be in every fold, raw values logged."""
    stem, _, permutation = name.partition(PERMUTED)
    with np.load(folder() / f"{stem}.npz", allow_pickle=False) as file:
        X, y = file["X"].astype(np.float64), file["y"]
    classes, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, classes[counts >= FOLDS])
    X, y = X[kept], y[kept]
    if permutation:
        y = np.random.default_rng(int(permutation)).permutation(y)
    logged = bool(np.abs(X).max() > RAW)
    if logged:
        X = np.sign(X) * np.log1p(np.abs(X))
    return DataSet(name, X, y, logged, int((~kept).sum()))


def split(data: DataSet, repeat: int, fold: int) -> tuple[Array, Array]:
    splits = RepeatedStratifiedKFold(
        n_splits=FOLDS, n_repeats=repeat + 1, random_state=SEED
    )
    return list(splits.split(data.X, data.y))[FOLDS * repeat + fold]


def measure(name: str, repeat: int, fold: int, method: str) -> Record:
    """Fit a method to the rest of a fold and judge it on the fold."""
    data = load(name)
    train, test = split(data, repeat, fold)
    classes, codes = np.unique(data.y, return_inverse=True)
    inner = min(FOLDS, int(np.bincount(codes[train]).min()))
    model = METHODS[method](inner, FOLDS * repeat + fold)
    with threadpool_limits(1), warnings.catch_warnings():
        # Elastic nets and lassos stop at their limits, at whatever they have by then.
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.perf_counter()
        model.fit(data.X[train], data.y[train])
        seconds = time.perf_counter() - start
        wrong = model.predict(data.X[test]) != data.y[test]
        probability = model.predict_proba(data.X[test])
    truth = np.eye(len(classes))[codes[test]]
    of_truth = np.clip((probability * truth).sum(axis=1), CLIP, 1.0)
    return {
        "set": name,
        "repeat": repeat,
        "fold": fold,
        "method": method,
        "classes": len(classes),
        "samples": len(test),
        "error": float(wrong.mean()),
        "log_loss": float(-np.log(of_truth).mean()),
        "brier": float(((probability - truth) ** 2).sum(axis=1).mean()),
        "features": features_used(model, data.X.shape[1]),
        "fit_time": round(seconds, 4),
    }


def read(path: Path) -> list[Record]:
    """The records of a file; a torn last line, left by a killed process, is no record.

    Of two records of the same fit the later one counts.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    records = (json.loads(line) for line in lines[:-1] if line)
    return list({key(record): record for record in records}.values())


def key(record: Record) -> Key:
    return record["set"], record["repeat"], record["fold"], record["method"]


def rewrite(path: Path, records: Iterable[Record]) -> None:
    """Put these records, and no torn line, in place of what is there."""
    part = path.with_name(path.name + ".part")
    part.write_text("".join(json.dumps(record) + "\n" for record in records))
    part.replace(path)


def carry_out(
    path: Path, sets: Sequence[str], methods: Sequence[str], repeats: int, n_jobs: int
) -> Iterator[Record]:
    """Run what the file lacks, a repeat of everything at a time, and append it."""
    found = read(path)
    rewrite(path, found)
    done = {key(record) for record in found}
    fits = [
        (name, repeat, fold, method)
        for repeat in range(repeats)
        for method in methods
        for name in sets
        for fold in range(FOLDS)
        if (name, repeat, fold, method) not in done
    ]
    runs = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(measure)(*fit) for fit in fits
    )
    with path.open("a") as file:
        for record in runs:
            file.write(json.dumps(record) + "\n")
            file.flush()
            yield record
