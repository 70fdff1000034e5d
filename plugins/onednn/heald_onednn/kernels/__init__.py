"""oneDNN kernels, a family a module. All serve float32; the families in TYPED and OF_CONVOLUTIONS serve `types`.

A family without fusions is imported when one of its ops is first asked for: a network has few of them.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from importlib import import_module

from heald.api import Kernels

from . import convolution, elementwise, fused, layer_norm, matmul, pooling

FAMILIES = (layer_norm,)
TYPED = (elementwise, matmul, pooling)
OF_CONVOLUTIONS = (convolution, fused)
LATE_FAMILIES: Mapping[str, Sequence[str]] = {
    "einsum": ("Einsum",),
    "normalization": ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
    "recurrent": ("BlockLSTM", "BlockLSTMV2", "LSTMBlockCell"),
    "sequences": ("_GRUSequence", "_LSTMSequence", "_RNNSequence"),
    "softmax": ("Softmax",),
}
LATE_TYPED: Mapping[str, Sequence[str]] = {
    "casting": ("Cast",), "joining": ("ConcatV2",), "resize": ("ResizeBilinear", "ResizeNearestNeighbor"),
}


def register_kernels(kernels: Kernels, types: Collection[str], winograd: bool) -> None:
    for family in FAMILIES:
        family.register_kernels(kernels)
    for typed in TYPED:
        typed.register_kernels(kernels, types)
    for module in OF_CONVOLUTIONS:
        module.register_kernels(kernels, types, winograd)
    for name, ops in LATE_FAMILIES.items():
        kernels.later(ops, partial(register_family, name))
    for name, ops in LATE_TYPED.items():
        kernels.later(ops, partial(register_family, name, types=types))


def register_family(name: str, kernels: Kernels, **options: Collection[str]) -> None:
    import_module(f".{name}", __name__).register_kernels(kernels, **options)
