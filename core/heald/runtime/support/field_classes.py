"""`dataclasses.dataclass` at a third of its cost, and `collections.namedtuple` at half: `records` says why.

The standard library makes a dataclass's fields and slots. A method that the class has already stays, as there.
`InitVar` and an order are not served. All named tuples share their methods but for `__new__`.
"""

from __future__ import annotations

import dataclasses
from collections import _tuplegetter  # type: ignore[attr-defined]
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from keyword import iskeyword
from operator import attrgetter
from typing import Any

Method = Callable[..., Any]
_FROM_FACTORY: Any = object()  # the default of a parameter whose field has a factory


def dataclass(cls: type | None = None, /, *, init: bool = True,
              repr: bool = True, eq: bool = True,  # noqa: A002 - the standard library's name
              frozen: bool = False, slots: bool = False) -> Any:
    def make(body: type) -> Any:
        body.__doc__ = body.__doc__ or body.__name__  # else the standard library inspects a signature for a text
        made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(body)
        fields = dataclasses.fields(made)
        has_hash = made.__dict__.get("__hash__") is not None
        if init:
            _add(made, "__init__", _constructor(made, fields, frozen))
        if repr:
            _add(made, "__repr__", _describer([f.name for f in fields if f.repr]))
        if eq:
            _add(made, "__eq__", _comparison(_key([f.name for f in fields if f.compare])))
        if eq and not has_hash:
            hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
            made.__hash__ = _hash(_key(hashed)) if frozen else None
        if frozen:
            _freeze(made, slots)
        return made

    return make if cls is None else make(cls)


def _add(made: type, name: str, method: Method) -> None:
    if name not in made.__dict__:
        method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"
        setattr(made, name, method)


def _constructor(made: type, fields: Sequence[Field[Any]], frozen: bool) -> Method:
    names: dict[str, Any] = {"_set": object.__setattr__, "_FROM_FACTORY": _FROM_FACTORY}
    positional, by_keyword, lines = ["self"], list[str](), list[str]()
    for f in fields:
        parameter, value = _parameter(f, names)
        if parameter:
            (by_keyword if f.kw_only else positional).append(parameter)
        if value:
            lines.append(f"_set(self, '{f.name}', {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *by_keyword] if by_keyword else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), names)  # noqa: S102 - of names of fields alone
    method: Method = names["__init__"]
    method.__annotations__ = {**{f.name: f.type for f in fields if f.init}, "return": None}
    method.__module__ = made.__module__
    return method


def _parameter(f: Field[Any], names: dict[str, Any]) -> tuple[str, str]:
    """The parameter of a field and the value to store, as code. Objects that the code refers to go to `names`."""
    name = f.name
    if f.default_factory is not MISSING:
        names[f"_make_{name}"] = f.default_factory
        if not f.init:
            return "", f"_make_{name}()"
        return f"{name}=_FROM_FACTORY", f"_make_{name}() if {name} is _FROM_FACTORY else {name}"
    if f.default is MISSING:
        return (name, name) if f.init else ("", "")  # `__post_init__` assigns the other
    names[f"_default_{name}"] = f.default
    return (f"{name}=_default_{name}", name) if f.init else ("", f"_default_{name}")


def _key(names: Sequence[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _comparison(key: Callable[[Any], Any]) -> Method:
    def is_equal(self: Any, other: object) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return is_equal


def _hash(key: Callable[[Any], Any]) -> Method:
    def hash_fields(self: Any) -> int:
        return hash(key(self))

    return hash_fields


def _describer(names: Sequence[str]) -> Method:
    def describe(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return describe


def _freeze(made: Any, slots: bool) -> None:
    names = frozenset(made.__dataclass_fields__)

    def refuse_assignment(self: Any, name: str, value: object) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def refuse_deletion(self: Any, name: str) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    made.__setattr__, made.__delattr__ = refuse_assignment, refuse_deletion
    made.__dataclass_params__.frozen = True  # a frozen class inherits from frozen ones
    if slots:
        made.__getstate__, made.__setstate__ = _state, _set_state


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


def make_named_tuple(
    name: str, annotations: Mapping[str, Any], defaults: Mapping[str, Any], body: Mapping[str, Any]
) -> type:
    """A named tuple of the annotated fields, with the attributes of `body`."""
    fields = tuple(annotations)
    if wrong := [field for field in fields if field[0] == "_" or iskeyword(field)]:
        raise ValueError(f"{name}: {wrong[0]!r} is no name of a field")
    parameters = ", ".join(fields)
    values = f"({parameters},)" if fields else "()"
    new: Any = eval(f"lambda _cls, {parameters}: _new(_cls, {values})",  # noqa: S307 - of names of fields alone
                    {"_new": tuple.__new__, "__builtins__": {}, "__name__": f"namedtuple_{name}"})
    new.__name__, new.__qualname__, new.__defaults__ = "__new__", f"{name}.__new__", tuple(defaults.values())
    new.__annotations__ = annotations
    return type(name, (tuple,), {
        "__doc__": f"{name}({parameters})", "__slots__": (), "_fields": fields, "_field_defaults": dict(defaults),
        "__new__": new, "_make": _make, "_replace": _replace, "_asdict": _asdict, "__repr__": _describe_tuple,
        "__getnewargs__": _plain_tuple, "__match_args__": fields, "__annotations__": annotations,
        **{field: _tuplegetter(index, f"Alias for field number {index}") for index, field in enumerate(fields)},
        **body,
    })


@classmethod  # type: ignore[misc]
def _make(cls: Any, iterable: Iterable[Any]) -> Any:
    """Return a named tuple of the values of an iterable."""
    made = tuple.__new__(cls, iterable)
    if len(made) != len(cls._fields):
        raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
    return made


def _replace(self: Any, /, **changes: Any) -> Any:
    """Return a named tuple with other values of some fields."""
    made = self._make(map(changes.pop, self._fields, self))
    if changes:
        raise ValueError(f"Got unexpected field names: {list(changes)!r}")
    return made


def _asdict(self: Any) -> dict[str, Any]:
    """Return the values by field."""
    return dict(zip(self._fields, self, strict=True))


def _plain_tuple(self: Any) -> tuple[Any, ...]:
    return tuple(self)


def _describe_tuple(self: Any) -> str:
    values = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
    return f"{type(self).__name__}({values})"
