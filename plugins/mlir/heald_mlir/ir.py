"""The parse tree: operations, regions, blocks, values. A module is an operation `builtin.module`."""

from __future__ import annotations

from collections.abc import Iterator

from .attributes import UNKNOWN, Attribute, Location
from .types import Type


class Value:
    """A result of an operation, or an argument of a block. `owner` defines it, as its `index`-th."""

    __slots__ = ("index", "location", "owner", "type")

    def __init__(self, of: Type, owner: Operation | Block | None, index: int, location: Location = UNKNOWN) -> None:
        self.type = of
        self.owner = owner  # None: a use before the definition, while its region is parsed
        self.index = index
        self.location = location  # of a block argument


class Operation:
    """An operation with operands, results, attributes, successors and regions. `name` has its dialect first."""

    __slots__ = ("attributes", "location", "name", "operands", "regions", "results", "successors")

    def __init__(
        self, name: str, operands: list[Value] | None = None, result_types: tuple[Type, ...] | list[Type] = (),
        attributes: dict[str, Attribute] | None = None, regions: list[Region] | None = None,
        successors: list[Block] | None = None, location: Location = UNKNOWN,
    ) -> None:
        self.name = name
        self.operands = operands if operands is not None else []
        self.results = [Value(of, self, index) for index, of in enumerate(result_types)]
        self.attributes = attributes if attributes is not None else {}
        self.regions = regions if regions is not None else []
        self.successors = successors if successors is not None else []
        self.location = location

    def walk(self) -> Iterator[Operation]:
        """Yield this operation and all within it, each before the operations within it."""
        open_operations = [self]
        while open_operations:
            operation = open_operations.pop()
            yield operation
            open_operations += [inner for region in reversed(operation.regions) for block in reversed(region.blocks)
                                for inner in reversed(block.operations)]


class Block:
    """Operations in order, with arguments, which the entry of the block defines."""

    __slots__ = ("arguments", "operations")

    def __init__(self) -> None:
        self.arguments: list[Value] = []
        self.operations: list[Operation] = []

    def add_argument(self, of: Type, location: Location = UNKNOWN) -> Value:
        """Append an argument and return it."""
        self.arguments.append(Value(of, self, len(self.arguments), location))
        return self.arguments[-1]


class Region:
    """Blocks; the first is the entry. A region without blocks is empty."""

    __slots__ = ("blocks",)

    def __init__(self) -> None:
        self.blocks: list[Block] = []
