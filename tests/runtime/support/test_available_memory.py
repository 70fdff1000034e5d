"""The memory that is available is the least that the system and the control groups leave."""

from __future__ import annotations

import pytest
from heald.runtime.support.available_memory import available_memory
from heald.runtime.support.memory_size import physical_memory, share_or_bytes

MEMINFO = "MemTotal:  8000 kB\nMemFree: 10 kB\nMemAvailable:   5000 kB\n"
V1, V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"


def v1(limit, usage, cache=0):
    return {"memory.limit_in_bytes": limit, "memory.usage_in_bytes": usage,
            "memory.stat": f"cache 1\nactive_file 7\ntotal_inactive_file {cache}\ntotal_active_file 0\n"}


def v2(limit, usage, cache=0):
    return {"memory.max": limit, "memory.current": usage,
            "memory.stat": f"anon 5\nfile 9\ninactive_file {cache}\nactive_file 0\nworkingset_refault_file 3\n"}


@pytest.fixture
def available(tmp_path):
    def of(groups="", folders=(), meminfo=MEMINFO):
        files = {"proc/meminfo": meminfo, "proc/self/cgroup": groups}
        for folder, figures in dict(folders).items():
            files |= {f"{folder}/{name}": str(text) for name, text in figures.items()}
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{text}\n")
        return available_memory(str(tmp_path))

    return of


def test_a_process_outside_groups_has_the_memory_of_the_system(available):
    assert available() == 5000 << 10


def test_a_group_leaves_its_limit_less_its_use_without_page_cache(available):
    assert available("0::/a/b", {f"{V2}/a/b": v2(1_000_000, 600_000, 100_000)}) == 500_000


def test_a_group_of_version_1_counts_alike(available):
    groups = "9:name=systemd:/\n4:cpu,memory:/a\n0::/x"
    assert available(groups, {f"{V1}/a": v1(1_000_000, 600_000, 100_000)}) == 500_000


def test_the_tightest_group_above_the_process_counts(available):
    assert available("0::/a/b", {f"{V2}/a/b": v2("max", 5), f"{V2}/a": v2(700_000, 0), V2: v2(900_000, 0)}) == 700_000


def test_in_a_container_the_root_of_the_mount_is_its_own_group(available):
    assert available("4:memory:/docker/0123", {V1: v1(800_000, 100_000)}) == 700_000


def test_no_limit_leaves_the_systems(available):
    assert available("4:memory:/a", {f"{V1}/a": v1(9223372036854771712, 600_000)}) == 5000 << 10


def test_a_group_that_is_over_its_limit_leaves_nothing(available):
    assert available("0::/a", {f"{V2}/a": v2(1000, 2000)}) == 0


def test_a_system_that_tells_nothing_has_its_physical_memory(available):
    assert available(meminfo="") == physical_memory()


def test_a_share_of_unknown_memory_is_no_limit():
    assert share_or_bytes("80%", lambda: None, "a setting") is None
    assert share_or_bytes("1GB", lambda: None, "a setting") == 10**9
    assert share_or_bytes("50%", lambda: 1000, "a setting") == 500
