"""The cores of helping threads: all of the caller's but the one where it runs."""

import os
import subprocess
import sys
import threading

import pytest
from heald_onednn.team import TASKS, keep_off_this_core, new_threads

pytestmark = pytest.mark.skipif(not TASKS.exists(), reason="threads have no ids in /proc here")


@pytest.fixture
def helper():
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    yield thread
    end.set()
    thread.join()


def test_new_threads_are_found(helper):
    assert new_threads(helper.start) == {helper.native_id}


def test_helpers_leave_the_core_of_the_caller_where_it_has_others(helper):
    helper.start()
    allowed = os.sched_getaffinity(0)
    keep_off_this_core([helper.native_id])
    helpers_cores = os.sched_getaffinity(helper.native_id)
    assert helpers_cores < allowed if len(allowed) > 1 else helpers_cores == allowed
    assert len(allowed) - len(helpers_cores) == (len(allowed) > 1)
    assert os.sched_getaffinity(0) == allowed


def test_threads_of_other_processes_stay_as_they_are():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        before = os.sched_getaffinity(process.pid)
        keep_off_this_core([process.pid])
        assert os.sched_getaffinity(process.pid) == before
        process.communicate()
