"""The garbage collector rests while a graph is read and prepared: what is made then stays, and is made of many objects.

It would look at all of them again and again, and find nothing: a fifth of the time it takes to load a small network.
Nor does it look at them at the end: they go straight to the oldest generation, which is looked at when it has grown.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """No collections inside; of several threads the first that is done lets them be again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else somebody wants what is frozen to stay so
            gc.freeze()
            gc.unfreeze()  # to the oldest generation
        gc.enable()
