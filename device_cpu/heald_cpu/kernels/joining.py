"""Kernels that put tensors together, repeat, extend, reorder or choose among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from heald.api import Attachable, Bind, Kernels

from ..element_types import NUMBERS, zero
from .const_inputs import integer, integers, pairs
from .staging import nothing

FEWEST_ELEMENTS_FOR_COPIES = 1024  # elements of a concatenation, from which on views are worth their making
FEWEST_ELEMENTS_FOR_UFUNCS = 4096  # elements, from which on the overhead of three ufuncs does not matter
FEW_INPUTS = 16
Run = Callable[..., None]
copyto = np.copyto


def pack(b: Bind) -> Run:
    """np.stack makes lists and views of all inputs: for few of them, one assignment each takes a tenth of the time."""
    axis, count = b.attrs["axis"], len(b.inputs)
    if count > FEW_INPUTS:
        return lambda *arrays: np.stack(arrays[:-1], axis, out=arrays[-1])
    before = (slice(None),) * (axis % len(b.outputs[0].dims))
    places = [(*before, i, ...) for i in range(count)]

    def run(*arrays: Any) -> None:
        out = arrays[-1]
        for place, array in zip(places, arrays, strict=False):
            out[place] = array

    return run


class Concatenation(NamedTuple):
    """Concatenation by one copy per input: np.concatenate takes up to twice as long along the last axis of large ones.
    A single run of small ones does not make the views for that."""

    attach: Callable[[tuple[Any, ...], tuple[Any, ...]], Callable[[], None]]
    values: slice
    axis: int

    def run(self, *arrays: Any) -> None:
        out = arrays[-1]
        if out.size < FEWEST_ELEMENTS_FOR_COPIES:
            np.concatenate(arrays[:-1][self.values], self.axis, out)
        else:
            self.attach(arrays[:-1], (out,))()


def _bind_concat(b: Bind, values: slice, axis: int) -> Attachable:
    lengths = [x.meta.dims[axis] for x in b.inputs[values]]
    before = (slice(None),) * (axis % len(b.outputs[0].dims))
    parts = [(*before, slice(end - n, end)) for n, end in zip(lengths, accumulate(lengths), strict=True)]

    def attach(inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], None]:
        pairs = [(outputs[0][part], x) for part, x in zip(parts, inputs[values], strict=True)]

        def run() -> None:
            for target, x in pairs:
                copyto(target, x)

        return run

    return Concatenation(attach, values, axis)


def concat(b: Bind) -> Attachable:
    return _bind_concat(b, slice(-1), integer(b, len(b.inputs) - 1))


def concat_by_dim(b: Bind) -> Attachable:
    return _bind_concat(b, slice(1, None), integer(b, 0))


def concat_offset(b: Bind) -> Run:
    axis, count = integer(b, 0), len(b.outputs)
    offsets = np.zeros((count, *b.outputs[0].dims), b.outputs[0].dtype.numpy)
    offsets[1:, axis] = np.cumsum([integers(b, i + 1)[axis] for i in range(count - 1)])

    def run(*arrays: Any) -> None:
        for out, offset in zip(arrays[count + 1 :], offsets, strict=True):
            np.copyto(out, offset)

    return run


def _inner(b: Bind) -> tuple[Any, ...]:
    """The index of the input within the padded output."""
    lengths = b.inputs[0].meta.dims
    return (*(slice(before, before + n) for (before, _), n in zip(pairs(b, 1), lengths, strict=True)), ...)


def pad(b: Bind) -> Run:
    inner = _inner(b)
    borders = []  # indices of the borders before and behind the input along each axis, without earlier axes' borders
    for axis, part in enumerate(inner[:-1]):
        borders += [(*inner[:axis], side) for side in (slice(0, part.start), slice(part.stop, None))]
    blank = zero(b.attrs["T"])

    def run(x: Any, _paddings: Any, *constant_and_out: Any) -> None:
        out = constant_and_out[-1]
        value = blank if len(constant_and_out) == 1 else constant_and_out[0]
        for border in borders:
            out[border] = value
        out[inner] = x

    return run


def mirror_pad(b: Bind) -> Run:
    """MirrorPad, axis by axis. Parts mirrored along an axis include the mirrored parts of earlier axes."""
    inner, copies = _inner(b), list(_mirror_indices(b, b.inputs[0].meta.dims))

    def run(x: Any, _paddings: Any, out: Any) -> None:
        out[inner] = x
        for target, source in copies:
            out[target] = out[source]

    return run


def mirror_pad_grad(b: Bind) -> Run:
    """Adds the gradient of each mirrored element to the gradient of its source, axis by axis."""
    lengths = b.outputs[0].dims
    inner = (*(slice(before, before + n) for (before, _), n in zip(pairs(b, 1), lengths, strict=True)), ...)
    copies = list(_mirror_indices(b, lengths))

    def run(dy: Any, _paddings: Any, out: Any) -> None:
        total = dy.copy()
        for target, source in copies:
            total[source] += total[target]
        np.copyto(out, total[inner])

    return run


def _mirror_indices(b: Bind, lengths: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
    """Pairs of indices into the padded tensor, a mirrored part and its source, in the order of copying. `lengths` are
    without padding."""
    skip = 1 if b.attrs["mode"] == "REFLECT" else 0
    for axis, ((before, after), n) in enumerate(zip(pairs(b, 1), lengths, strict=True)):
        lead, first, last = (slice(None),) * axis, before + skip, before + n - 1 - skip
        if before:
            yield (*lead, slice(0, before)), (*lead, _backwards(first + before - 1, before))
        if after:
            yield (*lead, slice(before + n, None)), (*lead, _backwards(last, after))


def _backwards(start: int, count: int) -> slice:
    stop = start - count
    return slice(start, stop if stop >= 0 else None, -1)


def transpose(b: Bind) -> Run:
    perm = b.inputs[1].value
    assert perm is not None
    axes = tuple(int(axis) for axis in perm)
    return lambda x, _perm, out: np.copyto(out, x.transpose(axes))


def tile(b: Bind) -> Run:
    """Tile. The output is viewed as (times, length) pairs of axes, and the input broadcast over the times."""
    lengths, total = b.inputs[0].meta.dims, b.outputs[0].dims
    multiples = b.inputs[1].value
    assert multiples is not None
    once = tuple(d for n in lengths for d in (1, n))
    pairs = tuple(d for times, n in zip(multiples, lengths, strict=True) for d in (int(times), n))
    if 0 in total:
        return nothing
    return lambda x, _multiples, out: np.copyto(out.reshape(pairs), x.reshape(once))


def select(b: Bind) -> Run:
    """Select and SelectV2. Select's condition vector chooses rows.

    Copying under a mask takes from 0.4 ms (all false) to 5 ms (random) for a million float32; by bits it takes 1 ms.
    """
    lengths = b.inputs[0].meta.dims
    if b.op == "Select" and len(lengths) == 1:
        lengths += (1,) * (len(b.outputs[0].dims) - 1)

    def run(condition: Any, then: Any, otherwise: Any, out: Any) -> None:
        np.copyto(out, otherwise)
        np.copyto(out, then, where=condition.reshape(lengths))

    def run_on_bits(condition: Any, then: Any, otherwise: Any, out: Any) -> None:
        then, otherwise, out = (x.view(unsigned) for x in (then, otherwise, out))
        np.bitwise_xor(then, otherwise, out)
        np.multiply(out, condition.reshape(lengths), out)
        np.bitwise_xor(out, otherwise, out)

    dtype = b.outputs[0].dtype.numpy
    if dtype.hasobject or dtype.itemsize > 8 or b.outputs[0].size < FEWEST_ELEMENTS_FOR_UFUNCS:
        return run
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return run_on_bits


def register_kernels(kernels: Kernels) -> None:
    binds: dict[str, Callable[[Bind], Run | Attachable]] = {
        "Concat": concat_by_dim, "ConcatOffset": concat_offset, "ConcatV2": concat, "MirrorPad": mirror_pad,
        "Pack": pack, "Pad": pad, "PadV2": pad, "Select": select, "SelectV2": select, "Tile": tile,
        "Transpose": transpose,
    }
    for op, bind in binds.items():
        kernels.kernel(op)(bind)
    kernels.kernel("MirrorPadGrad", dtypes={"T": NUMBERS})(mirror_pad_grad)
