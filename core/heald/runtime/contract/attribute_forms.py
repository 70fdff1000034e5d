"""The values of attributes as users write them, and as kernels see them.

    declared      accepted                                             kernels see
    string        str, bytes                                           str
    int, float    Python's and NumPy's numbers; an int as a float      int, float
    bool          Python's and NumPy's booleans                        bool
    type          a DType, its name, a NumPy dtype or scalar type      DType
    shape         a tuple or list of sizes, None or -1 for unknown     ShapeAttr, None for an unknown rank
    tensor        an array, a number, a text, a TensorValue            TensorValue
    func          a function's name, a Func                            Func
    list(...)     a tuple or list of these                             tuple
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...errors import HealdError, InvalidArgument, closest
from ..support.records import NamedTuple
from ..values import dtypes
from ..values.attribute_values import Func, ShapeAttr, as_shape
from ..values.dtypes import DType
from .op import REQUIRED, AttrDef, Attrs, OpDef, attr_text


def check_attributes(op: OpDef, attributes: Attrs) -> dict[str, Any]:
    """Return all declared attributes of an op in the forms that kernels see, defaults included.

    Raises InvalidArgument for a missing or unknown attribute, and for a value that its declaration excludes. Names that
    begin with "_" are notes, and are left out.
    """
    attrs: dict[str, Any] = {}
    for name, declared in op.attrs.items():
        if name in attributes:
            attrs[name] = _convert_of_op(op, declared, attributes[name])
        elif declared.default is REQUIRED:
            raise InvalidArgument(f"attribute '{name}' ({declared.type}) of op {op.name} is missing")
        else:
            attrs[name] = declared.default
    for name in attributes:
        if name not in attrs and not name.startswith("_"):
            raise InvalidArgument(f"op {op.name} has no attribute '{name}'", hint=partial(_nearest, name, op))
    return attrs


def _nearest(attribute: str, op: OpDef) -> str:
    similar_names = closest(attribute, op.attrs)
    return f"did you mean {similar_names[0]}?" if similar_names else "a newer TensorFlow may have written it"


def _convert_of_op(op: OpDef, declared: AttrDef, value: Any) -> Any:
    try:
        return convert_attribute(declared, value)
    except HealdError as error:
        raise error.at(op=op.name) from None


def convert_attribute(declared: AttrDef, value: Any) -> Any:
    """Convert an attribute's value to the form that kernels see.

    Raises InvalidArgument when the declaration excludes it.
    """
    kind = declared.type
    if kind.startswith("list("):
        if not isinstance(value, list | tuple) or isinstance(value, ShapeAttr):
            raise _wrong(declared, value)
        result: Any = tuple([_convert_kind(declared, kind[5:-1], element) for element in value])
        least: int | None = len(result)
    else:
        result = _convert_kind(declared, kind, value)
        least = result if kind == "int" else None
    if declared.minimum is not None and least is not None and least < declared.minimum:
        what = "has" if kind.startswith("list(") else "is"
        raise InvalidArgument(f"attribute '{declared.name}' {what} {least}, less than {declared.minimum}")
    if declared.allowed is not None:
        for item in result if isinstance(result, tuple) else (result,):
            if item not in declared.allowed:
                raise InvalidArgument(f"attribute '{declared.name}' is {attr_text(item)}, which is not among "
                                      f"{attr_text(declared.allowed)}")
    return result


def _convert_kind(declared: AttrDef, kind: str, value: Any) -> Any:
    form = _FORMS[kind]
    if type(value) is form.type:
        return value
    if hasattr(value, "__array__") and hasattr(value, "item") and value.shape == ():
        value = value.item()  # a scalar of NumPy
    try:
        result = form.convert(value)
    except HealdError as error:
        raise _wrong(declared, value, error) from None
    if result is _NO_FORM:
        raise _wrong(declared, value)
    return result


def _wrong(declared: AttrDef, value: Any, cause: HealdError | None = None) -> InvalidArgument:
    kind = declared.type
    expected = _FORMS[kind.removeprefix("list(").removesuffix(")")].expected
    text = f"attribute '{declared.name}' must be {kind}, it is the {type(value).__name__} {attr_text(value):.200}"
    hint = f"give {'a list; an item is ' if kind.startswith('list(') else ''}{expected}"
    if cause is None:
        return InvalidArgument(text, hint=hint)
    return InvalidArgument(f"{text}: {cause.message}", hint=cause.hint or hint)


_NO_FORM: Any = object()


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(value) if isinstance(value, str) else _NO_FORM


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else _NO_FORM


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _NO_FORM


def _element_type(value: Any) -> Any:
    if isinstance(value, bytes | str):
        return dtypes.named(_text(value))
    return dtypes.from_numpy(value)


def _shape(value: Any) -> Any:
    return as_shape(value) if value is None or isinstance(value, list | tuple) else _NO_FORM


def _tensor(value: Any) -> Any:
    if callable(getattr(value, "array", None)):
        return value  # a TensorValue, or a stand-in of a program
    import numpy as np

    from ..values.tensor_proto import TensorValue  # programs without such attributes need no protobuf

    if hasattr(value, "__array__") or isinstance(value, bool | int | float | complex | str | bytes | tuple | list):
        try:
            return TensorValue(np.asarray(value))
        except ValueError:  # rows of different lengths are no array
            return _NO_FORM
    return _NO_FORM


def _function(value: Any) -> Any:
    if isinstance(value, bytes | str):
        return Func(_text(value))
    return value if isinstance(value, Func) else _NO_FORM


class _Form(NamedTuple):
    type: type  # of a value that is converted already
    convert: Callable[[Any], Any]  # returns _NO_FORM, or raises InvalidArgument, for another value
    expected: str


_FORMS = {
    "string": _Form(str, _text, "a text"),
    "int": _Form(int, _whole_number, "a whole number"),
    "float": _Form(float, _number, "a number"),
    "bool": _Form(bool, lambda value: value if isinstance(value, bool) else _NO_FORM, "True or False"),
    "type": _Form(DType, _element_type, "dtypes.float32, its name 'float32', or a NumPy dtype"),
    "shape": _Form(ShapeAttr, _shape, "a tuple of sizes such as (2, None), or None for an unknown rank"),
    "tensor": _Form(object, _tensor, "an array or a TensorValue"),
    "func": _Form(Func, _function, "the name of a function"),
}
