"""BEF files: programs survive them exactly, the layout is TFRT's, and damaged files are typed errors."""

from __future__ import annotations

import math
import random
import struct
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from heald import bef
from heald.errors import DataLoss, FailedPrecondition, HealdError, InvalidArgument, Location, NotFound, Unimplemented
from heald.runtime.contract.loader import LoadOptions
from heald.runtime.program.bef.loader import LOADER
from heald.runtime.program.bef.sections import Section, put_header, read_sections
from heald.runtime.program.bef.vbr import SectionReader, put_vbr
from heald.runtime.program.compiled_model import (
    CompiledModel,
    Entry,
    Port,
    PreparedConstant,
    Requirement,
    StrippedConstant,
)
from heald.runtime.program.host_program import Call, ProgramDef, ProgramFunction
from heald.runtime.program.typed_attribute import ShapeAttribute, plain_value, typed_number
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from heald.runtime.values.tensor_proto import TensorValue
from hypothesis import given, settings
from hypothesis import strategies as st

# Random models

names = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=6)
dtype = st.sampled_from(dtypes.ALL)
shapes = st.none() | st.lists(st.none() | st.integers(0, 300), max_size=4).map(tuple)
metas = st.builds(TensorMetadata, dtype, shapes)
types = metas | st.sampled_from(("i32", "!tfrt.chain", "tensor<2xf32>"))
locations = st.none() | st.builds(Location, names, st.none() | st.integers(1, 1000), st.none() | st.integers(1, 200))
scalars = (st.booleans() | st.integers() | st.floats() | st.binary(max_size=5) | st.text(max_size=5) | dtype | st.none()
           | st.complex_numbers())
values = st.recursive(
    scalars | shapes | st.lists(st.integers()).map(tuple) | st.lists(st.booleans()).map(tuple)
    | st.lists(dtype).map(tuple),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.lists(inner, max_size=3)
    | st.dictionaries(names, inner, max_size=2), max_leaves=6)


@st.composite
def functions(draw, name, earlier_names, streams):
    """A function that may call the functions `earlier_names`. Calls use registers that are defined before."""
    defined = count = draw(st.integers(0, 3))
    calls = []
    for _ in range(draw(st.integers(0, 4))):
        registers = st.lists(st.integers(0, count - 1), max_size=3).map(tuple) if count else st.just(())
        results = tuple(range(count, count := count + draw(st.integers(0, 2))))
        chain = None if results or draw(st.booleans()) else count
        count += chain is not None
        calls.append(Call(
            draw(names), draw(registers), results, draw(st.dictionaries(names, values, max_size=3)),
            draw(st.integers(-1, streams - 1)), draw(st.text(max_size=5)),
            tuple(draw(st.lists(st.sampled_from(earlier_names), max_size=2))) if earlier_names else (),
            draw(st.booleans()), draw(locations), draw(registers) if defined else (), chain))
    chains = {call.chain for call in calls}
    some = st.lists(st.integers(0, count - 1), max_size=3).map(tuple) if count else st.just(())
    stated = all(call.is_host_kernel for call in calls) and draw(st.booleans())
    numbers = tuple(draw(st.integers(0, 200)) for _ in calls) if stated else ()
    register_types = tuple("!tfrt.chain" if r in chains else draw(types) for r in range(count))
    return ProgramFunction(name, tuple(f"a{i}" for i in range(defined)), register_types, tuple(calls), draw(some),
                           draw(some), draw(locations), draw(st.booleans()), numbers)


@st.composite
def models(draw):
    requires = tuple(draw(st.lists(names, max_size=2)))
    functions_by_name = {}
    for name in draw(st.lists(names, unique=True, max_size=3)):
        functions_by_name[name] = draw(functions(name, [*functions_by_name], len(requires)))
    port = st.builds(Port, names, names, metas)
    entries = tuple(
        Entry(draw(st.text(max_size=3)), f.name, tuple(draw(port) for _ in f.arg_names),
              tuple(draw(port) for _ in f.results))
        for f in functions_by_name.values())
    requirements = tuple(draw(st.lists(st.builds(Requirement, names, names, names, names), max_size=2)))
    definition = ProgramDef(functions_by_name, (), requires)
    return CompiledModel(definition, entries, requirements, (), draw(st.text()), draw(st.text()))


def exact(value):
    """A value in which NaN equals NaN, and -0.0, True and 1 differ."""
    if isinstance(value, float):
        return "float", struct.pack("<d", value)
    if isinstance(value, complex):
        return "complex", exact(value.real), exact(value.imag)
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value).__name__, *map(exact, value)
    return type(value).__name__, value


def plain(model):
    """A model whose parts can be compared."""
    program = {name: f._replace(kernels=tuple(c._replace(attrs=exact(dict(c.attrs))) for c in f.kernels))
               for name, f in model.program.functions.items()}
    return program, model.program.requires, model.entries, model.requirements, model.form, model.chosen_signature


@given(models())
@settings(max_examples=60)
def test_a_model_survives_its_file(model):
    raw = bef.dumps(model)
    again = bef.loads(raw)
    assert plain(again) == plain(model)
    assert list(again.program.functions) == list(model.program.functions)
    assert bef.dumps(again) == raw


@given(st.integers(0, 2**64 - 1))
def test_a_number_survives_vbr(number):
    raw = put_vbr(number)
    assert SectionReader(raw, "Test").vbr() == number
    assert all(byte >= 0x80 for byte in raw[:-1])
    assert raw[-1] < 0x80


# Values and arrays

def program(attrs=None, constants=(), code="test.kernel", **fields):
    call = Call(code, (0,), (1,), attrs or {}, **fields)
    main = ProgramFunction("main", ("x",), ("i32", "i32"), (call,), (1,))
    return ProgramDef({"main": main}, constants)


def survivor(value):
    return bef.loads(bef.dumps(program({"a": value}))).program.functions["main"].kernels[0].attrs["a"]


@pytest.mark.parametrize("value", [
    0.1, -0.0, math.inf, -math.inf, struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0], 2**63, -2**63 - 1, True,
    1, b"a", "a", "\udc80", None, (), [], (None, 3), (3, 4), (1, True), ((), (1,)), ("a", b"a"), {"k": (1, [2])},
    1 - 2j, dtypes.named("float8_e5m2"), (dtypes.float32, dtypes.string)], ids=repr)
def test_an_attribute_keeps_its_class_and_bits(value):
    assert exact(survivor(value)) == exact(value)


def test_tuples_deeper_than_any_attribute_are_refused():
    value = ()
    for _ in range(40):
        value = (value, 1)
    with pytest.raises(InvalidArgument, match="nested deeper than 32"):
        bef.dumps(program({"a": value}))


@pytest.mark.parametrize("value", [object(), {1: 2}, np.array([object()])], ids=["object", "key", "objects"])
def test_a_value_that_no_file_holds_is_refused_by_name(value):
    with pytest.raises(InvalidArgument):
        bef.dumps(program({"a": value}))
    with pytest.raises(InvalidArgument, match=r"test.kernel: attribute 'a'|element of class object"):
        bef.dumps(program({"a": value}))


def arrays():
    for one in dtypes.ALL:
        try:
            kind = one.numpy
        except Unimplemented:
            continue
        if one.kind != "o":
            yield pytest.param(np.array([[0, 1, 1]]).astype(kind), id=one.name)
    yield pytest.param(np.array([[b"", b"ab\0"], [b"c", b""]], object), id="strings")
    yield pytest.param(np.zeros((0, 3), np.float32), id="empty")
    yield pytest.param(np.zeros((0,), object), id="no strings")
    yield pytest.param(np.array(7, np.int16), id="scalar")
    yield pytest.param(np.arange(5000, dtype=np.int32)[::-2], id="strided")
    yield pytest.param(np.arange(6, dtype=">i4"), id="big endian")
    yield pytest.param(np.broadcast_to(np.float32(2), (1 << 20, 1 << 20)), id="splat")
    yield pytest.param(np.broadcast_to(np.array([b"a"], object), (9,)), id="splat of strings")


def same(one, other):
    if one.size > 1 << 30:
        return one.strides == other.strides and one.flat[0] == other.flat[0]
    return one.tobytes() == other.astype(one.dtype).tobytes() if one.dtype != object else one.tolist() == other.tolist()


@pytest.mark.parametrize("array", [*arrays()])
def test_an_array_survives_as_constant_and_attribute(array):
    raw = bef.dumps(program({"a": array, "t": TensorValue(array) if array.size < 9999 else None}, (array,)))
    assert len(raw) < 60_000
    model = bef.loads(raw)
    [constant] = model.program.constants
    attrs = model.program.functions["main"].kernels[0].attrs
    for restored in (constant, attrs["a"]):
        assert (restored.shape, restored.dtype) == (array.shape, array.dtype.newbyteorder("="))
        assert not restored.flags.writeable
        assert same(restored, array)
    assert attrs["t"] is None or isinstance(attrs["t"], TensorValue)
    assert bef.dumps(model) == raw


def test_prepared_constants_survive():
    constant = PreparedConstant("main", "n", "CPU:0", "packed", "onednn 3.1 avx2", np.arange(2000, dtype=np.float32))
    [restored] = bef.loads(bef.dumps(CompiledModel(program(), prepared=(constant,)))).prepared
    assert restored[:5] == constant[:5]
    assert np.array_equal(restored.value, constant.value)


def test_one_array_of_several_prepared_constants_is_stored_once():
    array = np.arange(2000, dtype=np.float32)
    rows = tuple(PreparedConstant(name, "n", "CPU:0", "k", "f", array) for name in ("main", "main#2"))
    raw = bef.dumps(CompiledModel(program(), prepared=rows))
    assert len(raw) < 2 * array.nbytes
    first, second = bef.loads(raw).prepared
    assert first.value is second.value
    assert bef.dumps(bef.loads(raw)) == raw


@pytest.mark.parametrize("kind", [dtypes.float32, dtypes.string])
def test_a_stripped_constant_has_type_and_shape_alone(kind):
    stripped, other = StrippedConstant(kind, (300, 300)), np.arange(9, dtype=np.int8)
    raw = bef.dumps(program(constants=(stripped, other)))
    assert len(raw) < 2000
    again = bef.loads(raw).program
    assert again.constants[0] == stripped
    assert np.array_equal(again.constants[1], other)
    assert bef.dumps(again) == raw
    with pytest.raises(FailedPrecondition, match="left out"):
        again.constants[0].array()


def test_a_stripped_array_that_is_no_constant_is_damage():
    constant = PreparedConstant("main", "n", "CPU:0", "k", "f", np.array(7, np.int16))
    raw = bef.dumps(CompiledModel(program(), prepared=(constant,)))
    row = bytes((dtypes.int16.number, 0, 0, 0, 2))  # type, flag, dimensions, offset, size
    assert raw.count(row) == 1
    damaged = bef.loads(raw.replace(row, bytes((row[0], 2, 0, 0, 0))))
    with pytest.raises(DataLoss, match="no elements"):
        list(damaged.prepared)


def test_large_arrays_are_read_only_views_of_the_map_at_pages(tmp_path):
    large, small = np.arange(1 << 19, dtype=np.float32), np.arange(9, dtype=np.int8)
    bef.dump(program(constants=(small, large)), tmp_path / "p.bef")
    program_ = bef.load(tmp_path / "p.bef").program
    assert program_.constants[1].ctypes.data % 4096 == 0
    assert np.array_equal(program_.constants[1], large)
    assert np.array_equal(program_.constants[0], small)
    with pytest.raises(ValueError, match="read-only"):
        program_.constants[1][0] = 1


def test_a_file_that_changes_under_its_map_is_an_error(tmp_path):
    path = tmp_path / "p.bef"
    bef.dump(program(constants=(np.arange(1 << 19),)), path)
    model, early = bef.load(path), bef.load(path, mmap=False)
    with path.open("r+b") as file:
        file.truncate(100)
    assert model.program.functions["main"].kernels  # its bytes were read
    with pytest.raises(FailedPrecondition, match="changed in place"):
        model.program.constants[0]
    assert early.program.constants[0][-1] == (1 << 19) - 1


# The layout

TINY = bytes.fromhex("".join((
    "0b ef 00",                                        # magic, version
    "00 14  61 00  66 00  69 33 32 00  6b 00",         # Strings, 10 bytes: a, f, i32, k at 0, 2, 4, 8
    "01 11 08 cc cc cc cc cc cc",                      # Attributes, 8 bytes, aligned to 8
    "07 00 00 00 00 00 00 00",                         # the 64-bit integer 7
    "02 04  01 08",                                    # Kernels: one, k
    "03 04  01 04",                                    # Types: one, i32
    "04 10  01  00 00 02  01 00  01 00",               # FunctionIndex: one, BEF, at 0, f, (i32) -> i32
    "05 81 41 04 cc cc",                               # Functions, 96 bytes, aligned to 4
    "00  02 01 01",                                    # location; two registers, each used once
    "02  00 00 00  2c 01 00  01",                      # two kernels: at 0, and at 44 with one operand; returns 1
    "abababab cdcdcdcd 00000000 00000000 00000000 02000000",  # the pseudo kernel has two results,
    "00000000 01000000  02000000 00000000  01000000",  # 2 without users, and the argument 0, used by kernel 1
    "00000000 00000000 01000000 01000000 00000000 01000000",  # k: one argument, one attribute, one result
    "00000000  00000000  00000000  01000000",          # without users; argument 0, attribute at 0, result 1
    "08 06  01  00 09",                                # AttributeTypes: at 0 is an I64
    "09 06  01  02  00",                               # AttributeNames: one function of two kernels: a
    "0a 08  01  02 00 00",                             # RegisterTypes: one function of two registers: i32, i32
)).replace(" ", ""))


def tiny(**fields):
    call = Call("k", (0,), (1,), {"a": 7}, **fields)
    return ProgramDef({"f": ProgramFunction("f", ("x",), ("i32", "i32"), (call,), (1,))})


def rich():
    """A small model with something of everything."""
    meta = TensorMetadata(dtypes.float32, (None, 3))
    location = Location("model.py", 3, 1)
    body = ProgramFunction("body", ("x",), (meta, meta), (
        Call("cpu.Relu", (0,), (1,), {"T": dtypes.float32, "shape": (None, 3), "deep": (1, ("a", b"b"), [2.5])}, 0,
             "relu", location=location),), (1,), is_compiled=True)
    main = ProgramFunction("main", ("x",), (meta, meta, meta, "!tfrt.chain"), (
        Call("heald.constant", (), (1,), {"index": 0}, node="c"),
        Call("heald.call", (0,), (2,), {"pad": np.arange(3)}, functions=("body",), nonstrict=True, after=(1,)),
        Call("tfrt.print", (2,), (), chain=3)), (2,), (3,), location)
    port = Port("x", "x:0", meta)
    constants = (np.ones((1, 3), np.float32), np.array([b"a", b"bc"], object))
    return CompiledModel(
        ProgramDef({"body": body, "main": main}, constants, ("CPU:0",)),
        (Entry("serve", "main", (port,), (port,)),), (Requirement("cpu", "heald-cpu", "1", "kernels"),),
        (PreparedConstant("main", "c", "CPU:0", "k", "f", np.ones(2)),), "SavedModel", "serve")


def use(model):
    """Read everything of a model."""
    for function in model.program.functions.values():
        assert function.kernels is not None
    list(model.program.constants)
    return list(model.prepared)


def test_the_bytes_of_a_tiny_program_are_those_of_the_layout():
    assert bef.dumps(tiny()).startswith(TINY)


def test_sections_stand_in_the_order_of_their_ids():
    raw = bef.dumps(rich())
    section_bounds = read_sections(memoryview(raw))
    assert [*section_bounds] == [*range(11), 0x40, 0x41, 0x42]
    assert max(stop for _, stop in section_bounds.values()) == len(raw)


def test_a_file_of_tfrt_has_no_nodes_and_numbered_arguments():
    model = bef.loads(TINY)
    assert model == CompiledModel(ProgramDef({"f": ProgramFunction("f", ("arg0",), ("i32", "i32"), (
        Call("k", (0,), (1,), {"a": 7}),), (1,), streams=(0,))}))


@pytest.mark.parametrize(("name", "number"), [
    ("int8", -128), ("uint8", 255), ("int16", -5), ("uint16", 7), ("int32", 2**31 - 1), ("uint32", 2**32 - 1),
    ("uint64", 2**64 - 1), ("float16", 0.5), ("bfloat16", -1.5), ("float32", 0.25), ("complex64", 1 - 2j)])
def test_a_number_keeps_its_type_in_a_file_and_kernels_get_a_plain_one(name, number):
    dtype = dtypes.named(name)
    for value in (typed_number(number, dtype), (typed_number(number, dtype),) * 2, ("x", typed_number(number, dtype))):
        call = Call("k.k", (), (), {"a": value})
        program = ProgramDef({"f": ProgramFunction("f", (), (), (call,), ())})
        attribute = bef.loads(bef.dumps(program)).program.functions["f"].kernels[0].attrs["a"]
        assert attribute == value
        assert [getattr(v, "dtype", None) for v in (attribute if isinstance(attribute, tuple) else (attribute,))] == [
            getattr(v, "dtype", None) for v in (value if isinstance(value, tuple) else (value,))]
        assert type(plain_value(attribute)) in (int, float, complex, tuple)


@pytest.mark.parametrize("shape", [ShapeAttribute((2, 3)), ShapeAttribute(()), (2, None), None])
def test_a_shape_keeps_that_it_is_one(shape):
    program = ProgramDef({"f": ProgramFunction("f", (), (), (Call("k.k", (), (), {"a": shape}),), ())})
    attribute = bef.loads(bef.dumps(program)).program.functions["f"].kernels[0].attrs["a"]
    assert (attribute, type(attribute)) == (shape, type(shape))


def test_regions_have_no_name_in_a_file_and_synchronous_functions_their_kind():
    region = ProgramFunction("%0", (), (), (), ())
    sync = ProgramFunction("s", (), (), (), (), is_sync=True)
    program = ProgramDef({"%0": region, "s": sync})
    raw = bef.dumps(program)
    assert b"%0" not in raw
    assert dict(bef.loads(raw).program.functions) == program.functions
    with pytest.raises(InvalidArgument, match="function 0 has no name"):
        bef.dumps(ProgramDef({"": region._replace(name="")}))


def test_attributes_of_tfrt_are_read_by_their_types():
    def value(kind, data):
        return bef.loads(TINY.replace(bytes.fromhex("0806010009"), bytes((8, 6, 1, 0, kind)))
                         .replace(bytes.fromhex("0700000000000000"), data.ljust(8, b"\xcc")))
    cases = (*((kind, data, typed_number(number, dtypes.named(name))) for kind, name, data, number in (
        (1, "uint8", b"\xff", 255), (6, "int8", b"\xff", -1), (8, "int32", b"\xfe\xff\xff\xff", -2),
        (14, "float16", b"\0\x3c", 1.0), (15, "bfloat16", b"\x80\x3f", 1.0),
        (10, "float32", struct.pack("<f", 0.5), 0.5), (12, "complex64", struct.pack("<2f", 1, 2), 1 + 2j))),
             (16, b"\2\0\0\0hi", "hi"), (25, b"\x0b", dtypes.float64), (27, bytes(4), None), (30, bytes(4), ()))
    for kind, data, expected in cases:
        attribute = value(kind, data).program.functions["f"].kernels[0].attrs["a"]
        assert (attribute, type(attribute)) == (expected, type(expected))
    with pytest.raises(Unimplemented, match="attributes of type 29"):
        value(29, b"").program.functions["f"]


def test_unknown_sections_are_skipped():
    raw = bef.dumps(rich())
    more = put_header(Section.FUNCTION_FACTS, 5, len(raw))
    assert bef.dumps(bef.loads(raw + b"\x7f" + more[1:] + b"hello")) == raw


def test_a_file_without_the_optional_sections_is_refused_when_a_function_is_read():
    at = TINY.index(bytes.fromhex("0806010009"))
    functions = bef.loads(TINY[:at]).program.functions
    assert [*functions] == ["f"]
    with pytest.raises(Unimplemented, match="lacks the section RegisterTypes"):
        functions["f"]


# Damaged files

def test_every_truncation_is_a_typed_error_or_a_file_of_tfrt():
    raw = bef.dumps(rich())
    ends = {stop for _, stop in read_sections(memoryview(raw)).values()}
    for size in range(len(raw)):
        try:
            use(bef.loads(raw[:size]))
        except HealdError as error:
            assert isinstance(error, DataLoss | Unimplemented | InvalidArgument)  # noqa: PT017 - either is right
        else:
            assert size in ends


def test_every_mutant_of_a_byte_is_a_typed_error_or_a_program():
    raw, rng = bef.dumps(rich()), random.Random(7)  # noqa: S311 - the seed makes the mutants
    outcomes = Counter()
    for _ in range(3000):
        mutant = bytearray(raw)
        mutant[rng.randrange(len(raw))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        try:
            use(bef.loads(bytes(mutant)))
        except HealdError as error:
            outcomes[type(error)] += 1
        else:
            outcomes["a program"] += 1
    assert {*outcomes} <= {DataLoss, InvalidArgument, Unimplemented, "a program"}
    assert min(outcomes[DataLoss], outcomes["a program"]) > 500


def test_another_version_and_other_files_are_refused():
    with pytest.raises(Unimplemented, match="version 1 of BEF"):
        bef.loads(b"\x0b\xef\x01" + TINY[3:])
    for data in (b"", b"PK\3\4", b"\x0b"):
        with pytest.raises(DataLoss):
            bef.loads(data)
    with pytest.raises(InvalidArgument, match="bytes, got str"):
        bef.loads("text")


def test_a_count_beyond_the_section_is_refused_before_memory_is_taken():
    kernels = b"\2\x0c" + put_vbr(1 << 40)
    with pytest.raises(DataLoss, match="section Kernels, offset 6: it counts 1099511627776 items, and 0 bytes follow"):
        bef.loads(TINY.replace(bytes.fromhex("02040108"), kernels))


def test_a_register_that_nothing_defines_is_refused_when_its_function_is_read():
    wrong = bytearray(TINY)
    wrong[TINY.index(bytes.fromhex("08060100")) - 12] = 1  # the argument of k becomes its own result
    functions = bef.loads(bytes(wrong)).program.functions
    with pytest.raises(InvalidArgument, match="k uses register 1 before it is defined"):
        functions["f"]


def test_an_index_of_no_constant_is_refused_when_its_function_is_read():
    call = Call("heald.constant", (), (0,), {"index": 258})
    scalar = TensorMetadata(dtypes.float32, ())
    program = ProgramDef({"f": ProgramFunction("f", (), (scalar,), (call,), ())}, (np.float32(0),) * 259)
    raw = bef.dumps(program)
    assert bef.loads(raw).program.functions["f"].kernels[0].attrs["index"] == 258
    with pytest.raises(InvalidArgument, match="300 as attribute 'index', which is no index into the program's 259"):
        _ = bef.loads(raw.replace(struct.pack("<q", 258), struct.pack("<q", 300))).program.functions["f"]


def patched_file(program, section, change):
    """The file of a program, with the bytes of a section changed in place: `change` takes a bytearray."""
    raw = bytearray(bef.dumps(program))
    start, stop = read_sections(memoryview(raw))[section]
    part = raw[start:stop]
    change(part)
    assert len(part) == stop - start
    raw[start:stop] = part
    return bytes(raw)


def replace_once(old, new):
    """A change of the only place with these bytes."""
    def change(part):
        assert part.count(old) == 1
        part[:] = part.replace(old, new)

    return change


def test_kernels_that_overlap_are_refused():
    """Two calls without operands: the first, at offset 40, would be valid twice."""
    calls = (Call("k", (), ()), Call("k", (), ()))
    two = ProgramDef({"f": ProgramFunction("f", (), (), calls, ())})
    begins = bytes((3, 0, 0, 0, 40, 0, 0, 64, 0, 0))  # three kernels: offset, operands, stream
    for at in (40, 0, 44):
        raw = patched_file(two, Section.FUNCTIONS, replace_once(begins, begins[:7] + bytes((at,)) + begins[8:]))
        with pytest.raises(DataLoss, match="and the one before ends here"):
            bef.loads(raw).program.functions["f"]


@pytest.mark.parametrize(("index", "position"), [("argument", -3), ("result", -1)])
def test_types_of_the_index_that_differ_from_those_of_the_registers_are_refused(index, position):
    call = Call("k", (0,), (1,))
    two = ProgramDef({"f": ProgramFunction("f", ("x",), ("i32", "f32"), (call,), (1,))})

    def change(part):
        part[position] ^= 1

    with pytest.raises(DataLoss, match="the types of function 'f' differ from those of its registers"):
        bef.loads(patched_file(two, Section.FUNCTION_INDEX, change)).program.functions["f"]


def test_arguments_that_are_not_the_first_registers_are_refused():
    results = bytes.fromhex("0000000001000000 0200000000000000")  # users of the chain and of the argument, registers
    assert TINY.count(results) == 1
    raw = TINY.replace(results, results[:12] + bytes((1, 0, 0, 0)))
    with pytest.raises(DataLoss, match="the arguments of function 'f' are not its first registers"):
        bef.loads(raw).program.functions["f"]


def test_two_attributes_of_one_name_are_refused():
    def change(part):
        part[-1] = part[-2]

    raw = patched_file(program({"a": 7, "b": 7}), Section.ATTRIBUTE_NAMES, change)
    with pytest.raises(DataLoss, match="two attributes of one name"):
        bef.loads(raw).program.functions["main"]


def test_functions_that_begin_at_one_place_are_refused():
    body = ProgramFunction("f", (), (), (), ())
    raw = bef.dumps(ProgramDef({"f": body, "g": body._replace(name="g")}))
    start, stop = read_sections(memoryview(raw))[Section.FUNCTION_INDEX]
    rows = raw[start:stop]
    assert rows[0] == 2
    assert len(rows) == 1 + 2 * 5  # kind, offset, name, no arguments, no results
    for offset in (rows[2], 0):
        changed = rows[:7] + bytes((offset,)) + rows[8:]
        with pytest.raises(DataLoss, match="which is not after"):
            bef.loads(raw[:start] + changed + raw[stop:])


def test_an_entry_with_another_number_of_outputs_is_refused():
    port = Port("x", "x:0", TensorMetadata(dtypes.float32, ()))
    assert bef.loads(bef.dumps(CompiledModel(tiny(), (Entry("s", "f", (port,), (port,)),)))).entries
    for outputs in ((), (port, port)):
        with pytest.raises(DataLoss, match=rf"an entry has {len(outputs)} outputs, and its function 'f' returns 1"):
            bef.loads(bef.dumps(CompiledModel(tiny(), (Entry("s", "f", (port,), outputs),))))


def test_an_entry_of_no_function_is_refused():
    raw = bef.dumps(CompiledModel(tiny(), (Entry("s", "g", (), ()),)))
    with pytest.raises(DataLoss, match="names the function 'g'"):
        bef.loads(raw)


@pytest.mark.parametrize("model", [
    7, ProgramDef([]), ProgramDef({"f": ProgramFunction("g", (), (), (), ())})], ids=repr)
def test_only_well_formed_programs_are_written(model):
    with pytest.raises(InvalidArgument):
        bef.dumps(model)


def test_a_tuple_may_hold_arrays_and_none():
    array, none = survivor((np.arange(3), None))
    assert array.tolist() == [0, 1, 2]
    assert none is None


def test_a_name_with_a_zero_is_refused():
    with pytest.raises(InvalidArgument, match="zero character"):
        bef.dumps(program(code="a\0b"))


# Files

def test_a_file_that_cannot_be_read_or_written_is_a_typed_error(tmp_path):
    with pytest.raises(NotFound, match="no such file"):
        bef.load(tmp_path / "none.bef")
    with pytest.raises(InvalidArgument, match="folder"):
        bef.load(tmp_path)
    with pytest.raises(NotFound):
        bef.dump(tiny(), tmp_path / "none" / "p.bef")
    with pytest.raises(InvalidArgument):
        bef.dump(program({"a": object()}), tmp_path / "p.bef")
    assert not [*tmp_path.iterdir()]
    (tmp_path / "p.bef").write_bytes(TINY[:20])
    with pytest.raises(DataLoss, match=r"p\.bef: the file ends"):
        bef.load(tmp_path / "p.bef")


def test_a_host_program_is_written_as_its_definition():
    import heald

    host_program = tiny()
    assert bef.dumps(heald.HostProgram(host_program.functions)) == bef.dumps(host_program)


def test_the_loader_recognises_the_first_bytes_and_gives_the_program(tmp_path):
    from heald.runtime.contract.op_registry import OpRegistry

    path = tmp_path / "program"
    bef.dump(rich(), path)
    assert LOADER.recognise(path, path.read_bytes())
    assert not LOADER.recognise(path, b"\x0b\xef\1")
    source = LOADER.open(path, LoadOptions(OpRegistry()))
    assert source.describe().form == "BEF"
    assert not source.signatures
    assert not source.initial_state()
    assert [*source.program().functions] == ["body", "main"]
    with pytest.raises(InvalidArgument, match="a host program, not a graph"):
        source.graph()


def test_reading_a_file_imports_neither_graphs_nor_protobuf_nor_numpy(tmp_path):
    bef.dump(rich(), tmp_path / "p.bef")
    code = ("import sys, heald; m = heald.bef.load(sys.argv[1]); m.program.functions['body']; "
            "heavy = ('heald.graphs.graph', 'heald.graphs.protobuf', 'numpy', 'heald.runtime.host'); "
            "print(*[n for n in sys.modules if n.startswith(heavy)])")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "p.bef")], capture_output=True, text=True,
                          check=True)
    assert not done.stdout.strip()
