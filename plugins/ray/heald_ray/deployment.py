"""A Ray Serve deployment over the request code of heald serve: TensorFlow Serving's REST paths, bodies and errors.

Serve routes a request to a replica, which has the model. Requests that wait together become one run: `@serve.batch`
gathers them, rows of equal types and shapes are joined, and the outputs are split again. A joined run that fails is
repeated request by request, so that only the faulty one fails. The model runs in a thread; the loop goes on reading.

The caller may end while the application runs. A second deployment, ModelKeeper, therefore keeps the model's files for
replicas that start later on a node without them. It has one replica, which needs no CPU.

Every replica has version 1 of one model. A new version is a new deployment, which Serve rolls out.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from heald.errors import HealdError, InvalidArgument, NotFound, ResourceExhausted, Unimplemented, typed_error
from heald_serve.batch_rows import join_inputs, row_count, split_outputs
from heald_serve.http.messages import error_response
from heald_serve.models.model_manager import VersionStatus
from heald_serve.models.served_model import DEFAULT_SIGNATURE, ServedSignature, check_inputs, signatures_of
from heald_serve.rest.json_text import parse_object
from heald_serve.rest.model_info import metadata_body, status_body
from heald_serve.rest.paths import Call, parse_path
from heald_serve.rest.request_tensors import request_tensors
from heald_serve.rest.response_text import columns_body, rows_body
from heald_serve.rest.rest_api import signature_name
from ray import serve

from .connection import check_connected
from .model_files import ModelFiles, model_path, read_model_files
from .predictor import LoadedModel, get_contents, model_arguments

VERSION = 1
LARGEST_BODY_BYTES = 256 << 20
NAME = re.compile(r"[^/:#]+")
JSON_TYPE = "application/json"
AVAILABLE = "AVAILABLE"


class Prediction(NamedTuple):
    """Inputs for a run of a signature."""

    signature: ServedSignature
    inputs: Mapping[str, Any]


class ServedVersion(NamedTuple):
    """The only version of the model of a replica."""

    name: str
    version: int
    signatures: Mapping[str, ServedSignature]


Result = Mapping[str, Any] | HealdError


def run_predictions(predictions: Sequence[Prediction]) -> list[Result]:
    """Return the outputs or the error of each prediction. Predictions whose rows can be joined share a run."""
    groups: dict[Any, list[int]] = {}
    for index, prediction in enumerate(predictions):
        groups.setdefault(_row_key(prediction) or index, []).append(index)
    results: dict[int, Result] = {}
    for indices in groups.values():
        results.update(zip(indices, _run_group([predictions[index] for index in indices]), strict=True))
    return [results[index] for index in range(len(predictions))]


def _row_key(prediction: Prediction) -> tuple[Any, ...] | None:
    """The kind of rows that a prediction has; None for one that has none."""
    try:
        row_count(prediction.inputs)
    except InvalidArgument:
        return None
    return (prediction.signature.name,
            *sorted((name, array.dtype.str, array.shape[1:]) for name, array in prediction.inputs.items()))


def _run_group(group: Sequence[Prediction]) -> list[Result]:
    if len(group) == 1:
        return [_run_alone(group[0])]
    rows = [row_count(prediction.inputs) for prediction in group]
    joined = _run_alone(Prediction(group[0].signature, join_inputs([item.inputs for item in group], 0)))
    if isinstance(joined, HealdError) or any(not array.ndim or len(array) != sum(rows) for array in joined.values()):
        return [_run_alone(prediction) for prediction in group]
    return [*split_outputs(joined, rows)]


def _run_alone(prediction: Prediction) -> Result:
    try:
        return prediction.signature.call(prediction.inputs, None)
    except Exception as error:  # noqa: BLE001 - the error is the answer of this request
        return error if isinstance(error, HealdError) else typed_error(error)


class ModelKeeper:
    """A replica of the deployment that keeps the model's files while the application runs, for nodes without them."""

    def __init__(self, model: Any, contents: Sequence[Any]) -> None:
        """A second start finds the files of the first on its node. Raises as `model_path` and `get_contents`."""
        import ray

        path = model_path(ModelFiles(*model), lambda: get_contents(*contents))
        self._reference = ray.put(read_model_files(path)[1])

    def contents(self) -> list[Any]:
        """Return a reference to the contents, within a list: Ray moves the contents to each node at most once."""
        return [self._reference]


def _ask_keeper(keeper: Any) -> Any:
    """Return the contents. Serve runs a constructor in an event loop, where a call waits in another thread alone."""
    with ThreadPoolExecutor(1) as threads:
        references: list[Any] = threads.submit(lambda: keeper.contents.remote().result()).result()
    return get_contents(*references)


class ModelReplica:
    """A replica of the deployment. Serve calls it with requests of Starlette."""

    def __init__(
        self, name: str, arguments: Mapping[str, Any], batch: Mapping[str, Any], keeper: Any = None,
    ) -> None:
        """`keeper`: The handle of a ModelKeeper; None for a model on the workers. Raises as `LoadedModel`."""
        if keeper is not None:
            arguments = {**arguments, "contents": lambda: _ask_keeper(keeper)}
        self._version = ServedVersion(name, VERSION, signatures_of(LoadedModel(**arguments).model))
        self.run_batch.set_max_batch_size(batch["max_batch_size"])
        self.run_batch.set_batch_wait_timeout_s(batch["batch_wait_timeout_s"])

    async def _run_batch(self, predictions: list[Prediction]) -> list[Result]:
        return await asyncio.to_thread(run_predictions, predictions)

    run_batch = serve.batch(_run_batch)

    async def __call__(self, request: Any) -> Any:
        from starlette.responses import Response

        try:
            status, body, headers = 200, await self._answer(request), {}
        except HealdError as error:
            answer = error_response(error, self._version.name)
            status, body = answer.status, answer.body
            headers = {key.decode(): value.decode() for key, value in answer.headers}
        return Response(body, status, headers, JSON_TYPE)

    async def _answer(self, request: Any) -> bytes:
        call = parse_path(request.method, _target(request.scope))
        self._check_model(call)
        if call.verb == "status":
            return status_body([VersionStatus(VERSION, AVAILABLE, None)])
        if call.verb == "metadata":
            version: Any = self._version
            return metadata_body(version)
        if call.verb != "predict":
            raise Unimplemented(f"'{call.verb}' is a call of heald serve", hint="use predict")
        document = parse_object(await _read_body(request))
        name = signature_name(document) or DEFAULT_SIGNATURE
        signature = self._version.signatures.get(name)
        if signature is None:
            raise InvalidArgument(f"Serving signature key \"{name}\" not found.")
        inputs, are_rows = request_tensors(document, signature.inputs)
        check_inputs(signature, inputs)
        result: Result = await self.run_batch(Prediction(signature, inputs))
        if isinstance(result, HealdError):
            raise result
        return rows_body(result) if are_rows else columns_body(result)

    def _check_model(self, call: Call) -> None:
        if call.name != self._version.name or call.version not in (None, VERSION) or call.label is not None:
            raise NotFound(f"Servable not found for request: {call.name}",
                           hint=f"this deployment has version {VERSION} of {self._version.name}")


def _target(scope: Mapping[str, Any]) -> str:
    """The path and the query behind the route prefix, as they came."""
    path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
    query = scope.get("query_string", b"").decode("latin-1")
    target = path.removeprefix(scope.get("root_path", "")) or "/"
    return f"{target}?{query}" if query else target


async def _read_body(request: Any) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > LARGEST_BODY_BYTES:
            raise ResourceExhausted(f"the body has more than {LARGEST_BODY_BYTES:,} bytes")
    return b"".join(parts)


def make_application(
    model: str | os.PathLike[str], *, name: str, max_batch_size: int = 32, batch_wait_timeout_s: float = 0.005,
    model_on_workers: bool = False, device: str | None = None, config: Any = None, **options: Any,
) -> Any:
    """Return an application for `ray.serve.run`, whose replicas answer for the model `name`.

    `max_batch_size`: Most requests of a run. `batch_wait_timeout_s`: The wait for further ones.
    `options`: Of a deployment of Serve: max_ongoing_requests, max_queued_requests, autoscaling_config, ...

    Raises InvalidArgument for bounds of a batch below their least values, for a name that no path of REST has, and for
    options that Serve refuses. Raises as `predictor_arguments`.
    """
    _check_batch(max_batch_size, batch_wait_timeout_s)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidArgument(f"{name!r} is no name of a model", hint="a text without '/', ':' and '#'")
    replicas = _deploy(ModelReplica, name, options)
    check_connected()
    arguments = model_arguments(model, model_on_workers=model_on_workers, device=device, config=config)
    batch = {"max_batch_size": max_batch_size, "batch_wait_timeout_s": batch_wait_timeout_s}
    keeper = None
    if "contents" in arguments:
        keeper = _deploy(ModelKeeper, f"{name}-files", {"ray_actor_options": {"num_cpus": 0}}).bind(
            arguments["model"], arguments.pop("contents"))
    return replicas.bind(name, arguments, batch, keeper)


def _check_batch(size: object, seconds: object) -> None:
    is_size = isinstance(size, int) and not isinstance(size, bool) and size >= 1
    if not is_size or not isinstance(seconds, int | float) or not 0 <= seconds < float("inf"):
        raise InvalidArgument(f"max_batch_size={size!r}, batch_wait_timeout_s={seconds!r}: a batch has at least one "
                              "request, and waits for no negative time")


def _deploy(kind: type, name: str, options: Mapping[str, Any]) -> Any:
    """Return a deployment. Raises InvalidArgument for options that Serve refuses."""
    try:
        return serve.deployment(kind, name=name, **options)
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:500]
        raise InvalidArgument(f"Serve refuses the options of '{name}': {reason}",
                              hint="options are those of ray.serve.deployment") from None
