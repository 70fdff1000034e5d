"""Following: what is known of the results of calls of functions, from what is known of their arguments.

A loop's variables are described by the facts that hold in every iteration: those that the body keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..values import dtypes
from ..values.tensor import Shape, TensorMetadata, ValueInfo

DEEPEST_LINK = 8  # nested functions that are linked with their callers
_ROUNDS = 2  # iterations in which a loop's variables may lose single dimensions; then they lose their shape



class FunctionLink(Protocol):
    """The link of a function for known arguments."""

    @property
    def results(self) -> Sequence[ValueInfo]:
        """The facts about the function's results."""


BodyOf = Callable[[int, Sequence[ValueInfo]], FunctionLink]  # index of a function and facts about its arguments
Followed = tuple[list[Any], Sequence[ValueInfo]]  # the links of the functions, and the results


def _branches(first: int, count: int, body: BodyOf, inputs: Sequence[ValueInfo]) -> Followed:
    bodies = [body(index, inputs[first:]) for index in range(count)]
    results = bodies[0].results
    for other in bodies[1:]:
        results = [common(a, b) for a, b in zip(results, other.results, strict=True)]
    return bodies, results


def _loop(before: Sequence[ValueInfo], of_body: int, body: BodyOf, inputs: Sequence[ValueInfo]) -> tuple[
        FunctionLink, list[ValueInfo]]:
    """Return the link of a loop's body, and the facts about its variables in every iteration."""
    variables = [ValueInfo(info.meta, handle=info.handle) for info in inputs]
    for turn in range(_ROUNDS + len(variables)):
        link = body(of_body, [*before, *variables])
        after = [common(a, b) for a, b in zip(variables, link.results, strict=False)]
        if after == variables:
            break
        variables = after if turn < _ROUNDS else [
            a if a == b else ValueInfo(TensorMetadata(a.dtype, None)) for a, b in zip(after, variables, strict=True)]
    return link, variables


def _call(body: BodyOf, inputs: Sequence[ValueInfo], count: int) -> Followed:
    return _branches(0, count, body, inputs)


def _choice(body: BodyOf, inputs: Sequence[ValueInfo], count: int) -> Followed:
    return _branches(1, count, body, inputs)


def _while(body: BodyOf, inputs: Sequence[ValueInfo], _: int) -> Followed:
    link, variables = _loop((), 1, body, inputs)
    return [body(0, variables), link], variables


def _for(body: BodyOf, inputs: Sequence[ValueInfo], _: int) -> Followed:
    number = ValueInfo(TensorMetadata(dtypes.int32, ()))
    link, variables = _loop((number,), 0, body, inputs[3:])
    return [link], variables


def _frame(body: BodyOf, inputs: Sequence[ValueInfo], _: int) -> Followed:
    link = body(0, [ValueInfo(TensorMetadata(info.dtype, None)) for info in inputs])
    return [link], ()


FOLLOWED: Mapping[str, Callable[[BodyOf, Sequence[ValueInfo], int], Followed]] = {
    "heald.call": _call, "heald.if": _choice, "heald.case": _choice, "heald.while": _while, "heald.for": _for,
    "heald.frame": _frame,
}  # by the code of a call; the last argument is the number of its functions


def common(a: ValueInfo, b: ValueInfo) -> ValueInfo:
    """Return the facts that hold for both values."""
    return ValueInfo(TensorMetadata(a.dtype, _common_shape(a.shape, b.shape)),
                     handle=a.handle if a.handle == b.handle else None)


def _common_shape(a: Shape, b: Shape) -> Shape:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))
