"""Tiling for Winograd's algorithm (kernels/winograd.py): tile sizes, transform matrices, and the cost model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from heald.api import geometry

from .memory import FLOAT, Array

RESULTS_PER_TILE_SIDE = (2, 4)  # candidates for the results along a side of a tile
POINTS: dict[int, tuple[float, ...]] = {  # by the side of a tile; of the points tried, these round least
    1: (), 4: (0, 1, -1), 6: (0, 2 / 3, -2 / 3, 3 / 2, -3 / 2), 8: (0, 1 / 2, -1 / 2, 1, -1, 2, -2),
    10: (0, 2 / 5, -2 / 5, 3 / 4, -3 / 4, 13 / 10, -13 / 10, 11 / 5, -11 / 5),
}
MOST_TILE_ELEMENTS = 64  # in a tile; larger tiles round too much
LARGEST_RELATIVE_COST = 0.9  # of the direct convolution's time, at most: the filters take more memory
LARGEST_TURN_BYTES = 1 << 23  # bytes of intermediate data in one turn


class Axis(NamedTuple):
    """Height or width, in tiles of `m` results. `before`: zeros before the first pixel."""

    taps: int
    m: int
    pixels: int
    results: int
    before: int

    @property
    def side(self) -> int:
        return self.m + self.taps - 1

    @property
    def tiles(self) -> int:
        return -(-self.results // self.m)

    @property
    def is_served(self) -> bool:
        """True where transform matrices exist, and each result depends on at least one pixel."""
        return self.side in POINTS and self.before < self.taps and self.results <= self.pixels + self.before

    @property
    def matrices(self) -> tuple[Array, Array, Array]:
        return matrices(self.m, self.taps)


class Size(NamedTuple):
    """The size of a convolution, or of one turn of it: whole images, or some rows of one image."""

    images: int
    down: Axis
    across: Axis
    channels: int
    filters: int

    @property
    def tile_elements(self) -> int:
        """Elements of a tile."""
        return self.down.side * self.across.side

    @property
    def tiles(self) -> int:
        return self.images * self.down.tiles * self.across.tiles

    @property
    def parts(self) -> tuple[int, int]:
        """Elements of the two intermediate buffers: each stage reads one and writes the other."""
        halfway = self.across.side * self.images * self.down.pixels * self.across.tiles * self.channels
        return (max(halfway, self.tile_elements * self.tiles * self.filters),
                self.tiles * max(self.tile_elements * self.channels, self.down.m * self.across.m * self.filters))

    @property
    def nbytes(self) -> int:
        return sum(self.parts) * FLOAT.numpy.itemsize

    @property
    def cost(self) -> float:
        """The estimated time as a fraction of the direct convolution's time.

        The factors were fitted on a CPU with AVX-512 to chains of convolutions of 3x3 taps: 33 sizes, one and two
        threads, 1 and 8 images. The error is at most 0.13. For 7x1 taps the estimate is 0.05 too low, for 5x5 0.2.
        """
        taps, matrix = self.down.taps * self.across.taps, self.channels * self.filters
        multiplied = self.tile_elements * self.tiles * matrix
        moved = self.tile_elements * self.tiles * (self.channels + self.filters)
        longer = (self.tile_elements - taps) * matrix  # filters
        direct_multiplications = taps * self.images * self.down.results * self.across.results * matrix
        return (1.2 * multiplied + 50 * moved + 30 * longer + 6e6) / direct_multiplications

    def turns(self) -> Iterator[tuple[Size, int, int]]:
        """Yield the size of each turn, and the element offsets of its images and results. A turn's intermediate
        data stays in the cache."""
        images = next(n for n in range(self.images, 0, -1) if self.images % n == 0 and (
            n == 1 or self._replace(images=n).nbytes <= LARGEST_TURN_BYTES))
        bands = [*self._replace(images=images)._bands()]
        for i in range(0, self.images, images):
            for size, pixel, row in bands:
                yield (size, (i * self.down.pixels + pixel) * self.across.pixels * self.channels,
                       (i * self.down.results + row) * self.across.results * self.filters)

    def _bands(self) -> Iterator[tuple[Size, int, int]]:
        """Bands of one height, in whole tiles. The last band may repeat rows of the band before it."""
        down = self.down
        count = -(-self.nbytes // LARGEST_TURN_BYTES) if self.images == 1 else 1
        rows = -(-down.tiles // count) * down.m
        if rows >= down.results:
            yield self, 0, 0
            return
        for start in range(0, down.results, rows):
            row = min(start, down.results - rows)
            first = max(0, row - down.before)
            last = min(down.pixels, row - down.before + rows + down.taps - 1)
            band = down._replace(pixels=last - first, results=rows, before=max(0, down.before - row))
            yield self._replace(down=band), first, row


def fastest(
    images: Sequence[int], taps: Sequence[int], results: Sequence[int], windows: Sequence[geometry.Window]
) -> Size | None:
    """The tiling with the least estimated time, None where the direct convolution is faster. The convolution has no
    strides. `images`: [images, rows, columns, channels]; `taps`: down, across; `results`: [images, rows, columns,
    filters]."""
    sizes = []
    for m in RESULTS_PER_TILE_SIDE:
        down, across = (Axis(k, m if k > 1 else 1, pixels, n, window.before)
                        for k, pixels, n, window in zip(taps, images[1:3], results[1:3], windows, strict=True))
        size = Size(images[0], down, across, images[3], results[3])
        if down.is_served and across.is_served and 1 < size.tile_elements <= MOST_TILE_ELEMENTS:
            sizes.append(size)
    best = min(sizes, key=lambda size: size.cost, default=None)
    return best if best is not None and best.cost < LARGEST_RELATIVE_COST else None


@cache
def matrices(m: int, taps: int) -> tuple[Array, Array, Array]:
    """The float64 transforms A [m, side], G [side, taps] and B [side, side] (Toom, 1963; Cook, 1966): polynomials are
    evaluated at POINTS and infinity, and interpolated from these values."""
    side = m + taps - 1
    points = np.array(POINTS[side])
    a, g, b = np.zeros((m, side)), np.zeros((side, taps)), np.zeros((side, side))
    for i, point in enumerate(points):
        others = np.delete(points, i)
        a[:, i] = point ** np.arange(m)
        g[i] = point ** np.arange(taps) / np.prod(point - others)
        b[i, :-1] = np.poly(others)[::-1]
    a[-1, -1] = g[-1, -1] = 1
    b[-1] = np.atleast_1d(np.poly(points))[::-1]
    return a, g, b
