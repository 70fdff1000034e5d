"""Mistakes in config and environment, and outputs that cannot run, are told on stderr in one line each."""

from __future__ import annotations

import json

import pytest
from builders.graphs import node, placeholder

MISTAKES = {  # environment variable and value: the text of the line
    ("HEALD_PLUGINS__BLOCK", "example_devcie"): "plugins.block (environment HEALD_PLUGINS__BLOCK) names the plugin "
    "'example_devcie', which is not there; did you mean example_device?",
    ("HEALD_PLACEMENT__ORDER", "cpu"): "names the device type 'cpu', which is not there; did you mean CPU?",
    ("HEALD_PLACEMENT__REMAP__GPU:*", "CPUU:0"): "names the device type 'CPUU', which is not there; did you mean CPU?",
    ("HEALD_PLACEMENT__PROVIDER__EXAMPLE", "exmple"): "names the plugin 'exmple', which is not there; did you mean",
    ("HEALD_PASSES__DISABLE", "batchnorm"): "names the pass 'batchnorm', which is not there; did you mean batch-norm?",
    ("HEALD_KERNELS__MatMull", "cpu"): "names the op 'MatMull', which is not there; did you mean MatMul?",
    ("HEALD_KERNELS__MatMul", "cppu"): "kernels.MatMul = 'cppu' (environment HEALD_KERNELS__MatMul) is for a plugin",
    ("HEALD_WORK_QUEUE__NAME", "multi_thraeded"): "names the work queue 'multi_thraeded', which is not there; did you",
    ("HEALD_WORK_QUEUES__own__NAME", "x"): "names the work queue 'x', which is not there; known: ",
    ("HEALD_PLUGIN__SIM__DEVISES", "2"): "plugin sim is failed: environment HEALD_PLUGIN__SIM__DEVISES: [plugin.sim]",
    ("HEALD_EAGER__HANDLER", "loging"): "names the op handler 'loging', which is not there; did you mean logging?",
    ("HEALD_TORCH_DEBUG", "1"): "environment variable HEALD_TORCH_DEBUG is no setting of heald; did you mean "
    "HEALD_DEBUG__KEY? names that begin with HEALD_EXT_ are free for plugins",
    ("HEALD_CONFG", "x"): "environment variable HEALD_CONFG is no setting of heald; did you mean HEALD_CONFIG?",
}


@pytest.fixture
def model(saved):
    return saved(placeholder("x", ()), node("y", "Neg", "x"))


@pytest.mark.parametrize(("variable", "value"), MISTAKES)
def test_a_name_in_config_that_nothing_has_is_one_line(command, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    done = command("devices", "CPU:0")
    (line,) = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert MISTAKES[variable, value] in line
    assert done.status == 0


def test_handlers_of_devices_are_no_unknown_names(command, monkeypatch):
    monkeypatch.setenv("HEALD_EAGER__HANDLER", '["logging", "CPU:0"]')
    assert command("devices", "CPU:0").err == ""


def test_variables_with_the_free_prefix_are_plugins_own(command, model, monkeypatch):
    monkeypatch.setenv("HEALD_EXT_TORCH_DEBUG", "1")
    assert command("explain", model).err == ""


def test_options_of_a_plugin_that_the_command_line_names_are_known(command, model, monkeypatch, tmp_path):
    (tmp_path / "late_plugin.py").write_text(
        "from dataclasses import dataclass\nHEALD_API = (1, 0)\n@dataclass(frozen=True)\n"
        "class Config:\n    size: int = 1\n")
    monkeypatch.setenv("HEALD_PLUGIN__LATE_PLUGIN__SIZE", "3")
    assert command("devices", "CPU:0", "--plugin", tmp_path / "late_plugin.py").err == ""


def test_options_of_plugins_are_shown_with_their_defaults(command, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGIN__SIM__DEVICES", "2")
    rows = {row["key"]: (row["value"], row["origin"]) for row in json.loads(command("config", "show", "--json").out)}
    assert rows["plugin.cpu.count"] == (1, "default")
    assert rows["plugin.sim.devices"] == ("2", "environment HEALD_PLUGIN__SIM__DEVICES")


def test_the_sessions_device_follows_remap(command, model, monkeypatch):
    monkeypatch.setenv("HEALD_PLACEMENT__REMAP__GPU:*", "EXAMPLE:0")
    done = command("explain", model, "--device", "GPU:0", "--json")
    assert done.err == ""
    assert "EXAMPLE:0" in done.out


def test_an_output_of_an_unknown_op_is_named_when_it_is_left_out(command, saved):
    model = saved(placeholder("x", ()), node("y", "Neg", "x"), node("z", "Nagate", "x"))
    done = command("run", model, "--input", "x=1.0")
    assert done.status == 0
    assert "warning: output 'z' is left out: " in done.err
    assert "Nagate" in done.err


def test_a_plugin_that_the_command_line_names_has_a_traceback(command, tmp_path):
    (tmp_path / "raises_early.py").write_text("1 / 0\n")
    done = command("plugins", "--plugin", tmp_path / "raises_early.py", "--traceback", "raises_early")
    assert done.status == 1
    assert "ZeroDivisionError" in done.out
    assert 'raises_early.py", line 1' in done.out


def test_kernels_that_cannot_be_imported_have_a_traceback_and_a_line(command, tmp_path):
    (tmp_path / "late_kernels.py").write_text(
        "from heald.api import hookimpl\nHEALD_API = (1, 0)\n@hookimpl\ndef heald_kernels(registry):\n"
        "    registry.kernels('CPU', register)\ndef register(kernels):\n"
        "    kernels.kernel('Neg', dtypes={'T': 'flaot32'})(print)\n")
    done = command("plugins", "--plugin", tmp_path / "late_kernels.py", "--traceback", "late_kernels")
    assert 'late_kernels.py", line 7' in done.out
    assert "warning: plugin late_kernels: registering its kernels for CPU raised" in done.err
    assert "flaot32" in done.err


def test_a_device_without_kernels_is_told_when_it_is_checked(command, tmp_path):
    (tmp_path / "mute_plugin.py").write_text(
        "from heald.api import hookimpl\nfrom heald_example_device.device import Example\nHEALD_API = (1, 0)\n"
        "class Mute(Example):\n    type = 'MUTE'\n@hookimpl\ndef heald_devices(registry):\n"
        "    registry.device(type='MUTE', scan=lambda config: [Mute(0, 1 << 20)])\n")
    done = command("devices", "MUTE:0", "--check", "--plugin", tmp_path / "mute_plugin.py", "--json")
    (row,) = json.loads(done.out)
    assert (row["check"], row["reason"]) == ("PASS", "it only copies: no plugin has kernels for MUTE")
    assert row["remedy"] == "its plugin names them: registry.device(kernels=...)"
    (row,) = json.loads(command("devices", "EXAMPLE:0", "--check", "--json").out)
    assert row["reason"] == ""


def test_a_device_whose_plugin_registers_no_kernel_is_told_so(command, tmp_path):
    """The remedy of a device without a function for kernels would be wrong here."""
    (tmp_path / "empty_plugin.py").write_text(
        "from heald.api import hookimpl\nfrom heald_example_device.device import Example\nHEALD_API = (1, 0)\n"
        "class Empty(Example):\n    type = 'EMPTY'\n@hookimpl\ndef heald_devices(registry):\n"
        "    registry.device(type='EMPTY', scan=lambda config: [Empty(0, 1 << 20)], kernels=lambda kernels: None)\n")
    done = command("devices", "EMPTY:0", "--check", "--plugin", tmp_path / "empty_plugin.py", "--json")
    (row,) = json.loads(done.out)
    assert (row["check"], row["reason"]) == (
        "PASS", "it only copies: plugin empty_plugin names kernels for EMPTY, and registered none")
    assert row["remedy"] == "the function that it names calls kernels.kernel(OP, ...)(bind) for each op"


@pytest.mark.parametrize(("op", "hint"), [
    ("Relu7", "did you mean Relu or Relu6"), ("MatMull", "did you mean MatMul"),
    ("Qwxvutjkq", "a plugin may bring it")])
def test_a_kernel_for_an_op_that_does_not_exist_is_told_when_its_device_is_checked(command, tmp_path, op, hint):
    name = f"misnaming_{len(op)}"  # a module is imported once a process
    (tmp_path / f"{name}.py").write_text(
        "from heald.api import hookimpl\nfrom heald_example_device.device import Example\nHEALD_API = (1, 0)\n"
        "class Typo(Example):\n    type = 'TYPO'\ndef register(kernels):\n"
        f"    kernels.kernel({op!r})(lambda bind: print)\n@hookimpl\ndef heald_devices(registry):\n"
        "    registry.device(type='TYPO', scan=lambda config: [Typo(0, 1 << 20)], kernels=register)\n")
    done = command("devices", "TYPO:0", "--check", "--plugin", tmp_path / f"{name}.py", "--json")
    (row,) = json.loads(done.out)
    assert (row["check"], row["reason"]) == (
        "PASS", f"it passes, but has kernels for ops that do not exist: '{op}' (plugin {name})")
    assert hint in row["remedy"]


@pytest.mark.parametrize(("module", "named"), [
    ("absent_package.plugin", "absent_package"), ("absent.inner.plugin", "absent.inner"),
    ("absent_module", "absent_module")])
def test_a_module_that_config_names_and_that_is_absent_is_named_by_its_package(command, monkeypatch, module, named):
    monkeypatch.setenv("HEALD_PLUGINS__LOAD", module)
    done = command("devices", "CPU:0")
    assert done.status == 1
    assert f"plugin {named} is failed: module {module} does not exist" in done.err
    assert "install the folder of its pyproject.toml with pip, or set PYTHONPATH" in done.err


def test_each_failed_plugin_that_config_loads_is_named(command, tmp_path, monkeypatch):
    files = [tmp_path / f"{name}.py" for name in ("fails_first", "fails_second")]
    for file in files:
        file.write_text("1 / 0\n")
    monkeypatch.setenv("HEALD_PLUGINS__LOAD", json.dumps(list(map(str, files))))
    done = command("devices", "CPU:0")
    assert done.status == 1
    assert "plugin fails_first is failed" in done.err
    assert "plugin fails_second is failed" in done.err


LATE = """
from heald.api import hookimpl
HEALD_API = (1, 0)
@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)
def register(kernels):
    {body}
"""


@pytest.mark.parametrize("body", [
    "kernels.kernel('Neg', dtypes={'T': 'flaot32'})(print)",
    "kernels.later(['Neg', 'AddV2'], lambda kernels: kernels.kernel('Neg', dtypes={'T': 'flaot32'})(print))",
])
@pytest.mark.parametrize("source", ["--plugin", "load"])
def test_kernels_that_fail_are_an_error_where_the_plugin_was_named(command, model, tmp_path, monkeypatch, source, body):
    path = tmp_path / f"late_{source.strip('-')}_{len(body)}.py"
    path.write_text(LATE.format(body=body))
    if source == "load":
        monkeypatch.setenv("HEALD_PLUGINS__LOAD", json.dumps([str(path)]))
    done = command("run", model, "--input", "x=1.0", *(["--plugin", path] if source == "--plugin" else []))
    assert done.status == 1
    assert done.err.startswith(f"error: plugin {path.stem}: registering its kernels for CPU raised InvalidArgument: ")
    assert "did you mean float32?" in done.err
