"""The figure of the accuracy benchmark, drawn from its scores."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accuracy_scores import OURS, Grid, Score, grid
from simulations import Comparison

# Okabe and Ito's colours; markers tell the methods apart without them.
LOOKS = {
    "EBClassifier": ("#d55e00", "D"),
    "DP": ("#9ca3af", "v"),
    "Sparse DP": ("#9ca3af", "<"),
    "DP (study 1)": ("#4b5563", "^"),
    "Shrinkage LDA": ("#009e73", "P"),
    "Shrinkage DA (sda)": ("#00573f", "8"),
    "Regularised DA": ("#be123c", "<"),
    "Regularised DA, centroids": ("#fb7185", "v"),
    "Thresholded LDA": ("#a16207", "1"),
    "Sparse LDA": ("#ca8a04", "2"),
    "Dicker and Zhao": ("#1e3a8a", "*"),
    "LPD": ("#65a30d", "3"),
    "Mean and variance adaptive": ("#0d9488", "4"),
    "PLS-DA": ("#f0e442", "H"),
    "Ridge logistic": ("#0072b2", "o"),
    "Linear SVM": ("#56b4e9", "s"),
    "Random forest": ("#e69f00", "p"),
    "Shrunken centroids": ("#cc79a7", "h"),
    "Elastic net": ("#7c3aed", "d"),
    "Lasso logistic": ("#000000", "X"),
    "Gradient boosting": ("#8b5e34", ">"),
}


def draw(scores: Sequence[Score], rows: Sequence[Comparison], out: Path) -> None:
    """Write ``accuracy.png`` and ``accuracy.svg``."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        print(f"no figure: {error}", file=sys.stderr)
        return
    simulated = [c for c in rows if c.ours]
    widths = ([2.2, 1.0] if scores else []) + ([1.2] if simulated else [])
    if not widths:
        return
    # A row of markers for each set, however many there are.
    height = max(6.5, 0.45 * len({score.set for score in scores}) + 1)
    figure = Figure(figsize=(4.2 * sum(widths) ** 0.75, height), layout="constrained")
    axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
    if scores:
        g = grid(scores)
        _errors(axes[0], g)
        _ranks(axes[1], g)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=5, frameon=False
        )
    if simulated:
        _simulations(axes[-1], simulated)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="both", color="#e5e7eb", lw=0.6)
        ax.set_axisbelow(True)
    # Without a date and with fixed names the same results give the same bytes.
    with mpl.rc_context({"svg.hashsalt": "ebda"}):
        figure.savefig(out / "accuracy.svg", metadata={"Date": None})
    figure.savefig(out / "accuracy.png", dpi=150)


def _errors(ax: Any, g: Grid) -> None:
    order = np.argsort(np.nanmin(g.error, axis=1))
    places = np.arange(len(order))
    offsets = np.linspace(0.3, -0.3, len(g.methods))  # equal errors stay visible
    for j, method in sorted(enumerate(g.methods), key=lambda item: item[1] == OURS):
        colour, marker = LOOKS[method]
        ax.plot(
            g.error[order, j],
            places + offsets[j],
            marker,
            color=colour,
            ms=9 if method == OURS else 6,
            mec="white",
            mew=0.6,
            label=method,
            clip_on=False,
        )
    ax.set_yticks(places, [_short(g.sets[i]) for i in order])
    # Square roots: sets with an error of 2 % are as easy to read as those with 30 %.
    ax.set_xscale("function", functions=(lambda x: np.sqrt(np.abs(x)), np.square))
    ticks = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9)
    most = np.nanmax(g.error)
    ax.set_xticks([t for t in ticks if t <= most], minor=False)
    ax.set(title="Real data", xlabel="cross-validated error (square-root scale)")
    ax.set_xlim(0, most * 1.05)
    ax.set_ylim(-0.6, len(order) - 0.4)
    for place in places[1:]:
        ax.axhline(place - 0.5, color="#9ca3af", lw=0.6)


def _short(name: str) -> str:
    return name.replace("_", " ")


def _ranks(ax: Any, g: Grid) -> None:
    order = np.argsort(-g.ranks)
    for place, j in enumerate(order):
        colour, marker = LOOKS[g.methods[j]]
        ax.plot([0, g.ranks[j]], [place, place], color=colour, lw=2, alpha=0.5)
        ax.plot(g.ranks[j], place, marker, color=colour, ms=9, mec="white", mew=0.6)
    ax.set_yticks(range(len(order)), [g.methods[j] for j in order])
    ax.set_xticks(range(1, len(order) + 1, 2))
    ax.set(title="Mean rank", xlabel="1 is the best", xlim=(0, len(order) + 0.3))


def _simulations(ax: Any, rows: Sequence[Comparison]) -> None:
    places = np.arange(len(rows))[::-1]
    for what, colour, marker, label in (
        ("over_bound", "#6b7280", "o", "to the limit (T6: the oracle)"),
        ("over_best", "#d55e00", "D", "to the best of the paper"),
    ):
        values = [getattr(c, what) or np.nan for c in rows]
        ax.plot(values, places, marker, color=colour, ms=6, mec="white", label=label)
    ax.axvline(1, color="black", lw=0.8)
    labels = [f"{c.table.replace('table', 'T')} {c.row}" for c in rows]
    ax.set_yticks(places, labels, fontsize=7)
    ax.set_xscale("log")
    ticks = [0.01, 0.03, 0.1, 0.3, 1, 3, 10]
    values = [v for c in rows for v in (c.over_bound, c.over_best) if v]
    kept = [t for t in ticks if min(values) / 1.5 <= t <= max(values) * 1.5]
    ax.set_xticks(kept, [f"{t:g}" for t in kept], minor=False)
    ax.minorticks_off()
    ax.set(title="Simulations", xlabel="ratio of EBClassifier's error")
    ax.set_ylim(-1, len(rows) * 1.12)  # the legend goes above the points
    ax.legend(fontsize=7, loc="upper right")
