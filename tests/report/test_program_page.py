"""The page of a host program: boxes of calls, streams, registers, and the step through a run."""

from __future__ import annotations

import json
import re

import heald
import pytest
from harness.chromium import Browser, find_chromium
from heald.cli import main
from heald.runtime.program.execution_order import in_execution_order
from heald.runtime.program.host_program import Call, ProgramFunction
from heald_report.page import program_page_bytes
from heald_report.program_record import MOST_DRAWN_CALLS, function_record, program_record

HOSTILE = "</script><script>hacked()</script>"


def function_of(count: int = 3, name: str = "main") -> ProgramFunction:
    """A chain of sums: each call adds the last value to itself."""
    calls = tuple(Call("tfrt.add.i32", (index, index), (index + 1,), node=f"{name}{index}") for index in range(count))
    return ProgramFunction(name, (f"x{name}",), ("i32",) * (count + 1), calls, (count,))


def test_a_function_has_boxes_edges_and_the_order_of_its_run():
    record = function_record(function_of(), ())
    assert record["steps"] == [[0, 0], [1, 0], [2, 0]]
    assert [box[0] for box in record["picture"]["boxes"]] == [-1, 0, 1, 2]
    assert [edge[:3] for edge in record["picture"]["edges"]] == [[-1, 0, [0]], [0, 1, [1]], [1, 2, [2]]]
    assert {call[2] for call in record["calls"]} == {"host stream 0"}


def test_the_order_is_that_of_the_executor_not_of_the_text():
    calls = (Call("tfrt.constant.i32", (), (0,), {"value": 1}), Call("tfrt.constant.i32", (), (1,), {"value": 2}),
             Call("tfrt.add.i32", (0, 1), (2,)))
    function = ProgramFunction("main", (), ("i32",) * 3, calls, (2,))
    order = [index for index, _ in function_record(function, ())["steps"]]
    assert [calls[index] for index in order] == [*in_execution_order(function).kernels]
    assert order == [1, 0, 2]


def test_a_large_function_has_tables_alone_and_an_empty_program_is_a_page():
    assert function_record(function_of(MOST_DRAWN_CALLS + 1), ())["picture"] is None
    assert program_record(heald.HostProgram({})) == {"functions": [], "left_out": 0}
    many = {f"f{number}": function_of(200, f"f{number}") for number in range(30)}
    assert program_record(heald.HostProgram(many))["left_out"] == 5
    assert program_page_bytes(heald.HostProgram({}), "empty").startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize("name", [HOSTILE, "<!--", "]]>", "'\"&", "\x1b[31m", "a" * 3000, "__proto__"])
def test_hostile_names_are_data(name):
    text = program_page_bytes(heald.HostProgram({name: function_of(2, name)}), name).decode()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["functions"][0]["name"].isprintable()
    assert text.count("<script") == 2
    assert "\x1b" not in text


def test_the_command_writes_the_page_of_a_program(tmp_path, capsys):
    heald.HostProgram({"main": function_of()}).dump(tmp_path / "p.bef")
    assert main(["report", str(tmp_path / "p.bef"), "-o", str(tmp_path / "p.html")]) == 0
    assert str(tmp_path) not in (tmp_path / "p.html").read_text("utf-8")
    assert main(["report", str(tmp_path / "p.bef"), "-o", str(tmp_path / "p.svg"), "--dark"]) == 0
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    heald.HostProgram({}).dump(tmp_path / "empty.bef")
    assert main(["report", str(tmp_path / "empty.bef"), "-o", str(tmp_path / "q.svg")]) == 1
    (tmp_path / "bad.bef").write_bytes(b"\x0b\xef\x00junk")
    assert main(["report", str(tmp_path / "bad.bef"), "-o", str(tmp_path / "q.html")]) == 1
    assert "bad.bef" in capsys.readouterr().err


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium is installed")
def test_a_step_fills_registers_and_makes_calls_ready(tmp_path):
    page = tmp_path / "p.html"
    program = heald.HostProgram({"main": function_of(), HOSTILE: function_of(1, HOSTILE)})
    page.write_bytes(program_page_bytes(program, "p"))
    browser = Browser(find_chromium(), tmp_path / "chromium")
    try:
        browser.open(f"file://{page}")
        states = "[...document.querySelectorAll('#canvas .second')].map(t => t.textContent).join()"
        assert browser.value(states) == "1,ready,waits for 1,waits for 1"
        browser.value("document.getElementById('on').click()")
        assert browser.value(states) == "1,done,ready,waits for 1"
        registers = ("[...document.querySelector('#details table').rows].slice(1)"
                     ".map(row => row.cells[2].textContent).join()")
        assert browser.value(registers) == "released,filled,empty,empty, result"
        browser.value("document.getElementById('last').click()")
        assert browser.value(registers) == "released,released,released,filled, result"
        for width, scheme in ((400, "light"), (900, "dark"), (1600, "light")):
            browser.emulate(width=width, height=800, scheme=scheme)
            assert browser.value("document.documentElement.scrollWidth") <= width
        assert browser.value("typeof hacked") == "undefined"
        assert browser.logged == []
    finally:
        browser.close()
