"""Layouts of handles: scalar and sparse tensors, their conversions, and kernels that declare them."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from harness.eager_runtime import core
from heald import errors
from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import Runtime
from heald_eager.core_runtime import CoreRuntime
from heald_eager.layout_handles import coo_handle, scalar_handle

DENSE = np.float32([[0, 4, 0], [0, 0, 3]])
INDICES, VALUES = [[1, 2], [0, 1]], np.float32([3, 4])
KERNELS = """
from heald.api import CooTensor, ScalarTensor, hookimpl
HEALD_API = (1, 1)

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register, priority=10)

def register(kernels):
    @kernels.kernel("{op}", layouts={layouts})
    def bind(b):
        return lambda *inputs: {result}
"""


def sparse() -> heald.TensorHandle:
    return heald.coo_tensor(INDICES, VALUES, (2, 3))


def with_kernel(tmp_path, op: str, layouts: dict[str, str], result: str) -> CoreRuntime:
    file = tmp_path / f"kernels_of_{tmp_path.name}.py"
    file.write_text(KERNELS.format(op=op, layouts=layouts, result=result))
    return CoreRuntime(Runtime(load_config({"plugins": {"load": [str(file)]}})).host)


def test_a_scalar_tensor_has_its_shape_and_no_memory_for_it():
    huge = heald.scalar_tensor([1 << 20, 1 << 20], 1.5)
    assert (huge.shape, huge.dtype.name, huge.layout) == ((1 << 20, 1 << 20), "float32", "scalar")
    assert "scalar 1.5" in repr(huge)
    total = huge + huge
    assert (total.layout, total.numpy()[5, 7], total.numpy().strides) == ("scalar", 3, (0, 0))
    with pytest.raises(errors.ResourceExhausted):
        huge.to_dense()


def test_a_kernel_of_dense_tensors_gets_all_elements_of_a_scalar_tensor():
    x = heald.scalar_tensor([2, 3], 2, "float32")
    assert np.array_equal((x + heald.TensorHandle(DENSE)).numpy(), DENSE + 2)
    assert heald.ops.relu(x).numpy().tolist() == [[2, 2, 2]] * 2
    assert heald.execute("Reshape", DENSE, heald.scalar_tensor([1], 6)).shape == (6,)
    assert np.from_dlpack(x).sum() == 12
    dense = x.to_dense()
    assert (dense.layout, dense.to_dense() is dense) == ("dense", True)
    assert np.array_equal(dense.numpy(), np.full((2, 3), 2, np.float32))


def test_a_donated_scalar_tensor_gives_its_dense_form():
    x = heald.scalar_tensor([2], 2.0)
    assert heald.execute("Relu", x, donate=(0,)).numpy().tolist() == [2, 2]
    with pytest.raises(errors.FailedPrecondition, match="was donated"):
        x.to_dense().numpy()


def test_texts_are_scalar_tensors_too():
    x = heald.scalar_tensor((2,), "a")
    assert x.numpy().tolist() == [b"a", b"a"]
    assert heald.execute("StringJoin", [x, ["b", "c"]]).numpy().tolist() == [b"ab", b"ac"]


def test_a_sparse_tensor_keeps_coordinates_in_order_and_converts_both_ways():
    x = sparse()
    assert (x.shape, x.dtype.name, x.layout) == ((2, 3), "float32", "coo")
    assert (x.indices.tolist(), x.values.tolist()) == ([[0, 1], [1, 2]], [4, 3])
    assert "coo with 2 elements [4., 3.]" in repr(x)
    assert np.array_equal(x.to_dense().numpy(), DENSE)
    again = x.to_dense().to_coo()
    assert (again.indices.tolist(), again.values.tolist()) == (x.indices.tolist(), x.values.tolist())
    assert x.to_coo() is x
    assert heald.scalar_tensor((2,), 5).to_coo().indices.tolist() == [[0], [1]]
    for array in (x.indices, x.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_sparse_tensors_may_have_no_elements_or_rank_0():
    assert heald.coo_tensor([], [], (2, 2)).to_dense().numpy().tolist() == [[0, 0], [0, 0]]
    assert heald.coo_tensor([[]], [7], ()).to_dense().numpy() == 7
    assert heald.TensorHandle(0).to_coo().indices.shape == (0, 0)


def test_kernels_of_sparse_tensors_take_and_return_them():
    x = sparse()
    negative = -x
    assert (negative.layout, negative.values.tolist()) == ("coo", [-4, -3])
    right = np.arange(6, dtype=np.float32).reshape(3, 2)
    for _ in range(2):
        assert np.array_equal(heald.ops.matmul(x, right).numpy(), DENSE @ right)
    assert np.array_equal(heald.ops.matmul(x, DENSE, transpose_b=True).numpy(), DENSE @ DENSE.T)
    assert np.array_equal(heald.ops.matmul(x, np.ones((2, 2), np.float32), transpose_a=True).numpy(), DENSE.T @ np.ones(
        (2, 2)))
    assert np.array_equal(heald.ops.matmul(x, heald.scalar_tensor((3, 1), 2.0)).numpy(), DENSE @ np.full((3, 1), 2))


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: sparse() + sparse(), errors.Unimplemented, r"\(x: coo, y: coo\)"),
    (lambda: sparse() + 1, errors.Unimplemented, r"x\.to_dense\(\)"),
    (lambda: heald.ops.matmul(DENSE[:, :2], sparse()), errors.Unimplemented, r"sparse ones take \(a: coo, b: dense\)"),
    (lambda: heald.ops.matmul(sparse(), DENSE), errors.InvalidArgument, "inner dimensions"),
    (lambda: heald.execute("Reshape", sparse(), [6]), errors.Unimplemented, "tensor: coo"),
    (lambda: sparse().numpy(), errors.InvalidArgument, r"to_dense\(\)\.numpy\(\)"),
    (lambda: np.asarray(sparse()), errors.InvalidArgument, "no array"),
    (lambda: heald.TensorHandle(DENSE).indices, errors.InvalidArgument, r"x\.to_coo\(\)"),
    (lambda: heald.TensorHandle(["a"]).to_coo(), errors.InvalidArgument, "no element to leave out"),
    (lambda: heald.scalar_tensor((2,), [1, 2]), errors.InvalidArgument, r"shape \[2\], expected \[\]"),
    (lambda: heald.scalar_tensor((-1,), 1), errors.InvalidArgument, "no shape"),
    (lambda: heald.scalar_tensor(("a",), 1), errors.InvalidArgument, "no sequence of integers"),
    (lambda: heald.scalar_tensor((1 << 62, 8), 1), errors.InvalidArgument, r"2\*\*63"),
    (lambda: heald.scalar_tensor((2,), 1.5, "int32"), errors.InvalidArgument, "cannot hold"),
    (lambda: heald.coo_tensor([[1, 2], [1, 2]], VALUES, (2, 3)), errors.InvalidArgument, r"\[1, 2\] are given twice"),
    (lambda: heald.coo_tensor([[1, 3]], [1], (2, 3)), errors.InvalidArgument, r"indices\[0\] = \[1, 3\] is outside"),
    (lambda: heald.coo_tensor([[0, -1]], [1], (2, 3)), errors.InvalidArgument, "outside"),
    (lambda: heald.coo_tensor([[0.5, 1]], [1], (2, 3)), errors.InvalidArgument, r"expected integers of shape \[\?,2\]"),
    (lambda: heald.coo_tensor([[0]], [1], (2, 3)), errors.InvalidArgument, "a row of 2 coordinates"),
    (lambda: heald.coo_tensor([[0, 1]], [1, 2], (2, 3)), errors.InvalidArgument, "one for each row"),
    (lambda: heald.coo_tensor([[0, 1], [2]], [1, 2], (2, 3)), errors.InvalidArgument, "cannot be read as an array"),
    (lambda: heald.coo_tensor([[0]], ["a"], (2,)), errors.InvalidArgument, "no element to leave out"),
])
def test_a_wrong_layout_is_an_error_that_names_the_way_out(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_the_error_of_a_sparse_input_names_the_users_line():
    with pytest.raises(errors.Unimplemented) as raised:
        heald.execute("AddV2", sparse(), DENSE)
    assert (raised.value.op, raised.value.location.file) == ("AddV2", __file__)


def test_devices_get_dense_tensors_only():
    cpu = core()
    x = scalar_handle(cpu, (2, 2), 1.5)
    assert x.to("SIM:0").numpy().tolist() == [[1.5, 1.5]] * 2
    assert cpu.execute("AddV2", x, x, device="SIM:0").numpy().tolist() == [[3, 3]] * 2
    y = coo_handle(cpu, INDICES, VALUES, (2, 3))
    with pytest.raises(errors.InvalidArgument, match=r"to_dense\(\)\.to\('SIM:0'\)"):
        y.to("SIM:0")
    with pytest.raises(errors.Unimplemented, match="no kernel on SIM:0 takes the layouts"):
        cpu.execute("Neg", y, device="SIM:0")
    with pytest.raises(errors.InvalidArgument, match=r"to\('CPU:0'\)\.to_coo\(\)"):
        cpu.handle(DENSE).to("SIM:0").to_coo()


@pytest.mark.parametrize("seed", range(6))
def test_a_pending_value_is_converted_when_it_has_come(seed):
    cpu = core(seed)
    late = cpu.handle(DENSE).to("SIM:0").to("CPU:0")
    sparse = late.to_coo()
    assert sparse.shape == (2, 3)
    negative = cpu.execute("Neg", sparse)
    product = cpu.execute("AddV2", sparse, 1)
    assert (negative.layout, negative.values.tolist()) == ("coo", [-4, -3])
    assert np.array_equal(negative.to_dense().numpy(), -DENSE)
    with pytest.raises(errors.Unimplemented, match=r"to_dense\(\)") as raised:
        product.numpy()
    assert raised.value.location.file == __file__
    bad = cpu.execute("GatherV2", DENSE, [7], 0).to_coo()
    with pytest.raises(errors.InvalidArgument, match="= 7"):
        bad.values  # noqa: B018


def test_handles_of_another_runtime_keep_their_layout():
    cpu = core()
    assert cpu.execute("Neg", sparse()).layout == "coo"
    assert cpu.execute("Neg", heald.scalar_tensor((2,), 1.0)).layout == "scalar"


def test_a_kernel_of_declared_layouts_serves_exactly_these_calls(tmp_path):
    cpu = with_kernel(tmp_path, "Relu", {"features": "scalar", "activations": "coo"},
                      "CooTensor(inputs[0].shape, inputs[0].value.reshape(1, 1).astype('int64')[:0], "
                      "inputs[0].value.reshape(1)[:0])")
    assert cpu.execute("Relu", scalar_handle(cpu, (3,), -1.0)).layout == "coo"
    assert cpu.execute("Relu", np.float32([-1, 2])).numpy().tolist() == [0, 2]


@pytest.mark.parametrize(("result", "text"), [
    ("inputs[0].value", r"returned a dense tensor of float32\[\], expected a scalar tensor of float32\[3\]"),
    ("ScalarTensor((4,), inputs[0].value)", r"a scalar tensor of float32\[4\], expected"),
    ("(inputs[0], inputs[0])", "returned 2 values, expected 1")])
def test_a_result_of_another_layout_is_the_plugins_error(tmp_path, result, text):
    cpu = with_kernel(tmp_path, "Relu", {"features": "scalar", "activations": "scalar"}, result)
    with pytest.raises(errors.PluginError, match=text):
        cpu.execute("Relu", scalar_handle(cpu, (3,), -1.0)).numpy()
