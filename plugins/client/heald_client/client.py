"""The clients, and the choice of a protocol by an address."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from .call_checks import check_call, check_header, check_model, check_timeout
from .calls import Arrays, DescribeCall, PredictCall, ServerProtocol, SignatureSpec
from .errors import ClientError
from .tls import TlsFiles

SCHEMES = ("http", "https", "grpc", "grpcs")
SERVING, V2 = "serving", "v2"
DEFAULT_SECONDS = 30.0
ASYNC_THREADS = 32  # calls of an AsyncClient at a time
# gRPC's core refuses calls of an overloaded server as CANCELLED; no call here is cancelled by its caller.
RETRIED_CODES = ("UNAVAILABLE", "CANCELLED")
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 2.0  # between two attempts
T = TypeVar("T")


class Client:
    """A client of one server. Any thread may call.

    `retries`: further attempts at a call with one of RETRIED_CODES, within its timeout. A prediction changes nothing,
    so it may be asked for twice. `sleep`: waits between two attempts.
    """

    def __init__(
        self, protocol: ServerProtocol, *, retries: int = 0, sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._protocol, self._retries, self._sleep = protocol, retries, sleep
        self._is_closed = False

    def predict(
        self, model: str, inputs: Mapping[str, Any], *, version: int | None = None, signature: str = "",
        outputs: Sequence[str] = (), timeout: float | None = DEFAULT_SECONDS,
    ) -> Arrays:
        """The outputs of a model by name. Strings are object arrays of bytes. Raises ClientError.

        `version`: None for the highest. `signature`: "" for the default. `outputs`: none for all. `timeout`: seconds.
        """
        call = PredictCall(model, inputs, version, signature, outputs, timeout)
        check_call(call)
        return self._attempt(lambda seconds: self._protocol.predict(call._replace(timeout=seconds)), timeout)

    def describe(
        self, model: str, *, version: int | None = None, signature: str = "",
        timeout: float | None = DEFAULT_SECONDS,
    ) -> SignatureSpec:
        """The inputs and outputs of a signature, with their types and shapes. Raises ClientError.

        The Open Inference Protocol describes the default signature alone.
        """
        check_model(model)
        check_timeout(timeout)
        call = DescribeCall(model, version, signature, timeout)
        return self._attempt(lambda seconds: self._protocol.describe(call._replace(timeout=seconds)), timeout)

    def is_ready(self, model: str, *, timeout: float | None = DEFAULT_SECONDS) -> bool:
        """True for a model with a version that serves. Raises ClientError when the server does not answer."""
        check_model(model)
        check_timeout(timeout)
        return self._attempt(lambda seconds: self._protocol.is_ready(model, seconds), timeout)

    def _attempt(self, action: Callable[[float | None], T], timeout: float | None) -> T:
        """Do an action, again while it fails with one of RETRIED_CODES. Each attempt has the time that is left."""
        end = None if timeout is None else time.monotonic() + timeout
        seconds = timeout
        for attempt in range(self._retries + 1):
            if self._is_closed:
                raise ClientError("FAILED_PRECONDITION", "the client is closed")
            try:
                return action(seconds)
            except ClientError as error:
                pause = min(FIRST_PAUSE_SECONDS * 2**attempt, LONGEST_PAUSE_SECONDS) * random.uniform(0.5, 1)  # noqa: S311
                seconds = None if end is None else end - time.monotonic() - pause
                is_last = attempt == self._retries or (seconds is not None and seconds <= 0)
                if error.code not in RETRIED_CODES or is_last:
                    raise
            self._sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        self._is_closed = True
        self._protocol.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """A client for coroutines; threads carry its calls, so that one implementation serves both.

    A coroutine that is cancelled leaves its call to end by itself, within its timeout.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._threads = ThreadPoolExecutor(ASYNC_THREADS, "heald-client")
        self._is_closed = False

    async def predict(self, model: str, inputs: Mapping[str, Any], **options: Any) -> Arrays:
        """As `Client.predict`."""
        return await self._run(partial(self._client.predict, model, inputs, **options))

    async def describe(self, model: str, **options: Any) -> SignatureSpec:
        """As `Client.describe`."""
        return await self._run(partial(self._client.describe, model, **options))

    async def is_ready(self, model: str, *, timeout: float | None = DEFAULT_SECONDS) -> bool:
        """As `Client.is_ready`."""
        return await self._run(partial(self._client.is_ready, model, timeout=timeout))

    async def _run(self, call: Callable[[], T]) -> T:
        if self._is_closed:
            raise ClientError("FAILED_PRECONDITION", "the client is closed")
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.to_thread(self._threads.shutdown)
        self._client.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def connect(
    address: str, *, protocol: str = SERVING, token: str = "", ca_file: str | None = None,
    cert_file: str | None = None, key_file: str | None = None, headers: Mapping[str, str] = MappingProxyType({}),
    retries: int = 0,
) -> Client:
    """A client of the server at `address`: http://, https://, grpc://, grpcs:// or unix:PATH (gRPC).

    `protocol`: "serving" for TensorFlow Serving's, "v2" for the Open Inference Protocol. `token`: a bearer token.
    `ca_file`: a file of authorities in PEM. `cert_file`, `key_file`: the client's own certificate, for a server that
    asks for one. `headers`: sent with each call, as metadata in gRPC. `retries`: further attempts at a call that is
    UNAVAILABLE. Raises ClientError for an argument that is none of these.
    """
    if protocol not in (SERVING, V2):
        raise ClientError("INVALID_ARGUMENT", f"'{protocol}' is no protocol: {SERVING} or {V2}")
    if type(retries) is not int or retries < 0:
        raise ClientError("INVALID_ARGUMENT", f"retries are a whole number, not {retries!r}")
    scheme, target = _split(address)
    fields = {**headers, **({"authorization": f"Bearer {token}"} if token else {})}
    for name, value in fields.items():
        check_header(name, value)
    tls = TlsFiles(ca_file, cert_file, key_file) if scheme in ("https", "grpcs") else None
    server = (_over_http(f"{scheme}://{target}", protocol, fields, tls) if scheme in ("http", "https") else
              _over_grpc(target, protocol, fields, tls))
    return Client(server, retries=retries)


def connect_async(address: str, **options: Any) -> AsyncClient:
    """As `connect`."""
    return AsyncClient(connect(address, **options))


def _split(address: str) -> tuple[str, str]:
    """The scheme and the target. Raises ClientError."""
    if not isinstance(address, str):
        raise ClientError("INVALID_ARGUMENT", f"an address is a text, not {type(address).__name__}")
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


def _over_http(base: str, protocol: str, headers: Mapping[str, str], tls: TlsFiles | None) -> ServerProtocol:
    from .http_transport import HttpTransport
    from .rest_protocol import RestProtocol
    from .v2_http_protocol import V2HttpProtocol

    transport = HttpTransport(base, headers, tls)
    return V2HttpProtocol(transport) if protocol == V2 else RestProtocol(transport)


def _over_grpc(target: str, protocol: str, headers: Mapping[str, str], tls: TlsFiles | None) -> ServerProtocol:
    from .grpc_transport import GrpcTransport
    from .serving_grpc_protocol import ServingGrpcProtocol
    from .v2_grpc_protocol import V2GrpcProtocol

    transport = GrpcTransport(target, headers, tls)
    return V2GrpcProtocol(transport) if protocol == V2 else ServingGrpcProtocol(transport)
