"""WGSL, the language of WebGPU: the dialect that is not C.

Elements have four bytes, or are bools. Numbers of a launch are 64-bit integers in one more buffer behind the others, of
which kernels read the lower half. Buffers have a length that is a multiple of four.
"""

# WGSL has no implicit conversions of variables, so trees show all of them; a condition that takes part in arithmetic
# is converted here. It has no operator ?:, and select() computes both sides: no op of the table has an effect in one.
# Its compiler refuses constant expressions that are not finite, so infinity comes from a variable. A device may assume
# that no number is infinite or NaN: results of such operands are its own.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from heald.api import DType, dtypes, errors

from .c_text import spell_number
from .kernel_parts import KernelParts, Pointer
from .statements import (
    Array,
    Assign,
    Barrier,
    Body,
    Define,
    Exit,
    Indented,
    Loop,
    SameLine,
    Statement,
    Step,
    Store,
    When,
)
from .tree import Number, Tree, fold

# u8 is only the type of bools; a negative offset is added as its complement
TYPES = {"f32": "f32", "i32": "i32", "u32": "u32", "size_t": "u32", "offset": "u32", "u8": "bool"}
MOST_GROUPS = 65535  # in one dimension
CALLS = {name: f"{name}({{0}})" for name in (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "expm1", "floor", "log", "log1p",
    "sin", "sinh", "sqrt", "tan", "trunc")} | {
    "FMA": "fma({0}, {1}, {2})", "GLOBAL_ID": "global_id[{0}]", "GROUP_ID": "group_id[{0}]",
    "LOCAL_ID": "local_id[{0}]", "atan2": "atan2({0}, {1})", "fabs": "abs({0})", "fmod": "remainder({0}, {1})",
    "pow": "power({0}, {1})", "rint": "round({0})", "rsqrt": "inverseSqrt({0})", "sizeof": "4u",
    "tanh": "bounded_tanh({0})",
}
WORDS = {"POSITIVE_INFINITY": "bitcast<f32>(infinity_bits)"}
INFINITY_BITS = "var<private> infinity_bits: u32 = 0x7f800000u;"
DEFINITIONS = {
    "bounded_tanh": "fn bounded_tanh(x: f32) -> f32 { return select(tanh(clamp(x, -15.0, 15.0)), x, x != x); }",
    "expm1": "fn expm1(x: f32) -> f32 { return select(exp(x) - 1.0, "
             "x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7)))))), abs(x) < 0.5); }",
    "log1p": """\
fn log1p(x: f32) -> f32 {
  let u = 1.0 + x;
  return select(select(log(u) * x / (u - 1.0), log(x), x > 1e8), x, u == 1.0);
}""",
    "remainder": """\
fn remainder(x: f32, y: f32) -> f32 {
  return select(x % y, x, abs(y) == bitcast<f32>(infinity_bits) && abs(x) < bitcast<f32>(infinity_bits));
}""",
    "power": """\
fn power(x: f32, y: f32) -> f32 {
  if (y == 0.0 || x == 1.0) { return 1.0; }
  if (x == 0.0) { return select(0.0, bitcast<f32>(infinity_bits), y < 0.0); }
  let size = pow(abs(x), y);
  if (x >= 0.0) { return size; }
  let nan = bitcast<f32>(infinity_bits | 1u);
  return select(select(size, -size, abs(y % 2.0) == 1.0), nan, x != x || floor(y) != y);
}""",
}


class Text(NamedTuple):
    """`is_condition`: the value is true or false, where C has 1 or 0."""

    text: str
    is_primary: bool = True
    is_condition: bool = False

    @property
    def operand(self) -> str:
        return self.text if self.is_primary else f"({self.text})"

    @property
    def number(self) -> str:
        return f"i32({self.text})" if self.is_condition else self.operand


class WgslText:
    """A reader of trees."""

    def word(self, name: str) -> Text:
        return Text(WORDS.get(name, name))

    def number(self, number: Number) -> Text:
        return Text(spell_number(number), number.value >= 0)

    def prefix(self, operator: str, operand: Text) -> Text:
        return Text(operator + operand.operand, is_primary=False, is_condition=operator == "!")

    def operation(self, operator: str, left: Text, right: Text) -> Text:
        compares = operator in ("==", "!=", "<", "<=", ">", ">=", "&&", "||")
        sides = (left.operand, right.operand) if compares else (left.number, right.number)
        if operator == "%":  # OpenGL leaves the rest of a negative number open
            return Text("{0} - {0} / {1} * {1}".format(*sides), is_primary=False)
        return Text(f" {operator} ".join(sides), is_primary=False, is_condition=compares)

    def choice(self, condition: Text, result: Text, otherwise: Text) -> Text:
        return Text(f"select({otherwise.text}, {result.text}, {condition.text})")

    def conversion(self, type_name: str, operand: Text) -> Text:
        is_negative = type_of(type_name) == "u32" and operand.text.startswith("-")  # a constant that u32 does not have
        return Text(f"{type_of(type_name)}({f'i32({operand.text})' if is_negative else operand.text})")

    def call(self, function: str, arguments: Sequence[Text]) -> Text:
        if function not in CALLS:
            raise errors.Unimplemented(f"WGSL has no function {function}")
        return Text(CALLS[function].format(*(argument.text for argument in arguments)))

    def element(self, array: Text, index: Text) -> Text:
        return Text(f"{array.operand}[{index.text}]")

    def load(self, dtype: DType, buffer: str, index: Text) -> Text:
        _check_elements(dtype)
        if dtype is not dtypes.bool_:
            return Text(f"{buffer}[{index.text}]")
        word, shift = f"{index.operand} / 4u", f"{index.operand} % 4u * 8u"
        return Text(f"(({buffer}[{word}] >> ({shift})) & 255u) != 0u", is_primary=False, is_condition=True)

    def group(self, operand: Text) -> Text:
        return operand


def _check_elements(dtype: DType) -> None:
    if dtype.name not in ("float32", "int32", "uint32", "bool"):
        raise errors.Unimplemented(f"WGSL has no elements of type {dtype.name}")


def type_of(name: str) -> str:
    if name not in TYPES:
        raise errors.Unimplemented(f"WGSL has no type {name}")
    return TYPES[name]


def expression(tree: Tree) -> str:
    return fold(tree, WgslText()).text


def write_lines(body: Body) -> list[str]:
    return [line for statement in body for line in _lines(statement)]


def _lines(statement: Statement) -> list[str]:
    match statement:
        case Define(type_name, values, constant):
            word = "let" if constant else "var"
            return [f"{word} {name}: {type_of(type_name)} = {expression(value)};" for name, value in values.items()]
        case Array(type_name, name, length, is_shared):
            return [] if is_shared else [f"var {name}: array<{type_of(type_name)}, {length}>;"]
        case Assign(variable, value, operator):
            return [f"{expression(variable)} {operator}= {expression(value)};"]
        case Store():
            return _store(statement)
        case When(condition, body):
            return [f"if ({expression(condition)}) {{", *write_lines(body), "}"]
        case Loop():
            return _loop(statement)
        case Exit():
            return ["return;"]
        case Barrier():
            return ["workgroupBarrier();"]
        case SameLine(body) | Indented(body):
            return write_lines(body)
    raise errors.Unimplemented("the kernel is a text of C")


def _store(store: Store) -> list[str]:
    _check_elements(store.dtype)
    index, value = expression(store.index), expression(store.value)
    if store.dtype is not dtypes.bool_:
        return [f"{store.buffer}[{index}] = {value};"]
    word = f"&{store.buffer}[({index}) / 4u]"  # other work-items write its other bytes
    return [f"atomicAnd({word}, ~(255u << (({index}) % 4u * 8u)));",
            f"atomicOr({word}, u32({value}) << (({index}) % 4u * 8u));"]


def _loop(loop: Loop) -> list[str]:
    def change(step: Step) -> str:
        return f"{step.name} {step.operator}= {expression(step.by)}"

    first, *others = loop.steps
    kind = type_of(loop.type_name)
    head = f"var {first.name}: {kind} = {expression(first.start)}; {expression(loop.condition)}; {change(first)}"
    return ["{", *(f"var {step.name}: {kind} = {expression(step.start)};" for step in others), f"for ({head}) {{",
            *write_lines(loop.body), *(f"{change(step)};" for step in others), "}", "}"]


def _shared_arrays(body: Body) -> list[Array]:
    return [statement for statement in body if isinstance(statement, Array) and statement.is_shared]


@dataclass(frozen=True)
class Wgsl:
    name: str = "wgsl"
    functions: Mapping[str, str] = field(default_factory=DEFINITIONS.copy, repr=False)

    def source(self, parts: KernelParts) -> str:
        """The text of a kernel. Raises Unimplemented."""
        _check(parts)
        lines = write_lines(parts.body)
        text = "\n".join([
            f"@compute @workgroup_size({', '.join(map(str, parts.group))})",
            f"fn {parts.name}(@builtin(global_invocation_id) global_id: vec3<u32>,",
            "  @builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {",
            *(f"  let {name} = sizes[{i}].x;" for i, name in enumerate(parts.sizes)), *(f"  {line}" for line in lines),
            "}", ""])
        definitions = [definition for name, definition in self.functions.items() if f"{name}(" in text]
        shared = [f"var<workgroup> {array.name}: array<{type_of(array.type_name)}, {array.length}>;"
                  for array in _shared_arrays(parts.body)]
        return "\n".join([*_bindings(parts), *shared, INFINITY_BITS, *definitions, text])


def _bindings(parts: KernelParts) -> list[str]:
    buffers = [f"var<storage, read> {p.name}: array<{_element_type(p)}>;" for p in parts.reads]
    buffers += [f"var<storage, read_write> {p.name}: array<{_element_type(p, 'atomic<u32>')}>;" for p in parts.writes]
    buffers += ["var<storage, read> sizes: array<vec2<u32>>;"] if parts.sizes else []
    return [f"@group(0) @binding({number}) {buffer}" for number, buffer in enumerate(buffers)]


def _element_type(pointer: Pointer, word_of_bools: str = "u32") -> str:
    return word_of_bools if pointer.stored == "u8" else type_of(pointer.stored)


def _check(parts: KernelParts) -> None:
    """Raise Unimplemented for C, for launches that WebGPU refuses, and for numbers that 32 bits do not hold."""
    if parts.functions or any(isinstance(statement, str) for statement in parts.body):
        raise errors.Unimplemented(f"no kernel text for {parts.name} in WGSL")
    if parts.name in ("ArgMax", "ArgMin") and any(pointer.stored == "u8" for pointer in parts.reads):
        raise errors.Unimplemented("WGSL has no order of bools")
    if max(parts.groups) > MOST_GROUPS:
        raise errors.Unimplemented(f"{max(parts.groups)} groups in one dimension, of which WGSL has {MOST_GROUPS}")
    numbers = [*parts.sizes.values(), *(pointer.length for pointer in (*parts.reads, *parts.writes))]
    if not all(-(1 << 31) <= number < 1 << 32 for number in numbers):
        raise errors.Unimplemented("a number that 32 bits do not hold, in WGSL")


WGSL = Wgsl()
