"""Region control flow, which is a form of text: the node in the graph is the functional op.

A node whose attribute `_heald.region` is set is printed as IfRegion, CaseRegion, WhileRegion or ForRegion, unless its
region would lose types (see `region_choice`). Its branches and bodies are functions of the library; the function's own
`_heald.region` has the name that its region shows. Such a function is printed in its region alone, while a region has
it. Values that a region captures are inputs of the node, and arguments of the function. A loop carries them along
unchanged, behind its own values, and its `_heald.region` is their number. So a graph with regions runs, is placed and
is written as a GraphDef like any other. A region that is read from text is the same nodes as its functional form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from heald.api import Node
from heald.graphs.graph import Func, Function

REGION = "_heald.region"
DEEPEST_REGIONS = 48  # of regions within each other


class RegionForm(NamedTuple):
    """The region form of an op.

    `functions`: the attributes that name functions. `regions`: for each the attributes of the text that hold the
    attributes of the call, and those of the function. `leading`: the inputs in front of the functions' arguments.
    `loop`: True where regions have arguments of their own. `implied`: attributes that the types of the text imply.
    """

    functions: tuple[str, ...]
    regions: tuple[tuple[str, str], ...]
    leading: int
    loop: bool
    implied: tuple[str, ...]


_FORMS = {
    "If": RegionForm(("then_branch", "else_branch"), (("then_attrs", "then_region_attrs"),
                                                      ("else_attrs", "else_region_attrs")), 1, False,
                     ("Tcond", "Tin", "Tout")),
    "Case": RegionForm(("branches",), (("branch_attrs", "region_attrs"),), 1, False, ("Tin", "Tout")),
    "While": RegionForm(("cond", "body"), (("cond_attrs", "cond_region_attrs"), ("body_attrs", "body_region_attrs")), 0,
                        True, ("T",)),
    "For": RegionForm(("body",), (("body_attrs", "region_attrs"),), 3, True, ("T",)),
}
FORMS: Mapping[str, RegionForm] = {
    f"{kind}{op}": form for op, form in _FORMS.items() for kind in ("", "Stateless", "Stateful")
    if op != "For" or not kind}
REGION_OPS = frozenset(f"{op}Region" for op in FORMS)
OUTPUT_SHAPES = "output_shapes"  # TensorFlow's regions do not have it


def is_region(node: Node) -> bool:
    """True for a control flow node that is marked as one with regions."""
    return node.op in FORMS and REGION in node.attrs


def captured_values(node: Node) -> int:
    """The number of values that a loop's regions capture, as its mark says. They are its last inputs."""
    value = node.attrs.get(REGION)
    largest = len(node.inputs) - FORMS[node.op].leading
    return value if FORMS[node.op].loop and type(value) is int and 0 < value <= largest else 0


def called_functions(node: Node) -> list[Func]:
    """The functions that a control flow node calls, in the order of its regions."""
    functions: list[Any] = []
    for name in FORMS[node.op].functions:
        value = node.attrs.get(name)
        functions += value if isinstance(value, tuple) else [value]
    return [function for function in functions if isinstance(function, Func)]


def shown_name(function: Function) -> str:
    """The name that a region shows for its function."""
    value = function.attrs.get(REGION)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) and value else function.name


class FunctionNames:
    """The names of a graph's functions, to which new ones are added."""

    def __init__(self, names: Iterable[str]) -> None:
        self._used_names = set(names)
        self._numbers: dict[str, int] = {}  # name -> the least number that may be free behind it

    def new(self, name: str) -> str:
        """Add the name or, when it is taken, that name with a number from 0 on. Return the added name."""
        free_name, number = name, self._numbers.get(name, 0)
        while free_name in self._used_names:
            free_name, number = f"{name}_{number}", number + 1
        self._numbers[name] = number
        self._used_names.add(free_name)
        return free_name
