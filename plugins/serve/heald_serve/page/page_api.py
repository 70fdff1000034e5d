"""The route of the page: its files, and the documents that it reads beside those of the REST interface.

    /                        the page
    /page/FILE               its other files
    /page/state.json         models and versions, memory, of all workers together; devices
    /page/version.json       the signatures of a version: ?name=NAME, and &version=N for another than the highest
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import Executor
from time import monotonic
from typing import Any
from urllib.parse import parse_qs

from heald.errors import InvalidArgument, NotFound

from ..http.messages import Request, Response, error_response
from ..metrics import Metrics
from ..models.model_lists import ModelLists
from ..models.model_manager import ModelManager
from ..models.version_folders import is_version
from .documents import devices_document, memory_document, models_document, server_document, version_document
from .page_files import INDEX, SAFETY_HEADERS, page_files

FOLDER = "/page/"
READING = ("GET", "HEAD")


def open_paths() -> frozenset[str]:
    """The paths that need no token: a browser sends none when it opens a page."""
    return frozenset(("/", *(FOLDER + name for name in page_files())))


class PageApi:
    """`host`: of the models' runtime. `conversions`: the threads that read files of labels.

    `metrics`, `lists`: of all workers. `start`: of the server, on the clock of `time.monotonic`.
    """

    def __init__(
        self, manager: ModelManager, host: Any, options: Mapping[str, Any], conversions: Executor, metrics: Metrics,
        lists: ModelLists, start: float,
    ) -> None:
        self._manager, self._host, self._conversions = manager, host, conversions
        self._metrics, self._lists = metrics, lists
        self._server, self._start = server_document(options), start

    async def __call__(self, request: Request) -> Response:
        path, _, query = request.target.partition("?")
        if request.method not in READING:
            refusal = error_response(InvalidArgument(f"Malformed request: {request.method} {path}"))
            return refusal._replace(status=405, headers=((b"allow", b"GET, HEAD"),))
        name = path.removeprefix(FOLDER) if path != "/" else INDEX
        if name == "state.json":
            return _document(await asyncio.to_thread(self._state))
        if name == "version.json":
            return _document(await asyncio.get_running_loop().run_in_executor(
                self._conversions, self._version, query))
        return _file(name, request)

    def _state(self) -> dict[str, Any]:
        return {"server": {**self._server, "seconds": round(monotonic() - self._start)},
                "models": models_document(self._manager, self._lists), "memory": memory_document(self._metrics),
                **devices_document(self._host)}

    def _version(self, query: str) -> dict[str, Any]:
        values = parse_qs(query, keep_blank_values=True)
        name, version = (values.get(key, [""])[0] for key in ("name", "version"))
        if version and not is_version(version):
            raise InvalidArgument(f"'{version}' is no version")
        with self._manager.find(name, int(version) if version else None) as lease:
            return version_document(lease)


def _document(document: Mapping[str, Any]) -> Response:
    return Response(200, json.dumps(document).encode(), headers=((b"cache-control", b"no-store"), *SAFETY_HEADERS))


def _file(name: str, request: Request) -> Response:
    """A file, or the status 304 where the browser has it. It asks each time, so a new version shows at once."""
    file = page_files().get(name)
    if file is None:
        raise NotFound(f"the page has no file '{name}'")
    headers = ((b"etag", file.tag), (b"cache-control", b"no-cache"), *SAFETY_HEADERS)
    tags = request.headers.get(b"if-none-match", b"")
    if file.tag in (tag.strip().removeprefix(b"W/") for tag in tags.split(b",")):
        return Response(304, b"", file.content_type, headers)
    return Response(200, file.content, file.content_type, headers)
