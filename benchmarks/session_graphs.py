"""The graphs of session_works.py, as files of GraphDef."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import heald
import numpy as np
from heald.api import Graph, Node, ShapeAttr, constant, dtypes
from session_works import ADDED, ALTERNATING, CHAIN, ELEMENTS, EXTENSIONS, LARGE, LONG, SMALL

FLOAT, RESOURCE = dtypes.float32, dtypes.resource


def write_graphs(folder: Path) -> None:
    graphs = {
        "short": chains(CHAIN), "long": chains(LONG), "devices": alternating(), "partial": partial(),
        "queue": queue(), "counter": counter(),
        "large": checkpoint(*LARGE, folder / "large"), "small": checkpoint(*SMALL, folder / "small"),
        **{f"more{i:02}": chains(ADDED, f"more{i}/") for i in range(EXTENSIONS)},
    }
    for name, graph in graphs.items():
        heald.graphdef.dump(graph, folder / f"{name}.pb")


def placeholder(name: str) -> Node:
    return Node(name, "Placeholder", attrs={"dtype": FLOAT, "shape": ShapeAttr((2, 2))})


def add(name: str, a: str, b: str, device: str = "") -> Node:
    return Node(name, "AddV2", [a, b], attrs={"T": FLOAT}, device=device)


def chains(length: int, prefix: str = "") -> Graph:
    """Chains of additions to `x`, and their sum: as many nodes as `length`, beside `start`, which does nothing."""
    x = f"{prefix}x"
    nodes, ends = [placeholder(x), Node(f"{prefix}start", "NoOp")], []
    for i in range(max(length // CHAIN, 1)):
        last = x
        for j in range(CHAIN):
            nodes.append(add(f"{prefix}chain{i}/add{j}", last, x))
            last = nodes[-1].name
        ends.append(last)
    nodes.append(Node(f"{prefix}sum", "AddN", ends, attrs={"T": FLOAT, "N": len(ends)}))
    return Graph(nodes)


def alternating() -> Graph:
    nodes = [placeholder("x")]
    for i in range(ALTERNATING):
        nodes.append(add(f"add{i}", nodes[-1].name, "x", f"/device:CPU:{i % 2}"))
    return Graph([*nodes, Node("sum", "Identity", [nodes[-1].name], attrs={"T": FLOAT})])


def partial() -> Graph:
    return Graph([*map(placeholder, "xyz"), add("a", "x", "x"), add("b", "a", "y"), add("c", "b", "z")])


def queue() -> Graph:
    types = {"component_types": [FLOAT]}
    one, many = constant("one", np.float32(3)), constant("many", np.arange(ELEMENTS, dtype=np.float32))
    return Graph([
        Node("queue", "FIFOQueueV2", attrs=types | {"shapes": [ShapeAttr(())]}), one, many,
        constant("count", np.int32(ELEMENTS)),
        Node("enqueue", "QueueEnqueueV2", ["queue", "one"], attrs={"Tcomponents": [FLOAT]}),
        Node("dequeue", "QueueDequeueV2", ["queue"], attrs=types),
        Node("enqueue_many", "QueueEnqueueManyV2", ["queue", "many"], attrs={"Tcomponents": [FLOAT]}),
        Node("dequeue_many", "QueueDequeueManyV2", ["queue", "count"], attrs=types),
    ])


def variable(name: str, shape: Sequence[int]) -> Node:
    return Node(name, "VarHandleOp", attrs={"dtype": FLOAT, "shape": ShapeAttr(tuple(shape)), "shared_name": name})


def counter() -> Graph:
    attrs = {"dtype": FLOAT}
    return Graph([
        variable("counter", ()), constant("zero", np.float32(0)), constant("one", np.float32(1)),
        Node("initialize", "AssignVariableOp", ["counter", "zero"], attrs=attrs),
        Node("increment", "AssignAddVariableOp", ["counter", "one"], attrs=attrs),
        Node("value", "ReadVariableOp", ["counter"], attrs=attrs),
    ])


def checkpoint(tensors: int, elements: int, folder: Path) -> Graph:
    """Variables that are filled, saved to `folder`, and restored from it. `value` is the last one's."""
    names, types = [f"v{i:04}" for i in range(tensors)], [FLOAT] * tensors
    attrs: dict[str, Any] = {"dtype": FLOAT}
    nodes = [constant("prefix", np.array(str(folder / "model").encode(), object)), constant("names", strings(*names)),
             constant("slices", strings(*[""] * tensors)), constant("shape", np.array([elements], np.int32)),
             Node("restored", "RestoreV2", ["prefix", "names", "slices"], attrs={"dtypes": types})]
    for i, name in enumerate(names):
        nodes += [
            variable(name, (elements,)), constant(f"{name}/start", np.float32(i)),
            Node(f"{name}/filled", "Fill", ["shape", f"{name}/start"], attrs={"T": FLOAT}),
            Node(f"{name}/fill", "AssignVariableOp", [name, f"{name}/filled"], attrs=attrs),
            Node(f"{name}/read", "ReadVariableOp", [name], attrs=attrs),
            Node(f"{name}/restore", "AssignVariableOp", [name, f"restored:{i}"], attrs=attrs),
        ]
    return Graph([
        *nodes, Node("initialize", "NoOp", controls=[f"{name}/fill" for name in names]),
        Node("save", "SaveV2", ["prefix", "names", "slices", *(f"{name}/read" for name in names)],
             attrs={"dtypes": types}),
        Node("restore", "NoOp", controls=[f"{name}/restore" for name in names]),
        Node("value", "Identity", [f"{names[-1]}/read"], attrs={"T": FLOAT}),
    ])


def strings(*values: str) -> np.ndarray:
    return np.array([value.encode() for value in values], object)
