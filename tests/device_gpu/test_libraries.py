"""Products by cuBLASLt and convolutions by cuDNN, against stand-ins that read the plugin's arguments.

No test here runs a library on a GPU. The descriptors of installed wheels check the attributes' sizes.
"""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from heald.errors import Internal, InvalidArgument, Unavailable, Unimplemented
from heald.runtime.contract.kernel import Bind, Declined, FusedOp
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata, ValueInfo, constant_info, info
from heald_cuda import blas, cudnn, libraries, library_kernels
from heald_kernel_text import (
    CHANNEL,
    CUDA_GPU,
    FULL,
    Ending,
    Epilogue,
    Literal,
    Matrix,
    Patches,
    Step,
    Window,
    simple_ending,
)
from heald_kernel_text.gemm_problem import GemmProblem
from heald_kernel_text.matmul import matmul_problem
from hypothesis import given, settings
from hypothesis import strategies as st

F = dtypes.float32
PLAIN = Ending()
BATCHES = [((), ()), ((3,), (3,)), ((3,), ()), ((), (2,)), ((2, 1), (1,))]


class Buffer:
    def __init__(self, array):
        self.array = np.ascontiguousarray(array)
        self.pointer = self.array.__array_interface__["data"][0]
        self.nbytes = self.array.nbytes


class Device:
    """A device whose memory is the host's and whose queue runs at once."""

    def __init__(self):
        self.native = Native(CUDA_GPU)

    def allocate(self, nbytes):
        return Buffer(np.zeros(nbytes, np.uint8))

    def copy_in(self, host, buffer, stream):
        buffer.array[:] = np.frombuffer(host.tobytes(), np.uint8)


class Native:
    stream, context = 7, 5

    def __init__(self, target):
        self.target = target

    def enqueue(self, buffers, command, *arguments):
        command(*arguments)


def referent(reference):
    """The object of a `ctypes.byref`."""
    return reference._obj  # ctypes has no public name for it


class CublasLt:
    """cuBLASLt in NumPy, for float32: column-major matrices by their descriptors."""

    def __init__(self, statuses=None):
        self.objects, self.statuses, self.calls = {}, statuses or {}, []

    def __getattr__(self, name):
        if not name.startswith("cublasLt"):
            raise AttributeError(name)

        def call(*arguments):
            self.calls.append(name)
            replaced_calls = {"cublasLtMatmulAlgoGetHeuristic": self._choose, "cublasLtMatmul": self._multiply}
            return self.statuses.get(name) or replaced_calls.get(name, self._other(name))(*arguments)

        return call

    def _other(self, name):
        if name.endswith("Create"):
            return self._create
        if name.endswith("Destroy"):
            return lambda handle: self.objects.pop(handle.value) and None
        return self._set

    def _create(self, handle, *values):
        number = len(self.calls) + 1000
        referent(handle).value = number
        self.objects[number] = {"made": [getattr(v, "value", v) for v in values]}

    def _set(self, handle, attribute, value, size):
        assert size.value == ctypes.sizeof(referent(value))
        self.objects[handle.value][attribute] = referent(value).value

    def _choose(self, *arguments):
        referent(arguments[-1]).value = 1

    def _multiply(self, _, product, alpha, a, a_desc, b, b_desc, beta, c, c_desc, d, d_desc, _algo, _ws, _n, stream):
        assert stream.value == Native.stream
        desc = self.objects[product.value]
        left, right, before = (self._matrix(*pair) for pair in ((a, a_desc), (b, b_desc), (c, c_desc)))
        left = left.transpose(0, 2, 1) if desc[blas.DESC_TRANSA] else left
        right = right.transpose(0, 2, 1) if desc[blas.DESC_TRANSB] else right
        sums = referent(alpha).value * (left @ right) + (referent(beta).value * before if referent(beta).value else 0)
        if desc[blas.DESC_EPILOGUE] & 4:
            bias = np.ctypeslib.as_array(ctypes.cast(desc[blas.DESC_BIAS_POINTER], ctypes.POINTER(ctypes.c_float)),
                                         (sums.shape[1],))
            sums = sums + bias[:, None]
        self._matrix(d, d_desc)[...] = np.maximum(sums, 0) if desc[blas.DESC_EPILOGUE] & 2 else sums

    def _matrix(self, address, handle):
        desc = self.objects[handle.value]
        kind, rows, columns, leading = desc["made"]
        assert kind == 0
        assert leading >= rows
        count, stride = desc[blas.LAYOUT_BATCH_COUNT], desc[blas.LAYOUT_BATCH_STRIDE]
        memory = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)),
                                       ((count - 1) * stride + (columns - 1) * leading + rows,))
        return np.lib.stride_tricks.as_strided(memory, (count, rows, columns), (4 * stride, 4, 4 * leading))


@pytest.fixture(autouse=True)
def entered_contexts(monkeypatch):
    """The contexts that became the thread's current one."""
    contexts = []
    monkeypatch.setattr(library_kernels.driver, "enter", contexts.append)
    return contexts


@pytest.fixture
def library(monkeypatch):
    """Stand-ins instead of the libraries' files."""
    library_of_file = {blas.FILE: CublasLt()}
    monkeypatch.setattr(libraries, "open_library", lambda name: library_of_file.get(name, "no such file"))
    return library_of_file


def product_of(x, y, ending=PLAIN, operands=(), turns=(False, False)):
    problem, lhs = matmul_problem(F, x.shape, y.shape, transpose_x=turns[0], transpose_y=turns[1])
    device = Device()
    handle = blas.Blas(device.native, None)
    run = handle.bind(blas.multiplication(problem, lhs, ending, "float32"))
    rows, columns = x.shape[-1 if turns[0] else -2], y.shape[-2 if turns[1] else -1]
    shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), rows, columns)
    buffers = [Buffer(array) for array in (x, y, *operands)]
    output = Buffer(np.full(shape, np.nan, np.float32))
    run(*buffers, output)
    return output.array


@settings(max_examples=40, deadline=None)
@given(st.tuples(*[st.integers(1, 6)] * 3), st.sampled_from(BATCHES), st.booleans(), st.booleans(), st.integers(0, 100))
def test_row_major_products_are_column_major_products_of_transposes(lengths, batches, turn_x, turn_y, seed):
    m, k, n = lengths
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((*batches[0], *((k, m) if turn_x else (m, k)))).astype(np.float32)
    y = rng.standard_normal((*batches[1], *((n, k) if turn_y else (k, n)))).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libraries, "open_library", lambda _: CublasLt())
        got = product_of(x, y, turns=(turn_x, turn_y))
    want = (x.swapaxes(-1, -2) if turn_x else x) @ (y.swapaxes(-1, -2) if turn_y else y)
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("ending", [
    Ending(), Ending(relu=True), Ending(bias=1), Ending(1, 2, True), Ending(2, 1), Ending(None, 1)])
def test_a_product_ends_with_bias_residual_and_relu(ending):
    rng = np.random.default_rng(0)
    x, y, bias, residual = (rng.standard_normal(s).astype(np.float32) for s in ((5, 4), (4, 3), (3,), (5, 3)))
    operands = {ending.bias: bias, ending.residual: residual}
    used_operands = [operands[number] for number in (1, 2) if number in operands]
    want = x @ y + (bias if ending.bias else 0) + (residual if ending.residual else 0)
    got = product_of(x, y, ending, used_operands)
    np.testing.assert_allclose(got, np.maximum(want, 0) if ending.relu else want, 1e-5, 1e-5)


def test_descriptors_are_destroyed_whether_the_library_succeeds_or_not(library):
    x = np.ones((2, 2), np.float32)
    product_of(x, x)
    assert set(library[blas.FILE].objects) == {1001}  # the handle
    library[blas.FILE] = CublasLt({"cublasLtMatmul": 13})
    with pytest.raises(Internal, match="cublasLtMatmul returned status 13"):
        product_of(x, x)
    assert len(library[blas.FILE].objects) == 1


def test_types_choose_the_precision_of_products():
    problem, lhs = matmul_problem(F, (2, 3), (3, 4))
    compute_types = [blas.multiplication(problem, lhs, Ending(), products).compute for products in ("float32", "tf32")]
    assert compute_types == [68, 77]
    for dtype, compute in ((dtypes.float16, 68), (dtypes.float64, 70)):
        problem, lhs = matmul_problem(dtype, (2, 3), (3, 4))
        assert blas.multiplication(problem, lhs, Ending(), "tf32").compute == compute


def test_layouts_and_types_that_the_library_lacks_are_unimplemented():
    problem, lhs = matmul_problem(dtypes.int32, (2, 3), (3, 4))
    with pytest.raises(Unimplemented, match="float matrices"):
        blas.multiplication(problem, lhs, Ending(), "float32")
    problem, lhs = matmul_problem(F, (2, 3), (3, 4))
    with pytest.raises(Unimplemented, match="neighbours"):
        blas.multiplication(problem, Matrix(F, 6, 2, 0), Ending(), "float32")
    window = Window((1, 4, 4, 3), (3, 3), (1, 1), (1, 1), (2, 2), (0, 0))
    with pytest.raises(Unimplemented):
        blas.multiplication(GemmProblem(F, 1, 4, 27, 8, 8, 1, 0, 8, 0), Patches(F, window, 3), Ending(), "float32")


# Epilogues


@pytest.mark.parametrize(("steps", "ending"), [
    ((), Ending()), ((Step("Relu", (0,)),), Ending(relu=True)), ((Step("AddV2", (1, 0)),), Ending(bias=1)),
    ((Step("AddV2", (0, 1)), Step("AddV2", (2, 3)), Step("Relu", (4,))), Ending(1, 2, True)),
    ((Step("AddV2", (0, 2)), Step("Identity", (3,)), Step("AddV2", (4, 1))), Ending(1, 2)),
    ((Step("Relu", (0,)), Step("AddV2", (3, 1))), None), ((Step("AddV2", (0, 0)),), None),
    ((Step("AddV2", (0, 1)), Step("AddV2", (3, 1))), None), ((Step("AddV2", (0, Literal(1))),), None),
    ((Step("Sigmoid", (0,)),), None), ((Step("AddV2", (1, 2)),), None),
])
def test_epilogues_of_bias_residual_and_relu_are_endings(steps, ending):
    assert simple_ending(Epilogue(steps, ((F, CHANNEL), (F, FULL)))) == ending


# cuDNN


def window(**changes):
    sizes = {"shape": (2, 9, 8, 6), "taps": (3, 3), "strides": (2, 1), "dilations": (1, 1), "size": (5, 8),
             "before": (1, 1)}
    return Window(**(sizes | changes))


def test_a_convolution_is_described_as_the_library_asks():
    got = cudnn.convolution(F, (3, 3, 3, 10), window(), Ending(1, 2, True), "tf32")
    assert got == cudnn.Convolution(
        F, 0, (2, 9, 8, 6), (10, 3, 3, 3), (2, 5, 8, 10), (1, 1, 2, 1, 1, 1), 2, Ending(1, 2, True))
    assert cudnn.convolution(F, (3, 3, 6, 10), window(), Ending(), "float32").math == 3
    assert cudnn.convolution(dtypes.float16, (3, 3, 6, 10), window(), Ending(), "float32").math == 1


@pytest.mark.parametrize(("changes", "ending", "reason"), [
    ({"before": (0, 1)}, Ending(), "both sides"), ({}, Ending(relu=True), "bias"), ({}, Ending(residual=1), "bias")])
def test_convolutions_that_the_library_lacks_are_unimplemented(changes, ending, reason):
    with pytest.raises(Unimplemented, match=reason):
        cudnn.convolution(F, (3, 3, 6, 10), window(**changes), ending, "float32")


class CudnnLog:
    """cuDNN as a list of its calls."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, [getattr(a, "value", a) for a in arguments]))
            if name.startswith("cudnnCreate"):
                referent(arguments[0]).value = len(self.calls)
            return 0

        return call

    def descriptor_named(self, name):
        return [arguments for called, arguments in self.calls if called == name]


def test_a_convolution_passes_its_buffers_in_order(library):
    log = library[cudnn.FILE] = CudnnLog()
    handle = cudnn.Cudnn(Device().native, None)
    run = handle.bind(cudnn.convolution(F, (3, 3, 6, 10), window(), Ending(2, 1, True), "float32"))
    buffers = [SimpleNamespace(pointer=100 + i) for i in range(5)]
    run(*buffers)
    (called,) = log.descriptor_named("cudnnConvolutionBiasActivationForward")
    assert (called[3], called[5], called[12], called[14], called[17]) == (100, 101, 102, 103, 104)
    assert log.descriptor_named("cudnnSetTensor4dDescriptor")[0][1:] == [1, 0, 2, 6, 9, 8]  # NHWC, float: n, c, h, w
    assert log.descriptor_named("cudnnSetFilter4dDescriptor")[0][1:] == [0, 1, 10, 6, 3, 3]
    assert log.descriptor_named("cudnnSetStream")[0][1] == Native.stream
    plain = handle.bind(cudnn.convolution(F, (3, 3, 6, 10), window(), Ending(), "float32"))
    plain(*buffers[:3])
    (called,) = log.descriptor_named("cudnnConvolutionForward")
    assert (called[3], called[5], called[12]) == (100, 101, 102)


# The choice


def conv_bind(device, kernel, *, is_known=True):
    kernel = np.asarray(kernel, np.float32)
    filter_ = constant_info(kernel) if is_known else info(F, kernel.shape)
    attrs = {"T": F, "strides": (1, 1, 1, 1), "padding": "SAME", "data_format": "NHWC", "dilations": (1, 1, 1, 1),
             "explicit_paddings": ()}
    inputs: tuple[ValueInfo, ...] = (info(F, (1, 4, 5, kernel.shape[2])), filter_)
    return Bind("node", "Conv2D", attrs, inputs, (TensorMetadata(F, (1, 4, 5, kernel.shape[3])),), device, 0, {})


def test_points_go_to_blas_and_other_convolutions_to_cudnn(library, entered_contexts):
    log = library[cudnn.FILE] = CudnnLog()
    rng, device = np.random.default_rng(0), Device()
    x, f = rng.standard_normal((1, 4, 5, 6)).astype(np.float32), rng.standard_normal((1, 1, 6, 3)).astype(np.float32)
    run = library_kernels.bind(conv_bind(device, f)).run
    assert entered_contexts == [Native.context]  # libraries take the current context as theirs
    output = Buffer(np.zeros((1, 4, 5, 3), np.float32))
    run(Buffer(x), Buffer(f), output)
    np.testing.assert_allclose(output.array, x @ f[0, 0], 1e-5, 1e-5)
    f = rng.standard_normal((3, 3, 6, 3)).astype(np.float32)
    b = conv_bind(device, f)
    library_kernels.bind(b).run(Buffer(x), Buffer(f), output)
    (called,) = log.descriptor_named("cudnnConvolutionForward")
    packed = np.ctypeslib.as_array(ctypes.cast(called[5], ctypes.POINTER(ctypes.c_float)), (3, 3, 3, 6))
    np.testing.assert_array_equal(packed, f.transpose(3, 0, 1, 2))


def test_a_fused_product_hands_over_bias_and_residual_by_their_places(library):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((5, 3), (3,), (5, 4), (4, 3))]  # residual, bias, x, y
    meta = TensorMetadata(F, (5, 3))
    fused = (FusedOp("MatMul", {"T": F, "transpose_a": False, "transpose_b": False}, (2, 3), (4,), (meta,)),
             FusedOp("AddV2", {"T": F}, (4, 1), (5,), (meta,)), FusedOp("AddV2", {"T": F}, (0, 5), (6,), (meta,)),
             FusedOp("Relu", {"T": F}, (6,), (7,), (meta,)))
    b = Bind("node", "LibraryProduct", {}, tuple(info(F, a.shape) for a in arrays), (meta,), Device(), 0, {}, fused)
    output = Buffer(np.zeros((5, 3), np.float32))
    library_kernels.bind(b).run(*map(Buffer, arrays), output)
    np.testing.assert_allclose(output.array, np.maximum(arrays[2] @ arrays[3] + arrays[1] + arrays[0], 0), 1e-5, 1e-5)


@pytest.mark.parametrize(("statuses", "reason"), [
    (None, "libcublasLt.so.13 cannot be loaded"), ({"cublasLtCreate": 1}, "cublasLtCreate returned status 1"),
    ({"cublasLtMatmulAlgoGetHeuristic": 15}, "GetHeuristic returned status 15")])
def test_a_node_is_declined_with_the_reason(monkeypatch, statuses, reason):
    monkeypatch.setattr(libraries, "open_library",
                        lambda _: "no such file" if statuses is None else CublasLt(statuses))
    declined = library_kernels.bind(conv_bind(Device(), np.zeros((1, 1, 6, 3))))
    assert isinstance(declined, Declined)
    assert reason in declined.reason


@pytest.mark.parametrize("kernel", [(1, 1, 6, 3), (3, 3, 6, 3)], ids=["cuBLASLt", "cuDNN"])
@pytest.mark.parametrize(("images", "result"), [
    ((1, 4, 5, 6), (1, 4, 6, 3)), ((1, 4, 5, 6), (1, 3, 5, 3)), ((1, 3, 5, 6), (1, 4, 5, 3)),
    ((1, 4, 5, 6), (1, 4, 5, 300))])
def test_a_product_whose_sizes_contradict_each_other_is_declined(library, kernel, images, result):
    library[cudnn.FILE] = CudnnLog()
    honest = conv_bind(Device(), np.zeros(kernel))
    inputs = (info(F, images), honest.inputs[1])
    lie = Bind("node", "Conv2D", honest.attrs, inputs, (TensorMetadata(F, result),), honest.device, 0, {})
    assert not isinstance(library_kernels.bind(honest), Declined)
    assert "contradict each other" in library_kernels.bind(lie).reason


@pytest.mark.parametrize("sizes", [(240, 72, 479), (479, 72, 240), (480, 71, 240), (480, 72, 239)])
def test_a_product_compares_the_buffers_that_it_is_attached_to(library, sizes):
    bound = library_kernels.bind(conv_bind(Device(), np.zeros((1, 1, 6, 3))))

    def attach(*sizes):
        *inputs, output = (SimpleNamespace(nbytes=nbytes) for nbytes in sizes)
        return bound.attach(tuple(inputs), (output,))

    attach(480, 72, 240)
    with pytest.raises(InvalidArgument, match="a buffer of"):
        attach(*sizes)


def test_a_filter_that_is_no_constant_is_declined(library):
    library[cudnn.FILE] = CudnnLog()
    declined = library_kernels.bind(conv_bind(Device(), np.zeros((3, 3, 6, 3)), is_known=False))
    assert "constant" in declined.reason


def test_a_missing_library_is_an_error_with_its_remedy(monkeypatch):
    with pytest.raises(Unavailable, match="libnothing.so.1 cannot be loaded") as caught:
        libraries.load("libnothing.so.1")
    assert caught.value.hint == libraries.INSTALL
    assert not libraries.is_there("libnothing.so.1")


# The true libraries' own checks, without a GPU


@pytest.mark.skipif(not libraries.is_there(blas.FILE), reason=f"needs {libraries.INSTALL}")
def test_the_true_library_takes_the_descriptors():
    problem, lhs = matmul_problem(F, (7, 5, 4), (7, 4, 3))
    multiplication = blas.multiplication(problem, lhs, Ending(1, 2, True), "tf32")
    with blas.Descriptors(libraries.load(blas.FILE), multiplication) as descriptors:
        descriptors.set_bias(ctypes.c_void_p(256))


@pytest.mark.skipif(not libraries.is_there(blas.FILE), reason=f"needs {libraries.INSTALL}")
def test_a_type_that_the_true_library_refuses_is_an_error(monkeypatch):
    problem, lhs = matmul_problem(F, (7, 5, 4), (7, 4, 3))
    multiplication = blas.multiplication(problem, lhs, Ending(1, 2, True), "tf32")
    monkeypatch.setattr(blas, "DESC_BIAS_TYPE", 10_000)
    with pytest.raises(Internal):
        blas.Descriptors(libraries.load(blas.FILE), multiplication)


@pytest.mark.skipif(not libraries.is_there(cudnn.FILE), reason=f"needs {libraries.INSTALL}")
def test_the_true_convolution_library_takes_the_descriptors():
    convolution = cudnn.convolution(F, (3, 3, 3, 10), window(), Ending(1, 2, True), "tf32")
    cudnn.Descriptors(libraries.load(cudnn.FILE), convolution)
