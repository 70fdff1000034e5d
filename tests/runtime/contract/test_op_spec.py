"""OpSpec reads the notation of TensorFlow's REGISTER_OP into the same signatures as the op table's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from heald.api import OpSpec, ValueInfo, info
from heald.errors import InvalidArgument, NotFound
from heald.runtime.contract.hookspecs import Contribution
from heald.runtime.contract.op import REQUIRED, OpDef, infer
from heald.runtime.contract.op_registry import OpRegistry
from heald.runtime.host.registries import Registries
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import constant_info
from heald_tf_ops.plugin import OPS

SAME_AS_TENSORFLOWS = [
    OpSpec("Relu6", ["features: T"], ["activations: T"],
           ["T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"]),
    OpSpec("AddN", ["inputs: N * T"], ["sum: T"],
           ["N: int >= 1", "T: {half, bfloat16, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, "
            "int64, complex64, complex128, qint8, quint8, qint16, quint16, qint32, variant}"]),
    OpSpec("IdentityN", ["input: T"], ["output: T"], ["T: list(type) >= 1"]),
    OpSpec("LeakyRelu", ["features: T"], ["activations: T"],
           ["alpha: float = 0.2", "T: {half, bfloat16, float, double} = DT_FLOAT"]),
    OpSpec("Assign", ["ref: Ref(T)", "value: T"], ["output_ref: Ref(T)"],
           ["T: type", "validate_shape: bool = true", "use_locking: bool = true"]),
    OpSpec("StringJoin", ["inputs: N * string"], ["output: string"], ["N: int >= 0", "separator: string = ''"]),
    OpSpec("StridedSlice", ["input: T", "begin: Index", "end: Index", "strides: Index"], ["output: T"],
           ["T: type", "Index: {int16, int32, int64}", "begin_mask: int = 0", "end_mask: int = 0",
            "ellipsis_mask: int = 0", "new_axis_mask: int = 0", "shrink_axis_mask: int = 0"]),
    OpSpec("MaxPool", ["input: T"], ["output: T"],
           ["T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
            "ksize: list(int) >= 4", "strides: list(int) >= 4", "padding: {'SAME', 'VALID', 'EXPLICIT'}",
            "explicit_paddings: list(int) = []", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"]),
]


@pytest.mark.parametrize("spec", SAME_AS_TENSORFLOWS, ids=lambda spec: spec.name)
def test_an_op_written_in_short_notation_equals_tensorflows(spec: OpSpec) -> None:
    written, recorded_op = spec.definition(), OPS[spec.name]
    assert written.inputs == recorded_op.inputs
    assert written.outputs == recorded_op.outputs
    for name, attr in recorded_op.attrs.items():
        written_attr = written.attrs[name]
        assert written_attr.type == attr.type, name
        assert (written_attr.minimum, written_attr.default) == (attr.minimum, attr.default), name
        assert set(written_attr.allowed or ()) == set(attr.allowed or ()), name
    assert set(written.attrs) == set(recorded_op.attrs)


def test_an_argument_expands_by_type_number_or_list() -> None:
    spec = OpSpec("A", ["x: float", "xs: N * T", "many: L"], ["y: T"], ["N: int", "T: type", "L: list(type)"])
    op = spec.definition()
    attrs = {"N": 2, "T": dtypes.int8, "L": [dtypes.string, dtypes.bool_]}
    assert [(t.arg, t.dtype.name) for t in op.expand_inputs(attrs)] == [
        ("x", "float32"), ("xs", "int8"), ("xs", "int8"), ("many", "string"), ("many", "bool")]
    assert op.output_index("y", 0, attrs) == 0
    assert op.output_index("z", 0, attrs) == -1
    assert op.attrs["N"].default is REQUIRED


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (OpSpec("A", ["x"]), "cannot read the argument 'x' of op A .*write it as 'x: T'"),
        (OpSpec("A", ["x: T"]), "'T' is not a data type"),
        (OpSpec("A", attrs=["T"]), "cannot read the attribute 'T' of op A .*write it as 'T: {half, float}'"),
        (OpSpec("A", attrs=["n: number"]), "'number' is not a kind of attribute.*known: string, int"),
        (OpSpec("A", attrs=["T: {half, flaot}"]), "'flaot' is not a data type"),
        (OpSpec("A", attrs=["n: int = twelve"]), "'twelve' is not a default of type int"),
        (OpSpec("A", ["x: float"], values=["y"]), "`values` names 'y', which is no input of A"),
    ],
)
def test_wrong_notation_is_refused_with_what_was_written(spec: OpSpec, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        spec.definition()


def test_the_metadata_function_of_a_plugins_op_is_used() -> None:
    registry = OpRegistry()
    op = OpSpec("MyCo>Gelu", ["x: T"], ["y: T"], ["T: {half, float}"], metadata=lambda _, x: x).definition()
    registry.add(op, "myco")
    (result,) = infer(op, registry.metadata(op), {"T": dtypes.float32}, [info(dtypes.float32, (2, None))])
    assert result.shape == (2, None)
    assert registry.plugin_of("MyCo>Gelu") == "myco"
    assert "MyCo>Gelu" in registry
    with pytest.raises(NotFound, match=r"no op is called 'MyCo>Gelo'.*did you mean MyCo>Gelu"):
        registry.get("MyCo>Gelo")


def test_a_metadata_function_that_gives_an_input_back_says_nothing_of_the_outputs_elements() -> None:
    op = OpSpec("MyCo>Twice", ["x: T"], ["y: T", "z: T"], ["T: type"],
                metadata=lambda _, x: (x, ValueInfo(x.meta, value=x.value))).definition()
    input_info = constant_info(np.float32([1, 2]))
    like, same = infer(op, op_rule(op), {"T": dtypes.float32}, [input_info])
    assert (like.shape, like.value) == ((2,), None)
    assert same.value is input_info.value


def op_rule(op: OpDef) -> Any:
    registry = OpRegistry()
    registry.add(op, "myco")
    return registry.metadata(op)


def test_an_op_that_exists_may_be_named_again_only_with_its_own_signature() -> None:
    registries = Registries()
    op_def = OpSpec("MyCo>Op", ["x: float"], ["y: float"]).definition()
    other = OpSpec("MyCo>Op", ["x: float"], ["y: half"]).definition()
    registries.add(Contribution("first", ops=[op_def]))
    registries.add(Contribution("again", ops=[op_def]))
    with pytest.raises(InvalidArgument, match="op MyCo>Op is plugin first's already, with another signature"):
        registries.add(Contribution("second", ops=[OpDef("Second>Op"), other]))
    assert registries.ops.plugin_of("MyCo>Op") == "first"
    assert "Second>Op" not in registries.ops
