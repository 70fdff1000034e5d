"""The caller's config on the workers, as JSON of its layers.

A worker has an empty working folder and an environment of its own, so that it finds neither the caller's heald.toml nor
the file of --config. Each layer keeps its origin, and whether it was found by search: a found file sets the same
settings on a worker as at its caller. Relative paths are sent as absolute ones. The worker's own layers come behind the
caller's.
"""

from __future__ import annotations

import json
import os
from copy import copy
from dataclasses import replace
from datetime import date, time
from pathlib import Path
from typing import Any

from heald.errors import InvalidArgument
from heald.runtime.config import FILE_VARIABLE, Config, FoundFile, Setting, gather_layers, load_config


def pack_config(argument: Any = None) -> str:
    """Return the config of this process. `argument`: As `config` of `heald.load`.

    Raises InvalidArgument for a malformed file or argument and for a value that JSON lacks, NotFound for an absent
    file.
    """
    config = load_config(argument).with_absolute_paths()  # a mistake is an error here, before workers start
    callers_file = os.environ.get(FILE_VARIABLE, "")
    try:
        return json.dumps([callers_file, [_as_json(layer) for layer in config.layers]], default=_text_of_date)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the config of workers is sent as JSON: {error}") from None


def unpack_config(text: str) -> Config:
    """Return the config of a worker: the caller's layers, and its own behind them."""
    callers_file, layers = json.loads(text)
    # A worker may inherit the caller's variable, or a file of the folder in which Ray was started.
    environment = {name: value for name, value in os.environ.items()
                   if name != FILE_VARIABLE or (Path(value).is_absolute() and value != callers_file)}
    own_layers, left_out = gather_layers(None, environment, Path.cwd())
    return Config([*map(_from_json, layers), *own_layers], left_out)


def config_without_remap(config: Config, **placement: Any) -> Config:
    """Return the config of a process whose graph has been cut: its requests are remapped, or cleared, already."""
    config = copy(config)
    config.placement = replace(config.placement, remap={}, clear=False, **placement)
    return config


def _as_json(setting: Setting) -> list[Any]:
    is_table = isinstance(setting.value, dict)
    value = {key: _as_json(entry) for key, entry in setting.value.items()} if is_table else setting.value
    return [is_table, value, setting.origin, setting.is_text, setting.found_file]


def _text_of_date(value: Any) -> str:
    """Return the text of a date or time of TOML. Raises TypeError for any other object that JSON lacks."""
    if isinstance(value, date | time):
        return str(value)
    raise TypeError(f"it has no {type(value).__name__}")


def _from_json(fields: list[Any]) -> Setting:
    is_table, value, origin, is_text, found_file = fields
    if is_table:
        value = {key: _from_json(entry) for key, entry in value.items()}
    file = None if found_file is None else FoundFile(found_file[0], found_file[1], tuple(found_file[2]))
    return Setting(value, f"{origin} of the caller", is_text, file)
