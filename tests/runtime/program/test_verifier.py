"""A host program that is not well formed is refused when it is made, with function, kernel and location."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from heald.errors import InvalidArgument, Location
from heald.runtime.program.host_program import Call, ProgramFunction
from heald.runtime.values.dtypes import float32
from heald.runtime.values.tensor import TensorMetadata
from hypothesis import given
from hypothesis import strategies as st

PLACE = Location("program.mlir", 3, 1)


def call(args=(), results=(0,), code="tfrt.add.i32", **fields):
    return Call(code, args, results, location=PLACE, **fields)


def function(*calls, types=1, results=(), args=0, name="main", targets=()):
    return ProgramFunction(name, tuple(f"a{i}" for i in range(args)), ("i32",) * types, calls, results, targets)


WRONG = {
    "an argument that no call defines": (function(call((7,))), "uses register 7 before it is defined"),
    "a use before the definition": (
        function(call((1,), (0,)), call((), (1,)), types=2), "uses register 1 before it is defined"),
    "a use of its own result": (function(call((0,), (0,))), "uses register 0 before it is defined"),
    "two definitions": (function(call(), call()), "defines register 0, which is defined already"),
    "a definition of an argument": (function(call(), args=1), "defines register 0, which is defined already"),
    "a register without a type": (function(call((), (1,))), "defines register 1, for which there is no type"),
    "a negative register": (function(call((), (-1,))), "defines register -1, for which there is no type"),
    "a wait for no register": (function(call((), (0,), after=(4,))), "uses register 4 before it is defined"),
    "a chain that is a result already": (
        function(call((), (0,), chain=0)), "defines register 0, which is defined already"),
    "an unknown function": (function(call(functions=("mian",))), "names the function 'mian', which the program lacks"),
    "a stream without a device": (function(call(stream=0)), "is on stream 0, and the program's devices are ()"),
    "a stream below the host's": (function(call(stream=-2)), "is on stream -2"),
    "a result that no call defines": (function(results=(0,)), "returns register 0, which nothing defines"),
    "a target that no call defines": (function(targets=(3,)), "returns register 3, which nothing defines"),
    "more arguments than types": (function(args=2), "has 2 arguments and types for 1 registers"),
    "another name": (function(name="other"), "the function 'other' is listed as 'main'"),
    "no function": ({"a": 1}, "has a dict under 'main', not a ProgramFunction"),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_a_program_that_is_not_well_formed_is_refused_when_it_is_made(wrong, message):
    with pytest.raises(InvalidArgument) as caught:
        heald.HostProgram({"main": wrong})
    assert message in str(caught.value)
    if isinstance(wrong, ProgramFunction) and wrong.kernels:
        assert caught.value.location == PLACE


TENSOR = TensorMetadata(float32, (2,))
OWN = {
    "a constant without an index": (Call("heald.constant", (), (1,)), "has None as attribute 'index'"),
    "a constant with arguments": (Call("heald.constant", (0,), (1,), {"index": 0}), "has 1 arguments and 1 results"),
    "a constant for an integer": (Call("heald.constant", (), (2,), {"index": 0}), "gives a tensor to a register for i"),
    "a copy without a direction": (Call("heald.copy", (0,), (1,), stream=0), "no attribute 'to'"),
    "a copy to nowhere": (Call("heald.copy", (0,), (1,), {"to": "moon"}, 0), "no attribute 'to'"),
    "a copy of no device": (Call("heald.copy", (0,), (1,), {"to": "host"}), "has no device"),
    "a copy from no device": (Call("heald.copy", (0,), (1,), {"to": "device", "from": 7}, 0), "has no device"),
    "a copy of an integer": (Call("heald.copy", (0,), (2,), {"to": "host"}, 0), "copies a value that is no tensor"),
    "a copy without a result": (Call("heald.copy", (0,), (), {"to": "host"}, 0), "has 1 arguments and 0 results"),
    "an event of no device": (Call("heald.event", (), (3,)), "has no device"),
    "an event for a tensor": (Call("heald.event", (), (1,), stream=0), "no register for a chain"),
    "a chain beside a result": (Call("cpu.Neg", (0,), (1,), {}, 0, chain=3), "fills a chain"),
    "a chain for a tensor": (Call("cpu.NoOp", (), (), {}, 0, chain=1), "fills a chain"),
}


@pytest.mark.parametrize(("wrong", "message"), OWN.values(), ids=OWN)
def test_a_call_of_the_runtime_itself_that_is_not_well_formed_is_refused(wrong, message):
    types = (TENSOR, TENSOR, "i32", "!tfrt.chain")
    with pytest.raises(InvalidArgument, match=message):
        heald.HostProgram({"main": ProgramFunction("main", ("x",), types, (wrong,), ())}, (np.ones(2, "f4"),),
                          ("CPU:0",))


def test_a_misspelled_function_has_a_suggestion():
    with pytest.raises(InvalidArgument, match="did you mean 'main'"):
        heald.HostProgram({"main": function(call(functions=("mian",)))})


def test_functions_that_are_no_mapping_are_refused():
    with pytest.raises(InvalidArgument, match="a program's functions are a list"):
        heald.HostProgram([function(call())])


registers = st.integers(-1, 4)


@given(st.lists(st.tuples(st.lists(registers, max_size=2), st.lists(registers, min_size=1, max_size=2)), max_size=4),
       st.lists(registers, max_size=2), st.integers(0, 2))
def test_a_program_is_accepted_just_when_each_register_is_defined_once_and_before_its_uses(calls, results, args):
    defined, is_right = set(range(args)), True
    for needs, gives in calls:
        is_right &= defined.issuperset(needs) and len({*gives}) == len(gives) and defined.isdisjoint(gives)
        is_right &= all(0 <= register < 4 for register in gives)
        defined.update(gives)
    is_right &= defined.issuperset(results)
    definition = function(*(call(tuple(needs), tuple(gives)) for needs, gives in calls), types=4,
                          results=tuple(results), args=args)
    try:
        heald.HostProgram({"main": definition})
    except InvalidArgument:
        assert not is_right
    else:
        assert is_right
