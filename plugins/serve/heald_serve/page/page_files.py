"""The files of the page, with their types, their tags for caches, and the policy of the page."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import NamedTuple

INDEX = "index.html"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
         ".js": "text/javascript; charset=utf-8"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
          "trusted-types 'none'")
SAFETY_HEADERS = (
    (b"content-security-policy", POLICY.encode()), (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"), (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"))


class PageFile(NamedTuple):
    """`tag`: the value of the header ETag, which changes with the content."""

    content: bytes
    content_type: str
    tag: bytes


@cache
def page_files() -> dict[str, PageFile]:
    """The files by name, read once."""
    files = {}
    for entry in resources.files(__package__).joinpath("files").iterdir():
        suffix = entry.name[entry.name.rfind("."):]
        if suffix in TYPES:
            content = entry.read_bytes()
            tag = b'"%s"' % hashlib.sha256(content).hexdigest()[:32].encode()
            files[entry.name] = PageFile(content, TYPES[suffix], tag)
    return files
