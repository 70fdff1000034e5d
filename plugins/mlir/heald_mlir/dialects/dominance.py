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
                for index, each in enumerate(block.operations):
                    places[each] = block, index
    for operation, place in places.items():
        for number, value in enumerate(operation.operands):
            if place[0] in dominators and not _dominates(value, place, places, parents, dominators):
                definition = places.get(value.owner) if isinstance(value.owner, Operation) else None
                raise _undominated(operation, number, value, definition is not None and definition[0] is place[0])


def _dominates(value: Value, place: _Place, places: dict[Operation, _Place], parents: dict[Block, Operation],
               dominators: dict[Block, set[Block]]) -> bool:
    """True when the value is defined at a place; else at that of the operation around it, and so on outwards."""
    owner = value.owner
    block, index = (owner, -1) if isinstance(owner, Block) else places.get(owner, (None, 0)) if owner else (None, 0)
    around: _Place | None = place
    while around is not None:
        if around[0] is block:
            return index < around[1]
        if block in dominators.get(around[0], ()):
            return True
        around = places.get(parents[around[0]])
    return False


def _dominators(region: Region) -> dict[Block, set[Block]]:
    """The blocks that dominate each block which the entry reaches, itself included."""
    if not region.blocks:
        return {}
    entry = region.blocks[0]
    found: dict[Block, set[Block]] = {entry: {entry}}
    left = [entry]
    while left:
        block = left.pop()
        for successor in block.operations[-1].successors if block.operations else ():
            before = found.get(successor)
            after = found[block] | {successor} if before is None else (before & found[block]) | {successor}
            if after != before:
                found[successor] = after
                left.append(successor)
    return found


def _undominated(operation: Operation, number: int, value: Value, is_same_block: bool) -> MalformedText:
    message = f"operand #{number} does not dominate this use"
    where = " (op in the same block)" if is_same_block else ""
    notes = ((location_of(value.owner), f"operand defined here{where}"),) if isinstance(value.owner, Operation) else ()
    return MalformedText(message, location_of(operation), notes)
