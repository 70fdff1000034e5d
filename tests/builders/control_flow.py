"""Functions and nodes of TensorFlow 2's control flow, over float32 unless told otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from builders.graphs import FLOAT
from heald.graphs.graph.attr_value import Func
from heald.graphs.graph.graph import Function, Graph, Node
from heald.runtime.contract.op import ArgDef
from heald.runtime.values import dtypes
from heald.runtime.values.dtypes import DType

Args = str | Mapping[str, DType]


def types_by_name(arguments: Args) -> dict[str, DType]:
    """ "x i:int32" as a dict of types."""
    if not isinstance(arguments, str):
        return dict(arguments)
    pairs = (word.partition(":") for word in arguments.split())
    return {name: getattr(dtypes, kind) if kind else FLOAT for name, _, kind in pairs}


def function(
    name: str, arguments: Args, nodes: Iterable[Node], ret: Mapping[str, str], results: Args = "",
    effects: Iterable[str] = (), **attrs: Any,
) -> Function:
    """A function; `ret` has the tensor of each result, whose types are float32 unless `results` has them."""
    types = dict.fromkeys(ret, FLOAT) | types_by_name(results)
    effects = tuple(effects)
    return Function(name, [ArgDef(arg, dtype) for arg, dtype in types_by_name(arguments).items()],
                    [ArgDef(result, types[result]) for result in ret], nodes, ret,
                    control_ret={effect: effect for effect in effects}, stateful=bool(effects), **attrs)


def call(name: str, callee: str, *inputs: str, arguments: Args = "", gives: Args = "y", **more: Any) -> Node:
    types = {"Tin": types_of(inputs, arguments), "Tout": tuple(types_by_name(gives).values())}
    return Node(name, "StatefulPartitionedCall", inputs, attrs={"f": Func(callee), **types}, **more)


def branch(
    name: str, condition: str, then: str, otherwise: str, *inputs: str, arguments: Args = "", gives: Args = "y",
    of: DType = dtypes.bool_, **more: Any,
) -> Node:
    types = {"Tin": types_of(inputs, arguments), "Tout": tuple(types_by_name(gives).values()), "Tcond": of}
    return Node(name, "If", [condition, *inputs],
                attrs={"then_branch": Func(then), "else_branch": Func(otherwise), **types}, **more)


def case(name: str, index: str, branches: Iterable[str], *inputs: str, arguments: Args = "", gives: Args = "y") -> Node:
    types = {"Tin": types_of(inputs, arguments), "Tout": tuple(types_by_name(gives).values())}
    return Node(name, "Case", [index, *inputs], attrs={"branches": tuple(map(Func, branches)), **types})


def loop(name: str, condition: str, body: str, *inputs: str, arguments: Args = "", **more: Any) -> Node:
    return Node(name, "While", inputs, attrs={"cond": Func(condition), "body": Func(body),
                                              "T": types_of(inputs, arguments)}, **more)


def types_of(inputs: Iterable[str], arguments: Args) -> tuple[DType, ...]:
    types = list(types_by_name(arguments).values())
    return tuple(types) or tuple(FLOAT for name in inputs if not name.startswith("^"))


def program(nodes: Iterable[Node], *functions: Function) -> Graph:
    return Graph(nodes, functions)
