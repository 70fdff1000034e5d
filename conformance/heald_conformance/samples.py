"""Samples of an op, its inputs and attributes: of recorded cases, and made from the op's signature.

Shapes are listed by op, or else for all ops; integers that are settings are listed by name. Rules that a signature
lacks (shapes that fit, attributes that go together) are not modelled: a sample that the reference refuses is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from heald.api import DType, dtypes

from .arrays import generator, numbers, special
from .recorded import calls

Array = np.ndarray[Any, Any]
Shapes = tuple[tuple[int, ...], ...]
IMAGE_FILES = Path(__file__).parent / "data" / "images"

SAME_SHAPES: tuple[Shapes, ...] = (((7,),), ((3, 5),), ((2, 3, 4),), ((),), ((1,),), ((0, 4),), ((2, 3, 4, 6),),
                                   ((1031,),))
BROADCAST_SHAPES: tuple[Shapes, ...] = (((3, 5), (5,)), ((3, 1), (1, 5)), ((3, 5), ()), ((), (2, 3)),
                                        ((2, 1, 4), (3, 1)))
MATRIX_SHAPES: tuple[Shapes, ...] = (((3, 4), (4, 5)), ((1, 7), (7, 1)), ((33, 65), (65, 17)), ((5, 5), (5, 5)),
                                     ((2, 0), (0, 3)), ((4, 3), (4, 5)), ((3, 4), (5, 4)))
IMAGES = ((2, 8, 8, 3), (1, 7, 9, 4))
SHAPES_BY_OP: dict[str, tuple[Shapes, ...]] = {
    "MatMul": MATRIX_SHAPES,
    "BatchMatMulV2": (((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (3, 4, 5)), ((2, 4, 3), (2, 4, 5))),
    "BiasAdd": (((3, 5), (5,)), ((2, 4, 4, 3), (3,)), ((2, 3, 4, 4), (3,))),
    "Conv2D": tuple(((*i,), (k, k, i[3], 5)) for i in IMAGES for k in (1, 3)),
    "DepthwiseConv2dNative": tuple(((*i,), (k, k, i[3], 2)) for i in IMAGES for k in (1, 3)),
    "FusedBatchNorm": tuple(((*i,), *((i[3],),) * 4) for i in IMAGES),
    "AvgPool": tuple((i,) for i in IMAGES),
    "MaxPool": tuple((i,) for i in IMAGES),
    "Softmax": (((3, 5),), ((7,),), ((2, 3, 4),), ((4, 1001),)),
    "GatherV2": (((7,), (3,)), ((5, 4), (2, 3)), ((4, 3, 2), ())),
    "Select": (((3, 5),) * 3, ((3,), (3, 5), (3, 5)), ((),) * 3),
    "SelectV2": (((3, 5),) * 3, ((5,), (3, 5), (3, 1))),
    "Range": (((),) * 3,),
    "Fill": (((),),),
}
SQUARE_SHAPES: tuple[Shapes, ...] = (((3, 3),), ((2, 4, 4),), ((0, 2, 2),))
SOLVE_SHAPES: tuple[Shapes, ...] = (((3, 3), (3, 2)), ((2, 4, 4), (2, 4, 1)))
SHAPES_BY_OP |= {
    "BatchMatMul": (((2, 3, 4), (2, 4, 5)), ((2, 4, 3), (2, 4, 5))),
    "BatchMatMulV3": SHAPES_BY_OP["BatchMatMulV2"],
    "Cholesky": SQUARE_SHAPES, "LogMatrixDeterminant": SQUARE_SHAPES, "MatrixDeterminant": SQUARE_SHAPES,
    "MatrixInverse": SQUARE_SHAPES,
    "MatrixSolve": SOLVE_SHAPES, "MatrixTriangularSolve": SOLVE_SHAPES,
    **dict.fromkeys(("BatchSelfAdjointEigV2", "SelfAdjointEigV2"), SQUARE_SHAPES),
    "Einsum": (((3, 4), (4, 5)), ((4, 4), (4, 4)), ((2, 3, 4), (2, 4, 5))),
    "Multinomial": (((2, 4),), ((1, 9),)), "StatelessMultinomial": (((2, 4),), ((1, 9),)),
    "_FusedMatMul": (((3, 4), (4, 5), (5,)), ((33, 65), (65, 17), (17,))),
}
VOLUME = (2, 4, 6, 4, 3)
SHAPES_BY_OP |= {
    "_FusedConv2D": tuple(((*i,), (3, 3, i[3], 5), (5,)) for i in IMAGES),
    "_FusedDepthwiseConv2dNative": tuple(((*i,), (3, 3, i[3], 2), (2 * i[3],)) for i in IMAGES),
    "_FusedBatchNormEx": tuple((i, *((4,),) * 4, i) for i in ((2, 8, 8, 4), (1, 4, 9, 6))),
    "Conv2DBackpropInput": tuple(((k, k, 3, 5), (2, n, n, 5)) for k in (1, 3) for n in (4, 6, 8)),
    "Conv2DBackpropFilter": tuple(((2, 8, 8, 3), (2, n, n, 5)) for n in (4, 6, 8)),
    "DepthwiseConv2dNativeBackpropInput": tuple(((3, 3, 3, 2), (2, n, n, 6)) for n in (4, 6, 8)),
    "DepthwiseConv2dNativeBackpropFilter": tuple(((2, 8, 8, 3), (2, n, n, 6)) for n in (4, 6, 8)),
    "Conv3D": ((VOLUME, (2, 3, 3, 3, 5)),),
    "Conv3DBackpropInputV2": (((2, 3, 3, 3, 5), (2, 4, 6, 4, 5)), ((2, 3, 3, 3, 5), (2, 2, 3, 2, 5))),
    "Conv3DBackpropFilterV2": ((VOLUME, (2, 4, 6, 4, 5)), (VOLUME, (2, 2, 3, 2, 5))),
    "Dilation2D": tuple((i, (2, 3, i[3])) for i in IMAGES),
    "FusedBatchNormGrad": tuple((i, i, *((i[3],),) * 4) for i in IMAGES),
    "MaxPoolGrad": tuple((i,) * 3 for i in IMAGES), "LRNGrad": tuple((i,) * 3 for i in IMAGES),
    "MaxPool3DGrad": ((VOLUME,) * 3,),
    "SparseSoftmaxCrossEntropyWithLogits": (((3, 5),), ((4, 7),)),
    "LSTMBlockCell": (((2, 3), (2, 4), (2, 4), (7, 16), (4,), (4,), (4,), (16,)),),
    **dict.fromkeys(("BlockLSTM", "BlockLSTMV2"), (((5, 2, 3), (2, 4), (2, 4), (7, 16), (4,), (4,), (4,), (16,)),)),
    "_GRUSequence": (((5, 2, 3), (2, 4), (3, 12), (4, 12), (12,), (4,), (5, 2)),),
    "_LSTMSequence": tuple(((5, 2, 3), (2, 4), (2, 4), (3, 16), (4, 16), (16,), *parts, (5, 2))
                           for parts in ((), ((4,),) * 3, ((4, 4),))),  # peepholes, or a projection
    "_RNNSequence": (((5, 2, 3), (2, 4), (3, 4), (4, 4), (4,), (5, 2)),),
    "EditDistance": (((3,), (2,)),),
    **dict.fromkeys(("CTCLoss", "CTCGreedyDecoder", "CTCBeamSearchDecoder"), (((5, 2, 3),),)),
    **dict.fromkeys(("AvgPool3D", "AvgPool3DGrad", "MaxPool3D"), ((VOLUME,),)),
    **{op: tuple((i,) for i in IMAGES) for op in ("AvgPoolGrad", "LRN", "MaxPoolV2", "MaxPoolWithArgmax")},
}
SHAPES_BY_OP["BiasAddV1"] = SHAPES_BY_OP["BiasAdd"]
SHAPES_BY_OP["FusedBatchNormGradV2"] = SHAPES_BY_OP["FusedBatchNormGradV3"] = SHAPES_BY_OP["FusedBatchNormGrad"]
SHAPES_BY_OP["LogSoftmax"] = SHAPES_BY_OP["Softmax"]
SHAPES_BY_OP["FusedBatchNormV2"] = SHAPES_BY_OP["FusedBatchNormV3"] = SHAPES_BY_OP["FusedBatchNorm"]

BOXES: Shapes = ((9, 4), (9,))
SHAPES_BY_OP |= {
    **{f"Resize{how}": tuple((i,) for i in IMAGES) for how in ("Area", "Bicubic", "Bilinear", "NearestNeighbor",
                                                               "NearestNeighborGrad")},
    **{f"{op}Grad": (((1, 5, 6, 3), (1, 8, 7, 3)),) for op in ("ResizeBicubic", "ResizeBilinear", "ScaleAndTranslate")},
    "ScaleAndTranslate": tuple((i,) for i in IMAGES),
    "CropAndResize": tuple((i, (3, 4)) for i in IMAGES),
    "ImageProjectiveTransformV2": (((2, 8, 8, 3), (1, 8)), ((2, 7, 9, 4), (2, 8))),
    "ImageProjectiveTransformV3": (((2, 8, 8, 3), (1, 8), ()), ((2, 7, 9, 4), (2, 8), ())),
    **{f"NonMaxSuppression{version}": (BOXES,) for version in ("", "V2", "V3", "V4", "V5")},
    "NonMaxSuppressionWithOverlaps": (((9, 9), (9,)),),
    "CombinedNonMaxSuppression": (((2, 9, 1, 4), (2, 9, 3)), ((1, 9, 3, 4), (1, 9, 3))),
    **dict.fromkeys(("AdjustContrastv2", "AdjustHue", "AdjustSaturation"), (((2, 5, 4, 3), ()), ((5, 4, 3), ()))),
    **dict.fromkeys(("HSVToRGB", "RGBToHSV"), (((5, 3),), ((2, 4, 4, 3),))),
    "DrawBoundingBoxes": (((2, 8, 8, 3), (2, 4, 4)),), "DrawBoundingBoxesV2": (((2, 8, 8, 3), (2, 4, 4), (3, 4)),),
    **dict.fromkeys(("EncodeJpeg", "EncodePng"), (((5, 6, 3),), ((5, 6, 1),))),
}
SHAPES_BY_OP |= {
    "DepthToSpace": (((2, 4, 6, 8),), ((1, 8, 2, 4),)), "SpaceToDepth": (((2, 4, 6, 8),), ((1, 2, 4, 2),)),
    "SparseFillEmptyRows": (((5, 2), (5,), ()),), "SparseReshape": (((5, 2),),),
    **dict.fromkeys(("SparseReduceMax", "SparseReduceSum"), (((3,),),)),
    **dict.fromkeys(("ParseExample", "ParseSingleExample"), (((1,),),)),
    "RaggedBincount": (((4,),),),
}
EXAMPLE = (b"\n\x1b\n\n\n\x01i\x12\x05\x1a\x03\n\x01\x05"  # a tf.train.Example: i = [5],
           b"\n\r\n\x01f\x12\x08\x12\x06\n\x04\x00\x00\xc0\x3f")  # f = [1.5]

ATTR_VALUES: dict[str, tuple[Any, ...]] = {  # values of attributes that have no default, or change the computation
    "N": (3,), "num": (3,), "num_split": (2,), "axis": (0, 1, -1), "batch_dims": (0,), "ksize": ((1, 2, 2, 1),),
    "strides": ((1, 1, 1, 1), (1, 2, 2, 1)), "squeeze_dims": ((),), "shape": (None,), "padding": ("SAME", "VALID"),
    "block_size": (2,), "k": (2,), "set_operation": (b"a-b", b"b-a", b"intersection", b"union"),
    "message": (b"sampled",), "interpolation": ("NEAREST", "BILINEAR"),
}
ATTRS_BY_OP: dict[str, dict[str, tuple[Any, ...]]] = {  # all values to try; the default is not added to them
    **{op: {"N": (1,)} for op in ("_GRUSequence", "_RNNSequence")},
    "_LSTMSequence": {"N": (1,), "P": (0, 3), "R": (0, 1), "cell_clip": (0.0, 0.25), "proj_clip": (0.0, 0.125)},
    "Einsum": {"N": (2,), "equation": ("ab,bc->ac", "...ab,...bc->...ca", "ab,ab->b", "abc,acd->adb")},
    "_FusedMatMul": {"num_args": (1,), "fused_ops": (("BiasAdd",), ("BiasAdd", "Relu"), ("BiasAdd", "Tanh"))},
    "_FusedConv2D": {"num_args": (1,), "TArgs": ((dtypes.float32,),), "strides": ((1, 1, 1, 1),),
                     "fused_ops": (("BiasAdd",), ("BiasAdd", "Relu"), ("BiasAdd", "Elu"), ("BiasAdd", "LeakyRelu"))},
    "_FusedDepthwiseConv2dNative": {"num_args": (1,), "strides": ((1, 1, 1, 1), (1, 2, 2, 1)), "fused_ops": (
        ("BiasAdd",), ("BiasAdd", "Relu"), ("BiasAdd", "_FusedHardSwish"))},
    "_FusedBatchNormEx": {"activation_mode": ("Relu",), "num_side_inputs": (0, 1)},
    "Dilation2D": {"rates": ((1, 1, 1, 1), (1, 2, 2, 1))},
    "Print": {"U": ((dtypes.float32,),), "first_n": (0,)},
    **{op: {"num_true": (2,), "num_sampled": (5,), "range_max": (20,), "unique": (True, False), "seed": (1,),
            "seed2": (2,)} for op in ("LogUniformCandidateSampler", "UniformCandidateSampler")},
    "ParseExample": {"Nsparse": (1,), "Ndense": (2,), "sparse_types": ((dtypes.int64,),),
                     "dense_shapes": (((1,),) * 2,)},
    "ParseSingleExample": {"num_sparse": (1,), "sparse_keys": ((b"i",),), "sparse_types": ((dtypes.int64,),),
                           "dense_keys": ((b"i", b"j"), (b"f", b"g")), "dense_shapes": (((1,),) * 2,)},
    "UnicodeDecode": {"input_encoding": ("UTF-8",)},
    "CTCBeamSearchDecoder": {"beam_width": (4,), "top_paths": (2, 1)},
    **{op: {"ksize": ((1, 2, 2, 2, 1),), "strides": ((1, 1, 1, 1, 1), (1, 2, 2, 2, 1))} for op in (
        "AvgPool3D", "AvgPool3DGrad", "Conv3D", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2", "MaxPool3D",
        "MaxPool3DGrad")},
    **{op: {"seed": (1,), "seed2": (2,)} for op in (
        "Multinomial", "RandomShuffle", "RandomStandardNormal", "RandomUniform", "RandomUniformInt",
        "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "TruncatedNormal")},
}
# Ops that exchange values with other ops of their step or session, so that one alone has no sample: it would wait.
EXCHANGES = frozenset({"_HostRecv", "_HostSend", "_Recv", "_Send",
                       *("Stage", "StageClear", "StagePeek", "StageSize", "Unstage"),
                       *(f"{kind}{op}" for kind in ("Map", "OrderedMap") for op in (
                           "Clear", "IncompleteSize", "Peek", "Size", "Stage", "Unstage", "UnstageNoKey"))})
TYPES = ("float32", "int32", "int64", "bool")  # of type attributes other than the varied one


@dataclass(frozen=True)
class Sample:
    """One call of an op, with its `inputs` in order.

    `read`: the indices of inputs that metadata reads; `settings`: of inputs that are parameters, such as an axis.
    """

    attrs: dict[str, Any]
    inputs: tuple[Array, ...]
    read: frozenset[int]
    settings: frozenset[int]

    def __str__(self) -> str:
        shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.inputs)
        return f"({shapes}) {', '.join(f'{n}={v}' for n, v in self.attrs.items())}"


def varied_type(op: Any) -> str | None:
    """The type attribute of the op's operands, or None."""
    named = [a.type_attr or a.type_list_attr for a in (*op.inputs, *op.outputs)]
    return "T" if "T" in named else next((name for name in named if name), None)


def samples(
    op: Any, dtype: DType | None, values: tuple[str, ...], recordings: Path | None = None
) -> Iterator[Sample]:
    """Samples of an op whose varied type attribute is `dtype`; `values` names the inputs that metadata reads."""
    if op.name in EXCHANGES:
        return
    for attrs, inputs in calls(op, varied_type(op), dtype, recordings):
        says = [_says(op, t.arg) for t in op.expand_inputs(attrs)]
        yield Sample(attrs, inputs, positions(op, attrs, values), _true(says))
    for attrs in _attributes(op, dtype):
        tensors = op.expand_inputs(attrs)
        says = [_says(op, t.arg) for t in tensors]
        wide = [i for i, says_how in enumerate(says) if not says_how]
        shapes = SHAPES_BY_OP.get(op.name) or (*SAME_SHAPES, *(BROADCAST_SHAPES if len(wide) == 2 else ()))
        for number, shape in enumerate(shapes):
            yield sample_of_shapes(op, dtype, attrs, shape, values, number)
        if op.name not in SHAPES_BY_OP and dtype is not None and dtype.kind == "f" and len(wide) == len(tensors):
            edge = special(dtype)
            inputs = tuple(np.roll(edge, 3 * i) if t.dtype is dtype else numbers(t.dtype, edge.shape,
                           generator(op.name)) for i, t in enumerate(tensors))
            yield Sample(attrs, inputs, positions(op, attrs, values), _true(says))


def sample_of_shapes(
    op: Any, dtype: DType | None, attrs: dict[str, Any], shapes: Shapes, values: tuple[str, ...], number: int = 0
) -> Sample:
    """A sample whose operands have these shapes, in order; further operands have the last one, a single one is for all.

    Settings are made for the first shape. `number` tells samples of equal shapes apart.
    """
    tensors = op.expand_inputs(attrs)
    says = [_says(op, t.arg) for t in tensors]
    wide = [i for i, says_how in enumerate(says) if not says_how]
    rng = generator(op.name, dtype, number)
    main = dict(zip(wide, shapes if len(shapes) > 1 else shapes * len(wide), strict=False))
    inputs = tuple(make(shapes[0], t.dtype) if make else _operand(t, main.get(i, shapes[-1]), rng)
                   for i, (t, make) in enumerate(zip(tensors, says, strict=True)))
    return Sample(attrs, inputs, positions(op, attrs, values), _true(says))


def first_attributes(op: Any, dtype: DType | None) -> dict[str, Any] | None:
    """The first choice of all attributes, or None for an op with an attribute without choices."""
    return next(_attributes(op, dtype), None)


def positions(op: Any, attrs: Mapping[str, Any], args: tuple[str, ...]) -> frozenset[int]:
    """The indices of the inputs that belong to these arguments."""
    return _true([tensor.arg in args for tensor in op.expand_inputs(attrs)])


def _true(facts: list[Any]) -> frozenset[int]:
    return frozenset(i for i, fact in enumerate(facts) if fact)


def _says(op: Any, arg: str) -> Callable[..., Array] | None:
    make_input: Callable[..., Array] | None = INTEGER_MAKERS.get(f"{op.name}.{arg}", INTEGER_MAKERS.get(arg))
    return make_input


def _operand(tensor: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if "indices" in tensor.arg:
        return rng.integers(0, 4, shape).astype(tensor.dtype.numpy)
    drawn = numbers(tensor.dtype, () if tensor.arg == "constant_values" else shape, rng)
    return np.abs(drawn) if tensor.arg in ("variance", "reserve_space_2") else drawn


def _attributes(op: Any, dtype: DType | None) -> Iterator[dict[str, Any]]:
    """Yield a first choice of all attributes, then each further value of each attribute, one at a time."""
    choices_of_op = ATTRS_BY_OP.get(op.name, {})
    varied = varied_type(op)
    choices = {name: list(choices_of_op.get(name, ())) or _choices(name, attr, dtype if name == varied else None)
               for name, attr in op.attrs.items()}
    if all(choices.values()):
        first = {name: options[0] for name, options in choices.items()}
        yield first
        for name, options in choices.items():
            yield from ({**first, name: option} for option in options[1:])


def _choices(name: str, attr: Any, dtype: DType | None) -> list[Any]:
    if dtype is not None:
        return [(dtype,) * 2 if attr.type == "list(type)" else dtype]
    default = [attr.default] if type(attr.default) is not object else []
    if attr.type == "type":
        usual = [d for d in map(dtypes.named, TYPES) if not attr.allowed or d in attr.allowed]
        return list(dict.fromkeys([*default, *(attr.allowed or ())])) if default else usual
    if attr.type == "bool":
        return [False, True]
    return list(dict.fromkeys([*default, *ATTR_VALUES.get(name, ()), *(attr.allowed or ())]))


def _axis(shape: tuple[int, ...], dtype: DType) -> Array:
    return np.array(len(shape) - 1 if shape else 0, dtype.numpy)


def _always(*elements: Any) -> Callable[..., Array]:
    """A maker that returns the same vector, or the same scalar, for every shape."""
    return lambda _shape, d: np.array(elements if len(elements) > 1 else elements[0], d.numpy)


def _image(kind: str) -> Callable[..., Array]:
    return _always((IMAGE_FILES / f"pixels.{kind}").read_bytes())


# Makers of settings, by argument or by op and argument: each makes the input from the first shape and the input's type.
INTEGER_MAKERS: dict[str, Any] = {
    "axis": _axis, "dim": _axis, "dimension": _axis, "split_dim": _axis,
    "reduction_indices": lambda shape, d: np.arange(len(shape))[-1:].astype(d.numpy),
    "perm": lambda shape, d: np.arange(len(shape))[::-1].astype(d.numpy),
    "shape": lambda shape, d: np.array([*shape[::-1], 1]).astype(d.numpy),
    "dims": lambda shape, d: np.array([*shape, 2, 3]).astype(d.numpy),
    "multiples": lambda shape, d: np.full(len(shape), 2, d.numpy),
    "paddings": lambda shape, d: np.full((len(shape), 2), 1, d.numpy),
    "begin": lambda shape, d: np.zeros(len(shape), d.numpy),
    "size": lambda shape, d: np.array([max(n - 1, 0) for n in shape]).astype(d.numpy),
    "end": lambda shape, d: np.array([max(n - 1, 0) for n in shape], d.numpy),
    "strides": lambda shape, d: np.ones(len(shape), d.numpy),
    **{f"{op}{suffix}.fft_length": lambda shape, d, rank=rank: np.array(shape[-rank:], d.numpy) // 2
       for op in ("RFFT", "IRFFT") for rank, suffix in ((1, ""), (2, "2D"), (3, "3D"))},
    "seed": lambda _, d: np.array([1, 2], d.numpy),
    "key": lambda _, d: np.array([3], d.numpy),
    "counter": lambda _, d: np.array([4, 5], d.numpy),
    "alg": lambda _, d: np.array(1, d.numpy),
    "minval": lambda _, d: np.array(2, d.numpy),
    "maxval": lambda _, d: np.array(99, d.numpy),
    "num_samples": lambda _, d: np.array(3, d.numpy),
    "Range.limit": lambda _, d: np.array(20_000).astype(d.numpy), "Range.delta": _always(1),  # too long to be folded
    "Conv2DBackpropInput.input_sizes": lambda _, d: np.array([8, 8], d.numpy),
    "Conv2DBackpropFilter.filter_sizes": lambda _, d: np.array([3, 3, 3, 5], d.numpy),
    "Conv3DBackpropInputV2.input_sizes": lambda _, d: np.array(VOLUME, d.numpy),
    "Conv3DBackpropFilterV2.filter_sizes": lambda _, d: np.array([2, 3, 3, 3, 5], d.numpy),
    "DepthwiseConv2dNativeBackpropInput.input_sizes": lambda _, d: np.array([2, 8, 8, 3], d.numpy),
    "DepthwiseConv2dNativeBackpropFilter.filter_sizes": lambda _, d: np.array([3, 3, 3, 2], d.numpy),
    "MaxPoolV2.ksize": lambda _, d: np.array([1, 2, 2, 1], d.numpy),
    "orig_input_shape": lambda shape, d: np.array(shape, d.numpy),
    "SparseSoftmaxCrossEntropyWithLogits.labels": lambda shape, d: np.arange(shape[0], dtype=d.numpy),
    **dict.fromkeys(("_GRUSequence.length", "_LSTMSequence.length", "_RNNSequence.length"),
                    lambda shape, d: np.array(shape[0], d.numpy)),
    "seq_len_max": lambda shape, d: np.array(shape[0], d.numpy),
    "sequence_length": lambda shape, d: np.full(shape[1], shape[0] - 1, d.numpy),
    "labels_indices": lambda _, d: np.array([[0, 0], [0, 1], [1, 0]], d.numpy),
    "labels_values": lambda _, d: np.array([0, 1, 1], d.numpy),
    "hypothesis_indices": lambda _, d: np.array([[0, 0], [0, 1], [1, 0]], d.numpy),
    "truth_indices": lambda _, d: np.array([[0, 0], [2, 0]], d.numpy),
    "hypothesis_shape": lambda _, d: np.array([2, 2], d.numpy),
    "truth_shape": lambda _, d: np.array([3, 2], d.numpy),
    "box_ind": _always(0, 0, 0), "crop_size": _always(3, 4), "output_shape": _always(5, 6),
    "max_output_size": _always(4), "max_output_size_per_class": _always(4), "max_total_size": _always(5),
    "iou_threshold": _always(0.5), "overlap_threshold": _always(0.5), "score_threshold": _always(0),
    "soft_nms_sigma": _always(0.5), "translation": _always(0.5, -1), "crop_window": _always(0, 1, 2, 1),
    "DecodeRaw.bytes": _always(b"sixteen bytes ab", b"and sixteen more"),
    "Fingerprint.method": _always(b"farmhash64"), "Reverse.dims": lambda shape, _: np.arange(len(shape)) % 2 == 0,
    "SplitV.size_splits": lambda shape, d: np.array([1, shape[-1] - 1 if shape else 0]).astype(d.numpy),
    "true_classes": lambda _, d: np.arange(8, dtype=d.numpy).reshape(4, 2), "image_size": _always(40, 60, 3),
    "bounding_boxes": lambda _, d: np.array([[[0.1, 0.2, 0.7, 0.9]]], d.numpy), "min_object_covered": _always(0.3),
    "SparseFillEmptyRows.dense_shape": _always(6, 4), "SparseReshape.input_shape": _always(4, 4),
    "SparseReshape.new_shape": _always(2, -1, 2),
    **{f"SparseReduce{how}.{name}": always for how in ("Max", "Sum") for name, always in {
        "input_indices": lambda _, d: np.array([[0, 1], [0, 3], [4, 0]], d.numpy), "input_shape": _always(6, 4),
        "reduction_axes": _always(1)}.items()},
    "RaggedBincount.splits": _always(0, 2, 2, 4), "RaggedBincount.values": _always(1, 1, 3, 0),
    "RaggedBincount.size": _always(3),
    "UnicodeEncode.input_values": _always(97, 233, 128512), "UnicodeEncode.input_splits": _always(0, 1, 3),
    "ParseExample.serialized": _always(EXAMPLE, EXAMPLE), "ParseExample.names": _always(b"first", b"second"),
    "ParseExample.sparse_keys": _always(b"i"), "ParseExample.dense_keys": _always(b"f"),
    "ParseSingleExample.serialized": _always(EXAMPLE),
    **{f"{op}.size": _always(5, 6) for op in SHAPES_BY_OP if op.startswith(("Resize", "ScaleAndTranslate"))},
    **{f"{op}.scale": _always(0.75, 1.5) for op in ("ScaleAndTranslate", "ScaleAndTranslateGrad")},
    **{f"{op}.contents": _image(kind) for op, kind in {
        "DecodeAndCropJpeg": "jpeg", "DecodeBmp": "bmp", "DecodeGif": "gif", "DecodeImage": "bmp", "DecodeJpeg": "jpeg",
        "DecodePng": "png", "DecodeWebP": "webp", "ExtractJpegShape": "jpeg"}.items()},
}
