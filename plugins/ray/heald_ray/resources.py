"""Resources of actors, compared with the resources that nodes declare.

Ray waits without end for a resource that no node has, because a node may come. heald waits a few seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import monotonic, sleep
from typing import Any

from heald.errors import FailedPrecondition

from .connection import check_connected

WAIT_SECONDS = 10.0
POLL_SECONDS = 0.2
_BUILT_IN = {"CPU": "--num-cpus", "GPU": "--num-gpus"}


def check_resources(resources: Mapping[str, float], *, actors: int = 1, seconds: float = WAIT_SECONDS) -> None:
    """Raises FailedPrecondition where the nodes cannot hold so many actors with these resources each, after a wait.

    Raises FailedPrecondition in a process that is not connected.
    """
    check_connected()
    import ray

    end = monotonic() + seconds
    while True:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        places = sum(_places(node, resources, actors) for node in nodes)
        if places >= actors:
            return
        if monotonic() >= end:
            raise FailedPrecondition(
                f"the cluster has a place for {places} of {actors} actors with {_text(resources)} each",
                hint=f"on a node that has them: {_start_line(resources)}; --head for --address starts a cluster")
        sleep(POLL_SECONDS)


def _places(node: Mapping[str, Any], resources: Mapping[str, float], limit: int) -> int:
    amounts = {name: amount for name, amount in resources.items() if amount > 0}
    return min([limit, *(int(node.get(name, 0) / amount + 1e-9) for name, amount in amounts.items())])


def _text(resources: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={amount:g}" for name, amount in resources.items())


def _start_line(resources: Mapping[str, float]) -> str:
    custom = {name: amount for name, amount in resources.items() if name not in _BUILT_IN}
    words = [f"{_BUILT_IN[name]}={amount:g}" for name, amount in resources.items() if name in _BUILT_IN]
    if custom:
        words.append(f"--resources='{json.dumps(custom)}'")
    return " ".join(["ray start --address=HOST:PORT", *words])
