"""Regions and names of a small file are as few as the calls that are inlined would be."""

from __future__ import annotations

import heald
import pytest
from builders.control_flow import branch, case, function, loop
from builders.graphs import const, node, placeholder
from heald.errors import ResourceExhausted
from heald.graphs.graph.graph import Graph
from heald.runtime.values import dtypes
from heald_mlir.tfg.regions.region_forms import FunctionNames

DEPTH = 25
FORMS = {
    "If": lambda after: [branch("c", "a", after, after, "a", of=dtypes.float32)],
    "Case": lambda after: [const("i", 0, "int32"), case("c", "i:output:0", [after, after], "a")],
    "two Ifs": lambda after: [branch("b", "a", after, "last", "a", of=dtypes.float32),
                              branch("c", "b:output:0", after, "last", "b:output:0", of=dtypes.float32)],
    "While": lambda after: [loop("c", after, after, "a")],
}


def nest(form, depth):
    functions = [function(f"f{i}", "a", form(f"f{i + 1}" if i + 1 < depth else "last"), {"r": "c:output:0"})
                 for i in range(depth)]
    last = function("last", "a", [node("y", "Neg", "a")], {"r": "y:y:0"})
    return Graph([placeholder("x", ()), branch("y", "x", "f0", "last", "x", of=dtypes.float32)], [*functions, last])


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_functions_that_each_have_the_next_one_twice_are_refused(form):
    with pytest.raises(ResourceExhausted, match="expand to more than 20,000 nodes") as caught:
        heald.tfg.functional_to_region(nest(form, DEPTH))
    assert caught.value.op is not None


@pytest.mark.parametrize("form", ["If", "Case", "two Ifs"])
def test_a_few_levels_become_regions(form):
    graph = heald.tfg.functional_to_region(nest(FORMS[form], 5))
    again = heald.tfg.loads(heald.tfg.dumps(graph), verify=False)  # the conditions are floats
    assert heald.tfg.dumps(again) == heald.tfg.dumps(graph)
    assert len(graph.functions) > 2**5


def test_a_chain_of_functions_becomes_nested_regions():
    chain = nest(lambda after: [branch("c", "a", after, "last", "a", of=dtypes.float32)], 40)
    regions = 2 * 41 + sum(2 * (40 - i) for i in range(40))  # within the graph's node, and within each function
    assert len(heald.tfg.functional_to_region(chain).functions) == len(chain.functions) + regions


class Name(str):
    """A name that counts the texts which are made of it."""

    texts = 0
    __slots__ = ()

    def __format__(self, form):
        Name.texts += 1
        return str.__format__(self, form)


def test_equal_names_are_numbered_without_a_search():
    names = FunctionNames(["f", "f_1"])
    assert [names.new(Name("f")) for _ in range(200)] == [f"f_{n}" for n in range(201) if n != 1]
    assert Name.texts <= 202
