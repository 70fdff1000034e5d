"""The garbage collector rests while a graph is read and prepared: what is made then stays, and is made of many objects.

It would look at all of them again and again, and find nothing: a fifth of the time it takes to load a small network.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def resting() -> Iterator[None]:
    """No collections inside; of several threads the first that is done lets them be again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
