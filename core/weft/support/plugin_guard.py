"""Where an exception of a plugin's own code, at import or in a hook, becomes an error of weft."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import PluginError, told


@contextmanager
def plugin_guard(what: str, *, hint: str | None = None) -> Iterator[None]:
    """Raise PluginError for whatever `what` raises, SystemExit included; the original is kept as cause."""
    try:
        yield
    except (Exception, SystemExit) as error:  # a plugin may raise anything; the others go on
        raise PluginError(f"{what} raised {' '.join(told(error).split())}", hint=hint) from error
