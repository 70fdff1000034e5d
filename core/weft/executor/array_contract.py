"""Array contract: a kernel writes every output, returns no other array, and leaves its inputs as they are.

A returned array is told in the first run of an executable and wherever a call is bound, at no cost to later runs. With
`[debug] poison` each call is checked: its outputs hold nonsense before it, and its inputs are compared by a checksum.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from ..contract.device import STREAM, Device
from ..contract.kernel import KernelDef
from ..errors import PluginError
from ..host.allocators.poisoning import POISON, poison

if TYPE_CHECKING:
    from .frame import Frame

Run = Callable[..., Any]
Poisoner = Callable[[Any], None]  # overwrites an output


def check_returned(value: Any, outputs: Sequence[Any], kernel: KernelDef) -> None:
    """Raises PluginError where the run function of a kernel that writes these outputs returned another array."""
    if value is None or not outputs or value is outputs[0]:  # NumPy's functions return their output
        return
    for each in value if isinstance(value, tuple | list) else (value,):
        if isinstance(each, np.ndarray | np.generic) and not any(_share(each, out) for out in outputs):
            raise PluginError(
                f"the kernel of {kernel.op} (plugin {kernel.pack}) returned an array; it must write its output",
                op=kernel.op, hint="write to the last argument, or declare the kernel with allocates=True")


def watched(run: Run, poisons: Sequence[Poisoner], kernel: KernelDef, first: int = 0) -> Run:
    """The run function, which raises PluginError where a call changes an input or returns an array.

    Inputs begin at argument `first`. The last arguments are outputs, one for each of `poisons`, which overwrite them
    before the call. An output that is written over an input is left as it is.
    """

    def call(*arguments: Any) -> Any:
        count = len(arguments) - len(poisons)
        inputs, outputs = arguments[first:count], arguments[count:]
        for poison_it, output in zip(poisons, outputs, strict=True):
            if not any(_share(output, x) for x in inputs):
                poison_it(output)
        read = [i for i, x in enumerate(inputs) if _is_checked(x) and not any(_share(x, out) for out in outputs)]
        before = [_checksum(inputs[i]) for i in read]
        returned = run(*arguments)
        check_returned(returned, outputs, kernel)
        for i, checksum in zip(read, before, strict=True):
            if _checksum(inputs[i]) != checksum:
                raise PluginError(f"the kernel of {kernel.op} (plugin {kernel.pack}) changed its input {i}, which it "
                                  "may only read", op=kernel.op,
                                  hint="write to the outputs alone, or declare inplace for one of them")
        return returned

    return call


def poison_array(array: Any) -> None:
    """Overwrite a contiguous array of the host. Python objects stay: they are no bit patterns."""
    if not array.dtype.hasobject:
        poison(array.reshape(-1).view(np.uint8))


def buffer_poisoner(device: Device, nbytes: int) -> Poisoner:
    """Overwrites outputs of this size in the memory of a device, in the order of its stream."""
    nonsense = np.full(nbytes, POISON, np.uint8)
    nonsense.flags.writeable = False
    return lambda buffer: device.copy_in(nonsense, buffer, STREAM)


def look_once(frame: Frame, check: Callable[[int, Any], None]) -> None:
    """Have each call of a frame checked in its first run: `check(place, returned)`, where it returns anything."""
    this = weakref.ref(frame)  # a frame that is never run is freed at once
    for place, call in enumerate(frame.calls):
        frame.calls[place] = partial(_first, this, place, call, check)


def _first(this: weakref.ref[Frame], place: int, call: Run, check: Callable[[int, Any], None]) -> None:
    frame = this()
    if frame is not None:
        frame.calls[place] = call
    returned = call()
    if returned is not None:
        check(place, returned)


def _share(a: Any, b: Any) -> bool:
    """True when two arrays may have memory in common, or two buffers of a device are the same."""
    return a is b or (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b))


def _is_checked(value: Any) -> bool:
    """True for arrays but for the stand-in of a constant, which is one element all over."""
    return isinstance(value, np.ndarray) and value.flags.c_contiguous


def _checksum(array: Any) -> int:
    """Of the elements; of Python objects, which objects they are."""
    return crc32(array.tobytes() if array.dtype.hasobject else array.reshape(-1).view(np.uint8))
