"""The ``ebda`` command: one module per subcommand."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

from ebda.cli import demo, denoise, fit, predict, report, reproduce

COMMANDS = {
    "fit": fit,
    "predict": predict,
    "report": report,
    "denoise": denoise,
    "demo": demo,
    "reproduce": reproduce,
}
# What a shell reports for a command that Ctrl-C stopped.
_INTERRUPTED = 130


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
        # The docstring of a command is what --help says about it.
        line, _, description = str(module.__doc__).partition("\n")
        sub = commands.add_parser(name, help=line.rstrip("."), description=description)
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0, 1 (input at fault) or 2 (wrong usage)."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser().parse_args(given)
    options.command_line = shlex.join(["ebda", *given])
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe; Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(f"ebda {options.command}: stopped", file=sys.stderr)
        return _INTERRUPTED
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print(f"ebda {options.command}: {_one_line(error)}", file=sys.stderr)
        return 1
    return 0


def _one_line(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory for these data"
    return " ".join(str(error).split())
