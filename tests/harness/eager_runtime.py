"""Core runtimes of tests: hosts of their own, with simulated devices and seeded queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import HostContext
from heald_eager.asynchrony import Mode
from heald_eager.core_runtime import CoreRuntime


def core(
    seed: int | None = None, *, handler: str | tuple[str, ...] = "", diagnostics: Callable[..., Any] | None = None,
    asynchronous: Mode = "auto", load: tuple[str, ...] = (), **sim: object,
) -> CoreRuntime:
    """A runtime over CPU:0, SIM:0 and SIM:1."""
    settings: dict[str, object] = {"plugins": {"allow": ["cpu", "eager", "tf_ops", "sim"], "load": load},
                                   "plugin": {"sim": {"devices": 2, **sim}}}
    if seed is not None:
        settings["work_queue"] = {"name": "seeded", "seed": seed}
    return CoreRuntime(HostContext(config=load_config(settings), diagnostics=diagnostics), handler,
                       asynchronous=asynchronous)
