"""A reader of SavedModels: the graph in a folder, its signatures, and the places of its variables' values.

A SavedModel of TensorFlow 2 has a graph of objects. A function lists its bound objects in the order of its last inputs.
The checkpoint has a graph of objects too: its edges have the same names, and its objects have the keys of their values.
The restore op's assignments are not enough: Keras 3 saves each variable twice. A SavedModel of TensorFlow 1 has no
objects: its restore op tells which key is assigned to which variable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heald.api import DType, Graph, Node, SignatureDef, TensorInfo, TensorMetadata, TensorValue, dtypes, wire
from heald.errors import DataLoss, FailedPrecondition, HealdError, InvalidArgument, NotFound
from heald.graphs.graph import Func, ancestors, graphdef, graphdef_text, parse_input
from heald.graphs.protobuf import parse_message
from heald.runtime.support import file_kinds, input_file, mapped_file
from heald.runtime.values import Buffer, read_shape

from .checkpoint import Checkpoint, file_contents, shard_name
from .file_names import GRAPH_FILES
from .freeze import ASSIGN_OPS
from .object_functions import function_names, with_function_signatures

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

SERVE = frozenset({"serve"})
_META_GRAPH = 2  # field of SavedModel
_META_INFO, _GRAPH = 1, 2  # fields of MetaGraphDef
_TAG = 4  # field of MetaInfoDef
_OBJECT_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"  # the key of the checkpoint's graph of objects
_VALUE = "VARIABLE_VALUE"
_TABLE = "table"  # a table's attribute in that graph; its keys and values are two tensors
_INIT = "__saved_model_init_op"  # TensorFlow 2: the signature of the init op
_INIT_COLLECTIONS = ("saved_model_main_op", "legacy_init_op")  # TensorFlow 1: its collections
_ASSETS = "saved_model_assets"  # TensorFlow 1: the collection of assets
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})


class SavedModel:
    """One graph of a SavedModel: `graph`, verified, and `signatures` by name.

    Files outside the folder are never opened. Variables are read from the checkpoint on demand.
    """

    def __init__(
        self, folder: Path, graph: Graph, about: Any, raw: memoryview, mmap: bool = True, *, weights: bool = True,
        checkpoint_prefix: Path | None = None,
    ) -> None:
        """`about` is the MetaGraphDef without its graph, `raw` the SavedModel in its binary form, with all graphs.
        `mmap=True` maps large files of variables. `weights=False` does without missing files of variables and assets.
        `checkpoint_prefix` is the common part of the paths of the checkpoint's files.
        """
        self.folder = folder
        self.raw = raw
        self._mmap = mmap
        self._weights = weights
        self.graph = graph
        self._about = about
        self._prefix = folder / "variables" / "variables" if checkpoint_prefix is None else checkpoint_prefix
        self.signatures = {name: _signature(about.signature_def[name]) for name in sorted(about.signature_def)
                           if not name.startswith("__saved_model_")}
        self.function_errors: dict[str, HealdError] = {}

    def signature(self, name: str) -> SignatureDef:
        """Raises NotFound with the names of all signatures and functions."""
        if name not in self.signatures:
            names = ", ".join(dict.fromkeys((*self.signatures, *self.functions)))
            raise NotFound(f"the SavedModel has no signature '{name}'", hint=f"it has {names or 'none'}")
        return self.signatures[name]

    @cached_property
    def functions(self) -> dict[str, Any]:
        """The functions of the object graph, which may become signatures, by name."""
        return function_names(self._about.object_graph_def)

    def add_function_signatures(self, names: Collection[str]) -> None:
        """Add these functions to the graph and to the signatures.

        `function_errors` has the errors of functions that cannot be called. The call comes before every use of
        variables and tables.
        """
        bound = {number: node for kind in ("variable", "resource", "asset")
                 for node, number in self._captured_objects(kind)}
        functions = {name: self.functions[name] for name in names}
        self.graph, added, self.function_errors = with_function_signatures(
            self.graph, self._about.object_graph_def, functions, bound)
        self.signatures |= added

    def variables(self, nodes: Collection[str]) -> SavedTensors:
        """Return the values of the variables among these nodes that have a value in the checkpoint.

        Raises NotFound, DataLoss for an unreadable checkpoint.
        """
        if self.lacks_variables:
            return SavedTensors(self, {})
        return SavedTensors(self, {node: key for node, key in self.variable_keys.items() if node in nodes})

    def tables(self, nodes: Collection[str]) -> dict[str, SavedTensors]:
        """Return the "keys" and "values" of the tables among these nodes that have content in the checkpoint.

        Raises NotFound, DataLoss for an unreadable checkpoint.
        """
        if self.lacks_variables:
            return {}
        bound = [(node, number) for node, number in self._captured_objects("resource") if node in nodes]
        keys = self._keys_of(_TABLE) if bound else {}
        return {node: SavedTensors(self, {side: (f"{keys[number]}-{side}", "") for side in ("keys", "values")})
                for node, number in bound if number in keys}

    @property
    def init_op(self) -> str | None:
        """The node that TensorFlow runs once after it restored the variables, or None.

        Raises FailedPrecondition for several, DataLoss for one that the graph lacks.
        """
        signatures, collections = self._about.signature_def, self._about.collection_def
        named = [[info.name for info in signatures[_INIT].outputs.values()]] if _INIT in signatures else []
        named += [[*collections[key].node_list.value] for key in _INIT_COLLECTIONS if key in collections]
        names = next(filter(None, named), [])
        if len(names) > 1:
            raise FailedPrecondition(f"the SavedModel has {len(names)} init ops ({', '.join(names)}), expected one",
                                     hint="group them: tf.group(...)")
        node = parse_input(names[0]).node if names else None
        if node is not None and node not in self.graph:
            raise DataLoss(f"the SavedModel's init op '{node}' is not in its graph", node=node)
        return node

    def assets(self) -> dict[str, str]:
        """Return the paths of asset files by the nodes that stand for them.

        Raises InvalidArgument for files outside the folder, DataLoss for an asset index without a file.
        """
        files = self._about.asset_file_def or self._assets_of_tensorflow_1()
        named = {file.tensor_info.name.partition(":")[0]: file.filename for file in files}
        for node, number in self._captured_objects("asset"):
            index = self._about.object_graph_def.nodes[number].asset.asset_file_def_index
            if not 0 <= index < len(files):
                raise DataLoss(f"the SavedModel has {len(files)} assets, not one of index {index}", node=node)
            named[node] = files[index].filename
        return {node: str(path_inside(self.folder, "assets", name)) for node, name in named.items()}

    def _assets_of_tensorflow_1(self) -> list[Any]:
        collections = self._about.collection_def
        packed_files = collections[_ASSETS].any_list.value if _ASSETS in collections else ()
        return [parse_message("AssetFileDef", packed.value) for packed in packed_files]

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The folder's checkpoint. Raises NotFound without one, DataLoss for a damaged one."""
        index = self._contents("index")
        with input_file.reading(self._index):
            return Checkpoint(index, self._shard, str(self._prefix))

    @property
    def lacks_variables(self) -> bool:
        """True when the checkpoint's files are missing, and the caller does without."""
        data = f"{escape(self._prefix.name)}.data-*"
        return not self._weights and not (self.has_checkpoint and any(self._prefix.parent.glob(data)))

    def lacks_assets(self, paths: Iterable[str]) -> bool:
        """True when one of these files is missing, and the caller does without."""
        return not self._weights and not all(Path(path).exists() for path in paths)

    @property
    def has_checkpoint(self) -> bool:
        return self._index.exists()

    @property
    def is_without_variables(self) -> bool:
        return not any(node.op in ASSIGN_OPS for node in self.graph)

    def collection(self, name: str) -> list[str]:
        """Return the names of nodes in a collection of TensorFlow 1."""
        collections = self._about.collection_def
        return [*collections[name].node_list.value] if name in collections else []

    @property
    def _index(self) -> Path:
        return self._prefix.with_name(f"{self._prefix.name}.index")

    def _shard(self, number: int, count: int) -> Buffer:
        return self._contents(shard_name(number, count))

    def _contents(self, suffix: str) -> Buffer:
        parts = self._prefix.relative_to(self.folder).parts
        file = path_inside(self.folder, *parts[:-1], f"{parts[-1]}.{suffix}")
        return file_contents(file, mapped=self._mmap)

    @cached_property
    def variable_keys(self) -> dict[str, tuple[str, str]]:
        """The variables by node: the key of a tensor in the checkpoint, and the variable's slice of that tensor."""
        if not self._about.object_graph_def.nodes:
            restore = self._about.saver_def.restore_op_name
            return restored_variables(self.graph, restore) if restore else self._variables_by_name()
        bound = list(self._captured_objects("variable"))
        keys = self._keys_of(_VALUE) if bound else {}
        return {node: (keys[number], "") for node, number in bound if number in keys}

    def _variables_by_name(self) -> dict[str, tuple[str, str]]:
        """Return the variables that have the name of a tensor in the checkpoint, as in modules of TF-Hub."""
        holders = [node.name for node in self.graph if node.op in ASSIGN_OPS] if self.has_checkpoint else []
        return {name: (name, "") for name in holders if name in self.checkpoint}

    def _keys_of(self, attribute: str) -> dict[int, str]:
        """Return the checkpoint's keys of the objects with this attribute."""
        saved = self.checkpoint.read(_OBJECT_GRAPH_KEY).reshape(-1)
        if saved.dtype != object:  # bytes(n) of a number would be n zeros
            raise DataLoss(f"tensor '{_OBJECT_GRAPH_KEY}' of the checkpoint is {saved.dtype}, expected string")
        checkpoint_nodes: Any = parse_message("TrackableObjectGraph", saved[0] if len(saved) else b"")
        return _keys_of_objects(self._about.object_graph_def.nodes, checkpoint_nodes.nodes, attribute)

    def _captured_objects(self, kind: str) -> Iterator[tuple[str, int]]:
        """Yield the nodes that function calls capture, each with the number of its object, for objects of this kind."""
        objects = self._about.object_graph_def
        for node in self.graph:
            function = node.attrs.get("f") if node.op in _CALLS else None
            if not isinstance(function, Func) or function.name not in objects.concrete_functions:
                continue
            numbers = objects.concrete_functions[function.name].bound_inputs
            if len(numbers) > len(node.inputs) or any(not 0 <= n < len(objects.nodes) for n in numbers):
                raise DataLoss(f"function '{function.name}' is bound to objects that are not there", node=node.name)
            for source, number in zip(node.inputs[len(node.inputs) - len(numbers) :], numbers, strict=True):
                if objects.nodes[number].WhichOneof("kind") == kind:
                    yield source.node, number


class SavedTensors(Mapping[str, "Array"]):
    """Tensors of a checkpoint under other names, read on lookup. Raises the errors of `Checkpoint`."""

    def __init__(self, saved: SavedModel, keys: Mapping[str, tuple[str, str]]) -> None:
        """`keys` has, by name, the tensor in the checkpoint and the slice of that tensor."""
        self._saved, self._keys = saved, keys

    def __getitem__(self, name: str) -> Array:
        return self._saved.checkpoint.read(*self._keys[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def dtype(self, name: str) -> DType:
        """Return a tensor's type from the index; the tensor itself is not read."""
        return self._saved.checkpoint.entry(self._keys[name][0]).dtype


def read(folder: Path, tags: Collection[str] | None = None, *, mmap: bool = True, weights: bool = True) -> SavedModel:
    """Read a SavedModel's graph with exactly these tags. Without tags it is the graph for serving, the only graph, or
    the graph that has none. `mmap=False` reads all files instead of mapping large ones; `weights` as in SavedModel.

    Raises NotFound for a missing file or graph, DataLoss for a damaged file, InvalidArgument for malformed graphs and
    for files outside the folder.
    """
    file = next((path for name in GRAPH_FILES if (path := folder / name).exists()), None)
    if file is None:
        raise NotFound(f"'{folder}' is no SavedModel: it has no {GRAPH_FILES[0]}")
    with input_file.reading(path_inside(folder, file.name)):
        input_file.check_file(file)
        file_kinds.check_download(mapped_file.head(file, file_kinds.HEAD_BYTES), "a SavedModel")
        if file.suffix == ".pbtxt":
            view = memoryview(graphdef_text.parse(mapped_file.read(file), str(file), "SavedModel"))
        else:
            view = mapped_file.contents(file, mapped=mmap)
        graph, about = _meta_graph(view, None if tags is None else frozenset(tags))
    return SavedModel(folder, graph, about, view, mmap, weights=weights)


def path_inside(folder: Path, *parts: str) -> Path:
    """Return a path in the folder. Raises InvalidArgument for a name or a link that leads out of the folder."""
    file = folder.joinpath(*parts)
    try:
        inside = file.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # links in a circle, zeros in names
        inside = False
    if not inside:
        raise InvalidArgument(f"'{'/'.join(parts)}' leads out of the SavedModel '{folder}', and is not opened")
    return file


def _meta_graph(view: memoryview, tags: frozenset[str] | None) -> tuple[Graph, Any]:
    ranges = {}
    for number, kind, at, end in wire.fields(view, 0, len(view)):
        if number == _META_GRAPH:
            wire.expect(kind, wire.BYTES, at, "a graph of a SavedModel")
            ranges[_tags(view, at, end)] = at, end
    if tags is None:
        tags = next(iter(ranges)) if len(ranges) == 1 else frozenset() if SERVE not in ranges else SERVE
    if tags not in ranges:
        sets = " or ".join(f"{{{', '.join(sorted(graph_tags))}}}" for graph_tags in ranges)
        raise NotFound(f"the SavedModel has no graph with the tags {{{', '.join(sorted(tags))}}}",
                       hint=f"it has {sets or 'no graph'}")
    return parse_meta_graph(view, *ranges[tags])


def parse_meta_graph(view: memoryview, start: int, stop: int) -> tuple[Graph, Any]:
    """Read a MetaGraphDef: its graph, and the message without it."""
    graphs, other_fields, begin = [], [], start
    for number, kind, at, end in wire.fields(view, start, stop):
        if number == _GRAPH:
            wire.expect(kind, wire.BYTES, at, "the graph of a MetaGraphDef")
            graphs.append(view[at:end])
        elif number != _META_INFO:
            other_fields.append(view[begin:end])
        begin = end
    graph = graphdef.loads(graphs[0] if len(graphs) == 1 else b"".join(graphs))
    return graph, parse_message("MetaGraphDef", b"".join(other_fields))


def _tags(view: memoryview, start: int, stop: int) -> frozenset[str]:
    """Read the tags of a MetaGraphDef, and skip the op definitions beside them."""
    infos = [(at, end) for number, kind, at, end in wire.fields(view, start, stop)
             if number == _META_INFO and kind == wire.BYTES]
    return frozenset(wire.text(view, at, end) for info in infos for number, kind, at, end in wire.fields(view, *info)
                     if number == _TAG and kind == wire.BYTES)


def _signature(definition: Any) -> SignatureDef:
    inputs, outputs = ({name: info for key in sorted(side) for name, info in _tensor_infos(key, side[key])}
                       for side in (definition.inputs, definition.outputs))
    return SignatureDef(definition.method_name, inputs, outputs, dict(_defaults(definition, inputs)))


def _defaults(definition: Any, inputs: Mapping[str, TensorInfo]) -> Iterator[tuple[str, Any]]:
    """Yield the default values of inputs as arrays. Raises InvalidArgument for a value of another type."""
    for name in sorted(definition.defaults.keys() & inputs.keys()):
        raw = definition.defaults[name].SerializeToString()
        value = TensorValue.read(raw, 0, len(raw))
        dtype = inputs[name].meta.dtype
        if value.dtype is not dtype:
            raise InvalidArgument(f"the default of input '{name}' is {value.dtype}, the input {dtype}")
        yield name, value.array()


def _tensor_infos(name: str, info: Any) -> Iterator[tuple[str, TensorInfo]]:
    """Yield the tensors of a TensorInfo: one dense tensor, three of a sparse tensor, or a composite's components."""
    encoding = info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        sparse, dtype = info.coo_sparse, dtypes.numbered(info.dtype)
        yield f"{name}/values", TensorInfo(sparse.values_tensor_name, TensorMetadata(dtype, (None,)))
        yield f"{name}/indices", TensorInfo(sparse.indices_tensor_name, TensorMetadata(dtypes.int64, (None, None)))
        yield f"{name}/dense_shape", TensorInfo(sparse.dense_shape_tensor_name, TensorMetadata(dtypes.int64, (None,)))
    elif encoding == "composite_tensor":
        for index, component in enumerate(info.composite_tensor.components):
            yield from _tensor_infos(f"{name}/{index}", component)
    else:
        raw = info.tensor_shape.SerializeToString()
        shape = read_shape(raw, 0, len(raw)) if info.HasField("tensor_shape") else None
        yield name, TensorInfo(info.name, TensorMetadata(dtypes.numbered(info.dtype), shape))


def _keys_of_objects(saved: Any, checkpoint_nodes: Any, attribute: str) -> dict[int, str]:
    """Return the checkpoint's keys of an attribute of the saved objects, by a walk of both graphs side by side."""
    keys: dict[int, str] = {}
    visited = {0}
    stack = [(0, 0)] if len(saved) and len(checkpoint_nodes) else []
    while stack:
        here, there = stack.pop()
        keys.update((here, a.checkpoint_key) for a in checkpoint_nodes[there].attributes if a.name == attribute)
        edges = {edge.local_name: edge.node_id for edge in (*saved[here].children, *saved[here].dependencies)}
        for edge in checkpoint_nodes[there].children:
            number = edges.get(edge.local_name)
            if number is None or number in visited:
                continue
            if not (0 <= number < len(saved) and 0 <= edge.node_id < len(checkpoint_nodes)):
                raise DataLoss(f"an object '{edge.local_name}' of the SavedModel is not there")
            visited.add(number)
            stack.append((number, edge.node_id))
    return keys


def restored_variables(graph: Graph, restore: str) -> dict[str, tuple[str, str]]:
    """Return the variables that a restore op assigns, with their keys in the checkpoint and their slices."""
    keys, needed = {}, ancestors(graph.nodes, [restore])
    for node in graph:
        if node.op in _ASSIGNS and len(node.inputs) == 2 and node.name in needed:
            key = _key_of_restore(graph, node)
            if key is not None:
                keys[node.inputs[0].node] = key
    return keys


def _key_of_restore(graph: Graph, assign: Node) -> tuple[str, str] | None:
    source = assign.inputs[1]
    while graph[source.node].op == "Identity" and graph[source.node].inputs:
        source = graph[source.node].inputs[0]
    restore = graph[source.node]
    if restore.op != "RestoreV2" or len(restore.inputs) != 3:
        return None
    names, slices = (_string(graph[i.node], source.index) for i in restore.inputs[1:])
    if names is None or slices is None:
        raise DataLoss(f"'{restore.name}' does not say what its output {source.index} is, which is assigned",
                       node=assign.name, op=assign.op)
    return names, slices


def _string(node: Node, index: int) -> str | None:
    """Return an element of a constant vector of strings, or None for any other node."""
    value = node.attrs.get("value")
    if not isinstance(value, TensorValue) or value.dtype is not dtypes.string or len(value.shape) != 1:
        return None
    return str(value.array()[index], "utf-8", "replace") if index < value.size else None
