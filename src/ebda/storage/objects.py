"""Objects with named fields, by a registry of schemas; nothing else is ever built.

A class that a model file can hold is registered beside its definition, by one call of
:func:`register`, when its module is imported. A file names a class by a word. The word
is looked up among the registered schemas, which say what fields there are, of what
kind, and how the object is made of them: no import, no attribute lookup and no call
follows from what is in a file. What is imported before a file is read is a fixed list,
in :mod:`ebda.modelfile.schemas`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ebda.registry import Registry
from ebda.storage.errors import FormatError
from ebda.storage.fields import (
    VALUES,
    Kind,
    Reader,
    Scope,
    Shape,
    Writer,
    match_shape,
    scalar_from_json,
    scalar_to_json,
)

_MAX_PARAMETER_DEPTH = 8
_SCALARS = (bool, int, float, str)


@dataclass(frozen=True)
class Schema:
    """What there is to know about a class.

    Parameters
    ----------
    type : type
        The class itself; subclasses are other classes.
    fields : dict of str to Kind
        Fields of a dataclass, or fitted attributes of an estimator, in the order in
        which they are read.
    optional : frozenset of str
        Those that may be absent.
    former : dict of str to Kind
        Fields of files that an older ebda wrote, for `build`; they are not written.
    build : callable, optional
        Makes the object of its fields where the class itself does not.
    finish : callable, optional
        Checks and completes an estimator that was read.
    is_parameter : bool
        Whether a parameter of an estimator can be one.
    role : str, optional
        What it is to the objects that hold it, such as "prior" or "posterior": a field
        can take all classes of one role (:class:`Nested`).
    """

    type: type[Any]
    fields: dict[str, Kind]
    optional: frozenset[str] = frozenset()
    former: dict[str, Kind] = field(default_factory=dict)
    build: Callable[[dict[str, Any]], Any] | None = None
    finish: Callable[[Any], None] | None = None
    is_parameter: bool = False
    role: str | None = None

    @property
    def name(self) -> str:
        return self.type.__name__

    @property
    def is_estimator(self) -> bool:
        return issubclass(self.type, BaseEstimator)


SCHEMAS: Registry[Schema] = Registry("class of a model file")


def register(*schemas: Schema) -> tuple[str, ...]:
    """Add classes to the registry; their names, for fields that hold one of them."""
    for schema in schemas:
        SCHEMAS.add(schema)
    return tuple(schema.name for schema in schemas)


def names_of(role: str) -> tuple[str, ...]:
    """The registered classes of a role."""
    return tuple(sorted(name for name, s in SCHEMAS.items() if s.role == role))


def schema_of(value: Any) -> Schema | None:
    """Schema of exactly this class, if there is one."""
    schema = SCHEMAS.get(type(value).__name__)
    return schema if schema is not None and schema.type is type(value) else None


@dataclass(frozen=True)
class Nested:
    """A field that holds an object of one of several registered classes.

    Parameters
    ----------
    allowed : tuple of str or str
        The classes, or the role of all classes that it can hold.
    values : tuple of str, optional
        Shape of what a posterior is of.
    """

    allowed: tuple[str, ...] | str
    values: Shape | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The classes."""
        return names_of(self.allowed) if isinstance(self.allowed, str) else self.allowed

    def encode(self, value: Any, writer: Writer, where: str) -> Any:
        schema = schema_of(value)
        if schema is None or schema.name not in self.names:
            raise TypeError(
                f"{where} is a {type(value).__name__}, which a model file cannot hold; "
                f"it can hold {', '.join(self.names)}"
            )
        return encode_object(value, schema, writer, where)

    def decode(self, value: Any, reader: Reader, scope: Scope, where: str) -> Any:
        inner = dict(scope)
        if self.values is not None:
            inner["values"] = tuple(scope.get(n, -1) for n in self.values)
        return decode_object(value, self.names, reader, inner, where)


@dataclass(frozen=True)
class Pairs:
    """A list of pairs of words, each once, as long as a dimension."""

    dimension: str

    def encode(self, value: Any, writer: Writer, where: str) -> Any:
        return [list(pair) for pair in value]

    def decode(self, value: Any, reader: Reader, scope: Scope, where: str) -> Any:
        pairs = value if isinstance(value, list) else []
        types = [[type(w) for w in p] if isinstance(p, list) else p for p in pairs]
        if not pairs or any(pair != [str, str] for pair in types):
            raise FormatError(f"{where} is not a list of pairs of names")
        if len(set(map(tuple, pairs))) < len(pairs):
            raise FormatError(f"{where} holds a pair twice")
        scope[self.dimension] = len(value)
        return [(first, second) for first, second in value]


@dataclass(frozen=True)
class Lengths:
    """The shape of the values that flat arrays are of."""

    def encode(self, value: Any, writer: Writer, where: str) -> Any:
        return list(value)

    def decode(self, value: Any, reader: Reader, scope: Scope, where: str) -> Any:
        if not (
            isinstance(value, list)
            and len(value) <= 2
            and all(type(n) is int and n >= 0 for n in value)
        ):
            raise FormatError(f"{where} is not a shape")
        match_shape(tuple(value), VALUES, scope, where)
        scope["flat"] = math.prod(value)
        return tuple(value)


@dataclass(frozen=True)
class Parameter:
    """A parameter of an estimator: what a user may have given.

    Numbers, strings, None, lists, tuples, dictionaries, arrays, and priors with
    parameters of their own. The state of a generator of random numbers is not kept;
    None takes its place.
    """

    depth: int = field(default=_MAX_PARAMETER_DEPTH)

    def encode(self, value: Any, writer: Writer, where: str) -> Any:
        inner = Parameter(self.depth - 1)
        if isinstance(value, np.random.RandomState | np.random.Generator):
            writer.lost_state = True
            return None
        if isinstance(value, np.generic | bool | int | float | str | None):
            return scalar_to_json(value)
        if self.depth and isinstance(value, np.ndarray):
            return writer.put(value, where)
        if self.depth and isinstance(value, list | tuple):
            items = [inner.encode(v, writer, f"{where}[...]") for v in value]
            return items if isinstance(value, list) else {"tuple": items}
        if self.depth and isinstance(value, Mapping):
            pairs = [[k, v] for k, v in value.items()]
            return {"dict": inner.encode(pairs, writer, where)}
        schema = schema_of(value)
        if self.depth and schema is not None and schema.is_parameter:
            return encode_object(value, schema, writer, where, self.depth - 1)
        raise TypeError(
            f"{where} is a {type(value).__name__}, which a model file cannot hold; "
            "give a name, a number, an array, or a prior of ebda.priors"
        )

    def decode(self, value: Any, reader: Reader, scope: Scope, where: str) -> Any:
        if not self.depth:
            raise FormatError(f"{where} is nested too deep")
        inner = Parameter(self.depth - 1)
        value = scalar_from_json(value)
        if value is None or isinstance(value, _SCALARS):
            return value
        if isinstance(value, list):
            return [inner.decode(v, reader, scope, where) for v in value]
        if isinstance(value.get("tuple"), list) and len(value) == 1:
            return tuple(inner.decode(value["tuple"], reader, scope, where))
        if isinstance(value.get("dict"), list) and len(value) == 1:
            return _dictionary(inner.decode(value["dict"], reader, scope, where), where)
        if "array" in value:
            return reader.get(value, where)
        names = tuple(sorted(n for n, s in SCHEMAS.items() if s.is_parameter))
        return decode_object(value, names, reader, {}, where, self.depth - 1)


def _dictionary(pairs: list[Any], where: str) -> dict[Any, Any]:
    """From pairs, of which the first are single values and differ."""
    whole = all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    if not (whole and all(isinstance(key, _SCALARS) for key, _ in pairs)):
        raise FormatError(f"{where} is not a dictionary")
    found = dict(pairs)
    if len(found) < len(pairs):
        raise FormatError(f"{where} has a key twice")
    return found


def encode_object(
    value: Any,
    schema: Schema,
    writer: Writer,
    where: str,
    depth: int = _MAX_PARAMETER_DEPTH,
) -> dict[str, Any]:
    """An object as JSON, with its arrays put into the writer.

    An estimator that was given as a parameter (it lies deeper) has its parameters
    alone: it was cloned before it was fitted.
    """
    entry: dict[str, Any] = {"class": schema.name}
    if schema.is_estimator:
        entry["parameters"] = {
            name: Parameter(depth).encode(v, writer, f"{where}.{name}")
            for name, v in value.get_params(deep=False).items()
        }
        if depth < _MAX_PARAMETER_DEPTH:
            return entry
    entry["fields"] = {}
    for name, kind in schema.fields.items():
        found = getattr(value, name, None)
        if found is not None:
            entry["fields"][name] = kind.encode(found, writer, f"{where}.{name}")
        elif name not in schema.optional:
            raise ValueError(f"{where} lacks {name}, and cannot be saved; fit it again")
    return entry


def decode_object(
    entry: Any,
    names: tuple[str, ...],
    reader: Reader,
    scope: Scope,
    where: str,
    depth: int = _MAX_PARAMETER_DEPTH,
) -> Any:
    """The object again, of one of the named classes."""
    name = entry.get("class") if isinstance(entry, dict) else None
    if not isinstance(name, str) or name not in names:
        raise FormatError(f"{where} is not one of {', '.join(names)}")
    schema = SCHEMAS[name]
    known = {"class", "fields"} | ({"parameters"} if schema.is_estimator else set())
    if not set(entry) <= known:
        raise FormatError(f"{where} has other parts than {sorted(known)}")
    if not schema.is_estimator:
        fields = _fields(entry.get("fields"), schema, reader, scope, where)
        return _made(schema.build or (lambda f: schema.type(**f)), fields, where)
    parameters = _parameters(entry.get("parameters"), schema, reader, where, depth)
    model = _made(lambda p: schema.type(**p), parameters, where)
    if depth == _MAX_PARAMETER_DEPTH:
        fields = _fields(entry.get("fields"), schema, reader, scope, where)
        for attribute, found in fields.items():
            setattr(model, attribute, found)
        if schema.finish is not None:
            _made(schema.finish, model, where)
    elif "fields" in entry:
        raise FormatError(f"{where} is a parameter, and fitted")
    return model


def _made(make: Callable[[Any], Any], given: Any, where: str) -> Any:
    """What the class itself makes of checked fields, or why it will not."""
    try:
        return make(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"{where} cannot be: {str(error)[:200]}") from None


def _parameters(
    given: Any, schema: Schema, reader: Reader, where: str, depth: int
) -> dict[str, Any]:
    """Parameters; those that an older ebda did not have yet have their defaults."""
    known = schema.type().get_params(deep=False)
    refuse_unknown(given, known, f"{where}.parameters")
    return {
        name: Parameter(depth).decode(value, reader, {}, f"{where}.{name}")
        for name, value in given.items()
    }


def _fields(
    given: Any, schema: Schema, reader: Reader, scope: Scope, where: str
) -> dict[str, Any]:
    kinds = schema.fields | schema.former
    refuse_unknown(given, kinds, where)
    found = {}
    for name, kind in kinds.items():
        if name in given:
            found[name] = kind.decode(given[name], reader, scope, f"{where}.{name}")
        elif name not in schema.optional and name not in schema.former:
            raise FormatError(f"{where} lacks {name}")
    return found


def refuse_unknown(given: Any, known: Any, where: str) -> None:
    """Refuse names that this ebda does not know: it would lose what they say."""
    if not isinstance(given, dict):
        raise FormatError(f"{where} is not a JSON object")
    unknown = [name for name in given if name not in known]
    if unknown:
        raise FormatError(
            f"{where} has {unknown[0][:60]!r}, which this ebda does not know; if a "
            "newer one wrote the file, upgrade: pip install --upgrade ebda"
        )
