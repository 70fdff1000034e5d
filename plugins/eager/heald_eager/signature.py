"""Signatures: match the inputs and attributes of a call with the op's declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import DType, OpAttrs, OpDef, TensorMetadata, TensorValue, dtypes
from heald.errors import InvalidArgument, Unimplemented, callers_code, closest
from heald.runtime.contract import GRAPH_DEF_VERSION, REQUIRED, ArgDef, AttrDef, convert_attribute
from heald.runtime.service import convert_feed

from .handle_state import Failed, Ready
from .tensor_handle import TensorHandle

_KINDS = {"b": dtypes.bool_, "f": dtypes.float32, "c": dtypes.complex128, "S": dtypes.string, "U": dtypes.string,
          "O": dtypes.string}
_INT32 = np.iinfo(np.int32)
NO_ATTRS = OpAttrs()
LARGEST_MEMO_MATCHES = 4096


class MatchedCall(NamedTuple):
    """A call that fits its op.

    `inputs`: a handle or an array for each tensor.
    `borrowed`: indices of the arrays whose memory may be the caller's.
    `types`: the element type of each tensor.
    """

    inputs: list[Any]
    attrs: OpAttrs
    borrowed: frozenset[int]
    types: list[DType]


def match(op: OpDef, inputs: Sequence[Any], attrs: OpAttrs) -> MatchedCall:
    """Match the inputs and attributes of a call with the op.

    Type attributes come from the inputs' types, numbers from their counts. A Python number takes the type of the
    tensors that it is combined with. Raises InvalidArgument for inputs and attributes that do not fit, Unimplemented
    for a deprecated op and for one on references.
    """
    if op.deprecated is not None and op.deprecated <= GRAPH_DEF_VERSION:
        raise Unimplemented(f"op {op.name} is deprecated since GraphDef version {op.deprecated}")
    _check_references(op)
    checked_attrs = _checked_attributes(op, attrs)
    groups = _inputs_by_argument(op, inputs, checked_attrs)
    values = [[_input_array(value, arg) for value in group] for arg, group in zip(op.inputs, groups, strict=True)]
    for arg, group in zip(op.inputs, values, strict=True):
        _add_count(arg, group, checked_attrs)
    for typed in (TensorHandle, np.ndarray | np.generic):  # a handle's type counts more: arrays may be converted
        for arg, group in zip(op.inputs, values, strict=True):
            _add_type(arg, [x for x in group if isinstance(x, typed)], checked_attrs)
    full = _complete_attributes(op, attrs, checked_attrs, values)
    flat = [value for group in values for value in group]
    op.check_outputs(full)
    tensor_args = op.expand_inputs(full)
    converted = [convert_input(value, tensor.dtype, tensor.arg)
                 for value, tensor in zip(flat, tensor_args, strict=True)]
    original = [value for group in groups for value in group]
    borrowed = frozenset(i for i, (x, given_value) in enumerate(zip(converted, original, strict=True))
                         if not isinstance(x, TensorHandle) and not isinstance(given_value, int | float | list))
    return MatchedCall(converted, full, borrowed, [tensor.dtype for tensor in tensor_args])


def are_keys(op: OpDef, attrs: Mapping[str, Any] | None) -> bool:
    """True when attributes that equal these, as Python compares them, mean the same. 0.0 equals -0.0, and the tensors
    of 1, 1.0 and True differ in type."""
    for name, value in (attrs or {}).items():
        kind = op.attrs[name].type if name in op.attrs else ""
        values = value if isinstance(value, tuple) else (value,)
        if "tensor" in kind or ("float" in kind and any(element == 0 for element in values)):
            return False
    return True


class MatchMemo:
    """Matches of one runtime: calls of handles alone are matched once for equal types and attributes.

    Any thread may call: each change is one step.
    """

    def __init__(self) -> None:
        self._matches: dict[tuple[Any, ...], MatchedCall] = {}  # without inputs

    def match(self, op: OpDef, inputs: Sequence[Any], attrs: Mapping[str, Any] | None) -> MatchedCall:
        """As `match`."""
        key = None
        if all(x.__class__ is TensorHandle for x in inputs):
            try:
                key = (op.name, *[x._kind.meta.dtype for x in inputs], *(attrs.items() if attrs else ()))
                memoized = self._matches.get(key)
            except (AttributeError, TypeError):  # a failed handle, no mapping, or an attribute without a hash
                key = memoized = None
            if memoized is not None:
                return memoized._replace(inputs=[*inputs])
        matched = match(op, inputs, OpAttrs(attrs) if attrs else NO_ATTRS)
        if key is not None and are_keys(op, attrs):
            if len(self._matches) >= LARGEST_MEMO_MATCHES:
                self._matches.clear()
            self._matches[key] = matched._replace(inputs=[])
        return matched


def constant_types(op: OpDef) -> dict[str, str]:
    """The type attributes of an op's outputs that its one tensor attribute determines: `{type attribute: tensor}`."""
    tensors = [name for name, attr in op.attrs.items() if attr.type == "tensor"]
    output_types = {arg.type_attr for arg in op.outputs} - {arg.type_attr for arg in op.inputs} - {None}
    return {name: tensors[0] for name in output_types if name is not None and len(tensors) == 1}


def inferred_attributes(op: OpDef) -> frozenset[str | None]:
    """The attributes that inputs and tensor attributes determine."""
    return frozenset({name for arg in op.inputs for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
                     | constant_types(op).keys())


def natural_dtype(value: Any) -> DType:
    """The type of a Python number, text or nested list, as TensorFlow chooses it: int32 where the integers fit, float32
    for floats. Raises InvalidArgument for other objects."""
    with callers_code(f"this {type(value).__name__} is no tensor"):
        array = np.asarray(value)
    kind = array.dtype.kind
    if kind in "iu":
        fits = not array.size or (array.min() >= _INT32.min and array.max() <= _INT32.max)
        return dtypes.int32 if fits else dtypes.of_numpy(array.dtype)
    if kind == "O" and not all(isinstance(x, str | bytes) for x in array.reshape(-1)):
        raise InvalidArgument(f"this {type(value).__name__} is no tensor",
                              hint="give a handle, an array, a number, a text, or lists of equal lengths of these")
    return _KINDS[kind]


def array_like(value: Any, what: str) -> Any:
    """Return handles, arrays, and Python's numbers, texts and lists as they are; every other object as an array.

    Raises InvalidArgument for an object that is no tensor.
    """
    if isinstance(value, TensorHandle | np.ndarray | np.generic | bool | int | float | complex | str | bytes | list
                  | tuple):
        return value
    with callers_code(f"{what} is a {type(value).__name__}, and cannot be read as an array"):
        if isinstance(value, TensorValue):
            return value.array()
        array = np.asarray(value) if hasattr(value, "__array__") or hasattr(value, "__array_interface__") else (
            np.from_dlpack(value) if hasattr(value, "__dlpack__") else None)
    if array is None:
        raise InvalidArgument(f"{what} is a {type(value).__name__}, which is no tensor",
                              hint="give a TensorHandle, an array, a number, or an object with DLPack")
    return array


def _input_array(value: Any, arg: ArgDef) -> Any:
    return array_like(value, f"input '{arg.name}'")


def _checked_attributes(op: OpDef, attrs: OpAttrs) -> dict[str, Any]:
    """The given attributes in the form that kernels see. Raises InvalidArgument for an unknown or a wrong one."""
    checked_attrs: dict[str, Any] = {}
    for name, value in attrs.items():
        declared = op.attrs.get(name)
        if declared is not None:
            checked_attrs[name] = convert_attribute(declared, value)
        elif not name.startswith("_"):
            similar = closest(name, op.attrs)
            is_input = any(arg.name == name for arg in op.inputs)
            raise InvalidArgument(f"op {op.name} has no attribute '{name}'", hint=(
                f"'{name}' is an input: give inputs by position" if is_input
                else f"did you mean {similar[0]}?" if similar else f"its attributes: {', '.join(op.attrs) or 'none'}"))
    return checked_attrs


def _inputs_by_argument(op: OpDef, inputs: Sequence[Any], checked_attrs: Mapping[str, Any]) -> list[list[Any]]:
    """The inputs by argument. A list argument is given as a list, or spread where its length is clear."""
    args = op.inputs
    several = [i for i, arg in enumerate(args) if arg.number_attr is not None or arg.type_list_attr is not None]
    if len(inputs) == len(args) and all(isinstance(inputs[i], list | tuple) for i in several):
        return [list(value) if i in several else [value] for i, value in enumerate(inputs)]
    is_clear = True
    if len(several) == 1 and len(inputs) >= len(args) - 1:
        counts = [len(inputs) - len(args) + 1 if i in several else 1 for i in range(len(args))]
    elif several and all((args[i].number_attr or args[i].type_list_attr) in checked_attrs for i in several):
        counts = [arg.count(checked_attrs) for arg in args]
    else:
        counts = [1] * len(args)
        is_clear = not several
    if sum(counts) != len(inputs) or not is_clear:
        names = ", ".join(f"{arg.name}[]" if i in several else arg.name for i, arg in enumerate(args))
        raise InvalidArgument(f"op {op.name} takes {len(args)} inputs ({names}), {len(inputs)} were given",
                              hint="give a list for each argument that stands for several tensors" if several else None)
    positions = iter(inputs)
    return [[next(positions) for _ in range(count)] for count in counts]


def _add_count(arg: ArgDef, group: Sequence[Any], checked_attrs: dict[str, Any]) -> None:
    """Add the number, or the types, of the tensors of a list argument. Raises InvalidArgument for another number."""
    if arg.type_list_attr is not None:
        checked_attrs.setdefault(arg.type_list_attr, tuple([_dtype_of(x) or natural_dtype(x) for x in group]))
    if arg.number_attr is not None:
        number = checked_attrs.setdefault(arg.number_attr, len(group))
        if number != len(group):
            raise InvalidArgument(f"attribute '{arg.number_attr}' is {number}, but '{arg.name}' or another argument of "
                                  f"that many tensors has {len(group)}")


def _add_type(arg: ArgDef, group: Sequence[Any], checked_attrs: dict[str, Any]) -> None:
    """Add the type attribute that the first of these tensors determines."""
    if arg.type_attr is not None and arg.type_attr not in checked_attrs:
        known_types = [dtype for x in group if (dtype := _dtype_of(x)) is not None]
        if known_types:
            checked_attrs[arg.type_attr] = known_types[0]


def _complete_attributes(
    op: OpDef, attrs: OpAttrs, checked_attrs: dict[str, Any], values: Sequence[Sequence[Any]]
) -> OpAttrs:
    """Every attribute of the op: given, inferred, or its default. Raises InvalidArgument for a missing one."""
    for arg, group in zip(op.inputs, values, strict=True):
        if arg.type_attr is not None and arg.type_attr not in checked_attrs:
            declared = op.attrs[arg.type_attr]
            if declared.default is not REQUIRED:
                checked_attrs[arg.type_attr] = declared.default
            elif any(isinstance(x, TensorHandle) for x in group):  # errors: the type does not matter
                checked_attrs[arg.type_attr] = (declared.allowed or (dtypes.float32,))[0]
            elif group:
                checked_attrs[arg.type_attr] = _allowed_type(natural_dtype(group[0]), declared)
    full: dict[str, Any] = {}
    for name, declared in op.attrs.items():
        if name in checked_attrs:
            full[name] = checked_attrs[name] if name in attrs else convert_attribute(declared, checked_attrs[name])
        elif declared.default is REQUIRED:
            raise InvalidArgument(f"attribute '{name}' ({declared.type}) of op {op.name} is missing",
                                  hint=f"attrs={{'{name}': ...}}")
        else:
            full[name] = declared.default
    return OpAttrs(full)


def _allowed_type(natural: DType, declared: AttrDef) -> DType:
    """The natural type, or the first allowed one of its kind."""
    if declared.allowed is None or natural in declared.allowed:
        return natural
    return next((dtype for dtype in declared.allowed if dtype.kind == natural.kind), natural)


def _dtype_of(value: Any) -> DType | None:
    """The type of a handle or array; None for Python's objects and for a handle that is an error."""
    if isinstance(value, TensorHandle):
        state = value._current()
        if isinstance(state, Failed):
            return None
        return state.kind.meta.dtype if isinstance(state, Ready) else state.meta.dtype
    if isinstance(value, np.ndarray | np.generic):
        return dtypes.of_numpy(value.dtype.newbyteorder("="))
    return None


def convert_input(value: Any, dtype: DType, name: str) -> Any:
    """The handle itself, or the value as an array of this type. Raises InvalidArgument for another type."""
    if not isinstance(value, TensorHandle):
        if dtype.kind == "o" and dtype is not dtypes.string and isinstance(value, np.ndarray):
            return value
        return convert_feed(value, TensorMetadata(dtype, None), name, what="input")
    actual = _dtype_of(value)
    if actual is not None and actual is not dtype:
        raise InvalidArgument(f"input '{name}' must be {dtype.name}, but it is {actual.name}",
                              hint=f"cast it first: the tensor's type is never changed to {dtype.name} silently")
    return value


def _check_references(op: OpDef) -> None:
    for arg in (*op.inputs, *op.outputs):
        if arg.is_ref:
            raise Unimplemented(f"op {op.name} works on references ('{arg.name}'), which no tensor is",
                                hint="use the op's form for resources")


