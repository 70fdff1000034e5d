"""The guarded allocator of fuzz, which also notes the sizes of its buffers in `sizes`."""

from heald.api import hookimpl

from fuzz.guarded import GuardedAllocator

HEALD_API = (1, 3)
CONFIG = {"allocator": {"name": "noting"},
          "plugins": {"load": ["plugins_for_tests.plugin_of_noting_guards"], "block": ["simplify"]}}
sizes: list[int] = []


@hookimpl
def heald_allocators(registry):
    registry.add("noting", NotingAllocator)


class NotingAllocator(GuardedAllocator):
    def allocate(self, nbytes, alignment=64):
        sizes.append(nbytes)
        return super().allocate(nbytes, alignment)
