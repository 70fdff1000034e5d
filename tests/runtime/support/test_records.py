"""Classes of fields: named tuples are those of `typing`, and records are dataclasses equal only to themselves."""

from __future__ import annotations

import copy
import pickle
import typing
from dataclasses import field, replace

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
