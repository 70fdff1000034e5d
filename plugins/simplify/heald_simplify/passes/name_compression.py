"""Pass `name-compression`, on request: short names for arguments, results and nodes of functions, as TFG's does.

A function's arguments, results, control results and nodes are numbered in this order. A number is written with 63
characters at the first place and 66 at each later one: A, B, .., Z, a, .., 9, ., AA, BA. Names such as `A>`, which
TensorFlow refuses, are left out, while TFG's pass gives them from the 4,096th name on. The graph's own nodes and the
names of functions stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from heald.api import Graph, Input, Node, PassContext

_FIRST_CHARACTERS = f"{ascii_uppercase}{ascii_lowercase}{digits}."
_LATER_CHARACTERS = f"{_FIRST_CHARACTERS}_>/"
_INVALID_NAME = re.compile(r">(?![A-Za-z0-9.])")
_COLOCATED = b"loc:@"


def compress_names(graph: Graph, _: PassContext) -> Graph:
    results = {name: _new_names(function)[1] for name, function in graph.functions.items()}
    functions = [_with_short_names(function, results) for function in graph.functions.values()]
    changed = [after for after in functions if after is not graph.functions[after.name]]
    return graph.replace(functions=changed) if changed else graph


def _short_names() -> Iterator[str]:
    for number in count():
        quotient, at = divmod(number, len(_FIRST_CHARACTERS))
        name = _FIRST_CHARACTERS[at]
        while quotient:
            quotient, at = divmod(quotient - 1, len(_LATER_CHARACTERS))
            name += _LATER_CHARACTERS[at]
        if not _INVALID_NAME.search(name):
            yield name


def _new_names(function: Any) -> tuple[dict[str, str], dict[str, str], dict[str, str], dict[str, str]]:
    """The new names of arguments, results, control results and nodes."""
    new = _short_names()
    groups = ([arg.name for arg in function.inputs], [arg.name for arg in function.outputs],
              [*function.control_outputs], [*function.nodes])
    arguments, results, controls, nodes = ({name: next(new) for name in group} for group in groups)
    return arguments, results, controls, nodes


def _with_short_names(function: Any, results: Mapping[str, Mapping[str, str]]) -> Any:
    """The function with short names. `results`: by function, the new names of its results, to which
    nodes refer that call the function by op."""
    names = _new_names(function)
    arguments, own_results, controls, nodes = names
    if all(old == new for group in names for old, new in group.items()):
        return function
    new_names = arguments | nodes

    def renamed_tensor(tensor: Input) -> Input:
        called = function.nodes.get(tensor.node)
        ports = results.get(called.op, {}) if called is not None else {}
        port = tensor.output and ports.get(tensor.output, tensor.output)
        return tensor._replace(node=new_names[tensor.node], output=port)

    def renamed_node(node: Node) -> Node:
        return node.replace(name=nodes[node.name], inputs=[renamed_tensor(tensor) for tensor in node.inputs],
                            controls=[new_names[name] for name in node.controls], attrs=_colocation(node, nodes))

    return function.replace(
        inputs=[arg._replace(name=arguments[arg.name]) for arg in function.inputs],
        outputs=[arg._replace(name=own_results[arg.name]) for arg in function.outputs],
        nodes=map(renamed_node, function.nodes.values()),
        ret={own_results[name]: renamed_tensor(tensor) for name, tensor in function.ret.items()},
        control_ret={controls[name]: nodes[node] for name, node in function.control_ret.items()})


def _colocation(node: Node, names: Mapping[str, str]) -> dict[str, Any]:
    groups = node.attrs.get("_class")
    if not isinstance(groups, tuple):
        return {}
    named = {_COLOCATED + old.encode(): _COLOCATED + new.encode() for old, new in names.items()}
    return {"_class": tuple(named.get(group, group) for group in groups)}
