"""Kernels of the oneDNN pack that are bound for metadata that contradict each other, and attached to smaller arrays.

All arrays lie between pages without access, so a kernel that leaves its operands ends the process with a signal.
Prints a line of JSON: the number of each outcome.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from harness.run_op import REGISTRIES
from heald import errors
from heald.runtime.contract.kernel import Bind, Declined, FusedOp, KernelDef, KernelPack
from heald.runtime.contract.op import infer
from heald.runtime.host.registries import Registries
from heald.runtime.values.tensor import TensorMetadata, ValueInfo, constant_info
from heald_cpu.device import Cpu
from heald_onednn import kernels as families
from heald_onednn.library import open_library
from heald_onednn.precision import element_types

from fuzz.guarded import GuardedAllocator

RNG = np.random.default_rng(3)
PACK = Registries()
GUARDED = GuardedAllocator()
CONV = {"padding": "SAME", "strides": (1, 1, 1, 1), "dilations": (1, 1, 1, 1), "data_format": "NHWC"}
VOLUME = {"padding": "SAME", "strides": (1, 1, 1, 1, 1), "dilations": (1, 1, 1, 1, 1), "data_format": "NDHWC"}
POOL = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID", "data_format": "NHWC"}
LSTM = {"cell_clip": -1.0, "use_peephole": False}
BIAS = {"data_format": "NHWC"}


class Node(NamedTuple):
    """An op of a call. `args` are numbers: the inputs of the call first, then the results of its nodes."""

    op: str
    args: tuple[int, ...]
    attrs: dict[str, Any] = {}  # noqa: RUF012 - read only


class Call(NamedTuple):
    """Nodes that one kernel computes, over `inputs`. `constants`: indices of inputs. `name`: of the fusion, or ""."""

    name: str
    nodes: Sequence[Node]
    inputs: Sequence[Any]
    constants: frozenset[int] = frozenset()
    needed: frozenset[int] | None = None


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def lstm(op: str, needed: set[int]) -> Call:
    time, batch, inputs, cells = 3, 20, 60, 50
    x = numbers(batch, inputs) if op == "LSTMBlockCell" else numbers(time, batch, inputs)
    length = [] if op == "LSTMBlockCell" else [np.int64(time)]
    state = [numbers(batch, cells) for _ in range(2)]
    weights = [numbers(inputs + cells, 4 * cells), *(numbers(cells) for _ in range(3)), numbers(4 * cells)]
    arrays = [*length, x, *state, *weights]
    constants = frozenset({*range(len(length)), *range(len(arrays) - len(weights), len(arrays))})
    return Call("", [Node(op, tuple(range(len(arrays))), LSTM)], arrays, constants, frozenset(needed))


X, FILTERS = numbers(1, 12, 12, 16), numbers(3, 3, 16, 24)
CALLS = (
    Call("", [Node("Softmax", (0,))], [numbers(201, 200)]),
    Call("", [Node("Elu", (0,))], [numbers(20, 500)]),
    Call("", [Node("AddV2", (0, 1))], [numbers(30, 40, 20), numbers(20)]),
    Call("", [Node("MatMul", (0, 1))], [numbers(100, 64), numbers(64, 80)]),
    Call("", [Node("MatMul", (0, 1), {"transpose_b": True})], [numbers(100, 64), numbers(80, 64)], frozenset({1})),
    Call("", [Node("BatchMatMulV2", (0, 1))], [numbers(3, 40, 50), numbers(3, 50, 40)]),
    Call("", [Node("Einsum", (0, 1), {"equation": "abc,acd->abd"})], [numbers(5, 40, 50), numbers(5, 50, 60)]),
    Call("", [Node("ConcatV2", (0, 1, 2))], [numbers(200, 100), numbers(200, 150), np.int32(1)], frozenset({2})),
    Call("", [Node("Conv2D", (0, 1), CONV)], [X, FILTERS], frozenset({1})),
    Call("", [Node("Conv2D", (0, 1), CONV)], [numbers(1, 28, 28, 64), numbers(3, 3, 64, 64)], frozenset({1})),
    Call("", [Node("DepthwiseConv2dNative", (0, 1), CONV)], [X, numbers(3, 3, 16, 1)], frozenset({1})),
    Call("", [Node("Conv3D", (0, 1), VOLUME)], [numbers(1, 5, 6, 7, 8), numbers(2, 3, 3, 8, 16)], frozenset({1})),
    Call("", [Node("Conv2DBackpropInput", (0, 1, 2), CONV)],
         [np.int32([1, 12, 12, 16]), FILTERS, numbers(1, 12, 12, 24)], frozenset({0, 1})),
    Call("", [Node("MaxPool", (0,), POOL)], [X]),
    Call("", [Node("AvgPool", (0,), POOL)], [X]),
    Call("", [Node("Mean", (0, 1))], [X, np.int32([1, 2])], frozenset({1})),
    Call("", [Node("ResizeBilinear", (0, 1), {"half_pixel_centers": True})], [X, np.int32([20, 30])], frozenset({1})),
    Call("", [Node("FusedBatchNormV3", (0, 1, 2, 3, 4), {"is_training": False})],
         [X, *(np.abs(numbers(16)) for _ in range(4))]),
    lstm("LSTMBlockCell", {1, 6}), lstm("BlockLSTM", {6}), lstm("BlockLSTM", {1, 6}),
    Call("Product", [Node("MatMul", (0, 1)), Node("AddV2", (3, 2))],
         [numbers(100, 64), numbers(64, 80), numbers(100, 80)], frozenset({1})),
    Call("Product", [Node("Conv2D", (0, 1), CONV), Node("BiasAdd", (3, 2), BIAS), Node("Relu", (4,))],
         [X, FILTERS, numbers(24)], frozenset({1, 2})),
    Call("Product", [Node("Mul", (0, 1)), Node("Conv2D", (3, 2), CONV)],
         [numbers(1, 20, 20, 16), numbers(1, 1, 1, 16), numbers(1, 1, 16, 24)], frozenset({2})),
    Call("Pool", [Node("MaxPool", (0,), POOL), Node("Mul", (2, 1))], [X, numbers(16)]),
    Call("Chain", [Node("AddV2", (0, 1)), Node("Relu", (2,))], [numbers(30, 40, 20), numbers(20)]),
)


def main() -> None:
    open_library(0)
    PACK.kernels.add_pack(KernelPack("CPU", register, 1, "onednn"))
    outcomes: Counter[str] = Counter()
    for call in CALLS:
        bind = honest(call)
        bound = kernel_of(call, bind).bind(bind)
        assert not isinstance(bound, Declined), (call.nodes, bound)
        arrays = arrays_of(bind, call)
        assert run(bind, bound, arrays) == "written", call.nodes
        for smaller in lesser(bound.extents, arrays):
            outcomes["attach: " + outcome_of_attach(bound, smaller, len(bind.inputs))] += 1
        for lie in lies(bind):
            outcomes["bind: " + outcome_of_lie(call, lie)] += 1
    print(json.dumps(outcomes))


def register(kernels: Any) -> None:
    families.register_kernels(kernels, element_types("f32"), winograd=True)


def kernel_of(call: Call, bind: Bind) -> KernelDef:
    if call.name:
        fusions = PACK.kernels.fusions("CPU", "onednn")
        return next(fusion.kernel for fusion in fusions if fusion.kernel.op == call.name)
    candidates = PACK.kernels.candidates(bind.op, "CPU")
    return next(kernel for kernel in candidates if kernel.refuses(bind.attrs) is None)


def honest(call: Call) -> Bind:
    """The Bind with inferred metadata."""
    infos = [constant_info(np.asarray(x)) for x in call.inputs]
    ops = []
    for node in call.nodes:
        definition = REGISTRIES.ops.get(node.op)
        attrs = {name: attr.default for name, attr in definition.attrs.items()} | node.attrs
        for attr in definition.attrs.values():
            if attr.type == "type" and attr.name in ("T", "U"):
                attrs[attr.name] = next(d for a in node.args if (d := infos[a].dtype).kind == "f")
        if "N" in attrs:
            attrs["N"] = len(node.args) - 1
        results = infer(definition, REGISTRIES.ops.metadata(definition), attrs, [infos[a] for a in node.args])
        first = len(infos)
        infos += results
        ops.append(FusedOp(node.op, attrs, node.args, tuple(range(first, len(infos))), tuple(o.meta for o in results)))
    input_infos = tuple(ValueInfo(x.meta, x.value if i in call.constants else None)
                        for i, x in enumerate(infos[: len(call.inputs)]))
    fused = tuple(ops) if call.name else ()
    outputs = ops[-1].outputs[:1] if call.name else ops[-1].outputs
    return Bind("n", call.name or ops[0].op, ops[-1].attrs, input_infos, outputs, Cpu(0), None, {}, fused,
                needed=call.needed)


def lies(bind: Bind) -> Iterator[Bind]:
    """Binds with another shape of one operand: longer or shorter along an axis, or of one axis less."""
    count = len(bind.inputs)
    for operand_index, meta in enumerate((*(x.meta for x in bind.inputs), *bind.outputs)):
        for dims in other_shapes(meta.dims):
            lie = TensorMetadata(meta.dtype, dims)
            inputs = tuple(ValueInfo(lie, x.value) if i == operand_index else x for i, x in enumerate(bind.inputs))
            outputs = tuple(lie if i == operand_index - count else o for i, o in enumerate(bind.outputs))
            fused = bind.fused and (*bind.fused[:-1], bind.fused[-1]._replace(outputs=outputs))
            yield Bind(bind.node, bind.op, bind.attrs, inputs, outputs, bind.device, None, {}, fused,
                       needed=bind.needed)


def other_shapes(dims: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for axis, length in enumerate(dims):
        for other in (1, length - 1, length + 1, 2 * length, 200 * length):
            if other not in (0, length):
                yield (*dims[:axis], other, *dims[axis + 1 :])
    yield dims[1:]
    yield (1, *dims)


def lesser(extents: Any, arrays: Sequence[Any]) -> Iterator[list[Any]]:
    """The arrays with one of them, which the kernel touches, cut in half or to one element."""
    for operand_index in extents:
        for size in {arrays[operand_index].size // 2, 1}:
            yield [guarded_array(array.dtype, (size,)) if i == operand_index else array
                   for i, array in enumerate(arrays)]


def outcome_of_lie(call: Call, lie: Bind) -> str:
    """The outcome of a lie: of its bind, or of a run over arrays of the shapes that it states."""
    try:
        bound = kernel_of(call, lie).bind(lie)
    except Exception as error:  # noqa: BLE001 - core makes it a typed error
        return "typed" if isinstance(error, errors.HealdError) else "other"
    if isinstance(bound, Declined):
        return "declined"
    return run(lie, bound, arrays_of(lie, call))


def run(bind: Bind, bound: Any, arrays: Sequence[Any]) -> str:
    """Run unattached and attached. An output with elements that were not written is an error of this program."""
    count = len(bind.inputs)
    inputs, outputs = tuple(arrays[:count]), tuple(arrays[count:])

    def run_attached() -> None:
        bound.attach(inputs, outputs)()

    for call in (partial(bound.run, *arrays), run_attached):
        for out in outputs:
            out.fill(np.nan)
        try:
            call()
        except errors.HealdError:
            return "typed"
        except ValueError:  # NumPy's part of the kernel
            return "NumPy's"
        for output_index in bind.needed:
            assert not np.isnan(arrays[count + output_index]).any(), (bind.op, bind.inputs, bind.outputs, output_index)
    return "written"


def outcome_of_attach(bound: Any, arrays: Sequence[Any], count: int) -> str:
    try:
        call = bound.attach(tuple(arrays[:count]), tuple(arrays[count:]))
        call()
    except errors.InvalidArgument:
        return "typed"
    except (ValueError, IndexError):
        return "NumPy's"
    return "ran"


def arrays_of(bind: Bind, call: Call) -> list[Any]:
    """Guarded arrays of the stated shapes, with the elements of the call's inputs, repeated."""
    arrays = []
    for meta, values in zip((x.meta for x in bind.inputs), call.inputs, strict=True):
        arrays.append(guarded_array(meta.dtype.numpy, meta.dims))
        arrays[-1].reshape(-1)[:] = np.resize(values, meta.size)
    return [*arrays, *(guarded_array(meta.dtype.numpy, meta.dims) for meta in bind.outputs)]


def guarded_array(dtype: Any, shape: tuple[int, ...]) -> Any:
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, GUARDED.allocate(nbytes))


if __name__ == "__main__":
    main()
