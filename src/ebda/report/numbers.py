"""Numbers as people read them, and as a page carries them."""

from __future__ import annotations

import base64
from typing import Any

import numpy.typing as npt

# A space that keeps a number and its unit on one line.
NBSP = "\u00a0"
# For a negative number, and for one that is missing.
MINUS, DASH = "\u2212", "\u2013"


def count(n: float, noun: str = "", plural: str | None = None) -> str:
    r"""A number with its thousands apart, and its noun.

    >>> count(7129), count(1, "feature"), count(2, "class", "classes")
    ('7,129', '1\xa0feature', '2\xa0classes')
    """
    number = f"{n:,.0f}" if float(n).is_integer() else f"{n:,.1f}"
    if not noun:
        return number
    return f"{number}{NBSP}{noun if n == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    r"""A share in per cent, with as many digits as it deserves.

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
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def packed(values: npt.NDArray[Any], kind: str = "<f4") -> str:
    """An array as base64 of little-endian numbers: 5.3 characters each.

    >>> import numpy as np
    >>> packed(np.array([1.0, 2.0]))
    'AACAPwAAAEA='
    """
    return base64.b64encode(values.astype(kind).tobytes()).decode("ascii")
