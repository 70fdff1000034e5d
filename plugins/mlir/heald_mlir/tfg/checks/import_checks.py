"""The nodes of a GraphDef, checked as TensorFlow's importer checks them, with its words.

Each check reads a NodeDef: attributes and result types first, then inputs. An input of a later node is checked when
that node comes, and one of no node at the end, in one message for all of them. A node of an unknown op keeps every
result that is taken: TensorFlow refuses such an op, and heald prints it.

Core's verifier accepts other graphs: it asks for names and for the absence of cycles, and knows no op. A step that
needs a node checks it against its op. So a graph with a faulty node may run, and has no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from heald.api import Input, Node, errors, wire
from heald.runtime.values import Buffer

from ..signatures.result_types import Declaration, Declarations, Result, tensor_type
from ..values.element_types import REF, TEXTS
from ..values.node_section import ATTR, INPUT, NAME, OP

_LIST, _TYPE, _PLACEHOLDER, _FUNC, _ITEM_FUNC = 1, 6, 9, 10, 9  # fields of AttrValue and of its ListValue
_COUNTS = (3, 5)  # fields of AttrValue that count results: an integer, a boolean
_UNBOUNDED = 2**31
_TYPES_ONLY = frozenset((_TYPE,))


class NodeFields(NamedTuple):
    """A NodeDef that need not be well formed, with the names of a Node's slots."""

    name: str
    op: str
    inputs: Sequence[Input]
    controls: Sequence[str]
    raw: Buffer


AnyNode = Node | NodeFields


def fault_of(node: AnyNode, message: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(message, node=node.name or None, op=node.op or None)


def fields_of_message(raw: Buffer) -> NodeFields:
    """The fields of a NodeDef. Raises DataLoss."""
    texts: dict[int, str] = {NAME: "", OP: ""}
    inputs: list[Input] = []
    controls: list[str] = []
    for number, kind, at, end in wire.fields(raw, 0, len(raw)):
        if kind == wire.BYTES and number in texts:
            texts[number] = wire.text(raw, at, end)
        elif kind == wire.BYTES and number == INPUT:
            source = parse_source(wire.text(raw, at, end))
            controls.append(source) if isinstance(source, str) else inputs.append(source)
    return NodeFields(texts[NAME], texts[OP], inputs, controls, raw)


def parse_source(text: str) -> Input | str:
    """An input as TensorFlow splits its name: a tensor, or the node of a control input."""
    index = 0
    head, colon, tail = text.rpartition(":")
    if colon and tail.isascii() and tail.isdecimal():
        text, index = head, (int(tail) + 2**31) % 2**32 - 2**31  # as an int32 of C++ overflows
    elif text.startswith("^"):
        return text[1:]
    node, _, output = text.partition(":")
    return Input(node, output or None, index)


class ImportedResults(NamedTuple):
    """The results of a node by output argument; None for an unknown op. `total`: the largest number of them."""

    groups: tuple[Result, ...] | None
    total: int

    def type_of(self, source: Input) -> str | None:
        """The type of a result that exists; None where the op is unknown."""
        types = [of for group in self.groups or () if source.output in (None, group.argument) for of in group.types]
        return types[source.index] if types else None


class NodeChecks:
    """Checks nodes one by one. Nodes that share their attributes share the outcome."""

    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations
        self._known: dict[tuple[str, int], ImportedResults] = {}

    def results(self, node: AnyNode) -> ImportedResults:
        """The results of a node. Raises InvalidArgument for faulty attributes and types."""
        if isinstance(node, NodeFields):
            return self._results(node)
        key = (node.op, id(node.attrs))
        results = self._known.get(key)
        if results is None:
            results = self._known[key] = self._results(node)
        return results

    def _results(self, node: AnyNode) -> ImportedResults:
        if not node.op:
            raise fault_of(node, f"Node {node.name} has an empty op name")
        values = attribute_values(node.raw)
        for name, value in values.items():
            fault = value_fault(value) if name else f"Node {node.name} has an empty attr name"
            if fault is not None:
                raise fault_of(node, fault)
        declaration = self._declarations.get(node.op)
        if declaration is None:
            return ImportedResults(None, _UNBOUNDED)
        for argument in declaration.outputs:
            if (fault := _type_fault(argument, declaration, values)) is not None:
                raise fault_of(node, fault)
        groups = declaration.results(values)
        return ImportedResults(groups, sum(len(group.types) for group in groups))


def attribute_values(raw: Buffer) -> dict[str, Buffer]:
    """The AttrValues of a NodeDef by name."""
    return dict(map_entry(raw[at:end]) for number, kind, at, end in wire.fields(raw, 0, len(raw))
                if number == ATTR and kind == wire.BYTES)


def map_entry(raw: Buffer) -> tuple[str, Buffer]:
    """Key and value of an entry of a map from texts."""
    key = ""
    value: Buffer = b""
    for number, kind, at, end in wire.fields(raw, 0, len(raw)):
        if number == 1 and kind == wire.BYTES:
            key = wire.text(raw, at, end)
        elif number == 2 and kind == wire.BYTES:
            value = raw[at:end]
    return key, value


def value_fault(value: Buffer, depth: int = 0) -> str | None:
    """The fault of an AttrValue: a number that is no data type, an attribute of a function without name."""
    wire.check_nesting(depth, 0)
    for number, kind, at, end in wire.fields(value, 0, len(value)):
        if number == _TYPE and kind == wire.VARINT:
            fault = number_fault(wire.integer(value, at, end))
        elif number == _FUNC:
            fault = _function_fault(value[at:end], "empty attr name", depth)
        elif number == _LIST:
            fault = _list_fault(value[at:end], depth)
        else:
            continue
        if fault is not None:
            return fault
    return None


def _list_fault(items: Buffer, depth: int) -> str | None:
    for number, kind, at, end in wire.fields(items, 0, len(items)):
        if number == _TYPE:
            faults = map(number_fault, wire.integers(items, kind, at, end, "types"))
            if (fault := next(filter(None, faults), None)) is not None:
                return fault
        elif number == _ITEM_FUNC and kind == wire.BYTES:
            if (fault := _function_fault(items[at:end], "empty func_attr name", depth)) is not None:
                return fault
        else:
            return None
    return None


def _function_fault(raw: Buffer, words: str, depth: int) -> str | None:
    for number, kind, at, end in wire.fields(raw, 0, len(raw)):
        if number == 2 and kind == wire.BYTES:
            name, value = map_entry(raw[at:end])
            fault = value_fault(value, depth + 3) if name else words
            if fault is not None:
                return fault
    return None


def number_fault(number: int) -> str | None:
    """The fault of a number that is no data type."""
    if number in TEXTS:
        return None
    name = "INVALID" if number == 0 else f"unknown dtype enum ({number - REF if number > REF else number})"
    return f"Converting DataType '{name}{'_ref' if number > REF else ''}' to MLIR Type"


def _type_fault(argument: object, declaration: Declaration, values: Mapping[str, Buffer]) -> str | None:
    """The fault of the attributes that give the types and the number of an output's tensors."""
    for slot, fields in (("type_list_attr", (_LIST,)), ("number_attr", _COUNTS), ("type_attr", (_TYPE,))):
        name = getattr(argument, slot)
        if not name:
            continue
        value = declaration.value(name, values)
        kinds = {number for number, _, _, _ in wire.fields(value, 0, len(value))}
        if not kinds.intersection(fields):
            return f"Type attr not found: {name}"
        if slot == "type_list_attr":
            return None if _item_kinds(value) <= _TYPES_ONLY else f"Expected '{name}' to be a list of types"
    return None


def _item_kinds(value: Buffer) -> frozenset[int]:
    """The kinds of a list's items, as fields of ListValue."""
    return frozenset(kind for number, _, at, end in wire.fields(value, 0, len(value)) if number == _LIST
                     for kind, _, _, _ in wire.fields(value, at, end))


def has_placeholder(raw: Buffer) -> bool:
    """True for a NodeDef with an attribute that the caller of its function gives."""
    return any(number == _PLACEHOLDER and at < end for value in attribute_values(raw).values()
               for number, _, at, end in wire.fields(value, 0, len(value)))


def check_nodes(nodes: Iterable[AnyNode], checks: NodeChecks, arguments: Mapping[str, int] | None = None,
                ) -> dict[str, ImportedResults]:
    """Check the nodes of a graph, or of a concrete function with these arguments: the number of each one's data type.

    Return the results of each node and argument. Raises InvalidArgument.
    """
    results = {name: ImportedResults((Result("", (tensor_type(number),)),), 1)
               for name, number in (arguments or {}).items()}
    pending: dict[str, list[tuple[AnyNode, Input | str]]] = {}
    results_of = checks.results
    for node in nodes:
        node_results = results_of(node)
        for source in node.inputs:
            name, output, index = source
            producer = results.get(name)
            if producer is None:
                pending.setdefault(name, []).append((node, source))
            elif output is not None or not 0 <= index < producer.total:
                _check_source(node, source, producer)
        for control in node.controls:
            if control not in results:
                pending.setdefault(control, []).append((node, control))
        results[node.name] = node_results
        if node.name in pending:
            for user, waiting in pending.pop(node.name):
                if isinstance(waiting, Input):
                    _check_source(user, waiting, node_results)
    if pending:
        raise _missing_inputs(pending)
    return results


def _check_source(user: AnyNode, source: Input, results: ImportedResults) -> None:
    if (fault := source_fault(source, results)) is not None:
        raise fault_of(user, fault)


def source_fault(source: Input, results: ImportedResults) -> str | None:
    """The fault of a tensor that a node or a result takes from a node with these results."""
    if results.groups is None:
        return None
    if source.output is None:
        within = 0 <= source.index < results.total
        return None if within else f"Result #{source.index} of node '{source.node}' is out of bounds"
    count = next((len(group.types) for group in results.groups if group.argument == source.output), None)
    if count is None:
        return f"Node '{source.node}' has no output called '{source.output}'"
    within = 0 <= source.index < count
    return None if within else f"Result #{source.index} of segment '{source.node}:{source.output}' is out of bounds"


def _missing_inputs(pending: Mapping[str, Sequence[tuple[AnyNode, Input | str]]]) -> errors.InvalidArgument:
    """The first use of each node that does not exist, in the order of their names."""
    lines = []
    for name in sorted(pending):
        node, source = pending[name][0]
        shown = f"^{source}" if isinstance(source, str) else str(source)
        lines.append(f"Non-existent input {shown} in node {node.name}")
    return fault_of(pending[min(pending)][0][0], "\n".join(lines))
