"""Plans, the results of the generators: kernel texts as plain data, with all that a driver needs to launch them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from heald.api import Bind, errors

from .dialect import Target
from .kernel_parts import KernelParts, Pointer
from .statements import Body

INPUT, OUTPUT, SCRATCH, SIZE = "input", "output", "scratch", "size"
BYTES = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "f16": 2, "u32": 4, "i32": 4, "f32": 4, "u64": 8, "i64": 8, "f64": 8}


class Argument(NamedTuple):
    """One argument of a kernel: buffer `value` of the node's inputs, outputs or the plan's scratch, or a number.

    Numbers are passed as signed 64-bit integers.
    """

    kind: str
    value: int


@dataclass(frozen=True, slots=True)
class KernelText:
    """One launch. The source text is a whole translation unit and the same for the same structure of a problem."""

    name: str
    source: str
    arguments: tuple[Argument, ...]
    global_size: tuple[int, ...]  # work-items, a multiple of local_size; CUDA's grid is the quotient
    local_size: tuple[int, ...]
    writes: tuple[int, ...]  # indices of the arguments that the kernel writes; it reads the other buffers
    extents: tuple[int, ...]  # bytes that the kernel touches of each argument's buffer, from its start


@dataclass(frozen=True, slots=True)
class Plan:
    """Launches in order, and the bytes of each scratch buffer between them. Inputs and outputs must not overlap."""

    launches: tuple[KernelText, ...] = ()
    scratch: tuple[int, ...] = ()

    def once(self, is_known: Callable[[int], bool]) -> list[KernelText]:
        """The launches that may run once, when a node is bound. They use known inputs, and scratch that no other launch
        writes. `is_known`: true for the number of an input that is a constant."""
        packing, count = set(range(len(self.launches))), -1
        while len(packing) != count:
            count = len(packing)
            spoilt = {text.arguments[i] for number, text in enumerate(self.launches) if number not in packing
                      for i in text.writes}
            packing = {number for number in packing if not any(
                a in spoilt or a.kind == OUTPUT or (a.kind == INPUT and not is_known(a.value))
                for a in self.launches[number].arguments)}
        return [self.launches[number] for number in sorted(packing)]

    def extents(self, *, written: bool = False) -> dict[Argument, int]:
        """The bytes that the launches touch of each buffer; with `written` only the bytes that they write."""
        extents: dict[Argument, int] = {}
        for text in self.launches:
            for position, (argument, nbytes) in enumerate(zip(text.arguments, text.extents, strict=True)):
                if argument.kind != SIZE and (position in text.writes or not written):
                    extents[argument] = max(nbytes, extents.get(argument, 0))
        return extents

    def over(self, inputs: Sequence[int] = (), outputs: Sequence[int] = (0,)) -> Plan:
        """The same plan, where input i of the texts is the node's input inputs[i]; likewise for outputs."""
        names = {INPUT: inputs, OUTPUT: outputs}
        launches = (
            replace(text, arguments=tuple(Argument(a.kind, names[a.kind][a.value]) if a.kind in names else a
                                          for a in text.arguments))
            for text in self.launches
        )
        return replace(self, launches=tuple(launches))


def check_plan(plan: Plan, b: Bind) -> None:
    """Raise Unimplemented unless the plan stays within its buffers, and writes all that it should."""
    extents, written = plan.extents(), plan.extents(written=True)
    check_extents({a: nbytes for a, nbytes in extents.items() if a.kind != SCRATCH}, b)
    for argument, nbytes in extents.items():
        if argument.kind == SCRATCH and not nbytes == written.get(argument, 0) <= plan.scratch[argument.value]:
            raise errors.Unimplemented(f"the types contradict each other: the kernels read {nbytes} bytes of scratch "
                                       f"memory, and write {written.get(argument, 0)}")


def check_extents(extents: Mapping[Argument, int], b: Bind) -> None:
    """Raise Unimplemented unless kernels of these extents stay within their operands, and reach the end of each needed
    output."""
    sizes = {Argument(INPUT, i): info.meta.nbytes for i, info in enumerate(b.inputs)}
    sizes |= {Argument(OUTPUT, i): meta.nbytes for i, meta in enumerate(b.outputs)}
    touched = {Argument(OUTPUT, i): 0 for i in b.needed} | dict(extents)
    for argument, nbytes in touched.items():
        if nbytes > sizes[argument] or (argument.kind == OUTPUT and nbytes < sizes[argument]):
            raise errors.Unimplemented(f"the types contradict each other: the kernels touch {nbytes} bytes of "
                                       f"{argument.kind} {argument.value}, which has {sizes[argument]}")


def check_sizes(text: KernelText, sizes: Sequence[int | None]) -> None:
    """Raise InvalidArgument for a buffer that is smaller than the kernel's text touches. `sizes`: the bytes of each
    argument's buffer, None for a number."""
    for nbytes, size in zip(text.extents, sizes, strict=True):
        if size is not None and size < nbytes:
            raise errors.InvalidArgument(f"a buffer of {size} bytes, where kernel '{text.name}' touches {nbytes}",
                                         hint="give buffers of the types and shapes that the kernel was bound for")


class Stage(NamedTuple):
    """A plan among others: the buffers that its inputs and outputs are."""

    plan: Plan
    inputs: Sequence[Argument]
    outputs: Sequence[Argument]


def chain_plans(stages: Sequence[Stage], scratch: Sequence[int] = ()) -> Plan:
    """The plans in order, as one. `scratch`: the bytes of each scratch buffer that stages name. Scratch of the
    plans themselves follows."""
    launches: list[KernelText] = []
    sizes = list(scratch)
    for plan, inputs, outputs in stages:
        plan_scratch = [Argument(SCRATCH, len(sizes) + number) for number in range(len(plan.scratch))]
        places = {INPUT: inputs, OUTPUT: outputs, SCRATCH: plan_scratch}
        for text in plan.launches:
            arguments = tuple(places[a.kind][a.value] if a.kind in places else a for a in text.arguments)
            launches.append(replace(text, arguments=arguments))
        sizes += plan.scratch
    return Plan(tuple(launches), tuple(sizes))


def kernel(
    target: Target, name: str, body: Body, reads: Sequence[Pointer], writes: Sequence[Pointer],
    sizes: Mapping[str, int], items: Sequence[int], local: Sequence[int], functions: str = "",
) -> KernelText:
    """A kernel with this body, and with parameters for the buffers read, the buffers written, and the sizes."""
    groups = tuple(-(-n // group) for n, group in zip(items, local, strict=True))
    wide, high, deep = (*local, 1, 1)[:3]
    source = target.dialect.source(
        KernelParts(name, (wide, high, deep), groups, reads, writes, sizes, body, functions))
    arguments = [*(Argument(p.kind, p.number) for p in (*reads, *writes)),
                 *(Argument(SIZE, value) for value in sizes.values())]
    rounded = tuple(n * group for n, group in zip(groups, local, strict=True))
    written = tuple(range(len(reads), len(reads) + len(writes)))
    extents = (*(BYTES[p.stored] * p.length for p in (*reads, *writes)), *(0 for _ in sizes))
    return KernelText(name, source, tuple(arguments), rounded, tuple(local), written, extents)


LINE = (256,)
PLANES = ((256, 1), (64, 4), (16, 16), (4, 64))  # few: PoCL compiles anew for each
GROUPS = 65535  # of a CUDA grid, in its second dimension and in its third


def plane(columns: int, rows: int) -> tuple[int, int]:
    """The local size for this many columns and rows."""
    fitting = [local for local in PLANES if local[0] <= columns] or [PLANES[-1]]
    return next((local for local in fitting if rows <= local[1] * GROUPS), fitting[-1])
