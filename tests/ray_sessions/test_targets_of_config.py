"""`[cluster]` of config: the target, and its options, of sessions and models that name none."""

from __future__ import annotations

import json

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.thread_cluster import ThreadCluster
from heald.api import Graph, Node
from heald.errors import HealdWarning, InvalidArgument, NotFound, Unimplemented
from heald.graphs.session import compile_model
from heald.runtime.contract import in_this_process
from heald.runtime.service import runtime
from heald.runtime.values import dtypes
from heald_ray.sent_config import unpack_config
from heald_ray.session import ClusterSession

PLUGIN = '''
import heald
from heald.api import hookimpl

HEALD_API = (1, 1)

def connect(graph, config, target, device):
    from harness.thread_cluster import ThreadCluster
    from heald.runtime.service.runtime import runtime
    from heald_ray.session import ClusterSession

    own = runtime(config)
    return ClusterSession(graph, ThreadCluster, own.config.cluster.workers, own.config, own.config.cluster.max_steps)

@hookimpl
def heald_sessions(registry):
    registry.add("threads", connect)
'''
T0, T1 = "/job:worker/task:0", "/job:worker/task:1"
X = np.float32([1, 2, 3])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("plugin") / "thread_target.py"
    file.write_text(PLUGIN, "utf-8")
    return str(file)


@pytest.fixture
def config(path, monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "process_scope", runtime.ProcessScope())
    monkeypatch.chdir(tmp_path)
    return {"plugins": {"load": [path]}, "cluster": {"target": "threads", "workers": 2},
            "placement": {"remap": {"CPU:1": f"{T1}/device:CPU:0"}}}


def two_devices() -> Graph:
    return graph(placeholder("x", (3,)), node("y", "Neg", "x", device="/device:CPU:1"), node("z", "Abs", "y"))


def test_a_session_without_a_target_has_the_one_of_config(config, tmp_path):
    (tmp_path / "three.toml").write_text(
        f"[plugins]\nload = [{json.dumps(config['plugins']['load'][0])}]\n[cluster]\ntarget = 'threads'\nworkers = 3\n"
        f"[placement.remap]\n'CPU:1' = '{T1}/device:CPU:0'\n", "utf-8")
    for settings, workers in ((config, 2), (str(tmp_path / "three.toml"), 3)):
        with heald.Session(two_devices(), settings) as session:
            assert isinstance(session, ClusterSession)
            assert len(session.cluster.workers) == workers
            assert session.run("z", {"x": X}).tolist() == [1, 2, 3]
            assert session.placement()["y"].device == "/job:worker/replica:0/task:1/device:CPU:0"
            assert session.placement().table()[1]["assigned"] == "/job:worker/replica:0/task:1/device:CPU:0"


def test_workers_get_the_layers_of_the_caller_with_their_origins(tmp_path, monkeypatch):
    (tmp_path / "own.toml").write_text("[work_queue]\nthreads = 2\n[files]\nread = ['data']\n", "utf-8")
    (tmp_path / "heald.toml").write_text("[passes]\ndisable = ['fusion']\n", "utf-8")
    monkeypatch.setenv("HEALD_LIMITS__MEMORY", "90%")
    monkeypatch.chdir(tmp_path)
    texts: list[str] = []

    def start(parts, text):
        texts.append(text)
        return ThreadCluster(parts, text)

    whole = graph(placeholder("x", (3,)), node("z", "Abs", "x", device=T1))
    with ClusterSession(whole, start, 2, "own.toml") as session:
        assert session.run("z", {"x": X}).tolist() == [1, 2, 3]
    rows = {row.key: (row.value, row.origin) for row in unpack_config(texts[0]).origins()}
    assert rows["files.read"] == ((str(tmp_path / "data"),), "own.toml:4 of the caller")
    assert rows["work_queue.threads"] == (2, "own.toml:2 of the caller")
    assert rows["limits.memory"] == ("90%", "environment HEALD_LIMITS__MEMORY of the caller")
    assert rows["passes.disable"][1] == f"{tmp_path / 'heald.toml'}:2 of the caller"


@pytest.mark.filterwarnings("ignore:config remaps")
def test_the_target_local_is_this_process(config):
    config["placement"] = {"fallback": "allow"}
    with heald.Session(two_devices(), config, target="local") as session:
        assert type(session) is heald.Session


@pytest.mark.parametrize(("section", "kind", "message"), [
    ({"target": "threads", "workers": 0}, InvalidArgument, "argument: [cluster] workers is 0"),
    ({"target": "threads", "max_step": 3}, InvalidArgument, "did you mean max_steps?"),
    ({"target": "thread"}, NotFound, "no plugin serves the target 'thread'"),
    ({"target": 3}, InvalidArgument, "cluster.target must be a string, not 3"),
])
def test_a_mistake_in_the_section_is_a_typed_error(config, section, kind, message):
    with pytest.raises(kind) as caught:
        heald.Session(two_devices(), config | {"cluster": section})
    assert message in str(caught.value)


def test_a_found_file_chooses_no_target(config, tmp_path, monkeypatch):
    (tmp_path / "heald.toml").write_text("[cluster]\ntarget = 'threads'\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    del config["cluster"]
    config["placement"] = {"fallback": "allow"}
    with pytest.warns(HealdWarning, match="cannot set cluster.target"):
        session = heald.Session(two_devices(), config)
    assert type(session) is heald.Session


def counter() -> Graph:
    """A variable on task 1 with an initializer, and a step that adds x to it."""
    reference = {"dtype": dtypes.float32, "shape": (3,), "shared_name": "v", "container": ""}
    typed = {"dtype": dtypes.float32}
    return graph(placeholder("x", (3,)), Node("v", "VarHandleOp", attrs=reference, device=T1),
                 const("zero", [0.0, 0.0, 0.0]), Node("init", "AssignVariableOp", ["v", "zero"], attrs=typed),
                 Node("more", "AssignAddVariableOp", ["v", "x"], attrs=typed),
                 Node("value", "ReadVariableOp", ["v", "^more"], attrs=typed),
                 node("sum", "Neg", "value", device=T0))


def test_a_model_runs_at_the_target_of_config(config, tmp_path):
    heald.graphdef.dump(two_devices(), tmp_path / "model.pb")
    model = heald.load(tmp_path / "model.pb", config=config)
    with model.session:
        assert model(X).tolist() == model(x=X, options=heald.RunOptions(timeout=20)).tolist() == [1, 2, 3]
        assert model.placement()["y"].device.startswith("/job:worker/replica:0/task:1")
        assert model.session.run("y", {"x": X}).tolist() == [-1, -2, -3]
        assert len(model.session.partitions("y", ["x"])) == 2
        with pytest.raises(Unimplemented, match="asynchronous"):
            model.asynchronous()
        with pytest.raises(Unimplemented):
            model.session.partial_run_setup("y", ["x"])
        with pytest.raises(InvalidArgument):
            model(X[:2])
        model.session.extend(graph(node("w", "Neg", "z")))
        assert model.session.run("w", {"x": X}).tolist() == [-1, -2, -3]


def test_the_initial_state_of_a_model_is_the_target_s(config, tmp_path):
    with heald.Session(counter(), {"placement": {"clear": True}}) as session:
        session.run([], targets=["init"])
        session.run([], {"x": X}, targets=["more"])
        signatures = {"serving_default": ({"x": "x:0"}, {"sum": "sum:0"})}
        heald.saved_model.save(session, tmp_path / "saved", signatures=signatures)
    model = heald.load(tmp_path / "saved", config=config)
    with model.session:
        assert model(X).tolist() == (-2 * X).tolist()
        assert model(X).tolist() == (-3 * X).tolist()
        assert model.session.placement()["v"].device.startswith("/job:worker/replica:0/task:1")
        model.session.reset()
        assert model(X).tolist() == (-2 * X).tolist()


@pytest.fixture
def words(config, tmp_path) -> list[str]:
    """The words of a command for a model and a named file of config."""
    heald.graphdef.dump(two_devices(), tmp_path / "model.pb")
    (tmp_path / "cluster.toml").write_text(
        f"[plugins]\nload = [{json.dumps(config['plugins']['load'][0])}]\n[cluster]\ntarget = 'threads'\n"
        f"[placement.remap]\n'CPU:1' = '{T1}/device:CPU:0'\n", "utf-8")
    return [str(tmp_path / "model.pb"), "--config", str(tmp_path / "cluster.toml"), "--json"]


def test_heald_run_runs_at_the_target_of_a_named_file(words, command):
    done = command("run", *words, "--input", "x=[1,2,3]")
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out)["outputs"]["z"]["values"] == [1, 2, 3]


def test_a_model_is_compiled_and_reported_in_this_process(words, config, command, tmp_path):
    settings = config | {"placement": {"clear": True}}
    assert compile_model(tmp_path / "model.pb", config=settings).entries
    with in_this_process():
        assert type(heald.load(tmp_path / "model.pb", config=settings).session) is heald.Session
    done = command("report", *words[:3], "-o", str(tmp_path / "report.html"))
    assert done.status == 0, done.err


def test_heald_trace_has_the_events_of_all_workers(words, command, tmp_path):
    done = command("trace", *words, "--input", "x=[1,2,3]", "-o", str(tmp_path / "trace.json"))
    assert (done.status, done.err) == (0, "")
    devices = {row["node"]: row["device"] for row in json.loads(done.out)["calls"]}
    assert devices["y"] == "/job:worker/replica:0/task:1/device:CPU:0"
    assert devices["z"] == "/job:worker/replica:0/task:0/device:CPU:0"
    rows = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    assert {row["pid"] for row in rows} == {0, 1}


def test_heald_explain_shows_the_worker_of_each_node(words, command):
    done = command("explain", *words)
    assert (done.status, done.err) == (0, "")
    assigned = {row["node"]: row["assigned"] for row in json.loads(done.out)}
    assert assigned["y"] == "/job:worker/replica:0/task:1/device:CPU:0"
    assert assigned["z"] == "/job:worker/replica:0/task:0/device:CPU:0"
