"""The caller's config on a worker: settings keep their type, origin and rank. No cluster starts."""

from __future__ import annotations

import os

import pytest
from heald.errors import InvalidArgument, NotFound
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


@pytest.mark.parametrize(("argument", "kind"), [
    ({"passes": {"disabled": []}}, InvalidArgument), ({"limits": 3}, InvalidArgument), (7, InvalidArgument),
    ("absent.toml", NotFound), ({1: 2}, InvalidArgument),
])
def test_a_mistake_is_an_error_at_the_caller(folders, argument, kind):
    with pytest.raises(kind):
        pack_config(argument)
