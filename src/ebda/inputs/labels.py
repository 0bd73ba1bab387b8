"""The class of each sample: from a margin of the data, or from a second file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.inputs.base import Block
from ebda.inputs.cells import is_label
from ebda.inputs.formats import find_format, load_table, names_of
from ebda.inputs.table import Table
from ebda.listing import alike, counted, quoted

# If there are more classes than this share of the samples, the labels are taken for
# measurements or names.
_MOST_CLASSES = 0.5
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


class NoLabelsError(ValueError):
    """The data have no labels where they were looked for."""


@dataclass(frozen=True, eq=False)
class Labels:
    """A label for each sample.

    Parameters
    ----------
    cells : sequence
        As they are written; None or an empty cell where there is none.
    name : str
        What they are called.
    words : str
        Where they are from.
    """

    cells: Sequence[Any]
    name: str
    words: str


@dataclass(frozen=True, eq=False)
class LabelFile:
    """Labels in a file of their own.

    Parameters
    ----------
    path : Path
        The file.
    names : list of str
        Its columns.
    columns : list of list of str
        Their cells.
    by_order : bool
        Whether it has no names of samples, and its labels go by order.
    """

    path: Path
    names: list[str]
    columns: list[list[Any]]
    by_order: bool = False

    def samples(self) -> list[str]:
        """Everything that may be the name of a sample."""
        if self.by_order:
            return []
        cells = [str(c) for column in self.columns for c in column if c is not None]
        return cells + self.names

    def labels_of(
        self, samples: Sequence[str] | None, n: int, target: str | None
    ) -> Labels:
        """A label for each sample, None where the file has none."""
        if self.by_order:
            return self._in_order(0, n, "it has no names of samples")
        if samples is None:
            place = self._target(target, without=None)
            return self._in_order(place, n, "the data have no names of samples")
        known = set(samples)
        names, columns = self.names, self.columns
        if known.intersection(names):
            # No header: its first line is a sample like the others.
            columns = [
                [name, *cells] for name, cells in zip(names, columns, strict=True)
            ]
            names = [str(j + 1) for j in range(len(names))]
        found = [len(known.intersection(map(str, column))) for column in columns]
        ids = int(np.argmax(found))
        if not found[ids]:
            raise ValueError(
                f"{self.path}: no column has names of samples of the data, which are "
                f"{quoted(list(samples))}; the first column has {quoted(columns[0])}"
            )
        whole = LabelFile(self.path, names, columns)
        place = whole._target(target, without=ids)
        label: dict[str, Any] = {}
        for name, value in zip(map(str, columns[ids]), columns[place], strict=True):
            if label.setdefault(name, value) != value:
                raise ValueError(
                    f"{self.path}: the sample {name!r} occurs twice, with the labels "
                    f"{label[name]!r} and {value!r}"
                )
        unused = len(set(label) - known)
        words = f"column {names[place]!r} of {self.path.name}"
        if unused:
            words += f", which has {counted(unused, 'further sample')}"
        return Labels([label.get(name) for name in samples], names[place], words)

    def _in_order(self, place: int, n: int, why: str) -> Labels:
        cells = self.columns[place]
        if len(cells) != n:
            raise ValueError(
                f"{self.path} has {counted(len(cells), 'label')}, and the data "
                f"{counted(n, 'sample')}; they can be matched by order only, because "
                f"{why}"
            )
        words = f"{self.path.name}, by order, because {why}"
        return Labels(cells, self.names[place], words)

    def _target(self, target: str | None, without: int | None) -> int:
        others = [j for j in range(len(self.names)) if j != without]
        if target is not None:
            if target in self.names:
                return self.names.index(target)
            raise ValueError(_unknown(str(self.path), target, self.names))
        if len(others) == 1:
            return others[0]
        raise ValueError(
            f"{self.path} has several columns; say with --target which holds the "
            f"labels: {quoted([self.names[j] for j in others], 6)}"
        )


def load_labels(path: Path) -> LabelFile:
    """Read a file of labels: a table with names of samples, or labels in order."""
    found = find_format(path)
    if found.labels is not None:
        return LabelFile(path, ["class"], [found.labels(path)], by_order=True)
    sheet = load_table(
        path, found, f"labels are in {names_of('labels')}, or in a table", "point"
    )
    columns = [sheet.column(j) for j in range(len(sheet.names))]
    stripped = [[c.strip() if c else c for c in column] for column in columns]
    return LabelFile(path, sheet.names, stripped)


def labels_of(
    block: Block, second: LabelFile | None, target: str | None, source: str
) -> Labels | None:
    """Labels from a second file, or from the margins of the data."""
    if second is not None:
        names = None if block.samples is None else block.samples.tolist()
        return second.labels_of(names, block.values.shape[0], target)
    target = block.default_target if target is None else target
    if target is None:
        return None
    if target not in block.annotations:
        features = () if block.features is None else block.features
        raise NoLabelsError(_unknown(source, target, [*block.annotations, *features]))
    where = "row" if block.orientation == "columns" else "column"
    return Labels(block.annotations[target], target, f"{where} {target!r}")


def with_aside(
    table: Table,
    block: Block,
    second: LabelFile | None,
    names: Iterable[str],
    may_lack: bool = False,
) -> Table:
    """A table with what else is known of the samples, from the data or a second file.

    Parameters
    ----------
    table : Table
        Of all samples of the block.
    block : Block
        The data.
    second : LabelFile, optional
        The file of labels, which may have further columns.
    names : iterable of str
        Columns or rows.
    may_lack : bool
        Whether those that are not there are left out, and not an error.
    """
    found: dict[str, list[Any]] = {}
    samples = None if block.samples is None else block.samples.tolist()
    for name in names:
        if name in block.annotations:
            found[name] = list(block.annotations[name])
        elif second is not None and name in second.names:
            n = block.values.shape[0]
            found[name] = list(second.labels_of(samples, n, name).cells)
        elif not may_lack:
            known, source = [*block.annotations], str(table.source)
            if second is not None:
                known += second.names
                source = f"{second.path} and {source}"
            what, none = "groups or covariates", "there are no such columns"
            raise ValueError(_unknown(source, name, known, what, none))
    return replace(table, aside=found)


def as_values(cells: Sequence[Any]) -> list[Any]:
    """Cells as numbers if all of them are, else as they are; None where empty.

    >>> as_values(["1.5", "2"]), as_values(["p1", "2", " "])
    ([1.5, 2.0], ['p1', '2', None])
    """
    text = [None if c is None or not str(c).strip() else str(c).strip() for c in cells]
    if all(c is not None and _NUMBER.fullmatch(c) for c in text):
        return [float(str(c)) for c in text]
    return list(text)


def _unknown(
    source: str,
    target: str,
    names: Iterable[str],
    what: str = "the labels",
    none: str = "this is an array without columns; give --labels FILE",
) -> str:
    known = [name for name in names if name]
    near = difflib.get_close_matches(target, known, n=3, cutoff=0.6)
    hint = [name for name in known if name.lower() == target.lower()] or near
    words = f"there are {quoted(known, 6)}"
    if hint:
        words = f"did you mean {quoted(hint)}?"
    elif not known:
        words = none
    return f"{source}: nothing is named {target!r} to take {what} from; {words}"


def with_labels(table: Table, labels: Labels) -> Table:
    """A table with labels; samples without one are left out, and listed in a note."""
    has = labelled(labels.cells)
    if not has.any():
        raise NoLabelsError(f"{table.source}: no sample has a label in {labels.words}")
    notes = table.notes
    if not has.all():
        names = table.sample_names[~has].tolist()
        left = f"left out {counted(len(names), 'sample')} without a label"
        notes = (*notes, f"{left}: {quoted(names)}")
    y = as_classes(list(compress(labels.cells, has)), table.source)
    for names in alike(np.unique(y).tolist()):
        notes = (
            *notes,
            f"caution: the labels {quoted(names)} differ in case or blanks only, and "
            "are taken for different classes; are they one?",
        )
    return replace(
        table,
        X=table.X if has.all() else table.X[has],
        y=y,
        sample_names=table.sample_names[has],
        aside={name: list(compress(c, has)) for name, c in table.aside.items()},
        target=labels.name,
        labels_from=labels.words,
        notes=notes,
    )


def as_classes(cells: Sequence[Any], source: str) -> npt.NDArray[Any]:
    """Labels as an array: of integers if all are whole numbers, else of text.

    Numbers are compared by value: 1, "1" and 1.0 are the same class. What else Python
    takes for numbers, such as 1_1 and 01, are labels like any other.

    Examples
    --------
    >>> as_classes(["1", "2.0", 1], "data.csv").tolist()
    [1, 2, 1]
    >>> as_classes(["ALL", " AML", 1], "data.csv").tolist()
    ['ALL', 'AML', '1']
    >>> as_classes(["1_1", "11"], "data.csv").tolist()
    ['1_1', '11']
    """
    text = [str(cell).strip() for cell in cells]
    if not all(map(_NUMBER.fullmatch, text)):
        return np.array(text, dtype=np.str_)
    values = [float(cell) for cell in text]
    if all(value.is_integer() and abs(value) < 2**53 for value in values):
        return np.array([int(value) for value in values], dtype=np.int64)
    different = len(set(values))
    if different > max(2, _MOST_CLASSES * len(values)):
        raise ValueError(
            f"{source}: the labels are {different} different numbers such as "
            f"{text[0]}, which look like measurements; group them into classes first"
        )
    return np.array(text, dtype=np.str_)


def labelled(cells: Sequence[Any]) -> npt.NDArray[np.bool_]:
    """Which cells hold a label."""
    return np.array([is_label(cell) for cell in cells], dtype=np.bool_)


def align(
    y: npt.NDArray[Any], classes: npt.NDArray[Any], samples: Any, source: str
) -> npt.NDArray[Any]:
    """Labels of other samples as the classes of a model, whatever their type.

    Examples
    --------
    >>> align(np.array([1]), np.array(["1", "2", "3a"]), ["s"], "b.csv").tolist()
    ['1']
    """
    known = {str(label): label for label in classes.tolist()}
    for label, sample in zip(y.tolist(), samples, strict=True):
        if str(label) not in known:
            raise ValueError(
                f"{source}: the sample {str(sample)!r} has the class {str(label)!r}, "
                f"which the model does not know; it knows {quoted(list(known), 12)}"
            )
    return np.array([known[str(label)] for label in y.tolist()], dtype=classes.dtype)
