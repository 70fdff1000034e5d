"""Servers of models in Python: a signature is a function, so tests see each call, and need no file."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heald.api import TensorInfo, TensorMetadata, dtypes
from heald_serve.models.model_config import ModelConfig
from heald_serve.models.served_model import DEFAULT_SIGNATURE, PREDICT, ServedSignature
from heald_serve.options import with_defaults
from heald_serve.server import ModelServer
from heald_serve.settings import Settings

Shape = tuple[int | None, ...] | None


def infos(**types: str) -> dict[str, TensorInfo]:
    """Tensors of these element types and of any shape."""
    return {name: TensorInfo(f"{name}:0", TensorMetadata(dtypes.named(kind), None)) for name, kind in types.items()}


def signature(
    inputs: Mapping[str, TensorInfo], outputs: Mapping[str, TensorInfo], function: Callable[..., Any], *,
    name: str = DEFAULT_SIGNATURE, method: str = PREDICT,
) -> dict[str, ServedSignature]:
    """One signature by its name. `function` takes the inputs by name, and returns the outputs in order."""
    def call(arrays: Mapping[str, Any], options: Any) -> Mapping[str, Any]:
        results = function(**arrays)
        return dict(zip(outputs, results if isinstance(results, tuple) else (results,), strict=True))

    return {name: ServedSignature(name, method, inputs, outputs, call)}


def echo(**types: str) -> dict[str, ServedSignature]:
    return signature(infos(**types), infos(**types), lambda **arrays: tuple(arrays.values()))


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


class Client:
    """A connection to a server, kept alive."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        data = body if body is None or isinstance(body, bytes | str) else json.dumps(body)
        self.connection.request(method, path, data, {name.replace("_", "-"): text for name, text in headers.items()})
        answer = self.connection.getresponse()
        return Answer(answer.status, answer.read(), {name.lower(): text for name, text in answer.getheaders()})

    def predict(self, model: str, body: Any) -> Answer:
        return self.ask("POST", f"/v1/models/{model}:predict", body)

    def close(self) -> None:
        self.connection.close()


def settings_of(model_names: Iterable[str], **changes: Any) -> Settings:
    """Settings for models in memory. `changes` are options, or fields of Settings."""
    fields = {name: changes.pop(name) for name in Settings._fields if name in changes}
    configs = [ModelConfig(name, Path(name), is_single=True) for name in model_names]
    options = with_defaults({"drain_timeout_in_ms": 2000, **changes})
    return Settings(options, configs, "127.0.0.1", 0)._replace(**fields)


def start_server(models: Mapping[str, Any], **changes: Any) -> ModelServer:
    """A running server of models by name, each a dict of signatures. The caller closes it."""
    server = ModelServer(settings_of(models, **changes), loader=lambda path: models[str(path)])
    try:
        server.start()
    except BaseException:
        server.close()
        raise
    return server
