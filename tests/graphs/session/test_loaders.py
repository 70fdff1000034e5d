"""Loaders: the table of formats, the choice of the entry that opens a file, and the faults of a loader."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.cli import main
from heald.errors import (
    DataLoss,
    HealdWarning,
    InvalidArgument,
    NotFound,
    PluginError,
    ResourceExhausted,
    Unimplemented,
)
from heald.graphs.plugin import heald_loaders
from heald.graphs.session.graph_reader import read_graph
from heald.runtime.contract.hookspecs import Contribution, LoaderRegistrar
from heald.runtime.contract.loader import Description, LoaderEntry, LoadOptions, SignatureDef, TensorInfo
from heald.runtime.host.registries import Registries
from heald.runtime.program.host_program import Call, ProgramDef, ProgramFunction
from heald.runtime.service import loading
from heald.runtime.service.loading import open_file
from heald.runtime.support.install import install_hint
from heald.runtime.values.dtypes import named
from heald.runtime.values.tensor import TensorMetadata
from plugins_for_tests import plugin

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "data"
FROZEN = DATA / "graphs" / "keras_tiny_cnn.pb"
WITH_SCALE = {"plugins": {"load": [plugin("formats")]}}
SOURCE = SimpleNamespace(describe=lambda: Description("x"), graph=lambda: None)
WITHOUT_SAVED_MODELS = {"plugins": {"block": ["saved_model"]}}


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    file = tmp_path / "model.scale"
    file.write_text("scale 3")
    return file


def registries(**loaders: object) -> Registries:
    """Core's loaders with further loaders, of a plugin `tests`."""
    table, brought = Registries(), Contribution("tests")
    core_contribution = Contribution("heald")
    heald_loaders(LoaderRegistrar(core_contribution))
    table.add(core_contribution)
    for name, loader in loaders.items():
        LoaderRegistrar(brought).add(name, loader)  # type: ignore[arg-type]
    table.add(brought)
    return table


def loader(recognise=lambda path, head: True, open=lambda path, options: SOURCE):  # noqa: A002
    return SimpleNamespace(recognise=recognise, open=open)


def open_with_loaders(path: Path, form: str | None = None, **loaders: object) -> loading.OpenedFile:
    table = registries(**loaders)
    return open_file(path, LoadOptions(table.ops), table, form)


def test_a_file_of_a_third_partys_format_is_a_model(scale: Path) -> None:
    model = heald.load(scale, config=WITH_SCALE)
    assert {name: str(meta) for name, meta in model.inputs.items()} == {"x": "float32[?]"}
    assert model(np.ones(2, "f4")).tolist() == [3, 3]
    assert model.signatures["doubled"]() == 6
    assert model(x=np.ones(1, "f4")).tolist() == [6]
    assert heald.load(scale, config=WITH_SCALE, signature="doubled")() == 6


def test_saved_state_is_read_once_and_by_the_first_step_that_needs_it(scale: Path) -> None:
    model = heald.load(scale, config=WITH_SCALE)
    assert model.session.run("x", {"x": [1.0]}).tolist() == [1]
    scale.write_text("scale 4")
    assert model([1.0]).tolist() == [4]
    scale.unlink()
    assert model([1.0]).tolist() == [4]


def test_a_step_that_is_prepared_later_leaves_the_state_as_it_is(scale: Path) -> None:
    model = heald.load(scale, config=WITH_SCALE)
    assert model.signatures["doubled"]() == 6
    assert model([1.0]).tolist() == [6]
    assert model.session.run("read") == 6


def test_state_that_cannot_be_read_is_an_error_of_each_step_that_needs_it(scale: Path) -> None:
    model = heald.load(scale, config=WITH_SCALE)
    scale.write_text("scale three")
    with pytest.raises(PluginError, match="loader 'scale' of plugin formats: values of .*ValueError"):
        model([1.0])
    scale.write_text("scale 5")
    assert model([1.0]).tolist() == [5]


def test_two_loaders_that_claim_a_file_are_named_and_either_may_be_chosen(scale: Path) -> None:
    table = {"one": loader(), "two": loader()}
    with pytest.raises(InvalidArgument, match=r"'one' of plugin tests and loader 'two' of plugin tests.*"
                       r"format='one' or format='two'"):
        open_with_loaders(scale, **table)
    assert open_with_loaders(scale, "two", **table).entry.name == "two"


def test_the_order_of_registration_decides_nothing(scale: Path) -> None:
    table = {"two": loader(), "one": loader()}
    with pytest.raises(InvalidArgument, match="'one' of plugin tests and loader 'two'"):
        open_with_loaders(scale, **table)


def test_an_unknown_format_is_told_with_those_that_are_known(scale: Path) -> None:
    message = "no loader is called 'grafdef'; known formats: bef, checkpoint, graphdef, mlir, saved_model.*graphdef"
    with pytest.raises(NotFound, match=message):
        heald.load(FROZEN, format="grafdef")
    with pytest.raises(InvalidArgument, match="format= is a int, expected the name of a loader"):
        heald.load(FROZEN, format=3)  # type: ignore[arg-type]
    assert heald.load(FROZEN, format="graphdef").outputs


def test_a_file_that_no_loader_recognises_says_so(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("# notes")
    with pytest.raises(NotFound, match=r"no loader recognises the file '.*notes.md'; known formats: bef, checkpoint"):
        heald.load(file)
    with pytest.raises(NotFound, match="no loader recognises the folder"):
        heald.load(tmp_path)
    with pytest.raises(NotFound, match=r"no such file; did you mean 'notes.md'"):
        heald.load(tmp_path / "note.md")


def test_a_file_of_no_known_kind_is_told_to_name_the_format(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(b"# A model\n\n{x}\n")
    with pytest.raises(NotFound, match="no loader recognises the file") as caught:
        heald.load(tmp_path / "README.md")
    assert caught.value.hint == "name the format: format='graphdef'"


def test_a_graphdef_is_recognised_under_any_suffix(tmp_path: Path) -> None:
    file = shutil.copy(FROZEN, tmp_path / "weights.bin")
    assert list(heald.load(file).outputs) == list(heald.load(FROZEN).outputs)


def test_a_saved_model_without_its_plugin_tells_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").touch()
    for form in (None, "saved_model"):
        with pytest.raises(NotFound, match=re.escape(install_hint("heald-saved-model"))):
            open_with_loaders(tmp_path, form)


def test_a_saved_model_whose_plugin_is_blocked_says_so() -> None:
    with pytest.raises(NotFound, match=r"plugin saved_model is blocked: \[plugins\] block names it"):
        heald.load(DATA / "saved_models" / "keras" / "model", config=WITHOUT_SAVED_MODELS)


def raising(error: BaseException):
    def function(*args):
        raise error
    return function


@pytest.mark.parametrize("method", ["recognise", "open"])
def test_a_loader_that_raises_is_named(scale: Path, method: str) -> None:
    for error in (ValueError("bad\nbyte"), SystemExit(3)):
        with pytest.raises(PluginError, match=f"loader 'x' of plugin tests: {method} of '.*' raised ") as caught:
            open_with_loaders(scale, x=loader(**{method: raising(error)}))
        assert caught.value.__cause__ is error
    with pytest.raises(DataLoss, match="^half a file$"):
        open_with_loaders(scale, x=loader(**{method: raising(DataLoss("half a file"))}))
    with pytest.raises(NotFound, match="gone: loader 'x' .*: .* of '.*' raised FileNotFoundError: No such file"):
        open_with_loaders(scale, x=loader(**{method: raising(FileNotFoundError(2, "No such file", "gone"))}))
    with pytest.raises(ResourceExhausted):
        open_with_loaders(scale, x=loader(**{method: raising(MemoryError())}))
    with pytest.raises(NotFound, match="^[^:]*: No such file$"):
        open_with_loaders(scale, x=loader(**{method: raising(FileNotFoundError(2, "No such file", str(scale)))}))


class RaisingLoader:
    """A loader whose own code raises, so that its error has the line below."""

    def recognise(self, path: Path, head: bytes) -> bool:
        return bool(1 / len(head[:0]))

    def open(self, path: Path, options: LoadOptions) -> None:
        raise AssertionError


def test_a_loaders_fault_has_the_line_of_its_own_code(scale: Path) -> None:
    with pytest.raises(PluginError, match=rf"raised ZeroDivisionError: .*, raised at {re.escape(__file__)}:\d+$"):
        open_with_loaders(scale, x=RaisingLoader())


def test_a_loader_that_ignores_the_requested_signature_is_named(scale: Path) -> None:
    table = registries(x=loader(open=lambda path, options: SimpleNamespace(
        describe=lambda: Description("x", signature="a"), graph=lambda: None, signatures={})))
    file = open_file(scale, LoadOptions(table.ops, "b"), table)
    with pytest.raises(PluginError, match="loader 'x' of plugin tests was asked for the signature 'b' of '.*' and d"):
        file.chosen_signature()
    table = registries(x=loader(open=lambda path, options: SimpleNamespace(
        describe=lambda: Description("x"), graph=lambda: None, signatures={})))
    with pytest.raises(PluginError, match="and describes none"):
        open_file(scale, LoadOptions(table.ops, "b"), table).chosen_signature()


def signature_behind_placeholders(
    shape: tuple[int | None, ...] | None = (None,), declared_shape: tuple[int | None, ...] | None = (None,),
) -> SimpleNamespace:
    """A source whose signature feeds a tensor that is no placeholder, behind two that are."""
    model = graph(placeholder("p", shape), placeholder("q", shape), node("both", "AddV2", "p", "q"),
                  node("y", "Neg", "both"), node("z", "Abs", "both"))
    declared = TensorMetadata(named("float32"), declared_shape)
    signature = SignatureDef("s", {"a": TensorInfo("both:0", declared)}, {"b": TensorInfo("y:0", declared)})
    return SimpleNamespace(describe=lambda: Description("x", signatures={"s": signature}, signature="s"),
                           graph=lambda: model, signatures={"s": signature}, initial_state=tuple)


def register_source(monkeypatch: pytest.MonkeyPatch, source: SimpleNamespace) -> None:
    entry = LoaderEntry("own", loader(open=lambda path, options: source), "tests")  # type: ignore[arg-type]
    monkeypatch.setitem(heald.default_host().registries.loaders, "own", entry)


def test_other_outputs_keep_the_inputs_of_the_signature(scale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register_source(monkeypatch, signature_behind_placeholders())
    model = heald.load(scale, format="own", outputs=["z"])
    assert list(model.inputs) == ["a"]
    assert model(a=np.float32([-1, 2])).tolist() == [1, 2]
    assert list(heald.load(scale, format="own", outputs=["p"]).inputs) == ["p"]


@pytest.mark.parametrize(("declared", "shape", "fault"), [
    ((None, 3), (2, 3), None), ((None, 3), (2, 4), "[2,4], the signature's is [?,3]"), ((3,), (3,), None),
    ((None, 3), (3,), "[3], the signature's is [?,3]"), (None, (2, 4), None), ((), (1,), "[1], the signature's is []"),
])
def test_a_feed_of_an_inner_tensor_has_the_declared_shape(
    scale: Path, monkeypatch: pytest.MonkeyPatch, declared: tuple[int | None, ...] | None, shape: tuple[int, ...],
    fault: str | None,
) -> None:
    source = signature_behind_placeholders(None, declared)
    register_source(monkeypatch, source)
    model = heald.load(scale, format="own")
    for arguments in ({}, {"options": heald.RunOptions(timeout=60)}):
        if fault is None:
            assert model(a=np.ones(shape, "f4"), **arguments).shape == shape
        else:
            with pytest.raises(InvalidArgument, match=re.escape(f"feed 'a' has shape {fault}")):
                model(a=np.ones(shape, "f4"), **arguments)


def test_a_ragged_feed_of_an_inner_tensor_is_a_typed_error(scale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register_source(monkeypatch, signature_behind_placeholders(None, (None, 3)))
    with pytest.raises(InvalidArgument, match="feed 'a' is no tensor of float32"):
        heald.load(scale, format="own")(a=[[1, 2, 3], [4]])


def test_explain_cuts_the_graph_at_the_inputs_of_the_signature(
    scale: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    register_source(monkeypatch, signature_behind_placeholders())
    assert main(["explain", str(scale), "--format", "own"]) == 0
    assert "not linked, since shapes are open: a float32[?]; give them: --input a:1\n" in capsys.readouterr().out
    assert main(["explain", str(scale), "--format", "own", "--input", "a:5"]) == 0
    assert "not linked" not in capsys.readouterr().out


@pytest.mark.parametrize("command", [["inspect"], ["explain"], ["ops", "--missing"], ["run"]])
def test_a_misspelt_input_in_a_loaders_graph_is_told_with_the_near_name(
    scale: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    model = graph(placeholder("number", (2,)), node("y", "Neg", "numbr"))
    register_source(monkeypatch, SimpleNamespace(describe=lambda: Description("x"), graph=lambda: model, signatures={},
                                                 initial_state=tuple))
    assert main([*command, str(scale), "--format", "own"]) == 1
    told = capsys.readouterr().err
    assert "input 'numbr' does not exist" in told
    assert "did you mean 'number'?" in told


def test_a_source_that_breaks_its_contract_is_named(scale: Path) -> None:
    source = SimpleNamespace(describe=raising(KeyError("k")), graph=lambda: "graph", initial_state=lambda: 3,
                             signatures=[])
    file = open_with_loaders(scale, x=loader(open=lambda path, options: source))
    for look, match in ((lambda: file.description, "describe of .* raised KeyError"),
                        (lambda: read_graph(file), "graph of .* returned str, expected Graph"),
                        (file.initial_state, "initial_state of .* raised TypeError"),
                        (lambda: file.signatures, "signatures of .* returned list, expected Mapping")):
        with pytest.raises(PluginError, match=f"loader 'x' of plugin tests: {match}"):
            look()
    source.describe, source.signatures = (lambda: Description("x", signature="s")), {}
    with pytest.raises(PluginError, match="describes the signature 's'"):
        open_with_loaders(scale, x=loader(open=lambda path, options: source)).chosen_signature()


@pytest.mark.parametrize("source", [None, "text", SimpleNamespace(graph=print), SimpleNamespace(describe=print)])
def test_a_loader_whose_open_returns_no_source_is_named(scale: Path, source: object) -> None:
    kind = type(source).__name__
    with pytest.raises(PluginError, match=f"loader 'x' of plugin tests: open of .* returned {kind}, expected a Source"):
        open_with_loaders(scale, x=loader(open=lambda path, options: source))


def test_a_loader_that_recognises_with_none_is_named(scale: Path) -> None:
    with pytest.raises(PluginError, match="loader 'x' of plugin tests: recognise of .* returned NoneType, expected bo"):
        open_with_loaders(scale, x=loader(recognise=lambda path, head: None))


@pytest.mark.parametrize(("signatures", "match"), [
    ({"s": "text"}, "signatures of .* returned for 's' str, expected SignatureDef"),
    ({3: SignatureDef("s", {}, {})}, "signatures of .* returned for 3 SignatureDef"),
    ({"s": SignatureDef("s", [], {})}, "signatures of .* returned for the inputs or outputs of 's' list, expected Map"),
    ({"s": SignatureDef("s", {"x": "x:0"}, {})}, "signatures of .* returned for 'x' of 's' str, expected TensorInfo"),
])
def test_a_signature_of_another_type_is_named(scale: Path, signatures: object, match: str) -> None:
    source = SimpleNamespace(describe=lambda: Description("x"), graph=lambda: None, signatures=signatures)
    with pytest.raises(PluginError, match=match):
        open_with_loaders(scale, x=loader(open=lambda path, options: source)).chosen_signature()


@pytest.mark.parametrize(("tensor", "dtype", "match"), [
    ("gone:0", "float32", "the tensor 'gone:0', whose node is not in the graph"),
    ("y:3", "float32", "the tensor 'y:3', and its node has 1 outputs"),
    ("y:0", "int32", "the tensor 'y:0', which is float32, declared as int32"),
])
def test_a_signature_that_does_not_fit_the_graph_is_found_at_load(
    scale: Path, monkeypatch: pytest.MonkeyPatch, tensor: str, dtype: str, match: str
) -> None:
    model = graph(placeholder("x", (2,)), node("y", "Neg", "x"))
    fitting = {"x": TensorInfo("x:0", TensorMetadata(named("float32"), (2,)))}
    signatures = {"s": SignatureDef("s", fitting, {"y": TensorInfo(tensor, TensorMetadata(named(dtype), (2,)))})}
    source = SimpleNamespace(describe=lambda: Description("x"), graph=lambda: model, signatures=signatures,
                             initial_state=tuple)
    entry = LoaderEntry("lying", loader(open=lambda path, options: source), "tests")  # type: ignore[arg-type]
    monkeypatch.setitem(heald.default_host().registries.loaders, "lying", entry)
    with pytest.raises(InvalidArgument, match=f"loader 'lying' of plugin tests: signature 's' of .*{match}"):
        heald.load(scale, format="lying")


FLOATS, INTS = TensorMetadata(named("float32"), (2,)), TensorMetadata(named("int32"), (2,))


@pytest.mark.parametrize(("inputs", "outputs", "signature", "match"), [
    ({"gone": FLOATS}, {}, False, "has the input 'gone', whose node is not in the graph"),
    ({"x": FLOATS}, {"gone": FLOATS}, False, "has the output 'gone', whose node is not in the graph"),
    ({"x": INTS}, {}, False, "has the input 'x', which is float32, declared as int32"),
    ({}, {"y:3": FLOATS}, False, "has the output 'y:3', and its node has 1 outputs"),
    ({"x": FLOATS}, {}, True, "has the input 'x', which the signature lacks; it has a"),
    ({"a": FLOATS}, {"y": FLOATS}, True, "has the output 'y', which the signature lacks; it has b"),
    ({"a": INTS}, {}, True, "has the input 'a', which is float32, described as int32"),
    ({"x": FLOATS}, {"y": FLOATS}, False, None), ({"a": FLOATS}, {"b": FLOATS}, True, None), ({}, {}, True, None),
])
def test_a_description_is_compared_with_the_signature_or_the_graph(
    scale: Path, monkeypatch: pytest.MonkeyPatch, inputs: dict[str, TensorMetadata],
    outputs: dict[str, TensorMetadata], signature: bool, match: str | None,
) -> None:
    declared = SignatureDef("s", {"a": TensorInfo("x:0", FLOATS)}, {"b": TensorInfo("y:0", FLOATS)})
    source = SimpleNamespace(describe=lambda: Description("x", inputs, outputs), initial_state=tuple,
                             signatures={"s": declared} if signature else {},
                             graph=lambda: graph(placeholder("x", (2,)), node("y", "Neg", "x")))
    entry = LoaderEntry("described", loader(open=lambda path, options: source), "tests")  # type: ignore[arg-type]
    monkeypatch.setitem(heald.default_host().registries.loaders, "described", entry)
    if match is None:
        assert heald.load(scale, format="described").inputs
    else:
        with pytest.warns(HealdWarning, match=f"loader 'described' of plugin tests: describe of .* {match}"):
            heald.load(scale, format="described")


def test_the_only_signature_of_a_source_is_the_default(scale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meta = TensorMetadata(named("float32"), (2,))
    signature = SignatureDef("s", {"a": TensorInfo("x:0", meta)}, {"b": TensorInfo("y:0", meta)})
    source = SimpleNamespace(describe=lambda: Description("x"), initial_state=tuple, signatures={"s": signature},
                             graph=lambda: graph(placeholder("x", (2,)), node("y", "Neg", "x")))
    entry = LoaderEntry("single", loader(open=lambda path, options: source), "tests")  # type: ignore[arg-type]
    monkeypatch.setitem(heald.default_host().registries.loaders, "single", entry)
    model = heald.load(scale, format="single")
    assert (list(model.inputs), list(model.outputs)) == (["a"], ["b"])
    assert model(a=np.float32([1, 2])).tolist() == [-1, -2]


def test_an_object_that_is_no_loader_is_refused() -> None:
    class Unmade:
        pass

    with pytest.raises(PluginError, match=r"loader 'x' is the class Unmade, expected an instance; register Unmade\(\)"):
        registries(x=Unmade)
    with pytest.raises(PluginError, match="SimpleNamespace without the method open"):
        registries(x=SimpleNamespace(recognise=print))
    with pytest.raises(PluginError, match="loader 'graphdef' is heald's own already"):
        registries(graphdef=loader())


@pytest.mark.parametrize(("target", "match"), [
    ("no_such_module:LOADER", "import of .* raised ModuleNotFoundError"), ("json:nothing", "without the method"),
])
def test_a_loader_that_cannot_be_imported_is_named(scale: Path, target: str, match: str) -> None:
    with pytest.raises(PluginError, match=f"loader 'x'.*{match}"):
        open_with_loaders(scale, x=target)


def test_a_loader_sees_the_first_four_kilobytes_of_a_file_and_none_of_a_folder(tmp_path: Path) -> None:
    heads = []
    file = tmp_path / "long"
    file.write_bytes(bytes(range(256)) * 32)
    for path in (file, tmp_path):
        open_with_loaders(path, x=loader(lambda path, head: heads.append((path, head)) or True))
    assert heads == [(file, bytes(range(256)) * 16), (tmp_path, b"")]


def test_a_host_program_is_loaded_as_one(scale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = ProgramFunction("main", ("a",), ("i32", "i32"), (Call("tfrt.add.i32", (0, 0), (1,)),), (1,))
    source = SimpleNamespace(program=lambda: ProgramDef({"main": add}), describe=lambda: Description("steps"))
    entry = LoaderEntry("steps", loader(open=lambda path, options: source), "tests")  # type: ignore[arg-type]
    monkeypatch.setitem(heald.default_host().registries.loaders, "steps", entry)
    (result,) = heald.HostProgram.load(scale).run("main", 21)
    assert result.get() == 42
    with pytest.raises(Unimplemented, match="is a host program, not a graph; load it with heald.HostProgram.load"):
        heald.load(scale)
    with pytest.raises(InvalidArgument, match="is a graph, not a host program; load it with heald.load"):
        heald.HostProgram.load(FROZEN, format="graphdef")


def test_a_module_of_another_distribution_is_forwarded_or_says_how_to_install_it(monkeypatch) -> None:
    import heald_saved_model

    assert heald.saved_model is heald_saved_model
    monkeypatch.delattr(heald, "saved_model")  # names that were imported stay
    monkeypatch.setitem(sys.modules, "heald_saved_model", None)
    with pytest.raises(NotFound, match="heald.saved_model is part of heald-saved-model, which is not") as caught:
        heald.saved_model  # noqa: B018
    assert caught.value.hint == install_hint("heald-saved-model", upgrade=True)


def test_commands_choose_by_the_files_loader(
    scale: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    heald.load(scale, config=WITH_SCALE)  # imports the plugin's file under its name
    table = heald.default_host().registries.loaders
    monkeypatch.setitem(table, "scale", LoaderEntry("scale", "plugin_of_formats:LOADER", "formats"))
    assert main(["inspect", str(scale), "--json"]) == 0
    description = json.loads(capsys.readouterr().out)
    assert (description["format"], description["signatures"]["doubled"]) == ("scale", "() -> (v: float32[])")
    assert [row["name"] for row in description["inputs"]] == ["x"]
    assert main(["run", str(scale), "--input", "x=[2, 3]", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["y"]["values"] == [6, 9]
    assert main(["explain", str(scale), "--signature", "doubled", "--json"]) == 0
    assert {row["node"] for row in json.loads(capsys.readouterr().out)} == {"v", "read", "twice", "assign", "v2"}
    assert main(["ops", "--missing", str(scale), "--json"]) == 0
    assert main(["run", str(scale), "--format", "graphdef", "--input", "x=1"]) == 1
    monkeypatch.setitem(table, "other", LoaderEntry("other", loader(), "tests"))  # type: ignore[arg-type]
    assert main(["inspect", str(scale)]) == 1
    assert "several loaders recognise" in capsys.readouterr().err
