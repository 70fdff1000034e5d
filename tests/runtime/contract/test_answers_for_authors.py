"""The answers that docs/plugins.md gives to authors of kernels and devices, by a device that notes its arguments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from heald.api import Graph, Node, constant

PLUGIN = '''
import numpy as np
from heald.api import OpSpec, hookimpl, info

HEALD_API = (1, 3)
noted = {}

class Noting:
    """A device without queues: it works within the call that enqueues."""

    type, uid, attributes, native = "NOTING", "noting0", {}, None

    def open(self): ...
    def close(self): ...

    def allocate(self, nbytes):
        noted.setdefault("allocated", []).append(nbytes)
        return bytearray(nbytes)

    def free(self, buffer): ...

    def copy_in(self, host, buffer, stream):
        noted.setdefault("contiguous", []).append(host.flags.c_contiguous)
        buffer[: host.nbytes] = host.tobytes()

    def copy_out(self, buffer, host, stream):
        host.reshape(-1).view(np.uint8)[:] = np.frombuffer(buffer, np.uint8)[: host.nbytes]

    def record(self, stream): ...
    def synchronize(self, event): ...

def scan(config):
    yield Noting()

def metadata(attrs, how, *xs):
    noted["metadata"] = dict(attrs)
    noted["inputs of metadata"] = len(xs)
    return info(attrs["T"], xs[0].shape)

@hookimpl
def heald_devices(registry):
    registry.device(type="NOTING", scan=scan, kernels=with_probe)

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)

@hookimpl
def heald_ops(registry):
    registry.add(OpSpec("Notes>First", ["how: string", "xs: N * T"], ["y: T"], [
        "N: int >= 1", "T: type", "mode: string = 'plain'", "shape: shape = None", "types: list(type)"],
        metadata=metadata))

def with_probe(kernels):
    register(kernels)
    kernels.kernel("AddV2")(lambda b: lambda x, y, out: out.__setitem__(slice(None), (
        np.frombuffer(x, np.float32) + np.frombuffer(y, np.float32)).tobytes()))

def register(kernels):
    kernels.kernel("Notes>First", host=["how"], when=lambda attrs: not noted.update(when=dict(attrs)))(First)

class First:
    def __init__(self, b):
        noted["attrs"], noted["inputs"], noted["values"] = b.attrs, len(b.inputs), [x.value for x in b.inputs]

    def attach(self, inputs, outputs):
        noted["attached"] = [type(x).__name__ for x in (*inputs, *outputs)]
        return lambda: self.run(*inputs, *outputs)

    def run(self, how, first, *others_and_output):
        noted["operands"] = [how, first, *others_and_output]
        out = others_and_output[-1]
        if isinstance(out, np.ndarray):
            np.copyto(out, first)
        else:
            out[:] = first
'''
ATTRS = {"N": 2, "T": "float32", "mode": b"loud", "shape": (2, -1), "types": ["int32", np.float16]}


@pytest.fixture
def noting_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    name = f"noting_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(PLUGIN, "utf-8")
    monkeypatch.chdir(tmp_path)
    return {"file": f"{name}.py", "module": name}


def run(noting_plugin: dict[str, Any], device: str, x: np.ndarray[Any, Any]) -> Any:
    """Run the op over x and x + 1 on a device, and take what the plugin noted."""
    graph = Graph([constant("how", np.array(b"so", object)),
                   *(Node(name, "Placeholder", attrs={"dtype": "float32", "shape": x.shape}) for name in "ab"),
                   Node("y", "Notes>First", ["how", "a", "b"], attrs=ATTRS)])
    with heald.Session(graph, {"plugins": {"load": [noting_plugin["file"]]}}, device=device) as session:
        result = session.run("y", {"a": x, "b": x + 1})
    noting_plugin |= sys.modules[noting_plugin["module"]].noted
    return result


@pytest.mark.parametrize("device", ["CPU:0", "NOTING:0"])
def test_attributes_have_one_form_wherever_a_plugin_sees_them(noting_plugin: dict[str, Any], device: str) -> None:
    run(noting_plugin, device, np.ones((2, 3), np.float32))
    dtypes = heald.api.dtypes
    expected = {"N": 2, "T": dtypes.float32, "mode": "loud", "shape": (2, None),
                "types": (dtypes.int32, dtypes.float16)}
    assert noting_plugin["metadata"] == noting_plugin["when"] == noting_plugin["attrs"] == expected
    assert type(noting_plugin["attrs"]["mode"]) is str


@pytest.mark.parametrize("device", ["CPU:0", "NOTING:0"])
def test_list_arguments_are_flattened(noting_plugin: dict[str, Any], device: str) -> None:
    run(noting_plugin, device, np.ones((2, 3), np.float32))
    assert (noting_plugin["inputs of metadata"], noting_plugin["inputs"], len(noting_plugin["operands"])) == (2, 3, 4)


def test_inputs_on_the_host_are_arrays_and_the_others_are_buffers(noting_plugin: dict[str, Any]) -> None:
    result = run(noting_plugin, "NOTING:0", np.float32([[1, 2]]))
    assert result.tolist() == [[1, 2]]
    assert noting_plugin["attached"] == ["ndarray", "bytearray", "bytearray", "bytearray"]
    assert noting_plugin["operands"][0].tolist() == b"so"


@pytest.mark.parametrize("device", ["CPU:0", "NOTING:0"])
def test_operands_are_in_c_order_whatever_the_feed_is(noting_plugin: dict[str, Any], device: str) -> None:
    transposed = np.arange(6, dtype=np.float32).reshape(3, 2).T
    assert run(noting_plugin, device, transposed).tolist() == transposed.tolist()
    if device == "CPU:0":
        assert all(x.flags.c_contiguous and x.flags.aligned for x in noting_plugin["operands"])
    else:
        assert all(noting_plugin["contiguous"])


def test_a_tensor_without_elements_has_a_buffer_and_its_kernel_is_called(noting_plugin: dict[str, Any]) -> None:
    assert run(noting_plugin, "NOTING:0", np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert min(noting_plugin["allocated"]) == 1
    assert len(noting_plugin["operands"]) == 4


def test_elements_are_known_for_constants_only(noting_plugin: dict[str, Any]) -> None:
    run(noting_plugin, "CPU:0", np.ones(2, np.float32))
    how, *others = noting_plugin["values"]
    assert how.tolist() == b"so"
    assert others == [None, None]
