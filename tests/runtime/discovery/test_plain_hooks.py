"""Hooks that are read without pluggy: the same table as pluggy's, and every other module is left to pluggy."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pluggy
import pytest
from heald.api import hookimpl
from heald.runtime.discovery import plugin_module

PLAIN = {
    "of a registry": "@hookimpl\ndef heald_ops(registry): pass",
    "of a registry and settings": "@hookimpl\ndef heald_ops(registry, config): pass",
    "in the other order": "@hookimpl\ndef heald_ops(config, registry): pass",
    "marked by pluggy itself": "@pluggy.HookimplMarker('heald')\ndef heald_passes(registry): pass",
    "among other functions": "@hookimpl\ndef heald_ops(registry): helper()\ndef helper(x=1): pass",
    "none": "HEALD_API = (1, 0)",
}
OTHER = {
    "not marked": "def heald_ops(registry): pass",
    "with options": "@hookimpl(tryfirst=True)\ndef heald_ops(registry): pass",
    "of another name": "@hookimpl(specname='heald_ops')\ndef ops(registry): pass",
    "unknown": "@hookimpl\ndef heald_opps(registry): pass",
    "of an unknown argument": "@hookimpl\ndef heald_ops(registry, more): pass",
    "with a default": "@hookimpl\ndef heald_ops(registry, config=None): pass",
    "of any arguments": "@hookimpl\ndef heald_ops(registry, **rest): pass",
    "of a keyword": "@hookimpl\ndef heald_ops(registry, *, config): pass",
    "wrapped": "@hookimpl\n@functools.wraps(print)\ndef heald_ops(registry): pass",
    "a static method": "heald_ops = staticmethod(hookimpl(lambda registry: None))",
    "a class": "@hookimpl\nclass heald_ops: pass",
}


def module_of(source: str) -> ModuleType:
    module = ModuleType("mine")
    exec(f"import functools, pluggy\nfrom heald.api import hookimpl\n{source}", vars(module))  # noqa: S102
    return module


@pytest.mark.parametrize("kind", PLAIN)
def test_plain_hooks_are_those_that_pluggy_finds(kind):
    module = module_of(PLAIN[kind])
    hooks = plugin_module.plain_hooks(module)
    assert (hooks, {}) == plugin_module.hooks_and_wrappers(module, "mine")


@pytest.mark.parametrize("kind", OTHER)
def test_every_other_hook_is_left_to_pluggy(kind):
    assert plugin_module.plain_hooks(module_of(OTHER[kind])) is None


def test_the_mark_is_that_of_pluggy():
    def heald_ops(registry):
        """Do nothing."""

    ours = vars(hookimpl(heald_ops)).copy()
    vars(heald_ops).clear()
    assert vars(pluggy.HookimplMarker("heald")(heald_ops)) == ours


def test_discovery_of_plain_plugins_imports_no_pluggy():
    code = ("import sys; from heald.runtime.service.runtime import runtime; runtime().plugins.records();"
            "print('pluggy' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False"]
