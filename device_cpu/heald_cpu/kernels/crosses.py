"""Feature crosses: in each row, every combination of one value from each column, joined to a text or hashed.

A column is a sparse, ragged or dense tensor. Combinations count like numbers whose last digit is the last column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, Kernels, dtypes, errors

from ..element_types import Array
from .hash_functions import Hash, farmhash64, siphash
from .ragged import check_whole

Run = Callable[..., Any]
SEPARATOR = b"_X_"
MULTIPLIER, HALF = np.uint64(0xC6A4A7935BD1E995), np.uint64(47)
LARGEST = np.uint64(2**63 - 1)


class Column(NamedTuple):
    """Values, and the place of the first value and the number of values of each row. `width` is this number where all
    rows of a dense column have it."""

    values: Array
    starts: Array
    counts: Array
    width: int | None = None


def sparse_column(indices: Array, values: Array, shape: Array) -> Column:
    """Elements count up to the first whose row is outside, or lower than the row before, as in TensorFlow."""
    if len(shape) != 2 or shape[0] < 0:
        raise errors.InvalidArgument(f"a column must be a matrix, given shape {shape.tolist()}")
    rows = indices[:, 0]
    is_next = (rows >= 0) & (rows < shape[0])
    is_next[1:] &= rows[1:] >= rows[:-1]
    used = rows if is_next.all() else rows[: is_next.argmin()]
    counts = np.bincount(used, minlength=int(shape[0]))
    return Column(values, np.cumsum(counts) - counts, counts)


def ragged_column(values: Array, splits: Array) -> Column:
    check_whole([splits], len(values))
    return Column(values, splits[:-1], np.diff(splits))


def dense_column(x: Array) -> Column:
    return Column(x.reshape(-1), np.arange(len(x)) * x.shape[1], np.full(len(x), x.shape[1]), x.shape[1])


class Crosses(NamedTuple):
    """Combinations row by row: their numbers, and for each column the places of the values that take part. `width` is
    the number of each row, if all columns are dense."""

    counts: Array
    places: list[Array]
    width: int | None = None

    @classmethod
    def of(cls, b: Bind, columns: Sequence[Column]) -> Crosses:
        if len({len(column.counts) for column in columns}) > 1:
            raise errors.InvalidArgument("all columns must have the same number of rows, given "
                                         f"{[len(column.counts) for column in columns]}")
        if not columns:
            return cls(np.zeros(0, np.int64), [])
        widths = [column.width for column in columns if column.width is not None]
        if len(widths) == len(columns):
            return cls._of_dense(b, columns, widths)
        with np.errstate(all="ignore"):
            total = float(np.prod([column.counts.astype(np.float64) for column in columns], 0).sum())
        cls._ask(b, int(min(total, 1e18)), len(columns))
        counts = np.prod([column.counts for column in columns], 0, np.int64)
        rows = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        places: list[Array] = []
        for column in reversed(columns):
            number, digit = np.divmod(number, column.counts[rows])
            places.append(column.starts[rows] + digit)
        return cls(counts, places[::-1])

    @classmethod
    def _of_dense(cls, b: Bind, columns: Sequence[Column], widths: Sequence[int]) -> Crosses:
        """Every row has the same combinations."""
        rows, row_crosses = len(columns[0].counts), prod(widths)
        cls._ask(b, rows * row_crosses, len(columns))
        if row_crosses == 1:
            return cls(columns[0].counts, [column.starts for column in columns], 1)
        digits = np.unravel_index(np.arange(row_crosses), widths) if row_crosses else [np.arange(0)] * len(widths)
        places = [(column.starts[:, None] + digit).reshape(-1) for column, digit in zip(columns, digits, strict=True)]
        return cls(np.full(rows, row_crosses), places, row_crosses)

    @staticmethod
    def _ask(b: Bind, crosses: int, columns: int) -> None:
        b.ask(crosses * 8 * (columns + 4), "a tensor of crosses")

    def indices(self) -> Array:
        if self.width is not None:
            grid = np.empty((len(self.counts), self.width, 2), np.int64)
            grid[..., 0], grid[..., 1] = np.arange(len(self.counts))[:, None], np.arange(self.width)
            return grid.reshape(-1, 2)
        rows = np.repeat(np.arange(len(self.counts)), self.counts)
        starts = np.cumsum(self.counts) - self.counts
        return np.stack([rows, np.arange(len(rows)) - starts[rows]], 1)


def join_crosses(columns: Sequence[Column], crosses: Crosses, separator: bytes) -> Array:
    texts = [_texts(column.values)[places] for column, places in zip(columns, crosses.places, strict=True)]
    out = np.empty(int(crosses.counts.sum()), object)
    out[:] = [separator.join(parts) for parts in zip(*texts, strict=True)]
    return out


def _texts(values: Array) -> Array:
    if values.dtype == object:
        return values
    out = np.empty(len(values), object)
    out[:] = [b"%d" % value for value in values.tolist()]
    return out


def hash_crosses(columns: Iterable[Array], crosses: Crosses, buckets: int, first: int | None = None) -> Array:
    """The hashes of crosses. `columns`: the uint64 of each value of each column."""
    parts = [column[places] for column, places in zip(columns, crosses.places, strict=True)]
    if first is not None:
        parts.insert(0, np.full(int(crosses.counts.sum()), first & 2**64 - 1, np.uint64))
    if not parts:
        return np.zeros(0, np.int64)
    total: Array = reduce(concatenated_fingerprints, parts) % (np.uint64(buckets) if buckets > 0 else LARGEST)
    return total.astype(np.int64)


def concatenated_fingerprints(a: Array, b: Array) -> Array:
    """TensorFlow's FingerprintCat64."""
    def mix(x: Array) -> Any:
        return x ^ x >> HALF

    fingerprints: Array = mix(mix((a ^ MULTIPLIER ^ mix(b * MULTIPLIER) * MULTIPLIER) * MULTIPLIER) * MULTIPLIER)
    return fingerprints


def _plain_hashes(values: Array) -> Array:
    """Fingerprints of texts; integers are their own."""
    return farmhash64.hash_strings(values) if values.dtype == object else values.astype(np.uint64)


def _columns(b: Bind, arrays: Sequence[Array]) -> tuple[list[Column], Sequence[Array]]:
    """The columns of SparseCross ops, and the other inputs."""
    count, dense_count = b.attrs["N"], len(b.attrs["dense_types"])
    indices, values, shapes = (arrays[i * count : (i + 1) * count] for i in range(3))
    columns = [sparse_column(*parts) for parts in zip(indices, values, shapes, strict=True)]
    columns += map(dense_column, arrays[3 * count : 3 * count + dense_count])
    return columns, arrays[3 * count + dense_count :]


def _sparse_result(crosses: Crosses, values: Array) -> tuple[Array, Array, Array]:
    shape = np.array([len(crosses.counts), crosses.counts.max(initial=0)], np.int64)
    return crosses.indices(), values, shape


def cross(b: Bind) -> Run:
    """SparseCross. The type of its result decides between texts and hashes, as in TensorFlow."""
    join = _join_or_hash(b, b.attrs["out_type"])

    def run(*arrays: Array) -> tuple[Array, Array, Array]:
        columns, _ = _columns(b, arrays)
        crosses = Crosses.of(b, columns)
        return _sparse_result(crosses, join(columns, crosses))

    return run


def _join_or_hash(b: Bind, out_type: Any) -> Callable[[Sequence[Column], Crosses], Array]:
    if out_type is dtypes.string:
        return partial(join_crosses, separator=SEPARATOR)
    buckets, key = b.attrs["num_buckets"], b.attrs["hash_key"]
    return lambda columns, crosses: hash_crosses([_plain_hashes(c.values) for c in columns], crosses, buckets, key)


def cross_joined(b: Bind) -> Run:
    """SparseCrossV2."""

    def run(*arrays: Array) -> tuple[Array, Array, Array]:
        columns, (separator,) = _columns(b, arrays)
        crosses = Crosses.of(b, columns)
        return _sparse_result(crosses, join_crosses(columns, crosses, separator.reshape(-1)[0]))

    return run


def cross_hashed(b: Bind) -> Run:
    """SparseCrossHashed. The salt is the key of strong hashes only."""
    sparse_count = b.attrs["N"]

    def run(*arrays: Array) -> tuple[Array, Array, Array]:
        columns, (buckets, is_strong, salt) = _columns(b, arrays)
        crosses = Crosses.of(b, columns)
        function = siphash(*salt.reshape(-1).tolist()) if is_strong.reshape(-1)[0] else farmhash64
        has_numbers = any(column.values.dtype != object for column in columns[sparse_count:])
        if function is not farmhash64 and has_numbers and crosses.counts.any():
            raise errors.Unimplemented("there are no strong hashes of dense integers",
                                       hint="turn them into a sparse tensor or into strings")
        words = [function.hash_strings(column.values) if column.values.dtype == object else
                 _low_words(function, column.values) if place < sparse_count else column.values.astype(np.uint64)
                 for place, column in enumerate(columns)]
        return _sparse_result(crosses, hash_crosses(words, crosses, int(buckets.reshape(-1)[0])))

    return run


def _low_words(function: Hash, values: Array) -> Array:
    """The hashes of the lower four bytes of integers: TensorFlow hashes no more of them."""
    return function.hash_rows(values.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :4])


def ragged_cross(b: Bind) -> Run:
    attrs = b.attrs
    join, splits_type = _join_or_hash(b, attrs["out_values_type"]), attrs["out_row_splits_type"].numpy
    ragged, sparse, dense = len(attrs["ragged_values_types"]), attrs["Nsparse"], len(attrs["dense_types"])
    order = _order(attrs["input_order"], ragged, sparse, dense)

    def run(*arrays: Array) -> tuple[Array, Array]:
        parts = iter(arrays)

        def take(count: int) -> list[Array]:
            return [next(parts) for _ in range(count)]

        by_kind = {
            "R": [*map(ragged_column, take(ragged), take(ragged))],
            "S": [*map(sparse_column, take(sparse), take(sparse), take(sparse))],
            "D": [*map(dense_column, take(dense))],
        }
        columns = [by_kind[kind][place] for kind, place in order]
        crosses = Crosses.of(b, columns)
        splits = np.append(0, np.cumsum(crosses.counts))
        if splits[-1] > np.iinfo(splits_type).max:
            raise errors.InvalidArgument(f"{splits[-1]} crosses do not fit splits of type {splits_type}")
        return join(columns, crosses), splits.astype(splits_type)

    return run


def _order(letters: str, ragged: int, sparse: int, dense: int) -> list[tuple[str, int]]:
    """The kind and the place of each column. Raises InvalidArgument for an order of other columns."""
    counts = {"R": ragged, "S": sparse, "D": dense}
    if any(letters.count(kind) != count for kind, count in counts.items()) or len(letters) != sum(counts.values()):
        raise errors.InvalidArgument(f"input_order must have {ragged} R, {sparse} S and {dense} D, given {letters!r}")
    return [(kind, letters[:i].count(kind)) for i, kind in enumerate(letters)]


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "RaggedCross": ragged_cross, "SparseCross": cross, "SparseCrossHashed": cross_hashed,
        "SparseCrossV2": cross_joined,
    }.items():
        kernels.kernel(op, allocates=True)(bind)
