"""Sessions and the process: its end, Ctrl-C, fork and spawn."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from plugins_for_tests import plugin

PATHS = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
ENOUGH = 10.0  # seconds; a process that takes longer hangs
PREAMBLE = f"""
import os, signal, sys, threading, time
import numpy as np
import heald
from builders.graphs import graph, node, placeholder
from heald.errors import HealdError

signal.signal(signal.SIGINT, signal.default_int_handler)  # which the background jobs of a shell ignore
CONFIG = {{"plugins": {{"load": [{plugin("tests")!r}]}}}}
X = np.float32([1, 2, 3])
OPS = "Add", "Now", "Later", "MuchLater", "Queued", "Block", "Poll"

def make(config={{}}):
    nodes = [placeholder("x", (3,))]
    for op in OPS:
        nodes += node(op, f"Test>{{op}}", "x", "x"), node(f"{{op}}_x", "Test>Add", op, "x")
    return heald.Session(graph(*nodes), CONFIG | config)

def said(session, op):
    try:
        return session.run(f"{{op}}_x", {{"x": X}}).tolist()
    except HealdError as error:
        return type(error).__name__ + (": forked" if "the process that forked" in error.message else f": {{error}}")

session = make()
from plugin_of_tests import live

def wait_until(condition):
    end = time.monotonic() + 5
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)

def in_background(work, *args):
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread
"""
SUM = "[3.0, 6.0, 9.0]"


@pytest.fixture
def start():
    """`start(code)`: a fresh interpreter that runs `code`; warnings are errors in it."""
    environ = os.environ | {"PYTHONPATH": PATHS}
    with contextlib.ExitStack() as processes:
        def start_process(code):
            process = subprocess.Popen([sys.executable, "-W", "error", "-c", PREAMBLE + textwrap.dedent(code)],
                                       env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
            processes.enter_context(process)
            processes.callback(process.kill)  # before it is waited for
            return process

        yield start_process


def output_of(process):
    """The lines that a process printed, after it has ended well and without complaint."""
    said, complaint = process.communicate(timeout=ENOUGH)
    assert (complaint, process.returncode) == (b"", 0)
    return said.decode().splitlines()


def line(process):
    """The next line that it prints, and nothing of those behind it: they are for `output_of`."""
    return process.stdout.readline().decode()


ENDS = {
    "a run waits": "in_background(session.run, 'Block_x', {'x': X}); wait_until(lambda: live)",
    "a kernel runs": "in_background(session.run, 'Poll_x', {'x': X}); time.sleep(0.03)",
    "a callable lives": "step = session.make_callable('Add_x', ['x']); step(X)",
    "the queue has threads": "session.run('Queued_x', {'x': X})",
    "a value is to come": "in_background(session.run, 'MuchLater_x', {'x': X}); wait_until(lambda: live)",
    "a timer is about to run it": "timer = threading.Timer(1000, session.run, ('Add_x', {'x': X}))\n"
                                  "timer.daemon = True; timer.start()",
    "the session was closed": "session.run('Queued_x', {'x': X}); session.close()",
}


@pytest.mark.parametrize("leave", [*ENDS, "all of it"])
def test_a_process_ends_at_once_and_silently_whatever_its_sessions_do(start, leave):
    open_ones = [code for name, code in ENDS.items() if name != "the session was closed"]
    left = open_ones if leave == "all of it" else [ENDS[leave]]
    process = start("\n".join([*left, "print('end', flush=True)"]))
    assert line(process) == "end\n"
    last = time.monotonic()
    output_of(process)
    assert time.monotonic() - last < 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("op", ["Block", "Poll"])
def test_ctrl_c_ends_the_run_of_the_main_thread_and_no_other(start, op):
    process = start(f"""
        others, over = [], threading.Event()

        def run_until_over():
            while not over.is_set():
                others.append(said(session, "MuchLater"))
            others.append(said(session, "MuchLater"))

        other = in_background(run_until_over)
        wait_until(lambda: others)
        print("waiting", flush=True)
        try:
            session.run("{op}_x", {{"x": X}})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        over.set()
        other.join(5)
        print(set(map(str, others)), said(session, "Add"), said(session, "Later"))
        wait_until(lambda: not live)
        print(len(live), "kernels were not told to end")
    """)
    assert line(process) == "waiting\n"
    time.sleep(0.05)  # it begins to wait
    interrupt_time = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert line(process) == "interrupted\n"
    assert time.monotonic() - interrupt_time < 1
    assert output_of(process) == [f"{{'{SUM}'}} {SUM} {SUM}", "0 kernels were not told to end"]


UNENDING = {
    "a while loop": """
        from builders.control_flow import function, loop, program
        from builders.graphs import const
        test = function("test", "i", [const("most", 2), node("less", "Less", "i", "most:output:0")], {"go": "less:z:0"},
                        results="go:bool_")
        body = function("body", "i", [node("neg", "Neg", "i")], {"i": "neg:y:0"})
        stuck = program([placeholder("i", ()), placeholder("j", ()), loop("w", "test", "body", "i"),
                         node("y", "Neg", "w"), node("n", "Neg", "j")], test, body)
    """,
    "a while loop of asynchronous kernels": """
        from builders.control_flow import function, loop, program
        from builders.graphs import const
        test = function("test", "i", [const("most", 2), node("less", "Less", "i", "most:output:0")], {"go": "less:z:0"},
                        results="go:bool_")
        body = function("body", "i", [node("zero", "Sub", "i", "i"), node("same", "Test>Later", "i", "zero:z:0")],
                        {"i": "same:z:0"})
        stuck = program([placeholder("i", ()), placeholder("j", ()), loop("w", "test", "body", "i"),
                         node("y", "Neg", "w"), node("n", "Neg", "j")], test, body)
    """,
    "a Recv without a Send": """
        from builders.transfers import recv
        stuck = graph(placeholder("i", ()), placeholder("j", ()), recv("r", "t"), node("y", "AddV2", "r", "i"),
                      node("n", "Neg", "j"))
    """,
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("graph", UNENDING.values(), ids=UNENDING)
def test_ctrl_c_ends_what_would_never_end_and_the_session_goes_on(start, graph):
    process = start(textwrap.dedent(graph) + textwrap.dedent("""
        unending = heald.Session(stuck, CONFIG)
        try:
            unending.run("y", {"i": 1}, options=heald.RunOptions(timeout=0.1))  # which imports and compiles
        except heald.errors.DeadlineExceeded:
            pass
        others, over = [], threading.Event()

        def run_until_over():
            while not over.is_set():
                others.append(unending.run("n", {"j": 1}).item())
            others.append(unending.run("n", {"j": 1}).item())

        other = in_background(run_until_over)
        wait_until(lambda: others)
        print("waiting", flush=True)
        try:
            unending.run("y", {"i": 1})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        over.set()
        other.join(5)
        print(other.is_alive(), set(others), unending.run("n", {"j": 2}))
    """))
    assert line(process) == "waiting\n"
    time.sleep(0.1)  # it begins to run
    interrupt_time = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert line(process) == "interrupted\n"
    assert time.monotonic() - interrupt_time < 1
    assert output_of(process) == ["False {-1.0} -2.0"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("waits", [True, False], ids=["waits for a helper", "runs a kernel"])
def test_ctrl_c_ends_a_run_in_pieces_and_what_has_begun_ends_soon(start, waits):
    process = start(f"""
        from heald.runtime.linker.link import link
        from heald.runtime.executor.task_partition import TaskPartition
        from heald.runtime.executor.parallel_schedule import dependencies, schedule_of_partition
        from heald.runtime.service.runtime import runtime
        from heald.runtime.executor.step import Step

        host = runtime(CONFIG | {{"work_queue": {{"threads": 2}}}}).host
        nodes = [placeholder("x", (3,)), *(node(f"n{{i}}", "Test>Hold", "x", "x") for i in range(2)),
                 node("m", "Test>Add", "n0", "n1")]
        program = heald.Session(graph(*nodes), CONFIG).prepare("m", "x").program
        executable = link(program, host, program.functions["main"].arg_types)
        needs = dependencies(executable.layout)
        pieces = TaskPartition.of([[i] for i in range(len(needs))], needs)
        flat = executable.autotuner.schedule
        executable.autotuner.schedule = schedule_of_partition(executable.layout, host, flat, pieces)
        import plugin_of_tests

        plugin_of_tests.held = {"worker" if waits else "driver"!r}
        print("running", flush=True)
        try:
            executable.run([X], Step(host))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        plugin_of_tests.release.set()
        print(host.work_queue.quiesce(5), executable.run([X], Step(host))[0].tolist())
    """)
    assert line(process) == "running\n"
    time.sleep(0.1)
    interrupt_time = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert line(process) == "interrupted\n"
    assert time.monotonic() - interrupt_time < 1
    assert output_of(process) == ["True [4.0, 8.0, 12.0]"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("busy", [False, True])
def test_a_forked_child_runs_what_needs_no_threads_and_is_refused_the_rest_at_once(start, busy):
    process = start(f"""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12, of forks beside threads: that is the point

        def check(who):
            began = time.monotonic()
            for op in ("Add", "Queued", "MuchLater"):
                print(who, op, said(session, op), flush=True)
            print(who, "took less than a second:", time.monotonic() - began < 1, flush=True)

        check("parent")
        if {busy}:
            in_background(session.run, "Block_x", {{"x": X}})
            wait_until(lambda: live)
        child = os.fork()
        if not child:
            check("child")
            session.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        check("parent")
    """)
    parent = [f"parent {op} {SUM}" for op in ("Add", "Queued", "MuchLater")]
    child = [f"child Add {SUM}", *(f"child {op} FailedPrecondition: forked" for op in ("Queued", "MuchLater"))]
    in_time = " took less than a second: True"
    assert output_of(process) == [*parent, "parent" + in_time, *child, "child" + in_time, *parent, "parent" + in_time]


USES_OF_A_DEVICE = {
    "a callable": "step(X)",
    "other shapes": "step(np.float32([1, 2]))",
    "another step": "session.run('z', {'x': X})",
    "a new session": "heald.Session(nodes, STRICT).run('y', {'x': X})",
    "open": "heald.default_host().open('SERVED:0')",
    "open by an own host": "heald.HostContext(config=STRICT).open('SERVED:0')",
    "an eager op": "heald.execute('Neg', X, device='SERVED:0').numpy()",
    "an eager op on a value there": "heald.execute('Neg', handle).numpy()",
    "a value there": "handle.numpy()",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_gets_the_error_of_every_device_outside_host_memory_at_once(start):
    process = start(f"""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12, of forks beside threads: that is the point
        heald.register({plugin("served")!r})
        STRICT = {{"plugins": {{"load": [{plugin("served")!r}]}}, "placement": {{"fallback": "error"}}}}
        nodes = graph(placeholder("x", (None,)), node("y", "Neg", "x", device="SERVED:0"),
                      node("z", "Neg", "y", device="SERVED:0"), node("h", "Neg", "x"))
        session = heald.Session(nodes)
        step = session.make_callable("y", ["x"])
        handle = heald.execute("Neg", X, device="SERVED:0")
        print(step(X).tolist(), handle.numpy().tolist(), flush=True)
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            print(step(X).tolist(), flush=True)
            sys.exit()
        for use in {list(USES_OF_A_DEVICE.values())!r}:
            try:
                print(eval(use))
            except HealdError as error:
                print("forked" if "the process that forked this one" in str(error) else error, flush=True)
        print(session.run("h", {{"x": X}}).tolist(), flush=True)
        del session, step, handle
    """)
    negative = "[-1.0, -2.0, -3.0]"
    assert output_of(process) == [f"{negative} {negative}", *["forked"] * len(USES_OF_A_DEVICE), negative, negative]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_scans_device_types_that_its_parent_has_not_used(start):
    process = start(f"""
        heald.register({plugin("served")!r})
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            sys.exit()
        print(heald.execute("Neg", X, device="SERVED:0").numpy().tolist(), flush=True)
    """)
    assert output_of(process) == ["[-1.0, -2.0, -3.0]"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_session_that_has_not_run_before_a_fork_works_in_parent_and_child(start):
    process = start("""
        child = os.fork()
        results = [said(session, op) for op in ("Add", "Later", "Queued")]
        if child:
            assert os.waitpid(child, 0)[1] == 0
        print(*results, flush=True)
    """)
    assert output_of(process) == [f"{SUM} {SUM} {SUM}"] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("allocator", ["plain", "counting"])
def test_a_child_forked_while_other_threads_are_in_the_session_is_served_or_refused_at_once(start, allocator):
    process = start(f"""
        import faulthandler, itertools, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12, of forks beside threads: that is the point

        session = make({{"allocator": {{"name": "{allocator}"}}}})
        counts = itertools.cycle(range(1, 300))  # more combinations of fetches than are kept

        def run_timed():
            return session.run("Now_x", {{"x": X}}, options=heald.RunOptions(timeout=10)).tolist()

        def run_anew(*fetches):
            return session.run(fetches, {{"x": X}})[-1].tolist()

        def for_ever(work):
            while True:
                work()

        said(session, "Queued")
        for work in (lambda: said(session, "Add"), lambda: said(session, "Queued"), run_timed,
                     lambda: run_anew(*["Add_x"] * next(counts))):
            in_background(for_ever, work)
        for _ in range(15):
            child = os.fork()
            if not child:
                faulthandler.dump_traceback_later(3, exit=True)
                runs = said(session, "Add"), said(session, "Queued"), run_timed(), run_anew("Now", "Add_x")
                session.close()
                if runs != ({SUM}, "FailedPrecondition: forked", {SUM}, {SUM}):
                    os.write(2, str(runs).encode())
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        print("every child was served", flush=True)
        os._exit(0)
    """)
    assert output_of(process) == ["every child was served"]


def test_a_spawned_process_makes_its_own_session(tmp_path):
    (tmp_path / "program.py").write_text(PREAMBLE + textwrap.dedent("""
        import multiprocessing

        def work(op):
            return said(session, op)

        if __name__ == "__main__":
            here = said(session, "Queued")
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(here, *pool.map(work, ["Add", "Queued"]), said(session, "Queued"))
    """))
    done = subprocess.run([sys.executable, "-W", "error", tmp_path / "program.py"], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": PATHS}, timeout=ENOUGH, check=False)
    assert (done.stderr, done.stdout) == ("", " ".join([SUM] * 4) + "\n")


QUEUE = """
    from heald.runtime.values import dtypes
    from heald.graphs.graph.node import Node

    of = {"component_types": (dtypes.int32,)}
    nodes = [Node("q", "FIFOQueueV2", attrs=of), placeholder("n", (), dtypes.int32),
             Node("put", "QueueEnqueueV2", ("q", "n"), attrs={"Tcomponents": (dtypes.int32,)}),
             Node("get", "QueueDequeueV2", ("q",), attrs=of), Node("size", "QueueSizeV2", ("q",))]
    queue = heald.Session(graph(*nodes))

    def put(n):
        queue.run([], {"n": n}, targets=["put"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_ends_the_waiting_for_a_queue_and_leaves_nobody_there(start):
    process = start(QUEUE + """
    put(0)
    queue.run("get")  # which imports and compiles: Ctrl-C in an import of Python's own has complaints of its own
    print("waits", flush=True)
    try:
        queue.run("get")
    except KeyboardInterrupt:
        put(5)
        print(queue.run("size"), queue.run("get"), flush=True)
    """)
    assert line(process) == "waits\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert output_of(process) == ["1 5"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_the_queue_without_those_who_wait_in_the_parent(start):
    process = start(QUEUE + """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12, of forks beside threads: that is the point
    put(0)
    got = [queue.run("get")]
    waiting = in_background(lambda: got.append(queue.run("get")))
    time.sleep(0.3)
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        put(1)
        waiting.join(5)
        print("parent", *got, queue.run("size"), flush=True)
    else:
        put(2)
        print("child", queue.run("size"), queue.run("get"), flush=True)
    """)
    assert output_of(process) == ["child 1 2", "parent 0 1 0"]
