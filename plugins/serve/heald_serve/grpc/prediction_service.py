"""TensorFlow Serving's PredictionService: Predict, Classify, Regress, MultiInference, GetModelMetadata."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
from heald.errors import FailedPrecondition, HealdError, InvalidArgument, Unimplemented

from ..awaiting import outputs_of
from ..classify import CLASSIFICATION, INPUTS, REGRESSION, Method, classifications, regressions
from ..later import Later, convert_later, value_or_raise
from ..messages import message_class
from ..metrics import Metrics
from ..models.model_manager import ModelManager
from ..models.servable import Lease
from ..models.served_model import CLASSIFY, DEFAULT_SIGNATURE, REGRESS, check_inputs
from ..models.warmup import serialized_examples
from ..predict import Arrays, Prediction, Predictor, check_filter, choose_outputs
from ..request_counts import GRPC_ENTRY, RequestCounts
from .answer_frames import AnswerFrames
from .call_handlers import DirectMethod, RpcCall
from .call_handlers import Method as RpcMethod
from .tensors import read_tensors, write_tensor, write_tensor_info

SIGNATURE_DEF = "signature_def"
SIGNATURE_MAP_TYPE = "type.googleapis.com/tensorflow.serving.SignatureDefMap"
_TASKS = {CLASSIFY: (CLASSIFICATION, "classification_result"), REGRESS: (REGRESSION, "regression_result")}


def find_lease(manager: ModelManager, request: Any) -> Lease:
    """The lease of a request's model. Raises InvalidArgument for a spec that names none, NotFound."""
    if not request.HasField("model_spec"):
        raise InvalidArgument("Missing ModelSpec")
    spec = request.model_spec
    if not spec.name:
        raise InvalidArgument("ModelSpec has no name specified.")
    choice = spec.WhichOneof("version_choice")
    return manager.find(spec.name, spec.version.value if choice == "version" else None,
                        spec.version_label if choice == "version_label" else None)


def write_spec(spec: Any, lease: Lease, signature: str = "") -> None:
    spec.name, spec.version.value, spec.signature_name = lease.name, lease.version, signature


class PredictionService:
    """`as_content`: answers have tensor_content. `checks_methods`: classify and regress need their method's name."""

    def __init__(
        self, manager: ModelManager, predictor: Predictor, *, as_content: bool = False, checks_methods: bool = False,
        metrics: Metrics, counts: RequestCounts,
    ) -> None:
        self._manager, self._predictor, self._metrics, self._counts = manager, predictor, metrics, counts
        self._as_content, self._checks_methods = as_content, checks_methods
        self._frames = AnswerFrames()

    def methods(self) -> dict[str, RpcMethod]:
        return {"Predict": self._measured("Predict", self.predict),
                "Classify": self._measured("Classify", self.classify),
                "Regress": self._measured("Regress", self.regress),
                "MultiInference": self.infer_all, "GetModelMetadata": self.describe_model}

    def direct_methods(self) -> dict[str, DirectMethod]:
        return {"Predict": self.predict_directly}

    def predict_directly(self, request: Any) -> bytes | Later[bytes] | None:
        """The answer of a prediction whose run is brief. None for any other request, and for one that fails: `predict`
        answers it."""
        start = perf_counter()
        lease, joined = None, None
        try:
            lease = find_lease(self._manager, request)
            name = request.model_spec.signature_name or DEFAULT_SIGNATURE
            signature = lease.signatures.get(name)
            if signature is None or request.output_filter or not self._predictor.may_be_brief(lease):
                return None
            prediction = Prediction(lease, signature, read_tensors(request.inputs))
            outputs = self._predictor.run_briefly(prediction)
            if outputs is not None:
                return self._finish(lease, name, outputs, start)
            joined = self._predictor.join_turn(prediction)
            return None if joined is None else self._answer_later(joined, lease, name, start)
        except HealdError:
            return None
        finally:
            if lease is not None and joined is None:
                lease.close()

    def _answer_later(self, joined: Later[Arrays], lease: Lease, name: str, start: float) -> Later[bytes]:
        """The answer of a prediction in a batch."""
        def answer(outcome: Arrays | HealdError) -> bytes:
            with lease:
                try:
                    return self._finish(lease, name, value_or_raise(outcome), start)
                except HealdError as error:
                    self._counts.add(lease.name, "Predict", GRPC_ENTRY, error.code, perf_counter() - start)
                    raise

        return convert_later(joined, answer)

    def _finish(self, lease: Lease, name: str, outputs: Arrays, start: float) -> bytes:
        answer = self._answer_bytes(lease, name, outputs)
        self._counts.add(lease.name, "Predict", GRPC_ENTRY, 0, perf_counter() - start)
        return answer

    def _answer_bytes(self, lease: Lease, name: str, outputs: Arrays) -> bytes:
        key = (lease.name, lease.version, name)
        framed = self._frames.answer(key, outputs)
        if framed is not None:
            return framed
        answer = message_class("PredictResponse")()
        write_spec(answer.model_spec, lease, name)
        spec: bytes = answer.SerializeToString()
        self._write_outputs(answer, outputs)
        written: bytes = answer.SerializeToString()
        self._frames.learn(key, outputs, written, spec)
        return written

    def _measured(self, api: str, method: Callable[[Any, RpcCall], Awaitable[Any]]) -> RpcMethod:
        async def measure(request: Any, call: RpcCall) -> Any:
            with self._counts.measure(request.model_spec.name, api, GRPC_ENTRY):
                return await method(request, call)

        return measure

    async def predict(self, request: Any, call: RpcCall) -> Any:
        name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        with find_lease(self._manager, request) as lease:
            signature = lease.signatures.get(name)
            if signature is None:
                raise FailedPrecondition(f'Serving signature key "{name}" not found.')
            check_inputs(signature, dict.fromkeys(request.inputs))
            check_filter(signature, request.output_filter)
            inputs = await call.convert(call.nbytes, lambda: read_tensors(request.inputs))
            outputs = await outputs_of(self._predictor, Prediction(lease, signature, inputs, call.deadline))
            chosen = choose_outputs(outputs, request.output_filter)
            answer = message_class("PredictResponse")()
            write_spec(answer.model_spec, lease, name)
            await call.convert(sum(np.asarray(array).nbytes for array in chosen.values()),
                               lambda: self._write_outputs(answer, chosen))
            return answer

    def _write_outputs(self, answer: Any, outputs: Arrays) -> None:
        for name, array in outputs.items():
            write_tensor(answer.outputs[name], array, as_content=self._as_content)

    async def classify(self, request: Any, call: RpcCall) -> Any:
        answer = message_class("ClassificationResponse")()
        await self._infer(CLASSIFICATION, request, request.input, call, answer.model_spec, answer.result)
        return answer

    async def regress(self, request: Any, call: RpcCall) -> Any:
        answer = message_class("RegressionResponse")()
        await self._infer(REGRESSION, request, request.input, call, answer.model_spec, answer.result)
        return answer

    async def infer_all(self, request: Any, call: RpcCall) -> Any:
        """MultiInference: several signatures of one model, over the same examples."""
        self._check_tasks(request.tasks)
        self._count_examples(request)
        answer = message_class("MultiInferenceResponse")()
        for task in request.tasks:
            method, field = _TASKS[task.method_name]
            result = answer.results.add()
            await self._infer(method, task, request.input, call, result.model_spec, getattr(result, field))
        return answer

    def _count_examples(self, request: Any) -> None:
        """Count the examples of a request to known models, as TensorFlow Serving counts them: for this call alone."""
        name = request.tasks[0].model_spec.name
        examples = getattr(request.input, request.input.WhichOneof("kind") or "example_list").examples
        if examples and self._manager.has(name):
            self._metrics.request_examples.add(name, amount=len(examples))
            self._metrics.request_example_total.add(name, amount=len(examples))

    def _check_tasks(self, tasks: Any) -> None:
        names: set[str] = set()
        for task in tasks:
            if not task.model_spec.name:
                raise InvalidArgument("Found ModelSpec with no model name in InferenceTask.")
            if task.model_spec.name != tasks[0].model_spec.name:
                raise InvalidArgument("All ModelSpecs in a MultiInferenceRequest must access the same model name.")
            name = task.model_spec.signature_name or DEFAULT_SIGNATURE
            if name in names:
                raise InvalidArgument(f"Duplicate evaluation of signature: {name}")
            names.add(name)
            if task.method_name not in _TASKS:
                raise Unimplemented(f"Unsupported signature method_name: {task.method_name}")
        if not names:
            raise InvalidArgument("MultiInferenceRequest has no tasks.")

    async def _infer(
        self, method: Method, request: Any, examples: Any, call: RpcCall, spec: Any, result: Any,
    ) -> None:
        with find_lease(self._manager, request) as lease:
            signature = method.signature_of(lease, request.model_spec.signature_name,
                                            checks_method=self._checks_methods)
            strings = await call.convert(call.nbytes, lambda: serialized_examples(examples))
            outputs = await outputs_of(self._predictor, Prediction(lease, signature, {INPUTS: strings}, call.deadline))
            write_spec(spec, lease, signature.name)
            with _strings_as_text():
                _RESULTS[method.name](result, outputs, len(strings))

    async def describe_model(self, request: Any, _: RpcCall) -> Any:
        """GetModelMetadata: the signatures of a version."""
        if request.HasField("model_spec") and not request.metadata_field:
            raise InvalidArgument("GetModelMetadataRequest must specify at least one metadata_field")
        for field in request.metadata_field:
            if field != SIGNATURE_DEF:
                raise InvalidArgument(f"Metadata field {field} is not supported")
        with find_lease(self._manager, request) as lease:
            answer = message_class("GetModelMetadataResponse")()
            write_spec(answer.model_spec, lease)
            packed = answer.metadata[SIGNATURE_DEF]
            packed.type_url, packed.value = SIGNATURE_MAP_TYPE, signature_map(lease).SerializeToString()
            return answer


def signature_map(lease: Lease) -> Any:
    message = message_class("SignatureDefMap")()
    for name, signature in lease.signatures.items():
        definition = message.signature_def[name]
        definition.method_name = signature.method
        for tensors, infos in ((definition.inputs, signature.inputs), (definition.outputs, signature.outputs)):
            for key, info in infos.items():
                write_tensor_info(tensors[key], info)
        for key, array in signature.defaults.items():
            write_tensor(definition.defaults[key], array)
    return message


@contextmanager
def _strings_as_text() -> Iterator[None]:
    """Labels are text in the answer. Raises InvalidArgument for other bytes."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"a class is no UTF-8: {error.object!r}") from None


def _write_classifications(result: Any, outputs: Arrays, count: int) -> None:
    classes, scores = classifications(outputs, count)
    for at in range(count):
        row = result.classifications.add()
        labels = [] if classes is None else [_text(item) for item in classes[at]]
        numbers = [0.0] * len(labels) if scores is None else scores[at].tolist()
        for label, number in zip(labels or [""] * len(numbers), numbers, strict=True):
            row.classes.add(label=label, score=number)


def _text(item: bytes | str) -> str:
    return item if isinstance(item, str) else item.decode()


def _write_regressions(result: Any, outputs: Arrays, count: int) -> None:
    for value in regressions(outputs, count).tolist():
        result.regressions.add(value=value)


_RESULTS = {CLASSIFY: _write_classifications, REGRESS: _write_regressions}
