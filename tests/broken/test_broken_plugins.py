"""Each kind of broken plugin is named in one line, and every other plugin works."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from pathlib import Path

import heald
import numpy as np
import pytest
from broken.kinds import KINDS
from builders.graphs import graph, node, placeholder
from heald.errors import HealdError
from heald.runtime.config.config import load_config
from heald.runtime.host.device_check import check_device
from heald.runtime.service.runtime import Runtime
from heald_eager.core_runtime import CoreRuntime

X = np.float32([1, 2, 3])
PAGE = Path(__file__).parents[2] / "docs" / "broken-plugins.md"
WHEN = {"load": "it is loaded", "scan": "devices are scanned", "open": "a device is opened",
        "check": "a device is checked", "run": "a graph runs",
        "choose": "config chooses it", "file": "a file is loaded", "pass": "a graph is compiled",
        "handler": "an op is executed", "session": "a session is asked for", "close": "its host is closed"}


def report_of(runtime: Runtime, when: str, path: Path) -> str:
    """All that heald says of the plugin, as one text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            runtime.plugins.register(path)
            if when == "scan":
                runtime.host.records("BROKEN")
            if when in ("open", "close"):
                runtime.host.open("BROKEN:0")
            if when == "check":
                check_device(runtime.host.open("BROKEN:0"), runtime.host.registries, "BROKEN:0", path.stem)
            if when == "close":
                runtime.host.close()
            if when == "run":
                with heald.Session(graph(placeholder("x", (3,)), node("y", "Broken>Op", "x")), runtime) as session:
                    session.run("y", {"x": X})
            if when in ("choose", "file", "pass", "handler", "session"):
                use_part(runtime, when, path)
            error = ""
        except HealdError as raised:
            error = str(raised)
    return "\n".join([*(str(warning.message) for warning in caught), error])


def use_part(runtime: Runtime, when: str, path: Path) -> None:
    """Use the part of the plugin, which is called "broken"."""
    model = graph(placeholder("x", (3,)), node("y", "Neg", "x"))
    if when == "choose":
        runtime.check()
        assert runtime.host.work_queue
    if when == "file":
        heald.load(path, config=runtime, format="broken")
    if when == "pass":
        with heald.Session(model, runtime) as session:
            session.run("y", {"x": X})
    if when == "handler":
        CoreRuntime(runtime.host).execute("Neg", X, handler="broken")
    if when == "session":
        heald.Session(model, runtime, target="broken://here")


@pytest.mark.parametrize("name", KINDS)
def test_a_broken_plugin_is_named_in_one_line_and_the_others_work(name, tmp_path, monkeypatch):
    kind, plugin_id = KINDS[name], f"broken_{list(KINDS).index(name)}"
    path = tmp_path / f"{plugin_id}.py"
    path.write_text(kind.source)
    monkeypatch.delitem(sys.modules, plugin_id, raising=False)
    runtime = Runtime(load_config(kind.config))
    text = report_of(runtime, kind.when, path)
    lines = [line for line in text.splitlines() if kind.line.format(id=plugin_id) in line]
    assert lines, text
    assert plugin_id in lines[0]
    assert kind.remedy.format(id=plugin_id) in lines[0]
    others_work_there = kind.when not in ("close", "choose", "pass")
    runtime = runtime if others_work_there else Runtime(load_config({}))
    with heald.Session(graph(placeholder("x", (3,)), node("y", "Neg", "x")), runtime) as session:
        assert session.run("y", {"x": X}).tolist() == [-1, -2, -3]


SETTING = re.compile(r"\[(\w+)\] (\S+)(?: = ('[^']*'|\[[^\]]*\]))?")
WITH_SETTING = [name for name, kind in KINDS.items() if SETTING.search(kind.remedy)]


@pytest.mark.parametrize("name", WITH_SETTING)
def test_the_setting_of_a_remedy_ends_the_fault(name, tmp_path, monkeypatch):
    """A remedy without a value names a key of [kernels], which takes the id of another pack."""
    kind, plugin_id = KINDS[name], f"broken_{list(KINDS).index(name)}"
    path = tmp_path / f"{plugin_id}.py"
    path.write_text(kind.source)
    monkeypatch.delitem(sys.modules, plugin_id, raising=False)
    section, key, value = SETTING.search(kind.remedy.format(id=plugin_id)).groups()
    setting = {section: {key: ast.literal_eval(value) if value is not None else "cpu"}}
    runtime = Runtime(load_config({**kind.config, **setting}))
    text = report_of(runtime, kind.when, path)
    assert kind.line.format(id=plugin_id) not in text or section == "kernels", text
    assert "is no key" not in text


def page() -> str:
    rows = [f"| {name} | {WHEN[kind.when]} | `{kind.line.format(id='ID').strip()}` | `{kind.remedy.format(id='ID')}` |"
            for name, kind in KINDS.items()]
    text = ("Each kind of broken plugin is named in one line, and every other plugin works. ID stands for the plugin's "
            "id.\nThe line also has the remedy. The tests make this table from `tests/broken/kinds.py`.")
    head = ["# Broken plugins", "", text, "", "| kind | found when | the line has | the remedy in it |",
            "|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def test_the_page_of_broken_plugins_has_the_tested_kinds():
    assert PAGE.read_text("utf-8") == page(), "write the page again: python tests/broken/test_broken_plugins.py"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
