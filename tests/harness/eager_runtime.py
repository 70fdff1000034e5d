"""Core runtimes of tests: hosts of their own, with simulated devices and seeded queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heald.config.config import load_config
from heald.eager.core_runtime import CoreRuntime
from heald.session.runtime import HostContext


def core(
    seed: int | None = None, *, handler: str | tuple[str, ...] = "", diagnostics: Callable[..., Any] | None = None,
    **sim: object,
) -> CoreRuntime:
    """A runtime over CPU:0, SIM:0 and SIM:1."""
    settings: dict[str, object] = {"plugins": {"allow": ["cpu", "tf_ops", "sim"]},
                                   "plugin": {"sim": {"devices": 2, **sim}}}
    if seed is not None:
        settings["work_queue"] = {"name": "seeded", "seed": seed}
    return CoreRuntime(HostContext(config=load_config(settings), diagnostics=diagnostics), handler)
