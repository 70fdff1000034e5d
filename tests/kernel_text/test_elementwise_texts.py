"""Elementwise texts on a device: every op of the table, broadcasting, fused chains, casts."""

import ml_dtypes
import numpy as np
import pytest
from harness.kernel_text_nodes import assert_near, check, numbers
from harness.run_op import REGISTRIES, run_op
from heald.errors import Unimplemented
from heald.runtime.values import dtypes
from heald_kernel_text import OPENCL_CPU, OPENCL_GPU, Literal, Step, elementwise, has
from heald_kernel_text.element_types import ELEMENTS
from heald_kernel_text.elementwise_ops import MORE_OPERANDS, OPS
from heald_kernel_text.expression import node_step
from hypothesis import given, settings
from hypothesis import strategies as st
from workers.run_plan import run_plan

pytestmark = pytest.mark.usefixtures("driver")

INF, NAN = np.inf, np.nan
F = dtypes.float32
TYPES = [np.dtype(t) for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.int8,
                               np.uint8, np.int16, np.uint16, np.uint32, np.uint64, np.bool_)]
fast = settings(max_examples=10, deadline=None)  # each compiles a kernel


def truncate(x, y):
    """The quotient; of integers without its fraction."""
    return x / y if x.dtype.kind == "f" else np.where(y == 0, 0, (x - np.fmod(x, y)) // np.where(y == 0, 1, y))


# NumPy functions for ops that the CPU refuses with these operands, or has no kernel for in all types here.
ELSEWHERE = {
    "Add": np.add, "FloorDiv": np.floor_divide, "FloorMod": np.mod, "Div": truncate,
    "TruncateDiv": lambda x, y: np.trunc(truncate(x, y)), "Mod": np.fmod, "TruncateMod": np.fmod,
    "SquaredDifference": lambda x, y: (x - y) * (x - y),
}


def samples(dtype):
    """Pairs of operands with the special values of the type."""
    if dtype == np.bool_:
        return np.array([0, 0, 1, 1], dtype), np.array([0, 1, 0, 1], dtype)
    if dtypes.of_numpy(dtype).kind == "f":
        some = [-7.5, -2.0, -1.0, -0.75, 0.0, 0.5, 1.0, 2.0, 3.25, 6.0, 8.5, INF, -INF, NAN]
    else:
        info = np.iinfo(dtype)
        some = [info.min, info.min + 1, 0, 1, 2, 3, 7, 100, info.max] + ([-1, -2, -7, -100] if info.min else [])
    x, y = np.meshgrid(np.array(some, dtype), np.array(some, dtype))
    return x.reshape(-1), y.reshape(-1)


DIVISIONS = ("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod")


def attributes(op, dtype):
    attrs = REGISTRIES.ops.get(op).attrs
    return ({"T": dtypes.of_numpy(dtype)} if "T" in attrs else {}) | {
        attribute: attrs[attribute].default for attribute in MORE_OPERANDS.get(op, ()) if isinstance(attribute, str)}


def reference(op, operands):
    with np.errstate(all="ignore"):
        if op in ELSEWHERE:
            wide = [x.astype(np.float64) if dtypes.of_numpy(x.dtype).kind == "f" else x for x in operands]
            return np.asarray(ELSEWHERE[op](*wide)).astype(operands[-1].dtype)
        return run_op(op, list(operands), attributes(op, operands[-1].dtype))[0]


def has_result(op, dtype, operands):
    """True for the elements with a result in TensorFlow: integer division by zero is an error, and so on."""
    x, y = operands[-2:] if len(operands) > 1 else (operands[0], None)
    if op in DIVISIONS:
        if dtypes.of_numpy(dtype).kind == "f":
            return np.isfinite(x) & np.isfinite(y) & (y != 0)
        return (y != 0) & ~((x == np.iinfo(dtype).min) & (y == -1) & (np.iinfo(dtype).min < 0))
    if op == "Pow":
        with np.errstate(invalid="ignore"):
            return np.isfinite(x) & np.isfinite(y) & (x > 0)
    return np.ones(len(x), bool)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_op_of_the_table_gives_what_the_cpu_gives(dtype):
    """All in one kernel: it has an output for each op."""
    x, y = samples(dtype)
    kind = dtypes.of_numpy(dtype)
    ops = [op for op in OPS if has(op, kind)]
    condition = x.view(np.uint8).reshape(len(x), -1)[:, 0] % 2 == 0
    inputs = [x, y, condition]
    arguments = {op: (2, 0, 1) if OPS[op].typed_by else (0, 1, 1) if op == "ClipByValue" else
                 tuple(range(OPS[op].arity - len(MORE_OPERANDS.get(op, ())))) for op in ops}
    steps = [node_step(op, attributes(op, dtype), len(arguments[op])) for op in ops]
    steps = [step._replace(args=(*arguments[op], *step.args[len(arguments[op]) :])) for op, step in
             zip(ops, steps, strict=True)]
    wants = [(reference(op, [inputs[i] for i in arguments[op]])) for op in ops]
    plan = elementwise(OPENCL_CPU, steps, [(dtypes.of_numpy(i.dtype), i.shape) for i in inputs],
                       outputs=range(3, 3 + len(ops)))
    gots = run_plan(plan, inputs, [(want.dtype, want.shape) for want in wants])
    for op, got, want in zip(ops, gots, wants, strict=True):
        where = has_result(op, dtype, [inputs[i] for i in arguments[op]])
        try:
            assert_near(got[where], want[where])
        except AssertionError as error:
            raise AssertionError(f"{op}: {error}") from None


def test_vectors_of_floats_give_what_single_elements_give(driver):
    """On a CPU, kernels of float32 alone compute 16 elements at a time."""
    x, y = samples(np.dtype(np.float32))
    steps = [node_step(op, attributes(op, x.dtype), row.arity - len(MORE_OPERANDS.get(op, ())))
             for op, row in OPS.items() if has(op, F) and not row.bool_result and not row.typed_by]
    steps = [step._replace(args=(0, 1, 1)) if step.op == "ClipByValue" else step for step in steps]
    # Oclgrind computes wrong selections where several ops of one kernel share a vector of conditions.
    group_size = 16 if driver == "Oclgrind" else len(steps)
    for group in (steps[i : i + group_size] for i in range(0, len(steps), group_size)):
        _compare_vectors(group, x, y)


def _compare_vectors(steps, x, y):
    operands, results = [(F, x.shape), (F, y.shape)], [(x.dtype, x.shape)] * len(steps)
    plan = elementwise(OPENCL_CPU, steps, operands, outputs=range(2, 2 + len(steps)))
    assert "vload16" in plan.launches[0].source
    gots = run_plan(plan, [x, y], results)
    wants = run_plan(elementwise(OPENCL_GPU, steps, operands, outputs=range(2, 2 + len(steps))), [x, y], results)
    for step, got, want in zip(steps, gots, wants, strict=True):
        where = has_result(step.op, x.dtype, [x, y])
        np.testing.assert_allclose(got[where], want[where], 1e-5, 1e-6, err_msg=step.op)


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_casts_are_those_of_the_cpu(source):
    x = samples(source)[0]
    if dtypes.of_numpy(source).kind == "f":
        more = [300, -300, 7e4, 3e9, -3e9, 5e9, 1e10, 1e19, -1e19, 1e20, 2.0**63, 1.99, -0.99]
        with np.errstate(over="ignore"):
            x = np.concatenate([x, np.array(more).astype(source)])
    targets = list(ELEMENTS)
    steps = [Step("Cast", (0,), target) for target in targets]
    plan = elementwise(OPENCL_CPU, steps, [(dtypes.of_numpy(source), x.shape)], outputs=range(1, 1 + len(targets)))
    gots = run_plan(plan, [x], [(t.numpy, x.shape) for t in targets])
    for target, got in zip(targets, gots, strict=True):
        want = run_op("Cast", [x], {"SrcT": dtypes.of_numpy(source), "DstT": target})[0]
        assert_near(got, want, 1e-12 if target.kind == "f" else None)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_bounds_clip_in_any_order(dtype):
    x = np.array([-5, 0, 3, 7, 9], dtype)
    for low, high in ((0, 7), (7, 0), (3, 3)):
        check(OPENCL_CPU, "ClipByValue", [x, np.array(low, dtype), np.array(high, dtype)])
    if dtype == np.float32:
        for low, high in ((NAN, 2), (2, NAN)):
            check(OPENCL_CPU, "ClipByValue", [np.append(x, dtype(NAN)), dtype(low), dtype(high)])


def test_sums_of_many_tensors_add_in_their_order():
    rng = np.random.default_rng(1)
    for count in (1, 2, 5):
        check(OPENCL_CPU, "AddN", [numbers(rng, (3, 20), np.float32) for _ in range(count)], N=count)


def test_gradients_of_other_shapes_have_no_text():
    with pytest.raises(Unimplemented, match="shapes"):
        check(OPENCL_CPU, "SigmoidGrad", [np.ones((4, 1), np.float32), np.ones((1, 4), np.float32)])


@st.composite
def broadcasts(draw):
    """A shape, and shapes that fit into it."""
    output = draw(st.lists(st.integers(1, 5), max_size=4))
    shapes = []
    for _ in range(3):
        keeps = [draw(st.booleans()) for _ in output]
        shape = [n if keep else 1 for n, keep in zip(output, keeps, strict=True)]
        shapes.append(tuple(shape[draw(st.integers(0, keeps.index(True) if any(keeps) else len(shape))) :]))
    return shapes


@fast
@given(broadcasts(), st.integers(0, 1000), st.sampled_from(TYPES[:6]))
def test_fused_chains_broadcast_as_numpy_does(shapes, seed, dtype):
    rng = np.random.default_rng(seed)
    a, b, c = (numbers(rng, shape, dtype) for shape in shapes)
    kind = dtypes.of_numpy(dtype)
    steps = [Step("AddV2", (0, 1)), Step("Maximum", (3, 2)), Step("Sub", (4, Literal(1))), Step("Greater", (5, 0)),
             Step("Select", (6, 5, 1))]
    low = np.maximum(a + b, c) - np.asarray(1, dtype)
    want = [low, low > a, np.where(low > a, low, b)]
    plan = elementwise(OPENCL_CPU, steps, [(kind, s) for s in shapes], outputs=(5, 6, 7))
    got = run_plan(plan, [a, b, c], [(w.dtype, want[0].shape) for w in want])
    for one, other in zip(got, want, strict=True):
        assert_near(one, np.asarray(other))


@pytest.mark.parametrize("shapes", [((3, 300), (300,)), ((2, 3, 4, 5), (2, 1, 1, 5)), ((4, 1, 3), (1, 5, 1)), ((), ())])
def test_operands_meet_in_every_form(shapes):
    rng = np.random.default_rng(1)
    for target in (OPENCL_CPU, OPENCL_GPU):
        check(target, "Sub", [numbers(rng, shape, np.float32) for shape in shapes])


def test_the_condition_of_select_chooses_rows():
    rng = np.random.default_rng(1)
    x, y = numbers(rng, (3, 4), np.int32), numbers(rng, (3, 4), np.int32)
    check(OPENCL_CPU, "Select", [np.array([True, False, True]), x, y], T=dtypes.int32)
    check(OPENCL_CPU, "SelectV2", [np.array([[True], [False], [True]]), x, y[:1]], T=dtypes.int32)


def test_two_byte_floats_are_rounded_once_at_the_end_of_a_chain():
    x = np.float16([2048])
    chain = [Step("AddV2", (0, Literal(1))), Step("Sub", (1, Literal(2048)))]
    (got,) = run_plan(elementwise(OPENCL_CPU, chain, [(dtypes.float16, (1,))]), [x], [(np.float16, (1,))])
    assert got == 1
