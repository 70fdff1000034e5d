"""The parts of a kernel, from which a dialect writes a whole source text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from .statements import Body


class Pointer(NamedTuple):
    """A buffer parameter: its name in the text, the value in the buffer, its C type.

    `length`: the elements from the buffer's start to the end of the last that the kernel touches.
    """

    name: str
    kind: str
    number: int
    stored: str
    length: int


class KernelParts(NamedTuple):
    """`group`: the work-items of a group in each dimension. `groups`: the groups of the launch in each dimension.

    `sizes`: numbers by their names in the body. `functions`: definitions in C that the body calls.
    """

    name: str
    group: tuple[int, int, int]
    groups: tuple[int, ...]
    reads: Sequence[Pointer]
    writes: Sequence[Pointer]
    sizes: Mapping[str, int]
    body: Body
    functions: str = ""


class Language(Protocol):
    """A dialect of kernel texts. `functions`: device functions in its own words, by name."""

    @property
    def name(self) -> str: ...
    @property
    def functions(self) -> Mapping[str, str]: ...

    def source(self, parts: KernelParts) -> str:
        """The text of a kernel. Raises Unimplemented for parts that the dialect has no words for."""
        ...
