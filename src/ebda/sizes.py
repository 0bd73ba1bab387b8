"""Sizes that decide how work is cut, kept or compared, all in one place.

None of them changes what is computed beyond rounding, except for `max_samples`,
`rare_class`, `compared_features` and `compared_values`, which say how much of very
large data is looked at again. Tests make them small to reach every path with little
data:

>>> with override(tile_elements=100):
...     sizes.tile_elements
100
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Sizes:
    """The sizes in use; see :func:`override`.

    Parameters
    ----------
    tile_elements : int
        Values of a tile of X: 4 MiB of float64, which stay in the cache of a core with
        a working copy, in rows that are long enough to stream.
    tile_rows : int
        Rows of a tile at most, while moments are summed.
    on_disk_percent : int
        Files above this percentage of the free memory are read in blocks by ``ebda
        fit``.
    """

    tile_elements: int = 1 << 19
    tile_rows: int = 2048
    on_disk_percent: int = 50


sizes = Sizes()


@contextmanager
def override(**values: int) -> Iterator[None]:
    """Use other sizes inside of this block, in all threads of the process.

    Parameters
    ----------
    **values
        Sizes by name.
    """
    unknown = set(values) - set(vars(sizes))
    if unknown:
        raise TypeError(f"there is no size named {', '.join(sorted(unknown))}")
    before = {name: getattr(sizes, name) for name in values}
    vars(sizes).update(values)
    try:
        yield
    finally:
        vars(sizes).update(before)
