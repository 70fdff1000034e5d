"""The life of versions: found, loaded, served, drained, as TensorFlow Serving's manager moves them. No test waits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from harness.serve_models import echo
from heald.errors import DataLoss, FailedPrecondition, InvalidArgument, NotFound
from heald_serve.models.manager_thread import ManagerThread
from heald_serve.models.model_config import ModelConfig, VersionPolicy
from heald_serve.models.model_manager import ManagerSettings, ModelManager
from heald_serve.models.version_folders import has_versions, list_versions

SIGNATURES = echo(x="float32")
LATEST, TWO_RETRIES = VersionPolicy(), ManagerSettings(2, 60.0)


class World:
    """A base path with folders of versions, a clock, and a loader that fails for broken versions."""

    def __init__(self, folder, *, policy=LATEST, labels=None, settings=TWO_RETRIES):
        self.base_path = folder / "m"
        self.base_path.mkdir()
        self.broken, self.loaded, self.lines, self.now = set(), [], [], 0.0
        self.config = ModelConfig("m", self.base_path, policy, labels or {})
        self.manager = ModelManager(self.load, settings, report=self.lines.append, clock=lambda: self.now)
        self.manager.configure([self.config])

    def load(self, path):
        self.loaded.append(int(path.name))
        if int(path.name) in self.broken:
            raise DataLoss(f"version {path.name} is broken")
        return SIGNATURES

    def add(self, *versions):
        for version in versions:
            (self.base_path / str(version)).mkdir()

    def remove(self, *versions):
        for version in versions:
            (self.base_path / str(version)).rmdir()

    def settle(self):
        self.manager.poll()
        self.manager.settle()

    @property
    def states(self):
        return {status.version: status.state for status in self.manager.statuses("m")}

    @property
    def serving(self):
        with self.manager.find("m") as lease:
            return lease.version


def test_folders_with_numbers_are_versions(tmp_path):
    for name in ("1", "02", "2", "x", "3.5", "-4", "99999999999999999999", "9223372036854775807"):
        (tmp_path / name).mkdir()
    (tmp_path / "7").write_text("a file")
    assert {version: path.name for version, path in list_versions(tmp_path).items()} == {
        1: "1", 2: "2", 9223372036854775807: "9223372036854775807"}
    assert has_versions(tmp_path)
    assert not has_versions(tmp_path / "1")
    assert not has_versions(tmp_path / "none")
    with pytest.raises(NotFound):
        list_versions(tmp_path / "none")


@pytest.mark.parametrize(("policy", "versions"), [
    (VersionPolicy(), [5]), (VersionPolicy(latest_count=2), [5, 3]), (VersionPolicy("all"), [5, 3, 1]),
    (VersionPolicy("specific", 1, frozenset({1, 4, 3})), [3, 1])])
def test_a_policy_chooses_versions(tmp_path, policy, versions):
    world = World(tmp_path, policy=policy)
    world.add(1, 3, 5)
    world.settle()
    assert world.loaded == versions  # the highest first
    assert world.states == dict.fromkeys(versions, "AVAILABLE")


def test_a_new_version_serves_before_the_old_one_ends(tmp_path):
    world = World(tmp_path)
    world.add(1)
    world.settle()
    world.add(2)
    world.manager.poll()
    assert world.serving == 1
    assert world.manager.do_next_action()
    assert world.states == {1: "AVAILABLE", 2: "AVAILABLE"}
    assert world.serving == 2
    assert world.manager.do_next_action()
    assert not world.manager.do_next_action()
    assert world.states == {1: "END", 2: "AVAILABLE"}


def test_a_running_request_keeps_its_version(tmp_path):
    world = World(tmp_path)
    world.add(1)
    world.settle()
    lease = world.manager.find("m")
    world.add(2)
    world.settle()
    assert world.states == {1: "UNLOADING", 2: "AVAILABLE"}
    with pytest.raises(NotFound, match=r"Specific\(m, 1\)"):
        world.manager.find("m", 1)
    assert lease.signatures is SIGNATURES
    lease.close()
    lease.close()
    assert world.states == {1: "END", 2: "AVAILABLE"}


def test_a_broken_version_leaves_the_old_one_serving_and_is_shown(tmp_path):
    world = World(tmp_path)
    world.add(1)
    world.settle()
    world.broken.add(2)
    world.add(2)
    world.settle()
    assert world.states == {1: "AVAILABLE", 2: "START"}
    for attempt in (1, 2):
        world.now += 59
        assert not world.manager.do_next_action()
        assert world.manager.seconds_to_next_attempt() == 1
        world.now += 1
        world.manager.settle()
        assert world.loaded.count(2) == attempt + 1
    world.now += 1000
    world.settle()
    assert world.loaded.count(2) == 3
    assert world.serving == 1
    (status, _) = world.manager.statuses("m")
    assert (status.state, str(status.error)) == ("END", "version 2 is broken")


def test_a_failed_version_is_tried_anew_when_its_folder_returns(tmp_path):
    world = World(tmp_path, settings=ManagerSettings(0))
    world.broken.add(1)
    world.add(1)
    world.settle()
    world.settle()
    assert (world.states, world.loaded) == ({1: "END"}, [1])
    assert [repr(servable) for servable in world.manager.unavailable()] == ["{name: m version: 1}"]
    world.remove(1)
    world.settle()
    world.broken.clear()
    world.add(1)
    world.settle()
    assert (world.states, world.manager.is_ready()) == ({1: "AVAILABLE"}, True)


def test_a_missing_base_path_unloads_nothing_and_an_empty_one_all(tmp_path):
    world = World(tmp_path)
    world.add(1)
    world.settle()
    world.base_path.rename(tmp_path / "aside")
    with pytest.raises(NotFound):
        world.manager.poll()
    world.manager.settle()
    assert world.serving == 1
    (tmp_path / "aside").rename(world.base_path)
    world.remove(1)
    world.settle()
    assert world.states == {1: "END"}
    with pytest.raises(NotFound, match=r"Latest\(m\)"):
        world.manager.find("m")


def test_a_version_that_leaves_before_its_load_ends(tmp_path):
    world = World(tmp_path, settings=ManagerSettings(5))
    world.broken.add(1)
    world.add(1)
    world.settle()
    world.remove(1)
    world.settle()
    assert world.states == {1: "END"}
    assert world.manager.seconds_to_next_attempt() is None


def test_labels_name_available_versions(tmp_path):
    world = World(tmp_path, policy=VersionPolicy("all"))
    world.add(1, 2)
    with pytest.raises(FailedPrecondition, match="Request to assign label to version 1 of model m, which is not curr"):
        world.manager.configure([world.config._replace(labels={"stable": 1})])
    world.settle()
    world.manager.configure([world.config._replace(labels={"stable": 1})])
    assert world.manager.find("m", label="stable").version == 1
    with pytest.raises(InvalidArgument, match="Unrecognized servable version label: none"):
        world.manager.find("m", label="none")
    with pytest.raises(FailedPrecondition):
        world.manager.configure([world.config._replace(labels={"stable": 9})])
    assert world.manager.find("m", label="stable").version == 1


def test_a_new_label_may_name_any_version_with_the_option(tmp_path):
    settings = ManagerSettings(may_label_unavailable=True)
    world = World(tmp_path, policy=VersionPolicy("all"), labels={"stable": 1}, settings=settings)
    with pytest.raises(NotFound):
        world.manager.find("m", label="stable")
    world.add(1)
    world.settle()
    assert world.manager.find("m", label="stable").version == 1
    with pytest.raises(FailedPrecondition):  # a label moves to available versions alone
        world.manager.configure([world.config._replace(labels={"stable": 2})])


def test_a_model_that_is_no_longer_listed_is_unloaded(tmp_path):
    world = World(tmp_path)
    world.add(1)
    world.settle()
    world.manager.configure([])
    world.settle()
    assert world.states == {1: "END"}
    world.manager.configure([world.config])
    world.settle()
    assert world.states == {1: "AVAILABLE"}


def test_a_single_model_is_version_1(tmp_path):
    manager = ModelManager(lambda path: SIGNATURES)
    manager.configure([ModelConfig("one", tmp_path / "one.pb", is_single=True)])
    manager.poll()
    manager.settle()
    assert [(row.version, row.state) for row in manager.statuses("one")] == [(1, "AVAILABLE")]
    assert manager.names() == ["one"]


def test_states_that_do_not_exist_are_not_found(tmp_path):
    world = World(tmp_path)
    with pytest.raises(NotFound, match="Could not find any versions of model m"):
        world.manager.statuses("m")
    world.add(1)
    world.settle()
    with pytest.raises(NotFound, match="Could not find version 9 of model m"):
        world.manager.statuses("m", 9)


def test_an_exception_of_a_loader_becomes_the_error_of_the_version(tmp_path):
    def load(path):
        raise KeyError("boom")

    manager = ModelManager(load, ManagerSettings(0))
    manager.configure([ModelConfig("one", tmp_path, is_single=True)])
    manager.poll()
    manager.settle()
    (row,) = manager.statuses("one")
    assert (row.state, "boom" in str(row.error)) == ("END", True)


def test_loads_run_at_once_in_threads_of_their_own(tmp_path):
    both = [Event(), Event()]

    def load(path):
        number = int(path.name)
        both[number].set()
        assert both[1 - number].wait(30)  # each waits for the other
        return SIGNATURES

    with ThreadPoolExecutor(2) as loads:
        manager = ModelManager(load, loads=loads)
        manager.configure([ModelConfig(name, tmp_path / name, is_single=True) for name in "01"])
        manager.poll()
        manager.settle()
    assert manager.is_ready()


def test_the_thread_reads_the_file_of_models_again_and_survives_faults(tmp_path):
    """The file is first broken, then raises an error that no reader states, then lists a second model."""
    one, two = (ModelConfig(name, tmp_path / name, is_single=True) for name in ("one", "two"))
    lines, loaded = [], Event()
    readings = iter([DataLoss("the file is broken"), DataLoss("the file is broken"), KeyError("boom")])

    def read():
        fault = next(readings, None)
        if fault is not None:
            raise fault
        return [one, two]

    def report(line):
        lines.append(line)
        if line == "successfully loaded servable version {name: two version: 1}":
            loaded.set()

    manager = ModelManager(lambda path: SIGNATURES, report=report)
    manager.configure([one])
    manager.poll()
    manager.settle()
    thread = ManagerThread(manager, -1, config_seconds=0.001, read_configs=read, report=report)
    thread.start()
    assert loaded.wait(30)
    thread.close()
    assert lines.count("the file is broken") == 1
    assert any("boom" in line for line in lines)
    assert manager.names() == ["one", "two"]


def test_a_new_list_that_cannot_be_read_leaves_the_old_one(tmp_path):
    world = World(tmp_path)
    world.add(1)
    world.settle()
    absent = ModelConfig("n", tmp_path / "absent")
    for configs in ([absent], [world.config, absent], [world.config._replace(labels={"stable": 9})]):
        with pytest.raises((NotFound, FailedPrecondition)):
            world.manager.replace_models(configs)
        assert world.manager.names() == ["m"]
    world.add(2)
    world.settle()
    assert world.serving == 2
    world.manager.replace_models([])
    world.manager.settle()
    assert world.states == {1: "END", 2: "END"}
