"""Tiles: how Winograd's algorithm (kernels/winograd.py) cuts images, by which matrices, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from .memory import FLOAT, Array

TAPS = 3  # a side
POINTS = {2: (0, 1, -1), 4: (0, 2 / 3, -2 / 3, 3 / 2, -3 / 2)}  # by m; of those tried, these round least
WORTH = 0.95  # of a convolution's time, from which more memory for filters is not worth it
IN_CACHE = 1 << 23  # bytes between images and results from which there are several turns


class Size(NamedTuple):
    """A convolution, or a turn of it: whole images, or some rows of one. `above`, `left`: the rows and columns of zeros
    before the first pixel."""

    m: int
    images: int
    height: int
    width: int
    channels: int
    rows: int
    columns: int
    filters: int
    above: int
    left: int

    @property
    def side(self) -> int:
        """Of a tile."""
        return self.m + TAPS - 1

    @property
    def down(self) -> int:
        """Tiles in a column."""
        return -(-self.rows // self.m)

    @property
    def across(self) -> int:
        return -(-self.columns // self.m)

    @property
    def tiles(self) -> int:
        return self.images * self.down * self.across

    @property
    def parts(self) -> tuple[int, int]:
        """Elements of what is between images and results at once: each step reads the one part, writes the other."""
        halfway = self.side * self.images * self.height * self.across * self.channels
        return (max(halfway, self.side**2 * self.tiles * self.filters),
                self.tiles * max(self.side**2 * self.channels, self.m**2 * self.filters))

    @property
    def nbytes(self) -> int:
        return sum(self.parts) * FLOAT.numpy.itemsize

    @property
    def cost(self) -> float:
        """How long it takes, as a part of the convolution's own time. The factors were fitted to chains of convolutions
        of 33 sizes, by one and two threads, of 1 and 8 images, on a CPU with AVX-512: they are right within 0.13."""
        places, matrix = self.side**2, self.channels * self.filters
        multiplied, moved = places * self.tiles * matrix, places * self.tiles * (self.channels + self.filters)
        longer = (places - TAPS**2) * matrix  # filters
        whole = TAPS**2 * self.images * self.rows * self.columns * matrix
        return (1.2 * multiplied + 50 * moved + 30 * longer + 6e6) / whole

    def turns(self) -> Iterator[tuple[Size, int, int]]:
        """What is done at once, so that it stays in the cache, and the elements where its images and results begin."""
        images = next(n for n in range(self.images, 0, -1) if self.images % n == 0 and (
            n == 1 or self._replace(images=n).nbytes <= IN_CACHE))
        bands = [*self._replace(images=images)._bands()]
        for i in range(0, self.images, images):
            for size, pixel, row in bands:
                yield (size, (i * self.height + pixel) * self.width * self.channels,
                       (i * self.rows + row) * self.columns * self.filters)

    def _bands(self) -> Iterator[tuple[Size, int, int]]:
        """The same number of rows each, of whole tiles: the last band may do rows again that are done."""
        count = -(-self.nbytes // IN_CACHE) if self.images == 1 else 1
        rows = -(-self.down // count) * self.m
        if rows >= self.rows:
            yield self, 0, 0
            return
        for start in range(0, self.rows, rows):
            row = min(start, self.rows - rows)
            first = max(0, row - self.above)
            last = min(self.height, row - self.above + rows + TAPS - 1)
            yield self._replace(height=last - first, rows=rows, above=max(0, self.above - row)), first, row


def quickest(images: Sequence[int], results: Sequence[int], above: int, left: int) -> Size | None:
    """The tiles by which results of this shape [images, rows, columns, filters] take least time, if that is less than
    the convolution's."""
    (count, height, width, channels), (_, rows, columns, filters) = images, results
    best = min((Size(m, count, height, width, channels, rows, columns, filters, above, left) for m in POINTS),
               key=lambda size: size.cost)
    return best if best.cost < WORTH else None


@cache
def matrices(m: int) -> tuple[Array, Array, Array]:
    """A [m, side], G [side, TAPS] and B [side, side], of float64: values of polynomials at POINTS and infinity, and the
    interpolation of these (Toom, 1963; Cook, 1966)."""
    points = np.array(POINTS[m])
    side = m + TAPS - 1
    a, g, b = np.zeros((m, side)), np.zeros((side, TAPS)), np.zeros((side, side))
    for i, point in enumerate(points):
        others = np.delete(points, i)
        a[:, i] = point ** np.arange(m)
        g[i] = point ** np.arange(TAPS) / np.prod(point - others)
        b[i, :-1] = np.poly(others)[::-1]
    a[-1, -1] = g[-1, -1] = 1
    b[-1] = np.poly(points)[::-1]
    return a, g, b
