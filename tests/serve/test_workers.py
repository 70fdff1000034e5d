"""Several processes that serve one port: counts, lists of models, deaths and ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event

import pytest
from builders.graphs import const, node, placeholder
from harness.serve_grpc import MODELS, Caller, fault
from harness.serve_models import Client, infos, settings_of, signature
from harness.serve_process import ServeProcess
from heald.errors import FailedPrecondition, HealdError, Internal, NotFound, Unimplemented
from heald.graphs.graph.graph import Graph
from heald.graphs.graph.graphdef import dump
from heald_serve.http.ports import listen, reserve
from heald_serve.messages import message_class
from heald_serve.metrics import Metrics
from heald_serve.models.model_config import ModelConfig
from heald_serve.models.model_manager import ModelManager
from heald_serve.server import ModelServer
from heald_serve.v2.statistics import Statistics
from heald_serve.workers.channel import Channel, ChannelEnded
from heald_serve.workers.pulse import BEATS, Silence, beat_seconds, make_beat_function
from heald_serve.workers.restart_policy import LONG_LIFE_SECONDS, RestartPolicy
from heald_serve.workers.shared_cells import FILE_BYTES, SharedCells, make_file
from heald_serve.workers.supervisor import Supervisor, describe_status

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ports are shared on Linux alone")


@pytest.fixture
def files():
    made = [make_file() for _ in range(3)]
    yield made
    for number in made:
        os.close(number)


def test_short_lives_wait_longer_and_longer_and_end():
    policy = RestartPolicy(first_wait=1)
    assert [policy.wait_after(0) for _ in range(6)] == [0, 1, 2, 4, 8, None]


def test_a_long_life_begins_anew():
    policy = RestartPolicy(first_wait=1)
    assert [policy.wait_after(life) for life in (0, 0, LONG_LIFE_SECONDS, 0, 0)] == [0, 1, 0, 0, 1]


def test_every_process_shows_the_sum_of_all(files):
    first, second = (Metrics(SharedCells(files, place)) for place in range(2))
    first.request_count.add("m", "OK")
    second.request_count.add("m", "OK", amount=2)
    second.request_count.add("n", "NOT_FOUND")
    first.request_latency.add("m", "Predict", "predict", amount=5)
    second.request_latency.add("m", "Predict", "predict", amount=1e30)
    assert first.plain_text() == second.plain_text()
    assert first.request_count.value("m", "OK") == 3
    ((_, cell),) = second.request_latency.cells()
    assert (cell.count, cell.buckets[0], cell.buckets[-1]) == (2, 1, 1)


def test_counts_outlive_their_process(files):
    Metrics(SharedCells(files, 0)).request_count.add("m", "OK", amount=7)
    successor = Metrics(SharedCells(files, 0))
    assert successor.request_count.value("m", "OK") == 7
    successor.request_count.add("m", "OK")
    assert Metrics(SharedCells(files, 1)).request_count.value("m", "OK") == 8


def test_gauges_are_summed_and_end_with_their_process(files):
    from heald_serve.metrics import Gauge

    both = [Metrics(SharedCells(files, place)) for place in range(2)]
    for metrics, number in zip(both, (3, 4), strict=True):
        metrics.gauges = [Gauge("pending", lambda number=number: number)]
        metrics.publish_gauges()
    assert "\npending 7\n" in both[0].plain_text()
    SharedCells(files, 2).clear_gauges(1)
    assert "\npending 3\n" in both[0].plain_text()


def test_a_full_file_keeps_counts_in_its_process(files):
    own, other = (SharedCells(files, place) for place in range(2))
    rows = FILE_BYTES // 8 // 1000 + 1
    for row in range(rows):
        own.make("big", (str(row),), 1000)[0] = 1
    assert len(own.of_metric("big")) == rows
    assert 0 < len(other.of_metric("big")) < rows
    assert own.make("big", (str(rows - 1),), 1000)[0] == 1


def test_statistics_are_summed(files):
    first, second = (Statistics(SharedCells(files, place)) for place in range(2))
    stages = {"compute_input": 1e-9, "compute_infer": 2e-9, "compute_output": 0}
    for statistics in (first, second):
        statistics.add_success("m", 1, 4, stages)
    second.add_failure("m", 1, 1e-9)
    (row,) = first.document(iter([("m", 1)]))["model_stats"]
    assert (row["inference_count"], row["execution_count"]) == (8, 2)
    assert row["inference_stats"]["compute_infer"] == {"count": 2, "ns": 4}
    assert row["inference_stats"]["fail"]["count"] == 1
    (empty,) = first.document(iter([("m", 2)]))["model_stats"]
    assert (empty["inference_count"], empty["last_inference"]) == (0, 0)


@pytest.fixture
def channels():
    """Two ends in threads of this process; `ends` closes one."""
    def fail():
        raise NotFound("no such thing", hint="ask another")

    def break_():
        raise KeyError("k")

    gate = Event()
    methods = {"double": lambda x: 2 * x, "fail": fail, "break": break_, "wait": lambda: gate.wait(30)}
    sockets = socket.socketpair()
    with ThreadPoolExecutor(2) as executor:
        pair = [Channel(Connection(one.detach()), methods, executor) for one in sockets]
        threads = [threading.Thread(target=channel.serve) for channel in pair]
        for thread in threads:
            thread.start()
        yield pair, gate
        gate.set()
        for channel in pair:
            channel.close()
        for thread in threads:
            thread.join()


def test_both_ends_of_a_channel_ask_and_answer(channels):
    (first, second), _ = channels
    assert [first.ask("double", 2), second.ask("double", [3])] == [4, [3, 3]]
    with pytest.raises(NotFound, match="no such thing; ask another"):
        first.ask("fail")
    with pytest.raises(HealdError, match="KeyError"):
        second.ask("break")


def test_the_end_of_a_process_answers_its_questions(channels):
    (first, second), gate = channels
    future = first.begin("wait")
    second.close()
    with pytest.raises(ChannelEnded):
        future.result(30)
    with pytest.raises(ChannelEnded):
        first.ask("double", 1)
    first.tell("double", 1)
    gate.set()


def test_a_port_is_reserved_for_workers_alone():
    with reserve("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        with listen("127.0.0.1", port, is_shared=True), listen("127.0.0.1", port, is_shared=True):
            with pytest.raises(HealdError, match=f":{port}"):
                reserve("127.0.0.1", port)
            with pytest.raises(HealdError, match=f":{port}"):
                listen("127.0.0.1", port)


def test_workers_that_die_at_once_over_and_over_end_the_server():
    lines = []
    supervisor = Supervisor(settings_of([], workers=2), lines.append, first_wait=0,
                            program=(sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(Internal, match="died at once, over and over: with the status 3"):
        supervisor.run()
    supervisor.close()
    assert 5 <= len(lines) <= 10
    assert set(lines) == {f"worker {place} has ended, with the status 3; it starts again" for place in range(2)}


def test_a_worker_that_does_not_end_is_killed():
    supervisor = Supervisor(settings_of([], workers=2, drain_timeout_in_ms=0), print,
                            program=(sys.executable, "-c", "import time; time.sleep(100)"))
    ends = [threading.Thread(target=supervisor.stop) for _ in range(2)]  # two signals: the second one kills
    for end in ends:
        end.start()
    supervisor.run()
    supervisor.close()
    for end in ends:
        end.join()


def test_the_parent_loads_no_numpy():
    code = "import sys, heald_serve.workers.supervisor; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("status", "text"), [(0, "with the status 0"), (-9, "by SIGKILL"), (-64, "by SIGRTMAX"),
                                              (-99, "by the signal 99")])
def test_a_status_is_told(status, text):
    assert describe_status(status) == text


def write_graph(path, factor):
    path.parent.mkdir(parents=True, exist_ok=True)
    dump(Graph([placeholder("x", (None,)), const("factor", factor), node("y", "Mul", "x", "factor")]), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, factor in (("m", 2), ("n", 3)):
        write_graph(folder / name / "1" / "model.pb", factor)
    return folder


@pytest.fixture(scope="module")
def server(folder):
    process = ServeProcess(f"--model_base_path={folder / 'm'}", "--model_name=m", "--workers=2", "--port=0",
                           "--allow_model_control", grpc=True)
    process.wait_until_ready()
    yield process
    process.close()


def answers_of(server, method, path, body=None, count=12):
    """The statuses that so many connections get: they are spread over the workers."""
    statuses = set()
    for _ in range(count):
        client = Client(server.port)
        statuses.add(client.ask(method, path, body).status)
        client.close()
    return statuses


def metric(server, name):
    client = Client(server.port)
    text = client.ask("GET", "/metrics").body.decode()
    client.close()
    match = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(match[1]) if match else 0


COUNT = 'heald_serve_request_count{model_name="m",status="OK"}'


def test_counts_of_all_workers_are_summed(server):
    before = metric(server, COUNT)
    assert answers_of(server, "POST", "/v1/models/m:predict", {"inputs": [1]}, 16) == {200}
    assert {metric(server, COUNT) - before for _ in range(6)} == {16}
    assert metric(server, "heald_serve_workers") == 2


def test_the_state_of_the_page_is_that_of_all_workers(server):
    limit = metric(server, "heald_serve_memory_limit")
    for _ in range(6):  # each connection comes to any of the workers
        client = Client(server.port)
        state = client.ask("GET", "/page/state.json").json
        client.close()
        assert [row["state"] for row in state["models"][0]["versions"]] == ["AVAILABLE"]
        assert (state["server"]["workers"], state["memory"]["limit"]) == (2, limit or None)


def ask_once(server, method, path):
    client = Client(server.port)
    answer = client.ask(method, path)
    client.close()
    return answer.status


def test_load_and_unload_reach_every_worker(server):
    for _ in range(4):  # each call comes to any of the workers
        assert ask_once(server, "POST", "/v2/repository/models/m/unload") == 200
        assert answers_of(server, "POST", "/v1/models/m:predict", {"inputs": [1]}) == {404}
        assert ask_once(server, "POST", "/v2/repository/models/m/load") == 200
        assert answers_of(server, "POST", "/v1/models/m:predict", {"inputs": [1]}) == {200}


def test_a_worker_that_starts_later_knows_the_unloaded_models(server):
    assert ask_once(server, "POST", "/v2/repository/models/m/unload") == 200
    kill_worker(server)
    kill_worker(server)
    assert ask_once(server, "POST", "/v2/repository/models/m/load") == 200
    assert answers_of(server, "POST", "/v1/models/m:predict", {"inputs": [1]}) == {200}


def reload_request(folder, *names, label=None):
    request = message_class("ReloadConfigRequest")()
    for name in names:
        config = request.config.model_config_list.config.add(name=name, base_path=str(folder / name))
        config.model_platform = "tensorflow"
        if label is not None:
            config.version_labels["stable"] = label
    return request


def test_a_new_list_of_models_reaches_every_worker_and_those_that_start_later(server, folder):
    caller = Caller(server.grpc_port)
    caller.call(MODELS, "HandleReloadConfigRequest", reload_request(folder, "m", "n"))
    assert answers_of(server, "POST", "/v1/models/n:predict", {"inputs": [1]}) == {200}
    code, text = fault(caller.call, MODELS, "HandleReloadConfigRequest", reload_request(folder, "m", label=9))
    assert (code, "not currently available" in text) == ("FAILED_PRECONDITION", True)
    assert answers_of(server, "POST", "/v1/models/n:predict", {"inputs": [1]}) == {200}
    code, text = fault(caller.call, MODELS, "HandleReloadConfigRequest", reload_request(folder, "m", "n", "none"))
    assert code == "NOT_FOUND"
    caller.call(MODELS, "HandleReloadConfigRequest", reload_request(folder, "m", "n"))
    caller.close()
    kill_worker(server)
    assert answers_of(server, "POST", "/v1/models/n:predict", {"inputs": [1]}) == {200}


def kill_worker(server, number=signal.SIGKILL):
    """End a worker, and wait until its successor serves."""
    pause, before = Event(), server.worker_pids()
    restarts = metric(server, "heald_serve_worker_restarts")
    os.kill(before[0], number)
    for _ in range(3000):
        try:
            if metric(server, "heald_serve_worker_restarts") > restarts and metric(server, "heald_serve_workers") == 2:
                break
        except OSError:  # a connection that the dead worker had not yet taken
            pass
        pause.wait(0.01)
    assert set(server.worker_pids()) != set(before)
    assert metric(server, "heald_serve_workers") == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_dies_starts_again_and_is_counted(server, number):
    restarts, count = metric(server, "heald_serve_worker_restarts"), metric(server, COUNT)
    kill_worker(server, number)
    assert metric(server, "heald_serve_worker_restarts") == restarts + 1
    assert metric(server, COUNT) == count
    assert answers_of(server, "POST", "/v1/models/m:predict", {"inputs": [1]}) == {200}


def test_silence_is_the_time_without_a_change_of_any_count():
    now = [0.0]
    silence = Silence(lambda: now[0])
    seconds = []
    for http, grpc in ((1, 1), (2, 1), (3, 1), (4, 2), (4, 2)):
        now[0] += 0.5
        seconds.append(silence.after({"http": http, "grpc": grpc}))
    assert seconds == [0, 0.5, 1, 0, 0.5]
    assert Silence().after({}) == 0


def test_a_parent_that_was_stopped_blames_no_worker():
    now = [0.0]
    silence = Silence(lambda: now[0])
    silence.after({"http": 1})
    now[0] += 3600
    assert silence.after({"http": 1}) == 1


def test_a_loop_that_never_turns_is_silent(files):
    make_beat_function(SharedCells(files, 0), "http", 1)
    now = [0.0]
    silence, cells = Silence(lambda: now[0]), SharedCells(files, 1)
    for _ in range(4):
        now[0] += 1
        seconds = silence.after(cells.of_process(0, BEATS))
    assert seconds == 3


def test_several_beats_fit_into_the_longest_silence():
    assert [beat_seconds(seconds) for seconds in (30, 5, 1, 0.1)] == [1, 1, 0.2, 0.02]


@pytest.fixture
def beating(files):
    """A server in this process whose loops beat as in a worker; a model of it waits for the gate."""
    begun, gate = Event(), Event()

    def run(x):
        begun.set()
        assert gate.wait(60)
        return x

    models = {"F": signature(infos(x="float32"), infos(y="float32"), run)}
    cells = SharedCells(files, 0)
    server = ModelServer(settings_of(models, grpc_port=0, max_worker_silence_in_ms=50),
                         loader=lambda path: models[str(path)], shared=cells)
    server.start()
    yield server, cells, begun, gate
    gate.set()
    server.close()


def beats_rise(cells, *loops):
    """True once the counts of these loops have risen."""
    before, pause = cells.of_process(0, BEATS), Event()
    return any(all(cells.of_process(0, BEATS)[name,] > before[name,] for name in loops) or pause.wait(0.01)
               for _ in range(3000))


def test_a_long_run_in_a_thread_stops_no_pulse(beating):
    server, cells, begun, _ = beating
    client = Client(server.port)
    client.connection.request("POST", "/v1/models/F:predict", '{"inputs": 1}')
    assert begun.wait(30)
    assert beats_rise(cells, "http", "grpc")
    client.close()


@pytest.mark.parametrize(("held", "other"), [("http", "grpc"), ("grpc", "http")])
def test_each_loop_has_a_pulse_of_its_own(beating, held, other):
    server, cells, _, _ = beating
    assert beats_rise(cells, "http", "grpc")
    loops = {"http": server.listener.loop, "grpc": server.grpc_server.loop}
    is_held, release = Event(), Event()
    loops[held].call_soon_threadsafe(lambda: (is_held.set(), release.wait(60)))
    assert is_held.wait(30)
    silent = cells.of_process(0, BEATS)[held,]
    assert beats_rise(cells, other)
    assert cells.of_process(0, BEATS)[held,] == silent
    release.set()
    assert beats_rise(cells, held)


def test_a_worker_that_hangs_is_killed_and_starts_again_and_is_counted(folder):
    server = ServeProcess(folder / "m", "--workers=2", "--port=0", "--max_worker_silence_in_ms=3000")
    server.wait_until_ready()
    before, pause = set(server.worker_pids()), Event()
    stopped = min(before)
    os.kill(stopped, signal.SIGSTOP)
    assert any(not is_alive(stopped) or pause.wait(0.05) for _ in range(1200))
    for _ in range(1200):
        with suppress(OSError):  # a connection that the killed worker had
            if metric(server, "heald_serve_workers") == 2:
                break
        pause.wait(0.05)
    assert metric(server, "heald_serve_worker_hangs") >= 1
    assert metric(server, "heald_serve_worker_restarts") >= metric(server, "heald_serve_worker_hangs")
    assert answers_of(server, "POST", "/v1/models/m:predict", {"inputs": [1]}) == {200}
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0
    assert "hangs: an event loop of it is silent for" in server.text()
    server.close()


def test_a_signal_drains_every_worker(folder):
    server = ServeProcess(folder / "m", "--workers=2", "--port=0")
    server.wait_until_ready()
    connections = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(8)]
    for connection in connections:
        connection.sendall(b"POST /v1/models/m:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n"
                           b"Expect: 100-continue\r\n\r\n")
        assert b"100 Continue" in connection.recv(1000)  # its worker has the head
    server.process.send_signal(signal.SIGTERM)
    for connection in connections:
        connection.sendall(b'{"inputs": [1]}')
        assert b"200 OK" in connection.recv(1000)
        connection.close()
    assert server.process.wait(30) == 0
    server.close()


def test_workers_end_with_a_killed_parent(folder):
    server = ServeProcess(folder / "m", "--workers=2", "--port=0")
    server.wait_until_ready()
    pids, pause = server.worker_pids(), Event()
    server.process.kill()
    server.process.wait(30)
    assert any(not any(is_alive(pid) for pid in pids) or pause.wait(0.01) for _ in range(3000))
    with listen("127.0.0.1", server.port):
        pass
    server.close()


def is_alive(pid):
    """False for a process that has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_that_cannot_start_ends_the_server_with_its_error(tmp_path):
    server = ServeProcess(tmp_path / "none.pb", "--workers=2", "--port=0")
    assert server.process.wait(60) == 1
    assert server.text().count("did not become available") == 1
    server.close()


def test_a_taken_port_is_told_once(folder):
    with listen("127.0.0.1", 0) as taken:
        server = ServeProcess(folder / "m", "--workers=2", "--port=0", port=taken.getsockname()[1])
        assert server.process.wait(60) == 1
        assert server.text().count("Address already in use") == 1
    server.close()


def test_memory_and_cores_are_divided_among_workers(monkeypatch):
    from heald_serve.models import loaded_runtime

    monkeypatch.setattr(loaded_runtime, "core_count", lambda: 8)
    whole = loaded_runtime.served_runtime().host.memory.limit
    quarter = loaded_runtime.served_runtime(workers=4)
    assert quarter.host.memory.limit == whole // 4
    assert quarter.config.work_queue.threads == 2
    assert loaded_runtime.served_runtime(3, 4).config.work_queue.threads == 3


def test_ports_are_shared_on_linux_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Unimplemented, match="need Linux"):
        Supervisor(settings_of([], workers=2), print)


def test_a_worker_that_starts_again_waits_for_its_models(tmp_path):
    settings = settings_of([], models=[ModelConfig("m", tmp_path / "m")], workers=2, file_system_poll_wait_seconds=1)
    lines = []
    server = ModelServer(settings, lines.append)
    waiting = threading.Thread(target=server.load, kwargs={"is_restart": True})
    waiting.start()
    write_graph(tmp_path / "aside" / "1" / "model.pb", 2)
    (tmp_path / "aside").rename(tmp_path / "m")  # whole at once: a half version would be tried again in a minute
    waiting.join(30)
    assert server.manager.is_ready()
    server.close()
    never = ModelServer(settings._replace(options=settings.options | {"file_system_poll_wait_seconds": 0},
                                          models=[ModelConfig("n", tmp_path / "n")]))
    with pytest.raises(NotFound, match="base path"):
        never.load(is_restart=True)
    never.close()


def test_a_refused_list_is_checked_without_a_change():
    manager = ModelManager(lambda path: {})
    manager.configure([ModelConfig("m", Path("m"), is_single=True)])
    with pytest.raises(FailedPrecondition):
        manager.check_labels([ModelConfig("n", Path("n"), labels={"a": 1})])
    manager.check_labels([ModelConfig("n", Path("n"))])
    assert manager.names() == ["m"]
