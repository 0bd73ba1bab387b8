"""The tables of the accuracy benchmark: Markdown and terminal."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from accuracy_scores import FEWEST_REPEATS, OURS, Fewer, Grid, Score, grid, pairs
from bars import Bar
from bars import to_markdown as bars_markdown
from bars import to_terminal as bars_terminal
from peers import METHODS, SCREENED
from real_data import FOLDS
from simulations import Comparison

ABSENT = "-"
# Release 0.1.0 was developed on these; all sets had a part in choosing what came next.
DEVELOPED = (
    "ALL_bcrabl_neg",
    "alizadeh_lymphoma3",
    "alon_colon",
    "armstrong_mll",
    "bhattacharjee_lung",
    "golub_leukemia",
    "gravier_breast",
    "khan_srbct",
    "nci60",
    "shipp_dlbcl_fl",
    "singh_prostate_6033",
    "vantveer_breast78",
)
# What a reader must know of the methods.
NOTES = (
    "*DP* and *Sparse DP* have the paper's leukemia settings, *DP (study 1)* those of "
    "its simulations with 50 batches. *Shrinkage DA (sda)* is R's sda with all "
    "features; its probabilities are not rounded as R rounds them. *Regularised DA* is "
    "Friedman's, with *centroids* R's rda; *Dicker and Zhao* is the Bayes rule with "
    "nonparametric priors of independent features. *PLS-DA* has its "
    "number of components cross-validated and the softmax of the fitted values as "
    "probabilities, as R's caret has by default. *Elastic net* is half lasso, half "
    f"ridge, by scikit-learn's saga on the {SCREENED} features with the largest F "
    "statistics, which are chosen anew in each inner fold. *Gradient boosting* is "
    "HistGradientBoostingClassifier as it comes."
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
        ("mean excess over the best of each set", g.mean(g.excess), 4),
        ("sets won", np.array([len(won) for won in g.winners]), 0),
        ("mean log-loss", g.mean(g.log_loss), 3),
        ("mean Brier score", g.mean(g.brier), 3),
        ("mean features used", g.mean(g.features), 0),
        ("mean fit time, s", g.mean(g.fit_time), 2),
    ]


def _pairs_markdown(g: Grid) -> list[str]:
    lines = _head("against", ["won", "tied", "lost", "share", "their error less ours"])
    for pair in pairs(g):
        share = f"{pair.share:.2f} ± {_text(pair.share_se, 2)}"
        gain = f"{pair.gain:+.4f} ± {_text(pair.gain_se, 4)}"
        counts = map(str, (pair.won, pair.tied, pair.lost))
        lines.append(_row(pair.method, [*counts, share, gain]))
    return lines


def _fewer_markdown(fewer: Sequence[Fewer]) -> list[str]:
    columns = ["sets", "repeats", "error", "ours", "won", "tied", "lost", "fit time, s"]
    lines = [
        "\n## Run on fewer splits\n",
        f"Methods without {FEWEST_REPEATS} repeats of every set have no part in bars, "
        "ranks and means. *repeats* are those of all their sets together, and *ours* "
        "is the error of EBClassifier on the same splits: won where it is smaller.\n",
        *_head("method", columns),
    ]
    for f in fewer:
        counts = map(str, (f.won, f.tied, f.lost))
        errors = _text(f.error, 4), _text(f.ours, 4)
        cells = [str(f.sets), str(f.repeats), *errors, *counts, _text(f.fit_time, 2)]
        lines.append(_row(f.method, cells))
    return lines


def _not_run(compared: Sequence[str], fewer: Sequence[Fewer]) -> list[str]:
    there = {*compared, *(f.method for f in fewer)}
    missing = [method for method in METHODS if method not in there]
    return [f"\nNot run yet: {', '.join(missing)}."] if missing else []


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


def _repeats(scores: Sequence[Score]) -> str:
    """How often each method was run, in words."""
    by_method = {m: [s.repeats for s in scores if s.method == m] for m in METHODS}
    most = max(s.repeats for s in scores)
    fewer = [
        f"{method} {min(counts)}"
        for method, counts in by_method.items()
        if counts and min(counts) < most
    ]
    return f"{most} times" + (f" ({', '.join(fewer)})" if fewer else "")


def to_markdown(
    scores: Sequence[Score],
    fewer: Sequence[Fewer],
    rows: Sequence[Comparison],
    data: Sequence[str],
    bars: Sequence[Bar],
    command: str,
) -> str:
    """``README.md`` of the results; `data` says what was done to each set."""
    parts = ["# Accuracy\n", "![Errors by set and method](accuracy.png)\n"]
    if bars:
        parts += ["## Bars\n", *bars_markdown(bars), ""]
    if scores:
        g = grid(scores)
        developed = [name for name in g.sets if name in DEVELOPED]
        parts += [
            "## Real data\n",
            f"Misclassification rate in {FOLDS}-fold stratified cross-validation, "
            f"repeated {_repeats(scores)}, the "
            "same folds for all; ± is the standard error over repeats. Penalties and "
            "thresholds were cross-validated inside the training samples. The best "
            "of each set is bold; *ours / best other* compares with whichever other "
            "method came out best on that very set, which no single method does.\n",
            *_errors_markdown(g),
            f"\nRelease 0.1.0 was developed on {len(developed)} of these sets "
            f"({', '.join(developed)}). All {len(g.sets)} had a part in choosing what "
            "EBClassifier compares since then, by other splits than these: no set "
            "here is untouched, and its errors may be too good by as much as that "
            "choice could bend them.\n",
            "*Excess* is the error above that of the best method of a set: what it "
            "costs not to know beforehand which one that is.\n",
            f"{NOTES} Where the best other makes no error there is no ratio. Fit times "
            "include the choice of penalties, on one core that other work may have "
            "shared. Raw intensities x were replaced by sign(x) log(1 + |x|) for all "
            f"methods, and classes too small for {FOLDS} folds dropped:\n",
            *(f"- {text}" for text in data),
            "",
            "## One against one\n",
            "Sets on which EBClassifier errs less, as much, and more; the share of "
            "sets won counts ties as half; ± is the standard error over sets.\n",
            *_pairs_markdown(g),
            *(_fewer_markdown(fewer) if fewer else []),
            *_not_run(g.methods, fewer),
            "\n## Log-loss\n",
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


def to_terminal(
    scores: Sequence[Score], rows: Sequence[Comparison], bars: Sequence[Bar]
) -> str:
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
            lines.append("\nEBClassifier against one: share of sets won, ties half")
            for pair in pairs(g):
                lines.append(
                    f"  {pair.method:<24}{pair.won:>3}{pair.tied:>3}{pair.lost:>3}"
                    f"{pair.share:>7.2f} ± {_text(pair.share_se, 2)}"
                )
    if rows:
        over_limit = ratios(_bounded(rows), _over_bound)
        lines.append(f"\nSimulations over the limit: {over_limit}")
        lines.append(f"Simulations over the paper's best: {ratios(rows, _over_best)}")
    if bars:
        lines += ["\nBars:", *bars_terminal(bars)]
    return "\n".join(lines)
