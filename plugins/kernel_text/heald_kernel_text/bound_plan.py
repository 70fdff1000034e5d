"""Plans, bound to a node of a device: packing launches have run, the others wait for their buffers.

Launches that read only constants pack them. They run when the plan is bound, into scratch that lives as long as the
binding. The other launches run in each call. A `LaunchDriver` has the differences of the drivers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from heald.api import Bind, Device, errors

from .plan import INPUT, OUTPUT, SCRATCH, SIZE, Argument, KernelText, Plan, check_sizes
from .shown_parts import shown_parts

Size = tuple[int, ...]


class Launch(Protocol):
    """A compiled kernel. A call enqueues it; `attached` returns the same launch as a call without arguments."""

    def __call__(self, size: Size, local_size: Size, /, *arguments: Any) -> None: ...

    def attached(self, size: Size, local_size: Size, /, *arguments: Any) -> Callable[[], object]: ...


@dataclass(frozen=True, slots=True)
class LaunchDriver:
    """The launches of one driver.

    `fingerprint`: names the form of packed constants, for `Bind.prepared`.
    `compile_text`: returns the launch of a text for the device of a node.
    `launch_size`: the size that the driver expects: work-items, or groups of them.
    `buffer_bytes`: the size of a buffer.
    """

    fingerprint: str
    compile_text: Callable[[KernelText, Bind], Launch]
    launch_size: Callable[[KernelText], Size]
    buffer_bytes: Callable[[Any], int]


class BoundArgument(NamedTuple):
    """An argument of a launch: a buffer of the call by its index, or a constant where `buffer_index` is None."""

    buffer_index: int | None
    constant: Any = None


class BoundLaunch(NamedTuple):
    """A compiled text with its size and its arguments."""

    launch: Launch
    text: KernelText
    size: Size
    arguments: Sequence[BoundArgument]

    def actual_arguments(self, buffers: Sequence[Any]) -> list[Any]:
        """Return the arguments of a call with these buffers."""
        return [constant if index is None else buffers[index] for index, constant in self.arguments]


class BoundPlan:
    """The launches of a node over its inputs, its outputs, and scratch behind them.

    `shows`: by output, the input of which it is a part, and its first element; None where the launches are needed.
    """

    def __init__(
        self, launches: Sequence[BoundLaunch], driver: LaunchDriver, shows: Mapping[int, tuple[int, int]] | None = None
    ) -> None:
        self._launches = launches
        self._driver = driver
        self.shows = shows

    def run(self, *buffers: Any) -> None:
        for bound in self._launches:
            bound.launch(bound.size, bound.text.local_size, *bound.actual_arguments(buffers))

    def attach(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], Any]:
        """Raises as `check_buffers`."""
        self.check_buffers(inputs + outputs)
        return self.attach_buffers(inputs + outputs)

    def attach_buffers(self, buffers: Sequence[Any]) -> Callable[[], Any]:
        """Return one call without arguments for all launches."""
        calls = [bound.launch.attached(bound.size, bound.text.local_size, *bound.actual_arguments(buffers))
                 for bound in self._launches]
        return calls[0] if len(calls) == 1 else lambda: [call() for call in calls]

    def check_buffers(self, buffers: Sequence[Any]) -> None:
        """Raise InvalidArgument for a buffer that is smaller than a launch touches. `buffers`: the first of a call."""
        for bound in self._launches:
            check_sizes(bound.text, [
                self._driver.buffer_bytes(buffers[index]) if index is not None and index < len(buffers) else None
                for index, _ in bound.arguments])


def bind_plan(plan: Plan, b: Bind, driver: LaunchDriver) -> BoundPlan:
    """Bind a plan to a node. Launches that only pack constants run now; the others run in each call. The memory plan of
    the program gives them their scratch."""
    packing = plan.once(lambda number: b.inputs[number].is_known)
    packed = _packed_scratch(packing, plan, b, driver) if packing else {}
    unpacked = [number for number in range(len(plan.scratch)) if number not in packed]
    scratch_index = {number: b.scratch(plan.scratch[number]) for number in unpacked}
    first_index = {INPUT: 0, OUTPUT: len(b.inputs)}

    def bound_argument(argument: Argument) -> BoundArgument:
        kind, value = argument
        if kind == SIZE:
            return BoundArgument(None, np.int64(value))
        if kind != SCRATCH:
            return BoundArgument(first_index[kind] + value)
        if value in packed:
            return BoundArgument(None, packed[value])
        return BoundArgument(scratch_index[value])

    return BoundPlan([BoundLaunch(driver.compile_text(text, b), text, driver.launch_size(text),
                                  [bound_argument(argument) for argument in text.arguments])
                      for text in plan.launches if text not in packing], driver, shown_parts(b))


def _packed_scratch(packing: Sequence[KernelText], plan: Plan, b: Bind, driver: LaunchDriver) -> Mapping[int, Any]:
    """Scratch by number, filled by these launches; once for all links of a program that know the same constants.

    Its memory returns when the program is closed.
    """
    numbers = sorted({a.value for text in packing for a in text.arguments if a.kind == INPUT})
    constants = [b.inputs[number].value for number in numbers]
    signature = [(text.name, *(a.value for a in text.arguments)) for text in packing]
    latest: list[Any] = b.prepared(f"{driver.fingerprint} {signature}", list,
                                   release=partial(_free_packed, b.device))
    if not latest or any(x is not y for x, y in zip(latest[0], constants, strict=True)):  # constants of another shape
        latest[:] = constants, _pack(packing, plan, b, driver, dict(zip(numbers, constants, strict=True)))
    return latest[1]  # type: ignore[no-any-return]


def _free_packed(device: Device, latest: Sequence[Any]) -> None:
    for buffer in latest[1].values() if latest else ():
        device.free(buffer)


def _pack(
    packing: Sequence[KernelText], plan: Plan, b: Bind, driver: LaunchDriver, constants: Mapping[int, Any]
) -> Mapping[int, Any]:
    """Run these launches over constants by the numbers of their inputs. Returns the scratch that they fill."""
    numbers = {a.value for text in packing for a in text.arguments if a.kind == SCRATCH}
    scratch = {number: _allocate(b, plan.scratch[number]) for number in numbers}
    uploads = {number: _upload(b, constant) for number, constant in constants.items()}
    buffers = {INPUT: uploads, SCRATCH: scratch}
    for text in packing:
        arguments = [np.int64(a.value) if a.kind == SIZE else buffers[a.kind][a.value] for a in text.arguments]
        driver.compile_text(text, b)(driver.launch_size(text), text.local_size, *arguments)
    return scratch


def _allocate(b: Bind, nbytes: int) -> Any:
    buffer = b.device.allocate(nbytes)
    if buffer is None:
        raise errors.ResourceExhausted(f"no memory for {nbytes} bytes that the kernels of {b.op} share")
    return buffer


def _upload(b: Bind, array: Any) -> Any:
    buffer = _allocate(b, array.nbytes)
    b.device.copy_in(np.ascontiguousarray(array), buffer, b.stream)
    return buffer
