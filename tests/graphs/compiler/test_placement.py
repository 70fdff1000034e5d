"""Placement gives each node a device and a reason: requests, coverage, order, fallback, remap; two memories."""

from __future__ import annotations

import sys
import warnings

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import HealdWarning, InvalidArgument, NotFound, PluginError, Unavailable, Unimplemented
from heald.graphs.graph.graph import Node
from heald.runtime.config.config import load_config
from heald.runtime.values import dtypes


def row(session: heald.Session, name: str) -> dict[str, str]:
    return next(r for r in session.placement().table() if r["node"] == name)


def two_nodes(first: str = "", second: str = "") -> heald.Graph:
    return graph(placeholder("x", (3,)), node("a", "AddV2", "x", "x", device=first),
                 node("b", "Neg", "a", device=second))


X = np.float32([1, -2, 3])


def test_nodes_without_requests_go_to_the_preferred_type_that_has_a_kernel():
    session = heald.Session(two_nodes(), {"plugins": {"block": ["onednn"]}})
    assert row(session, "a") | {"reason": ""} == {"node": "a", "op": "AddV2", "requested": "", "assigned": "CPU:0",
                                                  "kernel": "cpu.AddV2", "fused": "", "reason": "", "refused": "",
                                                  "choice": "the only kernel", "lost": ""}
    assert row(session, "x")["assigned"] == "host"


def test_texts_of_devices_plugins_and_nodes_have_their_fields():
    placed = heald.Session(two_nodes()).placement()["a"]
    assert "name='CPU:0', type='CPU'" in repr(heald.devices())
    assert "id='cpu', status='ok'" in repr(heald.plugins())
    assert "node='a', op='AddV2'" in repr(placed)
    assert "value=None" in repr(heald.api.info(dtypes.float32, (3,)))
    assert heald.api.info(dtypes.float32, (3,)) == heald.api.info(dtypes.float32, (3,))


@pytest.mark.parametrize("request_", [
    "EXAMPLE:0", "/device:EXAMPLE:0", "/job:localhost/replica:0/task:0/device:EXAMPLE:0", "/device:EXAMPLE:*",
    "/example:0", "EXAMPLE",
])
def test_full_partial_and_short_requests_are_met(request_):
    session = heald.Session(two_nodes(first=request_))
    assert row(session, "a")["assigned"] == "EXAMPLE:0"
    assert row(session, "a")["reason"] == "requested"
    assert session.run("b", {"x": X}).tolist() == [-2, 4, -6]


def test_a_value_crosses_between_memories_once_for_all_its_users():
    nodes = [placeholder("x", (3,)), node("a", "AddV2", "x", "x", device="EXAMPLE:0"),
             *(node(f"n{i}", "Neg", "a") for i in range(3)), node("m", "Mul", "a", "x", device="EXAMPLE:0")]
    session = heald.Session(graph(*nodes))
    program = session.prepare(["n0", "n1", "n2", "m"], ["x"]).program
    copies = [c.attrs["to"] for c in program.functions["main"].kernels if c.code == "heald.copy"]
    assert sorted(copies) == ["device", "host", "host"]  # x in, a out, m out
    results = session.run(["n0", "n2", "m"], {"x": X})
    assert [r.tolist() for r in results] == [(-2 * X).tolist(), (-2 * X).tolist(), (2 * X * X).tolist()]


def test_a_request_that_cannot_be_met_warns_once_for_each_op_and_reason_with_the_nodes():
    nodes = [placeholder("x", (3,)), *(node(f"n{i}", "Rsqrt", "x", device="EXAMPLE:0") for i in range(5))]
    with pytest.warns(HealdWarning, match=r"Rsqrt .*no kernel for Rsqrt; nodes n0, n1, n2 and 2 more") as caught:
        session = heald.Session(graph(*nodes))
    assert len(caught) == 1
    assert row(session, "n0")["assigned"] == "CPU:0"
    assert "EXAMPLE:0: no kernel for Rsqrt" in row(session, "n0")["refused"]


def test_fallback_error_refuses_and_allow_is_silent():
    tested_graph = graph(placeholder("x", (3,)), node("r", "Rsqrt", "x", device="EXAMPLE:0"))
    session = heald.Session(tested_graph, {"placement": {"fallback": "error"}})
    with pytest.raises(InvalidArgument, match="asks for EXAMPLE:0.*no kernel for Rsqrt") as caught:
        session.run("r", {"x": X})
    assert caught.value.node == "r"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = heald.Session(tested_graph, {"placement": {"fallback": "allow"}})
        assert session.run("r", {"x": [4, 4, 4]}).tolist() == [0.5] * 3


@pytest.mark.parametrize(("request_", "why"), [
    ("TPU:0", "no plugin brings the device type TPU"), ("EXAMPLE:7", "no such device"), ("CPU:3", "no such device"),
    ("/job:worker/task:1/device:CPU:0", "not in this process"),
])
def test_a_device_that_is_not_there_is_refused_with_the_reason(request_, why):
    session = heald.Session(two_nodes(first=request_), {"placement": {"fallback": "error"}})
    with pytest.raises(InvalidArgument, match=why):
        session.run("a", {"x": X})
    with pytest.warns(HealdWarning, match=why):
        assert heald.Session(two_nodes(first=request_)).run("a", {"x": X}).tolist() == (2 * X).tolist()


def test_a_missing_device_of_a_type_that_is_there_gives_way_to_another_of_its_type():
    with pytest.warns(HealdWarning, match=r"nothing runs on EXAMPLE:7: no such device.*nodes a$"):
        session = heald.Session(two_nodes(first="EXAMPLE:7"))
    assert row(session, "a")["assigned"] == "EXAMPLE:0"


def test_a_device_type_that_is_missing_is_told_once_for_all_ops():
    with pytest.warns(HealdWarning, match="nothing runs on GPU:0") as caught:
        heald.Session(two_nodes(first="/device:GPU:0", second="/device:GPU:0"))
    assert len(caught) == 1


def test_a_request_that_is_no_device_name_is_an_error_of_the_step_that_needs_the_node():
    session = heald.Session(two_nodes(second="what? no"))
    assert session.run("a", {"x": X}).tolist() == (2 * X).tolist()
    with pytest.raises(InvalidArgument, match="not a device name"):
        session.run("b", {"x": X})


def test_config_maps_requests_to_other_devices_or_drops_them():
    gpu = two_nodes(first="/device:GPU:1", second="/device:GPU:0")
    remapped = heald.Session(gpu, {"placement": {"remap": {"GPU:*": "EXAMPLE:0"}, "fallback": "allow"}})
    assert row(remapped, "a")["assigned"] == "EXAMPLE:0"
    assert row(remapped, "a")["reason"] == "requested, and remapped"
    one = heald.Session(gpu, {"placement": {"remap": {"GPU:1": "EXAMPLE:0"}, "fallback": "allow"}})
    assert (row(one, "a")["assigned"], row(one, "b")["assigned"]) == ("EXAMPLE:0", "CPU:0")
    cleared = heald.Session(gpu, {"placement": {"clear": True, "fallback": "error"}})
    assert row(cleared, "a")["assigned"] == "CPU:0"


def test_config_orders_device_types():
    session = heald.Session(two_nodes(), {"placement": {"order": ["EXAMPLE", "CPU"]}})
    assert row(session, "a")["assigned"] == "EXAMPLE:0"
    assert session.run("b", {"x": X}).tolist() == [-2, 4, -6]


def test_the_sessions_device_is_for_nodes_that_ask_for_none():
    session = heald.Session(two_nodes(second="CPU:0"), device="EXAMPLE:0")
    assert (row(session, "a")["assigned"], row(session, "b")["assigned"]) == ("EXAMPLE:0", "CPU:0")
    assert (row(session, "a")["reason"], row(session, "b")["reason"]) == ("the session's device", "requested")
    tested_graph = graph(placeholder("x", (3,)), node("r", "Rsqrt", "x"))
    with pytest.raises(InvalidArgument, match="the session asks for EXAMPLE:0, which cannot serve it: no kernel for R"):
        heald.Session(tested_graph, {"placement": {"fallback": "error"}}, device="EXAMPLE:0").run("r", {"x": X})


def test_a_kernel_that_declines_at_bind_leaves_its_node_to_another_device_with_its_reason():
    nodes = [placeholder("x", (2, 3)), placeholder("y", (3,)), node("a", "AddV2", "x", "y", device="EXAMPLE:0"),
             node("m", "Mul", "a", "a", device="EXAMPLE:0")]
    session = heald.Session(graph(*nodes))
    assert row(session, "a")["assigned"] == "EXAMPLE:0"
    x = np.ones((2, 3), np.float32)
    with pytest.warns(HealdWarning, match="broadcasting"):
        assert np.array_equal(session.run("m", {"x": x, "y": X}), (x + X) ** 2)
    assert (row(session, "a")["assigned"], row(session, "m")["assigned"]) == ("CPU:0", "EXAMPLE:0")
    assert "broadcasting" in row(session, "a")["refused"]


def test_a_missing_kernel_is_an_error_that_lists_what_there_is():
    session = heald.Session(graph(const("c", [1], np.int32), node("s", "Sqrt", "c")))
    with pytest.raises(InvalidArgument):
        session.run("s")  # the types of the edge differ
    bad = heald.Session(graph(placeholder("c", (1,), dtypes.string), node("s", "Shape", "c", T=dtypes.string),
                              node("t", "RealDiv", "i", "i", T=dtypes.int32), const("i", [1], np.int32)))
    with pytest.raises(Unimplemented, match=r"RealDiv with types int32.*registered: .*CPU cpu.RealDiv") as caught:
        bad.run("t")
    assert (caught.value.node, caught.value.op) == ("t", "RealDiv")


def test_an_unknown_device_in_the_api_is_an_error_with_the_devices():
    with pytest.raises(NotFound, match="TPU"):
        heald.runtime.service.runtime.runtime().host.open("TPU:0")


def test_a_device_whose_plugin_failed_is_refused_with_that_reason(monkeypatch):
    runtime = heald.runtime.service.runtime.Runtime(load_config({"placement": {"fallback": "error"}}))
    monkeypatch.setitem(runtime.plugins.registries.missing_plugins, "npu", "failed: libnpu.so.1 is missing")
    with pytest.raises(InvalidArgument, match=r"NPU:0.*plugin npu is failed: .*libnpu\.so\.1 is missing"):
        heald.Session(two_nodes(first="NPU:0"), runtime).run("a", {"x": X})


def test_a_plugin_that_config_loads_and_that_cannot_be_used_is_an_error(tmp_path):
    path = tmp_path / "npu.py"
    path.write_text("raise ImportError('libnpu.so.1 is missing')")
    with pytest.raises(PluginError, match=r"plugin npu is failed: .*libnpu\.so\.1 is missing"):
        heald.Session(two_nodes(), {"plugins": {"load": [str(path)]}})


def test_why_a_device_type_is_not_there_is_told_once(tmp_path):
    path = tmp_path / "absent.py"
    path.write_text("""
from heald.api import errors, hookimpl
HEALD_API = (1, 0)

def broken(config):
    raise errors.Unavailable("nothing is plugged in")

@hookimpl
def heald_devices(registry):
    registry.device(type="ABSENT", scan=broken, kernels=lambda kernels: None)
""")
    nodes = graph(const("i", [1], np.int32), node("d", "RealDiv", "i", "i", device="ABSENT:0", T=dtypes.int32))
    with pytest.raises(Unimplemented, match="ABSENT:0: unavailable: nothing is plugged in") as caught:
        heald.Session(nodes, {"plugins": {"load": [str(path)]}}).run("d")
    assert str(caught.value).count("plugged in") == 1


def test_a_program_on_the_cpu_opens_no_other_device(tmp_path):
    from heald.runtime.service.runtime import Runtime, load_config

    runtime = Runtime(load_config({}))
    session = heald.Session(two_nodes(first="CPU:0", second="CPU:0"))
    session.run("b", {"x": X})
    assert runtime.host.devices_in_use() == []


def test_an_array_on_its_way_to_a_device_is_not_overwritten_before_the_device_has_read_it():
    """The example device reads when it is waited for; b crosses back only after c and d have run."""
    session = heald.Session(graph(
        placeholder("x", (3,)), node("a", "Neg", "x"), node("b", "Neg", "a", device="EXAMPLE:0"),
        node("c", "Square", "x"), node("d", "Neg", "c"), node("e", "AddV2", "d", "b"),
    ))
    kernels = session.prepare("e", ["x"]).program.functions["main"].kernels
    order = [call.node for call in kernels if call.pack != "heald"]
    assert order == ["a", "b", "c", "d", "e"]
    assert np.array_equal(session.run("e", {"x": X}), X - X * X)


def test_a_program_that_is_lowered_anew_takes_no_values_of_the_one_before_it():
    """With one row y is the device's; with two its kernel declines and the registers are numbered anew."""
    nodes = [placeholder("x", (None, 2))]
    for i in range(2):
        nodes += [const(f"c{i}", [[i, i]]), node(f"y{i}", "AddV2", "x", f"c{i}", device="EXAMPLE:0")]
    for i in range(4):
        nodes += [const(f"d{i}", [10 + i]), node(f"w{i}", "Neg", f"d{i}", device="EXAMPLE:0")]
    session = heald.Session(graph(*nodes), {"placement": {"fallback": "allow"}})
    step = session.make_callable(["y0", "y1", "w0", "w1", "w2", "w3"], ["x"])
    for rows in (1, 2, 1, 3):
        y0, y1, *w = step(np.ones((rows, 2), np.float32))
        assert (y0.tolist(), y1.tolist()) == ([[1, 1]] * rows, [[2, 2]] * rows)
        assert [v.tolist() for v in w] == [[-10], [-11], [-12], [-13]]


def test_a_session_that_is_dropped_frees_its_buffers_and_then_closes_its_devices(tmp_path):
    path = tmp_path / "lifelog.py"
    path.write_text("""
from heald.api import hookimpl
from heald_example_device import device, plugin
HEALD_API = (1, 0)
log = []

class Logged(device.Example):
    def free(self, buffer):
        log.append("free")
        super().free(buffer)
    def close(self):
        log.append("close")
        super().close()

def scan(config):
    yield Logged(0, 1 << 20)

@hookimpl
def heald_devices(registry):
    registry.device(type="EXAMPLE", scan=scan, kernels="heald_example_device.kernels:register_kernels")
""")
    import gc
    import sys
    import weakref

    nodes = graph(placeholder("x", (3,)), const("c", [1, 2, 3]), node("a", "AddV2", "x", "c", device="EXAMPLE:0"))
    session = heald.Session(nodes, {"plugins": {"load": [str(path)], "block": ["example_device"]}})
    step = session.make_callable("a", ["x"])
    assert step(X).tolist() == [2, 0, 6]
    reference = weakref.ref(session)
    del session
    assert step(X).tolist() == [2, 0, 6]  # the callable keeps its constants
    del step
    gc.collect()
    assert reference() is None
    log = sys.modules["lifelog"].log
    assert log[-1] == "close"
    assert log.count("close") == 1


def test_a_device_that_is_no_accelerator_comes_last_unless_config_orders_it(tmp_path):
    path = tmp_path / "mixed.py"
    path.write_text("""
from heald.api import errors, hookimpl
from heald_example_device import device
HEALD_API = (1, 0)

def scan(config):
    for index, accelerator in enumerate((True, False)):
        found = device.Example(index, 1 << 20)
        found.type = "MIXED"
        found.attributes["accelerator"] = accelerator
        yield found

def broken(config):
    raise errors.Unavailable("nothing is plugged in")

def register_kernels(kernels):
    from heald_example_device.kernels import register_kernels
    register_kernels(kernels)

@hookimpl
def heald_devices(registry):
    registry.device(type="MIXED", scan=scan, kernels=register_kernels, priority=40)
    registry.device(type="ABSENT", scan=broken, kernels=register_kernels, priority=50)
""")

    def device_and_refusals(**placement):
        session = heald.Session(two_nodes(), {"plugins": {"load": [str(path)]}, "placement": placement})
        return row(session, "a")["assigned"], row(session, "a")["refused"]

    choices = [c.short for c in heald.Session(two_nodes(), {"plugins": {"load": [str(path)]}}).host.choices()]
    places = {name: choices.index(name) for name in ("MIXED:0", "CPU:*", "MIXED:1", "ABSENT:*")}
    assert places["MIXED:0"] < places["CPU:*"] < min(places["MIXED:1"], places["ABSENT:*"])
    assert len(places) == len(choices)
    assert device_and_refusals() == ("MIXED:0", "")
    assert device_and_refusals(order=("CPU",)) == ("CPU:0", "")
    assert device_and_refusals(remap={"MIXED:*": "CPU:0"}) == ("MIXED:0", "")
    assert device_and_refusals(order=("ABSENT", "MIXED"))[1] == "ABSENT:*: unavailable: nothing is plugged in"


ON_REQUEST = """
from heald.api import OpSpec, errors, hookimpl
HEALD_API = (1, 0)
calls = []

@hookimpl
def heald_ops(registry):
    registry.add(OpSpec("Test>Lonely", inputs=["x: T"], outputs=["y: T"], attrs=["T: {float}"]))

def scan(config):
    calls.append("scan")
    raise errors.Unavailable("nothing is plugged in")

def register_kernels(kernels):
    calls.append("kernels")

@hookimpl
def heald_devices(registry):
    registry.device(type="LATER", scan=scan, kernels=register_kernels, priority=2)
"""


@pytest.fixture
def on_request(tmp_path, monkeypatch):
    """The config of a plugin whose device type serves on request only, and the calls of its functions so far."""
    monkeypatch.delitem(sys.modules, "on_request_test", raising=False)
    (tmp_path / "on_request_test.py").write_text(ON_REQUEST)
    config = {"plugins": {"load": [str(tmp_path / "on_request_test.py")]}, "placement": {"fallback": "allow"}}
    yield config, lambda: sys.modules["on_request_test"].calls
    sys.modules.pop("on_request_test", None)


def test_a_message_names_device_types_below_the_hosts_and_neither_scans_them_nor_imports_their_kernels(on_request):
    config, calls = on_request
    session = heald.Session(graph(placeholder("x", (3,)), node("y", "Test>Lonely", "x")), config)
    with pytest.raises(Unimplemented) as caught:
        session.run("y", {"x": X})
    types = [t for t in session.host.preference() if t in ("EXAMPLE", "LATER", "SIM")]
    assert ", ".join(types) in caught.value.hint
    assert session.host.devices_in_use()[0].name == "CPU:0"
    with pytest.raises(NotFound, match="CPU:7"):
        session.host.open("CPU:7")
    assert calls() == []


@pytest.mark.parametrize("how", ["order", "session", "node", "open"])
def test_a_device_type_below_the_hosts_is_scanned_on_request(on_request, how):
    config, calls = on_request
    order = {"order": ["LATER"]} if how == "order" else {}
    nodes = graph(placeholder("x", (3,)), node("y", "Neg", "x", device="LATER:0" if how == "node" else ""))
    config |= {"placement": config["placement"] | order}
    session = heald.Session(nodes, config)
    assert session.run("y", {"x": X}).tolist() == (-X).tolist()
    if how == "session":
        with pytest.raises(Unavailable, match="nothing is plugged in"):
            heald.Session(nodes, config, device="LATER:0")
    if how == "open":
        with pytest.raises(Unavailable, match="nothing is plugged in"):
            session.host.open("LATER:0")
    assert "scan" in calls()


def test_nodes_alike_are_refused_each_by_itself():
    tested_graph = graph(placeholder("x", (3,), dtypes.int32), node("a", "Relu", "x", T=dtypes.int32),
                         node("b", "Relu", "x", T=dtypes.int32))
    read = heald.graphdef.loads(heald.graphdef.dumps(tested_graph))
    placement = heald.Session(read).placement()
    assert read["a"].attrs is read["b"].attrs
    assert placement["a"].kernel is placement["b"].kernel
    assert placement["a"].refused == placement["b"].refused
    assert placement["a"].refused is not placement["b"].refused


def test_nodes_alike_that_request_a_device_all_stay_there():
    """The host alone reads these integers, so it would compute them if they made no request."""
    nodes = [node(name, "Neg", "x", T=dtypes.int32, device="SIM:0") for name in ("a", "b")]
    tested_graph = graph(placeholder("x", (3,), dtypes.int32), *nodes,
                         node("sum", "AddV2", "a", "b", T=dtypes.int32, device="CPU:0"))
    read = heald.graphdef.loads(heald.graphdef.dumps(tested_graph))
    placement = heald.Session(read, {"plugin": {"sim": {"devices": 1}}}).placement()
    assert read["a"].attrs is read["b"].attrs
    assert [placement[name].device for name in ("a", "b")] == ["SIM:0"] * 2


def test_nodes_alike_without_a_request_are_all_free_to_leave_the_sessions_device():
    nodes = [node(name, "Neg", "x", T=dtypes.int32) for name in ("a", "b")]
    tested_graph = graph(placeholder("x", (3,), dtypes.int32), *nodes,
                         node("sum", "AddV2", "a", "b", T=dtypes.int32, device="CPU:0"))
    read = heald.graphdef.loads(heald.graphdef.dumps(tested_graph))
    placement = heald.Session(read, {"plugin": {"sim": {"devices": 1}}}, device="SIM:0").placement()
    assert read["a"].attrs is read["b"].attrs
    assert [placement[name].reason for name in ("a", "b")] == ["only the host reads it"] * 2


def test_the_message_of_a_missing_kernel_scans_no_device_that_serves_on_request():
    """A scan of OpenCL's platforms took 9 to 13 s before the message."""
    nodes = [placeholder("x", (2, 2), dtypes.float16), Node("y", "Svd", ("x",), attrs={"T": dtypes.float16})]
    with heald.Session(graph(*nodes), {"placement": {"fallback": "warn"}}) as session:
        with pytest.raises(Unimplemented, match="no kernel for op Svd"):
            session.run("y", {"x": np.eye(2, dtype=np.float16)})
        assert [kind for kind in session.host.on_request() if session.host.is_scanned(kind)] == []
