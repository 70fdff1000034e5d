"""Ports that several processes listen on, by SO_REUSEPORT: the system gives each new connection to one of them.

Only processes of one user can share a port so. The parent first binds it without sharing: a second server on the port
is an error, and not a silent partner.
"""

from __future__ import annotations

import socket
import sys

from heald.errors import InvalidArgument, Unimplemented, of_system

BACKLOG = 2048


def bind(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """A bound socket that does not listen. Raises the typed error of an address that cannot be had."""
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise InvalidArgument(f"'{host}' is no address of this machine: {error}") from None
    family, kind, protocol, _, address = infos[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise of_system(error, f"{host}:{port}") from error
    bound.setblocking(False)
    return bound


def listen(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """A listening socket. Raises as `bind`."""
    listener = bind(host, port, is_shared=is_shared)
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise of_system(error, f"{host}:{port}") from error
    return listener


def reserve(host: str, port: int) -> socket.socket:
    """A socket that holds a free port for workers. Raises as `bind`."""
    listen(host, port).close()  # a listener that shares the port refuses this one alone
    return bind(host, port, is_shared=True)


def check_sharing() -> None:
    """Raises Unimplemented on a system whose ports are not spread over processes."""
    if not sys.platform.startswith("linux"):
        raise Unimplemented("several workers need Linux, which spreads a port's connections over processes",
                            hint="leave --workers out, and start a server on each of several ports")
