"""heald diff with recorded results: by heald, by TensorFlow, and by any program that writes .npz files."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.api import Node
from heald.runtime.values import dtypes

DATA = Path(__file__).parents[1] / "data"
NODES = (placeholder("x", (None, 3)), const("w", np.eye(3)),
         node("m", "MatMul", "x", "w", transpose_a=False, transpose_b=False), node("n", "Neg", "m"),
         node("o", "Maximum", "m", "n"), node("p", "Mul", "o", "o"))


@pytest.fixture
def model(saved):
    return saved(*NODES)


def arrays_of(file):
    with np.load(file) as archive:
        return {name: archive[name] for name in archive.files}


def test_a_recording_has_inputs_and_outputs_and_is_met(command, model):
    done = command("diff", model, "--record", "e.npz", "--input", "x=[[1, 2, -3]]")
    assert (done.status, done.out) == (0, "wrote e.npz: the results of heald\n")
    arrays = arrays_of("e.npz")
    assert {name: array.tolist() for name, array in arrays.items()} == {
        "inputs/x": [[1, 2, -3]], "outputs/p": [[1, 4, 9]]}
    assert command("diff", model, "--expect", "e.npz") == (
        0, "1 tensor compared\nnone further apart than 0.001 of the standard deviation; at most 0\n", "")


def test_inner_tensors_name_the_first_node_that_differs(command, model):
    command("diff", model, "--record", "e.npz", "--all")
    arrays = arrays_of("e.npz")
    assert arrays.keys() == {"inputs/x", "outputs/p", "tensors/m:0", "tensors/n:0", "tensors/o:0", "tensors/p:0"}
    assert command("diff", model, "--expect", "e.npz").out.startswith("4 tensors compared\n")
    for name in ("outputs/p", "tensors/p:0", "tensors/o:0"):
        arrays[name] = arrays[name] + 1
    np.savez("other.npz", **arrays)
    done = command("diff", model, "--expect", "other.npz")
    assert done.status == 1
    assert "2 beyond 0.001: heald and other.npz part at o:0 (Maximum)" in done.out
    rows = json.loads(command("diff", model, "--expect", "other.npz", "--json").out)
    assert [(row["tensor"], row["beyond"]) for row in rows] == [
        ("m:0", False), ("n:0", False), ("o:0", True), ("p:0", True)]


def test_keys_without_a_part_are_inputs_outputs_or_tensors(command, model):
    np.savez("e.npz", x=np.float32([[1, 2, -3]]), p=np.float32([[1, 4, 9]]), o=np.float32([[1, 2, 4]]))
    done = command("diff", model, "--expect", "e.npz")
    assert "heald and e.npz part at o:0 (Maximum)" in done.out
    assert "1 beyond" in done.out


def test_inputs_of_the_command_go_before_those_of_the_file(command, model):
    np.savez("e.npz", p=np.float32([[4, 4, 4]]))
    assert command("diff", model, "--expect", "e.npz", "--input", "x=[[2, 2, 2]]").status == 0
    assert command("diff", model, "--expect", "e.npz", "--input", "x=[[2, 2, 1]]").status == 1


def test_a_tolerance_is_of_the_standard_deviation(command, model):
    np.savez("e.npz", x=np.float32([[1, 2, -3]]), p=np.float32([[1, 4, 9.1]]))
    assert command("diff", model, "--expect", "e.npz").status == 1
    assert command("diff", model, "--expect", "e.npz", "--tolerance", "0.1").status == 0


def test_strings_are_compared_as_values(command, saved):
    model = saved(placeholder("s", (None,), dtypes.string), Node("y", "StringUpper", ("s",), attrs={"encoding": b""}))
    command("diff", model, "--record", "e.npz", "--input", 's=["ab", "c"]')
    assert arrays_of("e.npz")["outputs/y"].tolist() == [b"AB", b"C"]
    assert command("diff", model, "--expect", "e.npz").status == 0
    np.savez("u.npz", s=np.array(["ab", "c"]), y=np.array(["AB", "D"]))
    assert "heald and u.npz part at y:0 (StringUpper)" in command("diff", model, "--expect", "u.npz").out


@pytest.mark.parametrize("array", [
    np.array([["a", "b", "c"]]), np.array([[1, 4, 10]]), np.array([[1, 4, 9 + 1j]]), np.array([[True, False, True]]),
    np.float32([1, 4, 9]), np.float32([[np.nan, 4, 9]]),
])
def test_results_of_another_type_or_shape_differ(command, model, array):
    np.savez("e.npz", x=np.float32([[1, 2, -3]]), p=array)
    done = command("diff", model, "--expect", "e.npz")
    assert (done.status, done.err) == (1, "")
    assert "heald and e.npz part at p:0 (Mul)" in done.out


@pytest.mark.parametrize("array", [np.array([[1, 4, 9]]), np.float64([[1, 4, 9]]), np.complex64([[1, 4, 9]])])
def test_equal_results_of_another_type_of_numbers_do_not_differ(command, model, array):
    np.savez("e.npz", x=np.float32([[1, 2, -3]]), p=array)
    assert command("diff", model, "--expect", "e.npz").status == 0


def test_the_state_of_a_model_begins_anew_for_the_inner_tensors(command):
    model = DATA / "saved_models" / "init_variables" / "model"
    done = command("diff", model, "--record", "e.npz", "--all")
    assert done.status == 0, done.err
    assert command("diff", model, "--expect", "e.npz").status == 0


def test_bfloat16_is_recorded_as_float32(command):
    model = DATA / "population" / "pure-bfloat16" / "model"
    command("diff", model, "--record", "e.npz", "--all")
    assert {array.dtype.name for array in arrays_of("e.npz").values()} <= {"float32", "int32", "int64"}
    assert command("diff", model, "--expect", "e.npz").status == 0


@pytest.mark.parametrize("name", ["v1_while_cond_inside", "v1_cond_nested", "v2_case", "keras_tiny_cnn"])
def test_tensors_of_graphs_with_control_flow_are_recorded_and_compared(command, name):
    model = DATA / "graphs" / f"{name}.pb"
    done = command("diff", model, "--record", "e.npz", "--all")
    assert done.status == 0, done.err
    assert command("diff", model, "--expect", "e.npz").status == 0


@pytest.mark.parametrize(("arrays", "message", "hint"), [
    ({"p": 1.0}, "'e.npz' has no value for input 'x', float32[?,3]", "add an array inputs/x to it, or --input x="),
    ({"inputs/x": 1.0}, "'e.npz' has no output and no tensor to compare", "the outputs: p"),
    ({"q": 1.0}, "'e.npz' has 'q', which is no input, output or tensor of the model",
     "rename it: inputs/x, or keep it in another file: --input x=OTHER.npz:q"),
    ({"outputs/m": 1.0}, "'e.npz' has 'outputs/m', which is no input, output or tensor of the model", ""),
    ({"inputs/y": 1.0}, "'e.npz' has 'inputs/y', which is no input", ""),
    ({"tensors/gone:0": 1.0}, "'e.npz' has 'tensors/gone:0', which is no input", ""),
    ({"inputs/x": [[1.0, 2.0]], "p": 1.0}, "feed 'x' has shape [1,2], the tensor's is [?,3]", ""),
    ({"inputs/x": [[1.0, 2.0, 3.0]], "m:7": 1.0}, "m:7", ""),
    ({"inputs/x": [[1.0, 2.0, 3.0]], "m:": 1.0}, "m:", ""),
])
def test_a_recording_that_does_not_fit_the_model_is_an_error(command, model, arrays, message, hint):
    np.savez("e.npz", **{name: np.float32(value) for name, value in arrays.items()})
    done = command("diff", model, "--expect", "e.npz")
    assert done.status == 1
    assert message in done.err
    assert hint in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(("content", "message"), [
    (None, "e.npz"), (b"", "'e.npz' cannot be read"), (b"PK\x03\x04", "'e.npz' cannot be read"),
    (b"\x93NUMPY", "the file holds a single array"),
])
def test_a_damaged_recording_is_an_error(command, model, content, message):
    if content is not None:
        Path("e.npz").write_bytes(content)
    done = command("diff", model, "--expect", "e.npz")
    assert done.status == 1
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(("options", "message"), [
    (("--record", "e.txt"), "--record 'e.txt' is no .npz file"),
    (("--expect", "e.npz", "--tolerance", "-1"), "the tolerance must not be negative, as -1.0 is"),
    (("--expect", "e.npz", "--record", "f.npz"), "--expect is for one model, and --record is given"),
    (("--expect", "e.npz", "--reference", "CPU:0"), "--reference is for one model on two devices, and --expect is"),
    (("--expect", "e.npz", "--with", "tensorflow"), "--with is for --record, and --expect is given"),
    (("--record", "e.npz", "--tolerance", "1"), "--tolerance is for one model on two devices, and --record is given"),
    (("--record", "e.npz", "--tensorflow", "python"), "--tensorflow is for --against tensorflow and --with tensorflow"),
    (("other.pb", "--expect", "e.npz"), "--expect is for one model, and two models are given"),
    (("--against", "tensorflow", "--text"), "--text is for two models, and --against is given"),
    ((), "heald diff needs a second model or a device, or recorded results"),
])
def test_wrong_combinations_are_errors(command, model, options, message):
    np.savez("e.npz", x=np.float32([[1, 2, -3]]), p=np.float32([[1, 4, 9]]))
    done = command("diff", model, *options)
    assert done.status == 1
    assert f"error: {message}" in done.err


# In the place of TensorFlow: the model p = max(x, -x) ** 2 + 1, and the message of a graph without its nodes.
STAND_IN = """
import numpy as np

class errors:
    OpError = RuntimeError

class Node:
    def __init__(self, name):
        self.name = name

class GraphDef:
    node = [Node(name) for name in ("m", "n", "o")]
    def ParseFromString(self, content):
        assert content

class Graph:
    def as_default(self):
        return self
    def __enter__(self):
        return self
    def __exit__(self, *_):
        return None
    def get_tensor_by_name(self, name):
        class tensor:
            class dtype:
                as_numpy_dtype = np.float32
        return tensor

class Session(Graph):
    def __init__(self, graph):
        pass
    def run(self, fetches, feeds):
        FAULT
        (x,) = feeds.values()
        values = {"m:0": x, "n:0": -x, "o:0": abs(x), "p:0": x * x + 1}
        if isinstance(fetches, dict):
            return {name: values[tensor] for name, tensor in fetches.items()}
        return [self.run(part, feeds) for part in fetches]

def import_graph_def(message, name):
    assert message.node and name == ""

class compat:
    class v1:
        GraphDef, Session = GraphDef, Session
"""


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Makes a module that stands for TensorFlow, with a fault in its runs."""

    def make(fault="pass"):
        folder = tmp_path / "packages"
        folder.mkdir(exist_ok=True)
        (folder / "tensorflow.py").write_text(STAND_IN.replace("FAULT", fault))
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return make


def test_tensorflow_is_compared_node_by_node(command, model, stand_in):
    stand_in()
    done = command("diff", model, "--against", "tensorflow")
    assert done.status == 1, done.err
    assert "4 tensors compared\n1 beyond 0.001: heald and tensorflow part at p:0 (Mul)" in done.out


def test_tensorflow_records_a_file(command, model, stand_in):
    stand_in()
    done = command("diff", model, "--record", "e.npz", "--with", "tensorflow", "--all", "--input", "x=[[1, 2, -3]]")
    assert done.out == "wrote e.npz: the results of tensorflow\n"
    arrays = arrays_of("e.npz")
    assert arrays["outputs/p"].tolist() == [[2, 5, 10]]
    assert arrays.keys() == {"inputs/x", "outputs/p", "tensors/m:0", "tensors/n:0", "tensors/o:0"}


def test_outputs_are_recorded_where_inner_tensors_cannot_be_fetched(command, model, stand_in):
    stand_in("if not isinstance(fetches, dict): raise RuntimeError('in a loop')")
    command("diff", model, "--record", "e.npz", "--with", "tensorflow", "--all")
    assert arrays_of("e.npz").keys() == {"inputs/x", "outputs/p"}


def test_an_error_of_tensorflow_is_told(command, model, stand_in):
    stand_in("raise RuntimeError('no kernel')")
    done = command("diff", model, "--against", "tensorflow")
    assert done.status == 1
    assert done.err == "error: TensorFlow does not run the model: RuntimeError: no kernel\n"


def test_a_process_of_tensorflow_that_is_killed_is_told(command, model, stand_in):
    stand_in("import os; os.kill(os.getpid(), 9)")
    if sys.platform != "win32":
        assert "the process of TensorFlow was ended by signal 9" in command(
            "diff", model, "--against", "tensorflow").err


def test_an_interpreter_without_tensorflow_is_told_with_the_remedy(command, model, monkeypatch, tmp_path):
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "tensorflow.py").write_text(
        "raise ModuleNotFoundError('no tensorflow', name='tensorflow')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    done = command("diff", model, "--against", "tensorflow")
    assert done.status == 1
    assert done.err == (f"error: tensorflow is not installed for {sys.executable}\n"
                        "  hint: --tensorflow PYTHON names another interpreter; pip install tensorflow-cpu\n")


def test_an_interpreter_that_does_not_exist_is_told(command, model):
    done = command("diff", model, "--against", "tensorflow", "--tensorflow", "no-such-python")
    assert done.status == 1
    assert "error: 'no-such-python' cannot be started: No such file or directory" in done.err
    assert "hint: --tensorflow PYTHON is the interpreter of an environment with TensorFlow" in done.err


def test_tensorflow_is_asked_for_its_own_formats_alone(command, model, stand_in):
    stand_in()
    Path("graph.tfg").write_bytes(Path(model).read_bytes())
    done = command("diff", "graph.tfg", "--format", "graphdef", "--against", "tensorflow")
    assert "TensorFlow is asked for SavedModels, .pb and .pbtxt files, and not for" in done.err


def test_no_module_of_the_working_folder_is_imported_for_tensorflow(command, model, stand_in):
    stand_in()
    Path("tensorflow.py").write_text("raise SystemExit('from the working folder')")
    Path("json.py").write_text("raise SystemExit('from the working folder')")
    assert command("diff", model, "--record", "e.npz", "--with", "tensorflow").status == 0
