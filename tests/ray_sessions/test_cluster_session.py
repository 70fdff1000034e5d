"""Sessions over several workers, with threads in the place of processes. A graph gives what one process gives."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.thread_cluster import ThreadCluster
from heald.api import Graph, Node
from heald.errors import (
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    HealdError,
    InvalidArgument,
    NotFound,
    Unavailable,
    Unimplemented,
)
from heald.runtime.values import dtypes
from heald_ray.sent_config import pack_config
from heald_ray.session import ClusterSession
from heald_ray.task_graphs import Requests, cut_by_task
from heald_ray.tensor_message import pack_error, pack_tensors, unpack_error, unpack_tensors
from heald_ray.trace_message import merge_traces, pack_trace
from heald_ray.wave_rendezvous import WaveRendezvous
from heald_ray.worker import Worker

T0, T1 = "/job:worker/task:0", "/job:worker/replica:0/task:1/device:CPU:0"
X = np.float32([1, 2, 3])


def session(whole: Graph, **options: object) -> ClusterSession:
    return ClusterSession(whole, ThreadCluster, 2, **options)


def local(whole: Graph) -> heald.Session:
    return heald.Session(whole.replace(nodes=[each.replace(device="") for each in whole]))


def there_and_back() -> Graph:
    return graph(placeholder("x", (None,)), node("y", "Neg", "x", device=T0), node("z", "Exp", "y", device=T1),
                 node("w", "Add", "z", "y", device=T0))


def counter(device: str = T1) -> Graph:
    """A variable on a worker, which a step increases by one."""
    reference = {"dtype": dtypes.float32, "shape": (), "shared_name": "v", "container": ""}
    typed = {"dtype": dtypes.float32}
    return graph(Node("v", "VarHandleOp", attrs=reference, device=device), const("one", 1.0), const("zero", 0.0),
                 Node("init", "AssignVariableOp", ["v", "zero"], attrs=typed),
                 Node("more", "AssignAddVariableOp", ["v", "one"], attrs=typed),
                 Node("value", "ReadVariableOp", ["v", "^more"], attrs=typed),
                 Node("old", "ReadVariableOp", ["v"], attrs=typed),
                 node("double", "Add", "value", "value", device=T0))


def random_variables(rng: random.Random, count: int) -> tuple[list[Node], list[str]]:
    """Variables on two workers, each with an initializer; the names of values that a step reads after it added to."""
    nodes, values = list[Node](), list[str]()
    typed = {"dtype": dtypes.float32}
    for index in range(count):
        reference = {**typed, "shape": (3,), "shared_name": f"v{index}", "container": ""}
        nodes += [Node(f"v{index}", "VarHandleOp", attrs=reference, device=rng.choice([T0, T1])),
                  Node(f"init{index}", "AssignVariableOp", [f"v{index}", "c"], attrs=typed),
                  Node(f"more{index}", "AssignAddVariableOp", [f"v{index}", ["x", *values][-1]], attrs=typed),
                  Node(f"value{index}", "ReadVariableOp", [f"v{index}", f"^more{index}"], attrs=typed)]
        values.append(f"value{index}")
    return nodes, values


def random_graph(seed: int, size: int = 30) -> Graph:
    """A graph on two workers, with control edges, strings, constants and three variables."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    nodes, floats, texts = [placeholder("x", (3,), ), const("c", [1.5, -2, 0.25])], ["x", "c"], []
    variables, values = random_variables(rng, 3)
    nodes += variables
    floats += values
    for index in range(size):
        device = rng.choice(["", T0, T1, "/job:worker/task:1"])
        controls = [f"^{rng.choice(floats)}"] if rng.random() < 0.3 else []
        name, kind = f"n{index}", rng.random()
        if kind < 0.2:
            nodes.append(Node(name, "AsString", [rng.choice(floats), *controls], attrs={"T": dtypes.float32},
                              device=device))
            texts.append(name)
        elif kind < 0.4 and texts:
            nodes.append(Node(name, "StringJoin", [rng.choice(texts), rng.choice(texts)],
                              attrs={"N": 2, "separator": b"|"}, device=device))
            texts.append(name)
        else:
            op = rng.choice(["Add", "Mul", "Sub", "Neg", "Tanh"])
            inputs = [rng.choice(floats) for _ in range(1 if op in ("Neg", "Tanh") else 2)]
            nodes.append(node(name, op, *inputs, *controls, device=device))
            floats.append(name)
    return Graph(nodes)


@pytest.mark.parametrize("seed", range(20))
def test_a_random_graph_gives_the_bits_of_one_process(seed):
    compare_with_one_process(random_graph(seed))


def compare_with_one_process(whole: Graph) -> None:
    fetches = [*(f"value{index}" for index in range(3)), *[each.name for each in whole][-8:]]
    with session(whole) as two, local(whole) as one:
        for opened in (two, one):
            opened.run([], targets=[f"init{index}" for index in range(3)])
        for _ in range(2):  # the variables grow
            ours, theirs = two.run(fetches, {"x": X}), one.run(fetches, {"x": X})
            for mine, other in zip(ours, theirs, strict=True):
                assert (mine.dtype, mine.shape, mine.tolist()) == (other.dtype, other.shape, other.tolist())


def test_a_random_graph_of_more_than_fifty_cuts_gives_the_bits_of_one_process():
    whole = random_graph(20, 160)
    with local(whole) as one:
        assert len(cut_by_task(whole, one.nodes, Requests(2, {}), 2).cuts) >= 50
    compare_with_one_process(whole)


def test_fifty_cut_edges_of_a_wave_are_one_message():
    rows = [node(f"a{i}", "Neg", "x", device=T0) for i in range(50)]
    columns = [node(f"b{i}", "Neg", f"a{i}", device=T1) for i in range(50)]
    whole = graph(placeholder("x", (3,)), *rows, *columns,
                  Node("sum", "AddN", [f"b{i}" for i in range(50)], attrs={"T": dtypes.float32, "N": 50}, device=T0))
    with session(whole) as opened:
        assert opened.messages("sum", ["x"]) == 2
        for run in range(1, 4):
            assert opened.run("sum", {"x": X}).tolist() == (50 * X).tolist()
            assert opened.cluster.posted == {("deliver", 0, 1): run, ("deliver", 1, 0): run}


@pytest.mark.parametrize("hops", [1, 4, 9])
def test_each_hop_of_a_chain_is_a_message(hops):
    chain = [node(f"n{i}", "Neg", f"n{i - 1}" if i else "x", device=(T0, T1)[i % 2]) for i in range(hops + 1)]
    with session(graph(placeholder("x", (3,)), *chain)) as opened:
        assert opened.run(f"n{hops}", {"x": X}).tolist() == ((-1.0) ** (hops + 1) * X).tolist()
        assert opened.cluster.posted.total() == opened.messages(f"n{hops}", ["x"]) == hops


def test_a_feed_in_the_middle_leaves_its_producers_out():
    with session(there_and_back()) as opened:
        assert opened.run("w", {"z": X, "y:0": X}).tolist() == (2 * X).tolist()
        assert opened.messages("w", ["z", "y"]) == 1
        assert opened.run(["z", "x"], {"x": X, "z": X})[1].tolist() == X.tolist()


def test_a_dead_tensor_crosses():
    whole = graph(placeholder("p", (), dtypes.bool_), placeholder("x", (3,)),
                  Node("s", "Switch", ["x", "p"], attrs={"T": dtypes.float32}, device=T0),
                  node("no", "Neg", "s", device=T1), node("yes", "Exp", "s:1", device=T1),
                  node("m", "Merge", "no", "yes", N=2, device=T0))
    with session(whole) as two, local(whole) as one:
        for p in (True, False):
            ours, theirs = (opened.run(["m", "m:1"], {"p": p, "x": X}) for opened in (two, one))
            assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


def test_a_variable_lives_on_its_worker_until_it_is_reset():
    with session(counter()) as opened:
        opened.run([], targets=["init"])
        assert [float(opened.run("double")) for _ in range(3)] == [2, 4, 6]
        assert opened.placement()["value"].device == "/job:worker/replica:0/task:1/device:CPU:0"
        opened.reset()
        with pytest.raises(FailedPrecondition, match="/job:worker/replica:0/task:1"):
            opened.run("old")


def test_remap_sends_a_device_to_a_worker():
    whole = graph(placeholder("x", (3,)), node("y", "Neg", "x", device="/device:CPU:1"), node("z", "Exp", "y"))
    with session(whole, config={"placement": {"remap": {"CPU:1": T1}}}) as opened:
        assert opened.placement()["y"].device == T1
        assert opened.placement()["z"].device.startswith("/job:worker/replica:0/task:0")
        assert opened.run("z", {"x": X}).shape == (3,)


def loop(devices: tuple[str, str]) -> Graph:
    """A loop of TensorFlow 1 that counts to five; its increment and its condition request devices."""
    frame = {"T": dtypes.float32, "frame_name": b"turns", "is_constant": False, "parallel_iterations": 10}
    whole = [const("start", 0.0), Node("enter", "Enter", ["start"], attrs=frame),
             node("merge", "Merge", "enter", "next", N=2), const("limit", 5.0, controls=["merge"]),
             node("less", "Less", "merge", "limit", device=devices[0]), Node("cond", "LoopCond", ["less"]),
             node("switch", "Switch", "merge", "cond"), const("one", 1.0, controls=["switch"]),
             node("plus", "Add", "switch:1", "one", device=devices[1]), node("next", "NextIteration", "plus"),
             node("exit", "Exit", "switch"), placeholder("x", (3,)), node("other", "Neg", "x", device=T1)]
    return Graph(whole)


def test_a_loop_within_one_worker_runs_there():
    with session(loop((T1, T1))) as opened:
        assert float(opened.run("exit")) == 5


def test_a_loop_that_crosses_workers_is_unimplemented_with_its_nodes():
    with session(loop((T0, T1))) as opened:
        with pytest.raises(Unimplemented, match="loop 'turns' crosses workers: 'less' on .*task:0, 'plus' on .*task:1"):
            opened.run("exit")
        assert opened.run("other", {"x": X}).tolist() == (-X).tolist()


@pytest.mark.parametrize(("device", "message"), [
    ("/job:worker/task:2", "task 2, and the cluster has 2"), ("/job:ps/task:0", "is no device of this cluster"),
])
def test_a_request_for_a_worker_that_is_not_there_is_an_error_of_its_steps(device, message):
    whole = graph(placeholder("x", (3,)), node("y", "Neg", "x", device=device), node("z", "Neg", "x"))
    with session(whole) as opened:
        with pytest.raises(InvalidArgument, match=message):
            opened.run("y", {"x": X})
        assert opened.run("z", {"x": X}).tolist() == (-X).tolist()


def test_colocated_nodes_on_two_workers_are_an_error_of_their_steps():
    whole = counter()
    more = [*whole, Node("far", "ReadVariableOp", ["v"], attrs={"dtype": dtypes.float32}, device=T0)]
    with session(Graph(more)) as opened, pytest.raises(InvalidArgument, match="request several workers: 'far' on"):
        opened.run("far")


def checked() -> Graph:
    return graph(placeholder("x", (3,)), Node("c", "CheckNumerics", ["x"], attrs={"T": dtypes.float32,
                 "message": b"theirs"}, device=T1), node("y", "Neg", "c", device=T0), node("z", "Neg", "x", device=T0))


def test_an_error_names_worker_device_and_node_and_ends_the_step_everywhere():
    with session(checked()) as opened:
        for _ in range(3):
            with pytest.raises(InvalidArgument, match="theirs") as caught:
                opened.run("y", {"x": [1, np.inf, 2]})
            assert (caught.value.node, caught.value.device) == ("c", T1)
            assert opened.run("y", {"x": X}).tolist() == (-X).tolist()
        assert not any(worker.meetings or worker.tokens for worker in opened.cluster.workers.values())


def waiting() -> Graph:
    """`late` waits for a tensor that no step sends. `y` needs it across the border."""
    place = {"tensor_name": b"never", "send_device": T1.encode(), "recv_device": T1.encode(),
             "send_device_incarnation": 1, "client_terminated": False}
    return graph(placeholder("x", (3,)), Node("late", "_Recv", attrs={"tensor_type": dtypes.float32, **place},
                                              device=T1),
                 node("y", "Add", "late", "x", device=T0), node("z", "Neg", "x", device=T1))


def test_a_timeout_ends_the_step_in_all_workers():
    with session(waiting()) as opened:
        with pytest.raises(DeadlineExceeded):
            opened.run("y", {"x": X}, options=heald.RunOptions(timeout=0.2))
        assert opened.run("z", {"x": X}).tolist() == (-X).tolist()
        assert not any(worker.tokens for worker in opened.cluster.workers.values())


@pytest.mark.parametrize("end", ["token", "close"])
def test_cancellation_and_close_end_steps_in_all_workers(end):
    token, opened = heald.CancelToken(), session(waiting())
    threading.Timer(0.2, token.cancel if end == "token" else opened.close).start()
    with pytest.raises(Cancelled):
        opened.run("y", {"x": X}, options=heald.RunOptions(cancel=token))
    opened.close()
    with pytest.raises(FailedPrecondition, match="the session is closed"):
        opened.run("z", {"x": X})


def test_a_step_beyond_the_most_in_flight_waits_within_its_deadline():
    with session(waiting(), max_steps=1) as opened, ThreadPoolExecutor() as pool:
        token = heald.CancelToken()
        first = pool.submit(opened.run, "y", {"x": X}, options=heald.RunOptions(cancel=token))
        while not opened.in_flight:
            time.sleep(0.01)
        with pytest.raises(DeadlineExceeded):
            opened.run("z", {"x": X}, options=heald.RunOptions(timeout=0.2))
        assert opened.in_flight == {1}
        token.cancel()
        assert isinstance(first.exception(), Cancelled)
        assert opened.run("z", {"x": X}).tolist() == (-X).tolist()


def test_a_worker_that_dies_ends_the_step_with_its_name_and_the_next_step_works():
    with session(waiting()) as opened:
        threading.Timer(0.2, opened.cluster.kill, [1]).start()
        start = time.monotonic()
        with pytest.raises(Unavailable, match="/job:worker/replica:0/task:1"):
            opened.run("y", {"x": X})
        assert time.monotonic() - start < 1.2
        assert opened.run("z", {"x": X}).tolist() == (-X).tolist()


def test_a_worker_killed_at_random_points_fails_steps_with_typed_errors_only():
    rng = random.Random(3)  # noqa: S311 - no secret
    with session(there_and_back()) as opened:
        expected = opened.run("w", {"x": X}).tolist()
        for _ in range(20):
            timer = threading.Timer(rng.random() * 0.02, opened.cluster.kill, [rng.randrange(2)])
            timer.start()
            for _ in range(8):
                with suppress(Unavailable, Cancelled, DeadlineExceeded, FailedPrecondition):
                    assert opened.run("w", {"x": X}, options=heald.RunOptions(timeout=5)).tolist() == expected
            timer.join()
            assert opened.run("w", {"x": X}, options=heald.RunOptions(timeout=5)).tolist() == expected


class LosingCluster(ThreadCluster):
    """Task 1 dies after it took a message of a step, and before the session's call. The call reaches its successor."""

    is_losing = False

    def call(self, task, method, *args):
        if self.is_losing and (task, method) == (1, "run"):
            while not self.posted["deliver", 0, 1]:
                time.sleep(0.001)
            self.is_losing = False
            self.kill(1)
        return super().call(task, method, *args)


@pytest.mark.parametrize("fetch", ["w", "z"])
def test_a_message_that_a_dead_worker_took_ends_the_step_without_a_timeout(fetch):
    with ClusterSession(there_and_back(), LosingCluster, 2) as opened:
        opened.cluster.is_losing, start = True, time.monotonic()
        with pytest.raises(Unavailable, match="/job:worker/replica:0/task:1 died"):
            opened.run(fetch, {"x": X})
        assert time.monotonic() - start < 2
        for worker in opened.cluster.workers.values():
            assert not worker.tokens
        assert opened.run(fetch, {"x": X}).shape == (3,)


class MuteCluster(ThreadCluster):
    """Task 1 answers no message."""

    def post(self, task, destination, method, args):
        answer = super().post(task, destination, method, args)
        return Future() if destination == 1 else answer


def test_a_part_that_waits_for_an_answer_ends_with_its_step():
    with ClusterSession(there_and_back(), MuteCluster, 2) as opened:
        start = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            opened.run("z", {"x": X}, options=heald.RunOptions(timeout=0.2))
        assert time.monotonic() - start < 2
        assert not opened.cluster.workers[0].tokens


@pytest.mark.parametrize("is_noticed", [True, False])
def test_a_worker_that_restarts_has_the_extended_graph(is_noticed):
    with session(there_and_back()) as opened:
        opened.extend(graph(node("v", "Neg", "z", device=T1)))
        opened.extend(graph(node("u", "Neg", "v", device=T0)))
        opened.cluster.kill(1)
        if is_noticed:
            assert "v" in opened.placement()
        assert opened.run(["v", "u"], {"z": X})[0].tolist() == (-X).tolist()
        opened.cluster.kill(0)
        opened.extend(graph(node("t", "Neg", "u", device=T0)))
        assert opened.run("t", {"u": X}).tolist() == (-X).tolist()


def test_a_worker_that_dies_during_an_extension_gets_the_graph_later():
    class DyingCluster(ThreadCluster):
        def call(self, task, method, *args):
            if method == "extend" and self.starts[1] == 1:
                self.kill(1)
                call: Future = Future()
                call.set_exception(Unavailable("died"))
                return call
            return super().call(task, method, *args)

    with ClusterSession(there_and_back(), DyingCluster, 2) as opened:
        opened.extend(graph(node("v", "Neg", "z", device=T1)))
        assert opened.run("v", {"z": X}).tolist() == (-X).tolist()


def test_a_worker_that_starts_slowly_is_awaited_within_the_deadline():
    with session(there_and_back()) as opened:
        original = opened.cluster.call

        def refuse(task, method, *args):
            call: Future = Future()
            call.set_exception(Unavailable("it starts"))
            return call

        opened.cluster.call = refuse
        opened.cluster.kill(1)
        with pytest.raises(DeadlineExceeded):
            opened.run("z", {"x": X}, options=heald.RunOptions(timeout=0.2))
        opened.cluster.call = lambda task, method, *args: Future()  # a call that waits for the start
        with pytest.raises(DeadlineExceeded):
            opened.run("z", {"x": X}, options=heald.RunOptions(timeout=0.2))
        threading.Timer(0.2, setattr, [opened.cluster, "call", original]).start()
        opened.cluster.call = refuse
        assert opened.run("z", {"x": X}).shape == (3,)


def test_variables_of_a_restarted_worker_are_uninitialised_and_the_error_says_so():
    with session(counter()) as opened:
        opened.run([], targets=["init"])
        opened.cluster.kill(1)
        with pytest.raises(FailedPrecondition, match="task:1 was restarted, and its variables are uninitialised"):
            opened.run("old")
        opened.run([], targets=["init"])
        assert float(opened.run("double")) == 2


def saved_counter() -> Graph:
    """The counter, a variable that no checkpoint has, and a node that saves the counter."""
    prefix = Node("prefix", "Placeholder", attrs={"dtype": dtypes.string, "shape": ()})
    reference = {"dtype": dtypes.float32, "shape": (), "shared_name": "other", "container": ""}
    texts = [Node(name, "Const", attrs={"dtype": dtypes.string, "value": np.array([text], object)})
             for name, text in (("names", b"v"), ("slices", b""))]
    return Graph([*counter(), prefix, *texts,
                  Node("other", "VarHandleOp", attrs=reference, device=T1),
                  Node("read_other", "ReadVariableOp", ["other"], attrs={"dtype": dtypes.float32}),
                  Node("save", "SaveV2", ["prefix", "names", "slices", "old"], attrs={"dtypes": [dtypes.float32]},
                       device=T0)])


@pytest.mark.parametrize("place", ["", "model-2"])
def test_a_restarted_worker_has_the_variables_of_the_last_checkpoint(tmp_path, place):
    config = {"files": {"write": [str(tmp_path)]}, "cluster": {"checkpoint": str(tmp_path / place)}}
    with session(saved_counter(), config=config) as opened:
        opened.run([], targets=["init"])
        for number in (1, 2):
            opened.run("double")
            opened.run([], {"prefix": str(tmp_path / f"model-{number}").encode()}, targets=["save"])
        opened.run("double")
        opened.cluster.kill(1)
        assert float(opened.run("old")) == 2
        assert float(opened.run("double")) == 6
        with pytest.raises(FailedPrecondition, match="was restarted, and the checkpoint .* lacks this variable"):
            opened.run("read_other")
        opened.cluster.kill(0)
        assert float(opened.run("double")) == 8


@pytest.mark.parametrize(("content", "text"), [
    (None, "there is no checkpoint of this prefix"), (b"damaged", "the checkpoint was not restored"),
])
def test_a_checkpoint_that_cannot_be_read_is_the_reason_of_the_missing_variables(tmp_path, content, text):
    if content is not None:
        (tmp_path / "model.index").write_bytes(content)
    with session(counter(), config={"cluster": {"checkpoint": str(tmp_path / "model")}}) as opened:
        opened.run([], targets=["init"])
        opened.cluster.kill(1)
        with pytest.raises(FailedPrecondition, match="its variables are uninitialised") as caught:
            opened.run("old")
        assert text in str(caught.value)
        opened.run([], targets=["init"])
        assert float(opened.run("double")) == 2


def test_a_worker_that_started_again_refuses_steps_until_it_is_renewed():
    with session(counter()) as opened:
        opened.run([], targets=["init"])
        plan = next(iter(opened.steps.values())).texts[1]
    part = heald.graphdef.dumps(counter().replace(nodes=[each.replace(device="") for each in counter()]))
    worker = Worker(1, part, pack_config(), lambda *_: Future(), start=2)
    succeeded, error = worker.run(7, 7, plan, pack_tensors([]), None)
    assert (succeeded, type(unpack_error(error))) == (False, Unavailable)
    assert worker.renew(part, None)[0]
    assert worker.run(7, 7, plan, pack_tensors([]), None)[0]
    worker.close()


def test_a_worker_refuses_a_step_that_it_has_seen():
    with session(counter()) as opened:
        opened.run([], targets=["init"])
        worker = opened.cluster.workers[1]
        plan = next(iter(opened.steps.values())).texts[1]
        for number, oldest in ((1, 1), (0, 0), (1, 0)):
            succeeded, error = worker.run(number, oldest, plan, pack_tensors([]), None)
            if number == 1:
                assert (succeeded, type(unpack_error(error))) == (False, FailedPrecondition)
                assert "a step runs at most once" in str(unpack_error(error))
        succeeded, _ = worker.run(9, 9, plan, pack_tensors([]), None)
        assert succeeded
        assert worker.run(5, 9, plan, pack_tensors([]), None)[0] is False
        worker.deliver(3, ["a"], pack_tensors([X]))  # of a step that is over
        assert not worker.meetings


def test_a_thousand_steps_of_eight_threads_are_exact():
    with session(there_and_back(), max_steps=4) as opened:
        def run(number: int) -> None:
            x = np.float32([number, -number])
            assert opened.run(["w", "y"], {"x": x})[1].tolist() == (-x).tolist()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(run, range(1000)))
        assert opened.cluster.posted.total() == 2000


def test_a_session_is_extended_where_its_nodes_stay():
    with session(there_and_back()) as opened:
        opened.run("w", {"x": X})
        opened.extend(graph(node("v", "Neg", "z", device=T0)))
        assert opened.run("v", {"z": X}).tolist() == (-X).tolist()
        with pytest.raises(InvalidArgument, match="has a node 'v' already"):
            opened.extend(graph(node("v", "Neg", "z")))


def test_a_callable_takes_its_feeds_in_order_until_it_is_released():
    with session(there_and_back()) as opened:
        run = opened.make_callable("w", ["z", "y"])
        assert run(X, -X).tolist() == [0, 0, 0]
        with pytest.raises(InvalidArgument, match="takes 2 arrays"):
            run(X)
        run.release()
        with pytest.raises(InvalidArgument, match="released"):
            run(X, X)


@pytest.mark.parametrize(("call", "kind"), [
    (lambda s: s.run("nowhere"), NotFound), (lambda s: s.run("w", {"nowhere": X}), NotFound),
    (lambda s: s.run("w"), InvalidArgument), (lambda s: s.run("w", {"x": ["text"]}), InvalidArgument),
    (lambda s: s.run("w", {"x": X}, options=3), InvalidArgument),
    (lambda s: s.run("w", {"x": X}, options=heald.RunOptions(work_queue="slow")), Unimplemented),
    (lambda s: s.make_callable("w", ["x"])(X, options=heald.RunOptions(trace=True)), InvalidArgument),
    (lambda s: s.make_callable("w", ["x"], connections={"z": "y"}), Unimplemented),
    (lambda s: s.partial_run_setup("w", ["x"]), Unimplemented), (lambda s: s.partial_run("h", "w"), Unimplemented),
])
def test_a_mistake_is_a_typed_error(call, kind):
    with session(there_and_back()) as opened, pytest.raises(kind):
        call(opened)


@pytest.mark.parametrize("most", [0, -1, True, "3"])
def test_max_steps_is_a_positive_number(most):
    with pytest.raises(InvalidArgument, match="max_steps"):
        session(there_and_back(), max_steps=most)


def test_the_graphs_of_a_step_are_those_of_its_workers():
    with session(there_and_back()) as opened:
        graphs = opened.partitions("w", ["x"])
        assert {*graphs} == {T1, T1.replace("task:1", "task:0")}
        assert {"y", "w"} <= {*graphs[T1.replace("task:1", "task:0")].nodes}
        assert "w" in opened.client_graph("w", ["x"])


def test_a_trace_has_the_events_of_all_workers_each_as_a_process():
    options, metadata = heald.RunOptions(trace=True, partition_graphs=True), heald.RunMetadata()
    with session(there_and_back()) as opened:
        begin = time.perf_counter_ns()
        assert opened.run("w", {"x": X}, options=options, metadata=metadata).shape == (3,)
        end = time.perf_counter_ns()
        opened.run("w", {"x": X}, options=options)  # without a place for the records
    assert {*metadata.partition_graphs} == {T1, T1.replace("task:1", "task:0")}
    devices = {event.call.node: event.device for event in metadata.trace.events}
    assert (devices["y"], devices["z"]) == (T1.replace("task:1", "task:0"), T1)
    assert all(begin <= event.start_ns <= event.end_ns <= end for event in metadata.trace.events)
    rows = metadata.trace.to_chrome()["traceEvents"]
    assert {(row["pid"], row["args"]["name"]) for row in rows if row["name"] == "process_name"} == {
        (task, f"/job:worker/replica:0/task:{task}") for task in (0, 1)}
    assert {row["pid"] for row in rows if row.get("args", {}).get("node") == "z"} == {1}
    assert b"/job:worker/replica:0/task:1/device:CPU:0" in metadata.dumps()


def test_the_work_of_a_device_with_a_queue_keeps_its_distance_from_the_origin_of_its_clock():
    whole = there_and_back().replace(nodes=[each.replace(device="") for each in there_and_back()])
    with heald.Session(whole, device="SIM:0") as one:
        metadata = heald.RunMetadata()
        one.run("w", {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
    originals = metadata.trace.events
    events = merge_traces({1: pack_trace(metadata.trace)}, 0, 1).events
    assert {event.clock for event in events} == {"/job:worker/replica:0/task:1/device:SIM:0"}
    for original, event in zip(originals, events, strict=True):
        assert event.duration_ns == original.duration_ns
        assert event.span[0] - event.timed.origin_ns == original.span[0] - original.timed.origin_ns


def test_events_of_a_machine_with_another_time_move_between_call_and_result():
    with heald.Session(there_and_back().replace(nodes=[node("y", "Neg", "x")]), {"placement": {"clear": True}}) as one:
        metadata = heald.RunMetadata()
        one.run("y", {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
    for hours in (-5, 5):
        begin = time.perf_counter_ns()
        message = json.loads(pack_trace(metadata.trace))
        message[0] += hours * 3_600_000_000_000
        events = merge_traces({0: json.dumps(message).encode()}, begin, begin + 10**12).events
        assert all(begin <= event.start_ns <= event.end_ns <= begin + 10**12 for event in events)
    with pytest.raises(DataLoss):
        merge_traces({0: b"[1, 2]"}, 0, 1)


def arrays() -> Iterator[np.ndarray | None]:
    yield None
    for kind in (np.float32, np.int64, np.bool_, np.complex128, np.float16, np.uint8):
        yield np.arange(6).reshape(2, 3).astype(kind)
        yield np.zeros((0, 4), kind)
        yield np.array(1, kind)
    yield dtypes.named("bfloat16").numpy.type(1.5) * np.ones(3, dtypes.named("bfloat16").numpy)
    yield np.array([[b"", b"a\0b"], [b"\xff" * 40, "ä".encode()]], object)
    yield np.empty((0,), object)


def test_a_message_returns_its_tensors():
    originals = list(arrays())
    for original, copy in zip(originals, unpack_tensors(pack_tensors(originals)), strict=True):
        if original is None:
            assert copy is None
        else:
            assert (copy.dtype, copy.shape, copy.tolist()) == (original.dtype, original.shape, original.tolist())


@pytest.mark.parametrize("damaged", [[], [b"{"], [b"[1]", b""], [b'[["float32", [3], null]]', b"123"],
                                     [b'[["nope", [3], null]]', b"123"], [b"[]", b""]])
def test_a_damaged_message_is_data_loss(damaged):
    with pytest.raises(HealdError):
        unpack_tensors(damaged)


def test_an_error_returns_with_its_place_and_its_hint():
    error = unpack_error(pack_error(NotFound("no x", node="n", op="Op", device="CPU:0", hint="try y")))
    assert (type(error), str(error)) == (NotFound, str(NotFound("no x", node="n", op="Op", device="CPU:0",
                                                                hint="try y")))


def test_a_wave_is_sent_when_its_last_tensor_is_there():
    from heald.api import RendezvousKey
    from heald.runtime.host import LocalRendezvous

    posted: list[tuple[int, int]] = []
    rendezvous = WaveRendezvous(LocalRendezvous(), {"a@1": (1, 0), "b@1": (1, 0), "c@1": (1, 1)},
                                lambda task, keys, values: posted.append((task, len(keys))))
    for name, expected in (("a", []), ("c", [(1, 1)]), ("b", [(1, 1), (1, 2)])):
        rendezvous.send(RendezvousKey(T0, 1, T1, name), X)
        assert posted == expected
