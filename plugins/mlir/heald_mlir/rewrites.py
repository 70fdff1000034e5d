"""Rewrites of modules for `heald opt`: inlining of calls, and canonical forms. Each changes the module in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from . import attributes as a
from .ir import Block, Operation, Region, Value
from .parser import FUNCTION
from .program_reader import NATIVE, NONSTRICT, RETURN, SYNC

CALL, MERGE, NEW_CHAIN, CONSTANT = "tfrt.call", "tfrt.merge.chains", "tfrt.new.chain", "tfrt.constant."


def inline(module: Operation) -> None:
    """Replace strict calls by the body of their function, callees first. A function that calls itself stays."""
    functions = {_name(function): function for function in module.walk() if function.name == FUNCTION}
    done: set[str] = set()
    for name in functions:
        _inline_into(name, functions, done)


def _inline_into(start: str, functions: dict[str, Operation], done: set[str]) -> None:
    """Inline into a function and its callees, each after its own callees, without recursion."""
    path = [start]
    while path:
        name = path[-1]
        waiting = next((callee for callee in _callees(functions[name]) if callee in functions and callee not in done
                        and callee not in path), None)
        if waiting is not None:
            path.append(waiting)
            continue
        bodies = {callee: functions[callee] for callee in done if _is_inlinable(functions[callee])}
        for region in functions[name].regions:
            _inline_region(region, bodies)
        done.add(path.pop())


def _inline_region(region: Region, bodies: dict[str, Operation]) -> None:
    for block in region.blocks:
        replaced: dict[int, Value] = {}
        operations: list[Operation] = []
        for operation in block.operations:
            _replace_uses(operation, replaced)
            for inner in operation.regions:
                _inline_region(inner, bodies)
            callee = _callee(operation)
            if callee in bodies:
                body = bodies[callee].regions[0].blocks[0]
                copies, returned = _copy_block(body, operation.operands)
                operations += copies
                replaced |= {id(old): new for old, new in zip(operation.results, returned, strict=True)}
            else:
                operations.append(operation)
        block.operations = operations


def _is_inlinable(function: Operation) -> bool:
    region = function.regions[0] if function.regions else Region()
    return (len(region.blocks) == 1 and not {NATIVE, SYNC} & function.attributes.keys()
            and bool(region.blocks[0].operations) and region.blocks[0].operations[-1].name == RETURN
            and _name(function) not in _callees(function))


def _copy_block(block: Block, arguments: list[Value]) -> tuple[list[Operation], list[Value]]:
    """Copies of a block's operations over other arguments, and the values that it returns."""
    values = {id(old): new for old, new in zip(block.arguments, arguments, strict=True)}
    copies = [_copy(operation, values) for operation in block.operations[:-1]]
    return copies, [values[id(operand)] for operand in block.operations[-1].operands]


def _copy(operation: Operation, values: dict[int, Value]) -> Operation:
    copied = Operation(operation.name, [values.get(id(operand), operand) for operand in operation.operands],
                       [result.type for result in operation.results], dict(operation.attributes),
                       location=operation.location)
    for region in operation.regions:
        copy = Region()
        for block in region.blocks:
            twin = Block()
            copy.blocks.append(twin)
            inside = values | {id(old): twin.add_argument(old.type, old.location) for old in block.arguments}
            for inner in block.operations:
                twin.operations.append(_copy(inner, inside))
        copied.regions.append(copy)
    values |= {id(old): new for old, new in zip(operation.results, copied.results, strict=True)}
    return copied


def canonicalize(module: Operation) -> None:
    """Drop unused constants and chains; merge no chain twice, and no single chain."""
    for block in _blocks(module):
        replaced: dict[int, Value] = {}
        remaining = []
        for operation in block.operations:
            _replace_uses(operation, replaced)
            if operation.name == MERGE:
                operation.operands = list({id(value): value for value in operation.operands}.values())
                if len(operation.operands) == 1 and operation.operands[0].type == operation.results[0].type:
                    replaced[id(operation.results[0])] = operation.operands[0]
                    continue
            remaining.append(operation)
        block.operations = remaining
    for block in _blocks(module):
        _drop_unused(block)


def _drop_unused(block: Block) -> None:
    """Drop operations without effect whose results have no user, the last first."""
    users = Counter(id(operand) for operation in block.operations for inner in operation.walk()
                    for operand in inner.operands)
    remaining = []
    for operation in reversed(block.operations):
        if _is_pure(operation) and not any(users[id(result)] for result in operation.results):
            users.subtract(id(operand) for operand in operation.operands)
        else:
            remaining.append(operation)
    block.operations = remaining[::-1]


def _is_pure(operation: Operation) -> bool:
    return operation.name.startswith(CONSTANT) or operation.name in (NEW_CHAIN, MERGE)


def _replace_uses(operation: Operation, replaced: dict[int, Value]) -> None:
    for inner in operation.walk() if replaced else ():
        inner.operands = [replaced.get(id(operand), operand) for operand in inner.operands]


def _blocks(module: Operation) -> Iterator[Block]:
    for operation in module.walk():
        for region in operation.regions:
            yield from region.blocks


def _callees(function: Operation) -> set[str]:
    return {name for inner in function.walk() if (name := _callee(inner))}


def _callee(operation: Operation) -> str:
    """The function of a strict call that may be inlined; "" for another operation."""
    symbol = operation.attributes.get("callee")
    is_call = operation.name == CALL and NONSTRICT not in operation.attributes
    return symbol.root if is_call and isinstance(symbol, a.SymbolRefAttr) and not symbol.nested else ""


def _name(function: Operation) -> str:
    name = function.attributes.get("sym_name")
    return name.value if isinstance(name, a.StringAttr) else ""
