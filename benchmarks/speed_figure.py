"""The figure of the speed benchmark, drawn from its results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from speed_data import MIB
from speed_measure import Result
from speed_methods import METHODS

# Okabe and Ito's colours; markers tell the methods apart without them.
LOOKS = {
    "EBClassifier": ("#d55e00", "D"),
    "EBClassifier, diagonal and mean": ("#e69f00", "d"),
    "EBClassifier, diagonal, NumPy only": ("#f0c987", "d"),
    "X.sum()": ("#d1d5db", "."),
    "moments": ("#9ca3af", "v"),
    "moments, NumPy only": ("#9ca3af", "^"),
    "GaussianNB": ("#0072b2", "o"),
    "NearestCentroid, shrunken": ("#cc79a7", "h"),
    "LDA, svd": ("#009e73", "P"),
    "LogisticRegression, l2": ("#56b4e9", "s"),
    "LogisticRegression, l1": ("#000000", "X"),
    "adelie, lasso": ("#6b7280", "*"),
    "the paper's DP": ("#4b5563", "<"),
}


def draw(results: Sequence[Result], out: Path) -> None:
    """Write ``speed.png`` and ``speed.svg``."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        print(f"no figure: {error}", file=sys.stderr)
        return
    few = [r for r in results if r.n < 1000]
    many = [r for r in results if r.n >= 1000]
    figure = Figure(figsize=(11, 6.2), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[1.5, 1.5, 1])
    _lines(axes[0], few, "seconds")
    axes[0].set(title="Time of a fit, 60 samples", ylabel="seconds")
    _lines(axes[1], few, "peak_mib")
    axes[1].set(title="Memory of a fit above X", ylabel="MiB, peak resident size")
    ends = sorted({r.p for r in few})
    axes[1].plot(
        ends, [64 + 96 * p / MIB for p in ends], "k:", lw=1, label="bar for ours"
    )
    samples, size = few[0].n, np.dtype(np.float32).itemsize
    axes[1].plot(
        ends,
        [samples * size * p / MIB for p in ends],
        color="#d1d5db",
        lw=5,
        zorder=1,
        label="X itself",
    )
    for ax in axes[:2]:
        ax.set(xscale="log", yscale="log", xlabel="features")
    axes[1].set_ylim(bottom=1)
    _bars(axes[2], many)
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="both", color="#e5e7eb", lw=0.6)
        ax.set_axisbelow(True)
    # Without a date and with fixed names the same results give the same bytes.
    with mpl.rc_context({"svg.hashsalt": "ebda"}):
        figure.savefig(out / "speed.svg", metadata={"Date": None})
    figure.savefig(out / "speed.png", dpi=150)


def _lines(ax: Any, results: Sequence[Result], what: str) -> None:
    for name in METHODS:
        points = [
            (r.p, max(getattr(r, what), 1.0 if what == "peak_mib" else 0.0))
            for r in results
            if r.method == name and getattr(r, what) is not None
        ]
        if not points:
            continue
        colour, marker = LOOKS[name]
        ours = METHODS[name].kind == "ours"
        ax.plot(
            *zip(*sorted(points), strict=True),
            marker=marker,
            color=colour,
            lw=2 if ours else 1,
            ms=8 if ours else 6,
            mec="white",
            mew=0.5,
            ls="--" if METHODS[name].kind == "floor" else "-",
            zorder=3 if ours else 2,
            label=name,
        )


def _bars(ax: Any, results: Sequence[Result]) -> None:
    shown = [r for r in results if r.seconds is not None]
    shown.sort(key=lambda r: -(r.seconds or 0.0))
    for place, r in enumerate(shown):
        colour, marker = LOOKS[r.method]
        ax.plot(r.seconds, place, marker, color=colour, ms=8, mec="white", mew=0.5)
    ax.set_yticks(range(len(shown)), [r.method for r in shown], fontsize=7)
    size = f"{shown[0].n:,} x {shown[0].p:,}" if shown else ""
    ax.set(title=f"Time, {size}", xlabel="seconds", xscale="log")
