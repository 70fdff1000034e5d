"""Dominance: in a function, a value is defined before it is used, on every way to its use."""

from __future__ import annotations

from ..ir import Block, Operation, Region, Value
from ..lexer import MalformedText
from .faults import location_of

_Place = tuple[Block, int]  # a block, and a position in it


def check_dominance(function: Operation) -> None:
    """Raises MalformedText for an operand that does not dominate its use. Blocks that nothing reaches are exempt."""
    places: dict[Operation, _Place] = {}
    parents: dict[Block, Operation] = {}
    dominators: dict[Block, set[Block]] = {}
    for operation in function.walk():
        for region in operation.regions:
            dominators |= _dominators(region)
            for block in region.blocks:
                parents[block] = operation
                for index, inner in enumerate(block.operations):
                    places[inner] = block, index
    for operation, position in places.items():
        for number, value in enumerate(operation.operands):
            if position[0] in dominators and not _dominates(value, position, places, parents, dominators):
                definition = places.get(value.owner) if isinstance(value.owner, Operation) else None
                is_same_block = definition is not None and definition[0] is position[0]
                raise _dominance_error(operation, number, value, is_same_block)


def _dominates(value: Value, position: _Place, places: dict[Operation, _Place], parents: dict[Block, Operation],
               dominators: dict[Block, set[Block]]) -> bool:
    """True when the value is defined at a position; else at that of the operation around it, and so on outwards."""
    owner = value.owner
    block, index = (owner, -1) if isinstance(owner, Block) else places.get(owner, (None, 0)) if owner else (None, 0)
    ancestor: _Place | None = position
    while ancestor is not None:
        if ancestor[0] is block:
            return index < ancestor[1]
        if block in dominators.get(ancestor[0], ()):
            return True
        ancestor = places.get(parents[ancestor[0]])
    return False


def _dominators(region: Region) -> dict[Block, set[Block]]:
    """The blocks that dominate each block which the entry reaches, itself included."""
    if not region.blocks:
        return {}
    entry = region.blocks[0]
    dominators: dict[Block, set[Block]] = {entry: {entry}}
    left = [entry]
    while left:
        block = left.pop()
        for successor in block.operations[-1].successors if block.operations else ():
            before = dominators.get(successor)
            after = dominators[block] | {successor} if before is None else (before & dominators[block]) | {successor}
            if after != before:
                dominators[successor] = after
                left.append(successor)
    return dominators


def _dominance_error(operation: Operation, number: int, value: Value, is_same_block: bool) -> MalformedText:
    message = f"operand #{number} does not dominate this use"
    where = " (op in the same block)" if is_same_block else ""
    notes = ((location_of(value.owner), f"operand defined here{where}"),) if isinstance(value.owner, Operation) else ()
    return MalformedText(message, location_of(operation), notes)
