"""Functions and whole GraphDefs, checked as TensorFlow's importer checks them, with its words.

A function with a placeholder among the attributes of its nodes is generic: its nodes have no types, and their outputs
are not checked. Other functions are concrete: their nodes are checked as those of a graph are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from heald.api import Graph, Input, errors, wire
from heald.runtime.values import Buffer

from ..signatures.node_texts import spelled_inputs
from ..signatures.result_types import Declarations, tensor_type
from ..signatures.signature import ARG_ATTR, ATTR, CONTROL_RET, NODE, RET, SIGNATURE, Argument, Signature, read_op_def
from .import_checks import (
    AnyNode,
    ImportedResults,
    NodeChecks,
    NodeFields,
    attribute_values,
    check_nodes,
    fault_of,
    fields_of_message,
    has_placeholder,
    map_entry,
    number_fault,
    parse_source,
    source_fault,
    value_fault,
)

_GRAPH_NODE, _LIBRARY, _FUNCTION = 1, 2, 1  # fields of GraphDef, field of FunctionDefLibrary
_ATTR_DEF, _DEFAULT, _ALLOWED = 4, 3, 7  # field of OpDef, fields of AttrDef


class FunctionFields(NamedTuple):
    """A FunctionDef as the importer sees it.

    `attributes`: AttrValues of the function, `argument_attributes`: those of its arguments, by name.
    `declared_values`: AttrValues in the declarations of its attributes.
    """

    signature: Signature
    nodes: Sequence[Buffer]
    ret: Mapping[str, str]
    control_ret: Mapping[str, str]
    attributes: Sequence[tuple[str, Buffer]]
    argument_attributes: Sequence[tuple[str, Buffer]]
    declared_values: Sequence[Buffer]


def read_function_fields(raw: Buffer) -> FunctionFields:
    """The fields of a FunctionDef. Raises DataLoss."""
    parts: dict[int, list[Buffer]] = {n: [] for n in (SIGNATURE, NODE, RET, ATTR, CONTROL_RET, ARG_ATTR)}
    for number, kind, at, end in wire.fields(raw, 0, len(raw)):
        if number in parts and kind == wire.BYTES:
            parts[number].append(raw[at:end])
    ret, control_ret = ({key: str(value, "utf-8", "replace") for key, value in map(map_entry, parts[number])}
                        for number in (RET, CONTROL_RET))
    op_def = b"".join(parts[SIGNATURE])
    declared = [value for attr_def in _messages(op_def, _ATTR_DEF) for number in (_DEFAULT, _ALLOWED)
                for value in _messages(attr_def, number)]
    argument_entries = [map_entry(entry) for argument in parts[ARG_ATTR] for attributes in _messages(argument, 2)
                        for entry in _messages(attributes, 1)]
    return FunctionFields(read_op_def(op_def), parts[NODE], ret, control_ret, [map_entry(e) for e in parts[ATTR]],
                          argument_entries, declared)


def _messages(raw: Buffer, field: int) -> list[Buffer]:
    return [raw[at:end] for number, kind, at, end in wire.fields(raw, 0, len(raw))
            if number == field and kind == wire.BYTES]


def check_function(raw: Buffer, nodes: Sequence[AnyNode], checks: NodeChecks, *, verify: bool) -> None:
    """Check a FunctionDef with these nodes. `verify`: as in `check_graph`.

    Raises InvalidArgument in the words of TensorFlow's importer.
    """
    function = read_function_fields(raw)
    generic = any(map(has_placeholder, function.nodes))
    try:
        if generic:
            _check_generic(function, nodes)
        else:
            results = _check_concrete(function, nodes, checks)
    except errors.InvalidArgument as error:
        kind = "generic function" if generic else "function"
        raise errors.InvalidArgument(f"{error.message}\n    While importing {kind}: {function.signature.name}",
                                     node=error.node, op=error.op) from None
    if generic:
        _check_result_counts(function)
    elif verify:
        _check_returned_types(function, results)


def _check_concrete(function: FunctionFields, nodes: Sequence[AnyNode], checks: NodeChecks,
                    ) -> dict[str, ImportedResults]:
    signature = function.signature
    _refuse(not signature.name, "Function without a name")
    _refuse(any(not name for name, _ in function.attributes), f"Function {signature.name} has an empty attr name")
    _check_values(function)
    for argument in (*signature.inputs, *signature.outputs):
        _refuse_fault(number_fault(argument.type))
        _check_handle_data(argument)
    results = check_nodes(nodes, checks, {argument.name: argument.type for argument in signature.inputs})
    for output in signature.outputs:
        source = function.ret.get(output.name)
        if source is None:
            raise errors.InvalidArgument(f"Output '{output.name}' was not found in 'ret'")
        _check_returned(source, results)
    for name in signature.control_outputs:
        node = function.control_ret.get(name)
        _refuse(node is None, f"Control output '{name}' was not found in 'control_ret'")
        _refuse(node not in results, f"Control return {node} was not found")
    return results


def _check_returned(text: str, results: Mapping[str, ImportedResults]) -> None:
    source = parse_source(text)
    producer = results.get(source if isinstance(source, str) else source.node)
    if producer is None:
        raise errors.InvalidArgument(f"Return '{text}' was not found")
    if isinstance(source, str):
        raise errors.InvalidArgument(f"Unexpected control result: {text}")
    _refuse_fault(source_fault(source, producer))


def _check_values(function: FunctionFields) -> None:
    for _, value in (*function.attributes, *function.argument_attributes):
        _refuse_fault(value_fault(value))


def _check_handle_data(argument: Argument) -> None:
    for number, _ in argument.handle_data:
        _refuse(number == 0, "Invalid dtype for handle_data")
        _refuse_fault(number_fault(number))


def _check_generic(function: FunctionFields, nodes: Sequence[AnyNode]) -> None:
    signature = function.signature
    _refuse(not signature.name, "generic function without a name")
    _refuse(any(not name for name, _ in function.attributes), "Invalid function attribute name")
    _check_values(function)
    _refuse("" in signature.attr_defs, "Missing name for function attribute")
    for value in function.declared_values:
        _refuse_fault(value_fault(value))
    for argument in (*signature.inputs, *signature.outputs):
        _check_handle_data(argument)
    for field, names in (("output_arg", [output.name for output in signature.outputs]),
                         ("control_output", signature.control_outputs)):
        for name, count in Counter(names).items():
            _refuse(count > 1, f"Duplicated {field} entry{name}")
    arguments = frozenset(argument.name for argument in signature.inputs)
    try:
        _check_generic_nodes(nodes, arguments)
    except errors.InvalidArgument as error:
        raise errors.InvalidArgument(f"{error.message}\n    when importing function {signature.name}", node=error.node,
                                     op=error.op) from None
    for returned, declared, kind in ((function.ret, {output.name for output in signature.outputs}, "result"),
                                     (function.control_ret, set(signature.control_outputs), "control result")):
        for name, source in returned.items():
            _refuse(name not in declared,
                    f"Can't import function, returned value references unknown output argument {name}")
            _refuse(not source, f"Function '{signature.name}' has empty {kind} name")
            _refuse(kind == "result" and _is_port_of(source, arguments), _NO_VALUES)


_NO_VALUES = "Requested result from op that produces no values, but not considered control dep"


def _is_port_of(source: str, arguments: frozenset[str]) -> bool:
    """True for an output of an argument: in a generic function it has none."""
    node, colon, _ = source.partition(":")
    return bool(colon) and node in arguments


def _check_generic_nodes(nodes: Sequence[AnyNode], arguments: frozenset[str]) -> None:
    missing: dict[str, AnyNode] = {}
    names = set(arguments)
    for node in nodes:
        _refuse_node(node, not node.op, "empty op type")
        raw = node.raw
        for value in attribute_values(raw).values():
            if (fault := value_fault(value)) is not None:
                raise fault_of(node, fault)
        for source in spelled_inputs(raw):
            _refuse_node(node, not source, f"Node '{node.name}' has an empty input")
            producer = source.removeprefix("^").partition(":")[0]
            _refuse_node(node, _is_port_of(source, arguments), _NO_VALUES)
            if producer not in names:
                missing.setdefault(producer, node)
        _refuse_node(node, node.name in names and bool(node.name),
                     f"Duplicated node (or function argument) with the same name: `{node.name}`")
        names.add(node.name)
        missing.pop(node.name, None)
    for name, node in missing.items():
        raise fault_of(node, f"Couldn't import graph: placeholder left {name}")


def _check_result_counts(function: FunctionFields) -> None:
    """Raises InvalidArgument for a generic function without a value for each result, in its verifier's words."""
    declared = len(function.signature.outputs) + len(function.signature.control_outputs)
    returned = len(function.ret) + len(function.control_ret)
    _refuse(declared != returned, "'tfg.func' op expects result attribute array to have the same number of elements as "
                                  f"the number of function results, got {declared}, but expected {returned}")


def _check_returned_types(function: FunctionFields, results: Mapping[str, ImportedResults]) -> None:
    """Raises InvalidArgument for a result of another type than the function states, in its verifier's words."""
    for index, output in enumerate(function.signature.outputs):
        source = parse_source(function.ret[output.name])
        assert isinstance(source, Input)
        declared, returned = tensor_type(output.type), results[source.node].type_of(source)
        _refuse(returned not in (None, declared), f"'tfg.func' op type mismatch for returned value #{index}, expected "
                                                  f"'{declared}' but got '{returned}'")


def _refuse(condition: bool, message: str) -> None:
    if condition:
        raise errors.InvalidArgument(message)


def _refuse_fault(fault: str | None) -> None:
    if fault is not None:
        raise errors.InvalidArgument(fault)


def _refuse_node(node: AnyNode, condition: bool, message: str) -> None:
    if condition:
        raise fault_of(node, message)


def check_graph(graph: Graph, declarations: Declarations, *, verify: bool = False) -> None:
    """Check a graph and its functions. Raises InvalidArgument in the words of TensorFlow's importer.

    `verify`: True for the types of results too. TensorFlow imports functions with other types, and its verifier refuses
    them; a text keeps them.
    """
    checks = NodeChecks(declarations)
    check_nodes(graph, checks)
    for function in graph.functions.values():
        check_function(function.raw, list(function.nodes.values()), checks, verify=verify)


def check_graphdef(raw: Buffer, declarations_of: Callable[[Callable[[str], Signature | None]], Declarations]) -> None:
    """Check a GraphDef that may be malformed. Raises InvalidArgument in the words of TensorFlow's importer.

    `declarations_of`: the declarations of ops, from the signatures of functions by name. Raises DataLoss for bytes that
    are no GraphDef.
    """
    functions = [function for library in _messages(raw, _LIBRARY) for function in _messages(library, _FUNCTION)]
    signatures = {signature.name: signature for signature in map(_signature_of, functions)}
    checks = NodeChecks(declarations_of(signatures.get))
    check_nodes(_nodes_of(_messages(raw, _GRAPH_NODE)), checks)
    for function in functions:
        check_function(function, list(_nodes_of(_messages(function, NODE))), checks, verify=True)


def _signature_of(function: Buffer) -> Signature:
    return read_op_def(b"".join(_messages(function, SIGNATURE)))


def _nodes_of(raws: Sequence[Buffer]) -> Iterator[NodeFields]:
    yield from map(fields_of_message, raws)
