"""The plugin of heald on Ray. Every start of heald imports this module, so the module is light and imports no Ray."""

from dataclasses import dataclass
from typing import Any

from heald.api import hookimpl

HEALD_API = (1, 1)


@dataclass(frozen=True)
class Config:
    """The section [plugin.ray]: sessions over several workers.

    `workers`: The number of workers of a session.
    `max_steps`: The most steps of a session in flight.
    """

    workers: int = 2
    max_steps: int = 64


@hookimpl
def heald_sessions(registry: Any) -> None:
    registry.add("ray", "heald_ray.ray_cluster:make_session")
