"""gRPC's health service. TensorFlow Serving names its services without their package."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from heald.errors import NotFound

from ..messages import message_class
from .call_handlers import Method, RpcCall
from .services import HEALTH

KNOWN_SERVICES = ("", "ModelService", "PredictionService")
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
SLICE_SECONDS = 0.5  # between two looks of a watch


class Health:
    """`is_ready` tells whether every model serves. `ending` is set when the server begins to end."""

    def __init__(self, is_ready: Callable[[], bool], ending: threading.Event) -> None:
        self._is_ready, self._ending = is_ready, ending

    def methods(self) -> dict[str, Method]:
        return {"Check": self.check, "Watch": self.watch}

    async def check(self, request: Any, _: RpcCall) -> Any:
        if request.service not in KNOWN_SERVICES:
            raise NotFound(f"unknown service '{request.service}'")
        return self._status(request)

    def _status(self, request: Any) -> Any:
        status = (SERVICE_UNKNOWN if request.service not in KNOWN_SERVICES
                  else SERVING if self._is_ready() and not self._ending.is_set() else NOT_SERVING)
        return message_class(f"{HEALTH}.HealthCheckResponse")(status=status)

    async def watch(self, request: Any, _: RpcCall) -> AsyncIterator[Any]:
        """The status, and each change of it, until the caller leaves or the server ends."""
        last = None
        while True:
            is_last = self._ending.is_set()
            answer = self._status(request)
            if answer.status != last:
                last = answer.status
                yield answer
            if is_last:
                return
            await asyncio.sleep(SLICE_SECONDS)
