"""From the records of the accuracy benchmark to tables: CSV, Markdown, terminal."""

from __future__ import annotations

import csv
import io
import os
import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from peers import METHODS
from real_data import FOLDS, Record
from simulations import Comparison

OURS = "EBClassifier"
ABSENT = "-"


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
                float(np.average([r[field] for r in f], weights=_samples(f)))
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


def _text(value: float, digits: int = 3) -> str:
    return ABSENT if not np.isfinite(value) else f"{value:.{digits}f}"


def _row(name: str, cells: Iterable[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def _head(first: str, columns: Sequence[str]) -> list[str]:
    return [_row(first, columns), "|---" + "|---:" * len(columns) + "|"]


def _errors_markdown(g: Grid) -> list[str]:
    with_ratio = OURS in g.methods and len(g.methods) > 1
    columns = [*g.methods, *(["ours / best other"] if with_ratio else [])]
    lines = _head("set", columns)
    for i, name in enumerate(g.sets):
        best = np.nanmin(g.error[i])
        cells = []
        for error, se in zip(g.error[i], g.se[i], strict=True):
            text = _text(error) + (f" ± {se:.3f}" if se > 0 else "")
            cells.append(f"**{text}**" if error <= best + 1e-12 else text)
        ratio = [_text(g.over_best_other[i], 2)] if with_ratio else []
        lines.append(_row(name, [*cells, *ratio]))
    more = [""] if with_ratio else []
    for title, values, digits in _summaries(g):
        lines.append(_row(title, [*(_text(v, digits) for v in values), *more]))
    return lines


def _summaries(g: Grid) -> list[tuple[str, np.ndarray, int]]:
    rows = [
        ("mean error, two classes", g.mean(g.error, two_classes=True), 4),
        ("mean error, all", g.mean(g.error), 4),
    ]
    if not g.two_classes.any():
        del rows[0]
    if OURS in g.methods:
        mean = g.mean(g.error)
        rows.append(("ours over it", mean[g.methods.index(OURS)] / mean, 2))
    return [
        *rows,
        ("mean rank", g.ranks, 2),
        ("sets won", np.array([len(won) for won in g.winners]), 0),
        ("mean log-loss", g.mean(g.log_loss), 3),
        ("mean Brier score", g.mean(g.brier), 3),
        ("mean features used", g.mean(g.features), 0),
        ("mean fit time, s", g.mean(g.fit_time), 2),
    ]


def _loss_markdown(g: Grid) -> list[str]:
    lines = _head("set", g.methods)
    for name, row in zip(g.sets, g.log_loss, strict=True):
        best = np.nanmin(row)
        cells = [f"**{_text(v)}**" if v == best else _text(v) for v in row]
        lines.append(_row(name, cells))
    return lines


def _simulations_markdown(rows: Sequence[Comparison]) -> list[str]:
    columns = ["limit", "best of the paper", "EBClassifier", "/ limit", "/ best"]
    lines = _head("table and row", columns)
    for c in rows:
        bound = _text(c.bound.error, 4) if c.bound else ABSENT
        ours = f"{c.ours.error:.4f} ± {c.ours.se:.4f}" if c.ours else ABSENT
        cells = [
            bound + (" (oracle)" if c.table == "table6" else ""),
            f"{c.best_error:.4f} ({c.best})",
            ours,
            ABSENT if c.over_bound is None else f"{c.over_bound:.2f}",
            ABSENT if c.over_best is None else f"{c.over_best:.2f}",
        ]
        lines.append(_row(f"{c.table} {c.row}", cells))
    return lines


def ratios(rows: Sequence[Comparison], of: Callable[[Comparison], float | None]) -> str:
    """Geometric mean and largest of a ratio over the rows that have it."""
    values = [value for value in map(of, rows) if value is not None]
    if not values:
        return ABSENT
    middle = np.exp(np.mean(np.log(np.maximum(values, 1e-12))))
    return f"{middle:.2f} (largest {max(values):.2f}, {len(values)} rows)"


def machine() -> str:
    """What it ran on."""
    packages = ("ebda", "numpy", "scipy", "scikit-learn", "celer")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = [line.split(":")[1].strip() for line in lines if "model name" in line]
    processor = model[0] if model else platform.machine()
    return (
        f"{processor}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, {versions}"
    )


def to_markdown(
    scores: Sequence[Score],
    rows: Sequence[Comparison],
    data: Sequence[str],
    command: str,
) -> str:
    """``README.md`` of the results; `data` says what was done to each set."""
    parts = ["# Accuracy\n", "![Errors by set and method](accuracy.png)\n"]
    if scores:
        g = grid(scores)
        counts = sorted({s.repeats for s in scores})
        parts += [
            "## Real data\n",
            f"Misclassification rate in {FOLDS}-fold stratified cross-validation, "
            f"repeated {'-'.join(map(str, {counts[0]: 0, counts[-1]: 0}))} times, the "
            "same folds for all; ± is the standard error over repeats. Penalties and "
            "thresholds were cross-validated inside the training samples. The best "
            "of each set is bold; *ours / best other* compares with whichever other "
            "method came out best on that very set, which no single method does.\n",
            *_errors_markdown(g),
            "\n*DP* and *Sparse DP* have the paper's leukemia settings, *DP (study 1)* "
            "those of its simulations with 50 batches. Where the best other makes no "
            "error there is no ratio. Fit times include the choice of penalties, on "
            "one core that other work may have shared. Raw intensities x were replaced "
            "by sign(x) log(1 + |x|) for all methods, and classes too small for "
            f"{FOLDS} folds dropped:\n",
            *(f"- {text}" for text in data),
            "",
            "## Log-loss\n",
            "Natural logarithms, probabilities no smaller than 1e-15. The Brier score "
            "above sums over all classes: for two it is twice the usual.\n",
            *_loss_markdown(g),
            "\n## Sets won\n",
            *(
                f"- {method}: {', '.join(won) or 'none'}"
                for method, won in zip(g.methods, g.winners, strict=True)
            ),
            "",
        ]
    if rows:
        count = sorted({c.of for c in rows if c.table != "table6"})
        cells = [cell for c in rows if (cell := c.ours or c.bound)]
        reps = sorted({len(cell.errors) for cell in cells})
        parts += [
            "## The paper's simulations\n",
            f"Exact error, mean of {'-'.join(map(str, reps))} drawings; test error in "
            "study 3 (table6). *limit* is the posterior mean under the true prior with "
            "known variances, on the same drawings: no separable rule can beat it, and "
            "under correlation (tables 3-5) others can. *best of the paper* is the "
            f"best of {'/'.join(map(str, count))} of its seven methods by their mean "
            "over 100 drawings ([results.csv](../reproduction/results.csv)).\n",
            *_simulations_markdown(rows),
            f"\nGeometric mean over the limit {ratios(_bounded(rows), _over_bound)}; "
            f"over the best of the paper {ratios(rows, _over_best)}.\n",
        ]
    parts += ["## How\n", f"`{command}`\n", machine() + "\n"]
    return "\n".join(parts)


def _over_bound(c: Comparison) -> float | None:
    return c.over_bound


def _over_best(c: Comparison) -> float | None:
    return c.over_best


def _bounded(rows: Sequence[Comparison]) -> list[Comparison]:
    """Rows with a limit; the oracle of study 3 knows the support, and is none."""
    return [c for c in rows if c.table != "table6"]


def to_terminal(scores: Sequence[Score], rows: Sequence[Comparison]) -> str:
    """The summary: a line a method."""
    lines = [machine(), ""]
    if scores:
        g = grid(scores)
        table = _summaries(g)
        lines.append(f"{'':<20}" + "".join(f"{t:>{len(t) + 2}}" for t, _, _ in table))
        for j, method in enumerate(g.methods):
            cells = (f"{_text(v[j], d):>{len(t) + 2}}" for t, v, d in table)
            lines.append(f"{method:<20}" + "".join(cells))
        lines.append("")
        for method, won in zip(g.methods, g.winners, strict=True):
            lines.append(f"{method:<20}wins {', '.join(won) or 'none'}")
        if OURS in g.methods and len(g.methods) > 1:
            lines.append("\nEBClassifier over the best other:")
            for name, ratio in zip(g.sets, g.over_best_other, strict=True):
                lines.append(f"  {name:<24}{_text(ratio, 2):>6}")
    if rows:
        over_limit = ratios(_bounded(rows), _over_bound)
        lines.append(f"\nSimulations over the limit: {over_limit}")
        lines.append(f"Simulations over the paper's best: {ratios(rows, _over_best)}")
    return "\n".join(lines)
