"""Native: the handle by which kernels drive a GPU, heald's own kernels and other packs' alike.

    def bind(b):
        scale = b.device.native.kernel(SOURCE, "scale")
        grid, block = (-(-b.outputs[0].size // 256),), (256,)
        count, factor = np.int64(b.outputs[0].size), np.float32(2)
        return lambda x, out: scale(grid, block, x, out, count, factor)

A bind function that returns an object with `attach` may use `Launch.attached` there. Other libraries work on `stream`,
which `__cuda_stream__` hands over, within `enqueue`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from heald.api import DType, errors
from heald_kernel_text import Target

from . import driver
from .command_queue import Buffer, CommandQueue
from .foreign import View
from .programs import Programs

Size = tuple[int, ...]
ARGUMENT_BYTES = 16  # bytes of an argument: the widest scalar of NumPy that kernels take


class Native:
    """`context`: the driver's context; `commands`: the queue; `programs`: the caches; `target`: the GPU as kernel texts
    see it, with the type in which config lets products of float32 multiply."""

    def __init__(self, ordinal: int, commands: CommandQueue, programs: Programs, target: Target) -> None:
        self.ordinal = ordinal
        self.context = commands.context.handle
        self.commands = commands
        self.programs = programs
        self.target = target
        self._launches: dict[tuple[str, str, str], Launch] = {}

    @property
    def stream(self) -> int:
        """The driver's handle of the stream that kernels run on."""
        return self.commands.stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream

    def enqueue(self, buffers: Sequence[Buffer], command: Callable[..., object], *arguments: Any) -> None:
        """Call `command(*arguments)`, which enqueues work of another library on `stream`; it uses these buffers.

        Raises as the queue does. The call must not wait for the GPU.
        """
        self.commands.enqueue(buffers, command, *arguments)

    def view(self, buffer: Buffer, dtype: DType, dims: Size) -> View:
        """The start of a buffer as an array for other libraries, by DLPack and the CUDA array interface."""
        return View(buffer, dtype, dims, self.stream)

    def kernel(self, source: str, name: str, options: str = "") -> Launch:
        """The kernel of this name in a program text. The first request compiles it, in this process or an earlier one.

        `options`: macros, such as "-DSIDE=8". Raises Internal, with the compiler's first three errors, and Unavailable
        when the device was lost.
        """
        self.commands.check()
        key = source, name, options
        if key not in self._launches:
            binary = self.programs.get(source, options, name)
            try:
                driver.enter(self.context)
                function = driver.function(binary, name)
            except driver.DriverError as error:
                raise self.commands.error_of_call(error, f"kernel '{name}' does not load") from error
            self._launches.setdefault(key, Launch(self.commands, function))
        return self._launches[key]


class Arguments:
    """Arguments of a launch in memory, as the driver reads them: `address` is that of their addresses."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._slots = ctypes.create_string_buffer(ARGUMENT_BYTES * max(len(values), 1))
        start = ctypes.addressof(self._slots)
        for number, value in enumerate(values):
            raw = _bytes(value)
            ctypes.memmove(start + ARGUMENT_BYTES * number, raw, len(raw))
        addresses = [start + ARGUMENT_BYTES * n for n in range(len(values))]
        self._pointers = (ctypes.c_void_p * max(len(values), 1))(*addresses)
        self.address = ctypes.addressof(self._pointers)
        self.buffers = tuple(value for value in values if isinstance(value, Buffer))


class Launch:
    """Enqueues a kernel: `launch(grid, block, *arguments)`, with buffers and NumPy scalars of the types that the text
    declares. `shared`: bytes of dynamic shared memory. A launch never waits."""

    def __init__(self, commands: CommandQueue, function: int) -> None:
        self._commands = commands
        self._function = function

    def __call__(self, grid: Size, block: Size, *arguments: Any, shared: int = 0) -> None:
        self.attached(grid, block, *arguments, shared=shared)()

    def attached(self, grid: Size, block: Size, *arguments: Any, shared: int = 0) -> Callable[[], None]:
        """The same launch as a call without arguments."""
        if 0 in grid:
            return lambda: None
        commands, function, packed = self._commands, self._function, Arguments(arguments)
        sizes = (*grid, 1, 1)[:3], (*block, 1, 1)[:3]

        def call() -> None:
            commands.enqueue(packed.buffers, driver.launch, function, *sizes, shared, commands.stream,
                             packed.address)

        return call


def _bytes(value: Any) -> bytes:
    if isinstance(value, Buffer):
        return value.pointer.to_bytes(8, "little")
    if isinstance(value, np.generic):
        return value.tobytes()
    raise errors.InvalidArgument(f"an argument of a launch is {type(value).__name__}",
                                 hint="give buffers and NumPy scalars, such as np.int64(3)")
