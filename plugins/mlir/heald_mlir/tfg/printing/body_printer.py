"""The nodes of a graph or of a function as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from heald.api import Input, Node, errors
from heald.graphs.graph import Func, Function

from ..regions.region_choice import RegionChoice
from ..signatures.node_texts import Fragments, NodeText, NodeTexts
from ..signatures.result_types import REGISTERED, Declarations
from ..values.element_types import OPAQUE
from ..values.names import op_name, string_text
from .value_names import ValueNames, identifier


class Values:
    """The values of a node in text: one name for its results, `#0` and so on where they are several, and its control.
    """

    __slots__ = ("control", "name", "types")

    def __init__(self, name: str, types: tuple[str, ...], control: str) -> None:
        self.name = name
        self.types = types
        self.control = control

    def result(self, index: int) -> str:
        return self.name if len(self.types) == 1 else f"{self.name}#{index}"

    @property
    def bound(self) -> str:
        """The names on the left of the equals sign."""
        if not self.types:
            return self.control
        count = f":{len(self.types)}" if len(self.types) > 1 else ""
        return f"{self.name}{count}, {self.control}"


class Context(NamedTuple):
    """Facts that all bodies of a text share.

    `functions`: the library. `canonical`: True for TensorFlow's own text. `choice`: the nodes with regions.
    `region_op`: the printer of a node with regions, from its body, the node, its text and the indent.
    """

    declarations: Declarations
    functions: Mapping[str, Function]
    canonical: bool
    choice: RegionChoice
    region_op: Callable[[GraphBody, Node, NodeText, str], Fragments]


class GraphBody:
    """The nodes of a graph in text: inputs are results of nodes by their index.

    `depth`: of regions around them. `region_nodes`: the nodes with regions, as RegionChoice has them.
    """

    filled = True  # canonical text has missing attributes with their defaults

    def __init__(self, nodes: Mapping[str, Node], context: Context, names: ValueNames) -> None:
        self.nodes = nodes
        self.context = context
        self.texts = NodeTexts(context.declarations, context.canonical, context.canonical and self.filled)
        self.names = names
        self.values: dict[str, Values] = {}
        self.depth = 0
        self.region_nodes = context.choice.nodes.get(None, {})

    def lines(self, indent: str) -> Fragments:
        """The text of all nodes, in fragments."""
        used = self.highest_uses()
        node_texts = []
        for node in self.nodes.values():
            text = self.texts.of(node, input_texts(node))
            types = text.types
            if (highest_use := used.get(node.name, -1)) >= len(types):
                types += (OPAQUE,) * (highest_use + 1 - len(types))
            self.define(node, types)
            node_texts.append((node, text))
        out: Fragments = []
        for node, text in node_texts:
            self.line(node, text, indent, out)
        return out

    def highest_uses(self) -> dict[str, int]:
        """The highest index among the uses of each node's results."""
        used: dict[str, int] = {}
        for node in self.nodes.values():
            for source, _, index in node.inputs:
                if used.get(source, -1) < index:
                    used[source] = index
        return used

    def define(self, node: Node, types: tuple[str, ...]) -> None:
        """Give the results of a node their names."""
        names = self.names
        shown = identifier(node.op)
        types = types[:len(types) - self.region_nodes.get(node.name, 0)]
        if node.op in REGISTERED:
            shown = f"{node.op}Region" if node.name in self.region_nodes else "outs"
        name = names.unique_name(shown) if types else ""
        self.values[node.name] = Values(name, types, names.unique_name("ctl"))

    def line(self, node: Node, text: NodeText, indent: str, out: Fragments) -> None:
        if node.name in self.region_nodes:
            out += self.context.region_op(self, node, text, indent)
            return
        values = self.values[node.name]
        operands, types = self.operands(node)
        parts = [indent, values.bound, " = ", op_name(node.op), operands]
        if node.controls:
            parts.append(f" [{', '.join([self.control(node, name) for name in node.controls])}]")
        if node.device:
            parts.append(f' device("{string_text(node.device, self.context.canonical)}")')
        if node.assigned_device:
            parts.append(f' assigned_device("{string_text(node.assigned_device, self.context.canonical)}")')
        if node.name:
            parts.append(f' name("{string_text(node.name, self.context.canonical)}")')
        parts += text.braces
        if values.types:
            parts.append(f" : ({types}) -> ({', '.join(values.types)})\n")
        else:
            parts.append(f" : {types}\n" if types else "\n")
        out += parts

    def operands(self, node: Node) -> tuple[str, str]:
        """The data operands in parentheses, or nothing, and their types."""
        if not node.inputs:
            return "", ""
        shown, types = [], []
        for source in node.inputs:
            value, of = self.operand(node, source)
            shown.append(value)
            types.append(of)
        return f"({', '.join(shown)})", ", ".join(types)

    def operand(self, node: Node | None, source: Input) -> tuple[str, str]:
        """A data input in text, and its type."""
        values = self.values.get(source.node)
        if values is None:
            raise missing(node, source.node)
        return values.result(source.index), values.types[source.index]

    def function_of(self, node: Node, called: Func) -> Function:
        """The function of a region. Raises InvalidArgument for one that the library lacks."""
        function = self.context.functions.get(called.name)
        if function is None:
            raise errors.InvalidArgument(f"function '{called.name}' does not exist", node=node.name, op=node.op)
        return function

    def token(self, node: Node, source: str) -> str:
        """The control token of the node of a data input."""
        return self.control(node, source)

    def control(self, node: Node | None, source: str) -> str:
        values = self.values.get(source)
        if values is None:
            raise missing(node, source)
        return values.control


def input_texts(node: Node) -> list[str]:
    """The inputs of a node as the text spells them."""
    return [*map(str, node.inputs), *[f"^{name}" for name in node.controls]]


def missing(node: Node | None, source: str) -> errors.InvalidArgument:
    name, op = (None, None) if node is None else (node.name, node.op)
    return errors.InvalidArgument(f"input '{source}' does not exist", node=name, op=op)
