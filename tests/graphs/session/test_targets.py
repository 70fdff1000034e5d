"""The prefix of a session's target chooses the plugin that makes the session."""

from __future__ import annotations

import inspect
from itertools import permutations

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from builders.transfers import recv, send
from heald.api import SessionInterface
from heald.errors import InvalidArgument, NotFound, PluginError, Unavailable
from heald.runtime.contract.hookspecs import Contribution, SessionRegistrar
from heald.runtime.contract.session import SESSION_METHODS, SessionFactory, SessionRegistry
from heald.runtime.service.runtime import Runtime, load_config
from hypothesis import given
from hypothesis import strategies as st
from plugins_for_tests import plugin

CONFIG = {"plugins": {"load": [plugin("sessions")]}}
X = np.float32([1, 2])
RIVAL = """
from heald.api import hookimpl
HEALD_API = (1, 0)
@hookimpl
def heald_sessions(registry):
    registry.add("told", print)
    registry.add("local", print)
"""


def negation():
    return graph(placeholder("x"), node("y", "Neg", "x"))


@pytest.mark.parametrize("target", ["", "local"])
def test_a_local_target_is_a_session_of_this_process(target):
    with heald.Session(negation(), target=target) as session:
        assert type(session) is heald.Session
        assert session.run("y", {"x": X}).tolist() == [-1, -2]


@pytest.mark.parametrize("target", ["told", "told://a:1/b"])
def test_a_session_is_what_the_factory_of_the_prefix_returns(target):
    with heald.Session(negation(), CONFIG, target=target, device="CPU:0") as session:
        from plugin_of_sessions import Told, calls
        calls.clear()
        assert isinstance(session, Told)
        assert session.run("y", {"x": X}).tolist() == [-1, -2]
        assert session.make_callable("y", ["x"])(X).tolist() == [-1, -2]
        assert session.placement()["y"].device == "CPU:0"
    assert calls == [(target, name) for name in ("run", "make_callable", "placement", "close")]


def test_a_factory_may_return_core_s_session_with_a_rendezvous_of_its_own():
    """Python calls `__init__` of that session again, which then changes nothing."""
    with heald.Session(graph(placeholder("x"), send("s", "t", "x")), CONFIG, target="meet://all") as session:
        assert type(session) is heald.Session
        session.run([], {"x": X}, targets=["s"])
    with heald.Session(graph(recv("r", "t"), node("y", "Neg", "r")), CONFIG, target="meet") as other:
        assert other.run("y").tolist() == [-1, -2]


@pytest.mark.parametrize("target", ["told", "meet"])
def test_a_session_that_a_factory_makes_is_local_whatever_target_config_has(target):
    with heald.Session(negation(), CONFIG | {"cluster": {"target": target}}) as session:
        assert session.run("y", {"x": X}).tolist() == [-1, -2]


@pytest.mark.parametrize(("target", "error", "message"), [
    ("tolt://a", NotFound,
     "no plugin serves the target 'tolt://a'; prefixes: local, meet, ray, told; did you mean told?"),
    ("zz", NotFound, "install a plugin that serves it; `heald plugins` lists those that are here"),
    ("local://a", NotFound, "no plugin serves the target 'local://a'"), ("://a", NotFound, "no plugin serves"),
    (3, InvalidArgument, "target is a int, expected a text"),
    ("told://half", PluginError, "the session factory 'told' of plugin sessions returned object, which has no method "
     "run, make_callable, extend, "),
    ("told://fault", PluginError, "session factory 'told' of plugin sessions raised ValueError: boom"),
    ("told://nowhere", Unavailable, "nothing answers at 'nowhere'"),
])
def test_a_target_that_cannot_be_used_is_an_error_that_says_the_way_out(target, error, message):
    with pytest.raises(error) as caught:
        heald.Session(negation(), CONFIG, target=target)
    assert message in str(caught.value)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"graph": 3}, "Session takes a Graph, not int"), ({"device": 3}, "device is a int; give a name"),
    ({"rendezvous": print}, "a session of target 'told' takes no rendezvous"),
])
def test_arguments_are_checked_before_a_factory_sees_them(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        heald.Session(**{"graph": negation(), "config": CONFIG, "target": "told"} | arguments)


def test_a_subclass_of_session_runs_in_this_process():
    class Mine(heald.Session):
        pass

    assert Mine(negation()).run("y", {"x": X}).tolist() == [-1, -2]
    with pytest.raises(InvalidArgument, match="Mine is a subclass of Session, whose target is ''"):
        Mine(negation(), CONFIG, target="told")


def test_two_plugins_with_one_prefix_are_a_conflict_and_neither_is_used(tmp_path):
    (tmp_path / "rival_sessions.py").write_text(RIVAL, "utf-8")
    config = {"plugins": {"load": [plugin("sessions"), str(tmp_path / "rival_sessions.py")]}}
    loaded = Runtime(load_config(config))
    ours, rival = (next(r for r in loaded.plugins.records() if r.id == plugin_id)
                   for plugin_id in ("sessions", "rival_sessions"))
    assert (ours.status, rival.status) == ("conflict", "conflict")
    assert ours.reason == "session target 'told' is brought by plugin rival_sessions too: none is used"
    assert ours.registered["session targets"] == ["meet", "told"]
    assert "session target 'local' is core's: the plugin's is not used" in rival.reason
    assert "set [plugins] block = ['rival_sessions'] or ['sessions']" in rival.remedy
    with pytest.raises(PluginError, match="'told' is brought by plugins rival_sessions and sessions: none of them is"):
        heald.Session(negation(), loaded, target="told")
    heald.Session(negation(), loaded, target="meet").close()


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "local"]), st.sampled_from("xyz")), max_size=4, unique=True))
def test_the_order_of_plugins_decides_nothing(pairs):
    outcomes = set()
    for order in permutations(pairs):
        registry = SessionRegistry()
        for name, plugin_id in order:
            registry.add(SessionFactory(name, print, plugin_id))
        outcomes.add((tuple(registry.usable()), frozenset(registry.conflicts())))
    assert len(outcomes) == 1


@pytest.mark.parametrize(("prefix", "factory", "message"), [
    ("Ray", print, "session target 'Ray' must be written in small letters"),
    ("", print, "session target '' must be written in small letters"),
    ("a:", print, "must be written in small letters"), ("a", 3, "session target 'a' has the factory 3"),
    ("a", "module", "session target 'a' has the factory 'module'; give a function, or its place"),
])
def test_a_registration_that_cannot_work_is_refused(prefix, factory, message):
    with pytest.raises(PluginError, match=message):
        SessionRegistrar(Contribution("x")).add(prefix, factory)


def test_a_plugin_registers_a_prefix_once():
    registrar = SessionRegistrar(Contribution("x"))
    registrar.add("a", print)
    with pytest.raises(PluginError, match="session target 'a' is registered twice"):
        registrar.add("a", len)


def test_core_s_session_has_the_methods_of_the_contract_with_their_parameters():
    assert set(SESSION_METHODS) == {name for name in vars(SessionInterface)
                                    if inspect.isfunction(vars(SessionInterface)[name])
                                    and name not in ("__init__", "__subclasshook__")} | {"__enter__", "__exit__"}
    for name in SESSION_METHODS:
        theirs = inspect.signature(getattr(SessionInterface, name)).parameters
        assert [*inspect.signature(getattr(heald.Session, name)).parameters] == [*theirs]
