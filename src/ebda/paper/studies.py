"""The paper's studies as data: tables, rows, columns, and what was published."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from sklearn.utils import Bunch

from ebda.datasets import load_golub, make_factor_classes, make_two_class
from ebda.paper.further import FURTHER
from ebda.paper.methods import METHODS

N_PER_CLASS, N_FEATURES, VARIANCE = 25, 10_000, 12.5


@cache
def _published() -> dict[str, dict[str, Any]]:
    """Title of each table, and its cells by row and column; shares are fractions."""
    text = (files("ebda.paper") / "published.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = json.loads(text)
    return tables


@dataclass(frozen=True)
class Row:
    """A row of a table: its label, and a function that draws its data from a seed."""

    label: str
    draw: Callable[[Any], Bunch]


@dataclass(frozen=True)
class Table:
    """A table of the paper: its study, rows and columns, in order."""

    name: str
    study: int | str
    rows: tuple[Row, ...]
    columns: tuple[str, ...]

    @property
    def title(self) -> str:
        """What the table shows."""
        return str(_published()[self.name]["title"])


def _normal(label: str, **design: Any) -> Row:
    def draw(random_state: Any) -> Bunch:
        return make_two_class(
            n_per_class=N_PER_CLASS,
            n_features=N_FEATURES,
            variance=VARIANCE,
            random_state=random_state,
            **design,
        )

    return Row(label, draw)


_SIGNALS = (
    (1, 2000),
    (1, 1000),
    (1, 500),
    (1.5, 300),
    (2, 200),
    (2.5, 100),
    (3, 50),
    (3.5, 50),
    (4, 40),
)
_RHOS = (0.3, 0.5, 0.7, 0.9)
_COLUMNS = ("Hard Thresh DP", "Sparse DP", "DP", "EB", "IR", "FAIR", "glmnet")


def _independent(name: str, background: float) -> Table:
    rows = (
        _normal(f"({d:g},{n})", n_signals=n, effect=d, background=background)
        for d, n in _SIGNALS
    )
    return Table(name, 1, tuple(rows), _COLUMNS)


def _correlated(
    name: str, n_signals: tuple[int, ...], effect: tuple[float, ...]
) -> Table:
    rows = (
        _normal(f"{r}", n_signals=n_signals, effect=effect, background=0.1, rho=r)
        for r in _RHOS
    )
    return Table(name, 2, tuple(rows), _COLUMNS)


def _leukemia(_: Any) -> Bunch:
    golub = load_golub()
    train = golub.split == "train"
    return Bunch(
        data=golub.data[train],
        target=golub.target[train],
        test_data=golub.data[~train],
        test_target=golub.target[~train],
    )


TABLES = {
    table.name: table
    for table in (
        _independent("table1", 0.0),
        _independent("table2", 0.1),
        _correlated("table3", (2000,), (1.0,)),
        _correlated("table4", (1000, 100), (1.0, 2.5)),
        _correlated("table5", (1000, 50), (1.0, 3.5)),
        Table(
            "table6",
            3,
            (Row("study 3", lambda seed: make_factor_classes(random_state=seed)),),
            ("Oracle", "Hard Thresh DP", "Sparse DP", "FAIR", "glmnet"),
        ),
        Table(
            "table7",
            "leukemia",
            (Row("training", _leukemia), Row("test", _leukemia)),
            ("FAIR", "EB", "IR", "DP", "Sparse DP", "Hard Thresh DP"),
        ),
    )
}
# What the tables can show beside the paper's columns.
EXTRA = (*FURTHER, "Limit")


def methods_of(table: Table) -> tuple[str, ...]:
    """The columns of a table that can be computed, and the further methods."""
    extra = [m for m in EXTRA if m != "Limit" or table.study in (1, 2)]
    known = [m for m in table.columns if m == "Oracle" or m in METHODS[table.study]]
    return (*known, *extra)


def published(table: str, row: str, method: str) -> float | None:
    """A published value, or None if the paper has none.

    >>> published("table1", "(1,1000)", "DP")
    0.0283
    """
    cell = _published()[table]["rows"][row].get(method)
    return None if cell is None else float(Fraction(cell))


def published_errors(methods: Collection[str]) -> dict[str, list[float]]:
    """Errors of the authors' repetitions of study 3, which Figure 1 shows.

    >>> {name: len(errors) for name, errors in published_errors(["FAIR"]).items()}
    {'FAIR': 100}
    """
    text = (files("ebda.paper") / "figure1.json").read_text(encoding="utf-8")
    figure: dict[str, Any] = json.loads(text)
    tested = figure["test_samples"]
    wrong = {name: n for name, n in figure["wrong"].items() if name in methods}
    return {name: [count / tested for count in n] for name, n in wrong.items()}
