"""Loaders: a file is recognised lightly and described without its weights; damage is a typed error.

The subject is a file or folder of the format, best a small model. Damaged copies stand in folders of their own.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import heald
import numpy as np
from heald.api import Description, Graph, Loader, LoadOptions, Source, errors

from ..arrays import generator
from ..case import sentence
from ..hook_subject import HookSubject, faults_of_threads
from ..subject import whatever_comes
from ..verdict import Broken, NotApplicable, expect

HEAD_BYTES = 4096
SPARSE_BYTES = 1 << 30  # of a file that only its head is read of
LIGHT_SECONDS, LIGHT_BYTES = 0.5, 4 << 20  # of a call of recognise: time on a busy machine, memory
LARGE_MODEL = 4 << 20  # bytes from which a description that reads weights shows in memory
STRANGERS: Mapping[str, bytes] = {
    "empty": b"", "a zero": b"\0", "text": b"hello, this is no model\n", "zeros": bytes(HEAD_BYTES),
    "noise": generator("stranger").bytes(HEAD_BYTES), "an archive": b"PK\x03\x04" + bytes(60), "JSON": b'{"a": [1, 2',
}
CUTS = (0, 1, 7, 0.25, 0.5, 0.9, -1)  # bytes that are left, shares of the file, bytes that are missing


class Format(NamedTuple):
    name: str
    loader: Loader
    path: Path


def format_of(on: HookSubject) -> Format:
    """The loader that recognises the subject. Raises Broken where not exactly one does."""
    path = Path(on.name)
    if not path.exists():
        raise heald.errors.NotFound(f"'{path}' is not there", hint="--loader takes a file or folder of the format")
    entries = heald.default_host().registries.loaders
    head = head_of(path)
    names = []
    for name, entry in entries.items():
        with whatever_comes(f"recognise of '{name}'", expected="True or False", rule="loader.recognise"):
            if entry.load().recognise(path, head):
                names.append(name)
    expect(len(names) == 1, f"'{path.name}' is loaded", expected="one loader that recognises it", got=names or "none",
           rule="loader.recognise")
    return Format(names[0], entries[names[0]].load(), path)


def head_of(path: Path) -> bytes:
    """The bytes that a loader sees of a file; none of a folder."""
    if path.is_dir():
        return b""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def open_source(form: Format, path: Path | None = None, **options: Any) -> Source:
    return form.loader.open(path or form.path, LoadOptions(heald.default_host().registries.ops, **options))


@contextmanager
def copy_of(path: Path) -> Iterator[tuple[Path, Path]]:
    """A copy of the file or folder that may be damaged, and the largest file in it."""
    with tempfile.TemporaryDirectory(prefix="heald-conformance-") as folder:
        copy = Path(folder) / path.name
        if path.is_dir():
            shutil.copytree(path, copy)
            yield copy, max((p for p in copy.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
        else:
            shutil.copyfile(path, copy)
            yield copy, copy


def read_all(form: Format, path: Path) -> None:
    """Read everything of a file that its loader recognises."""
    if form.loader.recognise(path, head_of(path)) is True:
        source = open_source(form, path)
        source.describe()
        dict(source.signatures)
        source.graph() if hasattr(source, "graph") else source.program()  # type: ignore[attr-defined]
        for initializer in source.initial_state():
            initializer.values()


def expect_typed(what: str, function: Callable[[], Any]) -> None:
    """Raise Broken for an exception that is no error of heald's. OSError passes: the runtime gives it a type."""
    try:
        function()
    except (errors.HealdError, OSError):
        pass
    except Exception as error:
        raise Broken(what, expected="an error of heald.errors, or a model", got=f"{type(error).__name__}: {error}",
                     rule="loader.errors") from error


@sentence()
def one_loader_recognises_the_file(on: HookSubject) -> None:
    format_of(on)


@sentence(over=lambda _: list(STRANGERS))
def a_loader_recognises_no_stranger(on: HookSubject, content: str) -> None:
    form = format_of(on)
    with tempfile.TemporaryDirectory(prefix="heald-conformance-") as folder:
        path = Path(folder) / "file"
        path.write_bytes(STRANGERS[content])
        for place, head in ((path, STRANGERS[content]), (Path(folder), b"")):
            with whatever_comes(f"recognise of {content}", expected="False", rule="loader.recognise"):
                answer = form.loader.recognise(place, head)
            expect(answer is False, f"recognise of {content}, in a {'file' if place == path else 'folder'}",
                   expected=False, got=answer, rule="loader.recognise")


@sentence()
def recognise_is_light(on: HookSubject) -> None:
    """A file of the same head and a gigabyte of nothing is recognised, or not, without being read."""
    form = format_of(on)
    if form.path.is_dir():
        raise NotApplicable("the format is a folder")
    head = head_of(form.path)
    with tempfile.TemporaryDirectory(prefix="heald-conformance-") as folder:
        path = Path(folder) / form.path.name
        with path.open("wb") as file:
            file.write(head)
            file.truncate(SPARSE_BYTES)
        tracemalloc.start()
        start = time.process_time()
        try:
            with whatever_comes("recognise of a large file", expected="True or False", rule="loader.light"):
                form.loader.recognise(path, head)
            seconds, nbytes = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    expect(nbytes < LIGHT_BYTES, "recognise of a file of 1 GiB", expected=f"less than {LIGHT_BYTES} bytes of memory",
           got=nbytes, rule="loader.light")
    expect(seconds < LIGHT_SECONDS, "recognise of a file of 1 GiB", expected=f"less than {LIGHT_SECONDS} s",
           got=f"{seconds:.2f} s", rule="loader.light")


@sentence()
def a_source_describes_itself(on: HookSubject) -> None:
    form = format_of(on)
    with whatever_comes("open and describe", expected="a Description", rule="loader.describe"):
        source = open_source(form)
        first, again = source.describe(), open_source(form).describe()
    expect(isinstance(first, Description), "describe()", expected="a Description", got=type(first).__name__,
           rule="loader.describe")
    expect(bool(first.form) and str(first) == str(again), "two descriptions of one file", expected=first, got=again,
           rule="loader.describe")
    with whatever_comes("open with weights=False, and describe", expected="a Description", rule="loader.describe"):
        without = open_source(form, weights=False).describe()
    expect(str(without) == str(first), "a description without weights", expected=first, got=without,
           rule="loader.describe")


@sentence()
def a_description_reads_no_weights(on: HookSubject) -> None:
    form = format_of(on)
    nbytes_of_model = form.path.stat().st_size if form.path.is_file() else sum(
        p.stat().st_size for p in form.path.rglob("*") if p.is_file())
    if nbytes_of_model < LARGE_MODEL:
        raise NotApplicable(f"the model has {nbytes_of_model} bytes; weights show in memory from {LARGE_MODEL} on")
    open_source(form).describe()  # imports
    tracemalloc.start()
    try:
        open_source(form).describe()
        nbytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    expect(nbytes < nbytes_of_model // 2, f"describe() of a model of {nbytes_of_model} bytes",
           expected=f"less than {nbytes_of_model // 2} bytes of memory", got=nbytes, rule="loader.weights")


@sentence()
def signatures_name_tensors_of_the_graph(on: HookSubject) -> None:
    form = format_of(on)
    source = open_source(form)
    description = source.describe()
    if description.signature is not None:
        expect(description.signature in source.signatures, "the chosen signature", expected=list(source.signatures),
               got=description.signature, rule="loader.signatures")
        chosen = source.signatures[description.signature]
        if not isinstance(chosen, errors.HealdError):
            for side in ("inputs", "outputs"):
                declared = {name: str(info.meta) for name, info in getattr(chosen, side).items()}
                described = {name: str(meta) for name, meta in getattr(description, side).items()}
                expect(declared == described, f"{side} of the chosen signature", expected=declared, got=described,
                       rule="loader.signatures")
    if not hasattr(source, "graph"):
        raise NotApplicable("the file is a host program")
    graph = source.graph()
    expect(isinstance(graph, Graph), "graph()", expected="a heald.api.Graph", got=type(graph).__name__,
           rule="loader.graph")
    for name, signature in source.signatures.items():
        if not isinstance(signature, errors.HealdError):
            for info in (*signature.inputs.values(), *signature.outputs.values()):
                expect(info.tensor.partition(":")[0] in graph, f"signature '{name}'", expected="tensors of the graph",
                       got=info.tensor, rule="loader.signatures")


@sentence()
def an_unknown_signature_is_a_typed_error(on: HookSubject) -> None:
    form = format_of(on)
    if not open_source(form).signatures:
        raise NotApplicable("the format has no signatures")

    try:
        heald.load(on.name, signature="heald_conformance_no_such_signature")
    except errors.PluginError as error:
        raise Broken("a signature that is not there", expected="NotFound or InvalidArgument", got=error,
                     rule="loader.signatures") from error
    except errors.HealdError:
        return
    raise Broken("a signature that is not there", expected="NotFound or InvalidArgument", got="a model",
                 rule="loader.signatures")


@sentence()
def the_initial_state_fits_the_graph(on: HookSubject) -> None:
    source = open_source(format_of(on))
    if not hasattr(source, "graph"):
        raise NotApplicable("the file is a host program")
    graph = source.graph()
    for initializer in source.initial_state():
        names = (initializer.target, *initializer.resources)
        lost = [name for name in names if name not in graph]
        expect(not lost, "an initializer", expected="nodes of the graph", got=lost, rule="loader.state")
        with whatever_comes(f"values of '{initializer.target}'", expected="arrays", rule="loader.state"):
            values = initializer.values()
        odd = [name for name in values if name.partition(":")[0] not in graph]
        expect(not odd, f"values of '{initializer.target}'", expected="tensors of the graph", got=odd,
               rule="loader.state")


@sentence(over=lambda _: [str(cut) for cut in CUTS])
def a_file_that_was_cut_off_is_a_typed_error(on: HookSubject, cut: str) -> None:
    form = format_of(on)
    with copy_of(form.path) as (copy, file):
        content = file.read_bytes()
        left = len(content) * float(cut) if "." in cut else int(cut) if int(cut) >= 0 else len(content) + int(cut)
        file.write_bytes(content[: int(left)])
        expect_typed(f"{int(left)} of {len(content)} bytes of {file.name}", lambda: read_all(form, copy))


@sentence(over=lambda on: [str(seed) for seed in range(on.size(200, 30))])
def damaged_bytes_are_a_typed_error_or_a_model(on: HookSubject, seed: str) -> None:
    form, random = format_of(on), generator("damage", seed)
    with copy_of(form.path) as (copy, file):
        content = np.frombuffer(file.read_bytes(), np.uint8).copy()
        if content.size:
            places = random.integers(0, content.size, 1 + int(seed) % 4)
            content[places] = random.integers(0, 256, places.size)
        file.write_bytes(content.tobytes())
        expect_typed(f"bytes {places.tolist()} of {file.name} were changed", lambda: read_all(form, copy))


@sentence()
def threads_open_a_file_at_once(on: HookSubject) -> None:
    form = format_of(on)
    want = str(open_source(form).describe())

    def work(_: int, faults: list[Any]) -> None:
        came = str(open_source(form).describe())
        if came != want:
            faults.append(came)

    faults = faults_of_threads(work)
    expect(not faults, "four threads open one file", expected=want, got=faults[:1], rule="loader.threads")


@sentence()
def a_model_of_the_file_is_loaded(on: HookSubject) -> None:
    format_of(on)
    with whatever_comes("heald.load", expected="a model", rule="loader.graph"):
        heald.load(on.name)
