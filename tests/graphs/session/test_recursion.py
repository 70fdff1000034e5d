"""Recursion without end is an error at the configured depth, for all forms of calls; expansion is bounded."""

from __future__ import annotations

from contextlib import closing

import heald
import numpy as np
import pytest
from builders.control_flow import branch, call, case, function, loop
from builders.graphs import FLOAT, const, node, placeholder
from builders.programs import Body, program
from heald.errors import InvalidArgument, ResourceExhausted
from heald.graphs.graph.attr_value import Func
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.session.ahead_of_time import compile_model
from heald.runtime.config.limits import DEFAULT_NESTED_CALLS
from heald.runtime.values import dtypes

X, P = placeholder("x", ()), placeholder("p", (), dtypes.bool_)
NEXT = node("less", "Neg", "a")
LIMIT = 40


def by_partitioned_call(callee):
    types = {"Tin": (dtypes.bool_, FLOAT), "Tout": (FLOAT,)}
    return [], [Node("c", "PartitionedCall", ["p", "less:y:0"], attrs={"f": Func(callee), **types})], "c:output:0"


def by_stateful_call(callee):
    return [], [call("c", callee, "p", "less:y:0", arguments="p:bool_ a")], "c:output:0"


def by_name(callee):
    return [], [Node("c", callee, ["p", "less:y:0"])], "c:r:0"


def by_if(callee):
    return [], [branch("c", "p", callee, callee, "p", "less:y:0", arguments="p:bool_ a")], "c:output:0"


def by_case(callee):
    index = Node("index", "Cast", ["p"], attrs={"SrcT": dtypes.bool_, "DstT": dtypes.int32})
    return [], [index, case("c", "index:y:0", [callee, callee], "p", "less:y:0", arguments="p:bool_ a")], "c:output:0"


def by_while(callee):
    goes_on = function("goes_on", "p:bool_ a", [], {"go": "p"}, results="go:bool_")
    turn = function(f"turn_{callee}", "p:bool_ a", [call("c", callee, "p", "a", arguments="p:bool_ a")],
                    {"p": "p", "r": "c:output:0"}, results="p:bool_")
    return [goes_on, turn], [loop("c", "goes_on", turn.name, "p", "less:y:0", arguments="p:bool_ a")], "c:output:1"


def by_condition(callee):
    goes_on = function(f"goes_on_{callee}", "p:bool_ a", [
        call("c", callee, "p", "a", arguments="p:bool_ a"), node("go", "Less", "c:output:0", "a")],
        {"go": "go:z:0"}, results="go:bool_")
    same = function("same", "p:bool_ a", [], {"p": "p", "a": "a"}, results="p:bool_")
    return [goes_on, same], [loop("c", goes_on.name, "same", "p", "less:y:0", arguments="p:bool_ a")], "c:output:1"


def by_for(callee):
    turn = function(f"turn_{callee}", "i:int32 p:bool_ a", [call("c", callee, "p", "a", arguments="p:bool_ a")],
                    {"p": "p", "r": "c:output:0"}, results="p:bool_")
    bounds = [const(name, value, np.int32) for name, value in (("start", 0), ("limit", 2), ("delta", 1))]
    repeated = Node("c", "For", [*(f"{node.name}:output:0" for node in bounds), "p", "less:y:0"],
                    attrs={"body": Func(turn.name), "T": (dtypes.bool_, FLOAT)})
    return [turn], [*bounds, repeated], "c:output:1"


FORMS = [by_partitioned_call, by_stateful_call, by_name, by_if, by_case, by_while, by_condition, by_for]


def recursive(form, count):
    """A graph whose function f0 calls f1, and so on, until the last one calls f0."""
    functions = {}
    for number in range(count):
        helpers, nodes, result = form(f"f{(number + 1) % count}")
        forms = [function(f"f{number}", "p:bool_ a", [NEXT, *nodes], {"r": result}), *helpers]
        functions |= {body.name: body for body in forms}
    return Graph([X, P, call("y", "f0", "p", "x", arguments="p:bool_ a")], functions.values())


def run(graph, **limits):
    with heald.Session(graph, {"limits": limits} if limits else None) as session:
        return session.run("y", {"x": 1, "p": True}, options=heald.RunOptions(timeout=60))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_recursion_without_end_is_an_error_at_the_limit(form, count):
    with pytest.raises(ResourceExhausted, match=f"is called {LIMIT + 1} levels deep") as caught:
        run(recursive(form, count), nested_calls=LIMIT)
    assert caught.value.node.endswith("/c")
    assert "[limits] nested_calls" in caught.value.hint


def test_recursion_without_end_is_an_error_by_default():
    with pytest.raises(ResourceExhausted, match=f"is called {DEFAULT_NESTED_CALLS + 1:,} levels deep"):
        run(recursive(by_if, 1))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_recursion_without_end_can_be_compiled_and_is_an_error_of_the_compiled_model(form, tmp_path):
    heald.graphdef.dump(recursive(form, 2), tmp_path / "model.pb")
    compiled = compile_model(tmp_path / "model.pb", inputs={"x": (), "p": ()}, outputs=["y"])
    heald.bef.dump(compiled, tmp_path / "model.bef")
    model = heald.load(tmp_path / "model.bef", config={"limits": {"nested_calls": LIMIT}})
    with pytest.raises(ResourceExhausted, match=f"is called {LIMIT + 1} levels deep"):
        model(x=1, p=True)


def countdown():
    """The program: down(n) calls itself until n is 0."""
    b, stop, go = Body("i32"), Body("i32"), Body("i32")
    ends = b("tfrt.lessequal.i32", 0, b.constant(0), results="i1")
    result = b("tfrt.cond", ends, 0, functions=("stop", "go"))
    again = go("tfrt.call", go("tfrt.add.i32", 0, go.constant(-1)), functions=("down",))
    return program(b.function("down", result), stop.function("stop", 0), go.function("go", again))


@pytest.mark.parametrize("queue", ["multi_threaded", "single_threaded", "seeded"])
@pytest.mark.parametrize("limit", [1, 31, 32, 33, 64, 65, 101])
def test_a_program_may_nest_calls_up_to_the_limit(limit, queue):
    with closing(heald.HostContext(config={"limits": {"nested_calls": limit}}, work_queue=queue)) as host:
        def down(levels):
            (result,) = countdown().run("down", levels, request=heald.RequestContext(host))
            host.await_values([result])
            return result

        deepest = limit // 2  # down(n) calls go(n), which calls down(n - 1); stop calls nothing, and is not counted
        assert down(deepest).get() == 0
        error = down(deepest + 1).error
        assert isinstance(error, ResourceExhausted)
        assert f"is called {limit + 1} levels deep" in str(error)
        assert down(deepest).get() == 0


def test_calls_one_after_the_other_are_not_nested():
    b, body = Body("i32"), Body("i32")
    once = body("tfrt.cond", body("tfrt.constant.i1", results="i1", value=True), 0, functions=("inner", "inner"))
    inner = Body("i32")
    (total,) = b("tfrt.repeat.i32", b.constant(500), 0, results=("i32",), functions=("body",))
    many = program(b.function("main", total), body.function("body", once),
                   inner.function("inner", inner("tfrt.add.i32", 0, inner.constant(1))))
    with closing(heald.HostContext(config={"limits": {"nested_calls": 3}})) as host:
        (result,) = many.run("main", 0, request=heald.RequestContext(host))
        host.await_values([result])
        assert result.get() == 500


@pytest.mark.parametrize("count", [0, -1])
def test_the_limit_is_one_or_more(count):
    with pytest.raises(InvalidArgument, match=r"\[limits\] nested_calls is"):
        heald.Session(Graph([X]), {"limits": {"nested_calls": count}})
