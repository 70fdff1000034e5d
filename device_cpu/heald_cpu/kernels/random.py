"""Random numbers, bit by bit equal to TensorFlow's for the same seeds; float64 normal numbers up to a rounding.

An op is a source, which returns the key and counter of its first block, and a distribution, which makes numbers from
blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import FLOATS, Array
from ..philox import Sequence, blocks, from_seed
from . import float_functions
from .staging import nothing

BLOCKS_AT_ONCE = 1 << 14  # blocks; their intermediate results stay in the cache
RESERVED = 256  # blocks for each number that a stateful op draws, even if it uses fewer
CUTOFF = 2.0  # of a truncated normal distribution, in standard deviations
LEAST_UNIFORM = 1e-7  # smaller uniform numbers are replaced, for the logarithm of 0 would be infinite
PHILOX, AUTOMATIC = 1, 3
HALF = np.uint64(32)
FUNCTIONS: dict[int, tuple[Callable[[Array], Array], Callable[[Array], tuple[Array, Array]]]] = {  # by bytes
    4: (float_functions.log, float_functions.sin_cos), 8: (np.log, lambda x: (np.sin(x), np.cos(x))),
}

Draw = Callable[[Array], Array]  # from blocks to numbers, in order
Start = tuple[int, int]  # key, counter
Source = Callable[[Bind], Callable[..., Start]]  # of a node; then of its inputs
Fill = Callable[..., None]  # of the start, the output, and the distribution's inputs
Distribution = Callable[[np.dtype[Any]], Fill]
Run = Callable[..., None]


def stateful(b: Bind) -> Callable[..., Start]:
    numbers, count = sequence(b), b.outputs[0].size * RESERVED
    return lambda *_: numbers.reserve(count)


def sequence(b: Bind) -> Sequence:
    """The sequence from which a stateful node draws in all runs of its session."""
    return b.resource("random sequence", lambda: Sequence(b.attrs["seed"], b.attrs["seed2"]))


def of_seed(_: Bind) -> Callable[..., Start]:
    return lambda _shape, seed, *_: from_seed(seed)


def of_key(b: Bind) -> Callable[..., Start]:
    algorithm = b.inputs[3].value
    assert algorithm is not None
    if algorithm not in (PHILOX, AUTOMATIC):
        raise errors.InvalidArgument(f"Unsupported algorithm id: {algorithm}")
    return lambda _shape, key, counter, *_: (int(key[0]), int(counter[1]) << 64 | int(counter[0]))


def uniform(dtype: np.dtype[Any]) -> Draw:
    """Uniform numbers in [0, 1): the lowest bits of one or two words are the mantissa of a number in [1, 2)."""
    one = np.ones((), dtype)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    exponent = one.view(unsigned)
    mantissa = (1 << int(ml_dtypes.finfo(dtype).nmant)) - 1  # type: ignore[no-untyped-call]

    def draw(words: Array) -> Array:
        numbers = _pairs(words) if dtype.itemsize == 8 else words
        bits: Array = (numbers & numbers.dtype.type(mantissa)).astype(unsigned) | exponent
        return bits.view(dtype) - one

    return draw


def _pairs(words: Array) -> Array:
    """uint64 numbers of two words each, the first word as the upper half."""
    wide = words.astype(np.uint64)
    return wide[:, 0::2] << HALF | wide[:, 1::2]


def normal(dtype: np.dtype[Any]) -> Draw:
    """Normal numbers: the transform of Box and Muller, in float32 at least, of pairs of numbers in [0, 1)."""
    within = dtype if dtype.itemsize == 8 else np.dtype(np.float32)
    numbers, (log, sin_cos) = uniform(within), FUNCTIONS[within.itemsize]

    def draw(words: Array) -> Array:
        pairs = numbers(words).reshape(len(words), -1, 2)
        angle = (2 * np.pi * pairs[..., 1].astype(np.float64)).astype(within, copy=False)
        radius = np.sqrt(within.type(-2) * log(np.maximum(pairs[..., 0], within.type(LEAST_UNIFORM))))
        waves = np.stack(sin_cos(angle), -1) * radius[..., None]
        return waves.astype(dtype, copy=False)

    return draw


def bits(dtype: np.dtype[Any]) -> Draw:
    """All integers of a type. The first word is the lower half of a 64-bit integer."""
    return lambda words: words.astype("<u4", copy=False).view(dtype)


def fill_with(distribution: Callable[[np.dtype[Any]], Draw]) -> Distribution:
    def bind(dtype: np.dtype[Any]) -> Fill:
        draw = distribution(dtype)
        return lambda start, out, *_: _fill(draw, start, out)

    return bind


def _fill(draw: Draw, start: Start, out: Array) -> None:
    key, counter = start
    flat, block_size = out.reshape(-1), _per_block(out.dtype)
    for first in range(0, flat.size, BLOCKS_AT_ONCE * block_size):
        part = flat[first : first + BLOCKS_AT_ONCE * block_size]
        end = (first + len(part) + block_size - 1) // block_size
        steps = np.arange(first // block_size, end, dtype=np.uint64)
        part[:] = draw(blocks(key, counter, steps)).reshape(-1)[: len(part)]


def _per_block(dtype: np.dtype[Any]) -> int:
    return 2 if dtype.itemsize == 8 else 4


def between(dtype: np.dtype[Any]) -> Fill:
    """Integers in [minval, maxval): the remainders of words, which slightly favour lower integers."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    words = bits(unsigned)

    def fill(start: Start, out: Array, minval: Array, maxval: Array) -> None:
        if minval >= maxval:
            raise errors.InvalidArgument(f"Need minval < maxval, got {minval} >= {maxval}")
        low = minval.astype(unsigned)
        span = maxval.astype(unsigned) - low
        _fill(lambda drawn: (words(drawn) % span + low).view(dtype), start, out)

    return fill


def truncated_normal(dtype: np.dtype[Any]) -> Fill:
    """Normal numbers within the cutoff. Each group of as many numbers as a block has draws from a stretch of its own.
    The stretch is as long as the group's reserved blocks."""
    block_size = _per_block(dtype)
    draw = normal(dtype if dtype.itemsize == 8 else np.dtype(np.float32))
    stretch = block_size * RESERVED // 4

    def fill(start: Start, out: Array, *_: Array) -> None:
        flat = out.reshape(-1)
        for first in range(0, flat.size, BLOCKS_AT_ONCE * block_size):
            part = flat[first : first + BLOCKS_AT_ONCE * block_size]
            end = (first + len(part) + block_size - 1) // block_size
            stretches = np.arange(first // block_size, end, dtype=np.uint64)
            part[:] = _within_cutoff(draw, start, stretches * np.uint64(stretch), block_size).reshape(-1)[: len(part)]

    return fill


def _within_cutoff(draw: Draw, start: Start, steps: Array, count: int) -> Array:
    """[n, count]: the first numbers within the cutoff from each of `steps` on."""
    accepted = np.empty((len(steps), count))
    have = np.zeros(len(steps), np.intp)
    short = np.arange(len(steps))  # rows with fewer than `count` numbers
    while short.size:
        drawn = draw(blocks(*start, steps[short])).reshape(len(short), count)
        good = np.abs(drawn) < CUTOFF
        target_columns = have[short, None] + good.cumsum(1) - 1
        good &= target_columns < count
        rows, columns = good.nonzero()
        accepted[short[rows], target_columns[rows, columns]] = drawn[rows, columns]
        have[short] += good.sum(1)
        steps = steps + np.uint64(1)
        short = short[have[short] < count]
    return accepted


def multinomial(start: Callable[[Bind], Callable[..., Start]]) -> Callable[[Bind], Run]:
    """Multinomial. A sample is the first class with an unnormalised cumulative probability above the drawn number, or
    one past the last class if no logit is finite."""
    def bind(b: Bind) -> Run:
        begin, uniform64 = start(b), uniform(np.dtype(np.float64))

        def run(logits: Array, *others: Array) -> None:
            out = others[-1]
            drawn = np.empty(out.shape)
            _fill(uniform64, begin(logits, *others[1:-1]), drawn)
            totals = _cumulative(logits)
            for row, numbers, row_out in zip(totals, drawn, out, strict=True):
                row_out[:] = row.searchsorted(numbers * row[-1], "right")

        return run if b.outputs[0].size else nothing

    return bind


def _cumulative(logits: Array) -> Array:
    """Unnormalised cumulative probabilities, float64. A logit that is not finite has probability 0."""
    wide = logits.astype(np.float64)
    finite = np.isfinite(wide)
    largest = np.max(wide, 1, where=finite, initial=-np.inf, keepdims=True)
    return np.where(finite, np.exp(wide - largest), 0).cumsum(1)


def _stateful_samples(b: Bind) -> Callable[..., Start]:
    numbers, (batch, samples) = sequence(b), b.outputs[0].dims
    count = batch * (-(-samples // 4) * 4) * 2 * RESERVED  # each sample is of two words
    return lambda *_: numbers.reserve(count)


def random_shuffle(b: Bind) -> Run:
    rows = b.inputs[0].meta.dims[0] if b.inputs[0].rank else 1
    numbers, count = sequence(b), (rows + 2) // 4
    return _shuffle(b, rows, lambda *_: numbers.reserve(count))


def stateless_shuffle(b: Bind) -> Run:
    return _shuffle(b, b.inputs[0].meta.dims[0] if b.inputs[0].rank else 1, of_key(b))


def _shuffle(b: Bind, rows: int, start: Callable[..., Start]) -> Run:
    """Shuffle by Fisher and Yates: a word decides whether an element stays, or which later one it swaps with."""
    if rows <= 1 or not b.inputs[0].size:
        return lambda *arrays: np.copyto(arrays[-1], arrays[0])
    spans, count = np.arange(rows, 1, -1, dtype=np.uint32), (rows + 2) // 4

    def run(x: Array, *others: Array) -> None:
        *_, out = others
        key, counter = start(x, *others[:-1])
        words = blocks(key, counter, np.arange(count, dtype=np.uint64)).reshape(-1)[: rows - 1]
        order = list(range(rows))
        for i, other in enumerate((np.arange(rows - 1) + words % spans).tolist()):  # a swap depends on earlier swaps
            order[i], order[other] = order[other], order[i]
        np.take(x, order, 0, out=out)

    return run


def get_key_counter(_: Bind) -> Run:
    def run(seed: Array, key_out: Array, counter_out: Array, *algorithm: Array) -> None:
        key, counter = from_seed(seed)
        key_out[0] = key
        counter_out[:] = 0, counter >> 64
        for out in algorithm:
            out.fill(PHILOX)

    return run


def get_algorithm(_: Bind) -> Run:
    return lambda out: out.fill(PHILOX)


# types, the stateful op, the stateless one: its second version takes key and counter
DISTRIBUTIONS: tuple[tuple[Distribution, tuple[str, ...], str | None, str], ...] = (
    (fill_with(uniform), FLOATS, "RandomUniform", "StatelessRandomUniform"),
    (fill_with(normal), FLOATS, "RandomStandardNormal", "StatelessRandomNormal"),
    (truncated_normal, FLOATS, "TruncatedNormal", "StatelessTruncatedNormal"),
    (between, ("int32", "int64"), "RandomUniformInt", "StatelessRandomUniformInt"),
    (fill_with(bits), ("int32", "int64", "uint32", "uint64"), None, "StatelessRandomUniformFullInt"),
)


def bind_random(source: Source, distribution: Distribution) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        start, fill = source(b), distribution(b.outputs[0].dtype.numpy)
        return lambda *arrays: fill(start(*arrays[:-1]), arrays[-1], *arrays[-3:-1])

    return lambda b: bind(b) if b.outputs[0].size else nothing


def register_kernels(kernels: Kernels) -> None:
    for distribution, types, with_state, stateless in DISTRIBUTIONS:
        for op, source in ((with_state, stateful), (stateless, of_seed), (f"{stateless}V2", of_key)):
            if op is not None:
                dtype = "Tout" if op == "RandomUniformInt" else "dtype"
                kernels.kernel(op, dtypes={dtype: types})(bind_random(source, distribution))
    kernels.kernel("Multinomial", dtypes={"T": FLOATS})(multinomial(_stateful_samples))
    kernels.kernel("StatelessMultinomial", dtypes={"T": FLOATS})(multinomial(of_seed))
    kernels.kernel("RandomShuffle")(random_shuffle)
    kernels.kernel("StatelessShuffle")(stateless_shuffle)
    kernels.kernel("StatelessRandomGetKeyCounter")(get_key_counter)
    kernels.kernel("StatelessRandomGetKeyCounterAlg")(get_key_counter)
    kernels.kernel("StatelessRandomGetAlg")(get_algorithm)
