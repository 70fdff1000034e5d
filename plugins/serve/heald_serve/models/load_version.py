"""From the folder of a version to a served model: memory is asked for, the model loaded and warmed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from heald.errors import HealdError, NotFound, of_system

from ..http.messages import CODE_NAMES
from ..metrics import Metrics
from .loaded_runtime import served_runtime
from .served_model import ServedSignature, signatures_of

SAVED_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")


class LoadSettings(NamedTuple):
    """`runtime`: of all models; None for the runtime of the process. `tags`: of a SavedModel's graph.

    `warmup_runs`: of each record; 0 for no warm-up.
    """

    runtime: Any = None
    device: str | None = None
    tags: Sequence[str] = ("serve",)
    warmup_runs: int = 1


def load_version(
    path: Path, settings: LoadSettings, metrics: Metrics | None = None
) -> dict[str, ServedSignature]:
    """The signatures of the model at `path`, ready to serve. Raises the errors of loading and of warm-up."""
    import heald
    from heald.runtime.contract import in_this_process

    owner = settings.runtime or served_runtime()
    model_path = model_in(path)
    owner.host.memory.ask(_bytes_of(model_path), f"loading {path}")
    tags = set(settings.tags) if _is_saved_model(model_path) else None
    with in_this_process():  # the server runs steps without a thread that waits, which targets lack
        model = heald.load(model_path, config=owner, device=settings.device, tags=tags)
    signatures = signatures_of(model, partial(_is_stateful, owner.host.registries.ops))
    if settings.warmup_runs:
        _warm_up(path, signatures, settings.warmup_runs, metrics or Metrics())
    return signatures


def _is_stateful(ops: Any, name: str) -> bool:
    """An op that no plugin brings may do anything."""
    try:
        return bool(ops.get(name).stateful)
    except NotFound:
        return True


def _warm_up(path: Path, signatures: Mapping[str, ServedSignature], runs: int, metrics: Metrics) -> None:
    from .warmup import warm_up  # imported late: the parent of workers needs no NumPy

    start = perf_counter()
    count, status = 0, "OK"
    try:
        count = warm_up(path, signatures, runs)
    except HealdError as error:
        status = CODE_NAMES[error.code]
        raise
    finally:
        if count or status != "OK":
            metrics.warmup_latency.add(str(path), status, amount=1e6 * (perf_counter() - start))
            metrics.warmup_records.add(str(path), status, amount=count)


def model_in(path: Path) -> Path:
    """The model of a version: the path itself, or the only file of a folder that is no SavedModel."""
    if not path.is_dir() or _is_saved_model(path):
        return path
    try:
        files = [child for child in path.iterdir() if child.is_file() and not child.name.startswith(".")]
    except OSError as error:
        raise of_system(error, path) from error
    models = [file for file in files if file.suffix != ".pbtxt" or file.name != "batching_params.pbtxt"]
    if not files and not any(path.iterdir()):
        raise NotFound(f"the folder '{path}' is empty")
    return models[0] if len(models) == 1 else path


def _is_saved_model(path: Path) -> bool:
    return any((path / name).is_file() for name in SAVED_MODEL_FILES)


def _bytes_of(path: Path) -> int:
    """The bytes of a model's files, about the memory of its weights."""
    files = path.rglob("*") if path.is_dir() else [path]
    try:
        return sum(file.stat().st_size for file in files if file.is_file())
    except OSError:
        return 0  # the loader tells the fault
