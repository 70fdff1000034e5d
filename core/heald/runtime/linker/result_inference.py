"""Result inference: facts about the results of calls of functions, derived from the facts about their arguments.

A fact about a loop's variable holds in every iteration: the body keeps it.

A body is linked with its caller for the shapes of the call. Functions that call themselves, and functions that are
nested too deep, are linked when they are first called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ...errors import InvalidArgument
from ..contract.structural import KEEPING_CODES, REDUCTION_CODE
from ..program.host_program import OPAQUE, Call, ProgramDef
from ..support.records import dataclass
from ..values import dtypes
from ..values.dtypes import DType
from ..values.tensor import Shape, TensorMetadata, ValueInfo

MOST_NESTED_LINKS = 8  # nested functions that are linked with their callers
_FEWEST_BODIES = 200  # that one link may link, however few functions the program has
_BODIES_PER_FUNCTION = 2  # that it may link beyond these
_ROUNDS = 2  # iterations in which a loop's variables may lose single dimensions; then they lose their shape


@dataclass
class BodyBudget:
    """The number of bodies that a link may still link with their callers.

    Functions that each call another one twice would have exponentially many.
    """

    left: int

    @classmethod
    def of(cls, program: ProgramDef) -> BodyBudget:
        return cls(_FEWEST_BODIES + _BODIES_PER_FUNCTION * len(program.functions))


class FunctionLink(Protocol):
    """The link of a function for known arguments."""

    @property
    def results(self) -> Sequence[ValueInfo]:
        """The facts about the function's results."""

    @property
    def never_returns(self) -> bool:
        """True for a function whose every call ends with an error."""


LinkBody = Callable[[int, Sequence[ValueInfo]], FunctionLink]  # from its index and facts about its arguments
InferredResults = tuple[list[Any], Sequence[ValueInfo]]  # the links of the functions, and the results
_DONE = ValueInfo(OPAQUE)  # the chain behind the results of functions with effects


def _infer_branches(first: int, call: Call, link_body: LinkBody, inputs: Sequence[ValueInfo]) -> InferredResults:
    bodies = [link_body(index, inputs[first:]) for index in range(len(call.functions))]
    if not bodies:
        raise InvalidArgument(f"{call.code} names no function")
    for name, other in zip(call.functions[1:], bodies[1:], strict=True):
        _check_alike(bodies[0].results, other.results, name)
    returning = [link for link in bodies if not link.never_returns] or bodies
    results = list(returning[0].results)
    for link in returning[1:]:
        results = list(map(common_info, results, link.results))
    return bodies, results


def _infer_loop(
    before: Sequence[ValueInfo], of_body: int, call: Call, link_body: LinkBody, inputs: Sequence[ValueInfo],
    behind: Sequence[ValueInfo] = (), *, has_outputs: bool = False,
) -> tuple[FunctionLink, list[ValueInfo]]:
    """Return the link of a loop's body, and the facts about its variables in every iteration.

    `before`, `behind`: the arguments around the variables, the same facts in every iteration.
    `has_outputs`: the body returns more results between the variables and the chain.
    """
    variables = [ValueInfo(info.meta, handle=info.handle) for info in inputs]
    count = len(variables)
    done = [_DONE] * bool(call.attrs.get("chain"))
    for turn in range(_ROUNDS + count + 1):  # each variable loses its shape once; the last turn changes none
        link = link_body(of_body, [*before, *variables, *behind])
        results = list(link.results)
        if has_outputs:
            results[count : len(results) - len(done)] = []
        _check_alike([*variables, *done], results, call.functions[of_body])
        after = list(map(common_info, variables, results))
        if after == variables or link.never_returns:
            break
        variables = after if turn < _ROUNDS else [
            a if a == b else ValueInfo(TensorMetadata(a.dtype, None)) for a, b in zip(after, variables, strict=True)]
    return link, variables + done


def _check_alike(expected: Sequence[ValueInfo], results: Sequence[ValueInfo], function: str) -> None:
    """Raises InvalidArgument for a function with results of other numbers or types."""
    expected_types, types = ([info.dtype for info in side] for side in (expected, results))
    if types != expected_types:
        raise InvalidArgument(f"function '{function}' returns {dtypes_text(types)}, expected is "
                              f"{dtypes_text(expected_types)}")


def dtypes_text(types: Sequence[DType]) -> str:
    return f"({', '.join(dtype.name for dtype in types)})"


def _infer_call(call: Call, link_body: LinkBody, inputs: Sequence[ValueInfo]) -> InferredResults:
    return _infer_branches(0, call, link_body, inputs)


def _infer_choice(call: Call, link_body: LinkBody, inputs: Sequence[ValueInfo]) -> InferredResults:
    return _infer_branches(1, call, link_body, inputs)


def _infer_while(call: Call, link_body: LinkBody, inputs: Sequence[ValueInfo]) -> InferredResults:
    link, results = _infer_loop((), 1, call, link_body, inputs)
    condition = link_body(0, results[: len(inputs)])
    if not condition.results or condition.results[0].meta is OPAQUE:
        raise InvalidArgument(f"function '{call.functions[0]}' returns no condition")
    return [condition, link], results


def _infer_for(call: Call, link_body: LinkBody, inputs: Sequence[ValueInfo]) -> InferredResults:
    number = ValueInfo(TensorMetadata(dtypes.int32, ()))
    link, results = _infer_loop((number,), 0, call, link_body, inputs[3:])
    return [link], results


def _infer_frame(call: Call, link_body: LinkBody, inputs: Sequence[ValueInfo]) -> InferredResults:
    """Return no facts about the results, the exits of any iteration: a run compares these with their types."""
    varying = [ValueInfo(TensorMetadata(info.dtype, None)) for info in inputs[: call.attrs["variables"]]]
    link = link_body(0, [*varying, *inputs[len(varying):]])
    _check_alike(varying, link.results[: len(varying)], call.functions[0])
    return [link], ()


def _infer_elements(call: Call, link_body: LinkBody, inputs: Sequence[ValueInfo]) -> InferredResults:
    """Link a function of elements for the shapes that the dataset in front states; kernels compare all elements with
    them. A dataset's own facts are those that its call states."""
    attrs, done = call.attrs, [_DONE] * bool(call.attrs.get("chain"))
    stated = tuple(TensorMetadata(dtype, None if shape is None else tuple(shape))
                   for dtype, shape in zip(attrs["output_types"], attrs["output_shapes"], strict=False))
    if not inputs:
        return [link_body(0, ())], [ValueInfo(TensorMetadata(dtypes.resource, ())), *done]
    state = 1 + len(attrs.get("Tstate", ()))
    arguments = inputs[: len(inputs) - attrs.get("trailing", 0)]
    elements, types = inputs[0].handle or (), attrs["element_types"]
    if tuple(element.dtype for element in elements) != tuple(types):
        elements = tuple(TensorMetadata(dtype, None) for dtype in types)
    link, results = _infer_loop((), 0, call, link_body, arguments[1:state],
                                [*map(ValueInfo, elements), *arguments[state:]],
                                has_outputs=call.code != REDUCTION_CODE)
    if call.code != REDUCTION_CODE:
        results = [ValueInfo(TensorMetadata(dtypes.variant, ()), handle=stated), *done]
    return [link], results


RESULT_RULES: Mapping[str, Callable[[Call, LinkBody, Sequence[ValueInfo]], InferredResults]] = {
    "heald.call": _infer_call, "heald.if": _infer_choice, "heald.case": _infer_choice, "heald.while": _infer_while,
    "heald.for": _infer_for, "heald.frame": _infer_frame, **dict.fromkeys(KEEPING_CODES, _infer_elements),
}  # by the code of a call
_FUNCTIONS_THAT_RUN = {"heald.call": (0,), "heald.while": (0,)}  # by the code: functions that each of its runs calls


def may_skip_function(code: str, index: int) -> bool:
    """True when a call with this code may run without its function of this index."""
    return code not in _FUNCTIONS_THAT_RUN or index not in _FUNCTIONS_THAT_RUN[code]


def common_info(a: ValueInfo, b: ValueInfo) -> ValueInfo:
    """Return the facts that hold for both values."""
    return ValueInfo(TensorMetadata(a.dtype, _common_shape(a.shape, b.shape)),
                     handle=a.handle if a.handle == b.handle else None)


def _common_shape(a: Shape, b: Shape) -> Shape:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))
