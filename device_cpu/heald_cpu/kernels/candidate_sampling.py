"""Candidate sampling: kernels that draw classes for sampled losses, with the expected count of each class.

Equal seeds draw the same classes as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from math import exp, log1p

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from ..philox import below, words
from .random import sequence, uniform

Run = Callable[..., None]
Classes = Iterator[int]
Probability = Callable[[Array], Array]  # float32, of classes
Distribution = Callable[[int], tuple[Callable[[Iterator[int]], Classes], Probability]]  # by class count

RESERVED = 512  # blocks for each class to be sampled, however few it takes
WORDS_AT_ONCE = 64  # words converted at once


def uniform_classes(count: int) -> tuple[Callable[[Iterator[int]], Classes], Probability]:
    def sample(drawn: Iterator[int]) -> Classes:
        pairs = (low | high << 32 for low, high in zip(drawn, drawn, strict=True))
        while True:
            yield below(count, pairs, 64)

    return sample, lambda classes: np.full(classes.shape, np.float32(1 / count))


def log_uniform_classes(count: int) -> tuple[Callable[[Iterator[int]], Classes], Probability]:
    """Class k has the probability log((k + 2) / (k + 1)) / log(count + 1), which suits classes sorted by frequency."""
    spread, number = log1p(count), uniform(np.dtype(np.float64))

    def sample(drawn: Iterator[int]) -> Classes:
        while True:
            numbers = number(np.array(list(islice(drawn, WORDS_AT_ONCE)), np.uint32).reshape(-1, 2))
            yield from ((int(exp(x * spread)) - 1) % count for x in numbers.reshape(-1).tolist())

    return sample, lambda classes: (np.log((classes + 2.0) / (classes + 1.0)) / spread).astype(np.float32)


def candidates(distribution: Distribution) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        numbers, count, classes = sequence(b), b.attrs["num_sampled"], b.attrs["range_max"]
        sample, probability = distribution(classes)

        def run(true: Array, sampled: Array, true_expected: Array, sampled_expected: Array) -> None:
            outside = true[(true < 0) | (true >= classes)]
            if outside.size:
                raise errors.InvalidArgument(f"`true_candidate` out of range [0, {classes}), received {outside[0]}")
            drawn = sample(words(*numbers.reserve(count * RESERVED)))
            tries = count
            if b.attrs["unique"]:
                sampled[:], tries = _different(drawn, count)
            else:
                sampled[:] = list(islice(drawn, count))
            true_expected[...] = _expected_counts(probability(true), count, tries)
            sampled_expected[...] = _expected_counts(probability(sampled), count, tries)

        return run

    return bind


def _different(drawn: Classes, count: int) -> tuple[list[int], int]:
    """The first `count` distinct classes, and the number of draws until then."""
    classes: dict[int, None] = {}
    tries = 0
    while len(classes) < count:
        classes[next(drawn)] = None
        tries += 1
    return list(classes), tries


def _expected_counts(p: Array, count: int, tries: int) -> Array:
    """The expected counts of classes with probabilities p; for distinct classes the probabilities of being drawn.
    float32.

    The latter is 1 - (1 - p)**tries with each step rounded correctly. TensorFlow's C library may miss the last bit."""
    if tries == count:
        return p * np.float32(count)
    logarithms = np.float32(tries) * np.log1p(-p.astype(np.float64)).astype(np.float32)
    return -np.expm1(logarithms.astype(np.float64)).astype(np.float32)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("LogUniformCandidateSampler")(candidates(log_uniform_classes))
    kernels.kernel("UniformCandidateSampler")(candidates(uniform_classes))
