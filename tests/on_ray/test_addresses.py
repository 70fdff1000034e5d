"""Addresses of clusters, and the errors of a process that cannot connect. No cluster starts."""

from __future__ import annotations

import socket

import pytest
from heald.errors import InvalidArgument, PermissionDenied, Unavailable
from heald_ray.connection import check_address, connect


@pytest.mark.parametrize("address", ["local", "10.0.0.1:6379", "head.example.org:1", "[::1]:6379"])
def test_local_and_host_with_port_are_addresses(address):
    assert check_address(address) == address


@pytest.mark.parametrize("address", ["", "auto", "10.0.0.1", "host:0", "host:65536", "host:-1", "host:6379 x", "a b:1",
                                     "http://host:6379", ":6379", "LOCAL", "host:6379\n", "host:\u0661"])
def test_another_form_is_no_address(address):
    with pytest.raises(InvalidArgument, match="is no address of a cluster"):
        check_address(address)


def test_an_address_of_ray_client_is_refused_with_the_reason():
    with pytest.raises(InvalidArgument, match="Ray Client, which is another service on another port"):
        connect("ray://10.0.0.1:10001")


def test_options_of_a_new_cluster_are_refused_for_a_running_one():
    with pytest.raises(InvalidArgument, match="are for a cluster that starts here"):
        connect("10.0.0.1:6379", cpus=2)


def test_an_environment_that_turns_tokens_off_is_refused(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(PermissionDenied, match="--insecure"):
        connect("local")


def test_a_port_on_which_nothing_listens_is_unavailable_at_once(monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_AUTH_MODE"):
        monkeypatch.setenv(name, {"RAY_AUTH_MODE": "token"}.get(name, "0"))
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(Unavailable, match="no cluster at"):
            connect(f"127.0.0.1:{held.getsockname()[1]}")
    assert not ray.is_initialized()
