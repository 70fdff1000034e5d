"""Depthwise NHWC convolution: every output channel has one input channel and its own taps."""

from __future__ import annotations

from math import prod

from heald.api import DType

from .dialect import Target
from .element_types import load, memory_type, register_type
from .epilogue import Epilogue, indent_lines
from .kernel_parts import Pointer
from .lanes import is_vector, lanes_of, over_channels
from .plan import INPUT, OUTPUT, Plan, kernel
from .window import Window, items, over_places, over_taps


def depthwise_conv2d(
    target: Target, dtype: DType, multiplier: int, window: Window, epilogue: Epilogue | None = None
) -> Plan:
    """Inputs: images NHWC, filter (height, width, channels, multiplier), the epilogue's."""
    ending = epilogue or Epilogue()
    channels = window.shape[3] * multiplier
    if not channels * window.places:
        return Plan()
    lanes, c_type = lanes_of(target), register_type(dtype)
    source = "c + j" if multiplier == 1 else "(c + j) / times"
    x, w = load(dtype, "x0", f"p + {source}"), load(dtype, "x1", "tap * channels + c + j")

    def sums(width: int) -> list[str]:
        every = f"for (u32 j = 0; j < {width}; j++) "
        start, add = [f"{c_type} acc[{width}];", f"{every}acc[j] = 0;"], f"{every}acc[j] = FMA({x}, {w}, acc[j]);"
        ready = []
        if is_vector(width, dtype) and multiplier == 1:
            start, ready = ["float16 sums = 0;"], ["const f32* acc = (const f32*)&sums;"]
            add = "sums = FMA(vload16(0, x0 + p + c), vload16(0, x1 + tap * channels + c), sums);"
        return over_places(target, [
            *start, *over_taps(target, [add]), *ready, f"{every}{{", f"  const {c_type} v0 = acc[j];",
            indent_lines(ending.text(dtype, "c + j", "m * channels + c + j"), 2), "}",
        ])

    head, count = items(target, window)
    lines = [*head, *over_channels("channels", lanes, sums)]
    c_stored = memory_type(dtype)
    written = window.places * channels
    reads = [Pointer("x0", INPUT, 0, c_stored, prod(window.shape)),
             Pointer("x1", INPUT, 1, c_stored, prod(window.taps) * channels), *ending.pointers(channels, written)]
    sizes = window.sizes | count | {"channels": channels}
    if multiplier != 1:
        sizes["times"] = multiplier
    return Plan((kernel(
        target, ending.name("DepthwiseConv2dNative"), lines, reads,
        [Pointer("y0", OUTPUT, 0, memory_type(ending.result(dtype)), written)], sizes,
        *lanes.grid(channels, *count.values()),
    ),))
