"""Runtimes that tests share, one for each config: to make one takes five times as long as to run a small graph.

A test that counts a host's memory or changes its plugins gives its session a config instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from heald.runtime.service.runtime import Runtime, runtime


def shared_runtime(config: Mapping[str, Any] | None) -> Runtime:
    """The runtime for a config and the settings of the environment; without a config that of the process."""
    if config is None:
        return runtime()
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith("HEALD_")))
    return _runtime_for(json.dumps(config, sort_keys=True), settings)


@cache
def _runtime_for(config: str, _settings: tuple[tuple[str, str], ...]) -> Runtime:
    return runtime(json.loads(config))
