"""gRPC by grpcio, with messages of this package: unary calls, no limit of the size of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import ClientError
from .messages import parse_message
from .tls import TlsFiles, read_pem

_NO_LIMITS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class GrpcTransport:
    """`target`: HOST:PORT, or unix:PATH. `tls`: None for none; without authorities it has gRPC's own."""

    def __init__(self, target: str, headers: Mapping[str, str], tls: TlsFiles | None) -> None:
        try:
            import grpc
        except ImportError:
            raise ClientError("UNIMPLEMENTED", "gRPC needs the package grpcio: pip install grpcio") from None
        self._error: Any = grpc.RpcError
        self._metadata = [(name.lower(), value) for name, value in headers.items()]
        self._channel: Any = grpc.insecure_channel(target, options=_NO_LIMITS) if tls is None else grpc.secure_channel(
            target, _credentials(tls), options=_NO_LIMITS)

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


def _credentials(tls: TlsFiles) -> Any:
    """Raises ClientError for files that Python's ssl refuses: grpcio tells such a fault on stderr alone."""
    import grpc

    tls.context()
    authorities, certificate, key = (None if file is None else read_pem(file) for file in tls)
    return grpc.ssl_channel_credentials(authorities, key or certificate, certificate)
