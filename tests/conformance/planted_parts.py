"""A plugin of the tests alone: devices with parts of buffers. One is right, each other one has one fault."""

from __future__ import annotations

from functools import partial

import numpy as np
from heald.api import hookimpl
from heald_example_device import kernels as example
from heald_example_device.device import Example
from heald_example_device.memory import Buffer

HEALD_API = (1, 4)
ALIGNMENT = 64


class Part(Buffer):
    def __init__(self, whole, start, nbytes):
        self.nbytes = nbytes
        self.shown = bytes_of(whole, start + nbytes)[start:]

    def elements(self, dtype, count):
        return self.shown[: count * dtype.itemsize].view(dtype)


def bytes_of(buffer, count):
    return buffer.elements(np.dtype(np.uint8), count)


class Parting(Example):
    """No fault."""

    type = "PARTING"

    def __init__(self, index, memory):
        super().__init__(index, memory)
        self.attributes["limits"] = {"part_alignment": ALIGNMENT}

    def part(self, buffer, start, nbytes):
        return Part(buffer, start, nbytes)


class ForgetsTheStart(Parting):
    type = "UNMOVED"

    def part(self, buffer, start, nbytes):
        return Part(buffer, 0, nbytes)


class CountsFromTheFirstWhole(Parting):
    type = "FLAT"

    def part(self, buffer, start, nbytes):
        whole = getattr(buffer, "whole", buffer)
        part = Part(whole, start, nbytes)
        part.whole = whole
        return part


class CopiesAtOnce(Parting):
    """A part has the bytes of the moment at which it is made."""

    type = "FROZEN"

    def part(self, buffer, start, nbytes):
        self.synchronize(self.record(0))
        part = Buffer(nbytes)
        bytes_of(part, nbytes)[:] = bytes_of(buffer, start + nbytes)[start:]
        return part


class GivesMemoryAway(Parting):
    """The end of a whole clears it before the newest work, which may be on a part of it."""

    type = "GREEDY"

    def part(self, buffer, start, nbytes):
        part = super().part(buffer, start, nbytes)
        self.__dict__.setdefault("wholes", {})[id(buffer)] = buffer
        return part

    def free(self, buffer):
        if id(buffer) in self.__dict__.get("wholes", {}):
            queue, elements = self.native.streams[0], bytes_of(buffer, buffer.nbytes)
            queue.insert(max(len(queue) - 1, 0), partial(elements.fill, 0xEE))
        super().free(buffer)


class RaisesForParts(Parting):
    type = "PARTLESS"

    def part(self, buffer, start, nbytes):
        raise ValueError("no parts")


DEVICES = (Parting, ForgetsTheStart, CountsFromTheFirstWhole, CopiesAtOnce, GivesMemoryAway, RaisesForParts)


def register(kernels):
    example.register_kernels(kernels)

    @kernels.kernel("Unpack", dtypes={"T": "float32"})
    def unpack(b):
        count = b.outputs[0].size

        def run(x, *outs):
            for number, out in enumerate(outs):
                b.device.native.streams[b.stream].append(partial(copy_row, x, out, number, count))

        run.shows = {number: (0, number * count) for number in range(len(b.outputs))}
        return run


def copy_row(x, out, number, count):
    dtype = np.dtype(np.float32)
    np.copyto(out.elements(dtype, count), x.elements(dtype, (number + 1) * count)[number * count :])


def scan_of(kind):
    return lambda config: iter([kind(0, 1 << 26)])


@hookimpl
def heald_devices(registry):
    for kind in DEVICES:
        registry.device(type=kind.type, scan=scan_of(kind), kernels=register)
