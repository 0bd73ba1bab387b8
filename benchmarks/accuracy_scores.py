"""From the records of the accuracy benchmark to scores, their comparison and bars."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np
from scipy.stats import rankdata

from bars import Bar
from peers import METHODS
from real_data import FOLDS, Record

OURS = "EBClassifier"
# Repeats of every set that a method needs to be compared with all others.
FEWEST_REPEATS = 2


@dataclass(frozen=True)
class Score:
    """A method on a set: means over its complete repeats of cross-validation."""

    set: str
    method: str
    classes: int
    repeats: int
    error: float
    se: float
    log_loss: float
    brier: float
    features: float
    fit_time: float


def summarise(records: Iterable[Record]) -> list[Score]:
    """Scores by set, two classes first, and by method in the order of `METHODS`.

    A repeat counts when all of its folds are there; its error is the share of all
    samples. The standard error is that over repeats: of the folds' luck, not of the
    sample.
    """
    groups: dict[tuple[int, str, int], list[Record]] = defaultdict(list)
    order = list(METHODS)
    for r in records:
        if r["method"] in METHODS:
            place = r["classes"], r["set"], order.index(r["method"])
            groups[place].append(r)
    scores = []
    for (classes, name, method), runs in sorted(
        groups.items(), key=lambda item: (item[0][0] > 2, item[0][1:])
    ):
        repeats = defaultdict(list)
        for r in runs:
            repeats[r["repeat"]].append(r)
        whole = [folds for folds in repeats.values() if len(folds) == FOLDS]
        if not whole:
            continue

        def means(field: str, whole: list[list[Record]] = whole) -> list[float]:
            return [
                float(np.average([_value(r[field]) for r in f], weights=_samples(f)))
                for f in whole
            ]

        errors = means("error")
        se = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
        rest = (float(np.mean(means(f.name))) for f in fields(Score)[6:])
        mean = float(np.mean(errors))
        scores.append(
            Score(name, order[method], classes, len(whole), mean, float(se), *rest)
        )
    return scores


def _value(value: float | None) -> float:
    return np.nan if value is None else value


def _samples(records: Sequence[Record]) -> list[int]:
    return [r["samples"] for r in records]


def to_csv(scores: Iterable[Score]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Score)])
    for score in scores:
        cells = astuple(score)
        writer.writerow([f"{c:.6g}" if isinstance(c, float) else c for c in cells])
    return text.getvalue()


def parted(scores: Sequence[Score]) -> tuple[list[Score], list[str]]:
    """Scores of the methods with enough repeats of all sets, and the other methods.

    Bars, ranks and means over sets are of the former alone.
    """
    sets = {score.set for score in scores}
    enough: dict[str, set[str]] = defaultdict(set)
    for score in scores:
        enough[score.method] |= (
            {score.set} if score.repeats >= FEWEST_REPEATS else set()
        )
    compared = {method for method, found in enough.items() if found == sets}
    there = {score.method for score in scores}
    fewer = [m for m in METHODS if m in there and m not in compared]
    return [score for score in scores if score.method in compared], fewer


@dataclass(frozen=True)
class Fewer:
    """A method that was run on some splits only, and ours on the same ones.

    Parameters
    ----------
    method : str
        The method.
    sets, repeats : int
        Sets with a complete repeat, and complete repeats of them all together.
    error, ours : float
        Mean errors over sets.
    won, tied, lost : int
        Sets on which ours is smaller, equal and larger.
    fit_time : float
        Mean seconds of a fit.
    """

    method: str
    sets: int
    repeats: int
    error: float
    ours: float
    won: int
    tied: int
    lost: int
    fit_time: float


def on_the_same_splits(records: Sequence[Record], method: str) -> Fewer:
    """A method against ours, on the complete repeats that both have."""
    by_place: dict[tuple[str, int, str], list[Record]] = defaultdict(list)
    for r in records:
        if r["method"] in (method, OURS):
            by_place[r["set"], r["repeat"], r["method"]].append(r)
    errors: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for (name, repeat, who), folds in by_place.items():
        ours = by_place.get((name, repeat, OURS), [])
        if who == method and len(folds) == len(ours) == FOLDS:
            both = (
                float(np.average([r["error"] for r in f], weights=_samples(f)))
                for f in (folds, ours)
            )
            theirs, own = both
            errors[name].append((theirs, own))
    means = np.array([np.mean(pairs, axis=0) for pairs in errors.values()])
    means = means.reshape(-1, 2)
    difference = np.round(means[:, 1] - means[:, 0], 12)
    times = [r["fit_time"] for r in records if r["method"] == method]
    error, ours_error = means.mean(axis=0) if len(means) else (np.nan, np.nan)
    return Fewer(
        method,
        len(errors),
        sum(map(len, errors.values())),
        float(error),
        float(ours_error),
        *(int((sign == np.sign(difference)).sum()) for sign in (-1, 0, 1)),
        float(np.mean(times)),
    )


@dataclass(frozen=True)
class Pairs:
    """We against another method: sets won, tied and lost, and by how much.

    Parameters
    ----------
    method : str
        The other.
    won, tied, lost : int
        Numbers of sets.
    share, share_se : float
        Share of sets won, half of the ties among them, and its standard error over
        sets.
    gain, gain_se : float
        How much larger the other's error is, the mean over sets, and its standard
        error.
    """

    method: str
    won: int
    tied: int
    lost: int
    share: float
    share_se: float
    gain: float
    gain_se: float


@dataclass(frozen=True, eq=False)
class Grid:
    """Scores as an array of sets by methods, NaN where there is none."""

    sets: list[str]
    methods: list[str]
    two_classes: np.ndarray
    error: np.ndarray
    log_loss: np.ndarray
    brier: np.ndarray
    se: np.ndarray
    features: np.ndarray
    fit_time: np.ndarray

    @property
    def ranks(self) -> np.ndarray:
        """Mean rank of each method over the sets that it has; 1 is the best."""
        if not self.sets:
            return np.empty(len(self.methods))
        ranks = [rankdata(np.round(row, 12), nan_policy="omit") for row in self.error]
        return np.nanmean(ranks, axis=0)

    @property
    def winners(self) -> list[list[str]]:
        """For each method the sets on which no other has a smaller error."""
        best = np.nanmin(self.error, axis=1, keepdims=True)
        won = self.error <= best + 1e-12
        return [
            [name for name, is_best in zip(self.sets, column, strict=True) if is_best]
            for column in won.T
        ]

    @property
    def over_best_other(self) -> np.ndarray:
        """Our error over that of the best of all others, set by set."""
        ours = self.methods.index(OURS)
        others = np.delete(self.error, ours, axis=1)
        best = np.nanmin(others, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.error[:, ours] / best

    @property
    def excess(self) -> np.ndarray:
        """Error above that of the best method of each set."""
        return self.error - np.nanmin(self.error, axis=1, keepdims=True)

    def against(self, other: str) -> Pairs:
        """Our errors against those of another method, set by set."""
        ours, theirs = (self.error[:, self.methods.index(m)] for m in (OURS, other))
        difference = np.round(ours - theirs, 12)
        difference = difference[np.isfinite(difference)]
        points = np.where(difference < 0, 1.0, np.where(difference > 0, 0.0, 0.5))
        counts = [int((points == value).sum()) for value in (1.0, 0.5, 0.0)]
        n = len(points)
        se = points.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
        gain = float(-difference.mean()) if n else np.nan
        gain_se = difference.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
        share = float(points.mean()) if n else np.nan
        return Pairs(other, *counts, share, float(se), gain, float(gain_se))

    def mean(self, values: np.ndarray, two_classes: bool = False) -> np.ndarray:
        """Mean over sets; NaN for a method that lacks one."""
        return values[self.two_classes if two_classes else slice(None)].mean(axis=0)


def grid(scores: Sequence[Score]) -> Grid:
    """Arrays of the sets and methods of which there are scores."""
    sets = list(dict.fromkeys(s.set for s in scores))
    methods = [m for m in METHODS if any(s.method == m for s in scores)]
    two = {s.set: s.classes == 2 for s in scores}
    arrays = {f.name: np.full((len(sets), len(methods)), np.nan) for f in fields(Score)}
    for s in scores:
        place = sets.index(s.set), methods.index(s.method)
        for name in ("error", "log_loss", "brier", "se", "features", "fit_time"):
            arrays[name][place] = getattr(s, name)
    return Grid(
        sets,
        methods,
        np.array([two[name] for name in sets], dtype=bool),
        *(arrays[f.name] for f in fields(Grid)[3:]),
    )


def pairs(g: Grid) -> list[Pairs]:
    """We against each of the others."""
    if OURS not in g.methods:
        return []
    return [g.against(method) for method in g.methods if method != OURS]


def judge(g: Grid) -> list[Bar]:
    """The bars of the real data; not measured where a method lacks a set.

    `parted` leaves such methods out.
    """
    if OURS not in g.methods or len(g.methods) < 2:
        return []
    ours = g.methods.index(OURS)
    error, loss = (g.mean(values) for values in (g.error, g.log_loss))
    ranks, excess = g.ranks, g.mean(g.excess)

    complete = np.isfinite(g.error).all()

    def others(values: np.ndarray) -> float:
        return float(np.delete(values, ours).min())

    def known(value: float) -> float | None:
        return float(value) if complete else None

    count = f"{len(g.sets)} sets"
    return [
        Bar(
            f"{count}, mean error over the best other method's",
            known(error[ours] / others(error)),
            0.95,
        ),
        Bar(
            f"{count}, mean rank of the best other less ours",
            known(others(ranks) - ranks[ours]),
            0.3,
            at_least=True,
        ),
        Bar(
            f"{count}, mean log-loss over the best other's",
            known(loss[ours] / others(loss)),
            1.0,
        ),
        Bar(
            f"{count}, mean excess over the best method of each",
            known(excess[ours]),
            0.008,
        ),
    ]
