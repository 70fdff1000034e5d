"""The caller's config on a worker: settings keep their type, origin and rank. No cluster starts."""

from __future__ import annotations

import os

import pytest
from heald.errors import InvalidArgument, NotFound
from heald.runtime.config import load_config
from heald_ray.sent_config import pack_config, unpack_config


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """The folders of a caller and of a worker. The process is in the caller's; no variable of heald is set."""
    for name in [name for name in os.environ if name.startswith("HEALD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for name in ("caller", "worker"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "caller")
    return tmp_path / "caller", tmp_path / "worker"


def origins_of(config):
    return {row.key: (row.value, row.origin) for row in config.origins() if row.origin != "default"}


def test_each_source_of_the_caller_arrives_with_its_type_and_origin(folders, monkeypatch):
    caller, worker = folders
    (caller / "heald.toml").write_text('[passes]\ndisable = ["fusion"]\n')
    (caller / "own.toml").write_text('[files]\nread = ["/data"]\n')
    monkeypatch.setenv("HEALD_CONFIG", "own.toml")
    monkeypatch.setenv("HEALD_WORK_QUEUE__THREADS", "3")
    text = pack_config({"limits": {"memory": "50%"}})
    monkeypatch.chdir(worker)
    for name in ("HEALD_CONFIG", "HEALD_WORK_QUEUE__THREADS"):
        monkeypatch.delenv(name)
    config = unpack_config(text)
    assert (config.passes.disable, config.files.read, config.work_queue.threads, config.limits.memory) == (
        ("fusion",), ("/data",), 3, "50%")
    assert origins_of(config)["work_queue.threads"][1] == "environment HEALD_WORK_QUEUE__THREADS of the caller"


def test_a_relative_file_of_the_caller_counts_on_a_worker_of_another_folder(folders, monkeypatch):
    caller, worker = folders
    (caller / "own.toml").write_text("[work_queue]\nthreads = 3\n")
    monkeypatch.setenv("HEALD_CONFIG", "own.toml")
    text = pack_config()
    monkeypatch.chdir(worker)
    assert unpack_config(text).work_queue.threads == 3


def test_options_of_plugins_from_variables_stay_texts_that_the_plugin_types(folders, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGIN__ONEDNN__THREADS", "2")
    text = pack_config()
    monkeypatch.delenv("HEALD_PLUGIN__ONEDNN__THREADS")
    [layer] = unpack_config(text).plugin_layers("onednn")
    assert (layer.value["threads"].value, layer.value["threads"].is_text) == ("2", True)


def test_a_found_file_of_the_caller_sets_no_more_on_a_worker_than_at_home(folders, monkeypatch):
    caller, worker = folders
    (caller / "heald.toml").write_text('[plugins]\nload = ["evil.py"]\nblock = ["sim"]\n')
    text = pack_config()
    monkeypatch.chdir(worker)
    config = unpack_config(text)
    assert (config.plugins.load, config.plugins.block) == ((), ("sim",))


def test_a_workers_own_settings_count_behind_the_callers(folders, monkeypatch):
    text = pack_config({"work_queue": {"threads": 1}})
    monkeypatch.setenv("HEALD_WORK_QUEUE__THREADS", "4")
    monkeypatch.setenv("HEALD_LIMITS__MEMORY", "20%")
    config = unpack_config(text)
    assert (config.work_queue.threads, config.limits.memory) == (1, "20%")


def test_relative_paths_of_each_source_are_those_of_the_callers_folder(folders, monkeypatch):
    caller, worker = folders
    (caller / "own.toml").write_text(
        '[cluster]\ncheckpoint = "saved/model"\n[plugins]\nload = ["one.py", "two.three"]\n')
    monkeypatch.setenv("HEALD_CONFIG", "own.toml")
    monkeypatch.setenv("HEALD_FILES__WRITE", "results, /data/more")
    monkeypatch.setenv("HEALD_PLACEMENT", "{statistics = 'times.pb', order = ['CPU']}")
    text = pack_config({"files": {"read": ["data", "data/more"]}})
    monkeypatch.chdir(worker)
    for name in ("HEALD_FILES__WRITE", "HEALD_PLACEMENT"):
        monkeypatch.delenv(name)
    config = unpack_config(text)
    assert config.files.read == (str(caller / "data"), str(caller / "data/more"))
    assert config.files.write == (str(caller / "results"), "/data/more")
    assert (config.placement.statistics, config.placement.order) == (str(caller / "times.pb"), ("CPU",))
    assert config.cluster.checkpoint == str(caller / "saved/model")
    assert config.plugins.load == (str(caller / "one.py"), "two.three")
    assert origins_of(config)["files.write"][1] == "environment HEALD_FILES__WRITE of the caller"


def test_no_path_stays_no_path(folders, monkeypatch):
    monkeypatch.setenv("HEALD_PLACEMENT__STATISTICS", "none")
    config = unpack_config(pack_config({"files": {"read": []}, "cluster": {"checkpoint": None}}))
    assert (config.placement.statistics, config.files.read, config.cluster.checkpoint) == (None, (), None)


def test_a_worker_reads_no_file_that_its_caller_names_but_one_of_its_own(folders, monkeypatch):
    caller, worker = folders
    (caller / "own.toml").write_text("[work_queue]\nthreads = 3\n")
    (worker / "node.toml").write_text('[work_queue]\nthreads = 9\n[limits]\nmemory = "20%"\n')
    monkeypatch.setenv("HEALD_CONFIG", str(caller / "own.toml"))
    text = pack_config()
    monkeypatch.chdir(worker)
    (caller / "own.toml").unlink()
    assert unpack_config(text).work_queue.threads == 3
    monkeypatch.setenv("HEALD_CONFIG", str(worker / "node.toml"))
    config = unpack_config(text)
    assert (config.work_queue.threads, config.limits.memory) == (3, "20%")


def test_the_config_of_a_runtime_is_sent_as_it_is(folders):
    config = unpack_config(pack_config(load_config({"kernels": {"Add": "b"}})))
    assert origins_of(config) == {"kernels.Add": ("b", "argument of the caller")}


def test_dates_of_files_arrive_as_texts(folders):
    caller, _ = folders
    (caller / "own.toml").write_text("[plugin.x]\nsince = 2026-01-02\nat = 10:00:00\n")
    assert unpack_config(pack_config(caller / "own.toml")).plugin("x") == {"since": "2026-01-02", "at": "10:00:00"}


@pytest.mark.parametrize("value", [object(), [object()], {1, 2}, b"a", 1j])
def test_a_value_that_json_lacks_is_an_error_at_the_caller(folders, value):
    with pytest.raises(InvalidArgument, match="sent as JSON"):
        pack_config({"plugin": {"x": {"a": value}}})


@pytest.mark.parametrize(("argument", "kind"), [
    ({"passes": {"disabled": []}}, InvalidArgument), ({"limits": 3}, InvalidArgument), (7, InvalidArgument),
    ("absent.toml", NotFound), ({1: 2}, InvalidArgument),
])
def test_a_mistake_is_an_error_at_the_caller(folders, argument, kind):
    with pytest.raises(kind):
        pack_config(argument)
