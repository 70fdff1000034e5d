"""Operations as they were written, before their values are resolved: nodes, terminators, bodies and regions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ... import attributes as a

DEVICE, ASSIGNED, NAME = "_mlir_device", "_mlir_assigned_device", "_mlir_name"
KEYWORDS = {"device": DEVICE, "assigned_device": ASSIGNED, "name": NAME}  # in their only order


class Use(NamedTuple):
    """A use of a value: its name, its number in a pack, its position."""

    name: str
    number: int
    at: int


class Tail(NamedTuple):
    """The part of an operation behind its name: attributes, and the types of operands and results as text.

    `operands`: the types of all operands, or of the first of them: control tokens follow. `results`: types of the
    tensors. `typed`: False for the older form of operations in generic functions, which have no types.
    `counted`: True for types of an operation, which are as many as its data operands, and False for a list of types.
    `tokens`: the number of control tokens behind the tensors. `dropped`: properties that decide the results, and that
    no GraphDef has.
    """

    attributes: dict[str, a.Attribute]
    operands: tuple[str, ...]
    results: tuple[str, ...]
    typed: bool
    counted: bool = True
    tokens: int = 1
    dropped: Mapping[str, a.Attribute] = {}


class ParsedNode:
    """An operation of a body, which begins at `at`, with its name at `where`.

    `results`: names of its values, and how many each stands for. `location`: that of its `loc(...)`.
    """

    __slots__ = ("assigned_device", "at", "controls", "device", "inputs", "location", "name", "op", "regions",
                 "results", "tail", "where")

    def __init__(
        self, op: str, at: int, where: int, results: list[tuple[str, int]], inputs: list[Use], controls: list[Use],
        device: str, assigned_device: str, name: str, tail: Tail, regions: tuple[Region, ...] = (),
    ) -> None:
        self.op = op
        self.at = at
        self.where = where
        self.results = results
        self.inputs = inputs
        self.controls = controls
        self.device = device
        self.assigned_device = assigned_device
        self.name = name
        self.tail = tail
        self.regions = regions
        self.location: a.Location | None = None


class GetResult(NamedTuple):
    """A `get_result` of a generic function: tensor `number` of an output argument."""

    result: str
    source: Use
    output: str
    number: int
    at: int


class Return(NamedTuple):
    """The terminator of a function or a region: results, control results and their attributes, types of the results.

    `condition`: the condition of a loop, and its type. `typed`: False where no types are written.
    """

    results: list[Use]
    controls: list[tuple[Use, dict[str, a.Attribute]]]
    types: tuple[str, ...]
    at: int
    op: str
    condition: tuple[Use, str] | None = None
    typed: bool = True


class Body(NamedTuple):
    """The operations of a block. `returned`: its terminator. `last`: the op of its last operation, if that is none.

    `at`: the position of its brace. `labels`: the positions of labels. `blocks`: the number of blocks.
    `early`: the first terminator with an operation behind it.
    """

    nodes: list[ParsedNode]
    get_results: list[GetResult]
    returned: Return | None
    last: str = ""
    at: int = 0
    labels: tuple[int, ...] = ()
    blocks: int = 1
    early: Return | None = None

    @property
    def is_empty(self) -> bool:
        return self.returned is None and not self.last


class Region(NamedTuple):
    """A region of a control flow op: its arguments with their types, its operations."""

    arguments: list[tuple[str, str, int]]
    body: Body
