"""The server of heald view: one page and the answers about its model, for one user of this machine.

The library's http.server is enough: one user, two addresses, no streams. Rules:

- The socket is bound to 127.0.0.1. A request's Host must be this address or localhost, with the port, so no name of
  another site leads here (DNS rebinding).
- Each address begins with a random token, compared in constant time. Other programs and other users of the machine do
  not know it.
- A question is a POST of JSON from the page's own origin. Its length is bounded, and its time to arrive, too.
- Answers forbid caches, frames, referrers and guesses of types. The page's policy permits its own scripts by hash, and
  connections to this server.
- A file's path is in no request: only the model is read, before the server starts.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from heald.errors import HealdError

from .inspection import Inspector

ADDRESS = "127.0.0.1"
LARGEST_QUESTION_BYTES = 48 << 20  # a picture of the largest size in base64, and the rest
SOCKET_SECONDS = 20.0  # for a request to arrive, and for an answer to be taken
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
           "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
           "Cross-Origin-Opener-Policy": "same-origin", "Content-Security-Policy": "frame-ancestors 'none'"}
JSON_TYPE = "application/json"


class ViewServer(ThreadingHTTPServer):
    """Serves a page and an Inspector. `address`: the page's address, with the token."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, page: bytes, inspector: Inspector, port: int = 0) -> None:
        """Raises OSError when the port is in use."""
        super().__init__((ADDRESS, port), _Handler)
        self.page = page
        self.inspector = inspector
        self.turn = threading.Lock()  # held by the one question that is being answered
        self.token = secrets.token_urlsafe(24)
        self.hosts = tuple(f"{name}:{self.server_port}" for name in (ADDRESS, "localhost"))
        self.address = f"http://{self.hosts[0]}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no fault of the server."""


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    timeout = SOCKET_SECONDS
    server_version, sys_version = "heald", ""

    def do_GET(self) -> None:
        if self._is_permitted(""):
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)

    def do_POST(self) -> None:
        if not self._is_permitted("ask"):
            return
        if self.headers.get_content_type() != JSON_TYPE:
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            self._refuse(HTTPStatus.LENGTH_REQUIRED)
        elif len(length) > 9 or int(length) > LARGEST_QUESTION_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._answer(self.rfile.read(int(length)))

    def _answer(self, body: bytes) -> None:
        try:
            question = json.loads(body)
        except (ValueError, RecursionError):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        try:
            with self.server.turn:
                status, answer = HTTPStatus.OK, self.server.inspector.answer(question)
        except HealdError as error:
            status, answer = HTTPStatus.BAD_REQUEST, {"error": error.message, "hint": error.hint or ""}
        self._send(status, JSON_TYPE, json.dumps(answer, allow_nan=False).encode())

    def _is_permitted(self, rest: str) -> bool:
        """Refuse a request of another host, origin, token or address."""
        hosts = self.server.hosts
        origin = self.headers.get("Origin")
        is_permitted = (self.headers.get_all("Host", []) in [[host] for host in hosts]
                        and (origin is None or origin in [f"http://{host}" for host in hosts])
                        and hmac.compare_digest(self.path.encode(), f"/{self.server.token}/{rest}".encode()))
        if not is_permitted:
            self._refuse(HTTPStatus.FORBIDDEN)
        return is_permitted

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, "text/plain; charset=utf-8", status.phrase.encode())

    def _send(self, status: HTTPStatus, content_type: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Requests are not logged: their addresses have the token."""
