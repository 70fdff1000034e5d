"""The front over HTTP: the route of /v2."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from time import monotonic, perf_counter
from typing import Any
from urllib.parse import unquote

from heald.errors import HealdError, InvalidArgument, Unimplemented

from ..http.messages import Request, Response, error_response
from ..later import Later, convert_later, value_or_raise
from ..request_counts import INFER_API, INFER_ENTRY, RequestCounts
from ..rest.json_text import parse_object
from .binary_body import (
    LENGTH_HEADER,
    InferAnswer,
    InferBody,
    inflate,
    json_text,
    parse_body,
    read_inputs,
    write_outputs,
)
from .inference import SIGNATURE_PARAMETER, InferCall, Inference, InferResult
from .model_documents import server_document

LARGEST_ON_LOOP_BYTES = 64 << 10
BINARY_TYPE = "application/octet-stream"
_MODEL = r"/v2/models/(?P<name>[^/]+)(?:/versions/(?P<version>[^/]+))?"
_INFER = re.compile(_MODEL + "/infer")
_UNSERVED = re.compile(r"/v2(/models/[^/]+)?/(systemsharedmemory|cudasharedmemory|trace|logging)(/.*)?")


class InferenceApi:
    """`seconds`: the time of a run, None for no limit. `conversions`: the threads of large bodies."""

    def __init__(
        self, inference: Inference, conversions: Executor, counts: RequestCounts, *, seconds: float | None = 30.0
    ) -> None:
        self._inference, self._conversions, self._counts, self._seconds = inference, conversions, counts, seconds
        self._routes: list[tuple[str, re.Pattern[str], Callable[..., Awaitable[Response]]]] = [
            (method, re.compile(pattern), action) for method, pattern, action in (
                ("GET", r"/v2/?", self._describe_server),
                ("GET", r"/v2/health/live", self._tell_live),
                ("GET", r"/v2/health/ready", self._tell_ready),
                ("GET", _MODEL, self._describe_model),
                ("GET", _MODEL + "/ready", self._tell_model_ready),
                ("GET", _MODEL + "/config", self._describe_config),
                ("GET", _MODEL + "/stats", self._describe_statistics),
                ("GET", r"/v2/models/stats", self._describe_all_statistics),
                ("POST", _MODEL + "/infer", self._infer),
                ("POST", r"/v2/repository/index", self._list_models),
                ("POST", r"/v2/repository/models/(?P<name>[^/]+)/load", self._load),
                ("POST", r"/v2/repository/models/(?P<name>[^/]+)/unload", self._unload))]
        self._routes.sort(key=lambda row: "(?P<" in row[1].pattern)  # a fixed path counts before a model's name

    async def __call__(self, request: Request) -> Response:
        path = request.target.partition("?")[0]
        for method, pattern, action in self._routes:
            match = pattern.fullmatch(path)
            if match is not None and method == request.method:
                names = {key: unquote(text) for key, text in match.groupdict("").items()}
                try:
                    return (await action(request, **names))._replace(model=names.get("name", ""))
                except HealdError as error:
                    return error_response(error, names.get("name", ""))
        if _UNSERVED.fullmatch(path):
            raise Unimplemented("shared memory, traces and logs are not served")
        raise InvalidArgument(f"Malformed request: {request.method} {request.target}")

    def answer_directly(
        self, target: str, headers: Mapping[bytes, bytes], body: bytes
    ) -> Response | Later[Response] | None:
        """The answer of an inference whose run is brief. None for any other request, and for one that fails: the
        ordinary way answers it."""
        start, match = perf_counter(), _INFER.fullmatch(target)
        if match is None or len(body) > LARGEST_ON_LOOP_BYTES:
            return None
        name, version = unquote(match["name"]), unquote(match["version"] or "")
        try:
            parsed = parse_body(body, headers.get(LENGTH_HEADER))
            call = InferCall(name, version, parsed.parameters.get(SIGNATURE_PARAMETER, ""),
                             partial(read_inputs, parsed), [*parsed.binary_outputs])
            result = self._inference.infer_directly(call, lambda outputs: write_outputs(outputs, parsed))
        except HealdError:
            return None
        if result is None:
            return None

        def answer(outcome: InferResult | HealdError) -> Response:
            code = 0
            try:
                done = value_or_raise(outcome)
                return _answer(done.name, done.version, parsed, done.answer)
            except HealdError as error:
                code = error.code
                raise
            finally:
                self._counts.add(name, INFER_API, INFER_ENTRY, code, perf_counter() - start)

        return convert_later(result, answer) if isinstance(result, Later) else answer(result)

    async def _describe_server(self, _: Request) -> Response:
        return _document(server_document())

    async def _tell_live(self, _: Request) -> Response:
        return _document({"live": True})

    async def _tell_ready(self, _: Request) -> Response:
        is_ready = self._inference.is_ready()
        return _document({"ready": is_ready}, 200 if is_ready else 503)

    async def _tell_model_ready(self, _: Request, name: str, version: str) -> Response:
        is_ready = self._inference.is_model_ready(name, version)
        return _document({"name": name, "ready": is_ready}, 200 if is_ready else 503)

    async def _describe_model(self, _: Request, name: str, version: str) -> Response:
        return _document(self._inference.model_document(name, version))

    async def _describe_config(self, _: Request, name: str, version: str) -> Response:
        return _document(self._inference.config_document(name, version))

    async def _describe_statistics(self, _: Request, name: str, version: str) -> Response:
        return _document(self._inference.statistics_document(name, version))

    async def _describe_all_statistics(self, _: Request) -> Response:
        return _document(self._inference.statistics_document("", ""))

    async def _list_models(self, request: Request) -> Response:
        document = await _small_document(request)
        return _document(self._inference.index_rows(is_ready=document.get("ready") is True))

    async def _load(self, request: Request, name: str) -> Response:
        if (await _small_document(request)).get("parameters"):
            raise Unimplemented("a load takes no parameters: the server's list has the models")
        await asyncio.to_thread(self._inference.control.load, name)
        return _document({})

    async def _unload(self, _: Request, name: str) -> Response:
        await asyncio.to_thread(self._inference.control.unload, name)
        return _document({})

    async def _infer(self, request: Request, name: str, version: str) -> Response:
        with self._counts.measure(name, INFER_API, INFER_ENTRY):
            return await self._infer_measured(request, name, version)

    async def _infer_measured(self, request: Request, name: str, version: str) -> Response:
        self._inference.check_room()
        packed = await request.body()
        with self._inference.admission():
            return await self._infer_admitted(request, packed, name, version)

    async def _infer_admitted(self, request: Request, packed: bytes, name: str, version: str) -> Response:
        convert = partial(self._convert, len(packed))
        if b"deflate" in request.headers.get(b"content-encoding", b"").lower():
            packed = await convert(partial(inflate, packed))
        body = await convert(partial(parse_body, packed, request.headers.get(LENGTH_HEADER)))
        signature = body.parameters.get(SIGNATURE_PARAMETER, "")
        if not isinstance(signature, str):
            raise InvalidArgument(f"the parameter '{SIGNATURE_PARAMETER}' is no string")
        deadline = None if self._seconds is None else monotonic() + self._seconds
        result = await self._inference.infer(
            InferCall(name, version, signature, partial(read_inputs, body), [*body.binary_outputs], deadline,
                      request.on_disconnect),
            convert, lambda outputs, _: write_outputs(outputs, body))
        return _answer(result.name, result.version, body, result.answer)

    async def _convert(self, size: int, convert: Callable[[], Any]) -> Any:
        if size <= LARGEST_ON_LOOP_BYTES:
            return convert()
        return await asyncio.get_running_loop().run_in_executor(self._conversions, convert)


async def _small_document(request: Request) -> Mapping[str, Any]:
    body = await request.body()
    return parse_object(body) if body.strip() else {}


def _document(document: Any, status: int = 200) -> Response:
    return Response(status, json_text(document).encode())


def _answer(name: str, version: str, body: InferBody, answer: InferAnswer) -> Response:
    head = f'{{"model_name":{json_text(name)},"model_version":"{version}",'
    if body.id:
        head += f'"id":{json_text(body.id)},'
    text = f'{head}"outputs":[{",".join(answer.outputs)}]}}'.encode("utf-8", "surrogateescape")
    if not answer.raw:
        return Response(200, text)
    headers = ((LENGTH_HEADER, str(len(text)).encode()),)
    return Response(200, b"".join([text, *answer.raw]), BINARY_TYPE, headers)
