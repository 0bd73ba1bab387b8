"""Choices that users name, as small objects that carry their own facts.

A room keeps one :class:`Registry` of each kind (priors, variances, covariances,
shrinkages, file formats). Whoever needs a fact about a choice asks its entry, so that
adding one is one file and one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar


@dataclass(frozen=True)
class Entry:
    """What every choice has.

    Parameters
    ----------
    name : str
        How users name it.
    line : str
        What it is, in a few words for people.
    """

    name: str
    line: str


class Named(Protocol):
    """What a registry can hold."""

    @property
    def name(self) -> str:
        """How it is found."""


E = TypeVar("E", bound=Named)


class Registry(Mapping[str, E], Generic[E]):
    """Entries of one kind by their name, in the order in which they were added.

    Parameters
    ----------
    kind : str
        The parameter that names them, for error messages.
    *entries : Entry
        The entries.

    Examples
    --------
    >>> fruit = Registry("fruit", Entry("apple", "round"), Entry("pear", "not round"))
    >>> fruit["pear"].line
    'not round'
    >>> fruit.find("plum")
    Traceback (most recent call last):
    ValueError: fruit must be one of ['apple', 'pear'], got 'plum'
    """

    def __init__(self, kind: str, *entries: E) -> None:
        self.kind = kind
        self._entries: dict[str, E] = {}
        for entry in entries:
            self.add(entry)

    def __getitem__(self, name: str) -> E:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: E) -> None:
        """Add an entry; its name must be new."""
        if entry.name in self._entries:
            raise ValueError(f"there is a {self.kind} named {entry.name!r} already")
        self._entries[entry.name] = entry

    @contextmanager
    def added(self, entry: E) -> Iterator[None]:
        """Have one more entry inside this block."""
        self.add(entry)
        try:
            yield
        finally:
            del self._entries[entry.name]

    def find(self, name: Any, besides: tuple[str, ...] = ()) -> E | None:
        """The entry that a user names, or an error that lists what there is.

        Parameters
        ----------
        name : object
            What was given.
        besides : tuple of str
            Other values that are allowed, such as "auto"; they give None.
        """
        if isinstance(name, str):
            if name in besides:
                return None
            if name in self._entries:
                return self._entries[name]
        raise ValueError(
            f"{self.kind} must be one of {[*besides, *self]}, got {name!r}"
        )
