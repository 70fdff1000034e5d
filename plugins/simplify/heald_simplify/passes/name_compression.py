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

_FIRST = f"{ascii_uppercase}{ascii_lowercase}{digits}."
_LATER = f"{_FIRST}_>/"
_REFUSED = re.compile(r">(?![A-Za-z0-9.])")
_COLOCATED = b"loc:@"


def compress_names(graph: Graph, _: PassContext) -> Graph:
    results = {name: _names(function)[1] for name, function in graph.functions.items()}
    functions = [_compressed(function, results) for function in graph.functions.values()]
    changed = [after for after in functions if after is not graph.functions[after.name]]
    return graph.replace(functions=changed) if changed else graph


def _numbered() -> Iterator[str]:
    for number in count():
        rest, at = divmod(number, len(_FIRST))
        name = _FIRST[at]
        while rest:
            rest, at = divmod(rest - 1, len(_LATER))
            name += _LATER[at]
        if not _REFUSED.search(name):
            yield name


def _names(function: Any) -> tuple[dict[str, str], dict[str, str], dict[str, str], dict[str, str]]:
    """The new names of arguments, results, control results and nodes."""
    new = _numbered()
    groups = ([arg.name for arg in function.inputs], [arg.name for arg in function.outputs],
              [*function.control_outputs], [*function.nodes])
    arguments, results, controls, nodes = ({name: next(new) for name in group} for group in groups)
    return arguments, results, controls, nodes


def _compressed(function: Any, results: Mapping[str, Mapping[str, str]]) -> Any:
    """The function with short names. `results` has those of the results of functions, which the nodes that call them
    by op refer to."""
    names = _names(function)
    arguments, own, controls, nodes = names
    if all(old == new for group in names for old, new in group.items()):
        return function
    known = arguments | nodes

    def moved(tensor: Input) -> Input:
        called = function.nodes.get(tensor.node)
        ports = results.get(called.op, {}) if called is not None else {}
        port = tensor.output and ports.get(tensor.output, tensor.output)
        return tensor._replace(node=known[tensor.node], output=port)

    def renamed(node: Node) -> Node:
        return node.replace(name=nodes[node.name], inputs=[moved(tensor) for tensor in node.inputs],
                            controls=[known[name] for name in node.controls], attrs=_colocation(node, nodes))

    return function.replace(
        inputs=[arg._replace(name=arguments[arg.name]) for arg in function.inputs],
        outputs=[arg._replace(name=own[arg.name]) for arg in function.outputs],
        nodes=map(renamed, function.nodes.values()),
        ret={own[name]: moved(tensor) for name, tensor in function.ret.items()},
        control_ret={controls[name]: nodes[node] for name, node in function.control_ret.items()})


def _colocation(node: Node, names: Mapping[str, str]) -> dict[str, Any]:
    groups = node.attrs.get("_class")
    if not isinstance(groups, tuple):
        return {}
    named = {_COLOCATED + old.encode(): _COLOCATED + new.encode() for old, new in names.items()}
    return {"_class": tuple(named.get(group, group) for group in groups)}
