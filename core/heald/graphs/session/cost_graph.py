"""The cost graph of a traced run: each call with its longest time, its results' sizes, and the calls before it.

TensorFlow's message CostGraphDef numbers its nodes in order, and its edges name these numbers. Feeds and constants are
no calls, so they have no node. Definition: tensorflow/core/framework/cost_graph.proto.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...runtime.executor.trace import Event, Trace
from ...runtime.program.host_program import COPY, Call

NO_ALIAS = -1  # the alias of an output that shares its memory with no input


def add_costs(message: Any, trace: Trace, full_name: Callable[[str], str]) -> None:
    """Fill a CostGraphDef. `full_name` returns the full name of a device."""
    nodes: dict[int, Any] = {}  # by id of the call, which a loop repeats
    producers: dict[tuple[str, int], tuple[Any, int]] = {}  # register of a function -> node, index of its output
    for event, _ in trace.calls():
        call = event.call
        if id(call) not in nodes:
            nodes[id(call)] = node = message.node.add(
                name=call_name(call), device=full_name(event.device), id=len(nodes), is_final=True)
            _add_edges(node, event, producers)
        node = nodes[id(call)]
        micros = event.duration_ns // 1000
        node.compute_cost = node.compute_time = max(node.compute_cost, micros)
        _note_results(node, event)
        for index, register in enumerate(call.gives):
            producers[event.function, register] = node, index


def call_name(call: Call) -> str:
    """The name of a call in TensorFlow's messages: a transfer between memories is NODE:copy."""
    return call.node if call.code != COPY else f"{call.node}:copy"


def _add_edges(node: Any, event: Event, producers: dict[tuple[str, int], tuple[Any, int]]) -> None:
    for register in event.arguments:
        if (event.function, register) in producers:
            source, index = producers[event.function, register]
            source.is_final = False
            if index < len(source.output_info):
                node.input_info.add(preceding_node=source.id, preceding_port=index)
            else:
                node.control_input.append(source.id)
    for register in event.call.after:
        if (event.function, register) in producers:
            node.control_input.append(producers[event.function, register][0].id)


def _note_results(node: Any, event: Event) -> None:
    """Note the largest size that each result has had, with its shape."""
    for index, meta in enumerate(event.outputs[: len(event.call.results)]):
        if index == len(node.output_info):
            node.output_info.add(alias_input_port=NO_ALIAS)
        output = node.output_info[index]
        if meta is not None and (not output.dtype or meta.nbytes > output.size):
            output.size, output.dtype = meta.nbytes, meta.dtype.number
            del output.shape.dim[:]
            for length in meta.dims:
                output.shape.dim.add(size=length)
