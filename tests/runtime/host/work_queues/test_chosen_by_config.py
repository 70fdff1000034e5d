"""Config chooses the work queue; the host context makes it when it is first asked for, and closes it."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from heald.errors import FailedPrecondition, InvalidArgument, NotFound, PluginError
from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import Runtime

PLUGIN = """
from heald.api import hookimpl
HEALD_API = (1, 0)

class Recording:
    parallelism_level = 5

    def __init__(self, config):
        self.config = config
        self.did = []

    def add_task(self, task):
        self.did.append("add_task")
        task()

    def add_blocking_task(self, task, allow_queuing):
        task()
        return True

    def await_values(self, values, timeout=None):
        return all(value.is_available() for value in values)

    def quiesce(self, timeout=None):
        return True

    def close(self):
        self.did.append("close")

def broken(config):
    raise RuntimeError("no such luck")

@hookimpl
def heald_work_queues(registry):
    registry.add("recording", Recording)
    registry.add("broken", broken)
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("plugin") / "queues_of_mine.py"
    path.write_text(PLUGIN, "utf-8")
    return str(path)


def runtime(work_queue: dict[str, Any], *plugins: str) -> Runtime:
    config = {"plugins": {"load": list(plugins), "allow": []}, "work_queue": work_queue}
    return Runtime(load_config(config, environ={}))


@pytest.mark.parametrize(("name", "level"), [("single_threaded", 1), ("seeded", 1), ("multi_threaded", 3)])
def test_given_queues_are_chosen_by_name(name: str, level: int) -> None:
    host = runtime({"name": name, "threads": 3, "seed": 4}).host
    queue = host.work_queue
    assert type(queue).__name__.lower() == f"{name.replace('_', '')}workqueue"
    assert queue.parallelism_level == level
    assert host.work_queue is queue
    host.close()
    with pytest.raises(FailedPrecondition, match="closed"):
        queue.add_task(print)


def test_a_queue_of_a_plugin_is_used_by_config_alone(plugin: str) -> None:
    host = runtime({"name": "recording", "threads": 5}, plugin).host
    queue: Any = host.work_queue
    ran: list[int] = []
    queue.add_task(lambda: ran.append(1))
    host.close()
    assert (ran, queue.did, queue.config.threads) == ([1], ["add_task", "add_task", "close"], 5)  # trial first


def test_a_queue_is_closed_with_the_last_use_of_its_host(plugin: str) -> None:
    before = set(threading.enumerate())
    owner = runtime({"name": "recording"}, plugin)
    recording: Any = owner.host.work_queue
    other = runtime({})
    other.host.work_queue.add_task(lambda: None)
    assert other.host.work_queue.quiesce(10)
    del owner, other
    gc.collect()
    assert recording.did == ["add_task", "close"]
    assert set(threading.enumerate()) <= before


def test_no_queue_is_made_before_somebody_asks(plugin: str) -> None:
    runtime({"name": "broken"}, plugin).host.close()


@pytest.mark.parametrize(("settings", "error", "message"), [
    ({"name": "brokn"}, NotFound, "no work queue is called 'brokn'; [work_queue] name: one of broken, multi_threaded,"),
    ({"name": "broken"}, PluginError, "queue 'broken' of plugin queues_of_mine raised RuntimeError: no such luck"),
    ({"threads": 0}, InvalidArgument, "[work_queue] threads must be from 1 to 4096"),
    ({"threads": "two"}, InvalidArgument, "work_queue.threads must be an integer or none"),
    ({"nmae": "x"}, InvalidArgument, "[work_queue] has no key 'nmae'; did you mean name?"),
])
def test_a_mistake_in_config_is_an_error_that_says_the_way_out(
    settings: dict[str, Any], error: type[Exception], message: str, plugin: str
) -> None:
    with pytest.raises(error) as caught:
        runtime(settings, plugin).host.work_queue  # noqa: B018
    assert message in str(caught.value)
