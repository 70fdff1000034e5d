"""The library: found where pip puts it, and opened once for the process. Its status codes become typed errors.

Its threads are OpenMP's. `spinning` says how long they wait awake, unless the user sets GOMP_SPINCOUNT or
OMP_WAIT_POLICY.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from heald.api import errors, install_hint

from .spinning import SPINS

NAME = "libdnnl.so.3"
OLDEST = (3, 2)
CACHED = 128  # primitives that the library keeps: enough for a network, not for 100 batch sizes; its default is 1024
PAUSE_HARD = 2  # omp_pause_hard
PACKAGE = "onednn-cpu-gomp>=2023.2,<2024"


class Library:
    """The open library. `c`: its functions; `engine`: the CPU. Several threads may use both, each with `threads`.

    `revision`: its version and the commit that it was built from. `spins_by_load`: the environment leaves it to heald
    how long waiting threads spin.
    """

    def __init__(self, ffi: Any, path: str, *, spins_by_load: bool) -> None:
        self.ffi = ffi
        # The library stays loaded: objects that it must destroy may outlive this object at the interpreter's end.
        self.c = ffi.dlopen(path, ffi.RTLD_NOW | ffi.RTLD_LOCAL | ffi.RTLD_NODELETE)
        found_version = self.c.dnnl_version()
        self.version = f"{found_version.major}.{found_version.minor}.{found_version.patch}"
        if (found_version.major, found_version.minor) < OLDEST:
            needed = ".".join(map(str, OLDEST))
            raise errors.Unavailable(f"{path} is oneDNN {self.version}, {needed} is needed", hint=install_hint(PACKAGE))
        self.revision = f"{self.version} {ffi.string(found_version.hash).decode()[:12]}"
        self.check(self.c.dnnl_set_primitive_cache_capacity(CACHED), "primitive cache")
        self._kinds: dict[str, tuple[Any, Any]] = {}  # by kind of object: the type of a pointer to it, its end
        self.threads: int = self.c.omp_get_max_threads()
        self.spins_by_load = spins_by_load
        self.engine = self.make("engine", self.c.dnnl_engine_create, self.c.dnnl_cpu, 0)
        pause = self.c.omp_pause_resource_all  # a forked child lacks the threads of its parent
        os.register_at_fork(before=lambda: pause(PAUSE_HARD))

    def make(self, kind: str, create: Callable[..., int], *arguments: Any) -> Any:
        """A new object of the C API, made by `create(result, *arguments)` and destroyed with its last reference.

        Raises Unimplemented for arguments that the library refuses, or that are wider than its types.
        """
        if kind not in self._kinds:
            self._kinds[kind] = self.ffi.typeof(f"dnnl_{kind}_t *"), getattr(self.c, f"dnnl_{kind}_destroy")
        pointer, destroy = self._kinds[kind]
        result = self.ffi.new(pointer)
        try:
            status = create(result, *arguments)
        except OverflowError as error:
            raise errors.Unimplemented(f"oneDNN {self.version} has no such {kind}: {error}") from None
        if status == self.c.dnnl_invalid_arguments:
            raise errors.Unimplemented(f"oneDNN {self.version} takes no such {kind}")
        self.check(status, kind)
        return self.ffi.gc(result[0], destroy)

    def check(self, status: int, what: str) -> None:
        """Raise Unimplemented, ResourceExhausted or Internal for a status other than success."""
        if status:
            name = self.ffi.string(self.c.dnnl_status2str(status)).decode()
            kinds = {self.c.dnnl_unimplemented: errors.Unimplemented,
                     self.c.dnnl_out_of_memory: errors.ResourceExhausted}
            raise kinds.get(status, errors.Internal)(f"oneDNN {self.version} says '{name}' of this {what}")


@cache
def library() -> Library:
    """The library, opened with the first call. Raises Unavailable."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise errors.Unavailable(f"oneDNN is packaged for Linux on x86-64, this is {sys.platform} on "
                                 f"{platform.machine()}", hint="nothing: the NumPy kernels serve every platform")
    try:
        from .declarations import ffi

        is_ours = not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & set(os.environ)
        with environment({"GOMP_SPINCOUNT": str(SPINS)} if is_ours else {}):
            return Library(ffi, _path(), spins_by_load=is_ours)
    except (ImportError, OSError, AttributeError) as error:  # the last: an OpenMP without a function
        raise errors.Unavailable(f"oneDNN cannot be loaded: {error}", hint=install_hint(PACKAGE)) from error


def open_library(threads: int) -> None:
    """Open the library for this many threads (plugin.Config) unless it is open already. Raises Unavailable."""
    with environment({"OMP_NUM_THREADS": str(threads)} if threads else {}, replace=True):
        library()


@contextmanager
def environment(variables: Mapping[str, str], *, replace: bool = False) -> Iterator[None]:
    """Set environment variables while a library is opened, so that no child process inherits them.

    Variables that the user has set stay, unless `replace` is true.
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update({name: value for name, value in variables.items() if replace or before[name] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _path() -> str:
    """The library's path: the wheel's folder beside the interpreter's libraries or the user's; else its bare name, for
    the loader to find."""
    import site

    prefixes = (sys.prefix, *([site.getuserbase()] if site.ENABLE_USER_SITE else ()))
    candidates = (path for prefix in prefixes if (path := Path(prefix, "lib", NAME)).exists())
    return str(next(candidates, NAME))
