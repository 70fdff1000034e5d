"""The plugin of heald on Ray. Every start of heald imports this module, so the module is light and imports no Ray."""

from typing import Any

from heald.api import hookimpl

HEALD_API = (1, 1)


@hookimpl
def heald_sessions(registry: Any) -> None:
    registry.add("ray", "heald_ray.ray_cluster:make_session")
