"""Streams and the order of calls: rules of TFRT's executor, as data."""

from __future__ import annotations

import heald
import pytest
from builders.programs import CHAIN, Body, program
from heald.errors import InvalidArgument
from heald.runtime.program.execution_order import in_execution_order
from heald.runtime.program.stream_analysis import ROOT, analyse_streams, stream_numbers
from hypothesis import given
from hypothesis import strategies as st


def names(function):
    """The attribute `id` of each call, in execution order."""
    return [call.attrs["id"] for call in in_execution_order(function).kernels]


def node(b, name, *args, cost=None):
    attrs = {"id": name} if cost is None else {"id": name, "_tfrt_cost": cost}
    return b("test.node", *args, **attrs)


def test_calls_without_arguments_run_in_reverse_each_followed_by_its_users():
    b = Body()
    first, second = node(b, "a"), node(b, "b")
    node(b, "user of a", first)
    node(b, "user of b", second)
    assert names(b.function("f")) == ["b", "user of b", "a", "user of a"]


def test_the_first_user_of_a_value_runs_first_and_its_users_before_the_second():
    b = Body("i32")
    one = node(b, "one", 0)
    node(b, "two", 0)
    node(b, "user of one", one)
    assert names(b.function("f")) == ["one", "user of one", "two"]


def test_users_of_the_last_argument_or_result_run_first():
    b = Body("i32", "i32")
    node(b, "of first", 0)
    node(b, "of last", 1)
    node(b, "without")
    assert names(b.function("f")) == ["of last", "of first", "without"]


def test_a_call_runs_when_its_last_argument_is_there():
    b = Body("i32")
    x = node(b, "x", 0)
    y = node(b, "y", 0)
    node(b, "z", 0)
    node(b, "sum", x, y, y)
    assert names(b.function("f")) == ["x", "y", "sum", "z"]


def test_calls_of_other_streams_wait_and_become_tasks_in_the_order_of_their_numbers():
    b = Body("i32")
    for name in ("a", "b", "c", "d"):
        x = node(b, name, 0)
        node(b, f"{name}'", x)
    function = b.function("f")._replace(streams=(2, 2, 0, 0, 3, 3, 1, 1))
    # users become ready in reverse: the first outlined call is d's
    assert names(function) == ["b", "b'", "d", "d'", "a", "a'", "c", "c'"]


def test_a_function_with_ops_of_devices_keeps_its_order():
    b = Body()
    node(b, "a")
    node(b, "b")
    function = b.function("f")
    calls = function.kernels[0], function.kernels[1]._replace(stream=0)
    assert in_execution_order(function._replace(kernels=calls)).kernels == calls


@st.composite
def functions(draw):
    b = Body(*("i32",) * draw(st.integers(0, 2)))
    count = len(b.args)
    for name in range(draw(st.integers(0, 25))):
        args = draw(st.lists(st.integers(0, count - 1), max_size=3)) if count else []
        node(b, name, *args, cost=draw(st.none() | st.integers(1, 9)))
        count += 1
    function = b.function("f", *draw(st.lists(st.integers(0, count - 1), max_size=2) if count else st.just([])))
    streams = draw(st.just(()) | st.tuples(*(st.integers(0, 4) for _ in function.kernels)))
    return function._replace(streams=streams)


@given(functions())
def test_an_execution_order_has_each_call_once_and_behind_its_arguments(function):
    ordered = in_execution_order(function)
    assert sorted(call.results for call in ordered.kernels) == sorted(call.results for call in function.kernels)
    program(ordered)  # the verifier looks at uses before definitions


@given(functions(), st.integers(0, 30), st.booleans())
def test_streams_divide_the_calls_and_their_costs(function, threshold, merges):
    streams = analyse_streams(function, threshold, merge_dependent=merges)
    calls = [call for stream in streams for call in stream.calls]
    assert sorted(calls) == [*range(ROOT, len(function.kernels) + 1)]
    assert streams[0].calls[0] == ROOT
    assert [stream.number for stream in streams] == [*range(len(streams))]
    assert all(stream.parent < stream.number for stream in streams[1:])
    cost = sum(call.attrs.get("_tfrt_cost", threshold or 1) for call in function.kernels) + 2
    assert sum(stream.cost for stream in streams) == cost
    assert all(stream.cost >= threshold for stream in streams[1:])


def two_chains(costs):
    """Two chains of calls with these costs, from one argument."""
    b = Body("i32")
    for number, chain in enumerate(costs):
        x = 0
        for index, cost in enumerate(chain):
            x = node(b, f"{number}.{index}", x, cost=cost)
    return b.function("f")


def test_a_side_chain_is_a_stream_when_it_costs_the_threshold():
    dear = analyse_streams(two_chains([(10, 9), (10, 8)]), 18)
    assert [(s.number, s.cost, s.parent) for s in dear] == [(0, 21, None), (1, 18, 0)]
    cheap = analyse_streams(two_chains([(10, 9), (10, 8)]), 19)
    assert [(s.number, s.cost, s.parent) for s in cheap] == [(0, 39, None)]


def test_the_numbers_of_an_analysis_state_the_streams_of_a_function():
    function = two_chains([(10, 9), (10, 8)])
    assert stream_numbers(function) == (0, 0, 0, 0)
    stated = function._replace(streams=stream_numbers(function, 18))
    assert stated.streams == (0, 0, 1, 1)
    assert names(stated) == ["0.0", "0.1", "1.0", "1.1"]


def test_the_default_threshold_is_the_cost_of_the_longest_path():
    assert len(analyse_streams(two_chains([(10, 9), (10, 8)]))) == 1
    assert len(analyse_streams(two_chains([(3,), (2, 2)]))) == 1


def test_cheap_calls_and_calls_without_a_cost():
    b = Body("i32")
    b("tfrt.merge.chains", 0, results=CHAIN)
    b("test.node", 0)
    assert sum(stream.cost for stream in analyse_streams(b.function("f"), 10)) == 1 + 1 + 10 + 1


def test_streams_that_need_values_of_each_other_merge_on_request():
    b = Body("i32")
    node(b, "longest", 0, cost=50)
    left = node(b, "left", 0, cost=20)
    right = node(b, "right", 0, cost=21)
    node(b, "both", left, right, cost=5)  # a child of right
    function = b.function("f")
    assert [s.calls for s in analyse_streams(function, 10)] == [(ROOT, 0, 4), (1,), (2, 3)]
    assert [s.calls for s in analyse_streams(function, 10, merge_dependent=True)] == [(ROOT, 0, 4), (1, 2, 3)]


def test_a_function_states_a_stream_for_each_call_or_for_none():
    b = Body()
    node(b, "a")
    with pytest.raises(InvalidArgument, match="has 1 calls and streams for 2"):
        program(b.function("f")._replace(streams=(0, 0)))


def test_a_long_function_is_ordered_without_recursion():
    b = Body("i32")
    x = 0
    for number in range(20_000):
        x = node(b, number, x)
    assert names(b.function("f", x)) == [*range(20_000)]


def test_a_program_runs_in_this_order(capsys):
    b = Body()
    for value in (1, 2, 3):
        b("tfrt.print.i32", b.constant(value), b.chain(), results=CHAIN)
    host = heald.HostContext(work_queue="single_threaded")
    program(b.function("main")).run("main", request=heald.RequestContext(host))
    assert capsys.readouterr().out == "int32 = 3\nint32 = 2\nint32 = 1\n"
    host.close()
