"""heald devices and heald plugins."""

import json
import sys

import pytest
from heald.runtime.host import check_limit
from heald.runtime.support.install import install_hint

BROKEN = """
from heald.api import Unavailable, hookimpl

HEALD_API = (1, 0)

@hookimpl
def heald_devices(registry):
    registry.device(type="BROKEN", scan=scan)

def scan(config):
    raise Unavailable("no driver", hint="install one")
"""
FAILING = "HEALD_API = (1, 0)\n1 / 0\n"


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Writes a one-file plugin, which no other test's has the name of."""
    import sys

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return str(tmp_path / f"{name}.py")

    return write


def by_name(done, key="name"):
    return {row[key]: row for row in json.loads(done.out)}


def test_devices_are_listed_without_opening_them(command):
    done = command("devices", "--json")
    assert done.status == 0
    assert by_name(done)["EXAMPLE:0"]["status"] == "found"
    assert by_name(done)["EXAMPLE:0"]["attributes"]["memory"] == 1 << 30
    shown = ["EXAMPLE:0", "example_device", "found", "1.07", "GB", "serves", "on", "request", "only,", "model"]
    assert [*shown, "make-believe"] in command("devices").words


ROLES = """
from heald.api import hookimpl
from heald_example_device.device import Example

HEALD_API = (1, 0)

class Roles(Example):
    type = "ROLES"

    def __init__(self, *args):
        super().__init__(*args)
        self.attributes = {**self.attributes, "accelerator": IS_ACCELERATOR}

@hookimpl
def heald_devices(registry):
    registry.device(type="ROLES", scan=lambda config: [Roles(0, 1 << 20)], priority=PRIORITY)
"""


@pytest.mark.parametrize("priority", [5, 50])
@pytest.mark.parametrize("is_accelerator", [False, True])
def test_a_list_tells_whether_nodes_come_to_a_device_without_a_request(command, plugin, priority, is_accelerator):
    text = ROLES.replace("IS_ACCELERATOR", str(is_accelerator)).replace("PRIORITY", str(priority))
    file = plugin(f"roles_{priority}_{is_accelerator}_test".lower(), text)
    row = next(" ".join(row) for row in command("devices", "--plugin", file).words if row[:1] == ["ROLES:0"])
    assert ("serves on request only" in row) == (priority < 10)
    assert ("no accelerator" in row) == (not is_accelerator)


def test_figures_of_cost_are_listed(command, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGIN__SIM__FLOPS", "2e12")
    done = command("devices", "SIM:0", "--json")
    assert by_name(done)["SIM:0"]["attributes"]["cost"]["flops"] == 2e12
    assert "cost launch 6e-06; flops 2e+12;" in command("devices", "SIM:0").out


def test_checking_opens_every_device(command, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGINS__ALLOW", "cpu, example, tf_ops")  # device types with a driver everywhere
    done = command("devices", "--check", "--json")
    assert done.status == 0
    assert {(row["check"], row["status"]) for row in json.loads(done.out)} == {("PASS", "ok")}
    assert all(row["ms"] >= 0 for row in json.loads(done.out))


def test_a_device_that_is_unavailable_fails_a_check_only(command, plugin):
    arguments = ("devices", "--plugin", plugin("broken_device_test", BROKEN))
    done = command(*arguments)
    assert done.status == 0
    assert ["BROKEN:*", "broken_device_test", "unavailable", "no", "driver", "install", "one"] in done.words
    done = command(*arguments, "--check")
    assert done.status == 1
    assert [line[:2] for line in done.words if "BROKEN:*" in line] == [["BROKEN:*", "FAIL"]]


LYING = """
from heald.api import hookimpl
from heald_example_device.device import Example

HEALD_API = (1, 0)

@hookimpl
def heald_devices(registry):
    registry.device(type="LYING", scan=lambda config: [Lying(0, 1 << 20)],
                    kernels="heald_example_device.kernels:register_kernels")

class Lying(Example):
    type = "LYING"

    def synchronize(self, event):
        queue = self.native.streams[event.stream]
        if len(queue) < 2 or "WORK" not in queue[-2].__qualname__:
            super().synchronize(event)
"""


@pytest.mark.parametrize(("method", "work"), [("write", "a copy in"), ("elementwise", "a kernel"),
                                              ("read", "a copy out")])
def test_a_check_names_a_device_that_does_not_wait(command, plugin, method, work):
    text = LYING.replace("WORK", method)
    done = command("devices", "LYING:0", "--check", "--json", "--plugin", plugin(f"lying_{method}_test", text))
    assert done.status == 1
    row = by_name(done)["LYING:0"]
    assert (row["check"], row["status"]) == ("FAIL", "unavailable")
    assert row["reason"].startswith("synchronize of ")
    assert row["reason"].endswith(f"(plugin lying_{method}_test) returned before {work} had ended")


WAITS_WRONGLY = """
from heald.api import errors, hookimpl
from heald_example_device.device import Example

HEALD_API = (1, 0)

class Waits(Example):
    type = "WAITS"
    waits = 0

    def synchronize(self, event):
        super().synchronize(event)
        self.waits += 1
        if self.waits == FAILING:
            raise errors.Unavailable(f"wait {self.waits} failed")

@hookimpl
def heald_devices(registry):
    registry.device(type="WAITS", scan=lambda config: [Waits(0, 1 << 20)],
                    kernels="heald_example_device.kernels:register_kernels")
"""


@pytest.mark.parametrize(("wait", "work"), [(1, "copies in"), (2, "a kernel"), (3, "a copy out")])
def test_a_device_that_fails_to_wait_behind_any_work_fails_its_check(command, plugin, wait, work):
    text = WAITS_WRONGLY.replace("FAILING", str(wait))
    done = command("devices", "WAITS:0", "--check", "--json", "--plugin", plugin(f"waits_{wait}_test", text))
    (row,) = json.loads(done.out)
    assert (done.status, row["check"]) == (1, "FAIL"), work
    assert f"wait {wait} failed" in row["reason"]


HANGS = """
from threading import Event
from heald.api import hookimpl
from heald_example_device.device import Example

HEALD_API = (1, 0)

@hookimpl
def heald_devices(registry):
    registry.device(type="HANGS", scan=lambda config: [Hangs(0, 1 << 20), Waits(1, 1 << 20)],
                    kernels="heald_example_device.kernels:register_kernels")

class Waits(Example):
    type = "HANGS"

class Hangs(Waits):
    def open(self):
        super().open()
        if "WORK" == "open":
            Event().wait()

    def copy_in(self, host, buffer, stream):
        super().copy_in(host, buffer, stream)
        if "WORK" == "copy_in":
            Event().wait()

    def synchronize(self, event):
        queue = self.native.streams[event.stream]
        if len(queue) > 1 and "WORK" in queue[-2].__qualname__:
            Event().wait()
        super().synchronize(event)

    def close(self):
        Event().wait()
"""


@pytest.mark.parametrize(("hanging", "work"), [
    ("write", "a copy in"), ("copy_in", "a copy in"), ("elementwise", "a kernel"), ("read", "a copy out"),
    ("open", "its opening")])
def test_a_check_of_a_device_without_an_answer_names_its_work_and_the_others_are_checked(
    command, plugin, own_runtime, monkeypatch, hanging, work
):
    monkeypatch.setattr(check_limit, "CHECK_SECONDS", 1.5)
    name = f"hangs_{hanging}_test"
    text = HANGS.replace("WORK", hanging)
    done = command("devices", "HANGS:0", "HANGS:1", "--check", "--json", "--plugin", plugin(name, text))
    assert done.status == 1
    row, other = by_name(done)["HANGS:0"], by_name(done)["HANGS:1"]
    assert (row["check"], row["status"], other["check"]) == ("FAIL", "unavailable", "PASS")
    assert row["reason"] == f"no answer of device HANGS:0 (plugin {name}) within 1.5 s: it waited behind {work}"
    assert row["ms"] < 20_000


BINDS_WRONGLY = """
from heald.api import hookimpl
from heald_example_device.device import Example

HEALD_API = (1, 0)

class Binds(Example):
    type = "BINDS"

def register(kernels):
    kernels.kernel("AddV2")(lambda bind: RETURNED)

@hookimpl
def heald_devices(registry):
    registry.device(type="BINDS", scan=lambda config: [Binds(0, 1 << 20)], kernels=register)
"""


@pytest.mark.parametrize(("returned", "kind"), [("object()", "object"), ("7", "int"), ("'run'", "str")])
def test_a_check_names_a_kernel_whose_bind_returns_no_kernel(command, plugin, returned, kind):
    name = f"binds_{kind}_test"
    text = BINDS_WRONGLY.replace("RETURNED", returned).replace("object()", "type('object', (), {})()")
    done = command("devices", "BINDS:0", "--check", "--json", "--plugin", plugin(name, text))
    assert done.status == 1
    assert (f"bind of {name}'s kernel for AddV2 returned {kind}; expected a function, None, or an object with run and "
            "attach") in done.out + done.err


CRASHING = """
import os
import signal
from heald.api import hookimpl

HEALD_API = (1, 0)

@hookimpl
def heald_devices(registry):
    registry.device(type="CRASHING", scan=lambda config: [Crashing()])

class Crashing:
    type, uid, attributes = "CRASHING", "crashing", {}
    close = allocate = free = copy_in = copy_out = record = synchronize = lambda self, *_: None

    def open(self):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to die of")
def test_a_driver_that_takes_its_process_down_is_a_failed_check_in_isolation(command, plugin):
    done = command("devices", "CPU:0", "CRASHING:0", "--isolate", "--json", "--plugin",
                   plugin("crashing_device_test", CRASHING))
    assert done.status == 1
    rows = by_name(done)
    assert (rows["CPU:0"]["check"], rows["CPU:0"]["status"]) == ("PASS", "ok")
    assert (rows["CRASHING:0"]["check"], rows["CRASHING:0"]["status"]) == ("FAIL", "unavailable")
    assert rows["CRASHING:0"]["reason"] == "the process that checked it ended with SIGKILL"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to die of")
@pytest.mark.parametrize("check", [False, True])
def test_a_list_of_all_devices_outlives_a_driver_that_takes_its_process_down(command, plugin, monkeypatch, check):
    monkeypatch.setenv("HEALD_PLUGINS__ALLOW", "cpu, tf_ops")
    text = CRASHING.replace("lambda config: [Crashing()]", "lambda config: os.abort()")
    done = command("devices", *(["--check"] if check else []), "--json", "--plugin", plugin("aborting_list_test", text))
    assert done.status == int(check)
    rows = by_name(done)
    assert rows["CPU:0"].get("check") == ("PASS" if check else None)
    assert rows["CRASHING:*"].get("check") == ("FAIL" if check else None)
    assert rows["CRASHING:*"]["status"] == "unavailable"
    assert rows["CRASHING:*"]["reason"] == "the process that checked it ended with SIGABRT"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to die of")
def test_a_scan_that_takes_its_process_down_is_a_failed_check_in_isolation(command, plugin):
    text = CRASHING.replace("lambda config: [Crashing()]", "lambda config: os.abort()")
    done = command("devices", "--isolate", "--json", "--plugin", plugin("aborting_scan_test", text))
    assert done.status == 1
    rows = by_name(done)
    assert (rows["CPU:0"]["check"], rows["CPU:0"]["status"]) == ("PASS", "ok")
    assert (rows["CRASHING:*"]["check"], rows["CRASHING:*"]["plugin"]) == ("FAIL", "aborting_scan_test")
    assert rows["CRASHING:*"]["reason"] == "the process that checked it ended with SIGABRT"
    assert rows["CRASHING:*"]["remedy"] == "look at its driver, or set [plugins] block = ['aborting_scan_test']"


def test_only_the_devices_that_are_named_are_listed(command):
    assert list(by_name(command("devices", "EXAMPLE:0", "--json"))) == ["EXAMPLE:0"]
    done = command("devices", "EXAMPLE:7")
    assert (done.status, done.err) == (1, "error: there is no device EXAMPLE:7\n"
                                          "  hint: did you mean EXAMPLE:0?\n")


def test_plugins_are_listed_with_what_they_bring(command):
    row = by_name(command("plugins", "--json"), "id")["cpu"]
    assert (row["status"], row["distribution"], row["registered"]["device types"]) == ("ok", "heald-cpu", ["CPU"])
    assert ["cpu", "ok", "heald-cpu"] in [line[:3] for line in command("plugins").words]


WATCHING = """
from heald.api import hookimpl
HEALD_API = (1, 0)

@hookimpl(wrapper=True)
def heald_devices(registry):
    yield
"""


def test_the_plugins_of_each_hook_are_listed(command, plugin, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGINS__LOAD", plugin("watching_plugin_test", WATCHING))
    rows = [(row["hook"], row["plugin"], row["how"]) for row in json.loads(command("plugins", "--hooks", "--json").out)]
    assert ("heald_devices", "cpu", "implements") in rows
    assert ("heald_ops", "tf_ops", "implements") in rows
    assert ("heald_devices", "watching_plugin_test", "observes") in rows
    hooks = [hook for hook, _, _ in rows]
    assert hooks == sorted(hooks, key=hooks.index)
    assert ["heald_devices", "cpu", "heald-cpu", "implements", "ok"] in command("plugins", "--hooks").words


def test_a_plugin_that_failed_is_listed_and_its_traceback_told(command, plugin, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGINS__LOAD", plugin("failing_plugin_test", FAILING))
    done = command("plugins")
    assert done.status == 0
    assert ["failing_plugin_test", "failed"] in [line[:2] for line in done.words]
    done = command("plugins", "--traceback", "failing_plugin_test")
    assert done.status == 0
    assert "ZeroDivisionError: division by zero" in done.out


def test_a_plugin_that_works_has_no_traceback(command):
    assert command("plugins", "--traceback", "cpu") == (0, "plugin cpu is ok: it has no traceback\n", "")
    assert command("plugins", "--traceback", "cpux").err == (
        "error: no plugin is called 'cpux'\n  hint: did you mean cpu?\n")


def test_an_installation_without_plugins_is_told_the_way_to_devices(command, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGINS__ALLOW", "")
    done = command("devices")
    assert done.status == 0
    assert install_hint("heald-cpu") in done.out
