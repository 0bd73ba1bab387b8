"""Denoising, intervals and signs by design and family, beside R's ashr and ebnm.

    python benchmarks/normal_means.py [--reference ../shared/reference/r]
                                      [--out docs/benchmarks]

The draws are those that R was given (`ebda.datasets.make_normal_means`), so that its
stored results are of the same values: squared error of the posterior means, coverage of
95 % intervals where |x / scale| > 2, and false signs among calls with lfsr < 0.05.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

from ebda import NormalMeans
from ebda.datasets import make_normal_means
from ebda.datasets.normal_means import DESIGNS

RUNS = {200: 10, 2000: 4}
# Priors, and the null that signs are judged by.
OURS = {
    "stacked": "empirical",
    "dp": "empirical",
    "npmle": "empirical",
    "normal_mixture": "point",
    "unimodal": "point",
}
THEIRS = ["ash_hu", "ebnm_nsm", "ebnm_npmle", "ebnm_pl", "ebnm_pn"]
# Bars: squared error over that of the best family, theirs included; coverage.
ERROR, COVERAGE = {200: 1.08, 2000: 1.03}, (0.93, 0.97)
Row = dict[str, float]


def ours(name: str, sim: object) -> Row:
    """What a prior makes of a draw."""
    x, scale, eta = sim.x, sim.scale, sim.eta  # type: ignore[attr-defined]
    start = time.perf_counter()
    means = NormalMeans(name, OURS[name]).fit(x, scale)
    lower, upper = means.interval()
    seconds = time.perf_counter() - start
    large, called = np.abs(x / scale) > 2, means.lfsr_ < 0.05
    side = np.sign(x / scale - means.null_loc_)
    return {
        "mse": float(np.mean((means.posterior_mean_ - eta) ** 2)),
        "covered": float(((lower <= eta) & (eta <= upper))[large].sum()),
        "large": float(large.sum()),
        "called": float(called.sum()),
        "wrong": float((side != np.sign(eta))[called].sum()),
        "seconds": seconds,
    }


def theirs(path: Path, p: int) -> dict[tuple[str, str], list[Row]]:
    """R's results by design and method, of the draws that are made here."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    file_path = path / f"normal_means_{p}.csv"
    if not file_path.exists():
        return found
    with file_path.open() as file:
        for r in csv.DictReader(file):
            if r["method"] in THEIRS and int(r["rep"]) <= RUNS[p]:
                number = {
                    k: float(r[k]) if r[k] not in ("", "NA") else np.nan
                    for k in r
                    if k not in ("design", "method")
                }
                found[r["design"], r["method"]].append(
                    {
                        "mse": number["mse"],
                        "covered": number["cover_big"],
                        "large": 1.0,
                        "called": number["nsel"],
                        "wrong": number["fsp"],
                        "seconds": number["time"],
                    }
                )
    return found


def summary(rows: list[Row]) -> Row:
    """Means over draws; shares are of all rows of all draws."""

    def total(name: str) -> float:
        return float(np.nansum([row[name] for row in rows]))

    seen = [row for row in rows if not np.isnan(row["covered"])]
    large = sum(row["large"] for row in seen)
    covered = sum(row["covered"] for row in seen)
    return {
        "mse": total("mse") / len(rows),
        "coverage": covered / large if large else np.nan,
        "calls": total("called") / len(rows),
        "false": total("wrong") / max(total("called"), 1.0),
        "seconds": total("seconds") / len(rows),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[2] / "shared" / "reference" / "r"
    parser.add_argument("--reference", type=Path, default=beside)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    table, missed = [], []
    for p, runs in RUNS.items():
        stored = theirs(options.reference, p)
        for place, design in enumerate(DESIGNS):
            rng = np.random.default_rng([place, p, 7])
            rows: dict[str, list[Row]] = defaultdict(list)
            for _ in range(runs):
                sim = make_normal_means(design, p, rng)
                rng.permutation(p)  # as the draws for R
                for name in OURS:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        rows[name].append(ours(name, sim))
            for name in THEIRS:
                rows[name] = stored.get((design, name), [])
            found = {name: summary(some) for name, some in rows.items() if some}
            best = min(row["mse"] for row in found.values())
            print(f"\n{design}, {p} values, {runs} draws")
            print(
                f"{'':<22}{'error':>8}{'/ best':>8}{'covered':>9}{'calls':>8}"
                f"{'false':>8}{'seconds':>9}"
            )
            for name, row in found.items():
                ratio = row["mse"] / best if design != "null" else np.nan
                print(
                    f"{name:<22}{row['mse']:8.4f}{ratio:8.3f}{row['coverage']:9.3f}"
                    f"{row['calls']:8.1f}{row['false']:8.3f}{row['seconds']:9.3f}",
                    flush=True,
                )
                table.append((p, design, name, *(f"{v:.4f}" for v in row.values())))
            mine = found["stacked"]
            if design != "null":
                if mine["mse"] > ERROR[p] * best:
                    missed.append(f"{design} {p}: error {mine['mse'] / best:.3f}")
                if not COVERAGE[0] <= mine["coverage"] <= COVERAGE[1]:
                    missed.append(f"{design} {p}: coverage {mine['coverage']:.3f}")
            if mine["false"] > 0.05 and mine["calls"] >= 1:
                missed.append(f"{design} {p}: false signs {mine['false']:.3f}")
    with (options.out / "normal_means.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["values", "design", "method", *next(iter(found.values()))])
        writer.writerows(table)
    print("\nNOT MET: " + "; ".join(missed) if missed else "\nall bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
