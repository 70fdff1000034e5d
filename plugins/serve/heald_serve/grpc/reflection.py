"""gRPC's reflection: the services of the server, and the files that define them, for tools such as grpcurl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..messages import message_class
from .call_handlers import Method, RpcCall
from .services import REFLECTION, descriptor_pool

NOT_FOUND, UNIMPLEMENTED = 5, 12


class Reflection:
    """`services`: the full names of the services of this server."""

    def __init__(self, services: Sequence[str]) -> None:
        self._services = services

    def methods(self) -> dict[str, Method]:
        return {"ServerReflectionInfo": self.answer}

    async def answer(self, request: Any, _: RpcCall) -> Any:
        answer = message_class(f"{REFLECTION}.ServerReflectionResponse")(
            valid_host=request.host, original_request=request)
        kind = request.WhichOneof("message_request")
        if kind == "list_services":
            for name in self._services:
                answer.list_services_response.service.add(name=name)
            return answer
        try:
            file = _find_file(kind, request)
        except KeyError:
            answer.error_response.error_code = NOT_FOUND
            answer.error_response.error_message = f"'{getattr(request, kind)}' is not defined here"
            return answer
        if file is None:
            answer.error_response.error_code = UNIMPLEMENTED
            answer.error_response.error_message = "the messages have no extensions"
        else:
            answer.file_descriptor_response.file_descriptor_proto.extend(_with_dependencies(file))
        return answer


def _find_file(kind: str | None, request: Any) -> Any:
    """The file, or None for a question about extensions. Raises KeyError."""
    if kind == "file_by_filename":
        return descriptor_pool().FindFileByName(request.file_by_filename)
    if kind == "file_containing_symbol":
        return descriptor_pool().FindFileContainingSymbol(request.file_containing_symbol)
    return None


def _with_dependencies(file: Any) -> list[bytes]:
    files: dict[str, bytes] = {}
    pending = [file]
    while pending:
        file = pending.pop()
        if file.name not in files:
            files[file.name] = file.serialized_pb
            pending += file.dependencies
    return [*files.values()]
