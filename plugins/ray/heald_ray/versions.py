"""Versions of Python, heald and its plugins. Actors compare theirs with the caller's before they load a model.

Another version may compute another result or read a compiled file differently, so that a difference is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from heald.errors import FailedPrecondition

ABSENT = "not installed"


def installed_versions() -> dict[str, str]:
    """Return the versions of Python, and of each distribution that has a plugin of heald."""
    from importlib.metadata import entry_points, version

    versions = {"Python": "{}.{}".format(*sys.version_info[:2]), "heald-core": version("heald-core"),
                "numpy": version("numpy")}
    for entry in entry_points(group="heald.plugins"):
        if entry.dist is not None:
            versions[entry.dist.name] = entry.dist.version
    return versions


def check_versions(callers: Mapping[str, str]) -> None:
    """Raises FailedPrecondition where this process has other versions than the caller."""
    versions = installed_versions()
    differences = [f"{name} is {versions.get(name, ABSENT)} here and {callers.get(name, ABSENT)} at the caller"
                   for name in sorted(versions.keys() | callers.keys()) if versions.get(name) != callers.get(name)]
    if differences:
        raise FailedPrecondition(f"the worker differs from its caller: {'; '.join(differences)}",
                                 hint="install the same versions on all nodes")
