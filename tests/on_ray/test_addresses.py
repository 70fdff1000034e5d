"""Addresses of clusters, and the errors of a process that cannot connect. No cluster starts."""

from __future__ import annotations

import socket

import heald_ray
import pytest
from heald.errors import FailedPrecondition, InvalidArgument, PermissionDenied, Unauthenticated, Unavailable
from heald_ray import address_probe
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


@pytest.fixture
def ray_init(monkeypatch):
    """Ray with an init that starts nothing: a function from an exception that it raises to the calls of it."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    for name, value in {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 32}.items():
        monkeypatch.setenv(name, value)

    def replace(error=None):
        calls = []

        def init(**options):
            calls.append(options)
            if error is not None:
                raise error

        monkeypatch.setattr(ray, "init", init)
        return calls

    return replace


@pytest.mark.parametrize(("options", "expected"), [
    ({}, (None, None, {})), ({"cpus": 2}, (2, None, {})),
    ({"resources": {"GPU": 1, "OPENCL": 2}}, (None, 1, {"OPENCL": 2.0})),
    ({"resources": {"CPU": 3}}, (3, None, {})), ({"cpus": 1, "resources": {"GPU": 0.5}}, (1, 0.5, {})),
])
def test_a_cluster_that_starts_here_has_the_resources_of_the_call(ray_init, options, expected):
    calls = ray_init()
    connect("local", **options)
    assert tuple(calls[0][name] for name in ("num_cpus", "num_gpus", "resources")) == expected


@pytest.mark.parametrize("options", [{"cpus": 0}, {"cpus": -1}, {"resources": {"GPU": -1}}, {"cpus": "two"},
                                     {"resources": {"OPENCL": float("nan")}}, {"resources": {"X": None}}])
def test_an_amount_that_no_node_has_is_refused(ray_init, options):
    with pytest.raises(InvalidArgument, match="has the amount"):
        connect("local", **options)


@pytest.mark.parametrize(("text", "kind", "words"), [
    ("Version mismatch: The cluster was started with:\n    Ray: 2.59.0\n    Python: 3.12.1\n"
     "This process on node 1 was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n",
     FailedPrecondition, "Ray: 2.59.0 Python: 3.12.1"),
    ("InvalidAuthToken: wrong", Unauthenticated, "refused this caller"),
    ("a first line\nthe last line", Unavailable, "the last line"),
])
def test_errors_of_ray_are_typed_and_keep_their_reason(ray_init, text, kind, words):
    ray_init(RuntimeError(text))
    with pytest.raises(kind, match=words):
        connect("local")


@pytest.mark.parametrize("call", [
    lambda: heald_ray.predictor_arguments("model.pb"), lambda: heald_ray.check_resources({"CPU": 1}),
    lambda: heald_ray.predictor_arguments("model.pb", model_on_workers=True),
])
def test_a_call_without_a_connection_is_refused_before_ray_chooses_a_cluster(call):
    with pytest.raises(FailedPrecondition, match="connected to no cluster"):
        call()


@pytest.mark.parametrize(("is_open", "has_token", "takes_token", "insecure", "result"), [
    (True, False, None, True, "disabled"), (True, True, True, True, "disabled"),
    (True, True, True, False, PermissionDenied), (True, False, None, False, PermissionDenied),
    (False, True, True, False, "token"), (False, True, True, True, "token"),
    (False, True, False, False, Unauthenticated), (False, False, None, True, Unauthenticated),
])
def test_the_mode_of_a_cluster_is_asked_for(ray_init, monkeypatch, is_open, has_token, takes_token, insecure, result):
    answers = {"disabled": is_open, "token": takes_token}
    for name, answer in {"check_port": None, "has_token": has_token}.items():
        monkeypatch.setattr(address_probe, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(address_probe, "takes_call", lambda _, mode: answers[mode])
    calls = ray_init()
    if isinstance(result, type):
        with pytest.raises(result):
            connect("10.0.0.1:6379", insecure=insecure)
        assert not calls
    else:
        connect("10.0.0.1:6379", insecure=insecure)
        assert [call["address"] for call in calls] == ["10.0.0.1:6379"]
        assert address_probe.mode_of_cluster("10.0.0.1:6379", insecure=insecure) == result


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


@pytest.mark.parametrize("insecure", [False, True])
def test_a_program_that_is_no_cluster_is_unavailable_within_a_bound(ray_init, monkeypatch, insecure):
    ray_init()
    monkeypatch.setattr(address_probe, "PROBE_SECONDS", 0.5)
    with (socket.create_server(("127.0.0.1", 0)) as silent,  # it takes connections and answers none
          pytest.raises(Unavailable, match="does not answer as a cluster within 0.5 s")):
        connect(f"127.0.0.1:{silent.getsockname()[1]}", insecure=insecure)
