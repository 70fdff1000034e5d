"""Depthwise NHWC convolution: every output channel has one input channel and its own taps."""

from __future__ import annotations

from weft.api import DType, dtypes

from .dialect import Target
from .element import computed, load, stored
from .epilogue import Epilogue, indented
from .lanes import lanes_of, over_channels
from .plan import INPUT, OUTPUT, Plan, Pointer, kernel
from .window import INNER_TAPS, PLACES, ROW, TAPS, Window, inside, pixel, place


def depthwise_conv2d(
    target: Target, dtype: DType, multiplier: int, window: Window, epilogue: Epilogue | None = None
) -> Plan:
    """Inputs: images NHWC, filter (height, width, channels, multiplier), the epilogue's."""
    ending = epilogue or Epilogue()
    channels = window.shape[3] * multiplier
    if not channels * window.places:
        return Plan()
    lanes, c_type = lanes_of(target), computed(dtype)
    source = "c + j" if multiplier == 1 else "(c + j) / times"

    def sums(width: int) -> list[str]:
        every = f"for (u32 j = 0; j < {width}; j++) "
        x, w = load(dtype, "x0", f"p + {source}"), load(dtype, "x1", "tap * channels + c + j")
        add = f"{every}acc[j] = FMA({x}, {w}, acc[j]);"
        start, ready = [f"{c_type} acc[{width}];", f"{every}acc[j] = 0;"], []
        if width == 16 and dtype is dtypes.float32 and multiplier == 1:  # compilers do not see the vector in that
            start, ready = ["float16 sums = 0;"], ["const f32* acc = (const f32*)&sums;"]
            add = "sums = FMA(vload16(0, x0 + p + c), vload16(0, x1 + tap * channels + c), sums);"
        end = [*ready, f"{every}{{", f"  const {c_type} v0 = acc[j];",
               indented(ending.text(dtype, "c + j", "m * channels + c + j"), 2), "}"]
        if target.cpu:
            return [PLACES, *start, INNER_TAPS, "const size_t tap = kh * KW + kw;", add, "}", *end, "}"]
        return [*start, "size_t tap = 0;", TAPS, f"  if {inside('')} {{", f"    const size_t p = {pixel('')};",
                f"    {add}", "  }", "  tap++;", "}", *end]

    number, count, where = ("row", window.rows, ROW) if target.cpu else ("m", window.places, place(""))
    lines = [f"const size_t {number} = GLOBAL_ID(1);", f"if ({number} >= (size_t){number}s) return;", *where,
             *over_channels("channels", lanes, sums)]
    c_stored = stored(dtype)
    reads = [Pointer("x0", INPUT, 0, c_stored), Pointer("x1", INPUT, 1, c_stored), *ending.pointers()]
    sizes = window.sizes | {f"{number}s": count, "channels": channels}
    if multiplier != 1:
        sizes["times"] = multiplier
    items, local = lanes.grid(channels, count)
    return Plan((kernel(
        target, ending.name("DepthwiseConv2dNative"), indented(lines, 2), reads,
        [Pointer("y0", OUTPUT, 0, stored(ending.result(dtype)))], sizes, items, local,
    ),))
