"""A model of a server, as heald run calls it: over heald-client, by an address such as http://HOST:8501/v1/models/NAME.

The protocol is in the address: /v1/ is TensorFlow Serving's REST, /v2/ the Open Inference Protocol, grpc:// TensorFlow
Serving's gRPC. A server that is full is asked again for a while; every other error of it is a typed error here.
"""

from __future__ import annotations

import random
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from heald.api.cli import positive

if TYPE_CHECKING:
    from heald.api import TensorMetadata
    from heald.errors import HealdError

SCHEMES = ("http://", "https://", "grpc://", "grpcs://")
ADDRESS_HINT = "http://HOST:8501/v1/models/NAME, http://HOST:8501/v2/models/NAME or grpc://HOST:8500/NAME"
DEFAULT_IN_FLIGHT = 4
DEFAULT_SECONDS = 60.0
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # seconds before a full server is asked again
BUSY = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
NO_CONNECTION = "no answer: "  # in heald-client's text
_HTTP = re.compile(r"(https?://[^/]+)/(v1|v2)/models/([^/:]+)(?:/versions/(\d{1,18}))?/?")
_GRPC = re.compile(r"(grpcs?://[^/]+)/([^/]+)(?:/versions/(\d{1,18}))?/?")
SERVED_OPTIONS = ("in_flight", "token_file", "ca_file")
_OF_FILES = ("device", "target", "tags", "format", "made_up", "function")


class Address(NamedTuple):
    """`server`: the address for heald-client. `version`: None for the highest."""

    server: str
    protocol: str
    model: str
    version: int | None


def is_address(text: str) -> bool:
    return text.lower().startswith(SCHEMES)


def parse_address(text: str) -> Address:
    """Raises InvalidArgument for another form."""
    match = _HTTP.fullmatch(text)
    if match is not None:
        server, protocol, name, version = match.groups()
        return Address(server, "v2" if protocol == "v2" else "serving", unquote(name), _number(version))
    match = _GRPC.fullmatch(text)
    if match is not None:
        server, name, version = match.groups()
        return Address(server, "serving", unquote(name), _number(version))
    from heald.errors import InvalidArgument

    raise InvalidArgument(f"'{text}' names no model of a server", hint=ADDRESS_HINT)


def _number(version: str | None) -> int | None:
    return None if version is None else int(version)


def add_served(parser: ArgumentParser) -> None:
    """Add the options for a model of a server."""
    group = parser.add_argument_group("a model of a server", "MODEL is its address, such as " + ADDRESS_HINT)
    group.add_argument("--in-flight", type=positive, metavar="N",
                       help=f"requests of many rows that are under way at a time ({DEFAULT_IN_FLIGHT})")
    group.add_argument("--token-file", metavar="FILE", help="the first line of this file is the bearer token")
    group.add_argument("--ca-file", metavar="FILE", help="authorities of the server's certificate, in PEM")


class ServedModel:
    """A signature of a served model. It is called as a loaded model is."""

    def __init__(self, client: Any, address: Address, signature: str, outputs: Sequence[str]) -> None:
        """Raises the typed errors of asking for the signature, InvalidArgument for an unknown output."""
        self._client, self._address, self._signature = client, address, signature
        spec = _typed(client.describe, address.model, version=address.version,
                      signature="" if address.protocol == "v2" else signature)
        self.inputs: Mapping[str, TensorMetadata] = {name: _metadata(tensor) for name, tensor in spec.inputs.items()}
        self.outputs = tuple(outputs or spec.outputs)
        self._chosen = tuple(outputs)
        for name in outputs:
            if name not in spec.outputs:
                from heald.errors import InvalidArgument

                raise InvalidArgument(f"the model has no output '{name}'",
                                      hint=f"its outputs: {', '.join(spec.outputs)}")

    def __call__(self, *arrays: Any, options: Any = None) -> Any:
        """The output, or a dict of several. `options`: RunOptions with a timeout. Raises typed errors."""
        seconds = DEFAULT_SECONDS if options is None or options.timeout is None else options.timeout
        inputs = {name: _convert(name, array, self.inputs[name])
                  for name, array in zip(self.inputs, arrays, strict=True)}
        results = _typed(self._predict, inputs, seconds)
        if len(self.outputs) == 1:
            return results[self.outputs[0]]
        return {name: results[name] for name in self.outputs}

    def _predict(self, inputs: Mapping[str, Any], seconds: float) -> Any:
        from heald_client import ClientError

        for pause in (*PAUSES, None):
            try:
                return self._client.predict(
                    self._address.model, inputs, version=self._address.version, signature=self._signature,
                    outputs=self._chosen, timeout=seconds)
            except ClientError as error:
                if error.code not in BUSY or error.text.startswith(NO_CONNECTION) or pause is None:
                    raise
                sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - so that clients do not come back together
        raise AssertionError("the last attempt returns or raises")


def _typed(function: Any, *arguments: Any, **options: Any) -> Any:
    """Call a method of the client. Raises heald's error of the same code for a ClientError."""
    from heald import errors
    from heald_client import ClientError

    try:
        return function(*arguments, **options)
    except ClientError as error:
        name = "".join(word.capitalize() for word in error.code.split("_"))
        kind = getattr(errors, name, errors.Unknown)
        raise kind(f"the server: {error.text}") from None


def row_errors() -> tuple[type[HealdError], ...]:
    """The errors of an answer that one row of the request may have caused."""
    from heald import errors

    return (errors.InvalidArgument, errors.FailedPrecondition, errors.OutOfRange, errors.Internal, errors.Unknown,
            errors.DataLoss)


def _metadata(tensor: Any) -> TensorMetadata:
    import numpy as np
    from heald.api import TensorMetadata, dtypes

    dtype = dtypes.string if tensor.dtype == object else dtypes.of_numpy(np.dtype(tensor.dtype))
    return TensorMetadata(dtype, tensor.shape)


def _convert(name: str, array: Any, meta: TensorMetadata) -> Any:
    """The array of the input's type, by the rule of a local model: a server takes no other type.

    The server judges the shape: the Open Inference Protocol has no word for any rank.
    """
    from heald.api import TensorMetadata
    from heald.runtime.service import convert_feed

    return convert_feed(array, TensorMetadata(meta.dtype, None), name)


def check_local(args: Namespace) -> None:
    """Raises InvalidArgument for an option of served models."""
    from heald.errors import InvalidArgument

    for name in SERVED_OPTIONS:
        if getattr(args, name) is not None:
            raise InvalidArgument(f"--{name.replace('_', '-')} is for a model of a server", hint=ADDRESS_HINT)


def open_served_model(args: Namespace) -> ServedModel:
    """The model at the address of `args.model`.

    Raises InvalidArgument for an option of local models, Unimplemented without heald-client, and the server's errors.
    """
    from heald.api import install_hint
    from heald.errors import InvalidArgument, Unimplemented

    given = [name for name in _OF_FILES if getattr(args, name, None) not in (None, [], False)]
    if given:
        raise InvalidArgument(f"--{given[0].replace('_', '-')} is for models of this machine, and '{args.model}' is "
                              "served", hint="leave it out; the server decides")
    address = parse_address(args.model)
    try:
        import heald_client
    except ImportError:
        raise Unimplemented("a model of a server needs heald-client", hint=install_hint("heald-client")) from None
    client = _typed(heald_client.connect, address.server, protocol=address.protocol, token=_token(args.token_file),
                    ca_file=args.ca_file)
    return ServedModel(client, address, args.signature or "", args.fetch)


def _token(file: str | None) -> str:
    if file is None:
        return ""
    from heald.errors import InvalidArgument, of_system

    try:
        token = Path(file).read_text("utf-8").partition("\n")[0].strip()
    except OSError as error:
        raise of_system(error, file) from error
    except UnicodeDecodeError:
        raise InvalidArgument(f"'{file}' is no text") from None
    if not token:
        raise InvalidArgument(f"'{file}' has no token in its first line")
    return token
