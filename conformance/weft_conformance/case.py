"""A case: a sentence about devices, and the function that finds out whether it holds for one.

A level is a module of such functions, each marked with `sentence`; its name is what it claims. A case that is `over`
something holds for each of several parameters, which may depend on the device: element types, ops, seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from .settings import LEVELS, Settings

if TYPE_CHECKING:
    from .subject import Subject

F = TypeVar("F", bound=Callable[..., Any])
Parameters = Callable[["Subject"], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Case:
    """`memory.one_byte_is_copied_and_no_more`, or `kernels.agrees_with_the_cpu[Neg-float32]` for one parameter.

    `title` is the same as a sentence.
    """

    level: str
    name: str
    function: Callable[..., Any]
    over: Parameters | None = None
    parameter: str | None = None

    @property
    def id(self) -> str:
        return f"{self.level}.{self.name}" + ("" if self.parameter is None else f"[{self.parameter}]")

    @property
    def title(self) -> str:
        return self.name.replace("_", " ") + ("" if self.parameter is None else f": {self.parameter}")

    def on(self, subject: Subject) -> list[Case]:
        """The cases to run on this device: this one, or one for each parameter."""
        if self.over is None or self.parameter is not None:
            return [self]
        return [Case(self.level, self.name, self.function, self.over, p) for p in self.over(subject)]

    def run(self, subject: Subject) -> Any:
        """Find out, for one parameter if there are any. Throughput cases return their figures, the others nothing."""
        return self.function(subject) if self.parameter is None else self.function(subject, self.parameter)

    def __call__(self, device: str, settings: Settings | None = None) -> list[Any]:
        """Find out for every parameter. Raises Broken for the first that does not hold."""
        from .subject import Subject

        subject = Subject(device, settings)
        return [case.run(subject) for case in self.on(subject)]


def sentence(over: Parameters | None = None) -> Callable[[F], F]:
    """Mark a function of a level as a case: of the device under test and, with `over`, of a parameter."""

    def mark(function: F) -> F:
        level = function.__module__.rpartition(".")[2]
        _LEVELS.setdefault(level, []).append(Case(level, function.__name__, function, over))
        return function

    return mark


def cases(level: str | None = None) -> list[Case]:
    """Every case of a level, or of all levels, in their order."""
    for name in LEVELS:
        import_module(f"{__package__}.levels.{name}")
    return [c for name in LEVELS if level in (None, name) for c in _LEVELS[name]]


def case(id: str) -> Case:  # noqa: A002 - what it is called everywhere else
    """The case of this id, as reports show it; without a parameter, all of them. Raises LookupError."""
    stem, bracket, parameter = id.partition("[")
    known = {c.id: c for c in cases()}
    if stem not in known:
        near = get_close_matches(stem, known, 1, 0.3)
        raise LookupError(f"no case is called '{stem}'" + (f"; did you mean {near[0]}?" if near else ""))
    found = known[stem]
    if not bracket:
        return found
    return Case(found.level, found.name, found.function, found.over, parameter.removesuffix("]"))


_LEVELS: dict[str, list[Case]] = {}
