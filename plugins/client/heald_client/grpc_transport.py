"""gRPC by grpcio, with messages of this package: unary calls, no limit of the size of messages."""

from __future__ import annotations

from typing import Any

from .errors import ClientError
from .messages import parse_message

_NO_LIMITS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class GrpcTransport:
    """`target`: HOST:PORT, or unix:PATH. `ca_file`: PEM texts of authorities; TLS without it has gRPC's own."""

    def __init__(self, target: str, token: str, ca_file: str | None, *, has_tls: bool) -> None:
        try:
            import grpc
        except ImportError:
            raise ClientError("UNIMPLEMENTED", "gRPC needs the package grpcio: pip install grpcio") from None
        self._error: Any = grpc.RpcError
        self._metadata = [("authorization", f"Bearer {token}")] if token else []
        self._channel: Any = grpc.insecure_channel(target, options=_NO_LIMITS) if not has_tls else grpc.secure_channel(
            target, grpc.ssl_channel_credentials(_read(ca_file)), options=_NO_LIMITS)

    def call(self, method: str, request: Any, response: str, timeout: float | None) -> Any:
        """The message of an answer. Raises ClientError with the code and the text of the status."""
        stub = self._channel.unary_unary(method)
        try:
            data = stub(request.SerializeToString(), timeout=timeout, metadata=self._metadata)
        except self._error as error:
            raise ClientError(error.code().name, error.details() or "") from None
        return parse_message(response, data)

    def close(self) -> None:
        self._channel.close()


def _read(file: str | None) -> bytes | None:
    if file is None:
        return None
    try:
        with open(file, "rb") as stream:  # noqa: PTH123 - a path of the caller, read as it is
            return stream.read()
    except OSError as error:
        raise ClientError("NOT_FOUND", f"the authorities cannot be read: {error}") from None
