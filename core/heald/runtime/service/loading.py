"""Loading: a path meets the loader that recognises it. Code of a loader's plugin is called here alone, and guarded.

A loader's module is imported when a file is to be recognised. No loader comes before another: a file that two loaders
recognise is an error, which names both. A path that none recognises may lead to a model (`model_place`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ...errors import (
    HealdError,
    Internal,
    InvalidArgument,
    NotFound,
    PluginError,
    describe_exception,
    did_you_mean,
    is_lack_of_memory,
    typed_error,
)
from ..contract.host_kernel import CORE_PLUGIN
from ..contract.loader import (
    HEAD_BYTES,
    Description,
    Initializer,
    Loader,
    LoaderEntry,
    LoadOptions,
    SignatureDef,
    Source,
    TensorInfo,
)
from ..host.registries import Registries
from ..program.bef.sections import MAGIC
from ..program.host_program import ProgramDef
from ..support import file_kinds, mapped_file
from ..support.input_file import check_file, reading
from ..support.install import plugin_hint
from ..support.records import record
from ..values.tensor import TensorMetadata
from .model_place import SAVED_MODEL_FILES, LocatedModel, graph_of_checkpoint, locate_model

if TYPE_CHECKING:
    from ..support.archive import Unpacked

T = TypeVar("T")
# Formats that a plugin of heald's reads: the name of plugin and loader, and the files that tell such a folder.
_KNOWN = {"saved_model": SAVED_MODEL_FILES}


@record
class OpenedFile:
    """A file and its Source. Every method raises PluginError for an exception of the loader's own code.

    `unpacked`: the folder of the archive that the file is in. Initializers keep it, since they read the file later.
    `requested`: the signature that the caller names, or None.
    """

    file: Path
    entry: LoaderEntry
    source: Source
    unpacked: Unpacked | None = None
    requested: str | None = None

    @cached_property
    def description(self) -> Description:
        description = self.call_source("describe", self.source.describe, Description)
        for field in ("inputs", "outputs", "signatures"):
            side = getattr(description, field)
            if not isinstance(side, Mapping):
                raise self._misfit("describe", f"a Description whose {field} are", side, "Mapping")
        for name, meta in (*description.inputs.items(), *description.outputs.items()):
            if not isinstance(meta, TensorMetadata):
                raise self._misfit("describe", f"for '{name}'", meta, "TensorMetadata")
        return description

    @property
    def signatures(self) -> Mapping[str, SignatureDef | HealdError]:
        signatures = self.call_source("signatures", lambda: self.source.signatures, Mapping)
        for name, signature in signatures.items():
            self._check_signature(name, signature)
        return signatures

    def program(self) -> ProgramDef:
        """Raises InvalidArgument for a file of a graph."""
        program = getattr(self.source, "program", None)
        if program is None:
            raise InvalidArgument(f"'{self.file}' is a graph, not a host program",
                                  hint=f"load it with heald.load('{self.file}')")
        program_def: ProgramDef = self.call_source("program", program, ProgramDef)
        return program_def

    def initial_state(self) -> tuple[Initializer, ...]:
        initializers = self.call_source("initial_state", lambda: tuple(self.source.initial_state()), tuple)
        for initializer in initializers:
            if not isinstance(initializer, Initializer):
                raise self._misfit("initial_state", "an item that is", initializer, "Initializer")
        return tuple(initializer._replace(values=partial(self.call_source, "values", initializer.values, Mapping))
                     for initializer in initializers)

    def readable_folders(self) -> tuple[Path, ...]:
        """The folders of the file's own that ops of its graph may read."""
        return self.call_source("readable_folders", lambda: tuple(getattr(self.source, "readable_folders", ())), tuple)

    def chosen_signature(self) -> SignatureDef | None:
        """The signature that the caller asked for, or the format's default, or the only one; None without such.

        Raises the error of a signature that cannot be run.
        """
        name = self.description.signature
        if name is None and not self.description.signatures and hasattr(self.source, "graph"):
            name = next(iter(self.signatures)) if len(self.signatures) == 1 else None
        if self.requested not in (None, name):
            raise PluginError(f"{self.entry} was asked for the signature '{self.requested}' of '{self.file}' and "
                              + ("describes none" if name is None else f"describes '{name}'"),
                              plugin=self.entry.plugin, hint="a loader without such a signature raises NotFound")
        if name is None:
            return None
        signature = self.signatures.get(name)
        if isinstance(signature, HealdError):
            raise signature
        if signature is None:
            raise PluginError(f"{self.entry} describes the signature '{name}' of '{self.file}' and does not have it")
        return signature

    def _check_signature(self, name: object, signature: object) -> None:
        """Raises PluginError for an entry of `signatures` that is no signature of named tensors."""
        if isinstance(signature, HealdError):
            return
        if not isinstance(name, str) or not isinstance(signature, SignatureDef):
            raise self._misfit("signatures", f"for {name!r}", signature, "SignatureDef or an error of heald.errors")
        for side in (signature.inputs, signature.outputs):
            if not isinstance(side, Mapping):
                raise self._misfit("signatures", f"for the inputs or outputs of '{name}'", side, "Mapping")
            for tensor_name, info in side.items():
                if not (isinstance(info, TensorInfo) and isinstance(info.tensor, str)
                        and isinstance(info.meta, TensorMetadata)):
                    raise self._misfit("signatures", f"for '{tensor_name}' of '{name}'", info, "TensorInfo")

    def _misfit(self, method: str, what: str, product: object, expected: str) -> PluginError:
        return PluginError(f"{self.entry}: {method} of '{self.file}' returned {what} {type(product).__name__}, "
                           f"expected {expected}", plugin=self.entry.plugin)

    def call_source(self, method: str, function: Callable[[], T], kind: type) -> T:
        """Call a method of the Source, and return its result. Raises PluginError for another type than `kind`."""
        with _loader_code(self.entry, method, self.file):
            product = function()
        if not isinstance(product, kind):
            raise PluginError(f"{self.entry}: {method} of '{self.file}' returned {type(product).__name__}, "
                              f"expected {kind.__name__}", plugin=self.entry.plugin)
        return product


def open_file(path: Path, options: LoadOptions, registries: Registries, form: str | None = None) -> OpenedFile:
    """Open a file with the loader called `form` or, without one, the only loader that recognises the file.

    Raises NotFound for a path without a file, an unknown format, and a file that no loader recognises; InvalidArgument
    for a file that several loaders recognise; PluginError for a loader that fails; the errors of the loader.
    """
    entry, located = (_recognise(path, registries) if form is None
                      else _locate_for(_entry_of_format(form, registries), path))
    loader = _load_entry(entry, path)
    with _loader_code(entry, "open", located.path):
        source = loader.open(located.path, options)
    _check_source(source, entry, located.path)
    return OpenedFile(located.path, entry, source, located.unpacked, options.signature)


def _check_source(source: object, entry: LoaderEntry, path: Path) -> None:
    """Raises PluginError for an object that is no Source."""
    has_content = callable(getattr(source, "graph", None)) or callable(getattr(source, "program", None))
    if not has_content or not callable(getattr(source, "describe", None)):
        raise PluginError(f"{entry}: open of '{path}' returned {type(source).__name__}, expected a Source",
                          plugin=entry.plugin, hint="a Source has describe(), initial_state(), signatures, and graph() "
                                                    "or program()")


def is_recognised(path: Path, head: bytes, registries: Registries) -> bool:
    """True for a file that some loader recognises by its first bytes. Raises PluginError for a loader that fails."""
    return any(_recognises(entry, path, head) for entry in registries.loaders.values())


def is_recognised_by_plugin(path: Path, head: bytes, registries: Registries) -> bool:
    """As `is_recognised`, for the loaders that plugins bring."""
    return any(_recognises(entry, path, head) for entry in registries.loaders.values() if entry.plugin != CORE_PLUGIN)


def _entry_of_format(form: str, registries: Registries) -> LoaderEntry:
    if not isinstance(form, str):
        raise InvalidArgument(f"format= is a {type(form).__name__}, expected the name of a loader",
                              hint=f"known formats: {_names(registries)}")
    if form not in registries.loaders:
        formats = f"known formats: {_names(registries)}"
        install = _remedy(form, registries) if form in _KNOWN else None
        raise NotFound(f"no loader is called '{form}'; {formats}",
                       hint=install or did_you_mean(form, registries.loaders))
    return registries.loaders[form]


def _locate_for(entry: LoaderEntry, path: Path) -> tuple[LoaderEntry, LocatedModel]:
    """Return the place of the model that the user names with its format."""
    path = _existing(path)
    head = _head(path)
    return entry, LocatedModel(path) if _recognises(entry, path, head) else _locate(path, head)


def _recognise(path: Path, registries: Registries) -> tuple[LoaderEntry, LocatedModel]:
    path = _existing(path)
    head = _head(path)
    if head.startswith(MAGIC):
        return registries.loaders["bef"], LocatedModel(path)  # no other loader is imported for it
    with reading(path):
        file_kinds.check_download(head, "a model")
    entry = _only_entry(path, head, registries)
    if entry is not None:
        return entry, LocatedModel(path)
    located = _locate(path, head)
    entry = None if located.path == path else _only_entry(located.path, _head(located.path), registries)
    if entry is None:
        raise _unrecognised_error(located.path, _head(located.path), registries)
    return entry, located


def _only_entry(path: Path, head: bytes, registries: Registries) -> LoaderEntry | None:
    """Return the loader that recognises a file, or None. Raises InvalidArgument for several."""
    entries = [entry for _, entry in sorted(registries.loaders.items()) if _recognises(entry, path, head)]
    if len(entries) > 1:
        raise InvalidArgument(f"several loaders recognise '{path}': {' and '.join(map(str, entries))}",
                              hint=f"choose one: format={' or format='.join(repr(entry.name) for entry in entries)}")
    return entries[0] if entries else None


def _recognises(entry: LoaderEntry, path: Path, head: bytes) -> bool:
    loader = _load_entry(entry, path)
    with _loader_code(entry, "recognise", path):
        answer = loader.recognise(path, head)
    if answer is None:
        raise PluginError(f"{entry}: recognise of '{path}' returned NoneType, expected bool", plugin=entry.plugin,
                          hint="return False for a file of another format")
    return bool(answer)


def _locate(path: Path, head: bytes) -> LocatedModel:
    with reading(path):
        return locate_model(path, head)


def _existing(path: Path) -> Path:
    """Return the path, or the file with the graph for the prefix of a checkpoint, which is no file itself."""
    with reading(path):
        return path if path.exists() else graph_of_checkpoint(path) or path


def _head(path: Path) -> bytes:
    """The first bytes of a file, b"" for a folder. Raises NotFound with similar names, InvalidArgument for a pipe."""
    with reading(path):
        if path.is_dir():
            return b""
        if not path.exists():
            check_file(path)
        return mapped_file.head(path, HEAD_BYTES)


def _unrecognised_error(path: Path, head: bytes, registries: Registries) -> NotFound:
    kind = file_kinds.kind_of_file(path, head)
    if kind is not None:
        return NotFound(f"no loader recognises '{path}': this is {kind.name}", hint=kind.way_out)
    form = "folder" if path.is_dir() else "file"
    files = {file.name for file in path.iterdir()} if form == "folder" else set()
    for name, telling in _KNOWN.items():
        if files & telling:
            return NotFound(f"'{path}' is of format '{name}', for which there is no loader here",
                            hint=_remedy(name, registries))
    return NotFound(f"no loader recognises the {form} '{path}'; known formats: {_names(registries)}",
                    hint="name the format: format='graphdef'" if form == "file" else None)


def _remedy(plugin: str, registries: Registries) -> str | None:
    why = registries.missing_plugins.get(plugin)
    return plugin_hint(plugin) if why is None else f"plugin {plugin} is {why}"


def _names(registries: Registries) -> str:
    return ", ".join(sorted(registries.loaders))


def _load_entry(entry: LoaderEntry, path: Path) -> Loader:
    with _loader_code(entry, "import", path):
        return entry.load()


@contextmanager
def _loader_code(entry: LoaderEntry, method: str, path: Path) -> Iterator[None]:
    """Errors of heald pass. An exception of a plugin's becomes a PluginError with its place, and an OSError a typed
    error that names the loader."""
    try:
        yield
    except HealdError:
        raise
    except (Exception, SystemExit) as error:
        typed: HealdError = Internal("") if isinstance(error, SystemExit) else typed_error(error)
        if entry.plugin != CORE_PLUGIN:
            typed = _fault_of_loader(entry, method, path, error, typed)
        raise typed from error


def _fault_of_loader(
    entry: LoaderEntry, method: str, path: Path, error: BaseException, typed: HealdError,
) -> HealdError:
    """Return the error with the loader's name, and the place of the fault in the loader's own code."""
    from ..support.fault_place import with_place  # only a fault needs it

    what = f"{entry}: {method} of '{path}' raised "
    if isinstance(typed, Internal):
        text = what + " ".join(describe_exception(error).split())
        return PluginError(with_place(text, error, _module_of(entry)), plugin=entry.plugin)
    if isinstance(error, OSError) and not is_lack_of_memory(error) and not _is_within(error.filename, path):
        text = f"{what}{type(error).__name__}: {typed.message}"
        return type(typed)(with_place(text, error, _module_of(entry)), plugin=entry.plugin, location=typed.location,
                           hint=typed.hint)
    return typed


def _is_within(file: object, path: Path) -> bool:
    """True for the path of the model, and for a file in its folder. The user's own files need no loader's name."""
    return isinstance(file, str | Path) and Path(file).is_relative_to(path)


def _module_of(entry: LoaderEntry) -> str:
    loader = entry.loader
    return loader.partition(":")[0] if isinstance(loader, str) else type(loader).__module__
