"""Programs of a device: built once in a process, and once on a machine as long as its driver stays the same."""

from __future__ import annotations

import re
import warnings
from threading import Lock

import pyopencl as cl
from heald.api import DiskCache, errors
from pyopencl._cl import _Program

OPTIONS = ["-w"]  # no warnings: at run time they concern no user of a model
SHOWN_ERRORS = 3  # errors of the compiler that a message quotes


class Programs:
    """The programs of one device, cached in memory and on disk. `built` counts compilations from source."""

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self._context = context
        self._device = device
        self._driver = "\n".join((device.platform.version, device.vendor, device.name, device.version,
                                  device.driver_version))
        self._disk = DiskCache("opencl")
        self._programs: dict[tuple[str, str], cl.Program] = {}
        self._lock = Lock()
        self.built = 0

    def get(self, source: str, options: str, name: str) -> cl.Program:
        """The program for this text. Raises Internal with `name`, of its kernel, and the compiler's first errors."""
        with self._lock:
            program = self._programs.get((source, options))
            if program is None:
                program = self._programs[source, options] = self._load(source, options, name)
            return program

    def _load(self, source: str, options: str, name: str) -> cl.Program:
        key = "\n".join((self._driver, options, source))
        binary = self._disk.get(key)
        if binary is not None:
            try:
                return self._build(cl.Program(self._context, [self._device], [binary]), options)
            except cl.Error:  # a damaged binary, or a driver whose versions have one name
                pass
        try:
            program = self._build(cl.Program(_Program(self._context, source)), options)
        except cl.Error as error:
            raise errors.Internal(f"kernel '{name}' does not compile: {_shorten_log(str(error))}",
                                  hint="its pack does not fit this driver") from error
        self.built += 1
        self._disk.put(key, program.binaries[0])
        return program

    def _build(self, program: cl.Program, options: str) -> cl.Program:
        """Build a program that exists already for the driver. For others pyopencl has a cache of its own, which leaves
        behind the text of programs that do not compile."""
        with warnings.catch_warnings():  # some drivers warn at every build
            warnings.simplefilter("ignore", cl.CompilerWarning)
            program.build([*OPTIONS, *options.split()])
        return program


def _shorten_log(log: str) -> str:
    """The first errors of a log that may have thousands of lines, without the files of the driver's own."""
    error_lines = [re.sub(r"\S*?:(\d+:\d+): ", r"\1: ", line.strip()) for line in log.splitlines()
             if re.search(r"\berror\b", line, re.IGNORECASE) and not re.match(r"\d+ errors? generated", line.strip())]
    error_lines = error_lines or [line.strip() for line in log.splitlines() if line.strip()]
    more = f"; and {len(error_lines) - SHOWN_ERRORS} more" if len(error_lines) > SHOWN_ERRORS else ""
    return "; ".join(line[:200] for line in error_lines[:SHOWN_ERRORS]) + more
