"""The caller's config on the workers, as JSON of its layers.

A worker has an empty working folder and an environment of its own, so that it finds neither the caller's heald.toml nor
the file of --config. Each layer keeps its origin, and whether it was found by search: a found file sets the same
settings on a worker as at its caller. The worker's own layers come behind the caller's.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from heald.runtime.config import Config, FoundFile, Setting, gather_layers


def pack_config(argument: Any = None) -> str:
    """Return the config of this process. `argument`: As `config` of `heald.load`.

    Raises InvalidArgument for a malformed file or argument, NotFound for an absent file.
    """
    if isinstance(argument, str | os.PathLike):
        argument = Path(argument)
    layers, _ = gather_layers(argument, os.environ, Path.cwd())
    Config(layers)  # a mistake is an error here, before workers start
    return json.dumps([_as_json(layer) for layer in layers], default=str)


def unpack_config(text: str) -> Config:
    """Return the config of a worker: the caller's layers, and its own behind them."""
    # A worker on the caller's machine inherits the caller's variable. The layers of a relative file have arrived.
    environment = {name: value for name, value in os.environ.items()
                   if name != "HEALD_CONFIG" or Path(value).is_absolute()}
    layers, left_out = gather_layers(None, environment, Path.cwd())
    return Config([*(_from_json(layer) for layer in json.loads(text)), *layers], left_out)


def _as_json(setting: Setting) -> list[Any]:
    is_table = isinstance(setting.value, dict)
    value = {key: _as_json(entry) for key, entry in setting.value.items()} if is_table else setting.value
    return [is_table, value, setting.origin, setting.is_text, setting.found_file]


def _from_json(fields: list[Any]) -> Setting:
    is_table, value, origin, is_text, found_file = fields
    if is_table:
        value = {key: _from_json(entry) for key, entry in value.items()}
    file = None if found_file is None else FoundFile(found_file[0], found_file[1], tuple(found_file[2]))
    return Setting(value, f"{origin} of the caller", is_text, file)
