"""A case: a sentence about devices, and the function that checks it on one device.

A level is a module of such functions, each marked with `sentence`; the function's name is its claim. A case with `over`
has several parameters, which may depend on the device: element types, ops, seeds. Its claim holds for each of them.
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
    """One claim, for instance `memory.copies_of_no_bytes_do_nothing` or
    `kernels.a_kernel_agrees_with_the_cpu[Neg-float32]`.

    `title` is the id's name as a sentence.
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
        """The cases to run on this device: the case itself, or one for each parameter."""
        if self.over is None or self.parameter is not None:
            return [self]
        return [Case(self.level, self.name, self.function, self.over, p) for p in self.over(subject)]

    def run(self, subject: Subject) -> Any:
        """Check the claim, for `parameter` if the case has one. Throughput cases return figures, all others None."""
        return self.function(subject) if self.parameter is None else self.function(subject, self.parameter)

    def __call__(self, device: str, settings: Settings | None = None) -> list[Any]:
        """Check the claim for every parameter. Raises Broken for the first parameter that fails."""
        from .subject import Subject

        subject = Subject(device, settings)
        return [case.run(subject) for case in self.on(subject)]


def sentence(over: Parameters | None = None) -> Callable[[F], F]:
    """Mark a function of a level as a case. It takes the device under test and, with `over`, a parameter."""

    def mark(function: F) -> F:
        level = function.__module__.rpartition(".")[2]
        _LEVELS.setdefault(level, []).append(Case(level, function.__name__, function, over))
        return function

    return mark


def cases(level: str | None = None) -> list[Case]:
    """Every case of a level, or of all levels, in the order of `LEVELS`."""
    for name in LEVELS:
        import_module(f"{__package__}.levels.{name}")
    return [c for name in LEVELS if level in (None, name) for c in _LEVELS[name]]


def case(id: str) -> Case:  # noqa: A002 - its name everywhere else
    """The case of an id as reports show it. An id without a parameter stands for all parameters. Raises LookupError."""
    stem, bracket, parameter = id.partition("[")
    case_of_id = {c.id: c for c in cases()}
    if stem not in case_of_id:
        close_ids = get_close_matches(stem, case_of_id, 1, 0.3)
        raise LookupError(f"no case is called '{stem}'" + (f"; did you mean {close_ids[0]}?" if close_ids else ""))
    base_case = case_of_id[stem]
    if not bracket:
        return base_case
    return Case(base_case.level, base_case.name, base_case.function, base_case.over, parameter.removesuffix("]"))


_LEVELS: dict[str, list[Case]] = {}
