"""Exact errors on rows of the paper's Table 1, beside what was measured before.

    python benchmarks/study1.py [--reps 10] [--rows all] [--sweep]

`limit` is the posterior mean under the true prior with known variances: no separable
rule can beat it. `earlier` is the column "converged, pooled" of the prototypes, the bar
for the default prior with pooled variances. With --sweep the parameters of the
Dirichlet process are varied one at a time: that is how its defaults were chosen.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import Bunch

from ebda import EBClassifier, paper, theory
from ebda.datasets import make_two_class
from ebda.priors import DirichletProcess, DiscretePrior

# (Delta, l): the error of the prototype "converged, pooled"
EARLIER = {
    (1, 2000): 0.0004,
    (1, 1000): 0.0394,
    (1, 500): 0.1878,
    (1.5, 300): 0.1057,
    (2, 200): 0.0460,
    (2.5, 100): 0.0469,
    (3, 50): 0.0529,
    (3.5, 50): 0.0106,
    (4, 40): 0.0041,
}
ROWS = [(1, 1000), (1, 500), (2, 200), (3, 50), (4, 40)]
N, P, VARIANCE = 25, 10_000, 12.5
Row = tuple[float, int]
Rule = Callable[[], EBClassifier]


def simulate(row: Row, seed: int) -> Bunch:
    return make_two_class(
        n_per_class=N,
        n_features=P,
        n_signals=row[1],
        effect=row[0],
        variance=VARIANCE,
        random_state=np.random.RandomState([int(10 * row[0]), row[1], seed]),
    )


def error_of(rule: Rule, row: Row, seed: int) -> float:
    sim = simulate(row, seed)
    model = rule().fit(sim.data, sim.target)
    return theory.error_rate(model.coef_, model.intercept_, *sim.means, sim.variance)


def limit(row: Row, seed: int) -> float:
    sim = simulate(row, seed)
    first, second = sim.data[:N].mean(axis=0), sim.data[N:].mean(axis=0)
    se = np.sqrt(VARIANCE * 2 / N)
    truth = DiscretePrior([0, row[0] / se], [P - row[1], row[1]])
    coef = truth.posterior((second - first) / se).mean
    middle = -coef @ (first + second) / 2
    return theory.error_rate(coef, middle, *sim.means, VARIANCE)


def default(**parameters: float) -> Rule:
    prior = DirichletProcess(**parameters)
    return lambda: EBClassifier(
        prior=prior,
        shrinkage="mean",
        variance="pooled",
        covariance="diagonal",
        priors="uniform",
    )


def errors(
    function: Callable[..., float], rows: list[Row], reps: int, *arguments: Rule
) -> np.ndarray:
    values = Parallel(n_jobs=-1)(
        delayed(function)(*arguments, row, seed) for row in rows for seed in range(reps)
    )
    return np.reshape(values, (len(rows), reps))


def table(rows: list[Row], reps: int) -> None:
    columns = {
        "limit": errors(limit, rows, reps),
        "ours": errors(error_of, rows, reps, default()),
        "paper DP": errors(
            error_of, rows, reps, lambda: paper.classifier("DP", 1, random_state=0)
        ),
    }
    print(f"Table 1 rows, exact error, mean of {reps} runs (standard error of ours)\n")
    print(
        f"{'row':>12}{'limit':>9}{'paper DP':>10}{'ours':>9}{'':>9}"
        f"{'earlier':>9}{'ours/earlier':>14}{'ours/limit':>12}"
    )
    for i, row in enumerate(rows):
        ours = columns["ours"][i]
        ratio = ours.mean() / EARLIER[row]
        print(
            f"{row!s:>12}{columns['limit'][i].mean():>9.4f}"
            f"{columns['paper DP'][i].mean():>10.4f}"
            f"{ours.mean():>9.4f} ({ours.std(ddof=1) / np.sqrt(reps):.4f})"
            f"{EARLIER[row]:>8.4f}{ratio:>14.2f}"
            f"{ours.mean() / columns['limit'][i].mean():>12.2f}"
            f"{'' if ratio <= 1.1 else '   over 1.10'}"
        )


def sweep(rows: list[Row], reps: int) -> None:
    base = errors(limit, rows, reps).mean(axis=1)
    print(f"Error over the limit, mean of {reps} runs, and the geometric mean\n")
    print(f"{'parameters':<26}" + "".join(f"{row!s:>11}" for row in rows))
    trials: list[dict[str, float]] = [
        {},
        *({"zero_weight": w} for w in (0.01, 0.1, 0.5, 0.9, 0.99)),
        *({"n_components": t} for t in (5, 10, 40)),
        *({"sigma": s} for s in (2.0, 6.0)),
        *({"alpha": a} for a in (0.5, 2.0)),
        {"weights": "map"},
    ]
    for trial in trials:
        ratio = errors(error_of, rows, reps, default(**trial)).mean(axis=1) / base
        name = ", ".join(f"{k}={v}" for k, v in trial.items()) or "default"
        cells = "".join(f"{r:>11.2f}" for r in ratio)
        print(f"{name:<26}{cells}   {np.exp(np.log(ratio).mean()):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=10)
    parser.add_argument("--rows", choices=["five", "all"], default="five")
    parser.add_argument("--sweep", action="store_true")
    options = parser.parse_args()
    rows = ROWS if options.rows == "five" else list(EARLIER)
    (sweep if options.sweep else table)(rows, options.reps)


if __name__ == "__main__":
    main()
