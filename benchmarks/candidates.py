"""Which rules should EBClassifier compare? Sets of candidates, judged on the same fits.

    python benchmarks/candidates.py [--repeats 2] [--drawings 60] [--out FOLDER]

Each candidate, a covariance with a shrinkage, is fitted once to the training part of
each split and to the folds inside it. Then any set of candidates can be weighted,
calibrated and judged without another fit. The splits are not those of the accuracy
benchmark. Study 3 of the paper is there because no real set is as sparse.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

import real_data
from accuracy_report import machine
from ebda.covariance import Summary
from ebda.data import RowSamples
from ebda.moments import VARIANCES
from ebda.moments.classwise import class_moments
from ebda.paper.repetition import seed_of
from ebda.paper.studies import TABLES
from ebda.priors import make_prior
from ebda.rule.linear_rule import log_odds
from ebda.selection.calibration import calibrate, log_evidence
from ebda.selection.candidates import Name, Recipe, candidates
from ebda.selection.folds import HeldOut, assign_folds, held_out_scores
from ebda.selection.separation import separation
from simulations import SEED

Array = NDArray[np.float64]
FILE = "candidates.csv"
STUDY_3 = "study 3"
SPLITS = 9000  # seed of the splits
VARIANCE = "moderated"
D, S, F = "diagonal", "shrunken", "factor"
ALL = [
    (covariance, how)
    for covariance in (D, S, F)
    for how in ("mean", "sparse", "none", "top10", "top100", "top1000")
]
NOW = [name for name in candidates("auto", "auto") if name in ALL]


def _without(*names: Name) -> list[Name]:
    return [name for name in NOW if name not in names]


# What was tried, with the exponent of the evidence and the logarithm of the odds with
# which posterior means start.
SETS: dict[str, tuple[list[Name], float, float]] = {
    "as it is": (NOW, 0.5, 1.0),
    "no head start of posterior means": (NOW, 0.5, 0.0),
    "head start of two": (NOW, 0.5, 2.0),
    "root of the root of the evidence": (NOW, 0.25, 1.0),
    "all of the evidence": (NOW, 1.0, 1.0),
    "and factor sparse": ([*NOW, (F, "sparse")], 0.5, 1.0),
    "and factor mean": ([*NOW, (F, "mean")], 0.5, 1.0),
    "and factor top100": ([*NOW, (F, "top100")], 0.5, 1.0),
    "and shrunken sparse": ([*NOW, (S, "sparse")], 0.5, 1.0),
    "and shrunken top1000": ([*NOW, (S, "top1000")], 0.5, 1.0),
    "and shrunken none": ([*NOW, (S, "none")], 0.5, 1.0),
    "factor sparse for top1000": ([*_without((F, "top1000")), (F, "sparse")], 0.5, 1.0),
    "factor mean for top1000": ([*_without((F, "top1000")), (F, "mean")], 0.5, 1.0),
    "no diagonal": ([name for name in NOW if name[0] != D], 0.5, 1.0),
    "no diagonal top10": (_without((D, "top10")), 0.5, 1.0),
    "no factor": ([name for name in NOW if name[0] != F], 0.5, 1.0),
    "shrunken mean and top100": ([(S, "mean"), (S, "top100")], 0.5, 1.0),
    "shrunken mean alone": ([(S, "mean")], 0.5, 1.0),
    "all": (ALL, 0.5, 1.0),
}


@dataclass(frozen=True, eq=False)
class Split:
    """Scores of the candidates: of samples held out in the fit, and of test samples."""

    set: str
    names: list[Name]
    held_out: HeldOut
    evidence: Array
    log_prior: Array
    unit: Array  # by which scores of a rule are divided
    test: Array
    codes: NDArray[np.int64]


def fit(
    name: str,
    X: Array,
    y: Array,
    new: Array,
    truth: Array,
    every: list[Name] = ALL,
) -> Split | None:
    """Fit all candidates; None where no correlation is found, and nothing compared."""
    classes, codes = np.unique(y, return_inverse=True)
    k = len(classes)
    moments, samples = class_moments(X, codes, k), RowSamples.of(X, codes, None)
    recipe = Recipe(
        VARIANCE,
        every,
        0.5,
        lambda: make_prior("dp", for_classifier=True, random_state=0),
    )
    data = Summary(moments, recipe.contrasts(moments), samples)
    effects = recipe.effects(data)
    if set(effects) == {D}:
        return None
    recipe = recipe.found(effects)
    names = recipe.names
    key = samples.fingerprint(moments.means, np.sqrt(data.contrasts.variance))
    folds = assign_folds(key, codes, VARIANCES[VARIANCE].min_samples, seed=0)

    def run(function, jobs):  # one after another
        return [function(*job) for job in jobs]

    held_out = held_out_scores(recipe, data, effects, folds, run)
    counts = np.bincount(held_out.codes, minlength=k)
    log_prior = np.log(counts / counts.sum())
    known = held_out.codes, held_out.weight, log_prior, held_out.fold
    evidence = np.array([log_evidence(scores, *known) for scores in held_out.scores])
    rules = [recipe.rule(one, effects, moments) for one in names]
    test = np.stack([new @ rule.coef.T + rule.intercept for rule in rules])
    unit = np.array([recipe.score_sd(one, effects) for one in names])
    place = np.searchsorted(classes, truth)
    return Split(name, names, held_out, evidence, log_prior, unit, test, place)


def judge(
    split: Split, names: Iterable[Name], temper: float, head: float
) -> tuple[float, float]:
    """Error and log-loss of the test samples, with these candidates alone."""
    chosen = [split.names.index(name) for name in names if name in split.names]
    start = np.array([head * (split.names[i][1] == "mean") for i in chosen])
    share = softmax(temper * split.evidence[chosen] + start[:, None], axis=0)
    share = np.where(share < 1e-3, 0.0, share)
    share /= share.sum(axis=0)
    h = split.held_out
    h = replace(h, scores=h.scores[chosen])
    sd = separation(h)[1]
    sd = np.where(sd > 0, sd, 1.0)
    crossed = share[:, 1:][:, h.fold]
    combined = np.einsum("mn,mnc->nc", crossed / sd[:, None], h.scores)
    slope, midpoint, calibration = calibrate(
        combined, h.codes, h.weight, split.log_prior
    )
    prior = np.exp(split.log_prior)
    factor = slope * share[:, 0] / (sd * split.unit[chosen])
    score = np.einsum("m,mnc->nc", factor, split.test[chosen])
    decision = score + log_odds(prior) - midpoint
    log_p = replace(calibration, prior=prior).log_probabilities(decision)
    own = log_p[np.arange(len(split.codes)), split.codes]
    wrong = log_p.argmax(axis=1) != split.codes
    return float(wrong.mean()), float(-np.maximum(own, np.log(1e-15)).mean())


def _real(name: str, repeat: int) -> list[Split | None]:
    data = real_data.load(name)
    splits = StratifiedKFold(
        real_data.FOLDS, shuffle=True, random_state=SPLITS + repeat
    )
    with threadpool_limits(1):
        return [
            fit(name, data.X[train], data.y[train], data.X[test], data.y[test])
            for train, test in splits.split(data.X, data.y)
        ]


def _drawn(drawing: int) -> list[Split | None]:
    sim = TABLES["table6"].rows[0].draw(seed_of(SEED, "table6", 0, drawing, "data"))
    with threadpool_limits(1):
        return [fit(STUDY_3, sim.data, sim.target, sim.test_data, sim.test_target)]


def run(repeats: int, drawings: int, n_jobs: int) -> Iterator[Split]:
    """All splits of the real sets, and drawings of study 3."""
    jobs = [delayed(_drawn)(k) for k in range(drawings)]
    jobs += [delayed(_real)(n, r) for n in real_data.names() for r in range(repeats)]
    for found in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        yield from (split for split in found if split is not None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--repeats", type=int, default=2, help="of five-fold cross-validation (2)")
    add("--drawings", type=int, default=60, help="of study 3 (60)")
    add("--jobs", type=int, default=2, help="fits at a time (2)")
    add("--out", type=Path, default=Path("docs/benchmarks"), help="folder")
    options = parser.parse_args()
    found: dict[str, dict[str, list[tuple[float, float, int]]]] = {
        title: defaultdict(list) for title in SETS
    }
    for split in run(options.repeats, options.drawings, options.jobs):
        for title, what in SETS.items():
            error, loss = judge(split, *what)
            found[title][split.set].append((error, loss, len(split.codes)))
    rows = []
    for title, by_set in found.items():
        means = {
            name: np.average(v, axis=0, weights=[n for *_, n in v])
            for name, v in by_set.items()
        }
        real = np.array([m[:2] for name, m in means.items() if name != STUDY_3])
        rows.append((title, *real.mean(axis=0), means[STUDY_3][0], real[:, 0]))
    base = rows[0][-1]
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / FILE).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["candidates", "error", "less as it is", "se", "log_loss", STUDY_3]
        )
        for title, error, loss, sparse, errors in rows:
            gain = errors - base
            se = gain.std(ddof=1) / np.sqrt(len(gain))
            cells = (error, gain.mean(), se, loss, sparse)
            writer.writerow([title, *(f"{c:.4f}" for c in cells)])
    print(machine())
    print((options.out / FILE).read_text())


if __name__ == "__main__":
    main()
