"""Surgery: edits of a graph by names of nodes and tensors. Graph has each function here as a method.

An edit returns another graph, so that calls chain. Nodes that an edit does not concern keep their bytes and their
order; functions and versions stay. Every result is verified. A tensor is written `node` or `node:1`; `^node` is the
control edge from a node. Edits concern the nodes of the graph, not the bodies of its functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from ...errors import AlreadyExists, InvalidArgument, NotFound, did_you_mean
from ...runtime.contract.structural import CONST, IDENTITY, PLACEHOLDER, PLACEHOLDERS
from ...runtime.values.attribute_values import as_shape
from ...runtime.values.dtypes import DType
from ...runtime.values.tensor_proto import TensorValue
from .graph_base import GraphBase
from .node import Input, Node, parse_input
from .traversal import ancestors, consumers
from .verifier import verify

Names = str | Iterable[str]
G = TypeVar("G", bound=GraphBase)
_COLOCATED = b"loc:@"


def rename(graph: G, old: str | Mapping[str, str], new: str | None = None) -> G:
    """The graph with node `old` called `new`, in all inputs, control edges and colocations. A mapping renames several
    nodes at once, so that two may exchange their names.

    A name that ends in "/" is a scope: rename("tower/", "body/") concerns all nodes within `tower`, and
    rename("", "model/") all nodes of the graph.

    Raises NotFound for a node or scope that the graph does not have, AlreadyExists when the new name belongs to another
    node, InvalidArgument for a new name that is no node's name.
    """
    pairs = old if isinstance(old, Mapping) else {old: new}
    names: dict[str, str] = {}
    for before, after in pairs.items():
        if not isinstance(after, str):
            raise InvalidArgument(f"'{before}' is renamed to {after!r}, expected a name",
                                  hint='write rename("old", "new")')
        names |= _new_names(graph, before, after)
    return _with_names(graph, names)


def _new_names(graph: GraphBase, old: str, new: str) -> dict[str, str]:
    """The new names of the nodes that `old` denotes: a node, or all nodes of a scope."""
    if old in graph.nodes or (old and not old.endswith("/")):
        return {graph[old].name: new}
    new_names = {name: new + name.removeprefix(old) for name in graph.nodes if name.startswith(old)}
    if not new_names:
        scopes = {name[: name.rindex("/") + 1] for name in graph.nodes if "/" in name}
        raise NotFound(f"no node is in the scope '{old}'", hint=did_you_mean(old, sorted(scopes)))
    return new_names


def _with_names(graph: G, names: Mapping[str, str]) -> G:
    old_names: dict[str, str] = {}
    for name in graph.nodes:
        other = old_names.setdefault(names.get(name, name), name)
        if other != name:
            raise AlreadyExists(f"'{name}' and '{other}' would both be called '{names.get(name, name)}'", node=name,
                                op=graph[name].op, hint="rename the other node first, or choose another name")
    return _verify_edit(graph.with_nodes(_rename_node(node, names) for node in graph))


def _rename_node(node: Node, names: Mapping[str, str]) -> Node:
    changes: dict[str, Any] = {}
    if node.name in names:
        changes["name"] = names[node.name]
    if any(source.node in names for source in node.inputs):
        changes["inputs"] = [source._replace(node=names.get(source.node, source.node)) for source in node.inputs]
    if any(name in names for name in node.controls):
        changes["controls"] = [names.get(name, name) for name in node.controls]
    if groups := _renamed_colocation(node, names):
        changes["attrs"] = {"_class": groups}
    return node.replace(**changes) if changes else node


def _renamed_colocation(node: Node, names: Mapping[str, str]) -> tuple[bytes, ...] | None:
    """The node's colocation with new names, or None where it names no renamed node."""
    groups = node.attrs.get("_class")
    if not isinstance(groups, tuple):
        return None
    new_groups = tuple(_COLOCATED + names[name].encode() if (name := _partner(group)) in names else group
                       for group in groups)
    return None if new_groups == groups else new_groups


def _partner(group: object) -> str:
    return group.removeprefix(_COLOCATED).decode("utf-8", "replace") if isinstance(group, bytes) else ""


def remove(graph: G, *names: str) -> G:
    """The graph without these nodes. A name that ends in "/" removes all nodes of that scope.

    Raises NotFound for a node or scope that the graph does not have, InvalidArgument when another node still consumes
    one of them or runs after it.
    """
    removed: set[str] = set()
    for name in names:
        removed.update(_new_names(graph, name, name))
    _check_removable(graph, removed)
    return _verify_edit(graph.replace(without=[name for name in graph.nodes if name in removed]))


def _check_removable(graph: GraphBase, removed: Collection[str]) -> None:
    for node in graph:
        needed = [name for name in (*(i.node for i in node.inputs), *node.controls) if name in removed]
        if needed and node.name not in removed:
            raise InvalidArgument(f"'{needed[0]}' cannot be removed: '{node.name}' needs it", node=node.name,
                                  op=node.op, hint="remove or rewire that node, or bypass the removed one")


def bypass(graph: G, *names: str) -> G:
    """The graph without these nodes, each of which has one data input: its consumers read that input instead, and wait
    for the nodes that it waited for.

    Raises NotFound for unknown names, InvalidArgument for a node that has not exactly one data input, or has a consumer
    of another output than the first.
    """
    for name in names:
        graph = _bypass_node(graph, graph[name])
    return _verify_edit(graph)


def _bypass_node(graph: G, node: Node) -> G:
    if len(node.inputs) != 1:
        raise InvalidArgument(f"a node that is bypassed has one data input, '{node.name}' has {len(node.inputs)}",
                              node=node.name, op=node.op, hint="rewire its consumers, then remove it")
    (source,) = node.inputs
    changed = []
    for user in consumers(graph.nodes)[node.name]:
        later = next((i for i in user.inputs if i.node == node.name and i.index), None)
        if later is not None:
            raise InvalidArgument(f"'{node.name}' cannot be bypassed: '{user.name}' consumes its output {later.index}",
                                  node=user.name, op=user.op, hint="rewire this input first")
        inputs = [source if i.node == node.name else i for i in user.inputs]
        waits = (source.node, *node.controls) if node.name in user.controls else node.controls
        controls = dict.fromkeys((*(c for c in user.controls if c != node.name), *waits))
        changed.append(user.replace(inputs=inputs, controls=controls))
    return graph.replace(nodes=changed, without=[node.name])


def set_input(graph: G, node: str, index: int, tensor: str) -> G:
    """The graph in which data input `index` of a node is `tensor`.

    Raises NotFound for an unknown node or tensor, InvalidArgument for an input that the node does not have, and for a
    tensor that depends on the node.
    """
    user = graph[node]
    if not 0 <= index < len(user.inputs):
        raise InvalidArgument(f"input {index} of '{node}' does not exist, it has {len(user.inputs)}", node=node,
                              op=user.op, hint="inputs are counted from 0")
    inputs = list(user.inputs)
    inputs[index] = _tensor(graph, tensor)
    return _verify_edit(graph.replace(nodes=[user.replace(inputs=inputs)]))


def rewire(graph: G, old: str, new: str, *, consumers: Names | None = None) -> G:
    """The graph in which the consumers of tensor `old` consume `new` instead; `^old` and `^new` are control edges.

    `consumers`: names of the nodes concerned; by default all but the node of `new` itself, which may read `old`.

    Raises NotFound for unknown tensors and nodes, InvalidArgument when only one of both is a control edge, when a named
    consumer does not consume `old`, and for a cycle.
    """
    if old.startswith("^") != new.startswith("^"):
        raise InvalidArgument(f"'{old}' cannot become '{new}': one is a tensor, the other a control edge")
    before, after = _tensor(graph, old.removeprefix("^")), _tensor(graph, new.removeprefix("^"))
    rewired = _rewire_control if old.startswith("^") else _rewire_tensor
    if consumers is None:
        users = [node for node in graph if node.name != after.node]
    else:
        users = [graph[name] for name in _name_list(consumers)]
        for user in users:
            if rewired(user, before, after) is user:
                raise InvalidArgument(f"'{user.name}' does not consume '{old}'", node=user.name, op=user.op,
                                      hint=f"its inputs are {_inputs_of(user) or 'none'}")
    changed = [moved for node in users if (moved := rewired(node, before, after)) is not node]
    return _verify_edit(graph.replace(nodes=changed))


def _rewire_tensor(node: Node, old: Input, new: Input) -> Node:
    return node.replace(inputs=[new if i == old else i for i in node.inputs]) if old in node.inputs else node


def _rewire_control(node: Node, old: Input, new: Input) -> Node:
    if old.node not in node.controls:
        return node
    return node.replace(controls=dict.fromkeys(new.node if c == old.node else c for c in node.controls))


def _inputs_of(node: Node) -> str:
    return ", ".join((*map(str, node.inputs), *(f"^{name}" for name in node.controls)))


def set_constant(graph: G, name: str, value: Any, dtype: DType | None = None) -> G:
    """The graph in which node `name` is a constant of this value. A placeholder becomes one too: an input is dropped.

    `value`: an array, a TensorValue, or numbers, text and lists of them.
    `dtype`: the type of the elements; by default that of an array, else the node's own.

    Raises NotFound for an unknown node, InvalidArgument for a node that is neither a constant nor a placeholder, and
    for a value that does not fit the type.
    """
    node = graph[name]
    if node.op != CONST and node.op not in PLACEHOLDERS:
        raise InvalidArgument(f"only constants and placeholders get a value, '{name}' is {node.op}", node=name,
                              op=node.op, hint="cut the graph there first: expose_input")
    attrs = {"dtype": (tensor := _constant_value(node, value, dtype)).dtype, "value": tensor}
    stale_attrs = [key for key in ("shape", "_output_shapes") if key in node.attrs]
    return _verify_edit(graph.replace(nodes=[node.replace(op=CONST, inputs=(), attrs=attrs,
                                                          without_attrs=stale_attrs)]))


def _constant_value(node: Node, value: Any, dtype: DType | None) -> TensorValue:
    import numpy as np

    if isinstance(value, TensorValue):
        value = value if dtype in (None, value.dtype) else value.array()
    if isinstance(value, TensorValue):
        return value
    if dtype is None and not isinstance(value, np.ndarray | np.generic):
        dtype = node.attrs.get("dtype")
    try:
        with np.errstate(all="ignore"):
            array = np.asarray(value, None if dtype is None else dtype.numpy)
        if dtype is not None and array.dtype.kind in "iu" and np.any(np.asarray(value) != array):
            raise OverflowError(f"elements are no {dtype.name}")
        return TensorValue(array)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"the value {value!r:.80} does not fit {dtype.name if dtype else 'a tensor'}: {error}",
                              node=node.name, op=node.op) from None


def set_dtype(graph: G, name: str, dtype: DType) -> G:
    """The graph in which a constant's elements are converted to another type, or a placeholder has it.

    Consumers keep their type attributes. Raises NotFound for an unknown node, InvalidArgument for another kind of node.
    """
    node = graph[name]
    if node.op in PLACEHOLDERS and not node.inputs:
        return _verify_edit(graph.replace(nodes=[node.replace(attrs={"dtype": dtype})]))
    value = node.attrs.get("value")
    if node.op != CONST or not isinstance(value, TensorValue):
        raise InvalidArgument(f"only constants and placeholders have a type of their own, '{name}' is {node.op}",
                              node=name, op=node.op, hint="insert a Cast and rewire its consumers")
    return set_constant(graph, name, value.array(), dtype)


def expose_input(
    graph: G, tensor: str, name: str | None = None, *, dtype: DType | None = None,
    shape: Iterable[int | None] | None = None,
) -> G:
    """The graph with a placeholder in the place of a tensor. The nodes that computed the tensor stay: `extract` and
    `keep_outputs` leave out nodes that no output needs.

    `name`: a new placeholder, which all consumers of the tensor read. By default the tensor's node itself becomes the
    placeholder; the tensor must be its only output in use.
    `dtype`: needed unless the node's attributes tell it (constants and placeholders do).
    `shape`: of the placeholder; None is an unknown rank, a dimension of None is unknown.

    Raises NotFound for an unknown tensor, AlreadyExists for a name in use, InvalidArgument for a tensor whose type is
    unknown or whose node has other outputs in use.
    """
    source = _tensor(graph, tensor)
    node = graph[source.node]
    attrs = {"dtype": _element_type(node, tensor, dtype), "shape": None if shape is None else as_shape(shape)}
    if name is not None:
        _check_unused_name(graph, name)
        graph = graph.replace(nodes=[Node(name, PLACEHOLDER, attrs=attrs)])
        return rewire(graph, tensor, name)
    others = (i for user in graph for i in user.inputs if i.node == node.name and i != source)
    if source.index or any(True for _ in others):
        raise InvalidArgument(f"'{node.name}' has other outputs than '{tensor}' in use", node=node.name, op=node.op,
                              hint="give the placeholder a name of its own: expose_input(tensor, name)")
    placeholder = node.replace(op=PLACEHOLDER, inputs=(), controls=(), attrs=attrs,
                               without_attrs=[key for key in node.attrs if key not in attrs])
    return _verify_edit(graph.replace(nodes=[placeholder]))


def expose_output(graph: G, tensor: str, name: str, *, dtype: DType | None = None) -> G:
    """The graph with an Identity called `name` of a tensor. `dtype` is as in `expose_input`.

    Raises NotFound for an unknown tensor, AlreadyExists for a name in use, InvalidArgument where the type is unknown.
    """
    source = _tensor(graph, tensor)
    node = graph[source.node]
    _check_unused_name(graph, name)
    identity = Node(name, IDENTITY, [source], device=node.device, attrs={"T": _element_type(node, tensor, dtype)})
    return _verify_edit(graph.replace(nodes=[identity]))


def keep_outputs(graph: G, *tensors: str) -> G:
    """The graph of the nodes that these tensors need: everything behind them, such as a head, is cut off.

    Raises NotFound for an unknown tensor.
    """
    needed = ancestors(graph.nodes, [_tensor(graph, tensor).node for tensor in tensors])
    return _verify_edit(graph.replace(without=[name for name in graph.nodes if name not in needed]))


def drop_outputs(graph: G, *names: str) -> G:
    """The graph without these nodes and without the nodes that only they need.

    Raises NotFound for an unknown node, InvalidArgument for a node that has a consumer.
    """
    dropped = [graph[name].name for name in names]
    _check_removable(graph, dropped)
    needed = ancestors(graph.nodes, dropped)
    ends = [name for name, users in consumers(graph.nodes).items() if not users and name not in dropped]
    remaining = ancestors(graph.nodes, (*ends, *(name for name in graph.nodes if name not in needed)))
    return _verify_edit(graph.replace(without=[name for name in graph.nodes if name not in remaining]))


def drop_inputs(graph: G, *names: str) -> G:
    """The graph without these placeholders. Consumers of a PlaceholderWithDefault read its default instead.

    Raises NotFound for an unknown node, InvalidArgument for a node that is no placeholder, and for a placeholder
    without default that a node needs.
    """
    for name in names:
        node = graph[name]
        if node.op not in PLACEHOLDERS:
            raise InvalidArgument(f"an input is a placeholder, '{name}' is {node.op}", node=name, op=node.op,
                                  hint="drop_outputs and remove take other nodes")
        if node.inputs:
            graph = _bypass_node(graph, node)
            continue
        user = next(iter(consumers(graph.nodes)[name]), None)
        if user is not None:
            raise InvalidArgument(f"the input '{name}' cannot be dropped: '{user.name}' needs it", node=user.name,
                                  op=user.op, hint="make it a constant: set_constant")
        graph = graph.replace(without=[name])
    return _verify_edit(graph)


def extract(
    graph: G, inputs: Names, outputs: Names, *, dtypes: Mapping[str, DType] | None = None,
    shapes: Mapping[str, Iterable[int | None]] | None = None,
) -> G:
    """The sub-model between tensors: `inputs` become placeholders, as `expose_input` makes them, and only nodes that
    `outputs` need are left. `dtypes` and `shapes` are by input tensor. Functions stay.

    Raises as `expose_input` and `keep_outputs`, and InvalidArgument for an input that no output needs.
    """
    outputs = _name_list(outputs)
    for tensor in _name_list(inputs):
        node = graph[_tensor(graph, tensor).node]
        if node.op not in PLACEHOLDERS or node.inputs:
            graph = expose_input(graph, tensor, dtype=(dtypes or {}).get(tensor), shape=(shapes or {}).get(tensor))
    submodel = keep_outputs(graph, *outputs)
    for tensor in _name_list(inputs):
        if parse_input(tensor).node not in submodel:
            raise InvalidArgument(f"no output needs the input '{tensor}'", node=parse_input(tensor).node,
                                  hint=f"the outputs are {', '.join(outputs)}")
    return submodel


def merge(graph: G, other: GraphBase, prefix: str = "", *, inputs: Mapping[str, str] | None = None) -> G:
    """The graph with the nodes of another one behind its own.

    `prefix`: put before the names of the other graph's nodes, such as "head/".
    `inputs`: by placeholder of the other graph, the tensor of this graph that replaces it.

    Versions are this graph's; `min_consumer` is the larger one. Functions that both graphs have must be the same.

    Raises NotFound for unknown tensors and placeholders, AlreadyExists for a name that both graphs have,
    InvalidArgument for a binding of a node that is no placeholder.
    """
    return _verify_edit(_merge_nodes(graph, other, prefix, inputs or {}, [*graph]))


def replace_subgraph(
    graph: G, nodes: Names, by: GraphBase, *, inputs: Mapping[str, str] | None = None,
    outputs: Mapping[str, str] | None = None, prefix: str = "",
) -> G:
    """The graph with the nodes of `by` in the place of `nodes`.

    `nodes`: names of nodes, or scopes that end in "/".
    `inputs`: by placeholder of `by`, the tensor of this graph that replaces it.
    `outputs`: by tensor of this graph, the tensor of `by` that its consumers read from now on. Outputs of removed nodes
        whose consumers find a node of that name in `by` need no entry.
    `prefix`: put before the names of the nodes of `by`.

    Raises as `merge`, and InvalidArgument when a removed node still has a consumer.
    """
    removed: set[str] = set()
    for name in _name_list(nodes):
        removed.update(_new_names(graph, name, name))
    new_tensors = {old: f"{prefix}{_tensor(by, new)}" for old, new in (outputs or {}).items()}
    moved = {_tensor(graph, old): parse_input(new) for old, new in new_tensors.items()}
    merged = _merge_nodes(graph, by, prefix, inputs or {}, [node for node in graph if node.name not in removed], moved,
                          removed)
    return _verify_edit(merged)


def _merge_nodes(
    graph: G, other: GraphBase, prefix: str, inputs: Mapping[str, str], own_nodes: list[Node],
    moved: Mapping[Input, Input] | None = None, removed: Collection[str] = (),
) -> G:
    """The nodes `own_nodes` of a graph and the nodes of another graph. The latter come where the first node of
    `removed` was, else last."""
    bindings = {name: _tensor(graph, tensor) for name, tensor in inputs.items()}
    for name in bindings:
        if other[name].op not in PLACEHOLDERS:
            raise InvalidArgument(f"an input is bound to a placeholder, '{name}' is {other[name].op}", node=name,
                                  op=other[name].op, hint="make it one with expose_input")
    names = {name: prefix + name for name in other.nodes}
    new = [_bind_placeholders(node, names, bindings) for node in other if node.name not in bindings]
    own_names = {node.name for node in own_nodes}
    for node in new:
        if node.name in own_names:
            raise AlreadyExists(f"both graphs have a node '{node.name}'", node=node.name, op=node.op,
                                hint="give a prefix for the nodes of the other graph")
    rewired = [_rewire_tensors(node, moved or {}) for node in own_nodes]
    first = next((i for i, name in enumerate(graph.nodes) if name in removed), len(own_nodes))
    result = graph.with_nodes([*rewired[:first], *new, *rewired[first:]])
    if functions := _new_functions(graph, other):
        result = result.replace(functions=functions)
    if other.versions.min_consumer > graph.versions.min_consumer:
        result = result.replace(versions=graph.versions._replace(min_consumer=other.versions.min_consumer))
    return result


def _bind_placeholders(node: Node, names: Mapping[str, str], bindings: Mapping[str, Input]) -> Node:
    """A node of another graph, with its new name and with tensors of this graph for bound placeholders."""
    if any(names[name] != name for name in names) or bindings:
        inputs = [bindings[i.node] if i.node in bindings else i._replace(node=names[i.node]) for i in node.inputs]
        controls = dict.fromkeys(bindings[c].node if c in bindings else names[c] for c in node.controls)
        groups = _renamed_colocation(node, names)
        node = node.replace(name=names[node.name], inputs=inputs, controls=controls,
                            attrs=None if groups is None else {"_class": groups})
    return node


def _rewire_tensors(node: Node, moved: Mapping[Input, Input]) -> Node:
    if not any(i in moved for i in node.inputs):
        return node
    return node.replace(inputs=[moved.get(i, i) for i in node.inputs])


def _new_functions(graph: GraphBase, other: GraphBase) -> list[Any]:
    new = []
    for name, function in other.functions.items():
        own_function = graph.functions.get(name)
        if own_function is None:
            new.append(function)
        elif own_function is not function and own_function.raw != function.raw:
            raise AlreadyExists(f"both graphs have a function '{name}', with different bodies",
                                hint="rename it in one of the files")
    return new


def _name_list(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else [*names]


def _tensor(graph: GraphBase, text: str) -> Input:
    """The tensor that `text` denotes. Raises NotFound for an unknown node, InvalidArgument for an impossible port."""
    tensor = parse_input(text)
    graph[tensor.node]
    return tensor


def _element_type(node: Node, tensor: str, dtype: DType | None) -> DType:
    element_type = dtype or node.attrs.get("dtype")
    if not isinstance(element_type, DType):
        raise InvalidArgument(f"the type of '{tensor}' is not known: {node.op} has no attribute 'dtype'",
                              node=node.name, op=node.op, hint="give it: dtype=heald.api.dtypes.float32")
    return element_type


def _check_unused_name(graph: GraphBase, name: str) -> None:
    if name in graph.nodes:
        raise AlreadyExists(f"a node is already called '{name}'", node=name, op=graph[name].op,
                            hint="choose another name")


def _verify_edit(graph: G) -> G:
    verify(graph)
    return graph
