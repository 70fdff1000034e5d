"""The signature of an op that heald does not know, from a model that has the op.

Three sources have it, the surest first:

1. The op list. A SavedModel, and the graph of a checkpoint, has the OpDefs of the ops that its writer knew.
2. A function of the op's name in the model's library.
3. The nodes. Their attributes have kinds and values, their inputs have the types of the producers' outputs, and their
   results have consumers. A type that equals a type attribute in every node is taken for that attribute.

A node tells no default, no limit of an attribute and no unused result. Each such gap is a sentence of `doubts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heald.api import DType, Func, Graph, Node, OpDef, ShapeAttr, TensorValue, dtypes, wire
from heald.errors import HealdError, InvalidArgument, NotFound, closest, display_text
from heald.graphs.graph import AttrPlaceholder, Function, attr_value, function
from heald.runtime.contract import REQUIRED, ArgDef, AttrDef, OpRegistry, check_attributes
from heald.runtime.service import model_place
from heald.runtime.support import mapped_file

Types = tuple[DType | None, ...]
_SAVED_MODEL = "saved_model.pb"
_META_GRAPHS, _META_INFO, _OP_LIST, _OP = 2, 1, 2, 1  # fields of SavedModel, MetaGraphDef, MetaInfoDef and OpList
_NAME, _ATTR = 1, 4  # fields of OpDef
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (  # bool before int, of which it is a subclass
    (bytes, "string"), (str, "string"), (bool, "bool"), (int, "int"), (float, "float"), (DType, "type"),
    ((ShapeAttr, type(None)), "shape"), (TensorValue, "tensor"), (Func, "func"))


class OpUse(NamedTuple):
    """A node of the op: its attributes, the types of its inputs and, as far as consumers tell, of its results."""

    attrs: Mapping[str, Any]
    inputs: Types
    results: Types
    names: tuple[str, ...] = ()  # of the results, where the node is in a function


class FoundOp(NamedTuple):
    """The op, the source of its signature, the gaps of that source, and the model's nodes of the op."""

    op: OpDef
    source: str
    doubts: tuple[str, ...]
    uses: tuple[OpUse, ...]


def find_op(name: str, graph: Graph, path: Path, ops: OpRegistry) -> FoundOp:
    """Return the op of this name in a model. Raises NotFound for an op that the model lacks, InvalidArgument for nodes
    that no signature fits."""
    uses = tuple(uses_of(name, graph, ops))
    for source, op in _declarations(name, graph, path):
        return FoundOp(op, source, (), uses)
    if not uses:
        similar_names = closest(name, {node.op for nodes, *_ in _scopes(graph) for node in nodes.values()})
        raise NotFound(f"'{path}' has no node of op '{display_text(name)}'",
                       hint=f"did you mean {similar_names[0]}?" if similar_names else "heald inspect lists its ops")
    op, doubts = _op_of_uses(name, uses)
    return FoundOp(op, f"{len(uses)} node{'s' * (len(uses) > 1)} of the model", tuple(doubts), uses)


def _declarations(name: str, graph: Graph, path: Path) -> Iterator[tuple[str, OpDef]]:
    file = _file_with_op_list(path)
    declared = None if file is None else _read_declaration(name, file)
    if declared is not None:
        yield "the model's op list", declared
    if name in graph.functions:
        yield "the model's function of this name", _op_of_function(graph.functions[name])


def _file_with_op_list(path: Path) -> Path | None:
    try:
        place = model_place.locate_model(path, b"").path
    except HealdError:
        return None
    place = place / _SAVED_MODEL if place.is_dir() else place
    return place if place.is_file() and (place.name == _SAVED_MODEL or place.suffix == ".meta") else None


def _read_declaration(name: str, file: Path) -> OpDef | None:
    """Return the op from the op list of a binary file. A file in text form has none here: its nodes are read."""
    view = mapped_file.contents(file)
    whole = [(0, len(view))]
    try:
        meta_graphs = whole if file.suffix == ".meta" else [*_messages(view, whole, _META_GRAPHS)]
        op_lists = _messages(view, _messages(view, meta_graphs, _META_INFO), _OP_LIST)
        for start, stop in _messages(view, op_lists, _OP):
            names = [wire.text(view, at, end) for at, end in _messages(view, [(start, stop)], _NAME)]
            if names == [name]:
                return _read_op(view, start, stop)
    except HealdError:  # the loader has read the graph: a damaged list of ops is no reason to refuse it
        return None
    return None


def _messages(view: memoryview, spans: Iterable[tuple[int, int]], field: int) -> Iterator[tuple[int, int]]:
    return ((at, end) for start, stop in spans for number, kind, at, end in wire.fields(view, start, stop)
            if number == field and kind == wire.BYTES)


def _read_op(view: memoryview, start: int, stop: int) -> OpDef:
    """Read an OpDef. A FunctionDef begins with one, so the reader of functions reads its arguments."""
    signature = wire.put_bytes(1, bytes(view[start:stop]))
    head = function.read_function(attr_value.AttrSource(memoryview(signature)), 0, len(signature))
    attrs = [_read_attr(bytes(view[at:end])) for at, end in _messages(view, [(start, stop)], _ATTR)]
    return OpDef(head.name, head.inputs, head.outputs, {attr.name: attr for attr in attrs}, head.stateful)


def _read_attr(raw: bytes) -> AttrDef:
    """Read an AttrDef: name, type, default, minimum and allowed values."""
    name, kind, default, minimum, allowed, has_minimum = "", "", REQUIRED, 0, None, False
    for number, _, at, end in wire.fields(raw, 0, len(raw)):
        if number == 1:
            name = wire.text(raw, at, end)
        elif number == 2:
            kind = wire.text(raw, at, end)
        elif number == 3:
            default = _declared_form(attr_value.read_value(raw[at:end]))
        elif number == 5:
            has_minimum = wire.integer(raw, at, end) != 0
        elif number == 6:
            minimum = wire.integer(raw, at, end)
        elif number == 7:
            allowed = tuple(_declared_form(value) for value in attr_value.read_value(raw[at:end]))
    return AttrDef(name, kind, default, minimum if has_minimum else None, allowed)


def _declared_form(value: Any) -> Any:
    """The form of an attribute in an OpSpec: text instead of bytes."""
    if isinstance(value, tuple) and not isinstance(value, ShapeAttr):
        return tuple(map(_declared_form, value))
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _op_of_function(body: Function) -> OpDef:
    attrs = {name: AttrDef(name, "type") for arg in (*body.inputs, *body.outputs)
             for name in (arg.type_attr,) if name is not None}
    return OpDef(body.name, body.inputs, body.outputs, attrs, body.stateful)


def uses_of(name: str, graph: Graph, ops: OpRegistry) -> Iterator[OpUse]:
    """Yield the nodes of an op, in the graph and in its functions."""
    for nodes, arguments in _scopes(graph):
        for node in nodes.values():
            if node.op == name:
                yield _use(node, nodes, arguments, ops)


def _scopes(graph: Graph) -> Iterator[tuple[Mapping[str, Node], Mapping[str, DType | None]]]:
    """Yield the nodes of the graph and of each function, and the types of the function's arguments."""
    yield graph.nodes, {}
    for body in graph.functions.values():
        yield body.nodes, {arg.name: arg.dtype for arg in body.inputs}


def _use(node: Node, nodes: Mapping[str, Node], arguments: Mapping[str, DType | None], ops: OpRegistry) -> OpUse:
    inputs = tuple(arguments[source.node] if source.node in arguments else _type_of(source, nodes, ops)
                   for source in node.inputs)
    types: dict[tuple[str, int], DType | None] = {}
    for consumer in nodes.values():
        for position, source in enumerate(consumer.inputs):
            if source.node == node.name:
                key = source.output or "", source.index
                types[key] = types.get(key) or _expected_type(consumer, position, ops)
    names = tuple(dict.fromkeys(output for output, _ in types if output))
    if names:
        results = tuple(types.get((output, 0)) for output in names)
    else:
        count = max([index + 1 for _, index in types] + [len(node.attrs.get("_output_shapes") or ())])
        results = tuple(types.get(("", index)) for index in range(count))
    attrs = {key: value for key, value in node.attrs.items() if not key.startswith("_")}
    return OpUse(attrs, inputs, results, names)


def _type_of(source: Any, nodes: Mapping[str, Node], ops: OpRegistry) -> DType | None:
    """The type of a tensor of a known op, or None."""
    producer = nodes.get(source.node)
    if producer is None:
        return None
    try:
        op = ops.get(producer.op)
        attrs = check_attributes(op, producer.attrs)
        index = source.index if source.output is None else op.output_index(source.output, source.index, attrs)
        tensors = op.expand_outputs(attrs)
    except HealdError:
        return None
    return tensors[index].dtype if 0 <= index < len(tensors) else None


def _expected_type(consumer: Node, position: int, ops: OpRegistry) -> DType | None:
    """The type that a node of a known op takes at an input, or None."""
    try:
        op = ops.get(consumer.op)
        tensors = op.expand_inputs(check_attributes(op, consumer.attrs))
    except HealdError:
        return None
    return tensors[position].dtype if position < len(tensors) else None


def _op_of_uses(name: str, uses: Sequence[OpUse]) -> tuple[OpDef, list[str]]:
    doubts = ["Types that agree with an attribute in all nodes are taken for that attribute."]
    attrs = _attributes(uses, doubts)
    inputs = _inputs(name, uses, attrs, doubts)
    outputs = _outputs(uses, attrs, inputs, doubts)
    if any(dtype is dtypes.resource for use in uses for dtype in use.inputs):
        doubts.append("An input is a resource: set stateful=True if the op changes it.")
    return OpDef(name, tuple(inputs), tuple(outputs), attrs), doubts


def _attributes(uses: Sequence[OpUse], doubts: list[str]) -> dict[str, AttrDef]:
    """The attributes of all nodes. One that some nodes lack has a default, which no node states."""
    attrs = {}
    for key in dict.fromkeys(key for use in uses for key in use.attrs):
        values = [use.attrs[key] for use in uses
                  if key in use.attrs and not isinstance(use.attrs[key], AttrPlaceholder | attr_value.Unset)]
        kinds = [kind for kind in map(_kind, values) if kind is not None]
        kind = kinds[0] if kinds else "list(int)" if values else "type"
        if {kind, *kinds} == {"float", "int"}:
            kind = "float"
        elif not kinds:
            doubts.append(f"Attribute '{key}' has no value that tells its kind: {kind} is a guess.")
        default = REQUIRED
        if len([use for use in uses if key in use.attrs]) < len(uses):
            default = _declared_form(values[0]) if values else REQUIRED
            doubts.append(f"Attribute '{key}' is missing in some nodes: its default is a guess.")
        attrs[key] = AttrDef(key, kind, default)
    return attrs


def _kind(value: Any) -> str | None:
    if isinstance(value, tuple) and not isinstance(value, ShapeAttr):
        item = _kind(value[0]) if value else None
        return None if item is None else f"list({item})"
    return next((kind for classes, kind in _KINDS if isinstance(value, classes)), None)


def _inputs(name: str, uses: Sequence[OpUse], attrs: Mapping[str, AttrDef], doubts: list[str]) -> list[ArgDef]:
    counts = {len(use.inputs) for use in uses}
    if counts == {0}:
        return []
    sides = [use.inputs for use in uses]
    whole = _whole_list("inputs", uses, sides, attrs)
    if whole is not None:
        return [whole]
    if len(counts) > 1:
        raise InvalidArgument(f"the nodes of op '{display_text(name)}' have {min(counts)} to {max(counts)} inputs, and "
                              "no attribute tells the number", hint="write its OpSpec by hand: docs/plugins.md")
    names = ["x"] if counts == {1} else [f"x{i}" for i in range(counts.pop())]
    return [_argument(arg, [side[i] for side in sides], uses, attrs, doubts) for i, arg in enumerate(names)]


def _outputs(uses: Sequence[OpUse], attrs: Mapping[str, AttrDef], inputs: Sequence[ArgDef], doubts: list[str],
             ) -> list[ArgDef]:
    count = max(len(use.results) for use in uses)
    if not count:
        doubts.append("No node uses a result: one output is a guess.")
        count = 1
    else:
        doubts.append(f"The number of results, {count}, is that of the results in use: there may be more.")
    taken = {key for arg in inputs for key in (arg.type_attr, arg.type_list_attr)}
    free = {key: attr for key, attr in attrs.items() if key not in taken}
    sides = [use.results + (None,) * (count - len(use.results)) for use in uses]
    whole = _whole_list("outputs", uses, sides, {k: a for k, a in free.items() if a.type == "list(type)"})
    if whole is not None:
        return [whole]
    names = max((use.names for use in uses), key=len)
    if len(names) > 1:
        doubts.append("The order of the results is that of their use in functions.")
    if len(names) != count:
        names = ("y",) if count == 1 else tuple(f"y{i}" for i in range(count))
    preferred = {**free, **attrs}  # an attribute that no input has is of the outputs
    return [_argument(arg, [side[i] for side in sides], uses, preferred, doubts) for i, arg in enumerate(names)]


def _whole_list(
    name: str, uses: Sequence[OpUse], sides: Sequence[Types], attrs: Mapping[str, AttrDef]
) -> ArgDef | None:
    """All tensors as one argument: a list of types that fits them, or one type as often as a number says."""
    for key, attr in attrs.items():
        if attr.type == "list(type)" and all(_agree(side, use.attrs.get(key)) for use, side in zip(uses, sides,
                                                                                                 strict=True)):
            return ArgDef(name, type_list_attr=key)
    numbers = [key for key, attr in attrs.items() if attr.type == "int"
               and all(use.attrs.get(key) == len(side) for use, side in zip(uses, sides, strict=True))]
    differ = len({len(side) for side in sides}) > 1
    if not numbers or any(len({*side} - {None}) > 1 for side in sides) or not (differ or "N" in numbers):
        return None
    number = "N" if "N" in numbers else numbers[0]
    one = _argument(name, [next(filter(None, side), None) for side in sides], uses, attrs, [])
    return one._replace(number_attr=number)


def _agree(side: Types, types: Any) -> bool:
    return isinstance(types, tuple) and len(types) == len(side) and all(
        dtype is None or dtype is listed for dtype, listed in zip(side, types, strict=True))


def _argument(
    name: str, types: Sequence[DType | None], uses: Sequence[OpUse], attrs: Mapping[str, AttrDef], doubts: list[str]
) -> ArgDef:
    """An input or output by its types in all nodes: an attribute that agrees with them, or the one type."""
    type_attrs = [key for key, attr in attrs.items() if attr.type == "type"]
    for key in type_attrs if any(types) else type_attrs[:1]:
        values = [use.attrs.get(key) for use in uses]
        if all(dtype is None or not isinstance(value, DType) or dtype is value
               for dtype, value in zip(types, values, strict=True)):
            if not any(types):
                doubts.append(f"No node tells the type of '{name}': attribute '{key}' is a guess.")
            return ArgDef(name, type_attr=key)
    seen = sorted({dtype.name for dtype in types if dtype is not None})
    if len(seen) > 1:
        doubts.append(f"The nodes have '{name}' of the types {', '.join(seen)}, and no attribute tells them apart.")
    elif not seen:
        doubts.append(f"No node tells the type of '{name}': float is a guess.")
    return ArgDef(name, dtypes.named(seen[0]) if seen else dtypes.float32)
