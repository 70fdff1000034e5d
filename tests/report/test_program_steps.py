"""The steps of a host program: the rules against the trace of real runs, and the walk of docs/steps.md."""

from __future__ import annotations

import re
from pathlib import Path

import heald
import pytest
from harness.chromium import Browser, find_chromium
from heald.cli import main
from heald.runtime.program.host_program import Call, ProgramFunction
from heald.runtime.service import runtime
from heald_report.page import program_page_bytes
from heald_report.palette import DARK, LIGHT
from heald_report.program_steps import program_steps, traits_of_calls
from heald_report.program_svg import program_svg

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "steps" / "race.mlir"
WALK = re.compile(r"^\| (\d+) \| (?:the values of )?`([\w.]+)`( arrive)? \| (.*) \|$", re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def _plugin():
    """A default runtime of these tests alone, with the plugin of the example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "process_scope", runtime.ProcessScope())
        heald.register(str(ROOT / "examples" / "steps" / "later.py"))
        yield


def steps_of(function):
    """The steps as codes; an arrival has a + behind it."""
    return [function.kernels[step.call].code + "+" * step.is_arrival
            for step in program_steps(function, traits_of_calls(function))]


def traced_steps(program):
    """The same of a real run with the single-threaded work queue. An asynchronous call has an event for each."""
    host = heald.HostContext(work_queue="single_threaded")
    request = heald.RequestContext(host, trace=True)
    host.await_values(program.run("main", request=request))
    times = {}
    for event in request.trace.events:
        times[event.start_ns] = event.call.code
        if event.is_asynchronous:
            times[event.end_ns] = event.call.code + "+"
    return [times[time] for time in sorted(times)]


def walk():
    """The rows of docs/steps.md: step, code, and the changes of registers."""
    return [(int(step), code + "+" * bool(arrives), dict(re.findall(r"`%(\d+)` (\w+)", changes)))
            for step, code, arrives, changes in WALK.findall((ROOT / "docs" / "steps.md").read_text())]


LATER = "lesson.add_later.i32"
PROGRAMS = {
    "a chain of later values": [Call("tfrt.constant.i32", (), (0,), {"value": 1}), Call(LATER, (0, 0), (1,)),
                                Call(LATER, (1, 1), (2,)), Call("tfrt.add.i32", (2, 0), (3,))],
    "two that wait": [Call("tfrt.constant.i32", (), (0,), {"value": 1}), Call(LATER, (0, 0), (1,)),
                      Call(LATER, (0, 0), (2,)), Call("tfrt.add.i32", (2, 1), (3,))],
    "a choice without the later value": [
        Call("tfrt.constant.i1", (), (0,), {"value": True}), Call("tfrt.constant.i32", (), (1,), {"value": 1}),
        Call(LATER, (1, 1), (2,)), Call("tfrt.ternary", (0, 1, 2), (3,)), Call("tfrt.add.i32", (2, 3), (4,))],
    "nothing later": [
        Call("tfrt.constant.i32", (), (0,), {"value": 1}), Call("tfrt.constant.i32", (), (1,), {"value": 2}),
        Call("tfrt.add.i32", (0, 1), (2,)), Call("tfrt.add.i32", (2, 0), (3,))],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_are_those_of_a_real_run(name):
    calls = tuple(PROGRAMS[name])
    kinds = ("i1" if calls[0].code.endswith("i1") else "i32", *["i32"] * (len(calls) - 1))
    function = ProgramFunction("main", (), kinds, calls, calls[-1].results)
    assert steps_of(function) == traced_steps(heald.HostProgram({"main": function}))


def test_the_walk_of_the_page_is_a_real_run(capfd):
    program = heald.HostProgram.load(PROGRAM)
    codes = [code for _, code, _ in walk()]
    assert codes == steps_of(program.functions["main"]) == traced_steps(program)
    assert [step for step, _, _ in walk()] == [*range(1, 12)]
    assert capfd.readouterr().out == "int32 = 42\nint32 = 84\n"


def test_the_text_and_the_pictures_of_the_page_are_those_of_the_program():
    page, function = (ROOT / "docs" / "steps.md").read_text(), heald.HostProgram.load(PROGRAM).functions["main"]
    lines = [line for line in PROGRAM.read_text().splitlines() if line.strip() and "//" not in line]
    assert "\n".join(lines) in page
    for palette, name in ((LIGHT, "steps.svg"), (DARK, "steps-dark.svg")):
        assert (ROOT / "docs" / name).read_text() == program_svg(function, (), palette)


def test_a_call_that_is_never_ready_has_no_step():
    function = ProgramFunction("main", (), ("i32",) * 2, (Call("no.such.kernel", (), (0,)),), (0,))
    assert steps_of(function) == ["no.such.kernel"]
    assert program_svg(ProgramFunction("main", (), (), (), ()), (), LIGHT) is None


def test_the_command_draws_the_program_with_its_plugin(tmp_path, capsys):
    dump = tmp_path / "race.bef"
    heald.HostProgram.load(PROGRAM).dump(dump)
    for source in (PROGRAM, dump):
        assert main(["report", str(source), "-o", str(tmp_path / "race.svg")]) == 0
        assert "step 6: %3, value at 9" in (tmp_path / "race.svg").read_text()
    assert "written" in capsys.readouterr().out


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium is installed")
def test_the_page_goes_through_the_states_of_the_walk(tmp_path):
    page = tmp_path / "race.html"
    page.write_bytes(program_page_bytes(heald.HostProgram.load(PROGRAM), "race"))
    registers = ("[...document.querySelector('#details table').rows].slice(1)"
                 ".map(row => row.cells[2].textContent.split(',')[0])")
    browser = Browser(find_chromium(), tmp_path / "chromium")
    try:
        browser.open(f"file://{page}")
        before = browser.value(registers)
        for step, code, changes in walk():
            browser.value("document.getElementById('on').click()")
            after = browser.value(registers)
            assert {str(index): state for index, state in enumerate(after) if state != before[index]} == changes
            assert browser.value("document.getElementById('step').textContent").startswith(
                f"step {step} of 11: {code.rstrip('+')}")
            before = after
        assert browser.logged == []
    finally:
        browser.close()
