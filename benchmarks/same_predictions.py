"""Whether two versions of ebda predict the same on the real data sets.

    python benchmarks/same_predictions.py --out PREDICTIONS.npz [--compare OTHER.npz]

Fits `EBClassifier()` to 70 % of each set and writes what it predicts for the rest. Run
it in a checkout of each version, or put the sources of one first in PYTHONPATH, and
name the file of the other in `--compare`: the largest differences are printed for each
set, and the exit status is 1 if one of them is above `--tolerance`. Only names that
release 0.1.0 has are used.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import ebda
from ebda import EBClassifier
from real_data import SEED, load, names

Array = NDArray[Any]
TRAIN_SHARE = 0.7
# What is compared, and whether relative to the largest value of the set.
RELATIVE = {
    "probability": False,
    "decision": True,
    "coef": True,
    "intercept": True,
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--out", type=Path, required=True, help="file to write (.npz)")
    add("--compare", type=Path, metavar="OTHER", help="file of the other version")
    add("--tolerance", type=float, default=1e-9, help="(default: %(default)s)")
    add("--sets", nargs="+", default=names(), metavar="NAME", help="(default: all)")
    return parser.parse_args()


def predictions(name: str) -> tuple[dict[str, Array], float]:
    """What the default classifier makes of a set, and the seconds its fit took."""
    data = load(name)
    train, test = train_test_split(
        np.arange(len(data.y)),
        train_size=TRAIN_SHARE,
        stratify=data.y,
        random_state=SEED,
    )
    start = time.perf_counter()
    model = EBClassifier().fit(data.X[train], data.y[train])
    seconds = time.perf_counter() - start
    found = {
        "probability": model.predict_proba(data.X[test]),
        "decision": model.decision_function(data.X[test]),
        "coef": np.asarray(model.coef_),
        "intercept": np.asarray(model.intercept_),
    }
    return found, seconds


def difference(ours: Array, theirs: Array, relative: bool) -> float:
    """The largest one, infinite where the shapes differ or a value is not finite."""
    if ours.shape != theirs.shape:
        return np.inf
    scale = np.abs(theirs).max() if relative else 1.0
    largest = np.abs(ours - theirs).max() / (scale or 1.0)
    return float(largest) if np.isfinite(largest) else np.inf


def main() -> int:
    options = parse()
    print(f"ebda {ebda.__version__} in {Path(ebda.__file__).parent}")
    saved: dict[str, Array] = {}
    largest = 0.0
    heading = f"{'set':<24}{'fit (s)':>8}"
    if options.compare:
        heading += "".join(f"{what:>13}" for what in RELATIVE)
        with np.load(options.compare, allow_pickle=False) as file:
            other = dict(file)
    print(heading)
    for name in options.sets:
        found, seconds = predictions(name)
        saved |= {f"{name}/{what}": values for what, values in found.items()}
        line = f"{name:<24}{seconds:8.2f}"
        if options.compare:
            differences = [
                difference(found[what], other[f"{name}/{what}"], relative)
                for what, relative in RELATIVE.items()
            ]
            largest = max(largest, *differences)
            line += "".join(f"{value:13.1e}" for value in differences)
        print(line, flush=True)
    np.savez_compressed(options.out, **saved)
    if options.compare:
        print(f"largest difference: {largest:.1e} (tolerance {options.tolerance:.0e})")
    return int(largest > options.tolerance)


if __name__ == "__main__":
    sys.exit(main())
