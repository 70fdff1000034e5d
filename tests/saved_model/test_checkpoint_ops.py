"""Ops that save and restore: refused by default, with TensorFlow's results and errors where [files] permits them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from heald.api import Graph, Input, Node, ShapeAttr, constant, dtypes
from heald.errors import DataLoss, HealdError, InvalidArgument, NotFound, PermissionDenied, Unimplemented
from heald_saved_model.checkpoint_writer import write_checkpoint


def strings(*values: str) -> Any:
    return np.array([*(value.encode() for value in values), None], object)[:-1]


def save_graph(**tensors: np.ndarray | tuple[str, np.ndarray]) -> Graph:
    """A graph that saves these arrays, each whole or as a slice, under the fed prefix."""
    parts = {name: tensor if isinstance(tensor, tuple) else ("", tensor) for name, tensor in tensors.items()}
    values = [constant(f"value/{name}", array) for name, (_, array) in parts.items()]
    types = [value.attrs["dtype"] for value in values]
    ends = [constant("names", strings(*parts)), constant("specs", strings(*(spec for spec, _ in parts.values())))]
    inputs = [Input(name) for name in ("prefix", "names", "specs", *(value.name for value in values))]
    return Graph([prefix(), *ends, *values, Node("save", "SaveV2", inputs, attrs={"dtypes": types})])


def restore_graph(*requests: tuple[str, str, Any]) -> Graph:
    ends = [constant("names", strings(*(name for name, _, _ in requests))),
            constant("specs", strings(*(spec for _, spec, _ in requests)))]
    inputs = [Input(name) for name in ("prefix", "names", "specs")]
    add = Node("sum", "AddV2", [Input("one"), Input("one")], attrs={"T": dtypes.int32})
    return Graph([prefix(), *ends, constant("one", np.int32(1)), add,
                  Node("restore", "RestoreV2", inputs, attrs={"dtypes": [dtype for _, _, dtype in requests]})])


def prefix() -> Node:
    return Node("prefix", "Placeholder", attrs={"dtype": dtypes.string, "shape": ShapeAttr(())})


def file_permissions(folder: Path) -> dict[str, Any]:
    return {"files": {"read": [str(folder)], "write": [str(folder)]}}


def run(graph: Graph, path: object, fetches: Any = (), config: Any = None, targets: Any = ()) -> Any:
    with heald.Session(graph, config) as session:
        return session.run(list(fetches), {"prefix:0": str(path).encode()}, targets=targets)


def test_nodes_that_open_files_are_listed_and_refused_by_default(tmp_path):
    for graph, kind in ((save_graph(x=np.ones(2)), "SaveV2"), (restore_graph(("x", "", dtypes.float64)), "RestoreV2")):
        target = [node.name for node in graph if node.op == kind]
        with pytest.raises(PermissionDenied, match=rf"{target[0]} \({kind}\).*allow_ops"):
            run(graph, tmp_path / "m", targets=target)
    assert not list(tmp_path.iterdir())


def test_a_step_that_needs_no_file_runs_by_default(tmp_path):
    with heald.Session(restore_graph(("x", "", dtypes.float32))) as session:
        assert session.run("sum:0") == 2


def test_an_allowed_op_runs_and_others_stay_refused(tmp_path):
    config = {"files": {"allow_ops": ["SaveV2"]}}
    run(save_graph(x=np.ones(2)), tmp_path / "m", config=config, targets=["save"])
    with pytest.raises(PermissionDenied, match="RestoreV2"):
        run(restore_graph(("x", "", dtypes.float64)), tmp_path / "m", ["restore:0"], config)


def test_a_prefix_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "in").mkdir()
    config = file_permissions(tmp_path / "in")
    (tmp_path / "in" / "link").symlink_to(tmp_path)
    write_checkpoint(tmp_path / "m", {"x": np.float32(1)})
    for path in ("m", "in/../m", "in/link/m"):
        with pytest.raises(PermissionDenied, match=r"may not write .*\[files\] write"):
            run(save_graph(x=np.ones(2)), tmp_path / path, config=config, targets=["save"])
        with pytest.raises(PermissionDenied, match=r"may not read .*\[files\] read"):
            run(restore_graph(("x", "", dtypes.float32)), tmp_path / path, ["restore:0"], config)


def test_a_shard_that_is_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "in").mkdir()
    write_checkpoint(tmp_path / "in" / "m", {"x": np.float32(1)})
    shard = tmp_path / "in" / "m.data-00000-of-00001"
    shard.rename(tmp_path / "secret")
    shard.symlink_to(tmp_path / "secret")
    with pytest.raises(PermissionDenied):
        run(restore_graph(("x", "", dtypes.float32)), tmp_path / "in" / "m", ["restore:0"],
            file_permissions(tmp_path / "in"))


def test_the_check_covers_branches_and_functions(tmp_path):
    """A branch that opens files refuses the step, whichever branch the run would take."""
    from heald.graphs.graph import graphdef

    text = """
      node { name: "prefix" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } }
             attr { key: "shape" value { shape {} } } }
      node { name: "call" op: "StatefulPartitionedCall" input: "prefix"
             attr { key: "Tin" value { list { type: DT_STRING } } } attr { key: "Tout" value { list { } } }
             attr { key: "f" value { func { name: "f" } } } }
      library { function { signature { name: "f" input_arg { name: "p" type: DT_STRING } is_stateful: true }
        node_def { name: "parts" op: "ExpandDims" input: "p" input: "zero:output:0"
                   attr { key: "T" value { type: DT_STRING } } attr { key: "Tdim" value { type: DT_INT32 } } }
        node_def { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
                   attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
        node_def { name: "merge" op: "MergeV2Checkpoints" input: "parts:output:0" input: "p" }
        control_ret { key: "merge" value: "merge" } } }"""
    with pytest.raises(PermissionDenied, match=r"merge \(MergeV2Checkpoints\)"):
        run(graphdef.loads(text, text=True), tmp_path / "m", targets=["call"])


def test_slices_are_saved_and_restored(tmp_path):
    x = np.arange(12, dtype="f4").reshape(4, 3)
    config = file_permissions(tmp_path)
    run(save_graph(v=("8 3 0,4:-", x)), tmp_path / "m", config=config, targets=["save"])
    [part] = run(restore_graph(("v", "8 3 1,2:0,2", dtypes.float32)), tmp_path / "m", ["restore:0"], config)
    assert part.tolist() == x[1:3, :2].tolist()
    with pytest.raises(InvalidArgument, match="Does not have sufficient slices for partitioned tensor v"):
        run(restore_graph(("v", "", dtypes.float32)), tmp_path / "m", ["restore:0"], config)


@pytest.mark.parametrize(("tensor_request", "error", "text"), [
    (("nope", "", dtypes.int32), NotFound, "Key nope not found in checkpoint"),
    (("x", "", dtypes.float64), InvalidArgument, "expected dtype float64 does not equal original dtype float32"),
    (("x", "4 4 -:-", dtypes.float32), InvalidArgument, "does not match the shape stored in checkpoint"),
    (("x", "zz", dtypes.float32), InvalidArgument, "Need least two elements"),
])
def test_a_request_that_does_not_fit_has_tensorflows_error(tmp_path, tensor_request, error, text):
    config = file_permissions(tmp_path)
    write_checkpoint(tmp_path / "m", {"x": np.zeros((4, 3), "f4")})
    with pytest.raises(error, match=text):
        run(restore_graph(tensor_request), tmp_path / "m", ["restore:0"], config)


def test_missing_and_corrupt_checkpoints_are_typed_errors(tmp_path):
    config, graph = file_permissions(tmp_path), restore_graph(("x", "", dtypes.float32))
    with pytest.raises(NotFound, match="Failed to find any matching files for"):
        run(graph, tmp_path / "none", ["restore:0"], config)
    (tmp_path / "bad.index").write_bytes(b"z" * 100)
    with pytest.raises(DataLoss):
        run(graph, tmp_path / "bad", ["restore:0"], config)
    write_checkpoint(tmp_path / "m", {"x": np.float32([1, 2])})
    shard = tmp_path / "m.data-00000-of-00001"
    shard.write_bytes(bytes(8))
    with pytest.raises(DataLoss, match="checksum"):
        run(graph, tmp_path / "m", ["restore:0"], config)
    shard.unlink()
    with pytest.raises(NotFound):
        run(graph, tmp_path / "m", ["restore:0"], config)


def test_a_slice_of_another_shape_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="does not match the shape of the tensor"):
        run(save_graph(x=("4 3 0,2:-", np.ones((4, 3)))), tmp_path / "m", config=file_permissions(tmp_path),
            targets=["save"])


def test_restored_arrays_outlive_the_file(tmp_path):
    write_checkpoint(tmp_path / "m", {"x": np.ones(1 << 18)})
    config = file_permissions(tmp_path)
    [x] = run(restore_graph(("x", "", dtypes.float64)), tmp_path / "m", ["restore:0"], config)
    (tmp_path / "m.data-00000-of-00001").write_bytes(b"")
    assert x.sum() == 1 << 18
    x[0] = 2  # the array belongs to the caller


def test_merging_deletes_empty_folders_of_parts(tmp_path):
    for part in "ab":
        write_checkpoint(tmp_path / f"temp_{part}" / "m", {part: np.int32(1)})
    parts = constant("parts", strings(*(str(tmp_path / f"temp_{part}" / "m") for part in "ab")))
    merge = Node("merge", "MergeV2Checkpoints", [Input("parts"), Input("prefix")])
    run(Graph([prefix(), parts, merge]), tmp_path / "all", config=file_permissions(tmp_path), targets=["merge"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "all.data-00000-of-00002", "all.data-00001-of-00002", "all.index"]
    with pytest.raises(HealdError, match="did not exist"):
        run(Graph([prefix(), parts, merge]), tmp_path / "all", config=file_permissions(tmp_path), targets=["merge"])


FLOATS = {"T": (dtypes.float32,)}


@pytest.mark.parametrize(("node", "remedy"), [
    (Node("old", "Save", [Input("prefix"), Input("names"), Input("x")], attrs=FLOATS), "use SaveV2"),
    (Node("old", "SaveSlices", [Input("prefix"), Input("names"), Input("names"), Input("x")], attrs=FLOATS),
     "use SaveV2"),
    (Node("old", "Restore", [Input("prefix"), Input("name")], attrs={"dt": dtypes.float32}),
     "use RestoreV2.*SaveV2 converts it"),
    (Node("old", "RestoreSlice", [Input("prefix"), Input("name"), Input("name")], attrs={"dt": dtypes.float32}),
     "use RestoreV2.*SaveV2 converts it"),
], ids=lambda param: param.op if isinstance(param, Node) else "")
def test_an_op_on_checkpoints_of_one_file_names_the_op_to_use(tmp_path, node, remedy):
    """TensorFlow's Restore does not read checkpoints of its second format either."""
    write_checkpoint(tmp_path / "m", {"x": np.float32(1)})
    nodes = [prefix(), constant("names", strings("x")), constant("name", np.array(b"x", object)),
             constant("x", np.ones(2, np.float32)), node]
    with pytest.raises(Unimplemented, match=rf"{node.op}.*{remedy}") as caught:
        run(Graph(nodes), tmp_path / "m", config=file_permissions(tmp_path), targets=["old"])
    assert caught.value.node == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.data-00000-of-00001", "m.index"]
