"""Arrays of the guarded allocator, and the access that the first argument names: a signal ends the process."""

import ctypes
import sys
from typing import Any

import numpy as np

from fuzz.guarded import GuardedAllocator


def address_of(array: Any) -> int:
    return int(array.ctypes.data)


def main(access: str, nbytes: int) -> None:
    array: Any = GuardedAllocator().allocate(nbytes)
    assert array.dtype == np.uint8
    assert array.nbytes == nbytes
    assert address_of(array) % 64 == 0
    array[:] = 1  # all of it may be written
    if access == "read before":
        ctypes.string_at(address_of(array) & -4096, 1)
        ctypes.string_at((address_of(array) & -4096) - 1, 1)
    elif access == "read behind":
        ctypes.string_at(address_of(array), nbytes + 64)
    elif access == "write behind":
        ctypes.memset(address_of(array), 0, nbytes + 64)
    elif access == "write one behind":
        ctypes.memset(address_of(array), 0, nbytes + 1)
    del array
    print("survived")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
