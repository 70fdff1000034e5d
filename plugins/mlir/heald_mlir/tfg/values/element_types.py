"""TensorFlow's data types as element types of MLIR: their text by the number of the DataType enum, and back."""

from __future__ import annotations

from ... import types as t

REF = 100  # the number of a reference type is that of its value type plus this

_VALUES = {
    1: "f32", 2: "f64", 3: "i32", 4: "ui8", 5: "i16", 6: "i8", 7: "!tf_type.string", 8: "complex<f32>", 9: "i64",
    10: "i1", 11: "!tf_type.qint8", 12: "!tf_type.quint8", 13: "!tf_type.qint32", 14: "bf16", 15: "!tf_type.qint16",
    16: "!tf_type.quint16", 17: "ui16", 18: "complex<f64>", 19: "f16", 20: "!tf_type.resource",
    21: "!tf_type.variant", 22: "ui32", 23: "ui64", 24: "f8E5M2", 25: "f8E4M3FN", 26: "f8E4M3FNUZ",
    27: "f8E4M3B11FNUZ", 28: "f8E5M2FNUZ", 29: "si4", 30: "ui4", 31: "si2", 32: "ui2", 33: "f4E2M1FN",
}
_REFERENCES = {
    1: "f32", 2: "f64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64", 9: "int64",
    10: "bool", 11: "qint8", 12: "quint8", 13: "qint32", 14: "bfloat16", 15: "qint16", 16: "quint16", 17: "uint16",
    18: "complex128", 19: "half", 20: "resource", 21: "variant", 22: "uint32", 23: "uint64", 24: "float8e5m2",
    25: "float8e4m3fn", 26: "float8e4m3fnuz", 27: "float8e4m3b11fnuz", 28: "float8e5m2fnuz", 29: "int4", 30: "uint4",
    31: "int2", 32: "uint2", 33: "float4e2m1fn",
}
TEXTS = _VALUES | {REF + number: f"!tf_type.{name}ref" for number, name in _REFERENCES.items()}
NUMBERS = {text: number for number, text in TEXTS.items()}
CONTROL, OPAQUE = "!tf_type.control", "!tf_type.tensor"
_ALIASES = {"i4": 29, "si8": 6, "si16": 5, "si32": 3, "si64": 9, "si1": 10, "ui1": 10}  # further texts of types


def element_of(of: t.Type) -> t.Type:
    """The type of the elements of a type with a shape; the type itself where it has none."""
    return of.element if isinstance(of, t.ShapedType) else of


def data_type_number(of: t.Type) -> int | None:
    """The number of the data type that TensorFlow makes of a type: of its elements where it has a shape."""
    element = element_of(of)
    text = str(element)
    number = NUMBERS.get(text) or _ALIASES.get(text)
    if number is None and isinstance(element, t.OpaqueType):
        number = NUMBERS.get(text.partition("<")[0])
    return number
