"""MLServer's part of serve_peers.py: it imports this class by its module's name."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse
from serve_peers import make_run


class Served(MLModel):  # type: ignore[misc]
    """The model and its threads are the parameters of its settings."""

    async def load(self) -> bool:
        parameters = self.settings.parameters
        self._threads = parameters.extra["threads"]
        self._run, _ = make_run(parameters.uri, self._threads)
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        x = NumpyCodec.decode_input(payload.inputs[0]).astype(np.float32, copy=False)
        y: Any = self._run(x) if self._threads == 1 else await asyncio.to_thread(self._run, x)
        return InferenceResponse(model_name="m", outputs=[NumpyCodec.encode_output("y", y)])
