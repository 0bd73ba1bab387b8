"""The lists of features should stay empty where there is nothing to find.

    python benchmarks/permuted_lists.py [--permutations 20] [--out docs/benchmarks]

Labels are permuted at random on the real sets. Of all fits at most one of twenty should
have any call at 5 %, and none should call a tenth of the features.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

import real_data
from ebda import EBClassifier
from ebda.rule.discoveries import q_values

LEVEL = 0.05
MOST_FITS, MOST_SHARE = 1 / 20, 0.1
LISTS = ("marginal", "conditional", "bh")


def calls(name: str, seed: int | None) -> list[int]:
    """Features called with permuted labels, or with the true ones, in each list."""
    data = real_data.load(name)
    y = data.y if seed is None else np.random.default_rng(seed).permutation(data.y)
    model = EBClassifier(covariance="factor", shrinkage="mean", calibrate=False)
    ranking = model.fit(data.X, y).ranking_
    p = np.maximum(ranking.marginal.p_over_classes, 1e-300)
    lists = (ranking.marginal.selected(LEVEL), ranking.conditional.selected(LEVEL))
    return [int(row.sum()) for row in (*lists, q_values(np.log(p), 1.0) <= LEVEL)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--permutations", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    rows, with_calls, most_share = [], [], 0.0
    for path in sorted(real_data.folder().glob("*.npz")):
        name, start = path.stem, time.perf_counter()
        p = real_data.load(name).X.shape[1]
        true = calls(name, None)
        permuted = np.array(
            Parallel(options.jobs)(
                delayed(calls)(name, seed) for seed in range(options.permutations)
            )
        )
        row: dict[str, object] = {"set": name, "features": p}
        for k, which in enumerate(LISTS):
            row[f"{which}_true"] = true[k]
            row[f"{which}_fits"] = int((permuted[:, k] > 0).sum())
            row[f"{which}_most"] = int(permuted[:, k].max())
        rows.append(row)
        ours = permuted[:, :2]
        with_calls.append((ours > 0).mean(axis=0))
        most_share = max(most_share, ours.max() / p)
        print(*row.values(), f"{time.perf_counter() - start:.0f} s", flush=True)
    with (options.out / "permuted_lists.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    share = np.mean(with_calls, axis=0)
    kept = bool(share.max() <= MOST_FITS and most_share < MOST_SHARE)
    print(
        f"fits with any call: {share[0]:.1%} and {share[1]:.1%}; largest share of the "
        f"features that one calls {most_share:.1%}: {'ok' if kept else 'NOT MET'}"
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
