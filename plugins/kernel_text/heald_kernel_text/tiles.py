"""The choice of a tile for a matrix product on a GPU, and of the number of parts that the inner dimension is cut into.

The figures are estimates from published rates and latencies; none was measured on a GPU. They only rank the choices.
"""

from __future__ import annotations

from itertools import product
from math import ceil
from typing import NamedTuple

from .dialect import Target
from .gemm_problem import GemmProblem

THREADS = 256  # of a group, 16 by 16


class Tile(NamedTuple):
    """The sums of one group: rows, columns, the words of the inner dimension in local memory at a time.

    `clocks`: the estimated time for one word of the inner dimension.
    """

    rows: int
    columns: int
    depth: int
    clocks: int


FMA = (Tile(128, 128, 8, 160), Tile(64, 64, 16, 53), Tile(32, 32, 16, 23), Tile(16, 64, 16, 27))
FMA_OF_EIGHT_BYTES = (Tile(64, 64, 8, 106), Tile(32, 32, 8, 46))  # both operands' tiles, twice, fit into 32 KiB
MMA = (Tile(128, 128, 16, 40), Tile(64, 64, 16, 20), Tile(32, 64, 16, 18), Tile(16, 128, 16, 18))
PARTS = (1, 2, 4, 8, 16, 32)
SHORTEST_PART_ELEMENTS = 64  # elements of the inner dimension in a part
LARGEST_SCRATCH_BYTES = 32 << 20  # bytes
SECOND_LAUNCH = 4000  # clocks
ADDED = 4  # partial sums that a multiprocessor reads in a clock


def choose_tile(target: Target, problem: GemmProblem, tiles: tuple[Tile, ...]) -> tuple[Tile, int]:
    """The tile and the number of parts with the least estimated time."""
    sums = problem.batch * problem.rows * problem.columns
    most_parts = min(LARGEST_SCRATCH_BYTES // (sums * problem.dtype.itemsize), problem.inner // SHORTEST_PART_ELEMENTS)
    parts = [1] if target.cpu else [number for number in PARTS if number == 1 or number <= most_parts]
    return min(product(tiles, parts), key=lambda tile_and_parts: _clocks(target, problem, *tile_and_parts))


def _clocks(target: Target, problem: GemmProblem, tile: Tile, parts: int) -> float:
    groups = ceil(problem.rows / tile.rows) * ceil(problem.columns / tile.columns) * problem.batch * parts
    time = ceil(groups / target.processors) * (ceil(problem.inner / parts) + 2 * tile.depth) * tile.clocks
    sums = problem.batch * problem.rows * problem.columns
    return time if parts == 1 else time + SECOND_LAUNCH + sums * parts / (ADDED * target.processors)
