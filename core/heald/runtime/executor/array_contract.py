"""Array contract: a kernel writes every output, returns no other array, and leaves its inputs unchanged.

A returned array is found in the first run of an executable and when a call is bound, at no cost to later runs. With
`[debug] poison` each call is checked: outputs are poisoned before it, inputs are read-only, and checksums find writes
past NumPy.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from ...errors import PluginError
from ..contract.device import STREAM, Device
from ..contract.kernel import KernelDef

Run = Callable[..., Any]
Poisoner = Callable[[Any], None]  # overwrites an output


class FrameWithCalls(Protocol):
    """A frame, as far as it matters here: its calls in order."""

    calls: list[Callable[[], Any]]


def check_returned(value: Any, outputs: Sequence[Any], kernel: KernelDef) -> None:
    """Check the return value of a kernel that writes these outputs.

    Raises PluginError when it returned another array.
    """
    if value is None or not outputs or value is outputs[0]:  # NumPy's functions return their output
        return
    for array in value if isinstance(value, tuple | list) else (value,):
        if isinstance(array, np.ndarray | np.generic) and not any(_share_memory(array, out) for out in outputs):
            raise PluginError(
                f"the kernel of {kernel.op} (plugin {kernel.pack}) returned an array; it must write its output",
                op=kernel.op, plugin=kernel.pack,
                hint="write to the last argument, or declare the kernel with allocates=True")


def checked_run_function(run: Run, poisons: Sequence[Poisoner], kernel: KernelDef, first: int = 0) -> Run:
    """Wrap a run function: PluginError when a call changes an input or returns an array.

    Inputs begin at argument `first`. The last arguments are outputs, one for each of `poisons`, which overwrites it
    before the call. An output that shares memory with an input is not overwritten.
    """

    def call(*arguments: Any) -> Any:
        count = len(arguments) - len(poisons)
        inputs, outputs = arguments[first:count], arguments[count:]
        for poison_it, output in zip(poisons, outputs, strict=True):
            if not any(_share_memory(output, x) for x in inputs):
                poison_it(output)
        read = [i for i, x in enumerate(inputs) if _is_checked(x) and not any(_share_memory(x, out) for out in outputs)]
        before = [_checksum(inputs[i]) for i in read]
        passed_arguments = list(arguments)
        for i in read:
            if inputs[i].flags.writeable:  # constants are not, and stay the objects that they are
                passed_arguments[first + i] = view = inputs[i].view()
                view.flags.writeable = False
        try:
            returned = run(*passed_arguments)
        except ValueError as error:
            if "read-only" not in str(error):  # NumPy has no class for it
                raise
            raise _changed_input_error("an input", kernel) from error
        check_returned(returned, outputs, kernel)
        for i, checksum in zip(read, before, strict=True):
            if _checksum(inputs[i]) != checksum:
                raise _changed_input_error(f"its input {i}", kernel)
        return returned

    return call


def _changed_input_error(which: str, kernel: KernelDef) -> PluginError:
    return PluginError(f"the kernel of {kernel.op} (plugin {kernel.pack}) changed {which}, which it may only read",
                       op=kernel.op, plugin=kernel.pack,
                       hint="write to the outputs alone, or declare inplace for one of them")


def poison_array(array: Any) -> None:
    """Overwrite a contiguous host array. Arrays of Python objects stay: their elements are pointers."""
    from ..host.allocators.poisoning import poison

    if not array.dtype.hasobject:
        poison(array.reshape(-1).view(np.uint8))


def buffer_poisoner(device: Device, nbytes: int) -> Poisoner:
    """Return a function that overwrites outputs of this size in a device's memory, in stream order."""
    from ..host.allocators.poisoning import POISON

    nonsense = np.full(nbytes, POISON, np.uint8)
    nonsense.flags.writeable = False
    return lambda buffer: device.copy_in(nonsense, buffer, STREAM)


def check_first_run(frame: FrameWithCalls, check: Callable[[int, Any], None]) -> None:
    """Check each call of a frame in its first run.

    `check(index, returned)` is called for a call that returns a value.
    """
    this = weakref.ref(frame)  # no cycle: a frame that never ran is freed at once
    for index, call in enumerate(frame.calls):
        frame.calls[index] = partial(_run_first, this, index, call, check)


def _run_first(this: weakref.ref[FrameWithCalls], index: int, call: Run, check: Callable[[int, Any], None]) -> None:
    frame = this()
    if frame is not None:
        frame.calls[index] = call
    returned = call()
    if returned is not None:
        check(index, returned)


def _share_memory(a: Any, b: Any) -> bool:
    """True when two arrays may share memory, or two device buffers are the same object."""
    return a is b or (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b))


def _is_checked(value: Any) -> bool:
    """True for contiguous arrays. False for the stand-in of a constant, which repeats one element."""
    return isinstance(value, np.ndarray) and value.flags.c_contiguous


def _checksum(array: Any) -> int:
    """Checksum of the elements; for Python objects, of their identities."""
    return crc32(array.tobytes() if array.dtype.hasobject else array.reshape(-1).view(np.uint8))
