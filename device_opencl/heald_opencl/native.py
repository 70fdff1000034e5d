"""Native: the handle by which kernels drive an OpenCL device, heald's own kernels and other packs' alike.

    def bind(b):
        scale = b.device.native.kernel(SOURCE, "scale")
        count, factor = np.uint64(b.outputs[0].size), np.float32(2)
        return lambda x, out: scale((b.outputs[0].size,), None, x, out, count, factor)

A bind function that returns an object with `attach` may use `Launch.attached` there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl
from heald.api import errors

from .command_queue import CommandQueue
from .programs import Programs

Size = tuple[int, ...]


class Native:
    """`context` and `device` are pyopencl's own. `commands` is the queue: commands other than `kernel`'s launches go
    through its `enqueue`. `on_cpu`: the device's cores are the host's. `programs` has the caches."""

    def __init__(self, context: cl.Context, device: cl.Device, commands: CommandQueue, programs: Programs) -> None:
        self.context = context
        self.device = device
        self.commands = commands
        self.programs = programs
        self.on_cpu = bool(device.type & cl.device_type.CPU)
        self._launches: dict[tuple[str, str, str], Launch] = {}

    @property
    def queue(self) -> cl.CommandQueue:
        return self.commands.handle

    def kernel(self, source: str, name: str, options: str = "") -> Launch:
        """The kernel of this name in a program text. The first request builds it, in this process or an earlier one.

        Raises Internal, with the compiler's first three errors, and Unavailable when the device was lost.
        """
        self.commands.check()
        key = source, name, options
        if key not in self._launches:
            program = self.programs.get(source, options, name)
            try:
                kernel = cl.Kernel(program, name)
            except cl.Error as error:
                raise errors.Internal(f"the program has no kernel '{name}': {error}") from error
            self._launches.setdefault(key, Launch(self.commands, kernel))  # one object: its arguments are its state
        return self._launches[key]


class Launch:
    """Enqueues a kernel: `launch(global_size, local_size, *arguments)`, with buffers and NumPy scalars, of the same
    types in every call. A launch never waits. `local_size` may be None. Use few other values: some drivers compile for
    each."""

    def __init__(self, commands: CommandQueue, kernel: cl.Kernel) -> None:
        self._commands = commands
        self._kernel = kernel
        self._is_typed = False

    def __call__(self, global_size: Size, local_size: Size | None, *arguments: Any) -> None:
        if 0 not in global_size:
            self._commands.enqueue(self._enqueue, global_size, local_size, arguments)

    def attached(self, global_size: Size, local_size: Size | None, *arguments: Any) -> Callable[[], None]:
        """The same launch as a call without arguments. It has a kernel object of its own, which keeps its arguments."""
        if 0 in global_size:
            return lambda: None
        kernel = cl.Kernel(self._kernel.program, self._kernel.function_name)
        for number, argument in enumerate(arguments):
            kernel.set_arg(number, argument)
        return partial(self._commands.enqueue, cl.enqueue_nd_range_kernel, kernel, global_size, local_size)

    def _enqueue(
        self, queue: cl.CommandQueue, global_size: Size, local_size: Size | None, arguments: tuple[Any, ...]
    ) -> cl.Event:
        if not self._is_typed:  # with known types, scalars are set twenty times faster
            self._kernel.set_arg_types([type(a) if isinstance(a, np.generic) else None for a in arguments])
            self._is_typed = True
        self._kernel.set_args(*arguments)
        return cl.enqueue_nd_range_kernel(queue, self._kernel, global_size, local_size)
