"""Launches of one kernel without the runtime: outputs start as a byte pattern, and inputs are compared afterwards.

The runtime binds the kernel for a sample of its op, and runs it once. This module then launches it for each pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import Node, errors
from heald.runtime.contract import run_of
from heald.runtime.executor import KernelCall
from heald.runtime.host import KernelContext

from .golden import plain
from .samples import Sample
from .subject import Subject, constant, placeholder, tolerant_of_fallback

Array = np.ndarray[Any, Any]
PATTERNS = (0x5A, 0xA5)  # they differ in every bit


class NoLaunch(Exception):
    """The kernel cannot be launched without the runtime. The message gives the reason."""


class Launched(NamedTuple):
    """The outputs after the launch for each pattern, and the indices of inputs whose bytes a launch changed."""

    outputs: list[list[Array]]
    changed: list[int]


def launch_sample(on: Subject, op: str, sample: Sample, fed: frozenset[int]) -> Launched:
    """Launch the kernel of `op` that serves this sample. Inputs that are not in `fed` are constants.

    Raises NoLaunch, and the errors of a session's run.
    """
    tensors = on.host.registries.ops.get(op).expand_inputs(sample.attrs)
    nodes = [placeholder(f"i{i}", t.dtype) if i in fed else constant(f"i{i}", x, t.dtype)
             for i, (x, t) in enumerate(zip(sample.inputs, tensors, strict=True))]
    nodes.append(Node("op", op, [node.name for node in nodes], attrs=sample.attrs, device=on.name))
    feeds = {f"i{i}": sample.inputs[i] for i in sorted(fed)}
    with tolerant_of_fallback(), on.session(nodes) as session:
        entry = session.nodes["op"]
        if isinstance(entry, errors.HealdError):
            raise entry
        names = [f"op:{i}" for i in range(len(entry.output_tensors))]
        results = session.run(names, feeds)
        if session.placement()["op"].device != on.name or not results or any(r.dtype.hasobject for r in results):
            raise NoLaunch("the op runs on another device, or its results are not numbers")
        executable = session.prepare(names, tuple(feeds)).executable(tuple(x.shape for x in feeds.values()))
        bound = next((b for b in executable.layout.calls if b.call.node == "op" and b.call.op == op), None)
        registers, producers = executable.make_frame().registers, executable.layout.registers.producer
        if not isinstance(bound, KernelCall) or bound.kernel.step or not bound.plannable or bound.stateful:
            raise NoLaunch("its kernel is not called, or does not write the same outputs for the same inputs")
        if not on.is_tested(bound.kernel.pack):
            raise NoLaunch(f"the kernel of {bound.kernel.pack} serves it")
        prepared = {i: registers[r] for i, r in enumerate(bound.call.args) if r >= len(feeds) and r not in producers}
        host = {i for i, t in enumerate(tensors) if on.host_visible or t.arg in bound.kernel.host}
        # Results of quantised types are plain integers, outputs of kernels are not.
        typed = [r.view(t.dtype.numpy) if t.dtype.kind == "q" else r
                 for r, t in zip(results, entry.output_tensors, strict=True)]
        return _launch(on, bound, sample.inputs, prepared, host, typed)


def _launch(
    on: Subject, bound: KernelCall, inputs: Sequence[Array], prepared: dict[int, Any], host: set[int],
    results: Sequence[Array],
) -> Launched:
    """Launch a bound kernel for each pattern.

    `prepared`: arguments that the runtime has prepared, by input.
    `host`: the inputs in host memory.
    `results`: arrays of the outputs' types and shapes.
    """
    sizes = [x.nbytes for x in (*inputs, *results)]
    outputs, changed, run = [], set(), run_of(bound.bound)
    with on.buffers(*(max(nbytes, 1) for nbytes in sizes)) as buffers:
        input_buffers, outs = buffers[: len(inputs)], buffers[len(inputs) :]
        for pattern in PATTERNS:
            for x, buffer in zip(inputs, input_buffers, strict=True):
                if not x.dtype.hasobject:
                    on.enqueue_in(np.ascontiguousarray(x), buffer)
            for r, buffer in zip(results, outs, strict=True):
                on.enqueue_in(np.full(r.nbytes, pattern, np.uint8), buffer)
            on.finish()
            on_host = _on_host(on, inputs, input_buffers, host)
            args = [prepared[i] if i in prepared else _typed_view(buffer, x) if i in host else buffer
                    for i, (x, buffer) in enumerate(zip(inputs, on_host, strict=True))]
            targets = ([_typed_view(buffer, r) for r, buffer in zip(results, outs, strict=True)] if on.host_visible
                       else outs)
            before = _contents(on, args, inputs)
            KernelContext().run(run, *args, *targets)
            on.finish()
            after = _contents(on, args, inputs)
            changed |= {i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
            outputs.append([plain(on.read(buffer, r.nbytes).view(r.dtype).reshape(r.shape))
                            for r, buffer in zip(results, outs, strict=True)])
    return Launched(outputs, sorted(changed))


def _on_host(on: Subject, inputs: Sequence[Array], buffers: Sequence[Any], host: set[int]) -> list[Any]:
    """The buffers of the inputs; an input that the kernel reads in host memory is a copy of its array instead."""
    return [x.copy().reshape(-1).view(np.uint8) if i in host and not on.host_visible else buffer
            for i, (x, buffer) in enumerate(zip(inputs, buffers, strict=True))]


def _typed_view(buffer: Array, like: Array) -> Array:
    """View the start of a byte array with the type and shape of `like`. Arrays of objects are copied from `like`."""
    return like.copy() if like.dtype.hasobject else buffer[: like.nbytes].view(like.dtype).reshape(like.shape)


def _contents(on: Subject, args: Sequence[Any], inputs: Sequence[Array]) -> list[bytes]:
    """The bytes of each argument, in host or device memory."""
    return [arg.tobytes() if isinstance(arg, np.ndarray) else on.read(arg, x.nbytes).tobytes()
            for arg, x in zip(args, inputs, strict=True)]
