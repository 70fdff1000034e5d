"""A device states its limits once: placement, link and allocation keep to them, and a refusal has the number."""

from __future__ import annotations

from typing import ClassVar

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from harness.eager_runtime import core
from heald.errors import HealdWarning, InvalidArgument, ResourceExhausted, Unimplemented
from heald.runtime.contract.device import Device, own_method
from heald.runtime.contract.device_limits import NO_LIMITS, DeviceLimits
from heald.runtime.host.host import Host
from heald.runtime.host.registries import Registries
from heald.runtime.service.runtime import runtime
from heald.runtime.values.dtypes import float32, float64, int32
from heald.runtime.values.tensor import TensorMetadata

X = np.float32([1, -2, 3])


def config(fallback="error", **limits):
    return {"plugin": {"sim": limits}, "placement": {"fallback": fallback}}


def negated(dtype="float32", device="SIM:0", shape=(None,)):
    return graph(placeholder("x", shape, dtype), node("y", "Neg", "x", device=device, T=dtype))


@pytest.mark.parametrize("figures", [
    3, "largest_buffer", [1], {"largest_buffer": 0}, {"largest_buffer": 2.5}, {"largest_buffer": True},
    {"copy_alignment": 3}, {"copy_alignment": 0}, {"copy_alignment": -4}, {"copy_alignment": 1 << 20},
    {"copy_alignment": "4"}, {"missing_types": "float64"}, {"missing_types": 64}, {"missing_types": ["float65"]},
    {"missing_types": [1]}, {"missing_types": [np.float64]}, {"most_memory": 3}, {3: 4},
])
def test_wrong_limits_are_refused(figures):
    with pytest.raises(InvalidArgument):
        DeviceLimits.of({"limits": figures})


def test_a_device_without_limits_has_none():
    assert DeviceLimits.of({}) is NO_LIMITS
    assert NO_LIMITS.refusal([TensorMetadata(float64, (1 << 40,))]) is None
    assert NO_LIMITS.allocation(0) == 1
    assert NO_LIMITS.allocation(7) == 7


def test_a_device_with_wrong_limits_is_unavailable():
    with pytest.warns(HealdWarning, match="copy_alignment"):
        records = runtime({"plugin": {"sim": {"copy_alignment": 3}}}).host.records("SIM")
    assert [record.status for record in records] == ["unavailable"]
    assert "not a power of two" in records[0].reason


@pytest.mark.parametrize(("metas", "reason"), [
    ([TensorMetadata(float32, (4,))], None),
    ([TensorMetadata(float32, (5,))], "takes 24 bytes, and the device's largest buffer has 16"),
    ([TensorMetadata(int32, ()), TensorMetadata(float64, ())], "the device has no float64"),
])
def test_a_tensor_beyond_the_limits_is_refused_with_the_number(metas, reason):
    refusal = DeviceLimits(16, frozenset({"float64"}), 8).refusal(metas)
    assert refusal == reason or refusal.endswith(reason)


def test_a_node_of_a_missing_type_is_placed_elsewhere_and_says_why():
    session = heald.Session(negated("float64"), config("allow", missing_types=("float64",)))
    assert session.run("y", {"x": np.float64([1, 2])}).tolist() == [-1, -2]
    row = session.placement()["y"]
    assert row.device == "CPU:0"
    assert any(why == "the device has no float64" for _, why in row.refused)


def test_other_types_stay_on_a_device_with_missing_types():
    session = heald.Session(negated(), config(missing_types=("float64", "bfloat16")))
    assert session.run("y", {"x": X}).tolist() == (-X).tolist()
    assert session.placement()["y"].device == "SIM:0"


def test_a_request_for_a_missing_type_is_an_error_with_fallback_error():
    session = heald.Session(negated("float64"), config(missing_types=("float64",)))
    with pytest.raises(InvalidArgument, match="the device has no float64"):
        session.run("y", {"x": np.float64([1, 2])})


def test_a_tensor_beyond_the_largest_buffer_goes_to_another_device():
    session = heald.Session(negated(), config("allow", largest_buffer=64))
    assert session.run("y", {"x": np.ones(16, np.float32)}).tolist() == [-1] * 16
    assert session.placement()["y"].device == "SIM:0"
    assert session.run("y", {"x": np.ones(17, np.float32)}).tolist() == [-1] * 17
    assert any("largest buffer has 64" in why for _, why in session.placement()["y"].refused)


def test_a_tensor_beyond_the_largest_buffer_is_a_typed_error_with_fallback_error():
    session = heald.Session(negated(), config(largest_buffer=64))
    with pytest.raises(InvalidArgument, match="takes 68 bytes, and the device's largest buffer has 64"):
        session.run("y", {"x": np.ones(17, np.float32)})


@pytest.mark.parametrize(("dtype", "size", "reason"), [
    ("float32", 17, "takes 68 bytes, and the device's largest buffer has 64"),
    ("float64", 1, "the device has no float64"),
])
def test_an_eager_op_beyond_the_limits_is_refused_with_the_reason(dtype, size, reason):
    eager = core(largest_buffer=64, missing_types=("float64",))
    with pytest.raises(Unimplemented, match=reason):
        eager.execute("Neg", np.ones(size, dtype), device="SIM:0")


def test_an_allocation_beyond_the_largest_buffer_is_refused_before_the_device_is_asked():
    class Greedy:
        attributes: ClassVar = {"limits": {"largest_buffer": 100}}

        def allocate(self, nbytes):
            raise AssertionError(nbytes)

    with pytest.raises(ResourceExhausted, match="a buffer of 101 bytes, a table: the device's largest buffer has 100"):
        Host(Registries()).device_memory.allocate(Greedy(), 101, "a table")


@pytest.mark.parametrize(("nbytes", "asked"), [(0, 16), (1, 16), (16, 16), (17, 32)])
def test_buffers_are_multiples_of_the_alignment_of_copies(nbytes, asked):
    sizes = []

    class Aligned:
        attributes: ClassVar = {"limits": {"copy_alignment": 16}}

        def allocate(self, nbytes):
            sizes.append(nbytes)
            return object()

    Host(Registries()).device_memory.allocate(Aligned(), nbytes)
    assert sizes == [asked]


@pytest.mark.parametrize("shape", [(1,), (3,), (5,), (7, 3)])
@pytest.mark.parametrize("alignment", [1, 4, 16, 256])
def test_a_device_that_spoils_the_bytes_behind_a_copy_returns_right_results(shape, alignment):
    nodes = graph(placeholder("x", shape, "int8"), node("c", "AddV2", "x", "x", device="SIM:0", T="int8"),
                  node("y", "Neg", "c", device="SIM:0", T="int8"),
                  node("z", "AddV2", "y", "x", device="SIM:0", T="int8"))
    x = np.arange(np.prod(shape), dtype=np.int8).reshape(shape)
    session = heald.Session(nodes, config(copy_alignment=alignment))
    for _ in range(3):
        assert session.run("z", {"x": x}).tolist() == (-x).tolist()


def test_a_class_that_inherits_from_the_protocol_has_its_defaults_as_no_method():
    class Plain(Device):
        pass

    plain = Plain()
    optional = ("elapsed", "wrap", "reaches", "copy_peer", "figures", "capture", "adopt")
    assert [name for name in optional if own_method(plain, name) is not None] == []
    assert plain.wrap(X) is None
    assert plain.elapsed(None, None) is None
    assert plain.capture([], 0) is None
    assert plain.figures() == ""


@pytest.mark.parametrize("name", ["elapsed", "wrap", "reaches", "copy_peer", "figures", "capture", "adopt"])
def test_every_optional_method_is_a_documented_member_with_its_version(name):
    text = getattr(Device, name).__doc__
    assert text.startswith("Optional")
    assert "Since 1." in text
