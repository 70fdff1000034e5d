"""Classes of fields that cost little to make: an import of heald makes more than a hundred.

`dataclasses` compiles each method of a class by itself, those of a frozen class twice as many, and `typing.NamedTuple`
compiles each annotation. Both together took a third of the time of an import. A class of fields here compiles one
function.

`NamedTuple` is `typing.NamedTuple` for type checkers, and makes the same classes; a generic one needs the original.
`dataclass` is `dataclasses.dataclass` for type checkers. It compiles the constructor alone: a comparison, a hash, a
`repr` and a refusal to assign are closures over the names of the fields. The fields, `replace`, pickles and copies are
those of the standard library. Arguments are `init`, `repr`, `eq`, `frozen` and `slots`.

`record` makes a dataclass without equality and `repr`. Type checkers refuse assignments to its fields; a run does not
spend time on a refusal.

The modules that commands import before the working folder leaves sys.path keep the original: they must not import
`dataclasses`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

__all__ = ["NamedTuple", "dataclass", "record"]

T = TypeVar("T")

_MADE_BY_NAMEDTUPLE = frozenset((
    "__new__", "__slots__", "__getnewargs__", "_fields", "_field_defaults", "_make", "_replace", "_asdict"))


if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import NamedTuple
else:
    from .field_classes import dataclass, make_named_tuple

    class _NamedTupleType(type):
        """Turns the body of a class into a named tuple."""

        def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(mcs, name, bases, body)
            annotations = body.get("__annotations__", {})
            taken = _MADE_BY_NAMEDTUPLE.intersection(body)
            if taken or len(bases) > 1:
                raise TypeError(f"{name}: a named tuple has one base, and no own {', '.join(sorted(taken))}")
            with_default = [key for key in annotations if key in body]
            if with_default != list(annotations)[len(annotations) - len(with_default):]:
                raise TypeError(f"{name}: a field without default follows one with a default")
            own = {key: value for key, value in body.items() if key not in annotations and key != "__orig_bases__"}
            return make_named_tuple(name, annotations, {key: body[key] for key in with_default}, own)

    class NamedTuple(metaclass=_NamedTupleType):
        """The base of a named tuple."""


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a dataclass of immutable fields whose instances are equal only to themselves."""
    return dataclass(eq=False, repr=False)(cls)
