"""Outcomes: how one mutant ended, and whether that is a failure of heald."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from heald.errors import HealdError, Internal, PluginError

RESULT, INTERNAL, UNTYPED, SIGNAL, TIMEOUT, MEMORY = "result", "Internal", "untyped", "signal", "timeout", "memory"
KERNEL = "kernel"
FAILURES = (INTERNAL, KERNEL, UNTYPED, SIGNAL, TIMEOUT, MEMORY)
OWN_PLUGINS = ("cpu", "mlir", "onednn", "saved_model", "simplify", "tf_ops", "tools")  # that children load
DEADLINE = 5.0  # seconds per mutant
MOST_MEMORY = 256 << 20  # resident bytes that a mutant may add
_FRAMES = 3  # innermost frames that tell failures apart
_SHOWN = 8  # frames of a traceback
_LONGEST = 4000  # characters of a failure's text


class Outcome(NamedTuple):
    """`kind`: RESULT, the class of a typed error, or one of FAILURES. `where` groups equal failures, `text` is the
    traceback; both are empty unless the outcome is a failure. `reached`: a kernel ran."""

    kind: str
    where: str = ""
    text: str = ""
    reached: bool = False

    @property
    def is_failure(self) -> bool:
        return self.kind in FAILURES


def outcome(action: Callable[[], object]) -> Outcome:
    """The outcome of calling `action`."""
    try:
        action()
    except BaseException as error:  # noqa: BLE001 - any exception is an outcome
        return of_error(error)
    return Outcome(RESULT)


def of_error(error: BaseException) -> Outcome:
    """The outcome of an exception. A typed error counts as MEMORY where the limits of the process refused memory:
    heald had asked for too much. A PluginError that names an op or a plugin of heald's own counts as KERNEL."""
    if isinstance(error, PluginError) and (error.op is not None or error.plugin in OWN_PLUGINS):
        return _failure(KERNEL, [*_chain(error)][-1])
    if isinstance(error, HealdError) and not isinstance(error, Internal):
        str(error)  # raises where the error's text is at fault
        refused = next((e for e in _chain(error) if isinstance(e, MemoryError) and not isinstance(e, HealdError)), None)
        return Outcome(type(error).__name__) if refused is None else _failure(MEMORY, refused)
    kind = INTERNAL if isinstance(error, Internal) else MEMORY if isinstance(error, MemoryError) else UNTYPED
    return _failure(kind, [*_chain(error)][-1])


def _failure(kind: str, error: BaseException) -> Outcome:
    frames = traceback.extract_tb(error.__traceback__)
    shown = [f"{'/'.join(Path(f.filename).parts[-3:])}:{f.lineno} in {f.name}: {f.line}" for f in frames[-_SHOWN:]]
    last = " < ".join(f"{Path(f.filename).name}:{f.name}" for f in reversed(frames[-_FRAMES:]))
    text = "\n".join([*shown, *map(str.strip, traceback.format_exception_only(error))])
    return Outcome(kind, f"{type(error).__name__} in {last or normalised_message(str(error))}", text[:_LONGEST])


def normalised_message(text: str) -> str:
    """A message without numbers and quoted names, which differ from mutant to mutant."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", "*", text)[:200]


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, outermost first."""
    seen_ids: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen_ids:
        seen_ids.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
