"""Does the planner keep its promise? Planned from some samples, seen with more.

    python benchmarks/planning.py [--drawings 3] [--out docs/benchmarks] [--report]

Of each real set a random half, or a quarter, is the study at hand: `ebda.evaluation`
plans from it for 80 % of all samples. Then the classifier is fitted to 80 % of them,
those at hand among them, and the other 20 % are predicted, in four or five rotations of
the samples that the plan has not seen. Records hold the held-out predictions and what
was seen; plans are made of them when the table is. Runs can be stopped at any moment
and go on where they were.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import real_data
from accuracy_report import machine
from bars import Bar, to_terminal
from ebda import EBClassifier
from ebda.evaluation import Evaluation, Plan, evaluate, plan_from_evaluation
from ebda.evaluation.folds import predict_folds
from ebda.evaluation.intervals import wilson

Array = NDArray[Any]
Record = dict[str, Any]
FILE = "planning.jsonl"
FOLDS, LEFT, DIGITS = 10, 2, 4
LEVEL, BAR = 0.8, 2 / 3
# Into how many blocks all samples are dealt, and which of those that are not at hand
# are predicted at a time: a fifth of all samples.
BLOCKS = {"half": 10, "quarter": 20}
ROTATIONS = {
    "half": [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]],
    "quarter": [[*range(start, start + 4)] for start in (0, 4, 8, 11)],
}


def deal(codes: Array, blocks: int, rng: np.random.Generator) -> Array:
    """The block of each sample: every class is dealt out in turn."""
    block = np.empty(len(codes), dtype=int)
    dealt = 0
    for k in np.unique(codes):
        member = rng.permutation(np.flatnonzero(codes == k))
        block[member] = (np.arange(len(member)) + dealt) % blocks
        dealt += len(member)
    return block


def at_hand(block: Array, share: str, drawing: int) -> Array:
    """The samples that the plan has: every other block of ten, or five of twenty."""
    return block % 2 == drawing % 2 if share == "half" else block < 5


def measure(name: str, share: str, drawing: int) -> Record:
    """Hold out the samples at hand, and see what a fit to 80 % makes of the others."""
    data = real_data.load(name)
    classes, codes = np.unique(data.y, return_inverse=True)
    rng = np.random.default_rng(drawing + 1000 * (share == "quarter"))
    block = deal(codes, BLOCKS[share], rng)
    here = at_hand(block, share, drawing)
    record = {"set": name, "share": share, "drawing": drawing}
    counts = np.bincount(codes[here], minlength=len(classes))
    if counts.min() < LEFT:
        return {**record, "skipped": f"{counts.min()} samples of a class at hand"}
    fold = deal(codes[here], FOLDS, rng)
    # As `plan` does: a class of which one would be left is in every fit.
    fold[(counts <= LEFT)[codes[here]]] = -1
    model = EBClassifier()
    unseen = [b for b in range(BLOCKS[share]) if not here[block == b].any()]
    tests = []
    with threadpool_limits(1):
        held_out = predict_folds(model, data.X[here], codes[here], fold)
        for places in ROTATIONS[share]:
            test = np.isin(block, [unseen[i] for i in places])
            fitted = EBClassifier().fit(data.X[~test], codes[~test])
            seen = evaluate(fitted, data.X[test], codes[test])
            tests.append([seen.n_errors, int(test.sum())])
    return {
        **record,
        "samples": len(codes),
        "at_hand": int(here.sum()),
        "codes": held_out.codes.tolist(),
        "probabilities": held_out.probabilities.round(DIGITS).tolist(),
        "folds": held_out.n_folds,
        "tests": tests,
    }


@dataclass(frozen=True)
class Outcome:
    """A plan, and what was seen.

    Parameters
    ----------
    plan : Plan
        For the error rate.
    now : float
        The error held out now, and whether its interval of Wilson holds what was seen.
    seen : float
        Share of errors over the rotations.
    in_rate, in_unseen : bool
        Whether it lies in the interval for the rate, and in that for a test of all
        samples that the plan has not seen.
    in_tests : list of bool
        Whether the share of each rotation lies in the interval for a test of its size.
    """

    plan: Plan
    now: float
    now_holds: bool
    seen: float
    in_rate: bool
    in_unseen: bool
    in_tests: list[bool]


def outcome(record: Record) -> Outcome:
    """Plan from what was held out."""
    p = np.array(record["probabilities"])
    held_out = Evaluation(
        np.arange(p.shape[1]), np.array(record["codes"]), p, record["folds"]
    )
    tests = np.array(record["tests"])
    n = record["samples"] - tests[:, 1].mean()
    # In samples at hand, of which some may be in every fit.
    n *= len(p) / record["at_hand"] / p.shape[1]

    def planned(n_test: int | None = None) -> Plan:
        return plan_from_evaluation(held_out, n, level=LEVEL, n_test=n_test)

    def inside(value: float, found: Plan) -> bool:
        return bool(found.low[0] - 1e-9 <= value <= found.high[0] + 1e-9)

    rate = planned()
    seen = float(tests[:, 0].sum() / tests[:, 1].sum())
    low, high = wilson(held_out.error, len(held_out.codes), LEVEL)
    return Outcome(
        rate,
        held_out.error,
        low <= seen <= high,
        seen,
        inside(seen, rate),
        inside(seen, planned(record["samples"] - record["at_hand"])),
        [inside(wrong / m, planned(int(m))) for wrong, m in tests],
    )


def key(record: Record) -> tuple[str, str, int]:
    return record["set"], record["share"], record["drawing"]


def read(path: Path) -> list[Record]:
    """The records; a torn last line is none."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines if line]


def carry_out(path: Path, drawings: int, shares: list[str]) -> Iterator[Record]:
    """Run what the file lacks, a drawing of every set at a time, and append it."""
    done = {key(record) for record in read(path)}
    with path.open("a") as file:
        for drawing in range(drawings):
            for share in shares:
                for name in real_data.names():
                    if (name, share, drawing) in done:
                        continue
                    record = measure(name, share, drawing)
                    file.write(json.dumps(record) + "\n")
                    file.flush()
                    yield record


HEAD = (
    "| set | classes | at hand | error now | planned | 80% interval | seen | inside |"
)


def row(name: str, records: list[Record], found: list[Outcome]) -> str:
    """A line of the table: means over the drawings of a set."""
    low = np.mean([o.plan.low[0] for o in found])
    high = np.mean([o.plan.high[0] for o in found])
    cells = [
        name + ("" if all(o.plan.separated for o in found) else " \\*"),
        str(len(records[0]["probabilities"][0])),
        str(records[0]["at_hand"]),
        f"{np.mean([o.now for o in found]):.3f}",
        f"{np.mean([o.plan.error[0] for o in found]):.3f}",
        f"{low:.3f} to {high:.3f}",
        f"{np.mean([o.seen for o in found]):.3f}",
        f"{sum(o.in_rate for o in found)} of {len(found)}",
    ]
    return "| " + " | ".join(cells) + " |"


def report(records: list[Record]) -> tuple[str, list[Bar]]:
    """A table for each share in Markdown, and the bars."""
    lines, bars = [], []
    for share in BLOCKS:
        runs = [r for r in records if r["share"] == share and "tests" in r]
        if not runs:
            continue
        drawings = len({r["drawing"] for r in runs})
        lines += ["", f"From a {share} of the samples, {drawings} drawings:", "", HEAD]
        lines.append("|---" + "|---:" * (HEAD.count("|") - 2) + "|")
        found = [outcome(r) for r in runs]
        for name in sorted({r["set"] for r in runs}):
            own = [i for i, r in enumerate(runs) if r["set"] == name]
            lines.append(row(name, [runs[i] for i in own], [found[i] for i in own]))
        rate = float(np.mean([o.in_rate for o in found]))
        unseen = float(np.mean([o.in_unseen for o in found]))
        single = float(np.mean([hit for o in found for hit in o.in_tests]))
        off = np.mean([abs(o.seen - o.plan.error[0]) for o in found])
        off_now = np.mean([abs(o.seen - o.now) for o in found])
        width = np.mean([o.plan.high[0] - o.plan.low[0] for o in found])
        lines += [
            "",
            f"Of {len(runs)} plans, {rate:.0%} have what was seen in the interval for "
            f"the error rate, {unseen:.0%} in that for a test of all samples that the "
            f"plan has not seen. Of the single tests {single:.0%} lie in the interval "
            f"for a test of their size. Wilson's 80% interval of the error now "
            f"has {np.mean([o.now_holds for o in found]):.0%}. The intervals for the "
            f"rate are {width:.3f} wide. What was seen is {off:.3f} from the plan, and "
            f"{off_now:.3f} from the error now.",
        ]
        bars += [
            Bar(f"{share}: seen in the interval for the rate", rate, BAR, True),
            Bar(f"{share}: unseen samples in the interval", unseen, BAR, True),
            Bar(f"{share}: single tests in the interval", single, BAR, True),
        ]
    lines += ["", "\\* In some drawing no gain is promised."]
    return "\n".join(lines), bars


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--drawings", type=int, default=3, help="of the samples at hand (3)")
    add("--shares", nargs="+", choices=list(BLOCKS), default=list(BLOCKS))
    add("--out", type=Path, default=Path("docs/benchmarks"), help="folder")
    add("--report", action="store_true", help="of what there is, without a run")
    options = parser.parse_args()
    path = options.out / FILE
    if not options.report:
        for r in carry_out(path, options.drawings, options.shares):
            print(f"  {r['set']} {r['share']} {r['drawing']}", r.get("skipped", ""))
    text, bars = report(read(path))
    print(machine(), text, "", *to_terminal(bars), sep="\n")


if __name__ == "__main__":
    main()
