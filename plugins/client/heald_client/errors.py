"""The error of this package."""

from __future__ import annotations

# The canonical code of a status of HTTP, after TensorFlow Serving's table.
CODE_OF_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
                  408: "DEADLINE_EXCEEDED", 409: "ABORTED", 413: "RESOURCE_EXHAUSTED", 429: "RESOURCE_EXHAUSTED",
                  499: "CANCELLED", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}


class ClientError(Exception):
    """A call that failed. `code` is a canonical name, such as NOT_FOUND; `text` is the server's own."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text

    def __reduce__(self) -> tuple[type[ClientError], tuple[str, str]]:
        return ClientError, (self.code, self.text)
