"""The allocator and the work queue of examples/: plugins of one file, chosen by configuration alone."""

from __future__ import annotations

import subprocess
import sys
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.cli import main
from heald.errors import PluginError
from heald.runtime.service import runtime as runtime_module
from heald.runtime.service.runtime import Runtime, load_config

PLUGIN = """
from heald.api import AsyncValue, OpSpec, hookimpl

HEALD_API = (1, 0)
ran = []

@hookimpl
def heald_ops(registry):
    registry.add(OpSpec("Mine>Sum", ["x: T", "y: T"], ["z: T"], ["T: type"], metadata=lambda attrs, x, y: x))

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)

def register(kernels):
    @kernels.kernel("Mine>Sum", asynchronous=True, step=True)
    def sums(b):
        def run(step, x, y):
            value = AsyncValue()
            def task():
                ran.append(b.node)
                value.emplace(x + y)
            step.host.work_queue.add_task(task)
            return value
        return run
"""
EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = [str(EXAMPLES / "page_allocator.py"), str(EXAMPLES / "last_in_first_out.py")]
CHOSEN = {"allocator": {"name": "pages"}, "work_queue": {"name": "last_in_first_out"}}


@pytest.fixture(scope="module")
def plugin_settings(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("plugin") / "sums_of_mine.py"
    path.write_text(PLUGIN, "utf-8")
    return str(path)


def test_a_run_uses_the_allocator_and_the_work_queue_that_config_names(plugin_settings: str) -> None:
    names = ["a", "b", "c"]
    nodes = [placeholder("x", (3,)), *(node(name, "Mine>Sum", "x", "x") for name in names),
             *(node(f"{name}{name}", "AddV2", name, "x") for name in names)]
    session = heald.Session(graph(*nodes), CHOSEN | {
        "plugins": {"load": [plugin_settings, *FILES]}, "passes": {"disable": ["duplicates"]}})
    results = session.run(["aa", "bb", "cc"], {"x": np.float32([1, 2, 3])})
    assert [result.tolist() for result in results] == [[3, 6, 9]] * 3
    assert sys.modules["sums_of_mine"].ran == ["c", "b", "a"]
    assert [result.__array_interface__["data"][0] % PAGESIZE for result in results] == [0] * 3


def test_a_factory_that_is_not_chosen_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "named.py").write_text("""
from heald.api import hookimpl
HEALD_API = (1, 0)

@hookimpl
def heald_allocators(registry):
    registry.add("never", "module_of_never:Allocator")
""", "utf-8")
    (tmp_path / "module_of_never.py").write_text("1 / 0", "utf-8")
    code = ("import sys, heald; heald.register('named.py'); import heald.runtime.service.runtime as r; "
            "r.runtime().host.work_queue; print('module_of_never' in sys.modules)")
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True,
                          cwd=tmp_path)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("factory", ["no_such_module:Allocator", "examples.page_allocator:NoSuchAllocator"])
def test_an_allocator_that_cannot_be_imported_is_an_error_of_the_session(factory: str, tmp_path: Path) -> None:
    path = tmp_path / f"broken_{factory.partition(':')[2].lower()}.py"
    path.write_text(f"""
from heald.api import hookimpl
HEALD_API = (1, 0)

@hookimpl
def heald_allocators(registry):
    registry.add("broken", {factory!r})
""", "utf-8")
    config: dict[str, Any] = {"plugins": {"load": [str(path)]}, "allocator": {"name": "broken"}}
    with pytest.raises(PluginError, match="the factory of allocator 'broken' of plugin .* raised"):
        Runtime(load_config(config, environ={})).check()


def test_config_may_name_an_allocator_of_a_plugin_that_the_command_brings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runtime_module, "process_scope", runtime_module.ProcessScope())
    model, config = tmp_path / "model.pb", tmp_path / "pages.toml"
    heald.graphdef.dump(graph(placeholder("x", (2,)), node("y", "Neg", "x")), model)
    config.write_text("[allocator]\nname = 'pages'\n")
    command = ["run", str(model), "--input", "x=[1, 2]", "--json", "--config", str(config)]
    assert main(command) == 1
    assert "no allocator is called 'pages'" in capsys.readouterr().err
    monkeypatch.setattr(runtime_module, "process_scope", runtime_module.ProcessScope())
    assert main([*command, "--plugin", str(EXAMPLES / "page_allocator.py")]) == 0
    assert "-1" in capsys.readouterr().out
