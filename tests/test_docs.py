"""The documentation hangs together; that it builds and runs is for ``make docs``."""

from __future__ import annotations

import argparse
import ast
import re
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest

import ebda
from ebda import cli

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if not {"_build", "generated"} & set(path.relative_to(DOCS).parts)
)
NAMES = [path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES]
# Modules whose names are public, beside the package itself.
PUBLIC = [
    "baselines",
    "data",
    "data.disk",
    "datasets",
    "evaluation",
    "inputs",
    "modelfile",
    "paper",
    "plotting",
    "priors",
    "report",
    "scanpy",
    "theory",
]
FENCE = re.compile(r"^(`{3,}|:{3,})(.*?)\n(.*?)^\1\s*$", flags=re.DOTALL | re.MULTILINE)


def prose(text: str) -> str:
    """A page without its code, where brackets are not links."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def blocks(text: str, kind: str) -> list[tuple[str, str]]:
    """Argument and content of the directives of one kind."""
    return [
        (head.removeprefix(f"{{{kind}}}").strip(), content)
        for _, head, content in FENCE.findall(text)
        if head.startswith(f"{{{kind}}}")
    ]


def contents(page: Path) -> list[str]:
    """Pages that the tables of contents of a page name."""
    here = page.parent.relative_to(DOCS)
    found = []
    for _, content in blocks(page.read_text(), "toctree"):
        for line in content.splitlines():
            if not line or line.startswith(":"):
                continue
            place = (here / line).as_posix()
            found += [
                name
                for name in NAMES
                if fnmatch(name, place) and name.count("/") == place.count("/")
            ] or [place]
    return found


def slug(heading: str) -> str:
    """The anchor that a heading gets, as GitHub and MyST make it."""
    words = re.sub(r"[^\w\s-]", "", heading.strip().lower())
    return re.sub(r"\s", "-", words)


def anchors(page: Path) -> set[str]:
    text = page.read_text()
    headings = re.findall(r"^#{1,4} (.*)$", FENCE.sub("", text), flags=re.MULTILINE)
    labels = re.findall(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE)
    return {slug(heading) for heading in headings} | set(labels)


def test_every_page_is_in_the_contents() -> None:
    reached, waiting = set(), ["index"]
    while waiting:
        name = waiting.pop()
        assert name in NAMES, f"a table of contents names {name}, which is not there"
        if name not in reached:
            reached.add(name)
            waiting += contents(DOCS / f"{name}.md")
    assert reached == set(NAMES)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    links = re.findall(r"\]\(([^)\s]+)\)", prose(text))
    files = [where for kind in ("image", "include") for where, _ in blocks(text, kind)]
    files += [where for where, _ in blocks(text, "literalinclude")]
    for link in [*links, *files]:
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in anchors(there), f"{page.name} links to {link}"


def test_pages_that_sphinx_links_to_are_written_by_a_page() -> None:
    written = {
        name
        for page in PAGES
        for name in re.findall(r"EBDA_DOCS_PAGES'\]\}/([\w.-]+)", page.read_text())
    }
    linked = {
        name
        for page in PAGES
        for name in re.findall(r"(?:href=\"|:target: )([\w.-]+)", page.read_text())
    }
    assert linked == written != set()


def reference() -> set[str]:
    """Names in the API reference, with their modules."""
    listed = set()
    for page in (DOCS / "api").glob("*.md"):
        for _, content in blocks(page.read_text(), "eval-rst"):
            module = re.search(r"currentmodule:: ([\w.]+)", content)
            listed |= set(re.findall(r"py:data:: ([\w.]+)", content))
            if module is not None:
                names = re.findall(r"^   ([A-Za-z][\w.]*)$", content, re.MULTILINE)
                listed |= {f"{module[1]}.{name}" for name in names}
    return listed


def test_every_public_name_is_in_the_reference() -> None:
    listed = reference()
    for name in set(ebda.__all__) - {"__version__"}:
        assert f"ebda.{name}" in listed
    for module in PUBLIC:
        for name in import_module(f"ebda.{module}").__all__:
            if not (module == "modelfile" and name in ebda.__all__):
                assert f"ebda.{module}.{name}" in listed, f"{module}.{name}"


def test_what_the_reference_lists_is_there() -> None:
    for name in reference():
        assert exists(name), name


def exists(name: str) -> bool:
    """Whether it is a module, or something in a module."""
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(import_module(module), attribute) or bool(import_module(name))
    except ModuleNotFoundError:
        return False


def test_modules_that_pages_name_are_described() -> None:
    listed = reference()
    for page in PAGES:
        for module in re.findall(r"\{py:mod\}`~?([\w.]+)`", page.read_text()):
            assert module in listed, f"{page.name} names {module}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_cells_are_python_and_run(page: Path) -> None:
    text = page.read_text()
    cells = [content for _, content in blocks(text, "code-cell")]
    assert ("file_format: mystnb" in text) == bool(cells), "cells would not run"
    for cell in cells:
        code = re.sub(r"^:.*\n", "", cell)
        if not code.startswith("%%console"):
            ast.parse(code)
        assert max(map(len, code.splitlines())) <= 110, f"too wide for a page: {cell}"


def options(command: str) -> set[str]:
    parser = argparse.ArgumentParser()
    cli.COMMANDS[command].add_arguments(parser)
    return set(parser._option_string_actions)


def test_commands_on_the_pages_exist() -> None:
    used = 0
    for page in PAGES:
        for command, rest in re.findall(r"\bebda (\w+) ([^\n|`]*)", page.read_text()):
            if command in cli.COMMANDS:
                for option in re.findall(r"(?<!\S)--[\w-]+", rest):
                    assert option in options(command), f"{page.name}: ebda {option}"
                    used += 1
    assert used > 10
    page = (DOCS / "howto" / "command-line.md").read_text()
    for option in re.findall(r"^\| `(--[\w-]+)", page, flags=re.MULTILINE):
        assert option in options("fit"), option


def test_tests_that_the_page_on_reliability_names_are_there() -> None:
    page = (DOCS / "reliability.md").read_text()
    named = re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", page)
    assert len(named) > 20
    for file, name in named:
        text = (Path(__file__).parent / file).read_text()
        assert not name or f"def {name}(" in text, f"{file} has no {name}"


def test_places_that_the_table_of_contributing_names_are_there() -> None:
    root = DOCS.parent
    source = "".join(path.read_text() for path in (root / "src").rglob("*.py"))
    _, _, table = (root / "CONTRIBUTING.md").read_text().partition("| look in |\n")
    rows = re.findall(r"^\|[^|]+\|(.+)\|$", table, flags=re.MULTILINE)
    assert len(rows) > 15
    for row in rows:
        folder = root / "src" / "ebda"
        for code in re.findall(r"`([^`]+)`", row):
            if "/" not in code and not code.endswith(".py"):
                assert code.rpartition(".")[2] in source, code
                continue
            # After the first place of a row, files are named by their names alone.
            places = [base / code for base in (root, root / "src" / "ebda", folder)]
            found = [place for place in places if place.exists()]
            assert found, code
            folder = found[0].parent
