"""A case: a sentence about devices or other parts of plugins, and the function that checks it on one of them.

A level is a module of such functions, each marked with `sentence`; the function's name is its claim. A case with `over`
has several parameters, which may depend on the subject: element types, ops, seeds. Its claim holds for each of them.
The levels of devices are in `levels`, those of the other hooks in `hooks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from .hook_subject import DEADLINE, HOOKS, OPTION_OF_MODULE, HookSubject, run_within
from .settings import LEVELS, Settings

if TYPE_CHECKING:
    from .subject import Subject

F = TypeVar("F", bound=Callable[..., Any])
Parameters = Callable[[Any], Iterable[str]]  # of a Subject or a HookSubject


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

    def on(self, subject: Subject | HookSubject) -> list[Case]:
        """The cases to run on this subject: the case itself, or one for each parameter."""
        if self.over is None or self.parameter is not None:
            return [self]
        return [Case(self.level, self.name, self.function, self.over, p) for p in self.over(subject)]

    def run(self, subject: Subject | HookSubject) -> Any:
        """Check the claim, for `parameter` if the case has one. Some cases return figures for the report."""
        arguments = (subject,) if self.parameter is None else (subject, self.parameter)
        if isinstance(subject, HookSubject):
            return run_within(DEADLINE, lambda: self.function(*arguments), self.title)
        from .device_deadline import run_before_deadline

        return run_before_deadline(subject.device, lambda: self.function(*arguments), self.title)

    def __call__(self, name: str, settings: Settings | None = None) -> list[Any]:
        """Check the claim for every parameter, on the device, queue, allocator, ... of this name.

        Raises Broken for the first parameter that fails.
        """
        subject = make_subject(self.level, name, settings)
        return [case.run(subject) for case in self.on(subject)]


def make_subject(level: str, name: str, settings: Settings | None = None) -> Subject | HookSubject:
    """The subject of a level's cases. Raises NotFound and Unavailable for a device that cannot be used."""
    if level in OPTION_OF_MODULE:
        return HookSubject(OPTION_OF_MODULE[level], name, settings or Settings())
    from .subject import Subject

    return Subject(name, settings)


def sentence(over: Parameters | None = None) -> Callable[[F], F]:
    """Mark a function of a level as a case. It takes the subject under test and, with `over`, a parameter."""

    def mark(function: F) -> F:
        level = function.__module__.rpartition(".")[2]
        _LEVELS.setdefault(level, []).append(Case(level, function.__name__, function, over))
        return function

    return mark


def cases(level: str | None = None) -> list[Case]:
    """Every case of a level, or of all levels of devices, in the order of `LEVELS`."""
    if level in OPTION_OF_MODULE:
        import_module(f"{__package__}.hooks.{level}")
        return list(_LEVELS[str(level)])
    for name in LEVELS:
        import_module(f"{__package__}.levels.{name}")
    return [c for name in LEVELS if level in (None, name) for c in _LEVELS[name]]


def case(id: str) -> Case:  # noqa: A002 - its name everywhere else
    """The case of an id as reports show it. An id without a parameter stands for all parameters. Raises LookupError."""
    stem, bracket, parameter = id.partition("[")
    case_of_id = {c.id: c for level in (None, *HOOKS.values()) for c in cases(level)}
    if stem not in case_of_id:
        close_ids = get_close_matches(stem, case_of_id, 1, 0.3)
        raise LookupError(f"no case is called '{stem}'" + (f"; did you mean {close_ids[0]}?" if close_ids else ""))
    base_case = case_of_id[stem]
    if not bracket:
        return base_case
    return Case(base_case.level, base_case.name, base_case.function, base_case.over, parameter.removesuffix("]"))


_LEVELS: dict[str, list[Case]] = {}
