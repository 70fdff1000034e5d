"""heald doctor: the faults of this machine, its environment and its plugins, each with its remedy."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from heald.api.cli import add_json, plural, say, show, show_json, ticking

OK, WARNING, FAULT = "ok", "warning", "fault"
FEW_FILES = 1024  # open files
LITTLE_MEMORY = 1 << 30  # bytes
_LIBRARIES = {  # by module: the distribution, and its purpose here
    "PIL": ("pillow", "pictures"), "simplejpeg": ("simplejpeg", "JPEG of graphs"),
    "re2": ("google-re2", "regular expressions of graphs"), "scipy": ("scipy", "the rarer special functions"),
    "soundfile": ("soundfile", "sounds"), "soxr": ("soxr", "sounds of another rate"),
    "pyarrow": ("pyarrow", "Parquet, and large CSV"),
    "google_crc32c": ("google-crc32c", "checksums of checkpoints and TFRecord files"),
}


class Finding(NamedTuple):
    check: str
    state: str
    detail: str
    remedy: str = ""


def add_arguments(parser: ArgumentParser) -> None:
    add_json(parser)


def doctor(args: Namespace) -> int:
    """Print the findings. The status is 1 where one is a fault."""
    findings: list[Finding] = []
    for name, check in CHECKS.items():
        with ticking(f"looking at {name}"):
            findings += check()
    if args.json:
        show_json([finding._asdict() for finding in findings])
    else:
        show([finding._asdict() for finding in findings], ("check", "state", "detail", "remedy"),
             wrap=("detail", "remedy"))
        counts = {state: sum(finding.state == state for finding in findings) for state in (WARNING, FAULT)}
        say(f"\n{plural(counts[FAULT], 'fault')}, {plural(counts[WARNING], 'warning')}")
    return int(any(finding.state == FAULT for finding in findings))


def _check_python() -> Iterator[Finding]:
    yield Finding("python", OK, f"{platform.python_implementation()} {platform.python_version()} on "
                                f"{platform.system()} {platform.machine()}")


def _check_distributions() -> Iterator[Finding]:
    """The distributions of heald, which are of one version, and the libraries of others."""
    from importlib.metadata import distributions

    from heald.runtime.support import install

    versions = {install.normalized_name(dist.name): dist.version for dist in distributions()}
    own = {name: versions[name] for name in install.DISTRIBUTIONS if name in versions}
    core = own.get("heald-core", "")
    others = {name: version for name, version in own.items() if version.split(".")[:2] != core.split(".")[:2]}
    yield Finding("heald", FAULT if others else OK,
                  ", ".join(f"{name} {version}" for name, version in (others or own).items()),
                  install.install_hint(*others, upgrade=True) if others else "")
    yield Finding("libraries", OK, ", ".join(f"{name} {versions.get(name, 'of no distribution')}"
                                             for name in ("numpy", "protobuf")))
    for module, (name, purpose) in _LIBRARIES.items():
        if not install.is_importable(module):
            yield Finding("libraries", WARNING, f"{name} is missing: {purpose}", install.install_hint(name))


def _check_processors() -> Iterator[Finding]:
    count, usable = os.cpu_count() or 1, usable_cores()
    quota = _quota_of_cores()
    detail = f"{usable} of {count} cores" + (f", a quota of {quota:g}" if quota is not None else "")
    is_short = quota is not None and quota < usable
    yield Finding("processors", WARNING if is_short else OK, detail,
                  f"[work_queue] threads = {max(1, int(quota or 1))}" if is_short else "")
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads is not None and threads.isdigit() and int(threads) > usable:
        yield Finding("processors", WARNING, f"OMP_NUM_THREADS is {threads}, with {usable} cores",
                      f"OMP_NUM_THREADS={usable}")


def usable_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quota_of_cores() -> float | None:
    """The cores of the container's quota (cpu.max of cgroup v2); None without one."""
    text = read_text("/sys/fs/cgroup/cpu.max").split()
    return int(text[0]) / int(text[1]) if len(text) == 2 and text[0].isdigit() else None


def _check_memory() -> Iterator[Finding]:
    from heald.api.cli import byte_text

    lines = dict(line.split(":", 1) for line in read_text("/proc/meminfo").splitlines() if ":" in line)
    total, free = (int(lines[key].split()[0]) << 10 if key in lines else None for key in ("MemTotal", "MemAvailable"))
    bound = read_text("/sys/fs/cgroup/memory.max").strip()
    if total is None or free is None:
        yield Finding("memory", OK, "unknown on this system")
        return
    detail = f"{byte_text(free)} free of {byte_text(total)}"
    if bound.isdigit() and int(bound) < total:
        detail += f", a limit of {byte_text(int(bound))}"
        free = min(free, int(bound))
    is_little = free < LITTLE_MEMORY
    yield Finding("memory", WARNING if is_little else OK, detail,
                  "end other processes, or set [limits] memory" if is_little else "")


def _check_limits() -> Iterator[Finding]:
    try:
        import resource
    except ImportError:  # Windows
        return
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = files != resource.RLIM_INFINITY and files < FEW_FILES
    yield Finding("limits", WARNING if few else OK, f"{files:,} open files", f"ulimit -n {FEW_FILES}" if few else "")
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space != resource.RLIM_INFINITY:
        from heald.api.cli import byte_text

        yield Finding("limits", WARNING, f"an address space of {byte_text(space)}",
                      "ulimit -v unlimited: large models are mapped")


def _check_config() -> Iterator[Finding]:
    rows, fault = output_of("config", "show", "--origin")
    if fault:
        yield Finding("config", FAULT, fault, "heald config show")
        return
    ignored = [row for row in rows if row["ignored"]]
    files = sorted({row["origin"] for row in rows if row["origin"] not in ("", "default")})
    yield Finding("config", OK, f"from {', '.join(files)}" if files else "defaults")
    for row in ignored:
        yield Finding("config", WARNING, f"{row['key']} of {row['origin']} is ignored", "heald config trust FILE")


def _check_plugins() -> Iterator[Finding]:
    rows, fault = output_of("plugins")
    if fault:
        yield Finding("plugins", FAULT, fault, "heald plugins")
        return
    works = [row["id"] for row in rows if row["status"] == "ok"]
    yield Finding("plugins", OK if works else FAULT, ", ".join(works) or "none")
    for row in rows:
        if row["status"] not in ("ok", "blocked"):
            yield Finding("plugins", FAULT, f"{row['id']} is {row['status']}: {row['reason']}",
                          row["remedy"] or f"heald plugins --traceback {row['id']}")


def _check_devices() -> Iterator[Finding]:
    """Open each device in a process of its own, so that a driver takes nothing with it."""
    rows, fault = output_of("devices", "--check", "--isolate")
    if fault:
        yield Finding("devices", FAULT, fault, "heald devices --check")
        return
    for row in rows:
        passed = row.get("check") == "PASS"
        model = row.get("attributes", {}).get("model")
        detail = f"{row['name']} works{f': {model}' if model else ''}" if passed else f"{row['name']}: {row['reason']}"
        absent = not passed and row["status"] in ("absent", "unavailable")
        yield Finding("devices", OK if passed else WARNING if absent else FAULT, detail, row.get("remedy") or "")


def output_of(*arguments: str) -> tuple[list[dict[str, Any]], str]:
    """The rows of another command, from a process of its own; or its error. No module of the working folder is imported
    there."""
    done = subprocess.run([sys.executable, "-P", "-m", "heald", *arguments, "--json"], capture_output=True,  # noqa: S603
                          text=True, check=False)
    try:
        return json.loads(done.stdout), ""
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return [], lines[0] if lines else f"ended with status {done.returncode}"


def read_text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except OSError:
        return ""


CHECKS: dict[str, Callable[[], Iterable[Finding]]] = {
    "python": _check_python, "distributions": _check_distributions, "processors": _check_processors,
    "memory": _check_memory, "limits": _check_limits, "config": _check_config, "plugins": _check_plugins,
    "devices": _check_devices,
}
