"""cuBLASLt: matrix products with bias, residual and Relu, by ctypes.

The library is column-major. A row-major product y = a b is the column-major product y' = b' a' of the transposes:
heald's right operand is the library's A. The constants are from cublasLt.h and library_types.h of CUDA 13.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from heald.api import DType, dtypes, errors
from heald_kernel_text import Ending, GemmProblem, Lhs, Matrix

from .libraries import Calls, check_status, load
from .native import Native

NAME = "cuBLASLt"
FILE = "libcublasLt.so.13"
TYPES = {dtypes.float32: 0, dtypes.float64: 1, dtypes.float16: 2, dtypes.bfloat16: 14}  # cudaDataType
COMPUTE = {"float32": 68, "tf32": 77, "float16": 74, "bfloat16": 75}  # cublasComputeType_t, of float32 operands
COMPUTE_FLOAT, COMPUTE_DOUBLE = 68, 70
DESC_TRANSA, DESC_TRANSB, DESC_EPILOGUE, DESC_BIAS_POINTER, DESC_BIAS_TYPE = 3, 4, 7, 8, 26
LAYOUT_BATCH_COUNT, LAYOUT_BATCH_STRIDE = 5, 6
PREFERENCE_WORKSPACE = 1
EPILOGUES = {(False, False): 1, (False, True): 2, (True, False): 4, (True, True): 6}  # bias, Relu
NOT_SUPPORTED = 15  # cublasStatus_t


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("status", ctypes.c_int),
                ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4))


class Layout(NamedTuple):
    """A column-major matrix. `turned`: the product takes its transpose."""

    rows: int
    columns: int
    leading: int
    batch: int
    stride: int
    turned: bool = False


class Multiplication(NamedTuple):
    """The arguments of cublasLtMatmul but for addresses."""

    dtype: DType
    compute: int
    a: Layout
    b: Layout
    d: Layout
    ending: Ending


def multiplication(problem: GemmProblem, lhs: Lhs, ending: Ending, products: str) -> Multiplication:
    """The product for the library. Raises Unimplemented for layouts and types that it lacks."""
    if not isinstance(lhs, Matrix) or problem.dtype not in TYPES:
        raise errors.Unimplemented("cuBLASLt multiplies float matrices only")
    if not problem.inner:
        raise errors.Unimplemented("an empty product")
    a = _layout(problem.columns, problem.inner, problem.b_column, problem.b_row, problem.batch, problem.b_batch)
    b = _layout(problem.inner, problem.rows, lhs.column_step, lhs.row_step, problem.batch, lhs.batch_step)
    d = Layout(problem.columns, problem.rows, max(problem.y_row, problem.columns), problem.batch, problem.y_batch)
    compute = COMPUTE[products] if problem.dtype is dtypes.float32 else (
        COMPUTE_DOUBLE if problem.dtype is dtypes.float64 else COMPUTE_FLOAT)
    return Multiplication(problem.dtype, compute, a, b, d, ending)


def _layout(rows: int, columns: int, row_step: int, column_step: int, batch: int, stride: int) -> Layout:
    """The matrix (rows, columns), or its transpose, whose neighbours in a column are neighbours in memory."""
    if row_step == 1:
        return Layout(rows, columns, max(column_step, rows), batch, stride)
    if column_step == 1:
        return Layout(columns, rows, max(row_step, columns), batch, stride, turned=True)
    raise errors.Unimplemented("cuBLASLt needs rows or columns of neighbours in memory")


class Blas(Calls):
    """The library on one device. `workspace`: a buffer for its use, or None.

    Raises Unavailable without the library, and Internal where it refuses the device.
    """

    def __init__(self, native: Native, workspace: Any) -> None:
        super().__init__(NAME, load(FILE))
        self._native = native
        self._workspace = workspace
        self._handle = ctypes.c_void_p()
        self._call("cublasLtCreate", ctypes.byref(self._handle))

    def bind(self, multiplication: Multiplication) -> Callable[..., None]:
        """A function that enqueues the product of the buffers a, b, the ending's operands in order, and the output.

        `a` is heald's left operand. Raises Internal where the library has no algorithm.
        """
        with Descriptors(self._library, multiplication) as descriptors:
            algorithm = self._algorithm(descriptors)

        def run(*buffers: Any) -> None:
            self._native.enqueue((*buffers, self._workspace) if self._workspace else buffers,
                                 self._multiply, multiplication, algorithm, [buffer.pointer for buffer in buffers])

        return run

    def _algorithm(self, descriptors: Descriptors) -> Any:
        preference, count, result = ctypes.c_void_p(), ctypes.c_int(), Heuristic()
        self._call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        try:
            size = ctypes.c_uint64(self._workspace.nbytes if self._workspace else 0)
            self._call("cublasLtMatmulPreferenceSetAttribute", preference, PREFERENCE_WORKSPACE, ctypes.byref(size),
                       ctypes.c_size_t(8))
            self._call("cublasLtMatmulAlgoGetHeuristic", self._handle, descriptors.product, descriptors.a,
                       descriptors.b, descriptors.d, descriptors.d, preference, 1, ctypes.byref(result),
                       ctypes.byref(count))
        finally:
            self._call("cublasLtMatmulPreferenceDestroy", preference)
        check_status(NAME, "the choice of an algorithm", result.status if count.value else NOT_SUPPORTED)
        return result.algorithm

    def _multiply(self, multiplication: Multiplication, algorithm: Any, pointers: Sequence[int]) -> None:
        left, right, *operands, output = map(ctypes.c_void_p, pointers)
        ending = multiplication.ending
        kind = ctypes.c_double if multiplication.dtype is dtypes.float64 else ctypes.c_float
        one, beta = kind(1), kind(0 if ending.residual is None else 1)
        c = output if ending.residual is None else operands[ending.residual - 1]
        with Descriptors(self._library, multiplication) as descriptors:
            if ending.bias is not None:
                descriptors.set_bias(operands[ending.bias - 1])
            workspace = ctypes.c_void_p(self._workspace.pointer if self._workspace else 0)
            self._call("cublasLtMatmul", self._handle, descriptors.product, ctypes.byref(one), right, descriptors.a,
                       left, descriptors.b, ctypes.byref(beta), c, descriptors.d, output, descriptors.d,
                       ctypes.byref(algorithm), workspace,
                       ctypes.c_size_t(self._workspace.nbytes if self._workspace else 0),
                       ctypes.c_void_p(self._native.stream))


class Descriptors(Calls):
    """The library's descriptors of one product. They are made anew for each launch: one has the bias' address."""

    def __init__(self, library: Any, multiplication: Multiplication) -> None:
        super().__init__(NAME, library)
        self._made: list[tuple[str, ctypes.c_void_p]] = []
        self._dtype = multiplication.dtype
        scale = TYPES[dtypes.float64 if multiplication.dtype is dtypes.float64 else dtypes.float32]
        try:
            self.product = self._new("MatmulDesc", multiplication.compute, scale)
            self.a, self.b, self.d = map(self._layout, (multiplication.a, multiplication.b, multiplication.d))
            self._set("MatmulDesc", self.product, DESC_TRANSA, ctypes.c_int32(multiplication.a.turned))
            self._set("MatmulDesc", self.product, DESC_TRANSB, ctypes.c_int32(multiplication.b.turned))
            ending = multiplication.ending
            epilogue = EPILOGUES[ending.bias is not None, ending.relu]
            self._set("MatmulDesc", self.product, DESC_EPILOGUE, ctypes.c_uint32(epilogue))
            if ending.bias is not None:
                self._set("MatmulDesc", self.product, DESC_BIAS_TYPE, ctypes.c_int32(TYPES[multiplication.dtype]))
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Descriptors:
        return self

    def __exit__(self, *_: object) -> None:
        while self._made:
            kind, handle = self._made.pop()
            with suppress(errors.Internal):  # the error before is the one that matters
                self._call(f"cublasLt{kind}Destroy", handle)

    def set_bias(self, address: ctypes.c_void_p) -> None:
        self._set("MatmulDesc", self.product, DESC_BIAS_POINTER, address)

    def _layout(self, layout: Layout) -> ctypes.c_void_p:
        handle = self._new("MatrixLayout", TYPES[self._dtype], ctypes.c_uint64(layout.rows),
                           ctypes.c_uint64(layout.columns), ctypes.c_int64(layout.leading))
        self._set("MatrixLayout", handle, LAYOUT_BATCH_COUNT, ctypes.c_int32(layout.batch))
        self._set("MatrixLayout", handle, LAYOUT_BATCH_STRIDE, ctypes.c_int64(layout.stride))
        return handle

    def _new(self, kind: str, *arguments: Any) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._call(f"cublasLt{kind}Create", ctypes.byref(handle), *arguments)
        self._made.append((kind, handle))
        return handle

    def _set(self, kind: str, handle: ctypes.c_void_p, attribute: int, value: Any) -> None:
        self._call(f"cublasLt{kind}SetAttribute", handle, attribute, ctypes.byref(value),
                   ctypes.c_size_t(ctypes.sizeof(value)))
