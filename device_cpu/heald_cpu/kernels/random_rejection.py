"""Gamma and Poisson numbers, bit by bit TensorFlow's for the same seeds, up to a rounding of logarithms.

Each number has RESERVED blocks of its own, and is a loop that draws until a number is accepted: Marsaglia and Tsang's
for gamma, Knuth's for small rates and Hörmann's for large ones. `_Draws` runs the loops of many numbers together. Each
loop takes the numbers of a block from the last to the first, and begins a new block for each distribution.

A loop that accepts no number in MOST_ROUNDS ends with an error: the rate is NaN, or its numbers do not fit the type.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from ..philox import blocks
from .random import RESERVED, Draw, Source, Start, normal, of_key, of_seed, stateful, uniform
from .staging import nothing

Run = Callable[..., None]
Sampler = Callable[["_Draws", Array, np.dtype[Any]], Array]
MOST_ROUNDS = 10_000
LARGEST_SMALL_RATE = 10
AT_ONCE = 1 << 16  # numbers that are drawn together
FLOAT64 = np.dtype(np.float64)
log_gamma = np.vectorize(lgamma, otypes=[np.float64])


class _Draws:
    """Numbers of the blocks from `start` on, for each of `indices` from its own reserved blocks."""

    def __init__(self, start: Start, indices: Array) -> None:
        self._key, self._counter = start
        self._steps = indices.astype(np.uint64) * np.uint64(RESERVED)
        self._left: dict[Draw, tuple[Array, Array]] = {}  # numbers of the latest block, and how many are left

    def next(self, draw: Draw, rows: Array) -> Array:
        """One number for each of the rows, which are positions in `indices`."""
        if draw not in self._left:
            width = draw(blocks(0, 0, np.zeros(1, np.uint64))).size
            self._left[draw] = np.empty((len(self._steps), width)), np.zeros(len(self._steps), np.intp)
        numbers, left = self._left[draw]
        empty = rows[left[rows] == 0]
        if empty.size:
            numbers[empty] = draw(blocks(self._key, self._counter, self._steps[empty])).reshape(len(empty), -1)
            self._steps[empty] += np.uint64(1)
            left[empty] = numbers.shape[1]
        left[rows] -= 1
        return numbers[rows, left[rows]]


class _Pending:
    """Iterates over the rows without an accepted number. Raises InvalidArgument after MOST_ROUNDS."""

    def __init__(self, rows: Array, parameters: Array, name: str) -> None:
        self.rows = rows
        self._parameters, self._name, self._rounds = parameters, name, 0

    def __iter__(self) -> _Pending:
        return self

    def __next__(self) -> Array:
        if not self.rows.size:
            raise StopIteration
        self._rounds += 1
        if self._rounds > MOST_ROUNDS:
            raise errors.InvalidArgument(f"no number of the type is drawn for {self._name} "
                                         f"{self._parameters[self.rows[0]]}")
        return self.rows


NORMAL64, UNIFORM64 = normal(FLOAT64), uniform(FLOAT64)


def gamma(draws: _Draws, alphas: Array, _: np.dtype[Any]) -> Array:
    alphas = alphas.astype(np.float64)
    results = np.empty(len(alphas))
    is_one = alphas == 1
    one = np.flatnonzero(is_one)
    if one.size:
        results[one] = -np.log(1 - draws.next(UNIFORM64, one))
    is_small = alphas < 1
    d = alphas + np.where(is_small, 2 / 3, -1 / 3)
    c = 1 / 3 / np.sqrt(d)
    pending = _Pending(np.flatnonzero(~is_one), alphas, "alpha")
    for rows in pending:
        x = draws.next(NORMAL64, rows)
        v = 1 + c[rows] * x
        tried = ~(v <= 0)
        rows, x, v = rows[tried], x[tried], v[tried] ** 3
        u = draws.next(UNIFORM64, rows)
        square = x * x
        accepted = (u < 1 - 0.0331 * square * square) | (np.log(u) < 0.5 * square + d[rows] * (1 - v + np.log(v)))
        done, values = rows[accepted], d[rows[accepted]] * v[accepted]
        small = is_small[done]
        values[small] *= draws.next(UNIFORM64, done[small]) ** (1 / alphas[done[small]])
        results[done] = values
        pending.rows = np.setdiff1d(pending.rows, done, assume_unique=True)
    return results


def poisson(draws: _Draws, rates: Array, dtype: np.dtype[Any]) -> Array:
    """Counts as floats. An infinite rate has the count infinity, which is 0 in an integer type."""
    rates = rates.astype(np.float64)
    largest = float(np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max)
    results = np.full(len(rates), np.inf if dtype.kind == "f" else 0.0)
    is_small = rates < LARGEST_SMALL_RATE
    _few_events(draws, rates, np.flatnonzero(is_small), largest, results)
    _many_events(draws, rates, np.flatnonzero(~is_small & ~np.isposinf(rates)), largest, results)
    return results


def _few_events(draws: _Draws, rates: Array, rows: Array, largest: float, results: Array) -> None:
    """Count the uniform numbers whose product stays above exp(-rate)."""
    limits, products, counts = np.exp(-rates), np.ones_like(rates), np.zeros_like(rates)
    pending = _Pending(rows, rates, "rate")
    for rows in pending:
        products[rows] *= draws.next(UNIFORM64, rows)
        is_done = (products[rows] <= limits[rows]) & (counts[rows] <= largest)
        results[rows[is_done]] = counts[rows[is_done]]
        pending.rows = rows[~is_done]
        counts[pending.rows] += 1


def _many_events(draws: _Draws, rates: Array, rows: Array, largest: float, results: Array) -> None:
    """Transformed rejection; the names of the constants are Hörmann's."""
    b = 0.931 + 2.53 * np.sqrt(rates)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    pending = _Pending(rows, rates, "rate")
    for rows in pending:
        u, v = draws.next(UNIFORM64, rows) - 0.5, draws.next(UNIFORM64, rows)
        rate, edge = rates[rows], 0.5 - np.abs(u)
        k = np.floor((2 * a[rows] / edge + b[rows]) * u + rate + 0.43)
        inside = (edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b[rows] - 2))
        outside = (k < 0) | ((edge < 0.013) & (v > edge))
        s = np.log(v * inverse_alpha[rows] / (a[rows] / (edge * edge) + b[rows]))
        t = -rate + k * np.log(rate) - log_gamma(np.where(k >= 0, k, 0) + 1)
        accepted = (k <= largest) & (inside | ~outside & (s <= t))
        results[rows[accepted]] = k[accepted]
        pending.rows = rows[~accepted]


def bind_rejection(source: Source, sampler: Sampler) -> Callable[[Bind], Run]:
    """Bind an op whose last input has the parameters: each one's numbers are along the dimensions before it."""

    def bind(b: Bind) -> Run:
        if not b.outputs[0].size:
            return nothing
        start, count = source(b), b.inputs[-1].size

        def run(*arrays: Array) -> None:
            *_, parameters, out = arrays
            begin = start(*arrays[:-1])
            flat, of_each = parameters.reshape(-1), out.size // count
            target = out.reshape(of_each, count).T
            for first in range(0, out.size, AT_ONCE):
                indices = np.arange(first, min(first + AT_ONCE, out.size))
                draws = _Draws(begin, indices)
                values = sampler(draws, flat[indices // of_each], out.dtype)
                target[indices // of_each, indices % of_each] = values

        return run

    return bind


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("RandomGamma")(bind_rejection(stateful, gamma))
    kernels.kernel("StatelessRandomGammaV2")(bind_rejection(of_seed, gamma))
    kernels.kernel("StatelessRandomGammaV3")(bind_rejection(of_key, gamma))
    kernels.kernel("RandomPoisson")(bind_rejection(stateful, poisson))
    kernels.kernel("RandomPoissonV2")(bind_rejection(stateful, poisson))
    kernels.kernel("StatelessRandomPoisson")(bind_rejection(of_seed, poisson))
