"""Loaders: file formats that plugins register by name, each from a path to a Source.

A Source is one opened file: how it describes itself, its graph or host program, and the state that a session begins
with. The object of a loader has the two methods of `Loader`; `recognise` runs for every file that is loaded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from ...errors import HealdError, PluginError
from ..support.records import NamedTuple
from ..values.tensor import TensorMetadata
from .device import load_object
from .op_registry import OpRegistry

HEAD_BYTES = 4096
_METHODS = ("recognise", "open")
_NONE: Mapping[str, Any] = MappingProxyType({})


class TensorInfo(NamedTuple):
    """An input or output of a signature: the name of its tensor in the graph, and its declared dtype and shape."""

    tensor: str
    meta: TensorMetadata


class SignatureDef(NamedTuple):
    """Inputs and outputs by name, in the order of calls; one that is several tensors has an entry `name/part` each.

    `defaults`: arrays of inputs that a request to a server may leave out.
    """

    method: str
    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    defaults: Mapping[str, Any] = _NONE

    def __str__(self) -> str:
        inputs, outputs = ({name: info.meta for name, info in side.items()} for side in (self.inputs, self.outputs))
        return signature_text(inputs, outputs)


def signature_text(inputs: Mapping[str, TensorMetadata], outputs: Mapping[str, TensorMetadata]) -> str:
    """Inputs and outputs on one line: "(x: float32[2]) -> (y: float32[])"."""
    sides = (", ".join(f"{name}: {meta}" for name, meta in side.items()) for side in (inputs, outputs))
    return " -> ".join(f"({side})" for side in sides)


class LoadOptions(NamedTuple):
    """The arguments of `heald.load` that concern the file, None where none was given, and the op table of the runtime.

    `inputs`, `outputs`: names that the graph must keep. `mmap`: False reads large files instead of mapping them.
    `weights`: False for a caller that runs nothing: a file whose weights are missing is opened all the same, and its
    variables have no initial values.
    """

    ops: OpRegistry
    signature: str | None = None
    tags: tuple[str, ...] | None = None
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    mmap: bool = True
    weights: bool = True


class Description(NamedTuple):
    """A file's own description. `form` is the format's name for readers, such as "SavedModel".

    `signatures` are all declared ones, with the tensor names of the file. `signature` names the chosen one, and is None
    for a format without signatures. `inputs` and `outputs` belong to the chosen one.
    """

    form: str
    inputs: Mapping[str, TensorMetadata] = _NONE
    outputs: Mapping[str, TensorMetadata] = _NONE
    signatures: Mapping[str, SignatureDef] = _NONE
    signature: str | None = None


class Initializer(NamedTuple):
    """State that exists before the first step that needs one of `resources`, which are names of nodes.

    The session then runs the node `target` once, and feeds it `values()`: arrays by tensor name.
    `for_all_steps`: True for effects that any step may see. It runs before the first step, needed or not, and
    after all initializers before it.
    """

    resources: frozenset[str]
    target: str
    values: Callable[[], Mapping[str, Any]] = dict
    for_all_steps: bool = False


class Source(Protocol):
    """One opened file. A Source has `graph()` or, for a file of a host program, `program()` in its place.

    A Source may have `readable_folders`, a sequence of paths: ops of its graph may read the files in these folders.
    """

    @property
    def signatures(self) -> Mapping[str, SignatureDef | HealdError]:
        """Signatures by name, in terms of `graph()`; an error in place of one that cannot be run."""

    def describe(self) -> Description:
        """Inputs, outputs and signatures. Reads no weights."""

    def graph(self) -> Any:
        """The graph of all signatures, a `heald.api.Graph`."""

    def initial_state(self) -> Sequence[Initializer]:
        """Initializers in the order in which they run. The values are read when a step first needs them."""


class Loader(Protocol):
    """A file format. Both methods may be called from several threads at once."""

    @abstractmethod
    def recognise(self, path: Path, head: bytes, /) -> bool:
        """Return True for a file of this format; must be light.

        `head` is the first 4096 bytes of the file, or b"" for a folder, whose listing is at `path.iterdir()`.
        """

    @abstractmethod
    def open(self, path: Path, options: LoadOptions, /) -> Source:
        """Return the Source of a recognised file. Raises an error of `heald.errors` for a file that cannot be read."""


class LoaderEntry(NamedTuple):
    """A registered loader: the object, or "package.module:object", which is imported when a file is first loaded."""

    name: str
    loader: str | Loader
    plugin: str

    def __str__(self) -> str:
        return f"loader '{self.name}' of plugin {self.plugin}"

    def load(self) -> Loader:
        """Return the loader's object. Raises PluginError for an object without the methods of a Loader."""
        loader = load_object(self.loader)
        check_loader(loader, self.name)
        return loader  # type: ignore[no-any-return]


def check_loader(loader: object, name: str) -> None:
    """Raises PluginError for an object without the methods of a Loader."""
    if isinstance(loader, type):
        raise PluginError(f"loader '{name}' is the class {loader.__name__}, expected an instance",
                          hint=f"register {loader.__name__}()")
    missing = [method for method in _METHODS if not callable(getattr(loader, method, None))]
    if missing:
        raise PluginError(f"loader '{name}' is a {type(loader).__name__} without the method {' and '.join(missing)}",
                          hint="a loader has recognise(path, head) and open(path, options)")
