"""Lists and counts as they stand in a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt


def listed(
    items: Sequence[Any] | npt.NDArray[Any],
    shown: int = 5,
    form: Callable[[Any], str] = str,
    separator: str = ", ",
) -> str:
    """The first items, and how many more there are.

    Parameters
    ----------
    items : sequence or ndarray
        All of them.
    shown : int
        How many are shown at most.
    form : callable
        What an item looks like.
    separator : str
        Between two items.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(range(9), shown=2)
    ('a, b, c', '0, 1 and 7 more')
    """
    first = separator.join(form(item) for item in items[:shown])
    more = len(items) - shown
    return f"{first} and {more} more" if more > 0 else first


def joined(words: Sequence[str]) -> str:
    """All of them, as in a sentence.

    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def quoted(names: Sequence[Any], shown: int = 3) -> str:
    """The first names in quotes, and how many more there are.

    >>> quoted(["a", "b", "c", "d"], shown=2)
    "'a', 'b' and 2 more"
    """
    return listed(names, shown, lambda name: repr(str(name)))


def escaped(text: str, keep: str = "") -> str:
    r"""Text whose characters can all be seen; others are written as Python does.

    Control characters, and those that change the direction of what follows, would be
    obeyed by a terminal.

    Parameters
    ----------
    text : str
        As it came from a file.
    keep : str
        Characters to leave as they are, such as line feeds.

    Examples
    --------
    >>> print(escaped("gene\x1b[2J\u202e"))
    gene\x1b[2J\u202e
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


def alike(names: Sequence[Any]) -> list[list[str]]:
    """Names that differ in nothing but case and blanks, together.

    >>> alike(["BLOOD", "lymph node", "blood", "lymphnode", "skin"])
    [['BLOOD', 'blood'], ['lymph node', 'lymphnode']]
    """
    found: dict[str, list[str]] = {}
    for name in map(str, names):
        found.setdefault("".join(name.casefold().split()), []).append(name)
    return [group for group in found.values() if len(group) > 1]


_IRREGULAR = {"are": "is", "have": "has"}


def counted(n: int, noun: str, verb: str = "") -> str:
    """A number with its noun, and the verb that follows.

    >>> counted(1, "sample"), counted(2, "sample"), counted(3, "class")
    ('1 sample', '2 samples', '3 classes')
    >>> [counted(n, "value", "are") for n in (1, 2)], counted(1, "name", "occur")
    (['1 value is', '2 values are'], '1 name occurs')
    """
    if n == 1:
        words = [noun, _IRREGULAR.get(verb, verb and f"{verb}s")]
    else:
        words = [noun + ("es" if noun.endswith("s") else "s"), verb]
    return " ".join([f"{n}", *filter(None, words)])


def alternatives(words: Sequence[str]) -> str:
    """Words of which one is meant.

    >>> alternatives(["CSV"]), alternatives(["CSV", "TSV", "Parquet"])
    ('CSV', 'CSV, TSV or Parquet')
    """
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
