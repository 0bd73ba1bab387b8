"""Packages that come with an extra, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, extra: str, what: str) -> Any:
    """A module, or an ImportError that names the extra which brings it.

    Parameters
    ----------
    module : str
        What to import.
    extra : str
        The extra of this package.
    what : str
        What it is needed for, as the subject of a sentence.

    Examples
    --------
    >>> need("json", "cli", "reading JSON").__name__
    'json'
    >>> need("no_such_package", "cli", "reading stars")
    Traceback (most recent call last):
    ImportError: reading stars needs no_such_package: pip install 'ebda[cli]'
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise ImportError(
            f"{what} needs {package}: pip install 'ebda[{extra}]'"
        ) from None


def polars() -> Any:
    """Polars, which reads and writes tables."""
    return need("polars", "cli", "reading and writing tables")
