"""Inputs, outputs, elements and dimensions that a few bytes say are very many take little time and memory."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import HealdError, InvalidArgument, ResourceExhausted
from heald.graphs.compiler.resolve import Resolved, resolve
from heald.runtime.contract.op import LARGEST_OUTPUT_COUNT, infer
from heald.runtime.linker.folding import is_worth_folding
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import MOST_DIMS, constant_info, info
from heald_conformance.golden import Case, cases
from heald_tf_ops.metadata import RULES
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

OPS = runtime().host.registries.ops
MANY = 10**12
OF_TEXT = {"Fingerprint"}  # the one op that reads a string
READING = sorted(op for op, rule in RULES.items() if rule.values and op in cases().keys() - OF_TEXT)


class Splat(np.ndarray):
    """Very many equal elements, which fail a test that looks at all of them."""

    def refuse(self, *_args, **_options):
        if self.size > LARGEST_OUTPUT_COUNT:
            raise AssertionError(f"{self.size} elements were looked at")

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        for operand in inputs:
            if isinstance(operand, Splat):
                operand.refuse()
        plain = [np.asarray(operand) for operand in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __iter__(self):
        self.refuse()
        return iter(np.asarray(self))

    @property
    def flat(self):
        self.refuse()
        return np.asarray(self).flat

    def tolist(self):
        self.refuse()
        return np.asarray(self).tolist()

    def __reduce__(self):
        raise AssertionError("a splat was copied")

    copy = astype = tobytes = refuse


def splat(element, shape):
    return np.broadcast_to(np.asarray(element).view(Splat), shape, subok=True)


def long_versions(case: Case):
    """The inputs' metadata with one input, whose elements the metadata function reads, of very many elements."""
    entry = case.graph().nodes["op"]
    resolved = resolve(case.graph(), OPS)[entry.name]
    if not isinstance(resolved, Resolved):
        return
    for index, tensor in enumerate(resolved.input_tensors):
        old = case.inputs[index]
        if tensor.arg not in RULES[case.op].values or old.dtype == object:
            continue
        infos = [info(t.dtype, x.shape) for t, x in zip(resolved.input_tensors, case.inputs, strict=True)]
        element = old.reshape(-1)[0] if old.size else np.zeros((), old.dtype)
        for shape in ((MANY,), (MANY, *old.shape[1:])):
            infos[index] = constant_info(splat(element, shape))
            yield resolved, list(infos)
            infos[index] = info(tensor.dtype, shape)  # nothing known of the elements
            yield resolved, list(infos)
            yield resolved, [x if n == index else info(x.dtype, None) for n, x in enumerate(infos)]


def infer_outputs(entry, infos):
    """Metadata of the outputs; nothing where the inputs are refused."""
    try:
        return infer(entry.op, OPS.metadata(entry.op), entry.attrs, infos)
    except HealdError:
        return ()


@pytest.mark.parametrize("op", READING)
def test_metadata_functions_look_at_few_elements_of_a_long_input(op):
    tried = 0
    for case in cases()[op][:3]:
        for entry, infos in long_versions(case):
            tried += 1
            assert all(output.rank is None or output.rank <= MOST_DIMS for output in infer_outputs(entry, infos))
    assert tried


@given(st.integers(0, 400))
def test_a_shape_is_as_long_as_a_tensor_has_dimensions(length):
    ones = constant_info(np.ones(length, np.int32))
    if length <= MOST_DIMS:
        assert ones.vector() == (1,) * length
    else:
        with pytest.raises(InvalidArgument, match=f"{length} elements are given"):
            ones.vector()


@given(hnp.arrays(np.int8, hnp.array_shapes(max_dims=3, max_side=3, min_side=0)), st.integers(1, 3))
def test_distinct_elements_are_all_elements(array, repeats):
    repeated = np.broadcast_to(array, (repeats, *array.shape))
    distinct = constant_info(repeated).distinct()
    assert set(distinct.flat) == set(repeated.flat)
    assert distinct.size <= max(array.size, repeated.size // repeats)


def test_distinct_elements_of_an_unknown_value_are_unknown():
    assert info(dtypes.int32, (3,)).distinct() is None


def entry_of(op, inputs, **attrs):
    """The node over two constants, resolved, or its error."""
    nodes = [const("c", np.zeros(4, np.float32)), const("a", 0, np.int32)]
    return resolve(graph(*nodes, node("op", op, *inputs, **attrs)), OPS)["op"]


@pytest.mark.parametrize(("op", "inputs", "attrs"), [
    ("AddN", ["c", "c"], {"N": MANY}),
    ("ConcatV2", ["c", "c", "a"], {"N": MANY, "Tidx": dtypes.int32}),
    ("Pack", ["c"], {"N": MANY}),
    ("ShapeN", ["c"], {"N": MANY}),
])
def test_inputs_are_counted_before_they_are_listed(op, inputs, attrs):
    error = entry_of(op, inputs, T=dtypes.float32, **attrs)
    assert isinstance(error, InvalidArgument)
    assert f"takes {MANY + len(inputs) - inputs.count('c')} inputs" in str(error)


@pytest.mark.parametrize(("op", "inputs", "name"), [
    ("Split", ["a", "c"], "num_split"), ("Unpack", ["c"], "num"),
])
@pytest.mark.parametrize("count", [LARGEST_OUTPUT_COUNT + 1, MANY])
def test_outputs_that_a_number_counts_have_a_limit(op, inputs, name, count):
    error = entry_of(op, inputs, T=dtypes.float32, **{name: count})
    assert isinstance(error, ResourceExhausted)
    assert error.node == "op"
    assert error.op == op
    assert f"attribute '{name}' is {count}" in str(error)


def test_the_most_outputs_are_possible():
    entry = entry_of("Split", ["a", "c"], T=dtypes.float32, num_split=LARGEST_OUTPUT_COUNT)
    assert len(entry.output_tensors) == LARGEST_OUTPUT_COUNT


def test_outputs_that_are_as_many_as_the_inputs_have_no_limit():
    entry = entry_of("ShapeN", ["c"] * (LARGEST_OUTPUT_COUNT + 1), T=dtypes.float32, N=LARGEST_OUTPUT_COUNT + 1)
    assert len(entry.output_tensors) == LARGEST_OUTPUT_COUNT + 1


@pytest.mark.parametrize(("op", "shape", "attrs"), [
    ("Diag", (1,) * 200, {}), ("Pack", (1,) * MOST_DIMS, {"N": 1, "axis": 0}),
])
def test_an_output_of_more_dimensions_than_a_tensor_has_is_refused(op, shape, attrs):
    definition = OPS.get(op)
    with pytest.raises(InvalidArgument, match="dimensions, a tensor has at most 254"):
        infer(definition, OPS.metadata(definition), {"T": dtypes.float32, **attrs}, [info(dtypes.float32, shape)])


@pytest.mark.parametrize(("op", "x", "values"), [
    ("Fill", None, [2**62, 2]), ("BroadcastTo", (1, 1), [2**62, 2]), ("Tile", (4, 4), [2**62, 1]),
])
def test_an_output_of_more_elements_than_int64_counts_is_refused(op, x, values):
    definition = OPS.get(op)
    lengths = constant_info(np.array(values, np.int64))
    inputs = [lengths, info(dtypes.float32, ())] if x is None else [info(dtypes.float32, x), lengths]
    with pytest.raises(InvalidArgument, match="more than 2\\*\\*63 - 1 elements"):
        infer(definition, OPS.metadata(definition), {"T": dtypes.float32}, inputs)


@pytest.mark.parametrize("equation", ["a" * 10000 + "->a", "a->" + "a" * 10000, "->" * 10000])
def test_a_long_einsum_equation_is_refused_in_a_short_text(equation):
    definition = OPS.get("Einsum")
    with pytest.raises(InvalidArgument) as caught:
        infer(definition, OPS.metadata(definition), {"T": dtypes.float32, "N": 1, "equation": equation},
              [info(dtypes.float32, (2,))])
    assert len(str(caught.value)) < 200


def test_a_splat_is_folded_only_where_its_array_is_small():
    axes, total = constant_info(np.zeros(1, np.int32)), info(dtypes.float32, ())
    assert is_worth_folding([constant_info(np.ones(10**6, np.float32)), axes], [total])
    assert is_worth_folding([constant_info(np.broadcast_to(np.float32(1), (1000,))), axes], [total])
    assert not is_worth_folding([constant_info(np.broadcast_to(np.float32(1), (10**7,))), axes], [total])


def test_a_splat_of_strings_is_folded_only_where_its_array_is_small():
    text = np.full((), b"a", object)
    assert is_worth_folding([constant_info(np.broadcast_to(text, (10,)))], [info(dtypes.bool_, ())])
    assert not is_worth_folding([constant_info(np.broadcast_to(text, (10**7,)))], [info(dtypes.bool_, ())])


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("op", "sizes"), [("Conv2DBackpropInput", 0), ("Conv2DBackpropFilter", 1), ("AvgPoolGrad", 0)])
def test_a_shape_of_no_elements_is_no_unknown_shape(op, sizes, is_known):
    sizes_in = const("sizes", [], np.int32) if is_known else placeholder("sizes", (0,), dtypes.int32)
    image, gradient = placeholder("x", (1, 4, 4, 2)), placeholder("g", (1, 4, 4, 2))
    inputs = [image, gradient]
    inputs.insert(sizes, sizes_in)
    if op == "AvgPoolGrad":
        inputs.remove(image)
    more = {"ksize": [1, 2, 2, 1]} if op == "AvgPoolGrad" else {}
    node_under_test = node("out", op, *(input_node.name for input_node in inputs), strides=[1, 1, 1, 1],
                           padding="SAME", **more)
    session = heald.Session(graph(*inputs, node_under_test))
    feeds = {input_node.name: np.ones((1, 4, 4, 2), np.float32) for input_node in inputs if input_node is not sizes_in}
    feeds |= {} if is_known else {"sizes": np.zeros(0, np.int32)}
    with pytest.raises(InvalidArgument, match="sizes must have|must be 4 lengths"):
        session.run("out", feeds)
