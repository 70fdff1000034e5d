"""Device process: devices are listed and checked in a process of their own, which their driver may take down.

Drivers share the libraries of their process. TensorFlow and PoCL each bring an LLVM, and two of them in one process end
in a segmentation fault. So a list of all devices scans the device types that serve on request only in such processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

from ..contract.device_cost import DeviceCost
from ..host.device_record import DeviceRecord

LARGEST_WAIT = 60  # seconds that a process has to answer
LARGEST_WAIT_OF_CHECK = 240  # seconds with a check, which bounds its own steps and tells of them


def can_start_python() -> bool:
    """False in a program that brings its own interpreter: there is no command that starts Python alone."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def list_apart(device: Mapping[str, Any], plugins: Iterable[str], *, check: bool = False) -> list[dict[str, Any]]:
    """The rows of `heald devices NAME --json` in a process of its own, by default without the check of each device.

    `device`: the row of a process that dies or does not answer, but for its reason. Its name may be `TYPE:*`.
    `plugins`: the values of --plugin.
    """
    command = [sys.executable, "-P", "-m", "heald", "devices", device["name"], "--json"]
    command += [word for plugin in plugins for word in ("--plugin", plugin)]
    start = perf_counter()
    wait = LARGEST_WAIT_OF_CHECK if check else LARGEST_WAIT
    try:
        done = subprocess.run([*command, *(["--check"] if check else [])], capture_output=True, encoding="utf-8",  # noqa: S603
                              env=_environment(), timeout=wait, check=False)
    except subprocess.TimeoutExpired:
        reason = (f"no answer of the process that {'checks' if check else 'scans'} {device['name']} "
                  f"(plugin {device['plugin']}) within {wait} s")
    else:
        if done.returncode >= 0 and done.stdout.startswith("["):
            rows: list[dict[str, Any]] = json.loads(done.stdout)
            return rows
        how = signal.Signals(-done.returncode).name if done.returncode < 0 else f"status {done.returncode}"
        reason = f"the process that checked it ended with {how}"
    took = round(1000 * (perf_counter() - start), 1)
    return [{"check": "FAIL", "ms": took, **device, "status": "unavailable", "reason": reason,
             "remedy": f"look at its driver, or set [plugins] block = ['{device['plugin']}']"}]


def record_of(row: Mapping[str, Any]) -> DeviceRecord:
    """The record of a device that another process scanned."""
    cost = row["attributes"].get("cost")
    return DeviceRecord(row["name"], row["type"], row["plugin"], row["status"], row["reason"], row["remedy"],
                        row["attributes"], None if cost is None else DeviceCost.of(cost))


def _environment() -> dict[str, str]:
    """This process's environment and module path, in which the working folder has no part."""
    path = os.pathsep.join(folder for folder in sys.path if os.path.isabs(folder))  # noqa: PTH117
    return os.environ | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
