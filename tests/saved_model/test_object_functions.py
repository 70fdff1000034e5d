"""SavedModels without signatures, with one of another name, or with several; and graphs with the only tags.

`functions` is a module that TensorFlow saved without signatures. `test_saved_models` compares its answers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from heald.cli import main
from heald.errors import HealdError, Internal, InvalidArgument, NotFound, PluginError, Unimplemented
from heald.graphs.protobuf.descriptor_pool import message_class

DATA = Path(__file__).parents[1] / "data" / "saved_models"
FUNCTIONS, CONTROL_FLOW, TF1 = (DATA / name / "model" for name in ("functions", "control_flow", "tf1"))
X = np.array([[1, 2]], "f4")


def edited(folder: Path, source: Path, edit: Callable[[Any], None]) -> Path:
    """Copy a SavedModel, with an edited first graph."""
    shutil.copytree(source, folder)
    file = folder / "saved_model.pb"
    message: Any = message_class("SavedModel").FromString(file.read_bytes())
    edit(message.meta_graphs[0])
    file.write_bytes(message.SerializeToString())
    return folder


def renamed(*names: str) -> Callable[[Any], None]:
    """Return an edit that gives the default signature these names."""
    def edit(graph: Any) -> None:
        for name in names:
            graph.signature_def[name].CopyFrom(graph.signature_def["serving_default"])
        for name in [name for name in graph.signature_def if name not in names]:
            del graph.signature_def[name]

    return edit


def test_functions_are_listed_and_the_call_is_the_default():
    model = heald.load(FUNCTIONS)
    assert {name: str(signature) for name, signature in model.signatures.items()} == {
        "__call__": "(x: float32[?,2]) -> (output_0: float32[?,2])",
        "add": "(by: int32[]) -> (output_0: int32[], output_1: float32[2])",
        "index": "(words: string[?]) -> (mutable: int64<unknown rank>, vocabulary: int64[?])",
        "look": "(words: string[?]) -> (output_0: int32[?])",
        "nothing": "() -> (output_0: float32[2])",
        "pair": "(parts/a: float32[?], parts/b: float32[?], scales/0: float32[], scales/1: float32[]) -> "
                "(all/0: float32[?], all/1/0: float32[?], all/1/1: float32[], sum: float32[?])",
        "layer.call": "(x: float32[?,2]) -> (output_0: float32[?,2])",
    }
    np.testing.assert_array_equal(model(X), heald.load(FUNCTIONS, signature="__call__")(X))
    np.testing.assert_array_equal(heald.load(FUNCTIONS, signature="__call__.trace_0")(X), 2 * model(X))


def test_functions_share_the_state_of_the_model():
    model = heald.load(FUNCTIONS)
    add = model.signatures["add"]
    assert [int(add(2)["output_0"]) for _ in range(3)] == [2, 4, 6]


def test_a_missing_function_is_told_with_the_names_of_all():
    with pytest.raises(NotFound, match="no signature 'layer.cal'") as caught:
        heald.load(FUNCTIONS, signature="layer.cal")
    assert caught.value.hint == ("it has __call__, __call__.trace_0, add, index, look, nothing, pair, layer.call")


def test_a_function_beside_declared_signatures_is_had_by_its_name(tmp_path):
    def declare(graph: Any) -> None:
        const = next(node for node in graph.graph_def.node if node.op == "Const" and node.attr["dtype"].type == 1)
        output = graph.signature_def["serving_default"].outputs["y"]
        output.name, output.dtype = f"{const.name}:0", 1

    folder = edited(tmp_path / "m", FUNCTIONS, declare)
    assert list(heald.load(folder).signatures) == ["serving_default"]
    model = heald.load(folder, signature="layer.call")
    assert list(model.signatures) == ["serving_default", "layer.call"]
    np.testing.assert_array_equal(model(X), heald.load(FUNCTIONS)(X))
    assert model.signatures["serving_default"]().shape == (2,)


def test_the_only_signature_is_taken(tmp_path):
    folder = edited(tmp_path / "m", TF1, renamed("classify"))
    np.testing.assert_array_equal(heald.load(folder)(X[:, :1]), heald.load(TF1)(X[:, :1]))


def test_several_signatures_without_a_default_are_an_error_of_load_and_a_list_of_inspect(tmp_path, capsys):
    folder = edited(tmp_path / "m", TF1, renamed("predict", "classify"))
    with pytest.raises(NotFound, match="2 signatures, and none is the default: classify, predict") as caught:
        heald.load(folder)
    assert caught.value.hint == "choose one: signature='classify'"
    assert heald.load(folder, signature="predict").outputs
    assert main(["inspect", str(folder), "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["signatures"]) == ["classify", "predict"]


@pytest.mark.parametrize("command", [["inspect"], ["ops", "--missing"], ["explain"]])
def test_commands_read_a_model_without_signatures(command, capsys):
    assert main([*command, str(FUNCTIONS)]) == 0, capsys.readouterr().err


def test_the_tags_of_the_only_graph_and_of_the_graph_without_tags_are_taken(tmp_path):
    def set_tags(graph: Any, *tags: str) -> None:
        del graph.meta_info_def.tags[:]
        graph.meta_info_def.tags.extend(tags)

    expected = heald.load(TF1)(X[:, :1])
    for number, tags in enumerate((("train",), (), ("gpu", "serve"))):
        folder = edited(tmp_path / str(number), TF1, lambda graph, tags=tags: set_tags(graph, *tags))
        np.testing.assert_array_equal(heald.load(folder)(X[:, :1]), expected)
    with pytest.raises(NotFound, match="no graph with the tags {serve}"):
        heald.load(folder, tags=["serve"])


def bind(graph: Any, number: int) -> None:
    """Bind all functions to another object."""
    for concrete in graph.object_graph_def.concrete_functions.values():
        if concrete.bound_inputs:
            concrete.bound_inputs[0] = number


EDITS: dict[str, Callable[[Any], None]] = {
    "no library": lambda graph: graph.graph_def.ClearField("library"),
    "object out of range": lambda graph: graph.object_graph_def.nodes[0].children[0].__setattr__("node_id", 10_000),
    "circle of objects": lambda graph: graph.object_graph_def.nodes[1].children[0].__setattr__("node_id", 0),
    "captures out of range": lambda graph: bind(graph, 999),
    "captures of the root": lambda graph: bind(graph, 0),
    "no captures": lambda graph: [concrete.ClearField("bound_inputs") for concrete in
                                  graph.object_graph_def.concrete_functions.values()],
    "no signature": lambda graph: [concrete.ClearField("canonicalized_input_signature") for concrete in
                                   graph.object_graph_def.concrete_functions.values()],
    "no outputs": lambda graph: [concrete.ClearField("output_signature") for concrete in
                                 graph.object_graph_def.concrete_functions.values()],
    "no objects": lambda graph: graph.ClearField("object_graph_def"),
    "wrong variable": lambda graph: [node.variable.__setattr__("dtype", 7) for node in graph.object_graph_def.nodes
                                     if node.WhichOneof("kind") == "variable"],
}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("signature", [None, "__call__", "index", "add"])
def test_a_malformed_object_graph_is_a_typed_error(tmp_path, name, signature):
    folder = edited(tmp_path / "m", FUNCTIONS, EDITS[name])
    try:
        model = heald.load(folder, signature=signature)
        model({key: np.zeros([size or 1 for size in meta.shape or ()], meta.dtype.name.replace("string", "S1"))
               for key, meta in model.inputs.items()})
    except HealdError as error:
        if isinstance(error, Internal | PluginError):
            raise


def test_an_argument_of_several_tensors_is_told(tmp_path):
    def make_ragged(graph: Any) -> None:
        for name, concrete in graph.object_graph_def.concrete_functions.items():
            if "look" in name:
                value = concrete.canonicalized_input_signature.tuple_value.values[0].tuple_value.values[0]
                value.type_spec_value.type_spec_class_name = "RaggedTensorSpec"

    folder = edited(tmp_path / "m", FUNCTIONS, make_ragged)
    assert "look" not in heald.load(folder).signatures
    with pytest.raises(Unimplemented, match="'words' is a RaggedTensorSpec"):
        heald.load(folder, signature="look")


def test_a_graphdef_has_no_functions_to_choose():
    with pytest.raises(InvalidArgument, match="no signatures"):
        heald.load(DATA.parent / "graphs" / "keras_tiny_cnn.pb", signature="__call__")
