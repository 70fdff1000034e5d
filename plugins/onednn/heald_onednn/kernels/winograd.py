"""Convolutions with fewer multiplications (Winograd, 1980; Lavin and Gray, 2016, arXiv:1509.09308).

Images are cut into overlapping tiles with m results along a side. The results are A ((G g) * (B d)), where d are the
m + taps - 1 pixels, g the taps, and * multiplies element by element. This takes m + taps - 1 multiplications instead of
taps * m. Along both axes, each place in a tile is a product of matrices: the channels of all tiles times all filters.
Three transforms are around the products:

- B, of images: one depthwise convolution for each row of B, across and then down, since these step over pixels and pad
  as the convolution does;
- G, of filters: when they are bound;
- A, of results: a product of matrices for both axes at once, with the convolution's epilogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from heald.api import Bind, FusedOp

from ..attributes import PostOp, attributes, number
from ..epilogue import Epilogue
from ..library import library
from ..memory import ANY, FLOAT, Array, Layout, Operand, aligned_bytes, dense, row_major
from ..packing import pack_in_thread, packed_once
from ..primitive_call import join_calls
from ..primitives import (
    BIAS,
    CODE,
    INFERENCE,
    RESULT,
    SOURCE,
    WEIGHTS,
    LibraryKernel,
    Primitive,
    chosen_layout,
    describe_primitive,
    matmul_description,
    pack_array,
    reorder_description,
)
from ..products import name_of_weights, with_factors
from ..winograd_tiling import Axis, Size
from ..workspace import Workspace, workspaces

DIRECT = number("dnnl_convolution_direct")
LARGEST_ROW_MAJOR_FILTERS = 256  # filters up to which products are as fast with row-major filters as with packed ones
CACHED_SIZES = 32  # sizes in the caches: convolutions of one size share the stages without weights
IMAGES, FIRST, SECOND, RESULTS = range(4)  # the arrays that stages read and write; two are in the workspace


class ArrayStart(NamedTuple):
    """An array of a stage, and the index of the first element in use."""

    array: int
    first: int = 0

    def shifted_by(self, by: Sequence[int]) -> ArrayStart:
        return ArrayStart(self.array, self.first + by[self.array])


class Stage(NamedTuple):
    primitive: Primitive
    source: ArrayStart
    result: ArrayStart


class Winograd(LibraryKernel):
    """The stages of all turns as one bound kernel.

    `parts`: the elements of the two parts of the workspace; `images`, `results`: indices among inputs and outputs;
    `how`: see Attachable.
    """

    def __init__(self, stages: Sequence[Stage], parts: tuple[int, int], images: int, results: int, how: str) -> None:
        self.extents = {images: _extent(stages, IMAGES), results: _extent(stages, RESULTS)}
        self.how = how
        self.nbytes = CODE * len({id(stage.primitive) for stage in stages})
        self._stages, self._parts, self._images, self._results = stages, parts, images, results
        self._workspaces = workspaces(sum(parts) * FLOAT.numpy.itemsize)

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], None]:
        take, give = self._workspaces.take, self._workspaces.give
        arrays = (*inputs, *outputs)
        calls_of_workspace: WeakKeyDictionary[Workspace, list[Callable[[], None]]] = WeakKeyDictionary()

        def call() -> None:
            workspace = take()
            try:
                calls = calls_of_workspace.get(workspace)
                if calls is None:
                    calls = join_calls([p.attach((source,), (result,)) for p, source,
                                        result in self._stage_arrays(arrays, workspace)])
                    calls_of_workspace[workspace] = calls
                for run_stage in calls:
                    run_stage()
            finally:
                give(workspace)

        return call

    def run(self, *arrays: Array) -> None:
        workspace = self._workspaces.take()
        try:
            for primitive, source, result in self._stage_arrays(arrays, workspace):
                primitive.run(source, result)
        finally:
            self._workspaces.give(workspace)

    def _stage_arrays(self, arrays: Sequence[Array], workspace: Workspace) -> Iterator[tuple[Primitive, Array, Array]]:
        between: Array = workspace.array.view(np.float32)
        first, second = self._parts
        parts = (arrays[self._images].reshape(-1), between[:first], between[first : first + second],
                 arrays[self._results].reshape(-1))
        for primitive, source, result in self._stages:
            yield primitive, parts[source.array][source.first :], parts[result.array][result.first :]


def _extent(stages: Sequence[Stage], array: int) -> int:
    """The bytes that the stages touch of the images or the results."""
    return max(array_start.first * FLOAT.itemsize + stage.primitive.extents[which] for stage in stages
               for which, array_start in enumerate((stage.source, stage.result)) if array_start.array == array)


def bind_in_tiles(b: Bind, node: FusedOp, after: Epilogue, size: Size) -> Winograd:
    stages_of_turn: dict[Size, list[Stage]] = {}
    stages: list[Stage] = []
    for turn, first_pixel, first_result in size.turns():
        if turn not in stages_of_turn:
            stages_of_turn[turn] = [*_image_stages(turn), _products(b, node, after, turn), _result_stage(turn, after),
                                    *_untiling_stages(turn)]
        by = (first_pixel, 0, 0, first_result)
        stages += [Stage(primitive, source.shifted_by(by), result.shifted_by(by)) for primitive, source,
                   result in stages_of_turn[turn]]
    first, second = (max(sizes) for sizes in zip(*(turn.parts for turn in stages_of_turn), strict=True))
    how = f"Winograd, tiles of {size.down.m}x{size.across.m}"
    return Winograd(stages, (first, second), node.args[0], len(b.inputs), how)


@lru_cache(maxsize=CACHED_SIZES)
def _image_stages(size: Size) -> tuple[Stage, ...]:
    """The stages that transform images to [down.side, across.side, tiles, channels]. Between the axes, the shape is
    [across.side, images, pixels, across.tiles, channels]."""
    down, across, channels = size.down, size.across, size.channels
    both = down.taps > 1 and across.taps > 1
    stages: list[Stage] = []
    if across.taps > 1:
        shape, filtered = ((size.images, down.pixels, n, channels) for n in (across.pixels, across.tiles))
        stages += _convolution_stages(across, shape, filtered, 1, IMAGES, FIRST if both else SECOND)
    if down.taps > 1:
        images = size.images * across.side
        shape, filtered = ((images, n, across.tiles, channels) for n in (down.pixels, down.tiles))
        stages += _convolution_stages(down, shape, filtered, 0, FIRST if both else IMAGES, SECOND)
    return tuple(stages)


def _convolution_stages(
    axis: Axis, shape: tuple[int, ...], filtered: tuple[int, ...], which: int, source: int, result: int
) -> Iterator[Stage]:
    """Yield one convolution of all channels for each row of the axis' B. The results are contiguous, one after the
    other. `which`: 0 for down, 1 for across."""
    images, results = dense(shape), dense(filtered)
    taps, steps, before, after = ([other, other] for other in (1, 1, 0, 0))
    taps[which], steps[which], before[which] = axis.side, axis.m, axis.before
    after[which] = (axis.tiles - 1) * axis.m + axis.side - axis.pixels - axis.before
    filters = (shape[-1], 1, 1, *taps)
    description = describe_primitive(
        library().c.dnnl_convolution_forward_primitive_desc_create, INFERENCE, DIRECT, images.descriptor,
        Layout.of(filters, ANY).descriptor, library().ffi.NULL, results.descriptor, steps, [0, 0], before, after,
        attributes())
    packed_layout = chosen_layout(description, number("dnnl_query_weights_md"))
    for i, row in enumerate(axis.matrices[2]):
        weights = pack_array(np.tile(row.astype(np.float32), shape[-1]), row_major(filters), packed_layout)
        operands: dict[int, tuple[Layout, Operand]] = {
            SOURCE: (images, 0), WEIGHTS: (packed_layout, weights), RESULT: (results, 1)}
        yield Stage(Primitive(description, operands), ArrayStart(source), ArrayStart(result, i * prod(filtered)))


def _products(b: Bind, node: FusedOp, after: Epilogue, size: Size) -> Stage:
    """The stage of the products, [places, tiles, filters]."""
    shape, in_rows = (size.tile_elements, size.channels, size.filters), size.filters <= LARGEST_ROW_MAJOR_FILTERS
    tiles, results = (row_major((size.tile_elements, size.tiles, n)) for n in (size.channels, size.filters))
    plain = row_major(shape)
    description = matmul_description(tiles, plain if in_rows else Layout.of(shape, ANY), results)
    packed_layout = chosen_layout(description, number("dnnl_query_weights_md"))

    def pack_filters() -> Array:
        taps, factors = with_factors(b.inputs[node.args[1]], after.scale, (size.filters,))
        if factors is not None:
            taps = taps * factors.astype(np.float32)
        transformed_filters = aligned_bytes(plain.nbytes)
        _transform(size, 1, size.channels * size.filters).attach((taps, transformed_filters), ())()
        return transformed_filters if in_rows else pack_array(transformed_filters, plain, packed_layout)

    name = name_of_weights(node, after.scale, packed_layout, f" of {size.down.m}x{size.across.m}")
    weights = packed_once(b, name, packed_layout, lambda: pack_in_thread(plain.nbytes, pack_filters))
    operands: dict[int, tuple[Layout, Operand]] = {
        SOURCE: (tiles, 0), WEIGHTS: (packed_layout, weights), RESULT: (results, 1)}
    return Stage(Primitive(description, operands), ArrayStart(SECOND), ArrayStart(FIRST))


def _result_stage(size: Size, after: Epilogue) -> Stage:
    """The stage that transforms results to [down.m, across.m, tiles, filters]."""
    bias = None if after.bias is None else np.tile(after.bias.astype(np.float32), size.tiles)
    return Stage(_transform(size, 0, size.tiles * size.filters, bias, after.steps), ArrayStart(FIRST),
                 ArrayStart(SECOND))


def _transform(
    size: Size, which: int, columns: int, bias: Array | None = None, steps: Sequence[PostOp] = ()
) -> Primitive:
    """A, G or B (`which` 0, 1 or 2) of both axes, times a matrix of so many columns.

    A transform that is done only once is not left to NumPy, whose threads would stay awake and take the cores from the
    library's threads.
    """
    matrix = np.kron(size.down.matrices[which], size.across.matrices[which]).astype(np.float32)
    rows, inner = matrix.shape
    left, right, result = (row_major(shape) for shape in (matrix.shape, (inner, columns), (rows, columns)))
    operands: dict[int, tuple[Layout, Operand]] = {SOURCE: (left, matrix), WEIGHTS: (right, 0), RESULT: (result, 1)}
    added = None
    if bias is not None:
        added = row_major((1, columns))
        operands[BIAS] = added, bias
    return Primitive(matmul_description(left, right, result, added, steps), operands)


@lru_cache(maxsize=CACHED_SIZES)
def _untiling_stages(size: Size) -> tuple[Stage, ...]:
    """The stages that write the results [images, rows, columns, filters]. The last tiles of a row or column may be
    written in part."""
    down, across, filters = size.down, size.across, size.filters
    line, place_stride, stages = across.results * filters, size.tiles * filters, []
    tile_strides = (across.m * place_stride, place_stride, down.tiles * across.tiles * filters, across.tiles * filters,
                    filters, 1)
    strides = (line, filters, down.results * line, down.m * line, across.m * filters, 1)
    for top, many_down, rows in _whole_and_part(down):
        for left, many_across, columns in _whole_and_part(across):
            dims = (rows, columns, size.images, many_down, many_across, filters)
            tiles, results = Layout.of(dims, tile_strides), Layout.of(dims, strides)
            stages.append(Stage(Primitive(reorder_description(tiles, results),
                                          {SOURCE: (tiles, 0), RESULT: (results, 1)}),
                                ArrayStart(SECOND, (top * across.tiles + left) * filters),
                                ArrayStart(RESULTS, top * down.m * line + left * across.m * filters)))
    return tuple(stages)


def _whole_and_part(axis: Axis) -> list[tuple[int, int, int]]:
    """The whole tiles, then a partial one: the first tile, the number of tiles, and the number of results of each."""
    whole_tiles, remainder = divmod(axis.results, axis.m)
    return [part for part in ((0, whole_tiles, axis.m), (whole_tiles, 1, remainder)) if part[1] and part[2]]
