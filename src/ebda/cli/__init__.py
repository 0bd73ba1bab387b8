"""The ``ebda`` command: one module per subcommand."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from ebda.cli import demo, denoise, fit, panel, predict, report, reproduce
from ebda.cli.terminal import drain, say

COMMANDS = {
    "fit": fit,
    "predict": predict,
    "report": report,
    "panel": panel,
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
    except BrokenPipeError:  # the reader has closed the pipe
        return 1
    except KeyboardInterrupt:
        say(f"ebda {options.command}: stopped", sys.stderr)
        return _INTERRUPTED
    except (ValueError, OSError, ImportError, MemoryError) as error:
        say(f"ebda {options.command}: {_one_line(error)}", sys.stderr)
        return 1
    finally:
        drain()
    return 0


def _one_line(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory for these data"
    return " ".join(str(error).split())
