"""Lookup tables. TensorFlow 2.21 gave the same results and kinds of errors for the same calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, placeholder
from builders.string_arrays import array
from heald.errors import Aborted, FailedPrecondition, InvalidArgument, Unimplemented
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

STRING, INT, LONG, FLOAT, DOUBLE, BOOL, RESOURCE = (
    dtypes.string, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.bool_, dtypes.resource)
ABC = array([b"a", b"b", b"c"])


def table(op: str, key: Any = STRING, value: Any = LONG, name: str = "t", **attrs: Any) -> Node:
    return Node(name, op, attrs={"key_dtype": key, "value_dtype": value, **attrs})


def ops(key: Any = STRING, value: Any = LONG, handle: str = "t") -> list[Node]:
    types = {"Tin": key, "Tout": value}
    return [
        placeholder("k", None, key), placeholder("v", None, value),
        Node("find", "LookupTableFindV2", (handle, "k", "v"), attrs=types),
        Node("insert", "LookupTableInsertV2", (handle, "k", "v"), attrs=types),
        Node("replace", "LookupTableImportV2", (handle, "k", "v"), attrs=types),
        Node("fill", "InitializeTableV2", (handle, "k", "v"), attrs={"Tkey": key, "Tval": value}),
        Node("remove", "LookupTableRemoveV2", (handle, "k"), attrs={"Tin": key}),
        Node("export", "LookupTableExportV2", (handle,), attrs={"Tkeys": key, "Tvalues": value}),
        Node("size", "LookupTableSizeV2", (handle,)),
    ]


class Driven:
    """A session with one table."""

    def __init__(self, op: str = "HashTableV2", key: Any = STRING, value: Any = LONG, **attrs: Any) -> None:
        self.session = heald.Session(graph(table(op, key, value, **attrs), *ops(key, value)))

    def change(self, op: str, k: Any, v: Any) -> None:
        self.session.run([], {"k": k, "v": v}, targets=[op])

    def fill(self, k: Any, v: Any) -> None:
        self.change("fill", k, v)

    def insert(self, k: Any, v: Any) -> None:
        self.change("insert", k, v)

    def replace(self, k: Any, v: Any) -> None:
        self.change("replace", k, v)

    def remove(self, k: Any) -> None:
        self.session.run([], {"k": k}, targets=["remove"])

    def find(self, k: Any, v: Any = -1) -> Any:
        return self.session.run("find", {"k": k, "v": v}).tolist()

    def size(self) -> int:
        return int(self.session.run("size"))

    def export(self) -> dict[Any, Any]:
        keys, values = self.session.run(["export:0", "export:1"])
        return dict(zip(keys.tolist(), values.tolist(), strict=True))


def test_a_table_is_filled_before_it_is_used() -> None:
    t = Driven()
    assert t.size() == 0
    with pytest.raises(FailedPrecondition, match="Table not initialized"):
        t.find(ABC)
    with pytest.raises(Aborted):
        t.export()
    t.fill(ABC, [1, 2, 3])
    assert (t.size(), t.find(array([b"c", b"z", b"a"])), t.find(b"b")) == (3, [3, -1, 1], 2)
    assert t.find(array([b"a", b"z"], (1, 2))) == [[1, -1]]
    assert t.export() == {b"a": 1, b"b": 2, b"c": 3}


def test_filling_a_table_again_changes_nothing_and_compares_only_the_size() -> None:
    t = Driven()
    t.fill(ABC, [1, 2, 3])
    t.fill(ABC, [1, 2, 3])
    t.fill(ABC, [1, 2, 4])
    t.replace(ABC, [1, 2, 4])
    assert t.find(ABC) == [1, 2, 3]
    with pytest.raises(FailedPrecondition, match="already initialized with different data"):
        t.fill(ABC[:1], [1])


def test_a_key_that_comes_twice_needs_one_value() -> None:
    t = Driven()
    for op in ("fill", "replace"):
        with pytest.raises(FailedPrecondition, match="Key b'a' has 1 and trying to add value 2"):
            t.change(op, array([b"a", b"a", b"b"]), [1, 2, 3])
        assert t.size() == 0
    with pytest.raises(FailedPrecondition, match="not initialized"):
        t.find(ABC)
    t.fill(array([b"b"]), [7])
    assert t.export() == {b"a": 1, b"b": 7}
    u = Driven()
    u.fill(array([b"a", b"a"]), [1, 1])
    assert u.size() == 1


def test_nan_is_a_value_but_not_equal_to_another() -> None:
    t = Driven("HashTableV2", LONG, FLOAT)
    t.fill([1, 2], [np.nan, 1])
    assert np.isnan(t.find([1, 2])).tolist() == [True, False]
    with pytest.raises(FailedPrecondition):
        Driven("HashTableV2", LONG, FLOAT).fill([1, 1], [np.nan, np.nan])


@pytest.mark.parametrize("call", [
    lambda t: t.fill([], []), lambda t: t.replace([], []), lambda t: t.fill(ABC, [1, 2]), lambda t: t.fill(b"a", 1),
    lambda t: t.fill(array([b"a"], (1, 1)), [[1]]), lambda t: t.replace(ABC[:1], [1, 2]),
])
def test_a_tensor_that_cannot_fill_a_table_is_an_error(call: Any) -> None:
    t = Driven()
    with pytest.raises(InvalidArgument):
        call(t)
    assert t.size() == 0


def test_an_import_into_a_table_takes_keys_of_any_shape() -> None:
    t = Driven()
    t.replace(array([b"a", b"b"], (2, 1)), [[1], [2]])
    assert t.export() == {b"a": 1, b"b": 2}


def test_a_constant_table_takes_the_first_of_several_defaults() -> None:
    t = Driven()
    t.fill(ABC, [1, 2, 3])
    assert (t.find(array([b"z", b"y"]), [5, 6]), t.find(array([b"z"]), [5]), t.find(array([]), [])) == ([5, 5], [5], [])
    for keys, default in ((ABC[:2], [5]), (ABC[:1], [5, 6]), (ABC[:1], []), (array([b"a", b"b"], (1, 2)), [5, 6])):
        with pytest.raises(InvalidArgument, match="default value"):
            t.find(keys, default)


def test_a_constant_table_is_not_changed() -> None:
    t = Driven()
    t.fill(ABC, [1, 2, 3])
    for call in (lambda: t.insert(ABC[:1], [9]), lambda: t.remove(ABC[:1])):
        with pytest.raises(Unimplemented, match="is filled once"):
            call()


def test_a_mutable_table_is_changed() -> None:
    t = Driven("MutableHashTableV2")
    assert (t.find(ABC), t.size(), t.export()) == ([-1, -1, -1], 0, {})
    t.insert(array([b"a", b"b", b"c", b"a"], (2, 2)), [[1, 2], [3, 4]])
    assert t.find(ABC) == [4, 2, 3]
    t.remove(array([b"a", b"zz"], (1, 2)))
    assert t.export() == {b"b": 2, b"c": 3}
    t.replace(array([b"x", b"x"]), [1, 5])
    assert t.export() == {b"x": 5}
    t.insert(b"y", 7)
    assert (t.size(), t.find(b"y")) == (2, 7)


def test_a_mutable_table_takes_a_default_for_each_key() -> None:
    t = Driven("MutableHashTableV2")
    t.insert(array([b"x"]), [5])
    keys = array([b"x", b"q", b"r"])
    assert (t.find(keys, [-1, -2, -3]), t.find(keys[None], [[-1, -2, -3]])) == ([5, -2, -3], [[5, -2, -3]])
    for default in ([-1], [-1, 3]):
        with pytest.raises(InvalidArgument, match="default value"):
            t.find(keys, default)
    with pytest.raises(InvalidArgument):
        t.find(keys[None], [-1, -2, -3])


@pytest.mark.parametrize("call", [
    lambda t: t.insert(ABC, [1]), lambda t: t.insert(ABC[:1], [[7]]), lambda t: t.fill(ABC, [1, 2, 3]),
])
def test_a_tensor_that_does_not_fit_a_mutable_table_is_an_error(call: Any) -> None:
    t = Driven("MutableHashTableV2")
    with pytest.raises(InvalidArgument):
        call(t)
    assert t.size() == 0


def test_values_may_be_vectors() -> None:
    t = Driven("MutableHashTableOfTensorsV2", LONG, FLOAT, value_shape=ShapeAttr((2,)))
    assert (t.find([1], [0, 9]), t.session.run("export:1").shape) == ([[0, 9]], (0, 2))
    t.insert([1, 2], [[1, 2], [3, 4]])
    t.insert([2, 2], [[0, 0], [3, 5]])
    assert (t.find([[2], [7]], [-1, -2]), t.find(1, [0, 0])) == ([[[3, 5]], [[-1, -2]]], [1, 2])
    assert t.find([1, 7], [[-1, -2], [-3, -4]]) == [[1, 2], [-3, -4]]
    assert t.export() == {1: [1, 2], 2: [3, 5]}
    t.insert([[3, 4]], [[[6, 6], [7, 7]]])
    t.remove([1, 2, 3])
    assert t.export() == {4: [7, 7]}
    for keys, default in (([1], -1), ([1], [1, 2, 3])):
        with pytest.raises(InvalidArgument):
            t.find(keys, default)
    with pytest.raises(InvalidArgument):
        t.insert([1], [1, 2])


@pytest.mark.parametrize("shape", [(), (2, 2), (None,), None])
def test_vectors_of_values_have_one_length(shape: Any) -> None:
    shape = None if shape is None else ShapeAttr(shape)
    with pytest.raises(InvalidArgument, match="vectors of one length"):
        Driven("MutableHashTableOfTensorsV2", value_shape=shape).size()


def test_stored_and_returned_values_are_copies() -> None:
    t = Driven("MutableHashTableOfTensorsV2", LONG, FLOAT, value_shape=ShapeAttr((2,)))
    inserted = np.ones((1, 2), np.float32)
    t.insert([1], inserted)
    inserted[:] = 5
    values = t.session.run("find", {"k": [1], "v": [0, 0]})
    values[:] = 6
    assert t.find([1], [0, 0]) == [[1, 1]]


CONSTANT = [(STRING, v) for v in (STRING, LONG, INT, FLOAT, DOUBLE, BOOL)] + [
    (LONG, v) for v in (STRING, LONG, INT, FLOAT, DOUBLE)] + [(INT, v) for v in (STRING, INT, FLOAT, DOUBLE)]
MUTABLE = [pair for pair in CONSTANT if pair not in ((STRING, STRING), (INT, STRING))]


@pytest.mark.parametrize("op", ["HashTableV2", "MutableHashTableV2"])
@pytest.mark.parametrize(("key", "value"), CONSTANT)
def test_keys_and_values_are_of_tensorflows_types(op: str, key: Any, value: Any) -> None:
    t = Driven(op, key, value)
    if op == "MutableHashTableV2" and (key, value) not in MUTABLE:
        with pytest.raises(Unimplemented):
            t.size()
        return
    keys = ABC if key is STRING else np.array([-1, 0, 5], key.numpy)
    values = array([b"x", b"", b"y"]) if value is STRING else np.array([1, 0, 3]).astype(value.numpy)
    t.replace(keys, values)
    looked_up = t.session.run("find", {"k": keys[::-1], "v": values[1]})
    assert (looked_up.dtype, looked_up.tolist()) == (values.dtype, values[::-1].tolist())
    exported = t.session.run(["export:0", "export:1"])
    assert [x.dtype for x in exported] == [keys.dtype, values.dtype]


@pytest.mark.parametrize(("key", "value"), [(FLOAT, FLOAT), (LONG, BOOL), (INT, LONG), (dtypes.int8, INT)])
def test_other_types_are_not_there(key: Any, value: Any) -> None:
    with pytest.raises(Unimplemented):
        heald.Session(graph(table("HashTableV2", key, value), Node("s", "LookupTableSizeV2", ("t",)))).run("s")


def test_an_anonymous_table_is_new_in_each_run() -> None:
    session = heald.Session(graph(
        table("AnonymousMutableHashTable"), *ops(),
        Node("after", "LookupTableSizeV2", ("t", "^insert")), table("AnonymousHashTable", LONG, STRING, "other"),
        Node("there", "LookupTableSizeV2", ("other",))))
    for _ in range(2):
        assert session.run("after", {"k": ABC, "v": [1, 2, 3]}) == 3
    assert session.run("there") == 0


def test_tables_of_one_shared_name_are_one_of_one_kind() -> None:
    session = heald.Session(graph(
        table("MutableHashTableV2", shared_name="s"), table("MutableHashTableV2", name="u", shared_name="s"),
        table("MutableHashTableV2", STRING, FLOAT, "w", shared_name="s"),
        table("MutableHashTableOfTensorsV2", name="x", shared_name="s", value_shape=ShapeAttr((2,))),
        *ops(), *(Node(f"size_{n}", "LookupTableSizeV2", (n,)) for n in "uwx")))
    session.run([], {"k": ABC, "v": [1, 2, 3]}, targets=["insert"])
    assert session.run("size_u") == 3
    for name in ("size_w", "size_x"):
        with pytest.raises(InvalidArgument, match="table 's'"):
            session.run(name)


def test_a_handle_gives_its_types_before_the_run() -> None:
    session = heald.Session(graph(
        table("MutableHashTableOfTensorsV2", LONG, FLOAT, value_shape=ShapeAttr((2,))), *ops(LONG, FLOAT),
        placeholder("keys", (3,), LONG),
        Node("found", "LookupTableFindV2", ("t", "keys", "v"), attrs={"Tin": LONG, "Tout": FLOAT}),
        Node("other", "LookupTableFindV2", ("t", "keys", "keys"), attrs={"Tin": LONG, "Tout": LONG}),
        Node("export_other", "LookupTableExportV2", ("t",), attrs={"Tkeys": STRING, "Tvalues": FLOAT})))
    program = session.prepare("found", ["keys", "v"]).program
    assert str(program.functions["main"].result_metas[0]) == "float32[3,2]"
    for name in ("other", "export_other:0"):
        with pytest.raises(InvalidArgument, match="the table is of int64 to float32"):
            session.prepare(name, ["keys"])


def test_a_tensor_that_does_not_fit_an_unknown_table_fails_at_its_use() -> None:
    """Of a handle that was packed and unpacked nothing is known before the run."""
    session = heald.Session(graph(
        table("MutableHashTableV2", LONG, FLOAT, "made"), Node("pack", "Pack", ("made",), attrs={
            "T": RESOURCE, "N": 1, "axis": 0}),
        Node("t", "Unpack", ("pack",), attrs={"T": RESOURCE, "num": 1, "axis": 0}), *ops()))
    pairs = {"k": ABC, "v": [1, 2, 3]}
    for fetches, feeds, targets in ((["find"], pairs, ()), ([], pairs, ["insert"]), ([], pairs, ["fill"]),
                                    ([], pairs, ["replace"]), ([], {"k": ABC}, ["remove"]), (["export:0"], {}, ())):
        with pytest.raises(InvalidArgument, match="is of int64 to float32, used as one of string"):
            session.run(fetches, feeds, targets=targets)
    assert session.run("size") == 0


def test_a_handle_of_another_kind_is_an_error() -> None:
    session = heald.Session(graph(
        Node("t", "VarHandleOp", attrs={"dtype": FLOAT, "shape": None}), *ops(), table("HashTableV2", name="table"),
        Node("read", "ReadVariableOp", ("table",), attrs={"dtype": FLOAT}), Node("queued", "QueueSizeV2", ("table",))))
    for name in ("size", "find", "read", "queued"):
        with pytest.raises(InvalidArgument):
            session.run(name, {"k": ABC, "v": -1} if name == "find" else {})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("op", "key"), [("HashTableV2", INT), ("MutableHashTableV2", LONG)])
def test_many_numbers_are_found_like_single_ones(op: str, key: Any, seed: int) -> None:
    """Also keys next to each other, far apart, at the ends of the type, and after a change."""
    rng = np.random.default_rng(seed)
    low, high = np.iinfo(key.numpy).min, np.iinfo(key.numpy).max
    keys = np.unique(np.concatenate([
        rng.integers(low, high, 300, key.numpy), np.arange(-50, 200, dtype=key.numpy),
        np.array([low, high, low + 2**20, 2**30], key.numpy), 2**12 * np.arange(90, dtype=key.numpy)]))
    t = Driven(op, key, INT)
    t.replace(keys, np.arange(len(keys), dtype=np.int32))
    asked_keys = rng.permutation(np.concatenate([keys, keys + 1, rng.integers(low, high, 300, key.numpy)]))
    index_of = dict(zip(keys.tolist(), range(len(keys)), strict=True))
    assert t.find(asked_keys) == [index_of.get(k, -1) for k in asked_keys.tolist()]
    assert t.find(asked_keys[:2]) == [index_of.get(k, -1) for k in asked_keys[:2].tolist()]
    if op == "MutableHashTableV2":
        t.remove(keys[::2])
        t.insert(keys[1:2], [7])
        index_of = {k: v for k, v in index_of.items() if v % 2} | {int(keys[1]): 7}
        defaults = np.arange(-len(asked_keys), 0, dtype=np.int32)
        expected = [index_of.get(k, d) for k, d in zip(asked_keys.tolist(), defaults.tolist(), strict=True)]
        assert t.find(asked_keys, defaults) == expected


def test_keys_that_collide_too_often_are_found_all_the_same() -> None:
    """Numbers all of whose first places are one: their products with the golden ratio's bits have no upper bits."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
    keys = np.array([(n * inverse) % 2**64 for n in range(1, 400)], np.uint64).view(np.int64)
    t = Driven("HashTableV2", LONG, LONG)
    t.fill(keys, np.arange(399))
    assert t.find(keys) == list(range(399))


def test_threads_that_insert_lose_nothing() -> None:
    t = Driven("MutableHashTableV2", LONG, LONG)
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(lambda n: [t.insert([n * 20 + i], [i]) for i in range(20)], n) for n in range(8)]:
            done.result()
    assert t.export() == {n: n % 20 for n in range(160)}


def dense(form: str = "V2", deleted: int = -2) -> heald.Session:
    kinds = {"key_dtype": LONG, "value_dtype": FLOAT, "value_shape": ShapeAttr((2,))}
    used = {"Tin": LONG, "Tout": FLOAT}
    return heald.Session(graph(
        const("empty", -1, np.int64), const("deleted", deleted, np.int64), placeholder("k", None, LONG),
        placeholder("v"), const("none", [0, 0]),
        Node("t", f"MutableDenseHashTable{form}", ("empty", "deleted"), attrs=kinds),
        Node("insert", f"LookupTableInsert{form}", ("t", "k", "v"), attrs=used),
        Node("find", f"LookupTableFind{form}", ("t", "k", "none"), attrs=used),
        Node("remove", "LookupTableRemoveV2", ("t", "k"), attrs={"Tin": LONG}),
        Node("size", f"LookupTableSize{form}", ("t",))))


@pytest.mark.parametrize("form", ["V2", ""])
def test_a_dense_table_keeps_arrays_by_key(form: str) -> None:
    with dense(form=form) as session:
        session.run([], {"k": [5, 7], "v": [[1, 2], [3, 4]]}, targets=["insert"])
        assert session.run("find", {"k": [7, 8, 5]}).tolist() == [[3, 4], [0, 0], [1, 2]]
        if form:
            session.run([], {"k": [7]}, targets=["remove"])
            assert session.run("size") == 1


@pytest.mark.parametrize(("key", "name"), [(-1, "empty_key"), (-2, "deleted_key")])
def test_the_reserved_keys_of_a_dense_table_are_no_keys(key: int, name: str) -> None:
    with dense() as session:
        feeds = {"k": [3, key], "v": [[1, 2], [3, 4]]}
        for fetches, step_feeds, targets in (([], feeds, ["insert"]), (["find"], {"k": [key]}, []), ([], {"k": [key]},
                                                                                                     ["remove"])):
            with pytest.raises(InvalidArgument, match=f"Using the {name} as a table key is not allowed"):
                session.run(fetches, step_feeds, targets=targets)
        assert session.run("size") == 0
    with dense(deleted=-1) as session, pytest.raises(InvalidArgument, match="cannot be equal"):
        session.run("size")


# LookupTableExportV2 of TensorFlow 2.21 after each of these steps, with 8 buckets and max_load_factor 0.8
EMPTY, ERASED = -1, -2
DENSE_STEPS: list[tuple[str, list[int], list[float], list[int], list[float]]] = [
    ("insert", [], [], [EMPTY] * 8, [0] * 8),
    ("insert", [5, 13, 21, 7], [1, 2, 3, 4], [21, EMPTY, EMPTY, EMPTY, EMPTY, 5, 13, 7], [3, 0, 0, 0, 0, 1, 2, 4]),
    ("remove", [13, 99], [], [21, EMPTY, EMPTY, EMPTY, EMPTY, 5, ERASED, 7], [3, 0, 0, 0, 0, 1, 2, 4]),
    ("insert", [29], [9], [21, EMPTY, EMPTY, EMPTY, EMPTY, 5, 29, 7], [3, 0, 0, 0, 0, 1, 9, 4]),
    ("insert", [*range(100, 107)], [9] * 7,
     [106, EMPTY, EMPTY, EMPTY, 100, 21, 5, 7, 101, 102, 103, 104, 105, 29, EMPTY, EMPTY],
     [9, 0, 0, 0, 9, 3, 1, 4, 9, 9, 9, 9, 9, 9, 0, 0]),
    ("import", [8, 1, 2, 3, EMPTY, EMPTY, ERASED, EMPTY], [8, 1, 2, 3, 0, 0, 0, 0],
     [8, 1, 2, 3, EMPTY, EMPTY, ERASED, EMPTY], [8, 1, 2, 3, 0, 0, 0, 0]),
    ("insert", [10], [5], [8, 1, 2, 3, EMPTY, 10, ERASED, EMPTY], [8, 1, 2, 3, 0, 5, 0, 0]),
]


def exporting(key: Any = LONG, empty: Any = -1, deleted: Any = -2, value: Any = FLOAT, **more: Any) -> heald.Session:
    used, out = {"Tin": key, "Tout": value}, {"Tkeys": key, "Tvalues": value}
    kinds = {"key_dtype": key, "value_dtype": value, "initial_num_buckets": 8} | more
    return heald.Session(graph(
        const("empty", empty, key.numpy), const("deleted", deleted, key.numpy), placeholder("k", None, key),
        placeholder("v", None, value), Node("t", "MutableDenseHashTableV2", ("empty", "deleted"), attrs=kinds),
        Node("insert", "LookupTableInsertV2", ("t", "k", "v"), attrs=used),
        Node("import", "LookupTableImportV2", ("t", "k", "v"), attrs=used),
        Node("remove", "LookupTableRemoveV2", ("t", "k"), attrs={"Tin": key}),
        Node("export", "LookupTableExportV2", ("t",), attrs=out), Node("size", "LookupTableSizeV2", ("t",))))


def test_a_dense_table_exports_its_buckets_as_tensorflow_does() -> None:
    with exporting() as session:
        for action, keys, values, exported_keys, exported_values in DENSE_STEPS:
            shape = (len(keys), 1) if action == "import" else (len(keys),)
            feeds = {"k": np.int64(keys).reshape(shape)}
            if action != "remove":
                feeds["v"] = np.float32(values).reshape(shape)
            session.run([], feeds, targets=[action])
            found_keys, found_values = session.run(["export", "export:1"])
            assert found_keys.tolist() == [[key] for key in exported_keys]
            assert found_values.tolist() == [[value] for value in exported_values]
            assert session.run("size") == len({*exported_keys} - {EMPTY, ERASED})


def test_a_dense_table_of_strings_has_tensorflows_buckets() -> None:
    with exporting(dtypes.string, b"", b"D", LONG) as session:
        session.run([], {"k": np.array([b"a", b"b", b"c", b"hello"], object), "v": [1, 2, 3, 4]}, targets=["insert"])
        keys, values = session.run(["export", "export:1"])
        assert keys[:, 0].tolist() == [b"", b"", b"b", b"hello", b"a", b"c", b"", b""]
        assert values[:, 0].tolist() == [0, 0, 2, 4, 1, 3, 0, 0]


def test_a_dense_table_of_vectors_is_restored_from_its_export() -> None:
    with exporting(value_shape=ShapeAttr((2,))) as one, exporting(value_shape=ShapeAttr((2,))) as other:
        one.run([], {"k": [5, 7], "v": [[1, 2], [3, 4]]}, targets=["insert"])
        one.run([], {"k": [7]}, targets=["remove"])
        keys, values = one.run(["export", "export:1"])
        assert (keys.shape, values.shape) == ((8, 1), (8, 2))
        other.run([], {"k": keys, "v": values}, targets=["import"])
        assert [array.tolist() for array in other.run(["export", "export:1"])] == [keys.tolist(), values.tolist()]
        assert other.run("size") == 1


@pytest.mark.parametrize(("keys", "values"), [
    ([1, 2, -1, -1], [1, 2, 0, 0]), ([1, 2, -1, -1], [[1], [2], [0], [0]]), ([[1], [2]], [1, 2]), ([[1, 2]], [[1, 2]]),
    ([], []),
])
def test_an_import_that_is_no_export_of_a_dense_table_is_refused(keys: Any, values: Any) -> None:
    with exporting() as session, pytest.raises(InvalidArgument):
        session.run([], {"k": np.int64(keys), "v": np.float32(values)}, targets=["import"])


@pytest.mark.parametrize(("attribute", "value"), [
    ("initial_num_buckets", 0), ("initial_num_buckets", 12), ("initial_num_buckets", 1 << 40), ("max_load_factor", 0.0),
    ("max_load_factor", 1.5), ("max_load_factor", float("nan")),
])
def test_a_dense_table_of_impossible_buckets_is_refused(attribute: str, value: Any) -> None:
    with exporting(**{attribute: value}) as session, pytest.raises(InvalidArgument):
        session.run("size")
