"""LitServe's part of serve_peers.py: its workers import this class by its module's name."""

from __future__ import annotations

from typing import Any

import litserve
from serve_peers import make_run, rows_of


class Served(litserve.LitAPI):  # type: ignore[misc]
    """Runs one request at a time. `model`, `threads`: as for `make_run`."""

    def __init__(self, model: str, threads: int) -> None:
        super().__init__()
        self._model, self._threads = model, threads

    def setup(self, _: Any) -> None:
        self._run, self._shape = make_run(self._model, self._threads)

    def decode_request(self, request):  # type: ignore[no-untyped-def]  # it reads annotations
        return rows_of(request["instances"], self._shape)

    def predict(self, x: Any, **_: Any) -> Any:
        return self._run(x)

    def encode_response(self, y: Any, **_: Any) -> Any:
        return {"predictions": y.tolist()}
