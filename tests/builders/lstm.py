"""LSTMs as graphs have them: the ops of each step, as Keras and TensorFlow 1 write them, one step after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from builders.graphs import FLOAT, const, node, placeholder
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes

INT = dtypes.int32
CELLS = 4
GATES = {"keras": "ifgo", "tf1": "igfo"}  # in the order of the Split's outputs


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def rows(batch: int | None, inputs: int, time: int, axis: str = "x") -> list[Node]:
    """x [time, batch, inputs], which `x_t` takes apart, and states of zeros of as many rows, `c` and `h`."""
    return [
        placeholder(axis, (time, batch, inputs)), node("x_t", "Unpack", axis, num=time, axis=0),
        Node("shape", "Shape", [axis], attrs={"T": FLOAT, "out_type": INT}),
        *(const(name, [n], np.int32) for name, n in (("one", 1), ("two", 2))),
        Node("rows", "StridedSlice", ["shape", "one", "two", "one"],
             attrs={"T": INT, "Index": INT, "shrink_axis_mask": 1}),
        const("cells", CELLS, np.int32), const("zero", 0),
        Node("dims", "Pack", ["rows", "cells"], attrs={"T": INT, "N": 2, "axis": 0}),
        *(Node(name, "Fill", ["dims", "zero"], attrs={"T": FLOAT, "index_type": INT}) for name in ("c", "h")),
    ]


def weights(inputs: int, style: str = "keras", seed: int = 0, name: str = "") -> list[Node]:
    """The weights of a layer: w and u, or `w` for both; b."""
    w, u = numbers(inputs, 4 * CELLS, seed=seed), numbers(CELLS, 4 * CELLS, seed=seed + 1)
    weights_by_name = {"w": w, "u": u} if style == "keras" else {"w": np.concatenate([w, u])}
    constants = [const(f"{name}{key}", value) for key, value in weights_by_name.items()]
    return [*constants, const(f"{name}b", numbers(4 * CELLS, seed=seed + 2)), const(f"{name}axis", 1, np.int32),
            const(f"{name}forget", 1.0)]


def step(name: str, x: str, c: str, h: str, style: str = "keras", layer: str = "") -> list[Node]:
    """The ops of one step: `{name}c` and `{name}h` are its results."""
    i, f, g, o = (f"{name}split:{GATES[style].index(gate)}" for gate in "ifgo")
    if style == "keras":
        products = [node(f"{name}xw", "MatMul", x, f"{layer}w"), node(f"{name}hu", "MatMul", h, f"{layer}u"),
                    node(f"{name}sum", "AddV2", f"{name}xw", f"{name}hu")]
        forget: list[Node] = []
    else:
        products = [Node(f"{name}xh", "ConcatV2", [x, h, f"{layer}axis"], attrs={"T": FLOAT, "N": 2, "Tidx": INT}),
                    node(f"{name}sum", "MatMul", f"{name}xh", f"{layer}w")]
        forget = [node(f"{name}fb", "Add", f, f"{layer}forget")]
        f = f"{name}fb"
    return [
        *products, node(f"{name}z", "BiasAdd", f"{name}sum", f"{layer}b"),
        node(f"{name}split", "Split", f"{layer}axis", f"{name}z", num_split=4), *forget,
        node(f"{name}f", "Sigmoid", f), node(f"{name}i", "Sigmoid", i), node(f"{name}g", "Tanh", g),
        node(f"{name}o", "Sigmoid", o), node(f"{name}fc", "Mul", f"{name}f", c),
        node(f"{name}ig", "Mul", f"{name}i", f"{name}g"), node(f"{name}c", "AddV2", f"{name}fc", f"{name}ig"),
        node(f"{name}t", "Tanh", f"{name}c"), node(f"{name}h", "Mul", f"{name}o", f"{name}t"),
    ]


def layer(xs: list[str], style: str = "keras", name: str = "", c: str = "c", h: str = "h") -> list[Node]:
    """A step for each of these tensors: `{name}0.c`, `{name}0.h`, `{name}1.c` and so on are their results."""
    nodes: list[Node] = []
    for t, x in enumerate(xs):
        nodes += step(f"{name}{t}.", x, c, h, style, name)
        c, h = f"{name}{t}.c", f"{name}{t}.h"
    return nodes


def outputs_of_unpack(time: int, source: str = "x_t") -> list[str]:
    return [f"{source}:{t}" for t in range(time)]
