"""Dialects that no device of this repository has: Python runs trees, Metal compiles as C++, WGSL has its own words."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness.kernel_text_nodes import assert_near
from harness.run_op import run_op
from harness.run_python import PYTHON, run_plan
from harness.text_corpus import texts
from heald.api import dtypes
from heald.errors import Unimplemented
from heald_kernel_text import METAL_GPU, WGSL_GPU, Literal, Step, elementwise, matmul
from heald_kernel_text.arg_extreme import arg_extreme
from heald_kernel_text.copies import fill, part, tile, transpose
from heald_kernel_text.gather import gather
from heald_kernel_text.reduction import reduce
from heald_kernel_text.softmax import softmax
from heald_kernel_text.strided_view import dense_view

F = dtypes.float32
STUBS = Path(__file__).parent / "metal"  # the names of Metal's library
HARNESS = Path(__file__).parents[1] / "harness"
METAL_MACRO = re.compile(r"#define (\w+)")


def numbers(shape, dtype=np.float32):
    return np.random.default_rng(0).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize(("shapes", "want"), [
    (((3, 4), (3, 4)), (3, 4)), (((2, 1, 3), (4, 1)), (2, 4, 3)), (((), (5,)), (5,)),
    (((2, 3, 4), (2, 1, 4)), (2, 3, 4)),
])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8])
def test_chains_run_in_a_dialect_of_python(shapes, want, dtype):
    x, y = (numbers(shape, dtype) for shape in shapes)
    steps = (Step("AddV2", (0, 1)), Step("Relu", (2,)), Step("Sub", (3, Literal(2))), Step("Greater", (4, 0)),
             Step("Select", (5, 4, 1)))
    kind = dtypes.of_numpy(np.dtype(dtype))
    plan = elementwise(PYTHON, steps, [(kind, shape) for shape in shapes])
    (got,) = run_plan(plan, [x, y], [(dtype, want)])
    low = np.maximum(x + y, 0) - dtype(2)
    np.testing.assert_array_equal(got, np.where(low > x, low, y))


@pytest.mark.parametrize(("shape", "axes"), [((3, 4), (1,)), ((3, 4), (0,)), ((2, 3, 2, 3), (1, 3)), ((300,), (0,)),
                                             ((2, 3, 2, 3), (0, 2)), ((2, 0), (1,)), ((1, 5000), (1,))])
@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min", "Prod"])
def test_reductions_run_in_a_dialect_of_python(op, shape, axes):
    for dtype in (np.float32, np.int32):
        if 0 in shape and op != "Sum":
            continue
        x = np.clip(numbers(shape, dtype), -2, 2)
        kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
        (got,) = run_plan(reduce(PYTHON, op, dtypes.of_numpy(x.dtype), shape, axes), [x], [(x.dtype, kept)])
        (want,) = run_op(op, [x, np.int32(axes)], {"T": dtypes.of_numpy(x.dtype), "keep_dims": False})
        assert_near(got, want)


@pytest.mark.parametrize("op", ["All", "Any"])
def test_reductions_of_bools_run_in_a_dialect_of_python(op):
    x = numbers((4, 3), np.int32) > -5
    (got,) = run_plan(reduce(PYTHON, op, dtypes.bool_, (4, 3), (1,)), [x], [(bool, (4,))])
    np.testing.assert_array_equal(got, getattr(np, op.lower())(x, 1))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_place_of_an_extreme_runs_in_a_dialect_of_python(axis):
    x = numbers((2, 3, 4))
    for op, find in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
        want = find(x, axis)
        (got,) = run_plan(arg_extreme(PYTHON, op, F, x.shape, axis, dtypes.int64), [x], [(np.int64, want.shape)])
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_runs_in_a_dialect_of_python(op):
    for columns in (1, 5, 300):
        x = numbers((2, columns)) / np.float32(4)
        (got,) = run_plan(softmax(PYTHON, op, F, 2, columns), [x], [(np.float32, x.shape)])
        assert_near(got, run_op(op, [x], {"T": F})[0])


def test_copies_run_in_a_dialect_of_python():
    x = numbers((3, 4, 5)).astype(np.uint32)
    view = dense_view(x.shape).view_of_index([slice(None, None, -1), slice(3, 0, -2), slice(1, 4)])
    for plan, want in ((transpose(PYTHON, 4, x.shape, (2, 0, 1)), x.transpose(2, 0, 1)),
                       (tile(PYTHON, 4, x.shape, (2, 1, 3)), np.tile(x, (2, 1, 3))),
                       (part(PYTHON, 4, view), x[::-1, 3:0:-2, 1:4]),
                       (fill(PYTHON, F, 7, 2.5), np.full(7, np.float32(2.5)))):
        (got,) = run_plan(plan, [x], [(want.dtype, want.shape)])
        np.testing.assert_array_equal(got, want)


def test_picks_run_in_a_dialect_of_python():
    x, index = numbers((3, 4, 5)).astype(np.uint32), np.int32([0, 3, -1, 9, 2])
    plan = gather(PYTHON, 4, dtypes.int32, batch=1, outer=3, length=4, inner=5, picks=5)
    (got,) = run_plan(plan, [x, index], [(np.uint32, (3, 5, 5))])
    is_inside = (index >= 0) & (index < 4)
    np.testing.assert_array_equal(got, np.where(is_inside[:, None], x[:, np.where(is_inside, index, 0)], 0))


def test_the_dialect_of_python_is_a_short_one():
    assert len((HARNESS / "python_dialect.py").read_text().splitlines()) < 80


# Texts of dialects without a device


def test_metal_texts_compile_as_cpp(tmp_path):
    """The stubs in metal/ have the names of Metal's library. One text in ten of each op is compiled."""
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler (g++)")
    chosen = {f"{op} {text.name}": text for number, (op, text) in enumerate(texts(METAL_GPU)) if number % 10 == 0}
    parts = ["#include <metal_stdlib>"]
    for number, text in enumerate(chosen.values()):
        source = text.source.replace("#include <metal_stdlib>", "")
        parts += [f"namespace text{number} {{\n{source}\n}}", *(f"#undef {m}" for m in METAL_MACRO.findall(source))]
    program = tmp_path / "texts.cpp"
    program.write_text("\n".join(parts))
    command = ["g++", "-std=c++20", "-w", "-fsyntax-only", f"-I{STUBS}", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def test_metal_kernels_have_slots_and_positions():
    (text,) = elementwise(METAL_GPU, (Step("Neg", (0,)),), [(F, (4,))]).launches
    assert "GLOBAL const f32* RESTRICT x0 [[buffer(0)]], GLOBAL f32* RESTRICT y0 [[buffer(1)]], " in text.source
    assert "constant i64& n0 [[buffer(2)]], uint3 global_id [[thread_position_in_grid]]" in text.source


def test_wgsl_texts_have_bindings_and_no_words_of_c():
    count = 0
    for _, text in texts(WGSL_GPU):
        count += 1
        body = text.source[text.source.index("@compute") :]
        assert not re.search(r"\b(const|size_t|GLOBAL\w*|LOCAL\w*|KERNEL|BARRIER|float|int)\b|\?|\+\+", body)
        assert body.count("(") == body.count(")")
        assert body.count("{") == body.count("}")
        buffers = sum(argument.kind != "size" for argument in text.arguments)
        numbers = any(argument.kind == "size" for argument in text.arguments)
        assert re.findall(r"@binding\((\d+)\)", text.source) == [*map(str, range(buffers + numbers))]
    assert count > 400


def test_a_kernel_in_wgsl():
    (text,) = elementwise(WGSL_GPU, (Step("Relu", (0,)),), [(F, (4,))]).launches
    assert text.source.endswith("""\
fn Relu(@builtin(global_invocation_id) global_id: vec3<u32>,
  @builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {
  let n0 = sizes[0].x;
  let c: u32 = global_id[0];
  if (c >= u32(n0)) {
  return;
  }
  let o: u32 = c;
  let v0: f32 = x0[o];
  let v1: f32 = select(v0, f32(0), v0 < 0);
  y0[o] = v1;
}
""")


@pytest.mark.parametrize(("make", "reason"), [
    (lambda: elementwise(WGSL_GPU, (Step("Neg", (0,)),), [(dtypes.float64, (4,))]), "f64"),
    (lambda: elementwise(WGSL_GPU, (Step("Neg", (0,)),), [(dtypes.float16, (4,))]), "float16|f16"),
    (lambda: elementwise(WGSL_GPU, (Step("BitwiseAnd", (0, 1)),), [(dtypes.uint8, (4,))] * 2), "uint8"),
    (lambda: elementwise(WGSL_GPU, (Step("Cast", (0,), dtypes.int64),), [(F, (4,))]), "i64"),
    (lambda: elementwise(WGSL_GPU, (Step("Erf", (0,)),), [(F, (4,))]), "erf"),
    (lambda: elementwise(WGSL_GPU, (Step("Neg", (0,)),), [(F, (1 << 25,))]), "groups in one dimension"),
    (lambda: elementwise(WGSL_GPU, (Step("Neg", (0,)),), [(F, (1 << 20, 1 << 13))]), "groups|32 bits"),
    (lambda: reduce(WGSL_GPU, "Sum", F, (2, 1 << 32), (1,)), "32 bits"),
    (lambda: reduce(WGSL_GPU, "Mean", dtypes.int32, (4,), (0,)), "i64"),
    (lambda: arg_extreme(WGSL_GPU, "ArgMax", dtypes.bool_, (3, 4), 1, dtypes.int32), "order"),
    (lambda: transpose(WGSL_GPU, 8, (3, 4), (1, 0)), "uint64"),
    (lambda: gather(WGSL_GPU, 4, dtypes.int64, batch=1, outer=3, length=4, inner=5, picks=5), "int64"),
    (lambda: matmul(WGSL_GPU, F, (9, 9), (9, 9)), "MatMul in WGSL"),
    (lambda: elementwise(METAL_GPU, (Step("Neg", (0,)),), [(dtypes.float64, (4,))]), "f64"),
    (lambda: elementwise(METAL_GPU, (Step("Erfc", (0,)),), [(F, (4,))]), "erfc"),
])
def test_a_kernel_that_a_dialect_has_no_words_for_is_unimplemented(make, reason):
    with pytest.raises(Unimplemented, match=reason):
        make()
