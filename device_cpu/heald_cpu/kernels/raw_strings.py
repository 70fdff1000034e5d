"""Kernels that read the bytes of strings: as numbers, padded with zeros, and as compressed data."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import INTEGERS, Array
from .const_inputs import integer

Run = Callable[..., Any]
WINDOW_BITS = {"GZIP": 16 + zlib.MAX_WBITS, "ZLIB": zlib.MAX_WBITS}
CHUNK_BYTES = 1 << 20  # that are decompressed before memory is asked for again


def decode_padded_raw(b: Bind) -> Run:
    """DecodePaddedRaw: the first bytes of each string, or all and zeros behind."""
    length, dtype, swapped = integer(b, 1), b.attrs["out_type"].numpy, not b.attrs["little_endian"]

    def run(strings: Array, _: Array, out: Array) -> None:
        padded = b"".join(text[:length].ljust(length, b"\0") for text in strings.reshape(-1))
        numbers = np.frombuffer(padded, np.dtype(f"u{dtype.itemsize}"))
        out[...] = (numbers.byteswap() if swapped else numbers).view(dtype).reshape(out.shape)

    return run


def decode_compressed(b: Bind) -> Run:
    kind = b.attrs["compression_type"]
    if kind == "ZSTD":
        raise errors.Unimplemented("ZSTD is not implemented", hint="compress with GZIP or ZLIB instead")
    if kind not in WINDOW_BITS:
        return lambda strings, out: np.copyto(out, strings)

    def run(strings: Array, out: Array) -> None:
        size = 0
        contents = []
        for text in strings.reshape(-1):
            chunks = []
            for chunk in _decompress(text, WINDOW_BITS[kind], joins=kind == "GZIP"):
                chunks.append(chunk)
                size += len(chunk)
                b.ask(size + CHUNK_BYTES, "decompressed strings")
            contents.append(b"".join(chunks))
        out.reshape(-1)[:] = contents

    return run


def _decompress(text: bytes, window_bits: int, *, joins: bool) -> Any:
    """Yield the content chunk by chunk. Truncated data yield their whole part, as in TensorFlow. With `joins`,
    further members follow the first."""
    while text:
        stream = zlib.decompressobj(window_bits)
        try:
            while text and not stream.eof:
                chunk = stream.decompress(text, CHUNK_BYTES)
                if chunk:
                    yield chunk
                elif not stream.eof:
                    return
                text = stream.unconsumed_tail or text[:0]
        except zlib.error as error:
            raise errors.DataLoss(f"inflate() failed: {error}") from None
        text = stream.unused_data if joins else b""


def register_kernels(kernels: Kernels) -> None:
    types = ("float32", "float64", *INTEGERS, "bfloat16")
    kernels.kernel("DecodePaddedRaw", dtypes={"out_type": types})(decode_padded_raw)
    kernels.kernel("DecodeCompressed")(decode_compressed)
