"""Versions of builds, and what says them."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOL = ROOT / "tools" / "version.py"
pytestmark = pytest.mark.skipif(
    not TOOL.exists(), reason="tools/version.py is not here: tests without a checkout"
)


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    command = ["git", "-C", str(folder), *names, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    announce(folder, "1.3.0")
    return folder


def announce(folder: Path, version: str) -> None:
    text = f"# Changelog\n\n## {version} (unreleased)\n\n## 1.2.0\n"
    (folder / "CHANGELOG.md").write_text(text)


def commit(folder: Path, message: str) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "--short", "HEAD")


@pytest.fixture(scope="module")
def version() -> Callable[[Path], str]:
    found: Callable[[Path], str] = runpy.run_path(str(TOOL))["version"]
    return found


def test_a_tag_is_the_version_and_later_commits_are_of_the_next(
    project: Path, version: Callable[[Path], str], tmp_path: Path
) -> None:
    assert version(project) == "1.3.0.dev0"  # no git
    git(project, "init", "--quiet")
    first = commit(project, "first")
    assert version(project) == f"1.3.0.dev0+g{first}"  # no tag
    git(project, "tag", "v1.2.0")
    git(project, "tag", "another")
    assert version(project) == "1.2.0"
    (project / "more").write_text("of the tree that git knows\n")
    git(project, "add", "more")
    assert version(project) == f"1.3.0.dev0+g{first}"  # what is not committed
    second = commit(project, "second")
    assert version(project) == f"1.3.0.dev1+g{second}"
    # A shallow clone has no tags, and says what it is on the way to.
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", "--no-tags", project.as_uri(), "shallow")
    assert version(shallow) == f"1.3.0.dev0+g{second}"
    git(project, "tag", "v1.3.0")
    assert version(project) == "1.3.0"
    commit(project, "third")
    with pytest.raises(SystemExit, match=r"1\.3\.0 comes next, and it has a tag"):
        version(project)
    announce(project, "1.4.0")
    fourth = commit(project, "fourth")
    assert version(project) == f"1.4.0.dev2+g{fourth}"


def test_a_source_distribution_knows_its_version_wherever_it_lies(
    project: Path, version: Callable[[Path], str], tmp_path: Path
) -> None:
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "somebody else's")
    git(tmp_path, "tag", "v9.9.9")
    assert version(project) == "1.3.0.dev0"
    (project / "PKG-INFO").write_text("Metadata-Version: 2.4\nVersion: 1.2.7\n")
    assert version(project) == "1.2.7"
    (project / "PKG-INFO").unlink()
    (project / "CHANGELOG.md").write_text("nothing\n")
    with pytest.raises(SystemExit, match="no line is like"):
        version(project)


def test_the_citation_is_of_the_newest_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, flags=re.MULTILINE)
    assert newest is not None
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {newest[1]}\n" in citation


def test_the_build_asks_the_tool() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hatch = project["tool"]["hatch"]["version"]
    assert hatch == {
        "source": "code",
        "path": "tools/version.py",
        "expression": "version()",
    }
    done = subprocess.run(
        [sys.executable, str(TOOL)], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+(\+g\w+)?)?\n", done.stdout)
