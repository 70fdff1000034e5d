"""The template plugin: a device with memory of its own, which works when a caller waits for a result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from heald.runtime.config.config import load_config
from heald.runtime.contract.kernel import Bind, Declined
from heald.runtime.contract.op import infer
from heald.runtime.discovery.discovery import Plugins, load_plugins
from heald.runtime.host.host import Host
from heald.runtime.values.tensor import ValueInfo, constant_info
from heald_example_device.device import Example, scan
from heald_example_device.plugin import Config

STREAM = 0


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_plugins(load_config({"plugins": {"allow": ["cpu", "example_device", "tf_ops"]}}, environ={}))


@pytest.fixture
def device() -> Iterator[Example]:
    (device_found,) = scan(Config())
    device_found.open()
    yield device_found
    device_found.close()


def upload(device: Example, array: np.ndarray[Any, Any]) -> Any:
    buffer = device.allocate(array.nbytes)
    device.copy_in(array, buffer, STREAM)
    return buffer


def download(device: Example, buffer: Any, like: Any) -> np.ndarray[Any, Any]:
    host = np.zeros(like.dims, like.dtype.numpy)
    device.copy_out(buffer, host, STREAM)
    assert not host.any()  # enqueued, not done
    device.synchronize(device.record(STREAM))
    return host


def bind(
    plugins: Plugins, device: Example, name: str, arrays: list[Any], prepared: Any = None, fed: int = 0, **attrs: Any
) -> Any:
    """The best kernel's bind for these inputs, and the outputs' metadata. The values of the first `fed` are unknown."""
    ops = plugins.registries.ops
    op = ops.get(name)
    infos = [constant_info(np.asarray(x)) for x in arrays]
    infos[:fed] = [ValueInfo(info.meta) for info in infos[:fed]]
    attrs = {n: a.default for n, a in op.attrs.items()} | attrs
    attrs |= {n: infos[0].dtype for n in op.attrs if n == "T"}
    outputs = tuple(o.meta for o in infer(op, ops.metadata(op), attrs, infos))
    kernel = plugins.registries.kernels.candidates(name, "EXAMPLE")[0]
    assert kernel.refuses(attrs) is None
    prepared = {} if prepared is None else prepared
    return kernel.bind(Bind("n", name, attrs, tuple(infos), outputs, device, STREAM, prepared)), outputs


def run(plugins: Plugins, device: Example, name: str, arrays: list[Any], **attrs: Any) -> np.ndarray[Any, Any]:
    bound, (output,) = bind(plugins, device, name, arrays, **attrs)
    inputs, result = [upload(device, x) for x in arrays], device.allocate(output.nbytes)
    bound(*inputs, result)
    return download(device, result, output)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("op", "function"),
    [("AddV2", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Maximum", np.maximum), ("Neg", np.negative),
     ("Relu", lambda x: np.maximum(x, 0)), ("Example>Gelu", gelu)],
)
def test_elementwise_ops_compute_what_numpy_computes(
    plugins: Plugins, device: Example, op: str, function: Any, dtype: str
) -> None:
    count = len(plugins.registries.ops.get(op).inputs)
    arrays = [np.random.default_rng(i).normal(size=(3, 5)).astype(dtype) for i in range(count)]
    result = run(plugins, device, op, arrays)
    np.testing.assert_allclose(result, function(*arrays), rtol=1e-3 if dtype == "float16" else 1e-6, atol=1e-3)


def test_a_result_that_is_no_number_is_no_warning(plugins: Plugins, device: Example) -> None:
    result = run(plugins, device, "Mul", [np.float32([np.inf, 3e38]), np.float32([0, 10])])
    assert np.isnan(result[0])
    assert result[1] == np.inf


@pytest.mark.parametrize("transpose_b", [False, True])
def test_matmul_packs_constant_weights_once(plugins: Plugins, device: Example, transpose_b: bool) -> None:
    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)
    arrays = np.ascontiguousarray(w.T) if transpose_b else w
    assert np.array_equal(run(plugins, device, "MatMul", [x, arrays], transpose_b=transpose_b), x @ w)
    prepared: dict[Any, Any] = {}
    bind(plugins, device, "MatMul", [x, arrays], prepared, 1, transpose_b=transpose_b)
    packed = dict(prepared)
    bind(plugins, device, "MatMul", [x[:1], arrays], prepared, 1, transpose_b=transpose_b)
    assert prepared == packed
    assert [key for _, _, key in packed] == ["example-1/columns"]
    bind(plugins, device, "MatMul", [x, arrays + 1], prepared, 1, transpose_b=transpose_b)
    assert prepared.keys() == packed.keys()
    assert all(prepared[slot] is not packed[slot] for slot in packed)


def test_the_device_declines_unsupported_calls(plugins: Plugins, device: Example) -> None:
    matrix, row = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    declined, _ = bind(plugins, device, "AddV2", [matrix, row])
    assert declined == Declined("shapes differ; broadcasting is not implemented")
    (matmul,) = plugins.registries.kernels.candidates("MatMul", "EXAMPLE")
    assert matmul.refuses({"T": constant_info(matrix).dtype, "transpose_a": True}) is not None


def test_reshape_and_identity_are_aliases_and_the_shape_is_read_on_the_host(plugins: Plugins, device: Example) -> None:
    bound, (output,) = bind(plugins, device, "Reshape", [np.ones((2, 3), np.float32), np.array([6], np.int32)],
                            Tshape=constant_info(np.array([6], np.int32)).dtype)
    assert bound is None
    assert output.dims == (6,)
    (reshape,) = plugins.registries.kernels.candidates("Reshape", "EXAMPLE")
    (identity,) = plugins.registries.kernels.candidates("Identity", "EXAMPLE")
    assert reshape.host == {"shape"}
    assert reshape.alias == identity.alias == {0: 0}


def test_memory_of_the_device_is_no_array(device: Example) -> None:
    buffer = device.allocate(16)
    with pytest.raises(TypeError, match="copy it out first"):
        np.asarray(buffer)
    with pytest.raises(TypeError):
        memoryview(buffer)  # type: ignore[arg-type]


def test_memory_runs_out_and_comes_back() -> None:
    (device, other) = scan(Config(devices=2, memory=100))
    assert (device.uid, other.uid) == ("example0", "example1")
    device.open()
    first = device.allocate(60)
    assert first is not None
    assert device.allocate(60) is None
    device.free(first)
    assert device.allocate(60) is not None
    device.close()


def test_a_freed_buffer_still_serves_what_was_enqueued(device: Example) -> None:
    buffer = upload(device, np.full(4, 7, np.float32))
    host = np.zeros(4, np.float32)
    device.copy_out(buffer, host, STREAM)
    device.free(buffer)
    device.synchronize(device.record(STREAM))
    assert host.tolist() == [7] * 4


def test_streams_go_in_their_own_order(device: Example) -> None:
    buffer, hosts = device.allocate(4), [np.zeros(1, np.float32) for _ in range(2)]
    for value, host in zip((1, 2), hosts, strict=True):
        device.copy_in(np.full(1, value, np.float32), buffer, 1)
        device.copy_out(buffer, host, 1)
    early = device.record(2)
    device.synchronize(early)
    assert [h[0] for h in hosts] == [0, 0]
    device.synchronize(device.record(1))
    assert [h[0] for h in hosts] == [1, 2]


def test_the_host_context_opens_and_probes_it(plugins: Plugins) -> None:
    host = Host(plugins.registries)
    assert host.names("EXAMPLE") == ["EXAMPLE:0"]
    assert [(r.status, r.plugin) for r in host.records("EXAMPLE")] == [("ok", "example_device")]
    host.close()
