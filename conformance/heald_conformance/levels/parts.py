"""Parts: buffers over a part of another, by which a device shows a slice of a value without a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from heald.api import DeviceLimits, Node, dtypes, own_method

from ..arrays import generator
from ..case import sentence
from ..elementwise import ops_of
from ..subject import Subject, constant, placeholder, whatever_comes
from ..verdict import NotApplicable, expect_close, expect_same_bits

PARTS = 4  # of a value, each as long as the alignment


def alignment_of(on: Subject) -> int:
    """Raises NotApplicable for a device without parts."""
    alignment = None if on.host_visible else DeviceLimits.of(on.device.attributes).part_alignment
    if alignment is None or own_method(on.device, "part") is None:
        raise NotApplicable("its attribute 'limits' has no part_alignment: slices are copied")
    return alignment


def part_of(on: Subject, buffer: Any, start: int, nbytes: int) -> Any:
    with whatever_comes(f"{nbytes} bytes from byte {start} on", expected="a buffer", rule="Device.part"):
        return on.device.part(buffer, start, nbytes)


@sentence(over=lambda _: ["0", "1", "3"])
def a_part_has_the_bytes_from_its_start_on(on: Subject, number: str) -> None:
    alignment = alignment_of(on)
    start, total = int(number) * alignment, PARTS * alignment
    content = generator("part", number).integers(0, 256, total, np.uint8)
    with on.buffers(total) as (whole,):
        on.enqueue_in(content, whole)
        for nbytes in {1, 5, alignment - 1, alignment, total - start}:
            part = part_of(on, whole, start, nbytes)
            expect_same_bits(on.read(part, nbytes), content[start : start + nbytes],
                             f"{nbytes} bytes from byte {start} on", "Device.part")


@sentence()
def a_part_of_a_part_begins_at_the_sum_of_their_starts(on: Subject) -> None:
    alignment = alignment_of(on)
    content = generator("part of a part").integers(0, 256, PARTS * alignment, np.uint8)
    with on.buffers(content.nbytes) as (whole,):
        on.enqueue_in(content, whole)
        outer = part_of(on, whole, alignment, 3 * alignment)
        inner = part_of(on, outer, alignment, alignment + 3)
        expect_same_bits(on.read(inner, alignment + 3), content[2 * alignment : 3 * alignment + 3],
                         "a part of a part", "Device.part")


@sentence()
def a_part_shows_what_its_whole_has_when_work_reads_it(on: Subject) -> None:
    alignment = alignment_of(on)
    hosts = [np.zeros(alignment, np.uint8) for _ in range(on.size(20, 5))]
    with on.buffers(2 * alignment) as (whole,):
        part = part_of(on, whole, alignment, alignment)
        contents = [np.full(2 * alignment, seed, np.uint8) for seed in range(len(hosts))]
        for content, host in zip(contents, hosts, strict=True):
            on.enqueue_in(content, whole)
            on.enqueue_out(part, host)
        on.finish()
    for number, host in enumerate(hosts):
        expect_same_bits(host, np.full(alignment, number, np.uint8), f"a part behind write {number + 1} of its whole",
                         "Device.part")


@sentence()
def work_on_a_part_keeps_the_memory_of_its_freed_whole(on: Subject) -> None:
    alignment = alignment_of(on)
    for seed in range(on.size(20, 5)):
        content, host = np.full(2 * alignment, seed, np.uint8), np.zeros(alignment, np.uint8)
        whole = on.allocate(2 * alignment)
        on.enqueue_in(content, whole)
        part = part_of(on, whole, alignment, alignment)
        on.enqueue_out(part, host)
        on.device.free(whole)
        second = on.allocate(2 * alignment)  # the same memory is allowed, but only after the copy
        on.enqueue_in(content + np.uint8(1), second)
        on.finish()
        on.device.free(second)
        expect_same_bits(host, content[alignment:], "a copy out of a part whose whole was freed", "Device.part")


def integers(name: str, values: int | Sequence[int]) -> Node:
    return constant(name, np.array(values, np.int32))


def row_by_slice(on: Subject, columns: int) -> list[Node]:
    return [integers("begin", [2, 0]), integers("size", [1, columns]),
            Node("part", "Slice", ["y", "begin", "size"], attrs={"T": dtypes.float32, "Index": dtypes.int32},
                 device=on.name)]


def row_by_strided_slice(on: Subject, _: int) -> list[Node]:
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    return [*(integers(name, [at]) for name, at in (("begin", 2), ("end", 3), ("strides", 1))),
            Node("part", "StridedSlice", ["y", "begin", "end", "strides"], device=on.name,
                 attrs={"T": dtypes.float32, "Index": dtypes.int32} | masks | {"shrink_axis_mask": 1})]


def row_by_unpack(on: Subject, _: int) -> list[Node]:
    return [Node("part", "Unpack", ["y"], attrs={"T": dtypes.float32, "num": PARTS, "axis": 0}, device=on.name)]


def row_by_split(on: Subject, _: int) -> list[Node]:
    return [integers("axis", 0), Node("part", "Split", ["axis", "y"], device=on.name,
                                      attrs={"T": dtypes.float32, "num_split": PARTS})]


# By op, its nodes, and the name of the result that is row 2 of `y`.
SLICINGS: dict[str, tuple[Callable[[Subject, int], list[Node]], str]] = {
    "Slice": (row_by_slice, "part"), "StridedSlice": (row_by_strided_slice, "part"), "Split": (row_by_split, "part:2"),
    "Unpack": (row_by_unpack, "part:2"),
}


@sentence(over=lambda _: list(SLICINGS))
def kernels_read_a_part_of_a_value_in_its_place(on: Subject, op: str) -> None:
    """Later kernels write memory that is free: that of the whole is not, as long as a part of it has consumers."""
    columns = max(alignment_of(on) // 4, 1)
    if not on.has_kernel(op, T=dtypes.float32):
        raise NotApplicable(f"{on.type} has no float32 kernel for {op}")
    make_nodes, part = SLICINGS[op]
    first, attrs = max(ops_of(on), key=lambda one: one.arity), {"T": dtypes.float32}
    nodes = [placeholder("x"), Node("y", first.name, ["x"] * first.arity, attrs=attrs, device=on.name),
             *make_nodes(on, columns)]
    names = ["y", *(f"n{number}" for number in range(6))]
    nodes += [Node(name, first.name, [before] * first.arity, attrs=attrs, device=on.name)
              for before, name in pairwise(names)]
    nodes.append(Node("z", first.name, [part] * first.arity, attrs=attrs, device=on.name))
    rng = generator("parts", op)
    with on.session(nodes) as session:
        for number in range(on.size(10, 3)):
            x = rng.normal(size=(PARTS, columns)).astype(np.float32)
            value = first.compute(*[x] * first.arity)
            row = value[2:3] if op in ("Slice", "Split") else value[2]
            z, last = session.run(["z", "n5"], {"x": x})
            for _ in names[1:]:
                value = first.compute(*[value] * first.arity)
            tolerance = on.settings.tolerance("float32")
            expect_close(z, first.compute(*[row] * first.arity), tolerance, f"{first.name} of a part, run {number + 1}",
                         "Device.part")
            expect_close(last, value, tolerance, f"{first.name} beside a part, run {number + 1}", "Device.part")
        on.expect_placed(session)
