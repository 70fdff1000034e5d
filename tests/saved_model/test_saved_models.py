"""SavedModels that TensorFlow wrote, run against what TensorFlow answered."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import heald
import numpy as np
import pytest
from heald import errors
from heald.api import Graph, LoadOptions, Node, dtypes
from heald.graphs.protobuf.descriptor_pool import message_class
from heald_saved_model.checkpoint import Checkpoint
from heald_saved_model.loader import LOADER

DATA = Path(__file__).parents[1] / "data" / "saved_models"
KERAS, TF1, TYPES, CONTROL_FLOW, TABLES = (
    DATA / n / "model" for n in ("keras", "tf1", "types", "control_flow", "tables"))


def calls() -> Iterator[tuple[str, str, str]]:
    for file in sorted(DATA.glob("*/calls.npz")):
        with np.load(file) as arrays:
            for number, signature in sorted({tuple(key.split(" ")[:2]) for key in arrays}):
                yield file.parent.name, signature, number


@pytest.mark.parametrize(("name", "signature", "number"), list(calls()))
def test_a_signature_answers_as_tensorflow_did(name, signature, number):
    recorded: dict[str, dict[str, np.ndarray]] = {"in": {}, "out": {}}
    with np.load(DATA / name / "calls.npz") as arrays:
        for key in arrays:
            index, _, side, tensor = key.split(" ")
            if index == number:
                recorded[side][tensor] = arrays[key]
    model = heald.load(DATA / name / "model", signature=signature)
    assert set(model.inputs) == set(recorded["in"])
    assert set(model.outputs) == set(recorded["out"])
    answers = model(recorded["in"]) if recorded["in"] else model()
    answers = answers if isinstance(answers, dict) else dict.fromkeys(model.outputs, answers)
    for tensor, expected in recorded["out"].items():
        answer = answers[tensor]
        if expected.dtype.kind == "S":
            assert answer.tolist() == expected.tolist()
            continue
        assert (answer.dtype, answer.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


def test_signatures_tell_names_types_and_shapes():
    model = heald.load(CONTROL_FLOW)
    assert {name: str(signature) for name, signature in model.signatures.items()} == {
        "count": "(by: int32[]) -> (n: int32[])",
        "serving_default": "(steps: int32[], x: float32[?,2]) -> (norm: float32[], y: float32[?,2])",
    }
    assert {name: str(meta) for name, meta in model.inputs.items()} == {"steps": "int32[]", "x": "float32[?,2]"}


def test_the_other_graph_is_had_by_its_tags():
    x = np.arange(3, dtype=np.float32)
    serving, on_gpus = (heald.load(DATA / "tags" / "model", tags=tags) for tags in (None, ("gpu", "serve")))
    np.testing.assert_allclose(on_gpus(x), 2 * serving(x))
    with pytest.raises(errors.NotFound, match=r"\{serve\}.*\{gpu, serve\}|\{gpu, serve\}.*\{serve\}"):
        heald.load(DATA / "tags" / "model", tags={"train"})


def test_outputs_may_be_other_tensors_of_the_graph():
    model = heald.load(TF1, outputs=["y", "x"])
    assert list(model.inputs) == ["x"]
    assert {name: str(meta) for name, meta in model.outputs.items()} == {"y": "float32[?,1]", "x": "float32[?,1]"}
    np.testing.assert_array_equal(model([[4]])["y"], [[4]])


def test_a_reference_variable_that_a_signature_changes_begins_with_its_saved_value():
    """TensorFlow gave the same: the model multiplies by a count, which each call raises first."""
    model = heald.load(DATA / "references" / "model")
    for count, y in (6, [[24, 36]]), (7, [[28, 42]]):
        answers = model([[1, 1]])
        assert answers["count"] == count
        np.testing.assert_array_equal(answers["y"], y)
    assert {node.op for node in model.session.graph if node.name in "wn"} == {"Const", "_ReadReference"}


def test_nodes_for_saving_are_removed_and_variables_are_constants():
    ops = {node.op for node in heald.load(KERAS).session.graph}
    assert not ops & {"VarHandleOp", "ReadVariableOp", "SaveV2", "RestoreV2", "StatefulPartitionedCall", "NoOp"}
    assert not heald.load(KERAS).session.graph.functions


def test_a_signature_takes_examples_as_they_are_stored():
    """Two tf.train.Example of the one feature x, written by hand: a map entry of a name and a list of floats."""
    examples = []
    for x in (1.0, 4.0):
        floats = b"\x12\x06\x0a\x04" + np.float32(x).tobytes()
        entry = b"\x0a\x01x\x12" + bytes([len(floats)]) + floats
        features = b"\x0a" + bytes([len(entry)]) + entry
        examples.append(b"\x0a" + bytes([len(features)]) + features)
    model = heald.load(TF1, signature="regress")
    assert list(model.inputs) == ["examples"] or list(model.inputs) == ["inputs"]
    results = model(np.array(examples, object))
    (result,) = results.values() if isinstance(results, dict) else (results,)
    assert result.tolist() == [[2.5], [4.0]]


@pytest.mark.parametrize(("model", "signature", "x", "results"), [
    (CONTROL_FLOW, "count", np.int32(2), [2, 4, 6]),
    (TYPES, "upd", np.float32(1.5), [
        [2.26666068, 1.9793757, 2.04907994], [3.76666068, 3.4793757, 3.54907994], [5.26666068, 4.9793757, 5.04907994]]),
])
def test_variables_that_a_signature_changes_begin_with_saved_values(model, signature, x, results):
    """The results of TensorFlow 2.21, call by call."""
    loaded = heald.load(model, signature=signature)
    for want in results:
        np.testing.assert_allclose(loaded(x), want, 1e-7)
    np.testing.assert_allclose(heald.load(model, signature=signature)(x), results[0], 1e-7)


def test_the_first_step_of_any_caller_initializes_the_variables():
    loaded = heald.load(CONTROL_FLOW, signature="count")
    count = loaded.session.make_callable([*loaded.fetched.values()], [*loaded.fed.values()])
    assert count(np.int32(3)) == [3]
    assert loaded(np.int32(1)) == 4
    (fetch,), (feed,) = loaded.fetched.values(), loaded.fed.values()
    assert heald.load(CONTROL_FLOW, signature="count").session.run(fetch, {feed: np.int32(5)}) == 5


def test_variables_begin_once_however_many_threads_call_first():
    loaded = heald.load(CONTROL_FLOW, signature="count")
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(loaded, np.int32(1)) for _ in range(40)]:
            done.result()
    assert loaded(np.int32(0)) == 40


def test_signatures_share_the_session_and_its_variables():
    loaded = heald.load(CONTROL_FLOW)
    count = loaded.signatures["count"]
    assert (count.session is loaded.session, str(count)) == (True, "(by: int32[]) -> (n: int32[])")
    assert [count(np.int32(2)), loaded.signatures["count"](by=np.int32(3))] == [2, 5]
    assert heald.load(CONTROL_FLOW, signature="count").signatures["count"](np.int32(1)) == 1


def test_a_signature_sees_the_table_that_another_one_changed():
    loaded, words = heald.load(TABLES), np.array([b"x", b"new"], object)
    assert loaded(words)["mut"].tolist() == [7, -1]
    assert loaded.signatures["learn"](words=words, n=[8, 9]) == 3
    assert loaded(words)["mut"].tolist() == [8, 9]
    assert heald.load(TABLES)(words)["mut"].tolist() == [7, -1]


def test_saved_values_are_read_when_a_step_first_needs_them(monkeypatch):
    read, original = [], Checkpoint.read
    monkeypatch.setattr(Checkpoint, "read", lambda self, *key: read.append(key[0]) or original(self, *key))
    loaded = heald.load(TYPES)
    loaded(np.ones((1, 5), "f4"))
    before = [*read]
    loaded.signatures["upd"](np.float32(1))
    loaded.signatures["upd"](np.float32(1))
    (changed,) = read[len(before) :]
    assert changed not in before


def test_a_description_reads_no_weights(monkeypatch):
    monkeypatch.setattr(Checkpoint, "read", lambda self, *key: pytest.fail("a tensor was read"))
    description = LOADER.open(KERAS, LoadOptions(heald.default_host().registries.ops)).describe()
    assert {name: str(meta) for name, meta in description.inputs.items()} == {"inputs": "float32[?,8,8,1]"}
    assert {name: str(signature) for name, signature in description.signatures.items()} == {
        "serving_default": "(inputs: float32[?,8,8,1]) -> (output_0: float32[?,10])"}


def edit_meta_graph(folder, change):
    """A copy of a SavedModel with another MetaGraphDef."""
    file = shutil.copytree(TYPES, folder / "model") / "saved_model.pb"
    message = message_class("SavedModel").FromString(file.read_bytes())
    change(message.meta_graphs[0])
    file.write_bytes(message.SerializeToString())
    return file.parent


def test_a_signature_that_cannot_be_run_ends_no_other_one(tmp_path):
    loaded = heald.load(edit_meta_graph(tmp_path, lambda meta: meta.signature_def["upd"].ClearField("outputs")))
    assert loaded(np.ones((1, 5), "f4"))["x"].shape == (1, 5)
    assert str(loaded.signatures["upd"]) == "(x: float32[]) -> ()"
    with pytest.raises(errors.Unimplemented, match="signature 'upd' has no outputs"):
        loaded.signatures["upd"](np.float32(1))


def test_a_signature_that_does_not_fit_its_function_ends_no_other_one(tmp_path):
    def lengthen(meta):
        (name,) = {output.name.partition(":")[0] for output in meta.signature_def["upd"].outputs.values()}
        node = next(node for node in meta.graph_def.node if node.name == name)
        node.input.insert(0, node.input[0])

    folder = edit_meta_graph(tmp_path, lengthen)
    loaded = heald.load(folder)
    assert loaded(np.ones((1, 5), "f4"))["x"].shape == (1, 5)
    with pytest.raises(errors.FailedPrecondition, match=r"together with 'serving_default': .*signature='upd'"):
        loaded.signatures["upd"](np.float32(1))
    with pytest.raises(errors.HealdError, match="takes 2 arguments, 3 are given"):
        heald.load(folder, signature="upd")


def test_one_tensor_under_two_names_of_a_signature_takes_one_value(tmp_path, capsys):
    from heald.cli import main

    def rename(meta):
        inputs = meta.signature_def["serving_default"].inputs
        inputs["z"].CopyFrom(inputs["x"])

    loaded = heald.load(edit_meta_graph(tmp_path, rename))
    ones = np.ones((1, 5), "f4")
    assert [*loaded.inputs] == ["x", "z"]
    assert (loaded(x=ones, z=ones)["x"] == ones).all()
    with pytest.raises(errors.InvalidArgument, match="inputs 'x' and 'z' are one tensor, .* have different values"):
        loaded(x=ones, z=2 * ones)
    for name in ("x", "z"):
        assert main(["run", str(tmp_path / "model"), "--input", f"{name}=[[1, 1, 1, 1, 1]]"]) == 0
    assert main(["bench", str(tmp_path / "model"), "--duration", "0.01",
                 "--input", "x=[[1, 1, 1, 1, 1]]", "--input", "z=[[1, 1, 1, 1, 1]]"]) == 0, capsys.readouterr().err


def test_errors_about_an_input_have_its_name_in_the_signature(capsys):
    from heald.cli import main

    loaded = heald.load(TYPES)
    assert loaded.fed == {"x": "serving_default_x:0"}
    with pytest.raises(errors.InvalidArgument, match=r"^feed 'x' has shape \[2,4\], the tensor's is \[\?,5\]"):
        loaded(np.zeros((2, 4), "f4"))
    assert main(["run", str(TYPES), "--input", "x=[[1, 2]]"]) == 1
    assert capsys.readouterr().err == "error: feed 'x' has shape [1,2], the tensor's is [?,5]\n"


def test_the_effects_of_a_function_come_before_its_outputs():
    graph = heald.load(CONTROL_FLOW, signature="count").session.graph
    output = graph[next(name for name in graph.nodes if name.startswith("outputs/"))]
    behind, visited = [*output.controls], set()
    while behind:
        name = behind.pop()
        visited.add(graph[name].op)
        behind += graph[name].controls
    assert "AssignAddVariableOp" in visited


def test_the_error_of_a_missing_signature_lists_the_signatures(tmp_path):
    with pytest.raises(errors.NotFound, match="serving_default"):
        heald.load(KERAS, signature="serving")
    with pytest.raises(errors.NotFound, match="no loader recognises the folder"):
        heald.load(tmp_path)
    frozen = DATA.parent / "graphs" / "keras_tiny_cnn.pb"
    with pytest.raises(errors.InvalidArgument, match="no signatures"):
        heald.load(frozen, signature="serving_default")


def test_the_text_form_is_the_same_model(tmp_path):
    from google.protobuf import text_format

    shutil.copytree(KERAS, tmp_path / "model")
    binary = tmp_path / "model" / "saved_model.pb"
    message = message_class("SavedModel").FromString(binary.read_bytes())
    binary.with_suffix(".pbtxt").write_text(text_format.MessageToString(message))
    binary.unlink()
    x = np.random.default_rng(0).random((2, 8, 8, 1), np.float32)
    np.testing.assert_array_equal(heald.load(tmp_path / "model")(x), heald.load(KERAS)(x))


@pytest.fixture
def model_copy(tmp_path):
    """A copy of a model, and a file outside that it may not reach."""
    shutil.copytree(DATA / "asset" / "model", tmp_path / "model")
    (tmp_path / "outside").write_bytes(b"secret")
    return tmp_path / "model"


def test_an_asset_is_a_path_in_the_folder(model_copy):
    assert heald.load(model_copy, signature="path")() == str(model_copy / "assets" / "vocab.txt").encode()


@pytest.mark.parametrize("link", ["assets/vocab.txt", "saved_model.pb"])
def test_links_that_lead_out_are_not_followed(model_copy, link):
    (model_copy / link).unlink()
    (model_copy / link).symlink_to(model_copy.parent / "outside")
    with pytest.raises(errors.InvalidArgument, match="leads out"):
        heald.load(model_copy, signature="path")


@pytest.mark.parametrize("name", ["../../outside", "/etc/passwd"])
def test_names_of_assets_that_lead_out_are_refused(model_copy, name):
    file = model_copy / "saved_model.pb"
    message = message_class("SavedModel").FromString(file.read_bytes())
    message.meta_graphs[0].asset_file_def[0].filename = name
    file.write_bytes(message.SerializeToString())
    with pytest.raises(errors.InvalidArgument, match="leads out"):
        heald.load(model_copy, signature="path")


def test_variables_behind_a_link_are_not_read(tmp_path):
    shutil.copytree(KERAS, tmp_path / "model")
    (tmp_path / "model" / "variables").rename(tmp_path / "variables")
    (tmp_path / "model" / "variables").symlink_to(tmp_path / "variables")
    with pytest.raises(errors.InvalidArgument, match="leads out"):
        heald.load(tmp_path / "model")


def test_a_shard_that_is_gone_is_named(tmp_path):
    shutil.copytree(DATA / "shards" / "model", tmp_path / "model")
    (tmp_path / "model" / "variables" / "variables.data-00002-of-00005").unlink()
    with pytest.raises(errors.NotFound, match="variables.data-00002-of-00005"):
        heald.load(tmp_path / "model")


def test_tables_begin_with_saved_content_and_each_model_has_its_own():
    """The sizes that TensorFlow 2.21 gives, call by call."""
    learned = heald.load(TABLES, signature="learn")
    more = [(np.array([b"x", b"new"], object), 3), (np.array([b"x", b"y"], object), 3), (np.array([b"z"], object), 4)]
    for words, size in more:
        assert learned(words=words, n=np.arange(len(words))) == size
    assert heald.load(TABLES, signature="learn")(words=np.array([b"z"], object), n=[1]) == 3


def test_contents_of_asset_files_are_constants_and_are_read_once(tmp_path):
    shutil.copytree(TABLES, tmp_path / "model")
    loaded = heald.load(tmp_path / "model")
    shutil.rmtree(tmp_path / "model")
    assert loaded(np.array([b"dog", b"q"], object))["ids"].tolist() == [1, -1]
    assert "InitializeTableFromTextFileV2" not in {node.op for node in loaded.session.graph}


@pytest.mark.parametrize(("text", "error", "match"), [
    (b"cat\n\ndog\n", errors.InvalidArgument, "vocab.txt': line 1 of the vocabulary is empty"),
    (b"", errors.InvalidArgument, "vocab.txt': the vocabulary is empty"),
    (b"cat\ndog\ncat\n", errors.FailedPrecondition, "different value for same key. Key b'cat'"),
    (None, errors.NotFound, "vocab.txt"),
])
def test_a_vocabulary_that_cannot_be_is_an_error_that_names_the_file_or_the_key(tmp_path, text, error, match):
    shutil.copytree(TABLES, tmp_path / "model")
    file = tmp_path / "model" / "assets" / "vocab.txt"
    file.unlink()
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(error, match=match) as caught:
        heald.load(tmp_path / "model")(np.array([b"dog"], object))
    assert text is None or caught.value.node is not None


def test_an_asset_that_is_a_pipe_is_refused_without_waiting(tmp_path):
    shutil.copytree(TABLES, tmp_path / "model")
    file = tmp_path / "model" / "assets" / "vocab.txt"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(errors.InvalidArgument, match="vocab.txt: this is not a regular file"):
        heald.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["variables.index", "variables.data-00000-of-00001"])
def test_a_damaged_file_of_a_checkpoint_is_named(tmp_path, name):
    shutil.copytree(KERAS, tmp_path / "model")
    file = tmp_path / "model" / "variables" / name
    file.write_bytes(file.read_bytes()[:100] + b"?" + file.read_bytes()[101:])
    with pytest.raises(errors.DataLoss, match=rf"{name}: .*checksum"):
        heald.load(tmp_path / "model")


def test_a_table_is_not_filled_from_a_file_that_is_no_asset(tmp_path):
    """The node is the same, but the model does not say that its file is one of its own."""
    shutil.copytree(DATA / "tables_tf1" / "model", tmp_path / "model")
    file = tmp_path / "model" / "saved_model.pb"
    message = message_class("SavedModel").FromString(file.read_bytes())
    del message.meta_graphs[0].collection_def["saved_model_assets"]
    file.write_bytes(message.SerializeToString())
    with pytest.raises(errors.PermissionDenied, match="InitializeTableFromTextFileV2 may not read '.*cols.txt'"):
        heald.load(tmp_path / "model")(np.array([b"dog"], object))


def test_ops_read_the_models_own_assets_and_nothing_beside_them(tmp_path):
    first, second = (tmp_path / name for name in ("first", "second"))
    for folder in (first, second):
        shutil.copytree(DATA / "asset_file" / "model", folder)
    assert heald.load(first)(False)["text"] == b"alpha beta\ngamma"
    words = second / "assets" / "words.txt"
    words.unlink()
    words.symlink_to(first / "assets" / "words.txt")
    with pytest.raises((errors.PermissionDenied, errors.InvalidArgument)):
        heald.load(second)(False)
    model = heald.load(first)
    read = Node("read", "ReadFile", ["name"])
    name = Node("name", "Placeholder", attrs={"dtype": dtypes.string, "shape": ()})
    for session in (heald.Session(Graph([name, read])), model.session.beside(Graph([name, read]))):
        with pytest.raises(errors.PermissionDenied):
            session.run("read", {"name": str(tmp_path / "first" / "saved_model.pb")})


ATTEMPTS = 40


@pytest.mark.parametrize("file", ["saved_model.pb", "variables/variables.index",
                                  "variables/variables.data-00000-of-00001"])
@pytest.mark.parametrize("model", [KERAS, DATA / "partitioned" / "model"], ids=["keras", "partitioned"])
def test_damaged_files_are_typed_errors_or_still_a_model(tmp_path, model, file):
    shutil.copytree(model, tmp_path / "model")
    damaged, intact = tmp_path / "model" / file, (model / file).read_bytes()
    rng = np.random.default_rng(len(intact))
    for attempt in range(ATTEMPTS):
        data = bytearray(intact)
        for at in rng.integers(0, len(data), 1 + attempt % 3):
            data[at] ^= 1 << int(rng.integers(8))
        if attempt % 4 == 0:
            del data[int(rng.integers(len(data))) :]
        damaged.write_bytes(data)
        try:
            loaded = heald.load(tmp_path / "model")
            loaded.session.prepare(list(loaded.fetched.values()), list(loaded.fed.values()))
        except errors.Internal:
            raise
        except errors.HealdError:
            continue


def test_the_command_line_takes_a_folder(capsys):
    from heald.cli import main

    assert main(["run", str(TF1), "--input", "x=[[1], [2]]", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["y"]["values"] == [[2.5], [3.0]]
    assert main(["inspect", str(CONTROL_FLOW), "--signature", "count", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in report["inputs"]] == ["by"]
    assert set(report["signatures"]) == {"count", "serving_default"}
    assert main(["explain", str(KERAS), "--input", "inputs=1,8,8,1", "--fetch", "output_0", "--json"]) == 0
    assert all(row["assigned"] != "-" for row in json.loads(capsys.readouterr().out))
    assert main(["ops", "--missing", str(TF1), "--signature", "regress", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["run", str(TF1), "--tags", "serve,gpu", "--input", "x=1"]) == 1


def test_inspect_tells_of_variables_that_become_constants(capsys):
    from heald.cli import main

    assert main(["inspect", str(KERAS), "--passes", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    row = report["passes_before_placement"][0]
    assert (row["pass"], row["less"]["VarHandleOp"], row["more"]["Const"]) == ("freeze", 11, 11)
    assert report["constants"]["bytes"] > 2000
    assert main(["inspect", str(KERAS), "--passes"]) == 0
    assert "passes before placement, over the whole graph" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(file.parts[-3] for file in DATA.glob("*/model/saved_model.pb")))
def test_commands_that_run_nothing_need_neither_variables_nor_assets(tmp_path, capsys, name):
    from heald.cli import main

    bare, complete = tmp_path / "bare", DATA / name / "model"
    bare.mkdir()
    shutil.copy(complete / "saved_model.pb", bare)
    tags = ["--tags", "serve,gpu"] if name == "tags" else []
    outputs = []
    for folder in (bare, complete):
        assert main(["inspect", str(folder), *tags, "--json"]) == 0, capsys.readouterr().err
        outputs.append(json.loads(capsys.readouterr().out))
        assert main(["ops", "--missing", str(folder), *tags, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == []
    assert all(outputs[0][key] == outputs[1][key] for key in ("signatures", "inputs", "format"))
    assert main(["inspect", str(bare), *tags, "--passes", "--client"]) == 0
    if (complete / "variables" / "variables.index").exists() and name not in ("asset", "asset_file"):
        with pytest.raises(errors.NotFound, match=r"variables\.index|assets/vocab"):
            heald.load(bare, tags=["serve", "gpu"] if tags else None)


def test_variables_without_values_are_inspected_as_variables(tmp_path, capsys):
    from heald.cli import main

    shutil.copytree(KERAS, tmp_path / "model", ignore=shutil.ignore_patterns("variables.data*"))
    assert main(["inspect", str(tmp_path / "model"), "--json"]) == 0
    ops = {row["op"]: row["nodes"] for row in json.loads(capsys.readouterr().out)["ops"]}
    assert ops["VarHandleOp"] == 11


@pytest.mark.parametrize("model", [KERAS, TF1], ids=["keras", "tf1"])
def test_two_devices_are_compared_with_the_saved_values(model, capsys):
    from heald.cli import main

    assert main(["diff", str(model), "--device", "EXAMPLE:0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("name", "signature", "x"), [
    ("init_variables", "serving_default", 35), ("init_variables", "local_reference", 7),
    ("init_variables", "shared", 80), ("init_effects", "serving_default", 50), ("init_effects", "size", 2),
    ("init_objects", "serving_default", 91)])
def test_an_init_op_runs_once_after_the_variables_are_restored(name, signature, x):
    """TensorFlow runs it when it loads the model. A reset session begins anew."""
    model = heald.load(DATA / name / "model", signature=signature)
    assert [model(np.float32([1, 1, 1])).tolist() for _ in range(3)] == [[x] * 3] * 3
    model.session.reset()
    assert model(np.float32([1, 1, 1])).tolist() == [x] * 3


def test_signatures_share_the_one_run_of_an_init_op():
    """`add` is 4 in the checkpoint, and the init op adds 40."""
    model = heald.load(DATA / "init_variables" / "model")
    first = model.signatures["reference"](np.float32([1, 1, 1]))
    assert [first.tolist(), model.signatures["add"](np.float32([1, 1, 1])).tolist()] == [[20] * 3, [44] * 3]


def test_variables_that_an_init_op_assigns_are_not_frozen():
    model = heald.load(DATA / "init_variables" / "model")
    frozen = {node.name for node in model.session.graph if node.op == "Const"}
    variables = {node.name for node in model.session.graph if node.op in ("VarHandleOp", "_ReferenceVariable")}
    assert "untouched" in frozen
    assert variables >= {"res", "add", "local", "shared", "ref/handle", "local_ref/handle"}


def test_an_init_op_of_tables_alone_opens_no_asset_for_a_signature_without_tables(tmp_path):
    shutil.copytree(TABLES, tmp_path / "model")
    message = message_class("SavedModel")()
    file = tmp_path / "model" / "saved_model.pb"
    message.ParseFromString(file.read_bytes())
    for name in [*message.meta_graphs[0].signature_def]:
        if name not in ("rows", "__saved_model_init_op"):
            del message.meta_graphs[0].signature_def[name]
    file.write_bytes(message.SerializeToString())
    (tmp_path / "model" / "assets" / "vocab.txt").unlink()
    assert heald.load(tmp_path / "model", signature="rows")([0])["size"] == 2


@pytest.mark.parametrize(("names", "error", "match"), [
    (["gone"], errors.DataLoss, "init op 'gone' is not in its graph"),
    (["init", "x"], errors.FailedPrecondition, r"2 init ops \(init, x\), expected one"),
])
def test_an_init_op_that_cannot_run_is_a_typed_error(tmp_path, names, error, match):
    with pytest.raises(error, match=match):
        heald.load(with_init_ops(tmp_path, names))


def with_init_ops(folder: Path, names: list[str]) -> Path:
    shutil.copytree(TF1, folder / "model")
    message = message_class("SavedModel")()
    file = folder / "model" / "saved_model.pb"
    message.ParseFromString(file.read_bytes())
    message.meta_graphs[0].collection_def["saved_model_main_op"].node_list.value.extend(names)
    file.write_bytes(message.SerializeToString())
    return folder / "model"


def test_a_failing_init_op_fails_every_step_as_tensorflow_fails_to_load(tmp_path):
    model = with_init_ops(tmp_path, ["doubt"])
    message = message_class("SavedModel")()
    message.ParseFromString((model / "saved_model.pb").read_bytes())
    nodes = message.meta_graphs[0].graph_def.node
    doubt = nodes.add(name="doubt", op="Assert", input=["no", "no"])
    doubt.attr["T"].list.type.append(10)
    no = nodes.add(name="no", op="Const")
    no.attr["dtype"].type = no.attr["value"].tensor.dtype = 10
    no.attr["value"].tensor.bool_val.append(False)
    (model / "saved_model.pb").write_bytes(message.SerializeToString())
    loaded = heald.load(model)
    for _ in range(2):
        with pytest.raises(errors.InvalidArgument) as caught:
            loaded(np.ones((3, 1), "f4"))
        assert caught.value.node == "doubt"


@pytest.mark.parametrize("name", ["tables", "init_variables"])
def test_the_graph_of_a_saved_model_is_the_same_under_every_hash_seed(name):
    """Tables are filled, and variables restored, in the order of the graph."""
    program = ("import sys, heald; from heald_saved_model.loader import LOADER; from heald.api import LoadOptions\n"
               "from pathlib import Path\n"
               "source = LOADER.open(Path(sys.argv[1]), LoadOptions(heald.default_host().registries.ops))\n"
               "print(list(source.graph().nodes), [each.target for each in source.initial_state()])")
    graphs = {subprocess.run([sys.executable, "-c", program, str(DATA / name / "model")], check=True,
                             capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
              for seed in ("1", "2", "3")}
    assert len(graphs) == 1
