"""The kernels of shapes and host tensors: their values, and the texts that they print and fail with."""

from __future__ import annotations

import struct
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.programs import CHAIN, Body, program
from heald.errors import DataLoss, InvalidArgument, NotFound, PermissionDenied, ResourceExhausted
from heald.runtime.contract.host_kernel import HostPack
from hypothesis import given
from hypothesis import strategies as st

SHAPE, PARTIAL, TENSOR, STRING = "!ts.shape", "!ts.partial_shape", "!tfrt_tensor.tensor", "!tfrt.string"


def host_with(**options):
    host = heald.HostContext(work_queue="single_threaded", **options)
    host.registries.host_kernels.add_pack(HostPack("heald_mlir.kernels:register", "mlir"))
    return host


@pytest.fixture(scope="module")
def host():
    host_context = host_with()
    yield host_context
    host_context.close()


@pytest.fixture
def give(host):
    """`give(write)`: the results that `write(b)` names, of a program as built and of its BEF; they are equal."""
    def run_both_programs(write, on=host):
        b = Body()
        registers = write(b)
        results = registers if isinstance(registers, tuple | list) else (registers,)
        host_program = program(b.function("main", *results))
        read = heald.bef.loads(heald.bef.dumps(host_program)).program
        every = []
        for variant in (host_program, heald.HostProgram(read.functions)):
            results = variant.run("main", request=heald.RequestContext(on))
            assert on.await_values(results, timeout=20)
            every.append([r.error if r.is_error() else r.get() for r in results])
        return every[0]

    return run_both_programs


@pytest.fixture
def printed_lines(give, capsys):
    """`printed_lines(write)`: the lines that both programs print."""
    def lines(write):
        errors = [outcome for outcome in give(write) if isinstance(outcome, Exception)]
        out = capsys.readouterr().out.splitlines()
        assert out[: len(out) // 2] == out[len(out) // 2 :]
        return [*out[: len(out) // 2], *(error.message for error in errors)]

    return lines


def shape(b, *dims, code="ts.build_shape", kind=SHAPE):
    return b(code, results=kind, value=dims)


@pytest.mark.parametrize("dims", [(), (0,), (2, 3), (2**32 - 1, 1), (1,) * 10])
def test_shapes_print_their_dimensions(printed_lines, dims):
    assert printed_lines(lambda b: b("ts.print_shape", shape(b, *dims), b.chain(), results=CHAIN)) == [
        f"shape = [{', '.join(map(str, dims))}]"]


@given(st.lists(st.integers(0, 2**32 - 1), max_size=10))
def test_the_number_of_elements_is_the_product_in_64_bits(host, dims):
    b = Body()
    host_program = program(b.function("main", b("ts.get_num_elements", shape(b, *dims), results="i64")))
    (result,) = host_program.run("main", request=heald.RequestContext(host))
    with np.errstate(over="ignore"):
        assert result.get() == int(np.prod(np.array(dims, np.int64), dtype=np.int64))


def test_shapes_are_compared(give):
    assert give(lambda b: [b("ts.equal_shape", shape(b, 2, 3), shape(b, *other), results="i1")
                           for other in ((2, 3), (3, 2), (2, 3, 1))]) == [True, False, False]


def test_shapes_of_a_fixed_rank(printed_lines):
    def write(b):
        kind = "!ts.fixed_rank_shape.3"
        fixed = b("ts.as_fixed_rank_shape.3", shape(b, 1, 57, 92), results=kind)
        wrong = b("ts.as_fixed_rank_shape.3", shape(b, 1, 57), results=kind)
        return b("ts.print_fixed_rank_shape.3", fixed, b.chain(), results=CHAIN), wrong

    assert printed_lines(write) == ["fixed_rank_shape = [1, 57, 92]", "the shape [1, 57] has not the rank 3"]


def test_partial_shapes(printed_lines):
    def write(b):
        some = shape(b, 1, -1, 3, -1, code="ts.build_partial_shape", kind=PARTIAL)
        none = b("ts.build_unranked_partial_shape", results=PARTIAL)
        ranked = b("ts.to_partial_shape", shape(b, 4), results=PARTIAL)
        chain = b.chain()
        for partial_shape in (some, none, ranked):
            chain = b("ts.print_partial_shape", partial_shape, chain, results=CHAIN)
        b("ts.print_shape", b("ts.to_shape", ranked, results=SHAPE), chain, results=CHAIN)
        return chain, b("ts.to_shape", some, results=SHAPE), b("ts.to_shape", none, results=SHAPE)

    assert printed_lines(write) == [
        "partial_tensor_shape = [1, -1, 3, -1]", "partial_tensor_shape = Unknown rank", "partial_tensor_shape = [4]",
        "shape = [4]", "Unknown dimensions at following indices = [1, 3]", "Unknown rank"]


@pytest.mark.parametrize("code", ["ts.build_shape", "ts.build_partial_shape"])
def test_a_shape_has_no_dimensions_below_those_that_have_a_meaning(give, code):
    (error,) = give(lambda b: shape(b, -2, code=code, kind=SHAPE if code == "ts.build_shape" else PARTIAL))
    assert isinstance(error, InvalidArgument)


def tensor(b, name, dims, values):
    """A tensor with these values, and the chain behind it."""
    created = b(f"tfrt_dht.create_uninitialized_tensor.{name}.{len(dims)}", results=TENSOR, shape=tuple(dims))
    return created, b(f"tfrt_dht.set_tensor_with_constant_values.{name}", created, b.chain(), results=CHAIN,
                      values=tuple(values))


@pytest.mark.parametrize(("name", "dims", "values", "text"), [
    ("i32", (2, 2), (1, 2, 3, 4), "dtype = i32, shape = [2, 2], values = [1, 2, 3, 4]"),
    ("i32", (), (7,), "dtype = i32, shape = [], values = [7]"),
    ("i32", (0,), (), "dtype = i32, shape = [0], values = []"),
    ("f32", (3,), (0.1, -1.0, float("inf")),
     "dtype = f32, shape = [3], values = [1.000000e-01, -1.000000e+00, inf]"),
    ("f64", (1,), (1e300,), "dtype = f64, shape = [1], values = [1.000000e+300]"),
    ("ui64", (1,), (2**64 - 1,), "dtype = u64, shape = [1], values = [18446744073709551615]"),
    ("i1", (2,), (True, False), "dtype = i1, shape = [2], values = [1, 0]"),
    ("i8", (2,), (-1, 65), "dtype = i8, shape = [2], values = [-1, 65]"),
    ("bf16", (1,), (1.0,), "dtype = bf16, shape = [1], values = [bf16(16256)]"),
    ("f16", (1,), (1.0,), "dtype = f16, shape = [1], values = [fp16(15360)]"),
    ("i32", (17,), range(17), f"dtype = i32, shape = [17], values = [{', '.join(map(str, range(16)))}, ... ]"),
])
def test_dense_tensors_print_their_first_elements(printed_lines, name, dims, values, text):
    assert printed_lines(lambda b: b("tfrt_dht.print_tensor", *tensor(b, name, dims, values), results=CHAIN)) == [
        f"DenseHostTensor {text}"]


def test_a_tensor_is_filled_in_place(printed_lines):
    def write(b):
        filled, chain = tensor(b, "f32", (2,), (1.0, 2.0))
        chain = b("tfrt_dht.fill_tensor_with_constant.f32", filled, chain, results=CHAIN, value=0.5)
        chain = b("tfrt_dht.print_tensor_shape", filled, chain, results=CHAIN)
        return b("tfrt_dht.print_tensor", filled, chain, results=CHAIN)

    assert printed_lines(write) == ["shape = [2]",
                                    "DenseHostTensor dtype = f32, shape = [2], values = [5.000000e-01, 5.000000e-01]"]


def test_tensors_are_compared(give):
    next_but_one = float(np.nextafter(np.nextafter(np.float32(1), np.float32(2)), np.float32(2)))
    far = float(np.nextafter(np.float32(next_but_one), np.float32(2)))

    def write(b):
        merged = lambda *pairs: b("tfrt.merge.chains", *(p[1] for p in pairs), results=CHAIN)  # noqa: E731
        results = []
        for code, name, first, last in [
            ("tensor_equal.i32", "i32", [1, 2], [1, 2]), ("tensor_equal.i32", "i32", [1, 2], [1, 3]),
            ("tensor_equal.i32", "i32", [1, 2], [1]), ("tensor_allclose.f32", "f32", [1.0, -0.0], [next_but_one, 0.0]),
            ("tensor_allclose.f32", "f32", [1.0], [far]), ("tensor_allclose.f32", "f32", [1.0], [float("nan")]),
        ]:
            x, y = tensor(b, name, (len(first),), first), tensor(b, name, (len(last),), last)
            results.append(b(f"tfrt_dht.{code}", x[0], y[0], merged(x, y), results=("i1", CHAIN))[0])
        return results

    assert give(write) == [True, False, False, True, False, False]


@pytest.mark.parametrize(("write", "message"), [
    (lambda b: tensor(b, "i32", (2, 2), (1, 2))[1], "2 values are given for 4 elements"),
    (lambda b: b("tfrt_dht.fill_tensor_with_constant.f32", *tensor(b, "i32", (2,), (1, 2)), results=CHAIN, value=1.0),
     "the argument is a dense tensor of i32 with shape [2], expected a dense tensor of f32"),
    (lambda b: b("tfrt_dht.fill_tensor_with_constant.i32", *tensor(b, "i32", (1,), (1,)), results=CHAIN, value=(1, 2)),
     "one value of i32 is needed, 2 are given"),
    (lambda b: b("tfrt_dht.create_uninitialized_tensor.i32.2", results=TENSOR, shape=(2,)),
     "the shape [2] is not one of rank 2"),
    (lambda b: b("tfrt_sht.create_tensor", results=TENSOR, shape=(3,), values=("a",)),
     "1 strings are given for the shape [3]"),
    (lambda b: b("coo.convert_coo_to_dht.i32.2", *tensor(b, "i32", (1, 2), (1, 2)), results=(TENSOR, CHAIN))[0],
     "the argument is a dense tensor, expected a sparse tensor"),
])
def test_tensors_that_do_not_fit_are_errors(give, write, message):
    (error,) = give(write)
    assert isinstance(error, InvalidArgument)
    assert error.message == message


def test_memory_that_is_short_is_an_error(give):
    small = host_with(config={"limits": {"memory": 1 << 20}})
    (error,) = give(lambda b: b("tfrt_dht.create_uninitialized_tensor.f32.1", results=TENSOR, shape=(1 << 20,)), small)
    assert isinstance(error, ResourceExhausted)
    assert error.message == "Cannot allocate tensor"
    small.close()


def test_string_tensors_print(printed_lines):
    def write(b):
        created = b("tfrt_sht.create_tensor", results=TENSOR, shape=(2,), values=("a", "b"))
        return b("tfrt_dht.print_tensor", created, b.chain(), results=CHAIN)

    assert printed_lines(write) == ['StringHostTensor shape = [2], values = ["a", "b"]']


def test_sparse_tensors_print_and_become_dense_again(printed_lines, give):
    def write(b):
        dense, chain = tensor(b, "i32", (2, 3), (0, 5, 0, 7, 0, 0))
        sparse, chain = b("coo.convert_dht_to_coo.i32.2", dense, chain, results=(TENSOR, CHAIN))
        chain = b("tfrt_dht.print_tensor", sparse, chain, results=CHAIN)
        again, chain = b("coo.convert_coo_to_dht.i32.2", sparse, chain, results=(TENSOR, CHAIN))
        same, chain = b("tfrt_dht.tensor_equal.i32", dense, again, chain, results=("i1", CHAIN))
        equal, _ = b("coo.tensor_equal.i32.2", sparse, sparse, chain, results=("i1", CHAIN))
        return same, equal

    assert printed_lines(write) == [
        "CooHostTensor dtype = i32, shape = [2, 3], indices = [0, 1, 1, 0], values = [5, 7]"]
    assert give(write) == [True, True]


def file_of(*tensors):
    """A file of tensors, each (number of the element type, array)."""
    parts = [struct.pack("<QBB6x", array.ndim, number, 0) + struct.pack(f"<{array.ndim}Q", *array.shape)
             + array.tobytes() for number, array in tensors]
    offsets, at = [], 8 * (1 + len(parts))
    for part in parts:
        offsets.append(at)
        at += len(part)
    return struct.pack(f"<{1 + len(parts)}Q", len(parts), *offsets) + b"".join(parts)


@pytest.fixture
def reading(tmp_path):
    """`reading(data, index, code)`: the value of a tensor in a file of this content, in a permitted folder."""
    host = host_with(config={"files": {"read": [str(tmp_path)]}})

    def result(data, index=0, code="i32.2", path=tmp_path / "tensors.btf"):
        if data is not None:
            path.write_bytes(data)
        b = Body(STRING, "i32")
        host_program = program(b.function("main", b(f"btf.read_dense_tensor.{code}", 0, 1, results=TENSOR)))
        (value,) = host_program.run("main", str(path), index, request=heald.RequestContext(host))
        assert host.await_values([value], timeout=20)
        return value.error if value.is_error() else value.get()

    yield result
    host.close()


TWO = file_of((2, np.arange(6, dtype=np.int32).reshape(2, 3)), (4, np.ones((1, 2, 1, 1), np.float32)))


def test_tensors_are_read_from_files(reading):
    np.testing.assert_array_equal(reading(TWO), np.arange(6, dtype=np.int32).reshape(2, 3))
    np.testing.assert_array_equal(reading(TWO, 1, "f32.4"), np.ones((1, 2, 1, 1), np.float32))
    assert reading(file_of((2, np.empty((0, 3), np.int32)))).shape == (0, 3)


def test_a_file_that_is_missing_or_not_permitted_is_an_error(reading, tmp_path):
    error = reading(None)
    assert isinstance(error, NotFound)
    assert error.message == f"failed to open file {tmp_path / 'tensors.btf'} for reading"
    denied = reading(None, path=Path("/") / "elsewhere.btf")
    assert isinstance(denied, PermissionDenied)


@pytest.mark.parametrize(("index", "code", "message"), [
    (2, "i32.2", "the index is 2, and the file has 2 tensors"),
    (-1, "i32.2", "the index is -1, and the file has 2 tensors"),
    (1, "i32.2", "tensor 1 has element type f32 and rank 4, expected i32 and 2"),
    (0, "i32.1", "tensor 0 has element type i32 and rank 2, expected i32 and 1"),
])
def test_a_tensor_that_a_file_does_not_have_is_an_error(reading, index, code, message):
    error = reading(TWO, index, code)
    assert isinstance(error, InvalidArgument)
    assert error.message == message


def test_a_file_that_ends_early_or_counts_too_much_is_data_loss(reading):
    for length in range(0, 8 + 8 + 8 + 16 + 16 + 24, 7):
        assert isinstance(reading(TWO[:length]), DataLoss), length
    huge = bytearray(file_of((2, np.zeros((1, 1), np.int32))))
    huge[32:40] = struct.pack("<Q", 2**63)
    assert isinstance(reading(bytes(huge)), DataLoss)
