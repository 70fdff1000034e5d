"""The clients, and the choice of a protocol by an address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from .calls import Arrays, DescribeCall, PredictCall, ServerProtocol, SignatureSpec
from .errors import ClientError

SCHEMES = ("http", "https", "grpc", "grpcs")
SERVING, V2 = "serving", "v2"
DEFAULT_SECONDS = 30.0
ASYNC_THREADS = 32  # calls of an AsyncClient at a time


class Client:
    """A client of one server. Any thread may call."""

    def __init__(self, protocol: ServerProtocol) -> None:
        self._protocol = protocol

    def predict(
        self, model: str, inputs: Mapping[str, Any], *, version: int | None = None, signature: str = "",
        outputs: Sequence[str] = (), timeout: float | None = DEFAULT_SECONDS,
    ) -> Arrays:
        """The outputs of a model by name. Strings are object arrays of bytes. Raises ClientError.

        `version`: None for the highest. `signature`: "" for the default. `outputs`: none for all. `timeout`: seconds.
        """
        return self._protocol.predict(PredictCall(model, inputs, version, signature, outputs, timeout))

    def describe(
        self, model: str, *, version: int | None = None, signature: str = "",
        timeout: float | None = DEFAULT_SECONDS,
    ) -> SignatureSpec:
        """The inputs and outputs of a signature, with their types and shapes. Raises ClientError.

        The Open Inference Protocol describes the default signature alone.
        """
        return self._protocol.describe(DescribeCall(model, version, signature, timeout))

    def is_ready(self, model: str, *, timeout: float | None = DEFAULT_SECONDS) -> bool:
        """True for a model with a version that serves. Raises ClientError when the server does not answer."""
        return self._protocol.is_ready(model, timeout)

    def close(self) -> None:
        self._protocol.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """A client for coroutines; threads carry its calls, so that one implementation serves both."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._threads = ThreadPoolExecutor(ASYNC_THREADS, "heald-client")

    async def predict(self, model: str, inputs: Mapping[str, Any], **options: Any) -> Arrays:
        """As `Client.predict`."""
        call = partial(self._client.predict, model, inputs, **options)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def is_ready(self, model: str, *, timeout: float | None = DEFAULT_SECONDS) -> bool:
        """As `Client.is_ready`."""
        call = partial(self._client.is_ready, model, timeout=timeout)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        self._client.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def connect(address: str, *, protocol: str = SERVING, token: str = "", ca_file: str | None = None) -> Client:
    """A client of the server at `address`: http://, https://, grpc://, grpcs:// or unix:PATH (gRPC).

    `protocol`: "serving" for TensorFlow Serving's, "v2" for the Open Inference Protocol. `token`: a bearer token.
    `ca_file`: a file of authorities in PEM. Raises ClientError for an address or a protocol that is none.
    """
    if protocol not in (SERVING, V2):
        raise ClientError("INVALID_ARGUMENT", f"'{protocol}' is no protocol: {SERVING} or {V2}")
    scheme, target = _split(address)
    if scheme in ("http", "https"):
        return Client(_over_http(f"{scheme}://{target}", protocol, token, ca_file))
    return Client(_over_grpc(target, protocol, token, ca_file, has_tls=scheme == "grpcs"))


def connect_async(address: str, **options: Any) -> AsyncClient:
    """As `connect`."""
    return AsyncClient(connect(address, **options))


def _split(address: str) -> tuple[str, str]:
    """The scheme and the target. Raises ClientError."""
    if address.startswith("unix:"):
        return "grpc", address
    scheme, has_scheme, target = address.partition("://")
    target = target.rstrip("/")
    try:
        parts = urlsplit(address)
        is_address = bool(has_scheme and parts.hostname) and scheme in SCHEMES and parts.port != 0
    except ValueError:  # of a port that is none
        is_address = False
    if not is_address or (scheme.startswith("grpc") and "/" in target):
        raise ClientError("INVALID_ARGUMENT", f"'{address}' is no address such as http://HOST:8501, grpc://HOST:8500")
    return scheme, target


def _over_http(base: str, protocol: str, token: str, ca_file: str | None) -> ServerProtocol:
    from .http_transport import HttpTransport
    from .rest_protocol import RestProtocol
    from .v2_http_protocol import V2HttpProtocol

    transport = HttpTransport(base, token, ca_file)
    return V2HttpProtocol(transport) if protocol == V2 else RestProtocol(transport)


def _over_grpc(target: str, protocol: str, token: str, ca_file: str | None, *, has_tls: bool) -> ServerProtocol:
    from .grpc_transport import GrpcTransport
    from .serving_grpc_protocol import ServingGrpcProtocol
    from .v2_grpc_protocol import V2GrpcProtocol

    transport = GrpcTransport(target, token, ca_file, has_tls=has_tls)
    return V2GrpcProtocol(transport) if protocol == V2 else ServingGrpcProtocol(transport)
