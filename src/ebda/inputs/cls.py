"""CLS, GenePattern's file of labels: it goes with GCT, and by the order of samples."""

from __future__ import annotations

from pathlib import Path


def read_cls(path: Path) -> list[str]:
    """Labels of the samples, in order.

    Three lines: counts; ``#`` and the names of the classes; a class for each sample.
    The format has it that the first class to come in the third line is the first name
    in the second, whatever its number is. Where numbers say otherwise, nobody can know
    which was meant.
    """
    text = path.read_text(encoding="utf-8-sig")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 3 or not lines[1].startswith("#"):
        raise ValueError(
            f"{path}: a .cls file has three lines: counts, # and the names of the "
            "classes, and a class for each sample"
        )
    names, cells = lines[1][1:].split(), lines[2].split()
    promised = lines[0].split()[0]
    if promised != str(len(cells)):
        raise ValueError(
            f"{path}: line 1 promises {promised} samples, and line 3 has {len(cells)}"
        )
    found = list(dict.fromkeys(cells))
    if len(found) != len(names):
        raise ValueError(
            f"{path}: line 2 names {len(names)} classes, and line 3 has {len(found)}"
        )
    by_number = {str(k): name for k, name in enumerate(names)}
    by_place = dict(zip(found, names, strict=True))
    if set(found) == set(by_number) and by_place != by_number:
        raise ValueError(
            f"{path}: the first sample has class {found[0]}, which is "
            f"{by_place[found[0]]!r} by the order of classes and "
            f"{by_number[found[0]]!r} by their numbers; write names in line 3"
        )
    if set(found) == set(names):
        return cells
    return [by_place[cell] for cell in cells]
