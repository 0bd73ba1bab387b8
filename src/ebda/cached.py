"""Attributes that are computed when they are first asked for.

Python 3.11's ``functools.cached_property`` holds one lock for all instances while it
computes: threads that fit different folds wait for each other, and a process that is
forked meanwhile waits for ever. Later versions have no lock, and neither has this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801  # as in functools
    """A method whose result becomes an attribute of the instance.

    Two threads that ask at the same time may both compute it.

    Parameters
    ----------
    function : callable
        The method.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: Any) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: Any) -> T: ...

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        value = self.function(instance)
        return vars(instance).setdefault(self.name, value)
