"""A pause of the garbage collector while a graph is read and prepared. Its many objects stay alive.

The collector would scan these objects again and again and free nothing. That takes a fifth of the time to load a small
network. Nor does it scan them at the end: they go straight to the oldest generation, which is scanned once it has
grown.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Switch off collection inside the block. With several threads the first one to leave switches it on again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else the application has frozen objects, which must stay frozen
            gc.freeze()
            gc.unfreeze()  # moves all objects to the oldest generation
        gc.enable()
