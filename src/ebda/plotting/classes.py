"""Which class or contrast a picture is about, given by the label of a class.

Two classes have one contrast, the second against the first. More have one each,
against the mean of all samples.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from ebda.plotting.style import plain


def class_place(classes: npt.NDArray[Any], label: Any) -> int:
    """The place of a label among the classes.

    >>> import numpy as np
    >>> class_place(np.array(["ALL", "AML"]), "AML")
    1
    """
    places = [i for i, name in enumerate(classes.tolist()) if name == label]
    if not places:
        raise ValueError(
            f"contrast must be one of the classes, "
            f"{', '.join(map(repr, classes.tolist()))}; got {label!r}"
        )
    return places[0]


def contrast_row(classes: npt.NDArray[Any], contrast: Any) -> int | None:
    """The row of ``z_`` for a contrast; None stands for all rows.

    >>> import numpy as np
    >>> contrast_row(np.array(["BL", "EWS", "NB"]), "EWS")
    1
    >>> contrast_row(np.array(["ALL", "AML"]), None)
    0
    """
    two = len(classes) == 2
    if contrast is None:
        return 0 if two else None
    place = class_place(classes, contrast)
    if not two:
        return place
    if place == 0:
        first, second = classes.tolist()
        raise ValueError(
            f"the one contrast of two classes is {second!r} against {first!r}: "
            f"contrast must be {second!r}, or left out"
        )
    return 0


def contrast_name(classes: npt.NDArray[Any], row: int | None) -> str:
    """What a row of ``z_`` compares, in words.

    >>> import numpy as np
    >>> contrast_name(np.array(["ALL", "AML"]), 0)
    'AML against ALL'
    >>> contrast_name(np.array(["BL", "EWS", "NB"]), 1)
    'EWS against all'
    """
    if row is None:
        return "each class against all"
    if len(classes) == 2:
        return f"{plain(classes[1])} against {plain(classes[0])}"
    return f"{plain(classes[row])} against all"
