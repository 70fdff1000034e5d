"""Constants, arithmetic and casts: C's numbers of the given width."""

from __future__ import annotations

import ctypes
import math
import struct

import heald
import numpy as np
import pytest
from builders.programs import CHAIN, Body, program
from heald.errors import InvalidArgument
from hypothesis import given
from hypothesis import strategies as st
from runtime.host_kernels.conftest import CONFIG, payloads

I32 = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31)])
I64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 2**53 + 1, 2**63 - 1, -(2**63), 2**24 + 1])
F32 = st.floats(width=32, allow_subnormal=False)
F64 = st.floats(allow_subnormal=False)


@pytest.fixture(scope="module")
def kernel():
    """`kernel(code, types, results, *arguments)`: the results of one call."""
    host = heald.HostContext(config=CONFIG, work_queue="single_threaded")
    programs = {}

    def call(code, types, results, *arguments):
        if code not in programs:
            b = Body(*types)
            programs[code] = program(b.function("main", *b(code, *range(len(types)), results=results)))
        return payloads(programs[code].run("main", *arguments, request=heald.RequestContext(host)))

    yield call
    host.close()


def same(a, b, least=2.0**-1022):
    """Equal, or both not a number; or a result below the least normal number, which runs flush to zero."""
    return a == b or (math.isnan(a) and math.isnan(b)) or (not a and abs(b) < least)


@given(I32, I32)
def test_sums_of_32_bits_wrap(kernel, a, b):
    assert kernel("tfrt.add.i32", ("i32", "i32"), ("i32",), a, b) == [ctypes.c_int32(a + b).value]


@given(I64, I64)
def test_sums_of_64_bits_wrap(kernel, a, b):
    assert kernel("tfrt.add.i64", ("i64", "i64"), ("i64",), a, b) == [ctypes.c_int64(a + b).value]


@given(I32, I32)
def test_quotient_and_remainder_truncate_and_make_up_the_dividend(kernel, a, b):
    quotient, *remainders = kernel("tfrt.div.i32", ("i32", "i32"), ("i32", "i32"), a, b)
    if not b:
        assert isinstance(quotient, InvalidArgument)
        assert quotient.message == "Divide by zero"
    else:
        assert (quotient * b + remainders[0] - a) % 2**32 == 0  # the quotient of -2**31 and -1 wraps
        assert abs(remainders[0]) < abs(b)
        assert remainders[0] == 0 or (remainders[0] < 0) == (a < 0)


@given(F32, F32)
def test_floats_of_32_bits_round_once(kernel, a, b):
    x, y = np.float32(a), np.float32(b)
    with np.errstate(all="ignore"):
        for name, want in {"add": x + y, "multiply": x * y}.items():
            (got,) = kernel(f"tfrt.{name}.f32", ("f32", "f32"), ("f32",), a, b)
            assert same(got, float(want), 2.0**-126)
        (got,) = kernel("tfrt.div.f32", ("f32", "f32"), ("f32",), a, b)
        assert same(got, float(x / y), 2.0**-126) if b else got.message == "Divide by zero"


@given(F64, F64)
def test_floats_of_64_bits_are_those_of_python(kernel, a, b):
    assert same(kernel("tfrt.add.f64", ("f64", "f64"), ("f64",), a, b)[0], a + b)
    assert same(kernel("tfrt.multiply.f64", ("f64", "f64"), ("f64",), a, b)[0], a * b)
    assert same(kernel("tfrt.minimum.f64", ("f64", "f64"), ("f64",), a, b)[0], b if b < a else a)


@given(I64)
def test_integers_are_cast_to_the_nearest_float(kernel, a):
    assert kernel("tfrt.cast.i64_to_f32", ("i64",), ("f32",), a) == [float(np.int64(a).astype(np.float32))]
    assert kernel("tfrt.cast.i64_to_f64", ("i64",), ("f64",), a) == [float(a)]


@given(F64)
def test_floats_are_cast_towards_zero(kernel, a):
    inside = math.isfinite(a) and -(2**63) <= a < 2**63
    assert kernel("tfrt.cast.f64_to_i64", ("f64",), ("i64",), a) == [math.trunc(a) if inside else -(2**63)]
    narrow = struct.unpack("f", struct.pack("f", a))[0] if abs(a) < 1e38 else 0.5
    assert kernel("tfrt.cast.f32_to_i64", ("f32",), ("i64",), narrow) == [
        math.trunc(narrow) if abs(narrow) < 2**63 else -(2**63)]


@pytest.mark.parametrize(("name", "kind", "value", "result"), [
    ("i1", "i1", True, True), ("i32", "i32", -(2**31), -(2**31)), ("i64", "i64", 2**63 - 1, 2**63 - 1),
    ("ui32", "ui32", 2**32 - 1, 2**32 - 1), ("ui64", "ui64", 2**64 - 1, 2**64 - 1), ("f16", "f16", 1.5, 1.5),
    ("bf16", "bf16", 1.5, 1.5), ("f32", "f32", 0.1, 0.10000000149011612), ("f64", "f64", 0.1, 0.1),
    ("complex64", "complex<f32>", 1 + 2j, 1 + 2j), ("complex128", "complex<f64>", 1j, 1j),
])
def test_constants_are_their_attributes(give, name, kind, value, result):
    b = Body()
    assert give([b.function("main", b(f"tfrt.constant.{name}", results=kind, value=value))]) == [result]


@pytest.mark.parametrize(("code", "kind", "value"), [
    ("tfrt.constant.ui32", "ui32", -1), ("tfrt.constant.i32", "i32", 2**31), ("tfrt.constant.i1", "i1", 1),
])
def test_a_constant_beyond_its_type_is_refused(run, code, kind, value):
    b = Body()
    with pytest.raises(InvalidArgument, match="as attribute 'value', which is"):
        run(program(b.function("main", b(code, results=kind, value=value))))


def test_comparisons_give_truth_values_and_may_be_ordered_by_a_chain(give):
    b = Body("i32", "i32")
    chain = b.chain()
    assert give([b.function("main", b("tfrt.equal.i32", 0, 1, results="i1"),
                            b("tfrt.lessequal.i32", 0, 1, results="i1"),
                            b("tfrt.lessequal.i32", 1, 0, chain, results="i1"))], 1, 2) == [False, True, False]


def test_prints_have_the_form_of_their_type(give, capsys):
    b = Body()
    chain = b.chain()
    for name, value in {"i1": True, "i32": -7, "i64": 2**40, "f32": 0.1, "f64": -1.5}.items():
        number = b(f"tfrt.constant.{name}", results=name, value=value)
        chain = b(f"tfrt.print.{name}", number, chain, results=CHAIN)
    give([b.function("main", chain)])
    assert capsys.readouterr().out == "int1 = 1\nint32 = -7\nint64 = 1099511627776\nf32 = 0.100000\nf64 = -1.500000\n"


class Lines:
    """A stream that keeps the text written before each flush."""

    def __init__(self):
        self.flushed, self._open = [], ""

    def write(self, text):
        self._open += text

    def flush(self):
        self.flushed.append(self._open)
        self._open = ""


def test_a_host_prints_to_its_own_stream_line_by_line(capsys):
    lines = Lines()
    host = heald.HostContext(work_queue="single_threaded", output=lines)
    b = Body()
    chain = b.chain()
    for value in (1, 2):
        chain = b("tfrt.print.i32", b.constant(value), chain, results=CHAIN)
    program(b.function("main", chain)).run("main", request=heald.RequestContext(host))
    assert lines.flushed == ["int32 = 1\n", "int32 = 2\n"]
    assert capsys.readouterr().out == ""
    host.close()
    with pytest.raises(InvalidArgument, match="output is a int, which has no method 'write'"):
        heald.HostContext(output=1)
