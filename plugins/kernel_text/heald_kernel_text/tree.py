"""Expression trees: ops and reductions before a dialect gives them its words."""

# A tree is data. Its leaves are words (operands, variables, constants of a dialect) and numbers. Python's operators
# build the inner nodes: `x / (T(1) + exp(-x))`. `fold` is the one walk over a tree. A reader gives each kind of node
# its meaning: `c_text` a text with a level of precedence, `wgsl` a text of another grammar, a test the value itself.
#
# Types are names too. T is the type of the operands in registers, U the unsigned type in which its integers wrap
# around, D the target of a cast. The other names are in `Dialect.types`; positions are of size_t, and of offset where a
# step between them may be negative.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, Union

from heald.api import DType

Operand = Union["Tree", int]
R = TypeVar("R")


def _binary(operator: str) -> Callable[[Tree, Operand], Tree]:
    return lambda left, right: Operation(operator, left, tree_of(right))


def _from_right(operator: str) -> Callable[[Tree, Operand], Tree]:
    return lambda right, left: Operation(operator, tree_of(left), right)


class Tree:
    """An expression. Python builds its nodes by the operators of C, `==` among them."""

    __slots__ = ()
    __add__, __sub__, __mul__, __truediv__, __mod__ = map(_binary, "+-*/%")
    __and__, __or__, __xor__, __lt__, __gt__ = map(_binary, "&|^<>")
    __lshift__, __rshift__, __le__, __ge__ = map(_binary, ("<<", ">>", "<=", ">="))
    __eq__, __ne__ = _binary("=="), _binary("!=")  # type: ignore[assignment]
    __radd__, __rsub__, __rmul__ = map(_from_right, "+-*")
    __hash__ = object.__hash__

    def read(self, reader: Reader[R]) -> R:
        """The reader's meaning of this node, whose operands are read first."""
        raise NotImplementedError

    def __neg__(self) -> Tree:
        return Prefix("-", self)

    def __invert__(self) -> Tree:
        return Prefix("~", self)

    def __getitem__(self, index: Operand) -> Tree:
        return Element(self, tree_of(index))


@dataclass(frozen=True, eq=False, slots=True)
class Word(Tree):
    """An operand, a variable, or a constant of the dialect."""

    name: str

    def read(self, reader: Reader[R]) -> R:
        return reader.word(self.name)


@dataclass(frozen=True, eq=False, slots=True)
class Number(Tree):
    """A number as it is spelled: with a suffix, and in hexadecimal where that alone is exact."""

    value: int | float
    suffix: str = ""
    hexadecimal: bool = False

    def read(self, reader: Reader[R]) -> R:
        return reader.number(self)


@dataclass(frozen=True, eq=False, slots=True)
class Prefix(Tree):
    """One of - ~ ! before an operand."""

    operator: str
    operand: Tree

    def read(self, reader: Reader[R]) -> R:
        return reader.prefix(self.operator, self.operand.read(reader))


@dataclass(frozen=True, eq=False, slots=True)
class Operation(Tree):
    operator: str
    left: Tree
    right: Tree

    def read(self, reader: Reader[R]) -> R:
        return reader.operation(self.operator, self.left.read(reader), self.right.read(reader))


@dataclass(frozen=True, eq=False, slots=True)
class Choice(Tree):
    condition: Tree
    result: Tree
    otherwise: Tree

    def read(self, reader: Reader[R]) -> R:
        return reader.choice(self.condition.read(reader), self.result.read(reader), self.otherwise.read(reader))


@dataclass(frozen=True, eq=False, slots=True)
class Conversion(Tree):
    type_name: str
    operand: Tree

    def read(self, reader: Reader[R]) -> R:
        return reader.conversion(self.type_name, self.operand.read(reader))


@dataclass(frozen=True, eq=False, slots=True)
class Call(Tree):
    function: str
    arguments: tuple[Tree, ...]

    def read(self, reader: Reader[R]) -> R:
        return reader.call(self.function, [argument.read(reader) for argument in self.arguments])


@dataclass(frozen=True, eq=False, slots=True)
class Element(Tree):
    """An element of an array of the kernel's own."""

    array: Tree
    index: Tree

    def read(self, reader: Reader[R]) -> R:
        return reader.element(self.array.read(reader), self.index.read(reader))


@dataclass(frozen=True, eq=False, slots=True)
class Load(Tree):
    """An element of a buffer, converted to its type in registers."""

    dtype: DType
    buffer: str
    index: Tree

    def read(self, reader: Reader[R]) -> R:
        return reader.load(self.dtype, self.buffer, self.index.read(reader))


@dataclass(frozen=True, eq=False, slots=True)
class Group(Tree):
    """Parentheses that no precedence asks for."""

    operand: Tree

    def read(self, reader: Reader[R]) -> R:
        return reader.group(self.operand.read(reader))


class TypeName(str):
    """The name of a type, which converts when it is called."""

    __slots__ = ()

    def __call__(self, operand: Operand) -> Tree:
        return Conversion(self, tree_of(operand))


T, U, D, I32, U32, I64, U64 = map(TypeName, ("T", "U", "D", "i32", "u32", "i64", "u64"))
SIZE_T, OFFSET = TypeName("size_t"), TypeName("offset")


def tree_of(operand: Operand) -> Tree:
    return operand if isinstance(operand, Tree) else Number(operand)


def function(name: str) -> Callable[..., Tree]:
    """A function of kernels by its name in C: `exp = function("exp")`."""
    return lambda *arguments: Call(name, tuple(map(tree_of, arguments)))


def choose(condition: Tree, result: Operand, otherwise: Operand) -> Tree:
    return Choice(condition, tree_of(result), tree_of(otherwise))


def both(left: Tree, right: Tree) -> Tree:
    return Operation("&&", left, right)


def either(left: Tree, right: Tree) -> Tree:
    return Operation("||", left, right)


def negation(condition: Tree) -> Tree:
    return Prefix("!", condition)


class Reader(Protocol[R]):
    """The meaning of each kind of node. Operands have been read when a node is."""

    def word(self, name: str) -> R: ...
    def number(self, number: Number) -> R: ...
    def prefix(self, operator: str, operand: R) -> R: ...
    def operation(self, operator: str, left: R, right: R) -> R: ...
    def choice(self, condition: R, result: R, otherwise: R) -> R: ...
    def conversion(self, type_name: str, operand: R) -> R: ...
    def call(self, function: str, arguments: list[R]) -> R: ...
    def element(self, array: R, index: R) -> R: ...
    def load(self, dtype: DType, buffer: str, index: R) -> R: ...
    def group(self, operand: R) -> R: ...


def fold(tree: Tree, reader: Reader[R]) -> R:
    """Read a tree from its leaves up."""
    if not isinstance(tree, Tree):
        raise TypeError(f"{type(tree).__name__} is no node of a tree")
    return tree.read(reader)


class Instance(NamedTuple):
    """A reader that makes a tree: `words` and `types` take the place of names."""

    words: Mapping[str, Tree]
    types: Mapping[str, str]

    def word(self, name: str) -> Tree:
        return Word(self.types[name]) if name in self.types else self.words.get(name) or Word(name)

    def number(self, number: Number) -> Tree:
        return number

    def prefix(self, operator: str, operand: Tree) -> Tree:
        return Prefix(operator, operand)

    def operation(self, operator: str, left: Tree, right: Tree) -> Tree:
        return Operation(operator, left, right)

    def choice(self, condition: Tree, result: Tree, otherwise: Tree) -> Tree:
        return Choice(condition, result, otherwise)

    def conversion(self, type_name: str, operand: Tree) -> Tree:
        return Conversion(self.types.get(type_name, type_name), operand)

    def call(self, function: str, arguments: list[Tree]) -> Tree:
        return Call(function, tuple(arguments))

    def element(self, array: Tree, index: Tree) -> Tree:
        return Element(array, index)

    def load(self, dtype: DType, buffer: str, index: Tree) -> Tree:
        return Load(dtype, buffer, index)

    def group(self, operand: Tree) -> Tree:
        return Group(operand)


def instantiate(tree: Tree, words: Mapping[str, Tree], types: Mapping[str, str]) -> Tree:
    """The tree of an op over these operands, of these types."""
    return fold(tree, Instance(words, types))
