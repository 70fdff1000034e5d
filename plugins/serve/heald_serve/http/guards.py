"""Guards of requests: the names of the server, and its bearer token.

A page of a stranger can have a browser send requests to a loopback address under the stranger's own name (DNS
rebinding). So a server on a loopback address takes requests for its own names alone.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Mapping

from heald.errors import HealdError, PermissionDenied, Unauthenticated

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PORT = re.compile(r":\d*\Z")


class Guards:
    """`hosts`: the allowed names of the Host header; None for all. `token`: the bearer token, or ""."""

    def __init__(self, hosts: Collection[str] | None, token: str = "") -> None:
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._token = token.encode()

    @property
    def are_open(self) -> bool:
        """True where no request is refused."""
        return self._hosts is None and not self._token

    def refusal(self, headers: Mapping[bytes, bytes], *, is_open: bool = False) -> HealdError | None:
        """The reason why this request is refused, or None. An open path needs no token."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self._hosts is not None and _PORT.sub("", host) not in self._hosts:
            return PermissionDenied(f"the server has no name '{host}'", hint="--allowed_hosts adds names")
        if not self._token or is_open:
            return None
        scheme, _, credentials = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(credentials.strip(), self._token):
            return None
        return Unauthenticated("the request needs the server's bearer token")
