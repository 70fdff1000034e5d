"""The one call of ray.init.

Ray implies an address from its environment and files, listens on all interfaces, and puts the caller's working folder
first on the module path of its workers. heald therefore states each of these:

1. The address is "local" or HOST:PORT. No environment variable and no file of an earlier cluster chooses another.
2. The workers' folder is empty, so that a module beside the caller shadows none of an installed distribution.
3. Each call to a cluster carries a token. A cluster that answers without one is refused, unless the caller accepts it.
4. A cluster that starts here has no dashboard, reports no usage, and has a token of its own, which stays in memory.

`address_probe` asks an address before Ray does.
A caller who has called ray.init before keeps that connection: `connect` then raises.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

from heald.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)

from .address_probe import HINT_OF_TOKENS, has_token, last_line, mode_of_cluster

LOCAL = "local"
NAMESPACE = "heald"
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*):(?P<port>[0-9]{1,5})")


def connect(
    address: str = LOCAL, *, insecure: bool = False, cpus: int | None = None,
    resources: Mapping[str, float] | None = None,
) -> None:
    """Connect this process to the cluster at HOST:PORT, or start a cluster on this machine.

    `insecure`: Accept a cluster without tokens.
    `cpus`, `resources`: Of the cluster that starts here; `resources` may have "GPU".

    Raises InvalidArgument for another form of address and for amounts that no node has, NotFound without Ray.
    Raises FailedPrecondition for a process that is connected, and for a cluster of another version of Ray or Python.
    Raises PermissionDenied for a cluster without tokens, Unauthenticated where the token is missing or wrong,
    Unavailable where no cluster answers.
    """
    is_local = check_address(address) == LOCAL
    if not is_local and (cpus is not None or resources):
        raise InvalidArgument(f"cpus and resources are for a cluster that starts here, and '{address}' is running",
                              hint="give them to `ray start` on its machines")
    is_imported = "ray" in sys.modules  # an imported Ray has read its mode
    if is_imported and sys.modules["ray"].is_initialized():
        raise FailedPrecondition("this process is connected to a cluster already", hint="call ray.shutdown() first")
    _prepare_environment(is_local=is_local, insecure=insecure)
    _check_installation()
    if not is_local:
        mode = mode_of_cluster(address, insecure=insecure)
        if not is_imported:
            os.environ["RAY_AUTH_MODE"] = mode
    import ray

    options = _node_options(cpus, resources or {}) if is_local else {}
    with TemporaryDirectory(prefix="heald-ray-") as empty:
        try:
            ray.init(address=address, namespace=NAMESPACE, include_dashboard=False if is_local else None,
                     runtime_env={"working_dir": empty}, log_to_driver=False, logging_level="ERROR", **options)
        except Exception as error:  # noqa: BLE001 - Ray raises many types, some of them private
            raise _typed_error(address, error) from None


def check_connected() -> None:
    """Raises FailedPrecondition in a process that is not connected. Ray would choose a cluster by itself."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        raise FailedPrecondition("this process is connected to no cluster",
                                 hint='call heald_ray.connect("local") or heald_ray.connect("HOST:PORT") first')


@contextmanager
def open_connection(address: str = LOCAL, **options: Any) -> Iterator[None]:
    """`connect` for the time of a with statement. Raises as `connect`."""
    connect(address, **options)
    try:
        yield
    finally:
        import ray

        ray.shutdown()


def check_address(address: str) -> str:
    """Return the address. Raises InvalidArgument for a form that `connect` does not take."""
    if address == LOCAL:
        return address
    hint = "local, or HOST:PORT of the cluster's head, such as 10.0.0.1:6379"
    if address.startswith("ray://"):
        raise InvalidArgument(f"'{address}' is an address of Ray Client, which is another service on another port",
                              hint=hint)
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match["port"]) < 1 << 16:
        raise InvalidArgument(f"'{address}' is no address of a cluster", hint=hint)
    return address


def _node_options(cpus: int | None, resources: Mapping[str, float]) -> dict[str, Any]:
    """Return the arguments of ray.init for a node with these resources. Raises InvalidArgument for a wrong amount."""
    for name, amount in {"CPU": 1 if cpus is None else cpus, **resources}.items():
        if not isinstance(amount, int | float) or not 0 < amount < float("inf"):
            raise InvalidArgument(f"resource {name} has the amount {amount!r}", hint="give a number above 0")
    custom = {name: float(amount) for name, amount in resources.items() if name not in ("CPU", "GPU")}
    return {"num_cpus": cpus or resources.get("CPU"), "num_gpus": resources.get("GPU"), "resources": custom}


def _prepare_environment(*, is_local: bool, insecure: bool) -> None:
    """Set the variables that Ray reads at its import and that its processes inherit."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    mode = os.environ.get("RAY_AUTH_MODE")
    if mode not in (None, "token") and not insecure:
        raise PermissionDenied(f"RAY_AUTH_MODE={mode} turns tokens off", hint="unset it, or accept this by --insecure")
    if insecure and (mode is not None or not is_local):
        return
    if "ray" not in sys.modules:  # a Ray that is imported has read its mode, and turns tokens on for a new cluster
        os.environ["RAY_AUTH_MODE"] = "token"
    if is_local and not has_token():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def _check_installation() -> None:
    if find_spec("ray") is None:
        raise NotFound("Ray is not installed", hint="pip install 'ray[data]>=2.59'")


def _typed_error(address: str, error: Exception) -> Exception:
    if "Version mismatch" in str(error):
        return FailedPrecondition(f"the cluster at {address} has other versions: {' '.join(str(error).split())[:500]}",
                                  hint="install the same versions of Python and Ray on all machines")
    text = last_line(str(error))
    if "uthentic" in type(error).__name__ or "uthentic" in text or "token" in text.lower():
        return Unauthenticated(f"the cluster at {address} refused this caller: {text}",
                               hint=HINT_OF_TOKENS)
    return Unavailable(f"no cluster at {address}: {text}")
