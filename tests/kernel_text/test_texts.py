"""Texts without a runtime: the same for the same problem, in every dialect, and nothing in the tables is unused."""

import re

import numpy as np
import pytest
from harness.kernel_text_nodes import node
from harness.run_op import REGISTRIES
from heald.errors import Unimplemented
from heald.runtime.values import dtypes
from heald_kernel_text import (
    ALIASES,
    CUDA_GPU,
    DIALECTS,
    NODES,
    OPENCL_CPU,
    OPENCL_GPU,
    Dialect,
    Epilogue,
    Literal,
    Step,
    bias,
    elementwise,
    has,
    matmul,
)
from heald_kernel_text.c_text import literal
from heald_kernel_text.element_types import ELEMENTS
from heald_kernel_text.elementwise_ops import FLOAT_TO_INTEGER, OPS
from heald_kernel_text.reduction import reduce
from heald_kernel_text.reduction_ops import REDUCTIONS

F = dtypes.float32
C_DIALECTS = [dialect for dialect in DIALECTS.values() if isinstance(dialect, Dialect)]
TARGETS = [OPENCL_CPU, OPENCL_GPU, CUDA_GPU]


def names(macros):
    return [re.match(r"\w+", macro)[0] for macro in macros]


def test_dialects_have_the_same_macros_and_types():
    first, *others = C_DIALECTS
    for other in others:
        assert list(other.macros) == list(first.macros)
        assert list(other.types) == [name for name in first.types if name not in other.lacks]


def test_every_macro_is_used():
    texts = [elementwise(CUDA_GPU, (Step("Neg", (0,)),), [(d, (4,))]).launches[0].source for d in ELEMENTS
             if has("Neg", d)]
    texts += [text.source for target in TARGETS for text in matmul(target, F, (9, 9), (9, 9)).launches]
    texts.append(reduce(CUDA_GPU, "Max", F, (9,), (0,)).launches[0].source)
    uses = "\n".join(re.sub(r"#define (\w+)", "", text) for text in texts)
    for dialect in C_DIALECTS:
        assert not [name for name in names(dialect.macros) if not re.search(rf"\b{name}\b", uses)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op", OPS)
def test_every_row_gives_text_for_the_types_of_its_classes(target, op):
    row = OPS[op]
    kinds = set("".join(row.trees))
    assert kinds <= set("fiub")
    for dtype in ELEMENTS:
        operands = [(dtypes.bool_, (3,))] * row.typed_by + [(dtype, (3,))] * (row.arity - row.typed_by)
        step = Step(op, tuple(range(row.arity)))
        assert has(op, dtype) == (dtype.kind in kinds)
        if not has(op, dtype):
            with pytest.raises(Unimplemented, match=op):
                elementwise(target, (step,), operands)
            continue
        (text,) = elementwise(target, (step,), operands).launches
        body = text.source[text.source.index("KERNEL(256") :]
        assert not re.search(r"\b[TUDwxyz]\b", body), "a word of the table was not replaced"
        assert text.source.count("(") == text.source.count(")")


def test_casts_to_every_integer_are_in_the_table():
    assert set(FLOAT_TO_INTEGER) == {d.name for d in ELEMENTS if d.kind in "iu"}


def test_all_ops_are_ops_and_their_type_attributes_and_host_inputs_exist():
    for op, row in NODES.items():
        definition = REGISTRIES.ops.get(op)
        assert set(row.dtypes) <= set(definition.attrs)
        assert set(row.host) <= {i.name for i in definition.inputs}
    for op, host in ALIASES.items():
        assert set(host) <= {i.name for i in REGISTRIES.ops.get(op).inputs}
    assert set(REDUCTIONS) <= set(NODES)


# CPU kernels of elements without text: results of another type, functions that neither dialect has
WITHOUT_TEXT = {"NextAfter", "PopulationCount"}


def test_every_elementwise_op_with_a_cpu_kernel_has_text():
    from heald_cpu.kernels import activations, arithmetic, bitwise, elementwise, gradients
    from heald_tf_ops.metadata import elementwise as metadata  # noqa: F401 - registers them

    rows = (*elementwise.SAME_TYPE, *elementwise.IN_STEPS, *arithmetic.OF_FLOATS, *arithmetic.OF_INTEGERS)
    ops = {row[0] for row in (*rows, *arithmetic.ZERO_DECIDES)}
    for table in (elementwise.LOGICAL, elementwise.COMPARISON, elementwise.PREDICATES, elementwise.EQUALITY,
                  elementwise.UPPER_BOUND, activations.IN_STEPS, bitwise.SAME_TYPE, bitwise.SHIFTS,
                  gradients.OF_INTEGERS_TOO, gradients.OF_ACTIVATIONS, gradients.BY_OUTPUT, gradients.BY_CONJUGATE):
        ops |= set(table)
    ops |= {"AccumulateNV2", "AddN", "ApproximateEqual", "ClipByValue", "Erf", "Erfc", "LeakyRelu", "LeakyReluGrad"}
    assert ops - WITHOUT_TEXT <= set(NODES)


@pytest.mark.parametrize("target", TARGETS)
def test_text_depends_on_the_structure_of_a_problem_alone(target):
    def sources(n):
        relu = bias(F, Step("Relu", (2,)))
        plans = (matmul(target, F, (8 * n, 8), (8, 5 * n), epilogue=relu), reduce(target, "Sum", F, (n, n), (1,)),
                 elementwise(target, (Step("AddV2", (0, 1)),), [(F, (9, 300 * n)), (F, (300 * n,))]))
        return [(text.name, text.source) for plan in plans for text in plan.launches]

    assert sources(2) == sources(2) == sources(3)


def test_devices_without_double_never_see_the_word():
    for target in TARGETS:
        assert "double" not in matmul(target, F, (3, 4), (4, 5)).launches[-1].source
        assert "double" in matmul(target, dtypes.float64, (3, 4), (4, 5)).launches[-1].source


def test_a_long_chain_is_no_deeper_than_a_short_one():
    chain = [Step("Neg", (i,)) for i in range(5000)]
    (text,) = elementwise(OPENCL_GPU, chain, [(F, (4,))]).launches
    assert text.name == "Neg_Neg_Neg_Neg_Neg_Neg_and_4994_more"
    assert "v5000 = -v4999;" in text.source


def test_an_empty_problem_has_no_launch():
    assert elementwise(OPENCL_CPU, (Step("Neg", (0,)),), [(F, (3, 0))]).launches == ()
    assert matmul(OPENCL_CPU, F, (0, 4), (4, 5)).launches == ()


def test_launches_over_constants_run_once_and_others_in_each_run():
    x, y = np.zeros((2, 3, 4, 5), np.float32), np.zeros((4, 2, 5, 6), np.float32)
    plan = NODES["Einsum"].make(OPENCL_CPU, node("Einsum", [x, y], {"T": F, "equation": "abcd,cade->abce", "N": 2}))
    assert [text.name for text in plan.launches] == ["copy", "copy", "pack_panels", "Einsum", "copy"]
    assert plan.once(lambda _: False) == []
    assert [text.name for text in plan.once(lambda number: number == 1)] == ["copy", "pack_panels"]
    cell = [np.zeros(shape, np.float32) for shape in ((1, 2), (1, 3), (1, 3), (5, 12), (3,), (3,), (3,), (12,))]
    plan = NODES["LSTMBlockCell"].make(CUDA_GPU, node("LSTMBlockCell", cell, {"T": F}))
    assert plan.once(lambda number: number > 2) == []  # the product reads scratch that each run writes


def test_batches_that_broadcast_in_more_than_one_way_are_unimplemented():
    with pytest.raises(Unimplemented, match="more than one way"):
        matmul(OPENCL_GPU, F, (2, 3, 4, 5), (3, 5, 6))


@pytest.mark.parametrize(("op", "shapes", "attrs"), [
    ("MaxPool", ((1, 4, 4, 4),), {"ksize": (1, 1, 1, 2), "strides": (1, 1, 1, 2), "padding": "SAME"}),
    ("Conv2D", ((1, 4, 4, 4), (1, 1, 4, 4)),
     {"strides": (1, 1, 1, 1), "padding": "SAME", "data_format": "NCHW"}),
    ("DepthwiseConv2dNative", ((1, 7, 7, 2), (3, 3, 2, 1)),
     {"strides": (1, 1, 1, 1), "padding": "SAME", "dilations": (1, 1, 1, 2)}),
    ("Equal", ((2,), (3,)), {"incompatible_shape_error": False}),
    ("NotEqual", ((2, 1, 3), (2, 2)), {"incompatible_shape_error": False}),
])
def test_an_op_without_a_text_is_unimplemented(op, shapes, attrs):
    b = node(op, [np.zeros(shape, np.float32) for shape in shapes], {"T": F} | attrs)
    with pytest.raises(Unimplemented):
        NODES[op].make(OPENCL_CPU, b)


@pytest.mark.parametrize(("value", "dtype", "text"), [
    (0.1, dtypes.float64, "(f64)0x1.999999999999ap-4"), (float("-inf"), F, "(f32)(-POSITIVE_INFINITY)"),
    (0.5, dtypes.float16, "(f32)0x1.0000000000000p-1f"), (-(2**63), dtypes.int64, "(i64)0x8000000000000000"),
    (2**64 - 1, dtypes.uint64, "(u64)0xffffffffffffffff"), (True, dtypes.bool_, "(u8)1"),
])
def test_literals_are_exact(value, dtype, text):
    assert literal(value, dtype) == text


def test_an_op_that_is_not_in_the_table_is_unimplemented():
    with pytest.raises(Unimplemented, match="no kernel text for Nonsense of float32"):
        elementwise(OPENCL_CPU, (Step("Nonsense", (0, Literal(1))),), [(F, (4,))])
    with pytest.raises(Unimplemented, match="complex64"):
        elementwise(OPENCL_CPU, (Step("Neg", (0,)),), [(dtypes.complex64, (4,))])


def test_an_epilogue_without_steps_writes_the_sums():
    plain = matmul(OPENCL_GPU, F, (3, 4), (4, 5))
    assert plain == matmul(OPENCL_GPU, F, (3, 4), (4, 5), epilogue=Epilogue())
