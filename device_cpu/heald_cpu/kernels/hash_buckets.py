"""Hash kernels: strings to buckets, and fingerprints of the bytes of any tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, dtypes

from .hash_functions import Hash, farmhash64, murmur64a, siphash

Run = Callable[..., Any]


def bucket(choose: Callable[[Bind], Hash]) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        function, buckets = choose(b), np.uint64(b.attrs["num_buckets"])

        def run(x: Any, out: Any) -> None:
            out.reshape(-1)[:] = function.hash_strings(x.reshape(-1)) % buckets

        return run

    return bind


def fingerprint(b: Bind) -> Run:
    """The fingerprint of each row's bytes. A row of several strings gets the fingerprint of their fingerprints."""
    take = _string_rows if b.attrs["T"] is dtypes.string else _rows

    def run(data: Any, _method: Any, out: Any) -> None:
        out[...] = _bytes(take(data))

    return run


def _rows(data: Any) -> Any:
    width = data[:1].nbytes if len(data) else 0
    return farmhash64.hash_rows(data.reshape(-1).view(np.uint8).reshape(len(data), width))


def _string_rows(data: Any) -> Any:
    element_hashes = farmhash64.hash_strings(data.reshape(-1))
    if data.size == len(data):
        return element_hashes
    return farmhash64.hash_rows(_bytes(element_hashes).reshape(len(data), -1 if len(data) else 0))


def _bytes(words: Any) -> Any:
    return words.astype("<u8").view(np.uint8).reshape(-1, 8)


def register_kernels(kernels: Kernels) -> None:
    for op, choose in {
        "StringToHashBucket": lambda _: murmur64a, "StringToHashBucketFast": lambda _: farmhash64,
        "StringToHashBucketStrong": lambda b: siphash(*b.attrs["key"]),
    }.items():
        kernels.kernel(op)(bucket(choose))
    kernels.kernel("Fingerprint")(fingerprint)
