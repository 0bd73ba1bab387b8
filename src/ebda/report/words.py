"""Numbers, lists, settings and the names of components, as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ebda.listing import joined
from ebda.registry import Entry

# A space that keeps a number and its unit on one line.
NBSP = "\u00a0"
# For a negative number, and for one that is missing.
MINUS, DASH = "\u2212", "\u2013"


def count(n: float, noun: str = "", plural: str | None = None) -> str:
    r"""A number with a comma between thousands, and its noun.

    >>> count(7129), count(1, "feature"), count(2, "class", "classes")
    ('7,129', '1\xa0feature', '2\xa0classes')
    """
    number = f"{n:,.0f}" if float(n).is_integer() else f"{n:,.1f}"
    if not noun:
        return number
    return f"{number}{NBSP}{noun if n == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    r"""A share as a percentage, with as many digits as it deserves.

    >>> percent(0.0139), percent(0.35), percent(1.0), percent(0.0004)
    ('1.4\xa0%', '35\xa0%', '100\xa0%', '0.04\xa0%')
    """
    value = 100 * share
    if value == 0 or abs(value) >= 9.95:
        return f"{value:.0f}{NBSP}%"
    return f"{value:.2g}{NBSP}%"


def listed(words: list[str], most: int = 8) -> str:
    """Words as in a sentence, and how many more there are.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c"], most=1)
    ('a', 'a, b and c', 'a and 2 more')
    """
    shown = words[:most]
    if len(words) > most:
        shown.append(f"{len(words) - most} more")
    return joined(shown)


def spoken(value: Any) -> str:
    """A value of a record in words; empty where there is nothing to say.

    >>> spoken(True), spoken(1234), spoken(["a", "b"]), spoken({"ALL": 47, "AML": 25})
    ('yes', '1,234', 'a, b', 'ALL 47, AML 25')
    >>> spoken(None), spoken([])
    ('', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {spoken(part)}" for key, part in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(spoken(part) for part in value)
    return str(value)


def line_of(registry: Mapping[str, Entry], name: str) -> str:
    """What an entry of a registry is, in a few words; empty for other names.

    >>> from ebda.registry import Entry, Registry
    >>> line_of(Registry("fruit", Entry("apple", "round and red")), "apple")
    'round and red'
    """
    return registry[name].line if name in registry else ""
