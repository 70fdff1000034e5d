"""The launches of a node, bound: launches that pack its constants are done, the others wait for their buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from heald.api import Bind, errors
from heald_kernel_text import INPUT, OUTPUT, SCRATCH, SIZE, Argument, KernelText, Plan, check_sizes

from .native import Launch

Place = tuple[int | None, Any]  # an argument: its index among a call's buffers, or None and a constant value


class Launches:
    """A bound node: its launches, each with the places of its arguments among inputs, outputs and scratch."""

    def __init__(self, launches: Sequence[tuple[Launch, KernelText, Sequence[Place]]]) -> None:
        self._launches = launches

    def run(self, *buffers: Any) -> None:
        for launch, text, places in self._launches:
            launch(grid(text), text.local_size, *_arguments(places, buffers))

    def attach(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], Any]:
        """Raises InvalidArgument for a buffer that is smaller than a launch touches."""
        calls = []
        for launch, text, places in self._launches:
            arguments = _arguments(places, inputs + outputs)
            check_sizes(text, [None if isinstance(a, np.generic) else a.nbytes for a in arguments])
            calls.append(launch.attached(grid(text), text.local_size, *arguments))
        return calls[0] if len(calls) == 1 else lambda: [call() for call in calls]


def grid(text: KernelText) -> tuple[int, ...]:
    """The blocks of a launch in each dimension."""
    return tuple(items // local for items, local in zip(text.global_size, text.local_size, strict=True))


def _arguments(places: Sequence[Place], buffers: Sequence[Any]) -> list[Any]:
    return [always if number is None else buffers[number] for number, always in places]


def launches(plan: Plan, b: Bind) -> Launches | WithScratch:
    """Bind a plan. Launches that read constants only, to pack them, run now; the others run in each run."""
    once = plan.once(lambda number: b.inputs[number].is_known)
    made = _made(once, plan, b) if once else {}
    left = [number for number in range(len(plan.scratch)) if number not in made]
    first = {INPUT: 0, OUTPUT: len(b.inputs)}

    def place(argument: Argument) -> Place:
        kind, value = argument
        if kind == SIZE:
            return None, np.int64(value)
        if kind == SCRATCH:
            return (None, made[value]) if value in made else (len(b.inputs) + len(b.outputs) + left.index(value), None)
        return first[kind] + value, None

    bound = Launches([(_launch(text, b), text, [place(argument) for argument in text.arguments])
                      for text in plan.launches if text not in once])
    return WithScratch(bound, [plan.scratch[number] for number in left], b) if left else bound


class WithScratch:
    """Launches with scratch buffers: of their own in each run, or of a frame's own where they are attached to it."""

    def __init__(self, bound: Launches, sizes: Sequence[int], b: Bind) -> None:
        self._bound = bound
        self._sizes = sizes
        self._b = b

    def run(self, *buffers: Any) -> None:
        scratch: list[Any] = []
        try:
            for nbytes in self._sizes:
                scratch.append(_allocate(self._b, nbytes))
            self._bound.run(*buffers, *scratch)
        finally:
            for buffer in scratch:  # freed in stream order: enqueued commands are done before the memory's next use
                self._b.device.free(buffer)

    def attach(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], Any]:
        scratch = tuple(_allocate(self._b, nbytes) for nbytes in self._sizes)  # freed with the call that holds it
        return self._bound.attach(inputs, outputs + scratch)


def _made(texts: Sequence[KernelText], plan: Plan, b: Bind) -> Mapping[int, Any]:
    """Scratch by number, filled by these launches; once for all links of a program that know the same constants.

    No call frees this scratch: a buffer goes back when its last owner is gone, a link or the program.
    """
    numbers = sorted({a.value for text in texts for a in text.arguments if a.kind == INPUT})
    constants = [b.inputs[number].value for number in numbers]
    launched = [(text.name, *(a.value for a in text.arguments)) for text in texts]
    latest: list[Any] = b.prepared(f"cuda-1 {launched}", list)
    if not latest or any(x is not y for x, y in zip(latest[0], constants, strict=True)):  # constants of another shape
        latest[:] = constants, _make(texts, plan, b, dict(zip(numbers, constants, strict=True)))
    return latest[1]  # type: ignore[no-any-return]


def _make(texts: Sequence[KernelText], plan: Plan, b: Bind, constants: Mapping[int, Any]) -> Mapping[int, Any]:
    numbers = {a.value for text in texts for a in text.arguments if a.kind == SCRATCH}
    scratch = {number: _allocate(b, plan.scratch[number]) for number in numbers}
    uploads = {number: _upload(b, value) for number, value in constants.items()}
    buffers = {INPUT: uploads, SCRATCH: scratch}
    for text in texts:
        arguments = [np.int64(a.value) if a.kind == SIZE else buffers[a.kind][a.value] for a in text.arguments]
        _launch(text, b)(grid(text), text.local_size, *arguments)
    return scratch


def _launch(text: KernelText, b: Bind) -> Launch:
    return b.device.native.kernel(text.source, text.name)  # type: ignore[no-any-return]


def _allocate(b: Bind, nbytes: int) -> Any:
    buffer = b.device.allocate(nbytes)
    if buffer is None:
        raise errors.ResourceExhausted(f"no memory for {nbytes} bytes that the kernels of {b.op} share")
    return buffer


def _upload(b: Bind, value: Any) -> Any:
    buffer = _allocate(b, value.nbytes)
    b.device.copy_in(np.ascontiguousarray(value), buffer, b.stream)
    return buffer
