"""Groups: a body holds exactly the calls of its nodes, and splicing gives the function back."""

from __future__ import annotations

from graphlib import TopologicalSorter
from itertools import pairwise

import pytest
from heald.errors import InvalidArgument
from heald.runtime.program.groups import escape, outline, splice, split
from heald.runtime.program.host_program import GROUP, Call, ProgramDef, ProgramFunction
from heald.runtime.program.verifier import verify
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from hypothesis import given
from hypothesis import strategies as st

FLOATS = TensorMetadata(dtypes.float32, (2,))


def program_function(edges: dict[int, tuple[tuple[int, ...], tuple[int, ...]]], results: tuple[int, ...]):
    """One argument, register 0; node nI fills register I from arguments and behind control edges."""
    calls = tuple(Call("cpu.AddN", args, (number,), {}, 0, f"n{number}", after=after)
                  for number, (args, after) in edges.items())
    return ProgramFunction("main", ("x",), (FLOATS,) * (len(edges) + 1), calls, results)


@st.composite
def functions(draw):
    count = draw(st.integers(2, 14))
    earlier = {number: st.integers(0, number - 1) for number in range(1, count + 1)}
    edges = {number: (tuple(draw(st.lists(registers, min_size=1, max_size=3))),
                      tuple(draw(st.lists(registers, max_size=2)))) for number, registers in earlier.items()}
    results = tuple(draw(st.lists(st.integers(1, count), min_size=1, max_size=3, unique=True)))
    chosen = draw(st.sets(st.integers(1, count), min_size=1))
    return program_function(edges, results), {f"n{number}" for number in chosen}


def edges_of(function: ProgramFunction) -> dict[str, tuple[list[str], list[str], list[str]]]:
    """By node: code, and the nodes behind its arguments and control edges."""
    producer = {r: call.node for call in function.kernels for r in call.gives}
    producer |= {r: f"argument {r}" for r in range(len(function.arg_names))}
    return {call.node: (call.code, [producer[r] for r in call.args], [producer[r] for r in call.after])
            for call in function.kernels}


@given(functions())
def test_split_makes_groups_that_never_wait_for_each_other_and_splicing_them_changes_no_edge(drawn):
    function, nodes = drawn
    groups = split(function, nodes)
    assert sorted(node for group in groups for node in group) == sorted(nodes)
    outlined, bodies = function, {}
    for number, group in enumerate(groups):
        assert not escape(outlined, group)
        outlined, body = outline(outlined, group, "tiny", f"group{number}", f"body{number}")
        bodies[body.name] = body
        assert {call.node for call in body.kernels} == set(group)
    verify(ProgramDef({"main": outlined, **bodies}, (), ("CPU:0",)))
    spliced, found = splice(outlined, bodies)
    verify(ProgramDef({"main": spliced}, (), ("CPU:0",)))
    assert edges_of(spliced) == edges_of(function)
    assert [group.name for group in found] == [call.attrs["group"] for call in outlined.kernels if call.code == GROUP]
    producers = [{call.node for r in of.results for call in of.kernels if r in call.gives}
                 for of in (spliced, function)]
    assert producers[0] == producers[1]


@given(functions())
def test_escape_finds_a_path_exactly_where_a_group_would_wait_for_itself(drawn):
    function, nodes = drawn
    edges = {node: set(args + after) for node, (_, args, after) in edges_of(function).items()}
    merged: dict[str, set[str]] = {}
    for node, sources in edges.items():
        name = "group" if node in nodes else node
        merged.setdefault(name, set()).update("group" if source in nodes else source for source in sources)
    merged["group"].discard("group")
    try:
        tuple(TopologicalSorter(merged).static_order())
        is_convex = True
    except ValueError:
        is_convex = False
    path = escape(function, nodes)
    assert is_convex is not bool(path)
    if path:
        assert {path[0], path[-1]} <= nodes
        assert nodes.isdisjoint(path[1:-1])
        assert all(before in edges[after] for before, after in pairwise(path))


FUNCTION = program_function({1: ((0,), ()), 2: ((1,), (1,)), 3: ((1, 2), ())}, (3,))
OUTLINED, BODY = outline(FUNCTION, {"n1", "n2"}, "tiny", "group0", "body")
GROUP_CALL = next(call for call in OUTLINED.kernels if call.code == GROUP)
HOST_CALL = Call("tfrt.add.i32", (0, 0), (1,))
WRONG = {
    "no compiler": (GROUP_CALL._replace(attrs={"group": "group0"}), BODY, "None as attribute 'compiler'"),
    "a number for a group": (GROUP_CALL._replace(attrs={"compiler": "tiny", "group": 3}), BODY,
                             "3 as attribute 'group'"),
    "a control edge": (GROUP_CALL._replace(after=(0,)), BODY, "has control edges"),
    "a chain": (GROUP_CALL._replace(results=(), chain=2), BODY, "has control edges"),
    "no function": (GROUP_CALL._replace(functions=()), BODY, "names 0 functions"),
    "a host kernel": (GROUP_CALL, BODY._replace(kernels=(HOST_CALL, BODY.kernels[1])), "has the call tfrt.add.i32"),
    "itself": (GROUP_CALL, BODY._replace(kernels=(GROUP_CALL._replace(functions=("body",)),)), "has the call heald.gr"),
    "another device": (GROUP_CALL, BODY._replace(kernels=tuple(call._replace(stream=1) for call in BODY.kernels)),
                       "has the call cpu.AddN"),
    "one value twice": (GROUP_CALL, BODY._replace(results=(1, 1)), "returns an argument, or one value twice"),
    "an argument": (GROUP_CALL, BODY._replace(results=(0, 2)), "returns an argument, or one value twice"),
    "too few arguments": (GROUP_CALL._replace(args=()), BODY, "has arguments of the types"),
    "another type": (GROUP_CALL, BODY._replace(register_types=(TensorMetadata(dtypes.int32, ()),) * 3),
                     "has arguments of the types float32, the function 'body' has int32"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_group_that_does_not_fit_its_call_is_refused(name):
    call, body, text = WRONG[name]
    function = OUTLINED._replace(kernels=tuple(call if other is GROUP_CALL else other for other in OUTLINED.kernels))
    with pytest.raises(InvalidArgument, match="the call of heald.group") as caught:
        splice(function, {"body": body})
    assert text in caught.value.message


def test_nodes_of_one_name_are_told_apart():
    body = BODY._replace(kernels=tuple(call._replace(node="n3") for call in BODY.kernels))
    spliced, _ = splice(OUTLINED, {"body": body})
    assert [call.node for call in spliced.kernels] == ["body/n3", "body/body/n3", "n3"]


def test_a_function_without_groups_is_the_same_object():
    assert splice(FUNCTION, {}) == (FUNCTION, ())
    assert splice(FUNCTION, {})[0] is FUNCTION
