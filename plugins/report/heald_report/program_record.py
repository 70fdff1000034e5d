"""A host program as data of a page: for each function its calls as boxes, the registers between them, and their order.

The page steps through a run (`program_steps`). A call waits until its registers are filled, is ready, and is done; the
values of an asynchronous call are pending in between. A register is empty, pending, filled, and released after its
last consumer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .layout import layered_layout
from .node_table import shown_text
from .pictures import CHARACTER, HEIGHT, PADDING, short_label
from .program_steps import CallTraits, program_steps, traits_of_calls

if TYPE_CHECKING:
    from heald import HostProgram
    from heald.runtime.program import Call, ProgramFunction

MOST_CALLS = 5_000  # of a page; later functions are left out
MOST_DRAWN_CALLS = 300  # of a picture; a larger function has its tables alone
SOURCE = -1  # the box of a function's arguments
NONSTRICT, ASYNCHRONOUS = 1, 2  # flags of calls


def program_record(program: HostProgram) -> dict[str, Any]:
    """Return the data of the page."""
    functions, total = [], 0
    for function in program.functions.values():
        total += len(function.kernels)
        if total <= MOST_CALLS:
            functions.append(function_record(function, program.requires))
    return {"functions": functions, "left_out": len(program.functions) - len(functions)}


def function_record(function: ProgramFunction, devices: tuple[str, ...]) -> dict[str, Any]:
    traits = traits_of_calls(function)
    return {"name": shown_text(function.name), "arguments": [shown_text(name) for name in function.arg_names],
            "registers": [shown_text(str(kind)) for kind in function.register_types],
            "results": [*function.results], "kept": [*function.results, *function.targets],
            "calls": [_call_row(*row) for row in zip(function.kernels, traits, stream_names(function, devices),
                                                     strict=True)],
            "steps": [[step.call, int(step.is_arrival)] for step in program_steps(function, traits)],
            "picture": program_picture(function)}


def _call_row(call: Call, traits: CallTraits, stream: str) -> list[Any]:
    """Return kernel, node, stream, registers that it needs, registers that it fills, flags, number of arguments.

    The arguments are the first of the registers that it needs."""
    flags = NONSTRICT * traits.is_nonstrict | ASYNCHRONOUS * traits.is_asynchronous
    return [shown_text(call.code), shown_text(call.node), stream, [*call.needs], [*call.gives], flags, len(call.args)]


def stream_names(function: ProgramFunction, devices: tuple[str, ...]) -> Iterator[str]:
    """Yield for each call the device of its stream, or the number of the host's stream."""
    from heald.runtime.program import stream_numbers

    is_of_host = all(call.is_host_kernel for call in function.kernels)
    numbers = function.streams or (stream_numbers(function) if is_of_host else ())
    for index, call in enumerate(function.kernels):
        if 0 <= call.stream < len(devices):
            yield shown_text(devices[call.stream])
        else:
            yield f"host stream {numbers[index]}" if len(numbers) == len(function.kernels) else "host"


def program_picture(function: ProgramFunction) -> dict[str, Any] | None:
    """Return the boxes of the calls and the edges of the registers, None for a function that is too large."""
    if not 0 < len(function.kernels) <= MOST_DRAWN_CALLS:
        return None
    producer = {register: index for index, call in enumerate(function.kernels) for register in call.gives}
    edges: dict[tuple[int, int], list[int]] = {}
    for index, call in enumerate(function.kernels):
        for register in dict.fromkeys(call.needs):
            source = producer.get(register, SOURCE)
            if source < index:  # a call behind its consumer would lead backwards; the verifier refuses it
                edges.setdefault((source + 1, index + 1), []).append(register)
    sizes = [_size("arguments"), *(_size(call.code) for call in function.kernels)]
    layout = layered_layout(sizes, [*edges])
    return {"width": round(layout.width), "height": round(layout.height),
            "boxes": [[number - 1, *map(round, (*corner, *size))] for number, (corner, size)
                      in enumerate(zip(layout.corners, sizes, strict=True)) if number or function.arg_names],
            "edges": [[start - 1, end - 1, registers, [round(part) for point in layout.bends.get((start, end), [])
                                                       for part in point]]
                      for (start, end), registers in edges.items()]}


def _size(label: str) -> tuple[float, float]:
    return max(len(short_label(shown_text(label))), 10) * CHARACTER + PADDING, HEIGHT
