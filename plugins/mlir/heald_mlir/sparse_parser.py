"""The parser of `sparse<[[0, 1]], [5]> : tensor<2x3xi32>`, which is checked as MLIR checks it, and kept as text.

The first literal has the index of each element, the second one the elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import attributes as a
from . import types as t
from .element_parser import ElementParser, Literals, shape_of

_UNSIGNED = (1 << 64) - 1


class SparseParser(ElementParser):
    """A parser of sparse tensors."""

    def sparse(self) -> a.Attribute:
        start = self.at
        self.advance()
        self.expect("<", " after 'sparse'")
        places: list[int] = []
        literals: list[Literals] = []
        if self.text != ">":
            for closing in (",", ""):
                places.append(self.at)
                literals.append(self.sparse_literal())
                if closing:
                    self.expect(closing)
        end = self.at + 1
        self.expect(">")
        self.expect(":")
        of = self.checked_shape(self.type(), start)
        if literals:
            self.check_sparse(of, literals, places, start)
        return a.BuiltinAttr("sparse", f"{self.source[start:end]} : {of}")

    def sparse_literal(self) -> Literals:
        literals = Literals([], (), None, [])
        if self.text == "[":
            return literals._replace(shape=self._list(literals))
        self._element(literals)
        return literals

    def check_sparse(self, of: t.ShapedType, literals: Sequence[Literals], places: Sequence[int], start: int) -> None:
        """Raises MalformedText for literals that do not fit each other or the type."""
        indices, values = literals
        shape = shape_of(of)
        indices_shape = indices.shape or (1, len(shape))
        values_shape = values.shape or indices_shape[:1]
        numbers = self.dense_of(indices, t.ShapedType("tensor", indices_shape, t.I64), places[0])
        self.dense_of(values, t.ShapedType("tensor", values_shape, of.element), places[1])
        if len(values_shape) != 1:
            raise self.error("expected 1-d tensor for sparse element values", start)
        fits = indices_shape[1:] == (len(shape),) if len(indices_shape) == 2 else len(indices_shape) == len(shape) == 1
        if not fits or indices_shape[0] != values_shape[0]:
            raise self.error(f"expected shape ({[*shape]}); inferred shape of indices literal ({[*indices_shape]}); "
                             f"inferred shape of values literal ({[*values_shape]})", start)
        flat = [value for value in numbers.values if isinstance(value, int)]
        for number in range(indices_shape[0]):
            index = flat * len(shape) if len(flat) == 1 else flat[number * len(shape):(number + 1) * len(shape)]
            if any(not 0 <= position < size for position, size in zip(index, shape, strict=True)):
                unsigned = [position & _UNSIGNED for position in index]
                raise self.error(f"sparse index #{number} is not contained within the value shape, with "
                                 f"index={unsigned}, and type='{of}'", start)
