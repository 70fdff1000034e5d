"""Long samples: operands longer than the counts that device kernels often hold.

Drivers bound a launch: WebGPU takes 65,535 groups on each axis, CUDA on the second and third. A kernel that gives each
row, image, channel or column a group of its own reaches the bound at MANY of them. A kernel with groups of 64 elements
reaches it at ELEMENTS. Each axis of an operand is long in one form of its op: any of them may be an axis of the launch.

Floats are small integers here. Their sums are exact in any order, so that results of all devices agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from heald.api import DType

from .samples import Sample, Shapes, first_attributes, sample_of_shapes

MANY = 65_537  # rows, images, channels: more than 65,535 groups
TILED = 64 * MANY  # rows of a matrix product: more than 65,535 groups of 64 rows
ELEMENTS = TILED + 7  # more than 2**22 elements, in groups of 64


class Form(NamedTuple):
    """Shapes of an op's operands, attributes that differ from the first choice, and settings by argument."""

    shapes: Shapes
    attrs: Mapping[str, Any] = MappingProxyType({})
    settings: Mapping[str, Any] = MappingProxyType({})


def _forms(**shapes: Shapes) -> dict[str, Form]:
    return {name: Form(operands) for name, operands in shapes.items()}


UNARY = _forms(elements=((ELEMENTS,),), rows=((MANY, 3),))
ROWS_AND_COLUMNS = _forms(rows=((MANY, 3),), columns=((3, MANY),), planes=((2, MANY, 3),))
REDUCTIONS = {
    "rows": Form(((MANY, 3),)), "columns": Form(((3, MANY),), settings={"reduction_indices": [0]}),
    "long_row": Form(((2, MANY),)), "middle": Form(((2, MANY, 3),), settings={"reduction_indices": [1]}),
    "elements": Form(((ELEMENTS,),)),
}
POOLS = {name: Form((shape,), {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "VALID"})
         for name, shape in (("images", (MANY, 3, 2, 1)), ("channels", (1, 3, 2, MANY)), ("height", (1, MANY, 3, 1)),
                             ("width", (1, 3, MANY, 1)))}
BATCH_NORMS = {name: Form((shape, *((shape[3],),) * 4), {"is_training": False})
               for name, shape in (("images", (MANY, 2, 2, 1)), ("channels", (2, 2, 2, MANY)))}
_SAME_PADDING = {"strides": (1, 1, 1, 1), "padding": "SAME"}
LONG_FORMS: Mapping[str, Mapping[str, Form]] = {
    **dict.fromkeys(("Abs", "Cast", "Neg", "Relu", "Tanh", "Square"), UNARY),
    **dict.fromkeys(("AddV2", "Maximum", "Mul", "Sub"), _forms(
        elements=((ELEMENTS,),), row=((MANY, 3), (3,)), column=((MANY, 1), (1, 3)), scalar=((ELEMENTS,), ()),
        outer=((3, 1), (1, MANY)), middle=((2, MANY, 3), (MANY, 1)))),
    "SelectV2": _forms(elements=((ELEMENTS,),), row=((MANY, 3), (3,), (MANY, 1))),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _forms(
        rows=((MANY, 3),), long_row=((2, MANY),), tiles=((TILED, 1),))),
    **dict.fromkeys(("All", "Any", "Max", "Mean", "Min", "Prod", "Sum"), REDUCTIONS),
    **dict.fromkeys(("ArgMax", "ArgMin"), ROWS_AND_COLUMNS | {
        "leading": Form(((MANY, 3),), settings={"dimension": 0}),
        "trailing": Form(((3, MANY),), settings={"dimension": 0})}),
    "MatMul": _forms(rows=((TILED, 2), (2, 2)), columns=((2, 2), (2, TILED)), inner=((2, MANY), (MANY, 3))),
    "BatchMatMulV2": _forms(batch=((MANY, 2, 3), (MANY, 3, 2)), shared=((MANY, 2, 3), (3, 2)),
                            rows=((2, TILED, 2), (2, 2, 2)), columns=((2, 2, 2), (2, 2, TILED))),
    "BiasAdd": _forms(rows=((MANY, 3), (3,)), channels=((3, MANY), (MANY,)), images=((MANY, 2, 2, 1), (1,))),
    "Conv2D": {name: Form(shapes, _SAME_PADDING) for name, shapes in {
        "images": ((MANY, 3, 3, 1), (2, 2, 1, 2)), "filters": ((1, 2, 2, 1), (1, 1, 1, MANY)),
        "channels": ((1, 2, 2, MANY), (1, 1, MANY, 2)), "height": ((1, MANY, 3, 1), (3, 3, 1, 2)),
        "width": ((1, 3, MANY, 1), (3, 3, 1, 2)), "points": ((TILED // 64, 8, 8, 1), (1, 1, 1, 1))}.items()},
    "DepthwiseConv2dNative": {name: Form(shapes, _SAME_PADDING) for name, shapes in {
        "images": ((MANY, 3, 3, 1), (2, 2, 1, 1)), "channels": ((1, 3, 3, MANY), (2, 2, MANY, 1)),
        "height": ((1, MANY, 3, 1), (3, 3, 1, 2)), "width": ((1, 3, MANY, 1), (3, 3, 1, 2))}.items()},
    **dict.fromkeys(("AvgPool", "MaxPool"), POOLS),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), BATCH_NORMS),
    "Transpose": _forms(rows=((MANY, 3),), columns=((3, MANY),), middle=((2, MANY, 3),), batch=((MANY, 2, 3),)),
    "GatherV2": {name: Form(shapes, settings={"axis": axis}) for name, shapes, axis in (
        ("indices", ((5, 3), (MANY,)), 0), ("params", ((MANY, 3), (4,)), 0), ("columns", ((4, MANY), (4,)), 0),
        ("rows", ((MANY, 4), (4,)), 1))},
    "ConcatV2": _forms(rows=((MANY, 2),), columns=((2, MANY),)),
    "Pack": _forms(rows=((MANY, 2),), columns=((2, MANY),)),
    "Unpack": _forms(columns=((3, MANY),)),
    "Split": {"rows": Form(((MANY, 4),), settings={"split_dim": 1}), "columns": Form(((2, MANY),), {"num_split": 2},
                                                                                    {"split_dim": 0})},
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad"), _forms(rows=((MANY, 3),), columns=((3, MANY),),
                                                         middle=((2, MANY, 3),))),
    **dict.fromkeys(("Slice", "StridedSlice", "Tile", "Cumsum"), ROWS_AND_COLUMNS),
    "ReverseV2": {name: Form((shape,), settings={"axis": [0]}) for name, shape in (
        ("rows", (MANY, 3)), ("columns", (3, MANY)))},
    "OneHot": {"rows": Form(((MANY,), (), ()), settings={"depth": 3})},
    "TopKV2": {"rows": Form(((MANY, 3),), settings={"k": 2})},
    **{f"Resize{how}": {name: Form((shape,), settings={"size": [3, 4]}) for name, shape in (
        ("images", (MANY, 2, 2, 1)), ("channels", (1, 2, 2, MANY)))} for how in ("Bilinear", "NearestNeighbor")},
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _forms(images=((MANY, 2, 2, 4),), width=((1, 2, 2 * MANY, 4),))),
}


def long_sample(op: Any, dtype: DType | None, form: Form, values: tuple[str, ...]) -> Sample | None:
    """The sample of a form; None where the op has an attribute without choices."""
    first = first_attributes(op, dtype)
    if first is None:
        return None
    attrs = first | {name: value for name, value in form.attrs.items() if name in op.attrs}
    sample = sample_of_shapes(op, dtype, attrs, form.shapes, values)
    tensors = op.expand_inputs(attrs)
    inputs = tuple(_set_or_rounded(x, tensor, form) for x, tensor in zip(sample.inputs, tensors, strict=True))
    set_indices = {i for i, tensor in enumerate(tensors) if tensor.arg in form.settings}
    return replace(sample, inputs=inputs, settings=sample.settings | set_indices)


def _set_or_rounded(x: Any, tensor: Any, form: Form) -> Any:
    """The form's value of a setting, floats as integers, and other inputs as they are."""
    if tensor.arg in form.settings:
        return np.asarray(form.settings[tensor.arg]).astype(tensor.dtype.numpy)
    return np.asarray(np.rint(x), x.dtype) if x.dtype.kind == "f" else x
