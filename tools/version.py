"""The version of a build: that of its tag, or the one that the changelog announces.

A build of a commit with the tag ``v1.2.3`` is 1.2.3. Any other is a development version
of the release that comes first in CHANGELOG.md: 1.3.0.dev5+g0123abc is five commits
after the last tag. A clone without tags, as shallow ones are, counts no commits, and a
folder without git has no commit to name; both build all the same. (setuptools-scm makes
0.1.dev1 of them, which is older than release 0.1.0.)

hatchling runs this, for ``[tool.hatch.version]`` in pyproject.toml.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_TAG = re.compile(r"v(?P<release>\d+(?:\.\d+)*)-(?P<since>\d+)-(?P<commit>g[0-9a-f]+)")


def version(root: Path = ROOT) -> str:
    """The version of the sources in a folder."""
    packed = root / "PKG-INFO"  # a source distribution knows its version
    if packed.is_file():
        return _first(r"^Version: (.+)$", packed)
    coming = _first(r"^## (\d+(?:\.\d+)*)\b", root / "CHANGELOG.md")
    if _git(root, "rev-parse", "--show-cdup") != "":
        return f"{coming}.dev0"  # no git, or a folder within somebody else's clone
    match = ("--tags", "--match", "v[0-9]*", "--long", "--dirty")
    described = _git(root, "describe", *match)
    found = None if described is None else _TAG.match(described)
    if found is None:
        commit = _git(root, "rev-parse", "--short", "HEAD")
        return f"{coming}.dev0+g{commit}" if commit else f"{coming}.dev0"
    since = int(found["since"])
    if since == 0 and not described.endswith("-dirty"):
        return found["release"]
    if coming == found["release"]:
        raise SystemExit(
            f"CHANGELOG.md says that {coming} comes next, and it has a tag already: "
            "begin the next version with a heading of its own"
        )
    return f"{coming}.dev{since}+{found['commit']}"


def _first(pattern: str, path: Path) -> str:
    found = re.search(pattern, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if found is None:
        raise SystemExit(f"{path}: no line is like {pattern}")
    return found[1]


def _git(root: Path, *arguments: str) -> str | None:
    """What git says, or None where it does not know."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    print(version())
