"""PluginRecord: the result of loading one plugin, with the reason. `heald plugins` lists the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal

from ...errors import HealdError, PluginError, Unavailable
from ..support.records import dataclass
from ..support.remedy import loading_remedy

if TYPE_CHECKING:
    from ..contract.hookspecs import Contribution

Status = Literal["ok", "blocked", "incompatible", "conflict", "failed", "unavailable"]


class Blocked(PluginError):
    """Config leaves the plugin out."""


class Incompatible(PluginError):
    """The plugin and this heald are written for different versions of each other."""


class Duplicate(PluginError):
    """Another plugin has the same id."""


_STATUS: dict[type[HealdError], Status] = {
    Blocked: "blocked",
    Incompatible: "incompatible",
    Duplicate: "conflict",
    Unavailable: "unavailable",
}


@dataclass(frozen=True)
class PluginRecord:
    """The result of loading one plugin.

    `reason`: The cause of any status but `ok`, or a note about a plugin that is ok.
    `remedy`: The action that makes the plugin usable.
    `hooks`, `wrappers`: The hooks that it implements, and those of others that it observes.
    `registered`: Its registrations by kind: their names or, where there may be many, their number.
    """

    id: str
    status: Status = "ok"
    module: str = ""
    distribution: str | None = None
    version: str | None = None
    reason: str = ""
    remedy: str = ""
    registered: Mapping[str, Any] = field(default_factory=dict)
    hooks: tuple[str, ...] = ()
    wrappers: tuple[str, ...] = ()
    error: HealdError | None = field(default=None, repr=False, compare=False)

    def with_error(self, error: HealdError) -> PluginRecord:
        """This record with the status that an error stands for, and the error's message and hint."""
        reason = str(error).removesuffix(f"; {error.hint}")
        status = _STATUS.get(type(error), "failed")
        remedy = error.hint or ""
        if status == "failed" and error.__cause__ is not None:
            remedy = error.hint or loading_remedy(self.id, None if self.distribution else self.module)
        # The record outlives all callers: the error's own traceback would keep their frames, and a session in them.
        return replace(self, status=status, reason=reason, remedy=remedy, error=error.with_traceback(None))

    def with_note(self, reason: str, remedy: str = "", status: Status | None = None) -> PluginRecord:
        """This record with one more reason and remedy."""
        reasons = "; ".join(filter(None, [self.reason, reason]))
        remedies = "; ".join(filter(None, [self.remedy, remedy]))
        return replace(self, status=status or self.status, reason=reasons, remedy=remedies)

    @property
    def traceback(self) -> str:
        """The traceback of the plugin's own code as text; empty when it raised nothing."""
        import traceback

        cause = self.error.__cause__ if self.error is not None else None
        return "".join(traceback.format_exception(cause)) if cause is not None else ""

    def failure(self) -> PluginError:
        """This record as an error to raise."""
        error = PluginError(f"plugin {self.id} is {self.status}: {self.reason}", hint=self.remedy or None)
        error.__cause__ = self.error
        return error


def summary(brought: Contribution) -> dict[str, Any]:
    """A plugin's registrations, as `PluginRecord.registered` shows them."""
    kinds = {
        "device types": [announced.type for announced in brought.device_types],
        "ops": len(brought.ops),
        "op tables": len(brought.op_tables),
        "operators": len(brought.operators),
        "kernels for": sorted({pack.device_type for pack in brought.packs}),
        "host kernels": len(brought.host_packs),
        "allocators": sorted(brought.allocators),
        "work queues": sorted(brought.work_queues),
        "passes": sorted(p.name for p in brought.passes),
        "commands": sorted(command.name for command in brought.commands),
        "loaders": sorted(brought.loaders),
        "op handlers": sorted(brought.op_handlers),
        "compilers": sorted(brought.compilers),
        "session targets": sorted(factory.name for factory in brought.sessions),
    }
    return {kind: what for kind, what in kinds.items() if what}
