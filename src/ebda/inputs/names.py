"""Names that occur more than once: refused, or made unique."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from ebda.inputs.base import Names
from ebda.listing import counted, quoted


def refuse_twice(
    names: Names,
    source: str,
    what: str = "feature name",
    way_out: str = "rename them, or number them with --duplicates number",
) -> Names:
    """The names, or an error if some occur more than once."""
    twice = [name for name, n in Counter(names.tolist()).items() if n > 1]
    if twice:
        raise ValueError(
            f"{source}: {counted(len(twice), what, 'occur')} more than once: "
            f"{quoted(twice, 5)}; {way_out}"
        )
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
    "error": refuse_twice,
    "number": number_duplicates,
}
