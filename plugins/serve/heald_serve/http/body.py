"""Bodies of requests: bounded one by one, bounded together, and unpacked.

The bytes of a body are counted before they are kept, in the budget of heald's programs; so requests that arrive, and
tensors that are computed, share one limit. They are given back with the end of the request.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from heald.errors import Cancelled, HealdError

MOST_UNPACKED_BYTES = 100 << 20
COUNTED_FROM_BYTES = 64 << 10  # a smaller body costs less than its counting


class TooLarge(HealdError):
    """A body above the limit."""

    code = 8
    http_status = 413


class BodyReader:
    """The body of one request."""

    def __init__(
        self, receive: Callable[[], Awaitable[Any]], headers: Mapping[bytes, bytes], most_bytes: int, memory: Any
    ) -> None:
        self._receive, self._headers, self._most_bytes, self._memory = receive, headers, most_bytes, memory
        self._counted = 0

    async def read(self) -> bytes:
        """The whole body, unpacked. Raises TooLarge, ResourceExhausted, and Cancelled when the client is gone."""
        length = self._headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > self._most_bytes:
            raise self._too_large()
        body = await self._read_packed()
        if b"gzip" in self._headers.get(b"content-encoding", b"").lower():
            return self._unpack(body)
        return body

    async def _read_packed(self) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Cancelled("the client is gone")
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self._most_bytes:
                raise self._too_large()
            self._count(size)
            chunks.append(chunk)
            if not message.get("more_body", False):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def reserve(self, nbytes: int) -> None:
        """Count memory that the request needs besides its body. Raises ResourceExhausted."""
        self._memory.take(nbytes, "the values of a request")
        self._counted += nbytes

    def _count(self, size: int) -> None:
        if size - self._counted >= COUNTED_FROM_BYTES:
            self._memory.take(size - self._counted, "the body of a request")
            self._counted = size

    def _too_large(self) -> HealdError:
        return TooLarge(f"the body of the request has more than {self._most_bytes:,} bytes")

    def _unpack(self, body: bytes) -> bytes:
        """The unpacked body; an empty one where that fails, as in TensorFlow Serving."""
        inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            unpacked = inflate.decompress(body, MOST_UNPACKED_BYTES + 1)
        except zlib.error:
            return b""
        if len(unpacked) > MOST_UNPACKED_BYTES or not inflate.eof:
            return b""
        self._count(len(body) + len(unpacked))
        return unpacked

    def close(self) -> None:
        """Give the bytes back."""
        if self._counted:
            self._memory.give_back(self._counted)
            self._counted = 0
