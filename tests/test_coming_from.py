"""The pages for those who come from R: their numbers are those that were measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGES = Path(__file__).parents[1] / "docs" / "coming-from"
MEASURED = json.loads((PAGES / "results.json").read_text())
# The page, the package, and our name of the same method.
SAME = {"pamr": "ShrunkenCentroids", "glmnet": "LassoLogistic", "sda": "ShrinkageDA"}


def rows(page: str) -> list[list[str]]:
    """The cells of the first table below its head."""
    table = re.search(
        r"^\|[-|]+\|\n((?:\|.*\|\n)+)",
        (PAGES / f"{page}.md").read_text(),
        flags=re.MULTILINE,
    )
    assert table is not None
    return [line.strip("| ").split(" | ") for line in table[1].splitlines()]


@pytest.mark.parametrize("page", SAME)
def test_errors_are_those_that_were_measured(page: str) -> None:
    expected = [
        [f"`{rule}`", *map(str, MEASURED["rules"][rule].values())]
        for rule in (page, SAME[page], "EBClassifier")
    ]
    assert rows(page) == expected
    # The same method in both has the same errors, and as many features.
    assert MEASURED["rules"][page] == MEASURED["rules"][SAME[page]]


def test_lists_and_means_are_those_that_were_measured() -> None:
    found = MEASURED["limma"]
    assert [cells[1] for cells in rows("limma")] == [
        f"{found['largest_difference_of_t']:.2g}",
        str(found["limma_q_05"]),
        str(found["ebda_q_05"]),
        str(found["shared_of_first_100"]),
    ]
    found = MEASURED["ashr"]
    expected = [
        [f"`{name}`", *map(str, found[name].values())]
        for name in ("ash", "unimodal", "stacked")
    ]
    assert rows("ashr") == expected
    text = (PAGES / "ashr.md").read_text()
    assert f"squared error of {found['estimates']['squared_error']}" in text
    assert f"at most {found['largest_difference_of_means']:.2g}." in text


def test_versions_are_those_that_were_used() -> None:
    versions = MEASURED["versions"]
    for page in (*SAME, "limma", "ashr"):
        said = re.search(
            rf"R ([\d.]+), {page} ([\d.-]+\d)", (PAGES / f"{page}.md").read_text()
        )
        assert said is not None
        assert said[1] == versions["R"]
        assert said[2].replace("-", ".") == versions[page]


@pytest.mark.slow
@pytest.mark.parametrize("page", [*SAME, "limma", "ashr"])
def test_the_examples_give_these_numbers(page: str) -> None:
    names: dict[str, Any] = {}
    text = (PAGES / f"{page}.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(block, names)
    if page == "ashr":
        for name, means in (("unimodal", "same"), ("stacked", "ours")):
            error = np.mean((names[means].posterior_mean_ - names["truth"]) ** 2)
            assert error == pytest.approx(
                MEASURED["ashr"][name]["squared_error"], abs=6e-5
            )
    elif page == "limma":
        found = names["model"].ranking_.selected(0.05).sum()
        assert found == MEASURED["limma"]["ebda_q_05"]
    else:
        X, y, test = names["X"], names["y"], ~names["train"]
        wrong = np.count_nonzero(names["ours"].predict(X[test]) != y[test])
        assert wrong == MEASURED["rules"]["EBClassifier"]["test"]
