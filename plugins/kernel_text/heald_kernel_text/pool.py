"""MaxPool and AvgPool over height and width, NHWC."""

from __future__ import annotations

from math import prod

from heald.api import DType

from .c_text import literal
from .dialect import Target
from .element_types import load, lowest, memory_type, register_type, store
from .kernel_parts import Pointer
from .lanes import is_vector, lanes_of, over_channels
from .plan import INPUT, OUTPUT, Plan, kernel
from .window import Window, items, over_places, over_taps

# By op: the statement that adds element v, the result. NaN never wins a maximum; padding does not count for a mean.
POOLS = {"MaxPool": ("{0} = v > {0} ? v : {0};", "{0}"), "AvgPool": ("{0} += v;", "{0} / count")}


def pool(target: Target, op: str, dtype: DType, window: Window) -> Plan:
    """The window is one element deep."""
    channels = window.shape[3]
    if not channels * window.places:
        return Plan()
    join, result = POOLS[op]
    c_type, lanes = register_type(dtype), lanes_of(target)
    start = literal(lowest(dtype) if op == "MaxPool" else 0, dtype)

    def sums(width: int) -> list[str]:
        every = f"for (u32 j = 0; j < {width}; j++) "
        begin = [f"{c_type} acc[{width}];", f"{every}acc[j] = {start};"]
        add = f"{every}{{ const {c_type} v = {load(dtype, 'x0', 'p + c + j')}; {join.format('acc[j]')} }}"
        write = f"{every}{store(dtype, 'y0', 'm * C + c + j', result.format('acc[j]'))}"
        if is_vector(width, dtype):
            begin = [f"float16 acc = {start};"]
            add = f"const float16 v = vload16(0, x0 + p + c); {join.format('acc')}"
            write = f"vstore16({result.format('acc')}, 0, y0 + m * C + c);"
        return over_places(target, [
            *begin, f"{c_type} count = 0;", *over_taps(target, [add, "count += 1;"]), write,
        ])

    head, count = items(target, window)
    lines = [*head, *over_channels("C", lanes, sums)]
    return Plan((kernel(
        target, op, lines, [Pointer("x0", INPUT, 0, memory_type(dtype), prod(window.shape))],
        [Pointer("y0", OUTPUT, 0, memory_type(dtype), window.places * channels)], window.sizes | count,
        *lanes.grid(channels, *count.values()),
    ),))
