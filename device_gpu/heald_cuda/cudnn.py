"""cuDNN: NHWC convolutions with bias, residual and Relu, by ctypes.

The constants are from cudnn_graph_v9.h and cudnn_ops_v9.h of cuDNN 9.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from heald.api import DType, dtypes, errors
from heald_kernel_text import Ending, Window

from .libraries import Calls, load
from .native import Native

NAME = "cuDNN"
FILE = "libcudnn.so.9"
TYPES = {dtypes.float32: 0, dtypes.float64: 1, dtypes.float16: 2, dtypes.bfloat16: 9}  # cudnnDataType_t
NHWC, CROSS_CORRELATION, PROPAGATE_NAN = 1, 1, 1
RELU, IDENTITY = 1, 5  # cudnnActivationMode_t
PRECOMPUTED_GEMM = 1  # cudnnConvolutionFwdAlgo_t: the one that an identity activation permits
TENSOR_OPS = 1  # cudnnMathType_t, of two-byte floats
MATH = {"float32": 3, "tf32": 0, "float16": 2, "bfloat16": 0}  # of float32: FMA, the default with TF32, conversions


class Convolution(NamedTuple):
    """The arguments of cudnnConvolutionBiasActivationForward but for addresses. `kernel`: filter OHWI."""

    dtype: DType
    math: int
    images: tuple[int, int, int, int]
    kernel: tuple[int, int, int, int]
    output: tuple[int, int, int, int]
    window: tuple[int, int, int, int, int, int]  # padding, strides, dilations
    groups: int
    ending: Ending


def convolution(dtype: DType, kernel: Sequence[int], window: Window, ending: Ending, products: str) -> Convolution:
    """The convolution for the library. `kernel`: shape of the filter, HWIO. Raises Unimplemented."""
    if dtype not in TYPES:
        raise errors.Unimplemented(f"cuDNN has no convolution of {dtype.name}")
    if ending.bias is None and (ending.relu or ending.residual is not None):
        raise errors.Unimplemented("cuDNN adds a residual, or ends with Relu, only after a bias")
    for size, length, taps, stride, dilation, before in zip(
            window.size, window.shape[1:3], window.taps, window.strides, window.dilations, window.before, strict=True):
        if (length + 2 * before - (taps - 1) * dilation - 1) // stride + 1 != size:
            raise errors.Unimplemented("cuDNN pads both sides alike")
    height, width, depth, filters = kernel
    batch, *_, channels = window.shape
    math = {dtypes.float32: MATH[products], dtypes.float64: MATH["float32"]}.get(dtype, TENSOR_OPS)
    return Convolution(
        dtype, math, (batch, window.shape[1], window.shape[2], channels), (filters, height, width, depth),
        (batch, *window.size, filters), (*window.before, *window.strides, *window.dilations), channels // depth, ending)


class Cudnn(Calls):
    """The library on one device. `workspace`: a buffer for its use, or None.

    Raises Unavailable without the library, and Internal where it refuses the device.
    """

    def __init__(self, native: Native, workspace: Any) -> None:
        super().__init__(NAME, load(FILE))
        self._native = native
        self._workspace = workspace
        self._handle = ctypes.c_void_p()
        self._call("cudnnCreate", ctypes.byref(self._handle))
        self._call("cudnnSetStream", self._handle, ctypes.c_void_p(native.stream))

    def bind(self, convolution: Convolution) -> Callable[..., None]:
        """A function that enqueues a convolution. Its buffers: images, filter (OHWI), the ending's operands, output.

        Raises Internal where the library refuses, and Unimplemented for too large a workspace.
        """
        descriptors = Descriptors(self._library, convolution)
        size = ctypes.c_size_t()
        self._call("cudnnGetConvolutionForwardWorkspaceSize", self._handle, descriptors.images, descriptors.kernel,
                   descriptors.convolution, descriptors.output, PRECOMPUTED_GEMM, ctypes.byref(size))
        if size.value > (self._workspace.nbytes if self._workspace else 0):
            raise errors.Unimplemented(f"cuDNN asks for a workspace of {size.value} bytes")

        def run(*buffers: Any) -> None:
            self._native.enqueue((*buffers, self._workspace) if self._workspace else buffers,
                                 self._convolve, descriptors, convolution.ending,
                                 [buffer.pointer for buffer in buffers])

        return run

    def _convolve(self, descriptors: Descriptors, ending: Ending, pointers: Sequence[int]) -> None:
        images, kernel, *operands, output = map(ctypes.c_void_p, pointers)
        one, zero = (ctypes.c_double(n) if descriptors.is_double else ctypes.c_float(n) for n in (1, 0))
        workspace = self._workspace.pointer if self._workspace else 0, self._workspace.nbytes if self._workspace else 0
        first = (self._handle, ctypes.byref(one), descriptors.images, images, descriptors.kernel, kernel,
                 descriptors.convolution, PRECOMPUTED_GEMM, ctypes.c_void_p(workspace[0]),
                 ctypes.c_size_t(workspace[1]))
        if ending.bias is None:
            self._call("cudnnConvolutionForward", *first, ctypes.byref(zero), descriptors.output, output)
            return
        factor = zero if ending.residual is None else one
        residual = output if ending.residual is None else operands[ending.residual - 1]
        self._call("cudnnConvolutionBiasActivationForward", *first, ctypes.byref(factor), descriptors.output, residual,
                   descriptors.bias, operands[ending.bias - 1], descriptors.activation, descriptors.output, output)


class Descriptors(Calls):
    """The library's descriptors of one convolution, which nothing changes after they are made."""

    def __init__(self, library: Any, convolution: Convolution) -> None:
        super().__init__(NAME, library)
        self._made: list[tuple[str, ctypes.c_void_p]] = []
        dtype = TYPES[convolution.dtype]
        self.is_double = convolution.dtype is dtypes.float64
        compute = TYPES[dtypes.float64 if self.is_double else dtypes.float32]
        self.images, self.output, self.bias = (
            self._new("Tensor", "cudnnSetTensor4dDescriptor", NHWC, dtype, *_nchw(shape))
            for shape in (convolution.images, convolution.output, (1, 1, 1, convolution.kernel[0])))
        self.kernel = self._new("Filter", "cudnnSetFilter4dDescriptor", dtype, NHWC, *_nchw(convolution.kernel))
        self.convolution = self._new("Convolution", "cudnnSetConvolution2dDescriptor", *convolution.window,
                                     CROSS_CORRELATION, compute)
        self._call("cudnnSetConvolutionGroupCount", self.convolution, convolution.groups)
        self._call("cudnnSetConvolutionMathType", self.convolution, convolution.math)
        self.activation = self._new("Activation", "cudnnSetActivationDescriptor",
                                    RELU if convolution.ending.relu else IDENTITY, PROPAGATE_NAN, ctypes.c_double(0))

    def __del__(self) -> None:
        for kind, handle in self._made:
            getattr(self._library, f"cudnnDestroy{kind}Descriptor")(handle)

    def _new(self, kind: str, setter: str, *arguments: Any) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._call(f"cudnnCreate{kind}Descriptor", ctypes.byref(handle))
        self._made.append((kind, handle))
        self._call(setter, handle, *arguments)
        return handle


def _nchw(shape: Sequence[int]) -> tuple[int, int, int, int]:
    """The order in which the library's functions take the sizes of NHWC tensors."""
    n, h, w, c = shape
    return n, c, h, w
