"""Names that occur more than once: refused, or made unique."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from ebda.inputs.base import Names
from ebda.listing import counted, quoted


def refuse_twice(names: Names, what: str, source: str) -> None:
    """Refuse names that occur more than once."""
    counts = Counter(names.tolist())
    twice = [name for name, n in counts.items() if n > 1]
    if twice:
        way_out = {
            "sample": "give each sample its own name",
            "feature": "rename them, or number them with --duplicates number",
        }
        raise ValueError(
            f"{source}: {counted(len(twice), f'{what} name', 'occur')} more than once: "
            f"{quoted(twice, 5)}; {way_out[what]}"
        )


def _refuse_duplicates(names: Names, source: str) -> Names:
    refuse_twice(names, "feature", source)
    return names


def number_duplicates(names: Names, source: str = "") -> Names:
    """Make names unique as R's ``make.unique`` does.

    >>> number_duplicates(np.array(["a", "b", "a", "a", "a.1"])).tolist()
    ['a', 'b', 'a.2', 'a.3', 'a.1']
    """
    taken = set(names.tolist())
    seen: Counter[str] = Counter()
    unique = []
    for name in names.tolist():
        new, first = name, name not in seen
        while not first and new in taken:
            seen[name] += 1
            new = f"{name}.{seen[name]}"
        if first:
            seen[name] = 0
        taken.add(new)
        unique.append(new)
    return np.array(unique, dtype=np.str_)


DUPLICATES: dict[str, Callable[[Names, str], Names]] = {
    "error": _refuse_duplicates,
    "number": number_duplicates,
}
