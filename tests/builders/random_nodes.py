"""Random nodes: ops of TensorFlow's whole table, constants, calls and control flow, over the tensors made so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import heald
from builders.random_attributes import EXTRA, IMPORTED, func, put_attribute, shape, undeclared_value, value
from builders.random_tensors import random_tensor
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.contract.op import OpDef
from heald.runtime.values import dtypes
from heald.runtime.values.dtypes import DType

DATA = Path(__file__).parents[1] / "data/tfg/ops_of_tests.txt"
DEVICES = ("", "", "", "/device:CPU:0", "/job:worker/replica:0/task:1/device:GPU:0", "/gpu:3", "odd device")
UNARY, BINARY = ("Identity", "Neg", "Relu", "Square", "Shape", "Abs"), ("AddV2", "Mul", "Sub", "Maximum", "MatMul")
FULL_PRODUCT, FULL_FLOAT, FULL_TYPES = 3, 210, (1000, 1001, 10102)  # numbers of FullTypeId: tensor, array, dataset
NO_DRAW = frozenset((  # ops that have statements of their own, or that only a runtime makes
    "Const", "If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase", "For", "PartitionedCall",
    "StatefulPartitionedCall", "Switch", "Merge", "RefSwitch", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit",
    "NextIteration", "RefNextIteration", "LoopCond", "SymbolicGradient", "RemoteCall", "_Arg", "_Retval",
    "_If", "_While", "_SwitchN", "ToBool", "_HostSend", "_HostRecv", "_Send", "_Recv"))


class Tensor(NamedTuple):
    """A tensor that nodes may consume: its name in `NodeDef.input`, its type."""

    name: str
    dtype: DType
    is_ref: bool = False


class Signature(NamedTuple):
    """A function that nodes may call. Generic ones have the type attribute T in place of each type."""

    name: str
    inputs: tuple[DType, ...]
    outputs: tuple[DType, ...]
    is_generic: bool = False


class GraphMaker:
    """The nodes of one graph or function body, and the tensors that they may consume."""

    def __init__(self, rng: Random, functions: Sequence[Signature], *, in_function: bool = False) -> None:
        self.rng, self.functions, self.in_function = rng, functions, in_function
        self.nodes: list[Any] = []
        self.tensors: list[Tensor] = []
        self.ops = heald.default_host().registries.ops
        self.names: set[str] = set()

    def statement(self) -> None:
        kinds: list[tuple[int, Callable[[], object]]] = [
            (8, self.common), (8, self.any_op), (4, lambda: self.const(self.rng.choice(IMPORTED))), (2, self.call),
            (1, self.cond), (1, self.loop), (2, self.functional)]
        weights, makers = zip(*kinds, strict=True)
        self.rng.choices(makers, weights)[0]()

    def node(self, op: str, inputs: Sequence[str], outputs: Sequence[tuple[str, DType, bool]], **attrs: Any) -> Any:
        """Add a node with these attributes; `outputs` are the argument, type and reference of each of its tensors."""
        rng = self.rng
        node: Any = message_class("NodeDef")(name=self._name(op), op=op, device=rng.choice(DEVICES))
        controls = [f"^{rng.choice(self.nodes).name}" for _ in range(rng.choice((0, 0, 0, 0, 1, 2))) if self.nodes]
        node.input.extend([*inputs, *dict.fromkeys(controls)])
        for name, attribute in attrs.items():
            put_attribute(node.attr[name], attribute)
        for name in EXTRA:
            if rng.random() < 0.02:
                value = undeclared_value(rng, name, len(outputs), node.name)
                put_attribute(node.attr[name], value) if value is not None else node.attr[name].SetInParent()
        if rng.random() < 0.03 and len(outputs) == 1:
            kind = node.experimental_type
            kind.type_id, part = FULL_PRODUCT, kind.args.add(type_id=rng.choice(FULL_TYPES))
            part.args.add(type_id=FULL_FLOAT)
        if rng.random() < 0.03:
            node.experimental_debug_info.original_node_names.append(f"{node.name}/original")
        self.nodes.append(node)
        counts: dict[str, int] = {}
        for index, (arg, dtype, is_ref) in enumerate(outputs):
            at = counts[arg] = counts.get(arg, -1) + 1
            plain = f"{node.name}:{index}" if index or rng.random() < 0.02 else node.name
            self.tensors.append(Tensor(f"{node.name}:{arg}:{at}" if self.in_function else plain, dtype, is_ref))
        return node

    def tensor(self, dtype: DType, *, is_ref: bool = False) -> str:
        """The name of a tensor of this type, which is made where there is none."""
        candidates = [t for t in self.tensors if t.dtype is dtype and (t.is_ref or not is_ref)]
        if candidates and self.rng.random() < 0.9:
            return self.rng.choice(candidates).name
        if is_ref:
            self.node("VariableV2", (), [("ref", dtype, True)], dtype=dtype, shape=(2,))
        elif dtype.kind == "o" and dtype is not dtypes.string:
            self.node("Placeholder", (), [("output", dtype, False)], dtype=dtype)
        else:
            self.const(dtype)
        return self.tensors[-1].name

    def const(self, dtype: DType, shape: tuple[int, ...] | None = None) -> str:
        self.node("Const", (), [("output", dtype, False)], dtype=dtype, value=random_tensor(self.rng, dtype, shape))
        return self.tensors[-1].name

    def common(self) -> None:
        """Element-wise arithmetic as most nodes of real graphs: on a type that has been used already."""
        rng = self.rng
        dtype = rng.choice((dtypes.float32, dtypes.float32, dtypes.int32, dtypes.float16))
        op = rng.choice((*UNARY, *BINARY, "Placeholder", "NoOp"))
        if op == "NoOp":
            self.node(op, (), ())
        elif op == "Placeholder":
            self.node(op, (), [("output", dtype, False)], dtype=dtype, shape=shape(self.rng))
        else:
            self._op(self.ops.get(op), {"T": dtype})

    def any_op(self) -> None:
        name = self.rng.choice(_op_names(self.ops))
        self._op(self.ops.get(name), {})

    def _op(self, op: OpDef, attributes: dict[str, Any]) -> None:
        function_names = [function.name for function in self.functions]
        attrs = {name: attributes[name] if name in attributes else value(self.rng, attr, function_names)
                 for name, attr in op.attrs.items()}
        if op.count_inputs(attrs) > 40 or len(op.expand_outputs(attrs)) > 40:
            return
        inputs = [self.tensor(dtype, is_ref=arg.is_ref) for arg in op.inputs for dtype in arg.expand(attrs)]
        outputs = [(arg.name, dtype, arg.is_ref) for arg in op.outputs for dtype in arg.expand(attrs)]
        left_out = {name for name, attr in op.attrs.items() if attrs[name] is attr.default
                    and ("tensor" in attr.type or self.rng.random() < 0.4)}
        written = {name: attributes for name, attributes in attrs.items() if name not in left_out}
        self.node(op.name, inputs, outputs, **{k: (v, op.attrs[k].type) for k, v in written.items()})

    def call(self) -> None:
        """A call by a PartitionedCall, or by a node whose op is the function's name."""
        if not self.functions:
            return
        rng, function = self.rng, self.rng.choice(self.functions)
        inputs = [self.tensor(dtype) for dtype in function.inputs]
        results = [(f"r{i}", dtype, False) for i, dtype in enumerate(function.outputs)]
        if function.is_generic or (rng.random() < 0.5 and "-" not in function.name):
            attributes = {"T": dtypes.float32} if function.is_generic else {}
            self.node(function.name, inputs, results, **attributes)
            return
        self.node(rng.choice(("PartitionedCall", "StatefulPartitionedCall")), inputs,
                  [("output", dtype, False) for dtype in function.outputs], Tin=(function.inputs, "list(type)"),
                  Tout=(function.outputs, "list(type)"), f=func(self.rng, function.name))

    def functional(self) -> None:
        """An If, Case, While or For with functions that fit."""
        concrete = [f for f in self.functions if not f.is_generic]
        if not concrete:
            return
        rng, function = self.rng, self.rng.choice(concrete)
        same = [f for f in concrete if f.inputs == function.inputs and f.outputs == function.outputs]
        inputs = [self.tensor(dtype) for dtype in function.inputs]
        types = {"Tin": (function.inputs, "list(type)"), "Tout": (function.outputs, "list(type)")}
        kind, state = rng.choice(("If", "Case")), rng.choice(("", "Stateless"))
        condition = [f for f in concrete if f.inputs == function.inputs and f.outputs == (dtypes.bool_,)]
        results = [("output", dtype, False) for dtype in function.outputs]
        if condition and function.inputs == function.outputs:
            self.node(f"{state}While", inputs, results, T=types["Tin"], cond=func(self.rng, condition[0].name),
                      body=func(self.rng, function.name), output_shapes=((), "list(shape)"), parallel_iterations=10)
        elif kind == "If":
            then, other = (func(rng, rng.choice(same).name) for _ in range(2))
            shapes = tuple(shape(rng) for _ in results) if rng.random() < 0.3 else ()
            self.node(f"{state}If", [self.tensor(dtypes.bool_), *inputs], results, **types, Tcond=dtypes.bool_,
                      then_branch=then, else_branch=other, output_shapes=(shapes, "list(shape)"))
        else:
            branches = tuple(func(self.rng, rng.choice(same).name) for _ in range(rng.choice((1, 2, 3))))
            self.node(f"{state}Case", [self.tensor(dtypes.int32), *inputs], results, **types,
                      branches=(branches, "list(func)"), output_shapes=((), "list(shape)"))

    def cond(self) -> None:
        """A Switch, an op on either side, and a Merge."""
        dtype = self.rng.choice((dtypes.float32, dtypes.int32))
        data, predicate = self.tensor(dtype), self.tensor(dtypes.bool_)
        self.node("Switch", [data, predicate], [("output_false", dtype, False), ("output_true", dtype, False)], T=dtype)
        sides = []
        for side in self.tensors[-2:]:
            self.node("Neg", [side.name], [("y", dtype, False)], T=dtype)
            sides.append(self.tensors[-1].name)
        self.node("Merge", sides, [("output", dtype, False), ("value_index", dtypes.int32, False)], T=dtype, N=2)

    def loop(self) -> None:
        """A loop of TensorFlow 1: its NextIteration is a cycle of the graph."""
        dtype, frame = dtypes.int32, {"T": dtypes.int32, "frame_name": f"frame{len(self.nodes)}"}
        one = [("output", dtype, False)]
        self.node("Enter", [self.tensor(dtype)], one, **frame)
        start, limit = self.tensors[-1].name, self.const(dtype, ())
        self.node("Enter", [limit], one, **frame, is_constant=True)
        bound = self.tensors[-1].name
        merge = self.node("Merge", [start, start], [*one, ("value_index", dtype, False)], T=dtype, N=2)
        value = self.tensors[-2].name
        self.node("Less", [value, bound], [("z", dtypes.bool_, False)], T=dtype)
        self.node("LoopCond", [self.tensors[-1].name], [("output", dtypes.bool_, False)])
        self.node("Switch", [value, self.tensors[-1].name],
                  [("output_false", dtype, False), ("output_true", dtype, False)], T=dtype)
        leave, go_on = (tensor.name for tensor in self.tensors[-2:])
        self.node("AddV2", [go_on, bound], [("z", dtype, False)], T=dtype)
        self.node("NextIteration", [self.tensors[-1].name], one, T=dtype)
        merge.input[1] = self.tensors[-1].name
        self.node("Exit", [leave], one, T=dtype)

    def _name(self, op: str) -> str:
        rng = self.rng
        stem = rng.choice((op, op, f"scope/{op}", "a/b/c", "x", op.lower(), f"{op}-1", f"v1.{op}", "ctl"))
        stem = stem if stem[0].isalnum() or not self.in_function else f"n{stem}"
        stem = stem.replace(">", "_")
        stem = stem.replace("-", "_").replace(".", "_") if self.in_function else stem
        stem = stem if stem[0].isalnum() else f"n{stem}"
        name = next(n for n in (stem, *(f"{stem}_{i}" for i in range(10_000))) if n not in self.names)
        self.names.add(name)
        return name


@cache
def _op_names(ops: Any) -> list[str]:
    own_ops = set(DATA.read_text().partition("\n")[2].split())
    return [name for name in ops if name not in NO_DRAW and name not in own_ops and name[0] != "_" and ">" not in name]
