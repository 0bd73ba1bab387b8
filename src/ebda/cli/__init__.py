"""The ``ebda`` command: a module a subcommand."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ebda.cli import demo, reproduce

COMMANDS = {"demo": demo, "reproduce": reproduce}


def _parser() -> argparse.ArgumentParser:
    from ebda import __version__

    parser = argparse.ArgumentParser(
        prog="ebda",
        description="Empirical Bayes discriminant analysis for few samples and many "
        "features.",
    )
    parser.add_argument("--version", action="version", version=f"ebda {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        sub = commands.add_parser(
            name, help=module.HELP, description=module.DESCRIPTION
        )
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0, 1 (input at fault) or 2 (wrong usage)."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, OSError, ImportError) as error:
        print(f"ebda {options.command}: {error}", file=sys.stderr)
        return 1
    return 0
