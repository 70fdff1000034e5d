"""Functions of a SavedModel's object graph as signatures: `__call__`, `layer.call`, and others without a declaration.

TensorFlow calls such a function with the tensors of its structured arguments, and behind them the objects that it is
bound to. Here a node of the graph does the same. Arguments become placeholders. An object becomes the node that stands
for it in other calls or, where there is none, a node of its own. So the function is then read as any other signature.

A name is the path of attributes from the root. A function with several traces is the one with fewest arguments that are
True, which for `training=` is inference; the others have their attribute's name, such as `__call__.trace_0`. An input
or output in a structure has its path as its name: `parts/a`, `output_1/0`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from heald.api import Graph, Node, SignatureDef, TensorInfo, TensorMetadata, constant, new_name
from heald.errors import DataLoss, HealdError, Unimplemented
from heald.graphs.graph import Func, Function
from heald.runtime.values import read_shape

SEPARATOR = "."  # between the attributes of a function's path
CALL = "__call__"
_OF_RESOURCES = frozenset({"_create_resource", "_initialize", "_destroy_resource"})
_SIGNATURES = "signatures"  # the root's attribute with the declared signatures
_TRACE = re.compile(r"trace_\d+")
_ODD_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_METHOD = "tensorflow/serving/predict"


class _Concrete(NamedTuple):
    """A function for given types: its name in the library, and the names of its arguments."""

    name: str
    arguments: tuple[str, ...]


class FunctionSignatures(NamedTuple):
    """A graph with a call of each function, the calls as signatures, and the errors of functions that cannot be called.
    """

    graph: Graph
    signatures: dict[str, SignatureDef]
    errors: dict[str, HealdError]


def function_names(objects: Any) -> dict[str, _Concrete]:
    """Return the functions of a SavedObjectGraph by name, in the order of a walk from the root, breadth first."""
    functions: dict[str, _Concrete] = {}
    visited, queue = {0}, deque([(0, "")] if len(objects.nodes) else [])
    while queue:
        number, path = queue.popleft()
        for child in objects.nodes[number].children:
            name, index = child.local_name, child.node_id
            if index in visited or name in _OF_RESOURCES or (not path and name == _SIGNATURES):
                continue
            if not 0 <= index < len(objects.nodes):
                raise DataLoss(f"an object '{name}' of the SavedModel is not there")
            visited.add(index)
            child_path = f"{path}{SEPARATOR}{name}" if path else name
            functions |= _functions_of(objects, objects.nodes[index], child_path)
            if objects.nodes[index].WhichOneof("kind") != "function":
                queue.append((index, child_path))
    return functions


def with_function_signatures(
    graph: Graph, objects: Any, names: Mapping[str, _Concrete], bound: Mapping[int, str]
) -> FunctionSignatures:
    """Add a call of each of these functions. `bound` has the nodes that stand for objects, by the objects' numbers."""
    calls = _Calls(graph, objects, dict(bound))
    signatures, errors = dict[str, SignatureDef](), dict[str, HealdError]()
    for name, concrete in names.items():
        try:
            signatures[name] = calls.add(name, concrete)
        except HealdError as error:
            errors[name] = error
    return FunctionSignatures(graph.replace(nodes=calls.nodes), signatures, errors)


def is_further_trace(name: str) -> bool:
    """Return True for the name of a trace that is not its function's first choice."""
    return _TRACE.fullmatch(name.rpartition(SEPARATOR)[2]) is not None


def _functions_of(objects: Any, saved: Any, path: str) -> dict[str, _Concrete]:
    kind = saved.WhichOneof("kind")
    if kind == "bare_concrete_function":
        bare = saved.bare_concrete_function
        return {path: _Concrete(bare.concrete_function_name, _arguments(bare.function_spec))}
    if kind != "function" or not saved.function.concrete_functions:
        return {}
    names, arguments = saved.function.concrete_functions, _arguments(saved.function.function_spec)
    first = min(range(len(names)), key=lambda i: _count_true(objects, names[i]))
    traces = {path: _Concrete(names[first], arguments)}
    traces |= {f"{path}{SEPARATOR}trace_{i}": _Concrete(name, arguments) for i, name in enumerate(names) if i != first}
    return traces


def _arguments(spec: Any) -> tuple[str, ...]:
    """Return the names of a function's arguments, without the `self` of a method."""
    for pair in spec.fullargspec.named_tuple_value.values:
        if pair.key == "args":
            names = tuple(value.string_value for value in pair.value.list_value.values)
            return names[1:] if spec.is_method and names[:1] == ("self",) else names
    return ()


def _count_true(objects: Any, name: str) -> int:
    if name not in objects.concrete_functions:
        return 0
    return sum(value.bool_value for _, value in _leaves("", objects.concrete_functions[name]
                                                        .canonicalized_input_signature)
               if value.WhichOneof("kind") == "bool_value")


def _leaves(path: str, structure: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values of a structure with their paths, in TensorFlow's order: dicts by key. Protobuf bounds the depth.
    """
    kind = structure.WhichOneof("kind")
    if kind in ("list_value", "tuple_value"):
        items = [(str(i), value) for i, value in enumerate(getattr(structure, kind).values)]
    elif kind == "dict_value":
        items = [(key, structure.dict_value.fields[key]) for key in sorted(structure.dict_value.fields)]
    elif kind == "named_tuple_value":
        items = [(pair.key, pair.value) for pair in structure.named_tuple_value.values]
    else:
        yield path, structure
        return
    for key, value in items:
        yield from _leaves(f"{path}/{key}" if path else key, value)


def _input_leaves(concrete: Any, arguments: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a function by name, each with its parts."""
    structure = concrete.canonicalized_input_signature.tuple_value.values
    if len(structure) != 2:
        raise DataLoss("a function of the SavedModel has no signature of arguments and keywords")
    for i, value in enumerate(structure[0].tuple_value.values):
        yield from _leaves(arguments[i] if i < len(arguments) else f"args_{i}", value)
    yield from _leaves("", structure[1])


def _output_leaves(concrete: Any) -> Iterator[tuple[str, Any]]:
    structure = concrete.output_signature
    if structure.WhichOneof("kind") in ("list_value", "tuple_value"):
        for i, value in enumerate(getattr(structure, structure.WhichOneof("kind")).values):
            yield from _leaves(f"output_{i}", value)
    else:
        for path, value in _leaves("", structure):
            yield path or "output_0", value


def _tensor_specs(leaves: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """Return the tensors among these leaves by name. Raises Unimplemented for a value of several tensors."""
    specs: dict[str, Any] = {}
    for name, value in leaves:
        kind = value.WhichOneof("kind")
        if kind == "type_spec_value":
            raise Unimplemented(f"'{name}' is a {value.type_spec_value.type_spec_class_name}, which only a declared "
                                "signature may have", hint="export the function with signatures={...}")
        if kind in ("tensor_spec_value", "bounded_tensor_spec_value"):
            specs[name if name not in specs else f"{name}#{len(specs)}"] = getattr(value, kind)
    return specs


def _meta(spec: Any, dtype: Any) -> TensorMetadata:
    raw = spec.shape.SerializeToString()
    return TensorMetadata(dtype, read_shape(raw, 0, len(raw)))


class _Calls:
    """The nodes that are added: `nodes`."""

    def __init__(self, graph: Graph, objects: Any, bound: dict[int, str]) -> None:
        self.nodes: list[Node] = []
        self._graph, self._objects, self._bound = graph, objects, bound
        self._used_names = set(graph.nodes)

    def add(self, name: str, concrete: _Concrete) -> SignatureDef:
        """Add a call, and return its signature. Raises DataLoss, Unimplemented; nothing is added then."""
        function = self._function(concrete.name)
        saved = self._objects.concrete_functions[concrete.name]
        inputs = _tensor_specs(_input_leaves(saved, concrete.arguments))
        outputs = _tensor_specs(_output_leaves(saved))
        if len(inputs) + len(saved.bound_inputs) != len(function.inputs) or len(outputs) != len(function.outputs):
            raise DataLoss(f"function '{function.name}' has {len(function.inputs)} inputs and {len(function.outputs)} "
                           "outputs, others than its signature")
        first = len(self.nodes)
        try:
            return self._add_call(name, function, inputs, outputs, saved.bound_inputs)
        except HealdError:
            del self.nodes[first:]
            raise

    def _function(self, name: str) -> Function:
        function = self._graph.functions.get(name)
        if function is None or name not in self._objects.concrete_functions:
            raise DataLoss(f"function '{name}' of the SavedModel is not in its graph")
        if any(arg.dtype is None for arg in (*function.inputs, *function.outputs)):
            raise Unimplemented(f"function '{name}' has arguments of types that it does not state")
        return function

    def _add_call(
        self, name: str, function: Function, inputs: Mapping[str, Any], outputs: Mapping[str, Any], bound: Any
    ) -> SignatureDef:
        infos, sources = dict[str, TensorInfo](), list[str]()
        for (path, spec), arg in zip(inputs.items(), function.inputs, strict=False):  # captures follow
            meta = _meta(spec, arg.dtype)
            node = self._add(f"{name}/{path}", "Placeholder", (), {"dtype": arg.dtype, "shape": meta.shape})
            infos[path] = TensorInfo(f"{node}:0", meta)
            sources.append(node)
        sources += [self._node_of(number) for number in bound]
        types = {"Tin": tuple(arg.dtype for arg in function.inputs),
                 "Tout": tuple(arg.dtype for arg in function.outputs), "f": Func(function.name, {})}
        call = self._add(name, "StatefulPartitionedCall", tuple(sources), types)
        results = {path: TensorInfo(f"{call}:{i}", _meta(spec, arg.dtype))
                   for i, ((path, spec), arg) in enumerate(zip(outputs.items(), function.outputs, strict=True))}
        return SignatureDef(_METHOD, infos, results)

    def _add(self, name: str, op: str, inputs: tuple[str, ...], attrs: Mapping[str, Any]) -> str:
        unique = new_name("/".join(["function", *(_ODD_IN_NAMES.sub("_", part) for part in name.split("/"))]),
                          self._used_names)
        self.nodes.append(Node(unique, op, inputs, attrs=attrs))
        return unique

    def _node_of(self, number: int) -> str:
        """Return the node that stands for an object, which is added where there is none."""
        if not 0 <= number < len(self._objects.nodes):
            raise DataLoss("a function of the SavedModel is bound to objects that are not there")
        if number not in self._bound:
            self._bound[number] = self._new_node_of(number)
        return self._bound[number]

    def _new_node_of(self, number: int) -> str:
        import numpy as np

        saved = self._objects.nodes[number]
        kind = saved.WhichOneof("kind")
        if kind == "variable":
            raw = saved.variable.shape.SerializeToString()
            return self._add(f"variable_{number}", "VarHandleOp", (), {
                "dtype": _dtype(saved.variable.dtype), "shape": read_shape(raw, 0, len(raw)),
                "shared_name": f"function/variable_{number}".encode(), "container": b""})
        if kind == "constant" and saved.constant.operation in self._graph:
            return str(saved.constant.operation)
        if kind == "asset":
            name = new_name(f"function/asset_{number}", self._used_names)
            self.nodes.append(constant(name, np.array(b"", object)))
            return name
        if kind == "resource":
            maker = self._maker(number)
            return self._add(f"resource_{number}", maker.op, (), maker.attrs)
        raise Unimplemented(f"a function is bound to an object of kind '{kind}', which is not supported")

    def _maker(self, number: int) -> Node:
        """Return the node that makes a resource, from the function that creates it."""
        for child in self._objects.nodes[number].children:
            if child.local_name == "_create_resource" and 0 <= child.node_id < len(self._objects.nodes):
                for name in self._objects.nodes[child.node_id].function.concrete_functions:
                    makers = [node for node in self._function(name).nodes.values()
                              if not node.inputs and node.op not in ("Const", "NoOp")]
                    if len(makers) == 1:
                        return makers[0]
        raise Unimplemented(f"object {number} of the SavedModel is a resource that no function creates")


def _dtype(number: int) -> Any:
    from heald.api import dtypes

    return dtypes.numbered(number)
