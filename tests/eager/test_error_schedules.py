"""Programs with failing ops in every schedule: each handle has its value, or the error of the op that it follows from.

A program is a text with one call a line, so that the line of an error names its call. A model beside it keeps for each
handle its value, or the lines of the failing calls among its ancestors.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from harness.eager_runtime import core
from heald import errors

CALLS = 40
FILE = "program.py"
START = np.int32([3, 1, 2])
FAILURES = {  # by op: the call that fails, and the text of its error
    "GatherV2": ('run("GatherV2", {x}, [0, 7, 1], 0)', r"indices\[1\] = 7"),
    "FloorDiv": ('run("FloorDiv", {x}, 0)', "division by zero"),
    "Reshape": ('run("Reshape", {x}, four)', "cannot have shape"),
    "ExpandDims": ('run("ExpandDims", {x}, axis)', "dim 9 is not in"),
}


class Modelled(NamedTuple):
    """The value of a handle. `roots`: lines of the failing calls that it follows from; with one it has no value."""

    value: Any
    roots: frozenset[int] = frozenset()


class Model:
    """A program under construction, and the values and errors of its handles."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - a test is not secret
        self.lines = ["t0 = handle(START)"]
        self.handles = {"t0": Modelled(START)}
        self.failing: dict[int, str] = {}  # line: op
        self.variable = START.copy()

    def choose(self) -> str:
        """A name, mostly that of a value: errors spread to most handles otherwise."""
        names = [name for name, handle in self.handles.items() if not handle.roots or self.random.random() < 0.2]
        return self.random.choice(names)

    def add(self, text: str, value: Any, *sources: str) -> None:
        """A line that makes a handle from these."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        roots = frozenset().union(*[self.handles[source].roots for source in sources])
        self.handles[name] = Modelled(None if roots else value(*[self.handles[x].value for x in sources]), roots)

    def add_failure(self, x: str, *, donated: bool) -> None:
        op = self.random.choice(sorted(FAILURES))
        text = FAILURES[op][0].format(x=x)
        if donated:
            text = f"{text[:-1]}, donate=(0,))"
        line = len(self.lines) + 1
        roots = self.handles[x].roots or frozenset([line])
        if not self.handles[x].roots:
            self.failing[line] = op
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.handles[name] = Modelled(None, roots)
        if donated:
            del self.handles[x]

    def add_effect(self, x: str) -> None:
        """An addition to the variable, and a read behind it. The addition of an error changes nothing."""
        if not self.handles[x].roots:
            self.variable = self.variable + self.handles[x].value
        self.lines.append(f'run("AssignAddVariableOp", variable, {x})')
        value = self.variable
        self.add('run("ReadVariableOp", variable, attrs={"dtype": "int32"})', lambda: value)

    def drop(self, x: str) -> None:
        """A line that forgets a handle: its value becomes a temporary, whose buffer may be overwritten."""
        self.lines.append(f"del {x}")
        del self.handles[x]

    def add_call(self) -> None:
        x, y, kind = self.choose(), self.choose(), self.random.random()
        if kind < 0.1 and x != "t0":
            self.drop(x)
        elif kind < 0.2:
            self.add_failure(x, donated=False)
        elif kind < 0.25 and x != "t0":
            self.add_failure(x, donated=True)
        elif kind < 0.35 and x != "t0":
            self.add(f'run("Maximum", {x}, 2, donate=(0,))', lambda x: np.maximum(x, 2), x)
            del self.handles[x]
        elif kind < 0.45:
            self.add(f'{x}.to("SIM:0").to("CPU:0")', lambda x: x, x)
        elif kind < 0.6:
            self.add_effect(x)
        else:
            self.add(f'run("Sub", {x}, {y})', np.subtract, x, y)


def execute_program(model: Model, schedule: int, report: Callable[[Any], None]) -> dict[str, Any]:
    """The names of a program after it ran."""
    cpu = core(schedule, diagnostics=report, asynchronous="always")
    names: dict[str, Any] = {"run": cpu.execute, "handle": cpu.handle, "START": START, "cpu": cpu}
    # Shapes and axes that come later: their errors come later, too.
    names["four"] = cpu.execute("AddV2", cpu.handle(np.int32([3])), 1)
    names["axis"] = cpu.execute("AddV2", cpu.handle(np.int32(8)), 1)
    names["variable"] = cpu.execute("VarHandleOp", attrs={"dtype": "int32", "shape": [3]})
    cpu.execute("AssignVariableOp", names["variable"], START)
    exec(compile("\n".join(model.lines), FILE, "exec"), names)  # noqa: S102 - the test's own text
    return names


@pytest.mark.parametrize("seed", range(6))
def test_each_handle_has_its_value_or_the_error_of_its_ancestor_in_every_schedule(seed):
    model = Model(seed)
    while len(model.lines) < CALLS or len(model.handles) < 8 or len(model.failing) < 3:
        model.add_call()
    for schedule in range(12):
        reports: list[errors.HealdError] = []
        names = execute_program(model, schedule, reports.append)
        order = sorted(model.handles)
        Random(schedule).shuffle(order)  # noqa: S311
        for name in order:
            check_handle(model, names, name)
        assert sorted(error.location.line for error in reports) == sorted(model.failing)
        assert names["cpu"].host.open("SIM:0").native.report == []


def check_handle(model: Model, names: dict[str, Any], name: str) -> None:
    value, roots = model.handles[name]
    if not roots:
        assert np.array_equal(names[name].numpy(), value), name
        return
    first = None
    for _ in range(2):
        with pytest.raises(errors.HealdError) as raised:
            names[name].numpy()
        error = raised.value
        assert (error.location.file, error.location.line in roots) == (FILE, True), name
        assert error.op == model.failing[error.location.line]
        assert first in (None, error.location.line)  # one of two failing ancestors, and the same one each time
        first = error.location.line


@pytest.mark.parametrize("op", sorted(FAILURES))
@pytest.mark.parametrize("position", [0, 4, 8])
def test_a_failure_within_a_chain_leaves_the_values_before_it(op, position):
    for schedule in range(8):
        reports: list[errors.HealdError] = []
        model = Model(0)
        for number in range(9):
            x = f"t{number}"
            if number == position:
                text = FAILURES[op][0].format(x=x)
                model.lines.append(f"t{number + 1} = {text}")
            else:
                model.lines.append(f't{number + 1} = run("AddV2", {x}, {number})')
        names = execute_program(model, schedule, reports.append)
        for number in reversed(range(10)):
            if number > position:
                with pytest.raises(errors.InvalidArgument, match=FAILURES[op][1]) as raised:
                    names[f"t{number}"].numpy()
                assert (raised.value.op, raised.value.location.file, raised.value.location.line) == (
                    op, FILE, position + 2)
            else:
                assert names[f"t{number}"].numpy().tolist() == [e + sum(range(number)) for e in START.tolist()]
        assert len(reports) == 1
