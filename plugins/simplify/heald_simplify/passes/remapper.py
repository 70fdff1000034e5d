"""Pass `remapper`, on request: fused ops replace a product or a convolution with the nodes behind it.

A row is a pattern and the fused op that computes the same. The rows are those of TensorFlow's remapper, and rows for
batch normalisation behind a convolution and for the approximate GELU. A layer takes its bias first; a second row adds
the activation to the fused op. So each row knows two or three nodes, and a chain takes three rounds, however large the
graph is.

Fused ops are internal ops of TensorFlow for CPUs. Nodes that request another device stay as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from heald.api import Graph, Known, Match, PassContext, Pattern, Rule, dtypes, rewrite

Attrs = dict[str, Any]

LAYER, NORM = "layer", "norm"  # names of matched nodes
BATCH_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
SMALLEST_CHANNEL_GROUP = 4  # _FusedBatchNormEx takes multiples of this number of channels
DEFAULT_EPSILON, DEFAULT_SLOPE = np.float32(1e-4), np.float32(0.2)  # the defaults of the fused ops
_GELU_TOLERANCE = 1e-3  # exporters round the numbers of the formula


class _FusedOp(NamedTuple):
    """A fused op: the op of its layer, the element types and activations that it fuses, and its own attributes."""

    name: str
    layer: str
    types: tuple[Any, ...]
    activations: tuple[str, ...]
    takes_batch_norm: bool = False
    types_attr: str | None = None
    pads_explicitly: bool = True  # or has no padding at all

    def attrs(self, fused_ops: tuple[str, ...], num_args: int) -> Attrs:
        """The attributes that the layer does not have, all written, as TensorFlow's remapper does."""
        attrs: Attrs = {"fused_ops": fused_ops, "num_args": num_args, "epsilon": DEFAULT_EPSILON,
                        "leakyrelu_alpha": DEFAULT_SLOPE}
        if self.types_attr is not None:
            attrs |= {self.types_attr: lambda match: (match.attrs(LAYER)["T"],) * num_args, "num_host_args": 0}
        return attrs


_CURVES = ("Relu", "Relu6", "Elu", "LeakyRelu")
FUSED_OPS = (
    _FusedOp("_FusedMatMul", "MatMul", (dtypes.float32,), (*_CURVES, "Tanh", "Sigmoid")),
    _FusedOp("_FusedConv2D", "Conv2D", (dtypes.float32, dtypes.float64), _CURVES, True, "TArgs"),
    _FusedOp("_FusedDepthwiseConv2dNative", "DepthwiseConv2dNative", (dtypes.float32,), _CURVES, True,
             pads_explicitly=False),
)


def fuse_layers(graph: Graph, context: PassContext) -> Graph:
    return rewrite(graph, context, _RULES)


def _runs_on_cpu(match: Match) -> bool:
    device = match.root.device.lower()
    return not device or "cpu" in device


def _has_layout_of_layer(match: Match) -> bool:
    """True where the root counts the channels on the layer's channel axis. A matrix has one such axis in any layout."""
    layout = match.attrs(LAYER).get("data_format")
    return layout is None or layout == match.attrs()["data_format"]


def _layer(op: _FusedOp) -> Pattern:
    attrs: Attrs = {"T": lambda dtype: dtype in op.types}
    if not op.pads_explicitly:
        attrs["padding"] = lambda padding: padding not in ("EXPLICIT", b"EXPLICIT")
    return Pattern(op.layer, "x", "weights", attrs=attrs, name=LAYER)


def _bias_rule(op: _FusedOp) -> Rule:
    return Rule(f"{op.layer}, bias", Pattern("BiasAdd", _layer(op), "bias"),
                Pattern(op.name, "x", "weights", "bias", attrs=op.attrs(("BiasAdd",), 1), attrs_of=LAYER),
                lambda match: _runs_on_cpu(match) and _has_layout_of_layer(match))


_NORM_INPUTS = ("scale", "offset", "mean", "variance")


def _batch_norm_rule(op: _FusedOp) -> Rule:
    attrs = op.attrs(("FusedBatchNorm",), len(_NORM_INPUTS)) | {"epsilon": lambda match: match.attrs()["epsilon"]}
    root = Pattern(BATCH_NORMS, _layer(op), *_NORM_INPUTS, attrs={"T": dtypes.float32, "is_training": False})

    def fits(match: Match) -> bool:
        return _runs_on_cpu(match) and _has_layout_of_layer(match) and not match.is_bound()

    return Rule(f"{op.layer}, batch normalisation", root,
                Pattern(op.name, "x", "weights", *_NORM_INPUTS, attrs=attrs, attrs_of=LAYER), fits)


def _activation_rule(op: _FusedOp, activation: str, first: str, args: tuple[str, ...]) -> Rule:
    """The fused op without an activation, and one behind it."""
    fused = Pattern(op.name, "x", "weights", *args, attrs={"fused_ops": lambda names: _texts(names) == (first,)},
                    name=LAYER)
    attrs: Attrs = {"fused_ops": (first, activation)}
    if activation == "LeakyRelu":
        attrs["leakyrelu_alpha"] = lambda match: match.attrs()["alpha"]
    return Rule(f"{op.name}, {activation}", Pattern(activation, fused),
                Pattern(op.name, "x", "weights", *args, attrs=attrs, attrs_of=LAYER), _runs_on_cpu)


def _texts(names: tuple[bytes | str, ...]) -> tuple[str, ...]:
    return tuple(name.decode() if isinstance(name, bytes) else name for name in names)


def _number(hole: str, number: float) -> Known:
    return Known(hole, lambda value: value.shape == () and bool(abs(value - number) <= _GELU_TOLERANCE * number))


def _scaled(hole: str, number: float, x: Any) -> Pattern:
    return Pattern("Mul", _number(hole, number), x, commutes=True)


def _gelu_rule(op: _FusedOp) -> Rule:
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))), as exporters write the approximate GELU."""
    x = Pattern(op.name, "x", "weights", "bias", attrs={"fused_ops": lambda names: _texts(names) == ("BiasAdd",)},
                name=LAYER)
    cubic = _scaled("coefficient", 0.044715, Pattern("Pow", x, _number("three", 3)))
    curve = Pattern("Tanh", _scaled("root", np.sqrt(2 / np.pi), Pattern("AddV2", x, cubic, commutes=True)))
    whole = Pattern("AddV2", _number("one", 1), curve, commutes=True)
    return Rule(f"{op.name}, GELU", Pattern("Mul", _scaled("half", 0.5, x), whole, commutes=True),
                Pattern(op.name, "x", "weights", "bias", attrs={"fused_ops": ("BiasAdd", "GeluApproximate")},
                        attrs_of=LAYER), _runs_on_cpu)


def _normalisation(has_side_input: bool) -> Rule:
    """Batch normalisation, with or without an added tensor, and a Relu."""
    norm = Pattern(BATCH_NORMS, "x", *_NORM_INPUTS, attrs={"T": dtypes.float32}, name=NORM)
    sides = ("side",) if has_side_input else ()
    before = Pattern("AddV2", norm, "side", commutes=True) if has_side_input else norm

    def fits(match: Match) -> bool:
        channels, x = match.shape("scale"), match.shape("x")
        in_groups = channels is not None and len(channels) == 1 and channels[0] is not None and (
            channels[0] % SMALLEST_CHANNEL_GROUP == 0)
        is_image = x is not None and len(x) == 4
        same = not sides or (x is not None and None not in x and match.shape("side") == x)
        return in_groups and is_image and same and _runs_on_cpu(match)

    return Rule(f"batch normalisation,{' sum,' if sides else ''} Relu", Pattern("Relu", before),
                Pattern("_FusedBatchNormEx", "x", *_NORM_INPUTS, *sides, attrs_of=NORM,
                        attrs={"U": dtypes.float32, "activation_mode": "Relu", "num_side_inputs": len(sides)}), fits)


def _make_rules() -> tuple[Rule, ...]:
    rules = []
    for op in FUSED_OPS:
        rules.append(_bias_rule(op))
        rules += [_activation_rule(op, activation, "BiasAdd", ("bias",)) for activation in op.activations]
        if op.takes_batch_norm:
            rules.append(_batch_norm_rule(op))
            rules += [_activation_rule(op, name, "FusedBatchNorm", _NORM_INPUTS) for name in op.activations]
    return (*rules, _gelu_rule(FUSED_OPS[0]), _normalisation(False), _normalisation(True))


_RULES = _make_rules()
