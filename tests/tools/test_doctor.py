"""heald doctor: the findings, their states and remedies."""

import json

import pytest
from heald_tools import doctor


@pytest.fixture
def other_commands(monkeypatch):
    """`other_commands(devices=rows, ...)`: what the commands in processes of their own say."""
    def answer(**outputs):
        known = {"config": [], "plugins": [{"id": "cpu", "status": "ok"}], "devices": []} | outputs
        monkeypatch.setattr(doctor, "output_of", lambda name, *_: known[name] if isinstance(
            known[name], tuple) else (known[name], ""))

    return answer


def findings(command, status):
    done = command("doctor", "--json")
    assert done.status == status
    return {(row["check"], row["detail"]): (row["state"], row["remedy"]) for row in json.loads(done.out)}


def test_a_sound_machine_has_no_fault(process):
    done = process("doctor")
    assert done.status == 0
    assert "0 faults" in done.out
    assert {line.split()[0] for line in done.out.splitlines()[2:] if line} >= {
        "python", "heald", "libraries", "processors", "memory", "config", "plugins", "devices"}


def test_faults_of_plugins_and_devices_come_with_their_remedies(command, other_commands):
    device = {"check": "FAIL", "remedy": "update it"}
    other_commands(
        devices=[device | {"name": "GPU:0", "status": "failed", "reason": "the driver is old"},
                 device | {"name": "GPU:*", "status": "unavailable", "reason": "no driver"}],
        plugins=[{"id": "cpu", "status": "ok"}, {"id": "mine", "status": "failed", "reason": "no API", "remedy": ""}])
    rows = findings(command, 1)
    assert rows["devices", "GPU:0: the driver is old"] == ("fault", "update it")
    assert rows["devices", "GPU:*: no driver"] == ("warning", "update it")
    assert rows["plugins", "mine is failed: no API"] == ("fault", "heald plugins --traceback mine")


def test_a_command_that_fails_is_a_fault_with_its_own_words(command, other_commands):
    other_commands(config=([], "error: heald.toml:3: no such key"))
    assert findings(command, 1)["config", "error: heald.toml:3: no such key"] == ("fault", "heald config show")


def test_distributions_of_two_versions_do_not_belong_together(command, other_commands, monkeypatch):
    import importlib.metadata

    class Installed:
        def __init__(self, name, version):
            self.name, self.version = name, version

    monkeypatch.setattr(importlib.metadata, "distributions", lambda: [
        Installed("heald-core", "0.2.0"), Installed("heald_cpu", "0.1.7"), Installed("heald-tools", "0.2.1")])
    other_commands()
    state, remedy = findings(command, 1)["heald", "heald-cpu 0.1.7"]
    assert state == "fault"
    assert "device_cpu" in remedy


@pytest.mark.parametrize(("file", "text", "check", "expected"), [
    ("/sys/fs/cgroup/cpu.max", "50000 100000", "processors", "a quota of 0.5"),
    ("/sys/fs/cgroup/memory.max", str(512 << 20), "memory", "a limit of "),
])
def test_limits_of_a_container_are_told(command, other_commands, monkeypatch, file, text, check, expected):
    read = doctor.read_text
    monkeypatch.setattr(doctor, "read_text", lambda path: text if path == file else read(path))
    other_commands()
    ((state, remedy),) = [value for (name, detail), value in findings(command, 0).items()
                          if name == check and expected in detail]
    assert state == "warning"
    assert remedy
