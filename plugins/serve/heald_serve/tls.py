"""The TLS context of a server, from PEM texts."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from heald.errors import InvalidArgument

from .settings import TlsTexts


def server_context(texts: TlsTexts) -> ssl.SSLContext:
    """Raises InvalidArgument for texts that are no key, certificate or authorities."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        _load_chain(context, texts)
        if texts.authorities:
            context.load_verify_locations(cadata=texts.authorities)
        elif texts.verifies_clients:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidArgument(f"the SSLConfig has no usable key and certificate: {error}") from None
    context.verify_mode = ssl.CERT_REQUIRED if texts.verifies_clients else ssl.CERT_NONE
    return context


def _load_chain(context: ssl.SSLContext, texts: TlsTexts) -> None:
    """Load key and certificate, which OpenSSL reads from a file: a temporary one, which only its owner can read."""
    handle, name = tempfile.mkstemp(prefix="heald-serve-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{texts.key}\n{texts.certificate}\n")
        context.load_cert_chain(name, password=lambda: "")
    finally:
        Path(name).unlink()
