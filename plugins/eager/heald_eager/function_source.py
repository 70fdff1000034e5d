"""Sources of functions: a graph, a function of its library, or a signature of a file as one step of a session."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from heald.api import Function as FunctionDef
from heald.api import Graph, Node, new_name
from heald.errors import InvalidArgument, NotFound, did_you_mean
from heald.graphs.compiler import name_tuple
from heald.graphs.session import AsynchronousStep, Session, Signature, find_inputs, find_outputs
from heald.runtime.contract import PLACEHOLDER, ArgDef, AttrDef, convert_attribute
from heald.runtime.service import dict_of_mapping

SERVING = "serving_default"


class FunctionSource(NamedTuple):
    """A function before its first call.

    `name`: as errors and handlers call it.
    `inputs`: the names of its arguments, in order.
    `outputs`: None for one result, "" for a tuple, or the names of the results in a dict.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] | str | None
    step: AsynchronousStep


def function_source(
    source: Any, inputs: Any, outputs: Any, name: str | None, attrs: Mapping[str, Any] | None, signature: str | None,
    device: str | None, config: Any,
) -> FunctionSource:
    """Return the function that the arguments of `heald.function` name. Raises as it."""
    for role, value in (("name", name), ("signature", signature)):
        if value is not None and not isinstance(value, str):
            raise InvalidArgument(f"{role} is a {type(value).__name__}, expected a name")
    if isinstance(source, Graph):
        _refuse_arguments("a graph", signature=signature)
        if name is None:
            _refuse_arguments("a graph", attrs=attrs)
            return _source_of_graph(source, inputs, outputs, device, config)
        _refuse_arguments("a function of a graph", inputs=inputs, outputs=outputs)
        attrs_by_name = {} if attrs is None else dict_of_mapping(attrs, "attrs")
        return _source_of_definition(source, name, attrs_by_name, device, config)
    _refuse_arguments("a loaded file", inputs=inputs, outputs=outputs, name=name, attrs=attrs)
    if isinstance(source, str | os.PathLike):
        from heald import load

        return _source_of_signature(load(source, signature=signature, device=device, config=config), None)
    _refuse_arguments("a loaded model", device=device, config=config)
    return _source_of_signature(source, signature)


def _refuse_arguments(what: str, **unused: Any) -> None:
    """Raises InvalidArgument for an argument that this source has no use for."""
    for name, value in unused.items():
        if value is not None:
            raise InvalidArgument(f"{name}= is given, which {what} has no use for",
                                  hint="inputs= and outputs= belong to a Graph, name= and attrs= to a function of its "
                                  "library, signature= to a SavedModel, device= and config= to what is not loaded")


def _source_of_graph(graph: Graph, inputs: Any, outputs: Any, device: str | None, config: Any) -> FunctionSource:
    session = Session(graph, config, device=device)
    if outputs is None:
        output_names = find_outputs(session)
        outputs = output_names[0] if len(output_names) == 1 else output_names
    tensors = list(dict_of_mapping(outputs, "outputs").values()) if isinstance(outputs, Mapping) else outputs
    fetches = name_tuple(tensors, "fetch")
    if isinstance(inputs, Mapping):
        fed = {str(key): value for key, value in dict_of_mapping(inputs, "inputs").items()}
    else:
        names = find_inputs(session, fetches) if inputs is None else name_tuple(inputs, "feed")
        fed = {name.removesuffix(":0"): name for name in names}
    shape = None if isinstance(outputs, str) else tuple(outputs) if isinstance(outputs, Mapping) else ""
    return FunctionSource("graph", tuple(fed), shape, session.asynchronous(fetches, tuple(fed.values())))


def _source_of_definition(
    graph: Graph, name: str, attrs: Mapping[str, Any], device: str | None, config: Any
) -> FunctionSource:
    """A function of the graph's library: the graph of one call of it."""
    function = graph.functions.get(name)
    if function is None:
        raise NotFound(f"the graph has no function '{name}'", hint=did_you_mean(name, graph.functions))
    attrs = {key: _declared_attribute(function, key, value) for key, value in attrs.items()}
    names: list[str] = []
    used_names: set[str] = set()
    nodes = []
    for arg in function.inputs:
        for dtype in _argument_types(arg, attrs, name):
            names.append(new_name(arg.name, used_names))
            nodes.append(Node(names[-1], PLACEHOLDER, attrs={"dtype": dtype}))
    call = new_name(name, used_names)
    count = sum(len(_argument_types(arg, attrs, name)) for arg in function.outputs)
    calling_graph = graph.with_nodes([*nodes, Node(call, name, names, attrs=attrs)])
    session = Session(calling_graph, config, device=device)
    step = session.asynchronous([f"{call}:{i}" for i in range(count)], names, () if count else (call,))
    return FunctionSource(name, tuple(names), None if count == 1 else "", step)


def _argument_types(arg: ArgDef, attrs: Mapping[str, Any], function: str) -> Sequence[Any]:
    needed = [attr for attr in (arg.type_attr, arg.number_attr, arg.type_list_attr) if attr is not None]
    missing = [attr for attr in needed if attr not in attrs]
    if missing:
        raise InvalidArgument(f"function '{function}' needs the attribute '{missing[0]}', the type or the number of "
                              f"'{arg.name}'", hint=f"heald.function(graph, name={function!r}, "
                              f"attrs={{{missing[0]!r}: ...}})")
    return arg.expand(attrs)


def _declared_attribute(function: FunctionDef, attr: str, value: Any) -> Any:
    """Convert a call's attribute to the type that the function declares. An attribute that only the body uses has no
    declared type, and stays as it is."""
    for arg in (*function.inputs, *function.outputs):
        for name, kind in ((arg.type_attr, "type"), (arg.number_attr, "int"), (arg.type_list_attr, "list(type)")):
            if name == attr:
                return convert_attribute(AttrDef(attr, kind), value)
    return value


def _source_of_signature(model: Any, signature: str | None) -> FunctionSource:
    """A signature of a loaded file; its results are a dict by name."""
    if not isinstance(model, Signature):
        raise InvalidArgument(f"a {type(model).__name__} is no source of a function", hint=(
            "give a heald.Graph, a loaded SavedModel, one of its signatures, or the path of a SavedModel"))
    name = SERVING
    if signature is not None:
        signatures = getattr(model, "signatures", {})
        if signature not in signatures:
            raise NotFound(f"the model has no signature '{signature}'", hint=did_you_mean(signature, signatures))
        model, name = signatures[signature], signature
    step = model.asynchronous()
    return FunctionSource(name, tuple(model.inputs), tuple(model.outputs), step)
