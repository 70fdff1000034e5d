"""Kills processes that write files, without end, at random moments, and reads the files that they leave.

    PYTHONPATH=tests python -m workers.kill_writers --kills 200

Each writer of `harness.writers` has a process of its own, whose children write one version after the other and are
ended by SIGKILL. The exit status is 1 when a version that was complete is lost, or a file is not whole.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter

from harness.writers import SEVERAL, WRITERS

VERSIONS = range(1, 10)


def write_without_end(name: str, folder: Path, first: int, done: int) -> None:
    for version in cycle((*VERSIONS[first - 1:], *VERSIONS[: first - 1])):
        WRITERS[name].write(folder, version)
        os.write(done, bytes([version]))


def kill_writer(name: str, folder: Path, first: int, seconds: float) -> int:
    """Kill a child this long after its first version; return the last version that it completed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write_without_end(name, folder, first, writer)
        finally:
            os._exit(1)
    os.close(writer)
    versions = os.read(reader, 1)
    if versions:
        select.select([], [], [], seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status):
        raise SystemExit(f"{name}: the writer failed")
    while more := os.read(reader, 1 << 16):
        versions += more
    os.close(reader)
    return versions[-1]


def run_campaign(name: str, kills: int, seed: int) -> int:
    """Return the number of kills that left a temporary folder, which the next writer removes."""
    draw = Random(seed)  # noqa: S311 - delays, no secrets
    interrupted = 0
    with TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        WRITERS[name].write(folder, VERSIONS[-2])  # imports modules, which takes longer than the write
        start = perf_counter()
        WRITERS[name].write(folder, VERSIONS[-1])
        seconds = perf_counter() - start
        first = VERSIONS[0]
        for _ in range(kills):
            last = kill_writer(name, folder, first, draw.random() * 3 * seconds)
            first = last % len(VERSIONS) + 1
            versions = WRITERS[name].read(folder)
            allowed = versions in ({last}, {first}) or (name in SEVERAL and versions == {last, first})
            if not allowed and not (name == "new plugin" and not versions):  # it moves the older plugin away
                raise SystemExit(f"{name}: version {last} was complete, {versions} is there")
            interrupted += any(folder.rglob(".heald-*.tmp"))
        WRITERS[name].write(folder, first)
        if left := list(folder.rglob(".heald-*.tmp")):
            raise SystemExit(f"{name}: {left} was left")
    return interrupted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="kills of each writer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writer", choices=WRITERS, help="one writer, in this process")
    options = parser.parse_args()
    if options.writer is not None:
        interrupted = run_campaign(options.writer, options.kills, options.seed)
        print(f"{options.writer}: {options.kills} kills, {interrupted} within a write", flush=True)
        return 0
    command = [sys.executable, "-m", "workers.kill_writers", "--kills", str(options.kills), "--seed", str(options.seed)]
    statuses = [subprocess.run([*command, "--writer", name], check=False).returncode for name in WRITERS]
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main())
