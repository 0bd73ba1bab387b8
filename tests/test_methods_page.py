"""The records of the reproduction, and what the pages say of them."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ebda.paper.runner import read_runs
from ebda.paper.studies import TABLES, methods_of
from ebda.paper.summary import agreement, summarise, to_csv, to_markdown

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "reproduction"


@cache
def page_maker() -> ModuleType:
    path = ROOT / "benchmarks" / "methods_page.py"
    spec = importlib.util.spec_from_file_location("methods_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for the module of their class.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(importlib.import_module("sys").modules, "methods_page", module)
        spec.loader.exec_module(module)
    return module


@cache
def cells() -> Any:
    return summarise(read_runs(RECORDS / "runs.jsonl"))


def test_the_page_of_methods_follows_from_the_records() -> None:
    """Else run ``python benchmarks/methods_page.py``."""
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert text == page_maker().page(cells())


def test_every_method_of_the_tables_has_a_row() -> None:
    maker = page_maker()
    known = {m for table in TABLES.values() for m in methods_of(table)}
    assert {m.key for m in (*maker.NAMED, *maker.BESIDE)} - {""} == known


def test_what_the_page_names_is_there() -> None:
    maker = page_maker()
    for method in (*maker.NAMED, *maker.BESIDE):
        file, _, name = method.test.partition("::")
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"def {name}(" in source or not name, method.test
        for target in re.findall(r"{py:\w+}`~?([\w.]+)`", method.code):
            module, _, attribute = target.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), target


def test_tables_of_the_reproduction_follow_from_the_records() -> None:
    """Else run ``ebda reproduce`` with what is there already."""
    text = (RECORDS / "results.csv").read_text(encoding="utf-8")
    assert text == to_csv(cells())
    text = (RECORDS / "reproduction.md").read_text(encoding="utf-8")
    assert text == to_markdown(cells())


@pytest.mark.parametrize("page", ["README.md", "docs/reproduction/README.md"])
def test_counts_of_cells_follow_from_the_records(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(r"(\d+) of (?:the )?(\d+) cells", text)
    assert found is not None
    assert tuple(map(int, found.groups())) == agreement(cells())
