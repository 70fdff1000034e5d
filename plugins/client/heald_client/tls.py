"""Certificates of TLS: authorities, and the client's own, from PEM files."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from .errors import ClientError


class TlsFiles(NamedTuple):
    """`authorities`: None for the machine's own. `certificate` and `key`: the client's, where a server asks for it."""

    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None

    def context(self) -> ssl.SSLContext:
        """The context of HTTP. Raises ClientError for files that cannot be read, or hold no certificate or key."""
        for file in self:
            if file is not None:
                read_pem(file)
        try:
            context = ssl.create_default_context(cafile=self.authorities)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except (ssl.SSLError, ValueError, OSError) as error:
            raise ClientError("INVALID_ARGUMENT", f"the certificates cannot be used: {error}") from None
        return context


def read_pem(file: str) -> bytes:
    """Raises ClientError."""
    try:
        with open(file, "rb") as stream:  # noqa: PTH123 - a path of the caller, read as it is
            return stream.read()
    except OSError as error:
        raise ClientError("NOT_FOUND", f"a certificate cannot be read: {error}") from None
