"""Questions to the program at an address: whether a cluster answers there, and whether it asks for tokens.

Ray itself tries for half a minute and tells no reason. Each question here has a bound and a typed error.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from heald.errors import PermissionDenied, Unauthenticated, Unavailable

PROBE_SECONDS = 15
HINT_OF_TOKENS = "RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH has the token of the cluster"
TOKEN_FILE = Path(".ray", "auth_token")

# A call without a token, in a process of its own: Ray reads its mode once for each process.
_PROBE = """
import sys
from ray._raylet import GcsClient
try:
    GcsClient(address=sys.argv[1]).get_all_node_info(timeout=10)
except Exception as error:
    sys.exit(3 if "uthentic" in repr(error) else repr(error))
"""
_REFUSED_STATUS = 3


def mode_of_cluster(address: str, *, insecure: bool) -> str:
    """Return the value of RAY_AUTH_MODE for calls to the cluster.

    Raises Unavailable without a cluster, PermissionDenied for one without tokens, Unauthenticated for a refusal.
    """
    check_port(address)
    modes = ("disabled", "token") if has_token() else ("disabled",)
    with ThreadPoolExecutor(len(modes)) as threads:  # each call starts a process, so that both run at once
        is_open, *takes_token = threads.map(partial(takes_call, address), modes)
    if is_open and not insecure:
        raise PermissionDenied(
            f"the cluster at {address} takes calls without a token: whoever reaches its port runs code there",
            hint="start it with RAY_AUTH_MODE=token, or accept this by --insecure")
    if not is_open and takes_token != [True]:
        fault = "is wrong" if takes_token else "is missing"
        raise Unauthenticated(f"the cluster at {address} asks for a token, which {fault} here", hint=HINT_OF_TOKENS)
    return "disabled" if is_open else "token"


def check_port(address: str) -> None:
    """Raises Unavailable where nothing listens. Ray itself tries for half a minute."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_SECONDS).close()
    except OSError as error:
        raise Unavailable(f"no cluster at {address}: {error}", hint="`ray start --head` prints its address") from None


def takes_call(address: str, mode: str) -> bool:
    """Return whether the cluster takes a call of a process in this mode. Raises Unavailable without an answer."""
    command = [sys.executable, "-P", "-c", _PROBE, address]
    try:
        probe = subprocess.run(command, env={**os.environ, "RAY_AUTH_MODE": mode},  # noqa: S603 - our own text
                               capture_output=True, text=True, check=False, timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"the program at {address} does not answer as a cluster within {PROBE_SECONDS} s") from None
    if probe.returncode not in (0, _REFUSED_STATUS):
        raise Unavailable(f"the program at {address} does not answer as a cluster: {last_line(probe.stderr)}")
    return probe.returncode == 0


def has_token() -> bool:
    if any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")):
        return True
    return (Path.home() / TOKEN_FILE).exists()


def last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:500] if lines else "no reason"
