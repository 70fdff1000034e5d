"""Deadlines and cancellation reach every form of a run: models, compiled models, callables and host programs."""

from __future__ import annotations

import threading
from contextlib import closing

import heald
import numpy as np
import pytest
from builders.control_flow import function, loop
from builders.graphs import FLOAT, node, placeholder
from builders.programs import Body, program
from heald.errors import Cancelled, DeadlineExceeded, InvalidArgument, NotFound
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.session.ahead_of_time import compile_model
from heald.runtime.values import dtypes
from plugins_for_tests import plugin

SHORT = heald.RunOptions(timeout=0.02)
X, P = placeholder("x", ()), placeholder("p", (), dtypes.bool_)
GOES_ON = function("goes_on", "p:bool_ a", [], {"go": "p"}, results="go:bool_")
TURN = function("turn", "p:bool_ a", [node("n", "Neg", "a")], {"p": "p", "a": "n:y:0"}, results="p:bool_")
TYPES = {"component_types": (FLOAT,)}
ENDLESS = {  # graphs whose output y never comes, for p = True
    "a loop": Graph([X, P, loop("w", "goes_on", "turn", "p", "x", arguments="p:bool_ a"), node("y", "Identity", "w:1")],
                    [GOES_ON, TURN]),
    "an empty queue": Graph([X, P, Node("q", "FIFOQueueV2", attrs=TYPES),
                             Node("d", "QueueDequeueV2", ["q"], attrs=TYPES), node("y", "AddV2", "d", "x"),
                             Node("same", "Identity", ["p"], attrs={"T": dtypes.bool_})]),
}


@pytest.fixture(params=ENDLESS)
def graph(request):
    return ENDLESS[request.param]


@pytest.fixture(params=["graph", "signature", "compiled", "callable"])
def call(request, graph, tmp_path):
    """A function of x, p and options that never returns by itself."""
    heald.graphdef.dump(graph, tmp_path / "m.pb")
    if request.param == "compiled":
        compiled = compile_model(tmp_path / "m.pb", outputs=["y"], inputs=dict.fromkeys(needed_feeds(graph), ()))
        heald.bef.dump(compiled, tmp_path / "m.bef")
        model = heald.load(tmp_path / "m.bef")
    else:
        model = heald.load(tmp_path / "m.pb", inputs=needed_feeds(graph), outputs=["y"])
    if request.param == "callable":
        step = model.session.make_callable("y", needed_feeds(graph))
        return lambda options: step(*values(graph).values(), options=options)
    return lambda options: model(values(graph), options=options)


def needed_feeds(graph):
    return ["p", "x"] if "w" in graph else ["x"]


def values(graph):
    return {name: {"p": np.bool_(True), "x": np.float32(1)}[name] for name in needed_feeds(graph)}


def test_a_run_ends_at_its_deadline(call):
    for _ in range(2):
        with pytest.raises(DeadlineExceeded, match="timeout of 0.02 s"):
            call(SHORT)


def test_a_token_ends_a_run(call):
    token, errors = heald.CancelToken(), []

    def run():
        try:
            call(heald.RunOptions(cancel=token))
        except Cancelled as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    token.cancel()
    thread.join(20)
    assert len(errors) == 1
    with pytest.raises(Cancelled):
        call(heald.RunOptions(cancel=token))


@pytest.mark.parametrize(("options", "message"), [
    (heald.RunOptions(timeout=-1), "RunOptions.timeout is -1.0 s"),
    (heald.RunOptions(timeout="soon"), "RunOptions.timeout is a number"),
    (heald.RunOptions(cancel=3), "RunOptions.cancel is a CancelToken"),
    (heald.RunOptions(work_queue=3), "RunOptions.work_queue is a name")])
def test_options_that_do_not_fit_are_refused(call, options, message):
    with pytest.raises(InvalidArgument, match=message):
        call(options)


def test_a_queue_that_is_not_configured_is_refused(call):
    with pytest.raises(NotFound, match="night"):
        call(heald.RunOptions(work_queue="night"))


@pytest.fixture(params=["loaded", "compiled"])
def model(request, tmp_path):
    """y = -x of an input that is called options."""
    heald.graphdef.dump(Graph([placeholder("options", (2,)), node("y", "Neg", "options")]), tmp_path / "m.pb")
    if request.param == "loaded":
        return heald.load(tmp_path / "m.pb")
    heald.bef.dump(compile_model(tmp_path / "m.pb"), tmp_path / "m.bef")
    return heald.load(tmp_path / "m.bef")


def test_an_input_may_be_called_options(model):
    x = np.float32([1, 2])
    ample = heald.RunOptions(timeout=60)
    for outputs in (model(options=x), model(x, options=ample), model({"options": x}, options=ample), model([1, 2])):
        assert outputs.tolist() == [-1, -2]


def test_time_for_the_preparation_is_limited_too(model):
    with pytest.raises(DeadlineExceeded):
        model([1, 2], options=heald.RunOptions(timeout=0))
    assert model([1, 2], options=heald.RunOptions(timeout=60)).tolist() == [-1, -2]
    assert model([1, 2]).tolist() == [-1, -2]


@pytest.mark.parametrize("options", [heald.RunOptions(trace=True), heald.RunOptions(partition_graphs=True)])
def test_a_call_that_returns_no_records_refuses_to_make_them(model, options):
    with pytest.raises(InvalidArgument, match="returns no trace"):
        model([1, 2], options=options)


def test_options_of_another_type_are_no_options(tmp_path):
    heald.graphdef.dump(Graph([placeholder("x", (2,)), node("y", "Neg", "x")]), tmp_path / "m.pb")
    with pytest.raises(InvalidArgument, match="no input 'options'"):
        heald.load(tmp_path / "m.pb")([1, 2], options={"timeout": 2})


def endless_while():
    b, body = Body(), Body("i32")
    yes = b("tfrt.constant.i1", results="i1", value=True)
    (result,) = b("tfrt.while", yes, b.constant(0), results=("i32",), functions=("body",))
    return program(b.function("main", result),
                   body.function("body", 0, body("tfrt.constant.i1", results="i1", value=True)))


def blocked_program():
    """A program whose kernel waits for a value that never comes, without any thread."""
    b = Body()
    return program(b.function("main", b("tfrt.add.i32", b("test.gated"), b.constant(1))))


@pytest.mark.parametrize("queue", ["multi_threaded", "single_threaded", "seeded"])
@pytest.mark.parametrize("make", [endless_while, blocked_program])
def test_a_host_program_ends_at_its_deadline(make, queue):
    with closing(heald.HostContext(config={"plugins": {"load": [plugin("host_kernels")]}}, work_queue=queue)) as host:
        request = heald.RequestContext(host)
        (result,) = make().run("main", request=request, options=SHORT)
        assert host.await_values([result], timeout=20)
        assert isinstance(result.error, DeadlineExceeded)
        assert not request.is_cancelled


def test_a_host_program_takes_a_token():
    with closing(heald.HostContext(config={"plugins": {"load": [plugin("host_kernels")]}})) as host:
        token = heald.CancelToken()
        (result,) = blocked_program().run("main", request=heald.RequestContext(host),
                                          options=heald.RunOptions(cancel=token))
        token.cancel()
        assert host.await_values([result], timeout=20)
        assert isinstance(result.error, Cancelled)


def test_a_host_program_refuses_options_that_it_cannot_meet():
    for options, message in ((heald.RunOptions(timeout=-1), "timeout is -1"), (3, "options= is int"),
                             (heald.RunOptions(trace=True), "returns no trace")):
        with pytest.raises(InvalidArgument, match=message):
            endless_while().run("main", options=options)
