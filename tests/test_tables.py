"""Results are a few lines when printed, and a table in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ebda import EBClassifier, panel
from ebda.baselines import IndependenceRule
from ebda.datasets import load_golub, load_khan
from ebda.evaluation import (
    calibration_bins,
    cross_validate,
    plan_from_evaluation,
)
from ebda.tables import data_frame, html_table, text_table

MOST_LINES = 20


class Cells(HTMLParser):
    """The cells of tables, and whether all tags are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    golub, khan = load_golub(), load_khan()
    X = pd.DataFrame(golub.data, columns=golub.feature_names).iloc[:, :500]
    quick = {"covariance": "factor", "shrinkage": "mean"}
    X = np.sign(X) * np.log1p(np.abs(X))
    two = EBClassifier(**quick).fit(X, golub.target)
    many = EBClassifier(**quick).fit(khan.data[:, :300], khan.target)
    rule = IndependenceRule()
    held_out = cross_validate(rule, X, golub.target)
    small = panel(rule, X, golub.target, [2, 20, 100], n_folds=3)
    bins = calibration_bins(held_out.probabilities[:, 1], held_out.codes == 1)
    return {
        "ranking": two.ranking_,
        "ranking of four": many.ranking_,
        "list": two.ranking_.marginal,
        "list of four": many.ranking_.conditional,
        "selection": two.selection_,
        "evaluation": held_out,
        "measures": held_out.measures(),
        "repeated": cross_validate(rule, khan.data, khan.target, n_repeats=2),
        "plan": plan_from_evaluation(held_out),
        "panel": small,
        "features": small.features,
        "bins": bins,
    }


NAMES = [
    "ranking", "ranking of four", "list", "list of four", "selection", "evaluation",
    "measures", "repeated", "plan", "panel", "features", "bins",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_a_few_lines(results: dict[str, Any], name: str) -> None:
    lines = repr(results[name]).splitlines()
    assert 1 < len(lines) <= MOST_LINES
    assert str(results[name]) == repr(results[name])
    assert "array(" not in repr(results[name])
    # Sentences aside, lines of a table fit on a line.
    assert all(len(line) <= 90 for line in lines[1:-1])


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_gets_a_table(results: dict[str, Any], name: str) -> None:
    found = Cells(results[name]._repr_html_())
    assert len(found.rows) > 1
    assert len({len(row) for row in found.rows[:2]}) == 1


def test_the_first_features_are_those_of_the_table(results: dict[str, Any]) -> None:
    for name in ("ranking", "ranking of four"):
        ranking = results[name]
        frame = ranking.to_frame()
        rows = Cells(ranking._repr_html_()).rows
        assert [row[0] for row in rows[1:]] == [str(i) for i in frame.index[:5]]
        q = [float(row[rows[0].index("q_value")]) for row in rows[1:]]
        np.testing.assert_allclose(q, frame["q_value"][:5], rtol=1e-3)
        n = int(ranking.selected().sum())
        assert repr(ranking).startswith(f"{n} of {len(frame)} features differ")
    assert "class" in Cells(results["ranking of four"]._repr_html_()).rows[0]


def test_the_chosen_size_is_marked(results: dict[str, Any]) -> None:
    found = results["panel"]
    assert f"<tr><th>{found.size}</th>" in found._repr_html_()


def test_names_are_shown_and_not_obeyed() -> None:
    rows = [["<script>", 1.0], ["a\x1b[2J", np.float32(0.5)], ["c", 7]]
    page = html_table("a & b", ["gene", "t"], rows, note="<i>")
    assert "<script>" not in page
    assert "<i>" not in page
    assert Cells(page).rows[1] == ["<script>", "1"]
    text = text_table(["gene", "t"], rows)
    assert "\x1b" not in text
    assert text.splitlines()[3].split() == ["c", "7"]


def test_a_frame_without_names_is_numbered() -> None:
    frame = data_frame({"a": [1, 2]}, None)
    assert frame.index.tolist() == [0, 1]
    assert data_frame({"a": [1]}, ["x"], "feature").index.name == "feature"
