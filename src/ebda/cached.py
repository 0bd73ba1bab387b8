"""Attributes that are computed when they are first asked for.

Some by a method of their class (:class:`cached_property`), some by what they were given
(:class:`deferred` and :class:`Later`).

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


class Later(Generic[T]):
    """A value that is made when it is first asked for, of an attribute `deferred`.

    What is copied or pickled is the value.

    Parameters
    ----------
    make : callable
        Makes it.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self.make = make

    def __reduce__(self) -> tuple[Callable[[T], T], tuple[T]]:
        return _itself, (self.make(),)


def _itself(value: T) -> T:
    return value


class deferred(Generic[T]):  # noqa: N801  # as `cached_property`
    """An attribute that may be given a `Later` in place of its value.

    >>> class Fit:
    ...     sum_ = deferred[int]()
    >>> fit = Fit()
    >>> fit.sum_ = Later(lambda: 1 + 2)
    >>> "sum_" in vars(fit), fit.sum_, vars(fit)
    (True, 3, {'sum_': 3})
    """

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: Any) -> deferred[T]: ...

    @overload
    def __get__(self, instance: object, owner: Any) -> T: ...

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        values = vars(instance)
        if self.name not in values:
            raise AttributeError(
                f"{type(instance).__name__!r} object has no attribute {self.name!r}"
            )
        value = values[self.name]
        if isinstance(value, Later):
            value = values[self.name] = value.make()
        return value

    def __set__(self, instance: Any, value: T | Later[T]) -> None:
        vars(instance)[self.name] = value

    def __delete__(self, instance: Any) -> None:
        del vars(instance)[self.name]
