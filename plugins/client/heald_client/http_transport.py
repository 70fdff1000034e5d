"""HTTP by urllib3: connections are kept, and nothing is tried twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import urllib3

from .errors import CODE_OF_STATUS, ClientError
from .tls import TlsFiles


class Answer(NamedTuple):
    """`headers`: by lower-case name."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class HttpTransport:
    """`base`: the address, such as http://localhost:8501."""

    def __init__(self, base: str, headers: Mapping[str, str], tls: TlsFiles | None) -> None:
        self._base, self._headers = base, headers
        self._pool = urllib3.PoolManager(retries=False, maxsize=32, ssl_context=None if tls is None else tls.context())

    def ask(self, method: str, path: str, body: bytes | None, timeout: float | None, **headers: str) -> Answer:
        """The answer of any status. Raises ClientError when there is none."""
        fields = {**self._headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        try:
            answer = self._pool.request(method, self._base + path, body=body, headers=fields, timeout=timeout)
        except urllib3.exceptions.TimeoutError as error:
            raise ClientError("DEADLINE_EXCEEDED", f"no answer within {timeout} s: {error}") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClientError("UNAVAILABLE", f"no answer: {error}") from None
        return Answer(answer.status, answer.data, {name.lower(): value for name, value in answer.headers.items()})

    def ask_well(self, method: str, path: str, body: bytes | None, timeout: float | None, **headers: str) -> Answer:
        """The answer of the status 200. Raises ClientError for another status, with the server's text."""
        answer = self.ask(method, path, body, timeout, **headers)
        if answer.status != 200:
            raise ClientError(CODE_OF_STATUS.get(answer.status, "INTERNAL"), _error_text(answer))
        return answer

    def close(self) -> None:
        self._pool.clear()


def _error_text(answer: Answer) -> str:
    try:
        return str(json.loads(answer.body)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"status {answer.status}: {answer.body[:200].decode('utf-8', 'replace')}"


def parse_json(body: bytes) -> Any:
    """Raises ClientError for bytes that are no JSON."""
    try:
        return json.loads(body.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise ClientError("DATA_LOSS", f"the answer is no JSON: {error}") from None
