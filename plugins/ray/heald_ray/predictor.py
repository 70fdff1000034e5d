"""The class that `ds.map_batches` runs in its actors, and its arguments.

    arguments = heald_ray.predictor_arguments("model.pb", keep=["file"])
    ds.map_batches(heald_ray.Predictor, fn_constructor_kwargs=arguments, batch_format="numpy", batch_size=32,
                   compute=ray.data.ActorPoolStrategy(size=2))

An actor loads the model once. Its batches are columns by name: columns that feed inputs, and columns to keep.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import heald
from heald.errors import InvalidArgument, Unavailable
from heald.runtime.contract import in_this_process

from .connection import check_connected
from .model_files import ModelFiles, ReadContents, model_path, read_model_files
from .sent_config import pack_config, unpack_config
from .versions import check_versions, installed_versions


def predictor_arguments(
    model: str | os.PathLike[str], *, model_on_workers: bool = False, inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None, keep: Sequence[str] = (), device: str | None = None,
    signature: str | None = None, config: Any = None,
) -> dict[str, Any]:
    """Return the arguments of `Predictor`. The files of the model go to the object store of the connected cluster.

    `model_on_workers`: The path names the model on every node, such as one of a shared disk, and nothing is sent.
    `inputs`: The column that feeds an input, where its name differs. `keep`: Columns that the results have, too.
    `device`: The place of nodes that ask for none: GPU:0 for an actor that has a GPU of Ray's.
    `config`: As in `heald.load`. The workers have the caller's config, and their own behind it.

    Raises FailedPrecondition in a process that is not connected, NotFound and PermissionDenied for files that cannot
    be read, InvalidArgument for a wrong config.
    """
    check_connected()
    arguments = model_arguments(model, model_on_workers=model_on_workers, outputs=outputs, device=device,
                                signature=signature, config=config)
    return {**arguments, "inputs": dict(inputs or {}), "keep": list(keep)}


def model_arguments(
    model: str | os.PathLike[str], *, model_on_workers: bool = False, outputs: Sequence[str] | None = None,
    device: str | None = None, signature: str | None = None, config: Any = None,
) -> dict[str, Any]:
    """Return the arguments of `LoadedModel`. Raises as `predictor_arguments`.

    A model on the workers needs no connection.
    """
    arguments: dict[str, Any] = {
        "versions": installed_versions(), "device": device, "config": pack_config(config),
        "outputs": None if outputs is None else list(outputs), "signature": signature}
    if model_on_workers:
        return {"model": os.fspath(model), **arguments}
    check_connected()
    import ray

    files, contents = read_model_files(model)
    return {"model": [files.name, dict(files.sizes), files.digest], "contents": [ray.put(contents)], **arguments}


class LoadedModel:
    """A model that is loaded on a node, as `predictor_arguments` describes it."""

    def __init__(
        self, model: Any, versions: Mapping[str, str], contents: Sequence[Any] | ReadContents = (),
        config: str | None = None, **options: Any,
    ) -> None:
        """`contents`: A reference to the contents of the model's files, or a function that returns them.

        Raises FailedPrecondition for other versions, DataLoss for other bytes, Unavailable for bytes that are lost.
        Raises the errors of `heald.load`.
        """
        check_versions(versions)
        if isinstance(model, str):
            path: str | os.PathLike[str] = model
        else:
            path = model_path(ModelFiles(*model), contents if callable(contents) else lambda: get_contents(*contents))
        device = options.pop("device", None) or _device_of_actor()
        with in_this_process():  # an actor runs its model itself, whatever target the caller's config has
            self.model: Any = heald.load(path, device=device, config=None if config is None else unpack_config(config),
                                         **options)

    def run(self, *arrays: Any) -> list[Any]:
        """Return the outputs in order."""
        results = self.model(*arrays)
        return [results] if len(self.model.outputs) == 1 else list(results.values())


def get_contents(reference: Any) -> Any:
    """Return the contents of a model's files. Raises Unavailable where Ray has lost them."""
    import ray
    from ray.exceptions import RayError

    try:
        return ray.get(reference)
    except RayError as error:
        reason = str(error).strip().partition("\n")[0][:500]
        raise Unavailable(f"the model's files are lost: {reason}",
                          hint="start the program that sent them again, or use model_on_workers") from None


class Predictor:
    """Called with a batch of columns, it returns the outputs by name and the columns that are kept."""

    def __init__(
        self, *, model: Any, versions: Mapping[str, str], contents: Sequence[Any] = (), inputs: Mapping[str, str],
        keep: Sequence[str], **options: Any,
    ) -> None:
        """Raises InvalidArgument for a name that is no input, and as `LoadedModel`."""
        self._loaded = LoadedModel(model, versions, contents, **options)
        self._inputs: Mapping[str, Any] = self._loaded.model.inputs
        self._columns, self._keep = {name: inputs.get(name, name) for name in self._inputs}, list(keep)
        unknown = [name for name in inputs if name not in self._inputs]
        if unknown:
            raise InvalidArgument(f"the model has no input '{unknown[0]}'", hint=f"inputs: {', '.join(self._inputs)}")

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Raises InvalidArgument for a missing column and for outputs without a row for each row of the batch."""
        for column in [*self._columns.values(), *self._keep]:
            if column not in batch:
                raise InvalidArgument(f"the batch has no column '{column}'", hint=f"columns: {', '.join(batch)}")
        arrays = [batch[column] for column in self._columns.values()]
        kept = {name: batch[name] for name in self._keep}
        count = len(arrays[0]) if arrays else 0
        if not count:
            return kept
        filled = [_fill(array, meta, name) for array, (name, meta) in zip(arrays, self._inputs.items(), strict=True)]
        outputs = dict(zip(self._loaded.model.outputs, self._loaded.run(*filled), strict=True))
        for name, output in outputs.items():
            if not output.ndim or len(output) != len(filled[0]):
                raise InvalidArgument(f"output '{name}' of shape {list(output.shape)} has no row for each of "
                                      f"{len(filled[0])} rows", hint="name other outputs, or batch_size=1")
        return {**kept, **{name: output[:count] for name, output in outputs.items()}}


def _fill(array: Any, meta: Any, name: str) -> Any:
    """Return the array with its last row repeated up to the batch of an input whose batch is fixed."""
    import numpy as np

    size = meta.shape[0] if meta.shape else None
    if size is None or size == len(array):
        return array
    if len(array) > size:
        raise InvalidArgument(f"input '{name}' takes batches of {size} rows, and this one has {len(array)}",
                              hint=f"batch_size={size}")
    return np.concatenate([array, np.repeat(array[-1:], size - len(array), axis=0)])


def _device_of_actor() -> str | None:
    """GPU:0 where Ray has given this actor a GPU: Ray shows it that one alone."""
    import ray

    return "GPU:0" if ray.is_initialized() and ray.get_gpu_ids() else None
