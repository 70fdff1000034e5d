"""NumPy evaluates the trees of ops to the results of TensorFlow, and the texts of all dialects are as recorded.

tests/data/elementwise_results.json has results of tensorflow-cpu 2.21 in base64: of each op over all pairs of a type's
operands, and of casts. tests/data/kernel_texts.json has the digests of texts; `harness.text_corpus` records them.
"""

import json
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
from harness.evaluate_tree import TYPES, evaluate
from harness.kernel_text_nodes import TOLERANCE
from harness.text_corpus import FILE, digests
from heald.api import dtypes
from heald_kernel_text.c_text import expression, literal
from heald_kernel_text.element_types import ELEMENTS, number_tree
from heald_kernel_text.elementwise_ops import BOOL_TO_BOOL, CAST, FLOAT_TO_INTEGER, MORE_OPERANDS, OPS, TO_BOOL
from heald_kernel_text.reduction_ops import REDUCTIONS
from heald_kernel_text.tree import I32, Group, T, Word, both, choose, either, fold, function, instantiate, negation

RECORDED = json.loads((Path(__file__).parents[1] / "data/elementwise_results.json").read_text())
DIVISIONS = ("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod")
DEFAULTS = {"alpha": np.float32(0.2), "tolerance": np.float32(1e-5)}
a, b, c = map(Word, "abc")


def array(text, dtype):
    return np.frombuffer(b64decode(text), dtype)


def operands(dtype):
    return array(RECORDED["operands"][dtype], dtype)


def pairs(op, dtype):
    y, x = (side.reshape(-1) for side in np.meshgrid(operands(dtype), operands(dtype)))
    if op in DIVISIONS and x.dtype.kind in "iu":
        y = np.where((y == 0) | (y == np.array(-1).astype(dtype)), np.array(3, dtype), y)
    return x, y


def types_of(dtype):
    element = ELEMENTS[dtypes.named(dtype)]
    return {"T": TYPES[element.register_type], "U": TYPES.get(element.unsigned)}


def arguments(op, x, y):
    if OPS[op].typed_by:
        return [x.view(np.uint8).reshape(len(x), -1)[:, 0] % 2 == 0, x, y]
    if op == "ClipByValue":
        return [x, y, y[::-1]]
    more = [DEFAULTS[name] if isinstance(name, str) else np.float32(name) for name in MORE_OPERANDS.get(op, ())]
    return [*[x, y][: OPS[op].arity - len(more)], *more]


@pytest.mark.parametrize(("op", "dtype"), [(op, dtype) for op, rows in RECORDED["results"].items() for dtype in rows])
def test_the_tree_of_an_op_gives_the_results_of_tensorflow(op, dtype):
    x, y = pairs(op, dtype)
    kind = dtypes.named(dtype).kind
    tree = next(tree for classes, tree in OPS[op].trees.items() if kind in classes)
    got = evaluate(tree, dict(zip("xyzw", arguments(op, x, y), strict=False)) | types_of(dtype))
    want = array(RECORDED["results"][op][dtype], bool if OPS[op].bool_result else dtype)
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, TOLERANCE["float32"], TOLERANCE["float32"])
    else:
        np.testing.assert_array_equal(got.astype(want.dtype), want)


def test_every_op_of_the_table_has_recorded_results():
    assert set(RECORDED["results"]) == set(OPS)


@pytest.mark.parametrize(("source", "target"), [(s, t) for s, row in RECORDED["casts"].items() for t in row])
def test_the_tree_of_a_cast_gives_the_results_of_tensorflow(source, target):
    x = operands(source)
    if source == "float32":
        x = np.float32([0, 0.5, 6.9, 100.25] if target.startswith("u") else [-7.5, -0.5, 0, 0.5, 6.9, 100.25])
    tree = CAST if target != "bool" else BOOL_TO_BOOL if source == "bool" else TO_BOOL
    if source == "float32" and target in FLOAT_TO_INTEGER:
        tree = FLOAT_TO_INTEGER[target]
    got = evaluate(tree, {"x": x, "D": np.dtype(target), **types_of(source)})
    np.testing.assert_array_equal(got, array(RECORDED["casts"][source][target], target))


@pytest.mark.parametrize("op", REDUCTIONS)
def test_the_tree_of_a_reduction_combines_two_values(op):
    combine = {"All": np.logical_and, "Any": np.logical_or, "Max": np.maximum, "Mean": np.add, "Min": np.minimum,
               "Prod": np.multiply, "Sum": np.add}[op]
    for dtype in ("bool",) if op in ("All", "Any") else ("float32", "int32", "int8", "uint32"):
        x, y = pairs(op, dtype)
        tree = next(tree for classes, tree in REDUCTIONS[op].trees.items() if dtypes.named(dtype).kind in classes)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(evaluate(tree, {"a": x, "v": y} | types_of(dtype)), combine(x, y))


@pytest.mark.parametrize("value", [0, 1, -1, 127, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**64 - 1, 0.1, -2.5,
                                   float("inf"), float("-inf"), float("nan")])
def test_a_literal_has_the_value_of_its_number(value):
    for dtype, bounds in ((dtypes.int64, (-(2**63), 2**63)), (dtypes.uint64, (0, 2**64)), (dtypes.float64, None),
                          (dtypes.float32, None)):
        if bounds is None or (isinstance(value, int) and bounds[0] <= value < bounds[1]):
            np.testing.assert_array_equal(evaluate(number_tree(value, dtype), {}), np.array(value).astype(dtype.numpy))


@pytest.mark.parametrize(("tree", "text"), [
    (a - (b - c), "a - (b - c)"), (a - b - c, "a - b - c"), ((a + b) * c, "(a + b) * c"), (a + b * c, "a + b * c"),
    (-(a + b), "-(a + b)"), (-a * b, "-a * b"), (I32(a) + 1, "(i32)a + 1"), (I32(a + 1), "(i32)(a + 1)"),
    ((a < b) != (b < c), "(a < b) != (b < c)"), (both(either(a, b), c), "(a || b) && c"),
    (negation(a == b), "!(a == b)"), (choose(a, choose(b, c, 0), 1), "a ? (b ? c : 0) : 1"),
    (choose(a, 1, choose(b, c, 0)), "a ? 1 : b ? c : 0"), (choose(a, b, c) + 1, "(a ? b : c) + 1"),
    ((a + b)[c], "(a + b)[c]"), (a[b + c] << 2, "a[b + c] << 2"), ((a & b) == c, "(a & b) == c"),
    (function("exp")(a, choose(a, b, c)), "exp(a, a ? b : c)"), (Group(a), "(a)"), (T(~a) ^ b, "(T)~a ^ b"),
], ids=str)
def test_a_text_has_the_parentheses_that_c_needs(tree, text):
    assert expression(tree) == text


def test_words_and_types_have_the_names_that_the_text_gives_them():
    tree = instantiate(T(a) + b * function("sizeof")(Word("T")), {"a": Word("v0")}, {"T": "f32"})
    assert expression(tree) == "(f32)v0 + b * sizeof(f32)"
    assert literal(0.5, dtypes.float32) == "(f32)0x1.0000000000000p-1f"


def test_an_object_that_is_no_node_is_named():
    with pytest.raises(TypeError, match="str is no node"):
        fold("a + b", None)


def test_the_texts_of_all_dialects_are_the_recorded_ones():
    recorded, now = json.loads(FILE.read_text()), digests()
    changed = {f"{target}: {op}" for target in recorded.keys() | now.keys()
               for op in recorded.get(target, {}).keys() | now.get(target, {}).keys()
               if recorded.get(target, {}).get(op) != now.get(target, {}).get(op)}
    assert not changed, "texts changed; if that is on purpose: PYTHONPATH=tests python -m harness.text_corpus"
