"""Wrappers of plugins around the hooks of others: they see each call, and change neither results nor errors."""

from __future__ import annotations

import sys
from types import ModuleType

import pluggy
import pytest
from heald.runtime.config.config import load_config
from heald.runtime.discovery import hook_observers
from heald.runtime.discovery.discovery import Plugins

HEAD = "from time import sleep\nfrom heald.api import OpSpec, hookimpl\nHEALD_API = (1, 0)\nseen = []\n"
WATCHING = """
@hookimpl(wrapper=True)
def heald_ops(registry, config):
    seen.append(("before", registry.plugin, registry.hook))
    try:
        result = yield
    except BaseException as error:
        seen.append(("raised", registry.plugin, type(error).__name__))
        {at_error}
    else:
        seen.append(("behind", registry.plugin, result))
    return "another result"
"""
OPS = '@hookimpl\ndef heald_ops(registry): registry.add(OpSpec("{op}", ["x: T"], ["y: T"], ["T: type"]))'
FAILING = "@hookimpl\ndef heald_ops(registry): raise ValueError('boom')"


@pytest.fixture
def load(monkeypatch):
    """Load plugins of these sources after those that are installed. Returns Plugins, and the modules."""
    def load_sources(**sources):
        modules = {}
        for name, source in sources.items():
            modules[name] = ModuleType(name)
            exec(HEAD + source, vars(modules[name]))  # noqa: S102
            monkeypatch.setitem(sys.modules, name, modules[name])
        monkeypatch.setenv("HEALD_PLUGINS__LOAD", ",".join(sources))
        plugins = Plugins(load_config())
        plugins.load()
        return plugins, modules

    return load_sources


def records(plugins):
    return {record.id: record for record in plugins.records()}


@pytest.mark.parametrize("at_error", ["raise", "pass"])
def test_a_wrapper_sees_each_call_and_changes_nothing(load, at_error):
    plugins, modules = load(t_early=OPS.format(op="Early>Op"), t_watch=WATCHING.format(at_error=at_error),
                            t_late=OPS.format(op="Late>Op"), t_fails=FAILING)
    seen = [row for row in modules["t_watch"].seen if row[1].startswith("t_")]
    assert seen == [
        ("before", "t_early", "heald_ops"), ("behind", "t_early", None),
        ("before", "t_late", "heald_ops"), ("behind", "t_late", None),
        ("before", "t_fails", "heald_ops"), ("raised", "t_fails", "PluginError")]
    assert ("before", "tf_ops", "heald_ops") in modules["t_watch"].seen  # installed plugins come first
    assert "Early>Op" in plugins.registries.ops
    assert "Late>Op" in plugins.registries.ops
    assert {name: record.status for name, record in records(plugins).items() if name.startswith("t_")} == {
        "t_early": "ok", "t_watch": "ok", "t_late": "ok", "t_fails": "failed"}
    assert records(plugins)["t_fails"].reason == "hook heald_ops raised ValueError: boom"
    assert records(plugins)["t_watch"].wrappers == ("heald_ops",)


NESTING = """
import nesting
@hookimpl(wrapper=True{options})
def heald_ops(registry):
    nesting.steps.append(("begin", "{name}", getattr(registry, "plugin", "t_hook")))
    try:
        return (yield)
    finally:
        nesting.steps.append(("end", "{name}", getattr(registry, "plugin", "t_hook")))
"""


@pytest.mark.parametrize("options", [
    ("", "", ""), ("first", "", "last"), ("last", "", "first"), ("", "last", "last"), ("first", "first", ""),
    ("last", "first", "")])
def test_wrappers_nest_as_those_of_a_plugin_manager(load, monkeypatch, options):
    nesting = ModuleType("nesting")
    nesting.steps = []
    monkeypatch.setitem(sys.modules, "nesting", nesting)
    sources = {f"t_{i}": NESTING.format(name=i, options=f", try{rank}=True" if rank else "")
               for i, rank in enumerate(options)}
    _, modules = load(**sources, t_hook=OPS.format(op="Inner>Op"))
    ours = [step for step in nesting.steps if step[2] == "t_hook"]
    nesting.steps.clear()
    manager = pluggy.PluginManager("heald")
    for name, module in modules.items():
        if name != "t_hook":
            manager.register(module)
    manager.hook.heald_ops(registry=None)
    assert ours == nesting.steps
    assert len(ours) == 2 * len(options)


COUNTING = """
import nesting
heald_ops = hookimpl({options})(lambda registry: (
    nesting.steps.append("{name}"), registry.add(OpSpec("{op}", ["x: T"], ["y: T"], ["T: type"]))))
"""


@pytest.mark.parametrize("options", [("", ""), ("tryfirst=True", "trylast=True"), ("trylast=True", "tryfirst=True"),
                                     ("optionalhook=True", "tryfirst=True")])
def test_each_hook_is_called_once_and_the_order_of_hooks_decides_nothing(load, monkeypatch, options):
    nesting = ModuleType("nesting")
    nesting.steps = []
    monkeypatch.setitem(sys.modules, "nesting", nesting)
    plugins, _ = load(**{f"t_{i}": COUNTING.format(name=i, options=text, op=f"Op{i}>Op")
                         for i, text in enumerate(options)})
    assert sorted(nesting.steps) == ["0", "1"]
    assert {"Op0>Op", "Op1>Op"} <= {*plugins.registries.ops}
    plugins.load()
    assert len(nesting.steps) == 2


FAULTS = {
    "raises before": ("def heald_ops(registry):\n    1 // 0\n    yield", "the wrapper of heald_ops raised ZeroDiv"),
    "raises behind": ("def heald_ops(registry):\n    yield\n    1 // 0", "the wrapper of heald_ops raised ZeroDiv"),
    "does not yield": ("def heald_ops(registry):\n    return\n    yield", "the wrapper of heald_ops does not yield"),
    "yields twice": ("def heald_ops(registry):\n    yield\n    yield", "the wrapper of heald_ops yields twice"),
    "exits": ("def heald_ops(registry):\n    yield\n    raise SystemExit(3)", "the wrapper of heald_ops raised System"),
    "registers": ("def heald_ops(registry):\n    registry.add(OpSpec('Mine>Op'))\n    yield",
                  "the wrapper of heald_ops raised AttributeError"),
    "takes long": ("def heald_ops(registry):\n    sleep(1)\n    yield", "the wrapper of heald_ops takes longer than"),
}


@pytest.mark.parametrize("kind", sorted(FAULTS))
def test_a_wrapper_that_fails_is_a_fault_of_its_own_plugin(load, monkeypatch, kind):
    monkeypatch.setattr(hook_observers, "LONGEST_STEP_SECONDS", 0.2)
    source, reason = FAULTS[kind]
    plugins, _ = load(t_wrong=f"@hookimpl(wrapper=True)\n{source}", t_other=OPS.format(op="Other>Op"),
                      t_watch=WATCHING.format(at_error="raise"))
    assert records(plugins)["t_wrong"].status == "failed"
    assert records(plugins)["t_wrong"].reason.startswith(reason)
    assert records(plugins)["t_other"].status == records(plugins)["t_watch"].status == "ok"
    assert "Other>Op" in plugins.registries.ops
    assert "Mine>Op" not in plugins.registries.ops


def test_a_plugin_may_implement_a_hook_and_observe_it(load):
    source = OPS.format(op="Both>Op") + WATCHING.format(at_error="raise").replace(
        "wrapper=True)\ndef heald_ops", "wrapper=True, specname='heald_ops')\ndef watch_ops")
    plugins, modules = load(t_both=source, t_other=OPS.format(op="Other>Op"))
    assert ("behind", "t_other", None) in modules["t_both"].seen
    assert not [row for row in modules["t_both"].seen if row[1] == "t_both"]
    record = records(plugins)["t_both"]
    assert (record.status, record.hooks, record.wrappers) == ("ok", ("heald_ops",), ("heald_ops",))
    assert {"Both>Op", "Other>Op"} <= {*plugins.registries.ops}
