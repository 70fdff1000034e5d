"""Planted faults: the n-th call of a kind fails, or each call with a probability."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from heald.api import errors

KINDS = ("allocate", "copy", "launch", "lost")
Strike = Callable[[], bool]  # called once for each call of the kind: True if this call fails


class Faults:
    """The planted faults of one device. Each specification has its own random sequence, independent of the others."""

    def __init__(self, specifications: tuple[str, ...], seed: str) -> None:
        self._seed = seed
        self._strikes: dict[str, list[Strike]] = {kind: [] for kind in KINDS}
        for specification in specifications:
            self.add(specification)

    def add(self, specification: str) -> None:
        """Plant a fault, whose calls count from now on. Raises InvalidArgument."""
        kind, _, when = specification.partition(":")
        if kind not in KINDS:
            raise _syntax_error(specification)
        self._strikes[kind].append(
            _nth_call(specification, when) if when.isdecimal() else self._random_calls(specification, when))

    def strikes(self, *kinds: str) -> str | None:
        """The first of these kinds with a fault for the current call, or None."""
        kinds_struck = [kind for kind in kinds for strike in self._strikes[kind] if strike()]
        return kinds_struck[0] if kinds_struck else None

    def _random_calls(self, specification: str, when: str) -> Strike:
        try:
            probability = float(when)
        except ValueError:
            raise _syntax_error(specification) from None
        if not 0 <= probability <= 1:
            raise _syntax_error(specification)
        random = Random(f"{self._seed} {specification}").random  # noqa: S311 - to be repeated, not to be secret
        return lambda: random() < probability


def _nth_call(specification: str, when: str) -> Strike:
    left = int(when)
    if left < 1:
        raise _syntax_error(specification)

    def strike() -> bool:
        nonlocal left
        left -= 1
        return left == 0

    return strike


def _syntax_error(specification: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(
        f"'{specification}' names no fault", hint=f"write '<kind>:<n>' for the n-th call or '<kind>:<probability>', "
                                                  f"0.0 to 1.0; kinds: {', '.join(KINDS)}")
