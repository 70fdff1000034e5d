"""Classes of fields: named tuples are those of `typing`, and records are dataclasses equal only to themselves."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
from dataclasses import asdict, field, fields, is_dataclass, replace

import pytest
from heald.runtime.support import records


class Point(records.NamedTuple):
    """A point."""

    x: int
    y: list[Point] | None = None
    name: str = "origin"

    @property
    def double(self) -> int:
        return self.x * 2

    def __str__(self) -> str:
        return f"<{self.x}>"

    @classmethod
    def of(cls, x: int) -> Point:
        return cls(x)


class TypedPoint(typing.NamedTuple):
    """A point."""

    x: int
    y: list[TypedPoint] | None = None
    name: str = "origin"


class Empty(records.NamedTuple):
    """No fields."""


@records.record
class Base:
    """Fields with and without defaults."""

    x: int
    items: list[int] = field(default_factory=list, kw_only=True)


@records.record
class Derived(Base):
    """A further field."""

    y: int


@records.dataclass(frozen=True, slots=True)
class Frozen:
    """A dataclass at the module's level, for pickles."""

    x: int
    name: str = "a"


def test_a_named_tuple_has_all_parts_of_one_of_typing():
    for part in ("__doc__", "_fields", "_field_defaults", "__match_args__", "__slots__", "__module__"):
        assert getattr(Point, part) == getattr(TypedPoint, part)
    assert Point.__mro__ == (Point, tuple, object)
    assert Point.__qualname__ == "Point"
    assert typing.get_type_hints(Point) == {"x": int, "y": list[Point] | None, "name": str}


def test_a_named_tuple_behaves_as_a_tuple_of_its_fields():
    point = Point(1, name="a")
    assert point == (1, None, "a") == Point._make([1, None, "a"])
    assert (point.double, str(point), Point.of(3).x) == (2, "<1>", 3)
    assert repr(point) == "Point(x=1, y=None, name='a')"
    assert point._replace(x=5)._asdict() == {"x": 5, "y": None, "name": "a"}
    assert pickle.loads(pickle.dumps(point)) == copy.deepcopy(point) == point  # noqa: S301 - bytes of this test
    assert hash(point) == hash((1, None, "a"))
    assert Empty() == ()
    match point:
        case Point(x, y):
            assert (x, y) == (1, None)


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4)])
def test_a_named_tuple_refuses_other_numbers_of_arguments(arguments):
    with pytest.raises(TypeError):
        Point(*arguments)


def test_a_class_that_is_no_named_tuple_is_refused():
    with pytest.raises(TypeError, match="a field without default follows one with a default"):
        class Late(records.NamedTuple):
            x: int = 1
            y: int
    with pytest.raises(TypeError, match="no own __new__"):
        class New(records.NamedTuple):
            def __new__(cls) -> New: ...
    with pytest.raises(TypeError, match="has one base"):
        class Two(records.NamedTuple, Base):
            pass


def test_a_record_is_a_dataclass_that_equals_only_itself():
    record, other = Derived(1, 2), Derived(1, 2)
    assert (record.x, record.y, record.items) == (1, 2, [])
    assert record != other
    assert {record, record, other} == {other, record}
    assert replace(record, y=3, items=[4]).__dict__ == {"x": 1, "y": 3, "items": [4]}
    assert record.items is not other.items


def _pair(**options):
    """The same class made by `records.dataclass` and by the standard library."""
    def bodies(make, factory):
        @make(**options)
        class Sized:
            """Fields of every kind."""

            x: int
            y: list[int] = factory(default_factory=list, compare=False)
            z: str = factory(default="z", repr=False)
            total: int = factory(init=False, default=7)
            late: int = factory(default=1, kw_only=True, hash=False)

        return Sized

    return bodies(records.dataclass, field), bodies(dataclasses.dataclass, field)


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True},
                                     {"eq": False}, {"repr": False, "frozen": True}], ids=str)
def test_a_dataclass_behaves_as_the_standard_library_s(options):
    ours, theirs = _pair(**options)
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    assert [f.name for f in fields(ours)] == [f.name for f in fields(theirs)]
    assert ours.__match_args__ == theirs.__match_args__
    assert hasattr(ours, "__slots__") == hasattr(theirs, "__slots__")
    results = [_behaviour(cls) for cls in (ours, theirs)]
    assert results[0] == results[1]


def _behaviour(cls):
    a, b, c = cls(1), cls(1, [3], late=1), cls(1, late=2)
    shown = repr(a) if cls.__repr__ is not object.__repr__ else "object"
    return [asdict(b), a == b, a == c, a == "a", shown, a.y is not cls(1).y, asdict(replace(b, z="q")),
            (cls.__hash__ is None) or (hash(a) == hash(b), hash(a) == hash(cls(1, late=2))), asdict(copy.copy(b)),
            _assignment(a, "x"), _assignment(a, "unknown"), _deletion(a), is_dataclass(cls), _call(cls),
            _call(cls, 1, w=2)]


def _assignment(a, name):
    try:
        setattr(a, name, 5)
    except (AttributeError, TypeError):  # the standard library raises TypeError for slots
        return "refused"
    return getattr(a, name)


def _deletion(a):
    try:
        del a.x
    except AttributeError as error:
        return type(error), str(error)
    return hasattr(a, "x")


def _call(cls, *args, **named):
    try:
        return asdict(cls(*args, **named))
    except TypeError as error:
        return type(error)


def test_a_dataclass_keeps_its_own_methods_and_runs_post_init():
    @records.dataclass(frozen=True)
    class Own:
        x: int

        def __post_init__(self):
            if self.x < 0:
                raise ValueError(self.x)

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 4

        def __repr__(self):
            return "own"

    assert (Own(1) == 3, hash(Own(1)), repr(Own(1))) == (True, 4, "own")
    with pytest.raises(ValueError, match="-1"):
        replace(Own(1), x=-1)


def test_a_frozen_dataclass_is_a_base_of_frozen_ones_and_pickles():
    assert pickle.loads(pickle.dumps(Frozen(2, "b"))) == Frozen(2, "b") != Frozen(2)  # noqa: S301
    with pytest.raises(dataclasses.FrozenInstanceError):
        Frozen(2).x = 3

    @dataclasses.dataclass(frozen=True)
    class Further(Frozen):
        more: int = 0

    assert Further(1, more=2) == Further(1, more=2) != Frozen(1)
