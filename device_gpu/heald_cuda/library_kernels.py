"""Kernels of NVIDIA's libraries, asked before the plugin's own: products by cuBLASLt, other convolutions by cuDNN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from heald.api import Bind, Declined, Kernels, errors
from heald_kernel_text import (
    Epilogue,
    Matrix,
    Product,
    check_product,
    fused_product,
    product_problem,
    simple_ending,
    window_of,
)

from . import blas, cudnn, driver, libraries
from .native import Native

FLOATS = ("float16", "bfloat16", "float32", "float64")
HEADS = ("BatchMatMulV2", "Conv2D", "MatMul")
OPS = ("AddV2", "BiasAdd", "Identity", "Relu")
Run = Callable[..., None]


def register_library_kernels(kernels: Kernels) -> None:
    """Single nodes say why they are declined. Fused nodes are for machines that have the libraries."""
    for op in HEADS:
        kernels.kernel(op, dtypes={"T": FLOATS}, priority=1)(bind)
    if libraries.is_there(blas.FILE):
        kernels.fusion("LibraryProduct", ops=OPS, heads=HEADS, priority=2)(bind)


class LibraryProduct:
    """A bound product of a library. `sizes`: the bytes of each operand that it was bound for."""

    def __init__(self, run: Run, sizes: Sequence[int]) -> None:
        self.run = run
        self._sizes = sizes

    def attach(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], None]:
        """Raises InvalidArgument for a smaller buffer."""
        buffers = inputs + outputs
        for buffer, nbytes in zip(buffers, self._sizes, strict=True):
            if buffer.nbytes < nbytes:
                raise errors.InvalidArgument(f"a buffer of {buffer.nbytes} bytes for an operand of {nbytes}",
                                             hint="give buffers of the types and shapes that the kernel was bound for")
        return partial(self.run, *buffers)


class Libraries:
    """The libraries of one device, each made at its first use, and the workspace that they share."""

    def __init__(self, device: Any) -> None:
        self._native: Native = device.native
        self._allocate = device.allocate
        self._made: dict[Any, Any] = {}

    def get(self, kind: type[blas.Blas] | type[cudnn.Cudnn], file: str) -> Any:
        """The library. Its context is the thread's current one, as the library expects.

        Raises Unavailable without the library's file, and Internal where the library refuses the device.
        """
        driver.enter(self._native.context)
        if kind not in self._made:
            libraries.load(file)
            if "workspace" not in self._made:
                self._made["workspace"] = self._allocate(libraries.WORKSPACE)
            self._made[kind] = kind(self._native, self._made["workspace"])
        return self._made[kind]


_of_devices: WeakKeyDictionary[Native, Libraries] = WeakKeyDictionary()


def bind(b: Bind) -> LibraryProduct | Declined:
    try:
        sizes = [meta.nbytes for meta in (*(x.meta for x in b.inputs), *b.outputs)]
        return LibraryProduct(_bind_library_kernel(b), sizes)
    except (errors.Unavailable, errors.Unimplemented, errors.Internal) as error:
        return b.decline(error.message)


def _bind_library_kernel(b: Bind) -> Run:
    product = fused_product(b) if b.fused else Product(b, Epilogue(), tuple(range(len(b.inputs))))
    ending = simple_ending(product.epilogue)
    if ending is None or product.head.op not in HEADS:
        raise errors.Unimplemented("the libraries have no product with this epilogue")
    libraries = _of_devices.setdefault(b.device.native, Libraries(b.device))
    target = b.device.native.target
    problem, lhs = product_problem(product.head)
    check_product(b, product.args, problem, lhs, product.epilogue)
    if not b.outputs[0].size:
        raise errors.Unimplemented("an empty product")
    if isinstance(lhs, Matrix):
        multiplication = blas.multiplication(problem, lhs, ending, target.products)
        return _over(libraries.get(blas.Blas, blas.FILE).bind(multiplication), product.args)
    kernel = product.head.inputs[1]
    convolution = cudnn.convolution(problem.dtype, kernel.meta.dims, window_of(product.head), ending, target.products)
    library = libraries.get(cudnn.Cudnn, cudnn.FILE)
    if kernel.value is None:
        raise errors.Unimplemented("cuDNN needs the filter in another order, and the filter is no constant")
    packed = b.prepared("cudnn-1/filter", lambda: _pack_filter(b, kernel.value))
    run, (first, _, *others) = library.bind(convolution), product.args
    return lambda *buffers: run(buffers[first], packed, *(buffers[i] for i in others), buffers[-1])


def _over(run: Run, args: tuple[int, ...]) -> Run:
    return lambda *buffers: run(*(buffers[i] for i in args), buffers[-1])


def _pack_filter(b: Bind, kernel: Any) -> Any:
    """The filter on the device as OHWI, which cuDNN takes with NHWC images."""
    host = np.ascontiguousarray(kernel.transpose(3, 0, 1, 2))
    buffer = b.device.allocate(host.nbytes)
    if buffer is None:
        raise errors.ResourceExhausted(f"no memory for {host.nbytes} bytes of a filter")
    b.device.copy_in(host, buffer, b.stream)
    return buffer
