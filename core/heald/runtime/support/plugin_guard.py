"""Plugin guard: turns an exception of a plugin's own code, at import or in a hook, into an error of heald."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import PluginError, describe_exception


@contextmanager
def plugin_guard(what: str, *, hint: str | None = None) -> Iterator[None]:
    """Raise PluginError for an exception inside the block, SystemExit included. Its text says that `what` raised; the
    exception is its cause."""
    try:
        yield
    except (Exception, SystemExit) as error:  # a plugin may raise anything; other plugins go on
        raise PluginError(f"{what} raised {' '.join(describe_exception(error).split())}", hint=hint) from error
