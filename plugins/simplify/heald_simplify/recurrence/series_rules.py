"""Rules of ops on lists, arrays, masks and counters."""

from __future__ import annotations

from dataclasses import replace

from heald.api import Resolved

from .body import UNKNOWN, BodyEvaluation, RuleTable, fits_shape
from .body_values import (
    Bound,
    Condition,
    Counter,
    Ended,
    Integers,
    Invariant,
    Mask,
    Matrix,
    OutputList,
    Scalar,
    Selected,
    Value,
    Values,
    WrittenList,
)
from .polynomials import Source

RULES = RuleTable()


@RULES.rule("TensorListGetItem")
def _get_item(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    handle, step, shape = inputs
    if not isinstance(handle, Invariant) or not isinstance(step, Counter) or not isinstance(shape, Integers):
        return UNKNOWN
    if not fits_shape(shape.value, body.item_shape(handle.index)):
        return UNKNOWN
    if entry.attrs["element_dtype"].name == "bool":
        return (Mask(handle.index, 1),)
    return (body.item(handle.index),)


@RULES.rule("TensorArrayReadV3")
def _read_array(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    handle, step, flow = inputs
    if not isinstance(handle, Invariant) or not isinstance(step, Counter) or not isinstance(flow, Source):
        return UNKNOWN
    return (body.item(handle.index),) if body.outside.input_flow(handle.tensor) == flow.tensor else UNKNOWN


@RULES.rule("TensorArrayWriteV3")
def _write_array(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    handle, step, element, flow = inputs
    if not isinstance(handle, Invariant) or not isinstance(flow, OutputList) or handle.tensor != flow.array:
        return UNKNOWN
    if not isinstance(step, Counter) or not isinstance(element, Matrix | Selected):
        return UNKNOWN
    return (WrittenList(flow.index, at_step=True, element=element),)


@RULES.rule("TensorListSetItem")
def _set_item(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    handle, step, element = inputs
    is_first = isinstance(step, Integers) and step.value.ndim == 0 and int(step.value) == 0
    if not isinstance(handle, OutputList) or not isinstance(element, Matrix | Selected):
        return UNKNOWN
    return (WrittenList(handle.index, not is_first, element),) if is_first or isinstance(step, Counter) else UNKNOWN


@RULES.rule("Tile")
def _tile(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    mask, multiples = inputs
    if not isinstance(mask, Mask) or mask.width != 1 or not isinstance(multiples, Integers):
        return UNKNOWN
    counts = multiples.value.tolist()
    return (replace(mask, width=counts[1]),) if len(multiples.value) == 2 and counts[0] == 1 else UNKNOWN


@RULES.rule("SelectV2", "Select")
def _select(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    mask, new, old = inputs
    is_by_row = entry.op.name == "Select"  # with a vector; it broadcasts nothing
    if isinstance(mask, Ended) and is_by_row:
        mask, new, old = Mask(mask.index, 1, is_of_lengths=True), old, new
    if not isinstance(mask, Mask) or not isinstance(new, Matrix) or new.is_row:
        return UNKNOWN
    if not mask.is_of_lengths and mask.width != new.width and (mask.width != 1 or is_by_row):
        return UNKNOWN
    mask = replace(mask, width=1)
    if _are_zeros(body, old, new.width, may_broadcast=not is_by_row):
        return (Selected(mask, new, None),)
    if not isinstance(old, Matrix) or old.is_row or old.width != new.width:
        return UNKNOWN
    return (Selected(mask, new, old),)


def _are_zeros(body: BodyEvaluation, value: Value | None, width: int, *, may_broadcast: bool) -> bool:
    """True for zeros in the place of a matrix. The rows of a matrix of zeros are compared with the others later."""
    if isinstance(value, Scalar):
        return may_broadcast and not value.value
    if not isinstance(value, Source) or value.is_variable:
        return False
    width_of_zeros = body.outside.width_of_zeros(value.tensor)
    body.zeros.add(value.tensor)
    return width_of_zeros == width or (may_broadcast and width_of_zeros == 1)


@RULES.rule("GreaterEqual")
def _not_less(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    counter, lengths = inputs
    if not isinstance(counter, Counter) or not isinstance(lengths, Invariant | Integers) or lengths.index is None:
        return UNKNOWN
    return (Ended(lengths.index),)


@RULES.rule("Less")
def _less(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    counter, steps = inputs
    if not isinstance(counter, Counter):
        return UNKNOWN
    if isinstance(steps, Integers) and steps.value.ndim == 0:
        return (Condition((Bound(counter.index, int(steps.value)),)),)
    return (Condition((Bound(counter.index, steps.tensor),)),) if isinstance(steps, Invariant) else UNKNOWN


@RULES.rule("LogicalAnd")
def _and(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    bounds = [bound for part in inputs if isinstance(part, Condition) for bound in part.bounds]
    return (Condition(tuple(bounds)),) if all(isinstance(part, Condition) for part in inputs) else UNKNOWN
