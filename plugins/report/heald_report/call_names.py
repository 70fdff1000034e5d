"""The nodes of calls inside functions and loops, by the names that calls have in a trace.

A call inside a function has the name of the calling node, the attribute that names the function, and the name of the
node there: `outer/while/body/while/add` is node `while/add` of the function in the attribute `body` of `outer/while`.
Lists of functions have a number, as in `branches_2`. A function that was put in the place of its call lacks the
attribute. Functions call functions, so the rule repeats.

Loops and conditions of TensorFlow 1 have no function. The compiler makes one, beside a node `While`, `If` or `Case` of
its own. The nodes keep their names behind it: `map/while/While/body/map/while/add` is node `map/while/add`. The
compiler's node stands for the loop's LoopCond, or for a Merge of the condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_MADE = r"(?:While|Frame|If|Case)(?:_\d+)?"
_PART = re.compile(rf".*(?:^|/){_MADE}/(?:cond|body|then_branch|else_branch|branch\d+)(?:_\d+)?/", re.DOTALL)
_MADE_NODE = re.compile(rf"(?P<scope>(?:.*/)?){_MADE}", re.DOTALL)
ENDS = ("LoopCond", "Merge", "switch_t")  # a node of the scope that stands for its loop or condition
DEEPEST = 64  # functions in functions


class NamedNodes(NamedTuple):
    """The nodes of the graph, whose function is "", and of functions. `numbers`: by function and name."""

    numbers: Mapping[tuple[str, str], int]
    nodes: Mapping[str, Mapping[str, Any]]


def number_of_call(named: NamedNodes, name: str) -> int:
    """Return the number of the node of a call inside a function or a loop, -1 without one.

    A node that a pass made there counts as the node under whose name it made it."""
    plain_name = _PART.sub("", name, count=1)
    made = _MADE_NODE.fullmatch(plain_name)
    stands = [f"{made['scope']}{end}" for end in ENDS] if made is not None else []
    for candidate in (name, plain_name, *stands, name.rpartition("/")[0], plain_name.rpartition("/")[0]):
        number = _number_inside(named, "", candidate, DEEPEST)
        if number >= 0:
            return number
    return -1


def _number_inside(named: NamedNodes, function: str, name: str, depth: int) -> int:
    """Return the number of the node that a name leads to from a function on."""
    if (function, name) in named.numbers:
        return named.numbers[function, name]
    nodes = named.nodes.get(function, {})
    for caller, rest in _divisions(name) if depth else ():
        if caller in nodes:
            for callee, inner in _callees(nodes[caller], rest):
                number = _number_inside(named, callee, inner, depth - 1)
                if number >= 0:
                    return number
    return -1


def _divisions(name: str) -> Iterator[tuple[str, str]]:
    """Yield the two parts of a name at each slash."""
    parts = name.split("/")
    for count in range(1, len(parts)):
        yield "/".join(parts[:count]), "/".join(parts[count:])


def _callees(node: Any, rest: str) -> Iterator[tuple[str, str]]:
    """Yield the functions that the rest of a name may lead to, and the name there."""
    from heald.api import Func

    part, _, inner = rest.partition("/")
    for key, value in node.attrs.items():
        functions: Sequence[Any] = value if isinstance(value, (list, tuple)) else (value,)
        for number, function in enumerate(functions):
            if isinstance(function, Func):
                if part in (key, f"{key}_{number}"):
                    yield function.name, inner
                yield function.name, rest
