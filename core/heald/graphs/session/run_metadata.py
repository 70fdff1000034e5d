"""RunMetadata: the records of a run, also in the form that TensorFlow's tools read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...runtime.executor.trace import Event, Trace
from ...runtime.support.file_path import file_path
from ...runtime.support.whole_file import write_whole
from ...runtime.values import wire
from ...runtime.values.tensor import TensorMetadata
from ..graph import graphdef
from ..graph.graph import Graph
from .cost_graph import add_costs, call_name

PARTITION_GRAPHS = 3  # field of RunMetadata
TASK = "/job:localhost/replica:0/task:0"


class RunMetadata:
    """The records of a run; each is set when the run's options ask for it.

    `trace`: the times of the run's kernels.
    `partition_graphs`: the graphs of the step by device, as `Session.partitions` returns them.
    """

    def __init__(self) -> None:
        self.trace: Trace | None = None
        self.partition_graphs: Mapping[str, Graph] = {}

    def dumps(self) -> bytes:
        """Return the records as TensorFlow's message RunMetadata, in its binary form.

        The step statistics have a row for each call, by device: name, start and end, thread, the types and shapes of
        results, and their bytes. A transfer between memories is called NODE:copy. A call that does several nodes at
        once has a row under the name of the last. A call on a device with a queue has the times of its work there.
        The cost graph has the calls with their longest times, the sizes of their results, and the calls before them.
        The partition graphs are GraphDefs, one for each device. Raises FailedPrecondition for a constant whose file has
        changed. Definitions: tensorflow/core/protobuf/config.proto, tensorflow/core/framework/step_stats.proto.
        """
        from ..protobuf.descriptor_pool import message_class

        message: Any = message_class("RunMetadata")()
        if self.trace is not None:
            _add_statistics(message.step_stats, self.trace)
            add_costs(message.cost_graph, self.trace, _full_name)
        raw: bytes = message.SerializeToString()
        graphs = self.partition_graphs.values()
        return raw + b"".join(wire.put_bytes(PARTITION_GRAPHS, graphdef.dumps(graph)) for graph in graphs)

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write `dumps()` to a file, which appears once it is complete.

        Raises NotFound, PermissionDenied, ResourceExhausted or Unknown when the file cannot be written.
        """
        write_whole(file_path(path), [self.dumps()])


def _add_statistics(message: Any, trace: Trace) -> None:
    devices: dict[str, Any] = {}
    for event, sources in trace.calls():
        if event.device not in devices:
            devices[event.device] = message.dev_stats.add(device=_full_name(event.device))
        device = devices[event.device]
        device.thread_names[event.thread] = trace.threads[event.thread]
        _add_node(device.node_stats.add(), event, trace.epoch_ns, [source.call.node for source in sources])


def _add_node(stats: Any, event: Event, epoch: int, sources: Sequence[str]) -> None:
    start, duration = epoch + event.span[0], event.duration_ns
    stats.node_name = call_name(event.call)
    stats.timeline_label = f"{event.call.node} = {event.call.op}({', '.join(sources)})"  # as timeline.py reads it
    stats.thread_id = event.thread
    for unit, factor in (("micros", 1000), ("nanos", 1)):
        setattr(stats, f"all_start_{unit}", start // factor)
        setattr(stats, f"scheduled_{unit}", start // factor)
        setattr(stats, f"op_end_rel_{unit}", duration // factor)
        setattr(stats, f"all_end_rel_{unit}", duration // factor)
    allocator = event.device.lower()
    total = 0
    for slot, meta in _tensors(event):
        described = stats.output.add(slot=slot).tensor_description
        described.dtype = meta.dtype.number
        for length in meta.dims:
            described.shape.dim.add(size=length)
        described.allocation_description.requested_bytes = meta.nbytes
        described.allocation_description.allocator_name = allocator
        total += meta.nbytes
    if total:
        stats.memory.add(allocator_name=allocator, total_bytes=total, peak_bytes=total)


def _tensors(event: Event) -> Iterator[tuple[int, TensorMetadata]]:
    results = event.outputs[: len(event.call.results)]
    return ((slot, meta) for slot, meta in enumerate(results) if meta is not None)


def _full_name(device: str) -> str:
    """Return "CPU:0" as "/job:localhost/replica:0/task:0/device:CPU:0", and the host's calls on the CPU.

    Devices of other processes have their full names already.
    """
    if device.startswith("/job:"):
        return device
    return f"{TASK}/device:{'CPU:0' if device == 'host' else device}"
