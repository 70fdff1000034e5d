"""Recurrent layers over a whole sequence: x w + b of all steps as one product, then the steps.

| steps | launches | layers |
|---|---|---|
| `row` | one, with a work-item for each row | on CPUs, but for many cells and rows |
| `whole` | one, with a group of work-items for each row | few cells |
| `sliced` | one a step | many cells, few rows |
| `gates` | two a step, the first of which is a product of matrices | many cells and rows |

`sequence_texts` has the bodies. A GPU captures the launches as one graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from heald.api import Bind, errors

from .copies import fill, part
from .dialect import Target
from .epilogue import bias
from .kernel_parts import Pointer
from .math_plans import ints
from .matmul import matmul
from .plan import INPUT, LINE, OUTPUT, SCRATCH, Argument, Plan, Stage, chain_plans, kernel, plane
from .recurrent_cells import F32, Layer, activation_functions, layer_of
from .sequence_texts import (
    GROUP,
    LANES,
    LARGEST_WHOLE,
    SLICES,
    Lines,
    gates_body,
    row_body,
    sliced_body,
    whole_body,
)
from .strided_view import dense_view

FEWEST_ROWS_OF_PRODUCTS = 16
MOST_STEPS = 2048  # that have launches of their own


class Size(NamedTuple):
    """The lengths of a layer. `time` counts the steps of x, `steps` the steps that run."""

    time: int
    steps: int
    rows: int
    inputs: int
    cells: int

    @property
    def states(self) -> int:
        """The elements of a state."""
        return self.rows * self.cells

    @property
    def is_large(self) -> bool:
        """True where the products of h are products of large matrices."""
        return self.cells > LARGEST_WHOLE and self.rows >= FEWEST_ROWS_OF_PRODUCTS


class Buffer(NamedTuple):
    """A buffer as a parameter of a kernel."""

    name: str
    argument: Argument
    length: int
    stored: str = "f32"


def sequence(target: Target, b: Bind) -> Plan:
    """Raises Unimplemented for a layer without text, and for a number of steps that only the run knows."""
    layer, size = layer_of(b), _size(b)
    plan = _SequencePlan(target, b, layer, size)
    plan.fill_unreached_steps()
    products, u = plan.products_of_x(), plan.recurrent_weights()
    if target.cpu and (layer.factor is not None or not size.is_large):
        plan.add_rows(products, u)
    elif size.cells <= LARGEST_WHOLE:
        plan.add_whole(products, u)
    elif layer.factor is not None:
        raise errors.Unimplemented(f"no kernel text for a GRU of {size.cells} cells with the reset in front of the "
                                   "product")
    elif size.steps > MOST_STEPS:
        raise errors.Unimplemented(f"{size.steps} steps, of which at most {MOST_STEPS} have launches of their own")
    elif size.is_large:
        plan.add_gates(products, u)
    else:
        plan.add_sliced(products, u)
    return plan.finish()


def _size(b: Bind) -> Size:
    time, rows, inputs = b.inputs[1].meta.dims
    (steps,) = ints(b, 0)
    cells = b.inputs[2].meta.dims[1]
    if not 0 < steps <= time or not rows * inputs * cells:
        raise errors.Unimplemented(f"no kernel text for {steps} of {time} steps of {rows} rows, {inputs} inputs and "
                                   f"{cells} cells")
    return Size(time, steps, rows, inputs, cells)


class _SequencePlan:
    """The plan of one layer while it is made: its stages, and the scratch that they share."""

    def __init__(self, target: Target, b: Bind, layer: Layer, size: Size) -> None:
        self._target, self._b, self._layer, self._size = target, b, layer, size
        self._functions = activation_functions(layer)
        self._stages: list[Stage] = []
        self._scratch: list[int] = []
        self._columns = layer.gates * size.cells
        self._sizes = {"steps": size.steps, "rows": size.rows, "cells": size.cells}

    def finish(self) -> Plan:
        return chain_plans(self._stages, self._scratch)

    def fill_unreached_steps(self) -> None:
        size = self._size
        for number in sorted(self._layer.step_results.keys() & self._b.needed) if size.steps < size.time else ():
            zeros = fill(self._target, F32, size.time * size.states, 0)
            self._stages.append(Stage(zeros, [], [Argument(OUTPUT, number)]))

    def products_of_x(self) -> Buffer:
        size, layer = self._size, self._layer
        rows = size.steps * size.rows
        products = self._new_scratch("products", rows * self._columns)
        product = matmul(self._target, F32, (rows, size.inputs), (size.inputs, self._columns), epilogue=bias(F32))
        inputs = [Argument(INPUT, number) for number in (1, layer.w, layer.bias)]
        self._stages.append(Stage(product, inputs, [products.argument]))
        return products

    def recurrent_weights(self) -> Buffer:
        layer, cells = self._layer, self._size.cells
        if layer.u is not None:
            return self._input("u", layer.u)
        u = self._new_scratch("u", cells * self._columns)
        lower = dense_view(self._b.inputs[layer.w].meta.dims).part(0, self._size.inputs, cells)
        self._stages.append(Stage(part(self._target, F32.itemsize, lower), [Argument(INPUT, layer.w)], [u.argument]))
        return u

    def add_rows(self, products: Buffer, u: Buffer) -> None:
        size = self._size
        sums, hidden = self._new_scratch("sums", size.rows * self._columns), self._new_scratch("hidden", size.states)
        self._launch("row", row_body(self._layer, self._b.needed), [products, u],
                     [sums, hidden, *self._states()], {}, (size.rows,), (1,))

    def add_whole(self, products: Buffer, u: Buffer) -> None:
        self._launch("whole", whole_body(self._layer, self._b.needed), [products, u], [], {},
                     (GROUP * self._size.rows,), LINE)

    def add_sliced(self, products: Buffer, u: Buffer) -> None:
        size, body = self._size, sliced_body(self._layer, self._b.needed)
        writes = [self._new_scratch("hidden", 2 * size.states), *self._states()]
        for t in range(size.steps):
            self._launch("sliced", body, [products, u], writes, {"t": t}, (size.cells, SLICES * size.rows),
                         (LANES, SLICES))

    def add_gates(self, products: Buffer, u: Buffer) -> None:
        size, body = self._size, gates_body(self._layer, self._b.needed)
        sums, hidden = self._new_scratch("sums", size.rows * self._columns), self._new_scratch("hidden", size.states)
        writes = [hidden, *self._states()]
        product = matmul(self._target, F32, (size.rows, size.cells), (size.cells, self._columns))
        before = Argument(INPUT, self._layer.hidden)
        for t in range(size.steps):
            self._stages.append(Stage(product, [before, u.argument], [sums.argument]))
            self._launch("gates", body, [products, sums], writes, {"t": t}, (size.cells, size.rows),
                         plane(size.cells, size.rows))
            before = hidden.argument

    def _new_scratch(self, name: str, length: int) -> Buffer:
        self._scratch.append(F32.itemsize * length)
        return Buffer(name, Argument(SCRATCH, len(self._scratch) - 1), length)

    def _input(self, name: str, number: int, stored: str = "f32") -> Buffer:
        return Buffer(name, Argument(INPUT, number), self._b.inputs[number].meta.size, stored)

    def _states(self) -> list[Buffer]:
        """Scratch for the values but h that one step leaves to the next."""
        is_used = {"state": self._layer.state is not None, "previous": self._layer.mask is not None}
        return [self._new_scratch(name, self._size.states) for name, used in is_used.items() if used]

    def _inputs_of_cells(self) -> list[Buffer]:
        layer = self._layer
        buffers = [self._input("h_start", layer.hidden)]
        if layer.state is not None:
            buffers.append(self._input("c_start", layer.state))
        if layer.mask is not None:
            buffers.append(self._input("mask", layer.mask, "u8"))
        return [*buffers, *(self._input(name, number) for name, number in layer.vectors.items())]

    def _outputs_of_cells(self) -> list[Buffer]:
        size, needed = self._size, self._b.needed
        return [*(Buffer(f"y{number}", Argument(OUTPUT, number), size.steps * size.states)
                  for number in self._layer.step_results if number in needed),
                *(Buffer(f"end{number}", Argument(OUTPUT, number), size.states)
                  for number in self._layer.end_results if number in needed)]

    def _launch(
        self, form: str, body: Lines, reads: Sequence[Buffer], writes: Sequence[Buffer], step: Mapping[str, int],
        items: Sequence[int], local: Sequence[int],
    ) -> None:
        """Add a kernel. `reads`, `writes`: further buffers beside the cells' own. `step`: the number of its step."""
        reads, writes = [*reads, *self._inputs_of_cells()], [*writes, *self._outputs_of_cells()]
        text = kernel(self._target, f"{self._b.op.lstrip('_')}_{form}", body, _pointers(reads, INPUT),
                      _pointers(writes, OUTPUT), {**step, **self._sizes}, items, local, self._functions)
        self._stages.append(Stage(Plan((text,)), [buffer.argument for buffer in reads],
                                  [buffer.argument for buffer in writes]))


def _pointers(buffers: Sequence[Buffer], kind: str) -> list[Pointer]:
    return [Pointer(buffer.name, kind, number, buffer.stored, buffer.length) for number, buffer in enumerate(buffers)]
