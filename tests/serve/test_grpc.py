"""TensorFlow Serving's gRPC: its services, their errors, limits, deadlines, health and reflection."""

from __future__ import annotations

from threading import Event, Thread, current_thread

import grpc
import heald
import ml_dtypes
import numpy as np
import pytest
from harness.serve_grpc import MODELS, PREDICTION, Caller, arrays_of, fault
from harness.serve_models import echo, infos, signature, start_server
from heald.errors import DataLoss, InvalidArgument, Unavailable
from heald_serve.brief_runs import FIRST_NEED, RunTimes
from heald_serve.grpc.answer_frames import AnswerFrames
from heald_serve.grpc.grpc_server import channel_arguments
from heald_serve.grpc.services import HEALTH_SERVICE, OLD_REFLECTION_SERVICE, REFLECTION_SERVICE
from heald_serve.grpc.tensors import read_tensor, write_tensor
from heald_serve.messages import message_class
from heald_serve.models.served_model import CLASSIFY, REGRESS

LINE = signature(infos(x="float32"), infos(y="float32"), lambda x: 2 * x + 1)
TOKEN = "".join(["sec", "ret"])
TWO = signature(infos(a="int32", b="string"), infos(c="int32", d="string"), lambda a, b: (a, b))


@pytest.fixture
def begin(start):
    callers = []

    def begin(models, **changes):
        server, _ = start(models, grpc_port=0, **changes)
        callers.append(Caller(server.grpc_server.port))
        return callers[-1]

    yield begin
    for caller in callers:
        caller.close()


def timed(model):
    """The model, whose runs may move to the thread of a front."""
    return {name: row._replace(times=RunTimes()) for name, row in model.items()}


@pytest.mark.parametrize("as_content", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "bool"])
def test_brief_runs_move_to_the_event_loop_with_equal_answers(begin, dtype, as_content):
    threads = []

    def run(x):
        threads.append(current_thread().name)
        return x

    caller = begin({"m": timed(signature(infos(x=dtype), infos(y=dtype), run))},
                   enable_serialization_as_tensor_content=as_content)
    for numbers in ([1, 2], [0, 0], [100, -3], [], [1, 2]):
        x = np.array(numbers).astype(dtype)
        answers = [caller.predict("m", {"x": x}) for _ in range(FIRST_NEED + 4)]
        assert len({answer.SerializeToString() for answer in answers}) == 1
        assert arrays_of(answers[0])["y"].tolist() == x.tolist()
        assert answers[0].model_spec.name == "m"
        assert threads[-1] == "heald-serve-grpc"
    assert threads[0].startswith("heald-serve-run")


def test_a_brief_run_that_fails_has_the_ordinary_error(begin):
    broken = [False]

    def run(x):
        if broken[0]:
            raise DataLoss("the run fails")
        return x

    caller = begin({"m": timed(signature(infos(x="float32"), infos(y="float32"), run))})
    for _ in range(FIRST_NEED + 4):
        caller.predict("m", {"x": np.float32([1])})
    broken[0] = True
    assert fault(caller.predict, "m", {"x": np.float32([1])}) == ("DATA_LOSS", "the run fails")
    assert fault(caller.predict, "m", {"z": np.float32([1])})[0] == "INVALID_ARGUMENT"
    assert fault(caller.predict, "m", {"x": np.float32([1])}, signature="no")[0] == "FAILED_PRECONDITION"


def test_frames_are_of_floats_alone_and_bounded():
    frames, tail = AnswerFrames(), b"tail"
    for size in range(1, 1000):
        numbers = np.ones(size, np.float32)
        frames.learn("s", {"y": numbers}, b"head" + numbers.tobytes() + tail, tail)
    numbers = np.float32([[5]])
    frames.learn("s", {"y": numbers}, b"head" + numbers.tobytes() + tail, tail)
    assert frames.answer("s", {"y": 2 * numbers}) == b"head" + (2 * numbers).tobytes() + tail
    assert frames.answer("s", {"y": numbers, "z": numbers}) is None
    assert frames.answer("s", {"y": np.float32([5])}) is None
    assert len(frames) <= 256
    for other in (np.int8([1, 2]), strings(b"a"), np.zeros((0, 2), np.float32)):
        frames.learn("s", {"y": other}, b"head" + other.tobytes() + tail, tail)
        assert frames.answer("s", {"y": other}) is None


def strings(*items):
    array = np.empty(len(items), object)
    array[:] = items
    return array


@pytest.mark.parametrize("array", [
    np.array([[1.5, np.nan], [-0.0, np.inf]], "f4"), np.array([1e300], "f8"), np.array([1, -2], "i4"),
    np.array([200], "u1"), np.array([-3], "i2"), np.array([-3], "i1"), strings(b"a\xff", b""),
    np.array([1 + 2j], "c8"), np.array([1 - 2j], "c16"), np.array([-(1 << 63)], "i8"), np.array([True, False]),
    np.array([65535], "u2"), np.array([1.5, -2], "f2"), np.array([(1 << 32) - 1], "u4"),
    np.array([(1 << 64) - 1], "u8"), np.array([1.5, -3], ml_dtypes.bfloat16), np.zeros((0, 3), "f4"),
    np.zeros((2, 0), object), np.array(7.5, "f4"), np.array([0.5, 2], ml_dtypes.float8_e5m2),
    np.array([[1, 2], [3, 4]], ">f4"), np.arange(6, dtype="i8")[::-2]])
@pytest.mark.parametrize("as_content", [False, True])
def test_a_tensor_is_the_same_after_its_message(array, as_content):
    message = message_class("tensorflow.TensorProto")()
    write_tensor(message, array, as_content=as_content)
    again = read_tensor(message, "x")
    assert again.shape == array.shape
    assert again.dtype == array.dtype.newbyteorder("=")
    assert again.tobytes() == array.astype(again.dtype).tobytes() or again.tolist() == array.tolist()
    has_content = as_content and array.dtype != object and array.size > 0
    assert bool(message.tensor_content) == has_content


def test_predict_gives_outputs_and_the_spec(begin):
    answer = begin({"F": LINE}).predict("F", {"x": np.float32([1, 2.5])})
    assert arrays_of(answer)["y"].tolist() == [3, 6]
    assert list(answer.outputs["y"].float_val) == [3, 6]
    spec = answer.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("F", 1, "serving_default")


def test_tensor_content_is_an_option(begin):
    answer = begin({"F": LINE}, enable_serialization_as_tensor_content=True).predict("F", {"x": np.float32([1])})
    assert answer.outputs["y"].tensor_content == np.float32([3]).tobytes()
    assert not answer.outputs["y"].float_val


def test_a_filter_chooses_outputs(begin):
    caller = begin({"T": TWO})
    inputs = {"a": np.int32([7]), "b": strings(b"x")}
    assert [*caller.predict("T", inputs, ["d"]).outputs] == ["d"]
    assert {*caller.predict("T", inputs).outputs} == {"c", "d"}
    assert fault(caller.predict, "T", inputs, ["e"]) == (
        "INVALID_ARGUMENT", "output tensor alias not found in signature: e Outputs expected to be in the set {c,d}.")
    assert fault(caller.predict, "T", inputs, ["c", "c"]) == (
        "INVALID_ARGUMENT", "duplicate output tensor alias: c")


def test_a_short_typed_list_repeats_its_last_value(begin):
    request = message_class("PredictRequest")()
    request.model_spec.name = "F"
    tensor = request.inputs["x"]
    tensor.dtype = 1
    tensor.tensor_shape.dim.add(size=3)
    tensor.float_val.extend([1, 2])
    answer = begin({"F": LINE}).call(PREDICTION, "Predict", request)
    assert arrays_of(answer)["y"].tolist() == [3, 5, 5]


def test_errors_have_the_codes_and_texts_of_tensorflow_serving(begin):
    caller = begin({"F": LINE, "T": TWO})
    x = {"x": np.float32([1])}
    assert fault(caller.predict, "G", x) == ("NOT_FOUND", "Servable not found for request: Latest(G)")
    assert fault(caller.predict, "F", x, signature="no") == (
        "FAILED_PRECONDITION", 'Serving signature key "no" not found.')
    assert fault(caller.predict, "", x) == ("INVALID_ARGUMENT", "ModelSpec has no name specified.")
    code, text = fault(caller.predict, "T", {"a": np.int32([1])})
    assert (code, text.split(".")[0]) == (
        "INVALID_ARGUMENT", "input size does not match signature: 1!=2 len({a}) != len({a,b})")
    code, text = fault(caller.predict, "F", {"z": np.float32([1])})
    assert (code, text.split(".")[0]) == (
        "INVALID_ARGUMENT", "Signature input alias: x(feed name: x:0) not found in request")
    request = message_class("PredictRequest")()
    assert fault(caller.call, PREDICTION, "Predict", request) == ("INVALID_ARGUMENT", "Missing ModelSpec")
    request.model_spec.name = "F"
    request.inputs["x"].dtype = 1
    request.inputs["x"].tensor_content = b"abc"
    code, text = fault(caller.call, PREDICTION, "Predict", request)
    assert (code, text.startswith("tensor parsing error: x")) == ("INVALID_ARGUMENT", True)
    request.model_spec.version.value = 7
    assert fault(caller.call, PREDICTION, "Predict", request) == (
        "NOT_FOUND", "Servable not found for request: Specific(F, 7)")
    request.model_spec.version_label = "stable"
    assert fault(caller.call, PREDICTION, "Predict", request) == (
        "INVALID_ARGUMENT", "Unrecognized servable version label: stable")


@pytest.mark.parametrize(("dtype", "dims"), [(0, []), (999, []), (20, []), (21, [1]), (1, [-1]), (1, [1 << 62]),
                                             (1, [1] * 300)])
def test_a_tensor_of_an_odd_type_or_shape_is_an_error(begin, dtype, dims):
    request = message_class("PredictRequest")()
    request.model_spec.name = "F"
    request.inputs["x"].dtype = dtype
    for size in dims:
        request.inputs["x"].tensor_shape.dim.add(size=size)
    code, text = fault(begin({"F": LINE}).call, PREDICTION, "Predict", request)
    assert (code, text.startswith("tensor parsing error: x")) == ("INVALID_ARGUMENT", True)


@pytest.mark.parametrize("kind", ["float32", "string", "bool"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_few_bytes_stand_for_no_large_tensor(begin, kind, count):
    caller = begin({"E": echo(x=kind)})
    request = message_class("PredictRequest")(model_spec=spec_of("E"))
    tensor = request.inputs["x"]
    write_tensor(tensor, strings(*[b"a"] * count) if kind == "string" else np.ones(count, kind))
    del tensor.tensor_shape.dim[:]
    for size in (1 << 16, 1 << 16):
        tensor.tensor_shape.dim.add(size=size)
    code, text = fault(caller.call, PREDICTION, "Predict", request)
    assert (code, "bytes stand for" in text) == ("INVALID_ARGUMENT", True)
    tensor.tensor_shape.dim[1].size = 1
    assert arrays_of(caller.call(PREDICTION, "Predict", request))["x"].shape == (1 << 16, 1)


def test_malformed_bytes_are_an_error(begin):
    caller = begin({"F": LINE})
    send = caller.channel.unary_unary(f"/{PREDICTION}/Predict")
    assert fault(send, b"\xff\xff", timeout=30)[0] == "INVALID_ARGUMENT"
    assert fault(caller.channel.unary_unary(f"/{PREDICTION}/PredictStreamed"), b"", timeout=30)[0] == "UNIMPLEMENTED"


def test_long_error_texts_are_cut(begin):
    def fail(x):
        raise DataLoss("x" * 5000)

    code, text = fault(begin({"F": signature(infos(x="float32"), infos(y="float32"), fail)}).predict, "F", {
        "x": np.float32([1])})
    assert (code, text) == ("DATA_LOSS", "x" * 1024 + "...TRUNCATED")


CLASSES = signature(infos(inputs="string"), infos(classes="string", scores="float32"), lambda inputs: (
    np.array([[b"cat", b"dog"]] * len(inputs), object), np.float32([[len(item), 0.5] for item in inputs])),
    name="c", method=CLASSIFY)
VALUES = signature(infos(inputs="string"), infos(outputs="float32"), lambda inputs: np.float32(
    [len(item) for item in inputs]), name="r", method=REGRESS)


def examples(request, count=2):
    for at in range(count):
        example = request.input.example_list.examples.add()
        example.features.feature["f"].int64_list.value.append(at)
    return request


def spec_of(name, signature_name=""):
    return {"name": name, "signature_name": signature_name}


def test_classify_and_regress_take_examples(begin):
    caller = begin({"M": CLASSES | VALUES})
    request = examples(message_class("ClassificationRequest")(model_spec=spec_of("M", "c")))
    answer = caller.call(PREDICTION, "Classify", request)
    rows = [[(item.label, item.score) for item in row.classes] for row in answer.result.classifications]
    size = len(request.input.example_list.examples[0].SerializeToString())
    assert rows == [[("cat", size), ("dog", 0.5)]] * 2
    assert (answer.model_spec.name, answer.model_spec.signature_name) == ("M", "c")
    answer = caller.call(PREDICTION, "Regress", examples(message_class("RegressionRequest")(
        model_spec=spec_of("M", "r"))))
    assert [row.value for row in answer.result.regressions] == [size, size]
    request = message_class("RegressionRequest")(model_spec=spec_of("M", "r"))
    assert fault(caller.call, PREDICTION, "Regress", request) == ("INVALID_ARGUMENT", "Input is empty.")
    request.model_spec.signature_name = "no"
    assert fault(caller.call, PREDICTION, "Regress", request) == (
        "INVALID_ARGUMENT", "No signature was found with the name: no")


def test_a_class_that_is_no_text_is_an_error(begin):
    model = signature(infos(inputs="string"), infos(classes="string"), lambda inputs: np.array([[b"\xff"]], object))
    request = examples(message_class("ClassificationRequest")(model_spec=spec_of("M")), 1)
    assert fault(begin({"M": model}).call, PREDICTION, "Classify", request)[0] == "INVALID_ARGUMENT"


def test_multi_inference_runs_signatures_of_one_model(begin):
    caller = begin({"M": CLASSES | VALUES})

    def ask(*tasks):
        request = examples(message_class("MultiInferenceRequest")())
        for name, signature_name, method in tasks:
            request.tasks.add(model_spec=spec_of(name, signature_name), method_name=method)
        return caller.call(PREDICTION, "MultiInference", request)

    first, second = ask(("M", "c", CLASSIFY), ("M", "r", REGRESS)).results
    assert len(first.classification_result.classifications) == len(second.regression_result.regressions) == 2
    assert second.model_spec.signature_name == "r"
    assert fault(ask, ("no", "c", CLASSIFY))[0] == "NOT_FOUND"
    assert fault(ask, ("M", "c", CLASSIFY), ("M", "c", CLASSIFY))[0] == "INVALID_ARGUMENT"
    assert fault(ask, ("M", "c", CLASSIFY), ("N", "r", REGRESS))[0] == "INVALID_ARGUMENT"
    assert fault(ask, ("M", "c", "other"))[0] == "UNIMPLEMENTED"
    assert fault(ask)[0] == "INVALID_ARGUMENT"


def test_multi_inference_counts_its_examples(start):
    server, client = start({"M": CLASSES | VALUES}, grpc_port=0, metrics_path="/m")
    caller = Caller(server.grpc_server.port)
    for name in ("M", "M", "stranger"):
        request = examples(message_class("MultiInferenceRequest")())
        request.tasks.add(model_spec=spec_of(name, "r"), method_name=REGRESS)
        fault(caller.call, PREDICTION, "MultiInference", request) if name == "stranger" else caller.call(
            PREDICTION, "MultiInference", request)
    caller.close()
    lines = client.ask("GET", "/m").body.decode().splitlines()
    assert ':tensorflow:serving:request_example_count_total{model="M"} 4' in lines
    assert ':tensorflow:serving:request_example_counts_bucket{model="M",le="2"} 2' in lines
    assert ':tensorflow:serving:request_example_counts_bucket{model="M",le="1"} 0' in lines
    assert not any("stranger" in line for line in lines)


def test_metadata_are_the_signatures(begin):
    caller = begin({"T": TWO})
    request = message_class("GetModelMetadataRequest")(model_spec=spec_of("T"), metadata_field=["signature_def"])
    answer = caller.call(PREDICTION, "GetModelMetadata", request)
    packed = answer.metadata["signature_def"]
    assert packed.type_url == "type.googleapis.com/tensorflow.serving.SignatureDefMap"
    signature_def = message_class("SignatureDefMap").FromString(packed.value).signature_def["serving_default"]
    assert (signature_def.inputs["b"].dtype, signature_def.inputs["b"].name) == (7, "b:0")
    assert signature_def.inputs["a"].tensor_shape.unknown_rank
    request.metadata_field[0] = "other"
    assert fault(caller.call, PREDICTION, "GetModelMetadata", request) == (
        "INVALID_ARGUMENT", "Metadata field other is not supported")
    del request.metadata_field[:]
    assert fault(caller.call, PREDICTION, "GetModelMetadata", request)[0] == "INVALID_ARGUMENT"


def test_the_status_of_versions(begin):
    caller = begin({"T": TWO})
    request = message_class("GetModelStatusRequest")(model_spec=spec_of("T"))
    (row,) = caller.call(MODELS, "GetModelStatus", request).model_version_status
    assert (row.version, row.state, row.status.error_code) == (1, 30, 0)
    request.model_spec.name = "no"
    assert fault(caller.call, MODELS, "GetModelStatus", request) == (
        "NOT_FOUND", "Could not find any versions of model no")
    assert fault(caller.call, MODELS, "GetModelStatus", message_class("GetModelStatusRequest")())[0] == (
        "INVALID_ARGUMENT")


def test_a_new_list_of_models_loads_and_unloads(start, tmp_path):
    (tmp_path / "new" / "1").mkdir(parents=True)
    (tmp_path / "bad" / "1").mkdir(parents=True)
    models = {"F": LINE, str(tmp_path / "new" / "1"): TWO}
    server, _ = start(models, grpc_port=0, max_num_load_retries=0)
    caller = Caller(server.grpc_server.port)

    def reload(*names, **fields):
        request = message_class("ReloadConfigRequest")(metric_names=["/tensorflow/serving/request_count", "no"])
        request.config.model_config_list.SetInParent()
        for name in names:
            request.config.model_config_list.config.add(name=name, base_path=fields.get("path", str(tmp_path / name)))
        return caller.call(MODELS, "HandleReloadConfigRequest", request)

    answer = reload("new")
    assert (answer.status.error_code, [(row.name, row.int64_value_increase) for row in answer.metric]) == (
        0, [("/tensorflow/serving/request_count", 0), ("no", 0)])
    assert arrays_of(caller.predict("new", {"a": np.int32([1]), "b": strings(b"u")}))["c"].tolist() == [1]
    code, text = fault(reload, "new", "bad")
    assert code == "UNKNOWN"
    assert text.startswith("1 model(s) did not become available: {{name: bad version: 1} due to error: ")
    (tmp_path / "empty").mkdir()
    assert fault(reload, "new", "empty") == (
        "UNKNOWN", "1 model(s) did not become available: {{name: empty} due to error: no versions found}")
    assert fault(reload, "new", "new")[0] == "INVALID_ARGUMENT"
    assert fault(reload, "new", path="relative/path")[0] == "INVALID_ARGUMENT"
    assert fault(caller.call, MODELS, "HandleReloadConfigRequest", message_class("ReloadConfigRequest")())[0] == (
        "INVALID_ARGUMENT")
    code, text = fault(reload, "new", "absent")
    assert (code, f"Could not find base path {tmp_path / 'absent'}" in text) == ("NOT_FOUND", True)
    assert server.manager.names() == ["new", "empty"]
    server.manager.poll()  # and finds each base path, as before
    reload()
    pause = Event()
    assert any(fault(caller.predict, "new", {})[0] == "NOT_FOUND" or pause.wait(0.05) for _ in range(200))
    caller.close()


def waiting_model():
    """A model whose run waits for its cancellation or a gate, the event of its begin, and that of its end."""
    begun, gate = Event(), Event()

    def run(x):
        begun.set()
        gate.wait(30)
        return x

    return signature(infos(x="float32"), infos(y="float32"), run), begun, gate


def test_the_deadline_of_a_caller_reaches_the_run(begin):
    seen = []
    (name, model), = LINE.items()

    def call(arrays, options):
        seen.append(options)
        raise heald.errors.DeadlineExceeded("late")

    caller = begin({"F": {name: model._replace(call=call)}})
    for seconds in (1000, 100_000, None):
        assert fault(caller.predict, "F", {"x": np.float32([1])}, timeout=seconds)[0] == "DEADLINE_EXCEEDED"
    near, far, none = (options.timeout for options in seen)
    assert near < 50_000 < far
    assert none is None


def test_a_caller_that_is_late_or_cancels_cancels_the_run(begin):
    (name, model), = LINE.items()
    ends, begun = [], Event()
    ended = Event()

    def call(arrays, options):
        gate = Event()
        options.cancel.on_cancel(gate.set)
        begun.set()
        ends.append(gate.wait(30))
        ended.set()
        return {"y": arrays["x"]}

    caller = begin({"F": {name: model._replace(call=call)}})
    for seconds in (0.1, 1, 10, 100):  # a busy machine may not begin the run in time
        assert fault(caller.predict, "F", {"x": np.float32([1])}, timeout=seconds)[0] == "DEADLINE_EXCEEDED"
        if begun.is_set():
            break
    assert ended.wait(30)
    begun.clear(), ended.clear()
    request = message_class("PredictRequest")(model_spec=spec_of("F"))
    write_tensor(request.inputs["x"], np.float32([1]))
    future = caller.stub(PREDICTION, "Predict").future(request)
    assert begun.wait(30)
    future.cancel()
    assert ended.wait(30)
    assert ends == [True, True]


def test_health_answers_while_a_run_waits(begin):
    model, begun, gate = waiting_model()
    caller = begin({"F": model}, enable_grpc_healthcheck_service=True, rest_api_num_threads=1)
    request = message_class("PredictRequest")(model_spec=spec_of("F"))
    write_tensor(request.inputs["x"], np.float32([1]))
    future = caller.stub(PREDICTION, "Predict").future(request)
    assert begun.wait(30)
    check = message_class("grpc.health.v1.HealthCheckRequest")
    for name in ("", "ModelService", "PredictionService"):
        assert caller.call(HEALTH_SERVICE, "Check", check(service=name)).status == 1
    assert fault(caller.call, HEALTH_SERVICE, "Check", check(service="other"))[0] == "NOT_FOUND"
    watch = caller.call(HEALTH_SERVICE, "Watch", check(service="other"))
    assert next(watch).status == 3
    watch.cancel()
    gate.set()
    assert arrays_of(future.result(30))["y"].tolist() == [1]


def test_a_watch_of_health_ends_with_the_server():
    server = start_server({"F": LINE}, grpc_port=0, enable_grpc_healthcheck_service=True,
                          drain_timeout_in_ms=3_600_000)
    caller = Caller(server.grpc_server.port)
    watch = caller.call(HEALTH_SERVICE, "Watch", message_class("grpc.health.v1.HealthCheckRequest")())
    assert next(watch).status == 1
    end = Thread(target=server.close)
    end.start()
    assert [answer.status for answer in watch] == [2]
    end.join(60)
    assert not end.is_alive()
    caller.close()


def test_health_is_an_option(begin):
    check = message_class("grpc.health.v1.HealthCheckRequest")()
    assert fault(begin({"F": LINE}).call, HEALTH_SERVICE, "Check", check)[0] == "UNIMPLEMENTED"


@pytest.mark.parametrize("service", [REFLECTION_SERVICE, OLD_REFLECTION_SERVICE])
def test_reflection_tells_services_and_files(begin, service):
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    make = message_class("grpc.reflection.v1.ServerReflectionRequest")
    questions = [make(list_services=""), make(file_containing_symbol=PREDICTION), make(file_by_filename="no"),
                 make(all_extension_numbers_of_type="x"), make()]
    answers = begin({"F": LINE}).call(service, "ServerReflectionInfo", iter(questions))
    listed, files, unknown, extension, nothing = answers
    assert PREDICTION in [row.name for row in listed.list_services_response.service]
    pool = DescriptorPool()
    pending = [FileDescriptorProto.FromString(data) for data in files.file_descriptor_response.file_descriptor_proto]
    for file in reversed(pending):
        pool.AddSerializedFile(file.SerializeToString())
    methods = [method.name for method in pool.FindServiceByName(PREDICTION).methods]
    assert methods == ["Classify", "Regress", "Predict", "MultiInference", "GetModelMetadata"]
    assert [answer.error_response.error_code for answer in (unknown, extension, nothing)] == [5, 12, 12]


def test_a_message_of_many_megabytes_passes_and_compression_works(begin):
    caller = begin({"F": echo(x="float32")})
    array = np.ones((8, 224, 224, 3), "f4")
    for compression in (None, grpc.Compression.Gzip):
        answer = caller.predict("F", {"x": array}, compression=compression)
        assert np.array_equal(arrays_of(answer)["x"], array)


def test_the_budget_of_memory_bounds_messages():
    from heald_serve.grpc.call_handlers import CallHandlers
    from heald_serve.http.guards import Guards

    ledger = []

    class Memory:
        def take(self, nbytes, asker):
            ledger.append(nbytes)

        def give_back(self, nbytes):
            ledger.append(-nbytes)

    handlers = CallHandlers(Guards(None), Memory(), None)
    with handlers.counted(b"x" * (1 << 20)):
        assert ledger == [1 << 20]
    with handlers.counted(b"x"):
        pass
    assert ledger == [1 << 20, -(1 << 20)]


def test_a_token_guards_all_but_health(begin):
    caller = begin({"F": LINE}, token=TOKEN, enable_grpc_healthcheck_service=True)
    x = {"x": np.float32([1])}
    assert fault(caller.predict, "F", x)[0] == "UNAUTHENTICATED"
    assert fault(caller.predict, "F", x, metadata=[("authorization", "Bearer other")])[0] == "UNAUTHENTICATED"
    assert caller.predict("F", x, metadata=[("authorization", "Bearer secret")]).outputs
    assert caller.call(HEALTH_SERVICE, "Check", message_class("grpc.health.v1.HealthCheckRequest")()).status == 1


def test_calls_are_counted(start):
    server, _ = start({"F": LINE}, grpc_port=0)
    caller = Caller(server.grpc_server.port)
    caller.predict("F", {"x": np.float32([1])})
    fault(caller.predict, "F", {})
    fault(caller.predict, "stranger", {})
    caller.close()
    count = server.metrics.request_count
    assert [count.value("F", "OK"), count.value("F", "INVALID_ARGUMENT"), count.value("", "NOT_FOUND")] == [1, 1, 1]
    assert server.metrics.request_latency.value("F", "Predict", "GRPC") > 0


def test_a_unix_socket_serves(start, tmp_path):
    start({"F": LINE}, grpc_socket_path=str(tmp_path / "s"))
    caller = Caller(f"unix:{tmp_path / 's'}")
    assert arrays_of(caller.predict("F", {"x": np.float32([1])}))["y"].tolist() == [3]
    caller.close()


def test_a_taken_port_ends_the_start(start):
    server, _ = start({"F": LINE}, grpc_port=0)
    with pytest.raises(Unavailable, match="gRPC cannot listen"):
        start({"F": LINE}, grpc_port=server.grpc_server.port)


def test_arguments_of_the_channel_are_numbers_or_texts():
    assert channel_arguments("") == []
    assert channel_arguments("grpc.a=1,grpc.b=x,grpc.c=-2") == [("grpc.a", 1), ("grpc.b", "x"), ("grpc.c", -2)]
    for text in ("a", "=1", "a=99999999999"):
        with pytest.raises(InvalidArgument, match="grpc_channel_arguments"):
            channel_arguments(text)


def test_a_full_server_refuses_runs_before_it_parses_them_and_answers_other_calls(begin):
    gate, begun = Event(), Event()

    def run(x):
        begun.set()
        gate.wait(30)
        return x

    models = {"F": signature(infos(x="float32"), infos(y="float32"), run)}
    caller = begin(models, rest_api_num_threads=1, max_queued_requests=0)
    request = message_class("PredictRequest")()
    request.model_spec.name = "F"
    write_tensor(request.inputs["x"], np.float32(1))
    running = caller.channel.unary_unary(f"/{PREDICTION}/Predict").future(request.SerializeToString())
    assert begun.wait(30)
    with pytest.raises(grpc.RpcError) as caught:
        caller.channel.unary_unary(f"/{PREDICTION}/Predict")(b"no message")
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    metadata = message_class("GetModelMetadataRequest")(metadata_field=["signature_def"])
    metadata.model_spec.name = "F"
    assert caller.channel.unary_unary(f"/{PREDICTION}/GetModelMetadata")(metadata.SerializeToString())
    gate.set()
    assert running.result(30)
