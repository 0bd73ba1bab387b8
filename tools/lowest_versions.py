"""Pins of the lowest versions that pyproject.toml allows, for pip.

    python tools/lowest_versions.py [EXTRA ...]

Prints the core dependencies, and those of the extras that are named, as NAME==LOWEST.
"""

import re
import sys
import tomllib
from pathlib import Path

BOUND = re.compile(r"(?P<name>[\w-]+)(?P<extras>\[[\w,-]+\])?>=(?P<lowest>[\w.]+)")
PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def pins(requirements: list[str], extras: dict[str, list[str]]) -> list[str]:
    """The requirements at their lower bounds; those of the project itself followed."""
    found = []
    for requirement in requirements:
        own = re.fullmatch(r"ebda\[([\w,-]+)\]", requirement)
        bound = BOUND.fullmatch(requirement)
        if own:
            for extra in own[1].split(","):
                found += pins(extras[extra], extras)
        elif bound:
            found.append(f"{bound['name']}{bound['extras'] or ''}=={bound['lowest']}")
        else:
            sys.exit(f"pyproject.toml: no lower bound is read from {requirement!r}")
    return found


def main() -> None:
    """Print the pins."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [f"ebda[{extra}]" for extra in sys.argv[1:]]
    print(*dict.fromkeys(pins([*project["dependencies"], *wanted], extras)), sep="\n")


if __name__ == "__main__":
    main()
