"""Programs of a device: compiled once in a process, and once on a machine as long as the compiler stays the same."""

from __future__ import annotations

import re
from importlib.metadata import version
from threading import Lock

from heald.api import DiskCache, errors

from . import driver

SHOWN_ERRORS = 3  # errors of the compiler that a message quotes


class Programs:
    """The cubins for one architecture, cached in memory and on disk. `built` counts compilations from source."""

    def __init__(self, architecture: str) -> None:
        self.architecture = architecture
        self._compiler = f"{version('nvidia-cuda-nvrtc')} {version('cuda-core')}"
        self._disk = DiskCache("cuda")
        self._programs: dict[tuple[str, str], bytes] = {}
        self._lock = Lock()
        self.built = 0

    def get(self, source: str, options: str, name: str) -> bytes:
        """The cubin for this text. Raises Internal with `name`, of its kernel, and the compiler's first errors."""
        with self._lock:
            program = self._programs.get((source, options))
            if program is None:
                program = self._programs[source, options] = self._load(source, options, name)
            return program

    def _load(self, source: str, options: str, name: str) -> bytes:
        key = "\n".join((self._compiler, self.architecture, options, source))
        binary = self._disk.get(key)
        if binary is not None:
            return binary
        binary, log = driver.compile_text(source, self.architecture, options.split())
        if not binary:
            raise errors.Internal(f"kernel '{name}' does not compile: {shorten_log(log)}",
                                  hint="its pack does not fit this GPU")
        self.built += 1
        self._disk.put(key, binary)
        return binary


def shorten_log(log: str) -> str:
    """The first errors of a log that may have thousands of lines, without the program's name."""
    error_lines = [re.sub(r"^\S*?\((\d+)\): ", r"line \1: ", line.strip("\0 \n")) for line in log.splitlines()
                   if re.search(r"\berror\b", line) and not re.match(r"\d+ errors? detected", line.strip())]
    error_lines = error_lines or [line.strip("\0 \n") for line in log.splitlines() if line.strip("\0 \n")]
    more = f"; and {len(error_lines) - SHOWN_ERRORS} more" if len(error_lines) > SHOWN_ERRORS else ""
    return "; ".join(line[:200] for line in error_lines[:SHOWN_ERRORS]) + more
