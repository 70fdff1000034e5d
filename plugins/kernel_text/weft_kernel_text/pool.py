"""MaxPool and AvgPool over height and width, NHWC."""

from __future__ import annotations

from weft.api import DType

from .dialect import Target
from .element import computed, literal, load, lowest, store, stored
from .epilogue import indented
from .lanes import lanes_of, over_channels
from .plan import INPUT, OUTPUT, Plan, Pointer, kernel
from .window import TAPS, Window, inside, pixel, place

# op: how an element v joins acc[j], what is written. NaN never wins a maximum; padding does not count for a mean.
POOLS = {"MaxPool": ("acc[j] = v > acc[j] ? v : acc[j];", "acc[j]"), "AvgPool": ("acc[j] += v;", "acc[j] / count")}


def pool(target: Target, op: str, dtype: DType, window: Window) -> Plan:
    """The window is one element deep."""
    channels = window.shape[3]
    if not channels * window.places:
        return Plan()
    join, result = POOLS[op]
    c_type, lanes = computed(dtype), lanes_of(target)
    start = literal(lowest(dtype) if op == "MaxPool" else 0, dtype)

    def sums(width: int) -> list[str]:
        every = f"for (u32 j = 0; j < {width}; j++) "
        return [
            f"{c_type} acc[{width}], count = 0;", f"{every}acc[j] = {start};",
            TAPS, f"  if {inside('')} {{", f"    const size_t p = {pixel('')} + c;",
            f"    {every}{{ const {c_type} v = {load(dtype, 'x0', 'p + j')}; {join} }}", "    count += 1;", "  }", "}",
            f"{every}{store(dtype, 'y0', 'm * C + c + j', result)}",
        ]

    lines = ["const size_t m = GLOBAL_ID(1);", "if (m >= (size_t)places) return;", *place(""),
             *over_channels("C", lanes, sums)]
    items, local = lanes.grid(channels, window.places)
    return Plan((kernel(
        target, op, indented(lines, 2), [Pointer("x0", INPUT, 0, stored(dtype))],
        [Pointer("y0", OUTPUT, 0, stored(dtype))], window.sizes | {"places": window.places}, items, local,
    ),))
